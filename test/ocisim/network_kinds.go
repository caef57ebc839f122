// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package ocisim

import (
	"github.com/oracle/oci-go-sdk/v65/core"
)

var vcns = newKind(kindInfo{
	ocidType: "vcn", label: "VCN", policy: "vcns", eventual: true,
}, func(v *core.Vcn) facets {
	return facets{
		id: value(v.Id), compartment: value(v.CompartmentId), name: value(v.DisplayName), state: string(v.LifecycleState),
	}
})

var subnets = newKind(kindInfo{
	ocidType: "subnet", label: "subnet", policy: "subnets", eventual: true, keep: []string{"cidrBlock", "prohibitPublicIpOnVnic"},
}, func(v *core.Subnet) facets {
	return facets{
		id: value(v.Id), compartment: value(v.CompartmentId), name: value(v.DisplayName),
		state: string(v.LifecycleState), domain: value(v.AvailabilityDomain),
		keys: append([]string{value(v.VcnId), usesRoutes(v.RouteTableId)}, v.SecurityListIds...),
	}
})

// vnics are listed by subnet, by the security groups that they are in, and by a route table of their own.
var vnics = newKind(kindInfo{
	ocidType: "vnic", label: "VNIC", policy: "vnics", eventual: true, keep: []string{"subnetId", "isPrimary", "privateIp"},
}, func(v *core.Vnic) facets {
	return facets{
		id: value(v.Id), compartment: value(v.CompartmentId), name: value(v.DisplayName),
		state: string(v.LifecycleState), domain: value(v.AvailabilityDomain),
		keys: append([]string{value(v.SubnetId), usesRoutes(v.RouteTableId)}, v.NsgIds...),
	}
})

// privateIPs are listed by VNIC and by subnet, and found by address.
var privateIPs = newKind(kindInfo{
	ocidType: "privateip", label: "private IP", policy: "private-ips", eventual: true, keep: []string{"id", "ipAddress"},
}, func(v *core.PrivateIp) facets {
	return facets{
		id: value(v.Id), compartment: value(v.CompartmentId), name: value(v.DisplayName),
		domain: value(v.AvailabilityDomain), keys: []string{value(v.VnicId), value(v.SubnetId), addressKey(value(v.IpAddress)), usesRoutes(v.RouteTableId)},
	}
})

// ipv6s are listed by VNIC and by subnet, and found by address.
var ipv6s = newKind(kindInfo{
	ocidType: "ipv6", label: "IPv6 address", policy: "ipv6s", eventual: true,
}, func(v *core.Ipv6) facets {
	return facets{
		id: value(v.Id), compartment: value(v.CompartmentId), name: value(v.DisplayName),
		state: string(v.LifecycleState), keys: []string{value(v.VnicId), value(v.SubnetId), addressKey(value(v.IpAddress)), usesRoutes(v.RouteTableId)},
	}
})

// addressKey is the key under which an address is found.
func addressKey(address string) string { return "address:" + address }

// publicIPs are found by address and by the private address that they are assigned to.
var publicIPs = newKind(kindInfo{
	ocidType: "publicip", label: "public IP", policy: "public-ips", eventual: true,
	keep: []string{"id", "ipAddress", "lifecycleState"},
}, func(v *core.PublicIp) facets {
	return facets{
		id: value(v.Id), compartment: value(v.CompartmentId), name: value(v.DisplayName),
		state: string(v.LifecycleState), domain: value(v.AvailabilityDomain),
		keys: []string{addressKey(value(v.IpAddress)), value(v.AssignedEntityId)},
	}
})

var securityLists = newKind(kindInfo{
	ocidType: "securitylist", label: "security list", policy: "security-lists", eventual: true,
}, func(v *core.SecurityList) facets {
	return facets{
		id: value(v.Id), compartment: value(v.CompartmentId), name: value(v.DisplayName),
		state: string(v.LifecycleState), keys: []string{value(v.VcnId)},
	}
})

var securityGroups = newKind(kindInfo{
	ocidType: "networksecuritygroup", label: "network security group", policy: "network-security-groups", eventual: true,
}, func(v *core.NetworkSecurityGroup) facets {
	return facets{
		id: value(v.Id), compartment: value(v.CompartmentId), name: value(v.DisplayName),
		state: string(v.LifecycleState), keys: []string{value(v.VcnId)},
	}
})

// groupRule is a rule of a network security group. Its identifier is unique only within the group.
type groupRule struct {
	group string
	rule  core.SecurityRule
}

// groupRules are listed by their group, and under referenceKey by the group that they name as source or destination.
var groupRules = newKind(kindInfo{
	label: "security rule", policy: "network-security-groups",
	render: func(v any) any {
		if g, ok := v.(*groupRule); ok {
			return g.rule
		}
		return v
	},
}, func(v *groupRule) facets {
	f := facets{id: ruleKey(v.group, value(v.rule.Id)), keys: []string{v.group}}
	if v.rule.SourceType == core.SecurityRuleSourceTypeNetworkSecurityGroup {
		f.keys = append(f.keys, referenceKey(value(v.rule.Source)))
	}
	if v.rule.DestinationType == core.SecurityRuleDestinationTypeNetworkSecurityGroup {
		f.keys = append(f.keys, referenceKey(value(v.rule.Destination)))
	}
	return f
})

func ruleKey(group, rule string) string { return group + "/" + rule }

func referenceKey(group string) string { return "rules naming " + group }
