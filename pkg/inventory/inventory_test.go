// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package inventory_test

import (
	"context"
	"errors"
	"maps"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/oracle/oci-go-sdk/v65/core"

	"github.com/oracle/oci-cloud-controller-manager/pkg/inventory"
	"github.com/oracle/oci-cloud-controller-manager/pkg/oci"
	"github.com/oracle/oci-cloud-controller-manager/test/ocisim"
)

// An OCID is enough: no list and no compartment is asked for.
func TestInstanceByOCID(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(ocisim.Options{})
		id := s.AddInstance(ocisim.Instance{Name: "w-0", VNIC: ocisim.VNIC{Subnet: "nodes"}})
		inv := s.inventory(t, func(c *inventory.Config) { c.CompartmentID = "" })
		got, err := inv.Instance(t.Context(), id, inventory.Need{})
		if err != nil || got.ID != id || got.CompartmentID != s.compartment {
			t.Errorf("got %+v, error %v", got, err)
		}
		if diff := cmp.Diff(map[string]int{"compute.GetInstance": 1}, s.Counts()); diff != "" {
			t.Errorf("calls (-want +got):\n%s", diff)
		}
	})
}

func TestStalenessIsWhatTheCallerStates(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(ocisim.Options{})
		id := s.AddInstance(ocisim.Instance{Name: "w-0"})
		inv := s.inventory(t)
		read := func(maxAge time.Duration) string {
			t.Helper()
			i, err := inv.Instance(t.Context(), id, inventory.Within(maxAge))
			if err != nil {
				t.Fatal(err)
			}
			return i.State
		}
		read(0)
		if err := s.Foreign().Instance(id, func(i *core.Instance) { i.LifecycleState = core.InstanceLifecycleStateStopped }); err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Second)
		if got := read(time.Minute); got != "RUNNING" {
			t.Errorf("within a minute: %s; want the state of 10 s ago", got)
		}
		if got := read(9 * time.Second); got != "STOPPED" {
			t.Errorf("within 9 s: %s", got)
		}
		if got := read(time.Minute); got != "STOPPED" {
			t.Errorf("a newer read is not remembered: %s", got)
		}
		if n := s.Counts()["compute.GetInstance"]; n != 2 {
			t.Errorf("%d reads; want 2", n)
		}
		inv.Forget(id)
		read(time.Hour)
		if n := s.Counts()["compute.GetInstance"]; n != 3 {
			t.Errorf("%d reads after Forget; want 3", n)
		}
	})
}

// Reads of one instance at the same time are one read; it lives until the last of its callers has gone, and no longer.
func TestOneReadForAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(ocisim.Options{Latency: map[string]ocisim.Range{"*": {Min: 10 * time.Second}}})
		id := s.AddInstance(ocisim.Instance{Name: "w-0"})
		inv := s.inventory(t)
		impatient, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		var wg sync.WaitGroup
		wg.Go(func() {
			if _, err := inv.Instance(impatient, id, inventory.Within(time.Minute)); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("impatient caller: error %v", err)
			}
		})
		synctest.Wait() // so that the read begins with the context of the impatient one
		for range 20 {
			wg.Go(func() {
				if _, err := inv.Instance(t.Context(), id, inventory.Within(time.Minute)); err != nil {
					t.Errorf("patient caller: %v", err)
				}
			})
		}
		wg.Wait()
		if n := s.Counts()["compute.GetInstance"]; n != 1 {
			t.Errorf("%d reads; want 1", n)
		}

		inv.Forget(id)
		alone, cancel2 := context.WithTimeout(t.Context(), time.Second)
		defer cancel2()
		began := time.Now()
		if _, err := inv.Instance(alone, id, inventory.Need{}); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("caller without patience: %v", err)
		}
		if took := time.Since(began); took != time.Second {
			t.Errorf("took %s", took)
		}
	})
}

func TestFailedReadsAreNotRemembered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(ocisim.Options{})
		id := s.AddInstance(ocisim.Instance{Name: "w-0"})
		inv := s.inventory(t)
		restore := s.Deny(ocisim.Policy{ResourceType: "instances"})
		if _, err := inv.Instance(t.Context(), id, inventory.Within(time.Hour)); !errors.Is(err, oci.ErrNotFound) {
			t.Errorf("error %v", err)
		}
		restore()
		if _, err := inv.Instance(t.Context(), id, inventory.Within(time.Hour)); err != nil {
			t.Error(err)
		}
		defer s.Deny(ocisim.Policy{ResourceType: "instances"})()
		if _, err := inv.Instance(t.Context(), id, inventory.Within(time.Hour)); err != nil {
			t.Errorf("what is known does not need a read: %v", err)
		}
	})
}

