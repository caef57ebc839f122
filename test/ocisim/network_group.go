// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package ocisim

import (
	"net/http"

	"github.com/oracle/oci-go-sdk/v65/common"
	"github.com/oracle/oci-go-sdk/v65/core"
)

func securityGroupOperations() []Operation {
	const path = "/networkSecurityGroups/{networkSecurityGroupId}"
	create := networkOperation("CreateNetworkSecurityGroup", http.MethodPost, "/networkSecurityGroups", "", Manage, createSecurityGroup)
	create.Resource, create.RetryToken = securityGroups.policy, true
	list := networkOperation("ListNetworkSecurityGroups", http.MethodGet, "/networkSecurityGroups",
		"compartmentId,vlanId,vcnId,limit,page,displayName,sortBy,sortOrder,lifecycleState", Inspect, listSecurityGroups)
	list.Resource = securityGroups.policy
	update := networkOperation("UpdateNetworkSecurityGroup", http.MethodPut, path, "", Manage, updateSecurityGroup)
	remove := networkOperation("DeleteNetworkSecurityGroup", http.MethodDelete, path, "", Manage, deleteSecurityGroup)
	update.IfMatch, remove.IfMatch = true, true
	members := networkOperation("ListNetworkSecurityGroupVnics", http.MethodGet, path+"/vnics", "limit,page,sortBy,sortOrder", Read, listGroupVNICs)
	for _, o := range []*Operation{&update, &remove, &members} {
		o.Target = securityGroups.kindInfo
	}
	return []Operation{
		create,
		networkGet("GetNetworkSecurityGroup", path, securityGroups.kindInfo),
		list, update, remove, members,
	}
}

func createSecurityGroup(c *call) (*answer, error) {
	details, err := decode[core.CreateNetworkSecurityGroupDetails](c)
	if err != nil {
		return nil, err
	}
	if err := c.createIn(value(details.CompartmentId)); err != nil {
		return nil, err
	}
	if _, err := vcns.related(c, value(details.VcnId)); err != nil {
		return nil, err
	}
	name := value(details.DisplayName)
	if name != "" {
		if err := checkSize("displayName", name, 1, 255); err != nil {
			return nil, err
		}
	}
	v := &core.NetworkSecurityGroup{
		Id: common.String(c.newOCID(securityGroups.ocidType)), CompartmentId: details.CompartmentId, VcnId: details.VcnId,
		DisplayName:    common.String(orElse(name, "networksecuritygroup"+c.nameSuffix())),
		LifecycleState: core.NetworkSecurityGroupLifecycleStateAvailable, TimeCreated: c.sdkTime(),
		FreeformTags: map[string]string{}, DefinedTags: map[string]map[string]interface{}{},
	}
	setTags(&v.FreeformTags, &v.DefinedTags, details.FreeformTags, details.DefinedTags)
	return c.created(securityGroups.insert(c.cloud, v)), nil
}

func listSecurityGroups(c *call) (*answer, error) {
	key, vcn := c.query.Get("compartmentId"), c.query.Get("vcnId")
	if vcn != "" {
		key = vcn
	}
	if key == "" {
		return nil, errInvalid("One of compartmentId, vlanId and vcnId must be given.")
	}
	return c.list(listing{kind: securityGroups.kindInfo, key: key})
}

func updateSecurityGroup(c *call) (*answer, error) {
	details, err := decode[core.UpdateNetworkSecurityGroupDetails](c)
	if err != nil {
		return nil, err
	}
	securityGroups.update(c.cloud, c.target.id, func(v *core.NetworkSecurityGroup) {
		if details.DisplayName != nil {
			v.DisplayName = details.DisplayName
		}
		setTags(&v.FreeformTags, &v.DefinedTags, details.FreeformTags, details.DefinedTags)
	})
	return c.show(c.target), nil
}

// deleteSecurityGroup removes a group without VNICs. Those of deleted balancers and instances linger, and count.
func deleteSecurityGroup(c *call) (*answer, error) {
	if len(c.store.under(vnics.kindInfo, c.target.id)) > 0 {
		return nil, errPrecondition(
			"NetworkSecurityGroup %s cannot be deleted since it still has vnics attached to it", c.target.id)
	}
	c.removeSecurityGroup(c.target.id)
	return none(http.StatusNoContent), nil
}

// removeSecurityGroup removes a group and its rules. Rules of other groups that name it stay, but are not valid any
// more.
func (cl *cloud) removeSecurityGroup(id string) {
	for rule := range groupRules.under(cl, id) {
		groupRules.remove(cl, ruleKey(id, value(rule.rule.Id)))
	}
	for rule := range groupRules.under(cl, referenceKey(id)) {
		groupRules.update(cl, ruleKey(rule.group, value(rule.rule.Id)), func(g *groupRule) {
			g.rule.IsValid = common.Bool(false)
		})
	}
	securityGroups.remove(cl, id)
}

func listGroupVNICs(c *call) (*answer, error) {
	return c.list(listing{kind: vnics.kindInfo, key: c.target.id, render: func(res *resource) any {
		v := vnics.of(res)
		member := core.NetworkSecurityGroupVnic{VnicId: v.Id, TimeAssociated: v.TimeCreated}
		if owner := c.vnicOwners[res.id]; owner != "" {
			member.ResourceId = common.String(owner)
		}
		return member
	}})
}
