// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package ocisim_test

import (
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/oracle/oci-go-sdk/v65/common"
	"github.com/oracle/oci-go-sdk/v65/core"

	"github.com/oracle/oci-cloud-controller-manager/test/ocisim"
)

func TestVolumeLife(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		b := newBlocks(t, ocisim.Options{})
		v := b.mustCreate(func(d *core.CreateVolumeDetails) {
			d.DisplayName, d.SizeInGBs, d.VpusPerGB = common.String("data"), nil, common.Int64(20)
			d.FreeformTags = map[string]string{"a": "b"}
		})
		id := *v.Id
		if v.LifecycleState != core.VolumeLifecycleStateProvisioning || *v.SizeInGBs != 1024 || *v.SizeInMBs != 1024*1024 ||
			*v.VpusPerGB != 20 || !*v.IsHydrated || *v.DisplayName != "data" || v.FreeformTags["a"] != "b" || v.SourceDetails != nil {
			t.Errorf("volume %v", v)
		}
		blockRefused(t, b.deleteVolume(id), http.StatusConflict, "IncorrectState")
		_, err := b.updateVolume(id, core.UpdateVolumeDetails{DisplayName: common.String("x")})
		blockRefused(t, err, http.StatusConflict, "IncorrectState")
		time.Sleep(8*time.Second - time.Millisecond)
		b.volumeIn(id, core.VolumeLifecycleStateProvisioning)
		time.Sleep(time.Millisecond)
		b.volumeIn(id, core.VolumeLifecycleStateAvailable)

		if err := b.deleteVolume(id); err != nil {
			t.Fatal(err)
		}
		b.volumeIn(id, core.VolumeLifecycleStateTerminating)
		blockRefused(t, b.deleteVolume(id), http.StatusConflict, "IncorrectState")
		time.Sleep(4 * time.Second)
		b.volumeIn(id, core.VolumeLifecycleStateTerminated)
		blockRefused(t, b.deleteVolume(id), http.StatusNotFound, "NotAuthorizedOrNotFound")
		_, err = b.updateVolume(id, core.UpdateVolumeDetails{DisplayName: common.String("x")})
		blockRefused(t, err, http.StatusNotFound, "NotAuthorizedOrNotFound")
		if list := b.listVolumes(nil); len(list) != 1 || list[0].LifecycleState != core.VolumeLifecycleStateTerminated {
			t.Errorf("a terminated volume stays listed, got %v", list)
		}
		time.Sleep(24 * time.Hour)
		if list := b.listVolumes(nil); len(list) != 0 {
			t.Errorf("after a day there are %v", list)
		}
	})
}

// listVolumes reads all pages.
func (b *blocks) listVolumes(change func(*core.ListVolumesRequest)) []core.Volume {
	b.t.Helper()
	var list []core.Volume
	req := core.ListVolumesRequest{CompartmentId: &b.compartment}
	if change != nil {
		change(&req)
	}
	for {
		r, err := b.storage.ListVolumes(b.t.Context(), req)
		if err != nil {
			b.t.Fatal(err)
		}
		list = append(list, r.Items...)
		if req.Page = r.OpcNextPage; req.Page == nil {
			return list
		}
	}
}

func TestListVolumes(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		b := newBlocks(t, ocisim.Options{PageSize: 2})
		b.region.AddVolume(ocisim.Volume{Name: "v-%d", Count: 5, AvailabilityDomain: b.ad})
		other := b.region.Options().AvailabilityDomains[1]
		b.region.AddVolume(ocisim.Volume{Name: "v-1", AvailabilityDomain: other})
		names := func(list []core.Volume) []string {
			var out []string
			for _, v := range list {
				out = append(out, *v.DisplayName)
			}
			return out
		}
		if diff := cmp.Diff([]string{"v-1", "v-2", "v-3", "v-4", "v-5", "v-1"}, names(b.listVolumes(nil))); diff != "" {
			t.Error(diff)
		}
		named := b.listVolumes(func(r *core.ListVolumesRequest) { r.DisplayName, r.AvailabilityDomain = common.String("v-1"), &other })
		if len(named) != 1 || *named[0].AvailabilityDomain != other {
			t.Errorf("filtered list %v", named)
		}
		_, err := b.storage.ListVolumes(t.Context(), core.ListVolumesRequest{})
		blockRefused(t, err, http.StatusBadRequest, "MissingParameter")
	})
}

