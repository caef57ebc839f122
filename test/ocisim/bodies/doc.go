// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

// Package bodies gives the volumes of a simulated region content, and their attachments a device. A body is an
// option of the region:
//
//	body, err := bodies.NewLoop(bodies.LoopOptions{Root: "/run/node-1"})
//	region := ocisim.New(ocisim.Options{Attachments: body})
//	defer region.Close()
//
// Without one, attachments exist in the API only. In each body a volume is a sparse file as large as the volume, made
// at its first attachment. It survives detachments, clones and backups are copies of it, and deleting the volume deletes
// it. Region.Close (and Region.Reset) take devices and files away.
//
// # Loop devices
//
// Loop makes a loop device over the file and a symbolic link to it at the attachment's consistent device path, under
// a root directory. It needs root's rights and a kernel with loop devices. All attachments of a shared volume have the
// same device. The devices go with the process, too, once nobody uses them.
//
// # iSCSI targets
//
// ISCSI runs a command that exposes the file as a target. lio.sh is one, for the target of Linux (LIO); make test-vm runs
// it in a guest. The command is called with one more argument, the action:
//
//	attach   make the target, or a disk for attachments that are not of type iscsi
//	detach   remove it; it may be gone already
//	resize   the file has grown: let the initiators of this attachment see the new size
//
// and finds these in its environment:
//
//	OCISIM_ATTACHMENT   OCID of the attachment
//	OCISIM_VOLUME       OCID of the volume
//	OCISIM_INSTANCE     OCID of the instance
//	OCISIM_TYPE         iscsi, paravirtualized or emulated
//	OCISIM_DEVICE       consistent device path; empty if the attachment has none
//	OCISIM_FILE         the volume's file
//	OCISIM_BYTES        its size
//	OCISIM_SERIAL       32 hexadecimal digits, different for each volume, the same for all attachments of one
//	OCISIM_READ_ONLY    true or false
//
// and for type iscsi also
//
//	OCISIM_IQN          name of the target
//	OCISIM_PORTALS      "169.254.2.2:3260 169.254.2.3:3260": more than one for multipath attachments
//	OCISIM_LUN          1
//	OCISIM_CHAP_USER, OCISIM_CHAP_SECRET   with CHAP only
//
// Exit status 0 is success. With any other, the attachment fails in the API, with the end of what the command wrote to
// standard error as the message of the work request. The command is killed when it takes longer than
// ISCSIOptions.Timeout.
package bodies
