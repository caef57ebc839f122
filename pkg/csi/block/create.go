// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package block

import (
	"context"
	"fmt"
	"strconv"

	spec "github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"k8s.io/klog/v2"

	"github.com/oracle/oci-cloud-controller-manager/pkg/blockvolume"
	"github.com/oracle/oci-cloud-controller-manager/pkg/oci"
)

// Parameters that external-provisioner adds with --extra-create-metadata, and the free-form tags that they become.
const (
	claimName      = sidecarPrefix + "pvc/name"
	claimNamespace = sidecarPrefix + "pvc/namespace"
	volumeName     = sidecarPrefix + "pv/name"

	TagClaim     = "oci-k8s-pvc"
	TagNamespace = "oci-k8s-namespace"
	TagVolume    = "oci-k8s-pv"
)

// uhpVPUs are the performance units from which a volume is of ultra high performance, with several paths to it (contract storage.md §2.1).
const uhpVPUs = 30

// Values of ContextContentSource.
const (
	sourceSnapshot = "snapshot"
	sourceVolume   = "volume"
)

// CreateVolume implements csi.ControllerServer.
func (c *Controller) CreateVolume(ctx context.Context, r *spec.CreateVolumeRequest) (*spec.CreateVolumeResponse, error) {
	request, w, err := c.createRequest(ctx, r)
	if err != nil {
		return nil, err
	}
	end, err := c.draft(ctx, r.GetName())
	if err != nil {
		return nil, status.Error(codes.Unavailable, err.Error())
	}
	defer end()
	made, err := c.options.Volumes.Create(ctx, request)
	if err != nil {
		return nil, err
	}
	if made.Unmarked {
		c.warn(ctx, c.claimOf(ctx, r), "VolumeWithoutMarks", fmt.Sprintf(
			"Volume %s has no room for the tags by which it is known as this cluster's; it is found by its name. Use fewer tags", made.ID))
	}
	return &spec.CreateVolumeResponse{Volume: &spec.Volume{
		VolumeId:           made.ID,
		CapacityBytes:      made.SizeBytes,
		ContentSource:      r.GetVolumeContentSource(),
		AccessibleTopology: accessibleFrom(made.AvailabilityDomain),
		VolumeContext:      volumeContext(w, r.GetVolumeContentSource(), made),
	}}, nil
}

// createRequest checks and translates a request.
func (c *Controller) createRequest(ctx context.Context, r *spec.CreateVolumeRequest) (blockvolume.CreateRequest, wishes, error) {
	out := blockvolume.CreateRequest{Name: r.GetName()}
	if err := required("name", r.GetName()); err != nil {
		return out, wishes{}, err
	}
	use, err := accessOfAll(r.GetVolumeCapabilities())
	if err != nil {
		return out, wishes{}, err
	}
	claim := c.claimOf(ctx, r)
	w, err := c.read(ctx, StorageClass, r.GetParameters(), claim)
	if err != nil {
		return out, w, err
	}
	if w, err = c.override(ctx, w, r.GetMutableParameters(), claim); err != nil {
		return out, w, err
	}
	if w.vpus != nil && *w.vpus >= uhpVPUs && use.block {
		return out, w, status.Errorf(codes.InvalidArgument, "parameter %s is %d: raw block volumes (volumeMode: Block) cannot have more than %d", parameterVPUs, *w.vpus, uhpVPUs-1)
	}
	if err := setSource(&out, r.GetVolumeContentSource()); err != nil {
		return out, w, err
	}
	out.RequiredBytes, out.LimitBytes = r.GetCapacityRange().GetRequiredBytes(), r.GetCapacityRange().GetLimitBytes()
	out.Domains = domainsOf(r.GetAccessibilityRequirements(), c.options.IPv6SingleStack)
	out.VPUsPerGB, out.AutoTune, out.KMSKeyID = w.vpus, w.autoTune.Over(oci.AutoTune{}), w.kmsKeyID
	out.Tags, out.Notes = c.tags(w), notes(r.GetParameters())
	if claim != nil {
		out.Asked = claim.Created
	}
	return out, w, nil
}

