// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package blockvolume

import (
	"context"
	"slices"
	"strings"

	"github.com/oracle/oci-cloud-controller-manager/pkg/oci"
)

// Get reads a volume or boot volume. Errors: ErrNotFound if it is proven to be gone, ErrForbidden if it may be there.
func (s *Service) Get(ctx context.Context, id string) (*oci.Volume, error) {
	v, presence, proof, err := s.lookForVolume(ctx, id)
	switch presence {
	case oci.Present:
		return v, nil
	case oci.Gone:
		return nil, problem(ErrNotFound, "volume %s does not exist any more (%s)", id, proof)
	default:
		return nil, failed(err, "read volume %s", id)
	}
}

// lookForVolume finds out whether a volume exists. A volume that is being terminated is Present. The compartment in which
// volumes are made is the one whose list proves an absence: boot volumes are not made here, so theirs is never proven.
func (s *Service) lookForVolume(ctx context.Context, id string) (v *oci.Volume, p oci.Presence, proof oci.Proof, err error) {
	e := oci.Evidence{
		Read: func(ctx context.Context) (string, error) {
			get := s.deps.Storage.GetVolume
			if IsBootVolume(id) {
				get = s.deps.Storage.GetBootVolume
			}
			found, err := get(ctx, id)
			if err != nil {
				return "", err
			}
			v = found
			return v.State, nil
		},
		Terminal: []string{oci.VolumeTerminated},
		List: func(ctx context.Context) (string, bool, error) {
			all, err := s.deps.Storage.ListVolumes(ctx, s.cfg.CompartmentID, "")
			if err != nil {
				return "", false, err
			}
			for _, one := range all {
				if one.ID == id {
					v = one
					return one.State, true, nil
				}
			}
			return "", false, nil
		},
	}
	if !IsBootVolume(id) {
		e.Compartment = s.cfg.CompartmentID
	}
	p, proof, err = oci.Decide(ctx, e)
	return v, p, proof, err
}

// lookForBackup is lookForVolume for backups.
func (s *Service) lookForBackup(ctx context.Context, id string) (b *oci.VolumeBackup, p oci.Presence, proof oci.Proof, err error) {
	p, proof, err = oci.Decide(ctx, oci.Evidence{
		Read: func(ctx context.Context) (string, error) {
			found, err := s.deps.Storage.GetVolumeBackup(ctx, id)
			if err != nil {
				return "", err
			}
			b = found
			return b.State, nil
		},
		Terminal:    []string{oci.BackupTerminated},
		Compartment: s.cfg.CompartmentID,
		List: func(ctx context.Context) (string, bool, error) {
			all, err := s.deps.Storage.ListVolumeBackups(ctx, s.cfg.CompartmentID, "", "")
			if err != nil {
				return "", false, err
			}
			for _, one := range all {
				if one.ID == id {
					b = one
					return one.State, true, nil
				}
			}
			return "", false, nil
		},
	})
	return b, p, proof, err
}

// namesakes are the volumes that were made under a name: those that live, best first, those that came out FAULTY, and the
// youngest of those that are gone.
type namesakes struct {
	live, faulty []*oci.Volume
	gone         *oci.Volume
}

// findVolumes looks for the volumes of a name. Their display name is the name, and the mark tells them from others'.
func (s *Service) findVolumes(ctx context.Context, name string) (namesakes, error) {
	all, err := s.deps.Storage.ListVolumes(ctx, s.cfg.CompartmentID, name)
	if err != nil {
		return namesakes{}, failed(err, "look for volume %s", name)
	}
	var found namesakes
	for _, v := range all {
		owned := s.owns(name, v.DisplayName, v.Tags)
		switch {
		case owned == notOwned:
		case v.State == oci.VolumeTerminating, v.State == oci.VolumeTerminated:
			if owned == ownedByMark && (found.gone == nil || v.TimeCreated.After(found.gone.TimeCreated)) {
				found.gone = v
			}
		case v.State == oci.VolumeFaulty:
			if owned == ownedByMark {
				found.faulty = append(found.faulty, v)
			}
		default:
			found.live = append(found.live, v)
		}
	}
	// The oldest was answered with first. Those with our mark outweigh those that only have the name.
	slices.SortFunc(found.live, func(a, b *oci.Volume) int {
		if rank := s.owns(name, b.DisplayName, b.Tags) - s.owns(name, a.DisplayName, a.Tags); rank != 0 {
			return int(rank)
		}
		if c := a.TimeCreated.Compare(b.TimeCreated); c != 0 {
			return c
		}
		return strings.Compare(a.ID, b.ID)
	})
	return found, nil
}
