// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package block_test

import (
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	spec "github.com/container-storage-interface/spec/lib/go/csi"
	"github.com/google/go-cmp/cmp"
	"github.com/oracle/oci-go-sdk/v65/core"
	"google.golang.org/grpc/codes"

	"github.com/oracle/oci-cloud-controller-manager/pkg/csi/block"
	"github.com/oracle/oci-cloud-controller-manager/test/ocisim"
)

// attachmentAt is the attachment of a volume to an instance, as the cloud has it.
func (b *bed) attachmentAt(volume, instance string) core.VolumeAttachment {
	b.Helper()
	for _, a := range b.open() {
		if *a.GetVolumeId() == volume && *a.GetInstanceId() == instance {
			return a
		}
	}
	b.Fatalf("volume %s is not attached to %s", volume, instance)
	return nil
}

// encrypts has an instance encrypt its paravirtualized attachments in transit.
func (b *bed) encrypts(instance string) {
	b.Helper()
	if err := b.region.Foreign().Instance(instance, func(i *core.Instance) { i.LaunchOptions.IsPvEncryptionInTransitEnabled = new(true) }); err != nil {
		b.Fatal(err)
	}
}

// TestPublishContext: what the node gets (contract storage.md §3.1), and a second call gets the same.
func TestPublishContext(t *testing.T) {
	inBed(t, ocisim.Options{}, func(b *bed) {
		volume := b.volume(func(v *ocisim.Volume) { v.SizeInGBs = 70 })
		request := publish(volume, "node-1", func(r *spec.ControllerPublishVolumeRequest) {
			r.VolumeContext["vpusPerGB"], r.VolumeContext["needResize"], r.VolumeContext["newSize"] = "20", "true", "75161927680"
		})
		got := must(b, b.c.ControllerPublishVolume, request).GetPublishContext()
		cloud, ok := b.attachmentAt(volume, b.one).(core.IScsiVolumeAttachment)
		if !ok {
			b.Fatal("an empty attachment-type is iSCSI")
		}
		want := map[string]string{
			"attachment-type": "iscsi", "iscci_iqn": *cloud.Iqn, "iscsi_ip": *cloud.Ipv4, "iscsi_port": "3260", "device": *cloud.Device, "vpusPerGB": "20",
			"needResize": "true", "newSize": "75161927680", "multipathEnabled": "false", "multipathDevices": "", "size": "75161927680",
		}
		if diff := cmp.Diff(want, got); diff != "" {
			b.Error(diff)
		}
		if *cloud.DisplayName != "node-1" {
			b.Errorf("display name %s, want the Node's name, by which it is found when the Node is gone", *cloud.DisplayName)
		}
		b.region.ResetCalls()
		if diff := cmp.Diff(want, must(b, b.c.ControllerPublishVolume, request).GetPublishContext()); diff != "" {
			b.Errorf("the second time: %s", diff)
		}
		if w := b.writes(); len(w) != 0 {
			b.Errorf("the second time: %v", w)
		}
		other := b.volume()
		got = must(b, b.c.ControllerPublishVolume, publish(other, "node-2", func(r *spec.ControllerPublishVolumeRequest) {
			r.VolumeContext = map[string]string{"attachment-type": "paravirtualized"} // a PV that was made by hand
		})).GetPublishContext()
		if diff := cmp.Diff(map[string]string{
			"attachment-type": "paravirtualized", "device": *b.attachmentAt(other, b.two).GetDevice(), "vpusPerGB": "10", "needResize": "", "newSize": "",
			"multipathEnabled": "false", "multipathDevices": "", "size": "53687091200",
		}, got); diff != "" {
			b.Error(diff)
		}
	})
}

