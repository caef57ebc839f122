// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package block_test

import (
	"slices"
	"testing"
	"time"

	spec "github.com/container-storage-interface/spec/lib/go/csi"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/codes"

	"github.com/oracle/oci-cloud-controller-manager/test/ocisim"
)

// TestSnapshots: C100. The answer comes as soon as the backup exists; there is one, however often it is asked for.
func TestSnapshots(t *testing.T) {
	inBed(t, ocisim.Options{}, func(b *bed) {
		volume := b.volume(func(v *ocisim.Volume) { v.SizeInGBs = 70 })
		request := &spec.CreateSnapshotRequest{Name: "snapshot-1", SourceVolumeId: volume, Parameters: map[string]string{"backupType": "FULL"}}
		time.Sleep(time.Minute)
		before := time.Now()
		made := must(b, b.c.CreateSnapshot, request).GetSnapshot()
		if made.GetReadyToUse() || time.Since(before) > time.Minute || made.GetSizeBytes() != 70*gib || made.GetSourceVolumeId() != volume || !made.GetCreationTime().IsValid() {
			b.Errorf("after %s: %v", time.Since(before), made)
		}
		for range 400 {
			if again := must(b, b.c.CreateSnapshot, request).GetSnapshot(); again.GetSnapshotId() != made.GetSnapshotId() {
				b.Fatal("another backup")
			} else if again.GetReadyToUse() {
				break
			}
			time.Sleep(5 * time.Second)
		}
		got := must(b, b.c.GetSnapshot, &spec.GetSnapshotRequest{SnapshotId: made.GetSnapshotId()}).GetSnapshot()
		if !got.GetReadyToUse() {
			b.Errorf("not ready: %v", got)
		}
		if n := b.region.Counts()["blockstorage.CreateVolumeBackup"]; n != 1 {
			b.Errorf("%d backups were made", n)
		}
		second := must(b, b.c.CreateSnapshot, &spec.CreateSnapshotRequest{Name: "snapshot-2", SourceVolumeId: b.volume()}).GetSnapshot()
		for name, tt := range map[string]struct {
			ask  *spec.ListSnapshotsRequest
			want int
		}{
			"all": {&spec.ListSnapshotsRequest{}, 2}, "of a volume": {&spec.ListSnapshotsRequest{SourceVolumeId: volume}, 1},
			"by ID": {&spec.ListSnapshotsRequest{SnapshotId: second.GetSnapshotId()}, 1}, "by ID of another": {&spec.ListSnapshotsRequest{SnapshotId: second.GetSnapshotId(), SourceVolumeId: volume}, 0},
			"unknown": {&spec.ListSnapshotsRequest{SnapshotId: "ocid1.volumebackup.oc1.iad.none"}, 0}, "no ID": {&spec.ListSnapshotsRequest{SnapshotId: "x"}, 0},
			"of no ID": {&spec.ListSnapshotsRequest{SourceVolumeId: "x"}, 0}, "one": {&spec.ListSnapshotsRequest{MaxEntries: 1}, 1},
		} {
			if list := must(b, b.c.ListSnapshots, tt.ask).GetEntries(); len(list) != tt.want {
				b.Errorf("%s: %v", name, list)
			}
		}
		_, err := call(b, b.c.CreateSnapshot, &spec.CreateSnapshotRequest{Name: "snapshot-1", SourceVolumeId: b.volume()})
		b.refused(err, codes.AlreadyExists)
		_, err = call(b, b.c.CreateSnapshot, &spec.CreateSnapshotRequest{Name: "snapshot-3", SourceVolumeId: volume, Parameters: map[string]string{"backupType": "bogus"}})
		b.refused(err, codes.InvalidArgument)
		for _, id := range []string{made.GetSnapshotId(), made.GetSnapshotId(), "ocid1.volumebackup.oc1.iad.none", "x"} {
			must(b, b.c.DeleteSnapshot, &spec.DeleteSnapshotRequest{SnapshotId: id})
		}
	})
}

// TestGroupSnapshots: volumes of two domains are backed up, and the temporary groups go.
func TestGroupSnapshots(t *testing.T) {
	inBed(t, ocisim.Options{}, func(b *bed) {
		volumes := []string{b.volume(), b.volume(), b.volume(func(v *ocisim.Volume) { v.AvailabilityDomain = b.elsewhere })}
		made := must(b, b.c.CreateVolumeGroupSnapshot, &spec.CreateVolumeGroupSnapshotRequest{Name: "groupsnapshot-1", SourceVolumeIds: volumes}).GetGroupSnapshot()
		var members, sources []string
		for _, s := range made.GetSnapshots() {
			members, sources = append(members, s.GetSnapshotId()), append(sources, s.GetSourceVolumeId())
			if s.GetGroupSnapshotId() != made.GetGroupSnapshotId() {
				b.Errorf("snapshot %v is of another group than %s", s, made.GetGroupSnapshotId())
			}
		}
		slices.Sort(sources)
		slices.Sort(volumes)
		if diff := cmp.Diff(volumes, sources); diff != "" {
			b.Error(diff)
		}
		ask := &spec.GetVolumeGroupSnapshotRequest{GroupSnapshotId: made.GetGroupSnapshotId(), SnapshotIds: members}
		for range 400 {
			if must(b, b.c.GetVolumeGroupSnapshot, ask).GetGroupSnapshot().GetReadyToUse() {
				break
			}
			time.Sleep(5 * time.Second)
		}
		if !must(b, b.c.GetVolumeGroupSnapshot, ask).GetGroupSnapshot().GetReadyToUse() {
			b.Error("not ready")
		}
		stranger := b.region.AddVolumeBackup(ocisim.VolumeBackup{Volume: volumes[0]})
		_, err := call(b, b.c.DeleteVolumeGroupSnapshot, &spec.DeleteVolumeGroupSnapshotRequest{GroupSnapshotId: made.GetGroupSnapshotId(), SnapshotIds: append(members, stranger)})
		b.refused(err, codes.InvalidArgument)
		for range 2 {
			must(b, b.c.DeleteVolumeGroupSnapshot, &spec.DeleteVolumeGroupSnapshotRequest{GroupSnapshotId: made.GetGroupSnapshotId(), SnapshotIds: members})
			time.Sleep(time.Minute)
		}
		_, err = call(b, b.c.GetVolumeGroupSnapshot, ask)
		b.refused(err, codes.NotFound)
	})
}
