// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package ocisim

import (
	"net/http"
	"slices"
	"time"

	"github.com/oracle/oci-go-sdk/v65/lustrefilestorage"
)

// ServiceLustre is the name of File Storage with Lustre.
const ServiceLustre = "lustrefilestorage"

// LustreLimit is the service limit that Lustre file systems count on in each availability domain. The service's own
// name of it was not seen.
const LustreLimit = "lustre-file-system-count"

const lustreRoot = "/20250228"

// lustreFileSystems are listed by their subnet, too.
var lustreFileSystems = newKind(kindInfo{
	ocidType: "lustrefilesystem", label: "Lustre file system", policy: "lustre-file-systems", eventual: true,
}, func(v *lustrefilestorage.LustreFileSystem) facets {
	return facets{
		id: value(v.Id), compartment: value(v.CompartmentId), name: value(v.DisplayName),
		state: string(v.LifecycleState), domain: value(v.AvailabilityDomain), keys: []string{value(v.SubnetId)},
	}
})

func lustreService() service {
	const path, one = "/lustreFileSystems", "/lustreFileSystems/{lustreFileSystemId}"
	create := lustreOperation("CreateLustreFileSystem", http.MethodPost, path, "", Manage, createLustre)
	create.RetryToken = true
	create.Partial = "takes one address in the subnet, where the service takes several; keys and placement groups are kept, not looked up"
	get := lustreOperation("GetLustreFileSystem", http.MethodGet, one, "", Read, (*call).showTarget)
	update := lustreOperation("UpdateLustreFileSystem", http.MethodPut, one, "", Use, updateLustre)
	remove := lustreOperation("DeleteLustreFileSystem", http.MethodDelete, one, "", Manage, deleteLustre)
	move := lustreOperation("ChangeLustreFileSystemCompartment", http.MethodPost, one+"/actions/changeCompartment", "", Manage, moveLustre)
	for _, o := range []*Operation{&get, &update, &remove, &move} {
		o.Target, o.IfMatch = lustreFileSystems.kindInfo, o.Method != http.MethodGet
	}
	operations := []Operation{
		create, get,
		lustreOperation("ListLustreFileSystems", http.MethodGet, path,
			"compartmentId,availabilityDomain,lifecycleState,displayName,id,limit,page,sortOrder,sortBy", Inspect, listLustre),
		update, remove, move,
	}
	return service{
		operations: slices.Concat(operations, lustreWorkOperations()),
		durations: map[string]Range{
			"lustre.create": {Min: 5 * time.Minute, Max: 10 * time.Minute}, // no log was seen; drivers look every 30 s
			"lustre.update": {Min: time.Minute, Max: 3 * time.Minute},
			"lustre.move":   {Min: 2 * time.Second, Max: 5 * time.Second},
			"lustre.delete": {Min: 2 * time.Minute, Max: 5 * time.Minute},
		},
		removers: map[*kindInfo]func(*cloud, string){
			lustreFileSystems.kindInfo: func(cl *cloud, id string) {
				cl.releaseServiceVNICs(id)
				lustreFileSystems.remove(cl, id)
			},
		},
	}
}

func lustreOperation(name, method, path, query string, verb Verb, handle func(*call) (*answer, error)) Operation {
	return Operation{
		Service: ServiceLustre, Name: name, Method: method, Path: lustreRoot + path, Query: query,
		Verb: verb, Resource: lustreFileSystems.policy, handle: handle,
	}
}

// What is not established about Lustre.
const (
	LustreBusy     Situation = "change of a Lustre file system that is not ACTIVE"
	LustreCapacity Situation = "Lustre file system of a capacity that there is not"
	LustreShrinks  Situation = "decrease of the capacity of a Lustre file system"
)

func lustreRulings() map[Situation]Ruling {
	return map[Situation]Ruling{
		LustreBusy: {
			Status: http.StatusConflict, Code: "IncorrectState", Message: "Lustre file system %s has the lifecycle state %s.",
			Reason: "the documented code for a resource in the wrong state; the service's own answer was not seen",
		},
		LustreCapacity: {
			Status: http.StatusBadRequest, Code: "InvalidParameter", Message: "capacityInGBs %d is not valid: %s.",
			Reason: "validation of a parameter",
		},
		LustreShrinks: {
			Status: http.StatusBadRequest, Code: "InvalidParameter", Message: "capacityInGBs cannot be decreased from %d to %d.",
			Reason: "the documentation speaks of increases only",
		},
	}
}

// listLustre lists by compartment; without one, the identifier must be named.
func listLustre(c *call) (*answer, error) {
	id, compartment := c.query.Get("id"), c.query.Get("compartmentId")
	if id == "" && compartment == "" {
		return nil, errMissing("compartmentId")
	}
	return c.list(listing{
		kind: lustreFileSystems.kindInfo, key: compartment, items: true,
		match: func(res *resource) bool {
			return (id == "" || res.id == id) && (compartment != "" || !c.denied(lustreFileSystems.policy, Inspect, res.compartment))
		},
		render: func(res *resource) any {
			return recast[lustrefilestorage.LustreFileSystemSummary](lustreFileSystems.of(res))
		},
	})
}

// LustreFileSystems returns all Lustre file systems, deleted ones included while they are visible.
func (r *Region) LustreFileSystems() []lustrefilestorage.LustreFileSystem {
	return inspect(r, lustreFileSystems, "")
}

// LustreFileSystem returns one Lustre file system.
func (r *Region) LustreFileSystem(id string) (lustrefilestorage.LustreFileSystem, bool) {
	return inspectOne(r, lustreFileSystems, id)
}

// LustreFileSystem changes a Lustre file system.
func (f *Foreign) LustreFileSystem(id string, change func(*lustrefilestorage.LustreFileSystem)) error {
	return mutate(f, lustreFileSystems, id, change)
}
