// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package ocisim

import (
	"net/netip"

	"github.com/oracle/oci-go-sdk/v65/common"
	"github.com/oracle/oci-go-sdk/v65/core"
	"github.com/oracle/oci-go-sdk/v65/loadbalancer"
)

// loadBalancerAddresses gives a load balancer its addresses: of a public one only the public address shows.
func (cl *cloud) loadBalancerAddresses(v *loadbalancer.LoadBalancer, reserved []loadbalancer.ReservedIp) ([]loadbalancer.IpAddress, error) {
	id := value(v.Id)
	for _, subnet := range v.SubnetIds {
		if _, err := cl.newServiceVNIC(subnet, id, value(v.CompartmentId), v.NetworkSecurityGroupIds); err != nil {
			cl.releaseServiceVNICs(id)
			return nil, err
		}
	}
	addresses, err := cl.loadBalancerFront(v, v.IpMode, lbReserved(reserved))
	if err != nil {
		cl.releaseServiceVNICs(id)
	}
	return addresses, err
}

// loadBalancerFront is the address under which a load balancer is reached, taken on its first VNIC.
func (cl *cloud) loadBalancerFront(
	v *loadbalancer.LoadBalancer, mode loadbalancer.LoadBalancerIpModeEnum, reserved string,
) ([]loadbalancer.IpAddress, error) {
	owned := cl.ownedVNICs[value(v.Id)]
	if len(owned) == 0 {
		return nil, errRelated("VNIC of " + value(v.Id))
	}
	vnic := vnics.find(cl, owned[0])
	private := value(v.IsPrivate)
	if mode == loadbalancer.LoadBalancerIpModeIpv6 {
		six, err := cl.addIPv6(vnic, "")
		if err != nil {
			return nil, err
		}
		return []loadbalancer.IpAddress{{IpAddress: six.IpAddress, IsPublic: common.Bool(!private)}}, nil
	}
	if private {
		return []loadbalancer.IpAddress{{IpAddress: vnic.PrivateIp, IsPublic: common.Bool(false)}}, nil
	}
	address, reservedID, err := cl.balancerPublicAddress(vnic, reserved)
	if err != nil {
		return nil, err
	}
	public := loadbalancer.IpAddress{IpAddress: common.String(address), IsPublic: common.Bool(true)}
	if reservedID != "" {
		public.ReservedIp = &loadbalancer.ReservedIp{Id: common.String(reservedID)}
	}
	return []loadbalancer.IpAddress{public}, nil
}

func lbReserved(list []loadbalancer.ReservedIp) string {
	if len(list) == 0 {
		return ""
	}
	return value(list[0].Id)
}

// loadBalancerFamily refuses IPv6 in subnets without it, and a prefix that the subnet does not have.
func (c *call) loadBalancerFamily(subnetIDs []string, mode loadbalancer.LoadBalancerIpModeEnum, prefix string) error {
	if mode != loadbalancer.LoadBalancerIpModeIpv6 {
		if prefix != "" {
			return errInvalid("ipv6SubnetCidr is for load balancers with ipMode IPV6.")
		}
		return nil
	}
	for _, id := range subnetIDs {
		subnet := subnets.find(c.cloud, id)
		if subnet == nil {
			return errRelated(id)
		}
		blocks := subnet.Ipv6CidrBlocks
		if one := value(subnet.Ipv6CidrBlock); one != "" && !contains(blocks, one) {
			blocks = append(blocks[:len(blocks):len(blocks)], one)
		}
		if len(blocks) == 0 {
			return errInvalid("Subnet %s has no IPv6 CIDR block.", id)
		}
		if prefix != "" && !containsPrefix(blocks, prefix) {
			return errInvalid("Subnet %s has no IPv6 CIDR block %s.", id, prefix)
		}
	}
	return nil
}

func containsPrefix(blocks []string, wanted string) bool {
	w, err := netip.ParsePrefix(wanted)
	for _, block := range blocks {
		if b, blockErr := netip.ParsePrefix(block); err == nil && blockErr == nil && b.Masked() == w.Masked() {
			return true
		}
	}
	return false
}

// loadBalancerReserved checks the reserved address that a load balancer is to have.
func (c *call) loadBalancerReserved(list []loadbalancer.ReservedIp, private bool, mode loadbalancer.LoadBalancerIpModeEnum) error {
	switch {
	case len(list) > 1:
		return errInvalid("At most one reserved IP is allowed.")
	case len(list) == 1 && mode == loadbalancer.LoadBalancerIpModeIpv6:
		return errInvalid("A load balancer with ipMode IPV6 cannot have the reserved IP %s.", value(list[0].Id))
	case len(list) == 0:
		return nil
	}
	return c.reservedAddresses([]string{value(list[0].Id)}, private)
}

// addressChange checks a change of the addresses of a load balancer, and returns what carries it out; nil where the
// addresses stay. An empty list of reserved addresses means an address of the service's own.
func (c *call) addressChange(d *loadbalancer.UpdateLoadBalancerDetails) (func(*cloud, *loadbalancer.LoadBalancer) error, error) {
	v := loadBalancers.of(c.target)
	mode := v.IpMode
	if d.IpMode != "" {
		mode = loadbalancer.LoadBalancerIpModeEnum(d.IpMode)
	}
	now := ""
	for _, a := range v.IpAddresses {
		if a.ReservedIp != nil {
			now = value(a.ReservedIp.Id)
		}
	}
	wanted := now
	if d.ReservedIps != nil {
		wanted = lbReserved(d.ReservedIps)
	}
	if mode == v.IpMode && wanted == now {
		return nil, nil
	}
	if err := c.rule(LoadBalancerAddressChange, c.target.id); err != nil {
		return nil, err
	}
	if err := c.loadBalancerFamily(v.SubnetIds, mode, value(d.Ipv6SubnetCidr)); err != nil {
		return nil, err
	}
	if wanted != now {
		if err := c.loadBalancerReserved(d.ReservedIps, value(v.IsPrivate), mode); err != nil {
			return nil, err
		}
	}
	return func(cl *cloud, v *loadbalancer.LoadBalancer) error { return cl.changeFront(v, mode, wanted) }, nil
}

// changeFront gives a load balancer another address, and lets the old one go.
func (cl *cloud) changeFront(v *loadbalancer.LoadBalancer, mode loadbalancer.LoadBalancerIpModeEnum, reserved string) error {
	if mode == loadbalancer.LoadBalancerIpModeIpv6 {
		reserved = ""
	}
	old := v.IpAddresses
	addresses, err := cl.loadBalancerFront(v, mode, reserved)
	if err != nil {
		return err
	}
	for _, address := range lbAddresses(v) {
		cl.givePublicBack(address)
	}
	for _, a := range old {
		if a.ReservedIp != nil {
			cl.unassignPublicIP(value(a.ReservedIp.Id))
		}
		cl.dropIPv6(value(v.Id), value(a.IpAddress))
	}
	v.IpAddresses, v.IpMode = addresses, mode
	return nil
}

// dropIPv6 takes an IPv6 address from the VNICs of an owner; other addresses are none of them.
func (cl *cloud) dropIPv6(owner, address string) {
	for _, id := range cl.ownedVNICs[owner] {
		for ip := range ipv6s.under(cl, id) {
			if value(ip.IpAddress) != address {
				continue
			}
			cl.giveBack(value(ip.SubnetId), address)
			ipv6s.remove(cl, value(ip.Id))
			vnics.update(cl, id, func(v *core.Vnic) { v.Ipv6Addresses = without(v.Ipv6Addresses, address) })
		}
	}
}
