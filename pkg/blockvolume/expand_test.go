// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package blockvolume_test

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/oracle/oci-go-sdk/v65/common"
	"github.com/oracle/oci-go-sdk/v65/core"

	"github.com/oracle/oci-cloud-controller-manager/pkg/blockvolume"
	"github.com/oracle/oci-cloud-controller-manager/pkg/oci"
	"github.com/oracle/oci-cloud-controller-manager/test/ocisim"
)

func (r *rig) expand(volume string, required, limit int64) (*oci.Volume, error) {
	return within(r, 2*time.Minute, func(ctx context.Context) (*oci.Volume, error) { return r.s.Expand(ctx, volume, required, limit) })
}

// C081: the answer is the real size in bytes, the first time and every time, with whatever way the cloud shows it.
func TestExpand(t *testing.T) {
	for name, behaviour := range map[string]func(*ocisim.Behaviour){
		"passes through PROVISIONING": func(*ocisim.Behaviour) {},
		"stays AVAILABLE":             func(b *ocisim.Behaviour) { b.ResizeProvisions = false },
		"shown at once":               func(b *ocisim.Behaviour) { b.ResizeProvisions, b.ResizeShownAtOnce = false, true },
	} {
		t.Run(name, func(t *testing.T) {
			simulate(t, ocisim.Options{}, func(r *rig) {
				r.region.SetBehaviour(behaviour)
				volume := r.volume(func(v *ocisim.Volume) { v.SizeInGBs = 60 })
				for range 3 {
					v, err := r.expand(volume, 70*gib-5, 0)
					if err != nil || v.SizeBytes != 70*gib {
						t.Errorf("%+v, %v", v, err)
					}
				}
				r.calls("blockstorage.UpdateVolume", 1)
				if v, err := r.expand(volume, gib, 0); err != nil || v.SizeBytes != 70*gib {
					t.Errorf("a volume that is larger: %+v, %v", v, err)
				}
				_, err := r.expand(volume, gib, 60*gib)
				r.refused(err, blockvolume.ErrOutOfRange)
				_, err = r.expand(volume, 33*1024*gib, 0)
				r.refused(err, blockvolume.ErrOutOfRange)
				r.calls("blockstorage.UpdateVolume", 1)
			})
		})
	}
}

// C081: what is lost on its way changes nothing about that.
func TestExpandWithLosses(t *testing.T) {
	for name, fault := range map[string]ocisim.Fault{
		"call lost":       {Drop: ocisim.BeforeApply, Nth: 1},
		"answer lost":     {Drop: ocisim.AfterApply, Nth: 1},
		"late answer":     {Applied: true, Delay: 60 * time.Second, Nth: 1},
		"changed by hand": {Status: 412, Nth: 1, Times: 2},
	} {
		t.Run(name, func(t *testing.T) {
			simulate(t, ocisim.Options{}, func(r *rig) {
				fault.Operation = "UpdateVolume"
				r.region.Fault(fault)
				volume := r.volume(func(v *ocisim.Volume) { v.SizeInGBs = 60 })
				var v *oci.Volume
				var err error
				for range 10 {
					v, err = within(r, 10*time.Second, func(ctx context.Context) (*oci.Volume, error) { return r.s.Expand(ctx, volume, 70*gib, 0) })
					if err == nil {
						break
					}
					if !isOneOf(err, blockvolume.ErrPending, blockvolume.ErrUnavailable) {
						t.Fatal(err)
					}
					r.restart()
				}
				if err != nil || v.SizeBytes != 70*gib {
					t.Errorf("%+v, %v", v, err)
				}
			})
		})
	}
}

func TestExpandWhatCannotBe(t *testing.T) {
	simulate(t, ocisim.Options{}, func(r *rig) {
		_, err := r.expand("ocid1.bootvolume.oc1.iad.b", 70*gib, 0)
		r.refused(err, blockvolume.ErrInvalid)
		_, err = r.expand("ocid1.volume.oc1.iad.gone", 70*gib, 0)
		r.refused(err, blockvolume.ErrNotFound)
		for state, kind := range map[string]error{"FAULTY": blockvolume.ErrInvalid, "TERMINATING": blockvolume.ErrNotFound} {
			_, err := r.expand(r.volume(func(v *ocisim.Volume) { v.State = state }), 70*gib, 0)
			r.refused(err, kind)
		}
		r.region.Fault(ocisim.Fault{Operation: "UpdateVolume", FailWork: true, Times: 1, Nth: 1})
		volume := r.volume()
		_, err = r.expand(volume, 70*gib, 0)
		r.refused(err, blockvolume.ErrFailed)
		if v, err := r.expand(volume, 70*gib, 0); err != nil || v.SizeBytes != 70*gib {
			t.Errorf("%+v, %v", v, err)
		}
		r.region.SetBehaviour(func(b *ocisim.Behaviour) { b.ServiceLimits["total-storage-gb"] = 1 })
		_, err = r.expand(volume, 100*gib, 0)
		r.refused(err, blockvolume.ErrExhausted)
		allow := r.region.Deny(ocisim.Policy{ResourceType: "volumes", Verb: "use"})
		_, err = r.expand(volume, 100*gib, 0)
		r.refused(err, blockvolume.ErrForbidden)
		allow()
	})
	// A volume that is being backed up has to wait, and one whose content is being copied is waited for.
	simulate(t, ocisim.Options{}, func(r *rig) {
		volume := r.volume()
		r.mustSnapshot(volume, "snapshot-1")
		_, err := r.expand(volume, 70*gib, 0)
		r.refused(err, blockvolume.ErrInUse)
		time.Sleep(time.Minute)
		_, err = within(r, 12*time.Second, func(ctx context.Context) (*blockvolume.Provisioned, error) {
			return r.s.Create(ctx, r.request(func(q *createRequest) { q.CloneID = volume }))
		})
		r.refused(err, blockvolume.ErrPending)
		for _, v := range r.living() {
			if *v.Id != volume {
				if v, err := r.expand(*v.Id, 80*gib, 0); err != nil || v.SizeBytes != 80*gib || !v.Hydrated {
					t.Errorf("%+v, %v", v, err)
				}
			}
		}
	})
}

