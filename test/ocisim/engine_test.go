// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package ocisim_test

import (
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/oracle/oci-cloud-controller-manager/test/ocisim"
)

func TestRouting(t *testing.T) {
	f := newFixture(t, ocisim.Options{})
	f.get("/20160918/noSuchThing").wantError(http.StatusNotFound, "NotFound")
	f.get("/19990101/instances/"+f.instance).wantError(http.StatusNotFound, "NotFound")
	f.get("/20160918/instances/").wantError(http.StatusNotFound, "NotFound")
	f.do(http.MethodPatch, api+"/instances/"+f.instance, nil).wantError(http.StatusMethodNotAllowed, "MethodNotAllowed")
	f.get(api+"/instances/ocid1.instance.oc1.iad.unknown").wantError(http.StatusNotFound, "NotAuthorizedOrNotFound")
	// An identifier of another kind is as unknown as any.
	f.get(api+"/vcns/"+f.instance).wantError(http.StatusNotFound, "NotAuthorizedOrNotFound")
	f.get(api+"/instances").wantError(http.StatusBadRequest, "MissingParameter")
	f.get(api+"/instances?compartmentId=ocid1.compartment.oc1..unknown").wantError(http.StatusNotFound, "NotAuthorizedOrNotFound")
}

func TestEveryAnswerHasItsHeaders(t *testing.T) {
	f := newFixture(t, ocisim.Options{})
	form := regexp.MustCompile(`^0123abcd/[0-9A-F]{32}/[0-9A-F]{32}$`)
	for _, uri := range []string{api + "/instances/" + f.instance, api + "/instances/unknown", "/nowhere"} {
		r := f.get(uri, "opc-request-id", "0123abcd")
		if id := r.header.Get("opc-request-id"); !form.MatchString(id) {
			t.Errorf("%s: opc-request-id %q", uri, id)
		}
		date, err := http.ParseTime(r.header.Get("Date"))
		if err != nil || time.Since(date).Abs() > time.Minute {
			t.Errorf("%s: Date %q: %v", uri, r.header.Get("Date"), err)
		}
		if got := r.header.Get("Content-Type"); got != "application/json" {
			t.Errorf("%s: Content-Type %q", uri, got)
		}
	}
	if id := f.get(api + "/instances/" + f.instance).header.Get("opc-request-id"); !strings.HasPrefix(id, "/") {
		t.Errorf("without a client's id the first part is empty, got %q", id)
	}
}

func TestTimestampsAndOptionalFields(t *testing.T) {
	f := newFixture(t, ocisim.Options{})
	o := f.get(api + "/instances/" + f.instance).want(http.StatusOK).object()
	if created := str(o, "timeCreated"); !regexp.MustCompile(`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$`).MatchString(created) {
		t.Errorf("timeCreated %q is not RFC 3339 with milliseconds and Z", created)
	}
	for name, v := range o {
		if v == nil {
			t.Errorf("%s is null", name)
		}
	}
	source, _ := o["sourceDetails"].(object)
	if source["sourceType"] != "image" {
		t.Errorf("sourceDetails %v has no discriminator", source)
	}
}

func TestCallLog(t *testing.T) {
	f := newFixture(t, ocisim.Options{LogSize: 3})
	alice := f.as(f.region, "alice")
	alice.get(api + "/instances/" + f.instance)
	alice.get(api + "/instances/unknown")
	created := alice.post(api+"/networkSecurityGroups", object{"compartmentId": f.compartment, "vcnId": f.vcn}, "opc-retry-token", "t1").want(http.StatusOK)
	id := str(created.object(), "id")
	alice.delete(api+"/networkSecurityGroups/"+id, "if-match", created.header.Get("etag")).want(http.StatusNoContent)

	type line struct {
		Seq                                        uint64
		Name, Resource, Created, Code, Token, Etag string
		Status                                     int
		Write                                      bool
	}
	var got []line
	for _, c := range f.region.Calls() {
		if c.Principal != "alice" || c.RequestID == "" {
			t.Errorf("call %+v has no principal or no request id", c)
		}
		got = append(got, line{c.Seq, c.Name(), c.Resource, c.Created, c.Code, c.RetryToken, c.IfMatch, c.Status, c.Write})
	}
	want := []line{ // the first call has left the ring of three
		{Seq: 2, Name: "compute.GetInstance", Resource: "unknown", Status: 404, Code: "NotAuthorizedOrNotFound"},
		{Seq: 3, Name: "virtualnetwork.CreateNetworkSecurityGroup", Created: id, Status: 200, Write: true, Token: "t1"},
		{Seq: 4, Name: "virtualnetwork.DeleteNetworkSecurityGroup", Resource: id, Status: 204, Write: true, Etag: created.header.Get("etag")},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("call log (-want +got):\n%s", diff)
	}
	counts := map[string]int{
		"compute.GetInstance": 2, "virtualnetwork.CreateNetworkSecurityGroup": 1, "virtualnetwork.DeleteNetworkSecurityGroup": 1,
	}
	if diff := cmp.Diff(counts, f.region.Counts()); diff != "" {
		t.Errorf("counts (-want +got):\n%s", diff)
	}
	f.region.ResetCalls()
	alice.get(api + "/instances/" + f.instance)
	if calls := f.region.Calls(); len(calls) != 1 || calls[0].Seq != 5 {
		t.Errorf("after a reset the log is %+v, want one call with number 5", calls)
	}
}

