// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package block

import (
	"context"
	"errors"
	"slices"
	"time"

	spec "github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/oracle/oci-cloud-controller-manager/pkg/blockvolume"
)

// CreateSnapshot implements csi.ControllerServer. It answers as soon as the backup exists; whether it is ready is asked for later.
func (c *Controller) CreateSnapshot(ctx context.Context, r *spec.CreateSnapshotRequest) (*spec.CreateSnapshotResponse, error) {
	if err := required("name", r.GetName(), "source volume ID", r.GetSourceVolumeId()); err != nil {
		return nil, err
	}
	w, err := c.read(ctx, VolumeSnapshotClass, r.GetParameters(), nil)
	if err != nil {
		return nil, err
	}
	if err := exists("volume", r.GetSourceVolumeId()); err != nil {
		return nil, err
	}
	made, err := c.options.Volumes.CreateSnapshot(ctx, blockvolume.SnapshotRequest{
		Name: r.GetName(), VolumeID: r.GetSourceVolumeId(), Full: !w.incremental, Tags: w.tags,
	})
	if err != nil {
		return nil, err
	}
	return &spec.CreateSnapshotResponse{Snapshot: snapshotOf(made)}, nil
}

func snapshotOf(b *blockvolume.Snapshot) *spec.Snapshot {
	return &spec.Snapshot{
		SnapshotId:      b.ID,
		SourceVolumeId:  b.VolumeID,
		SizeBytes:       b.SizeBytes,
		CreationTime:    timestamppb.New(b.TimeCreated),
		ReadyToUse:      b.Ready(),
		GroupSnapshotId: b.GroupBackupID,
	}
}

// DeleteSnapshot implements csi.ControllerServer. What cannot be an identifier of a backup is none, and is gone.
func (c *Controller) DeleteSnapshot(ctx context.Context, r *spec.DeleteSnapshotRequest) (*spec.DeleteSnapshotResponse, error) {
	if err := required("snapshot ID", r.GetSnapshotId()); err != nil {
		return nil, err
	}
	if impossible(r.GetSnapshotId()) {
		return &spec.DeleteSnapshotResponse{}, nil
	}
	if err := c.options.Volumes.DeleteSnapshot(ctx, r.GetSnapshotId()); err != nil {
		return nil, err
	}
	return &spec.DeleteSnapshotResponse{}, nil
}

// GetSnapshot implements csi.ControllerServer.
func (c *Controller) GetSnapshot(ctx context.Context, r *spec.GetSnapshotRequest) (*spec.GetSnapshotResponse, error) {
	if err := required("snapshot ID", r.GetSnapshotId()); err != nil {
		return nil, err
	}
	if err := exists("snapshot", r.GetSnapshotId()); err != nil {
		return nil, err
	}
	b, err := c.options.Volumes.GetSnapshot(ctx, r.GetSnapshotId())
	if err != nil {
		return nil, err
	}
	return &spec.GetSnapshotResponse{Snapshot: snapshotOf(b)}, nil
}

// ListSnapshots implements csi.ControllerServer: one by its ID, those of a volume, or all in the compartment of volumes.
func (c *Controller) ListSnapshots(ctx context.Context, r *spec.ListSnapshotsRequest) (*spec.ListSnapshotsResponse, error) {
	all, err := c.snapshots(ctx, r)
	if err != nil {
		return nil, err
	}
	part, next, err := paged(all, func(b *blockvolume.Snapshot) string { return b.ID }, r.GetStartingToken(), r.GetMaxEntries())
	if err != nil {
		return nil, err
	}
	out := &spec.ListSnapshotsResponse{NextToken: next}
	for _, b := range part {
		out.Entries = append(out.Entries, &spec.ListSnapshotsResponse_Entry{Snapshot: snapshotOf(b)})
	}
	return out, nil
}

func (c *Controller) snapshots(ctx context.Context, r *spec.ListSnapshotsRequest) ([]*blockvolume.Snapshot, error) {
	if r.GetSnapshotId() == "" {
		if id := r.GetSourceVolumeId(); id != "" && impossible(id) {
			return nil, nil
		}
		return c.options.Volumes.ListSnapshots(ctx, r.GetSourceVolumeId())
	}
	if impossible(r.GetSnapshotId()) {
		return nil, nil
	}
	b, err := c.options.Volumes.GetSnapshot(ctx, r.GetSnapshotId())
	switch {
	case errors.Is(err, blockvolume.ErrNotFound):
		return nil, nil
	case err != nil:
		return nil, err
	case r.GetSourceVolumeId() != "" && b.VolumeID != r.GetSourceVolumeId():
		return nil, nil
	}
	return []*blockvolume.Snapshot{b}, nil
}