func TestNewVolumeIsEventual(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		b := newBlocks(t, ocisim.Options{EventualReads: 2})
		v, err := b.create(nil)
		id := *must(t, v, err).Id
		for range 2 {
			_, err := b.storage.GetVolume(t.Context(), core.GetVolumeRequest{VolumeId: &id})
			blockRefused(t, err, http.StatusNotFound, "NotAuthorizedOrNotFound")
		}
		b.getVolume(id)
	})
}

func TestCreateVolumeChecks(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		b := newBlocks(t, ocisim.Options{})
		type details = core.CreateVolumeDetails
		for name, test := range map[string]struct {
			change func(*details)
			status int
			code   string
		}{
			"too small":       {func(d *details) { d.SizeInGBs = common.Int64(49) }, 400, "InvalidParameter"},
			"too large":       {func(d *details) { d.SizeInGBs = common.Int64(32*1024 + 1) }, 400, "InvalidParameter"},
			"odd megabytes":   {func(d *details) { d.SizeInGBs, d.SizeInMBs = nil, common.Int64(51201) }, 400, "InvalidParameter"},
			"two sizes":       {func(d *details) { d.SizeInMBs = common.Int64(102400) }, 400, "InvalidParameter"},
			"odd performance": {func(d *details) { d.VpusPerGB = common.Int64(15) }, 400, "InvalidParameter"},
			"performance":     {func(d *details) { d.VpusPerGB = common.Int64(130) }, 400, "InvalidParameter"},
			"no domain":       {func(d *details) { d.AvailabilityDomain = nil }, 400, "MissingParameter"},
			"unknown domain":  {func(d *details) { d.AvailabilityDomain = common.String("Uocm:MARS-AD-1") }, 400, "InvalidParameter"},
			"compartment":     {func(d *details) { d.CompartmentId = common.String("ocid1.compartment.oc1..gone") }, 404, "NotAuthorizedOrNotFound"},
			"source": {func(d *details) {
				d.SourceDetails = core.VolumeSourceFromVolumeDetails{Id: common.String("ocid1.volume.oc1.iad.gone")}
			}, 400, "RelatedResourceNotAuthorizedOrNotFound"},
			"replica": {func(d *details) {
				d.SourceDetails = core.VolumeSourceFromBlockVolumeReplicaDetails{Id: common.String("x")}
			}, 400, "InvalidParameter"},
			"two sources": {func(d *details) {
				d.VolumeBackupId = common.String("x")
				d.SourceDetails = core.VolumeSourceFromVolumeDetails{Id: common.String("x")}
			}, 400, "InvalidParameter"},
			"auto-tuning": {func(d *details) {
				d.AutotunePolicies = []core.AutotunePolicy{core.PerformanceBasedAutotunePolicy{MaxVpusPerGB: common.Int64(0)}}
			}, 400, "InvalidParameter"},
			"name": {func(d *details) { d.DisplayName = common.String("") }, 400, "InvalidParameter"},
		} {
			_, err := b.create(test.change)
			t.Log(name, err)
			blockRefused(t, err, test.status, test.code)
		}
		if n := len(b.region.Volumes()); n != 0 {
			t.Errorf("%d volumes after refusals", n)
		}
		v := b.mustCreate(func(d *details) { d.SizeInGBs, d.SizeInMBs = nil, common.Int64(51200) })
		if *v.SizeInGBs != 50 {
			t.Errorf("size %d", *v.SizeInGBs)
		}
	})
}

func TestVolumeEndsFaulty(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		b := newBlocks(t, ocisim.Options{})
		b.region.Fault(ocisim.Fault{Operation: "CreateVolume", FailWork: true, Times: 1})
		v, err := b.create(nil)
		id := *must(t, v, err).Id
		time.Sleep(8 * time.Second)
		b.volumeIn(id, core.VolumeLifecycleStateFaulty)
		_, err = b.attach(b.instance, id, nil)
		blockRefused(t, err, http.StatusNotFound, "NotAuthorizedOrNotFound")
		if err := b.deleteVolume(id); err != nil {
			t.Fatal(err)
		}
		v, err = b.create(nil)
		must(t, v, err)
		time.Sleep(8 * time.Second)
		b.volumeIn(*v.Id, core.VolumeLifecycleStateAvailable)
	})
}

