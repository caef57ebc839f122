// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package ocisim

import (
	"github.com/oracle/oci-go-sdk/v65/common"
	"github.com/oracle/oci-go-sdk/v65/core"
)

func bootVolumeOperations() []Operation {
	return blockOperations{
		noun: "BootVolume", plural: "BootVolumes", path: "bootVolumes", param: "bootVolumeId", kind: bootVolumes.kindInfo, update: Use,
		listQuery: "availabilityDomain,compartmentId,limit,page,volumeGroupId",
		partial:   "clones of boot volumes only, no restores of backups, no replicas, no backup policies", updatePartial: "no replicas",
		list: listBootVolumes, creates: createBootVolume, updates: updateBootVolume, deletes: deleteBootVolume,
	}.table()
}

func listBootVolumes(c *call) (*answer, error) {
	key := c.query.Get("volumeGroupId")
	if key == "" {
		key = c.query.Get("compartmentId")
	}
	if key == "" {
		return nil, errMissing("compartmentId")
	}
	return c.list(listing{kind: bootVolumes.kindInfo, key: key})
}

func createBootVolume(c *call) (*answer, error) {
	d, err := decode[core.CreateBootVolumeDetails](c)
	if err != nil {
		return nil, err
	}
	if err := c.createIn(value(d.CompartmentId)); err != nil {
		return nil, err
	}
	from, ok := d.SourceDetails.(core.BootVolumeSourceFromBootVolumeDetails)
	if !ok {
		return nil, errInvalid("The type of sourceDetails is not supported.")
	}
	v, err := c.newBootVolume(d, value(from.Id))
	if err != nil {
		return nil, err
	}
	id, faulty := value(v.Id), c.failure != nil
	bootVolumes.insert(c.cloud, v)
	cl := c.cloud
	cl.after(cl.duration("volume.create"), func() {
		if faulty {
			cl.setBootVolumeState(id, core.BootVolumeLifecycleStateProvisioning, core.BootVolumeLifecycleStateFaulty)
			return
		}
		cl.setBootVolumeState(id, core.BootVolumeLifecycleStateProvisioning, core.BootVolumeLifecycleStateAvailable)
		cl.after(cl.duration("volume.hydrate"), func() {
			bootVolumes.update(cl, id, func(v *core.BootVolume) { v.IsHydrated = common.Bool(true) })
		})
	})
	return c.created(bootVolumes.lookup(cl, id)), nil
}

// newBootVolume checks the clone of a boot volume and makes its model.
func (c *call) newBootVolume(d *core.CreateBootVolumeDetails, from string) (*core.BootVolume, error) {
	original, err := bootVolumes.related(c, from)
	if err != nil {
		return nil, err
	}
	if original.LifecycleState != core.BootVolumeLifecycleStateAvailable {
		if err := c.rule(VolumeSourceNotReady, from, original.LifecycleState); err != nil {
			return nil, err
		}
	}
	if !value(original.IsHydrated) {
		if err := c.rule(VolumeSourceHydrating, from); err != nil {
			return nil, err
		}
	}
	source := volumeSource{id: from, domain: value(original.AvailabilityDomain), gigabytes: value(original.SizeInGBs)}
	domain, err := c.volumeDomain(value(d.AvailabilityDomain), source)
	if err != nil {
		return nil, err
	}
	size := source.gigabytes
	if d.SizeInGBs != nil {
		if size = *d.SizeInGBs; size < source.gigabytes || size > maxVolumeGBs {
			return nil, errInvalid("sizeInGBs must be between the %d GB of the source and %d.", source.gigabytes, maxVolumeGBs)
		}
	}
	p, err := newPerformance(d.VpusPerGB, d.IsAutoTuneEnabled, d.AutotunePolicies, nil)
	if err != nil {
		return nil, err
	}
	if d.DisplayName != nil {
		if err := checkSize("displayName", *d.DisplayName, 1, maxBlockName); err != nil {
			return nil, err
		}
	}
	if err := c.volumeRoom(domain, 1, size); err != nil {
		return nil, err
	}
	v := bootVolumeModel(c.newOCID(bootVolumes.ocidType), value(d.CompartmentId), domain,
		orElse(value(d.DisplayName), "bootvolume"+c.nameSuffix()), size)
	v.TimeCreated, v.LifecycleState = c.sdkTime(), core.BootVolumeLifecycleStateProvisioning
	v.IsHydrated, v.ImageId, v.KmsKeyId = common.Bool(false), original.ImageId, d.KmsKeyId
	v.SourceDetails = core.BootVolumeSourceFromBootVolumeDetails{Id: common.String(from)}
	v.ClusterPlacementGroupId = d.ClusterPlacementGroupId
	p.applyToBoot(v)
	setTags(&v.FreeformTags, &v.DefinedTags, d.FreeformTags, d.DefinedTags)
	return v, nil
}

// bootVolumeModel is an available boot volume.
func bootVolumeModel(id, compartment, domain, name string, gigabytes int64) *core.BootVolume {
	return &core.BootVolume{
		Id: common.String(id), CompartmentId: common.String(compartment), AvailabilityDomain: common.String(domain),
		DisplayName: common.String(name), LifecycleState: core.BootVolumeLifecycleStateAvailable,
		SizeInGBs: common.Int64(gigabytes), SizeInMBs: common.Int64(gigabytes * mbsPerGB), IsHydrated: common.Bool(true),
		VpusPerGB: common.Int64(defaultVPUs), IsAutoTuneEnabled: common.Bool(false),
		FreeformTags: map[string]string{}, DefinedTags: map[string]map[string]interface{}{},
	}
}