func TestVNICs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(ocisim.Options{})
		single := s.AddInstance(ocisim.Instance{Name: "single", VNIC: ocisim.VNIC{Subnet: "nodes", PrivateIP: "10.0.1.1"}})
		multi := s.AddInstance(ocisim.Instance{
			Name: "multi", VNIC: ocisim.VNIC{Subnet: "nodes", PrivateIP: "10.0.1.2", VNICID: "ocid1.vnic.oc1.iad.z"},
			VNICs: []ocisim.VNIC{
				{Subnet: "nodes", PrivateIP: "10.0.2.1", VNICID: "ocid1.vnic.oc1.iad.b"},
				{Subnet: "nodes", PrivateIP: "10.0.2.2", VNICID: "ocid1.vnic.oc1.iad.a"},
			},
		})
		bare := s.AddInstance(ocisim.Instance{Name: "bare"})
		inv := s.inventory(t)
		instance := func(id string) *oci.Instance {
			t.Helper()
			i, err := inv.Instance(t.Context(), id, inventory.Within(time.Hour))
			if err != nil {
				t.Fatal(err)
			}
			return i
		}
		addresses := func(id string, maxAge time.Duration) []string {
			t.Helper()
			vnics, err := inv.VNICs(t.Context(), instance(id), inventory.Within(maxAge))
			if err != nil {
				t.Fatal(err)
			}
			var list []string
			for _, v := range vnics {
				list = append(list, v.PrivateIP)
			}
			return list
		}
		if diff := cmp.Diff([]string{"10.0.1.1"}, addresses(single, 0)); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		if diff := cmp.Diff([]string{"10.0.1.2", "10.0.2.2", "10.0.2.1"}, addresses(multi, time.Minute)); diff != "" {
			t.Errorf("the primary one first, the others in order (-want +got):\n%s", diff)
		}
		if _, err := inv.VNICs(t.Context(), instance(bare), inventory.Need{}); !errors.Is(err, inventory.ErrNoPrimaryVNIC) {
			t.Errorf("instance without VNIC: error %v", err)
		}

		// Which VNIC is the primary one is known for its life: the others are not read again to find it.
		known := instance(multi)
		time.Sleep(time.Hour)
		s.ResetCalls()
		primary, err := inv.PrimaryVNIC(t.Context(), known, inventory.Within(time.Minute))
		if err != nil || primary.PrivateIP != "10.0.1.2" {
			t.Errorf("primary %+v, error %v", primary, err)
		}
		if diff := cmp.Diff(map[string]int{"compute.ListVnicAttachments": 1, "virtualnetwork.GetVnic": 1}, s.Counts()); diff != "" {
			t.Errorf("calls (-want +got):\n%s", diff)
		}

		// An attachment that is not ATTACHED does not count.
		for _, a := range s.VNICAttachments() {
			if *a.VnicId == "ocid1.vnic.oc1.iad.a" {
				if err := s.Foreign().VNICAttachment(*a.Id, func(a *core.VnicAttachment) {
					a.LifecycleState = core.VnicAttachmentLifecycleStateDetaching
				}); err != nil {
					t.Fatal(err)
				}
			}
		}
		time.Sleep(time.Second)
		if diff := cmp.Diff([]string{"10.0.1.2", "10.0.2.1"}, addresses(multi, 0)); diff != "" {
			t.Errorf("while one is detached (-want +got):\n%s", diff)
		}
	})
}

// Several VNICs of which none says that it is the primary one are an error, not a guess, and not for ever.
func TestPrimaryThatDoesNotSaySo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(ocisim.Options{})
		id := s.AddInstance(ocisim.Instance{
			Name: "multi", VNIC: ocisim.VNIC{Subnet: "nodes", VNICID: "ocid1.vnic.oc1.iad.p"}, VNICs: []ocisim.VNIC{{Subnet: "nodes"}},
		})
		setPrimary := func(value *bool) {
			if err := s.Foreign().VNIC("ocid1.vnic.oc1.iad.p", func(v *core.Vnic) { v.IsPrimary = value }); err != nil {
				t.Fatal(err)
			}
		}
		inv := s.inventory(t)
		instance, err := inv.Instance(t.Context(), id, inventory.Need{})
		if err != nil {
			t.Fatal(err)
		}
		yes := true
		setPrimary(nil)
		if _, err := inv.PrimaryVNIC(t.Context(), instance, inventory.Need{}); !errors.Is(err, inventory.ErrNoPrimaryVNIC) {
			t.Errorf("error %v", err)
		}
		setPrimary(&yes)
		time.Sleep(time.Second)
		if v, err := inv.PrimaryVNIC(t.Context(), instance, inventory.Need{}); err != nil || v.ID != "ocid1.vnic.oc1.iad.p" {
			t.Errorf("got %+v, error %v", v, err)
		}
	})
}

