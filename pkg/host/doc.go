// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

// Package host does what block volumes need on a node: it logs in to iSCSI targets, finds the disk of an attachment and
// proves that it is that, looks whether it is empty, formats, checks, mounts, grows, and takes all of it down again. The CSI
// node driver and the flexvolume driver share it.
//
//	Stage      connect → find and prove the device → look at its content → format or check → mount
//	Publish    bind mount of what is staged, nothing else
//	Unpublish  unmount
//	Unstage    unmount → log out, and see that the session has ended → forget
//	Grow       rescan → size is seen → file system
//
// All of these can be repeated, also after the process or the machine died at any point. Operations of one volume exclude each
// other (BusyError); those of different volumes never wait for each other, however long one of them hangs.
//
// # Proof
//
// Names of devices and links prove nothing: sdb is another disk after the next login, and a link of udev can be older than
// the disk that it points to. A device is taken for that of an attachment only if
//
//   - iSCSI: the kernel has it as a disk of the session with the attachment's IQN and portal (and LUN, if that is known), the
//     session has no other disk, and the by-path link, if there is one, points to the same disk;
//   - paravirtualized: the consistent device path leads to it, udev does not know the disk by another consistent path, and it
//     is no disk of an iSCSI session;
//   - multipath: it is a map whose paths are all disks of the attachment's sessions;
//
// and, always, nobody else has mounted or taken it, and it has the volume's size. What does not fit is looked at again, after
// asking udev and the kernel to look again, until the time is up; then it is an error that wraps ErrNotProven, and nothing was
// written.
//
// A device is formatted only with a proof of its own: its head and its tail were read and are zero throughout, blkid finds nothing
// either, it has the exact size, and the caller allows it (FormatIfBlank). The code that runs mkfs asks for that proof. A read that
// fails is an error, never "empty".
//
// # Commands
//
// Programs are those of the host. They run by argument list, without a shell, in the host's mount namespace (Paths.MountNamespace), with
// a deadline. The mount table is read from the kernel; nothing calls stat on a mounted file system, whose answer may not come.
package host
