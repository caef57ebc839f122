// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package ocisim

import (
	"net/http"

	"github.com/oracle/oci-go-sdk/v65/common"
	"github.com/oracle/oci-go-sdk/v65/filestorage"
)

// fileExport is an export. The API shows no compartment: it is that of the export set.
type fileExport struct {
	compartment string
	filestorage.Export
}

// exports are listed by their export set and by their file system.
var exports = newKind(kindInfo{
	ocidType: "export", label: "export", policy: "export-sets", eventual: true,
	render: func(v any) any {
		if e, ok := v.(*fileExport); ok {
			return e.Export
		}
		return v
	},
}, func(v *fileExport) facets {
	return facets{
		id: value(v.Id), compartment: v.compartment, name: value(v.Path), state: string(v.LifecycleState),
		keys: []string{value(v.ExportSetId), value(v.FileSystemId)},
	}
})

func exportOperations() []Operation {
	const path, one = "/exports", "/exports/{exportId}"
	kind := exports.kindInfo
	return []Operation{
		fileCreate("CreateExport", path, Manage, kind, createExport),
		fileGet("GetExport", one, kind),
		fileOperation("ListExports", http.MethodGet, path,
			"compartmentId,limit,page,exportSetId,fileSystemId,lifecycleState,id,sortBy,sortOrder", Inspect, kind, listExports),
		fileChange("UpdateExport", http.MethodPut, one, "isLockOverride", Manage, kind, updateExport),
		fileChange("DeleteExport", http.MethodDelete, one, "isLockOverride", Manage, kind, deleteExport),
	}
}

func createExport(c *call) (*answer, error) {
	d, err := decode[filestorage.CreateExportDetails](c)
	if err != nil {
		return nil, err
	}
	if err := checkExportPath(value(d.Path)); err != nil {
		return nil, err
	}
	set, err := exportSets.related(c, value(d.ExportSetId))
	if err != nil {
		return nil, err
	}
	fs, err := fileSystems.related(c, value(d.FileSystemId))
	if err != nil {
		return nil, err
	}
	if err := c.createIn(value(set.CompartmentId)); err != nil {
		return nil, err
	}
	if err := c.exportable(set, fs, value(d.Path)); err != nil {
		return nil, err
	}
	options := defaultExportOptions(c.ipv6Only(value(d.ExportSetId)))
	if d.ExportOptions != nil {
		if options, err = completeOptions(d.ExportOptions); err != nil {
			return nil, err
		}
	}
	id, cl := c.newOCID(exports.ocidType), c.cloud
	res := exports.insert(cl, &fileExport{value(set.CompartmentId), filestorage.Export{
		Id: common.String(id), ExportSetId: d.ExportSetId, FileSystemId: d.FileSystemId, Path: d.Path, ExportOptions: options,
		LifecycleState: filestorage.ExportLifecycleStateCreating, TimeCreated: c.sdkTime(),
		IsIdmapGroupsForSysAuth: orDefault(d.IsIdmapGroupsForSysAuth, false), Locks: c.newFileLocks(d.Locks),
	}})
	cl.after(cl.duration("export.create"), func() {
		if e := exports.find(cl, id); e != nil && e.LifecycleState == filestorage.ExportLifecycleStateCreating {
			cl.setExportState(id, filestorage.ExportLifecycleStateActive)
		}
	})
	return c.created(res), nil
}