// Attachments are listed by compartment. After a move of the instance, an old snapshot of it must not lead astray.
func TestInstanceMovedToAnotherCompartment(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(ocisim.Options{})
		id := s.AddInstance(ocisim.Instance{Name: "w-0", VNIC: ocisim.VNIC{Subnet: "nodes", PrivateIP: "10.0.1.1"}})
		elsewhere := s.AddCompartment(ocisim.Compartment{Name: "elsewhere"})
		inv := s.inventory(t)
		before, err := inv.Instance(t.Context(), id, inventory.Need{})
		if err != nil {
			t.Fatal(err)
		}
		move := s.Foreign()
		if err := move.Instance(id, func(i *core.Instance) { i.CompartmentId = &elsewhere }); err != nil {
			t.Fatal(err)
		}
		for _, a := range s.VNICAttachments() {
			if err := move.VNICAttachment(*a.Id, func(a *core.VnicAttachment) { a.CompartmentId = &elsewhere }); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(time.Second)
		v, err := inv.PrimaryVNIC(t.Context(), before, inventory.Need{})
		if err != nil || v.PrivateIP != "10.0.1.1" {
			t.Errorf("got %+v, error %v", v, err)
		}
	})
}

func TestPresence(t *testing.T) {
	const absent = "ocid1.instance.oc1.iad.absent"
	for name, test := range map[string]struct {
		id, state string
		hints     func(s *site) []string
		deny      ocisim.Policy
		fault     ocisim.Fault
		want      oci.Presence
		listed    int
	}{
		"running":                           {state: "RUNNING", want: oci.Present},
		"terminating":                       {state: "TERMINATING", want: oci.Present},
		"a state of the future":             {state: "HIBERNATING", want: oci.Present},
		"terminated":                        {state: "TERMINATED", want: oci.Gone},
		"absent from the list":              {id: absent, want: oci.Gone, listed: 1},
		"absent from all lists":             {id: absent, hints: func(s *site) []string { return []string{s.Options().Tenancy, ""} }, want: oci.Gone, listed: 2},
		"no policy at all":                  {state: "RUNNING", deny: ocisim.Policy{ResourceType: "instances"}, want: oci.Unknown, listed: 1},
		"no policy to read, but to inspect": {state: "RUNNING", deny: ocisim.Policy{ResourceType: "instances", Verb: ocisim.Read}, want: oci.Present, listed: 1},
		"a hint that cannot be listed":      {id: absent, hints: func(*site) []string { return []string{"ocid1.compartment.oc1..nobodys"} }, want: oci.Unknown, listed: 1},
		"the list fails":                    {id: absent, fault: ocisim.Fault{Operation: "ListInstances", Status: 400}, want: oci.Unknown, listed: 1},
		"the read fails":                    {id: absent, fault: ocisim.Fault{Operation: "GetInstance", Status: 401}, want: oci.Unknown},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newSite(ocisim.Options{})
				id := s.AddInstance(ocisim.Instance{Name: "w-0", State: test.state})
				if test.id != "" {
					id = test.id
				}
				var hints []string
				if test.hints != nil {
					hints = test.hints(s)
				}
				if test.deny.ResourceType != "" {
					s.Deny(test.deny)
				}
				if test.fault.Operation != "" {
					s.Fault(test.fault)
				}
				ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
				defer cancel()
				instance, got, proof, err := s.inventory(t).Presence(ctx, id, inventory.Need{Compartments: hints})
				if got != test.want || (err != nil) != (test.want == oci.Unknown) {
					t.Errorf("got %s (%s), error %v; want %s", got, proof, err, test.want)
				}
				if known := got != oci.Unknown && test.id == ""; (instance != nil) != known {
					t.Errorf("instance %+v", instance)
				}
				if n := s.Counts()["compute.ListInstances"]; n != test.listed {
					t.Errorf("%d lists; want %d (calls: %v)", n, test.listed, maps.Clone(s.Counts()))
				}
			})
		})
	}
}

// Many nodes whose instances cannot be read cost one list, not one list each.
func TestPresenceSharesItsList(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(ocisim.Options{Latency: map[string]ocisim.Range{"*": {Min: time.Second}}})
		inv := s.inventory(t)
		var wg sync.WaitGroup
		for n := range 50 {
			wg.Go(func() {
				_, got, _, err := inv.Presence(t.Context(), "ocid1.instance.oc1.iad."+string(rune('A'+n)), inventory.Within(10*time.Second))
				if got != oci.Gone || err != nil {
					t.Errorf("got %s, error %v", got, err)
				}
			})
		}
		wg.Wait()
		if n := s.Counts()["compute.ListInstances"]; n != 1 {
			t.Errorf("%d lists; want 1", n)
		}
	})
}

func TestTerminatedIsKnownWithoutACall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(ocisim.Options{})
		id := s.AddInstance(ocisim.Instance{Name: "w-0", State: "TERMINATED"})
		inv := s.inventory(t)
		if inv.Terminated(id) {
			t.Error("said to be terminated before it was read")
		}
		if _, err := inv.Instance(t.Context(), id, inventory.Need{}); err != nil {
			t.Fatal(err)
		}
		s.ResetCalls()
		if !inv.Terminated(id) || s.total() != 0 {
			t.Errorf("terminated: %v, calls: %v", inv.Terminated(id), s.Counts())
		}
	})
}