// TestPublishRefusals: C091, C095 and requests that make no sense. None of them attaches anything.
func TestPublishRefusals(t *testing.T) {
	inBed(t, ocisim.Options{}, func(b *bed) {
		encrypted := b.addNode("node-3")
		b.encrypts(encrypted)
		b.cluster.nodes = append(b.cluster.nodes, &block.Node{Name: "new"})
		free, taken := b.volume(), b.volume()
		must(b, b.c.ControllerPublishVolume, publish(taken, "node-1"))
		boot := "ocid1.bootvolume.oc1.iad.b"
		b.region.ResetCalls()
		with := func(change func(*spec.ControllerPublishVolumeRequest), volume, node string) *spec.ControllerPublishVolumeRequest {
			return publish(volume, node, change)
		}
		same := func(*spec.ControllerPublishVolumeRequest) {}
		blockRW := func(r *spec.ControllerPublishVolumeRequest) { r.VolumeCapability = device(writer) }
		for name, tt := range map[string]struct {
			request *spec.ControllerPublishVolumeRequest
			code    codes.Code
			says    string
		}{
			"attached elsewhere":      {with(same, taken, "node-2"), codes.FailedPrecondition, "node-1"},
			"attached in another way": {with(func(r *spec.ControllerPublishVolumeRequest) { r.Readonly = true }, taken, "node-1"), codes.AlreadyExists, "reading"},
			"no such Node":            {with(same, free, "node-9"), codes.NotFound, "node-9"},
			"Node without instance":   {with(same, free, "new"), codes.Unavailable, "providerID"},
			"no such volume":          {with(same, "ocid1.volume.oc1.iad.none", "node-1"), codes.NotFound, ""},
			"no ID of a volume":       {with(same, "vol-1", "node-1"), codes.NotFound, "no OCID"},
			"no volume":               {with(same, "", "node-1"), codes.InvalidArgument, "volume ID"},
			"no node":                 {with(same, free, ""), codes.InvalidArgument, "node ID"},
			"no capability":           {with(func(r *spec.ControllerPublishVolumeRequest) { r.VolumeCapability = nil }, free, "node-1"), codes.InvalidArgument, "capability"},
			"iSCSI in a class, encrypted instance": {with(func(r *spec.ControllerPublishVolumeRequest) { r.VolumeContext["attachment-type"] = "iscsi" }, free, "node-3"),
				codes.InvalidArgument, "attachment-type"},
			"emulated":                       {with(func(r *spec.ControllerPublishVolumeRequest) { r.VolumeContext["attachment-type"] = "emulated" }, free, "node-1"), codes.InvalidArgument, "emulated"},
			"boot volume with a file system": {with(same, boot, "node-1"), codes.InvalidArgument, "raw block"},
			"boot volume, paravirtualized": {with(func(r *spec.ControllerPublishVolumeRequest) {
				blockRW(r)
				r.VolumeContext["attachment-type"] = "paravirtualized"
			}, boot, "node-1"), codes.InvalidArgument, "iSCSI"},
			"boot volume, fast": {with(func(r *spec.ControllerPublishVolumeRequest) { blockRW(r); r.VolumeContext["vpusPerGB"] = "20" }, boot, "node-1"), codes.InvalidArgument, "vpusPerGB"},
		} {
			_, err := call(b, b.c.ControllerPublishVolume, tt.request)
			if codeOf(err) != tt.code || !strings.Contains(err.Error(), tt.says) {
				b.Errorf("%s: %v; want %s with %q", name, err, tt.code, tt.says)
			}
		}
		for _, c := range b.region.Calls() {
			if c.Write && c.Status < 400 { // a volume that is not there may be found out by trying
				b.Errorf("write %s", c.Name())
			}
		}
		// A class that is silent gets what the instance can do.
		got := must(b, b.c.ControllerPublishVolume, publish(free, "node-3")).GetPublishContext()
		if pv, ok := b.attachmentAt(free, encrypted).(core.ParavirtualizedVolumeAttachment); !ok || !*pv.IsPvEncryptionInTransitEnabled || got["attachment-type"] != "paravirtualized" {
			b.Errorf("context %v", got)
		}
		b.cluster.broken = errors.New("no API server")
		_, err := call(b, b.c.ControllerPublishVolume, publish(free, "node-3"))
		b.refused(err, codes.Unavailable)
	})
}

// TestSharedBlockVolume: C103. A raw block volume that several nodes may write to is attached to all.
func TestSharedBlockVolume(t *testing.T) {
	inBed(t, ocisim.Options{}, func(b *bed) {
		volume := b.volume()
		for _, node := range []string{"node-1", "node-2"} {
			must(b, b.c.ControllerPublishVolume, publish(volume, node, func(r *spec.ControllerPublishVolumeRequest) { r.VolumeCapability = device(many) }))
		}
		for _, instance := range []string{b.one, b.two} {
			if a := b.attachmentAt(volume, instance); !*a.GetIsShareable() {
				b.Errorf("attachment to %s is not shareable", instance)
			}
		}
	})
}

