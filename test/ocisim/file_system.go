// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package ocisim

import (
	"net/http"

	"github.com/oracle/oci-go-sdk/v65/common"
	"github.com/oracle/oci-go-sdk/v65/filestorage"
)

// fileSystems are listed by the snapshot and by the file system that they were cloned from, too.
var fileSystems = newKind(kindInfo{
	ocidType: "filesystem", label: "file system", policy: "file-systems", eventual: true,
}, func(v *filestorage.FileSystem) facets {
	f := facets{
		id: value(v.Id), compartment: value(v.CompartmentId), name: value(v.DisplayName),
		state: string(v.LifecycleState), domain: value(v.AvailabilityDomain),
	}
	if source := v.SourceDetails; source != nil {
		f.keys = []string{value(source.SourceSnapshotId), value(source.ParentFileSystemId)}
	}
	return f
})

func fileSystemOperations() []Operation {
	const path, one = "/fileSystems", "/fileSystems/{fileSystemId}"
	kind := fileSystems.kindInfo
	create := fileCreate("CreateFileSystem", path, Manage, kind, createFileSystem)
	create.Partial = "quota rules and keys are kept, not enforced; a clone has no snapshots of its parent"
	return []Operation{
		create,
		fileGet("GetFileSystem", one, kind),
		fileOperation("ListFileSystems", http.MethodGet, path,
			"compartmentId*,availabilityDomain*,limit,page,displayName,lifecycleState,id,sourceSnapshotId,parentFileSystemId,"+
				"filesystemSnapshotPolicyId,sortBy,sortOrder", Inspect, kind, listFileSystems),
		fileChange("UpdateFileSystem", http.MethodPut, one, "isLockOverride", Use, kind, updateFileSystem),
		fileChange("DeleteFileSystem", http.MethodDelete, one, "isLockOverride,canDetachChildFileSystem", Manage, kind, deleteFileSystem),
		fileChange("DetachClone", http.MethodPost, one+"/actions/detachClone", "", Manage, kind, detachClone),
		fileChange("ChangeFileSystemCompartment", http.MethodPost, one+"/actions/changeCompartment", "isLockOverride", Manage, kind, moveFileSystem),
	}
}

func createFileSystem(c *call) (*answer, error) {
	d, err := decode[filestorage.CreateFileSystemDetails](c)
	if err != nil {
		return nil, err
	}
	if err := c.createIn(value(d.CompartmentId)); err != nil {
		return nil, err
	}
	v, err := c.newFileSystem(d)
	if err != nil {
		return nil, err
	}
	if err := c.fileLimit(fileSystems.kindInfo, FileSystemLimit, value(d.AvailabilityDomain)); err != nil {
		return nil, err
	}
	if c.beingProvisioned(fileSystems.kindInfo) {
		if err := c.rule(FileSystemProvisioning); err != nil {
			return nil, err
		}
	}
	id, cl, failure := value(v.Id), c.cloud, c.failure
	res := fileSystems.insert(cl, v)
	end := cl.provision(fileSystems.kindInfo, id)
	cl.cloned(v)
	cl.after(cl.duration("filesystem.create"), func() {
		end()
		if failure != nil {
			fileSystems.update(cl, id, func(v *filestorage.FileSystem) { v.LifecycleDetails = common.String(failure.message) })
			cl.setFileSystemState(id, filestorage.FileSystemLifecycleStateCreating, filestorage.FileSystemLifecycleStateFailed)
			return
		}
		cl.setFileSystemState(id, filestorage.FileSystemLifecycleStateCreating, filestorage.FileSystemLifecycleStateActive)
		cl.hydrate(id)
	})
	return c.created(res), nil
}

