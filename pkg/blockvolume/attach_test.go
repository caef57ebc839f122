// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package blockvolume_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/oracle/oci-go-sdk/v65/common"
	"github.com/oracle/oci-go-sdk/v65/core"

	"github.com/oracle/oci-cloud-controller-manager/pkg/blockvolume"
	"github.com/oracle/oci-cloud-controller-manager/pkg/oci"
	"github.com/oracle/oci-cloud-controller-manager/test/ocisim"
)

type attachRequest = blockvolume.AttachRequest

func TestAttach(t *testing.T) {
	simulate(t, ocisim.Options{}, func(r *rig) {
		volume := r.volume()
		a := r.mustAttach(volume, r.one)
		if a.Type != oci.AttachISCSI || a.State != oci.AttachmentAttached || a.IQN == "" || a.IPv4 == "" || a.Port != 3260 || a.Device != "/dev/oracleoci/oraclevdb" || a.Shareable || a.ReadOnly {
			t.Errorf("attachment %+v", a)
		}
		again := r.mustAttach(volume, r.one)
		if again.ID != a.ID {
			t.Error("attached twice")
		}
		r.calls("compute.AttachVolume", 1)
		r.calls("compute.GetInstance", 1)
		r.calls("compute.ListVolumeAttachments", 2)

		pv := r.mustAttach(r.volume(), r.one, func(q *attachRequest) { q.Type = oci.AttachParavirtualized })
		chap := r.mustAttach(r.volume(), r.one, func(q *attachRequest) { q.CHAP = true })
		if pv.Type != oci.AttachParavirtualized || pv.Device != "/dev/oracleoci/oraclevdc" || chap.CHAPUser == "" || chap.CHAPSecret == "" {
			t.Errorf("attachments %+v and %+v", pv, chap)
		}
		fast := r.mustAttach(r.volume(func(v *ocisim.Volume) { v.VpusPerGB = common.Int64(30) }), r.one)
		if !fast.Multipath || len(fast.Paths) != 2 || fast.Paths[0].IPv4 == "" {
			t.Errorf("attachment of an ultra high performance volume %+v", fast)
		}
	})
}

// C091: what else the volume is attached to is told, and no second attachment is asked for.
func TestAttachedElsewhere(t *testing.T) {
	for name, tt := range map[string]struct {
		seed    ocisim.VolumeAttachment // to the other node unless it says "one"
		state   core.VolumeAttachmentLifecycleStateEnum
		request func(*attachRequest)
		want    error
	}{
		"attached to another":              {want: blockvolume.ErrElsewhere},
		"being attached to another":        {state: core.VolumeAttachmentLifecycleStateAttaching, want: blockvolume.ErrPending},
		"being detached, and never ends":   {state: core.VolumeAttachmentLifecycleStateDetaching, want: blockvolume.ErrPending},
		"shareable, but asked for alone":   {seed: ocisim.VolumeAttachment{Shareable: true}, want: blockvolume.ErrElsewhere},
		"alone, but asked for shareable":   {request: func(q *attachRequest) { q.Shareable = true }, want: blockvolume.ErrElsewhere},
		"shareable in another access mode": {seed: ocisim.VolumeAttachment{Shareable: true, ReadOnly: true}, request: func(q *attachRequest) { q.Shareable = true }, want: blockvolume.ErrElsewhere},
		"here, of another type":            {seed: ocisim.VolumeAttachment{Instance: "one"}, request: func(q *attachRequest) { q.Type = oci.AttachISCSI }, want: blockvolume.ErrExists},
		"here, for reading only":           {seed: ocisim.VolumeAttachment{Instance: "one", ReadOnly: true}, want: blockvolume.ErrExists},
		"here, not for reading only":       {seed: ocisim.VolumeAttachment{Instance: "one"}, request: func(q *attachRequest) { q.ReadOnly = true }, want: blockvolume.ErrExists},
		"here, not shareable":              {seed: ocisim.VolumeAttachment{Instance: "one"}, request: func(q *attachRequest) { q.Shareable = true }, want: blockvolume.ErrExists},
	} {
		t.Run(name, func(t *testing.T) {
			simulate(t, ocisim.Options{}, func(r *rig) {
				tt.seed.Volume = r.volume()
				if tt.seed.Instance == "one" {
					tt.seed.Instance = r.one
				} else {
					tt.seed.Instance = r.two
				}
				id := r.region.AddVolumeAttachment(tt.seed)
				if tt.state != "" {
					_ = r.region.Foreign().VolumeAttachment(id, func(a *core.IScsiVolumeAttachment) { a.LifecycleState = tt.state })
				}
				request := tt.request
				if request == nil {
					request = func(*attachRequest) {}
				}
				_, err := r.attach(tt.seed.Volume, r.one, request)
				r.refused(err, tt.want)
				if errors.Is(err, blockvolume.ErrElsewhere) && !strings.Contains(err.Error(), r.two) {
					t.Errorf("the other instance is not named: %v", err)
				}
				r.calls("compute.AttachVolume", 0)
			})
		})
	}
}

