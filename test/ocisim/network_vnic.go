// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package ocisim

import (
	"fmt"
	"slices"

	"github.com/oracle/oci-go-sdk/v65/common"
	"github.com/oracle/oci-go-sdk/v65/core"
)

// maxGroupsPerVNIC is a documented limit.
const maxGroupsPerVNIC = 5

// vnicSpec says what a new VNIC is like. Empty identifiers and addresses are made.
type vnicSpec struct {
	id, compartment, subnet, domain string
	name, hostname                  string
	privateIP                       string
	ipv6                            []string // addresses; "" stands for any
	primary                         bool
	groups                          []string
	owner                           string // instance or balancer
}

// addVNIC creates a VNIC with its primary private address, and its IPv6 addresses.
func (cl *cloud) addVNIC(s vnicSpec) (*core.Vnic, error) {
	subnet := subnets.find(cl, s.subnet)
	if subnet == nil {
		return nil, errRelated(s.subnet)
	}
	if len(s.groups) > maxGroupsPerVNIC {
		return nil, errInvalid("A VNIC can be in at most %d network security groups.", maxGroupsPerVNIC)
	}
	address, err := cl.takeAddress(subnet, s.privateIP, false)
	if err != nil {
		return nil, err
	}
	if s.id == "" {
		s.id = cl.newOCID("vnic")
	}
	v := &core.Vnic{
		Id: common.String(s.id), CompartmentId: common.String(s.compartment), SubnetId: common.String(s.subnet),
		AvailabilityDomain: common.String(orElse(s.domain, orElse(value(subnet.AvailabilityDomain), cl.options.AvailabilityDomains[0]))),
		LifecycleState:     core.VnicLifecycleStateAvailable, TimeCreated: cl.sdkTime(),
		IsPrimary: common.Bool(s.primary), PrivateIp: common.String(address), MacAddress: common.String(cl.macAddress()),
		SkipSourceDestCheck: common.Bool(false), NsgIds: slices.Clone(s.groups),
		FreeformTags: map[string]string{}, DefinedTags: map[string]map[string]interface{}{},
	}
	if s.name != "" {
		v.DisplayName = common.String(s.name)
	}
	if s.hostname != "" {
		v.HostnameLabel = common.String(s.hostname)
	}
	vnics.insert(cl, v)
	if s.owner != "" {
		cl.vnicOwners[s.id] = s.owner
		cl.ownedVNICs[s.owner] = append(cl.ownedVNICs[s.owner], s.id)
	}
	cl.addPrivateIP(v, address, true, s.hostname)
	for _, wanted := range s.ipv6 {
		if _, err := cl.addIPv6(v, wanted); err != nil {
			cl.removeVNIC(s.id)
			return nil, err
		}
	}
	return vnics.find(cl, s.id), nil
}

func (cl *cloud) macAddress() string {
	h := cl.hex(8, lowerHex)
	return fmt.Sprintf("02:00:%s:%s:%s:%s", h[0:2], h[2:4], h[4:6], h[6:8])
}

// addPrivateIP records a private address of a VNIC that takeAddress gave out.
func (cl *cloud) addPrivateIP(v *core.Vnic, address string, primary bool, hostname string) *core.PrivateIp {
	ip := &core.PrivateIp{
		Id: common.String(cl.newOCID("privateip")), CompartmentId: v.CompartmentId, AvailabilityDomain: v.AvailabilityDomain,
		DisplayName: common.String("privateip" + cl.nameSuffix()), IpAddress: common.String(address),
		IsPrimary: common.Bool(primary), SubnetId: v.SubnetId, VnicId: v.Id, TimeCreated: cl.sdkTime(),
		IpState: core.PrivateIpIpStateAssigned, Lifetime: core.PrivateIpLifetimeEphemeral,
		FreeformTags: map[string]string{}, DefinedTags: map[string]map[string]interface{}{},
	}
	if hostname != "" {
		ip.HostnameLabel = common.String(hostname)
	}
	privateIPs.insert(cl, ip)
	return ip
}

// nameSuffix is what the services append to the display names that they make up: the time.
func (cl *cloud) nameSuffix() string { return cl.now.UTC().Format("20060102150405") }

// addIPv6 gives a VNIC an IPv6 address: the wanted one, or any when wanted is empty.
func (cl *cloud) addIPv6(v *core.Vnic, wanted string) (*core.Ipv6, error) {
	return cl.addIPv6Block(v, wanted, nil)
}

