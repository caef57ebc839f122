// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package ocisim

import (
	"fmt"
	"net/netip"
	"strconv"
	"strings"

	"github.com/oracle/oci-go-sdk/v65/common"
	"github.com/oracle/oci-go-sdk/v65/core"
	"github.com/oracle/oci-go-sdk/v65/identity"
)

// seeder adds seeded resources.
type seeder struct {
	cl *cloud
}

// newID returns the wanted identifier, or makes one.
func (s seeder) newID(wanted, resourceType string) (string, error) {
	if wanted == "" {
		return s.cl.newOCID(resourceType), nil
	}
	if s.cl.store.byID[wanted] != nil {
		return "", fmt.Errorf("seed: %s exists already", wanted)
	}
	return wanted, nil
}

// resolve finds a resource by OCID or name; an empty reference means the first one.
func resolve[T any](cl *cloud, k kind[T], reference string) (*T, error) {
	for _, res := range cl.store.under(k.kindInfo, "") {
		if reference == "" || res.id == reference || res.name == reference {
			return k.of(res), nil
		}
	}
	return nil, fmt.Errorf("seed: no %s %q", k.label, reference)
}

// compartmentOf resolves a compartment; an empty reference means the fallback, and without one the first compartment
// that is not the tenancy.
func (s seeder) compartmentOf(reference, fallback string) (string, error) {
	if reference == "" {
		reference = fallback
	}
	if reference == "" {
		reference = s.cl.options.Tenancy
		if all := s.cl.store.under(compartments.kindInfo, ""); len(all) > 1 {
			reference = all[1].id
		}
	}
	if compartments.lookup(s.cl, reference) != nil {
		return reference, nil
	}
	v, err := resolve(s.cl, compartments, reference)
	if err != nil {
		return "", err
	}
	return value(v.Id), nil
}

func (s seeder) compartment(c Compartment) (string, error) {
	id, err := s.newID(c.ID, "compartment")
	if err != nil {
		return "", err
	}
	parent, err := s.compartmentOf(c.Parent, s.cl.options.Tenancy)
	if err != nil {
		return "", err
	}
	compartments.insert(s.cl, &identity.Compartment{
		Id: common.String(id), CompartmentId: common.String(parent), Name: common.String(c.Name),
		Description: common.String(c.Name), TimeCreated: s.cl.sdkTime(), LifecycleState: identity.CompartmentLifecycleStateActive,
	})
	return id, nil
}

// freeform and defined are never nil: the services answer empty maps.
func (t Tags) freeform() map[string]string {
	if t.Freeform == nil {
		return map[string]string{}
	}
	return t.Freeform
}

func (t Tags) defined() map[string]map[string]interface{} {
	if t.Defined == nil {
		return map[string]map[string]interface{}{}
	}
	return t.Defined
}

func (s seeder) vcn(v VCN) (string, error) {
	id, err := s.newID(v.ID, vcns.ocidType)
	if err != nil {
		return "", err
	}
	compartment, err := s.compartmentOf(v.Compartment, "")
	if err != nil {
		return "", err
	}
	if len(v.CIDRs) == 0 {
		v.CIDRs = []string{"10.0.0.0/16"}
	}
	name := orElse(v.Name, "vcn"+s.cl.nameSuffix())
	listID := s.cl.newOCID(securityLists.ocidType)
	model := &core.Vcn{
		Id: common.String(id), CompartmentId: common.String(compartment), DisplayName: common.String(name),
		CidrBlock: common.String(v.CIDRs[0]), CidrBlocks: v.CIDRs, Ipv6CidrBlocks: v.IPv6CIDRs,
		LifecycleState: core.VcnLifecycleStateAvailable, TimeCreated: s.cl.sdkTime(),
		DefaultSecurityListId: common.String(listID),
		DefaultRouteTableId:   common.String(s.cl.newOCID("routetable")),
		DefaultDhcpOptionsId:  common.String(s.cl.newOCID("dhcpoptions")),
		FreeformTags:          v.freeform(), DefinedTags: v.defined(),
	}
	if v.DNSLabel != "" {
		model.DnsLabel = common.String(v.DNSLabel)
		model.VcnDomainName = common.String(v.DNSLabel + ".oraclevcn.com")
	}
	vcns.insert(s.cl, model)
	_, err = s.securityList(SecurityList{
		ID: listID, VCN: id, Name: "Default Security List for " + name,
		Ingress: defaultIngress(v.CIDRs[0]), Egress: []SecurityRule{{}},
	})
	return id, err
}

// defaultIngress are the rules of the security list that every VCN starts with.
func defaultIngress(cidr string) []SecurityRule {
	unreachable, fragmentation := 3, 4
	return []SecurityRule{
		{Protocol: "tcp", Ports: "22"},
		{Protocol: "icmp", ICMPType: &unreachable, ICMPCode: &fragmentation},
		{Protocol: "icmp", ICMPType: &unreachable, Peer: cidr},
	}
}

