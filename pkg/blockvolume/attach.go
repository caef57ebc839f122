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

// AttachRequest asks for an attachment.
type AttachRequest struct {
	VolumeID   string
	InstanceID string
	// Node is the name of the instance's Node. The attachment gets it as its display name, by which it can be found when
	// both are gone.
	Node string
	// Type is oci.AttachISCSI, oci.AttachParavirtualized, or empty: iSCSI, or what the instance requires.
	Type      string
	Shareable bool
	ReadOnly  bool
	CHAP      bool
}

// Attach attaches a volume and waits until it is. An attachment that is there already, or on its way, is the answer. One
// that is about to end is waited for.
//
// Errors: ErrElsewhere; ErrExists for an attachment to the same instance that is not like this; ErrPending while something
// is in flight; ErrInstanceFull, ErrInstanceState, ErrInvalid, ErrNotFound, ErrFailed, ErrForbidden, ErrUnavailable.
func (s *Service) Attach(ctx context.Context, r AttachRequest) (*oci.VolumeAttachment, error) {
	a, err := s.attachment(ctx, r)
	if err != nil {
		return nil, err
	}
	if a.State != oci.AttachmentAttached {
		a, err = s.attachments.until(ctx, a.CompartmentID, a.ID, func(a *oci.VolumeAttachment) bool {
			return a.State != oci.AttachmentAttaching
		})
	}
	switch {
	case errors.Is(err, errVanished):
		s.devices.giveBack(r.InstanceID, r.VolumeID)
		return nil, because(ErrFailed, err, "attach volume %s to instance %s", r.VolumeID, r.InstanceID)
	case err != nil:
		return nil, failed(err, "attach volume %s to instance %s", r.VolumeID, r.InstanceID)
	case a.State != oci.AttachmentAttached:
		s.devices.giveBack(r.InstanceID, r.VolumeID)
		return nil, problem(ErrFailed, "attach volume %s to instance %s: the attachment is %s", r.VolumeID, r.InstanceID, a.State)
	}
	return a, nil
}

// conflictRounds is how often the cloud may answer that a volume is attached without any list that says where.
const conflictRounds = 3

// attachment finds the attachment, or has it made.
func (s *Service) attachment(ctx context.Context, r AttachRequest) (*oci.VolumeAttachment, error) {
	release, err := lock(ctx, s.ids, r.VolumeID, "volume "+r.VolumeID)
	if err != nil {
		return nil, err
	}
	defer release()
	instance, err := s.instances.get(ctx, r.InstanceID)
	if err != nil {
		return nil, err
	}
	where := []string{instance.CompartmentID}
	for round := 0; ; {
		list, err := s.attachmentsOf(ctx, r.VolumeID, where)
		if err != nil {
			return nil, err
		}
		standing, at, err := judge(r, list)
		switch standing {
		case blocked:
			return nil, s.truth(ctx, at, err)
		case ours:
			return at, nil
		case leaving:
			if err := s.untilDetached(ctx, at); err != nil && !errors.Is(err, ErrFailed) {
				return nil, err
			}
			continue
		case free:
		}
		a, err := s.sendAttach(ctx, r, instance)
		if !errors.Is(err, errLookAgain) {
			return a, err
		}
		// It is attached, or was a moment ago: somewhere else, or by a request of ours that the lists do not show yet.
		if round++; round == conflictRounds {
			return nil, because(ErrElsewhere, err, "attach volume %s: it is attached, but to no instance in compartments %s", r.VolumeID, strings.Join(where, ", "))
		}
		where = s.compartments(instance.CompartmentID)
		if err := pause(ctx, time.Now().Add(time.Duration(round)*time.Second), "the attachment of volume "+r.VolumeID+" to show up"); err != nil {
			return nil, err
		}
	}
}

// attachmentsOf lists the attachments of a volume to instances in the given compartments.
func (s *Service) attachmentsOf(ctx context.Context, volumeID string, compartments []string) ([]*oci.VolumeAttachment, error) {
	var all []*oci.VolumeAttachment
	for _, compartment := range compartments {
		list, err := s.lists.of(ctx, compartment, volumeID)
		if err != nil {
			return nil, failed(err, "list the attachments of volume %s in compartment %s", volumeID, compartment)
		}
		all = append(all, list...)
	}
	return all, nil
}

// truth adds what became of the instance that a volume is attached to, where it does not run.
func (s *Service) truth(ctx context.Context, a *oci.VolumeAttachment, err error) error {
	if !errors.Is(err, ErrElsewhere) {
		return err
	}
	var known *Error
	if other, readErr := s.deps.Compute.GetInstance(ctx, a.InstanceID); readErr == nil && other.State != stateRunning && errors.As(err, &known) {
		known.Text += ", which is " + other.State
	}
	return err
}

const stateRunning = "RUNNING"

// errLookAgain means that the attachments of the volume are not what they were.
var errLookAgain = errors.New("the volume is attached")

