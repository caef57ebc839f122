// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package block_test

import (
	"errors"
	"strings"
	"sync"
	"testing"

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
