// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package oci

import "github.com/oracle/oci-go-sdk/v65/core"

// Values of SecurityRule.Direction.
const (
	DirectionIngress = "INGRESS"
	DirectionEgress  = "EGRESS"
)

// Values of SecurityRule.Protocol: IANA's numbers, as the API has them.
const (
	ProtocolTCP = "6"
	ProtocolUDP = "17"
)

// Values of SecurityRule.PeerType.
const (
	PeerCIDR    = "CIDR_BLOCK"
	PeerService = "SERVICE_CIDR_BLOCK"
	PeerGroup   = "NETWORK_SECURITY_GROUP" // rules of network security groups only
)

// SecurityRule is a rule of a security list or of a network security group.
//
// A rule has no identity of its own in a security list, and its fields cannot be changed one by one: what was read is
// remembered inside (origin) and goes back just as it came, whatever the fields say by then. To change a rule, replace it by
// a new one. The SDK drops fields that it does not know when it reads; what a later version of the API adds to rules is
// lost with the next update of the list, for this as for every other program built on this SDK.
type SecurityRule struct {
	ID        string // network security groups only: unique in its group
	Direction string
	Protocol  string // a number, or "all"
	Peer      string // the source of an ingress rule, the destination of an egress rule
	PeerType  string // absent in an answer: CIDR_BLOCK
	Stateless bool

	// Ports are the destination ports and SourcePorts the source ports, of TCP and UDP; the zero value is all of them.
	Ports, SourcePorts PortRange

	Description string
	// Invalid rules (network security groups only) name a group that does not exist any more.
	Invalid bool

	origin any // the SDK object this was read from
}

// PortRange is a range of ports, both ends included.
type PortRange struct{ Min, Max int }

// FromCloud says whether the rule was read, as opposed to made here.
func (r SecurityRule) FromCloud() bool { return r.origin != nil }

func ingressFromSDK(r core.IngressSecurityRule) SecurityRule {
	out := SecurityRule{
		Direction: DirectionIngress, Protocol: value(r.Protocol), Peer: value(r.Source), PeerType: orCIDR(string(r.SourceType)),
		Stateless: value(r.IsStateless), Description: value(r.Description), origin: &r,
	}
	out.Ports, out.SourcePorts = portsFromSDK(r.TcpOptions, r.UdpOptions)
	return out
}

func egressFromSDK(r core.EgressSecurityRule) SecurityRule {
	out := SecurityRule{
		Direction: DirectionEgress, Protocol: value(r.Protocol), Peer: value(r.Destination), PeerType: orCIDR(string(r.DestinationType)),
		Stateless: value(r.IsStateless), Description: value(r.Description), origin: &r,
	}
	out.Ports, out.SourcePorts = portsFromSDK(r.TcpOptions, r.UdpOptions)
	return out
}

func groupRuleFromSDK(r core.SecurityRule) SecurityRule {
	out := SecurityRule{
		ID: value(r.Id), Direction: string(r.Direction), Protocol: value(r.Protocol), Stateless: value(r.IsStateless),
		Peer: value(r.Source), PeerType: string(r.SourceType),
		Description: value(r.Description), Invalid: r.IsValid != nil && !*r.IsValid, origin: &r,
	}
	if r.Direction == core.SecurityRuleDirectionEgress {
		out.Peer, out.PeerType = value(r.Destination), string(r.DestinationType)
	}
	out.PeerType = orCIDR(out.PeerType)
	out.Ports, out.SourcePorts = portsFromSDK(r.TcpOptions, r.UdpOptions)
	return out
}

func orCIDR(peerType string) string {
	if peerType == "" {
		return PeerCIDR
	}
	return peerType
}

func portsFromSDK(tcp *core.TcpOptions, udp *core.UdpOptions) (destination, source PortRange) {
	switch {
	case tcp != nil:
		return portRangeFromSDK(tcp.DestinationPortRange), portRangeFromSDK(tcp.SourcePortRange)
	case udp != nil:
		return portRangeFromSDK(udp.DestinationPortRange), portRangeFromSDK(udp.SourcePortRange)
	}
	return PortRange{}, PortRange{}
}

