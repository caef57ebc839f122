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
	cl    *cloud
	later *[]func() error // what refers to resources that come later in the world
}

func newSeeder(cl *cloud) seeder { return seeder{cl, new([]func() error)} }

// finish does what had to wait for the rest of the world.
func (s seeder) finish() error {
	for _, step := range *s.later {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
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
	model := &core.Vcn{
		Id: common.String(id), CompartmentId: common.String(compartment), DisplayName: common.String(name),
		CidrBlock: common.String(v.CIDRs[0]), CidrBlocks: v.CIDRs, Ipv6CidrBlocks: v.IPv6CIDRs,
		LifecycleState: core.VcnLifecycleStateAvailable, TimeCreated: s.cl.sdkTime(),
		FreeformTags: v.freeform(), DefinedTags: v.defined(),
	}
	if v.DNSLabel != "" {
		model.DnsLabel = common.String(v.DNSLabel)
		model.VcnDomainName = common.String(v.DNSLabel + ".oraclevcn.com")
	}
	s.cl.addVCNDefaults(model)
	vcns.insert(s.cl, model)
	*s.later = append(*s.later, func() error { return s.fillRouteTable(*model.DefaultRouteTableId, v.Routes) })
	return id, s.cl.defaultSecurityList(model)
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
	if _, err := netip.ParsePrefix(n.CIDR); err != nil {
		return "", fmt.Errorf("seed: subnet %s: %w", n.Name, err)
	}
	model := s.cl.newSubnet(id, compartment, vcn, n.CIDR, n.IPv6CIDR)
	model.DisplayName = common.String(orElse(n.Name, *model.DisplayName))
	model.ProhibitPublicIpOnVnic, model.ProhibitInternetIngress = common.Bool(n.Private), common.Bool(n.Private)
	model.FreeformTags, model.DefinedTags = n.freeform(), n.defined()
	if n.AvailabilityDomain != "" {
		model.AvailabilityDomain = common.String(n.AvailabilityDomain)
	}
	if n.DNSLabel != "" {
		model.labelDNS(&n.DNSLabel, vcn)
	}
	if model.SecurityListIds, err = s.securityListIDs(n.SecurityLists, vcn); err != nil {
		return "", err
	}
	if n.RouteTable != "" {
		table, err := resolve(s.cl, routeTables, n.RouteTable)
		if err != nil {
			return "", err
		}
		model.RouteTableId = table.Id
	}
	subnets.insert(s.cl, &model.Subnet)
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
