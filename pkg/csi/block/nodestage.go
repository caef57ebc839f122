// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package block

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"

	spec "github.com/container-storage-interface/spec/lib/go/csi"

	"github.com/oracle/oci-cloud-controller-manager/pkg/host"
)

// NodeStageVolume implements csi.NodeServer: it connects the disk and mounts it once for all pods.
func (n *NodeServer) NodeStageVolume(ctx context.Context, r *spec.NodeStageVolumeRequest) (*spec.NodeStageVolumeResponse, error) {
	if err := required("volume ID", r.GetVolumeId(), "staging path", r.GetStagingTargetPath()); err != nil {
		return nil, err
	}
	use, err := useOf(r.GetVolumeCapability())
	if err != nil {
		return nil, err
	}
	ipv6, err := n.overIPv6(ctx, r.GetPublishContext())
	if err != nil {
		return nil, err
	}
	attachment, err := attachmentOf(r.GetPublishContext(), ipv6)
	if err != nil {
		return nil, err
	}
	request := host.StageRequest{Volume: r.GetVolumeId(), Attachment: attachment, Staging: r.GetStagingTargetPath()}
	if !use.block {
		if request.Filesystem, err = filesystemOf(r, use); err != nil {
			return nil, err
		}
	}
	if err := n.options.Host.Stage(ctx, request); err != nil {
		return nil, err
	}
	return &spec.NodeStageVolumeResponse{}, nil
}

// NodeUnstageVolume implements csi.NodeServer.
func (n *NodeServer) NodeUnstageVolume(ctx context.Context, r *spec.NodeUnstageVolumeRequest) (*spec.NodeUnstageVolumeResponse, error) {
	if err := required("volume ID", r.GetVolumeId(), "staging path", r.GetStagingTargetPath()); err != nil {
		return nil, err
	}
	if err := n.options.Host.Unstage(ctx, r.GetVolumeId(), r.GetStagingTargetPath()); err != nil {
		return nil, err
	}
	return &spec.NodeUnstageVolumeResponse{}, nil
}

// use is how a volume is to be used.
type use struct {
	block     bool
	readOnly  bool
	exclusive bool // by one pod only
	fsType    string
	options   []string
}

// useOf reads a capability. One without an access mode is that of a single writer.
func useOf(c *spec.VolumeCapability) (use, error) {
	mode := c.GetAccessMode().GetMode()
	u := use{
		readOnly:  mode == spec.VolumeCapability_AccessMode_SINGLE_NODE_READER_ONLY || mode == spec.VolumeCapability_AccessMode_MULTI_NODE_READER_ONLY,
		exclusive: mode == spec.VolumeCapability_AccessMode_SINGLE_NODE_SINGLE_WRITER,
	}
	switch access := c.GetAccessType().(type) {
	case *spec.VolumeCapability_Block:
		u.block = true
	case *spec.VolumeCapability_Mount:
		u.fsType, u.options = access.Mount.GetFsType(), access.Mount.GetMountFlags()
		if mode == spec.VolumeCapability_AccessMode_MULTI_NODE_MULTI_WRITER || mode == spec.VolumeCapability_AccessMode_MULTI_NODE_SINGLE_WRITER {
			return use{}, fmt.Errorf("%w: a file system on a block volume cannot be mounted on several nodes for writing: use volumeMode Block, or file storage", host.ErrInvalid)
		}
	default:
		return use{}, fmt.Errorf("%w: the volume capability has no access type", host.ErrInvalid)
	}
	return u, nil
}

// filesystemOf says how a volume is to be mounted, and whether it may be formatted.
func filesystemOf(r *spec.NodeStageVolumeRequest, u use) (*host.Filesystem, error) {
	f := &host.Filesystem{Type: host.FilesystemType(u.fsType), Options: u.options, ReadOnly: u.readOnly, Format: host.FormatIfBlank}
	switch policy := r.GetVolumeContext()[ContextFormatPolicy]; {
	case policy == "", strings.EqualFold(policy, string(host.FormatIfBlank)):
	case strings.EqualFold(policy, string(host.FormatNever)):
		f.Format = host.FormatNever
	default:
		return nil, fmt.Errorf("%w: the volume attribute %s is %q; it can be %q and %q", host.ErrInvalid, ContextFormatPolicy, policy, host.FormatIfBlank, host.FormatNever)
	}
	for _, c := range []map[string]string{r.GetVolumeContext(), r.GetPublishContext()} {
		// Up to v1.35, only a volume that is larger than its source was marked.
		if strings.EqualFold(c[ContextNeedResize], "true") || c[ContextContentSource] != "" {
			f.Format, f.Grow = host.FormatNever, true
		}
	}
	return f, nil
}

// mountedPath looks at a path where something should be mounted. Nothing ever is at a relative one.
func mountedPath(path string) error {
	if !filepath.IsAbs(path) {
		return fmt.Errorf("%q: %w", path, host.ErrNotMounted)
	}
	return nil
}
