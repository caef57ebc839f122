// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package ocisim

import (
	"fmt"
	"net/netip"
	"strings"

	"github.com/oracle/oci-go-sdk/v65/common"
	"github.com/oracle/oci-go-sdk/v65/core"
)

var protocolNumbers = map[string]string{
	"": "all", "tcp": protocolTCP, "udp": protocolUDP, "icmp": protocolICMP, "icmpv6": protocolICMPv6,
}

// parts is a seeded rule in the parts that all models of rules have in common.
type parts struct {
	protocol, peer, peerType string
	icmp                     *core.IcmpOptions
	tcp                      *core.TcpOptions
	udp                      *core.UdpOptions
	description              *string
}

func (s seeder) parts(r SecurityRule) (parts, error) {
	p := parts{protocol: r.Protocol, peer: orElse(r.Peer, "0.0.0.0/0"), peerType: endCIDR}
	if number, ok := protocolNumbers[strings.ToLower(r.Protocol)]; ok {
		p.protocol = number
	}
	if r.Description != "" {
		p.description = common.String(r.Description)
	}
	destination, err := parsePorts(r.Ports)
	if err != nil {
		return p, err
	}
	source, err := parsePorts(r.SourcePorts)
	if err != nil {
		return p, err
	}
	switch {
	case p.protocol == protocolTCP && (destination != nil || source != nil):
		p.tcp = &core.TcpOptions{DestinationPortRange: destination, SourcePortRange: source}
	case p.protocol == protocolUDP && (destination != nil || source != nil):
		p.udp = &core.UdpOptions{DestinationPortRange: destination, SourcePortRange: source}
	case destination != nil || source != nil:
		return p, fmt.Errorf("seed: rule with ports of protocol %q", r.Protocol)
	}
	if r.ICMPType != nil {
		p.icmp = &core.IcmpOptions{Type: r.ICMPType, Code: r.ICMPCode}
	}
	if err := checkProtocol(p.protocol, p.icmp, p.tcp, p.udp); err != nil {
		return p, fmt.Errorf("seed: rule: %w", err)
	}
	if _, err := netip.ParsePrefix(p.peer); err == nil {
		return p, nil
	}
	if group, err := resolve(s.cl, securityGroups, p.peer); err == nil {
		p.peer, p.peerType = value(group.Id), endGroup
		return p, nil
	}
	p.peerType = endService
	return p, nil
}

func (s seeder) securityList(l SecurityList) (string, error) {
	id, err := s.newID(l.ID, securityLists.ocidType)
	if err != nil {
		return "", err
	}
	vcn, err := resolve(s.cl, vcns, l.VCN)
	if err != nil {
		return "", err
	}
	compartment, err := s.compartmentOf(l.Compartment, value(vcn.CompartmentId))
	if err != nil {
		return "", err
	}
	model := &core.SecurityList{
		Id: common.String(id), CompartmentId: common.String(compartment), VcnId: vcn.Id,
		DisplayName:    common.String(orElse(l.Name, "securitylist"+s.cl.nameSuffix())),
		LifecycleState: core.SecurityListLifecycleStateAvailable, TimeCreated: s.cl.sdkTime(),
		FreeformTags: l.freeform(), DefinedTags: l.defined(),
		IngressSecurityRules: []core.IngressSecurityRule{}, EgressSecurityRules: []core.EgressSecurityRule{},
	}
	for _, rule := range l.Ingress {
		p, err := s.listParts(rule)
		if err != nil {
			return "", err
		}
		model.IngressSecurityRules = append(model.IngressSecurityRules, core.IngressSecurityRule{
			Protocol: common.String(p.protocol), Source: common.String(p.peer),
			SourceType:  core.IngressSecurityRuleSourceTypeEnum(p.peerType),
			IcmpOptions: p.icmp, TcpOptions: p.tcp, UdpOptions: p.udp,
			IsStateless: common.Bool(rule.Stateless), Description: p.description,
		})
	}
	for _, rule := range l.Egress {
		p, err := s.listParts(rule)
		if err != nil {
			return "", err
		}
		model.EgressSecurityRules = append(model.EgressSecurityRules, core.EgressSecurityRule{
			Protocol: common.String(p.protocol), Destination: common.String(p.peer),
			DestinationType: core.EgressSecurityRuleDestinationTypeEnum(p.peerType),
			IcmpOptions:     p.icmp, TcpOptions: p.tcp, UdpOptions: p.udp,
			IsStateless: common.Bool(rule.Stateless), Description: p.description,
		})
	}
	securityLists.insert(s.cl, model)
	return id, nil
}

// listParts is parts for security lists, whose rules cannot name groups.
func (s seeder) listParts(r SecurityRule) (parts, error) {
	p, err := s.parts(r)
	if err == nil && p.peerType == endGroup {
		err = fmt.Errorf("seed: a rule of a security list cannot name the group %s", p.peer)
	}
	return p, err
}

func (s seeder) securityGroup(g SecurityGroup) (string, error) {
	id, err := s.newID(g.ID, securityGroups.ocidType)
	if err != nil {
		return "", err
	}
	vcn, err := resolve(s.cl, vcns, g.VCN)
	if err != nil {
		return "", err
	}
	compartment, err := s.compartmentOf(g.Compartment, value(vcn.CompartmentId))
	if err != nil {
		return "", err
	}
	securityGroups.insert(s.cl, &core.NetworkSecurityGroup{
		Id: common.String(id), CompartmentId: common.String(compartment), VcnId: vcn.Id,
		DisplayName:    common.String(orElse(g.Name, "networksecuritygroup"+s.cl.nameSuffix())),
		LifecycleState: core.NetworkSecurityGroupLifecycleStateAvailable, TimeCreated: s.cl.sdkTime(),
		FreeformTags: g.freeform(), DefinedTags: g.defined(),
	})
	for _, rule := range g.Ingress {
		if err := s.groupRule(id, rule, core.SecurityRuleDirectionIngress); err != nil {
			return "", err
		}
	}
	for _, rule := range g.Egress {
		if err := s.groupRule(id, rule, core.SecurityRuleDirectionEgress); err != nil {
			return "", err
		}
	}
	return id, nil
}

func (s seeder) groupRule(group string, r SecurityRule, direction core.SecurityRuleDirectionEnum) error {
	p, err := s.parts(r)
	if err != nil {
		return err
	}
	rule := core.SecurityRule{
		Direction: direction, Protocol: common.String(p.protocol), IsStateless: common.Bool(r.Stateless),
		IcmpOptions: p.icmp, TcpOptions: p.tcp, UdpOptions: p.udp, Description: p.description,
	}
	if direction == core.SecurityRuleDirectionIngress {
		rule.Source, rule.SourceType = common.String(p.peer), core.SecurityRuleSourceTypeEnum(p.peerType)
	} else {
		rule.Destination, rule.DestinationType = common.String(p.peer), core.SecurityRuleDestinationTypeEnum(p.peerType)
	}
	s.cl.insertGroupRule(group, &rule)
	return nil
}