// TestManyAtOnce: C090, P9. Volumes that come to one node at once get devices of their own, without an error or a second try.
func TestManyAtOnce(t *testing.T) {
	inBed(t, ocisim.Options{}, func(b *bed) {
		const n = 32
		volumes := make([]string, n)
		for i := range volumes {
			volumes[i] = b.volume()
		}
		var all sync.WaitGroup
		for _, v := range volumes {
			all.Go(func() {
				if _, err := call(b, b.c.ControllerPublishVolume, publish(v, "node-1")); err != nil {
					b.Error(err)
				}
			})
		}
		all.Wait()
		devices := map[string]bool{}
		for _, a := range b.open() {
			devices[*a.GetDevice()] = true
		}
		conflicts := 0
		for _, c := range b.region.Calls() {
			if c.Write && c.Status >= 400 {
				conflicts++
			}
		}
		got := b.region.Counts()["compute.AttachVolume"]
		if got != n || len(devices) != n || conflicts > 0 {
			b.Errorf("%d calls of AttachVolume, %d devices, %d refusals; want %d", got, len(devices), conflicts, n)
		}
		b.Logf("budget P9: %d conflicts, %d calls", conflicts, got)
	})
}

// TestUnpublish: C092, C113 at the level of the driver: what decides is the volume's attachments.
func TestUnpublish(t *testing.T) {
	for name, act := range map[string]func(b *bed, volume string){
		"as usual":                      func(*bed, string) {},
		"the Node is gone, the VM runs": func(b *bed, _ string) { b.cluster.nodes = b.cluster.nodes[1:] },
		"the Node is gone, the VM stopped": func(b *bed, _ string) {
			b.cluster.nodes = b.cluster.nodes[1:]
			b.state(core.InstanceLifecycleStateStopped)
		},
		"the Node has no provider ID now": func(b *bed, _ string) { b.cluster.nodes[0].InstanceID = "" },
		"the annotation is missing":       func(b *bed, _ string) { b.cluster.nodes[0].CompartmentID = "" },
		"another instance has the Node now": func(b *bed, _ string) {
			b.cluster.nodes = b.cluster.nodes[1:]
			b.addNode("node-1")
			b.state(core.InstanceLifecycleStateStopped)
		},
	} {
		t.Run(name, func(t *testing.T) {
			inBed(t, ocisim.Options{}, func(b *bed) {
				volume := b.volume()
				must(b, b.c.ControllerPublishVolume, publish(volume, "node-1"))
				act(b, volume)
				b.start() // of another process
				for range 2 {
					must(b, b.c.ControllerUnpublishVolume, &spec.ControllerUnpublishVolumeRequest{VolumeId: volume, NodeId: "node-1"})
				}
				if open := b.open(); len(open) != 0 {
					b.Errorf("still attached: %v", open)
				}
				must(b, b.c.ControllerPublishVolume, publish(volume, "node-2"))
			})
		})
	}
}

// TestUnpublishLeavesOthers: a volume that another cluster has attached to a Node of the same name is left there, and without a node ID all
// attachments of a volume end.
func TestUnpublishLeavesOthers(t *testing.T) {
	inBed(t, ocisim.Options{}, func(b *bed) {
		volume := b.volume()
		other := b.region.AddInstance(ocisim.Instance{Compartment: b.compartment, Name: "node-1", Shape: "VM.Standard3.Flex", AvailabilityDomain: b.ad})
		ours := b.cluster.nodes
		b.cluster.nodes = []*block.Node{{Name: "node-1", InstanceID: other, CompartmentID: b.compartment}}
		must(b, b.c.ControllerPublishVolume, publish(volume, "node-1"))
		b.cluster.nodes = ours
		_, err := call(b, b.c.ControllerPublishVolume, publish(volume, "node-1"))
		b.refused(err, codes.FailedPrecondition)
		must(b, b.c.ControllerUnpublishVolume, &spec.ControllerUnpublishVolumeRequest{VolumeId: volume, NodeId: "node-1"})
		if open := b.open(); len(open) != 1 {
			b.Fatalf("attachments %v", open)
		}
		must(b, b.c.ControllerUnpublishVolume, &spec.ControllerUnpublishVolumeRequest{VolumeId: volume})
		shared := b.volume()
		for _, node := range []string{"node-1", "node-2"} {
			must(b, b.c.ControllerPublishVolume, publish(shared, node, func(r *spec.ControllerPublishVolumeRequest) { r.VolumeCapability = device(many) }))
		}
		must(b, b.c.ControllerUnpublishVolume, &spec.ControllerUnpublishVolumeRequest{VolumeId: shared})
		if open := b.open(); len(open) != 0 {
			b.Errorf("still attached: %v", open)
		}
	})
}

