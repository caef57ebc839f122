// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package ocisim_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/oracle/oci-cloud-controller-manager/test/ocisim"
)

// kindOf finds the summary of a kind.
func kindOf(region *ocisim.Region, kind string) ocisim.KindSummary {
	for _, k := range region.Kinds() {
		if k.Kind == kind {
			return k
		}
	}
	return ocisim.KindSummary{}
}

func TestRevisionOfAKindChangesExactlyWithItsResources(t *testing.T) {
	s := newShore(t, ocisim.Options{Seed: 1})
	seen := map[string]bool{}
	changed := func(what string, want bool) {
		t.Helper()
		revision := kindOf(s.region, "instance").Revision
		if seen[revision] == want {
			t.Errorf("%s: the revision of the instances is new: %v", what, !want)
		}
		seen[revision] = true
	}
	changed("start", true)
	changed("nothing", false)
	s.do(http.MethodGet, "/20160918/instances/"+s.instance, nil)
	changed("read", false)
	s.region.AddSubnet(ocisim.Subnet{Name: "other", VCN: s.vcn, CIDR: "10.0.9.0/24"})
	changed("change of another kind", false)
	if err := s.region.Foreign().Patch(s.instance, []byte(`{"displayName":"renamed"}`)); err != nil {
		t.Fatal(err)
	}
	changed("change", true)
	second := s.region.AddInstance(ocisim.Instance{Name: "second"})
	changed("new one", true)
	if k := kindOf(s.region, "instance"); k.Count != 2 || k.States["RUNNING"] != 2 {
		t.Errorf("instances: %+v", k)
	}
	if err := s.region.Foreign().Delete(second); err != nil {
		t.Fatal(err)
	}
	if k := kindOf(s.region, "instance"); k.Count != 1 {
		t.Errorf("instances after a removal: %+v", k)
	}
}

func TestObjectsShowWorkRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShore(t, ocisim.Options{Seed: 1})
		s.region.Fault(ocisim.Fault{Operation: "CreateLoadBalancer", FailWork: true, Message: "no room"})
		s.do(http.MethodPost, "/20170115/loadBalancers", s.lbBody(nil))
		time.Sleep(5 * time.Minute)
		page := s.region.Objects(ocisim.ObjectQuery{Kinds: []string{"work request"}})
		if len(page.Objects) != 1 {
			t.Fatalf("work requests: %+v", page)
		}
		var work ocisim.WorkRequest
		if err := json.Unmarshal(page.Objects[0].Value, &work); err != nil {
			t.Fatal(err)
		}
		if work.Status != "FAILED" || work.Resource == "" || work.TimeFinished.Before(work.TimeAccepted) || strings.Join(work.Errors, "") != "INTERNAL_ERROR: no room" {
			t.Errorf("work request: %+v", work)
		}
	})
}

// TestFaultOfWorkRequestsCountsThem: a fault that only lets work requests fail is not used up by other calls.
func TestFaultOfWorkRequestsCountsThem(t *testing.T) {
	s := newShore(t, ocisim.Options{Seed: 1})
	s.region.Fault(ocisim.Fault{FailWork: true, Nth: 2})
	for range 2 {
		s.do(http.MethodGet, "/20160918/instances/"+s.instance, nil)
		s.do(http.MethodPost, "/20170115/loadBalancers", `{}`) // refused
		s.do(http.MethodPost, "/20170115/loadBalancers", s.lbBody(nil))
	}
	if f := s.region.ArmedFaults()[0]; f.Seen != 2 || f.Struck != 1 {
		t.Errorf("the fault saw %d and struck %d", f.Seen, f.Struck)
	}
	var struck []uint64
	for _, c := range s.region.Calls() {
		if c.Fault != "" {
			struck = append(struck, c.Seq)
		}
	}
	if len(struck) != 1 || struck[0] != 6 {
		t.Errorf("the log has the fault at %v, want call 6 only", struck)
	}
	s.region.Advance(5 * time.Minute)
	states := kindOf(s.region, "work request").States
	if states["FAILED"] != 1 || states["SUCCEEDED"] != 1 {
		t.Errorf("work requests: %v", states)
	}
}

func TestFaultByPatternAndWrites(t *testing.T) {
	s := newShore(t, ocisim.Options{Seed: 1})
	get := func() int { return s.do(http.MethodGet, "/20160918/instances/"+s.instance, nil).status }
	post := func() int { return s.do(http.MethodPost, "/20170115/loadBalancers", s.lbBody(nil)).status }
	for _, tc := range []struct {
		fault     ocisim.Fault
		get, post int
	}{
		{ocisim.Fault{Operation: "Create*", Status: 500}, 200, 500},
		{ocisim.Fault{Operation: "compute.*", Status: 500}, 500, 204},
		{ocisim.Fault{Operation: "compute.Get*", Status: 500}, 500, 204},
		{ocisim.Fault{Operation: "*", Status: 500}, 500, 500},
		{ocisim.Fault{Operation: "Load*", Status: 500}, 200, 204},
		{ocisim.Fault{Writes: true, Status: 500}, 200, 500},
		{ocisim.Fault{Writes: true, Operation: "compute.*", Status: 500}, 200, 204},
	} {
		remove := s.region.Fault(tc.fault)
		if g, p := get(), post(); g != tc.get || p != tc.post {
			t.Errorf("%+v: a read is answered %d, a create %d; want %d and %d", tc.fault, g, p, tc.get, tc.post)
		}
		remove()
	}
	defer s.region.Deny(ocisim.Policy{Operation: "Get*"})()
	if status := get(); status != http.StatusNotFound {
		t.Errorf("a read that a denial names by pattern is answered %d", status)
	}
}

func TestCallsBefore(t *testing.T) {
	region := ocisim.New(ocisim.Options{Seed: 1, LogSize: 10})
	c := newClient(t, region)
	check := func(before uint64, limit int, want ...uint64) {
		t.Helper()
		got := region.CallsBefore(before, limit)
		if len(got) != len(want) {
			t.Errorf("before %d: %d calls, want %v", before, len(got), want)
			return
		}
		for i, call := range got {
			if call.Seq != want[i] {
				t.Errorf("before %d: call %d is number %d, want %v", before, i, call.Seq, want)
			}
		}
	}
	check(0, 5)
	for n := 1; n <= 27; n++ {
		c.do(http.MethodGet, "/20160918/instances/nosuch", nil)
		if n == 3 {
			check(0, 5, 3, 2, 1)
			check(3, 1, 2)
			check(1, 5)
		}
	}
	check(0, 3, 27, 26, 25)
	check(99, 1, 27)
	check(21, 9, 20, 19, 18)
	check(18, 9)
	check(5, 9)
	region.ResetCalls()
	check(0, 5)
	c.do(http.MethodGet, "/20160918/instances/nosuch", nil)
	check(0, 5, 28)
}