// C091: an attachment that is about to end is waited for; a dead instance is told.
func TestAttachAfterAnother(t *testing.T) {
	simulate(t, ocisim.Options{}, func(r *rig) {
		volume := r.volume()
		r.mustAttach(volume, r.one)
		together(2, func(i int) {
			if i == 0 {
				if err := r.detach(blockvolume.DetachRequest{VolumeID: volume, InstanceID: r.one}); err != nil {
					t.Error(err)
				}
				return
			}
			time.Sleep(time.Second) // it is DETACHING now
			a := r.mustAttach(volume, r.two)
			if a.InstanceID != r.two {
				t.Errorf("attachment %+v", a)
			}
		})
		if err := r.region.Foreign().StopInstance(r.two); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		_, err := r.attach(volume, r.one)
		r.refused(err, blockvolume.ErrElsewhere)
		if err == nil || !strings.Contains(err.Error(), "STOPPED") {
			t.Errorf("error %v does not tell that the other instance is stopped", err)
		}
		if n := len(r.open()); n != 1 {
			t.Errorf("%d attachments", n)
		}
	})
}

// A shareable volume is attached to several nodes.
func TestShareable(t *testing.T) {
	simulate(t, ocisim.Options{}, func(r *rig) {
		volume := r.volume()
		share := func(q *attachRequest) { q.Shareable = true }
		r.mustAttach(volume, r.one, share)
		r.mustAttach(volume, r.two, share)
		if err := r.detach(blockvolume.DetachRequest{VolumeID: volume, InstanceID: r.one}); err != nil {
			t.Fatal(err)
		}
		if list := r.open(); len(list) != 1 || *list[0].GetInstanceId() != r.two {
			t.Errorf("attachments %v", list)
		}
	})
}

// C090, P9: many at once on one instance get as many device paths, and no request is refused.
func TestManyAttachmentsAtOnce(t *testing.T) {
	simulate(t, ocisim.Options{EventualReads: 1}, func(r *rig) {
		const n = 32
		paths := make([]string, n)
		volumes := make([]string, n+1)
		for i := range volumes {
			volumes[i] = r.volume()
		}
		together(n, func(i int) {
			paths[i] = r.mustAttach(volumes[i], r.one).Device
		})
		slices.Sort(paths)
		if len(slices.Compact(paths)) != n {
			t.Errorf("paths %v", paths)
		}
		r.calls("compute.AttachVolume", n)
		for _, c := range r.region.Calls() {
			if c.Status >= 400 && c.Status != 404 {
				t.Errorf("%s was answered with %d %s", c.Name(), c.Status, c.Code)
			}
		}
		_, err := r.attach(volumes[n], r.one)
		r.refused(err, blockvolume.ErrInstanceFull)
	})
}

// C094: the limit of paravirtualized volumes of a shape.
func TestLimitOfTheShape(t *testing.T) {
	simulate(t, ocisim.Options{}, func(r *rig) {
		r.region.SetBehaviour(func(b *ocisim.Behaviour) { b.MaxPVVolumes["VM.Standard3.Flex"] = 2 })
		pv := func(q *attachRequest) { q.Type = oci.AttachParavirtualized }
		r.mustAttach(r.volume(), r.one, pv)
		r.mustAttach(r.volume(), r.one, pv)
		_, err := r.attach(r.volume(), r.one, pv)
		r.refused(err, blockvolume.ErrInstanceFull)
		r.mustAttach(r.volume(), r.one)
	})
}