// addIPv6Block is addIPv6 for a block, if bits is its prefix length. A VNIC shows its addresses, not its blocks.
func (cl *cloud) addIPv6Block(v *core.Vnic, wanted string, bits *int) (*core.Ipv6, error) {
	subnet := subnets.find(cl, value(v.SubnetId))
	if subnet == nil {
		return nil, errRelated(value(v.SubnetId))
	}
	address, bits, err := cl.takeAddresses(subnet, wanted, bits, true)
	if err != nil {
		return nil, err
	}
	ip := &core.Ipv6{
		Id: common.String(cl.newOCID("ipv6")), CompartmentId: v.CompartmentId, SubnetId: v.SubnetId, VnicId: v.Id,
		DisplayName: common.String("ipv6" + cl.nameSuffix()), IpAddress: common.String(address), CidrPrefixLength: bits,
		LifecycleState: core.Ipv6LifecycleStateAvailable, TimeCreated: cl.sdkTime(),
		IpState: core.Ipv6IpStateAssigned, Lifetime: core.Ipv6LifetimeEphemeral,
		FreeformTags: map[string]string{}, DefinedTags: map[string]map[string]interface{}{},
	}
	ipv6s.insert(cl, ip)
	if bits == nil {
		vnics.update(cl, value(v.Id), func(v *core.Vnic) { v.Ipv6Addresses = append(v.Ipv6Addresses, address) })
	}
	return ip, nil
}

// newServiceVNIC gives a load balancer an address in a subnet. The VNIC is in the security groups of its owner.
func (cl *cloud) newServiceVNIC(subnetID, owner, compartment string, groups []string) (*core.Vnic, error) {
	return cl.addVNIC(vnicSpec{
		subnet: subnetID, compartment: compartment, owner: owner, groups: groups, primary: true,
		name: "VNIC of " + owner,
	})
}

// setServiceVNICGroups moves the VNICs of an owner to other security groups.
func (cl *cloud) setServiceVNICGroups(owner string, groups []string) {
	for _, id := range cl.ownedVNICs[owner] {
		vnics.update(cl, id, func(v *core.Vnic) { v.NsgIds = slices.Clone(groups) })
	}
}

// releaseServiceVNICs lets the VNICs of a deleted owner go after they have lingered.
func (cl *cloud) releaseServiceVNICs(owner string) {
	for _, id := range slices.Clone(cl.ownedVNICs[owner]) {
		cl.releaseVNIC(id)
	}
}

// primaryPrivateIP returns the primary private address of a VNIC.
func (cl *cloud) primaryPrivateIP(vnicID string) *core.PrivateIp {
	for ip := range privateIPs.under(cl, vnicID) {
		if value(ip.IsPrimary) {
			return ip
		}
	}
	return nil
}

// releaseVNIC takes a VNIC out of use. Its public addresses go at once; the VNIC itself lingers as TERMINATING for
// Behaviour.VNICLinger, and keeps its security groups and its subnet busy that long.
func (cl *cloud) releaseVNIC(id string) {
	v := vnics.find(cl, id)
	if v == nil || v.LifecycleState == core.VnicLifecycleStateTerminating {
		return
	}
	for ip := range privateIPs.under(cl, id) {
		for public := range publicIPs.under(cl, value(ip.Id)) {
			cl.unassignPublicIP(value(public.Id))
		}
	}
	vnics.update(cl, id, func(v *core.Vnic) { v.LifecycleState = core.VnicLifecycleStateTerminating })
	cl.after(cl.draw(cl.behaviour.VNICLinger), func() { cl.removeVNIC(id) })
}

func (cl *cloud) removeVNIC(id string) {
	v := vnics.find(cl, id)
	if v == nil {
		return
	}
	for ip := range privateIPs.under(cl, id) {
		cl.removePrivateIP(value(ip.Id))
	}
	for ip := range ipv6s.under(cl, id) {
		cl.removeIPv6(value(ip.Id))
	}
	vnics.remove(cl, id)
	owner := cl.vnicOwners[id]
	delete(cl.vnicOwners, id)
	if rest := without(cl.ownedVNICs[owner], id); len(rest) > 0 {
		cl.ownedVNICs[owner] = rest
	} else {
		delete(cl.ownedVNICs, owner)
	}
}
