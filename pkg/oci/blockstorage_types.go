// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package oci

import (
	"time"

	"github.com/oracle/oci-cloud-controller-manager/pkg/config"
)

// States of volumes, attachments, backups and groups. A value outside these lists is kept as it came.
const (
	VolumeProvisioning = "PROVISIONING"
	VolumeRestoring    = "RESTORING"
	VolumeAvailable    = "AVAILABLE"
	VolumeTerminating  = "TERMINATING"
	VolumeTerminated   = "TERMINATED"
	VolumeFaulty       = "FAULTY"

	AttachmentAttaching = "ATTACHING"
	AttachmentAttached  = "ATTACHED"
	AttachmentDetaching = "DETACHING"
	AttachmentDetached  = "DETACHED"

	BackupRequested   = "REQUEST_RECEIVED"
	BackupCreating    = "CREATING"
	BackupAvailable   = "AVAILABLE"
	BackupTerminating = "TERMINATING"
	BackupTerminated  = "TERMINATED"
	BackupFaulty      = "FAULTY"

	GroupProvisioning = "PROVISIONING"
	GroupAvailable    = "AVAILABLE"
	GroupTerminating  = "TERMINATING"
	GroupTerminated   = "TERMINATED"
	GroupFaulty       = "FAULTY"
)

// Types of attachments, as the API names them.
const (
	AttachISCSI           = "iscsi"
	AttachParavirtualized = "paravirtualized"
)

// Volume is a block volume or a boot volume. Its states are PROVISIONING, RESTORING, AVAILABLE, TERMINATING, TERMINATED
// and FAULTY. As the argument of a create it says what is wanted; zero fields leave the choice to the service.
type Volume struct {
	ID                 string
	CompartmentID      string
	AvailabilityDomain string // with the tenancy's prefix
	DisplayName        string
	State              string
	SizeBytes          int64
	VPUsPerGB          *int64 // nil: the answer did not say
	AutoTune           AutoTune
	KMSKeyID           string // empty: encrypted with a key of Oracle's
	SourceVolumeID     string // of a clone
	SourceBackupID     string // of a restore
	Hydrated           bool   // the content of the source is copied; true where there is none
	GroupID            string // of the volume group that it is in
	TimeCreated        time.Time
	ETag               string // of a single read or write; lists have none
	Tags
}

// SizeGB is the size in the unit of the API, which calls GB what is a GiB. A part of one counts as one.
func (v *Volume) SizeGB() int64 { return (v.SizeBytes + gibibyte - 1) / gibibyte }

const (
	mebibyte = 1 << 20
	gibibyte = 1 << 30
)

// AutoTune says when the service changes the performance of a volume by itself. The zero value is never.
type AutoTune struct {
	// Detached lets a volume that is detached for long fall back to the lowest performance.
	Detached bool
	// MaxVPUs, if not 0, lets the performance grow with the load up to so many units per GB.
	MaxVPUs int64
}

// VolumeChange is what an update of a volume changes. Nil and zero fields leave everything as it is.
type VolumeChange struct {
	SizeGB    int64
	VPUsPerGB *int64
	AutoTune  *AutoTune
	Tags      // a nil map leaves the tags of that sort, another one replaces them all
}

// VolumeBackup is a backup of a volume. States: REQUEST_RECEIVED, CREATING, AVAILABLE, TERMINATING, TERMINATED, FAULTY.
type VolumeBackup struct {
	ID            string
	CompartmentID string
	DisplayName   string
	State         string
	VolumeID      string
	GroupBackupID string // of the volume group backup that it is a part of
	Full          bool   // as opposed to incremental
	SizeBytes     int64  // of the volume
	TimeCreated   time.Time
	Tags
}

// VolumeGroup is a set of volumes of one availability domain that are backed up at one moment. States: PROVISIONING,
// AVAILABLE, UPDATE_PENDING, TERMINATING, TERMINATED, FAULTY.
type VolumeGroup struct {
	ID                 string
	CompartmentID      string
	AvailabilityDomain string
	DisplayName        string
	State              string
	VolumeIDs          []string
	TimeCreated        time.Time
	Tags
}

// VolumeGroupBackup is a backup of a volume group: one backup for each of its volumes. States as for VolumeBackup, and
// COMMITTED.
type VolumeGroupBackup struct {
	ID            string
	CompartmentID string
	DisplayName   string
	State         string
	GroupID       string // which may be gone
	BackupIDs     []string
	Full          bool
	TimeCreated   time.Time
	Tags
}

// VolumeAttachment ties a volume to an instance. Its states are ATTACHING, ATTACHED, DETACHING and DETACHED; records of
// DETACHED ones stay listed for a while. It lives in the compartment of the instance.
type VolumeAttachment struct {
	ID            string
	CompartmentID string
	DisplayName   string
	State         string
	Type          string // iscsi, paravirtualized, emulated, nvme
	InstanceID    string
	VolumeID      string
	Device        string // consistent device path, "/dev/oracleoci/oraclevdb"; may be empty
	Shareable     bool
	ReadOnly      bool
	EncryptedPV   bool // in-transit encryption of a paravirtualized attachment
	TimeCreated   time.Time

	// Of iSCSI attachments.
	IQN        string
	IPv4       string
	Port       int
	CHAPUser   string
	CHAPSecret config.Secret
	LoginState string // of the agent on the instance: UNKNOWN, LOGGING_IN, LOGIN_SUCCEEDED, …
	Multipath  bool
	Paths      []Path // further ones, of ultra high performance
}

// Path is one more way to an iSCSI target.
type Path struct {
	IPv4 string
	IQN  string
	Port int
}

// Attach is what an attachment is asked to be.
type Attach struct {
	Type        string // AttachISCSI or AttachParavirtualized
	InstanceID  string
	VolumeID    string
	DisplayName string
	Device      string // empty: the service chooses
	Shareable   bool
	ReadOnly    bool
	EncryptPV   bool // paravirtualized: encrypt the traffic between instance and volume
	CHAP        bool // iSCSI: the target asks for a name and a secret
	AgentLogin  bool // iSCSI: the agent on the instance logs in by itself
}

// AttachmentFilter narrows a list of attachments; empty fields match all.
type AttachmentFilter struct {
	InstanceID string
	VolumeID   string
}

// Device is a consistent device path of an instance.
type Device struct {
	Path string
	Free bool
}
