// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package ocisim

import (
	"net/http"
	"net/netip"
	"slices"

	"github.com/oracle/oci-go-sdk/v65/common"
	"github.com/oracle/oci-go-sdk/v65/core"
)

func subnetOperations() []Operation {
	const path = "/subnets/{subnetId}"
	create := networkOperation("CreateSubnet", http.MethodPost, "/subnets", "", Manage, createSubnet)
	create.Resource, create.RetryToken, create.Partial = subnets.policy, true, "one IPv4 block and one IPv6 prefix"
	update := networkOperation("UpdateSubnet", http.MethodPut, path, "", Manage, updateSubnet)
	update.Partial = "CIDR blocks cannot change"
	remove := networkOperation("DeleteSubnet", http.MethodDelete, path, "", Manage, deleteSubnet)
	for _, o := range []*Operation{&update, &remove} {
		o.Target, o.IfMatch = subnets.kindInfo, true
	}
	return []Operation{create, update, remove}
}

func createSubnet(c *call) (*answer, error) {
	d, err := decode[core.CreateSubnetDetails](c)
	if err != nil {
		return nil, err
	}
	if err := c.createIn(value(d.CompartmentId)); err != nil {
		return nil, err
	}
	vcn, err := vcns.related(c, value(d.VcnId))
	if err != nil {
		return nil, err
	}
	if len(d.Ipv4CidrBlocks) > 1 || len(d.Ipv6CidrBlocks) > 1 {
		return nil, errInvalid("More than one CIDR block of a kind is not supported.")
	}
	block, sixth := value(d.CidrBlock), value(d.Ipv6CidrBlock)
	if len(d.Ipv4CidrBlocks) == 1 {
		block = d.Ipv4CidrBlocks[0]
	}
	if len(d.Ipv6CidrBlocks) == 1 {
		sixth = d.Ipv6CidrBlocks[0]
	}
	if block == "" {
		return nil, errMissing("cidrBlock")
	}
	if err := c.checkSubnet(d, vcn, block, sixth); err != nil {
		return nil, err
	}
	v := c.newSubnet(c.newOCID(subnets.ocidType), value(d.CompartmentId), vcn, block, sixth)
	v.DisplayName = common.String(orElse(value(d.DisplayName), *v.DisplayName))
	v.LifecycleState = core.SubnetLifecycleStateProvisioning
	private := value(d.ProhibitPublicIpOnVnic) || value(d.ProhibitInternetIngress)
	v.ProhibitPublicIpOnVnic, v.ProhibitInternetIngress = common.Bool(private), common.Bool(private)
	v.AvailabilityDomain = d.AvailabilityDomain
	v.labelDNS(d.DnsLabel, vcn)
	setTags(&v.FreeformTags, &v.DefinedTags, d.FreeformTags, d.DefinedTags)
	if v.SecurityListIds, err = c.subnetLists(d.SecurityListIds, vcn, v.SecurityListIds); err != nil {
		return nil, err
	}
	if v.RouteTableId, err = c.routeTable(d.RouteTableId, vcn, v.RouteTableId); err != nil {
		return nil, err
	}
	if v.DhcpOptionsId, err = c.subnetDHCP(d.DhcpOptionsId, vcn, v.DhcpOptionsId); err != nil {
		return nil, err
	}
	res := subnets.insert(c.cloud, &v.Subnet)
	provision(c, subnets, value(v.Id), "subnet.create")
	return c.created(res), nil
}

// subnetModel is a subnet while it is made.
type subnetModel struct{ core.Subnet }

