// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package ocisim

import (
	"maps"
	"net/http"
	"slices"
	"time"

	"github.com/oracle/oci-go-sdk/v65/common"
	"github.com/oracle/oci-go-sdk/v65/core"
)

// The situations of volume groups. All of them are from the models of the SDK and from how volumes behave: this project
// does not use groups, and no logs of them were looked at.
const (
	GroupVolumeTaken       Situation = "volume in two volume groups"
	GroupVolumeElsewhere   Situation = "volume group with a volume of another availability domain"
	GroupVolumeNotReady    Situation = "volume group with a volume that is not available"
	GroupTooLarge          Situation = "volume group with too many volumes"
	GroupNotChangeable     Situation = "change or delete of a volume group that is not available"
	GroupBackupNotReady    Situation = "volume group of a backup that is not available"
	GroupBackupOfEmpty     Situation = "backup of an empty volume group"
	GroupBackupMemberAlone Situation = "delete of a volume backup that belongs to a group's backup"
)

// maxGroupVolumes is documented as the number of volumes of a group.
const maxGroupVolumes = 32

func groupRulings() map[Situation]Ruling {
	rulings := map[Situation]Ruling{
		GroupVolumeElsewhere: {
			Status: http.StatusBadRequest, Code: "InvalidParameter", Message: "Volume %s is not in availability domain %s.",
			Reason: "a value of the body is wrong; the code is from memory",
		},
		GroupTooLarge: {
			Status: http.StatusBadRequest, Code: "LimitExceeded", Message: "A volume group can have at most %d volumes.",
			Reason: "the limit is documented, its error is not",
		},
		GroupBackupOfEmpty: {
			Status: http.StatusBadRequest, Code: "InvalidParameter", Message: "Volume group %s has no volumes.",
			Reason: "not documented; there is nothing to back up",
		},
		GroupBackupMemberAlone: {
			Allow: true, Status: http.StatusConflict, Code: "Conflict", Message: "Backup %s belongs to volume group backup %s.",
			Reason: "not documented; volumes of a group can be deleted once they have left it, backups cannot leave",
		},
	}
	for situation, message := range map[Situation]string{
		GroupVolumeNotReady: "Volume %s is %s.",
		GroupNotChangeable:  "Volume group %s is %s.",
		GroupBackupNotReady: "Volume group backup %s is %s.",
	} {
		rulings[situation] = Ruling{
			Status: http.StatusConflict, Code: "IncorrectState", Message: message,
			Reason: "the state passes by itself, which is what IncorrectState is for",
		}
	}
	rulings[GroupVolumeTaken] = Ruling{
		Status: http.StatusConflict, Code: "Conflict", Message: "Volume %s is in volume group %s already.",
		Reason: "a volume has one volumeGroupId; the code is that of other conflicts of the service",
	}
	return rulings
}

var volumeGroups = newKind(kindInfo{
	ocidType: "volumegroup", label: "volume group", policy: "volume-groups", eventual: true, keep: []string{"isHydrated"},
}, func(v *core.VolumeGroup) facets {
	return facets{
		id: value(v.Id), compartment: value(v.CompartmentId), name: value(v.DisplayName),
		state: string(v.LifecycleState), domain: value(v.AvailabilityDomain),
	}
})

func volumeGroupOperations() []Operation {
	return blockOperations{
		noun: "VolumeGroup", plural: "VolumeGroups", path: "volumeGroups", param: "volumeGroupId", kind: volumeGroups.kindInfo, update: Use,
		listQuery:     "compartmentId*,availabilityDomain,limit,page,displayName,sortBy,sortOrder,lifecycleState",
		partial:       "no boot volumes, no replicas, no backup policies; what is refused is not established",
		updatePartial: "no boot volumes, no replicas; what is refused is not established",
		list: func(c *call) (*answer, error) {
			return c.list(listing{kind: volumeGroups.kindInfo, key: c.query.Get("compartmentId")})
		},
		creates: createVolumeGroup, updates: updateVolumeGroup, deletes: deleteVolumeGroup,
	}.table()
}

