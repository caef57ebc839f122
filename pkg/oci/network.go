// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package oci

import (
	"context"
	"net/http"
	"slices"
	"strings"

	"github.com/oracle/oci-go-sdk/v65/core"
)

// Network reads the virtual network: VNICs, subnets, VCNs and addresses.
type Network struct {
	client *Client
}

// Network returns the virtual network service.
func (c *Client) Network() *Network { return &Network{c} }

// GetVNIC reads one VNIC.
func (s *Network) GetVNIC(ctx context.Context, id string) (*VNIC, error) {
	o := readOp(ServiceVirtualNetwork, "GetVnic", "vnic", "get")
	o.target = id
	r, err := invoke(ctx, s.client, o, func(ctx context.Context) (core.GetVnicResponse, *http.Response, error) {
		r, err := s.client.network.GetVnic(ctx, core.GetVnicRequest{VnicId: &id})
		return r, r.RawResponse, err
	})
	if err != nil {
		return nil, err
	}
	v := vnicFromSDK(r.Vnic)
	if v.ID == "" {
		v.ID = id
	}
	return v, nil
}

// GetSubnet reads one subnet.
func (s *Network) GetSubnet(ctx context.Context, id string) (*Subnet, error) {
	o := readOp(ServiceVirtualNetwork, "GetSubnet", "subnet", "get")
	o.target = id
	r, err := invoke(ctx, s.client, o, func(ctx context.Context) (core.GetSubnetResponse, *http.Response, error) {
		r, err := s.client.network.GetSubnet(ctx, core.GetSubnetRequest{SubnetId: &id})
		return r, r.RawResponse, err
	})
	if err != nil {
		return nil, err
	}
	sn := subnetFromSDK(r.Subnet)
	if sn.ID == "" {
		sn.ID = id
	}
	return sn, nil
}

// GetVCN reads one virtual cloud network.
func (s *Network) GetVCN(ctx context.Context, id string) (*VCN, error) {
	o := readOp(ServiceVirtualNetwork, "GetVcn", "vcn", "get")
	o.target = id
	r, err := invoke(ctx, s.client, o, func(ctx context.Context) (core.GetVcnResponse, *http.Response, error) {
		r, err := s.client.network.GetVcn(ctx, core.GetVcnRequest{VcnId: &id})
		return r, r.RawResponse, err
	})
	if err != nil {
		return nil, err
	}
	v := vcnFromSDK(r.Vcn)
	if v.ID == "" {
		v.ID = id
	}
	return v, nil
}

// ListSubnets lists the subnets of a compartment. An empty vcnID means those of every VCN.
func (s *Network) ListSubnets(ctx context.Context, compartmentID, vcnID string) ([]*Subnet, error) {
	return listAll(ctx, s.client, readOp(ServiceVirtualNetwork, "ListSubnets", "subnet", "list"), subnetFromSDK,
		func(ctx context.Context, token *string) (page[core.Subnet], *http.Response, error) {
			r, err := s.client.network.ListSubnets(ctx, core.ListSubnetsRequest{
				CompartmentId: &compartmentID,
				VcnId:         present(vcnID),
				Limit:         &s.client.pageSize,
				Page:          token,
			})
			return page[core.Subnet]{r.Items, r.OpcNextPage}, r.RawResponse, err
		})
}

// GetPublicIPByAddress finds the public IP object that has the given address. An address that is not one of the
// tenancy's, or that this principal may not read, is ErrNotFound.
//
// The API makes it a POST, but it changes nothing: it counts as a read and is repeated like one.
func (s *Network) GetPublicIPByAddress(ctx context.Context, ip string) (*PublicIP, error) {
	o := readOp(ServiceVirtualNetwork, "GetPublicIpByIpAddress", "public_reserved_ip", "get")
	r, err := invoke(ctx, s.client, o, func(ctx context.Context) (core.GetPublicIpByIpAddressResponse, *http.Response, error) {
		r, err := s.client.network.GetPublicIpByIpAddress(ctx, core.GetPublicIpByIpAddressRequest{
			GetPublicIpByIpAddressDetails: core.GetPublicIpByIpAddressDetails{IpAddress: &ip},
		})
		return r, r.RawResponse, err
	})
	if err != nil {
		return nil, err
	}
	p := publicIPFromSDK(r.PublicIp)
	if p.IPAddress == "" {
		p.IPAddress = ip
	}
	return p, nil
}

// ListPublicIPs lists the public IPs of a compartment. scope is REGION or AVAILABILITY_DOMAIN; only the latter takes an
// availability domain, otherwise ad is empty.
func (s *Network) ListPublicIPs(ctx context.Context, compartmentID, scope, ad string) ([]*PublicIP, error) {
	return listAll(ctx, s.client, readOp(ServiceVirtualNetwork, "ListPublicIps", "public_reserved_ip", "list"), publicIPFromSDK,
		func(ctx context.Context, token *string) (page[core.PublicIp], *http.Response, error) {
			r, err := s.client.network.ListPublicIps(ctx, core.ListPublicIpsRequest{
				CompartmentId:      &compartmentID,
				Scope:              core.ListPublicIpsScopeEnum(scope),
				AvailabilityDomain: present(ad),
				Limit:              &s.client.pageSize,
				Page:               token,
			})
			return page[core.PublicIp]{r.Items, r.OpcNextPage}, r.RawResponse, err
		})
}

