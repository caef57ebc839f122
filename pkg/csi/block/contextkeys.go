// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package block

// Keys of the volume context, which is kept in the PV, and of the publish context, which is kept in the VolumeAttachment. Both are
// read by drivers of other releases, too (contract storage.md §2.5, §3.1): keys are only added.
const (
	ContextAttachmentType = "attachment-type" // AttachmentISCSI, AttachmentParavirtualized; empty is iSCSI
	ContextVPUs           = "vpusPerGB"
	ContextNeedResize     = "needResize" // "true" for a volume that is larger than its source
	ContextNewSize        = "newSize"    // bytes, with it

	// ContextFormatPolicy is "never" for a volume that must not be formatted.
	ContextFormatPolicy = "formatPolicy"
	// ContextContentSource is "snapshot" or "volume" for a volume that has content from the start, and is never formatted.
	ContextContentSource = "contentSource"

	// Of the publish context only.
	ContextIQN              = "iscci_iqn" // sic
	ContextIP               = "iscsi_ip"
	ContextPort             = "iscsi_port"
	ContextDevice           = "device" // consistent device path
	ContextMultipath        = "multipathEnabled"
	ContextMultipathDevices = "multipathDevices" // JSON
	ContextSize             = "size"             // bytes of the volume when it was attached
	ContextCHAPUser         = "chapUser"
	ContextCHAPSecret       = "chapSecret"
)

// Values of ContextAttachmentType.
const (
	AttachmentISCSI           = "iscsi"
	AttachmentParavirtualized = "paravirtualized"
)

// FormatNever is a value of ContextFormatPolicy.
const FormatNever = "never"
