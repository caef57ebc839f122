// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package ocisim_test

import (
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/oracle/oci-cloud-controller-manager/test/ocisim"
)

func (f *fixture) state(uri string) string {
	f.t.Helper()
	return str(f.get(uri).want(http.StatusOK).object(), "lifecycleState")
}

func TestInstanceStates(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, ocisim.Options{Durations: map[string]ocisim.Range{
			"instance.stop":  {Min: 30 * time.Second, Max: 30 * time.Second},
			"instance.start": {Min: 20 * time.Second, Max: 40 * time.Second},
		}})
		uri := api + "/instances/" + f.instance
		etag := f.get(uri).header.Get("etag")
		step := func(want string) {
			t.Helper()
			if got := f.state(uri); got != want {
				t.Fatalf("state %s, want %s", got, want)
			}
			next := f.get(uri).header.Get("etag")
			if next == etag {
				t.Errorf("the change to %s kept the etag", want)
			}
			etag = next
		}
		f.post(uri+"?action=STOP", nil).want(http.StatusOK)
		step("STOPPING")
		f.post(uri+"?action=START", nil).wantError(http.StatusConflict, "IncorrectState")
		time.Sleep(30*time.Second - time.Nanosecond)
		if got := f.state(uri); got != "STOPPING" {
			t.Errorf("%s too early", got)
		}
		time.Sleep(time.Nanosecond)
		step("STOPPED")
		f.post(uri+"?action=START", nil).want(http.StatusOK)
		step("STARTING")
		time.Sleep(40 * time.Second)
		step("RUNNING")
		f.post(uri+"?action=DANCE", nil).wantError(http.StatusBadRequest, "InvalidParameter")
	})
}

// TestTermination follows an instance to its end: the record stays visible for a while, its attachment is detached,
// its VNIC lingers and is gone, and with it the addresses.
func TestTermination(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		behaviour := ocisim.DefaultBehaviour()
		behaviour.TerminatedVisible = 10 * time.Minute
		behaviour.VNICLinger = ocisim.Range{Min: 3 * time.Minute, Max: 3 * time.Minute}
		f := newFixture(t, ocisim.Options{
			Behaviour: behaviour,
			Durations: map[string]ocisim.Range{"instance.terminate": {Min: time.Minute, Max: time.Minute}},
		})
		id := f.region.AddInstance(ocisim.Instance{Name: "public", VNIC: ocisim.VNIC{Subnet: "nodes", PublicIP: ocisim.Auto}})
		uri, vnic := api+"/instances/"+id, api+"/vnics/"+f.vnicOf(id)
		attachments := api + "/vnicAttachments?compartmentId=" + f.compartment + "&instanceId=" + id
		attached := func() string {
			t.Helper()
			return str(f.get(attachments).want(http.StatusOK).array()[0], "lifecycleState")
		}
		if n := len(f.region.PublicIPs()); n != 1 {
			t.Fatalf("%d public addresses", n)
		}

		f.delete(uri).want(http.StatusNoContent)
		if got := f.state(uri) + " " + attached(); got != "TERMINATING DETACHING" {
			t.Error(got)
		}
		time.Sleep(time.Minute)
		if got := f.state(uri) + " " + attached() + " " + f.state(vnic); got != "TERMINATED DETACHED TERMINATING" {
			t.Error(got)
		}
		f.post(uri+"?action=START", nil).wantError(http.StatusConflict, "IncorrectState")
		time.Sleep(3 * time.Minute)
		f.get(vnic).wantError(http.StatusNotFound, "NotAuthorizedOrNotFound")
		if private, public := len(f.region.PrivateIPs()), len(f.region.PublicIPs()); private != 1 || public != 0 {
			t.Errorf("%d private and %d public addresses are left", private, public)
		}
		list := func() []string { return ids(f.all(api + "/instances?compartmentId=" + f.compartment)) }
		if diff := cmp.Diff([]string{f.instance, id}, list()); diff != "" {
			t.Errorf("a terminated instance stays listed (-want +got):\n%s", diff)
		}
		time.Sleep(7 * time.Minute)
		f.get(uri).wantError(http.StatusNotFound, "NotAuthorizedOrNotFound")
		if diff := cmp.Diff([]string{f.instance}, list()); diff != "" {
			t.Error(diff)
		}
	})
}

// TestAdvance does outside of a bubble what sleeping does inside.
func TestAdvance(t *testing.T) {
	f := newFixture(t, ocisim.Options{})
	if err := f.region.Foreign().StopInstance(f.instance); err != nil {
		t.Fatal(err)
	}
	if got := f.state(api + "/instances/" + f.instance); got != "STOPPING" {
		t.Errorf("state %s", got)
	}
	f.region.Advance(10 * time.Minute)
	if got := f.state(api + "/instances/" + f.instance); got != "STOPPED" {
		t.Errorf("state %s after ten minutes", got)
	}
	if d := time.Until(f.region.Now()); d < 10*time.Minute-time.Second || d > 10*time.Minute {
		t.Errorf("the region's clock is %s ahead", d)
	}
}

func TestVNICAttachmentLists(t *testing.T) {
	f := newFixture(t, ocisim.Options{PageSize: 2})
	second := f.region.AddInstance(ocisim.Instance{
		Name: "two nics", VNIC: ocisim.VNIC{Subnet: "nodes"}, VNICs: []ocisim.VNIC{{Subnet: "nodes"}, {Subnet: "nodes"}},
	})
	base := api + "/vnicAttachments?compartmentId=" + f.compartment
	if n := len(f.all(base)); n != 4 {
		t.Errorf("%d attachments", n)
	}
	mine := f.all(base + "&instanceId=" + second)
	if len(mine) != 3 {
		t.Fatalf("%d attachments of an instance with three VNICs", len(mine))
	}
	primaries := 0
	for _, a := range mine {
		vnic := f.get(api + "/vnics/" + str(a, "vnicId")).want(http.StatusOK).object()
		if vnic["isPrimary"] == true {
			primaries++
		}
		if str(a, "instanceId") != second || str(a, "lifecycleState") != "ATTACHED" || str(a, "subnetId") != f.subnet {
			t.Errorf("attachment %v", a)
		}
		if n := len(f.all(base + "&vnicId=" + str(a, "vnicId"))); n != 1 {
			t.Errorf("%d attachments of one VNIC", n)
		}
	}
	if primaries != 1 {
		t.Errorf("%d primary VNICs", primaries)
	}
	if n := len(f.all(base + "&instanceId=" + second + "&vnicId=" + f.vnicOf(f.instance))); n != 0 {
		t.Errorf("%d attachments match an instance and a VNIC of another", n)
	}
	tenancy := f.region.Options().Tenancy
	if n := len(f.all(api + "/vnicAttachments?compartmentId=" + tenancy + "&instanceId=" + second)); n != 0 {
		t.Errorf("%d attachments in another compartment", n)
	}
}
