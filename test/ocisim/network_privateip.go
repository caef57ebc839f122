// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package ocisim

import (
	"net/http"
	"slices"
	"strings"

	"github.com/oracle/oci-go-sdk/v65/common"
	"github.com/oracle/oci-go-sdk/v65/core"
)

func addressOperations() []Operation {
	const query = "limit,page,ipAddress,subnetId,vnicId,ipState,lifetime,vlanId"
	list := func(name, path string, kind *kindInfo, address func(*resource) string) Operation {
		o := networkOperation(name, http.MethodGet, path, query, Inspect, func(c *call) (*answer, error) {
			return listAddresses(c, kind, address)
		})
		o.Resource = kind.policy
		return o
	}
	create := func(name, path string, kind *kindInfo, handle func(*call) (*answer, error)) Operation {
		o := networkOperation(name, http.MethodPost, path, "", Use, handle)
		o.Resource, o.RetryToken, o.Partial = kind.policy, true, "addresses and blocks of a VNIC, no reserved ones"
		return o
	}
	remove := func(name, path string, kind *kindInfo, handle func(*call) (*answer, error)) Operation {
		o := networkOperation(name, http.MethodDelete, path, "", Use, handle)
		o.Target, o.IfMatch = kind, true
		return o
	}
	update := func(name, path string, kind *kindInfo, handle func(*call) (*answer, error)) Operation {
		o := networkOperation(name, http.MethodPut, path, "", Use, handle)
		o.Target, o.IfMatch, o.Partial = kind, true, "no reserved addresses"
		return o
	}
	return []Operation{
		networkGet("GetPrivateIp", "/privateIps/{privateIpId}", privateIPs.kindInfo),
		list("ListPrivateIps", "/privateIps", privateIPs.kindInfo, func(res *resource) string {
			return value(privateIPs.of(res).IpAddress)
		}),
		create("CreatePrivateIp", "/privateIps", privateIPs.kindInfo, createPrivateIP),
		update("UpdatePrivateIp", "/privateIps/{privateIpId}", privateIPs.kindInfo, updatePrivateIP),
		remove("DeletePrivateIp", "/privateIps/{privateIpId}", privateIPs.kindInfo, deletePrivateIP),
		networkGet("GetIpv6", "/ipv6/{ipv6Id}", ipv6s.kindInfo),
		list("ListIpv6s", "/ipv6", ipv6s.kindInfo, func(res *resource) string {
			return value(ipv6s.of(res).IpAddress)
		}),
		create("CreateIpv6", "/ipv6", ipv6s.kindInfo, createIPv6),
		update("UpdateIpv6", "/ipv6/{ipv6Id}", ipv6s.kindInfo, updateIPv6),
		remove("DeleteIpv6", "/ipv6/{ipv6Id}", ipv6s.kindInfo, deleteIPv6),
	}
}

// listAddresses lists the addresses of a VNIC or of a subnet; one of them must be named.
func listAddresses(c *call, kind *kindInfo, address func(*resource) string) (*answer, error) {
	subnet, vnic, wanted := c.query.Get("subnetId"), c.query.Get("vnicId"), c.query.Get("ipAddress")
	l := listing{kind: kind, key: subnet}
	switch {
	case vnic != "":
		if err := vnics.named(c, vnic); err != nil {
			return nil, err
		}
		l.key = vnic
	case subnet != "":
		if err := subnets.named(c, subnet); err != nil {
			return nil, err
		}
	default:
		return nil, errInvalid("One of subnetId and vnicId must be given.")
	}
	l.match = func(res *resource) bool {
		return (wanted == "" || address(res) == wanted) && (subnet == "" || contains(res.keys, subnet)) && c.addressFilters(res)
	}
	return c.list(l)
}

// addressFilters applies the query's state, lifetime and VLAN.
func (c *call) addressFilters(res *resource) bool {
	var state, lifetime string
	switch v := res.value.(type) {
	case *core.PrivateIp:
		state, lifetime = string(v.IpState), string(v.Lifetime)
	case *core.Ipv6:
		state, lifetime = string(v.IpState), string(v.Lifetime)
	}
	for name, has := range map[string]string{"ipState": state, "lifetime": lifetime, "vlanId": ""} {
		if wanted := c.query.Get(name); wanted != "" && wanted != has {
			return false
		}
	}
	return true
}