// read reads the parameters of a class, and tells of those that nobody knows.
func (c *Controller) read(ctx context.Context, class Class, parameters map[string]string, claim *Claim) (wishes, error) {
	w, strange, err := readParameters(class, parameters)
	if err != nil {
		return w, err
	}
	for _, u := range strange {
		if class == VolumeAttributesClass { // as the specification asks; classes of this kind are new, so that none has always had it
			return w, fmt.Errorf("%w: %s: %s", blockvolume.ErrInvalid, class, u)
		}
		if c.options.StrictParameters {
			return w, fmt.Errorf("%w: %s: %s (this driver runs with --strict-parameters)", blockvolume.ErrInvalid, class, u)
		}
		unknownParameters.WithLabelValues(string(class), u.key).Inc()
		c.warn(ctx, claim, "UnknownParameter", fmt.Sprintf("%s: %s", class, u))
	}
	return w, nil
}

// claimOf finds the claim that a volume is made for.
func (c *Controller) claimOf(ctx context.Context, r *spec.CreateVolumeRequest) *Claim {
	return c.options.Cluster.Claim(ctx, r.GetName(), r.GetParameters()[claimNamespace], r.GetParameters()[claimName])
}

// warn tells the user, on the claim if it is known, and in the log.
func (c *Controller) warn(ctx context.Context, claim *Claim, reason, message string) {
	klog.FromContext(ctx).Info("Warning", "reason", reason, "message", message)
	if claim != nil {
		c.options.Cluster.Warn(ctx, claim, reason, message)
	}
}

func setSource(out *blockvolume.CreateRequest, s *spec.VolumeContentSource) error {
	switch {
	case s == nil:
	case s.GetSnapshot().GetSnapshotId() != "":
		out.SnapshotID = s.GetSnapshot().GetSnapshotId()
		return exists("snapshot", out.SnapshotID)
	case s.GetVolume().GetVolumeId() != "":
		out.CloneID = s.GetVolume().GetVolumeId()
		return exists("volume", out.CloneID)
	default:
		return status.Error(codes.InvalidArgument, "the source of the volume must be a VolumeSnapshot or a PersistentVolumeClaim of this driver")
	}
	return nil
}

// volumeContext is what the PV keeps (contract storage.md §2.5).
func volumeContext(w wishes, source *spec.VolumeContentSource, made *blockvolume.Provisioned) map[string]string {
	performance := int64(blockvolume.DefaultVPUs)
	if w.vpus != nil {
		performance = *w.vpus
	}
	out := map[string]string{
		ContextAttachmentType: w.attachmentType,
		ContextVPUs:           strconv.FormatInt(performance, 10),
		ContextNeedResize:     strconv.FormatBool(made.Grow),
		ContextNewSize:        "",
	}
	if made.Grow {
		out[ContextNewSize] = strconv.FormatInt(made.SizeBytes, 10)
	}
	switch {
	case source.GetSnapshot() != nil:
		out[ContextContentSource] = sourceSnapshot
	case source.GetVolume() != nil:
		out[ContextContentSource] = sourceVolume
	}
	return out
}

// DeleteVolume implements csi.ControllerServer.
func (c *Controller) DeleteVolume(ctx context.Context, r *spec.DeleteVolumeRequest) (*spec.DeleteVolumeResponse, error) {
	if err := required("volume ID", r.GetVolumeId()); err != nil {
		return nil, err
	}
	if impossible(r.GetVolumeId()) {
		return &spec.DeleteVolumeResponse{}, nil
	}
	if err := c.options.Volumes.Delete(ctx, r.GetVolumeId()); err != nil {
		return nil, err
	}
	return &spec.DeleteVolumeResponse{}, nil
}