// CreateVolumeGroupSnapshot implements csi.GroupControllerServer. It answers when all backups are complete, and says until then that it is still
// working: snapshot-controller (v8.7) writes down what this answer says of the members, again and again, over what
// external-snapshotter finds out later, so that a member that is not ready here could never be restored.
func (c *Controller) CreateVolumeGroupSnapshot(ctx context.Context, r *spec.CreateVolumeGroupSnapshotRequest) (*spec.CreateVolumeGroupSnapshotResponse, error) {
	if err := required("name", r.GetName()); err != nil {
		return nil, err
	}
	if len(r.GetSourceVolumeIds()) == 0 {
		return nil, required("source volume IDs", "")
	}
	w, err := c.read(ctx, VolumeGroupSnapshotClass, r.GetParameters(), nil)
	if err != nil {
		return nil, err
	}
	made, err := c.options.Volumes.CreateGroupSnapshot(ctx, blockvolume.GroupSnapshotRequest{
		Name: r.GetName(), VolumeIDs: r.GetSourceVolumeIds(), Full: !w.incremental, Tags: w.tags,
	})
	if err != nil {
		return nil, err
	}
	if made, err = c.completeGroup(ctx, made); err != nil {
		return nil, err
	}
	return &spec.CreateVolumeGroupSnapshotResponse{GroupSnapshot: groupOf(made)}, nil
}

const (
	// firstGroupPause and lastGroupPause bound the time between two looks at a group snapshot.
	firstGroupPause, lastGroupPause = 2 * time.Second, 15 * time.Second
	// groupMargin is left of the caller's time for the answer.
	groupMargin = 5 * time.Second
)

// completeGroup waits until the backups of a group are complete, for as long as the caller does.
func (c *Controller) completeGroup(ctx context.Context, g *blockvolume.GroupSnapshot) (*blockvolume.GroupSnapshot, error) {
	for pause := firstGroupPause; !g.Ready; pause = min(2*pause, lastGroupPause) {
		if end, limited := ctx.Deadline(); limited && time.Until(end) < pause+groupMargin {
			return nil, refuse(blockvolume.ErrPending, "the backups of group snapshot %s are there, and not complete yet: large volumes take long", g.ID)
		}
		select {
		case <-ctx.Done():
			return nil, refuse(blockvolume.ErrPending, "group snapshot %s: %v", g.ID, context.Cause(ctx))
		case <-time.After(pause):
		}
		var err error
		if g, err = c.options.Volumes.GetGroupSnapshot(ctx, g.ID); err != nil {
			return nil, err
		}
	}
	return g, nil
}

func groupOf(g *blockvolume.GroupSnapshot) *spec.VolumeGroupSnapshot {
	out := &spec.VolumeGroupSnapshot{GroupSnapshotId: g.ID, CreationTime: timestamppb.New(g.Created), ReadyToUse: g.Ready}
	for _, b := range g.Snapshots {
		s := snapshotOf(b)
		s.GroupSnapshotId = g.ID // of the whole, which may be spread over availability domains
		out.Snapshots = append(out.Snapshots, s)
	}
	return out
}

// GetVolumeGroupSnapshot implements csi.GroupControllerServer.
func (c *Controller) GetVolumeGroupSnapshot(ctx context.Context, r *spec.GetVolumeGroupSnapshotRequest) (*spec.GetVolumeGroupSnapshotResponse, error) {
	if err := required("group snapshot ID", r.GetGroupSnapshotId()); err != nil {
		return nil, err
	}
	g, err := c.options.Volumes.GetGroupSnapshot(ctx, r.GetGroupSnapshotId())
	if err != nil {
		return nil, err
	}
	if err := consists(g, r.GetSnapshotIds()); err != nil {
		return nil, err
	}
	return &spec.GetVolumeGroupSnapshotResponse{GroupSnapshot: groupOf(g)}, nil
}

// DeleteVolumeGroupSnapshot implements csi.GroupControllerServer.
func (c *Controller) DeleteVolumeGroupSnapshot(ctx context.Context, r *spec.DeleteVolumeGroupSnapshotRequest) (*spec.DeleteVolumeGroupSnapshotResponse, error) {
	if err := required("group snapshot ID", r.GetGroupSnapshotId()); err != nil {
		return nil, err
	}
	if len(r.GetSnapshotIds()) > 0 {
		g, err := c.options.Volumes.GetGroupSnapshot(ctx, r.GetGroupSnapshotId())
		switch {
		case errors.Is(err, blockvolume.ErrNotFound):
		case err != nil:
			return nil, err
		default:
			if err := consists(g, r.GetSnapshotIds()); err != nil {
				return nil, err
			}
		}
	}
	if err := c.options.Volumes.DeleteGroupSnapshot(ctx, r.GetGroupSnapshotId()); err != nil {
		return nil, err
	}
	return &spec.DeleteVolumeGroupSnapshotResponse{}, nil
}

// consists checks that the snapshots that the caller knows are of the group.
func consists(g *blockvolume.GroupSnapshot, snapshots []string) error {
	for _, id := range snapshots {
		if !slices.ContainsFunc(g.Snapshots, func(b *blockvolume.Snapshot) bool { return b.ID == id }) {
			return refuse(blockvolume.ErrInvalid, "snapshot %s is not of group snapshot %s", id, g.ID)
		}
	}
	return nil
}
