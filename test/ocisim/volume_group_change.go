// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package ocisim

import (
	"net/http"

	"github.com/oracle/oci-go-sdk/v65/core"
)

// updateVolumeGroup changes names and tags at once, and the set of volumes in a while.
func updateVolumeGroup(c *call) (*answer, error) {
	d, err := decode[core.UpdateVolumeGroupDetails](c)
	if err != nil {
		return nil, err
	}
	cl, id, g := c.cloud, c.target.id, volumeGroups.of(c.target)
	switch {
	case terminal(string(g.LifecycleState)):
		return c.show(c.target), c.rule(TerminatedVolumeChanged)
	case g.LifecycleState != core.VolumeGroupLifecycleStateAvailable:
		if err := c.rule(GroupNotChangeable, id, g.LifecycleState); err != nil {
			return nil, err
		}
	}
	if d.DisplayName != nil {
		if err := checkSize("displayName", *d.DisplayName, 1, maxBlockName); err != nil {
			return nil, err
		}
	}
	if _, err := c.groupVolumes(d.VolumeIds, value(g.AvailabilityDomain), id); err != nil {
		return nil, err
	}
	volumeGroups.update(cl, id, func(g *core.VolumeGroup) {
		if d.DisplayName != nil {
			g.DisplayName = d.DisplayName
		}
		setTags(&g.FreeformTags, &g.DefinedTags, d.FreeformTags, d.DefinedTags)
	})
	if d.VolumeIds != nil {
		cl.setGroupState(id, core.VolumeGroupLifecycleStateAvailable, core.VolumeGroupLifecycleStateUpdatePending)
		fail := c.failure != nil
		cl.after(cl.duration("volumegroup.update"), func() {
			if cl.setGroupState(id, core.VolumeGroupLifecycleStateUpdatePending, core.VolumeGroupLifecycleStateAvailable) && !fail {
				cl.setGroupVolumes(id, d.VolumeIds)
			}
		})
	}
	return c.show(c.target), nil
}

// setGroupState moves a group from one state to another, if it is still in the first.
func (cl *cloud) setGroupState(id string, from, to core.VolumeGroupLifecycleStateEnum) bool {
	g := volumeGroups.find(cl, id)
	if g == nil || g.LifecycleState != from {
		return false
	}
	return volumeGroups.update(cl, id, func(g *core.VolumeGroup) { g.LifecycleState = to })
}

// deleteVolumeGroup deletes a group; its volumes stay, as documented.
func deleteVolumeGroup(c *call) (*answer, error) {
	id, g := c.target.id, volumeGroups.of(c.target)
	switch g.LifecycleState {
	case core.VolumeGroupLifecycleStateAvailable, core.VolumeGroupLifecycleStateFaulty:
	case core.VolumeGroupLifecycleStateTerminated:
		return none(http.StatusNoContent), c.rule(VolumeDeletedTwice)
	default:
		if err := c.rule(GroupNotChangeable, id, g.LifecycleState); err != nil {
			return nil, err
		}
	}
	return c.deleted(id, string(g.LifecycleState), c.terminateGroup)
}

func (cl *cloud) terminateGroup(id string) {
	volumeGroups.update(cl, id, func(g *core.VolumeGroup) { g.LifecycleState = core.VolumeGroupLifecycleStateTerminating })
	cl.after(cl.duration("volumegroup.delete"), func() {
		if volumeGroups.find(cl, id) == nil {
			return
		}
		cl.setGroupVolumes(id, nil)
		cl.setGroupState(id, core.VolumeGroupLifecycleStateTerminating, core.VolumeGroupLifecycleStateTerminated)
		cl.after(cl.behaviour.TerminatedVolumeVisible, func() { volumeGroups.remove(cl, id) })
	})
}

// removeVolumeGroup takes a group away as if it had never been; its volumes stay.
func (cl *cloud) removeVolumeGroup(id string) {
	cl.setGroupVolumes(id, nil)
	volumeGroups.remove(cl, id)
}
