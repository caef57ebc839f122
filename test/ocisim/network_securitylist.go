// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package ocisim

import (
	"net/http"

	"github.com/oracle/oci-go-sdk/v65/common"
	"github.com/oracle/oci-go-sdk/v65/core"
)

func securityListOperations() []Operation {
	update := networkOperation("UpdateSecurityList", http.MethodPut, "/securityLists/{securityListId}", "", Manage, updateSecurityList)
	update.Target, update.IfMatch = securityLists.kindInfo, true
	return []Operation{
		networkGet("GetSecurityList", "/securityLists/{securityListId}", securityLists.kindInfo),
		networkList("ListSecurityLists", "/securityLists",
			"compartmentId*,limit,page,vcnId,displayName,sortBy,sortOrder,lifecycleState", securityLists.kindInfo),
		update,
	}
}

// updateSecurityList replaces each list of rules that the request carries as a whole; that is why clients must send
// if-match.
func updateSecurityList(c *call) (*answer, error) {
	details, err := decode[core.UpdateSecurityListDetails](c)
	if err != nil {
		return nil, err
	}
	if err := c.checkIngress(details.IngressSecurityRules); err != nil {
		return nil, err
	}
	if err := c.checkEgress(details.EgressSecurityRules); err != nil {
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

func (c *call) checkIngress(rules []core.IngressSecurityRule) error {
	if len(rules) > c.behaviour.MaxSecurityListRules {
		if err := c.rule(TooManySecurityListRules, "ingress", c.target.id, c.behaviour.MaxSecurityListRules); err != nil {
			return err
		}
	}
	for _, rule := range rules {
		if err := checkProtocol(value(rule.Protocol), rule.IcmpOptions, rule.TcpOptions, rule.UdpOptions); err != nil {
			return err
		}
		if err := c.checkEnd("source", string(rule.SourceType), value(rule.Source), ""); err != nil {
			return err
		}
	}
	return nil
}

func (c *call) checkEgress(rules []core.EgressSecurityRule) error {
	if len(rules) > c.behaviour.MaxSecurityListRules {
		if err := c.rule(TooManySecurityListRules, "egress", c.target.id, c.behaviour.MaxSecurityListRules); err != nil {
			return err
		}
	}
	for _, rule := range rules {
		if err := checkProtocol(value(rule.Protocol), rule.IcmpOptions, rule.TcpOptions, rule.UdpOptions); err != nil {
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
