// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package blockvolume

import (
	"context"
	"errors"
	"slices"
	"time"

	"k8s.io/klog/v2"

	"github.com/oracle/oci-cloud-controller-manager/pkg/oci"
)

// DetachRequest asks for the end of an attachment.
type DetachRequest struct {
	VolumeID string
	// InstanceID is empty if nobody knows it any more; then Node says which attachment is meant. Without both, all are.
	InstanceID string
	Node       string
	// CompartmentID is where the instance is or was, if somebody knows.
	CompartmentID string
}

// Detach ends the attachment of a volume to an instance and waits until it is over. It needs neither the Node nor the
// instance: the attachments of the volume are what counts. None is success.
//
// Errors: ErrPending, ErrForbidden where it cannot be known whether there is one, ErrUnavailable, ErrFailed.
func (s *Service) Detach(ctx context.Context, r DetachRequest) error {
	for {
		begun := time.Now()
		open, err := s.endAttachments(ctx, r)
		if err != nil {
			return err
		}
		if len(open) == 0 {
			until := s.tries.settled(r.VolumeID, begun)
			if until.IsZero() {
				return nil
			}
			// An attachment that was asked for a moment ago may not have shown up yet.
			if err := pause(ctx, until, "proof that volume "+r.VolumeID+" is not attached"); err != nil {
				return err
			}
			continue
		}
		for _, a := range open {
			if err := s.untilDetached(ctx, a); err != nil {
				return err
			}
			s.tries.forget(r.VolumeID, a.InstanceID)
			s.devices.giveBack(a.InstanceID, r.VolumeID)
		}
		return nil
	}
}

// endAttachments finds the attachments that are meant, and asks for the end of those that are not about to end.
func (s *Service) endAttachments(ctx context.Context, r DetachRequest) ([]*oci.VolumeAttachment, error) {
	release, err := lock(ctx, s.ids, r.VolumeID, "volume "+r.VolumeID)
	if err != nil {
		return nil, err
	}
	defer release()
	open, err := s.meant(ctx, r)
	if err != nil {
		return nil, err
	}
	for _, a := range open {
		if a.State == oci.AttachmentAttaching {
			settled, err := s.attachments.until(ctx, a.CompartmentID, a.ID, func(a *oci.VolumeAttachment) bool {
				return a.State != oci.AttachmentAttaching
			})
			switch {
			case errors.Is(err, errVanished):
				continue
			case err != nil:
				return nil, failed(err, "detach volume %s, which is being attached", r.VolumeID)
			}
			a.State = settled.State
		}
		if a.State != oci.AttachmentAttached {
			continue
		}
		klog.FromContext(ctx).Info("Detaching volume", "volumeID", a.VolumeID, "instanceID", a.InstanceID, "attachmentID", a.ID)
		if err := s.deps.Compute.DetachVolume(ctx, a.ID); err != nil {
			if err := s.endedAnyway(ctx, a, err); err != nil {
				return nil, err
			}
		}
	}
	return open, nil
}

// endedAnyway judges a detachment that was refused: it may be over, or be about to.
func (s *Service) endedAnyway(ctx context.Context, a *oci.VolumeAttachment, refusal error) error {
	if !errors.Is(refusal, oci.ErrNotFound) && !errors.Is(refusal, oci.ErrConflict) {
		return failed(refusal, "detach volume %s from instance %s", a.VolumeID, a.InstanceID)
	}
	now, err := s.deps.Compute.GetVolumeAttachment(ctx, a.ID)
	switch {
	case errors.Is(err, oci.ErrNotFound):
		return nil // untilDetached finds out
	case err != nil:
		return failed(err, "read attachment %s", a.ID)
	case now.State == oci.AttachmentDetached, now.State == oci.AttachmentDetaching:
		a.State = now.State
		return nil
	case errors.Is(refusal, oci.ErrNotFound):
		return because(ErrForbidden, refusal, "detach volume %s from instance %s: attachment %s is %s; is a policy to manage volume-attachments, and to use volumes and instances, missing?",
			a.VolumeID, a.InstanceID, a.ID, now.State)
	}
	return failed(refusal, "detach volume %s from instance %s", a.VolumeID, a.InstanceID)
}

// meant finds the attachments that are not over, in all compartments where they may be.
func (s *Service) meant(ctx context.Context, r DetachRequest) ([]*oci.VolumeAttachment, error) {
	where := s.compartments(slices.Concat([]string{r.CompartmentID}, s.tries.compartments(r.VolumeID))...)
	list, err := s.attachmentsOf(ctx, r.VolumeID, where)
	if err != nil {
		return nil, err
	}
	found, err := s.narrow(ctx, r, list)
	if err != nil || len(found) > 0 {
		return found, err
	}
	// Not in the lists: those that this process made and that have not shown up, and those of an instance elsewhere.
	for _, id := range s.tries.ids(r.VolumeID) {
		a, err := s.deps.Compute.GetVolumeAttachment(ctx, id)
		switch {
		case errors.Is(err, oci.ErrNotFound):
		case err != nil:
			return nil, failed(err, "read attachment %s", id)
		default:
			list = append(list, a)
		}
	}
	if r.InstanceID != "" {
		instance, err := s.instances.get(ctx, r.InstanceID)
		switch {
		case errors.Is(err, ErrNotFound): // its attachments ended with it
		case err != nil:
			return nil, err
		case !slices.Contains(where, instance.CompartmentID):
			more, err := s.attachmentsOf(ctx, r.VolumeID, []string{instance.CompartmentID})
			if err != nil {
				return nil, err
			}
			list = append(list, more...)
		}
	}
	if found, err = s.narrow(ctx, r, list); err != nil || len(found) > 0 {
		return found, err
	}
	return s.ofFormerInstance(ctx, r, list)
}

