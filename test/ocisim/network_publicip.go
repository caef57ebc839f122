// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package ocisim

import (
	"net/http"

	"github.com/oracle/oci-go-sdk/v65/common"
	"github.com/oracle/oci-go-sdk/v65/core"
)

func publicIPOperations() []Operation {
	list := networkOperation("ListPublicIps", http.MethodGet, "/publicIps",
		"scope*,compartmentId*,limit,page,availabilityDomain,lifetime,publicIpPoolId", Inspect, listPublicIPs)
	byAddress := networkOperation("GetPublicIpByIpAddress", http.MethodPost, "/publicIps/actions/getByIpAddress", "", Read, getPublicIPByAddress)
	byPrivate := networkOperation("GetPublicIpByPrivateIpId", http.MethodPost, "/publicIps/actions/getByPrivateIpId", "", Read, getPublicIPByPrivateIP)
	create := networkOperation("CreatePublicIp", http.MethodPost, "/publicIps", "", Manage, createPublicIP)
	create.RetryToken = true
	for _, o := range []*Operation{&list, &byAddress, &byPrivate, &create} {
		o.Resource = publicIPs.policy
	}
	update := networkOperation("UpdatePublicIp", http.MethodPut, "/publicIps/{publicIpId}", "", Manage, updatePublicIP)
	remove := networkOperation("DeletePublicIp", http.MethodDelete, "/publicIps/{publicIpId}", "", Manage, deletePublicIP)
	for _, o := range []*Operation{&update, &remove} {
		o.Target, o.IfMatch = publicIPs.kindInfo, true
	}
	return []Operation{
		networkGet("GetPublicIp", "/publicIps/{publicIpId}", publicIPs.kindInfo),
		list, byAddress, byPrivate, create, update, remove,
	}
}

func listPublicIPs(c *call) (*answer, error) {
	scope, lifetime, pool := c.query.Get("scope"), c.query.Get("lifetime"), c.query.Get("publicIpPoolId")
	switch core.ListPublicIpsScopeEnum(scope) {
	case core.ListPublicIpsScopeRegion:
	case core.ListPublicIpsScopeAvailabilityDomain:
		if c.query.Get("availabilityDomain") == "" {
			return nil, errMissing("availabilityDomain")
		}
	default:
		return nil, errInvalid("scope %s is not valid", scope)
	}
	return c.list(listing{kind: publicIPs.kindInfo, key: c.query.Get("compartmentId"), match: func(res *resource) bool {
		v := publicIPs.of(res)
		return string(v.Scope) == scope && (lifetime == "" || string(v.Lifetime) == lifetime) && (pool == "" || value(v.PublicIpPoolId) == pool)
	}})
}

func getPublicIPByAddress(c *call) (*answer, error) {
	details, err := decode[core.GetPublicIpByIpAddressDetails](c)
	if err != nil {
		return nil, err
	}
	return c.showPublicIP("address:" + value(details.IpAddress))
}

func getPublicIPByPrivateIP(c *call) (*answer, error) {
	details, err := decode[core.GetPublicIpByPrivateIpIdDetails](c)
	if err != nil {
		return nil, err
	}
	return c.showPublicIP(value(details.PrivateIpId))
}

// showPublicIP answers with the public address under a key, as a get by OCID would.
func (c *call) showPublicIP(key string) (*answer, error) {
	found := c.store.under(publicIPs.kindInfo, key)
	if len(found) == 0 || c.miss(found[0], false) || c.denied(publicIPs.policy, Read, found[0].compartment) {
		return nil, errNotFound()
	}
	return c.show(found[0]), nil
}

