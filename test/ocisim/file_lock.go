// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package ocisim

import "github.com/oracle/oci-go-sdk/v65/filestorage"

// newFileLocks are the locks of a new resource.
func (cl *cloud) newFileLocks(wanted []filestorage.ResourceLock) []filestorage.ResourceLock {
	locks := make([]filestorage.ResourceLock, 0, len(wanted))
	for _, l := range wanted {
		l.TimeCreated = cl.sdkTime()
		locks = append(locks, l)
	}
	return locks
}

// unlocked refuses a change of the target that its locks forbid: one of type FULL forbids all, one of type DELETE
// only the delete. The caller may override them.
func (c *call) unlocked(locks []filestorage.ResourceLock, deletes bool) error {
	if c.query.Get("isLockOverride") == "true" {
		return nil
	}
	for _, l := range locks {
		if deletes || l.Type == filestorage.ResourceLockTypeFull {
			return c.rule(FileStorageLocked, c.target.kind.label, c.target.id)
		}
	}
	return nil
}
