// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package blockvolume_test

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/oracle/oci-go-sdk/v65/core"

	"github.com/oracle/oci-cloud-controller-manager/pkg/blockvolume"
	"github.com/oracle/oci-cloud-controller-manager/pkg/oci"
	"github.com/oracle/oci-cloud-controller-manager/test/ocisim"
)

func (r *rig) snapshot(volume, name string, change ...func(*blockvolume.SnapshotRequest)) (*blockvolume.Snapshot, error) {
	q := blockvolume.SnapshotRequest{Name: name, VolumeID: volume}
	for _, f := range change {
		f(&q)
	}
	return within(r, 2*time.Minute, func(ctx context.Context) (*blockvolume.Snapshot, error) { return r.s.CreateSnapshot(ctx, q) })
}

func (r *rig) mustSnapshot(volume, name string, change ...func(*blockvolume.SnapshotRequest)) *blockvolume.Snapshot {
	r.Helper()
	b, err := r.snapshot(volume, name, change...)
	if err != nil {
		r.Fatal(err)
	}
	return b
}

func (r *rig) backups() []core.VolumeBackup {
	var out []core.VolumeBackup
	for _, b := range r.region.VolumeBackups() {
		if b.LifecycleState != core.VolumeBackupLifecycleStateTerminated && b.LifecycleState != core.VolumeBackupLifecycleStateTerminating {
			out = append(out, b)
		}
	}
	return out
}

// C100: a backup is answered as soon as it exists, becomes ready, and is one.
func TestSnapshot(t *testing.T) {
	d := durations()
	d["volumebackup.upload"] = ocisim.Range{Min: 40 * time.Minute, Max: 40 * time.Minute}
	simulate(t, ocisim.Options{Durations: d, EventualReads: 2}, func(r *rig) {
		volume := r.volume(func(v *ocisim.Volume) { v.SizeInGBs = 70 })
		began := time.Now()
		b := r.mustSnapshot(volume, "snapshot-1", func(q *blockvolume.SnapshotRequest) {
			q.Full, q.Tags.Freeform = true, map[string]string{"a": "b"}
		})
		if b.Ready() || b.VolumeID != volume || b.SizeBytes != 70*gib || time.Since(began) > time.Second {
			t.Errorf("%+v after %v", b.VolumeBackup, time.Since(began))
		}
		made := r.backups()[0]
		if made.Type != core.VolumeBackupTypeFull {
			t.Errorf("type %s", made.Type)
		}
		if diff := cmp.Diff(map[string]string{"a": "b", "oci-k8s-cluster": clusterID, "oci-k8s-owner": "snapshot-1"}, made.FreeformTags); diff != "" {
			t.Error(diff)
		}
		for !r.mustSnapshot(volume, "snapshot-1", func(q *blockvolume.SnapshotRequest) { q.Full = true }).Ready() {
			time.Sleep(time.Minute)
			r.restart()
		}
		if took := time.Since(began); took < 40*time.Minute || took > 42*time.Minute || len(r.backups()) != 1 {
			t.Errorf("%d backups after %v", len(r.backups()), took)
		}
		_, err := r.snapshot(r.volume(), "snapshot-1")
		r.refused(err, blockvolume.ErrExists)
		for range 2 {
			if err := r.s.DeleteSnapshot(r.Context(), b.ID); err != nil {
				t.Error(err)
			}
			time.Sleep(time.Minute)
		}
		_, err = r.s.GetSnapshot(r.Context(), b.ID)
		r.refused(err, blockvolume.ErrNotFound)
		// And once more under the same name: it is another one.
		if again := r.mustSnapshot(volume, "snapshot-1", func(q *blockvolume.SnapshotRequest) { q.Full = true }); again.ID == b.ID {
			t.Error("the old one")
		}
	})
}