// named checks a resource that a query names, and that the caller may do what it does in its compartment: absent or not
// visible, it is the common 404.
func (k kind[T]) named(c *call, id string) error {
	res := k.lookup(c.cloud, id)
	if res == nil || c.denied(k.policy, Inspect, res.compartment) || c.denied(c.operation.policy(), c.operation.Verb, res.compartment) {
		return errNotFound()
	}
	return nil
}

func createPrivateIP(c *call) (*answer, error) {
	details, err := decode[core.CreatePrivateIpDetails](c)
	if err != nil {
		return nil, err
	}
	if details.VnicId == nil {
		return nil, errMissing("vnicId")
	}
	vnic, err := vnics.related(c, *details.VnicId)
	if err != nil {
		return nil, err
	}
	subnet, err := subnets.related(c, value(vnic.SubnetId))
	if err != nil {
		return nil, err
	}
	if err := c.checkAddressCount(privateIPs.kindInfo, vnic); err != nil {
		return nil, err
	}
	if err := c.checkHostname(details.HostnameLabel, subnet, ""); err != nil {
		return nil, err
	}
	table, err := c.routeTable(details.RouteTableId, vcns.find(c.cloud, value(subnet.VcnId)), nil)
	if err != nil {
		return nil, err
	}
	address, bits, err := c.takeAddresses(subnet, value(details.IpAddress), details.CidrPrefixLength, false)
	if err != nil {
		return nil, err
	}
	ip := c.addPrivateIP(vnic, address, false, value(details.HostnameLabel))
	privateIPs.update(c.cloud, *ip.Id, func(ip *core.PrivateIp) {
		replace(&ip.DisplayName, details.DisplayName)
		ip.CidrPrefixLength, ip.RouteTableId = bits, table
		setTags(&ip.FreeformTags, &ip.DefinedTags, details.FreeformTags, details.DefinedTags)
	})
	return c.created(privateIPs.lookup(c.cloud, *ip.Id)), nil
}

// takeAddresses gives out an address of a subnet, or with a prefix length a block of them. A block of one address is
// none.
func (cl *cloud) takeAddresses(subnet *core.Subnet, wanted string, bits *int, v6 bool) (string, *int, error) {
	if bits == nil || *bits == 32 && !v6 || *bits == 128 && v6 {
		address, err := cl.takeAddress(subnet, wanted, v6)
		return address, nil, err
	}
	address, err := cl.takeBlock(subnet, wanted, *bits, v6)
	return address, bits, err
}

// checkAddressCount refuses one address more than a VNIC may have. A block counts as one.
func (c *call) checkAddressCount(kind *kindInfo, vnic *core.Vnic) error {
	n := len(c.store.under(kind, value(vnic.Id)))
	if n < c.behaviour.MaxAddressesPerVNIC {
		return nil
	}
	return c.rule(TooManyAddresses, value(vnic.Id), n, c.behaviour.MaxAddressesPerVNIC)
}

// checkHostname refuses a host name label that is none, or that another address of the subnet has. except is the VNIC
// or private IP that asks.
func (c *call) checkHostname(label *string, subnet *core.Subnet, except string) error {
	if value(label) == "" {
		return nil
	}
	if err := checkPattern("hostnameLabel", *label, hostnameLabel); err != nil {
		return err
	}
	for ip := range privateIPs.under(c.cloud, value(subnet.Id)) {
		own := value(ip.Id) == except || value(ip.VnicId) == except && value(ip.IsPrimary)
		if strings.EqualFold(value(ip.HostnameLabel), *label) && !own {
			return c.rule(HostnameInUse, *label, value(subnet.Id))
		}
	}
	return nil
}

