// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package blockvolume

import (
	"context"
	"errors"

	"k8s.io/klog/v2"

	"github.com/oracle/oci-cloud-controller-manager/pkg/oci"
)

// usable waits until a volume can be used. One of ours that comes out FAULTY is removed.
func (s *Service) usable(ctx context.Context, v *oci.Volume, name string) (*oci.Volume, error) {
	done := func(v *oci.Volume) bool {
		switch v.State {
		case oci.VolumeAvailable:
			return v.Hydrated
		case oci.VolumeFaulty, oci.VolumeTerminating, oci.VolumeTerminated:
			return true
		}
		return false
	}
	if !done(v) {
		var err error
		if v, err = s.volumes.until(ctx, orDefault(v.CompartmentID, s.cfg.CompartmentID), v.ID, done); err != nil {
			return nil, inDoubt(failed(err, "wait for volume %s", name))
		}
	}
	switch v.State {
	case oci.VolumeAvailable:
		return v, nil
	case oci.VolumeFaulty:
		if s.owns(name, v.DisplayName, v.Tags) != ownedByMark {
			return nil, problem(ErrFailed, "volume %s (%s) came out FAULTY; it does not carry our mark, so delete it by hand; the next request makes another", name, v.ID)
		}
		if err := s.removeFaulty(ctx, v); err != nil {
			return nil, inDoubt(err)
		}
		return nil, problem(ErrFailed, "volume %s (%s) came out FAULTY; it is removed, and made anew with the next request", name, v.ID)
	default:
		return nil, problem(ErrPending, "somebody is deleting volume %s (%s)", name, v.ID)
	}
}

// removeFaulty removes a volume of ours that the cloud failed to make.
func (s *Service) removeFaulty(ctx context.Context, v *oci.Volume) error {
	klog.FromContext(ctx).Info("Removing FAULTY volume", "volume", v.DisplayName, "volumeID", v.ID)
	if err := s.deps.Storage.DeleteVolume(ctx, v.ID); err != nil && !errors.Is(err, oci.ErrNotFound) {
		return failed(err, "remove FAULTY volume %s", v.ID)
	}
	return nil
}
