// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package blockvolume

import (
	"context"
	"errors"
	"time"

	"k8s.io/klog/v2"

	"github.com/oracle/oci-cloud-controller-manager/pkg/oci"
)

// SnapshotRequest asks for a backup of a volume.
type SnapshotRequest struct {
	// Name identifies the backup; it becomes its display name.
	Name     string
	VolumeID string
	Full     bool // as opposed to incremental
	Tags     oci.Tags
	// Asked is when the user asked for it, see CreateRequest.
	Asked time.Time
}

// Snapshot is a backup of a volume.
type Snapshot struct {
	*oci.VolumeBackup
}

// Ready says whether volumes can be made from it.
func (b *Snapshot) Ready() bool { return b.State == oci.BackupAvailable }

// CreateSnapshot has a backup made, and returns as soon as it exists: it may become ready much later. It returns the backup
// that was made under the same name before, if there is one.
//
// Errors: ErrInvalid, ErrExists, ErrNotFound for the volume, ErrInUse while another backup is being made, ErrFailed,
// ErrExhausted, ErrPending, ErrForbidden, ErrUnavailable.
func (s *Service) CreateSnapshot(ctx context.Context, r SnapshotRequest) (*Snapshot, error) {
	switch {
	case r.Name == "":
		return nil, problem(ErrInvalid, "a snapshot needs a name")
	case IsBootVolume(r.VolumeID):
		return nil, problem(ErrInvalid, "snapshots of boot volumes are not supported: %s", r.VolumeID)
	}
	key := "snapshot " + r.Name
	release, err := lock(ctx, s.names, key, key)
	if err != nil {
		return nil, err
	}
	defer release()
	for {
		begun := time.Now()
		found, gone, compartment, err := s.findSnapshot(ctx, r)
		if err != nil || found != nil {
			return found, err
		}
		b := &oci.VolumeBackup{CompartmentID: compartment, DisplayName: r.Name, VolumeID: r.VolumeID, Full: r.Full}
		token := oci.RetryToken("CreateVolumeBackup", s.cfg.ClusterID, s.attempts.owner(key, gone), b)
		if at := s.attempts.settled(key, token, begun, r.Asked); !at.IsZero() {
			if err := pause(ctx, at, "proof that an earlier request made no "+key); err != nil {
				return nil, err
			}
			continue
		}
		klog.FromContext(ctx).Info("Creating backup", "snapshot", r.Name, "volumeID", r.VolumeID, "full", r.Full)
		made, err := sendTagged(s, key, token, s.tagChoices(r.Name, r.Tags, nil), func(tags oci.Tags) (*oci.VolumeBackup, error) {
			b.Tags = tags
			return s.deps.Storage.CreateVolumeBackup(ctx, b, token)
		})
		switch {
		case err == nil:
			return &Snapshot{made}, nil
		case errors.Is(err, oci.ErrInvalidRetryToken):
			continue // the token is another one now, and has to wait
		case refused(err):
			return nil, failed(err, "create snapshot %s of volume %s", r.Name, r.VolumeID)
		}
		return nil, because(outcomeUnknown(err), err, "create snapshot %s: whether it is being made is not known", r.Name)
	}
}

