// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package ocisim

import (
	"net/http"
	"strconv"
	"time"

	"github.com/oracle/oci-go-sdk/v65/core"
)

var instances = newKind(kindInfo{
	ocidType: "instance", label: "instance", policy: "instances", eventual: true,
}, func(v *core.Instance) facets {
	return facets{
		id: value(v.Id), compartment: value(v.CompartmentId), name: value(v.DisplayName),
		state: string(v.LifecycleState), domain: value(v.AvailabilityDomain),
	}
})

// vnicAttachments are listed by instance and by VNIC.
var vnicAttachments = newKind(kindInfo{
	ocidType: "vnicattachment", label: "VNIC attachment", policy: "vnic-attachments", eventual: true,
	keep: []string{"vnicId"},
}, func(v *core.VnicAttachment) facets {
	return facets{
		id: value(v.Id), compartment: value(v.CompartmentId), name: value(v.DisplayName),
		state: string(v.LifecycleState), domain: value(v.AvailabilityDomain),
		keys: []string{value(v.InstanceId), value(v.VnicId)},
	}
})

func computeService() service {
	op := func(name, method, path, query string, verb Verb, target *kindInfo, handle func(*call) (*answer, error)) Operation {
		return Operation{
			Service: ServiceCompute, Name: name, Method: method, Path: path,
			Query: query, Verb: verb, Target: target, handle: handle,
		}
	}
	listInstances := op("ListInstances", http.MethodGet, "/20160918/instances",
		"compartmentId*,availabilityDomain,capacityReservationId,computeClusterId,displayName,limit,page,sortBy,sortOrder,lifecycleState",
		Inspect, nil, func(c *call) (*answer, error) {
			return c.list(listing{kind: instances.kindInfo, key: c.query.Get("compartmentId")})
		})
	listInstances.Resource = instances.policy
	listAttachments := op("ListVnicAttachments", http.MethodGet, "/20160918/vnicAttachments",
		"compartmentId*,availabilityDomain,instanceId,limit,page,vnicId", Inspect, nil, listVNICAttachments)
	listAttachments.Resource = vnicAttachments.policy
	action := op("InstanceAction", http.MethodPost, "/20160918/instances/{instanceId}", "action*", Use, instances.kindInfo, instanceAction)
	action.RetryToken, action.IfMatch = true, true
	action.Partial = "START, STOP and SOFTSTOP"
	terminate := op("TerminateInstance", http.MethodDelete, "/20160918/instances/{instanceId}",
		"preserveBootVolume,preserveDataVolumesCreatedAtLaunch", Manage, instances.kindInfo, terminateInstance)
	terminate.IfMatch = true
	return service{
		operations: append([]Operation{
			op("GetInstance", http.MethodGet, "/20160918/instances/{instanceId}", "", Read, instances.kindInfo, (*call).showTarget),
			listInstances,
			action,
			terminate,
			op("GetVnicAttachment", http.MethodGet, "/20160918/vnicAttachments/{vnicAttachmentId}", "", Read,
				vnicAttachments.kindInfo, (*call).showTarget),
			listAttachments,
			updateInstanceOperation(),
		}, attachmentOperations()...),
		durations: map[string]Range{
			"instance.start":     {Min: 20 * time.Second, Max: 60 * time.Second},
			"instance.stop":      {Min: 20 * time.Second, Max: 60 * time.Second},
			"instance.terminate": {Min: 30 * time.Second, Max: 90 * time.Second},
			"instance.update":    {Min: 2 * time.Second, Max: 10 * time.Second},
			"work.accept":        {Min: 200 * time.Millisecond, Max: time.Second},
			// No log of these was found; clients poll every 10 s.
			"volumeattachment.attach": {Min: 8 * time.Second, Max: 20 * time.Second},
			"volumeattachment.detach": {Min: 8 * time.Second, Max: 20 * time.Second},
			"volumeattachment.login":  {Min: 2 * time.Second, Max: 10 * time.Second},
		},
		removers: map[*kindInfo]func(*cloud, string){
			instances.kindInfo:         (*cloud).forgetInstance,
			volumeAttachments.kindInfo: (*cloud).removeAttachment,
		},
	}
}

// listVNICAttachments starts from the narrowest key that the query gives; the compartment stays a condition.
func listVNICAttachments(c *call) (*answer, error) {
	compartment, instance, vnic := c.query.Get("compartmentId"), c.query.Get("instanceId"), c.query.Get("vnicId")
	l := listing{kind: vnicAttachments.kindInfo, key: compartment}
	switch {
	case vnic != "":
		l.key = vnic
	case instance != "":
		l.key = instance
	}
	l.match = func(res *resource) bool {
		v := vnicAttachments.of(res)
		return (instance == "" || value(v.InstanceId) == instance) && (vnic == "" || value(v.VnicId) == vnic)
	}
	return c.list(l)
}

func instanceAction(c *call) (*answer, error) {
	id := c.target.id
	switch action := c.query.Get("action"); action {
	case "STOP", "SOFTSTOP":
		if err := c.stopInstance(id); err != nil {
			return nil, err
		}
	case "START":
		if err := c.startInstance(id); err != nil {
			return nil, err
		}
	default:
		return nil, errInvalid("action %s is not supported", action)
	}
	return c.show(c.target), nil
}

func terminateInstance(c *call) (*answer, error) {
	preserve, err := strconv.ParseBool(orElse(c.query.Get("preserveBootVolume"), "false"))
	if err != nil {
		return nil, errInvalid("preserveBootVolume must be true or false")
	}
	if err := c.endInstance(c.target.id, preserve); err != nil {
		return nil, err
	}
	return none(http.StatusNoContent), nil
}