// C090: a path that somebody else takes, or that the cloud does not like, is not the last one.
func TestDevicePathRefused(t *testing.T) {
	for name, fault := range map[string]ocisim.Fault{
		"taken":   {Status: 409, Code: "Conflict", Times: 2, Nth: 1},
		"invalid": {Status: 400, Code: "InvalidParameter", Message: "The device attribute is invalid.", Times: 2, Nth: 1},
	} {
		t.Run(name, func(t *testing.T) {
			simulate(t, ocisim.Options{}, func(r *rig) {
				fault.Operation = "AttachVolume"
				r.region.Fault(fault)
				a := r.mustAttach(r.volume(), r.one, func(q *attachRequest) { q.Type = oci.AttachParavirtualized })
				if a.Device != "/dev/oracleoci/oraclevdd" {
					t.Errorf("attachment %+v", a)
				}
			})
		})
	}
}

// C090: without consistent device names, an iSCSI disk is found by its target, and a paravirtualized one not at all.
func TestInstanceWithoutConsistentNames(t *testing.T) {
	simulate(t, ocisim.Options{}, func(r *rig) {
		err := r.region.Foreign().Instance(r.one, func(i *core.Instance) { i.LaunchOptions.IsConsistentVolumeNamingEnabled = new(false) })
		if err != nil {
			t.Fatal(err)
		}
		if a := r.mustAttach(r.volume(), r.one); a.Device != "" {
			t.Errorf("attachment %+v", a)
		}
		_, err = r.attach(r.volume(), r.one, func(q *attachRequest) { q.Type = oci.AttachParavirtualized })
		r.refused(err, blockvolume.ErrInvalid)
	})
}

// C095: in-transit encryption of the instance, the type of the class, and the shape.
func TestEncryptionInTransit(t *testing.T) {
	simulate(t, ocisim.Options{}, func(r *rig) {
		encrypted := func(shape string) string {
			id := r.instance("encrypted-"+shape, func(i *ocisim.Instance) { i.Shape = shape })
			if err := r.region.Foreign().Instance(id, func(i *core.Instance) { i.LaunchOptions.IsPvEncryptionInTransitEnabled = new(true) }); err != nil {
				t.Fatal(err)
			}
			return id
		}
		virtual, metal := encrypted("VM.Standard3.Flex"), encrypted("BM.Standard3.64")
		plainMetal := r.instance("metal", func(i *ocisim.Instance) { i.Shape = "BM.Standard3.64" })
		for _, tt := range []struct {
			instance, kind string
			want           string // empty: refused
			encrypted      bool
		}{
			{r.one, "", oci.AttachISCSI, false}, {r.one, oci.AttachISCSI, oci.AttachISCSI, false}, {r.one, oci.AttachParavirtualized, oci.AttachParavirtualized, false},
			{virtual, "", oci.AttachParavirtualized, true}, {virtual, oci.AttachISCSI, "", false}, {virtual, oci.AttachParavirtualized, oci.AttachParavirtualized, true},
			{metal, "", "", false}, {metal, oci.AttachISCSI, "", false}, {metal, oci.AttachParavirtualized, "", false},
			{plainMetal, "", oci.AttachISCSI, false}, {plainMetal, oci.AttachParavirtualized, "", false},
			{r.one, "emulated", "", false},
		} {
			a, err := r.attach(r.volume(), tt.instance, func(q *attachRequest) { q.Type = tt.kind })
			switch {
			case tt.want == "":
				r.refused(err, blockvolume.ErrInvalid)
			case err != nil || a.Type != tt.want || a.EncryptedPV != tt.encrypted:
				t.Errorf("%s to %s: %+v, %v", tt.kind, tt.instance, a, err)
			}
		}
		_, err := r.attach(r.volume(), virtual, func(q *attachRequest) { q.Type = oci.AttachISCSI })
		if err == nil || !strings.Contains(err.Error(), "attachment-type") {
			t.Errorf("error %v does not name the parameter", err)
		}
	})
}

