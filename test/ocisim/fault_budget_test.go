// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package ocisim_test

import (
	"encoding/json"
	"errors"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/oracle/oci-go-sdk/v65/common"
	"github.com/oracle/oci-go-sdk/v65/core"

	"github.com/oracle/oci-cloud-controller-manager/test/ocisim"
)

// TestBudgetFault throttles the reads of one service, and nothing else.
func TestBudgetFault(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, ocisim.Options{})
		remove := f.region.Fault(ocisim.Fault{
			Operation: "compute.*", Reads: true, Budget: ocisim.Rate{PerSecond: 0.5, Burst: 2}, RetryAfter: 3 * time.Second,
		})
		uri := api + "/instances/" + f.instance
		f.get(uri).want(http.StatusOK)
		f.get(uri).want(http.StatusOK)
		r := f.get(uri)
		r.wantError(http.StatusTooManyRequests, "TooManyRequests")
		if got := r.header.Get("Retry-After"); got != "3" {
			t.Errorf("Retry-After %q", got)
		}
		f.get(api + "/subnets/" + f.subnet).want(http.StatusOK)
		f.post(uri+"?action=STOP", nil).want(http.StatusOK)
		time.Sleep(2 * time.Second)
		f.get(uri).want(http.StatusOK)
		f.get(uri).wantError(http.StatusTooManyRequests, "TooManyRequests")
		remove()
		f.get(uri).want(http.StatusOK)
	})
}

// TestFaultFindsItsResource strikes calls that name a resource anywhere, and readers of its work requests.
func TestFaultFindsItsResource(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, ocisim.Options{})
		vnic := f.vnicOf(f.instance)
		remove := f.region.Fault(ocisim.Fault{Resource: vnic, Status: http.StatusServiceUnavailable})
		f.get(api+"/vnics/"+vnic).wantError(http.StatusServiceUnavailable, "ServiceUnavailable")
		f.get(api+"/privateIps?vnicId="+vnic).wantError(http.StatusServiceUnavailable, "ServiceUnavailable")
		f.post(api+"/privateIps", object{"vnicId": vnic}).wantError(http.StatusServiceUnavailable, "ServiceUnavailable")
		f.get(api + "/privateIps?subnetId=" + f.subnet).want(http.StatusOK)
		remove()
		balancer := f.region.AddLoadBalancer(ocisim.LoadBalancer{Name: "b"})
		work := f.put("/20170115/loadBalancers/"+balancer, object{"displayName": "c"}).want(http.StatusNoContent).header.Get("opc-work-request-id")
		f.region.Fault(ocisim.Fault{Operation: "loadbalancer.GetWorkRequest", Resource: balancer, Status: http.StatusServiceUnavailable})
		f.get("/20170115/loadBalancerWorkRequests/"+work).wantError(http.StatusServiceUnavailable, "ServiceUnavailable")
	})
}

func TestFaultsThatCannotBe(t *testing.T) {
	for name, fault := range map[string]ocisim.Fault{
		"unknown operation": {Operation: "GetNothing", Status: 500},
		"no effect":         {Operation: "GetInstance"},
		"not an error":      {Status: 200},
		"not a probability": {Status: 500, Chance: 2},
		"negative":          {Status: 500, Nth: -1},
		"read and write":    {Status: 500, Reads: true, Writes: true},
	} {
		if err := fault.Validate(); !errors.Is(err, ocisim.ErrOption) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, policy := range map[string]ocisim.Policy{
		"unknown verb":      {Verb: "write"},
		"unknown type":      {ResourceType: "instance"},
		"unknown operation": {Operation: "GetNothing"},
	} {
		if err := policy.Validate(); !errors.Is(err, ocisim.ErrOption) {
			t.Errorf("%s: %v", name, err)
		}
	}
	good := ocisim.Fault{
		Operation: "compute.*", Drop: ocisim.AfterApply, Delay: 2 * time.Second, RetryAfter: time.Second,
		Budget: ocisim.Rate{PerSecond: 1}, Note: "n",
	}
	text, err := json.Marshal(good)
	if err != nil {
		t.Fatal(err)
	}
	want := `{"operation":"compute.*","budget":{"perSecond":1},"drop":"after","note":"n","retryAfter":"1s","delay":"2s"}`
	var again ocisim.Fault
	if string(text) != want || json.Unmarshal(text, &again) != nil {
		t.Errorf("as JSON: %s", text)
	}
	if diff := cmp.Diff(good, again, cmpopts.IgnoreUnexported(ocisim.Fault{})); diff != "" {
		t.Error(diff)
	}
	for _, bad := range []string{`{"drop":"during"}`, `{"delay":"soon"}`, `{"statuss":1}`} {
		if json.Unmarshal([]byte(bad), &again) == nil {
			t.Errorf("%s was read", bad)
		}
	}
}

// TestForeignBetweenCalls lets somebody change a route table between the read and the write of a client.
func TestForeignBetweenCalls(t *testing.T) {
	onVirtualNetwork(t, ocisim.Options{}, func(t *testing.T, l *netLab) {
		ctx, foreign := t.Context(), l.region.Foreign()
		table := l.region.VCNs()[0].DefaultRouteTableId
		update := func() error {
			read := need(l.network.GetRouteTable(ctx, core.GetRouteTableRequest{RtId: table}))(t)
			_, err := l.network.UpdateRouteTable(ctx, core.UpdateRouteTableRequest{
				RtId: table, IfMatch: read.Etag, UpdateRouteTableDetails: core.UpdateRouteTableDetails{DisplayName: common.String("mine")},
			})
			return err
		}
		var seen []string
		rename := func(f *ocisim.Foreign, c ocisim.Call) {
			seen = append(seen, c.Operation)
			err := f.RouteTable(*table, func(v *core.RouteTable) { v.DisplayName = common.String("theirs " + c.Operation) })
			if err != nil {
				t.Error(err)
			}
		}
		foreign.After(ocisim.Trigger{Operation: "GetRouteTable", Nth: 2}, rename)
		foreign.Before(ocisim.Trigger{Operation: "virtualnetwork.UpdateRouteTable", Nth: 3}, rename)
		if err := update(); err != nil {
			t.Fatal(err)
		}
		refused(t, update(), http.StatusPreconditionFailed, "NoEtagMatch")
		refused(t, update(), http.StatusPreconditionFailed, "NoEtagMatch")
		if err := update(); err != nil {
			t.Error(err)
		}
		if diff := cmp.Diff([]string{"GetRouteTable", "UpdateRouteTable"}, seen); diff != "" {
			t.Error(diff)
		}
		remove := foreign.Before(ocisim.Trigger{Writes: true, Times: 9}, rename)
		remove()
		if err := update(); err != nil {
			t.Errorf("after the removal: %v", err)
		}
	})
}

func TestOnCallCanBeRemoved(t *testing.T) {
	f := newFixture(t, ocisim.Options{})
	n := 0
	remove := f.region.OnCall(func(ocisim.Call) { n++ })
	f.get(api + "/instances/" + f.instance)
	remove()
	f.get(api + "/instances/" + f.instance)
	if n != 1 {
		t.Errorf("%d calls were seen", n)
	}
}
