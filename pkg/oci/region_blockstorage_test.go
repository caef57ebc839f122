// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package oci_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/oracle/oci-go-sdk/v65/common"
	"github.com/oracle/oci-go-sdk/v65/core"

	"github.com/oracle/oci-cloud-controller-manager/pkg/oci"
	"github.com/oracle/oci-cloud-controller-manager/test/ocisim"
)

// disks is a region with a compartment and an instance.
type disks struct {
	*testing.T
	region                    *ocisim.Region
	client                    *oci.Client
	compartment, ad, instance string
}

func withDisks(t *testing.T, o ocisim.Options, test func(d *disks)) {
	t.Helper()
	regionKey()
	synctest.Test(t, func(t *testing.T) {
		d := &disks{T: t, region: ocisim.New(o)}
		d.compartment = d.region.AddCompartment(ocisim.Compartment{Name: "cluster"})
		d.ad = d.region.Options().AvailabilityDomains[0]
		d.instance = d.region.AddInstance(ocisim.Instance{Compartment: d.compartment, Name: "node", AvailabilityDomain: d.ad})
		d.client = connect(t, d.region)
		test(d)
	})
}

// What is asked for is what a read says, for a volume and its changes.
func TestVolumesOfARegion(t *testing.T) {
	withDisks(t, ocisim.Options{PageSize: 2, ShortPages: 0.3, EventualReads: 1}, func(d *disks) {
		s := d.client.BlockStorage()
		want := &oci.Volume{
			CompartmentID: d.compartment, AvailabilityDomain: d.ad, DisplayName: "data", SizeBytes: 70<<30 - 1, VPUsPerGB: common.Int64(20),
			AutoTune: oci.AutoTune{Detached: true, MaxVPUs: 40}, KMSKeyID: "ocid1.key.oc1..k",
			Tags: oci.Tags{Freeform: map[string]string{"a": "b"}, Defined: map[string]map[string]any{}},
		}
		made, err := s.CreateVolume(d.Context(), want, "token")
		if err != nil {
			t.Fatal(err)
		}
		again, err := s.CreateVolume(d.Context(), want, "token")
		if err != nil || again.ID != made.ID {
			t.Errorf("under the same token: %v, %v", again, err)
		}
		if _, err := s.GetVolume(d.Context(), made.ID); err != nil { // though it does not show up at once
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		got, err := s.GetVolume(d.Context(), made.ID)
		if err != nil {
			t.Fatal(err)
		}
		want.ID, want.SizeBytes, want.State, want.Hydrated = made.ID, 70<<30, oci.VolumeAvailable, true
		want.TimeCreated, want.ETag = got.TimeCreated, got.ETag
		if diff := cmp.Diff(want, got); diff != "" || got.ETag == "" || got.TimeCreated.IsZero() {
			t.Error(diff)
		}

		if _, err := s.UpdateVolume(d.Context(), got.ID, oci.VolumeChange{SizeGB: 80}, "outdated"); !errors.Is(err, oci.ErrPrecondition) {
			t.Errorf("error %v", err)
		}
		if _, err := s.UpdateVolume(d.Context(), got.ID, oci.VolumeChange{SizeGB: 80, AutoTune: &oci.AutoTune{}}, got.ETag); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		got, err = s.GetVolume(d.Context(), made.ID)
		want.ETag, want.SizeBytes, want.AutoTune = got.ETag, 80<<30, oci.AutoTune{}
		if diff := cmp.Diff(want, got); diff != "" || err != nil || got.SizeGB() != 80 {
			t.Errorf("what was not spoken of changed: %s, %v", diff, err)
		}

		for i := range 5 {
			d.region.AddVolume(ocisim.Volume{Compartment: d.compartment, Name: fmt.Sprint(i)})
		}
		all, err := s.ListVolumes(d.Context(), d.compartment, "")
		if err != nil || len(all) != 6 {
			t.Errorf("%d volumes, %v", len(all), err)
		}
		named, err := s.ListVolumes(d.Context(), d.compartment, "data")
		if err != nil || len(named) != 1 || named[0].ID != made.ID {
			t.Errorf("%v, %v", named, err)
		}
		if err := s.DeleteVolume(d.Context(), made.ID); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		if err := s.DeleteVolume(d.Context(), made.ID); !errors.Is(err, oci.ErrNotFound) {
			t.Errorf("error %v", err)
		}
	})
}

func TestBackupsAndGroupsOfARegion(t *testing.T) {
	withDisks(t, ocisim.Options{}, func(d *disks) {
		s := d.client.BlockStorage()
		volume := d.region.AddVolume(ocisim.Volume{Compartment: d.compartment, AvailabilityDomain: d.ad, SizeInGBs: 60})
		b, err := s.CreateVolumeBackup(d.Context(), &oci.VolumeBackup{VolumeID: volume, DisplayName: "one", Full: true, Tags: oci.Tags{Freeform: map[string]string{"a": "b"}}}, "")
		if err != nil || b.VolumeID != volume || !b.Full || b.SizeBytes != 60<<30 || b.Freeform["a"] != "b" {
			t.Fatalf("%+v, %v", b, err)
		}
		time.Sleep(5 * time.Minute)
		if b, err = s.GetVolumeBackup(d.Context(), b.ID); err != nil || b.State != oci.BackupAvailable {
			t.Errorf("%+v, %v", b, err)
		}
		for _, source := range []oci.Volume{{SourceBackupID: b.ID}, {SourceVolumeID: volume}} {
			source.CompartmentID, source.AvailabilityDomain = d.compartment, d.ad
			v, err := s.CreateVolume(d.Context(), &source, "")
			if err != nil || v.SourceBackupID != source.SourceBackupID || v.SourceVolumeID != source.SourceVolumeID || v.Hydrated || v.SizeBytes != 60<<30 {
				t.Errorf("%+v, %v", v, err)
			}
		}
		list, err := s.ListVolumeBackups(d.Context(), d.compartment, volume, "one")
		if err != nil || len(list) != 1 {
			t.Errorf("%v, %v", list, err)
		}
		time.Sleep(5 * time.Minute)
		if err := s.DeleteVolumeBackup(d.Context(), b.ID); err != nil {
			t.Error(err)
		}

		g, err := s.CreateVolumeGroup(d.Context(), &oci.VolumeGroup{CompartmentID: d.compartment, AvailabilityDomain: d.ad, DisplayName: "group", VolumeIDs: []string{volume}}, "")
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		if g, err = s.GetVolumeGroup(d.Context(), g.ID); err != nil || g.State != oci.GroupAvailable || !slices.Equal(g.VolumeIDs, []string{volume}) {
			t.Errorf("%+v, %v", g, err)
		}
		if v, err := s.GetVolume(d.Context(), volume); err != nil || v.GroupID != g.ID {
			t.Errorf("%+v, %v", v, err)
		}
		gb, err := s.CreateVolumeGroupBackup(d.Context(), &oci.VolumeGroupBackup{GroupID: g.ID, DisplayName: "group"}, "")
		if err != nil || len(gb.BackupIDs) != 1 || gb.GroupID != g.ID {
			t.Fatalf("%+v, %v", gb, err)
		}
		time.Sleep(5 * time.Minute)
		if gb, err = s.GetVolumeGroupBackup(d.Context(), gb.ID); err != nil || gb.State != oci.BackupAvailable {
			t.Errorf("%+v, %v", gb, err)
		}
		if one, err := s.GetVolumeBackup(d.Context(), gb.BackupIDs[0]); err != nil || one.GroupBackupID != gb.ID {
			t.Errorf("%+v, %v", one, err)
		}
		groups, err := s.ListVolumeGroups(d.Context(), d.compartment, "group")
		backups, err2 := s.ListVolumeGroupBackups(d.Context(), d.compartment, "group")
		if err != nil || err2 != nil || len(groups) != 1 || len(backups) != 1 {
			t.Errorf("%v, %v, %v, %v", groups, err, backups, err2)
		}
		if err := errors.Join(s.DeleteVolumeGroup(d.Context(), g.ID), s.DeleteVolumeGroupBackup(d.Context(), gb.ID)); err != nil {
			t.Error(err)
		}
	})
}

func TestAttachmentsOfARegion(t *testing.T) {
	withDisks(t, ocisim.Options{PageSize: 5}, func(d *disks) {
		s := d.client.Compute()
		devices, err := s.ListInstanceDevices(d.Context(), d.instance)
		if err != nil || len(devices) != 32 || !devices[0].Free || devices[0].Path != "/dev/oracleoci/oraclevdb" {
			t.Fatalf("%v, %v", devices, err)
		}
		fast := d.region.AddVolume(ocisim.Volume{Compartment: d.compartment, AvailabilityDomain: d.ad, VpusPerGB: common.Int64(30)})
		plain := d.region.AddVolume(ocisim.Volume{Compartment: d.compartment, AvailabilityDomain: d.ad})
		for _, want := range []oci.Attach{
			{Type: oci.AttachISCSI, VolumeID: fast, DisplayName: "node", Device: devices[0].Path, CHAP: true, Shareable: true},
			{Type: oci.AttachParavirtualized, VolumeID: plain, Device: devices[1].Path, EncryptPV: true, ReadOnly: true},
		} {
			want.InstanceID = d.instance
			made, err := s.AttachVolume(d.Context(), want, "")
			if err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Minute)
			a, err := s.GetVolumeAttachment(d.Context(), made.ID)
			if err != nil {
				t.Fatal(err)
			}
			iscsi := want.Type == oci.AttachISCSI
			if a.State != oci.AttachmentAttached || a.Type != want.Type || a.VolumeID != want.VolumeID || a.InstanceID != d.instance || a.Device != want.Device ||
				a.Shareable != want.Shareable || a.ReadOnly != want.ReadOnly || a.EncryptedPV != want.EncryptPV || a.CompartmentID != d.compartment ||
				(a.IQN != "" && a.IPv4 != "" && a.Port == 3260 && a.Multipath && len(a.Paths) == 2 && a.CHAPUser != "" && a.CHAPSecret != "") != iscsi ||
				want.DisplayName != "" && a.DisplayName != want.DisplayName {
				t.Errorf("asked for %+v, got %+v", want, a)
			}
			if text := fmt.Sprintf("%+v", a); iscsi && strings.Contains(text, string(a.CHAPSecret)) {
				t.Error("the secret is printed")
			}
			list, err := s.ListVolumeAttachments(d.Context(), d.compartment, oci.AttachmentFilter{VolumeID: want.VolumeID, InstanceID: d.instance})
			if err != nil || len(list) != 1 {
				t.Errorf("%v, %v", list, err)
			}
			if err := s.DetachVolume(d.Context(), a.ID); err != nil {
				t.Error(err)
			}
			time.Sleep(time.Minute)
			if err := s.DetachVolume(d.Context(), a.ID); !errors.Is(err, oci.ErrNotFound) {
				t.Errorf("error %v", err)
			}
		}
		if i, err := s.GetInstance(d.Context(), d.instance); err != nil || i.PVEncryption {
			t.Errorf("%+v, %v", i, err)
		}
		_ = d.region.Foreign().Instance(d.instance, func(i *core.Instance) { i.LaunchOptions.IsPvEncryptionInTransitEnabled = new(true) })
		if i, err := s.GetInstance(d.Context(), d.instance); err != nil || !i.PVEncryption {
			t.Errorf("%+v, %v", i, err)
		}
		boot := *d.region.BootVolumes()[0].Id
		if v, err := d.client.BlockStorage().GetBootVolume(d.Context(), boot); err != nil || v.ID != boot || v.SizeBytes < 47<<30 || v.State != oci.VolumeAvailable {
			t.Errorf("%+v, %v", v, err)
		}
	})
}

