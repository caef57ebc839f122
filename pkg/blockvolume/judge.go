// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package blockvolume

import (
	"strings"

	"github.com/oracle/oci-cloud-controller-manager/pkg/oci"
)

// standing is how the attachments of a volume stand to what is asked for.
type standing int

const (
	free    standing = iota // nothing is in the way
	ours                    // attached, or being attached, as asked
	leaving                 // something has to end first, and is about to
	blocked                 // something is in the way
)

// judge compares the attachments of a volume, in every state, with a request. The attachment is the one that the standing
// is about; the error is that of blocked.
func judge(r AttachRequest, list []*oci.VolumeAttachment) (standing, *oci.VolumeAttachment, error) {
	for _, a := range list {
		if a.State == oci.AttachmentDetached || a.InstanceID != r.InstanceID {
			continue
		}
		if a.State == oci.AttachmentDetaching {
			return leaving, a, nil
		}
		if difference := unlike(r, a); difference != "" {
			return blocked, a, problem(ErrExists, "volume %s is attached to instance %s already, but %s", r.VolumeID, r.InstanceID, difference)
		}
		return ours, a, nil
	}
	for _, a := range list {
		if a.State == oci.AttachmentDetached || a.InstanceID == r.InstanceID {
			continue
		}
		exclusion := excludes(r, a)
		switch {
		case exclusion == "":
		case a.State == oci.AttachmentDetaching:
			return leaving, a, nil
		case a.State == oci.AttachmentAttached:
			return blocked, a, problem(ErrElsewhere, "volume %s is attached to instance %s%s", r.VolumeID, nameOf(a), exclusion)
		default:
			return blocked, a, problem(ErrPending, "volume %s is %s at instance %s%s", r.VolumeID, a.State, nameOf(a), exclusion)
		}
	}
	return free, nil, nil
}

// nameOf names the instance of an attachment, and the node where the attachment says so.
func nameOf(a *oci.VolumeAttachment) string {
	if a.DisplayName == "" || strings.HasPrefix(a.DisplayName, "volumeattachment") { // the service's own choice
		return a.InstanceID
	}
	return a.InstanceID + " (" + a.DisplayName + ")"
}

// unlike says in what an attachment to the right instance is not what is asked for.
func unlike(r AttachRequest, a *oci.VolumeAttachment) string {
	switch {
	case r.Type != "" && a.Type != r.Type:
		return "its type is " + a.Type + ", not " + r.Type
	case a.ReadOnly && !r.ReadOnly:
		return "for reading only"
	case !a.ReadOnly && r.ReadOnly:
		return "not for reading only"
	case r.Shareable && !a.Shareable:
		return "not as shareable"
	}
	return ""
}

// excludes says why an attachment to another instance rules out what is asked for; empty if it does not.
func excludes(r AttachRequest, a *oci.VolumeAttachment) string {
	switch {
	case !r.Shareable && !a.Shareable:
		return ", and can be attached to one at a time"
	case !r.Shareable:
		return " as shareable, and is asked for as not shareable"
	case !a.Shareable:
		return ", and not as shareable"
	case a.ReadOnly != r.ReadOnly:
		return " in another access mode"
	}
	return ""
}
