// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package oci

import (
	"context"
	"net/http"

	"github.com/oracle/oci-go-sdk/v65/core"
)

// AddressBlock asks for a block of addresses on a VNIC.
type AddressBlock struct {
	VNICID     string
	Bits       int    // prefix length
	SubnetCIDR string // of the subnet's CIDRs, the one to allocate from; empty for any
	Tags       Tags   `json:"-"`
}

// CreatePrivateIP allocates a block of private IPv4 addresses.
func (s *Network) CreatePrivateIP(ctx context.Context, b AddressBlock, token string) (*PrivateIP, error) {
	request := core.CreatePrivateIpRequest{
		CreatePrivateIpDetails: core.CreatePrivateIpDetails{
			VnicId: &b.VNICID, CidrPrefixLength: &b.Bits, Ipv4SubnetCidrAtCreation: present(b.SubnetCIDR),
			FreeformTags: b.Tags.Freeform, DefinedTags: b.Tags.Defined,
		},
		OpcRetryToken: retryToken(token),
	}
	return invoke(ctx, s.client, writeOp(ServiceVirtualNetwork, "CreatePrivateIp", "private_ip", "create"),
		func(ctx context.Context) (*PrivateIP, *http.Response, error) {
			r, err := s.client.network.CreatePrivateIp(ctx, request)
			return privateIPFromSDK(r.PrivateIp), r.RawResponse, err
		})
}

// CreateIPv6 allocates a block of IPv6 addresses.
func (s *Network) CreateIPv6(ctx context.Context, b AddressBlock, token string) (*IPv6, error) {
	request := core.CreateIpv6Request{
		CreateIpv6Details: core.CreateIpv6Details{
			VnicId: &b.VNICID, CidrPrefixLength: &b.Bits, Ipv6SubnetCidr: present(b.SubnetCIDR),
			FreeformTags: b.Tags.Freeform, DefinedTags: b.Tags.Defined,
		},
		OpcRetryToken: retryToken(token),
	}
	return invoke(ctx, s.client, writeOp(ServiceVirtualNetwork, "CreateIpv6", "ipv6_ip", "create"),
		func(ctx context.Context) (*IPv6, *http.Response, error) {
			r, err := s.client.network.CreateIpv6(ctx, request)
			return ipv6FromSDK(r.Ipv6), r.RawResponse, err
		})
}
