// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package block_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	spec "github.com/container-storage-interface/spec/lib/go/csi"
	"github.com/oracle/oci-go-sdk/v65/core"
	"google.golang.org/grpc/codes"

	"github.com/oracle/oci-cloud-controller-manager/pkg/csi/block"
	"github.com/oracle/oci-cloud-controller-manager/test/ocisim"
)

// mortalCall is an RPC, and what it leaves when it is repeated until it succeeds.
type mortalCall struct {
	prepare func(b *bed) string // its result is handed on
	call    func(ctx context.Context, b *bed, c *block.Controller, id string) error
	left    string // volumes, attachments, backups and groups that are not over
}

func mortalCalls() map[string]mortalCall {
	volume := func(b *bed) string { return b.volume() }
	attached := func(b *bed) string {
		id := b.volume()
		b.region.AddVolumeAttachment(ocisim.VolumeAttachment{Volume: id, Instance: b.one, Type: "iscsi"})
		return id
	}
	create := func(ctx context.Context, b *bed, c *block.Controller, source *spec.VolumeContentSource) error {
		_, err := c.CreateVolume(ctx, b.ask(func(r *spec.CreateVolumeRequest) { r.VolumeContentSource = source }))
		return err
	}
	snapshot := func(ctx context.Context, c *block.Controller, id string) (string, error) {
		made, err := c.CreateSnapshot(ctx, &spec.CreateSnapshotRequest{Name: "snapshot-1", SourceVolumeId: id})
		return made.GetSnapshot().GetSnapshotId(), err
	}
	group := func(ctx context.Context, c *block.Controller, id string) (string, error) {
		r := &spec.CreateVolumeGroupSnapshotRequest{Name: "groupsnapshot-1", SourceVolumeIds: []string{id}}
		for {
			made, err := c.CreateVolumeGroupSnapshot(ctx, r)
			if err != nil || made.GetGroupSnapshot().GetReadyToUse() {
				return made.GetGroupSnapshot().GetGroupSnapshotId(), err
			}
			time.Sleep(10 * time.Second)
		}
	}
	return map[string]mortalCall{
		"CreateVolume": {left: "1 0 0 0", call: func(ctx context.Context, b *bed, c *block.Controller, _ string) error { return create(ctx, b, c, nil) }},
		"CreateVolume, a clone": {left: "2 0 0 0", prepare: volume, call: func(ctx context.Context, b *bed, c *block.Controller, id string) error {
			return create(ctx, b, c, &spec.VolumeContentSource{Type: &spec.VolumeContentSource_Volume{Volume: &spec.VolumeContentSource_VolumeSource{VolumeId: id}}})
		}},
		"CreateVolume, of a snapshot": {left: "2 0 1 0",
			prepare: func(b *bed) string {
				id, err := snapshot(b.Context(), b.c, b.volume())
				if err != nil {
					b.Fatal(err)
				}
				time.Sleep(10 * time.Minute) // until it is ready
				return id
			},
			call: func(ctx context.Context, b *bed, c *block.Controller, id string) error {
				return create(ctx, b, c, &spec.VolumeContentSource{Type: &spec.VolumeContentSource_Snapshot{Snapshot: &spec.VolumeContentSource_SnapshotSource{SnapshotId: id}}})
			}},
		"DeleteVolume": {left: "0 0 0 0", prepare: volume, call: func(ctx context.Context, _ *bed, c *block.Controller, id string) error {
			_, err := c.DeleteVolume(ctx, &spec.DeleteVolumeRequest{VolumeId: id})
			return err
		}},
		"ControllerPublishVolume": {left: "1 1 0 0", prepare: volume, call: func(ctx context.Context, _ *bed, c *block.Controller, id string) error {
			_, err := c.ControllerPublishVolume(ctx, publish(id, "node-1"))
			return err
		}},
		"ControllerUnpublishVolume": {left: "1 0 0 0", prepare: attached, call: func(ctx context.Context, _ *bed, c *block.Controller, id string) error {
			_, err := c.ControllerUnpublishVolume(ctx, &spec.ControllerUnpublishVolumeRequest{VolumeId: id, NodeId: "node-1"})
			return err
		}},
		"ControllerExpandVolume": {left: "1 0 0 0", prepare: volume, call: func(ctx context.Context, b *bed, c *block.Controller, id string) error {
			got, err := c.ControllerExpandVolume(ctx, &spec.ControllerExpandVolumeRequest{VolumeId: id, CapacityRange: &spec.CapacityRange{RequiredBytes: 70 * gib}})
			if err == nil && got.GetCapacityBytes() != 70*gib {
				b.Errorf("%d bytes", got.GetCapacityBytes())
			}
			return err
		}},
		"ControllerModifyVolume": {left: "1 0 0 0", prepare: volume, call: func(ctx context.Context, _ *bed, c *block.Controller, id string) error {
			_, err := c.ControllerModifyVolume(ctx, &spec.ControllerModifyVolumeRequest{VolumeId: id, MutableParameters: map[string]string{"vpusPerGB": "20"}})
			return err
		}},
		"CreateSnapshot": {left: "1 0 1 0", prepare: volume, call: func(ctx context.Context, _ *bed, c *block.Controller, id string) error {
			_, err := snapshot(ctx, c, id)
			return err
		}},
		"CreateSnapshot, DeleteSnapshot": {left: "1 0 0 0", prepare: volume, call: func(ctx context.Context, _ *bed, c *block.Controller, id string) error {
			made, err := snapshot(ctx, c, id)
			if err != nil {
				return err
			}
			_, err = c.DeleteSnapshot(ctx, &spec.DeleteSnapshotRequest{SnapshotId: made})
			return err
		}},
		"CreateVolumeGroupSnapshot": {left: "1 0 1 0", prepare: volume, call: func(ctx context.Context, _ *bed, c *block.Controller, id string) error {
			_, err := group(ctx, c, id)
			return err
		}},
		"CreateVolumeGroupSnapshot, DeleteVolumeGroupSnapshot": {left: "1 0 0 0", prepare: volume,
			call: func(ctx context.Context, _ *bed, c *block.Controller, id string) error {
				made, err := group(ctx, c, id)
				if err != nil {
					return err
				}
				_, err = c.DeleteVolumeGroupSnapshot(ctx, &spec.DeleteVolumeGroupSnapshotRequest{GroupSnapshotId: made})
				return err
			}},
	}
}