// setTags replaces the tags that a request gives.
func setTags(
	freeform *map[string]string, defined *map[string]map[string]interface{},
	newFreeform map[string]string, newDefined map[string]map[string]interface{},
) {
	if newFreeform != nil {
		*freeform = newFreeform
	}
	if newDefined != nil {
		*defined = newDefined
	}
}

func deletePrivateIP(c *call) (*answer, error) {
	ip := privateIPs.of(c.target)
	if value(ip.IsPrimary) {
		if err := c.rule(PrimaryAddressDelete, value(ip.IpAddress)); err != nil {
			return nil, err
		}
	}
	c.removePrivateIP(c.target.id)
	return none(http.StatusNoContent), nil
}

// removePrivateIP takes a private address away, and its public address from it.
func (cl *cloud) removePrivateIP(id string) {
	ip := privateIPs.find(cl, id)
	if ip == nil {
		return
	}
	for public := range publicIPs.under(cl, id) {
		cl.unassignPublicIP(value(public.Id))
	}
	cl.giveBlockBack(value(ip.SubnetId), value(ip.IpAddress), ip.CidrPrefixLength)
	privateIPs.remove(cl, id)
}

func createIPv6(c *call) (*answer, error) {
	details, err := decode[core.CreateIpv6Details](c)
	if err != nil {
		return nil, err
	}
	if details.VnicId == nil {
		return nil, errMissing("vnicId")
	}
	vnic, err := vnics.related(c, *details.VnicId)
	if err != nil {
		return nil, err
	}
	subnet, err := subnets.related(c, value(vnic.SubnetId))
	if err != nil {
		return nil, err
	}
	if err := c.checkAddressCount(ipv6s.kindInfo, vnic); err != nil {
		return nil, err
	}
	if prefix := value(details.Ipv6SubnetCidr); prefix != "" && prefix != value(subnet.Ipv6CidrBlock) {
		return nil, errInvalid("The IPv6 prefix %s is not one of subnet %s.", prefix, value(subnet.Id))
	}
	table, err := c.routeTable(details.RouteTableId, vcns.find(c.cloud, value(subnet.VcnId)), nil)
	if err != nil {
		return nil, err
	}
	ip, err := c.addIPv6Block(vnic, value(details.IpAddress), details.CidrPrefixLength)
	if err != nil {
		return nil, err
	}
	ipv6s.update(c.cloud, *ip.Id, func(ip *core.Ipv6) {
		replace(&ip.DisplayName, details.DisplayName)
		replace(&ip.Hostname, details.Hostname)
		ip.RouteTableId = table
		setTags(&ip.FreeformTags, &ip.DefinedTags, details.FreeformTags, details.DefinedTags)
	})
	return c.created(ipv6s.lookup(c.cloud, *ip.Id)), nil
}

func deleteIPv6(c *call) (*answer, error) {
	c.removeIPv6(c.target.id)
	return none(http.StatusNoContent), nil
}

// removeIPv6 takes an IPv6 address away, also from what its VNIC shows.
func (cl *cloud) removeIPv6(id string) {
	ip := ipv6s.find(cl, id)
	if ip == nil {
		return
	}
	cl.giveBlockBack(value(ip.SubnetId), value(ip.IpAddress), ip.CidrPrefixLength)
	cl.hideIPv6(value(ip.VnicId), value(ip.IpAddress))
	ipv6s.remove(cl, id)
}

// hideIPv6 takes an address from those that a VNIC shows.
func (cl *cloud) hideIPv6(vnic, address string) {
	vnics.update(cl, vnic, func(v *core.Vnic) {
		v.Ipv6Addresses = slices.DeleteFunc(v.Ipv6Addresses, func(a string) bool { return a == address })
	})
}

// publicAddressOf shows a public address on the VNIC whose primary private address has it.
func (cl *cloud) publicAddressOf(privateIPID string, address *string) {
	ip := privateIPs.find(cl, privateIPID)
	if ip == nil || !value(ip.IsPrimary) {
		return
	}
	vnics.update(cl, value(ip.VnicId), func(v *core.Vnic) {
		v.PublicIp = nil
		if address != nil {
			v.PublicIp = common.String(*address)
		}
	})
}