func TestVolumeLimits(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		b := newBlocks(t, ocisim.Options{})
		b.change(func(t *ocisim.Behaviour) { t.VolumeCapacity[b.ad] = 47 + 100 })
		for range 2 {
			v, err := b.create(nil)
			must(t, v, err)
		}
		_, err := b.create(nil)
		blockRefused(t, err, http.StatusInternalServerError, "InternalServerError")
		b.change(func(t *ocisim.Behaviour) { t.VolumeCapacity, t.ServiceLimits["volume-count"] = nil, 3 })
		_, err = b.create(nil)
		blockRefused(t, err, http.StatusBadRequest, "LimitExceeded")
		b.change(func(t *ocisim.Behaviour) { t.ServiceLimits = map[string]int{"total-storage-gb": 47 + 150} })
		v, err := b.create(nil)
		must(t, v, err)
		time.Sleep(time.Minute)
		_, err = b.updateVolume(*v.Id, core.UpdateVolumeDetails{SizeInGBs: common.Int64(51)})
		blockRefused(t, err, http.StatusBadRequest, "LimitExceeded")
	})
}

func TestResize(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		b := newBlocks(t, ocisim.Options{})
		id := b.volume()
		_, err := b.updateVolume(id, core.UpdateVolumeDetails{SizeInGBs: common.Int64(49)})
		blockRefused(t, err, http.StatusBadRequest, "InvalidParameter")
		_, err = b.updateVolume(id, core.UpdateVolumeDetails{SizeInGBs: common.Int64(40000)})
		blockRefused(t, err, http.StatusBadRequest, "InvalidParameter")
		v, err := b.updateVolume(id, core.UpdateVolumeDetails{SizeInGBs: common.Int64(50)})
		if must(t, v, err).LifecycleState != core.VolumeLifecycleStateAvailable {
			t.Errorf("the present size needs no change, state %s", v.LifecycleState)
		}

		v, err = b.updateVolume(id, core.UpdateVolumeDetails{SizeInGBs: common.Int64(70), VpusPerGB: common.Int64(0), DisplayName: common.String("n")})
		must(t, v, err)
		if v.LifecycleState != core.VolumeLifecycleStateProvisioning || *v.SizeInGBs != 50 || *v.DisplayName != "n" {
			t.Errorf("volume in change: %s %d GB %s", v.LifecycleState, *v.SizeInGBs, *v.DisplayName)
		}
		_, err = b.updateVolume(id, core.UpdateVolumeDetails{SizeInGBs: common.Int64(80)})
		blockRefused(t, err, http.StatusConflict, "IncorrectState")
		_, err = b.attach(b.instance, id, nil)
		blockRefused(t, err, http.StatusNotFound, "NotAuthorizedOrNotFound")
		time.Sleep(5 * time.Second)
		if v := b.getVolume(id); v.LifecycleState != core.VolumeLifecycleStateAvailable || *v.SizeInGBs != 70 || *v.SizeInMBs != 70*1024 || *v.VpusPerGB != 0 {
			t.Errorf("changed volume: %v", v)
		}

		b.region.Fault(ocisim.Fault{Operation: "UpdateVolume", FailWork: true, Times: 1})
		v, err = b.updateVolume(id, core.UpdateVolumeDetails{SizeInGBs: common.Int64(90)})
		must(t, v, err)
		time.Sleep(5 * time.Second)
		if v := b.getVolume(id); v.LifecycleState != core.VolumeLifecycleStateAvailable || *v.SizeInGBs != 70 {
			t.Errorf("after a failed change: %s, %d GB", v.LifecycleState, *v.SizeInGBs)
		}

		b.change(func(t *ocisim.Behaviour) { t.ResizeProvisions, t.ResizeShownAtOnce = false, true })
		v, err = b.updateVolume(id, core.UpdateVolumeDetails{SizeInGBs: common.Int64(90)})
		if must(t, v, err); v.LifecycleState != core.VolumeLifecycleStateAvailable || *v.SizeInGBs != 90 {
			t.Errorf("with the other behaviour: %s, %d GB", v.LifecycleState, *v.SizeInGBs)
		}
	})
}