// typeFor is the type that an attachment to an instance must have, and whether it is to be encrypted in transit.
func typeFor(r AttachRequest, instance *oci.Instance) (kind string, encrypt bool, err error) {
	bareMetal := strings.HasPrefix(instance.Shape, "BM.")
	switch {
	case r.Type != "" && r.Type != oci.AttachISCSI && r.Type != oci.AttachParavirtualized:
		return "", false, problem(ErrInvalid, "attachment type %q: it must be %s or %s", r.Type, oci.AttachISCSI, oci.AttachParavirtualized)
	case r.Type == oci.AttachParavirtualized && bareMetal:
		return "", false, problem(ErrInvalid, "instance %s has shape %s: bare metal has no paravirtualized attachments; use %s", instance.ID, instance.Shape, oci.AttachISCSI)
	case r.Type == oci.AttachParavirtualized && IsBootVolume(r.VolumeID):
		return "", false, problem(ErrInvalid, "boot volume %s can only be attached by %s", r.VolumeID, oci.AttachISCSI)
	case !instance.PVEncryption:
		return orDefault(r.Type, oci.AttachISCSI), false, nil
	case bareMetal, IsBootVolume(r.VolumeID):
		return "", false, problem(ErrInvalid, "instance %s encrypts its paravirtualized attachments in transit, and volume %s cannot be attached so", instance.ID, r.VolumeID)
	case r.Type == oci.AttachISCSI:
		return "", false, problem(ErrInvalid, "instance %s encrypts attachments in transit, which only paravirtualized ones can: set the parameter attachment-type of the StorageClass to %s",
			instance.ID, oci.AttachParavirtualized)
	}
	return oci.AttachParavirtualized, true, nil
}

func orDefault(s, fallback string) string {
	if s == "" {
		return fallback
	}
	return s
}

// sendAttach asks for the attachment, at the first device path that the instance takes.
func (s *Service) sendAttach(ctx context.Context, r AttachRequest, instance *oci.Instance) (*oci.VolumeAttachment, error) {
	kind, encrypt, err := typeFor(r, instance)
	if err != nil {
		return nil, err
	}
	// One at a time chooses a path, until the cloud has given it away.
	release, err := lock(ctx, s.machines, instance.ID, "devices of instance "+instance.ID)
	if err != nil {
		return nil, err
	}
	defer release()
	paths, err := s.pathsToTry(ctx, r, kind, instance)
	if err != nil {
		return nil, err
	}
	for i, path := range paths {
		a, err := s.tryAttach(ctx, oci.Attach{
			Type: kind, InstanceID: r.InstanceID, VolumeID: r.VolumeID, DisplayName: r.Node, Device: path,
			Shareable: r.Shareable, ReadOnly: r.ReadOnly, CHAP: r.CHAP && kind == oci.AttachISCSI, EncryptPV: encrypt,
		}, instance)
		if err == nil {
			return a, nil
		}
		another := i+1 < len(paths)
		switch {
		case isInUse(err):
			// Either the path is taken, or the volume is attached.
			list, listErr := s.attachmentsOf(ctx, r.VolumeID, s.compartments(instance.CompartmentID))
			if listErr != nil {
				return nil, listErr
			}
			if standing, _, _ := judge(r, list); standing != free || !another {
				return nil, errors.Join(errLookAgain, err)
			}
		case another && errors.Is(kindOf(err), ErrInvalid): // perhaps because of the path
		default:
			return nil, s.whyNotAttached(ctx, r, err)
		}
		s.devices.forget(instance.ID)
		klog.FromContext(ctx).Info("Device path was refused, trying another", "volumeID", r.VolumeID, "instanceID", r.InstanceID, "device", path, "reason", err.Error())
	}
	return nil, problem(ErrInvalid, "attach volume %s to instance %s: it has no usable device path", r.VolumeID, r.InstanceID)
}

// tryAttach sends one request.
func (s *Service) tryAttach(ctx context.Context, a oci.Attach, instance *oci.Instance) (*oci.VolumeAttachment, error) {
	klog.FromContext(ctx).Info("Attaching volume", "volumeID", a.VolumeID, "instanceID", a.InstanceID, "type", a.Type, "device", a.Device)
	s.tries.sent(a.VolumeID, a.InstanceID, instance.CompartmentID)
	made, err := s.deps.Compute.AttachVolume(ctx, a, "")
	switch {
	case err == nil:
		if made.CompartmentID == "" {
			made.CompartmentID = instance.CompartmentID
		}
		s.tries.made(a.VolumeID, a.InstanceID, made.ID)
		s.devices.take(a.InstanceID, a.Device, a.VolumeID)
	case refused(err) && !isInUse(err):
		s.tries.forget(a.VolumeID, a.InstanceID)
	}
	return made, err
}

// whyNotAttached finds out what a refusal means.
func (s *Service) whyNotAttached(ctx context.Context, r AttachRequest, err error) error {
	what := "attach volume " + r.VolumeID + " to instance " + r.InstanceID
	switch {
	case errors.Is(err, oci.ErrLimitExceeded):
		return because(ErrInstanceFull, err, "%s", what)
	case errors.Is(err, oci.ErrIncorrectState):
		instance, readErr := s.instances.fresh(ctx, r.InstanceID)
		switch {
		case readErr != nil:
			return readErr
		case instance.State != stateRunning:
			return because(ErrInstanceState, err, "%s, which is %s", what, instance.State)
		}
	case errors.Is(err, oci.ErrNotFound):
		// That is the answer for a volume that is not available, too.
		if _, readErr := s.instances.fresh(ctx, r.InstanceID); readErr != nil {
			return readErr
		}
		v, readErr := s.Get(ctx, r.VolumeID)
		switch {
		case readErr != nil:
			return readErr
		case v.State == oci.VolumeProvisioning, v.State == oci.VolumeRestoring:
			return because(ErrPending, err, "%s: the volume is %s", what, v.State)
		case v.State != oci.VolumeAvailable:
			return because(ErrInvalid, err, "%s: the volume is %s", what, v.State)
		}
		return because(ErrForbidden, err, "%s: both are there; is a policy to use volumes and instances, and to manage volume-attachments, missing?", what)
	}
	return failed(err, "%s", what)
}
