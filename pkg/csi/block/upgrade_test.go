// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package block_test

import (
	"testing"
	"time"

	spec "github.com/container-storage-interface/spec/lib/go/csi"
	"github.com/google/go-cmp/cmp"
	"github.com/oracle/oci-go-sdk/v65/core"
	"google.golang.org/grpc/codes"

	"github.com/oracle/oci-cloud-controller-manager/test/ocisim"
)

// oldSnapshot has the form of the names that external-snapshotter gives.
const oldSnapshot = "snapshot-6f1c9ab0-52b4-4f63-9d4e-1a2b3c4d5e6f"

// oldWorld is what v1.35 leaves (contract storage.md §2.5, §3.1, §3.5): a volume and a backup that are known by their display names, without
// our marks, and an attachment whose name the service chose.
type oldWorld struct{ volume, backup string }

func (b *bed) oldWorld(instance string) oldWorld {
	volume := b.volume(func(v *ocisim.Volume) { v.Name, v.SizeInGBs = newName, 100 })
	b.region.AddVolumeAttachment(ocisim.VolumeAttachment{Volume: volume, Instance: instance, Type: "iscsi", Device: "/dev/oracleoci/oraclevdb"})
	return oldWorld{volume, b.region.AddVolumeBackup(ocisim.VolumeBackup{Volume: volume, Name: oldSnapshot})}
}

// TestVolumesOfV135: what the existing implementation has made and attached is found, used, expanded, detached and deleted; nothing of it is made
// again or written without need.
func TestVolumesOfV135(t *testing.T) {
	inBed(t, ocisim.Options{}, func(b *bed) {
		old := b.oldWorld(b.one)
		b.region.ResetCalls()
		// v1.35 makes a volume as large as the limit; that lies within what is asked for.
		found := must(b, b.c.CreateVolume, b.ask(func(r *spec.CreateVolumeRequest) {
			r.CapacityRange = &spec.CapacityRange{RequiredBytes: 60 * gib, LimitBytes: 100 * gib}
		})).GetVolume()
		if found.GetVolumeId() != old.volume || found.GetCapacityBytes() != 100*gib {
			b.Errorf("found %v", found)
		}
		context := must(b, b.c.ControllerPublishVolume, publish(old.volume, "node-1")).GetPublishContext()
		for _, key := range []string{"attachment-type", "iscci_iqn", "iscsi_ip", "iscsi_port", "device", "vpusPerGB", "needResize", "newSize", "multipathEnabled", "multipathDevices"} {
			if _, there := context[key]; !there {
				b.Errorf("the publish context has no %s, which a node of v1.35 reads", key)
			}
		}
		_, err := call(b, b.c.ControllerPublishVolume, publish(old.volume, "node-2"))
		b.refused(err, codes.FailedPrecondition)
		snapshot := must(b, b.c.CreateSnapshot, &spec.CreateSnapshotRequest{Name: oldSnapshot, SourceVolumeId: old.volume}).GetSnapshot()
		if snapshot.GetSnapshotId() != old.backup || !snapshot.GetReadyToUse() {
			b.Errorf("snapshot %v", snapshot)
		}
		if w := b.writes(); len(w) != 0 {
			b.Errorf("writes %v", w)
		}
		must(b, b.c.ControllerExpandVolume, &spec.ControllerExpandVolumeRequest{VolumeId: old.volume, CapacityRange: &spec.CapacityRange{RequiredBytes: 120 * gib}})
		must(b, b.c.ControllerUnpublishVolume, &spec.ControllerUnpublishVolumeRequest{VolumeId: old.volume, NodeId: "node-1"})
		if open := b.open(); len(open) != 0 {
			b.Errorf("still attached: %v", open)
		}
		must(b, b.c.DeleteSnapshot, &spec.DeleteSnapshotRequest{SnapshotId: old.backup})
		time.Sleep(time.Minute)
		must(b, b.c.DeleteVolume, &spec.DeleteVolumeRequest{VolumeId: old.volume})
		if diff := cmp.Diff([]string{"DeleteVolume", "DeleteVolumeBackup", "DetachVolume", "UpdateVolume"}, b.writes()); diff != "" {
			b.Errorf("writes (-want +got)\n%s", diff)
		}
	})
}

// TestAttachmentOfV135AtANodeThatIsGone: the attachment does not say which Node it was for; the name of the instance does.
func TestAttachmentOfV135AtANodeThatIsGone(t *testing.T) {
	inBed(t, ocisim.Options{}, func(b *bed) {
		old := b.oldWorld(b.one)
		b.cluster.nodes = b.cluster.nodes[1:]
		must(b, b.c.ControllerUnpublishVolume, &spec.ControllerUnpublishVolumeRequest{VolumeId: old.volume, NodeId: "node-1"})
		if open := b.open(); len(open) != 0 {
			b.Errorf("still attached: %v", open)
		}
	})
}

// TestRollBackToV135: what v1.35 looks for is there: a volume by its display name alone, an attachment by volume and instance, and contexts with its keys.
func TestRollBackToV135(t *testing.T) {
	inBed(t, ocisim.Options{}, func(b *bed) {
		made := must(b, b.c.CreateVolume, b.ask()).GetVolume()
		if diff := cmp.Diff(map[string]string{"attachment-type": "", "vpusPerGB": "10", "needResize": "false", "newSize": ""}, made.GetVolumeContext()); diff != "" {
			b.Error(diff)
		}
		must(b, b.c.ControllerPublishVolume, publish(made.GetVolumeId(), "node-1"))
		v, _ := b.region.Volume(made.GetVolumeId())
		a := b.attachmentAt(made.GetVolumeId(), b.one)
		if *v.DisplayName != newName || *v.CompartmentId != b.compartment || *a.GetCompartmentId() != b.compartment || *a.GetIsShareable() {
			b.Errorf("volume %v, attachment %v", v, a)
		}
		if _, iscsi := a.(core.IScsiVolumeAttachment); !iscsi {
			b.Errorf("attachment %T", a)
		}
		snapshot := must(b, b.c.CreateSnapshot, &spec.CreateSnapshotRequest{Name: oldSnapshot, SourceVolumeId: made.GetVolumeId()}).GetSnapshot()
		for _, backup := range b.region.VolumeBackups() {
			if *backup.Id == snapshot.GetSnapshotId() && *backup.DisplayName != oldSnapshot {
				b.Errorf("backup %v", backup)
			}
		}
	})
}
