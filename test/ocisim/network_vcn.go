// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package ocisim

import (
	"fmt"
	"net/http"
	"net/netip"
	"regexp"

	"github.com/oracle/oci-go-sdk/v65/common"
	"github.com/oracle/oci-go-sdk/v65/core"
)

// dhcpOptions are listed by VCN. Only the defaults of VCNs exist.
var dhcpOptions = newKind(kindInfo{
	ocidType: "dhcpoptions", label: "DHCP options", policy: "dhcp-options", eventual: true,
}, func(v *core.DhcpOptions) facets {
	return facets{
		id: value(v.Id), compartment: value(v.CompartmentId), name: value(v.DisplayName),
		state: string(v.LifecycleState), keys: []string{value(v.VcnId)},
	}
})

// dnsLabel is what the DNS label of a VCN or a subnet may be.
var dnsLabel = regexp.MustCompile(`^[a-zA-Z][a-zA-Z0-9]{0,14}$`)

// vcnLimit is the service limit that VCNs count on.
const vcnLimit = "vcn-count"

func vcnOperations() []Operation {
	create := networkOperation("CreateVcn", http.MethodPost, "/vcns", "", Manage, createVCN)
	create.Resource, create.RetryToken = vcns.policy, true
	create.Partial = "no prefixes of one's own, unique local prefixes and security attributes"
	update := networkOperation("UpdateVcn", http.MethodPut, "/vcns/{vcnId}", "", Manage, updateVCN)
	update.Partial = "no security attributes"
	remove := networkOperation("DeleteVcn", http.MethodDelete, "/vcns/{vcnId}", "", Manage, deleteVCN)
	for _, o := range []*Operation{&update, &remove} {
		o.Target, o.IfMatch = vcns.kindInfo, true
	}
	return []Operation{
		create, update, remove,
		networkGet("GetDhcpOptions", "/dhcps/{dhcpId}", dhcpOptions.kindInfo),
		networkList("ListDhcpOptions", "/dhcps",
			"compartmentId*,limit,page,vcnId,displayName,sortBy,sortOrder,lifecycleState", dhcpOptions.kindInfo),
	}
}

func createVCN(c *call) (*answer, error) {
	d, err := decode[core.CreateVcnDetails](c)
	if err != nil {
		return nil, err
	}
	if err := c.createIn(value(d.CompartmentId)); err != nil {
		return nil, err
	}
	blocks := d.CidrBlocks
	switch {
	case d.CidrBlock != nil && len(blocks) > 0:
		return nil, errInvalid("A VCN has either cidrBlock or cidrBlocks, not both.")
	case d.CidrBlock != nil:
		blocks = []string{*d.CidrBlock}
	case len(blocks) == 0:
		return nil, errMissing("cidrBlocks")
	}
	if err := c.checkVCN(d, blocks); err != nil {
		return nil, err
	}
	v := &core.Vcn{
		Id: common.String(c.newOCID(vcns.ocidType)), CompartmentId: d.CompartmentId,
		DisplayName: common.String(orElse(value(d.DisplayName), "vcn"+c.nameSuffix())),
		CidrBlock:   common.String(blocks[0]), CidrBlocks: blocks,
		LifecycleState: core.VcnLifecycleStateProvisioning, TimeCreated: c.sdkTime(),
		FreeformTags: map[string]string{}, DefinedTags: map[string]map[string]interface{}{},
	}
	if value(d.IsIpv6Enabled) && (d.IsOracleGuaAllocationEnabled == nil || *d.IsOracleGuaAllocationEnabled) {
		v.Ipv6CidrBlocks = []string{c.nextGUA()}
	}
	setTags(&v.FreeformTags, &v.DefinedTags, d.FreeformTags, d.DefinedTags)
	if d.DnsLabel != nil {
		v.DnsLabel, v.VcnDomainName = d.DnsLabel, common.String(*d.DnsLabel+".oraclevcn.com")
	}
	c.addVCNDefaults(v)
	res := vcns.insert(c.cloud, v)
	if err := c.defaultSecurityList(v); err != nil {
		return nil, err
	}
	provision(c, vcns, value(v.Id), "vcn.create")
	return c.created(res), nil
}

func (c *call) checkVCN(d *core.CreateVcnDetails, blocks []string) error {
	if err := checkName(d.DisplayName); err != nil {
		return err
	}
	if d.DnsLabel != nil {
		if err := checkPattern("dnsLabel", *d.DnsLabel, dnsLabel); err != nil {
			return err
		}
	}
	for i, block := range blocks {
		prefix, err := parseBlock(block, 16, 30)
		if err != nil {
			return err
		}
		for _, other := range blocks[:i] {
			if p, err := netip.ParsePrefix(other); err == nil && p.Overlaps(prefix) {
				return c.rule(BlocksOverlap, block, "the VCN itself", other)
			}
		}
	}
	limit, limited := c.behaviour.ServiceLimits[vcnLimit]
	if limited && len(c.store.under(vcns.kindInfo, "")) >= limit {
		return errLimit("The following service limits were exceeded: %s. Request a service limit increase from the service limits page in the console.", vcnLimit)
	}
	return nil
}

