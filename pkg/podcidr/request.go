// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

// Package podcidr gives nodes their pod CIDRs from address blocks of their primary VNICs. What an instance wants stands in
// its metadata; what it has got stands in the cloud, as addresses of the VNIC with a tag, so that nothing is allocated
// twice whoever asks how often.
package podcidr

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/bits"
	"net/netip"
	"slices"
)

// MetadataKey is the instance metadata whose value, a JSON text, asks for pod CIDRs.
const MetadataKey = "flexcidr-primary-vnic"

// Family is an IP family of a cluster, as a Service names it.
type Family string

// The families.
const (
	IPv4 Family = "IPv4"
	IPv6 Family = "IPv6"
)

// Request is what an instance asks for.
type Request struct {
	// Count is the number of addresses, a power of two.
	Count int
	// Subnets are the CIDRs of the subnet to allocate from, at most one for a family. A family without one takes any.
	Subnets map[Family]netip.Prefix
}

// ErrRequest says that the metadata of an instance is no request that can be met.
var ErrRequest = errors.New("instance metadata " + MetadataKey + " is not valid")

// ParseRequest reads the value of MetadataKey: {"ip-count": 256, "cidr-blocks": ["10.0.64.0/18"]}.
func ParseRequest(text string) (Request, error) {
	var raw struct {
		Count  int      `json:"ip-count"`
		Blocks []string `json:"cidr-blocks"`
	}
	if err := json.Unmarshal([]byte(text), &raw); err != nil {
		return Request{}, fmt.Errorf("%w: %w", ErrRequest, err)
	}
	if raw.Count < 1 || bits.OnesCount(uint(raw.Count)) != 1 {
		return Request{}, fmt.Errorf("%w: ip-count is %d, want a power of two", ErrRequest, raw.Count)
	}
	r := Request{Count: raw.Count, Subnets: map[Family]netip.Prefix{}}
	for _, block := range raw.Blocks {
		prefix, err := netip.ParsePrefix(block)
		if err != nil {
			return Request{}, fmt.Errorf("%w: cidr-blocks: %w", ErrRequest, err)
		}
		family := familyOf(prefix.Addr())
		if _, twice := r.Subnets[family]; twice {
			return Request{}, fmt.Errorf("%w: cidr-blocks has two %s blocks, want at most one", ErrRequest, family)
		}
		r.Subnets[family] = prefix
	}
	return r, nil
}

func familyOf(a netip.Addr) Family {
	if a.Is4() {
		return IPv4
	}
	return IPv6
}

// Bounds of the prefix lengths that the API allocates, and the step of those of IPv6,
// https://docs.oracle.com/iaas/api/#/en/iaas/latest/datatypes/CreatePrivateIpDetails (cidrPrefixLength).
const (
	minIPv4Bits, maxIPv4Bits = 18, 30
	minIPv6Bits, stepIPv6    = 80, 4
)

// Bits is the prefix length of the block that holds Count addresses.
func (r Request) Bits(family Family) (int, error) {
	log := bits.TrailingZeros(uint(r.Count))
	if family == IPv4 {
		if n := 32 - log; n >= minIPv4Bits && n <= maxIPv4Bits {
			return n, nil
		}
		return 0, fmt.Errorf("%w: ip-count %d is not between %d and %d, which IPv4 allows", ErrRequest, r.Count, 1<<(32-maxIPv4Bits), 1<<(32-minIPv4Bits))
	}
	return max((128-log)/stepIPv6*stepIPv6, minIPv6Bits), nil
}

// check says whether the request can be met in a cluster of these families.
func (r Request) check(families []Family) error {
	for family, block := range r.Subnets {
		if !slices.Contains(families, family) {
			return fmt.Errorf("%w: cidr-blocks has %s, but the cluster has no %s", ErrRequest, block, family)
		}
	}
	return nil
}
