// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package blockvolume

import (
	"context"
	"errors"

	"k8s.io/klog/v2"

	"github.com/oracle/oci-cloud-controller-manager/pkg/oci"
)

// Expand makes a volume at least as large as required, and waits until it is. The answer has its real size. Volumes never
// shrink. 0 stands for "no matter".
//
// Errors: ErrOutOfRange, ErrNotFound, ErrInvalid, ErrInUse while a backup is being made, ErrPending, ErrFailed, ErrExhausted,
// ErrForbidden, ErrUnavailable.
func (s *Service) Expand(ctx context.Context, id string, requiredBytes, limitBytes int64) (*oci.Volume, error) {
	sizeGB, err := SizeGB(requiredBytes, limitBytes)
	if err != nil {
		return nil, err
	}
	size := sizeGB * gibibyte
	v, err := s.change(ctx, id, "expand", func(v *oci.Volume) (oci.VolumeChange, bool, error) {
		if v.SizeBytes < size {
			return oci.VolumeChange{SizeGB: sizeGB}, true, nil
		}
		if limitBytes > 0 && v.SizeBytes > limitBytes {
			return oci.VolumeChange{}, false, problem(ErrOutOfRange, "volume %s has %d bytes already, which is above the limit of %d", id, v.SizeBytes, limitBytes)
		}
		return oci.VolumeChange{}, false, nil
	}, func(v *oci.Volume) bool { return v.SizeBytes >= size })
	if err != nil {
		return nil, err
	}
	s.sizes.note(v)
	return v, nil
}

// changeRounds is how often somebody else's changes may come between a read and a write.
const changeRounds = 5

// change reads a volume, writes what has to be written, and waits until it has taken effect. wanted says whether there is
// something to write; there says whether it has taken effect.
func (s *Service) change(ctx context.Context, id, verb string, wanted func(*oci.Volume) (oci.VolumeChange, bool, error), there func(*oci.Volume) bool) (*oci.Volume, error) {
	if IsBootVolume(id) {
		return nil, problem(ErrInvalid, "%s %s: it is a boot volume", verb, id)
	}
	sent, v, err := s.sendChange(ctx, id, verb, wanted)
	if err != nil || !sent {
		return v, err
	}
	busy := v.State != oci.VolumeAvailable
	if !busy && there(v) {
		return v, nil
	}
	// A volume that was busy and is at rest again, unchanged, is one that the cloud could not change.
	v, err = s.volumes.until(ctx, v.CompartmentID, id, func(v *oci.Volume) bool {
		switch v.State {
		case oci.VolumeAvailable:
			return busy || there(v)
		case oci.VolumeProvisioning, oci.VolumeRestoring:
			busy = true
			return false
		}
		return true
	})
	switch {
	case err != nil:
		return nil, failed(err, "%s volume %s", verb, id)
	case v.State != oci.VolumeAvailable:
		return nil, problem(ErrInvalid, "%s volume %s: it is %s", verb, id, v.State)
	case !there(v):
		return nil, problem(ErrFailed, "%s volume %s: the cloud accepted it, and the volume is as before", verb, id)
	}
	return v, nil
}

// sendChange brings a volume to rest, and sends what has to be written.
func (s *Service) sendChange(ctx context.Context, id, verb string, wanted func(*oci.Volume) (oci.VolumeChange, bool, error)) (sent bool, v *oci.Volume, err error) {
	release, err := lock(ctx, s.ids, id, "volume "+id)
	if err != nil {
		return false, nil, err
	}
	defer release()
	for round := 0; ; round++ {
		if v, err = s.Get(ctx, id); err != nil {
			return false, nil, err
		}
		if v, err = s.atRest(ctx, v, verb, false); err != nil {
			return false, nil, err
		}
		change, some, err := wanted(v)
		if err != nil || !some {
			return false, v, err
		}
		if change.SizeGB > 0 && !v.Hydrated {
			if v, err = s.atRest(ctx, v, verb, true); err != nil {
				return false, nil, err
			}
			v.ETag = "" // that of the read before the wait is outdated
		}
		klog.FromContext(ctx).Info("Changing volume", "volumeID", id, "what", verb)
		changed, err := s.deps.Storage.UpdateVolume(ctx, id, change, v.ETag)
		switch {
		case err == nil:
			if changed.CompartmentID == "" {
				changed.CompartmentID = v.CompartmentID
			}
			return true, changed, nil
		case errors.Is(err, oci.ErrPrecondition) && round < changeRounds:
			continue
		case errors.Is(err, oci.ErrNotFound):
			return false, nil, because(ErrForbidden, err, "%s volume %s, which is %s: is a policy to use volumes in compartment %s missing?", verb, id, v.State, v.CompartmentID)
		}
		return false, nil, failed(err, "%s volume %s", verb, id)
	}
}

// atRest waits until a volume is AVAILABLE and, if asked for, has its content.
func (s *Service) atRest(ctx context.Context, v *oci.Volume, verb string, hydrated bool) (*oci.Volume, error) {
	resting := func(v *oci.Volume) bool {
		switch v.State {
		case oci.VolumeProvisioning, oci.VolumeRestoring:
			return false
		case oci.VolumeAvailable:
			return v.Hydrated || !hydrated
		}
		return true
	}
	if !resting(v) {
		id := v.ID
		seen, err := s.volumes.until(ctx, v.CompartmentID, id, resting)
		if err != nil {
			return nil, failed(err, "%s volume %s", verb, id)
		}
		v = seen
	}
	switch v.State {
	case oci.VolumeAvailable:
		return v, nil
	case oci.VolumeTerminating, oci.VolumeTerminated:
		return nil, problem(ErrNotFound, "%s volume %s: it is %s", verb, v.ID, v.State)
	}
	return nil, problem(ErrInvalid, "%s volume %s: it is %s", verb, v.ID, v.State)
}