// parseBlock reads an IPv4 block whose prefix length is within bounds.
func parseBlock(block string, least, most int) (netip.Prefix, error) {
	prefix, err := netip.ParsePrefix(block)
	switch {
	case err != nil || !prefix.Addr().Is4() || prefix.Masked() != prefix:
		return prefix, errInvalid("The requested CIDR %s is invalid: it is not an IPv4 CIDR block.", block)
	case prefix.Bits() < least || prefix.Bits() > most:
		return prefix, errInvalid("The requested CIDR %s is invalid: its prefix length must be between /%d and /%d.", block, least, most)
	}
	return prefix, nil
}

// nextGUA is the global IPv6 prefix of one more VCN, from the range for documentation.
func (cl *cloud) nextGUA() string {
	taken := map[string]bool{}
	for v := range vcns.under(cl, "") {
		for _, block := range v.Ipv6CidrBlocks {
			taken[block] = true
		}
	}
	for n := 1; ; n++ {
		if block := fmt.Sprintf("2001:db8:%x:%x00::/56", n/256, n%256); !taken[block] {
			return block
		}
	}
}

// addVCNDefaults gives a VCN the route table and the DHCP options that it comes with, and names its security list.
func (cl *cloud) addVCNDefaults(v *core.Vcn) {
	v.DefaultSecurityListId = common.String(cl.newOCID(securityLists.ocidType))
	v.DefaultRouteTableId = common.String(cl.newOCID(routeTables.ocidType))
	v.DefaultDhcpOptionsId = common.String(cl.newOCID(dhcpOptions.ocidType))
	routeTables.insert(cl, cl.newRouteTable(*v.DefaultRouteTableId, *v.CompartmentId, *v.Id, "Default Route Table for "+*v.DisplayName))
	options := &core.DhcpOptions{
		Id: v.DefaultDhcpOptionsId, CompartmentId: v.CompartmentId, VcnId: v.Id, TimeCreated: cl.sdkTime(),
		DisplayName: common.String("Default DHCP Options for " + *v.DisplayName), LifecycleState: core.DhcpOptionsLifecycleStateAvailable,
		Options:      []core.DhcpOption{core.DhcpDnsOption{ServerType: core.DhcpDnsOptionServerTypeVcnlocalplusinternet}},
		FreeformTags: map[string]string{}, DefinedTags: map[string]map[string]interface{}{},
	}
	if v.VcnDomainName != nil {
		options.Options = append(options.Options, core.DhcpSearchDomainOption{SearchDomainNames: []string{*v.VcnDomainName}})
	}
	dhcpOptions.insert(cl, options)
}

// defaultSecurityList makes the security list that a VCN comes with.
func (cl *cloud) defaultSecurityList(v *core.Vcn) error {
	_, err := newSeeder(cl).securityList(SecurityList{
		ID: *v.DefaultSecurityListId, Compartment: *v.CompartmentId, VCN: *v.Id, Name: "Default Security List for " + *v.DisplayName,
		Ingress: defaultIngress(*v.CidrBlock), Egress: []SecurityRule{{}},
	})
	return err
}

func updateVCN(c *call) (*answer, error) {
	d, err := decode[core.UpdateVcnDetails](c)
	if err != nil {
		return nil, err
	}
	if err := firstOf(c.available(), checkName(d.DisplayName)); err != nil {
		return nil, err
	}
	vcns.update(c.cloud, c.target.id, func(v *core.Vcn) {
		replace(&v.DisplayName, d.DisplayName)
		setTags(&v.FreeformTags, &v.DefinedTags, d.FreeformTags, d.DefinedTags)
	})
	return c.show(c.target), nil
}

func firstOf(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// deleteVCN removes a VCN that is empty but for its defaults, which go with it.
func deleteVCN(c *call) (*answer, error) {
	cl, id := c.cloud, c.target.id
	v := vcns.of(c.target)
	defaults := []string{value(v.DefaultSecurityListId), value(v.DefaultRouteTableId), value(v.DefaultDhcpOptionsId)}
	for _, kind := range []*kindInfo{
		subnets.kindInfo, internetGateways.kindInfo, natGateways.kindInfo, serviceGateways.kindInfo, securityGroups.kindInfo,
		routeTables.kindInfo, securityLists.kindInfo, dhcpOptions.kindInfo,
	} {
		for _, res := range c.store.under(kind, id) {
			if !contains(defaults, res.id) {
				if err := c.inUse(kind.label, res.id); err != nil {
					return nil, err
				}
			}
		}
	}
	return terminate(c, vcns, "vcn.delete", func() {
		for _, one := range defaults {
			if res := cl.store.byID[one]; res != nil {
				cl.store.remove(res)
			}
		}
	})
}
