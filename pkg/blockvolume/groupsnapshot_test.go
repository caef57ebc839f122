// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package blockvolume_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/oracle/oci-go-sdk/v65/core"

	"github.com/oracle/oci-cloud-controller-manager/pkg/blockvolume"
	"github.com/oracle/oci-cloud-controller-manager/test/ocisim"
)

const groupName = "groupsnapshot-6f1c9ab0-52b4-4f63-9d4e-1a2b3c4d5e6f"

func (r *rig) groupSnapshot(volumes ...string) (*blockvolume.GroupSnapshot, error) {
	return within(r, 2*time.Minute, func(ctx context.Context) (*blockvolume.GroupSnapshot, error) {
		return r.s.CreateGroupSnapshot(ctx, blockvolume.GroupSnapshotRequest{Name: groupName, VolumeIDs: volumes})
	})
}

// groups are the volume groups that are not gone.
func (r *rig) groups() []core.VolumeGroup {
	var out []core.VolumeGroup
	for _, g := range r.region.VolumeGroups() {
		if g.LifecycleState != core.VolumeGroupLifecycleStateTerminated {
			out = append(out, g)
		}
	}
	return out
}

func TestGroupSnapshot(t *testing.T) {
	simulate(t, ocisim.Options{EventualReads: 1}, func(r *rig) {
		one, two := r.volume(), r.volume()
		far := r.volume(func(v *ocisim.Volume) { v.AvailabilityDomain = r.elsewhere })
		for _, volumes := range [][]string{{one, two}, {one, far}} {
			g, err := r.groupSnapshot(volumes...)
			if err != nil {
				t.Fatal(err)
			}
			if g.Ready || len(g.Snapshots) != 2 || len(g.ID) > 128 {
				t.Errorf("%+v", g)
			}
			var of []string
			for _, s := range g.Snapshots {
				of = append(of, s.VolumeID)
			}
			slices.Sort(of)
			slices.Sort(volumes)
			if !slices.Equal(of, volumes) {
				t.Errorf("snapshots of %v, want %v", of, volumes)
			}
			for i := 0; !g.Ready; i++ {
				if i > 10 {
					t.Fatal("never ready")
				}
				time.Sleep(10 * time.Second)
				r.restart()
				if g, err = r.s.GetGroupSnapshot(r.Context(), g.ID); err != nil {
					t.Fatal(err)
				}
			}
			again, err := r.groupSnapshot(volumes...)
			if err != nil || again.ID != g.ID || !again.Ready {
				t.Errorf("repeat %+v, %v", again, err)
			}
			time.Sleep(time.Minute)
			if n := len(r.groups()); n != 0 {
				t.Errorf("%d volume groups are left", n)
			}
			for range 2 {
				if err := r.s.DeleteGroupSnapshot(r.Context(), g.ID); err != nil {
					t.Error(err)
				}
				time.Sleep(time.Minute)
			}
			_, err = r.s.GetGroupSnapshot(r.Context(), g.ID)
			r.refused(err, blockvolume.ErrNotFound)
			if n := len(r.backups()); n != 0 {
				t.Errorf("%d backups are left", n)
			}
		}
	})
}

// A volume in somebody else's group is left there.
func TestVolumeInAForeignGroup(t *testing.T) {
	simulate(t, ocisim.Options{}, func(r *rig) {
		one, two := r.volume(), r.volume()
		client := r.connect(r.region.Transport())
		_, err := client.BlockStorage().CreateVolumeGroup(r.Context(), foreignGroup(r, two), "")
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		_, err = r.groupSnapshot(one, two)
		r.refused(err, blockvolume.ErrInUse)
		r.refused(r.remove(two), blockvolume.ErrInUse)
		if list := r.groups(); len(list) != 1 || len(list[0].VolumeIds) != 1 {
			t.Errorf("groups %v", list)
		}
	})
}

// A group snapshot that was given up in the middle does not keep its volumes from being deleted.
func TestGroupSnapshotGivenUp(t *testing.T) {
	simulate(t, ocisim.Options{}, func(r *rig) {
		one := r.volume()
		r.region.Fault(ocisim.Fault{Operation: "CreateVolumeGroupBackup", Status: 400, Code: "LimitExceeded"})
		_, err := r.groupSnapshot(one)
		r.refused(err, blockvolume.ErrExhausted)
		if n := len(r.groups()); n != 1 {
			t.Fatalf("%d groups", n)
		}
		if err := r.remove(one); err != nil {
			t.Error(err)
		}
		time.Sleep(time.Minute)
		if n := len(r.groups()); n != 0 || len(r.living()) != 0 {
			t.Errorf("%d groups and %d volumes are left", n, len(r.living()))
		}
	})
}
