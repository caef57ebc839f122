// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package ocisim

import (
	"net/http"
	"slices"
	"time"
)

// ServiceFileStorage is the name of the File Storage service.
const ServiceFileStorage = "filestorage"

const fileRoot = "/20171215"

// Names of the service limits of File Storage, each per availability domain.
const (
	FileSystemLimit  = "file-system-count"
	MountTargetLimit = "mount-target-count"
)

func fileStorageService() service {
	return service{
		operations: slices.Concat(fileSystemOperations(), mountTargetOperations(), exportSetOperations(),
			exportOperations(), snapshotOperations()),
		durations: map[string]Range{
			"filesystem.create":   {Min: 3 * time.Second, Max: 8 * time.Second},
			"filesystem.update":   {Max: 2 * time.Second},
			"filesystem.move":     {Min: 2 * time.Second, Max: 5 * time.Second},
			"filesystem.hydrate":  {Min: time.Minute, Max: 10 * time.Minute}, // documented as up to several hours
			"filesystem.detach":   {Min: time.Minute, Max: 10 * time.Minute},
			"filesystem.delete":   {Min: 3 * time.Second, Max: 8 * time.Second},
			"mounttarget.assign":  {Max: 10 * time.Second}, // from the create to its addresses and export set
			"mounttarget.create":  {Min: 20 * time.Second, Max: 40 * time.Second},
			"mounttarget.update":  {Max: 5 * time.Second},
			"mounttarget.move":    {Min: 2 * time.Second, Max: 5 * time.Second},
			"mounttarget.delete":  {Min: 20 * time.Second, Max: 40 * time.Second},
			"export.create":       {Min: 2 * time.Second, Max: 6 * time.Second},
			"export.delete":       {Min: 2 * time.Second, Max: 6 * time.Second},
			"filesnapshot.create": {Min: time.Second, Max: 5 * time.Second},
			"filesnapshot.delete": {Min: time.Second, Max: 5 * time.Second},
		},
		removers: map[*kindInfo]func(*cloud, string){
			fileSystems.kindInfo:  (*cloud).removeFileSystem,
			mountTargets.kindInfo: (*cloud).removeMountTarget,
			exportSets.kindInfo:   (*cloud).removeExportSet,
		},
	}
}

// What is not established about File Storage.
const (
	FileSystemProvisioning    Situation = "create or move of a file system while another one runs"
	MountTargetProvisioning   Situation = "create or move of a mount target while another one runs"
	FileStorageBusy           Situation = "change of a file storage resource that is not ACTIVE"
	FileStorageLocked         Situation = "change of a locked file storage resource"
	UnknownDomain             Situation = "create in an availability domain that the tenancy does not have"
	FileSystemHasExports      Situation = "delete of a file system with exports"
	FileSystemHasClones       Situation = "delete of a file system with clones that are attached to it"
	SnapshotHasClones         Situation = "delete of a snapshot with clones that are attached to it"
	SnapshotExists            Situation = "second snapshot of a file system with one name"
	CloneInAnotherDomain      Situation = "clone of a file system into another availability domain"
	MountTargetHasExports     Situation = "delete of a mount target whose export set has exports"
	MountTargetSubnetTooSmall Situation = "mount target in a subnet with fewer than three free addresses"
	MountTargetDomain         Situation = "mount target in another availability domain than its subnet"
	FileStorageGroups         Situation = "mount target or Lustre file system in security groups of another VCN"
	HostnameInUse             Situation = "host name label that is taken in the subnet"
	ExportInAnotherDomain     Situation = "export of a file system through a mount target of another availability domain"
	ExportPathInUse           Situation = "export whose path contains or is contained in that of another one"
	ExportTwice               Situation = "second export of a file system in an export set"
)