func (p performance) applyToBoot(v *core.BootVolume) {
	v.VpusPerGB, v.IsAutoTuneEnabled, v.AutotunePolicies = common.Int64(p.vpus), common.Bool(p.autoTune), p.policies
	v.AutoTunedVpusPerGB = nil
	if p.tuned() {
		v.AutoTunedVpusPerGB = common.Int64(p.vpus)
	}
}

func (cl *cloud) setBootVolumeState(id string, from, to core.BootVolumeLifecycleStateEnum) bool {
	v := bootVolumes.find(cl, id)
	if v == nil || v.LifecycleState != from {
		return false
	}
	return bootVolumes.update(cl, id, func(v *core.BootVolume) { v.LifecycleState = to })
}

// updateBootVolume is updateVolume for boot volumes.
func updateBootVolume(c *call) (*answer, error) {
	d, err := decode[core.UpdateBootVolumeDetails](c)
	if err != nil {
		return nil, err
	}
	cl, id, v := c.cloud, c.target.id, bootVolumes.of(c.target)
	if err := c.changeable(id, string(v.LifecycleState)); err != nil {
		return nil, err
	}
	if d.DisplayName != nil {
		if err := checkSize("displayName", *d.DisplayName, 1, maxBlockName); err != nil {
			return nil, err
		}
	}
	size, err := c.newSize(volumeSubject{id, v.AvailabilityDomain, value(v.SizeInGBs), value(v.IsHydrated)}, d.SizeInGBs)
	if err != nil {
		return nil, err
	}
	old := performance{vpus: value(v.VpusPerGB), autoTune: value(v.IsAutoTuneEnabled), policies: v.AutotunePolicies}
	p, err := newPerformance(d.VpusPerGB, d.IsAutoTuneEnabled, c.policiesOf(d.AutotunePolicies), &old)
	if err != nil {
		return nil, err
	}
	bootVolumes.update(cl, id, func(v *core.BootVolume) {
		if d.DisplayName != nil {
			v.DisplayName = d.DisplayName
		}
		setTags(&v.FreeformTags, &v.DefinedTags, d.FreeformTags, d.DefinedTags)
	})
	if size != value(v.SizeInGBs) || !p.equal(old) {
		cl.changeBootVolume(id, func(v *core.BootVolume) {
			v.SizeInGBs, v.SizeInMBs = common.Int64(size), common.Int64(size*mbsPerGB)
			p.applyToBoot(v)
		}, c.failure != nil)
	}
	return c.show(c.target), nil
}

// changeBootVolume is changeVolume for boot volumes, which have no body.
func (cl *cloud) changeBootVolume(id string, change func(*core.BootVolume), fail bool) {
	before := core.BootVolumeLifecycleStateAvailable
	if cl.behaviour.ResizeProvisions {
		cl.setBootVolumeState(id, before, core.BootVolumeLifecycleStateProvisioning)
		before = core.BootVolumeLifecycleStateProvisioning
	}
	if cl.behaviour.ResizeShownAtOnce && !fail {
		bootVolumes.update(cl, id, change)
	}
	cl.after(cl.duration("volume.update"), func() {
		if v := bootVolumes.find(cl, id); v == nil || v.LifecycleState != before {
			return
		}
		bootVolumes.update(cl, id, func(v *core.BootVolume) {
			v.LifecycleState = core.BootVolumeLifecycleStateAvailable
			if !fail {
				change(v)
			}
		})
	})
}

func deleteBootVolume(c *call) (*answer, error) {
	id, v := c.target.id, bootVolumes.of(c.target)
	if err := c.deletable(id, string(v.LifecycleState)); err != nil {
		return nil, err
	}
	for a := range bootVolumeAttachments.under(c.cloud, id) {
		if a.LifecycleState != core.BootVolumeAttachmentLifecycleStateDetached {
			return nil, errConflict("Volume %s may not be deleted while attached to an Instance.", id)
		}
	}
	if group := value(v.VolumeGroupId); group != "" {
		if err := c.rule(VolumeInGroup, id, group); err != nil {
			return nil, err
		}
	}
	return c.deleted(id, string(v.LifecycleState), c.terminateBootVolume)
}

// terminateBootVolume takes a boot volume to TERMINATED; the record stays visible for a while.
func (cl *cloud) terminateBootVolume(id string) {
	bootVolumes.update(cl, id, func(v *core.BootVolume) { v.LifecycleState = core.BootVolumeLifecycleStateTerminating })
	cl.after(cl.duration("volume.delete"), func() {
		if cl.setBootVolumeState(id, core.BootVolumeLifecycleStateTerminating, core.BootVolumeLifecycleStateTerminated) {
			cl.after(cl.behaviour.TerminatedVolumeVisible, func() { bootVolumes.remove(cl, id) })
		}
	})
}

// removeBootVolume takes a boot volume away as if it had never been, and its attachments with it.
func (cl *cloud) removeBootVolume(id string) {
	for a := range bootVolumeAttachments.under(cl, id) {
		bootVolumeAttachments.remove(cl, value(a.Id))
	}
	bootVolumes.remove(cl, id)
}
