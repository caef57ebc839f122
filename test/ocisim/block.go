// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package ocisim

import (
	"net/http"
	"slices"
	"time"

	"github.com/oracle/oci-go-sdk/v65/core"
)

// ServiceBlockStorage is the name of the block volume service.
const ServiceBlockStorage = "blockstorage"

// volumes are listed by volume group, and under hydratingKey by the source whose content they still copy.
var volumes = newKind(kindInfo{
	ocidType: "volume", label: "volume", policy: "volumes", eventual: true, keep: []string{"sizeInGBs", "isHydrated"},
}, func(v *core.Volume) facets {
	f := facets{
		id: value(v.Id), compartment: value(v.CompartmentId), name: value(v.DisplayName),
		state: string(v.LifecycleState), domain: value(v.AvailabilityDomain), keys: []string{value(v.VolumeGroupId)},
	}
	if source := sourceOf(v.SourceDetails); source != "" && !value(v.IsHydrated) && !terminal(f.state) {
		f.keys = append(f.keys, hydratingKey(source))
	}
	return f
})

// bootVolumes belong to the resource type "volumes" in policies.
var bootVolumes = newKind(kindInfo{
	ocidType: "bootvolume", label: "boot volume", policy: "volumes", eventual: true, keep: []string{"sizeInGBs", "isHydrated"},
}, func(v *core.BootVolume) facets {
	f := facets{
		id: value(v.Id), compartment: value(v.CompartmentId), name: value(v.DisplayName),
		state: string(v.LifecycleState), domain: value(v.AvailabilityDomain), keys: []string{value(v.VolumeGroupId)},
	}
	if s, ok := v.SourceDetails.(core.BootVolumeSourceFromBootVolumeDetails); ok && !value(v.IsHydrated) && !terminal(f.state) {
		f.keys = append(f.keys, hydratingKey(value(s.Id)))
	}
	return f
})

// volumeBackups are listed by the volume that they were made of.
var volumeBackups = newKind(kindInfo{
	ocidType: "volumebackup", label: "volume backup", policy: "volume-backups", eventual: true,
	keep: []string{"sizeInGBs", "volumeId"},
}, func(v *core.VolumeBackup) facets {
	return facets{
		id: value(v.Id), compartment: value(v.CompartmentId), name: value(v.DisplayName), state: string(v.LifecycleState),
		keys: []string{value(v.VolumeId), value(v.VolumeGroupBackupId)},
	}
})

// hydratingKey is the key under which the volumes are listed that still copy from a source.
func hydratingKey(source string) string { return "copies of " + source }

// sourceOf is the identifier of a volume's source, "" without one.
func sourceOf(details core.VolumeSourceDetails) string {
	switch s := details.(type) {
	case core.VolumeSourceFromVolumeDetails:
		return value(s.Id)
	case core.VolumeSourceFromVolumeBackupDetails:
		return value(s.Id)
	}
	return ""
}

// blockOperations is the part of the table that all kinds of the service share: get, list, create, update, delete.
// Handlers are given in this order.
type blockOperations struct {
	noun, plural, path, param string // "Volume", "Volumes", "volumes", "volumeId"
	kind                      *kindInfo
	listQuery                 string
	update                    Verb
	partial, updatePartial    string // of create and of update
	list                      func(*call) (*answer, error)
	creates, updates, deletes func(*call) (*answer, error)
}

func (b blockOperations) table() []Operation {
	op := func(name, method, path, query string, verb Verb, handle func(*call) (*answer, error)) Operation {
		return Operation{
			Service: ServiceBlockStorage, Name: name, Method: method, Path: "/20160918/" + path, Query: query, Verb: verb, handle: handle,
		}
	}
	item := b.path + "/{" + b.param + "}"
	get := op("Get"+b.noun, http.MethodGet, item, "", Read, (*call).showTarget)
	list := op("List"+b.plural, http.MethodGet, b.path, b.listQuery, Inspect, b.list)
	create := op("Create"+b.noun, http.MethodPost, b.path, "", Manage, b.creates)
	update := op("Update"+b.noun, http.MethodPut, item, "", b.update, b.updates)
	remove := op("Delete"+b.noun, http.MethodDelete, item, "", Manage, b.deletes)
	for _, o := range []*Operation{&get, &update, &remove} {
		o.Target = b.kind
	}
	for _, o := range []*Operation{&list, &create} {
		o.Resource = b.kind.policy
	}
	create.RetryToken, update.IfMatch, remove.IfMatch = true, true, true
	create.Partial, update.Partial = b.partial, b.updatePartial
	return []Operation{get, list, create, update, remove}
}

func blockStorageService() service {
	return service{
		operations: slices.Concat(volumeOperations(), bootVolumeOperations(), volumeBackupOperations(),
			volumeGroupOperations(), volumeGroupBackupOperations()),
		durations: map[string]Range{
			"volume.create":  {Min: 3 * time.Second, Max: 10 * time.Second}, // 8 s were seen for an empty one
			"volume.restore": {Min: 10 * time.Second, Max: 30 * time.Second},
			"volume.hydrate": {Min: 30 * time.Second, Max: 90 * time.Second},
			"volume.update":  {Min: 3 * time.Second, Max: 10 * time.Second},
			"volume.delete":  {Min: 2 * time.Second, Max: 10 * time.Second},
			// From the request to the image of the data, and from there to the end of the upload: 44 s were seen for an
			// empty volume.
			"volumebackup.image":  {Min: time.Second, Max: 5 * time.Second},
			"volumebackup.upload": {Min: 20 * time.Second, Max: 60 * time.Second},
			"volumebackup.delete": {Min: 2 * time.Second, Max: 10 * time.Second},
			"volumegroup.create":  {Min: 2 * time.Second, Max: 5 * time.Second},
			"volumegroup.update":  {Min: 2 * time.Second, Max: 5 * time.Second},
			"volumegroup.delete":  {Min: 2 * time.Second, Max: 5 * time.Second},
		},
		removers: map[*kindInfo]func(*cloud, string){
			volumes.kindInfo:       (*cloud).removeVolume,
			bootVolumes.kindInfo:   (*cloud).removeBootVolume,
			volumeBackups.kindInfo: (*cloud).removeVolumeBackup,
			volumeGroups.kindInfo:  (*cloud).removeVolumeGroup,
		},
	}
}
