// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package ocisim

import (
	"net/http"
	"time"

	"github.com/oracle/oci-go-sdk/v65/common"
	"github.com/oracle/oci-go-sdk/v65/filestorage"
)

// fileSnapshot is a snapshot of a file system. The API shows no compartment: it is that of the file system.
type fileSnapshot struct {
	compartment string
	filestorage.Snapshot
}

// fileSnapshots are listed by their file system.
var fileSnapshots = newKind(kindInfo{
	ocidType: "snapshot", label: "snapshot", policy: "file-systems", eventual: true,
	render: func(v any) any {
		if s, ok := v.(*fileSnapshot); ok {
			return s.Snapshot
		}
		return v
	},
}, func(v *fileSnapshot) facets {
	return facets{
		id: value(v.Id), compartment: v.compartment, name: value(v.Name), state: string(v.LifecycleState),
		keys: []string{value(v.FileSystemId)},
	}
})

func snapshotOperations() []Operation {
	const path, one = "/snapshots", "/snapshots/{snapshotId}"
	kind := fileSnapshots.kindInfo
	create := fileCreate("CreateSnapshot", path, Manage, kind, createFileSnapshot)
	create.Partial = "lockDurationDetails are kept, not enforced"
	return []Operation{
		create,
		fileGet("GetSnapshot", one, kind),
		fileOperation("ListSnapshots", http.MethodGet, path,
			"limit,page,lifecycleState,id,filesystemSnapshotPolicyId,compartmentId,fileSystemId,sortOrder", Inspect, kind, listFileSnapshots),
		fileChange("UpdateSnapshot", http.MethodPut, one, "isLockOverride", Manage, kind, updateFileSnapshot),
		fileChange("DeleteSnapshot", http.MethodDelete, one, "isLockOverride", Manage, kind, deleteFileSnapshot),
	}
}

func createFileSnapshot(c *call) (*answer, error) {
	d, err := decode[filestorage.CreateSnapshotDetails](c)
	if err != nil {
		return nil, err
	}
	fs, err := fileSystems.related(c, value(d.FileSystemId))
	if err != nil {
		return nil, err
	}
	if err := c.createIn(value(fs.CompartmentId)); err != nil {
		return nil, err
	}
	if err := checkSize("name", value(d.Name), 1, 255); err != nil {
		return nil, err
	}
	if d.ExpirationTime != nil && !d.ExpirationTime.After(c.now) {
		return nil, errInvalid("expirationTime must be in the future")
	}
	if fs.LifecycleState != filestorage.FileSystemLifecycleStateActive {
		if err := c.rule(FileStorageBusy, fileSystems.label, *fs.Id, fs.LifecycleState); err != nil {
			return nil, err
		}
	}
	for s := range fileSnapshots.under(c.cloud, *fs.Id) {
		if value(s.Name) == *d.Name && s.LifecycleState != filestorage.SnapshotLifecycleStateDeleted {
			if err := c.rule(SnapshotExists, *fs.Id, *d.Name); err != nil {
				return nil, err
			}
			break
		}
	}
	tags := Tags{d.FreeformTags, d.DefinedTags}
	id := c.newOCID(fileSnapshots.ocidType)
	res := fileSnapshots.insert(c.cloud, &fileSnapshot{value(fs.CompartmentId), filestorage.Snapshot{
		Id: common.String(id), FileSystemId: fs.Id, Name: d.Name, LifecycleState: filestorage.SnapshotLifecycleStateCreating,
		TimeCreated: c.sdkTime(), SnapshotTime: c.sdkTime(), SnapshotType: filestorage.SnapshotSnapshotTypeUser,
		ProvenanceId: common.String(id), IsCloneSource: common.Bool(false), ExpirationTime: d.ExpirationTime,
		LockDurationDetails: d.LockDurationDetails, Locks: c.newFileLocks(d.Locks),
		FreeformTags: tags.freeform(), DefinedTags: tags.defined(),
	}})
	cl := c.cloud
	fileSystems.update(cl, *fs.Id, func(v *filestorage.FileSystem) { v.IsTargetable = common.Bool(false) })
	cl.after(cl.duration("filesnapshot.create"), func() {
		if s := fileSnapshots.find(cl, id); s != nil && s.LifecycleState == filestorage.SnapshotLifecycleStateCreating {
			cl.setSnapshotState(id, filestorage.SnapshotLifecycleStateActive)
		}
	})
	cl.expireSnapshot(id)
	return c.created(res), nil
}