func (s seeder) subnet(n Subnet) (string, error) {
	id, err := s.newID(n.ID, subnets.ocidType)
	if err != nil {
		return "", err
	}
	vcn, err := resolve(s.cl, vcns, n.VCN)
	if err != nil {
		return "", err
	}
	compartment, err := s.compartmentOf(n.Compartment, value(vcn.CompartmentId))
	if err != nil {
		return "", err
	}
	prefix, err := netip.ParsePrefix(n.CIDR)
	if err != nil {
		return "", fmt.Errorf("seed: subnet %s: %w", n.Name, err)
	}
	model := &core.Subnet{
		Id: common.String(id), CompartmentId: common.String(compartment), VcnId: vcn.Id,
		DisplayName: common.String(orElse(n.Name, "subnet"+s.cl.nameSuffix())),
		CidrBlock:   common.String(n.CIDR), Ipv4CidrBlocks: []string{n.CIDR},
		VirtualRouterIp: common.String(prefix.Masked().Addr().Next().String()), VirtualRouterMac: common.String(s.cl.macAddress()),
		RouteTableId: vcn.DefaultRouteTableId, DhcpOptionsId: vcn.DefaultDhcpOptionsId,
		LifecycleState: core.SubnetLifecycleStateAvailable, TimeCreated: s.cl.sdkTime(),
		ProhibitPublicIpOnVnic: common.Bool(n.Private), ProhibitInternetIngress: common.Bool(n.Private),
		FreeformTags: n.freeform(), DefinedTags: n.defined(),
	}
	if n.AvailabilityDomain != "" {
		model.AvailabilityDomain = common.String(n.AvailabilityDomain)
	}
	if n.IPv6CIDR != "" {
		model.Ipv6CidrBlock, model.Ipv6CidrBlocks = common.String(n.IPv6CIDR), []string{n.IPv6CIDR}
	}
	if n.DNSLabel != "" {
		model.DnsLabel = common.String(n.DNSLabel)
		if vcn.DnsLabel != nil {
			model.SubnetDomainName = common.String(n.DNSLabel + "." + *vcn.DnsLabel + ".oraclevcn.com")
		}
	}
	if model.SecurityListIds, err = s.securityListIDs(n.SecurityLists, vcn); err != nil {
		return "", err
	}
	subnets.insert(s.cl, model)
	return id, nil
}

// maxSecurityLists is a documented limit.
const maxSecurityLists = 5

func (s seeder) securityListIDs(references []string, vcn *core.Vcn) ([]string, error) {
	if len(references) == 0 {
		return []string{value(vcn.DefaultSecurityListId)}, nil
	}
	if len(references) > maxSecurityLists {
		return nil, fmt.Errorf("seed: a subnet has at most %d security lists", maxSecurityLists)
	}
	ids := make([]string, 0, len(references))
	for _, reference := range references {
		list, err := resolve(s.cl, securityLists, reference)
		if err != nil {
			return nil, err
		}
		ids = append(ids, value(list.Id))
	}
	return ids, nil
}

func (s seeder) publicIP(p PublicIP) (string, error) {
	id, err := s.newID(p.ID, publicIPs.ocidType)
	if err != nil {
		return "", err
	}
	compartment, err := s.compartmentOf(p.Compartment, "")
	if err != nil {
		return "", err
	}
	address := p.Address
	if address == Auto {
		address = ""
	}
	_, err = s.cl.addPublicIP(publicIPSpec{
		id: id, compartment: compartment, name: p.Name, address: address, reserved: true,
		state: core.PublicIpLifecycleStateAvailable,
	})
	if err != nil {
		return "", fmt.Errorf("seed: public IP %s: %w", p.Name, err)
	}
	publicIPs.update(s.cl, id, func(v *core.PublicIp) { v.FreeformTags, v.DefinedTags = p.freeform(), p.defined() })
	return id, nil
}

// parsePorts reads "443" or "30000-32767".
func parsePorts(text string) (*core.PortRange, error) {
	if text == "" {
		return nil, nil
	}
	least, most, span := strings.Cut(text, "-")
	if !span {
		most = least
	}
	from, err := strconv.Atoi(least)
	if err != nil {
		return nil, fmt.Errorf("seed: ports %q: %w", text, err)
	}
	to, err := strconv.Atoi(most)
	if err != nil {
		return nil, fmt.Errorf("seed: ports %q: %w", text, err)
	}
	r := &core.PortRange{Min: common.Int(from), Max: common.Int(to)}
	if err := checkPorts(r); err != nil {
		return nil, fmt.Errorf("seed: %w", err)
	}
	return r, nil
}
