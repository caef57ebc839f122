// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package ocisim

import "github.com/oracle/oci-go-sdk/v65/core"

// Volumes returns all volumes in order of creation, terminated ones included while they are visible.
func (r *Region) Volumes() []core.Volume { return inspect(r, volumes, "") }

// Volume returns one volume.
func (r *Region) Volume(id string) (core.Volume, bool) { return inspectOne(r, volumes, id) }

// BootVolumes returns all boot volumes.
func (r *Region) BootVolumes() []core.BootVolume { return inspect(r, bootVolumes, "") }

// VolumeBackups returns all volume backups.
func (r *Region) VolumeBackups() []core.VolumeBackup { return inspect(r, volumeBackups, "") }

// VolumeGroups returns all volume groups.
func (r *Region) VolumeGroups() []core.VolumeGroup { return inspect(r, volumeGroups, "") }

// VolumeGroupBackups returns all volume group backups.
func (r *Region) VolumeGroupBackups() []core.VolumeGroupBackup {
	return inspect(r, volumeGroupBackups, "")
}

// VolumeAttachments returns all volume attachments, detached ones included while they are visible.
func (r *Region) VolumeAttachments() []core.VolumeAttachment {
	var list []core.VolumeAttachment
	for _, a := range inspect(r, volumeAttachments, "") {
		list = append(list, a.sdk())
	}
	return list
}

// VolumeAttachment returns one volume attachment.
func (r *Region) VolumeAttachment(id string) (core.VolumeAttachment, bool) {
	a, ok := inspectOne(r, volumeAttachments, id)
	if !ok {
		return nil, false
	}
	return a.sdk(), true
}

// BootVolumeAttachments returns all boot volume attachments.
func (r *Region) BootVolumeAttachments() []core.BootVolumeAttachment {
	return inspect(r, bootVolumeAttachments, "")
}

// Volume changes a volume.
func (f *Foreign) Volume(id string, change func(*core.Volume)) error {
	return mutate(f, volumes, id, change)
}

// BootVolume changes a boot volume.
func (f *Foreign) BootVolume(id string, change func(*core.BootVolume)) error {
	return mutate(f, bootVolumes, id, change)
}

// VolumeBackup changes a volume backup.
func (f *Foreign) VolumeBackup(id string, change func(*core.VolumeBackup)) error {
	return mutate(f, volumeBackups, id, change)
}

// VolumeAttachment changes a volume attachment of any type; the iSCSI model has the fields of all.
func (f *Foreign) VolumeAttachment(id string, change func(*core.IScsiVolumeAttachment)) error {
	return mutate(f, volumeAttachments, id, func(a *volumeAttachment) { change(&a.Model) })
}