func TestClone(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		b := newBlocks(t, ocisim.Options{})
		source := b.region.AddVolume(ocisim.Volume{AvailabilityDomain: b.ad, SizeInGBs: 60})
		clone := func(change func(*core.CreateVolumeDetails)) (core.Volume, error) {
			return b.create(func(d *core.CreateVolumeDetails) {
				d.AvailabilityDomain, d.SizeInGBs = nil, nil
				d.SourceDetails = core.VolumeSourceFromVolumeDetails{Id: &source}
				if change != nil {
					change(d)
				}
			})
		}
		_, err := clone(func(d *core.CreateVolumeDetails) { d.SizeInGBs = common.Int64(59) })
		blockRefused(t, err, http.StatusBadRequest, "InvalidParameter")
		_, err = clone(func(d *core.CreateVolumeDetails) { d.AvailabilityDomain = &b.region.Options().AvailabilityDomains[2] })
		blockRefused(t, err, http.StatusBadRequest, "InvalidParameter")

		v, err := clone(nil)
		must(t, v, err)
		from, ok := v.SourceDetails.(core.VolumeSourceFromVolumeDetails)
		if *v.IsHydrated || *v.SizeInGBs != 60 || *v.AvailabilityDomain != b.ad || !ok || *from.Id != source {
			t.Errorf("clone %v", v)
		}
		blockRefused(t, b.deleteVolume(source), http.StatusConflict, "Conflict")
		time.Sleep(8 * time.Second)
		if v := b.getVolume(*v.Id); v.LifecycleState != core.VolumeLifecycleStateAvailable || *v.IsHydrated {
			t.Errorf("clone is %s, hydrated %v", v.LifecycleState, *v.IsHydrated)
		}
		blockRefused(t, b.deleteVolume(source), http.StatusConflict, "Conflict")
		_, err = b.updateVolume(*v.Id, core.UpdateVolumeDetails{SizeInGBs: common.Int64(99)})
		blockRefused(t, err, http.StatusConflict, "Conflict")
		_, err = b.backup(*v.Id)
		blockRefused(t, err, http.StatusConflict, "Conflict")
		_, err = clone(func(d *core.CreateVolumeDetails) { d.SourceDetails = core.VolumeSourceFromVolumeDetails{Id: v.Id} })
		blockRefused(t, err, http.StatusConflict, "Conflict")
		time.Sleep(time.Minute)
		if !*b.getVolume(*v.Id).IsHydrated {
			t.Error("not hydrated")
		}
		if err := b.deleteVolume(source); err != nil {
			t.Error(err)
		}
		_, err = clone(nil)
		blockRefused(t, err, http.StatusBadRequest, "RelatedResourceNotAuthorizedOrNotFound")
	})
}

func TestBackupAndRestore(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		b := newBlocks(t, ocisim.Options{})
		source := b.volume()
		made, err := b.backup(source)
		if must(t, made, err); made.LifecycleState != core.VolumeBackupLifecycleStateRequestReceived || *made.VolumeId != source ||
			made.Type != core.VolumeBackupTypeIncremental || *made.SizeInGBs != 50 || *made.CompartmentId != b.compartment {
			t.Errorf("backup %v", made)
		}
		state := func(want core.VolumeBackupLifecycleStateEnum) {
			t.Helper()
			r, err := b.storage.GetVolumeBackup(t.Context(), core.GetVolumeBackupRequest{VolumeBackupId: made.Id})
			if must(t, r, err).LifecycleState != want {
				t.Errorf("backup is %s, want %s", r.LifecycleState, want)
			}
		}
		restore := func(d *core.CreateVolumeDetails) {
			d.SizeInGBs, d.SourceDetails = nil, core.VolumeSourceFromVolumeBackupDetails{Id: made.Id}
		}
		_, err = b.create(restore)
		blockRefused(t, err, http.StatusConflict, "IncorrectState")
		_, err = b.backup(source)
		blockRefused(t, err, http.StatusConflict, "Conflict")
		blockRefused(t, b.deleteVolume(source), http.StatusConflict, "Conflict")
		blockRefused(t, b.deleteBackup(*made.Id), http.StatusConflict, "IncorrectState")
		time.Sleep(3 * time.Second)
		state(core.VolumeBackupLifecycleStateCreating)
		time.Sleep(40 * time.Second)
		state(core.VolumeBackupLifecycleStateAvailable)

		// A backup outlives its volume, and can be restored in any domain.
		if err := b.deleteVolume(source); err != nil {
			t.Fatal(err)
		}
		v := b.mustCreate(restore)
		time.Sleep(8 * time.Second)
		b.volumeIn(*v.Id, core.VolumeLifecycleStateRestoring)
		blockRefused(t, b.deleteBackup(*made.Id), http.StatusConflict, "Conflict")
		time.Sleep(20 * time.Second)
		b.volumeIn(*v.Id, core.VolumeLifecycleStateAvailable)
		if *b.getVolume(*v.Id).IsHydrated {
			t.Error("hydrated at once")
		}
		time.Sleep(time.Minute)
		if !*b.getVolume(*v.Id).IsHydrated {
			t.Error("not hydrated")
		}
		if err := b.deleteBackup(*made.Id); err != nil {
			t.Fatal(err)
		}
		state(core.VolumeBackupLifecycleStateTerminating)
		time.Sleep(4 * time.Second)
		state(core.VolumeBackupLifecycleStateTerminated)
		blockRefused(t, b.deleteBackup(*made.Id), http.StatusNotFound, "NotAuthorizedOrNotFound")
	})
}