// TestOnCall looks into the region from an observer: the call has taken effect, its answer has not left.
func TestOnCall(t *testing.T) {
	f := newFixture(t, ocisim.Options{})
	answered := false
	var seen []string
	f.region.OnCall(func(c ocisim.Call) {
		if answered {
			t.Error("the answer left before the observer ran")
		}
		if c.Created != "" {
			if _, ok := f.region.SecurityGroup(c.Created); !ok {
				t.Errorf("%s is not there yet", c.Created)
			}
		}
		seen = append(seen, c.Name())
	})
	f.post(api+"/networkSecurityGroups", object{"compartmentId": f.compartment, "vcnId": f.vcn}).want(http.StatusOK)
	answered = true
	if diff := cmp.Diff([]string{"virtualnetwork.CreateNetworkSecurityGroup"}, seen); diff != "" {
		t.Error(diff)
	}
}

func TestLatencyRunsOnVirtualTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, ocisim.Options{Latency: map[string]ocisim.Range{
			"compute.GetInstance": {Min: 2 * time.Second, Max: 3 * time.Second},
			"*":                   {Min: time.Second, Max: time.Second},
		}})
		began := time.Now()
		f.get(api + "/instances/" + f.instance).want(http.StatusOK)
		if d := time.Since(began); d < 2*time.Second || d > 3*time.Second {
			t.Errorf("GetInstance took %s", d)
		}
		began = time.Now()
		f.get(api + "/vcns/" + f.vcn).want(http.StatusOK)
		if d := time.Since(began); d != time.Second {
			t.Errorf("GetVcn took %s", d)
		}
	})
}

// TestSameSeedSameRegion repeats a history and finds every identifier and etag again.
func TestSameSeedSameRegion(t *testing.T) {
	history := func(seed uint64) string {
		var snapshot []byte
		synctest.Test(t, func(t *testing.T) {
			f := newFixture(t, ocisim.Options{Seed: seed})
			f.post(api+"/networkSecurityGroups", object{"compartmentId": f.compartment, "vcnId": f.vcn}).want(http.StatusOK)
			if err := f.region.Foreign().TerminateInstance(f.instance); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Minute)
			snapshot = f.region.Snapshot()
		})
		return string(snapshot)
	}
	if diff := cmp.Diff(history(1), history(1)); diff != "" {
		t.Errorf("two histories of one seed differ:\n%s", diff)
	}
	if history(1) == history(2) {
		t.Error("two seeds made the same region")
	}
}

func TestReset(t *testing.T) {
	f := newFixture(t, ocisim.Options{})
	f.region.Fault(ocisim.Fault{Status: 500})
	f.region.Deny(ocisim.Policy{})
	f.region.Reset()
	if left := f.region.Instances(); len(left) != 0 {
		t.Errorf("%d instances are left", len(left))
	}
	tenancy := f.region.Options().Tenancy
	if list := f.get(api + "/instances?compartmentId=" + tenancy).want(http.StatusOK).array(); len(list) != 0 {
		t.Errorf("list %v", list)
	}
	if calls := f.region.Calls(); len(calls) != 1 {
		t.Errorf("%d calls in the log, want the one after the reset", len(calls))
	}
}

// TestConcurrentUse lets several callers, observers and the test itself work at once; each create happens once.
func TestConcurrentUse(t *testing.T) {
	f := newFixture(t, ocisim.Options{PageSize: 3, EventualReads: 1})
	var observed atomic.Int64
	f.region.OnCall(func(ocisim.Call) { observed.Add(1) })
	const callers, rounds = 6, 20
	var wg sync.WaitGroup
	for n := range callers {
		wg.Go(func() {
			for i := range rounds {
				body := object{"compartmentId": f.compartment, "vcnId": f.vcn, "displayName": "group"}
				token := fmt.Sprintf("%d-%d", n, i)
				first := f.post(api+"/networkSecurityGroups", body, "opc-retry-token", token)
				again := f.post(api+"/networkSecurityGroups", body, "opc-retry-token", token)
				if first.status != http.StatusOK || string(first.body) != string(again.body) {
					t.Errorf("token %s: %s and %s", token, first.body, again.body)
				}
				f.get(api + "/networkSecurityGroups?compartmentId=" + f.compartment)
				f.region.Snapshot()
			}
		})
	}
	for range rounds {
		f.region.Advance(time.Second)
		f.region.Calls()
		f.region.Counts()
	}
	wg.Wait()
	if n := len(f.region.SecurityGroups()); n != callers*rounds {
		t.Errorf("%d groups, want %d", n, callers*rounds)
	}
	if n := observed.Load(); n != callers*rounds*3 {
		t.Errorf("%d calls observed, want %d", n, callers*rounds*3)
	}
}