func portRangeFromSDK(r *core.PortRange) PortRange {
	if r == nil {
		return PortRange{}
	}
	return PortRange{Min: value(r.Min), Max: value(r.Max)}
}

func ingressToSDK(r SecurityRule) core.IngressSecurityRule {
	if origin, ok := r.origin.(*core.IngressSecurityRule); ok {
		return *origin
	}
	tcp, udp := portsToSDK(r)
	return core.IngressSecurityRule{
		Protocol: &r.Protocol, Source: &r.Peer, SourceType: core.IngressSecurityRuleSourceTypeEnum(r.PeerType),
		IsStateless: &r.Stateless, TcpOptions: tcp, UdpOptions: udp, Description: present(r.Description),
	}
}

func egressToSDK(r SecurityRule) core.EgressSecurityRule {
	if origin, ok := r.origin.(*core.EgressSecurityRule); ok {
		return *origin
	}
	tcp, udp := portsToSDK(r)
	return core.EgressSecurityRule{
		Protocol: &r.Protocol, Destination: &r.Peer, DestinationType: core.EgressSecurityRuleDestinationTypeEnum(r.PeerType),
		IsStateless: &r.Stateless, TcpOptions: tcp, UdpOptions: udp, Description: present(r.Description),
	}
}

// addRuleToSDK is a new rule of a network security group, with the fields as they are: a rule that was read elsewhere has
// nothing that such a group could take over.
func addRuleToSDK(r SecurityRule) core.AddSecurityRuleDetails {
	tcp, udp := portsToSDK(r)
	out := core.AddSecurityRuleDetails{
		Direction: core.AddSecurityRuleDetailsDirectionEnum(r.Direction), Protocol: &r.Protocol, IsStateless: &r.Stateless,
		TcpOptions: tcp, UdpOptions: udp, Description: present(r.Description),
	}
	if r.Direction == DirectionEgress {
		out.Destination, out.DestinationType = &r.Peer, core.AddSecurityRuleDetailsDestinationTypeEnum(r.PeerType)
	} else {
		out.Source, out.SourceType = &r.Peer, core.AddSecurityRuleDetailsSourceTypeEnum(r.PeerType)
	}
	return out
}

// updateRuleToSDK lays the fields of a rule of a network security group over the rule as it was read.
func updateRuleToSDK(r SecurityRule) core.UpdateSecurityRuleDetails {
	tcp, udp := portsToSDK(r)
	out := core.UpdateSecurityRuleDetails{
		Id: &r.ID, Direction: core.UpdateSecurityRuleDetailsDirectionEnum(r.Direction), Protocol: &r.Protocol, IsStateless: &r.Stateless,
		IcmpOptions: originOf[core.SecurityRule](r.origin).IcmpOptions, TcpOptions: tcp, UdpOptions: udp, Description: present(r.Description),
	}
	if r.Direction == DirectionEgress {
		out.Destination, out.DestinationType = &r.Peer, core.UpdateSecurityRuleDetailsDestinationTypeEnum(r.PeerType)
	} else {
		out.Source, out.SourceType = &r.Peer, core.UpdateSecurityRuleDetailsSourceTypeEnum(r.PeerType)
	}
	return out
}

func portsToSDK(r SecurityRule) (*core.TcpOptions, *core.UdpOptions) {
	destination, source := portRangeToSDK(r.Ports), portRangeToSDK(r.SourcePorts)
	switch {
	case destination == nil && source == nil:
	case r.Protocol == ProtocolTCP:
		return &core.TcpOptions{DestinationPortRange: destination, SourcePortRange: source}, nil
	case r.Protocol == ProtocolUDP:
		return nil, &core.UdpOptions{DestinationPortRange: destination, SourcePortRange: source}
	}
	return nil, nil
}

func portRangeToSDK(r PortRange) *core.PortRange {
	if r == (PortRange{}) {
		return nil
	}
	return &core.PortRange{Min: &r.Min, Max: &r.Max}
}
