// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package host

import (
	"os"
	"strings"
)

const (
	iscsiPackages     = "iscsi-initiator-utils (Oracle Linux, RHEL) or open-iscsi (Debian, Ubuntu)"
	multipathPackages = "device-mapper-multipath (Oracle Linux, RHEL) or multipath-tools (Debian, Ubuntu)"
)

// packages are those that have the programs of a host that this package runs.
func packages(tool string) string {
	switch tool {
	case "iscsiadm":
		return iscsiPackages
	case "multipath", "multipathd":
		return multipathPackages
	case "mkfs.ext3", "mkfs.ext4", "resize2fs":
		return "e2fsprogs"
	case "mkfs.xfs", "xfs_growfs":
		return "xfsprogs"
	case "mkfs.btrfs", "btrfs":
		return "btrfs-progs"
	case "udevadm":
		return "systemd-udev (Oracle Linux, RHEL) or udev (Debian, Ubuntu)"
	}
	return "util-linux"
}

func (h *Host) missing(tool string) error {
	return &MissingToolError{Tool: tool, Packages: packages(tool)}
}

// Lack is something that a host does not have, and what will not work without it.
type Lack struct {
	Without string // "iSCSI attachments"
	Err     error  // a MissingToolError, or ErrNoDaemon
}

// Lacks lists what the host lacks, for a log line at the start. Volumes that need it get the same error.
func (h *Host) Lacks() []Lack {
	var lacks []Lack
	check := func(without string, tools ...string) bool {
		for _, tool := range tools {
			if _, err := h.lookUp(tool); err != nil {
				lacks = append(lacks, Lack{Without: without, Err: err})
				return false
			}
		}
		return true
	}
	check("all volumes", "mount", "umount")
	check("file systems", "blkid")
	if check("iSCSI attachments", "iscsiadm") && !h.daemonListens() {
		lacks = append(lacks, Lack{Without: "iSCSI attachments", Err: ErrNoDaemon})
	}
	check("multipath attachments", "multipath", "multipathd")
	check("file systems of type ext3 and ext4", "mkfs.ext4", "mkfs.ext3", "resize2fs", "fsck")
	check("file systems of type xfs", "mkfs.xfs", "xfs_growfs")
	check("file systems of type btrfs", "mkfs.btrfs", "btrfs")
	return lacks
}

// daemonSocket is the name of the socket, without a file, at which iscsid, or systemd for it, listens.
const daemonSocket = "@ISCSIADM_ABSTRACT_NAMESPACE"

// daemonListens says whether iscsid can be reached. The socket is one of the network namespace, which on a node is the host's.
func (h *Host) daemonListens() bool {
	sockets, err := os.ReadFile(h.paths.UnixSockets)
	return err != nil || strings.Contains(string(sockets), daemonSocket) // what cannot be read does not tell
}