// C113: whoever comes again joins; what was attached for nobody is taken away.
func TestSlowAttachment(t *testing.T) {
	d := durations()
	d["volumeattachment.attach"] = ocisim.Range{Min: 90 * time.Second, Max: 90 * time.Second}
	simulate(t, ocisim.Options{Durations: d, EventualReads: 2}, func(r *rig) {
		volume := r.volume()
		attach := func() (*oci.VolumeAttachment, error) {
			return within(r, 15*time.Second, func(ctx context.Context) (*oci.VolumeAttachment, error) {
				return r.s.Attach(ctx, attachRequest{VolumeID: volume, InstanceID: r.one})
			})
		}
		for range 3 {
			_, err := attach()
			r.refused(err, blockvolume.ErrPending)
		}
		began := time.Now()
		err := r.detach(blockvolume.DetachRequest{VolumeID: volume, InstanceID: r.one})
		if err != nil || time.Since(began) < 45*time.Second {
			t.Errorf("detached after %v: %v", time.Since(began), err)
		}
		r.calls("compute.AttachVolume", 1)
		if n := len(r.open()); n != 0 {
			t.Errorf("%d attachments are left", n)
		}
		// And again, to the same node: it is another attachment.
		for range 10 {
			if _, err = attach(); err == nil {
				break
			}
		}
		if err != nil || len(r.open()) != 1 {
			t.Errorf("%v, attachments %v", err, r.open())
		}
	})
}

// What is lost on its way, and lists that lag behind, make neither a second attachment nor one that is forgotten.
func TestLostAttach(t *testing.T) {
	for name, fault := range map[string]ocisim.Fault{
		"call lost":            {Drop: ocisim.BeforeApply, Nth: 1},
		"answer lost":          {Drop: ocisim.AfterApply, Nth: 1},
		"answer lost for long": {Drop: ocisim.AfterApply, Nth: 1, Times: 8},
		"error, but done":      {Applied: true, Status: 500, Nth: 1, Times: 8},
	} {
		for _, again := range []bool{true, false} {
			t.Run(name, func(t *testing.T) {
				lag := 1 // of lists; the second one, half a minute later, shows it
				if again {
					lag = 3
				}
				simulate(t, ocisim.Options{EventualReads: lag}, func(r *rig) {
					fault.Operation = "AttachVolume"
					r.region.Fault(fault)
					volume := r.volume()
					_, err := within(r, 15*time.Second, func(ctx context.Context) (*oci.VolumeAttachment, error) {
						return r.s.Attach(ctx, attachRequest{VolumeID: volume, InstanceID: r.one})
					})
					for i := 0; again && err != nil && i < 10; i++ {
						_, err = r.attach(volume, r.one)
					}
					if again && err != nil {
						t.Errorf("not attached: %v", err)
					}
					if err := r.detach(blockvolume.DetachRequest{VolumeID: volume, InstanceID: r.one}); err != nil {
						t.Error(err)
					}
					time.Sleep(time.Minute)
					if n := len(r.open()); n != 0 {
						t.Errorf("%d attachments are left", n)
					}
				})
			})
		}
	}
}

// What cannot be attached is told in words that help.
func TestCannotBeAttached(t *testing.T) {
	simulate(t, ocisim.Options{}, func(r *rig) {
		_, err := r.attach(r.volume(), "ocid1.instance.oc1.iad.gone")
		r.refused(err, blockvolume.ErrNotFound)
		_, err = r.attach("ocid1.volume.oc1.iad.gone", r.one)
		r.refused(err, blockvolume.ErrNotFound)
		for state, kind := range map[string]error{"PROVISIONING": blockvolume.ErrPending, "FAULTY": blockvolume.ErrInvalid, "TERMINATED": blockvolume.ErrNotFound} {
			_, err := r.attach(r.volume(func(v *ocisim.Volume) { v.State = state }), r.one)
			r.refused(err, kind)
		}
		allow := r.region.Deny(ocisim.Policy{ResourceType: "volumes", Verb: "use"})
		_, err = r.attach(r.volume(), r.one)
		r.refused(err, blockvolume.ErrForbidden)
		allow()

		if err := r.region.Foreign().StopInstance(r.two); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		_, err = r.attach(r.volume(), r.two)
		r.refused(err, blockvolume.ErrInstanceState)
		if err == nil || !strings.Contains(err.Error(), "STOPPED") {
			t.Errorf("error %v", err)
		}

		r.region.Fault(ocisim.Fault{Operation: "AttachVolume", FailWork: true, Times: 1, Nth: 1})
		volume := r.volume()
		_, err = r.attach(volume, r.one)
		r.refused(err, blockvolume.ErrFailed)
		r.mustAttach(volume, r.one)
	})
}
