// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package ocisim

import (
	"encoding/json"
	"net/http"

	"github.com/oracle/oci-go-sdk/v65/common"
	"github.com/oracle/oci-go-sdk/v65/filestorage"
)

// mountTargets are listed by their export set and their subnet, too.
var mountTargets = newKind(kindInfo{
	ocidType: "mounttarget", label: "mount target", policy: "mount-targets", eventual: true,
}, func(v *filestorage.MountTarget) facets {
	return facets{
		id: value(v.Id), compartment: value(v.CompartmentId), name: value(v.DisplayName),
		state: string(v.LifecycleState), domain: value(v.AvailabilityDomain),
		keys: []string{value(v.ExportSetId), value(v.SubnetId)},
	}
})

func mountTargetOperations() []Operation {
	const path, one = "/mountTargets", "/mountTargets/{mountTargetId}"
	kind := mountTargets.kindInfo
	create := fileCreate("CreateMountTarget", path, Manage, kind, createMountTarget)
	create.Partial = "LDAP and Kerberos settings are kept, not used; the VNIC of an IPv6 mount target has an IPv4 address too"
	return []Operation{
		create,
		fileGet("GetMountTarget", one, kind),
		fileOperation("ListMountTargets", http.MethodGet, path,
			"compartmentId*,availabilityDomain*,limit,page,displayName,exportSetId,lifecycleState,id,sortBy,sortOrder",
			Inspect, kind, listMountTargets),
		fileChange("UpdateMountTarget", http.MethodPut, one, "isLockOverride", Use, kind, updateMountTarget),
		fileChange("DeleteMountTarget", http.MethodDelete, one, "isLockOverride", Manage, kind, deleteMountTarget),
		fileChange("ChangeMountTargetCompartment", http.MethodPost, one+"/actions/changeCompartment", "isLockOverride", Manage, kind, moveMountTarget),
	}
}

func createMountTarget(c *call) (*answer, error) {
	d, err := decode[filestorage.CreateMountTargetDetails](c)
	if err != nil {
		return nil, err
	}
	if err := c.createIn(value(d.CompartmentId)); err != nil {
		return nil, err
	}
	v, err := c.newMountTarget(d)
	if err != nil {
		return nil, err
	}
	if err := c.fileLimit(mountTargets.kindInfo, MountTargetLimit, value(d.AvailabilityDomain)); err != nil {
		return nil, err
	}
	if c.beingProvisioned(mountTargets.kindInfo) {
		if err := c.rule(MountTargetProvisioning); err != nil {
			return nil, err
		}
	}
	place, err := c.mountTargetAddresses(v, value(d.IpAddress), value(d.HostnameLabel))
	if err != nil {
		return nil, err
	}
	id, cl, failure := value(v.Id), c.cloud, c.failure
	res := mountTargets.insert(cl, v)
	end := cl.provision(mountTargets.kindInfo, id)
	ready := cl.duration("mounttarget.create")
	if failure == nil {
		cl.after(min(cl.duration("mounttarget.assign"), ready), func() { cl.assignMountTarget(id, place) })
	}
	cl.after(ready, func() {
		end()
		if failure != nil {
			cl.releaseServiceVNICs(id)
			mountTargets.update(cl, id, func(v *filestorage.MountTarget) { v.LifecycleDetails = common.String(failure.message) })
			cl.setMountTargetState(id, filestorage.MountTargetLifecycleStateCreating, filestorage.MountTargetLifecycleStateFailed)
			return
		}
		if cl.setMountTargetState(id, filestorage.MountTargetLifecycleStateCreating, filestorage.MountTargetLifecycleStateActive) {
			cl.setExportSetState(value(mountTargets.find(cl, id).ExportSetId), filestorage.ExportSetLifecycleStateActive)
		}
	})
	return c.created(res), nil
}