// listFileSnapshots lists the snapshots of a file system. Those of a snapshot policy could be listed too, but there
// are none.
func listFileSnapshots(c *call) (*answer, error) {
	id, fs, policy := c.query.Get("id"), c.query.Get("fileSystemId"), c.query.Get("filesystemSnapshotPolicyId")
	if fs == "" && (policy == "" || c.query.Get("compartmentId") == "") {
		return nil, errMissing("fileSystemId")
	}
	if fs != "" {
		if err := fileSystems.named(c, fs); err != nil {
			return nil, err
		}
	}
	return c.list(listing{
		kind: fileSnapshots.kindInfo, key: orElse(fs, c.query.Get("compartmentId")),
		match: func(res *resource) bool {
			return (id == "" || res.id == id) &&
				(policy == "" || value(fileSnapshots.of(res).FilesystemSnapshotPolicyId) == policy)
		},
		render: func(res *resource) any { return recast[filestorage.SnapshotSummary](fileSnapshots.of(res).Snapshot) },
	})
}

func (cl *cloud) setSnapshotState(id string, state filestorage.SnapshotLifecycleStateEnum) {
	fileSnapshots.update(cl, id, func(s *fileSnapshot) { s.LifecycleState = state })
}

func updateFileSnapshot(c *call) (*answer, error) {
	d, err := decode[filestorage.UpdateSnapshotDetails](c)
	if err != nil {
		return nil, err
	}
	if err := c.fileWritable(); err != nil {
		return nil, err
	}
	if err := c.unlocked(fileSnapshots.of(c.target).Locks, false); err != nil {
		return nil, err
	}
	if d.ExpirationTime != nil && !d.ExpirationTime.After(c.now) {
		return nil, errInvalid("expirationTime must be in the future")
	}
	fileSnapshots.update(c.cloud, c.target.id, func(s *fileSnapshot) {
		replace(&s.ExpirationTime, d.ExpirationTime)
		replace(&s.LockDurationDetails, d.LockDurationDetails)
		replaceTags(&s.FreeformTags, &s.DefinedTags, d.FreeformTags, d.DefinedTags)
	})
	if d.ExpirationTime != nil {
		c.expireSnapshot(c.target.id)
	}
	return c.show(c.target), nil
}

func deleteFileSnapshot(c *call) (*answer, error) {
	if err := c.fileWritable(); err != nil {
		return nil, err
	}
	if err := c.unlocked(fileSnapshots.of(c.target).Locks, true); err != nil {
		return nil, err
	}
	if len(c.attachedClones(c.target.id)) > 0 {
		if err := c.rule(SnapshotHasClones, c.target.id); err != nil {
			return nil, err
		}
	}
	c.discardSnapshot(c.target.id)
	return none(http.StatusNoContent), nil
}

func (cl *cloud) discardSnapshot(id string) {
	cl.setSnapshotState(id, filestorage.SnapshotLifecycleStateDeleting)
	cl.after(cl.duration("filesnapshot.delete"), func() {
		if fileSnapshots.lookup(cl, id) == nil {
			return
		}
		cl.setSnapshotState(id, filestorage.SnapshotLifecycleStateDeleted)
		cl.after(cl.behaviour.DeletedFileStorageVisible, func() { fileSnapshots.remove(cl, id) })
	})
}

// expireSnapshot deletes a snapshot at its expiration time, unless that is changed until then or a clone needs it.
func (cl *cloud) expireSnapshot(id string) {
	s := fileSnapshots.find(cl, id)
	if s.ExpirationTime == nil {
		return
	}
	at := s.ExpirationTime.Time
	cl.after(at.Sub(cl.now), func() {
		s := fileSnapshots.find(cl, id)
		due := s != nil && s.LifecycleState == filestorage.SnapshotLifecycleStateActive && s.ExpirationTime != nil &&
			s.ExpirationTime.Truncate(time.Millisecond).Equal(at.Truncate(time.Millisecond))
		if due && len(cl.attachedClones(id)) == 0 {
			cl.discardSnapshot(id)
		}
	})
}