// state sets the state of the first instance.
func (b *bed) state(s core.InstanceLifecycleStateEnum) {
	b.Helper()
	if err := b.region.Foreign().Instance(b.one, func(i *core.Instance) { i.LifecycleState = s }); err != nil {
		b.Fatal(err)
	}
}

// TestUnpublishUnknown: C092 c. Where it cannot be known whether a volume is attached, it is not said to be detached.
func TestUnpublishUnknown(t *testing.T) {
	inBed(t, ocisim.Options{}, func(b *bed) {
		volume := b.volume()
		must(b, b.c.ControllerPublishVolume, publish(volume, "node-1"))
		request := &spec.ControllerUnpublishVolumeRequest{VolumeId: volume, NodeId: "node-1"}
		allow := b.region.Deny(ocisim.Policy{ResourceType: "volume-attachments"})
		_, err := call(b, b.c.ControllerUnpublishVolume, request)
		b.refused(err, codes.PermissionDenied)
		allow()
		b.cluster.broken = errors.New("no API server")
		_, err = call(b, b.c.ControllerUnpublishVolume, request)
		b.refused(err, codes.Unavailable)
		b.cluster.broken = nil
		must(b, b.c.ControllerUnpublishVolume, request)
		must(b, b.c.ControllerUnpublishVolume, &spec.ControllerUnpublishVolumeRequest{VolumeId: "vol-1", NodeId: "node-1"})
		_, err = call(b, b.c.ControllerUnpublishVolume, &spec.ControllerUnpublishVolumeRequest{NodeId: "node-1"})
		b.refused(err, codes.InvalidArgument)
	})
}

// TestExpand: C081. Capacity is in bytes and real, in the first answer and in each that follows.
func TestExpand(t *testing.T) {
	inBed(t, ocisim.Options{}, func(b *bed) {
		volume := b.volume(func(v *ocisim.Volume) { v.SizeInGBs = 60 })
		grow := func(bytes int64, c *spec.VolumeCapability) (*spec.ControllerExpandVolumeResponse, error) {
			return call(b, b.c.ControllerExpandVolume, &spec.ControllerExpandVolumeRequest{
				VolumeId: volume, CapacityRange: &spec.CapacityRange{RequiredBytes: bytes}, VolumeCapability: c,
			})
		}
		for i, tt := range []struct {
			ask, want int64
			use       *spec.VolumeCapability
			node      bool
		}{
			{70 * gib, 70 * gib, mounted(writer), true}, {70 * gib, 70 * gib, mounted(writer), true}, {70 * gib, 70 * gib, nil, true},
			{gib, 70 * gib, mounted(writer), true}, {70*gib + 1, 71 * gib, device(writer), false}, {71 * gib, 71 * gib, device(writer), false},
		} {
			got, err := grow(tt.ask, tt.use)
			if err != nil || got.GetCapacityBytes() != tt.want || got.GetNodeExpansionRequired() != tt.node {
				b.Errorf("%d: %v, %v; want %d bytes, node expansion %v", i, got, err, tt.want, tt.node)
			}
		}
		if n := b.region.Counts()["blockstorage.UpdateVolume"]; n != 2 {
			b.Errorf("%d updates, want 2", n)
		}
		_, err := grow(33<<40, nil)
		b.refused(err, codes.OutOfRange)
		_, err = call(b, b.c.ControllerExpandVolume, &spec.ControllerExpandVolumeRequest{VolumeId: volume})
		b.refused(err, codes.InvalidArgument)
		_, err = call(b, b.c.ControllerExpandVolume, &spec.ControllerExpandVolumeRequest{
			VolumeId: "ocid1.bootvolume.oc1.iad.b", CapacityRange: &spec.CapacityRange{RequiredBytes: gib},
		})
		b.refused(err, codes.InvalidArgument)
	})
}