func fileRulings() map[Situation]Ruling {
	conflict := func(message, reason string) Ruling {
		return Ruling{Status: http.StatusConflict, Code: "Conflict", Message: message, Reason: reason}
	}
	invalid := func(message, reason string) Ruling {
		return Ruling{Status: http.StatusBadRequest, Code: "InvalidParameter", Message: message, Reason: reason}
	}
	return map[Situation]Ruling{
		FileSystemProvisioning: conflict("Another filesystem is currently being provisioned, try again later",
			"documented as a 409, code and text from users' logs"),
		MountTargetProvisioning: conflict("Another mounttarget is currently being provisioned, try again later",
			"documented as a 409, code and text from users' logs"),
		FileStorageBusy: {
			Status: http.StatusConflict, Code: "IncorrectState", Message: "The %s %s has the lifecycle state %s.",
			Reason: "the documented code for a resource in the wrong state; the service's own text was not seen",
		},
		FileStorageLocked: {
			Status: http.StatusConflict, Code: "ResourceLocked", Message: "The %s %s is locked.",
			Reason: "the code is in Oracle's table of errors; the service's own text was not seen",
		},
		UnknownDomain: invalid("The availability domain %s is not valid.", "validation of a parameter"),
		FileSystemHasExports: conflict("The file system %s still has exports.",
			"the documentation says that exports go first; code from memory"),
		FileSystemHasClones: conflict("The file system %s is the parent of clones that are attached to it.",
			"canDetachChildFileSystem is documented, the answer without it is not"),
		SnapshotHasClones: conflict("The snapshot %s is the source of clones that are attached to it.",
			"not documented; refusing is the harsher choice"),
		SnapshotExists: conflict("The file system %s already has a snapshot named %s.",
			"names are documented as unique, the code is not"),
		CloneInAnotherDomain: invalid("The snapshot %s and its clone must be in the same availability domain.",
			"clones are documented to be in the domain of their parent, the code is not"),
		MountTargetHasExports: conflict("The export set %s of the mount target still has exports.",
			"whether exports go with the mount target is not documented; refusing is the harsher choice"),
		MountTargetSubnetTooSmall: {
			Status: http.StatusBadRequest, Code: "LimitExceeded", Message: "The subnet %s has fewer than %d free IP addresses.",
			Reason: "the number is documented, the code is that of an exhausted subnet elsewhere",
		},
		MountTargetDomain: invalid("The subnet %s is not in the availability domain %s.", "validation of a parameter"),
		FileStorageGroups: invalid("The network security group %s is not in the VCN of the subnet.", "validation of a parameter"),
		HostnameInUse: conflict("The hostname label %s is already in use in subnet %s.",
			"labels are documented as unique, the code is not"),
		ExportInAnotherDomain: invalid("The file system %s and the export set %s must be in the same availability domain.",
			"documented as a rule, the code is not"),
		ExportPathInUse: conflict("The path %s collides with the path %s of another export in the export set.",
			"documented as a rule, the code is not"),
		ExportTwice: conflict("The file system %s is already exported in the export set %s.",
			"documented as a rule, the code is not"),
	}
}

// fileOperation is one line of the table of File Storage.
func fileOperation(name, method, path, query string, verb Verb, kind *kindInfo, handle func(*call) (*answer, error)) Operation {
	o := Operation{
		Service: ServiceFileStorage, Name: name, Method: method, Path: fileRoot + path, Query: query,
		Verb: verb, Resource: kind.policy, handle: handle,
	}
	return o
}

// fileCreate is an operation without a target that makes a resource.
func fileCreate(name, path string, verb Verb, kind *kindInfo, handle func(*call) (*answer, error)) Operation {
	o := fileOperation(name, http.MethodPost, path, "isLockOverride", verb, kind, handle)
	o.RetryToken = true
	return o
}

// fileGet is a plain get.
func fileGet(name, path string, kind *kindInfo) Operation {
	o := fileOperation(name, http.MethodGet, path, "", Read, kind, (*call).showTarget)
	o.Target = kind
	return o
}

// fileChange is an operation that changes or deletes its target.
func fileChange(name, method, path, query string, verb Verb, kind *kindInfo, handle func(*call) (*answer, error)) Operation {
	o := fileOperation(name, method, path, query, verb, kind, handle)
	o.Target, o.IfMatch = kind, true
	return o
}

// fileDomain refuses an availability domain that the tenancy does not have.
func (c *call) fileDomain(name string) error {
	if contains(c.options.AvailabilityDomains, name) {
		return nil
	}
	return c.rule(UnknownDomain, name)
}

// fileName checks a display name, and makes one up where there is none.
func (c *call) fileName(name *string, prefix string) (*string, error) {
	if name == nil {
		made := prefix + c.nameSuffix()
		return &made, nil
	}
	return name, checkSize("displayName", *name, 1, 255)
}

// fileWritable refuses a change of the target in any state but ACTIVE. What is DELETED cannot be found any more by
// those who write.
func (c *call) fileWritable() error {
	switch c.target.state {
	case "ACTIVE":
		return nil
	case "DELETED":
		return errNotFound()
	}
	return c.rule(FileStorageBusy, c.target.kind.label, c.target.id, c.target.state)
}

// fileDeletable is fileWritable for a delete, which FAILED resources allow too.
func (c *call) fileDeletable() error {
	if c.target.state == "FAILED" {
		return nil
	}
	return c.fileWritable()
}

// fileCount is the number of resources of a kind in an availability domain that count against its limit.
func (cl *cloud) fileCount(kind *kindInfo, domain string) int {
	n := 0
	for _, res := range cl.store.under(kind, "") {
		if res.domain == domain && res.state != "DELETED" {
			n++
		}
	}
	return n
}

// fileLimit refuses one more resource of a kind where the service limit is reached.
func (c *call) fileLimit(kind *kindInfo, limit, domain string) error {
	return c.serviceLimit(limit, c.fileCount(kind, domain)+1)
}

// beingProvisioned says whether a resource of a kind is being created or moved. File Storage does one at a time in a
// tenancy.
func (cl *cloud) beingProvisioned(kind *kindInfo) bool {
	res := cl.store.byID[cl.provisioning[kind]]
	return res != nil && (res.state == "CREATING" || res.state == "UPDATING")
}

// provision marks a resource as being created or moved, and returns what ends that.
func (cl *cloud) provision(kind *kindInfo, id string) (end func()) {
	cl.provisioning[kind] = id
	return func() {
		if cl.provisioning[kind] == id {
			delete(cl.provisioning, kind)
		}
	}
}
