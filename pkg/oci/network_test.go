// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package oci

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/oracle/oci-go-sdk/v65/core"
)

func TestSubnetBlocks(t *testing.T) {
	tests := []struct {
		name     string
		give     core.Subnet
		v4, ipv6 []string
	}{
		{"old fields", core.Subnet{CidrBlock: ptr("10.0.0.0/24"), Ipv6CidrBlock: ptr("fd00::/64")}, []string{"10.0.0.0/24"}, []string{"fd00::/64"}},
		{
			"both fields", core.Subnet{
				CidrBlock: ptr("10.0.0.0/24"), Ipv4CidrBlocks: []string{"10.0.0.0/24", "10.0.1.0/24"},
				Ipv6CidrBlock: ptr("fd00::/64"), Ipv6CidrBlocks: []string{"fd00:1::/64", "fd00::/64"},
			},
			[]string{"10.0.0.0/24", "10.0.1.0/24"},
			[]string{"fd00::/64", "fd00:1::/64"},
		},
		{"IPv6 only", core.Subnet{CidrBlock: ptr("<null>"), Ipv6CidrBlocks: []string{"fd00::/64"}}, nil, []string{"fd00::/64"}},
		{"IPv4 only, empty IPv6 list", core.Subnet{CidrBlock: ptr("10.0.0.0/24"), Ipv6CidrBlocks: []string{}}, []string{"10.0.0.0/24"}, nil},
		{"nothing", core.Subnet{}, nil, nil},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got := subnetFromSDK(test.give)
			if diff := cmp.Diff(test.v4, got.CIDRs); diff != "" {
				t.Errorf("IPv4 (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(test.ipv6, got.IPv6CIDRs); diff != "" {
				t.Errorf("IPv6 (-want +got):\n%s", diff)
			}
		})
	}
}

func TestVCNBlocks(t *testing.T) {
	got := vcnFromSDK(core.Vcn{
		CidrBlock: ptr("10.0.0.0/16"), CidrBlocks: []string{"10.0.0.0/16", "10.1.0.0/16"},
		Ipv6CidrBlocks: []string{"2603::/56"}, Ipv6PrivateCidrBlocks: []string{"fd00::/56"}, Byoipv6CidrBlocks: []string{"2001:db8::/56"},
	})
	want := &VCN{CIDRs: []string{"10.0.0.0/16", "10.1.0.0/16"}, IPv6CIDRs: []string{"2603::/56", "fd00::/56", "2001:db8::/56"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("VCN (-want +got):\n%s", diff)
	}
}

// Finding a public IP by its address is a POST, but a read: it is repeated, and it takes nothing from the writes' budget.
func TestGetPublicIPByAddressIsARead(t *testing.T) {
	c, s := serve(t, func(sent) reply {
		return reply{status: 200, body: map[string]any{"id": "ocid1.publicip.oc1.iad.p", "ipAddress": "192.0.2.1", "lifetime": "RESERVED"}}
	})
	// No budget for writes at all.
	c.limiters[limiterKey{ServiceVirtualNetwork, true}] = nil
	got, err := c.Network().GetPublicIPByAddress(t.Context(), "192.0.2.1")
	want := &PublicIP{ID: "ocid1.publicip.oc1.iad.p", IPAddress: "192.0.2.1", Lifetime: "RESERVED"}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Fatalf("error %v, public IP (-want +got):\n%s", err, diff)
	}
	r := s.received()[0]
	if diff := cmp.Diff(map[string]any{"ipAddress": "192.0.2.1"}, r.Body); diff != "" || r.Path != "/20160918/publicIps/actions/getByIpAddress" {
		t.Errorf("sent %s %s, body (-want +got):\n%s", r.Method, r.Path, diff)
	}
}