// newFileSystem checks a request as a whole and makes the file system of it.
func (c *call) newFileSystem(d *filestorage.CreateFileSystemDetails) (*filestorage.FileSystem, error) {
	if err := c.fileDomain(value(d.AvailabilityDomain)); err != nil {
		return nil, err
	}
	name, err := c.fileName(d.DisplayName, "FileSystem")
	if err != nil {
		return nil, err
	}
	if policy := value(d.FilesystemSnapshotPolicyId); policy != "" {
		// The simulator knows no snapshot policies.
		return nil, errRelated(policy)
	}
	tags := Tags{d.FreeformTags, d.DefinedTags}
	v := &filestorage.FileSystem{
		Id: common.String(c.newOCID(fileSystems.ocidType)), CompartmentId: d.CompartmentId, DisplayName: name,
		AvailabilityDomain: d.AvailabilityDomain, LifecycleState: filestorage.FileSystemLifecycleStateCreating,
		TimeCreated: c.sdkTime(), MeteredBytes: common.Int64(0), KmsKeyId: d.KmsKeyId,
		IsCloneParent: common.Bool(false), IsHydrated: common.Bool(true), CloneCount: common.Int(0),
		IsTargetable: common.Bool(true), ReplicationSourceCount: common.Int(0),
		AreQuotaRulesEnabled: orDefault(d.AreQuotaRulesEnabled, false),
		Locks:                c.newFileLocks(d.Locks), FreeformTags: tags.freeform(), DefinedTags: tags.defined(),
	}
	if d.SourceSnapshotId != nil {
		if err := c.cloneFrom(v, d); err != nil {
			return nil, err
		}
	}
	return v, nil
}

func listFileSystems(c *call) (*answer, error) {
	id, snapshot, parent := c.query.Get("id"), c.query.Get("sourceSnapshotId"), c.query.Get("parentFileSystemId")
	policy := c.query.Get("filesystemSnapshotPolicyId")
	return c.list(listing{
		kind: fileSystems.kindInfo, key: c.query.Get("compartmentId"),
		match: func(res *resource) bool {
			v := fileSystems.of(res)
			source := filestorage.SourceDetails{}
			if v.SourceDetails != nil {
				source = *v.SourceDetails
			}
			return (id == "" || res.id == id) && (snapshot == "" || value(source.SourceSnapshotId) == snapshot) &&
				(parent == "" || value(source.ParentFileSystemId) == parent) &&
				(policy == "" || value(v.FilesystemSnapshotPolicyId) == policy)
		},
		render: func(res *resource) any { return recast[filestorage.FileSystemSummary](fileSystems.of(res)) },
	})
}

// setFileSystemState moves a file system from one state to another, if it is still in the first.
func (cl *cloud) setFileSystemState(id string, from, to filestorage.FileSystemLifecycleStateEnum) bool {
	v := fileSystems.find(cl, id)
	if v == nil || v.LifecycleState != from {
		return false
	}
	return fileSystems.update(cl, id, func(v *filestorage.FileSystem) { v.LifecycleState = to })
}

func updateFileSystem(c *call) (*answer, error) {
	d, err := decode[filestorage.UpdateFileSystemDetails](c)
	if err != nil {
		return nil, err
	}
	if err := c.fileWritable(); err != nil {
		return nil, err
	}
	if err := c.unlocked(fileSystems.of(c.target).Locks, false); err != nil {
		return nil, err
	}
	if d.DisplayName != nil {
		if err := checkSize("displayName", *d.DisplayName, 1, 255); err != nil {
			return nil, err
		}
	}
	if policy := value(d.FilesystemSnapshotPolicyId); policy != "" {
		return nil, errRelated(policy)
	}
	id, cl := c.target.id, c.cloud
	fileSystems.update(cl, id, func(v *filestorage.FileSystem) {
		replace(&v.DisplayName, d.DisplayName)
		replace(&v.KmsKeyId, d.KmsKeyId)
		replaceTags(&v.FreeformTags, &v.DefinedTags, d.FreeformTags, d.DefinedTags)
	})
	if wait := cl.duration("filesystem.update"); wait > 0 {
		cl.setFileSystemState(id, filestorage.FileSystemLifecycleStateActive, filestorage.FileSystemLifecycleStateUpdating)
		cl.after(wait, func() {
			cl.setFileSystemState(id, filestorage.FileSystemLifecycleStateUpdating, filestorage.FileSystemLifecycleStateActive)
		})
	}
	return c.show(c.target), nil
}

