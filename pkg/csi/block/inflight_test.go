// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package block_test

import (
	"context"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	spec "github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"

	"github.com/oracle/oci-cloud-controller-manager/pkg/csi"
	"github.com/oracle/oci-cloud-controller-manager/pkg/csi/block"
	"github.com/oracle/oci-cloud-controller-manager/test/ocisim"
)

// dial serves the controller as the binary does, on a network that virtual time knows, and returns a connection.
func (b *bed) dial() *grpc.ClientConn {
	b.Helper()
	server, err := csi.NewServer(csi.Options{
		Driver: block.DefaultName, Version: block.Version, Plugin: block.PluginCapabilities(), Code: block.Code, Controller: b.c, GroupController: b.c,
	})
	if err != nil {
		b.Fatal(err)
	}
	listener := bufconn.Listen(1 << 16)
	ctx, stop := context.WithCancel(b.Context())
	done := make(chan error, 1)
	go func() { done <- server.Serve(ctx, listener) }()
	conn, err := grpc.NewClient("passthrough:///csi", grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return listener.DialContext(ctx) }))
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		_ = conn.Close()
		stop()
		if err := <-done; err != nil {
			b.Error(err)
		}
	})
	return conn
}

// TestSameCallTenTimes: P12. What is asked for ten times while the first call runs is done once; the others are told to come again, and
// find it done.
func TestSameCallTenTimes(t *testing.T) {
	extra := 0
	for name, tt := range map[string]struct {
		writes int // of one call
		// prepare returns the call.
		prepare func(b *bed, c spec.ControllerClient, g spec.GroupControllerClient) func(context.Context) error
	}{
		"CreateVolume": {1, func(b *bed, c spec.ControllerClient, _ spec.GroupControllerClient) func(context.Context) error {
			return func(ctx context.Context) error { _, err := c.CreateVolume(ctx, b.ask()); return err }
		}},
		"DeleteVolume": {1, func(b *bed, c spec.ControllerClient, _ spec.GroupControllerClient) func(context.Context) error {
			r := &spec.DeleteVolumeRequest{VolumeId: b.volume()}
			return func(ctx context.Context) error { _, err := c.DeleteVolume(ctx, r); return err }
		}},
		"ControllerPublishVolume": {1, func(b *bed, c spec.ControllerClient, _ spec.GroupControllerClient) func(context.Context) error {
			r := publish(b.volume(), "node-1")
			return func(ctx context.Context) error { _, err := c.ControllerPublishVolume(ctx, r); return err }
		}},
		"ControllerUnpublishVolume": {1, func(b *bed, c spec.ControllerClient, _ spec.GroupControllerClient) func(context.Context) error {
			volume := b.volume()
			b.region.AddVolumeAttachment(ocisim.VolumeAttachment{Volume: volume, Instance: b.one})
			r := &spec.ControllerUnpublishVolumeRequest{VolumeId: volume, NodeId: "node-1"}
			return func(ctx context.Context) error { _, err := c.ControllerUnpublishVolume(ctx, r); return err }
		}},
		"ControllerExpandVolume": {1, func(b *bed, c spec.ControllerClient, _ spec.GroupControllerClient) func(context.Context) error {
			r := &spec.ControllerExpandVolumeRequest{VolumeId: b.volume(), CapacityRange: &spec.CapacityRange{RequiredBytes: 70 * gib}, VolumeCapability: mounted(writer)}
			return func(ctx context.Context) error { _, err := c.ControllerExpandVolume(ctx, r); return err }
		}},
		"ControllerModifyVolume": {1, func(b *bed, c spec.ControllerClient, _ spec.GroupControllerClient) func(context.Context) error {
			r := &spec.ControllerModifyVolumeRequest{VolumeId: b.volume(), MutableParameters: map[string]string{"vpusPerGB": "20"}}
			return func(ctx context.Context) error { _, err := c.ControllerModifyVolume(ctx, r); return err }
		}},
		"CreateSnapshot": {1, func(b *bed, c spec.ControllerClient, _ spec.GroupControllerClient) func(context.Context) error {
			r := &spec.CreateSnapshotRequest{Name: "snapshot-1", SourceVolumeId: b.volume()}
			return func(ctx context.Context) error { _, err := c.CreateSnapshot(ctx, r); return err }
		}},
		"CreateVolumeGroupSnapshot": {3, func(b *bed, _ spec.ControllerClient, g spec.GroupControllerClient) func(context.Context) error {
			r := &spec.CreateVolumeGroupSnapshotRequest{Name: "groupsnapshot-1", SourceVolumeIds: []string{b.volume(), b.volume()}}
			return func(ctx context.Context) error { _, err := g.CreateVolumeGroupSnapshot(ctx, r); return err }
		}},
	} {
		t.Run(name, func(t *testing.T) {
			inBed(t, ocisim.Options{Latency: map[string]ocisim.Range{"*": {Min: 100 * time.Millisecond, Max: 100 * time.Millisecond}}}, func(b *bed) {
				conn := b.dial()
				do := tt.prepare(b, spec.NewControllerClient(conn), spec.NewGroupControllerClient(conn))
				b.region.ResetCalls()
				var all sync.WaitGroup
				var done, aborted atomic.Int32
				for i := range 10 {
					all.Go(func() {
						time.Sleep(time.Duration(i) * 10 * time.Millisecond) // while the first is under way
						ctx, cancel := context.WithTimeout(b.Context(), 2*time.Minute)
						defer cancel()
						err := do(ctx)
						switch status.Code(err) {
						case codes.OK:
							done.Add(1)
						case codes.Aborted:
							aborted.Add(1)
						default:
							b.Error(err)
						}
					})
				}
				all.Wait()
				if done.Load() == 0 || done.Load()+aborted.Load() != 10 {
					b.Errorf("%d calls succeeded, %d were told to come again", done.Load(), aborted.Load())
				}
				time.Sleep(time.Minute)
				if err := do(b.Context()); err != nil {
					b.Errorf("afterwards: %v", err)
				}
				if w := b.writes(); len(w) != tt.writes {
					b.Errorf("writes %v, want %d", w, tt.writes)
				}
				extra += len(b.writes()) - tt.writes
			})
		})
	}
	t.Logf("budget P12: %d extra writes to the cloud for volumes", extra)
}