// C100: whatever is lost, there is one backup in the end.
func TestLostSnapshots(t *testing.T) {
	for name, fault := range map[string]ocisim.Fault{
		"call lost":            {Drop: ocisim.BeforeApply, Nth: 1},
		"answer lost":          {Drop: ocisim.AfterApply, Nth: 1},
		"answer lost for long": {Drop: ocisim.AfterApply, Nth: 1, Times: 20},
	} {
		t.Run(name, func(t *testing.T) {
			simulate(t, ocisim.Options{EventualReads: 3}, func(r *rig) {
				fault.Operation = "CreateVolumeBackup"
				r.region.Fault(fault)
				volume := r.volume()
				var err error
				for range 10 {
					_, err = within(r, 10*time.Second, func(ctx context.Context) (*blockvolume.Snapshot, error) {
						return r.s.CreateSnapshot(ctx, blockvolume.SnapshotRequest{Name: "snapshot-1", VolumeID: volume})
					})
					if err == nil {
						break
					}
				}
				if n := len(r.backups()); err != nil || n != 1 {
					t.Errorf("%d backups, %v", n, err)
				}
			})
		})
	}
}

func TestSnapshotsThatCannotBe(t *testing.T) {
	simulate(t, ocisim.Options{}, func(r *rig) {
		_, err := r.snapshot("ocid1.bootvolume.oc1.iad.b", "s")
		r.refused(err, blockvolume.ErrInvalid)
		_, err = r.snapshot("ocid1.volume.oc1.iad.gone", "s")
		r.refused(err, blockvolume.ErrNotFound)
		volume := r.volume()
		r.mustSnapshot(volume, "snapshot-1")
		_, err = r.snapshot(volume, "snapshot-2")
		r.refused(err, blockvolume.ErrInUse) // one at a time
		r.refused(r.s.DeleteSnapshot(r.Context(), *r.backups()[0].Id), blockvolume.ErrPending)
		time.Sleep(time.Minute)

		r.region.Fault(ocisim.Fault{Operation: "CreateVolumeBackup", FailWork: true, Times: 1, Nth: 1})
		r.mustSnapshot(volume, "snapshot-2")
		time.Sleep(time.Minute)
		_, err = r.snapshot(volume, "snapshot-2")
		r.refused(err, blockvolume.ErrFailed)
		r.mustSnapshot(volume, "snapshot-2")
		time.Sleep(time.Minute)
		if n := len(r.backups()); n != 2 {
			t.Errorf("%d backups", n)
		}
		list, err := r.s.ListSnapshots(r.Context(), volume)
		if err != nil || len(list) != 2 || list[0].DisplayName != "snapshot-1" {
			t.Errorf("%v, %v", list, err)
		}

		allow := r.region.Deny(ocisim.Policy{ResourceType: "volume-backups"})
		r.refused(r.s.DeleteSnapshot(r.Context(), list[0].ID), blockvolume.ErrForbidden)
		_, err = r.s.GetSnapshot(r.Context(), list[0].ID)
		r.refused(err, blockvolume.ErrForbidden)
		allow()
		r.region.SetBehaviour(func(b *ocisim.Behaviour) { b.ServiceLimits["backup-count"] = 2 })
		_, err = r.snapshot(volume, "snapshot-3")
		r.refused(err, blockvolume.ErrExhausted)
	})
}

// A volume in another compartment has its backups there.
func TestSnapshotOfAVolumeElsewhere(t *testing.T) {
	simulate(t, ocisim.Options{}, func(r *rig) {
		volume := r.volume(func(v *ocisim.Volume) { v.Compartment = r.other })
		b := r.mustSnapshot(volume, "snapshot-1")
		time.Sleep(25 * time.Hour) // the cloud has forgotten the retry token
		again := r.mustSnapshot(volume, "snapshot-1")
		if again.ID != b.ID || again.State != oci.BackupAvailable || len(r.backups()) != 1 {
			t.Errorf("%+v, backups %v", again.VolumeBackup, r.backups())
		}
	})
}
