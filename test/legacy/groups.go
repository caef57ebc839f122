// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package legacy

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/oracle/oci-go-sdk/v65/common"
	"github.com/oracle/oci-go-sdk/v65/core"
	v1 "k8s.io/api/core/v1"
)

// groupTags are those of the network security group of a Service. That release knows it by having just these.
func groupTags(svc *v1.Service) map[string]string {
	return map[string]string{"CreatedBy": "CCM", "ServiceUid": string(svc.UID)}
}

func groupName(svc *v1.Service) string {
	name := svc.Namespace + "/" + svc.Name + "/" + string(svc.UID) + "/nsg"
	return name[:min(len(name), 255)]
}

// ruleMark is the description of the rules of a Service in network security groups.
func ruleMark(svc *v1.Service) string { return "service-uid-" + string(svc.UID) }

func backendGroups(svc *v1.Service) []string {
	return groupsOf(svc, prefixCommon+"oci-backend-network-security-group")
}

// findGroup finds the network security group of a Service: among those of its balancer, else by its name.
func (r *Release) findGroup(svc *v1.Service, attached []string) (core.NetworkSecurityGroup, error) {
	for _, g := range r.Region.SecurityGroups() {
		ours := g.LifecycleState == core.NetworkSecurityGroupLifecycleStateAvailable && maps.Equal(g.FreeformTags, groupTags(svc))
		if ours && (slices.Contains(attached, *g.Id) || *g.DisplayName == groupName(svc)) {
			return g, nil
		}
	}
	return core.NetworkSecurityGroup{}, fmt.Errorf("network security group of %s: %w", svc.Name, ErrNotFound)
}

// makeGroup makes the network security group of a Service with its rules, and those of the groups of the nodes.
func (r *Release) makeGroup(ctx context.Context, svc *v1.Service, s spec) (string, error) {
	client, err := r.network()
	if err != nil {
		return "", err
	}
	made, err := client.CreateNetworkSecurityGroup(ctx, core.CreateNetworkSecurityGroupRequest{
		OpcRetryToken: common.String(string(svc.UID)),
		CreateNetworkSecurityGroupDetails: core.CreateNetworkSecurityGroupDetails{
			CompartmentId: &s.compartment, VcnId: &r.VCN, DisplayName: common.String(groupName(svc)), FreeformTags: groupTags(svc),
		},
	})
	if err != nil {
		return "", err
	}
	for _, id := range backendGroups(svc) {
		if err := r.tagBackendGroup(ctx, client, id); err != nil {
			return "", err
		}
	}
	for id, rules := range s.groupRules(svc, *made.Id) {
		var details []core.AddSecurityRuleDetails
		for _, x := range rules {
			details = append(details, core.AddSecurityRuleDetails{
				Direction: core.AddSecurityRuleDetailsDirectionEnum(x.Direction), Protocol: x.Protocol, Description: x.Description, IsStateless: x.IsStateless, TcpOptions: x.TcpOptions,
				Source: x.Source, SourceType: core.AddSecurityRuleDetailsSourceTypeEnum(x.SourceType),
				Destination: x.Destination, DestinationType: core.AddSecurityRuleDetailsDestinationTypeEnum(x.DestinationType),
			})
		}
		for batch := range slices.Chunk(details, 25) {
			_, err := client.AddNetworkSecurityGroupSecurityRules(ctx, core.AddNetworkSecurityGroupSecurityRulesRequest{
				NetworkSecurityGroupId: &id, AddNetworkSecurityGroupSecurityRulesDetails: core.AddNetworkSecurityGroupSecurityRulesDetails{SecurityRules: batch},
			})
			if err != nil {
				return "", err
			}
		}
	}
	return *made.Id, nil
}