// newSubnet is a subnet with the defaults of its VCN.
func (cl *cloud) newSubnet(id, compartment string, vcn *core.Vcn, block, sixth string) *subnetModel {
	v := &subnetModel{core.Subnet{
		Id: common.String(id), CompartmentId: common.String(compartment), VcnId: vcn.Id,
		DisplayName: common.String("subnet" + cl.nameSuffix()),
		CidrBlock:   common.String(block), Ipv4CidrBlocks: []string{block}, VirtualRouterMac: common.String(cl.macAddress()),
		RouteTableId: vcn.DefaultRouteTableId, DhcpOptionsId: vcn.DefaultDhcpOptionsId,
		SecurityListIds: []string{value(vcn.DefaultSecurityListId)},
		LifecycleState:  core.SubnetLifecycleStateAvailable, TimeCreated: cl.sdkTime(),
		FreeformTags: map[string]string{}, DefinedTags: map[string]map[string]interface{}{},
	}}
	if prefix, err := netip.ParsePrefix(block); err == nil {
		v.VirtualRouterIp = common.String(prefix.Masked().Addr().Next().String())
	}
	if prefix, err := netip.ParsePrefix(sixth); err == nil {
		v.Ipv6CidrBlock, v.Ipv6CidrBlocks = common.String(sixth), []string{sixth}
		v.Ipv6VirtualRouterIp = common.String(prefix.Masked().Addr().Next().String())
	}
	return v
}

// labelDNS gives a subnet its DNS label and, in a VCN that has one too, its domain.
func (v *subnetModel) labelDNS(label *string, vcn *core.Vcn) {
	if value(label) == "" {
		return
	}
	v.DnsLabel = label
	if vcn.DnsLabel != nil {
		v.SubnetDomainName = common.String(*label + "." + *vcn.DnsLabel + ".oraclevcn.com")
	}
}

func (c *call) checkSubnet(d *core.CreateSubnetDetails, vcn *core.Vcn, block, sixth string) error {
	prefix, err := parseBlock(block, 1, 30)
	if err != nil {
		return err
	}
	within := func(blocks []string, p netip.Prefix) bool {
		return slices.ContainsFunc(blocks, func(b string) bool {
			outer, err := netip.ParsePrefix(b)
			return err == nil && outer.Bits() <= p.Bits() && outer.Overlaps(p)
		})
	}
	if !within(vcn.CidrBlocks, prefix) {
		if err := c.rule(BlockOutsideVCN, block, value(vcn.Id)); err != nil {
			return err
		}
	}
	if sixth != "" {
		p, err := netip.ParsePrefix(sixth)
		if err != nil || !p.Addr().Is6() || p.Bits() != 64 || p.Masked() != p {
			return errInvalid("The requested CIDR %s is invalid: the IPv6 prefix of a subnet has a length of /64.", sixth)
		}
		if !within(vcn.Ipv6CidrBlocks, p) {
			if err := c.rule(BlockOutsideVCN, sixth, value(vcn.Id)); err != nil {
				return err
			}
		}
	}
	if d.AvailabilityDomain != nil && !contains(c.options.AvailabilityDomains, *d.AvailabilityDomain) {
		return errInvalid("availabilityDomain %s does not exist", *d.AvailabilityDomain)
	}
	if d.DnsLabel != nil {
		if err := checkPattern("dnsLabel", *d.DnsLabel, dnsLabel); err != nil {
			return err
		}
	}
	if err := checkName(d.DisplayName); err != nil {
		return err
	}
	return c.checkNeighbours(d, vcn, block, sixth)
}

// checkNeighbours compares a new subnet with the others of its VCN.
func (c *call) checkNeighbours(d *core.CreateSubnetDetails, vcn *core.Vcn, block, sixth string) error {
	for other := range subnets.under(c.cloud, value(vcn.Id)) {
		for mine, theirs := range map[string]string{block: value(other.CidrBlock), sixth: value(other.Ipv6CidrBlock)} {
			a, errA := netip.ParsePrefix(mine)
			b, errB := netip.ParsePrefix(theirs)
			if errA == nil && errB == nil && a.Overlaps(b) {
				if err := c.rule(BlocksOverlap, mine, "subnet "+value(other.Id), theirs); err != nil {
					return err
				}
			}
		}
		if d.DnsLabel != nil && value(other.DnsLabel) == *d.DnsLabel {
			if err := c.rule(DNSLabelInUse, *d.DnsLabel, value(other.Id)); err != nil {
				return err
			}
		}
	}
	return nil
}

