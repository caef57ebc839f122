// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package ocisim

import (
	"time"

	"github.com/oracle/oci-go-sdk/v65/common"
	"github.com/oracle/oci-go-sdk/v65/core"
)

func volumeBackupOperations() []Operation {
	return blockOperations{
		noun: "VolumeBackup", plural: "VolumeBackups", path: "volumeBackups", param: "volumeBackupId",
		kind: volumeBackups.kindInfo, update: Use,
		listQuery: "compartmentId*,volumeId,limit,page,displayName,sourceVolumeBackupId,sortBy,sortOrder,lifecycleState",
		list:      listVolumeBackups, creates: createVolumeBackup, updates: updateVolumeBackup, deletes: deleteVolumeBackup,
	}.table()
}

func listVolumeBackups(c *call) (*answer, error) {
	key := c.query.Get("compartmentId")
	volume, source := c.query.Get("volumeId"), c.query.Get("sourceVolumeBackupId")
	if volume != "" {
		key = volume
	}
	return c.list(listing{kind: volumeBackups.kindInfo, key: key, match: func(res *resource) bool {
		b := volumeBackups.of(res)
		return (volume == "" || value(b.VolumeId) == volume) && (source == "" || value(b.SourceVolumeBackupId) == source)
	}})
}

// backupRunning says whether a backup of a volume is being made.
func (cl *cloud) backupRunning(volumeID string) bool {
	for b := range volumeBackups.under(cl, volumeID) {
		switch b.LifecycleState {
		case core.VolumeBackupLifecycleStateRequestReceived, core.VolumeBackupLifecycleStateCreating:
			return true
		}
	}
	return false
}

func createVolumeBackup(c *call) (*answer, error) {
	d, err := decode[core.CreateVolumeBackupDetails](c)
	if err != nil {
		return nil, err
	}
	v, err := volumes.related(c, value(d.VolumeId))
	if err != nil {
		return nil, err
	}
	// A backup is made in the compartment of its volume.
	if err := c.createIn(value(v.CompartmentId)); err != nil {
		return nil, err
	}
	if err := c.backupAllowed(v); err != nil {
		return nil, err
	}
	if d.DisplayName != nil {
		if err := checkSize("displayName", *d.DisplayName, 1, maxBlockName); err != nil {
			return nil, err
		}
	}
	b := &core.VolumeBackup{
		Id: common.String(c.newOCID(volumeBackups.ocidType)), CompartmentId: v.CompartmentId, VolumeId: v.Id,
		DisplayName: common.String(orElse(value(d.DisplayName), "volumebackup"+c.nameSuffix())),
		Type:        core.VolumeBackupTypeEnum(orElse(string(d.Type), string(core.VolumeBackupTypeIncremental))),
		SourceType:  core.VolumeBackupSourceTypeManual, KmsKeyId: v.KmsKeyId, SizeInGBs: v.SizeInGBs, SizeInMBs: v.SizeInMBs,
		FreeformTags: map[string]string{}, DefinedTags: map[string]map[string]interface{}{},
	}
	if d.KmsKeyId != nil {
		b.KmsKeyId = d.KmsKeyId
	}
	setTags(&b.FreeformTags, &b.DefinedTags, d.FreeformTags, d.DefinedTags)
	if err := c.retain(b, d.RetentionPeriod, d.IsPreventDeletionEnabled, d.IsRetentionLockEnabled, d.IsIndefiniteRetentionEnabled); err != nil {
		return nil, err
	}
	c.makeBackup(b, c.failure != nil)
	return c.created(volumeBackups.lookup(c.cloud, value(b.Id))), nil
}

// backupAllowed checks whether a backup of a volume can start.
func (c *call) backupAllowed(v *core.Volume) error {
	id := value(v.Id)
	if v.LifecycleState != core.VolumeLifecycleStateAvailable {
		if err := c.rule(VolumeBackupOfBusy, id, v.LifecycleState); err != nil {
			return err
		}
	}
	if !value(v.IsHydrated) {
		if err := c.rule(VolumeSourceHydrating, id); err != nil {
			return err
		}
	}
	if c.backupRunning(id) {
		if err := c.rule(VolumeBackupInProgress, id); err != nil {
			return err
		}
	}
	if _, limited := c.behaviour.ServiceLimits["backup-count"]; !limited {
		return nil
	}
	count := 1
	for b := range volumeBackups.under(c.cloud, "") {
		if !terminal(string(b.LifecycleState)) {
			count++
		}
	}
	return c.serviceLimit("backup-count", count)
}

// makeBackup stores a new backup and takes it from REQUEST_RECEIVED over CREATING to AVAILABLE, or to FAULTY.
func (cl *cloud) makeBackup(b *core.VolumeBackup, faulty bool) {
	id := value(b.Id)
	b.LifecycleState = core.VolumeBackupLifecycleStateRequestReceived
	b.TimeRequestReceived, b.TimeCreated = cl.sdkTime(), cl.sdkTime()
	volumeBackups.insert(cl, b)
	cl.copyContent(value(b.VolumeId), id, func(err error) {
		faulty = faulty || err != nil
		cl.after(cl.duration("volumebackup.image"), func() {
			cl.setBackupState(id, core.VolumeBackupLifecycleStateRequestReceived, core.VolumeBackupLifecycleStateCreating)
			// TimeCreated is documented as the moment of the image.
			volumeBackups.update(cl, id, func(b *core.VolumeBackup) { b.TimeCreated = cl.sdkTime() })
			cl.after(cl.duration("volumebackup.upload"), func() {
				end := core.VolumeBackupLifecycleStateAvailable
				if faulty {
					end = core.VolumeBackupLifecycleStateFaulty
				}
				if cl.setBackupState(id, core.VolumeBackupLifecycleStateCreating, end) && !faulty {
					// An empty volume's backup is counted as one GB.
					volumeBackups.update(cl, id, func(b *core.VolumeBackup) {
						b.UniqueSizeInGBs, b.UniqueSizeInMbs = common.Int64(1), common.Int64(mbsPerGB)
					})
				}
			})
		})
	})
}

