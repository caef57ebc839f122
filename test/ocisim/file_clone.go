// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package ocisim

import (
	"net/http"

	"github.com/oracle/oci-go-sdk/v65/common"
	"github.com/oracle/oci-go-sdk/v65/filestorage"
)

// cloneFrom makes a new file system a clone of the snapshot that the request names.
func (c *call) cloneFrom(v *filestorage.FileSystem, d *filestorage.CreateFileSystemDetails) error {
	id := value(d.SourceSnapshotId)
	snapshot, err := fileSnapshots.related(c, id)
	if err != nil {
		return err
	}
	if snapshot.LifecycleState != filestorage.SnapshotLifecycleStateActive {
		if err := c.rule(FileStorageBusy, fileSnapshots.label, id, snapshot.LifecycleState); err != nil {
			return err
		}
	}
	parent, err := fileSystems.related(c, value(snapshot.FileSystemId))
	if err != nil {
		return err
	}
	if value(parent.AvailabilityDomain) != value(d.AvailabilityDomain) {
		if err := c.rule(CloneInAnotherDomain, id); err != nil {
			return err
		}
	}
	v.SourceDetails = &filestorage.SourceDetails{ParentFileSystemId: parent.Id, SourceSnapshotId: snapshot.Id}
	v.IsHydrated, v.IsTargetable = common.Bool(false), common.Bool(false)
	v.CloneAttachStatus = filestorage.FileSystemCloneAttachStatusAttached
	if d.CloneAttachStatus == filestorage.CreateFileSystemDetailsCloneAttachStatusDetach {
		v.CloneAttachStatus = filestorage.FileSystemCloneAttachStatusDetaching
	}
	return nil
}

// cloned records a new clone with its parent and its snapshot.
func (cl *cloud) cloned(v *filestorage.FileSystem) {
	if v.SourceDetails == nil {
		return
	}
	cl.recountClones(v)
	fileSnapshots.update(cl, value(v.SourceDetails.SourceSnapshotId), func(s *fileSnapshot) { s.IsCloneSource = common.Bool(true) })
}

// recountClones counts the clones that are attached to the parent of a clone.
func (cl *cloud) recountClones(v *filestorage.FileSystem) {
	parent := value(v.SourceDetails.ParentFileSystemId)
	n := len(cl.attachedClones(parent))
	fileSystems.update(cl, parent, func(p *filestorage.FileSystem) {
		p.CloneCount, p.IsCloneParent = common.Int(n), common.Bool(n > 0)
	})
}

// attachedClones are the clones of a file system or of a snapshot that are not detached from it.
func (cl *cloud) attachedClones(source string) []string {
	var list []string
	for v := range fileSystems.under(cl, source) {
		switch v.LifecycleState {
		case filestorage.FileSystemLifecycleStateDeleted, filestorage.FileSystemLifecycleStateFailed:
			continue
		}
		if v.CloneAttachStatus != filestorage.FileSystemCloneAttachStatusDetached {
			list = append(list, value(v.Id))
		}
	}
	return list
}

// hydrate lets the data of a clone be copied. One that was made to be detached is so once it has them.
func (cl *cloud) hydrate(id string) {
	v := fileSystems.find(cl, id)
	if v == nil || v.SourceDetails == nil {
		return
	}
	cl.after(cl.duration("filesystem.hydrate"), func() {
		v := fileSystems.find(cl, id)
		if v == nil || terminal(string(v.LifecycleState)) {
			return
		}
		fileSystems.update(cl, id, func(v *filestorage.FileSystem) { v.IsHydrated = common.Bool(true) })
		if v.CloneAttachStatus == filestorage.FileSystemCloneAttachStatusDetaching {
			cl.setDetached(id)
		}
	})
}

func (cl *cloud) setDetached(id string) {
	fileSystems.update(cl, id, func(v *filestorage.FileSystem) {
		v.CloneAttachStatus, v.IsHydrated = filestorage.FileSystemCloneAttachStatusDetached, common.Bool(true)
	})
	cl.leaveClone(id)
}

// leaveClone counts the clones of a file system's parent again, if it is a clone.
func (cl *cloud) leaveClone(id string) {
	if v := fileSystems.find(cl, id); v != nil && v.SourceDetails != nil {
		cl.recountClones(v)
	}
}

// detachClone makes a clone independent of its parent, which takes as long as copying the data.
func detachClone(c *call) (*answer, error) {
	if err := c.fileWritable(); err != nil {
		return nil, err
	}
	v := fileSystems.of(c.target)
	if err := c.unlocked(v.Locks, false); err != nil {
		return nil, err
	}
	if v.CloneAttachStatus != filestorage.FileSystemCloneAttachStatusAttached {
		return nil, errInvalid("The file system %s is not attached to a parent.", c.target.id)
	}
	id, cl := c.target.id, c.cloud
	fileSystems.update(cl, id, func(v *filestorage.FileSystem) {
		v.CloneAttachStatus = filestorage.FileSystemCloneAttachStatusDetaching
	})
	cl.after(cl.duration("filesystem.detach"), func() {
		if v := fileSystems.find(cl, id); v != nil && v.CloneAttachStatus == filestorage.FileSystemCloneAttachStatusDetaching {
			cl.setDetached(id)
		}
	})
	return none(http.StatusNoContent), nil
}

// releaseClones detaches the clones of a file system that is about to be deleted, if the caller allows that.
func (c *call) releaseClones(id string) error {
	clones := c.attachedClones(id)
	if len(clones) == 0 {
		return nil
	}
	if c.query.Get("canDetachChildFileSystem") != "true" {
		return c.rule(FileSystemHasClones, id)
	}
	for _, clone := range clones {
		c.setDetached(clone)
	}
	return nil
}