func createVolumeGroup(c *call) (*answer, error) {
	d, err := decode[core.CreateVolumeGroupDetails](c)
	if err != nil {
		return nil, err
	}
	if err := c.createIn(value(d.CompartmentId)); err != nil {
		return nil, err
	}
	domain := value(d.AvailabilityDomain)
	if _, err := c.volumeDomain(domain, volumeSource{}); err != nil {
		return nil, err
	}
	if d.DisplayName != nil {
		if err := checkSize("displayName", *d.DisplayName, 1, maxBlockName); err != nil {
			return nil, err
		}
	}
	members, err := c.groupMembers(d, domain)
	if err != nil {
		return nil, err
	}
	g := &core.VolumeGroup{
		Id: common.String(c.newOCID(volumeGroups.ocidType)), CompartmentId: d.CompartmentId, AvailabilityDomain: d.AvailabilityDomain,
		DisplayName:    common.String(orElse(value(d.DisplayName), "volumegroup"+c.nameSuffix())),
		LifecycleState: core.VolumeGroupLifecycleStateProvisioning, TimeCreated: c.sdkTime(), SourceDetails: d.SourceDetails,
		VolumeIds: []string{}, SizeInGBs: common.Int64(0), SizeInMBs: common.Int64(0), IsHydrated: common.Bool(true),
		FreeformTags: map[string]string{}, DefinedTags: map[string]map[string]interface{}{},
	}
	setTags(&g.FreeformTags, &g.DefinedTags, d.FreeformTags, d.DefinedTags)
	volumeGroups.insert(c.cloud, g)
	c.startGroup(value(g.Id), members, c.failure != nil)
	return c.created(volumeGroups.lookup(c.cloud, value(g.Id))), nil
}

// groupMember is a volume that a new group takes, or the source of one that is made for it.
type groupMember struct {
	volume *core.Volume // taken as it is
	source volumeSource
	like   *core.Volume // of a clone: performance and tags
}

// groupMembers resolves the source of a group: its volumes, or those of a group or of a group's backup to copy.
func (c *call) groupMembers(d *core.CreateVolumeGroupDetails, domain string) ([]groupMember, error) {
	switch s := d.SourceDetails.(type) {
	case core.VolumeGroupSourceFromVolumesDetails:
		taken, err := c.groupVolumes(s.VolumeIds, domain, "")
		if err != nil {
			return nil, err
		}
		members := make([]groupMember, 0, len(taken))
		for _, v := range taken {
			members = append(members, groupMember{volume: v})
		}
		return members, nil
	case core.VolumeGroupSourceFromVolumeGroupDetails:
		return c.clonesOf(value(s.VolumeGroupId), domain)
	case core.VolumeGroupSourceFromVolumeGroupBackupDetails:
		return c.restoresOf(value(s.VolumeGroupBackupId), domain)
	default:
		return nil, errInvalid("The type of sourceDetails is not supported.")
	}
}

// groupVolumes checks volumes that are to be in a group.
func (c *call) groupVolumes(ids []string, domain, group string) ([]*core.Volume, error) {
	if len(ids) > maxGroupVolumes {
		if err := c.rule(GroupTooLarge, maxGroupVolumes); err != nil {
			return nil, err
		}
	}
	list := make([]*core.Volume, 0, len(ids))
	for i, id := range ids {
		if slices.Contains(ids[:i], id) {
			return nil, errInvalid("Volume %s is named twice.", id)
		}
		v, err := volumes.related(c, id)
		if err != nil {
			return nil, err
		}
		if in := value(v.AvailabilityDomain); in != domain {
			if err := c.rule(GroupVolumeElsewhere, id, domain); err != nil {
				return nil, err
			}
		}
		if other := value(v.VolumeGroupId); other != "" && other != group {
			if err := c.rule(GroupVolumeTaken, id, other); err != nil {
				return nil, err
			}
		}
		if v.LifecycleState != core.VolumeLifecycleStateAvailable {
			if err := c.rule(GroupVolumeNotReady, id, v.LifecycleState); err != nil {
				return nil, err
			}
		}
		list = append(list, v)
	}
	return list, nil
}

func (c *call) clonesOf(groupID, domain string) ([]groupMember, error) {
	g, err := volumeGroups.related(c, groupID)
	if err != nil {
		return nil, err
	}
	if g.LifecycleState != core.VolumeGroupLifecycleStateAvailable {
		if err := c.rule(GroupNotChangeable, groupID, g.LifecycleState); err != nil {
			return nil, err
		}
	}
	var members []groupMember
	var size int64
	for _, id := range g.VolumeIds {
		source, err := c.cloneSource(id)
		if err != nil {
			return nil, err
		}
		if _, err := c.volumeDomain(domain, source); err != nil {
			return nil, err
		}
		size += source.gigabytes
		members = append(members, groupMember{source: source, like: volumes.find(c.cloud, id)})
	}
	return members, c.volumeRoom(domain, len(members), size)
}

func (c *call) restoresOf(backupID, domain string) ([]groupMember, error) {
	b, err := volumeGroupBackups.related(c, backupID)
	if err != nil {
		return nil, err
	}
	if b.LifecycleState != core.VolumeGroupBackupLifecycleStateAvailable {
		if err := c.rule(GroupBackupNotReady, backupID, b.LifecycleState); err != nil {
			return nil, err
		}
	}
	var members []groupMember
	var size int64
	for _, id := range b.VolumeBackupIds {
		source, err := c.backupSource(id)
		if err != nil {
			return nil, err
		}
		size += source.gigabytes
		members = append(members, groupMember{source: source})
	}
	return members, c.volumeRoom(domain, len(members), size)
}

