// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package nodedriver

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/container-storage-interface/spec/lib/go/csi"
)

// Volume is what the kubelet knows of a volume.
type Volume struct {
	ID              string
	Publish         map[string]string // publish context
	Context         map[string]string // volume context
	FSType          string            // empty for raw block volumes
	Staging, Target string
}

// capability is that of the volume.
func (v Volume) capability() *csi.VolumeCapability {
	c := &csi.VolumeCapability{AccessMode: &csi.VolumeCapability_AccessMode{Mode: csi.VolumeCapability_AccessMode_SINGLE_NODE_WRITER}}
	if v.FSType == "" {
		c.AccessType = &csi.VolumeCapability_Block{Block: &csi.VolumeCapability_BlockVolume{}}
	} else {
		c.AccessType = &csi.VolumeCapability_Mount{Mount: &csi.VolumeCapability_MountVolume{FsType: v.FSType}}
	}
	return c
}

// Stage calls NodeStageVolume, as Call does. So do the other calls of a volume.
func (d *Driver) Stage(ctx context.Context, v Volume) (deaths int, err error) {
	return d.Call(ctx, func(ctx context.Context, c csi.NodeClient) error {
		_, err := c.NodeStageVolume(ctx, &csi.NodeStageVolumeRequest{
			VolumeId: v.ID, PublishContext: v.Publish, VolumeContext: v.Context, StagingTargetPath: v.Staging, VolumeCapability: v.capability(),
		})
		return err
	})
}

// Publish calls NodePublishVolume.
func (d *Driver) Publish(ctx context.Context, v Volume) (deaths int, err error) {
	return d.Call(ctx, func(ctx context.Context, c csi.NodeClient) error {
		_, err := c.NodePublishVolume(ctx, &csi.NodePublishVolumeRequest{
			VolumeId: v.ID, PublishContext: v.Publish, VolumeContext: v.Context, StagingTargetPath: v.Staging, TargetPath: v.Target, VolumeCapability: v.capability(),
		})
		return err
	})
}

// Expand calls NodeExpandVolume.
func (d *Driver) Expand(ctx context.Context, v Volume, size int64) (deaths int, err error) {
	return d.Call(ctx, func(ctx context.Context, c csi.NodeClient) error {
		r, err := c.NodeExpandVolume(ctx, &csi.NodeExpandVolumeRequest{
			VolumeId: v.ID, VolumePath: v.Target, StagingTargetPath: v.Staging, VolumeCapability: v.capability(), CapacityRange: &csi.CapacityRange{RequiredBytes: size},
		})
		if err == nil && r.GetCapacityBytes() != size {
			return fmt.Errorf("%d bytes after the expansion, want %d", r.GetCapacityBytes(), size)
		}
		return err
	})
}

// Unpublish calls NodeUnpublishVolume.
func (d *Driver) Unpublish(ctx context.Context, v Volume) (deaths int, err error) {
	return d.Call(ctx, func(ctx context.Context, c csi.NodeClient) error {
		_, err := c.NodeUnpublishVolume(ctx, &csi.NodeUnpublishVolumeRequest{VolumeId: v.ID, TargetPath: v.Target})
		return err
	})
}

// Unstage calls NodeUnstageVolume.
func (d *Driver) Unstage(ctx context.Context, v Volume) (deaths int, err error) {
	return d.Call(ctx, func(ctx context.Context, c csi.NodeClient) error {
		_, err := c.NodeUnstageVolume(ctx, &csi.NodeUnstageVolumeRequest{VolumeId: v.ID, StagingTargetPath: v.Staging})
		return err
	})
}

// Life is what becomes of a volume on a node: it is staged, published, used, expanded, and taken away again.
type Life struct {
	Volume Volume
	// Grow gives the disk a new size, in bytes; nil lets it be.
	Grow    func() error
	NewSize int64
}

// precious is the content of a pod's file.
const precious = "precious"

// Live runs a life, in which the driver may die, and says how often it did. Data that is not there is an error.
func (d *Driver) Live(ctx context.Context, l Life) (deaths int, err error) {
	v := l.Volume
	do := func(name string, f func() (int, error)) {
		if err != nil {
			return
		}
		var n int
		if n, err = f(); err != nil {
			err = fmt.Errorf("%s: %w", name, err)
		}
		deaths += n
	}
	without := func(f func() error) func() (int, error) { return func() (int, error) { return 0, f() } }
	file := filepath.Join(v.Target, "data")
	do("stage", func() (int, error) { return d.Stage(ctx, v) })
	do("publish", func() (int, error) { return d.Publish(ctx, v) })
	if v.FSType != "" {
		do("write", without(func() error { return os.WriteFile(d.Path(file), []byte(precious), 0o600) }))
	}
	if l.Grow != nil {
		do("grow", without(l.Grow))
		do("expand", func() (int, error) { return d.Expand(ctx, v, l.NewSize) })
	}
	if v.FSType != "" {
		do("read", without(func() error {
			if text, err := os.ReadFile(d.Path(file)); err != nil || string(text) != precious {
				return fmt.Errorf("the pod's file has %q: %w", text, err)
			}
			return nil
		}))
	}
	do("unpublish", func() (int, error) { return d.Unpublish(ctx, v) })
	do("unstage", func() (int, error) { return d.Unstage(ctx, v) })
	return deaths, err
}

// Left lists what there still is of volumes: mounts, records, and files at which something was mounted.
func (d *Driver) Left(volumes ...Volume) ([]string, error) {
	var left []string
	table, err := os.ReadFile(fmt.Sprintf("/proc/%d/mountinfo", d.namespace.Process.Pid))
	if err != nil {
		return nil, err
	}
	for line := range strings.Lines(string(table)) {
		fields := strings.Fields(line)
		at := fields[4]
		if slices.ContainsFunc(volumes, func(v Volume) bool { return at == v.Target || strings.HasPrefix(at, v.Staging) }) {
			left = append(left, "mount at "+at)
		}
	}
	records, err := filepath.Glob(filepath.Join(d.path("state"), "*")) // the pattern is right
	if err != nil {
		return nil, err
	}
	for _, r := range records {
		left = append(left, "record "+r)
	}
	for _, v := range volumes {
		for _, path := range []string{v.Target, filepath.Join(v.Staging, "mountfile")} {
			if _, err := os.Lstat(d.Path(path)); err == nil {
				left = append(left, path)
			}
		}
	}
	return left, nil
}
