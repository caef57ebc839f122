// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package ocisim

import (
	"maps"
	"net/http"
	"time"
)

// setBlockDefaults fills the entries about block volumes and their attachments.
func setBlockDefaults(b *Behaviour) {
	b.TerminatedVolumeVisible = 24 * time.Hour
	b.DetachedVisible = 24 * time.Hour
	b.ResizeProvisions = true
	b.DetachedAutoTune = 14 * 24 * time.Hour
	b.VolumeCapacity = map[string]int64{}
	b.MaxVolumesPerInstance = map[string]int{"": 32}
	b.MaxPVVolumes = map[string]int{"VM.Standard.E5.Flex": 16}
	b.MaxInstancesPerVolume = 32
	b.MultipathDevices = 2
	b.AgentLogsIn = true
}

// The situations of block volumes and backups.
const (
	UnknownVolumeDomain     Situation = "volume in an unknown availability domain"
	VolumeCloneElsewhere    Situation = "clone in another availability domain than its source"
	VolumeSourceNotReady    Situation = "clone or restore of a source that is not available"
	VolumeSourceHydrating   Situation = "clone of a volume that is still being copied itself"
	OutOfVolumeCapacity     Situation = "no capacity for a volume"
	VolumeNotChangeable     Situation = "change of a volume that is not available"
	VolumeChangeHydrating   Situation = "change of size of a volume that is still being copied"
	VolumeChangeInBackup    Situation = "change of size of a volume with a backup in progress"
	VolumeSameSize          Situation = "change of size to the present size"
	VolumeNotDeletable      Situation = "delete of a volume or backup in a transient state"
	VolumeDeletedTwice      Situation = "delete of a terminated volume or backup"
	VolumeSourceInUse       Situation = "delete of a source that is still being copied"
	VolumeInGroup           Situation = "delete of a volume in a volume group"
	VolumeBackupInProgress  Situation = "second backup of a volume while one is made"
	VolumeBackupOfBusy      Situation = "backup of a volume that is not available"
	VolumeBackupProtected   Situation = "delete of a protected or retained backup"
	TerminatedVolumeChanged Situation = "change of a terminated volume or backup"
)

func blockRulings() map[Situation]Ruling {
	rulings := map[Situation]Ruling{
		OutOfVolumeCapacity: {
			Status: http.StatusInternalServerError, Code: "InternalServerError", Message: "Out of storage capacity in %s.",
			Reason: "as the compute service answers when it is out of hosts",
		},
		VolumeSameSize: {
			Allow: true, Status: http.StatusBadRequest, Code: "InvalidParameter",
			Message: "The size of volume %s must be larger than its present %d GB.",
			Reason:  "documented as \"has to be larger\"; tools that write the whole resource send the present size",
		},
		VolumeDeletedTwice: {
			Status: http.StatusNotFound, Code: "NotAuthorizedOrNotFound", Message: messageNotFound,
			Reason: "reads of a terminated volume still succeed for a while; deletes of gone resources are 404",
		},
		TerminatedVolumeChanged: {
			Status: http.StatusNotFound, Code: "NotAuthorizedOrNotFound", Message: messageNotFound,
			Reason: "as for deletes",
		},
	}
	for situation, message := range map[Situation]string{
		UnknownVolumeDomain:  "Availability domain %s does not exist.",
		VolumeCloneElsewhere: "The clone must be in availability domain %s of its source, not in %s.",
	} {
		rulings[situation] = Ruling{
			Status: http.StatusBadRequest, Code: "InvalidParameter", Message: message,
			Reason: "a value of the body is wrong; the code is from memory",
		}
	}
	for situation, message := range map[Situation]string{
		VolumeSourceNotReady: "%s is %s.",
		VolumeNotChangeable:  "Volume %s is %s and cannot be changed.",
		VolumeNotDeletable:   "%s is %s and cannot be deleted.",
		VolumeBackupOfBusy:   "Volume %s is %s and cannot be backed up.",
	} {
		rulings[situation] = Ruling{
			Status: http.StatusConflict, Code: "IncorrectState", Message: message,
			Reason: "the state passes by itself, which is what IncorrectState is for",
		}
	}
	for situation, message := range map[Situation]string{
		VolumeSourceHydrating:  "Volume %s is not hydrated yet.",
		VolumeChangeHydrating:  "Volume %s is not hydrated yet.",
		VolumeChangeInBackup:   "Volume %s has a backup in progress.",
		VolumeSourceInUse:      "%s may not be deleted while %s is being copied from it.",
		VolumeInGroup:          "Volume %s may not be deleted while it is in volume group %s.",
		VolumeBackupInProgress: "Volume %s has a backup in progress.",
		VolumeBackupProtected:  "Backup %s may not be deleted before its retention ends.",
	} {
		rulings[situation] = Ruling{
			Status: http.StatusConflict, Code: "Conflict", Message: message,
			Reason: "documented as impossible, or likely to be; the code is that of other conflicts of the service",
		}
	}
	maps.Copy(rulings, attachmentRulings())
	maps.Copy(rulings, instanceRulings())
	maps.Copy(rulings, groupRulings())
	return rulings
}

// serviceLimit refuses one more of something than a service limit of that name allows.
func (cl *cloud) serviceLimit(name string, used int) error {
	limit, limited := cl.behaviour.ServiceLimits[name]
	if !limited || used <= limit {
		return nil
	}
	return errLimit("The following service limits were exceeded: %s. Request a service limit increase from the service limits page in the console.", name)
}
