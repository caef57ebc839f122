// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package ocisim

import (
	"net/http"

	"github.com/oracle/oci-go-sdk/v65/common"
	"github.com/oracle/oci-go-sdk/v65/core"
)

// volumeGroupBackups are listed by the group that they were made of.
var volumeGroupBackups = newKind(kindInfo{
	ocidType: "volumegroupbackup", label: "volume group backup", policy: "volume-group-backups", eventual: true,
}, func(v *core.VolumeGroupBackup) facets {
	return facets{
		id: value(v.Id), compartment: value(v.CompartmentId), name: value(v.DisplayName), state: string(v.LifecycleState),
		keys: []string{value(v.VolumeGroupId)},
	}
})

func volumeGroupBackupOperations() []Operation {
	return blockOperations{
		noun: "VolumeGroupBackup", plural: "VolumeGroupBackups", path: "volumeGroupBackups", param: "volumeGroupBackupId",
		kind: volumeGroupBackups.kindInfo, update: Use,
		listQuery:     "compartmentId*,volumeGroupId,limit,page,displayName,sortBy,sortOrder",
		partial:       "states and refusals are not established",
		updatePartial: "names and tags only",
		list: func(c *call) (*answer, error) {
			return c.list(listing{kind: volumeGroupBackups.kindInfo, key: narrowest(c.query.Get("volumeGroupId"), c.query.Get("compartmentId"))})
		},
		creates: createVolumeGroupBackup, updates: updateVolumeGroupBackup, deletes: deleteVolumeGroupBackup,
	}.table()
}

func createVolumeGroupBackup(c *call) (*answer, error) {
	d, err := decode[core.CreateVolumeGroupBackupDetails](c)
	if err != nil {
		return nil, err
	}
	groupID := value(d.VolumeGroupId)
	g, err := volumeGroups.related(c, groupID)
	if err != nil {
		return nil, err
	}
	compartment := orElse(value(d.CompartmentId), value(g.CompartmentId))
	if err := c.createIn(compartment); err != nil {
		return nil, err
	}
	if d.DisplayName != nil {
		if err := checkSize("displayName", *d.DisplayName, 1, maxBlockName); err != nil {
			return nil, err
		}
	}
	if g.LifecycleState != core.VolumeGroupLifecycleStateAvailable {
		if err := c.rule(GroupNotChangeable, groupID, g.LifecycleState); err != nil {
			return nil, err
		}
	}
	if len(g.VolumeIds) == 0 {
		if err := c.rule(GroupBackupOfEmpty, groupID); err != nil {
			return nil, err
		}
	}
	for _, id := range g.VolumeIds {
		if v := volumes.find(c.cloud, id); v != nil {
			if err := c.backupAllowed(v); err != nil {
				return nil, err
			}
		}
	}
	b := &core.VolumeGroupBackup{
		Id: common.String(c.newOCID(volumeGroupBackups.ocidType)), CompartmentId: common.String(compartment), VolumeGroupId: g.Id,
		DisplayName: common.String(orElse(value(d.DisplayName), "volumegroupbackup"+c.nameSuffix())),
		Type:        core.VolumeGroupBackupTypeEnum(orElse(string(d.Type), string(core.VolumeGroupBackupTypeIncremental))),
		SourceType:  core.VolumeGroupBackupSourceTypeManual, SizeInGBs: g.SizeInGBs, SizeInMBs: g.SizeInMBs, VolumeBackupIds: []string{},
		LifecycleState: core.VolumeGroupBackupLifecycleStateRequestReceived, TimeCreated: c.sdkTime(), TimeRequestReceived: c.sdkTime(),
		FreeformTags: map[string]string{}, DefinedTags: map[string]map[string]interface{}{},
	}
	setTags(&b.FreeformTags, &b.DefinedTags, d.FreeformTags, d.DefinedTags)
	c.startGroupBackup(b, g, c.failure != nil)
	return c.created(volumeGroupBackups.lookup(c.cloud, value(b.Id))), nil
}

// startGroupBackup makes a backup of each volume of a group, all at the same moment.
func (cl *cloud) startGroupBackup(b *core.VolumeGroupBackup, g *core.VolumeGroup, faulty bool) {
	id := value(b.Id)
	for _, volume := range g.VolumeIds {
		v := volumes.find(cl, volume)
		if v == nil {
			continue
		}
		one := &core.VolumeBackup{
			Id: common.String(cl.newOCID(volumeBackups.ocidType)), CompartmentId: b.CompartmentId, VolumeId: v.Id, VolumeGroupBackupId: b.Id,
			DisplayName: b.DisplayName, Type: core.VolumeBackupTypeEnum(b.Type), SourceType: core.VolumeBackupSourceTypeManual,
			KmsKeyId: v.KmsKeyId, SizeInGBs: v.SizeInGBs, SizeInMBs: v.SizeInMBs,
			FreeformTags: b.FreeformTags, DefinedTags: b.DefinedTags,
		}
		cl.makeBackup(one, faulty)
		b.VolumeBackupIds = append(b.VolumeBackupIds, value(one.Id))
	}
	volumeGroupBackups.insert(cl, b)
	cl.after(cl.duration("volumebackup.image"), func() {
		cl.setGroupBackupState(id, core.VolumeGroupBackupLifecycleStateRequestReceived, core.VolumeGroupBackupLifecycleStateCreating)
		cl.watchGroupBackup(id)
	})
}