// newMountTarget checks a request as a whole and makes the mount target of it.
func (c *call) newMountTarget(d *filestorage.CreateMountTargetDetails) (*filestorage.MountTarget, error) {
	domain := value(d.AvailabilityDomain)
	if err := c.fileDomain(domain); err != nil {
		return nil, err
	}
	name, err := c.fileName(d.DisplayName, "MountTarget")
	if err != nil {
		return nil, err
	}
	subnet, err := subnets.related(c, value(d.SubnetId))
	if err != nil {
		return nil, err
	}
	if fixed := value(subnet.AvailabilityDomain); fixed != "" && fixed != domain {
		if err := c.rule(MountTargetDomain, *subnet.Id, domain); err != nil {
			return nil, err
		}
	}
	if err := c.fileGroups(d.NsgIds, value(subnet.VcnId)); err != nil {
		return nil, err
	}
	if ldap := d.LdapIdmap; ldap != nil {
		if err := knownConnectors(ldap.OutboundConnector1Id, ldap.OutboundConnector2Id); err != nil {
			return nil, err
		}
	}
	if d.RequestedThroughput != nil && *d.RequestedThroughput != 1 {
		return nil, errInvalid("requestedThroughput must be 1")
	}
	if err := c.checkHostname(d.HostnameLabel, subnet, ""); err != nil {
		return nil, err
	}
	tags := Tags{d.FreeformTags, d.DefinedTags}
	v := &filestorage.MountTarget{
		Id: common.String(c.newOCID(mountTargets.ocidType)), CompartmentId: d.CompartmentId, DisplayName: name,
		AvailabilityDomain: d.AvailabilityDomain, SubnetId: d.SubnetId, NsgIds: d.NsgIds, PrivateIpIds: []string{},
		LifecycleState: filestorage.MountTargetLifecycleStateCreating, LifecycleDetails: common.String(""),
		TimeCreated: c.sdkTime(), IdmapType: filestorage.MountTargetIdmapTypeNone,
		RequestedThroughput: common.Int64(1), ObservedThroughput: common.Int64(1), ReservedStorageCapacity: common.Int64(0),
		Locks: c.newFileLocks(d.Locks), SecurityAttributes: d.SecurityAttributes,
		FreeformTags: tags.freeform(), DefinedTags: tags.defined(),
	}
	if d.IdmapType != "" {
		v.IdmapType = d.IdmapType
	}
	if d.Kerberos != nil {
		v.Kerberos = overlay(c, v.Kerberos, d.Kerberos)
	}
	if d.LdapIdmap != nil {
		v.LdapIdmap = overlay(c, v.LdapIdmap, d.LdapIdmap)
	}
	return v, nil
}

// knownConnectors refuses outbound connectors: the simulator knows none.
func knownConnectors(ids ...*string) error {
	for _, id := range ids {
		if value(id) != "" {
			return errRelated(*id)
		}
	}
	return nil
}

// overlay returns a model with the fields that a request gives, and the others as they were.
func overlay[T any](c *call, old *T, details any) *T {
	fresh := new(T)
	if old != nil {
		fresh = cloneOf(old)
	}
	if err := json.Unmarshal(c.encoder.encode(details), fresh); err != nil {
		panic("ocisim: two models of one thing differ: " + err.Error())
	}
	return fresh
}

// fileGroups checks the security groups that a mount target or a Lustre file system is to be in.
func (c *call) fileGroups(ids []string, vcn string) error {
	if len(ids) > maxGroupsPerVNIC {
		return errInvalid("At most %d network security groups are allowed, not %d.", maxGroupsPerVNIC, len(ids))
	}
	for _, id := range ids {
		group, err := securityGroups.related(c, id)
		if err != nil {
			return err
		}
		if value(group.VcnId) != vcn {
			if err := c.rule(FileStorageGroups, id); err != nil {
				return err
			}
		}
	}
	return nil
}

func listMountTargets(c *call) (*answer, error) {
	id, set := c.query.Get("id"), c.query.Get("exportSetId")
	return c.list(listing{
		kind: mountTargets.kindInfo, key: c.query.Get("compartmentId"),
		match: func(res *resource) bool {
			return (id == "" || res.id == id) && (set == "" || value(mountTargets.of(res).ExportSetId) == set)
		},
		render: func(res *resource) any { return recast[filestorage.MountTargetSummary](mountTargets.of(res)) },
	})
}

// setMountTargetState moves a mount target from one state to another, if it is still in the first.
func (cl *cloud) setMountTargetState(id string, from, to filestorage.MountTargetLifecycleStateEnum) bool {
	v := mountTargets.find(cl, id)
	if v == nil || v.LifecycleState != from {
		return false
	}
	return mountTargets.update(cl, id, func(v *filestorage.MountTarget) { v.LifecycleState = to })
}

