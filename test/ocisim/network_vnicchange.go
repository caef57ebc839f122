// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package ocisim

import (
	"net/http"
	"slices"

	"github.com/oracle/oci-go-sdk/v65/core"
)

func vnicOperations() []Operation {
	update := networkOperation("UpdateVnic", http.MethodPut, "/vnics/{vnicId}", "", Use, updateVNIC)
	update.Target, update.IfMatch, update.Partial = vnics.kindInfo, true, "no security attributes"
	return []Operation{update}
}

func updateVNIC(c *call) (*answer, error) {
	d, err := decode[core.UpdateVnicDetails](c)
	if err != nil {
		return nil, err
	}
	v := vnics.of(c.target)
	subnet := subnets.find(c.cloud, value(v.SubnetId))
	if subnet == nil {
		return nil, errNotFound()
	}
	if err := firstOf(c.available(), checkName(d.DisplayName), c.checkHostname(d.HostnameLabel, subnet, c.target.id)); err != nil {
		return nil, err
	}
	if err := c.vnicGroups(d.NsgIds, subnet); err != nil {
		return nil, err
	}
	table, err := c.routeTable(d.RouteTableId, vcns.find(c.cloud, value(subnet.VcnId)), v.RouteTableId)
	if err != nil {
		return nil, err
	}
	if d.RouteTableId != nil && *d.RouteTableId == "" {
		table = nil
	}
	vnics.update(c.cloud, c.target.id, func(v *core.Vnic) {
		replace(&v.DisplayName, d.DisplayName)
		replaceText(&v.HostnameLabel, d.HostnameLabel)
		replace(&v.SkipSourceDestCheck, d.SkipSourceDestCheck)
		if d.NsgIds != nil {
			v.NsgIds = slices.Clone(d.NsgIds)
		}
		v.RouteTableId = table
		setTags(&v.FreeformTags, &v.DefinedTags, d.FreeformTags, d.DefinedTags)
	})
	// The label is that of the primary private IP, where it shows too.
	if ip := c.primaryPrivateIP(c.target.id); ip != nil {
		privateIPs.update(c.cloud, value(ip.Id), func(ip *core.PrivateIp) { replaceText(&ip.HostnameLabel, d.HostnameLabel) })
	}
	return c.show(c.target), nil
}

// replaceText is replace for a text that an empty one removes.
func replaceText(field **string, with *string) {
	replace(field, with)
	if with != nil && *with == "" {
		*field = nil
	}
}

// vnicGroups checks the security groups that a VNIC is to be in.
func (c *call) vnicGroups(ids []string, subnet *core.Subnet) error {
	if len(ids) > maxGroupsPerVNIC {
		return errInvalid("A VNIC can be in at most %d network security groups.", maxGroupsPerVNIC)
	}
	for _, id := range ids {
		group, err := securityGroups.related(c, id)
		if err != nil {
			return err
		}
		if value(group.VcnId) != value(subnet.VcnId) {
			return errInvalid("The network security group %s is not in the VCN of the VNIC.", id)
		}
	}
	return nil
}

// updatePrivateIP changes a secondary private IP; another VNIC of the subnet takes it, with its public address.
func updatePrivateIP(c *call) (*answer, error) {
	d, err := decode[core.UpdatePrivateIpDetails](c)
	if err != nil {
		return nil, err
	}
	ip := privateIPs.of(c.target)
	if value(ip.IsPrimary) {
		if err := c.rule(PrimaryAddressUpdate, c.target.id); err != nil {
			return nil, err
		}
	}
	subnet := subnets.find(c.cloud, value(ip.SubnetId))
	if subnet == nil {
		return nil, errNotFound()
	}
	if err := firstOf(checkName(d.DisplayName), c.checkHostname(d.HostnameLabel, subnet, c.target.id)); err != nil {
		return nil, err
	}
	if d.Lifetime == core.UpdatePrivateIpDetailsLifetimeReserved {
		return nil, errInvalid("Reserved private IPs are not supported.")
	}
	if err := c.moveTo(d.VnicId, ip.VnicId, subnet, privateIPs.kindInfo); err != nil {
		return nil, err
	}
	table, err := c.routeTable(d.RouteTableId, vcns.find(c.cloud, value(subnet.VcnId)), ip.RouteTableId)
	if err != nil {
		return nil, err
	}
	privateIPs.update(c.cloud, c.target.id, func(ip *core.PrivateIp) {
		replace(&ip.DisplayName, d.DisplayName)
		replaceText(&ip.HostnameLabel, d.HostnameLabel)
		replace(&ip.VnicId, d.VnicId)
		ip.RouteTableId = table
		setTags(&ip.FreeformTags, &ip.DefinedTags, d.FreeformTags, d.DefinedTags)
	})
	return c.show(c.target), nil
}

// moveTo checks the VNIC that an address is to move to: it is in the same subnet and has room.
func (c *call) moveTo(wanted, now *string, subnet *core.Subnet, kind *kindInfo) error {
	if wanted == nil || *wanted == value(now) {
		return nil
	}
	vnic, err := vnics.related(c, *wanted)
	if err != nil {
		return err
	}
	if value(vnic.SubnetId) != value(subnet.Id) {
		return errInvalid("The VNIC %s is not in the subnet %s of the address.", *wanted, value(subnet.Id))
	}
	return c.checkAddressCount(kind, vnic)
}

// updateIPv6 is updatePrivateIP for an IPv6 address.
func updateIPv6(c *call) (*answer, error) {
	d, err := decode[core.UpdateIpv6Details](c)
	if err != nil {
		return nil, err
	}
	ip := ipv6s.of(c.target)
	subnet := subnets.find(c.cloud, value(ip.SubnetId))
	if subnet == nil {
		return nil, errNotFound()
	}
	if d.Lifetime == core.UpdateIpv6DetailsLifetimeReserved {
		return nil, errInvalid("Reserved IPv6 addresses are not supported.")
	}
	if err := firstOf(checkName(d.DisplayName), c.moveTo(d.VnicId, ip.VnicId, subnet, ipv6s.kindInfo)); err != nil {
		return nil, err
	}
	table, err := c.routeTable(d.RouteTableId, vcns.find(c.cloud, value(subnet.VcnId)), ip.RouteTableId)
	if err != nil {
		return nil, err
	}
	before := value(ip.VnicId)
	ipv6s.update(c.cloud, c.target.id, func(ip *core.Ipv6) {
		replace(&ip.DisplayName, d.DisplayName)
		replaceText(&ip.Hostname, d.Hostname)
		replace(&ip.VnicId, d.VnicId)
		ip.RouteTableId = table
		setTags(&ip.FreeformTags, &ip.DefinedTags, d.FreeformTags, d.DefinedTags)
	})
	if moved := value(d.VnicId); moved != "" && moved != before && ip.CidrPrefixLength == nil {
		c.hideIPv6(before, value(ip.IpAddress))
		vnics.update(c.cloud, moved, func(v *core.Vnic) { v.Ipv6Addresses = append(v.Ipv6Addresses, value(ip.IpAddress)) })
	}
	return c.show(c.target), nil
}