// moveFileSystem moves a file system and its snapshots to another compartment. It counts as provisioning.
func moveFileSystem(c *call) (*answer, error) {
	d, err := decode[filestorage.ChangeFileSystemCompartmentDetails](c)
	if err != nil {
		return nil, err
	}
	if err := c.fileWritable(); err != nil {
		return nil, err
	}
	if err := c.unlocked(fileSystems.of(c.target).Locks, false); err != nil {
		return nil, err
	}
	if err := c.createIn(value(d.CompartmentId)); err != nil {
		return nil, err
	}
	if c.beingProvisioned(fileSystems.kindInfo) {
		if err := c.rule(FileSystemProvisioning); err != nil {
			return nil, err
		}
	}
	id, cl := c.target.id, c.cloud
	end := cl.provision(fileSystems.kindInfo, id)
	cl.setFileSystemState(id, filestorage.FileSystemLifecycleStateActive, filestorage.FileSystemLifecycleStateUpdating)
	cl.after(cl.duration("filesystem.move"), func() {
		end()
		if !cl.setFileSystemState(id, filestorage.FileSystemLifecycleStateUpdating, filestorage.FileSystemLifecycleStateActive) {
			return
		}
		fileSystems.update(cl, id, func(v *filestorage.FileSystem) { v.CompartmentId = d.CompartmentId })
		for s := range fileSnapshots.under(cl, id) {
			fileSnapshots.update(cl, value(s.Id), func(s *fileSnapshot) { s.compartment = *d.CompartmentId })
		}
	})
	return none(http.StatusNoContent), nil
}

// deleteFileSystem deletes a file system without exports, and its snapshots with it.
func deleteFileSystem(c *call) (*answer, error) {
	id, cl := c.target.id, c.cloud
	if err := c.fileDeletable(); err != nil {
		return nil, err
	}
	if err := c.unlocked(fileSystems.of(c.target).Locks, true); err != nil {
		return nil, err
	}
	if cl.exported(id) {
		if err := c.rule(FileSystemHasExports, id); err != nil {
			return nil, err
		}
	}
	if err := c.releaseClones(id); err != nil {
		return nil, err
	}
	fileSystems.update(cl, id, func(v *filestorage.FileSystem) { v.LifecycleState = filestorage.FileSystemLifecycleStateDeleting })
	for s := range fileSnapshots.under(cl, id) {
		if s.LifecycleState != filestorage.SnapshotLifecycleStateDeleted {
			cl.setSnapshotState(value(s.Id), filestorage.SnapshotLifecycleStateDeleting)
		}
	}
	cl.after(cl.duration("filesystem.delete"), func() {
		if !cl.setFileSystemState(id, filestorage.FileSystemLifecycleStateDeleting, filestorage.FileSystemLifecycleStateDeleted) {
			return
		}
		for s := range fileSnapshots.under(cl, id) {
			cl.setSnapshotState(value(s.Id), filestorage.SnapshotLifecycleStateDeleted)
		}
		cl.leaveClone(id)
		cl.after(cl.behaviour.DeletedFileStorageVisible, func() { cl.removeFileSystem(id) })
	})
	return none(http.StatusNoContent), nil
}

// removeFileSystem takes a file system and its snapshots out of the region.
func (cl *cloud) removeFileSystem(id string) {
	for s := range fileSnapshots.under(cl, id) {
		fileSnapshots.remove(cl, value(s.Id))
	}
	fileSystems.remove(cl, id)
}