// setBackupState moves a backup from one state to another, if it is still in the first.
func (cl *cloud) setBackupState(id string, from, to core.VolumeBackupLifecycleStateEnum) bool {
	b := volumeBackups.find(cl, id)
	if b == nil || b.LifecycleState != from {
		return false
	}
	return volumeBackups.update(cl, id, func(b *core.VolumeBackup) { b.LifecycleState = to })
}

// retain applies settings that keep a backup from being deleted.
func (c *call) retain(b *core.VolumeBackup, period *core.RetentionDuration, prevent, lock, indefinite *bool) error {
	if period != nil {
		if value(period.RetentionTimeAmount) < 1 {
			return errInvalid("retentionTimeAmount must be at least 1.")
		}
		if value(b.IsRetentionLockEnabled) && b.TimeRetentionExpiresAt != nil && retentionEnd(c.now, period).Before(b.TimeRetentionExpiresAt.Time) {
			return errInvalid("The retention of a locked backup cannot be shortened.")
		}
		b.RetentionPeriod, b.TimeRetentionExpiresAt = period, sdkTimeOf(retentionEnd(c.now, period))
	}
	for _, setting := range [...]struct {
		to  **bool
		new *bool
	}{{&b.IsPreventDeletionEnabled, prevent}, {&b.IsRetentionLockEnabled, lock}, {&b.IsIndefiniteRetentionEnabled, indefinite}} {
		if setting.new != nil {
			*setting.to = setting.new
		}
	}
	return nil
}

func retentionEnd(from time.Time, period *core.RetentionDuration) time.Time {
	n := value(period.RetentionTimeAmount)
	if period.RetentionTimeUnit == core.RetentionDurationRetentionTimeUnitYears {
		return from.AddDate(n, 0, 0)
	}
	return from.AddDate(0, 0, n)
}

func updateVolumeBackup(c *call) (*answer, error) {
	d, err := decode[core.UpdateVolumeBackupDetails](c)
	if err != nil {
		return nil, err
	}
	b := volumeBackups.of(c.target)
	if terminal(string(b.LifecycleState)) {
		return c.show(c.target), c.rule(TerminatedVolumeChanged)
	}
	if d.DisplayName != nil {
		if err := checkSize("displayName", *d.DisplayName, 1, maxBlockName); err != nil {
			return nil, err
		}
	}
	retained := *b
	if err := c.retain(&retained, d.RetentionPeriod, d.IsPreventDeletionEnabled, d.IsRetentionLockEnabled, d.IsIndefiniteRetentionEnabled); err != nil {
		return nil, err
	}
	volumeBackups.update(c.cloud, c.target.id, func(b *core.VolumeBackup) {
		b.RetentionPeriod, b.TimeRetentionExpiresAt = retained.RetentionPeriod, retained.TimeRetentionExpiresAt
		b.IsPreventDeletionEnabled, b.IsRetentionLockEnabled = retained.IsPreventDeletionEnabled, retained.IsRetentionLockEnabled
		b.IsIndefiniteRetentionEnabled = retained.IsIndefiniteRetentionEnabled
		if d.DisplayName != nil {
			b.DisplayName = d.DisplayName
		}
		if d.KmsKeyId != nil {
			b.KmsKeyId = d.KmsKeyId
		}
		setTags(&b.FreeformTags, &b.DefinedTags, d.FreeformTags, d.DefinedTags)
	})
	return c.show(c.target), nil
}

func deleteVolumeBackup(c *call) (*answer, error) {
	id, b := c.target.id, volumeBackups.of(c.target)
	if err := c.deletable(id, string(b.LifecycleState)); err != nil {
		return nil, err
	}
	if value(b.IsPreventDeletionEnabled) || value(b.IsIndefiniteRetentionEnabled) ||
		(b.TimeRetentionExpiresAt != nil && c.now.Before(b.TimeRetentionExpiresAt.Time)) {
		if err := c.rule(VolumeBackupProtected, id); err != nil {
			return nil, err
		}
	}
	if group := value(b.VolumeGroupBackupId); group != "" {
		if err := c.rule(GroupBackupMemberAlone, id, group); err != nil {
			return nil, err
		}
	}
	return c.deleted(id, string(b.LifecycleState), c.terminateBackup)
}

// terminateBackup takes a backup to TERMINATED; the record stays visible for a while.
func (cl *cloud) terminateBackup(id string) {
	volumeBackups.update(cl, id, func(b *core.VolumeBackup) { b.LifecycleState = core.VolumeBackupLifecycleStateTerminating })
	cl.after(cl.duration("volumebackup.delete"), func() {
		if cl.setBackupState(id, core.VolumeBackupLifecycleStateTerminating, core.VolumeBackupLifecycleStateTerminated) {
			cl.dropContent(id)
			cl.after(cl.behaviour.TerminatedVolumeVisible, func() { volumeBackups.remove(cl, id) })
		}
	})
}

func (cl *cloud) removeVolumeBackup(id string) {
	volumeBackups.remove(cl, id)
	cl.dropContent(id)
}