// startGroup gives a group its volumes, and takes it to AVAILABLE when all of them are.
func (cl *cloud) startGroup(id string, members []groupMember, faulty bool) {
	g := volumeGroups.find(cl, id)
	ids := make([]string, 0, len(members))
	for _, m := range members {
		if m.volume != nil {
			ids = append(ids, value(m.volume.Id))
			continue
		}
		ids = append(ids, cl.memberOf(g, m, faulty))
	}
	cl.setGroupVolumes(id, ids)
	cl.after(cl.duration("volumegroup.create"), func() { cl.watchGroup(id, faulty) })
}

// memberOf makes a volume for a group.
func (cl *cloud) memberOf(g *core.VolumeGroup, m groupMember, faulty bool) string {
	v := &core.Volume{
		Id: common.String(cl.newOCID(volumes.ocidType)), CompartmentId: g.CompartmentId, AvailabilityDomain: g.AvailabilityDomain,
		DisplayName:    common.String("volume" + cl.nameSuffix()),
		LifecycleState: core.VolumeLifecycleStateProvisioning, TimeCreated: cl.sdkTime(),
		SizeInGBs: common.Int64(m.source.gigabytes), SizeInMBs: common.Int64(m.source.gigabytes * mbsPerGB),
		SourceDetails: m.source.details(), IsHydrated: common.Bool(false), IsReservationsEnabled: common.Bool(false),
		FreeformTags: map[string]string{}, DefinedTags: map[string]map[string]interface{}{},
	}
	p := performance{vpus: defaultVPUs}
	if m.like != nil {
		p = performanceOf(m.like)
		v.DisplayName, v.FreeformTags, v.DefinedTags = m.like.DisplayName, maps.Clone(m.like.FreeformTags), maps.Clone(m.like.DefinedTags)
	}
	p.applyTo(v)
	volumes.insert(cl, v)
	cl.provisionVolume(value(v.Id), m.source, faulty)
	return value(v.Id)
}

// groupLook is how often a group is compared with its volumes while they change, in the region's time.
const groupLook = time.Second

// watchGroup makes a new group available as soon as its volumes are.
func (cl *cloud) watchGroup(id string, faulty bool) {
	g := volumeGroups.find(cl, id)
	if g == nil || g.LifecycleState != core.VolumeGroupLifecycleStateProvisioning {
		return
	}
	hydrated := true
	for _, member := range g.VolumeIds {
		v := volumes.find(cl, member)
		switch {
		case v == nil:
		case v.LifecycleState == core.VolumeLifecycleStateProvisioning, v.LifecycleState == core.VolumeLifecycleStateRestoring:
			cl.after(groupLook, func() { cl.watchGroup(id, faulty) })
			return
		case v.LifecycleState == core.VolumeLifecycleStateFaulty:
			faulty = true
		default:
			hydrated = hydrated && value(v.IsHydrated)
		}
	}
	volumeGroups.update(cl, id, func(g *core.VolumeGroup) {
		g.LifecycleState, g.IsHydrated = core.VolumeGroupLifecycleStateAvailable, common.Bool(hydrated)
		if faulty {
			g.LifecycleState = core.VolumeGroupLifecycleStateFaulty
		}
	})
	if !hydrated {
		cl.watchHydration(id)
	}
}

// watchHydration tells when the content of all volumes of a group is copied.
func (cl *cloud) watchHydration(id string) {
	cl.after(groupLook, func() {
		g := volumeGroups.find(cl, id)
		if g == nil || value(g.IsHydrated) || terminal(string(g.LifecycleState)) {
			return
		}
		for _, member := range g.VolumeIds {
			if v := volumes.find(cl, member); v != nil && !value(v.IsHydrated) && v.LifecycleState == core.VolumeLifecycleStateAvailable {
				cl.watchHydration(id)
				return
			}
		}
		volumeGroups.update(cl, id, func(g *core.VolumeGroup) { g.IsHydrated = common.Bool(true) })
	})
}

// setGroupVolumes makes the volumes of a group those, and no others.
func (cl *cloud) setGroupVolumes(id string, ids []string) {
	g := volumeGroups.find(cl, id)
	for _, old := range g.VolumeIds {
		if !slices.Contains(ids, old) {
			volumes.update(cl, old, func(v *core.Volume) { v.VolumeGroupId = nil })
		}
	}
	var size int64
	for _, member := range ids {
		volumes.update(cl, member, func(v *core.Volume) { v.VolumeGroupId = common.String(id) })
		if v := volumes.find(cl, member); v != nil {
			size += value(v.SizeInGBs)
		}
	}
	volumeGroups.update(cl, id, func(g *core.VolumeGroup) {
		g.VolumeIds, g.SizeInGBs, g.SizeInMBs = slices.Clone(ids), common.Int64(size), common.Int64(size*mbsPerGB)
	})
}
