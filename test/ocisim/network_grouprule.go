// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package ocisim

import (
	"net/http"

	"github.com/oracle/oci-go-sdk/v65/common"
	"github.com/oracle/oci-go-sdk/v65/core"
)

// maxRulesPerCall is a documented limit of adding and updating.
const maxRulesPerCall = 25

func groupRuleOperations() []Operation {
	const path = "/networkSecurityGroups/{networkSecurityGroupId}"
	list := networkOperation("ListNetworkSecurityGroupSecurityRules", http.MethodGet, path+"/securityRules",
		"direction,limit,page,sortBy,sortOrder", Read, listGroupRules)
	add := networkOperation("AddNetworkSecurityGroupSecurityRules", http.MethodPost, path+"/actions/addSecurityRules", "", Use, addGroupRules)
	update := networkOperation("UpdateNetworkSecurityGroupSecurityRules", http.MethodPost, path+"/actions/updateSecurityRules", "", Use, updateGroupRules)
	remove := networkOperation("RemoveNetworkSecurityGroupSecurityRules", http.MethodPost, path+"/actions/removeSecurityRules", "", Use, removeGroupRules)
	operations := []Operation{list, add, update, remove}
	for i := range operations {
		operations[i].Target = securityGroups.kindInfo
	}
	return operations
}

func listGroupRules(c *call) (*answer, error) {
	direction := c.query.Get("direction")
	return c.list(listing{kind: groupRules.kindInfo, key: c.target.id, match: func(res *resource) bool {
		return direction == "" || string(groupRules.of(res).rule.Direction) == direction
	}})
}

func addGroupRules(c *call) (*answer, error) {
	details, err := decode[core.AddNetworkSecurityGroupSecurityRulesDetails](c)
	if err != nil {
		return nil, err
	}
	if err := checkNumber("the number of securityRules", len(details.SecurityRules), 1, maxRulesPerCall); err != nil {
		return nil, err
	}
	group := c.target.id
	have := len(c.store.under(groupRules.kindInfo, group))
	if have+len(details.SecurityRules) > c.behaviour.MaxGroupRules {
		if err := c.rule(TooManyGroupRules, group, c.behaviour.MaxGroupRules); err != nil {
			return nil, err
		}
	}
	rules := make([]core.SecurityRule, 0, len(details.SecurityRules))
	for _, d := range details.SecurityRules {
		rule := core.SecurityRule{
			Direction: core.SecurityRuleDirectionEnum(d.Direction), Protocol: d.Protocol, Description: d.Description,
			Source: d.Source, SourceType: core.SecurityRuleSourceTypeEnum(d.SourceType),
			Destination: d.Destination, DestinationType: core.SecurityRuleDestinationTypeEnum(d.DestinationType),
			IcmpOptions: d.IcmpOptions, TcpOptions: d.TcpOptions, UdpOptions: d.UdpOptions, IsStateless: d.IsStateless,
		}
		if err := c.checkGroupRule(&rule); err != nil {
			return nil, err
		}
		rules = append(rules, rule)
	}
	for i := range rules {
		c.insertGroupRule(group, &rules[i])
	}
	c.rulesChanged(group)
	return c.send(http.StatusOK, core.AddedNetworkSecurityGroupSecurityRules{SecurityRules: rules}), nil
}

// insertGroupRule gives a rule its identifier, six hex digits that are unique in the group, and stores it.
func (cl *cloud) insertGroupRule(group string, rule *core.SecurityRule) {
	for rule.Id == nil || groupRules.lookup(cl, ruleKey(group, *rule.Id)) != nil {
		rule.Id = common.String(cl.hex(6, upperHex))
	}
	rule.IsValid, rule.TimeCreated = common.Bool(true), cl.sdkTime()
	groupRules.insert(cl, &groupRule{group: group, rule: *rule})
}

// rulesChanged applies the table's entry on etags.
func (c *call) rulesChanged(group string) {
	if res := securityGroups.lookup(c.cloud, group); res != nil && c.behaviour.RulesChangeGroupETag {
		res.etag = c.newETag(res.etag)
	}
}