func updateMountTarget(c *call) (*answer, error) {
	d, err := decode[filestorage.UpdateMountTargetDetails](c)
	if err != nil {
		return nil, err
	}
	if err := c.fileWritable(); err != nil {
		return nil, err
	}
	v := mountTargets.of(c.target)
	if err := c.unlocked(v.Locks, false); err != nil {
		return nil, err
	}
	if d.DisplayName != nil {
		if err := checkSize("displayName", *d.DisplayName, 1, 255); err != nil {
			return nil, err
		}
	}
	if ldap := d.LdapIdmap; ldap != nil {
		if err := knownConnectors(ldap.OutboundConnector1Id, ldap.OutboundConnector2Id); err != nil {
			return nil, err
		}
	}
	if subnet := subnets.find(c.cloud, value(v.SubnetId)); subnet != nil {
		if err := c.fileGroups(d.NsgIds, value(subnet.VcnId)); err != nil {
			return nil, err
		}
	}
	id, cl := c.target.id, c.cloud
	mountTargets.update(cl, id, func(v *filestorage.MountTarget) {
		replace(&v.DisplayName, d.DisplayName)
		replaceTags(&v.FreeformTags, &v.DefinedTags, d.FreeformTags, d.DefinedTags)
		if d.NsgIds != nil {
			v.NsgIds = d.NsgIds
		}
		if d.IdmapType != "" {
			v.IdmapType = d.IdmapType
		}
		if d.SecurityAttributes != nil {
			v.SecurityAttributes = d.SecurityAttributes
		}
		if d.Kerberos != nil {
			v.Kerberos = overlay(c, v.Kerberos, d.Kerberos)
		}
		if d.LdapIdmap != nil {
			v.LdapIdmap = overlay(c, v.LdapIdmap, d.LdapIdmap)
		}
	})
	if d.NsgIds != nil {
		cl.setServiceVNICGroups(id, d.NsgIds)
	}
	if wait := cl.duration("mounttarget.update"); wait > 0 {
		cl.setMountTargetState(id, filestorage.MountTargetLifecycleStateActive, filestorage.MountTargetLifecycleStateUpdating)
		cl.after(wait, func() {
			cl.setMountTargetState(id, filestorage.MountTargetLifecycleStateUpdating, filestorage.MountTargetLifecycleStateActive)
		})
	}
	return c.show(c.target), nil
}

// moveMountTarget moves a mount target and its export set to another compartment. It counts as provisioning.
func moveMountTarget(c *call) (*answer, error) {
	d, err := decode[filestorage.ChangeMountTargetCompartmentDetails](c)
	if err != nil {
		return nil, err
	}
	if err := c.fileWritable(); err != nil {
		return nil, err
	}
	v := mountTargets.of(c.target)
	if err := c.unlocked(v.Locks, false); err != nil {
		return nil, err
	}
	if err := c.createIn(value(d.CompartmentId)); err != nil {
		return nil, err
	}
	if c.beingProvisioned(mountTargets.kindInfo) {
		if err := c.rule(MountTargetProvisioning); err != nil {
			return nil, err
		}
	}
	id, set, cl := c.target.id, value(v.ExportSetId), c.cloud
	end := cl.provision(mountTargets.kindInfo, id)
	cl.setMountTargetState(id, filestorage.MountTargetLifecycleStateActive, filestorage.MountTargetLifecycleStateUpdating)
	cl.after(cl.duration("mounttarget.move"), func() {
		end()
		if !cl.setMountTargetState(id, filestorage.MountTargetLifecycleStateUpdating, filestorage.MountTargetLifecycleStateActive) {
			return
		}
		mountTargets.update(cl, id, func(v *filestorage.MountTarget) { v.CompartmentId = d.CompartmentId })
		exportSets.update(cl, set, func(s *filestorage.ExportSet) { s.CompartmentId = d.CompartmentId })
		for e := range exports.under(cl, set) {
			exports.update(cl, value(e.Id), func(e *fileExport) { e.compartment = *d.CompartmentId })
		}
	})
	return none(http.StatusNoContent), nil
}

// deleteMountTarget deletes a mount target and its export set. Its VNIC goes too, and lingers like others.
func deleteMountTarget(c *call) (*answer, error) {
	if err := c.fileDeletable(); err != nil {
		return nil, err
	}
	v := mountTargets.of(c.target)
	if err := c.unlocked(v.Locks, true); err != nil {
		return nil, err
	}
	id, set, cl := c.target.id, value(v.ExportSetId), c.cloud
	if cl.exported(set) {
		if err := c.rule(MountTargetHasExports, set); err != nil {
			return nil, err
		}
	}
	mountTargets.update(cl, id, func(v *filestorage.MountTarget) {
		v.LifecycleState = filestorage.MountTargetLifecycleStateDeleting
	})
	cl.setExportSetState(set, filestorage.ExportSetLifecycleStateDeleting)
	cl.after(cl.duration("mounttarget.delete"), func() {
		if !cl.setMountTargetState(id, filestorage.MountTargetLifecycleStateDeleting, filestorage.MountTargetLifecycleStateDeleted) {
			return
		}
		cl.releaseServiceVNICs(id)
		cl.setExportSetState(set, filestorage.ExportSetLifecycleStateDeleted)
		if cl.exported(set) {
			for e := range exports.under(cl, set) {
				cl.setExportState(value(e.Id), filestorage.ExportLifecycleStateDeleted)
			}
		}
		cl.after(cl.behaviour.DeletedFileStorageVisible, func() { cl.removeMountTarget(id) })
	})
	return none(http.StatusNoContent), nil
}

// removeMountTarget takes a mount target, its export set and its VNIC out of the region.
func (cl *cloud) removeMountTarget(id string) {
	if v := mountTargets.find(cl, id); v != nil && v.ExportSetId != nil {
		cl.removeExportSet(*v.ExportSetId)
	}
	cl.releaseServiceVNICs(id)
	mountTargets.remove(cl, id)
}