// ListPrivateIPs lists private IPv4 addresses, of one VNIC or of one subnet: give either, the other one empty.
func (s *Network) ListPrivateIPs(ctx context.Context, subnetID, vnicID string) ([]*PrivateIP, error) {
	return listAll(ctx, s.client, readOp(ServiceVirtualNetwork, "ListPrivateIps", "private_ip", "list"), privateIPFromSDK,
		func(ctx context.Context, token *string) (page[core.PrivateIp], *http.Response, error) {
			r, err := s.client.network.ListPrivateIps(ctx, core.ListPrivateIpsRequest{
				SubnetId: present(subnetID),
				VnicId:   present(vnicID),
				Limit:    &s.client.pageSize,
				Page:     token,
			})
			return page[core.PrivateIp]{r.Items, r.OpcNextPage}, r.RawResponse, err
		})
}

// ListIPv6s lists IPv6 addresses, of one VNIC or of one subnet: give either, the other one empty.
func (s *Network) ListIPv6s(ctx context.Context, subnetID, vnicID string) ([]*IPv6, error) {
	return listAll(ctx, s.client, readOp(ServiceVirtualNetwork, "ListIpv6s", "ipv6_ip", "list"), ipv6FromSDK,
		func(ctx context.Context, token *string) (page[core.Ipv6], *http.Response, error) {
			r, err := s.client.network.ListIpv6s(ctx, core.ListIpv6sRequest{
				SubnetId: present(subnetID),
				VnicId:   present(vnicID),
				Limit:    &s.client.pageSize,
				Page:     token,
			})
			return page[core.Ipv6]{r.Items, r.OpcNextPage}, r.RawResponse, err
		})
}

func vnicFromSDK(v core.Vnic) *VNIC {
	return &VNIC{
		ID:            value(v.Id),
		CompartmentID: value(v.CompartmentId),
		SubnetID:      value(v.SubnetId),
		State:         string(v.LifecycleState),
		DisplayName:   value(v.DisplayName),
		HostnameLabel: value(v.HostnameLabel),
		IsPrimary:     value(v.IsPrimary),
		PrivateIP:     value(v.PrivateIp),
		PublicIP:      value(v.PublicIp),
		IPv6Addresses: v.Ipv6Addresses,
		NSGIDs:        v.NsgIds,
		Tags:          Tags{Freeform: v.FreeformTags, Defined: v.DefinedTags},
	}
}

func subnetFromSDK(s core.Subnet) *Subnet {
	return &Subnet{
		ID:                 value(s.Id),
		CompartmentID:      value(s.CompartmentId),
		VCNID:              value(s.VcnId),
		AvailabilityDomain: value(s.AvailabilityDomain),
		DisplayName:        value(s.DisplayName),
		DNSLabel:           value(s.DnsLabel),
		DomainName:         value(s.SubnetDomainName),
		State:              string(s.LifecycleState),
		CIDRs:              blocks(s.CidrBlock, s.Ipv4CidrBlocks),
		IPv6CIDRs:          blocks(s.Ipv6CidrBlock, s.Ipv6CidrBlocks),
		SecurityListIDs:    s.SecurityListIds,
		ProhibitPublicIP:   value(s.ProhibitPublicIpOnVnic),
	}
}

func vcnFromSDK(v core.Vcn) *VCN {
	ipv6 := slices.Concat(v.Ipv6CidrBlocks, v.Ipv6PrivateCidrBlocks, v.Byoipv6CidrBlocks)
	return &VCN{
		ID:            value(v.Id),
		CompartmentID: value(v.CompartmentId),
		CIDRs:         blocks(v.CidrBlock, v.CidrBlocks),
		IPv6CIDRs:     blocks(nil, ipv6),
		State:         string(v.LifecycleState),
	}
}

// blocks joins the two ways in which the API gives the CIDR blocks of a network: one block in an older field, all of
// them, the first included, in a newer one. Either field may be absent or empty; a subnet without IPv4 has a text with
// "null" for its IPv4 block.
func blocks(first *string, all []string) []string {
	var out []string
	for _, b := range slices.Concat([]string{value(first)}, all) {
		if b != "" && !strings.Contains(b, "null") && !slices.Contains(out, b) {
			out = append(out, b)
		}
	}
	return out
}

func publicIPFromSDK(p core.PublicIp) *PublicIP {
	return &PublicIP{
		ID:               value(p.Id),
		CompartmentID:    value(p.CompartmentId),
		IPAddress:        value(p.IpAddress),
		Lifetime:         string(p.Lifetime),
		State:            string(p.LifecycleState),
		AssignedEntityID: value(p.AssignedEntityId),
	}
}

func privateIPFromSDK(p core.PrivateIp) *PrivateIP {
	return &PrivateIP{
		ID:            value(p.Id),
		VNICID:        value(p.VnicId),
		SubnetID:      value(p.SubnetId),
		IPAddress:     value(p.IpAddress),
		HostnameLabel: value(p.HostnameLabel),
		IsPrimary:     value(p.IsPrimary),
		Bits:          value(p.CidrPrefixLength),
		Tags:          Tags{Freeform: p.FreeformTags, Defined: p.DefinedTags},
	}
}

func ipv6FromSDK(p core.Ipv6) *IPv6 {
	return &IPv6{
		ID:        value(p.Id),
		VNICID:    value(p.VnicId),
		SubnetID:  value(p.SubnetId),
		IPAddress: value(p.IpAddress),
		Bits:      value(p.CidrPrefixLength),
		Tags:      Tags{Freeform: p.FreeformTags, Defined: p.DefinedTags},
	}
}