// ofFormerInstance picks the attachments that were made for a Node of this name when it was another instance: a new one has come
// under the name of the old one, whose attachments nobody would end otherwise. An instance that runs may be a Node of that name in
// another cluster, with the volume in use: that is not touched.
func (s *Service) ofFormerInstance(ctx context.Context, r DetachRequest, list []*oci.VolumeAttachment) ([]*oci.VolumeAttachment, error) {
	var found []*oci.VolumeAttachment
	for _, a := range list {
		if a.State == oci.AttachmentDetached || r.Node == "" || a.DisplayName != r.Node {
			continue
		}
		former, err := s.instances.fresh(ctx, a.InstanceID)
		switch {
		case errors.Is(err, ErrNotFound): // its attachments end with it
		case err != nil:
			return nil, failed(err, "volume %s is attached to instance %s, which was node %s once", r.VolumeID, a.InstanceID, r.Node)
		case former.State == stateRunning:
			klog.FromContext(ctx).Info("Volume is attached to another instance for a Node of the same name; it is left there, because that instance runs",
				"volumeID", r.VolumeID, "node", r.Node, "instanceID", a.InstanceID)
		default:
			found = append(found, a)
		}
	}
	return found, nil
}

// narrow picks the attachments that are not over, and are to the instance or to the Node.
func (s *Service) narrow(ctx context.Context, r DetachRequest, list []*oci.VolumeAttachment) ([]*oci.VolumeAttachment, error) {
	var found []*oci.VolumeAttachment
	for _, a := range list {
		if a.State == oci.AttachmentDetached || slices.ContainsFunc(found, func(b *oci.VolumeAttachment) bool { return b.ID == a.ID }) {
			continue
		}
		mine := a.InstanceID == r.InstanceID || r.InstanceID == "" && r.Node == ""
		if r.InstanceID == "" && r.Node != "" {
			var err error
			if mine, err = s.isNode(ctx, r, a); err != nil {
				return nil, err
			}
		}
		if mine {
			found = append(found, a)
		}
	}
	return found, nil
}

// isNode says whether an attachment is to the instance of a Node that nobody knows any more: by the name that the attachment
// was given, else by the names of the instance.
func (s *Service) isNode(ctx context.Context, r DetachRequest, a *oci.VolumeAttachment) (bool, error) {
	if a.DisplayName == r.Node {
		return true, nil
	}
	instance, err := s.instances.get(ctx, a.InstanceID)
	if err != nil {
		return false, failed(err, "volume %s is attached to instance %s, and whether that was node %s is not known", r.VolumeID, a.InstanceID, r.Node)
	}
	if instance.DisplayName == r.Node || s.deps.NodeNames == nil {
		return instance.DisplayName == r.Node, nil
	}
	names, err := s.deps.NodeNames(ctx, instance)
	if err != nil {
		return false, failed(err, "volume %s is attached to instance %s, and whether that was node %s is not known: names of the instance", r.VolumeID, a.InstanceID, r.Node)
	}
	return slices.Contains(names, r.Node), nil
}

// untilDetached waits until an attachment is over. A record that is not shown any more, in a list that this principal may
// read, is over.
func (s *Service) untilDetached(ctx context.Context, a *oci.VolumeAttachment) error {
	if a.State == oci.AttachmentDetached {
		return nil
	}
	end, err := s.attachments.until(ctx, a.CompartmentID, a.ID, func(a *oci.VolumeAttachment) bool {
		return a.State == oci.AttachmentDetached || a.State == oci.AttachmentAttached
	})
	switch {
	case errors.Is(err, errVanished):
		return s.vanished(ctx, a, err)
	case err != nil:
		return failed(err, "wait until volume %s is detached from instance %s", a.VolumeID, a.InstanceID)
	case end.State == oci.AttachmentAttached:
		return problem(ErrFailed, "detach volume %s from instance %s: it is attached as before", a.VolumeID, a.InstanceID)
	}
	return nil
}

// vanished proves that an attachment is over of which a read says that it does not exist.
func (s *Service) vanished(ctx context.Context, a *oci.VolumeAttachment, cause error) error {
	list, err := s.deps.Compute.ListVolumeAttachments(ctx, a.CompartmentID, oci.AttachmentFilter{VolumeID: a.VolumeID})
	if err != nil {
		return because(kindOf(err), errors.Join(cause, err), "wait until volume %s is detached from instance %s", a.VolumeID, a.InstanceID)
	}
	for _, one := range list {
		if one.ID == a.ID && one.State != oci.AttachmentDetached {
			return because(ErrForbidden, cause, "attachment %s of volume %s is %s in lists, and cannot be read", a.ID, a.VolumeID, one.State)
		}
	}
	return nil
}
