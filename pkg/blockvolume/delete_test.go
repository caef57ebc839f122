// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package blockvolume_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/oracle/oci-cloud-controller-manager/pkg/blockvolume"
	"github.com/oracle/oci-cloud-controller-manager/test/ocisim"
)

func (r *rig) remove(volume string) error {
	_, err := within(r, 2*time.Minute, func(ctx context.Context) (struct{}, error) { return struct{}{}, r.s.Delete(ctx, volume) })
	return err
}

// C114: deletion, by what the volume is and what may be seen.
func TestDelete(t *testing.T) {
	simulate(t, ocisim.Options{}, func(r *rig) {
		gone := func(volume string) {
			t.Helper()
			if err := r.remove(volume); err != nil {
				t.Error(err)
			}
		}
		volume := r.volume()
		gone(volume)
		r.calls("blockstorage.DeleteVolume", 1)
		r.calls("blockstorage.GetVolume", 0)
		gone(volume) // TERMINATING
		time.Sleep(time.Minute)
		gone(volume) // TERMINATED
		time.Sleep(48 * time.Hour)
		gone(volume) // not shown any more
		gone("ocid1.volume.oc1.iad.never")

		volume = r.volume()
		r.region.AddVolumeBackup(ocisim.VolumeBackup{Volume: volume})
		gone(volume) // its backups stay

		volume = r.volume()
		r.mustAttach(volume, r.one)
		err := r.remove(volume)
		r.refused(err, blockvolume.ErrInUse)
		if err == nil || !strings.Contains(err.Error(), r.one) {
			t.Errorf("error %v does not name the instance", err)
		}
		r.refused(r.remove("ocid1.bootvolume.oc1.iad.b"), blockvolume.ErrInvalid)
	})
}

// C114: a 404 for want of a policy is no deletion, whatever verb is missing.
func TestDeleteWithoutPolicy(t *testing.T) {
	for _, verb := range []ocisim.Verb{"manage", "read", "inspect"} {
		t.Run(string(verb), func(t *testing.T) {
			simulate(t, ocisim.Options{}, func(r *rig) {
				volume := r.volume()
				allow := r.region.Deny(ocisim.Policy{ResourceType: "volumes", Verb: verb})
				r.refused(r.remove(volume), blockvolume.ErrForbidden)
				if verb == "inspect" { // a volume that never was cannot be told from one that is hidden
					r.refused(r.remove("ocid1.volume.oc1.iad.never"), blockvolume.ErrForbidden)
				}
				if n := len(r.living()); n != 1 {
					t.Errorf("%d volumes", n)
				}
				allow()
				if err := r.remove(volume); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// A volume that is being made, or copied from, is deleted as soon as that is over.
func TestDeleteOfABusyVolume(t *testing.T) {
	simulate(t, ocisim.Options{}, func(r *rig) {
		_, err := within(r, 2*time.Second, func(ctx context.Context) (*blockvolume.Provisioned, error) { return r.s.Create(ctx, r.request()) })
		r.refused(err, blockvolume.ErrPending)
		if err := r.remove(*r.living()[0].Id); err != nil || len(r.living()) != 0 {
			t.Errorf("%v, volumes %v", err, r.living())
		}
		source := r.volume()
		_, err = within(r, 2*time.Second, func(ctx context.Context) (*blockvolume.Provisioned, error) {
			return r.s.Create(ctx, r.request(func(q *createRequest) { q.Name, q.CloneID = numbered(1), source }))
		})
		r.refused(err, blockvolume.ErrPending)
		r.refused(r.remove(source), blockvolume.ErrInUse)
		time.Sleep(2 * time.Minute)
		if err := r.remove(source); err != nil {
			t.Error(err)
		}
	})
}