// C108: performance and tags change, and what nobody spoke of stays; a repeat is one read.
func TestModify(t *testing.T) {
	simulate(t, ocisim.Options{}, func(r *rig) {
		r.region.AddTagNamespace("ours")
		r.region.AddTagNamespace("theirs")
		volume := r.region.AddVolume(ocisim.Volume{Compartment: r.compartment, AvailabilityDomain: r.ad, Tags: ocisim.Tags{
			Freeform: map[string]string{"theirs": "1", "oci-k8s-owner": name}, Defined: map[string]map[string]any{"theirs": {"a": "b"}, "ours": {"x": "y"}},
		}})
		m := blockvolume.Modification{
			VPUsPerGB: common.Int64(20), AutoTune: blockvolume.AutoTuneChange{MaxVPUs: common.Int64(60)},
			Tags: oci.Tags{Freeform: map[string]string{"tier": "gold"}, Defined: map[string]map[string]any{"ours": {"c": "d"}}},
		}
		modify := func(m blockvolume.Modification) (*oci.Volume, error) {
			return within(r, 2*time.Minute, func(ctx context.Context) (*oci.Volume, error) { return r.s.Modify(ctx, volume, m) })
		}
		v, err := modify(m)
		if err != nil || *v.VPUsPerGB != 20 || v.AutoTune != (oci.AutoTune{MaxVPUs: 60}) {
			t.Fatalf("%+v, %v", v, err)
		}
		made, _ := r.region.Volume(volume)
		if diff := cmp.Diff(map[string]string{"theirs": "1", "oci-k8s-owner": name, "tier": "gold"}, made.FreeformTags); diff != "" {
			t.Error(diff)
		}
		if diff := cmp.Diff(map[string]map[string]any{"theirs": {"a": "b"}, "ours": {"c": "d", "x": "y"}}, made.DefinedTags); diff != "" {
			t.Error(diff)
		}
		r.region.ResetCalls()
		if _, err := modify(m); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(map[string]int{"blockstorage.GetVolume": 1}, r.region.Counts()); diff != "" {
			t.Error(diff)
		}
		for _, step := range []struct { // one policy leaves the other as it is
			change blockvolume.AutoTuneChange
			want   oci.AutoTune
		}{
			{blockvolume.AutoTuneChange{Detached: common.Bool(true)}, oci.AutoTune{Detached: true, MaxVPUs: 60}},
			{blockvolume.AutoTuneChange{MaxVPUs: common.Int64(0)}, oci.AutoTune{Detached: true}},
			{blockvolume.AutoTuneChange{Detached: common.Bool(false)}, oci.AutoTune{}},
		} {
			if v, err := modify(blockvolume.Modification{AutoTune: step.change}); err != nil || v.AutoTune != step.want || *v.VPUsPerGB != 20 {
				t.Errorf("%+v, %v, want %+v", v, err, step.want)
			}
		}
		for _, bad := range []blockvolume.Modification{
			{VPUsPerGB: common.Int64(25)}, {VPUsPerGB: common.Int64(130)}, {AutoTune: blockvolume.AutoTuneChange{MaxVPUs: common.Int64(10)}},
			{Tags: oci.Tags{Freeform: map[string]string{"oci-k8s-owner": "x"}}},
		} {
			_, err := modify(bad)
			r.refused(err, blockvolume.ErrInvalid)
		}

		// Somebody else's tag that comes between our read and our write is not lost.
		r.region.Foreign().Before(ocisim.Trigger{Operation: "UpdateVolume"}, func(f *ocisim.Foreign, _ ocisim.Call) {
			_ = f.Volume(volume, func(v *core.Volume) { v.FreeformTags = map[string]string{"theirs": "2", "new": "x"} })
		})
		if _, err := modify(blockvolume.Modification{Tags: oci.Tags{Freeform: map[string]string{"tier": "silver"}}}); err != nil {
			t.Fatal(err)
		}
		made, _ = r.region.Volume(volume)
		if diff := cmp.Diff(map[string]string{"theirs": "2", "new": "x", "tier": "silver"}, made.FreeformTags); diff != "" {
			t.Error(diff)
		}
	})
}