// findSnapshot looks for the backup of a name, and for what proves that there is none: gone is the youngest that there was,
// and compartment is where backups of the volume are made.
func (s *Service) findSnapshot(ctx context.Context, r SnapshotRequest) (found *Snapshot, gone, compartment string, err error) {
	compartment, volumeErr := s.cfg.CompartmentID, error(nil)
	v, err := s.Get(ctx, r.VolumeID)
	switch {
	case err == nil:
		compartment = v.CompartmentID
	case errors.Is(err, ErrNotFound): // a backup outlives its volume
		volumeErr = err
	default:
		return nil, "", "", inDoubt(err)
	}
	all, err := s.deps.Storage.ListVolumeBackups(ctx, compartment, "", r.Name)
	if err != nil {
		return nil, "", "", inDoubt(failed(err, "look for snapshot %s", r.Name))
	}
	var last time.Time
	for _, b := range all {
		owned := s.owns(r.Name, b.DisplayName, b.Tags)
		switch {
		case owned == notOwned, b.GroupBackupID != "":
		case b.State == oci.BackupTerminating, b.State == oci.BackupTerminated:
			if !b.TimeCreated.Before(last) {
				gone, last = b.ID, b.TimeCreated
			}
		case b.State == oci.BackupFaulty:
			if owned == ownedByMark {
				return nil, "", "", s.faultySnapshot(ctx, b)
			}
		case b.VolumeID != r.VolumeID:
			return nil, "", "", problem(ErrExists, "snapshot %s (%s) exists, but of volume %s, not %s", r.Name, b.ID, b.VolumeID, r.VolumeID)
		default:
			s.attempts.known("snapshot " + r.Name)
			return &Snapshot{b}, "", "", nil
		}
	}
	return nil, gone, compartment, volumeErr
}

// faultySnapshot removes a backup that the cloud failed to make.
func (s *Service) faultySnapshot(ctx context.Context, b *oci.VolumeBackup) error {
	if err := s.deps.Storage.DeleteVolumeBackup(ctx, b.ID); err != nil && !errors.Is(err, oci.ErrNotFound) {
		return inDoubt(failed(err, "remove FAULTY backup %s", b.ID))
	}
	return problem(ErrFailed, "snapshot %s (%s) came out FAULTY; it is removed, and made anew with the next request", b.DisplayName, b.ID)
}

// DeleteSnapshot deletes a backup. It does not wait for the end of it. One that is proven to be gone is deleted.
//
// Errors: ErrInUse while a volume is being made from it or its retention lasts, ErrPending while it is being made,
// ErrForbidden if nothing is proven, ErrUnavailable.
func (s *Service) DeleteSnapshot(ctx context.Context, id string) error {
	err := s.deps.Storage.DeleteVolumeBackup(ctx, id)
	switch {
	case err == nil:
		return nil
	case !errors.Is(err, oci.ErrNotFound):
		return failed(err, "delete snapshot %s", id)
	}
	b, presence, proof, err := s.lookForBackup(ctx, id)
	switch {
	case presence == oci.Unknown:
		return failed(err, "delete snapshot %s: whether it is gone is not known", id)
	case presence == oci.Gone:
		klog.FromContext(ctx).Info("Backup is gone already", "snapshotID", id, "proof", proof)
		return nil
	case b.State == oci.BackupTerminating:
		return nil
	}
	return problem(ErrForbidden, "snapshot %s is %s, but deleting it was answered as if it did not exist: is a policy to manage volume-backups in compartment %s missing?",
		id, b.State, b.CompartmentID)
}

// GetSnapshot reads a backup. Errors: ErrNotFound if it is proven to be gone, or is being deleted.
func (s *Service) GetSnapshot(ctx context.Context, id string) (*Snapshot, error) {
	b, presence, proof, err := s.lookForBackup(ctx, id)
	switch {
	case presence == oci.Unknown:
		return nil, failed(err, "read snapshot %s", id)
	case presence == oci.Gone, b.State == oci.BackupTerminating:
		return nil, problem(ErrNotFound, "snapshot %s does not exist any more (%s)", id, proof)
	}
	return &Snapshot{b}, nil
}

// ListSnapshots lists the backups in the compartment of volumes, of one volume or of all, oldest first.
func (s *Service) ListSnapshots(ctx context.Context, volumeID string) ([]*Snapshot, error) {
	all, err := s.deps.Storage.ListVolumeBackups(ctx, s.cfg.CompartmentID, volumeID, "")
	if err != nil {
		return nil, failed(err, "list snapshots")
	}
	var out []*Snapshot
	for _, b := range all {
		switch b.State {
		case oci.BackupTerminating, oci.BackupTerminated, oci.BackupFaulty:
		default:
			out = append(out, &Snapshot{b})
		}
	}
	sortSnapshots(out)
	return out, nil
}
