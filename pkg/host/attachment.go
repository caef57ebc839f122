// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package host

import (
	"fmt"
	"net/netip"
	"regexp"
	"strings"
)

// AttachmentType says how a disk comes to the instance.
type AttachmentType string

// The types of attachments.
const (
	ISCSI           AttachmentType = "iscsi"
	Paravirtualized AttachmentType = "paravirtualized"
)

// Attachment is what is known of an attachment: the facts by which its disk is found and proven.
type Attachment struct {
	Type AttachmentType
	// Targets are the iSCSI targets, one for each path. Without Multipath there is one.
	Targets []Target
	// CHAP are the credentials for the targets, nil where none are needed.
	CHAP *CHAP
	// QueueDepth is that of the sessions; 0 is open-iscsi's.
	QueueDepth int
	// Multipath says that the disk is a map over all targets.
	Multipath bool
	// Device is the consistent device path, such as /dev/oracleoci/oraclevdb; needed for paravirtualized attachments.
	Device string
	// Size is that of the volume in bytes; 0 if it is not known. A disk may be larger, since the volume may have been
	// expanded since this was written down; then it is not formatted.
	Size int64
}

// Target is one path to the disk of an iSCSI attachment.
type Target struct {
	IQN    string         `json:"iqn"`
	Portal netip.AddrPort `json:"portal"`
	// LUN is the number of the disk at the target; -1 if it is not known. Then it is the target's only one.
	LUN int `json:"lun"`
}

// CHAP are credentials. The secret does not show in errors and logs.
type CHAP struct {
	User   string
	Secret string
}

// String hides the secret.
func (c CHAP) String() string { return c.User + ":[redacted]" }

// GoString hides the secret.
func (c CHAP) GoString() string { return c.String() }

// iqnForm is that of iSCSI names (RFC 3720, 3.2.6), which become arguments of programs and parts of paths.
var iqnForm = regexp.MustCompile(`^(iqn|eui|naa)\.[A-Za-z0-9.:_-]{1,220}$`)

// validate looks whether the attachment says enough.
func (a Attachment) validate() error {
	switch a.Type {
	case ISCSI:
		if len(a.Targets) == 0 || len(a.Targets) > 1 && !a.Multipath {
			return fmt.Errorf("%w: an iSCSI attachment with %d targets", ErrInvalid, len(a.Targets))
		}
		for _, t := range a.Targets {
			if !iqnForm.MatchString(t.IQN) || !t.Portal.IsValid() {
				return fmt.Errorf("%w: iSCSI target %q at %s", ErrInvalid, t.IQN, t.Portal)
			}
		}
	case Paravirtualized:
		if !strings.HasPrefix(a.Device, "/dev/") {
			return fmt.Errorf("%w: a paravirtualized attachment with the device path %q", ErrInvalid, a.Device)
		}
	default:
		return fmt.Errorf("%w: attachment type %q", ErrInvalid, a.Type)
	}
	return nil
}

// PortalIPv6 is the address at which nodes that prefer IPv6 reach a portal: the IPv4 address in the low bits of fd00:c1::.
func PortalIPv6(v4 netip.Addr) netip.Addr {
	if !v4.Is4() {
		return v4
	}
	b, a := v4.As4(), [16]byte{0xfd, 0x00, 0x00, 0xc1}
	copy(a[12:], b[:])
	return netip.AddrFrom16(a)
}