func createPublicIP(c *call) (*answer, error) {
	details, err := decode[core.CreatePublicIpDetails](c)
	if err != nil {
		return nil, err
	}
	if err := c.createIn(value(details.CompartmentId)); err != nil {
		return nil, err
	}
	var private *core.PrivateIp
	if id := value(details.PrivateIpId); id != "" {
		if private, err = privateIPs.related(c, id); err != nil {
			return nil, err
		}
		if err := c.checkUnassigned(id); err != nil {
			return nil, err
		}
	}
	reserved := details.Lifetime == core.CreatePublicIpDetailsLifetimeReserved
	if !reserved && (private == nil || !value(private.IsPrimary)) {
		return nil, errInvalid("An ephemeral public IP needs the privateIpId of a primary private IP.")
	}
	v, err := c.addPublicIP(publicIPSpec{
		compartment: value(details.CompartmentId), name: value(details.DisplayName), reserved: reserved,
		state: core.PublicIpLifecycleStateProvisioning,
	})
	if err != nil {
		return nil, err
	}
	id := value(v.Id)
	publicIPs.update(c.cloud, id, func(v *core.PublicIp) {
		setTags(&v.FreeformTags, &v.DefinedTags, details.FreeformTags, details.DefinedTags)
		if !reserved {
			v.Scope, v.AvailabilityDomain = core.PublicIpScopeAvailabilityDomain, private.AvailabilityDomain
		}
	})
	cl := c.cloud
	cl.after(cl.duration("publicip.create"), func() {
		cl.setPublicIPState(id, core.PublicIpLifecycleStateProvisioning, core.PublicIpLifecycleStateAvailable)
	})
	if private != nil {
		cl.assignPublicIP(id, value(private.Id))
	}
	return c.created(publicIPs.lookup(cl, id)), nil
}

// checkUnassigned refuses a private address that has a public one already.
func (cl *cloud) checkUnassigned(privateIPID string) error {
	for v := range publicIPs.under(cl, privateIPID) {
		return errConflict("The private IP %s already has the public IP %s.", privateIPID, value(v.Id))
	}
	return nil
}

// publicIPSpec says what a new public address is like.
type publicIPSpec struct {
	id, compartment, name, address string
	reserved                       bool
	state                          core.PublicIpLifecycleStateEnum
}

func (cl *cloud) addPublicIP(s publicIPSpec) (*core.PublicIp, error) {
	address, err := cl.takePublicAddress(s.address)
	if err != nil {
		return nil, err
	}
	v := &core.PublicIp{
		Id: common.String(orElse(s.id, cl.newOCID("publicip"))), CompartmentId: common.String(s.compartment),
		DisplayName: common.String(orElse(s.name, "publicip"+cl.nameSuffix())), IpAddress: common.String(address),
		LifecycleState: s.state, Lifetime: core.PublicIpLifetimeEphemeral, Scope: core.PublicIpScopeRegion,
		TimeCreated: cl.sdkTime(), FreeformTags: map[string]string{}, DefinedTags: map[string]map[string]interface{}{},
	}
	if s.reserved {
		v.Lifetime = core.PublicIpLifetimeReserved
	}
	publicIPs.insert(cl, v)
	return v, nil
}

// assignPublicIP gives a public address to a private one, which takes a moment.
func (cl *cloud) assignPublicIP(id, privateIPID string) {
	publicIPs.update(cl, id, func(v *core.PublicIp) {
		v.LifecycleState = core.PublicIpLifecycleStateAssigning
		v.AssignedEntityType = core.PublicIpAssignedEntityTypePrivateIp
		v.AssignedEntityId = common.String(privateIPID)
		v.PrivateIpId = common.String(privateIPID)
	})
	cl.after(cl.duration("publicip.assign"), func() {
		if cl.setPublicIPState(id, core.PublicIpLifecycleStateAssigning, core.PublicIpLifecycleStateAssigned) {
			v := publicIPs.find(cl, id)
			cl.publicAddressOf(value(v.AssignedEntityId), v.IpAddress)
		}
	})
}

