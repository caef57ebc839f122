// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package blockvolume_test

import (
	"testing"
	"time"

	"github.com/oracle/oci-go-sdk/v65/core"

	"github.com/oracle/oci-cloud-controller-manager/pkg/blockvolume"
	"github.com/oracle/oci-cloud-controller-manager/pkg/oci"
	"github.com/oracle/oci-cloud-controller-manager/test/ocisim"
)

// C101: restores, by size and by what became of the source.
func TestRestore(t *testing.T) {
	simulate(t, ocisim.Options{}, func(r *rig) {
		source := r.volume(func(v *ocisim.Volume) { v.SizeInGBs = 100 })
		backup := r.region.AddVolumeBackup(ocisim.VolumeBackup{Volume: source})
		if err := r.region.Foreign().Delete(source); err != nil { // a backup outlives its volume
			t.Fatal(err)
		}
		for i, tt := range []struct {
			required, limit, want int64 // GiB; 0: out of range
			grow                  bool
		}{{50, 0, 0, false}, {100, 0, 100, false}, {200, 0, 200, true}, {0, 0, 100, false}, {0, 99, 0, false}, {0, 300, 100, false}} {
			v, err := r.create(func(q *createRequest) {
				q.Name, q.SnapshotID, q.RequiredBytes, q.LimitBytes = numbered(i), backup, tt.required*gib, tt.limit*gib
				q.Domains = []string{r.elsewhere} // restores may be anywhere
			})
			if tt.want == 0 {
				r.refused(err, blockvolume.ErrOutOfRange)
				continue
			}
			if err != nil || v.SizeBytes != tt.want*gib || v.Grow != tt.grow || !v.Hydrated || v.SourceBackupID != backup {
				t.Errorf("%d to %d GiB: %+v, %v", tt.required, tt.limit, v, err)
			}
		}
		r.calls("blockstorage.CreateVolume", 4)
	})
}

// C101: a source that is gone is NotFound, one that cannot be seen is not; one that is not ready yet is waited for.
func TestSourceThatIsNotThere(t *testing.T) {
	simulate(t, ocisim.Options{}, func(r *rig) {
		restore := func(id string) error {
			_, err := r.create(func(q *createRequest) { q.SnapshotID = id })
			return err
		}
		r.refused(restore("ocid1.volumebackup.oc1.iad.gone"), blockvolume.ErrNotFound)
		source := r.volume()
		for state, kind := range map[string]error{
			oci.BackupCreating: blockvolume.ErrPending, oci.BackupRequested: blockvolume.ErrPending, oci.BackupFaulty: blockvolume.ErrInvalid,
			oci.BackupTerminating: blockvolume.ErrNotFound, oci.BackupTerminated: blockvolume.ErrNotFound,
		} {
			r.refused(restore(r.region.AddVolumeBackup(ocisim.VolumeBackup{Volume: source, State: state})), kind)
		}
		backup := r.region.AddVolumeBackup(ocisim.VolumeBackup{Volume: source})
		for _, verb := range []ocisim.Verb{"read", "inspect"} {
			allow := r.region.Deny(ocisim.Policy{ResourceType: "volume-backups", Verb: verb})
			err := restore(backup)
			if verb == "inspect" {
				r.refused(err, blockvolume.ErrForbidden)
			}
			if isOneOf(err, blockvolume.ErrNotFound) {
				t.Errorf("without %s: %v", verb, err)
			}
			allow()
		}
	})
}

// C102: clones are where their source is, and of sources that are whole.
func TestClone(t *testing.T) {
	simulate(t, ocisim.Options{}, func(r *rig) {
		source := r.volume(func(v *ocisim.Volume) { v.SizeInGBs = 60 })
		clone := func(change ...func(*createRequest)) (*blockvolume.Provisioned, error) {
			return r.create(append([]func(*createRequest){func(q *createRequest) { q.CloneID, q.RequiredBytes = source, 60*gib }}, change...)...)
		}
		_, err := clone(func(q *createRequest) { q.Domains = []string{r.elsewhere} })
		r.refused(err, blockvolume.ErrExhausted) // so that the pod is scheduled elsewhere
		_, err = clone(func(q *createRequest) { q.RequiredBytes = 50 * gib })
		r.refused(err, blockvolume.ErrOutOfRange)
		_, err = clone(func(q *createRequest) { q.CloneID = "ocid1.volume.oc1.iad.gone" })
		r.refused(err, blockvolume.ErrNotFound)
		_, err = clone(func(q *createRequest) { q.CloneID = "ocid1.bootvolume.oc1.iad.b" })
		r.refused(err, blockvolume.ErrInvalid)
		for state, kind := range map[core.VolumeLifecycleStateEnum]error{
			core.VolumeLifecycleStateTerminating: blockvolume.ErrNotFound, core.VolumeLifecycleStateFaulty: blockvolume.ErrInvalid,
			core.VolumeLifecycleStateProvisioning: blockvolume.ErrPending,
		} {
			r.volumeState(source, state)
			_, err := clone()
			r.refused(err, kind)
		}
		r.volumeState(source, core.VolumeLifecycleStateAvailable)
		r.calls("blockstorage.CreateVolume", 0)

		began := time.Now()
		v, err := clone(func(q *createRequest) { q.Domains, q.RequiredBytes, q.KMSKeyID = nil, 80*gib, "ocid1.key.oc1..k" })
		if err != nil || v.AvailabilityDomain != r.ad || !v.Grow || v.SourceVolumeID != source || !v.Hydrated || time.Since(began) < time.Minute {
			t.Errorf("clone %+v, %v", v, err)
		}
		// The clone of a volume whose content is still being copied has to wait.
		if err := r.region.Foreign().Volume(v.ID, func(v *core.Volume) { v.IsHydrated = new(false) }); err != nil {
			t.Fatal(err)
		}
		_, err = clone(func(q *createRequest) { q.Name, q.CloneID, q.RequiredBytes = numbered(1), v.ID, 80*gib })
		r.refused(err, blockvolume.ErrPending)
		// A repeat is answered even when the source is gone by now.
		if err := r.region.Foreign().Delete(source); err != nil {
			t.Fatal(err)
		}
		if err := r.region.Foreign().Volume(v.ID, func(v *core.Volume) { v.IsHydrated = new(true) }); err != nil {
			t.Fatal(err)
		}
		again, err := clone(func(q *createRequest) { q.Domains, q.RequiredBytes, q.KMSKeyID = nil, 80*gib, "ocid1.key.oc1..k" })
		if err != nil || again.ID != v.ID || !again.Grow {
			t.Errorf("repeat %+v, %v", again, err)
		}
	})
}
