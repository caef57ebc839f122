// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package blockvolume

import (
	"context"
	"errors"
	"strings"
	"time"

	"k8s.io/klog/v2"

	"github.com/oracle/oci-cloud-controller-manager/pkg/oci"
)

// GetGroupSnapshot reads a group snapshot by its ID. The temporary volume group of one that is ready is removed.
func (s *Service) GetGroupSnapshot(ctx context.Context, id string) (*GroupSnapshot, error) {
	backups, err := s.groupBackups(ctx, id)
	if err != nil {
		return nil, err
	}
	if len(backups) == 0 {
		return nil, problem(ErrNotFound, "group snapshot %s does not exist any more", id)
	}
	for _, b := range backups {
		if b.State == oci.BackupFaulty {
			return nil, problem(ErrFailed, "group snapshot %s is FAULTY", id)
		}
	}
	return s.groupSnapshot(ctx, strings.TrimPrefix(id, groupSetPrefix), backups)
}

// groupBackups reads the volume group backups of a group snapshot. None means that they are proven to be gone.
func (s *Service) groupBackups(ctx context.Context, id string) ([]*oci.VolumeGroupBackup, error) {
	name, isSet := strings.CutPrefix(id, groupSetPrefix)
	var one *oci.VolumeGroupBackup
	if isSet {
		return s.groupBackupSet(ctx, name)
	}
	presence, _, err := oci.Decide(ctx, oci.Evidence{
		Read: func(ctx context.Context) (string, error) {
			b, err := s.deps.Storage.GetVolumeGroupBackup(ctx, id)
			if err != nil {
				return "", err
			}
			one = b
			return b.State, nil
		},
		Terminal:    []string{oci.BackupTerminated},
		Compartment: s.cfg.CompartmentID,
		List: func(ctx context.Context) (string, bool, error) {
			list, err := s.deps.Storage.ListVolumeGroupBackups(ctx, s.cfg.CompartmentID, "")
			if err != nil {
				return "", false, err
			}
			for _, b := range list {
				if b.ID == id {
					one = b
					return b.State, true, nil
				}
			}
			return "", false, nil
		},
	})
	switch {
	case presence == oci.Unknown:
		return nil, failed(err, "read group snapshot %s", id)
	case presence == oci.Gone, !lives(one):
		return nil, nil
	}
	return []*oci.VolumeGroupBackup{one}, nil
}

// groupBackupSet finds the volume group backups of a group snapshot that is spread over availability domains. What a process
// made that ended a moment ago may not be in the lists yet.
func (s *Service) groupBackupSet(ctx context.Context, name string) ([]*oci.VolumeGroupBackup, error) {
	for {
		begun := time.Now()
		list, err := s.deps.Storage.ListVolumeGroupBackups(ctx, s.cfg.CompartmentID, "")
		if err != nil {
			return nil, failed(err, "look for group snapshot %s", name)
		}
		var found []*oci.VolumeGroupBackup
		for _, b := range list {
			if strings.HasPrefix(b.DisplayName, name+"-") && s.owns(b.DisplayName, b.DisplayName, b.Tags) == ownedByMark && lives(b) {
				found = append(found, b)
			}
		}
		until := s.attempts.started.Add(s.attempts.settle)
		if len(found) > 0 || !begun.Before(until) {
			return found, nil
		}
		if err := pause(ctx, until, "proof that there is no group snapshot "+name); err != nil {
			return nil, err
		}
	}
}

func lives(b *oci.VolumeGroupBackup) bool {
	return b.State != oci.BackupTerminating && b.State != oci.BackupTerminated
}

// DeleteGroupSnapshot deletes a group snapshot with the backups of its volumes, and the temporary volume group if it is
// still there. It does not wait for the end of it. What is proven to be gone is deleted.
//
// Errors: ErrPending while it is being made, ErrInUse while a volume is being made from it, ErrForbidden, ErrUnavailable.
func (s *Service) DeleteGroupSnapshot(ctx context.Context, id string) error {
	backups, err := s.groupBackups(ctx, id)
	if err != nil {
		return err
	}
	for _, b := range backups {
		if err := s.removeGroup(ctx, b.GroupID, b.DisplayName); err != nil {
			return err
		}
		err := s.deps.Storage.DeleteVolumeGroupBackup(ctx, b.ID)
		if errors.Is(err, oci.ErrNotFound) {
			// Unless it went away meanwhile, a policy is missing.
			left, readErr := s.groupBackups(ctx, b.ID)
			switch {
			case readErr != nil:
				return readErr
			case len(left) == 0:
				continue
			}
		}
		if err != nil {
			return failed(err, "delete group snapshot %s", b.ID)
		}
	}
	return nil
}

// removeGroup removes a temporary volume group, if it is there and ours.
func (s *Service) removeGroup(ctx context.Context, id, name string) error {
	if id == "" {
		return nil
	}
	g, err := s.deps.Storage.GetVolumeGroup(ctx, id)
	switch {
	case errors.Is(err, oci.ErrNotFound):
		return nil // if it is there after all, the next look finds it
	case err != nil:
		return failed(err, "read volume group %s", id)
	case g.State == oci.GroupTerminating, g.State == oci.GroupTerminated, g.DisplayName != name, !s.temporary(g):
		return nil
	}
	klog.FromContext(ctx).Info("Removing temporary volume group", "group", name, "groupID", id)
	if err := s.deps.Storage.DeleteVolumeGroup(ctx, id); err != nil && !errors.Is(err, oci.ErrNotFound) {
		return failed(err, "remove volume group %s", id)
	}
	return nil
}

// leaveOwnGroup takes a volume that is to be deleted out of a temporary group that nobody needs any more: its snapshot is
// done, or was given up before it began. It says whether it did.
func (s *Service) leaveOwnGroup(ctx context.Context, volumeID string) (bool, error) {
	v, err := s.deps.Storage.GetVolume(ctx, volumeID)
	if err != nil || v.GroupID == "" {
		return false, nil // the refusal of the delete tells more
	}
	g, err := s.deps.Storage.GetVolumeGroup(ctx, v.GroupID)
	if err != nil || !s.temporary(g) {
		return false, nil
	}
	release, err := lock(ctx, s.names, groupKey(g.DisplayName), "group snapshot "+g.DisplayName)
	if err != nil {
		return false, err
	}
	defer release()
	list, err := s.deps.Storage.ListVolumeGroupBackups(ctx, g.CompartmentID, g.DisplayName)
	if err != nil {
		return false, failed(err, "look for group snapshot %s", g.DisplayName)
	}
	for _, b := range list {
		if b.GroupID == g.ID && (b.State == oci.BackupRequested || b.State == oci.BackupCreating) {
			return false, problem(ErrPending, "volume %s is part of group snapshot %s, which is being made", volumeID, b.ID)
		}
	}
	if err := s.removeGroup(ctx, g.ID, g.DisplayName); err != nil {
		return false, err
	}
	_, err = s.groups.until(ctx, g.CompartmentID, g.ID, func(g *oci.VolumeGroup) bool { return g.State == oci.GroupTerminated })
	if err != nil && !errors.Is(err, errVanished) {
		return false, failed(err, "wait for the end of volume group %s", g.ID)
	}
	return true, nil
}
