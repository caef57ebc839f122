// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package oci

import (
	"context"
	"net/http"
	"slices"
	"time"

	"github.com/oracle/oci-go-sdk/v65/core"
)

// maxRulesPerCall is how many rules of a network security group one call may add, change or remove (oci-api.md §3.5).
const maxRulesPerCall = 25

// SecurityGroup is a network security group (NSG): the rules for all VNICs that are in it. Its rules are resources of
// their own, see ListSecurityGroupRules; whether they change its ETag is not documented.
type SecurityGroup struct {
	ID            string
	CompartmentID string
	VCNID         string
	DisplayName   string
	State         string // PROVISIONING, AVAILABLE, TERMINATING, TERMINATED
	TimeCreated   time.Time
	ETag          string // of a single read, a create or an update; lists have none
	Tags
}

// GetSecurityGroup reads one network security group with its ETag, without its rules.
func (s *Network) GetSecurityGroup(ctx context.Context, id string) (*SecurityGroup, error) {
	o := readOp(ServiceVirtualNetwork, "GetNetworkSecurityGroup", "network_security_groups", "get")
	o.target = id
	r, err := invoke(ctx, s.client, o, func(ctx context.Context) (core.GetNetworkSecurityGroupResponse, *http.Response, error) {
		r, err := s.client.network.GetNetworkSecurityGroup(ctx, core.GetNetworkSecurityGroupRequest{NetworkSecurityGroupId: &id})
		return r, r.RawResponse, err
	})
	if err != nil {
		return nil, err
	}
	return withIdentity(securityGroupFromSDK(r.NetworkSecurityGroup), id, r.Etag), nil
}

// ListSecurityGroups lists the network security groups of a compartment, without ETags. An empty vcnID means those of
// every VCN.
func (s *Network) ListSecurityGroups(ctx context.Context, compartmentID, vcnID string) ([]*SecurityGroup, error) {
	return listAll(ctx, s.client, readOp(ServiceVirtualNetwork, "ListNetworkSecurityGroups", "network_security_groups", "list"), securityGroupFromSDK,
		func(ctx context.Context, token *string) (page[core.NetworkSecurityGroup], *http.Response, error) {
			r, err := s.client.network.ListNetworkSecurityGroups(ctx, core.ListNetworkSecurityGroupsRequest{
				CompartmentId: &compartmentID,
				VcnId:         present(vcnID),
				Limit:         &s.client.pageSize,
				Page:          token,
			})
			return page[core.NetworkSecurityGroup]{r.Items, r.OpcNextPage}, r.RawResponse, err
		})
}

// CreateSecurityGroup makes a network security group without rules from the compartment, the VCN, the name and the tags
// of g.
func (s *Network) CreateSecurityGroup(ctx context.Context, g SecurityGroup, token string) (*SecurityGroup, error) {
	o := writeOp(ServiceVirtualNetwork, "CreateNetworkSecurityGroup", "network_security_groups", "create")
	request := core.CreateNetworkSecurityGroupRequest{
		OpcRetryToken: retryToken(token),
		CreateNetworkSecurityGroupDetails: core.CreateNetworkSecurityGroupDetails{
			CompartmentId: &g.CompartmentID, VcnId: &g.VCNID, DisplayName: present(g.DisplayName), FreeformTags: g.Freeform, DefinedTags: g.Defined,
		},
	}
	r, err := invoke(ctx, s.client, o, func(ctx context.Context) (core.CreateNetworkSecurityGroupResponse, *http.Response, error) {
		r, err := s.client.network.CreateNetworkSecurityGroup(ctx, request)
		return r, r.RawResponse, err
	})
	if err != nil {
		return nil, err
	}
	s.client.remember(value(r.Id))
	return withIdentity(securityGroupFromSDK(r.NetworkSecurityGroup), "", r.Etag), nil
}

// DeleteSecurityGroup deletes a network security group with its rules. One that VNICs are still in, and be it those of a
// balancer deleted some minutes ago, is ErrGroupInUse.
func (s *Network) DeleteSecurityGroup(ctx context.Context, id, etag string) error {
	o := writeOp(ServiceVirtualNetwork, "DeleteNetworkSecurityGroup", "network_security_groups", "delete")
	_, err := invoke(ctx, s.client, o, func(ctx context.Context) (core.DeleteNetworkSecurityGroupResponse, *http.Response, error) {
		r, err := s.client.network.DeleteNetworkSecurityGroup(ctx, core.DeleteNetworkSecurityGroupRequest{
			NetworkSecurityGroupId: &id, IfMatch: present(etag),
		})
		return r, r.RawResponse, err
	})
	if err == nil {
		s.client.forget(id)
	}
	return err
}

// UpdateSecurityGroupTags replaces the tags of a network security group. A nil map leaves the tags of that sort as they
// are; an empty one removes them all.
func (s *Network) UpdateSecurityGroupTags(ctx context.Context, id string, tags Tags, etag string) (*SecurityGroup, error) {
	o := writeOp(ServiceVirtualNetwork, "UpdateNetworkSecurityGroup", "network_security_groups", "update")
	r, err := invoke(ctx, s.client, o, func(ctx context.Context) (core.UpdateNetworkSecurityGroupResponse, *http.Response, error) {
		r, err := s.client.network.UpdateNetworkSecurityGroup(ctx, core.UpdateNetworkSecurityGroupRequest{
			NetworkSecurityGroupId: &id, IfMatch: present(etag),
			UpdateNetworkSecurityGroupDetails: core.UpdateNetworkSecurityGroupDetails{FreeformTags: tags.Freeform, DefinedTags: tags.Defined},
		})
		return r, r.RawResponse, err
	})
	if err != nil {
		return nil, err
	}
	return withIdentity(securityGroupFromSDK(r.NetworkSecurityGroup), id, r.Etag), nil
}

