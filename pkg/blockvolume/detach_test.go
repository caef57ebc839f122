// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package blockvolume_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/oracle/oci-go-sdk/v65/core"

	"github.com/oracle/oci-cloud-controller-manager/pkg/blockvolume"
	"github.com/oracle/oci-cloud-controller-manager/test/ocisim"
)

type detachRequest = blockvolume.DetachRequest

func TestDetach(t *testing.T) {
	simulate(t, ocisim.Options{}, func(r *rig) {
		volume := r.volume()
		r.mustAttach(volume, r.one)
		r.region.ResetCalls()
		// That it is not attached to another node is no reason to touch it.
		if err := r.detach(detachRequest{VolumeID: volume, InstanceID: r.two}); err != nil {
			t.Fatal(err)
		}
		if n := len(r.open()); n != 1 {
			t.Fatalf("%d attachments", n)
		}
		r.region.ResetCalls()
		for range 2 {
			if err := r.detach(detachRequest{VolumeID: volume, InstanceID: r.one}); err != nil {
				t.Fatal(err)
			}
			if n := len(r.open()); n != 0 {
				t.Errorf("%d attachments are left", n)
			}
		}
		r.calls("compute.DetachVolume", 1)
		// The instance was asked about only to know that no other compartment can have an attachment.
		got := r.region.Counts()
		delete(got, "compute.GetVolumeAttachment")
		if diff := cmp.Diff(map[string]int{"compute.ListVolumeAttachments": 2, "compute.DetachVolume": 1}, got); diff != "" {
			t.Error(diff)
		}
	})
}

// C092: the Node or the instance is gone, in all the ways in which that happens.
func TestDetachFromWhatIsGone(t *testing.T) {
	attached := func(r *rig) string {
		volume := r.volume()
		r.mustAttach(volume, r.one)
		r.restart()                 // another process knows nothing
		time.Sleep(2 * time.Minute) // and has been up for a while
		return volume
	}
	terminate := func(r *rig, wait time.Duration) {
		if err := r.region.Foreign().TerminateInstance(r.one); err != nil {
			r.Fatal(err)
		}
		time.Sleep(wait)
	}
	node := func(r *rig) string { return "k-" + r.one[len(r.one)-6:] }
	for name, tt := range map[string]struct {
		act     func(r *rig)
		unknown bool // nobody knows the instance any more
		want    error
		left    int
	}{
		"a: instance terminated":                     {act: func(r *rig) { terminate(r, 5*time.Minute) }},
		"a: instance terminated, and forgotten":      {act: func(r *rig) { terminate(r, 100*time.Hour) }},
		"a: instance terminating":                    {act: func(r *rig) { terminate(r, time.Second) }},
		"a: terminated, and nobody knows its OCID":   {act: func(r *rig) { terminate(r, 5*time.Minute) }, unknown: true},
		"b: Node deleted, instance runs":             {},
		"b: Node deleted, and nobody knows its OCID": {unknown: true},
		"c: reads of instances forbidden":            {act: func(r *rig) { r.region.Deny(ocisim.Policy{ResourceType: "instances", Verb: "read"}) }, want: blockvolume.ErrForbidden, left: 1},
		"c: lists of attachments forbidden":          {act: func(r *rig) { r.region.Deny(ocisim.Policy{ResourceType: "volume-attachments"}) }, want: blockvolume.ErrForbidden, left: 1},
		"c: detaching forbidden":                     {act: func(r *rig) { r.region.Deny(ocisim.Policy{ResourceType: "volume-attachments", Verb: "manage"}) }, want: blockvolume.ErrForbidden, left: 1},
		"d: instance stopped": {act: func(r *rig) {
			if err := r.region.Foreign().StopInstance(r.one); err != nil {
				r.Fatal(err)
			}
			time.Sleep(time.Minute)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			simulate(t, ocisim.Options{}, func(r *rig) {
				volume := attached(r)
				if tt.act != nil {
					tt.act(r)
				}
				q := detachRequest{VolumeID: volume, InstanceID: r.one, Node: node(r)}
				if tt.unknown {
					q.InstanceID = ""
				}
				err := r.detach(q)
				if tt.want != nil {
					r.refused(err, tt.want)
				} else if err != nil {
					t.Error(err)
				}
				if n := len(r.open()); n != tt.left {
					t.Errorf("%d attachments are left, want %d", n, tt.left)
				}
			})
		})
	}
}