// subnetLists checks the security lists that a request names for a subnet; none are the fallback.
func (c *call) subnetLists(ids []string, vcn *core.Vcn, fallback []string) ([]string, error) {
	if ids == nil {
		return fallback, nil
	}
	if len(ids) > maxSecurityLists {
		return nil, errInvalid("A subnet has at most %d security lists.", maxSecurityLists)
	}
	for _, id := range ids {
		list, err := securityLists.related(c, id)
		if err != nil {
			return nil, err
		}
		if value(list.VcnId) != value(vcn.Id) {
			return nil, errInvalid("The security list %s is not in the VCN %s.", id, value(vcn.Id))
		}
	}
	return ids, nil
}

func (c *call) subnetDHCP(id *string, vcn *core.Vcn, fallback *string) (*string, error) {
	if value(id) == "" {
		return fallback, nil
	}
	options, err := dhcpOptions.related(c, *id)
	if err != nil {
		return nil, err
	}
	if value(options.VcnId) != value(vcn.Id) {
		return nil, errInvalid("The DHCP options %s are not in the VCN %s.", *id, value(vcn.Id))
	}
	return id, nil
}

func updateSubnet(c *call) (*answer, error) {
	d, err := decode[core.UpdateSubnetDetails](c)
	if err != nil {
		return nil, err
	}
	now := subnets.of(c.target)
	if err := firstOf(c.available(), checkName(d.DisplayName)); err != nil {
		return nil, err
	}
	if d.CidrBlock != nil && *d.CidrBlock != value(now.CidrBlock) || d.Ipv6CidrBlock != nil && *d.Ipv6CidrBlock != value(now.Ipv6CidrBlock) ||
		d.Ipv6CidrBlocks != nil && !slices.Equal(d.Ipv6CidrBlocks, now.Ipv6CidrBlocks) {
		return nil, errInvalid("A change of the CIDR blocks of a subnet is not supported.")
	}
	vcn := vcns.find(c.cloud, value(now.VcnId))
	if vcn == nil { // somebody took it away past the API
		vcn = &core.Vcn{Id: now.VcnId}
	}
	table, err := c.routeTable(d.RouteTableId, vcn, now.RouteTableId)
	if err != nil {
		return nil, err
	}
	lists, err := c.subnetLists(d.SecurityListIds, vcn, now.SecurityListIds)
	if err != nil {
		return nil, err
	}
	options, err := c.subnetDHCP(d.DhcpOptionsId, vcn, now.DhcpOptionsId)
	if err != nil {
		return nil, err
	}
	subnets.update(c.cloud, c.target.id, func(v *core.Subnet) {
		replace(&v.DisplayName, d.DisplayName)
		v.RouteTableId, v.SecurityListIds, v.DhcpOptionsId = table, lists, options
		setTags(&v.FreeformTags, &v.DefinedTags, d.FreeformTags, d.DefinedTags)
	})
	return c.show(c.target), nil
}

// deleteSubnet refuses to delete a subnet with VNICs, those that linger included, in the words that users saw.
func deleteSubnet(c *call) (*answer, error) {
	cl, id := c.cloud, c.target.id
	for _, res := range c.store.under(vnics.kindInfo, id) {
		label := "service VNIC"
		if owner := cl.vnicOwners[res.id]; owner == "" || instances.lookup(cl, owner) != nil {
			label = "VNIC"
		}
		if err := c.inUse(label, res.id); err != nil {
			return nil, err
		}
	}
	return terminate(c, subnets, "subnet.delete", func() {
		delete(cl.pools, id)
		delete(cl.pools, id+"/v6")
	})
}