// checkGroupRule validates a rule of the target group and completes it as the service does.
func (c *call) checkGroupRule(rule *core.SecurityRule) error {
	if err := checkProtocol(value(rule.Protocol), rule.IcmpOptions, rule.TcpOptions, rule.UdpOptions); err != nil {
		return err
	}
	if err := checkDescription(rule.Description); err != nil {
		return err
	}
	vcn := value(securityGroups.of(c.target).VcnId)
	if rule.IsStateless == nil {
		rule.IsStateless = common.Bool(false)
	}
	switch rule.Direction {
	case core.SecurityRuleDirectionIngress:
		switch {
		case rule.Source == nil:
			return errMissing("source")
		case rule.Destination != nil:
			return errInvalid("an INGRESS rule has no destination")
		case rule.SourceType == "":
			rule.SourceType = core.SecurityRuleSourceTypeCidrBlock
		}
		return c.checkEnd("source", string(rule.SourceType), *rule.Source, vcn)
	default:
		switch {
		case rule.Destination == nil:
			return errMissing("destination")
		case rule.Source != nil:
			return errInvalid("an EGRESS rule has no source")
		case rule.DestinationType == "":
			rule.DestinationType = core.SecurityRuleDestinationTypeCidrBlock
		}
		return c.checkEnd("destination", string(rule.DestinationType), *rule.Destination, vcn)
	}
}

func updateGroupRules(c *call) (*answer, error) {
	details, err := decode[core.UpdateNetworkSecurityGroupSecurityRulesDetails](c)
	if err != nil {
		return nil, err
	}
	if err := checkNumber("the number of securityRules", len(details.SecurityRules), 1, maxRulesPerCall); err != nil {
		return nil, err
	}
	group := c.target.id
	rules := make([]core.SecurityRule, 0, len(details.SecurityRules))
	for _, d := range details.SecurityRules {
		old := groupRules.find(c.cloud, ruleKey(group, value(d.Id)))
		if old == nil {
			return nil, c.unknownRule(value(d.Id), group)
		}
		rule := core.SecurityRule{
			Id: d.Id, TimeCreated: old.rule.TimeCreated, IsValid: common.Bool(true),
			Direction: core.SecurityRuleDirectionEnum(d.Direction), Protocol: d.Protocol, Description: d.Description,
			Source: d.Source, SourceType: core.SecurityRuleSourceTypeEnum(d.SourceType),
			Destination: d.Destination, DestinationType: core.SecurityRuleDestinationTypeEnum(d.DestinationType),
			IcmpOptions: d.IcmpOptions, TcpOptions: d.TcpOptions, UdpOptions: d.UdpOptions, IsStateless: d.IsStateless,
		}
		if err := c.checkGroupRule(&rule); err != nil {
			return nil, err
		}
		rules = append(rules, rule)
	}
	for _, rule := range rules {
		groupRules.update(c.cloud, ruleKey(group, *rule.Id), func(g *groupRule) { g.rule = rule })
	}
	c.rulesChanged(group)
	return c.send(http.StatusOK, core.UpdatedNetworkSecurityGroupSecurityRules{SecurityRules: rules}), nil
}

// unknownRule refuses a rule identifier that the group does not have. A table that allows it would have to invent a
// rule, so it stays an error then.
func (c *call) unknownRule(rule, group string) error {
	if err := c.rule(UnknownGroupRule, rule, group); err != nil {
		return err
	}
	return errInvalid("the security rule %s does not exist", rule)
}

func removeGroupRules(c *call) (*answer, error) {
	details, err := decode[core.RemoveNetworkSecurityGroupSecurityRulesDetails](c)
	if err != nil {
		return nil, err
	}
	group := c.target.id
	for _, id := range details.SecurityRuleIds {
		if groupRules.lookup(c.cloud, ruleKey(group, id)) == nil {
			if err := c.rule(UnknownGroupRule, id, group); err != nil {
				return nil, err
			}
		}
	}
	for _, id := range details.SecurityRuleIds {
		groupRules.remove(c.cloud, ruleKey(group, id))
	}
	c.rulesChanged(group)
	return none(http.StatusNoContent), nil
}
