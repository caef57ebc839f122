// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package blockvolume

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"k8s.io/klog/v2"

	"github.com/oracle/oci-cloud-controller-manager/pkg/oci"
)

// Delete deletes a volume. It does not wait for the end of it. One that is proven to be gone is deleted.
//
// Errors: ErrInUse while it is attached or in a volume group of somebody else's, ErrForbidden if nothing is proven,
// ErrPending, ErrUnavailable.
func (s *Service) Delete(ctx context.Context, id string) error {
	if IsBootVolume(id) {
		return problem(ErrInvalid, "boot volumes are not deleted: %s", id)
	}
	release, err := lock(ctx, s.ids, id, "volume "+id)
	if err != nil {
		return err
	}
	defer release()
	if s.ending.has(id) {
		// The cloud refuses to delete what is about to end, for as long as that takes.
		v, presence, proof, err := s.lookForVolume(ctx, id)
		switch {
		case presence == oci.Unknown:
			return failed(err, "delete volume %s: whether it is gone is not known", id)
		case presence == oci.Gone:
			klog.FromContext(ctx).Info("Volume is gone already", "volumeID", id, "proof", proof)
			return nil
		case v.State == oci.VolumeTerminating:
			return nil
		}
	}
	err = s.deps.Storage.DeleteVolume(ctx, id)
	if isInUse(err) {
		left, groupErr := s.leaveOwnGroup(ctx, id)
		switch {
		case groupErr != nil:
			return groupErr
		case left:
			err = s.deps.Storage.DeleteVolume(ctx, id)
		}
	}
	switch {
	case err == nil:
		s.tries.forgetVolume(id)
		s.ending.add(id)
		return nil
	case errors.Is(err, oci.ErrNotFound):
		return s.goneForGood(ctx, id)
	case isInUse(err):
		return because(ErrInUse, err, "delete volume %s%s", id, s.whyInUse(ctx, id))
	}
	return failed(err, "delete volume %s", id)
}

// isInUse tells a conflict that somebody has to resolve from one that passes by itself.
func isInUse(err error) bool {
	return errors.Is(err, oci.ErrConflict) && !errors.Is(err, oci.ErrIncorrectState)
}

// goneForGood judges a delete that was answered as if there were no such volume.
func (s *Service) goneForGood(ctx context.Context, id string) error {
	v, presence, proof, err := s.lookForVolume(ctx, id)
	switch {
	case presence == oci.Unknown:
		return failed(err, "delete volume %s: whether it is gone is not known", id)
	case presence == oci.Gone:
		klog.FromContext(ctx).Info("Volume is gone already", "volumeID", id, "proof", proof)
		return nil
	case v.State == oci.VolumeTerminating:
		return nil
	}
	return problem(ErrForbidden, "volume %s is %s, but deleting it was answered as if it did not exist: is a policy to manage volumes in compartment %s missing?",
		id, v.State, v.CompartmentID)
}

// whyInUse names the instances that a volume is attached to, as far as they can be found.
func (s *Service) whyInUse(ctx context.Context, id string) string {
	var where []string
	for _, compartment := range s.compartments(s.tries.compartments(id)...) {
		list, err := s.deps.Compute.ListVolumeAttachments(ctx, compartment, oci.AttachmentFilter{VolumeID: id})
		if err != nil {
			continue
		}
		for _, a := range list {
			if a.State != oci.AttachmentDetached {
				where = append(where, fmt.Sprintf("%s at instance %s", a.State, a.InstanceID))
			}
		}
	}
	if len(where) == 0 {
		return ""
	}
	return ", which is " + strings.Join(where, " and ")
}
