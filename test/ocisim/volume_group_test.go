// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package ocisim_test

import (
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/oracle/oci-go-sdk/v65/common"
	"github.com/oracle/oci-go-sdk/v65/core"

	"github.com/oracle/oci-cloud-controller-manager/test/ocisim"
)

func (b *blocks) group(source core.VolumeGroupSourceDetails) (core.VolumeGroup, error) {
	r, err := b.storage.CreateVolumeGroup(b.t.Context(), core.CreateVolumeGroupRequest{CreateVolumeGroupDetails: core.CreateVolumeGroupDetails{
		CompartmentId: &b.compartment, AvailabilityDomain: &b.ad, SourceDetails: source,
	}})
	return r.VolumeGroup, err
}

func (b *blocks) getGroup(id string) core.VolumeGroup {
	b.t.Helper()
	r, err := b.storage.GetVolumeGroup(b.t.Context(), core.GetVolumeGroupRequest{VolumeGroupId: &id})
	return must(b.t, r, err).VolumeGroup
}

func (b *blocks) setGroup(id string, volumes []string) error {
	_, err := b.storage.UpdateVolumeGroup(b.t.Context(), core.UpdateVolumeGroupRequest{
		VolumeGroupId: &id, UpdateVolumeGroupDetails: core.UpdateVolumeGroupDetails{VolumeIds: volumes},
	})
	return err
}

func TestVolumeGroup(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		b := newBlocks(t, ocisim.Options{})
		one, two := b.volume(), b.volume()
		far := b.region.AddVolume(ocisim.Volume{AvailabilityDomain: b.region.Options().AvailabilityDomains[1]})
		of := func(ids ...string) core.VolumeGroupSourceDetails {
			return core.VolumeGroupSourceFromVolumesDetails{VolumeIds: ids}
		}
		_, err := b.group(of(one, far))
		blockRefused(t, err, http.StatusBadRequest, "InvalidParameter")
		_, err = b.group(of(one, one))
		blockRefused(t, err, http.StatusBadRequest, "InvalidParameter")
		_, err = b.group(of("ocid1.volume.oc1.iad.gone"))
		blockRefused(t, err, http.StatusBadRequest, "RelatedResourceNotAuthorizedOrNotFound")

		g, err := b.group(of(one, two))
		if must(t, g, err); g.LifecycleState != core.VolumeGroupLifecycleStateProvisioning || *g.SizeInGBs != 100 || len(g.VolumeIds) != 2 || !*g.IsHydrated {
			t.Errorf("group %v", g)
		}
		_, err = b.group(of(one))
		blockRefused(t, err, http.StatusConflict, "Conflict")
		blockRefused(t, b.deleteVolume(one), http.StatusConflict, "Conflict")
		blockRefused(t, b.setGroup(*g.Id, []string{one}), http.StatusConflict, "IncorrectState")
		time.Sleep(2 * time.Second)
		if got := b.getGroup(*g.Id).LifecycleState; got != core.VolumeGroupLifecycleStateAvailable {
			t.Fatalf("group is %s", got)
		}
		if list := b.listVolumes(func(r *core.ListVolumesRequest) { r.CompartmentId, r.VolumeGroupId = nil, g.Id }); len(list) != 2 {
			t.Errorf("%d volumes in the group", len(list))
		}
		if err := b.setGroup(*g.Id, []string{two}); err != nil {
			t.Fatal(err)
		}
		if got := b.getGroup(*g.Id).LifecycleState; got != core.VolumeGroupLifecycleStateUpdatePending {
			t.Errorf("group is %s", got)
		}
		time.Sleep(2 * time.Second)
		if got := b.getGroup(*g.Id); !slices.Equal(got.VolumeIds, []string{two}) || *got.SizeInGBs != 50 {
			t.Errorf("group %v", got)
		}
		if err := b.deleteVolume(one); err != nil {
			t.Error(err)
		}
		remove := func() error {
			_, err := b.storage.DeleteVolumeGroup(t.Context(), core.DeleteVolumeGroupRequest{VolumeGroupId: g.Id})
			return err
		}
		if err := remove(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Second)
		if got := b.getGroup(*g.Id).LifecycleState; got != core.VolumeGroupLifecycleStateTerminated {
			t.Errorf("group is %s", got)
		}
		blockRefused(t, remove(), http.StatusNotFound, "NotAuthorizedOrNotFound")
		// Its volumes stay, and are free.
		if v := b.getVolume(two); v.VolumeGroupId != nil || v.LifecycleState != core.VolumeLifecycleStateAvailable {
			t.Errorf("volume %v", v)
		}
	})
}

func TestVolumeGroupBackup(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		b := newBlocks(t, ocisim.Options{})
		one := b.region.AddVolume(ocisim.Volume{AvailabilityDomain: b.ad, VpusPerGB: common.Int64(20)})
		g, err := b.group(core.VolumeGroupSourceFromVolumesDetails{VolumeIds: []string{one, b.volume()}})
		must(t, g, err)
		time.Sleep(2 * time.Second)
		r, err := b.storage.CreateVolumeGroupBackup(t.Context(), core.CreateVolumeGroupBackupRequest{
			CreateVolumeGroupBackupDetails: core.CreateVolumeGroupBackupDetails{VolumeGroupId: g.Id, DisplayName: common.String("nightly")},
		})
		backup := must(t, r, err).VolumeGroupBackup
		if backup.LifecycleState != core.VolumeGroupBackupLifecycleStateRequestReceived || len(backup.VolumeBackupIds) != 2 || *backup.SizeInGBs != 100 {
			t.Errorf("backup %v", backup)
		}
		restore := core.VolumeGroupSourceFromVolumeGroupBackupDetails{VolumeGroupBackupId: backup.Id}
		_, err = b.group(restore)
		blockRefused(t, err, http.StatusConflict, "IncorrectState")
		time.Sleep(50 * time.Second)
		if got := b.region.VolumeGroupBackups()[0].LifecycleState; got != core.VolumeGroupBackupLifecycleStateAvailable {
			t.Fatalf("backup is %s", got)
		}

		clone, err := b.group(core.VolumeGroupSourceFromVolumeGroupDetails{VolumeGroupId: g.Id})
		must(t, clone, err)
		restored, err := b.group(restore)
		must(t, restored, err)
		time.Sleep(30 * time.Second)
		for _, id := range []string{*clone.Id, *restored.Id} {
			if got := b.getGroup(id); got.LifecycleState != core.VolumeGroupLifecycleStateAvailable || len(got.VolumeIds) != 2 || *got.IsHydrated {
				t.Errorf("group %v", got)
			}
		}
		if v := b.getVolume(b.getGroup(*clone.Id).VolumeIds[0]); *v.VpusPerGB != 20 || *v.VolumeGroupId != *clone.Id {
			t.Errorf("clone %v", v)
		}
		remove := func() error {
			_, err := b.storage.DeleteVolumeGroupBackup(t.Context(), core.DeleteVolumeGroupBackupRequest{VolumeGroupBackupId: backup.Id})
			return err
		}
		blockRefused(t, remove(), http.StatusConflict, "Conflict")
		time.Sleep(2 * time.Minute)
		if got := b.getGroup(*restored.Id); !*got.IsHydrated {
			t.Errorf("group %v", got)
		}
		if err := remove(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(4 * time.Second)
		for _, one := range b.region.VolumeBackups() {
			if one.LifecycleState != core.VolumeBackupLifecycleStateTerminated {
				t.Errorf("volume backup is %s", one.LifecycleState)
			}
		}
	})
}