func (r *Release) tagBackendGroup(ctx context.Context, client core.VirtualNetworkClient, id string) error {
	read, err := client.GetNetworkSecurityGroup(ctx, core.GetNetworkSecurityGroupRequest{NetworkSecurityGroupId: &id})
	if err != nil || read.FreeformTags["ManagedBy"] == "CCM" {
		return err
	}
	tags := map[string]string{"ManagedBy": "CCM"}
	maps.Copy(tags, read.FreeformTags)
	_, err = client.UpdateNetworkSecurityGroup(ctx, core.UpdateNetworkSecurityGroupRequest{
		NetworkSecurityGroupId: &id, IfMatch: read.Etag, UpdateNetworkSecurityGroupDetails: core.UpdateNetworkSecurityGroupDetails{FreeformTags: tags},
	})
	return err
}

// groupRules are the rules of a Service by network security group; managed is its own. All are for TCP, whatever the protocol
// of the port is.
func (s spec) groupRules(svc *v1.Service, managed string) map[string][]core.SecurityRule {
	out := map[string][]core.SecurityRule{}
	rule := func(direction core.SecurityRuleDirectionEnum, peer string, port int) core.SecurityRule {
		x := core.SecurityRule{
			Direction: direction, Protocol: common.String("6"), Description: common.String(ruleMark(svc)), IsStateless: common.Bool(false), TcpOptions: tcpTo(port),
		}
		kind := "CIDR_BLOCK"
		if peer == managed || slices.Contains(backendGroups(svc), peer) {
			kind = "NETWORK_SECURITY_GROUP"
		}
		if direction == core.SecurityRuleDirectionIngress {
			x.Source, x.SourceType = &peer, core.SecurityRuleSourceTypeEnum(kind)
		} else {
			x.Destination, x.DestinationType = &peer, core.SecurityRuleDestinationTypeEnum(kind)
		}
		return x
	}
	add := func(id string, x core.SecurityRule) {
		if !slices.ContainsFunc(out[id], func(y core.SecurityRule) bool { return sameGroupRule(x, y) }) {
			out[id] = append(out[id], x)
		}
	}
	for _, p := range s.ports {
		for _, source := range s.sources {
			add(managed, rule(core.SecurityRuleDirectionIngress, source, p.number))
		}
		for _, backend := range backendGroups(svc) {
			for _, to := range []int{p.nodePort, s.healthPort} {
				add(managed, rule(core.SecurityRuleDirectionEgress, backend, to))
				add(backend, rule(core.SecurityRuleDirectionIngress, managed, to))
			}
			for _, source := range s.sources {
				if s.preserve {
					add(backend, rule(core.SecurityRuleDirectionIngress, source, p.nodePort))
				}
			}
		}
	}
	return out
}

// ownRules are the rules of a network security group with the description of a Service.
func (r *Release) ownRules(svc *v1.Service, id string) []core.SecurityRule {
	return slices.DeleteFunc(r.Region.GroupRules(id), func(x core.SecurityRule) bool {
		return x.Description == nil || *x.Description != ruleMark(svc)
	})
}

func sameGroupRule(a, b core.SecurityRule) bool { return groupRuleText(a) == groupRuleText(b) }

func groupRuleText(x core.SecurityRule) string {
	peer := ""
	for _, p := range []*string{x.Source, x.Destination} {
		if p != nil {
			peer += *p
		}
	}
	port, _ := tcpPort(x.TcpOptions)
	return fmt.Sprintf("%s protocol %s port %d %s", x.Direction, *x.Protocol, port, peer)
}

// closeGroups removes the rules of a Service from the groups of the nodes.
func (r *Release) closeGroups(ctx context.Context, svc *v1.Service) error {
	client, err := r.network()
	if err != nil {
		return err
	}
	for _, id := range backendGroups(svc) {
		var ids []string
		for _, x := range r.ownRules(svc, id) {
			ids = append(ids, *x.Id)
		}
		for batch := range slices.Chunk(ids, 25) {
			_, err := client.RemoveNetworkSecurityGroupSecurityRules(ctx, core.RemoveNetworkSecurityGroupSecurityRulesRequest{
				NetworkSecurityGroupId: &id, RemoveNetworkSecurityGroupSecurityRulesDetails: core.RemoveNetworkSecurityGroupSecurityRulesDetails{SecurityRuleIds: batch},
			})
			if err != nil {
				return err
			}
		}
	}
	return nil
}
