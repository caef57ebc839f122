// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package blockvolume

import (
	"context"

	"github.com/oracle/oci-cloud-controller-manager/pkg/oci"
)

// Storage is the block volume service. oci.BlockStorage implements it. Lists are complete or an error, and hold what is
// gone too, for as long as the cloud shows it.
type Storage interface {
	GetVolume(ctx context.Context, id string) (*oci.Volume, error)
	GetBootVolume(ctx context.Context, id string) (*oci.Volume, error)
	ListVolumes(ctx context.Context, compartmentID, displayName string) ([]*oci.Volume, error)
	CreateVolume(ctx context.Context, v *oci.Volume, retryToken string) (*oci.Volume, error)
	UpdateVolume(ctx context.Context, id string, change oci.VolumeChange, etag string) (*oci.Volume, error)
	DeleteVolume(ctx context.Context, id string) error

	GetVolumeBackup(ctx context.Context, id string) (*oci.VolumeBackup, error)
	ListVolumeBackups(ctx context.Context, compartmentID, volumeID, displayName string) ([]*oci.VolumeBackup, error)
	CreateVolumeBackup(ctx context.Context, b *oci.VolumeBackup, retryToken string) (*oci.VolumeBackup, error)
	DeleteVolumeBackup(ctx context.Context, id string) error

	GetVolumeGroup(ctx context.Context, id string) (*oci.VolumeGroup, error)
	ListVolumeGroups(ctx context.Context, compartmentID, displayName string) ([]*oci.VolumeGroup, error)
	CreateVolumeGroup(ctx context.Context, g *oci.VolumeGroup, retryToken string) (*oci.VolumeGroup, error)
	DeleteVolumeGroup(ctx context.Context, id string) error

	GetVolumeGroupBackup(ctx context.Context, id string) (*oci.VolumeGroupBackup, error)
	ListVolumeGroupBackups(ctx context.Context, compartmentID, displayName string) ([]*oci.VolumeGroupBackup, error)
	CreateVolumeGroupBackup(ctx context.Context, b *oci.VolumeGroupBackup, retryToken string) (*oci.VolumeGroupBackup, error)
	DeleteVolumeGroupBackup(ctx context.Context, id string) error
}

// Compute is what of the compute service volumes are attached with. oci.Compute implements it.
type Compute interface {
	GetInstance(ctx context.Context, id string) (*oci.Instance, error)
	ListInstances(ctx context.Context, compartmentID, displayName string) ([]*oci.Instance, error)
	GetVolumeAttachment(ctx context.Context, id string) (*oci.VolumeAttachment, error)
	ListVolumeAttachments(ctx context.Context, compartmentID string, filter oci.AttachmentFilter) ([]*oci.VolumeAttachment, error)
	AttachVolume(ctx context.Context, a oci.Attach, retryToken string) (*oci.VolumeAttachment, error)
	DetachVolume(ctx context.Context, id string) error
	ListInstanceDevices(ctx context.Context, instanceID string) ([]oci.Device, error)
}

// Domains lists availability domains. oci.Identity implements it.
type Domains interface {
	ListAvailabilityDomains(ctx context.Context, compartmentID string) ([]string, error)
}

// Deps are what a Service works with.
type Deps struct {
	Storage Storage
	Compute Compute
	Domains Domains

	// NodeNames returns the names that the Node of an instance may have: its host name and addresses, say. It is asked for
	// detaching from a Node that is gone. Nil: an instance has its display name only.
	NodeNames func(ctx context.Context, i *oci.Instance) ([]string, error)
}