// An attachment of the existing implementation has no name of a Node. Whose it is, its instance tells, or nothing is done.
func TestDetachByTheNameOfAnInstance(t *testing.T) {
	simulate(t, ocisim.Options{}, func(r *rig) {
		volume := r.volume()
		r.region.AddVolumeAttachment(ocisim.VolumeAttachment{Volume: volume, Instance: r.one})
		if err := r.detach(detachRequest{VolumeID: volume, Node: "node-2"}); err != nil {
			t.Error(err)
		}
		allow := r.region.Deny(ocisim.Policy{ResourceType: "instances", Verb: "inspect"})
		r.refused(r.detach(detachRequest{VolumeID: volume, Node: "node-3"}), nil)
		allow()
		if n := len(r.open()); n != 1 {
			t.Fatalf("%d attachments", n)
		}
		if err := r.detach(detachRequest{VolumeID: volume, Node: "node-1"}); err != nil || len(r.open()) != 0 {
			t.Errorf("%v, attachments %v", err, r.open())
		}
	})
}

// An instance in another compartment has its attachments there.
func TestInstanceInAnotherCompartment(t *testing.T) {
	simulate(t, ocisim.Options{}, func(r *rig) {
		far := r.instance("far", func(i *ocisim.Instance) { i.Compartment = r.other })
		volume := r.volume()
		r.mustAttach(volume, far)
		r.restart()
		time.Sleep(time.Minute)
		// The volume is attached where the lists of this compartment do not show it.
		_, err := r.attach(volume, r.one)
		r.refused(err, blockvolume.ErrElsewhere)
		r.refused(r.s.Delete(r.Context(), volume), blockvolume.ErrInUse)
		if err := r.detach(detachRequest{VolumeID: volume, InstanceID: far}); err != nil || len(r.open()) != 0 {
			t.Errorf("%v, attachments %v", err, r.open())
		}
	})
}

// A record that is purged while it is waited for is over; one that cannot be read any more is not.
func TestRecordVanishes(t *testing.T) {
	simulate(t, ocisim.Options{}, func(r *rig) {
		volume := r.volume()
		a := r.mustAttach(volume, r.one)
		r.region.SetBehaviour(func(b *ocisim.Behaviour) { b.DetachedVisible = 0 })
		if err := r.detach(detachRequest{VolumeID: volume, InstanceID: r.one}); err != nil {
			t.Error(err)
		}
		if _, there := r.region.VolumeAttachment(a.ID); there {
			t.Error("the test tests nothing")
		}
		r.mustAttach(volume, r.one)
		allow := make(chan func(), 1)
		go func() {
			time.Sleep(3 * time.Second)
			allow <- r.region.Deny(ocisim.Policy{ResourceType: "volume-attachments"})
		}()
		r.refused(r.detach(detachRequest{VolumeID: volume, InstanceID: r.one}), blockvolume.ErrForbidden)
		(<-allow)()
	})
}

// A detachment that the cloud fails to carry out is told, and can be repeated.
func TestFailedDetach(t *testing.T) {
	simulate(t, ocisim.Options{}, func(r *rig) {
		volume := r.volume()
		r.mustAttach(volume, r.one)
		r.region.Fault(ocisim.Fault{Operation: "DetachVolume", FailWork: true, Times: 1, Nth: 1})
		r.refused(r.detach(detachRequest{VolumeID: volume, InstanceID: r.one}), blockvolume.ErrFailed)
		if err := r.detach(detachRequest{VolumeID: volume, InstanceID: r.one}); err != nil {
			t.Error(err)
		}
		// One that was detached by hand meanwhile is no error either.
		r.mustAttach(volume, r.one)
		id := *r.open()[0].GetId()
		r.region.Foreign().Before(ocisim.Trigger{Operation: "DetachVolume"}, func(f *ocisim.Foreign, _ ocisim.Call) {
			_ = f.VolumeAttachment(id, func(a *core.IScsiVolumeAttachment) { a.LifecycleState = core.VolumeAttachmentLifecycleStateDetached })
		})
		if err := r.detach(detachRequest{VolumeID: volume, InstanceID: r.one}); err != nil {
			t.Error(err)
		}
	})
}
