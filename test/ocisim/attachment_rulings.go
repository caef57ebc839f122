// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package ocisim

import "net/http"

// The situations of attachments.
const (
	AttachOfUnavailable    Situation = "attach of a volume that is not available"
	AttachToStopped        Situation = "attach to a stopped instance other than by iSCSI"
	AttachAcrossDomains    Situation = "attach in another availability domain"
	AttachAccessMix        Situation = "attach with another access than that of the other attachments"
	AttachTooManyInstances Situation = "attach of a volume to too many instances"
	AttachDeviceTaken      Situation = "attach at a device path in use"
	AttachEncryptionShape  Situation = "attach with encryption on a shape without it"
	DetachInTransit        Situation = "detach of an attachment that is attaching or detaching"
	DetachOfDetached       Situation = "detach of a detached attachment"
)

func attachmentRulings() map[Situation]Ruling {
	return map[Situation]Ruling{
		AttachOfUnavailable: {
			Status: http.StatusNotFound, Code: "NotAuthorizedOrNotFound", Message: messageNotFound,
			Reason: "users' logs show it for a volume that was still being made",
		},
		AttachToStopped: {
			Status: http.StatusConflict, Code: "IncorrectState", Message: "Instance %s is STOPPED.",
			Reason: "known for iSCSI; whether paravirtualized attachments are allowed there is not established",
		},
		AttachAcrossDomains: {
			Status: http.StatusBadRequest, Code: "InvalidParameter",
			Message: "Volume %s is in availability domain %s and instance %s is in %s.",
			Reason:  "documented as impossible, code from memory",
		},
		AttachAccessMix: {
			Status: http.StatusConflict, Code: "Conflict",
			Message: "Volume %s cannot be attached, because its other attachments have a different access mode.",
			Reason:  "documented as impossible until it is detached everywhere; the code is that of the other conflicts",
		},
		AttachTooManyInstances: {
			Status: http.StatusBadRequest, Code: "LimitExceeded", Message: "Volume %s is attached to the maximum number %d of instances.",
			Reason: "the limit is documented; the code is that of the limit of volumes per instance",
		},
		AttachDeviceTaken: {
			Status: http.StatusConflict, Code: "Conflict", Message: "Device %s of instance %s is already in use.",
			Reason: "known to fail, code from memory",
		},
		AttachEncryptionShape: {
			Status: http.StatusBadRequest, Code: "InvalidParameter",
			Message: "Encryption in transit of iSCSI attachments is not supported by shape %s.",
			Reason:  "the setting is documented for bare metal; what others answer is not",
		},
		DetachInTransit: {
			Status: http.StatusConflict, Code: "IncorrectState", Message: "Attachment %s is %s.",
			Reason: "the state passes by itself, which is what IncorrectState is for",
		},
		DetachOfDetached: {
			Status: http.StatusNotFound, Code: "NotAuthorizedOrNotFound", Message: messageNotFound,
			Reason: "reads of detached attachments succeed, but there is nothing left to delete",
		},
	}
}
