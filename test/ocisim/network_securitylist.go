// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package ocisim

import (
	"net/http"

	"github.com/oracle/oci-go-sdk/v65/common"
	"github.com/oracle/oci-go-sdk/v65/core"
)

func securityListOperations() []Operation {
	create := networkOperation("CreateSecurityList", http.MethodPost, "/securityLists", "", Manage, createSecurityList)
	create.Resource, create.RetryToken = securityLists.policy, true
	remove := networkOperation("DeleteSecurityList", http.MethodDelete, "/securityLists/{securityListId}", "", Manage, deleteSecurityList)
	remove.Target, remove.IfMatch = securityLists.kindInfo, true
	update := networkOperation("UpdateSecurityList", http.MethodPut, "/securityLists/{securityListId}", "", Manage, updateSecurityList)
	update.Target, update.IfMatch = securityLists.kindInfo, true
	return []Operation{
		networkGet("GetSecurityList", "/securityLists/{securityListId}", securityLists.kindInfo),
		networkList("ListSecurityLists", "/securityLists",
			"compartmentId*,limit,page,vcnId,displayName,sortBy,sortOrder,lifecycleState", securityLists.kindInfo),
		create, update, remove,
	}
}

func createSecurityList(c *call) (*answer, error) {
	details, err := decode[core.CreateSecurityListDetails](c)
	if err != nil {
		return nil, err
	}
	if err := c.createIn(value(details.CompartmentId)); err != nil {
		return nil, err
	}
	vcn, err := vcns.related(c, value(details.VcnId))
	if err != nil {
		return nil, err
	}
	id := c.newOCID(securityLists.ocidType)
	err = firstOf(checkName(details.DisplayName), c.checkIngress(id, details.IngressSecurityRules), c.checkEgress(id, details.EgressSecurityRules))
	if err != nil {
		return nil, err
	}
	v := &core.SecurityList{
		Id: common.String(id), CompartmentId: details.CompartmentId, VcnId: vcn.Id,
		DisplayName:    common.String(orElse(value(details.DisplayName), "securitylist"+c.nameSuffix())),
		LifecycleState: core.SecurityListLifecycleStateProvisioning, TimeCreated: c.sdkTime(),
		IngressSecurityRules: completeIngress(details.IngressSecurityRules), EgressSecurityRules: completeEgress(details.EgressSecurityRules),
		FreeformTags: map[string]string{}, DefinedTags: map[string]map[string]interface{}{},
	}
	setTags(&v.FreeformTags, &v.DefinedTags, details.FreeformTags, details.DefinedTags)
	res := securityLists.insert(c.cloud, v)
	provision(c, securityLists, id, "securitylist.create")
	return c.created(res), nil
}

// deleteSecurityList refuses to delete the default of a VCN, and what a subnet uses.
func deleteSecurityList(c *call) (*answer, error) {
	vcn := vcns.find(c.cloud, value(securityLists.of(c.target).VcnId))
	if vcn != nil && value(vcn.DefaultSecurityListId) == c.target.id {
		if err := c.rule(DefaultResourceDelete, "security list", c.target.id, value(vcn.Id)); err != nil {
			return nil, err
		}
	}
	if err := c.unused(subnets.kindInfo, c.target.id); err != nil {
		return nil, err
	}
	return terminate(c, securityLists, "securitylist.delete", nil)
}

// updateSecurityList replaces each list of rules that the request carries as a whole; that is why clients must send
// if-match.
func updateSecurityList(c *call) (*answer, error) {
	details, err := decode[core.UpdateSecurityListDetails](c)
	if err != nil {
		return nil, err
	}
	if err := firstOf(c.available(), c.checkIngress(c.target.id, details.IngressSecurityRules)); err != nil {
		return nil, err
	}
	if err := c.checkEgress(c.target.id, details.EgressSecurityRules); err != nil {
		return nil, err
	}
	securityLists.update(c.cloud, c.target.id, func(v *core.SecurityList) {
		if details.DisplayName != nil {
			v.DisplayName = details.DisplayName
		}
		if details.IngressSecurityRules != nil {
			v.IngressSecurityRules = completeIngress(details.IngressSecurityRules)
		}
		if details.EgressSecurityRules != nil {
			v.EgressSecurityRules = completeEgress(details.EgressSecurityRules)
		}
		setTags(&v.FreeformTags, &v.DefinedTags, details.FreeformTags, details.DefinedTags)
	})
	return c.show(c.target), nil
}

func (c *call) checkIngress(list string, rules []core.IngressSecurityRule) error {
	if len(rules) > c.behaviour.MaxSecurityListRules {
		if err := c.rule(TooManySecurityListRules, "ingress", list, c.behaviour.MaxSecurityListRules); err != nil {
			return err
		}
	}
	for _, rule := range rules {
		if err := checkProtocol(value(rule.Protocol), rule.IcmpOptions, rule.TcpOptions, rule.UdpOptions); err != nil {
			return err
		}
		if err := checkDescription(rule.Description); err != nil {
			return err
		}
		if err := c.checkEnd("source", string(rule.SourceType), value(rule.Source), ""); err != nil {
			return err
		}
	}
	return nil
}

func (c *call) checkEgress(list string, rules []core.EgressSecurityRule) error {
	if len(rules) > c.behaviour.MaxSecurityListRules {
		if err := c.rule(TooManySecurityListRules, "egress", list, c.behaviour.MaxSecurityListRules); err != nil {
			return err
		}
	}
	for _, rule := range rules {
		if err := checkProtocol(value(rule.Protocol), rule.IcmpOptions, rule.TcpOptions, rule.UdpOptions); err != nil {
			return err
		}
		if err := checkDescription(rule.Description); err != nil {
			return err
		}
		if err := c.checkEnd("destination", string(rule.DestinationType), value(rule.Destination), ""); err != nil {
			return err
		}
	}
	return nil
}

// completeIngress fills in what the service fills in.
func completeIngress(rules []core.IngressSecurityRule) []core.IngressSecurityRule {
	complete := make([]core.IngressSecurityRule, 0, len(rules))
	for _, rule := range rules {
		if rule.SourceType == "" {
			rule.SourceType = core.IngressSecurityRuleSourceTypeCidrBlock
		}
		if rule.IsStateless == nil {
			rule.IsStateless = common.Bool(false)
		}
		complete = append(complete, rule)
	}
	return complete
}

// completeEgress fills in what the service fills in.
func completeEgress(rules []core.EgressSecurityRule) []core.EgressSecurityRule {
	complete := make([]core.EgressSecurityRule, 0, len(rules))
	for _, rule := range rules {
		if rule.DestinationType == "" {
			rule.DestinationType = core.EgressSecurityRuleDestinationTypeCidrBlock
		}
		if rule.IsStateless == nil {
			rule.IsStateless = common.Bool(false)
		}
		complete = append(complete, rule)
	}
	return complete
}