// TestListVolumes: pages fit together, and published nodes are complete or an error.
func TestListVolumes(t *testing.T) {
	inBed(t, ocisim.Options{}, func(b *bed) {
		b.start(func(o *block.ControllerOptions) { o.PublishedNodes = true })
		elsewhere := b.region.AddCompartment(ocisim.Compartment{Name: "other"})
		var want []string
		for range 4 {
			want = append(want, b.volume())
		}
		foreign := b.volume(func(v *ocisim.Volume) { v.Compartment = elsewhere })
		b.cluster.pvs = []string{want[0], foreign, "ocid1.volume.oc1.iad.none"}
		want = append(want, foreign)
		slices.Sort(want)
		must(b, b.c.ControllerPublishVolume, publish(foreign, "node-2"))
		at := map[string][]string{}
		var got []string
		for token := ""; ; {
			page := must(b, b.c.ListVolumes, &spec.ListVolumesRequest{MaxEntries: 2, StartingToken: token})
			for _, e := range page.GetEntries() {
				got = append(got, e.GetVolume().GetVolumeId())
				if nodes := e.GetStatus().GetPublishedNodeIds(); len(nodes) > 0 {
					at[e.GetVolume().GetVolumeId()] = nodes
				}
			}
			if token = page.GetNextToken(); token == "" {
				break
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			b.Error(diff)
		}
		if diff := cmp.Diff(map[string][]string{foreign: {"node-2"}}, at); diff != "" {
			b.Error(diff)
		}
		one := must(b, b.c.ControllerGetVolume, &spec.ControllerGetVolumeRequest{VolumeId: foreign})
		if one.GetVolume().GetCapacityBytes() != 50*gib || !slices.Equal(one.GetStatus().GetPublishedNodeIds(), []string{"node-2"}) {
			b.Errorf("volume %v", one)
		}
		_, err := call(b, b.c.ListVolumes, &spec.ListVolumesRequest{StartingToken: "page 2"})
		b.refused(err, codes.Aborted)
		allow := b.region.Deny(ocisim.Policy{ResourceType: "volume-attachments"})
		_, err = call(b, b.c.ListVolumes, &spec.ListVolumesRequest{})
		b.refused(err, codes.PermissionDenied)
		allow()
		b.region.Deny(ocisim.Policy{ResourceType: "volumes", Compartment: elsewhere})
		page := must(b, b.c.ListVolumes, &spec.ListVolumesRequest{})
		if !slices.ContainsFunc(page.GetEntries(), func(e *spec.ListVolumesResponse_Entry) bool {
			return e.GetVolume().GetVolumeId() == foreign && slices.Equal(e.GetStatus().GetPublishedNodeIds(), []string{"node-2"})
		}) {
			b.Errorf("a volume that is attached, but cannot be read, is missing: %v", page)
		}
	})
}

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

// TestValidate: it compares, and says what does not fit.
func TestValidate(t *testing.T) {
	inBed(t, ocisim.Options{}, func(b *bed) {
		volume := b.volume()
		ask := func(id string, c ...*spec.VolumeCapability) (*spec.ValidateVolumeCapabilitiesResponse, error) {
			return call(b, b.c.ValidateVolumeCapabilities, &spec.ValidateVolumeCapabilitiesRequest{VolumeId: id, VolumeCapabilities: c})
		}
		if got, err := ask(volume, mounted(writer)); err != nil || len(got.GetConfirmed().GetVolumeCapabilities()) != 1 {
			b.Errorf("%v, %v", got, err)
		}
		if got, err := ask(volume, mounted(writer), mounted(many)); err != nil || got.GetConfirmed() != nil || !strings.Contains(got.GetMessage(), "ReadWriteMany") {
			b.Errorf("%v, %v", got, err)
		}
		for id, want := range map[string]codes.Code{"": codes.InvalidArgument, "x": codes.NotFound, "ocid1.volume.oc1.iad.none": codes.NotFound} {
			_, err := ask(id, mounted(writer))
			b.refused(err, want)
		}
		_, err := ask(volume)
		b.refused(err, codes.InvalidArgument)
		for says, parameters := range map[string][2]map[string]string{
			"":                                    {{"vpusPerGB": "20", "replicas": "2"}, {"auto-tune-detached": "true"}},
			"attachment-type":                     {{"attachment-type": "nvme"}, nil},
			"auto-tune-max-vpus-per-gb":           {nil, {"auto-tune-max-vpus-per-gb": "130"}},
			`did you mean "vpusPerGB"`:            {nil, {"vpusPerGb": "20"}},
			`parameter "kms-key-id" is not known`: {nil, {"kms-key-id": "ocid1.key.oc1..k"}},
		} {
			got, err := call(b, b.c.ValidateVolumeCapabilities, &spec.ValidateVolumeCapabilitiesRequest{
				VolumeId: volume, VolumeCapabilities: []*spec.VolumeCapability{mounted(writer)}, Parameters: parameters[0], MutableParameters: parameters[1],
			})
			if err != nil || (got.GetConfirmed() != nil) != (says == "") || !strings.Contains(got.GetMessage(), says) {
				b.Errorf("%v: %v, %v; want a message with %q", parameters, got, err, says)
			}
		}
	})
}
