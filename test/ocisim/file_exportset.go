// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package ocisim

import (
	"net/http"

	"github.com/oracle/oci-go-sdk/v65/common"
	"github.com/oracle/oci-go-sdk/v65/filestorage"
)

// exportSets come and go with their mount targets.
var exportSets = newKind(kindInfo{
	ocidType: "exportset", label: "export set", policy: "export-sets", eventual: true,
}, func(v *filestorage.ExportSet) facets {
	return facets{
		id: value(v.Id), compartment: value(v.CompartmentId), name: value(v.DisplayName),
		state: string(v.LifecycleState), domain: value(v.AvailabilityDomain), keys: []string{value(v.VcnId)},
	}
})

func exportSetOperations() []Operation {
	const path, one = "/exportSets", "/exportSets/{exportSetId}"
	kind := exportSets.kindInfo
	return []Operation{
		fileGet("GetExportSet", one, kind),
		fileOperation("ListExportSets", http.MethodGet, path,
			"compartmentId*,availabilityDomain*,limit,page,displayName,lifecycleState,id,sortBy,sortOrder", Inspect, kind, listExportSets),
		fileChange("UpdateExportSet", http.MethodPut, one, "", Manage, kind, updateExportSet),
	}
}

// defaultStatBytes and defaultStatFiles are what an export set reports through FSSTAT at most, before anybody
// changes it: 2^63-1 in the documentation of the mount target.
const (
	defaultStatBytes = 1<<63 - 1
	defaultStatFiles = 1<<63 - 1
)

// addExportSet makes the export set of a mount target.
func (cl *cloud) addExportSet(id string, v *filestorage.MountTarget, vcn string, state filestorage.ExportSetLifecycleStateEnum) string {
	if id == "" {
		id = cl.newOCID(exportSets.ocidType)
	}
	res := exportSets.insert(cl, &filestorage.ExportSet{
		Id: common.String(id), CompartmentId: v.CompartmentId, AvailabilityDomain: v.AvailabilityDomain,
		DisplayName: common.String(value(v.DisplayName) + " - export set"), VcnId: common.String(vcn), LifecycleState: state,
		TimeCreated: cl.sdkTime(), MaxFsStatBytes: common.Int64(defaultStatBytes), MaxFsStatFiles: common.Int64(defaultStatFiles),
	})
	if state == filestorage.ExportSetLifecycleStateCreating {
		cl.hide(res)
	}
	return id
}

func (cl *cloud) setExportSetState(id string, state filestorage.ExportSetLifecycleStateEnum) {
	exportSets.update(cl, id, func(v *filestorage.ExportSet) { v.LifecycleState = state })
}

func listExportSets(c *call) (*answer, error) {
	id := c.query.Get("id")
	return c.list(listing{
		kind: exportSets.kindInfo, key: c.query.Get("compartmentId"),
		match:  func(res *resource) bool { return id == "" || res.id == id },
		render: func(res *resource) any { return recast[filestorage.ExportSetSummary](exportSets.of(res)) },
	})
}

func updateExportSet(c *call) (*answer, error) {
	d, err := decode[filestorage.UpdateExportSetDetails](c)
	if err != nil {
		return nil, err
	}
	if err := c.fileWritable(); err != nil {
		return nil, err
	}
	if d.DisplayName != nil {
		if err := checkSize("displayName", *d.DisplayName, 1, 255); err != nil {
			return nil, err
		}
	}
	for _, n := range []struct {
		name  string
		value *int64
	}{{"maxFsStatBytes", d.MaxFsStatBytes}, {"maxFsStatFiles", d.MaxFsStatFiles}} {
		if value(n.value) < 0 {
			return nil, errInvalid("%s must not be negative", n.name)
		}
	}
	exportSets.update(c.cloud, c.target.id, func(v *filestorage.ExportSet) {
		replace(&v.DisplayName, d.DisplayName)
		replace(&v.MaxFsStatBytes, d.MaxFsStatBytes)
		replace(&v.MaxFsStatFiles, d.MaxFsStatFiles)
	})
	return c.show(c.target), nil
}

// removeExportSet takes an export set and its exports out of the region.
func (cl *cloud) removeExportSet(id string) {
	for e := range exports.under(cl, id) {
		exports.remove(cl, value(e.Id))
	}
	exportSets.remove(cl, id)
}
