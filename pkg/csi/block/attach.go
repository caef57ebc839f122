// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package block

import (
	"context"
	"errors"
	"strings"

	spec "github.com/container-storage-interface/spec/lib/go/csi"
	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/oracle/oci-cloud-controller-manager/pkg/blockvolume"
	"github.com/oracle/oci-cloud-controller-manager/pkg/oci"
)

// ControllerPublishVolume implements csi.ControllerServer: it attaches a volume to the instance of a Node.
func (c *Controller) ControllerPublishVolume(ctx context.Context, r *spec.ControllerPublishVolumeRequest) (*spec.ControllerPublishVolumeResponse, error) {
	request, err := attachRequest(r)
	if err != nil {
		return nil, err
	}
	node, err := c.options.Cluster.Node(ctx, r.GetNodeId())
	switch {
	case errors.Is(err, ErrNoNode):
		return nil, status.Errorf(codes.NotFound, "attach volume %s: there is no Node %s", r.GetVolumeId(), r.GetNodeId())
	case err != nil:
		return nil, status.Errorf(codes.Unavailable, "attach volume %s: read Node %s: %v", r.GetVolumeId(), r.GetNodeId(), err)
	case node.InstanceID == "":
		return nil, status.Errorf(codes.Unavailable,
			"attach volume %s: Node %s has no spec.providerID yet, which oci-cloud-controller-manager sets", r.GetVolumeId(), r.GetNodeId())
	}
	request.InstanceID = node.InstanceID
	attachment, size, err := c.attach(ctx, request)
	if err != nil {
		return nil, err
	}
	return &spec.ControllerPublishVolumeResponse{PublishContext: publishContext(attachment, size, r.GetVolumeContext())}, nil
}

// attach attaches a volume and finds out its size, which the node has to compare the disk with, at the same time.
func (c *Controller) attach(ctx context.Context, r blockvolume.AttachRequest) (a *oci.VolumeAttachment, size int64, err error) {
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error {
		a, err = c.options.Volumes.Attach(ctx, r)
		return err
	})
	group.Go(func() error {
		var err error
		size, err = c.options.Volumes.Size(ctx, r.VolumeID)
		return err
	})
	if err := group.Wait(); err != nil {
		return nil, 0, err
	}
	return a, size, nil
}

// attachRequest checks and translates a request, but for the instance.
func attachRequest(r *spec.ControllerPublishVolumeRequest) (blockvolume.AttachRequest, error) {
	if err := required("volume ID", r.GetVolumeId(), "node ID", r.GetNodeId()); err != nil {
		return blockvolume.AttachRequest{}, err
	}
	use, err := accessOf(r.GetVolumeCapability())
	if err != nil {
		return blockvolume.AttachRequest{}, err
	}
	if err := exists("volume", r.GetVolumeId()); err != nil {
		return blockvolume.AttachRequest{}, err
	}
	out := blockvolume.AttachRequest{
		VolumeID:  r.GetVolumeId(),
		Node:      r.GetNodeId(),
		Type:      strings.ToLower(r.GetVolumeContext()[ContextAttachmentType]),
		Shareable: use.shared,
		ReadOnly:  r.GetReadonly() || use.readOnly,
	}
	if !blockvolume.IsBootVolume(out.VolumeID) {
		return out, nil
	}
	switch vpus := r.GetVolumeContext()[ContextVPUs]; {
	case !use.block || use.shared:
		return out, status.Errorf(codes.InvalidArgument, "boot volume %s can only be used as a raw block volume (volumeMode: Block) on one node", out.VolumeID)
	case out.Type == AttachmentParavirtualized:
		return out, status.Errorf(codes.InvalidArgument, "boot volume %s can only be attached by iSCSI: remove %s from the PersistentVolume's volumeAttributes",
			out.VolumeID, ContextAttachmentType)
	case vpus != "" && vpus != "0" && vpus != "10":
		return out, status.Errorf(codes.InvalidArgument, "boot volume %s has %s %q in its PersistentVolume: more than 10 are not supported", out.VolumeID, ContextVPUs, vpus)
	}
	return out, nil
}

// ControllerUnpublishVolume implements csi.ControllerServer. It depends on neither the Node nor the instance: the attachments of the
// volume are what counts. Without a node ID, all attachments of the volume end.
func (c *Controller) ControllerUnpublishVolume(ctx context.Context, r *spec.ControllerUnpublishVolumeRequest) (*spec.ControllerUnpublishVolumeResponse, error) {
	if err := required("volume ID", r.GetVolumeId()); err != nil {
		return nil, err
	}
	if impossible(r.GetVolumeId()) {
		return &spec.ControllerUnpublishVolumeResponse{}, nil
	}
	request := blockvolume.DetachRequest{VolumeID: r.GetVolumeId(), Node: r.GetNodeId()}
	if r.GetNodeId() != "" {
		node, err := c.options.Cluster.Node(ctx, r.GetNodeId())
		switch {
		case err == nil:
			request.InstanceID, request.CompartmentID = node.InstanceID, node.CompartmentID
		case !errors.Is(err, ErrNoNode):
			return nil, status.Errorf(codes.Unavailable, "detach volume %s: read Node %s: %v", r.GetVolumeId(), r.GetNodeId(), err)
		}
	}
	if err := c.options.Volumes.Detach(ctx, request); err != nil {
		return nil, err
	}
	return &spec.ControllerUnpublishVolumeResponse{}, nil
}