// A domain without room is an answer: it is not asked again for half a minute.
func TestOutOfCapacity(t *testing.T) {
	withDisks(t, ocisim.Options{}, func(d *disks) {
		d.region.SetBehaviour(func(b *ocisim.Behaviour) { b.VolumeCapacity[d.ad] = 0 })
		v := &oci.Volume{CompartmentID: d.compartment, AvailabilityDomain: d.ad, SizeBytes: 50 << 30}
		_, err := d.client.BlockStorage().CreateVolume(d.Context(), v, "")
		if !errors.Is(err, oci.ErrOutOfCapacity) || d.region.Counts()["blockstorage.CreateVolume"] != 1 {
			t.Errorf("%v after %d calls", err, d.region.Counts()["blockstorage.CreateVolume"])
		}
		for _, code := range []string{"SeOutOfCapacity", "OutOfCapacity"} {
			d.region.Fault(ocisim.Fault{Operation: "CreateVolume", Status: 400, Code: code, Nth: 1})
			if _, err := d.client.BlockStorage().CreateVolume(d.Context(), v, ""); !errors.Is(err, oci.ErrOutOfCapacity) {
				t.Errorf("%s: %v", code, err)
			}
		}
		d.region.Fault(ocisim.Fault{Operation: "CreateVolume", Status: 500, Nth: 1, Times: 8})
		if _, err := d.client.BlockStorage().CreateVolume(d.Context(), v, ""); errors.Is(err, oci.ErrOutOfCapacity) {
			t.Errorf("any failure is taken for it: %v", err)
		}
	})
}