// ListSecurityGroupRules lists all rules of a network security group, of both directions.
func (s *Network) ListSecurityGroupRules(ctx context.Context, id string) ([]SecurityRule, error) {
	o := readOp(ServiceVirtualNetwork, "ListNetworkSecurityGroupSecurityRules", "network_security_group_rules", "list")
	o.target = id
	return listAll(ctx, s.client, o, groupRuleFromSDK,
		func(ctx context.Context, token *string) (page[core.SecurityRule], *http.Response, error) {
			r, err := s.client.network.ListNetworkSecurityGroupSecurityRules(ctx, core.ListNetworkSecurityGroupSecurityRulesRequest{
				NetworkSecurityGroupId: &id, Limit: &s.client.pageSize, Page: token,
			})
			return page[core.SecurityRule]{r.Items, r.OpcNextPage}, r.RawResponse, err
		})
}

// AddSecurityGroupRules adds rules to a network security group, in as many calls as it takes, and returns what was added,
// up to the call that failed. The service makes equal rules twice, and knows no retry token here: a call whose answer was
// lost is not repeated, and who repeats it has to read the rules first.
func (s *Network) AddSecurityGroupRules(ctx context.Context, id string, rules []SecurityRule) ([]SecurityRule, error) {
	o := writeOp(ServiceVirtualNetwork, "AddNetworkSecurityGroupSecurityRules", "network_security_group_rules", "create")
	o.repeatable = false
	var added []SecurityRule
	for batch := range slices.Chunk(rules, maxRulesPerCall) {
		details := make([]core.AddSecurityRuleDetails, len(batch))
		for i, rule := range batch {
			details[i] = addRuleToSDK(rule)
		}
		r, err := invoke(ctx, s.client, o, func(ctx context.Context) (core.AddNetworkSecurityGroupSecurityRulesResponse, *http.Response, error) {
			r, err := s.client.network.AddNetworkSecurityGroupSecurityRules(ctx, core.AddNetworkSecurityGroupSecurityRulesRequest{
				NetworkSecurityGroupId:                      &id,
				AddNetworkSecurityGroupSecurityRulesDetails: core.AddNetworkSecurityGroupSecurityRulesDetails{SecurityRules: details},
			})
			return r, r.RawResponse, err
		})
		if err != nil {
			return added, err
		}
		for _, rule := range r.SecurityRules {
			added = append(added, groupRuleFromSDK(rule))
		}
	}
	return added, nil
}

// UpdateSecurityGroupRules makes rules of a network security group, named by their IDs, what the fields say.
func (s *Network) UpdateSecurityGroupRules(ctx context.Context, id string, rules []SecurityRule) error {
	o := writeOp(ServiceVirtualNetwork, "UpdateNetworkSecurityGroupSecurityRules", "network_security_group_rules", "update")
	for batch := range slices.Chunk(rules, maxRulesPerCall) {
		details := make([]core.UpdateSecurityRuleDetails, len(batch))
		for i, rule := range batch {
			details[i] = updateRuleToSDK(rule)
		}
		_, err := invoke(ctx, s.client, o, func(ctx context.Context) (core.UpdateNetworkSecurityGroupSecurityRulesResponse, *http.Response, error) {
			r, err := s.client.network.UpdateNetworkSecurityGroupSecurityRules(ctx, core.UpdateNetworkSecurityGroupSecurityRulesRequest{
				NetworkSecurityGroupId:                         &id,
				UpdateNetworkSecurityGroupSecurityRulesDetails: core.UpdateNetworkSecurityGroupSecurityRulesDetails{SecurityRules: details},
			})
			return r, r.RawResponse, err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// RemoveSecurityGroupRules removes rules of a network security group by their IDs. A call that names a rule that is gone
// fails as a whole, so one whose answer was lost is not repeated either: read the rules first.
func (s *Network) RemoveSecurityGroupRules(ctx context.Context, id string, ruleIDs []string) error {
	o := writeOp(ServiceVirtualNetwork, "RemoveNetworkSecurityGroupSecurityRules", "network_security_group_rules", "delete")
	o.repeatable = false
	for batch := range slices.Chunk(ruleIDs, maxRulesPerCall) {
		_, err := invoke(ctx, s.client, o, func(ctx context.Context) (core.RemoveNetworkSecurityGroupSecurityRulesResponse, *http.Response, error) {
			r, err := s.client.network.RemoveNetworkSecurityGroupSecurityRules(ctx, core.RemoveNetworkSecurityGroupSecurityRulesRequest{
				NetworkSecurityGroupId:                         &id,
				RemoveNetworkSecurityGroupSecurityRulesDetails: core.RemoveNetworkSecurityGroupSecurityRulesDetails{SecurityRuleIds: batch},
			})
			return r, r.RawResponse, err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func securityGroupFromSDK(g core.NetworkSecurityGroup) *SecurityGroup {
	return &SecurityGroup{
		ID:            value(g.Id),
		CompartmentID: value(g.CompartmentId),
		VCNID:         value(g.VcnId),
		DisplayName:   value(g.DisplayName),
		State:         string(g.LifecycleState),
		TimeCreated:   timeValue(g.TimeCreated),
		Tags:          Tags{Freeform: g.FreeformTags, Defined: g.DefinedTags},
	}
}

// withIdentity completes a group with the OCID that was asked for, which the answer may lack, and the ETag of the answer.
func withIdentity(g *SecurityGroup, id string, etag *string) *SecurityGroup {
	if g.ID == "" {
		g.ID = id
	}
	g.ETag = value(etag)
	return g
}
