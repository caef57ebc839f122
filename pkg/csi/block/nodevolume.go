// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package block

import (
	"context"
	"fmt"

	spec "github.com/container-storage-interface/spec/lib/go/csi"

	"github.com/oracle/oci-cloud-controller-manager/pkg/host"
)

// NodePublishVolume implements csi.NodeServer: it mounts what is staged where a pod finds it, and does nothing else.
func (n *NodeServer) NodePublishVolume(ctx context.Context, r *spec.NodePublishVolumeRequest) (*spec.NodePublishVolumeResponse, error) {
	if err := required("volume ID", r.GetVolumeId(), "target path", r.GetTargetPath()); err != nil {
		return nil, err
	}
	use, err := useOf(r.GetVolumeCapability())
	if err != nil {
		return nil, err
	}
	if r.GetStagingTargetPath() == "" {
		return nil, fmt.Errorf("%w: the request has no staging path", host.ErrNotStaged)
	}
	err = n.options.Host.Publish(ctx, host.PublishRequest{
		Volume: r.GetVolumeId(), Staging: r.GetStagingTargetPath(), Target: r.GetTargetPath(),
		Block: use.block, ReadOnly: r.GetReadonly() || use.readOnly, Exclusive: use.exclusive, Options: use.options,
	})
	if err != nil {
		return nil, err
	}
	return &spec.NodePublishVolumeResponse{}, nil
}

// NodeUnpublishVolume implements csi.NodeServer.
func (n *NodeServer) NodeUnpublishVolume(ctx context.Context, r *spec.NodeUnpublishVolumeRequest) (*spec.NodeUnpublishVolumeResponse, error) {
	if err := required("volume ID", r.GetVolumeId(), "target path", r.GetTargetPath()); err != nil {
		return nil, err
	}
	if err := n.options.Host.Unpublish(ctx, r.GetVolumeId(), r.GetTargetPath()); err != nil {
		return nil, err
	}
	return &spec.NodeUnpublishVolumeResponse{}, nil
}

// NodeGetVolumeStats implements csi.NodeServer.
func (n *NodeServer) NodeGetVolumeStats(ctx context.Context, r *spec.NodeGetVolumeStatsRequest) (*spec.NodeGetVolumeStatsResponse, error) {
	path := r.GetVolumePath()
	if err := required("volume ID", r.GetVolumeId(), "volume path", path); err != nil {
		return nil, err
	}
	if err := mountedPath(path); err != nil {
		return nil, err
	}
	if err := n.options.Host.Fits(r.GetVolumeId(), path); err != nil {
		return nil, err
	}
	u, err := n.options.Host.Stats(ctx, path)
	if err != nil {
		return nil, err
	}
	out := &spec.NodeGetVolumeStatsResponse{Usage: []*spec.VolumeUsage{usage(spec.VolumeUsage_BYTES, u.Bytes)}}
	if !u.Block {
		out.Usage = append(out.Usage, usage(spec.VolumeUsage_INODES, u.Inodes))
	}
	return out, nil
}

func usage(unit spec.VolumeUsage_Unit, a host.Amounts) *spec.VolumeUsage {
	return &spec.VolumeUsage{Unit: unit, Total: a.Total, Used: a.Used, Available: a.Available}
}

// NodeExpandVolume implements csi.NodeServer: device and file system reach the size that the volume has in the cloud.
func (n *NodeServer) NodeExpandVolume(ctx context.Context, r *spec.NodeExpandVolumeRequest) (*spec.NodeExpandVolumeResponse, error) {
	path := r.GetVolumePath()
	if err := required("volume ID", r.GetVolumeId(), "volume path", path); err != nil {
		return nil, err
	}
	if err := mountedPath(path); err != nil {
		return nil, err
	}
	if err := n.options.Host.Fits(r.GetVolumeId(), path); err != nil {
		return nil, err
	}
	size, err := n.options.Host.Grow(ctx, r.GetVolumeId(), path, r.GetCapacityRange().GetRequiredBytes())
	if err != nil {
		return nil, err
	}
	return &spec.NodeExpandVolumeResponse{CapacityBytes: size}, nil
}
