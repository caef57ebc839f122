// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package podcidr

import (
	"cmp"
	"context"
	"fmt"
	"net/netip"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/oracle/oci-cloud-controller-manager/pkg/oci"
)

// tag marks the address blocks of pods. Its value does not matter: the existing implementation looks for the key alone.
const tag = "pod-cidr"

// Network is what allocation needs of the cloud; *oci.Network is one.
type Network interface {
	ListPrivateIPs(ctx context.Context, subnetID, vnicID string) ([]*oci.PrivateIP, error)
	ListIPv6s(ctx context.Context, subnetID, vnicID string) ([]*oci.IPv6, error)
	CreatePrivateIP(ctx context.Context, b oci.AddressBlock, retryToken string) (*oci.PrivateIP, error)
	CreateIPv6(ctx context.Context, b oci.AddressBlock, retryToken string) (*oci.IPv6, error)
}

// Allocator gives VNICs their blocks.
type Allocator struct {
	network   Network
	clusterID string
}

// New returns an Allocator. clusterID goes into retry tokens.
func New(network Network, clusterID string) *Allocator {
	return &Allocator{network: network, clusterID: clusterID}
}

// Allocate returns the pod CIDRs of an instance in the order of families: those that its primary VNIC has, and new ones
// where it has none. A list that fails is an error, never "none": a block must not be allocated twice. If one family
// fails, what the other has got is found again by the next call.
func (a *Allocator) Allocate(ctx context.Context, instanceID, vnicID string, r Request, families []Family) ([]netip.Prefix, error) {
	if err := r.check(families); err != nil {
		return nil, err
	}
	prefixes := make([]netip.Prefix, len(families))
	group, groupCtx := errgroup.WithContext(ctx)
	for n, family := range families {
		group.Go(func() (err error) {
			prefixes[n], err = a.allocate(groupCtx, instanceID, vnicID, r, family)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	return prefixes, nil
}

func (a *Allocator) allocate(ctx context.Context, instanceID, vnicID string, r Request, family Family) (netip.Prefix, error) {
	bits, err := r.Bits(family)
	if err != nil {
		return netip.Prefix{}, err
	}
	present, err := a.present(ctx, vnicID, family)
	if err != nil {
		return netip.Prefix{}, fmt.Errorf("list the %s blocks of VNIC %s: %w", family, vnicID, err)
	}
	if len(present) > 0 {
		return present[0], nil
	}
	block := oci.AddressBlock{VNICID: vnicID, Bits: bits}
	if subnet, ok := r.Subnets[family]; ok {
		block.SubnetCIDR = subnet.String()
	}
	token := oci.RetryToken("Create"+string(family)+"Block", a.clusterID, instanceID, block)
	block.Tags.Freeform = map[string]string{tag: "true"}
	address, length := "", 0
	if family == IPv4 {
		var p *oci.PrivateIP
		if p, err = a.network.CreatePrivateIP(ctx, block, token); err == nil {
			address, length = p.IPAddress, p.Bits
		}
	} else {
		var p *oci.IPv6
		if p, err = a.network.CreateIPv6(ctx, block, token); err == nil {
			address, length = p.IPAddress, p.Bits
		}
	}
	if err != nil {
		return netip.Prefix{}, fmt.Errorf("allocate a /%d %s block for VNIC %s: %w", bits, family, vnicID, err)
	}
	return prefixOf(address, cmp.Or(length, bits))
}

// present lists the blocks that a VNIC has, in their order.
func (a *Allocator) present(ctx context.Context, vnicID string, family Family) ([]netip.Prefix, error) {
	var list []netip.Prefix
	add := func(address string, bits int, tags oci.Tags) error {
		if _, ours := tags.Freeform[tag]; !ours || bits == 0 {
			return nil
		}
		prefix, err := prefixOf(address, bits)
		list = append(list, prefix)
		return err
	}
	if family == IPv4 {
		all, err := a.network.ListPrivateIPs(ctx, "", vnicID)
		if err != nil {
			return nil, err
		}
		for _, p := range all {
			if err := add(p.IPAddress, p.Bits, p.Tags); err != nil {
				return nil, err
			}
		}
	} else {
		all, err := a.network.ListIPv6s(ctx, "", vnicID)
		if err != nil {
			return nil, err
		}
		for _, p := range all {
			if err := add(p.IPAddress, p.Bits, p.Tags); err != nil {
				return nil, err
			}
		}
	}
	slices.SortFunc(list, func(x, y netip.Prefix) int { return x.Addr().Compare(y.Addr()) })
	return list, nil
}

func prefixOf(address string, bits int) (netip.Prefix, error) {
	a, err := netip.ParseAddr(address)
	if err != nil {
		return netip.Prefix{}, fmt.Errorf("address block: %w", err)
	}
	prefix, err := a.Prefix(bits)
	if err != nil {
		return netip.Prefix{}, fmt.Errorf("address block %s: %w", address, err)
	}
	return prefix, nil
}
