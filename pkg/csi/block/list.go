// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package block

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	spec "github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/oracle/oci-cloud-controller-manager/pkg/blockvolume"
	"github.com/oracle/oci-cloud-controller-manager/pkg/oci"
)

// ListVolumes implements csi.ControllerServer. It lists the volumes in the compartment of volumes and, with published nodes, all others
// of this driver's PersistentVolumes. It is complete, or an error: external-attacher attaches anew what it does not find.
func (c *Controller) ListVolumes(ctx context.Context, r *spec.ListVolumesRequest) (*spec.ListVolumesResponse, error) {
	all, err := c.options.Volumes.List(ctx)
	if err != nil {
		return nil, err
	}
	var at map[string][]string
	if c.options.PublishedNodes {
		if at, err = c.published(ctx); err != nil {
			return nil, err
		}
		if all, err = c.withOthers(ctx, all, at); err != nil {
			return nil, err
		}
	}
	part, next, err := paged(all, func(v *oci.Volume) string { return v.ID }, r.GetStartingToken(), r.GetMaxEntries())
	if err != nil {
		return nil, err
	}
	out := &spec.ListVolumesResponse{NextToken: next}
	for _, v := range part {
		out.Entries = append(out.Entries, &spec.ListVolumesResponse_Entry{
			Volume: volumeOf(v),
			Status: &spec.ListVolumesResponse_VolumeStatus{PublishedNodeIds: at[v.ID]},
		})
	}
	return out, nil
}

func volumeOf(v *oci.Volume) *spec.Volume {
	out := &spec.Volume{VolumeId: v.ID, CapacityBytes: v.SizeBytes}
	if v.AvailabilityDomain != "" {
		out.AccessibleTopology = accessibleFrom(v.AvailabilityDomain)
	}
	return out
}

// withOthers adds the volumes of PersistentVolumes that are not in the compartment of volumes: those that somebody else has made. One that is
// attached is there, also if it cannot be read.
func (c *Controller) withOthers(ctx context.Context, all []*oci.Volume, at map[string][]string) ([]*oci.Volume, error) {
	handles, err := c.options.Cluster.VolumeHandles(ctx)
	if err != nil {
		return nil, status.Errorf(codes.Unavailable, "list the PersistentVolumes: %v", err)
	}
	known := map[string]bool{}
	for _, v := range all {
		known[v.ID] = true
	}
	for _, id := range handles {
		if known[id] || impossible(id) {
			continue
		}
		known[id] = true
		if len(at[id]) > 0 {
			all = append(all, &oci.Volume{ID: id})
			continue
		}
		v, err := c.options.Volumes.Get(ctx, id)
		switch {
		case isGone(err):
		case err != nil:
			return nil, fmt.Errorf("list volumes: that of a PersistentVolume: %w", err)
		default:
			all = append(all, v)
		}
	}
	return all, nil
}

// published says on which Nodes volumes are attached, by the IDs of the volumes.
func (c *Controller) published(ctx context.Context) (map[string][]string, error) {
	nodes, err := c.options.Cluster.Nodes(ctx)
	if err != nil {
		return nil, status.Errorf(codes.Unavailable, "list the Nodes: %v", err)
	}
	names := map[string]string{} // by instance
	var compartments []string
	for _, n := range nodes {
		names[n.InstanceID] = n.Name
		if n.CompartmentID != "" && !slices.Contains(compartments, n.CompartmentID) {
			compartments = append(compartments, n.CompartmentID)
		}
	}
	attachments, err := c.options.Volumes.Attachments(ctx, compartments...)
	if err != nil {
		return nil, err
	}
	out := map[string][]string{}
	for id, list := range attachments {
		for _, a := range list {
			node, known := names[a.InstanceID]
			if a.State == oci.AttachmentAttached && known && !slices.Contains(out[id], node) {
				out[id] = append(out[id], node)
			}
		}
		slices.Sort(out[id])
	}
	return out, nil
}

// ControllerGetVolume implements csi.ControllerServer.
func (c *Controller) ControllerGetVolume(ctx context.Context, r *spec.ControllerGetVolumeRequest) (*spec.ControllerGetVolumeResponse, error) {
	if err := required("volume ID", r.GetVolumeId()); err != nil {
		return nil, err
	}
	if err := exists("volume", r.GetVolumeId()); err != nil {
		return nil, err
	}
	v, err := c.options.Volumes.Get(ctx, r.GetVolumeId())
	if err != nil {
		return nil, err
	}
	out := &spec.ControllerGetVolumeResponse{Volume: volumeOf(v), Status: &spec.ControllerGetVolumeResponse_VolumeStatus{}}
	if c.options.PublishedNodes {
		at, err := c.published(ctx)
		if err != nil {
			return nil, err
		}
		out.Status.PublishedNodeIds = at[v.ID]
	}
	return out, nil
}

// paged cuts a page out of a list. The token is the ID that the last page ended before, so that pages fit together while things come and go.
func paged[T any](all []T, id func(T) string, token string, most int32) (part []T, next string, err error) {
	slices.SortFunc(all, func(a, b T) int { return cmp.Compare(id(a), id(b)) })
	if most < 0 {
		return nil, "", refuse(blockvolume.ErrInvalid, "max_entries is %d", most)
	}
	if token != "" {
		at, there := slices.BinarySearchFunc(all, token, func(a T, token string) int { return cmp.Compare(id(a), token) })
		if _, err := oci.ParseOCID(token); !there && err != nil {
			return nil, "", status.Errorf(codes.Aborted, "starting_token %q is not one of this driver's", token)
		}
		all = all[at:]
	}
	if most == 0 || int(most) >= len(all) {
		return all, "", nil
	}
	return all[:most], id(all[most]), nil
}