func (b *blocks) deleteBackup(id string) error {
	_, err := b.storage.DeleteVolumeBackup(b.t.Context(), core.DeleteVolumeBackupRequest{VolumeBackupId: &id})
	return err
}

func TestBackupFaultsAndProtection(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		b := newBlocks(t, ocisim.Options{})
		source := b.volume()
		b.region.Fault(ocisim.Fault{Operation: "CreateVolumeBackup", FailWork: true, Times: 1})
		made, err := b.backup(source)
		must(t, made, err)
		time.Sleep(time.Minute)
		if got := b.region.VolumeBackups()[0].LifecycleState; got != core.VolumeBackupLifecycleStateFaulty {
			t.Errorf("backup is %s", got)
		}
		if err := b.deleteBackup(*made.Id); err != nil {
			t.Fatal(err)
		}
		b.change(func(t *ocisim.Behaviour) { t.ServiceLimits["backup-count"] = 1 })
		made, err = b.backup(source)
		must(t, made, err)
		time.Sleep(time.Minute)
		_, err = b.backup(source)
		blockRefused(t, err, http.StatusBadRequest, "LimitExceeded")

		update := func(d core.UpdateVolumeBackupDetails) {
			t.Helper()
			r, err := b.storage.UpdateVolumeBackup(t.Context(), core.UpdateVolumeBackupRequest{VolumeBackupId: made.Id, UpdateVolumeBackupDetails: d})
			must(t, r, err)
		}
		update(core.UpdateVolumeBackupDetails{IsPreventDeletionEnabled: common.Bool(true)})
		blockRefused(t, b.deleteBackup(*made.Id), http.StatusConflict, "Conflict")
		update(core.UpdateVolumeBackupDetails{IsPreventDeletionEnabled: common.Bool(false), RetentionPeriod: &core.RetentionDuration{
			RetentionTimeUnit: core.RetentionDurationRetentionTimeUnitDays, RetentionTimeAmount: common.Int(2),
		}})
		blockRefused(t, b.deleteBackup(*made.Id), http.StatusConflict, "Conflict")
		time.Sleep(48 * time.Hour)
		if err := b.deleteBackup(*made.Id); err != nil {
			t.Error(err)
		}
	})
}

func TestListBackupsOfAVolume(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		b := newBlocks(t, ocisim.Options{})
		one, two := b.volume(), b.volume()
		for i := range 3 {
			b.region.AddVolumeBackup(ocisim.VolumeBackup{Volume: one, Name: string(rune('a' + i))})
		}
		b.region.AddVolumeBackup(ocisim.VolumeBackup{Volume: two, Name: "a"})
		list := func(volume, name *string) int {
			r, err := b.storage.ListVolumeBackups(t.Context(), core.ListVolumeBackupsRequest{CompartmentId: &b.compartment, VolumeId: volume, DisplayName: name})
			return len(must(t, r, err).Items)
		}
		got := []int{list(nil, nil), list(&one, nil), list(&two, nil), list(&one, common.String("a")), list(nil, common.String("a"))}
		if !slices.Equal(got, []int{4, 3, 1, 1, 2}) {
			t.Errorf("lists have %v backups", got)
		}
	})
}

func TestAutoTune(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		b := newBlocks(t, ocisim.Options{})
		v := b.mustCreate(func(d *core.CreateVolumeDetails) {
			d.AutotunePolicies = []core.AutotunePolicy{core.DetachedVolumeAutotunePolicy{}}
		})
		if !*v.IsAutoTuneEnabled || *v.AutoTunedVpusPerGB != 10 || len(v.AutotunePolicies) != 1 {
			t.Errorf("volume %v", v)
		}
		tuned := func(want int64) {
			t.Helper()
			if got := *b.getVolume(*v.Id).AutoTunedVpusPerGB; got != want {
				t.Errorf("tuned to %d, want %d", got, want)
			}
		}
		time.Sleep(13 * 24 * time.Hour)
		tuned(10)
		time.Sleep(25 * time.Hour)
		tuned(0)
		a := b.attached(b.instance, *v.Id, nil)
		tuned(10)
		time.Sleep(20 * 24 * time.Hour)
		tuned(10)
		if err := b.detach(*a.GetId()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(15 * 24 * time.Hour)
		tuned(0)
	})
}