// watchGroupBackup makes a group's backup available as soon as those of its volumes are.
func (cl *cloud) watchGroupBackup(id string) {
	b := volumeGroupBackups.find(cl, id)
	if b == nil || b.LifecycleState != core.VolumeGroupBackupLifecycleStateCreating {
		return
	}
	end := core.VolumeGroupBackupLifecycleStateAvailable
	for _, member := range b.VolumeBackupIds {
		one := volumeBackups.find(cl, member)
		switch {
		case one == nil:
		case one.LifecycleState == core.VolumeBackupLifecycleStateFaulty:
			end = core.VolumeGroupBackupLifecycleStateFaulty
		case one.LifecycleState != core.VolumeBackupLifecycleStateAvailable:
			cl.after(groupLook, func() { cl.watchGroupBackup(id) })
			return
		}
	}
	cl.setGroupBackupState(id, core.VolumeGroupBackupLifecycleStateCreating, end)
}

// setGroupBackupState moves a group's backup from one state to another, if it is still in the first.
func (cl *cloud) setGroupBackupState(id string, from, to core.VolumeGroupBackupLifecycleStateEnum) bool {
	b := volumeGroupBackups.find(cl, id)
	if b == nil || b.LifecycleState != from {
		return false
	}
	return volumeGroupBackups.update(cl, id, func(b *core.VolumeGroupBackup) { b.LifecycleState = to })
}

func updateVolumeGroupBackup(c *call) (*answer, error) {
	d, err := decode[core.UpdateVolumeGroupBackupDetails](c)
	if err != nil {
		return nil, err
	}
	if terminal(c.target.state) {
		return c.show(c.target), c.rule(TerminatedVolumeChanged)
	}
	if d.DisplayName != nil {
		if err := checkSize("displayName", *d.DisplayName, 1, maxBlockName); err != nil {
			return nil, err
		}
	}
	volumeGroupBackups.update(c.cloud, c.target.id, func(b *core.VolumeGroupBackup) {
		if d.DisplayName != nil {
			b.DisplayName = d.DisplayName
		}
		setTags(&b.FreeformTags, &b.DefinedTags, d.FreeformTags, d.DefinedTags)
	})
	return c.show(c.target), nil
}

// deleteVolumeGroupBackup deletes a group's backup with those of its volumes, as documented.
func deleteVolumeGroupBackup(c *call) (*answer, error) {
	id, b := c.target.id, volumeGroupBackups.of(c.target)
	switch b.LifecycleState {
	case core.VolumeGroupBackupLifecycleStateAvailable, core.VolumeGroupBackupLifecycleStateFaulty:
	case core.VolumeGroupBackupLifecycleStateTerminated:
		return none(http.StatusNoContent), c.rule(VolumeDeletedTwice)
	default:
		if err := c.rule(VolumeNotDeletable, id, b.LifecycleState); err != nil {
			return nil, err
		}
	}
	for _, member := range b.VolumeBackupIds {
		if one := volumeBackups.find(c.cloud, member); one != nil && !terminal(string(one.LifecycleState)) {
			if err := c.deletable(member, string(one.LifecycleState)); err != nil {
				return nil, err
			}
		}
	}
	return c.deleted(id, string(b.LifecycleState), c.terminateGroupBackup)
}

func (cl *cloud) terminateGroupBackup(id string) {
	volumeGroupBackups.update(cl, id, func(b *core.VolumeGroupBackup) {
		b.LifecycleState = core.VolumeGroupBackupLifecycleStateTerminating
	})
	for _, member := range volumeGroupBackups.find(cl, id).VolumeBackupIds {
		if one := volumeBackups.find(cl, member); one != nil && !terminal(string(one.LifecycleState)) {
			cl.terminateBackup(member)
		}
	}
	cl.after(cl.duration("volumebackup.delete"), func() {
		cl.setGroupBackupState(id, core.VolumeGroupBackupLifecycleStateTerminating, core.VolumeGroupBackupLifecycleStateTerminated)
		cl.after(cl.behaviour.TerminatedVolumeVisible, func() { volumeGroupBackups.remove(cl, id) })
	})
}