// exportable checks whether a file system can be exported in an export set under a path.
func (c *call) exportable(set *filestorage.ExportSet, fs *filestorage.FileSystem, path string) error {
	if set.LifecycleState != filestorage.ExportSetLifecycleStateActive {
		if err := c.rule(FileStorageBusy, exportSets.label, *set.Id, set.LifecycleState); err != nil {
			return err
		}
	}
	if fs.LifecycleState != filestorage.FileSystemLifecycleStateActive {
		if err := c.rule(FileStorageBusy, fileSystems.label, *fs.Id, fs.LifecycleState); err != nil {
			return err
		}
	}
	if value(set.AvailabilityDomain) != value(fs.AvailabilityDomain) {
		if err := c.rule(ExportInAnotherDomain, *fs.Id, *set.Id); err != nil {
			return err
		}
	}
	for e := range exports.under(c.cloud, *set.Id) {
		if e.LifecycleState == filestorage.ExportLifecycleStateDeleted {
			continue
		}
		var err error
		switch {
		case pathsCollide(path, value(e.Path)):
			err = c.rule(ExportPathInUse, path, value(e.Path))
		case value(e.FileSystemId) == *fs.Id:
			err = c.rule(ExportTwice, *fs.Id, *set.Id)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// exported says whether an export set or a file system has exports. Those that are DELETED do not count.
func (cl *cloud) exported(id string) bool {
	if id == "" {
		return false
	}
	for e := range exports.under(cl, id) {
		if e.LifecycleState != filestorage.ExportLifecycleStateDeleted {
			return true
		}
	}
	return false
}

// ipv6Only says whether the mount target of an export set has IPv6 addresses and no other.
func (cl *cloud) ipv6Only(set string) bool {
	for v := range mountTargets.under(cl, set) {
		return len(v.PrivateIpIds) == 0 && len(v.MountTargetIpv6Ids) > 0
	}
	return false
}

// listExports lists the exports of an export set, a file system or a compartment; one of them must be named.
func listExports(c *call) (*answer, error) {
	id, set, fs := c.query.Get("id"), c.query.Get("exportSetId"), c.query.Get("fileSystemId")
	if set != "" {
		if err := exportSets.named(c, set); err != nil {
			return nil, err
		}
	}
	if fs != "" {
		if err := fileSystems.named(c, fs); err != nil {
			return nil, err
		}
	}
	key := orElse(set, orElse(fs, c.query.Get("compartmentId")))
	if key == "" {
		return nil, errInvalid("One of compartmentId, exportSetId and fileSystemId must be given.")
	}
	return c.list(listing{
		kind: exports.kindInfo, key: key,
		match: func(res *resource) bool {
			e := exports.of(res)
			return (id == "" || res.id == id) && (set == "" || value(e.ExportSetId) == set) && (fs == "" || value(e.FileSystemId) == fs)
		},
		render: func(res *resource) any { return recast[filestorage.ExportSummary](exports.of(res).Export) },
	})
}

func (cl *cloud) setExportState(id string, state filestorage.ExportLifecycleStateEnum) {
	exports.update(cl, id, func(e *fileExport) { e.LifecycleState = state })
}

func updateExport(c *call) (*answer, error) {
	d, err := decode[filestorage.UpdateExportDetails](c)
	if err != nil {
		return nil, err
	}
	if err := c.fileWritable(); err != nil {
		return nil, err
	}
	if err := c.unlocked(exports.of(c.target).Locks, false); err != nil {
		return nil, err
	}
	var options []filestorage.ClientOptions
	if d.ExportOptions != nil {
		if options, err = completeOptions(d.ExportOptions); err != nil {
			return nil, err
		}
	}
	exports.update(c.cloud, c.target.id, func(e *fileExport) {
		replace(&e.IsIdmapGroupsForSysAuth, d.IsIdmapGroupsForSysAuth)
		if options != nil {
			e.ExportOptions = options
		}
	})
	return c.show(c.target), nil
}

func deleteExport(c *call) (*answer, error) {
	if err := c.fileWritable(); err != nil {
		return nil, err
	}
	if err := c.unlocked(exports.of(c.target).Locks, true); err != nil {
		return nil, err
	}
	id, cl := c.target.id, c.cloud
	cl.setExportState(id, filestorage.ExportLifecycleStateDeleting)
	cl.after(cl.duration("export.delete"), func() {
		if e := exports.find(cl, id); e == nil || e.LifecycleState != filestorage.ExportLifecycleStateDeleting {
			return
		}
		cl.setExportState(id, filestorage.ExportLifecycleStateDeleted)
		cl.after(cl.behaviour.DeletedFileStorageVisible, func() { exports.remove(cl, id) })
	})
	return none(http.StatusNoContent), nil
}