// TestKilledInAnyCall kills the controller with every call to the cloud of every RPC, before that call arrives and before its answer comes back.
// Another process is asked for the same: the end is always the same. C081, C084, C100, C113, C114.
func TestKilledInAnyCall(t *testing.T) {
	if testing.Short() {
		t.Skip("takes some seconds; it is in LONG of the Makefile")
	}
	for name, m := range mortalCalls() {
		t.Run(name, func(t *testing.T) {
			points := 0
			for point := range ocisim.KillPoints() {
				inBed(t, ocisim.Options{Seed: 3, EventualReads: 1}, func(b *bed) { m.killed(b, point) })
				points++
			}
			t.Logf("%d kill points", points-1)
		})
	}
}

func (m *mortalCall) killed(b *bed, point *ocisim.KillPoint) {
	id := ""
	if m.prepare != nil {
		id = m.prepare(b)
	}
	ctx, transport := point.Process(b.Context(), b.region.Transport())
	b.transport = transport
	b.start()
	mortal := b.c
	time.Sleep(time.Minute)
	if err := m.call(ctx, b, mortal, id); err != nil && !point.Reached() {
		b.Errorf("without a kill: %v", err)
	}
	b.transport = nil
	b.start()
	if err := m.again(b, id); err != nil {
		b.Errorf("%s: the second process: %v", point, err)
	}
	time.Sleep(10 * time.Minute)
	if got := b.left(); got != m.left {
		b.Errorf("%s: %s volumes, attachments, backups and groups are left, want %s", point, got, m.left)
	}
}

// again repeats the call as a sidecar does.
func (m *mortalCall) again(b *bed, id string) error {
	var err error
	for range 20 {
		ctx, cancel := context.WithTimeout(b.Context(), sidecarWaits)
		err = m.call(ctx, b, b.c, id)
		cancel()
		switch codeOf(err) {
		case codes.OK:
			return nil
		case codes.Aborted, codes.Unavailable, codes.DeadlineExceeded:
		default:
			return err
		}
		time.Sleep(5 * time.Second)
	}
	return err
}

// left counts what is not over.
func (b *bed) left() string {
	volumes, backups, groups := 0, 0, 0
	for _, v := range b.region.Volumes() {
		if v.LifecycleState != core.VolumeLifecycleStateTerminated {
			volumes++
		}
	}
	for _, s := range b.region.VolumeBackups() {
		if s.LifecycleState != core.VolumeBackupLifecycleStateTerminated {
			backups++
		}
	}
	for _, g := range b.region.VolumeGroups() {
		if g.LifecycleState != core.VolumeGroupLifecycleStateTerminated {
			groups++
		}
	}
	return fmt.Sprint(volumes, len(b.open()), backups, groups)
}