// unassignPublicIP takes a public address from its private one. A reserved address becomes available again, an
// ephemeral one ceases to exist.
func (cl *cloud) unassignPublicIP(id string) {
	v := publicIPs.find(cl, id)
	if v == nil || v.AssignedEntityId == nil {
		return
	}
	cl.publicAddressOf(*v.AssignedEntityId, nil)
	publicIPs.update(cl, id, func(v *core.PublicIp) {
		v.LifecycleState = core.PublicIpLifecycleStateUnassigning
		v.AssignedEntityId, v.PrivateIpId, v.AssignedEntityType = nil, nil, ""
	})
	reserved := v.Lifetime == core.PublicIpLifetimeReserved
	cl.after(cl.duration("publicip.assign"), func() {
		if reserved {
			cl.setPublicIPState(id, core.PublicIpLifecycleStateUnassigning, core.PublicIpLifecycleStateAvailable)
		} else {
			cl.removePublicIP(id)
		}
	})
}

// setPublicIPState moves a public address from one state to another, if it is still in the first.
func (cl *cloud) setPublicIPState(id string, from, to core.PublicIpLifecycleStateEnum) bool {
	v := publicIPs.find(cl, id)
	if v == nil || v.LifecycleState != from {
		return false
	}
	return publicIPs.update(cl, id, func(v *core.PublicIp) { v.LifecycleState = to })
}

func (cl *cloud) removePublicIP(id string) {
	if v := publicIPs.find(cl, id); v != nil {
		cl.givePublicBack(value(v.IpAddress))
		publicIPs.remove(cl, id)
	}
}

func updatePublicIP(c *call) (*answer, error) {
	details, err := decode[core.UpdatePublicIpDetails](c)
	if err != nil {
		return nil, err
	}
	if err := c.publicIPThere(); err != nil {
		return nil, err
	}
	id, current := c.target.id, value(publicIPs.of(c.target).AssignedEntityId)
	if wanted := value(details.PrivateIpId); wanted != "" && wanted != current {
		switch state := publicIPs.of(c.target).LifecycleState; state {
		case core.PublicIpLifecycleStateAvailable, core.PublicIpLifecycleStateAssigned:
		default:
			return nil, errIncorrectState("The public IP %s is %s and cannot be moved.", id, state)
		}
	}
	if details.PrivateIpId != nil && *details.PrivateIpId != "" && *details.PrivateIpId != current {
		if _, err := privateIPs.related(c, *details.PrivateIpId); err != nil {
			return nil, err
		}
		if err := c.checkUnassigned(*details.PrivateIpId); err != nil {
			return nil, err
		}
	}
	publicIPs.update(c.cloud, id, func(v *core.PublicIp) {
		if details.DisplayName != nil {
			v.DisplayName = details.DisplayName
		}
		setTags(&v.FreeformTags, &v.DefinedTags, details.FreeformTags, details.DefinedTags)
	})
	switch wanted := details.PrivateIpId; {
	case wanted == nil || *wanted == current:
	case *wanted == "":
		c.unassignPublicIP(id)
	default:
		// An assigned address moves.
		c.publicAddressOf(current, nil)
		c.assignPublicIP(id, *wanted)
	}
	return c.show(c.target), nil
}

// publicIPThere refuses changes of a public address that is being deleted.
func (c *call) publicIPThere() error {
	if state := publicIPs.of(c.target).LifecycleState; state == core.PublicIpLifecycleStateTerminating {
		return errIncorrectState("The public IP %s is %s.", c.target.id, state)
	}
	return nil
}

func deletePublicIP(c *call) (*answer, error) {
	if err := c.publicIPThere(); err != nil {
		return nil, err
	}
	cl, id := c.cloud, c.target.id
	v := publicIPs.of(c.target)
	if v.AssignedEntityId != nil {
		cl.publicAddressOf(*v.AssignedEntityId, nil)
	}
	publicIPs.update(cl, id, func(v *core.PublicIp) {
		v.LifecycleState = core.PublicIpLifecycleStateTerminating
		v.AssignedEntityId, v.PrivateIpId, v.AssignedEntityType = nil, nil, ""
	})
	cl.after(cl.duration("publicip.delete"), func() { cl.removePublicIP(id) })
	return none(http.StatusNoContent), nil
}
