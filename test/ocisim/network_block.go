// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package ocisim

import (
	"net/netip"
	"slices"

	"github.com/oracle/oci-go-sdk/v65/core"
)

// lastOf is the last address of a block.
func lastOf(p netip.Prefix) netip.Addr {
	raw := p.Masked().Addr().AsSlice()
	for bit := p.Bits(); bit < len(raw)*8; bit++ {
		raw[bit/8] |= 1 << (7 - bit%8)
	}
	last, _ := netip.AddrFromSlice(raw)
	return last
}

// blockOf returns the block that has an address.
func (p *addressPool) blockOf(a netip.Addr) (netip.Prefix, bool) {
	for _, block := range p.blocks {
		if block.Contains(a) {
			return block, true
		}
	}
	return netip.Prefix{}, false
}

// fits says whether a block lies within the addresses that can be assigned.
func (p *addressPool) fits(block netip.Prefix) bool {
	return p.assignable(block.Addr()) && p.assignable(lastOf(block))
}

// claimBlock takes a whole block, if none of its addresses is taken.
func (p *addressPool) claimBlock(block netip.Prefix) bool {
	for a := range p.used {
		if block.Contains(a) {
			return false
		}
	}
	if slices.ContainsFunc(p.blocks, block.Overlaps) {
		return false
	}
	p.blocks = append(p.blocks, block)
	p.free -= blockSize(block)
	return true
}

func (p *addressPool) releaseBlock(block netip.Prefix) {
	if i := slices.Index(p.blocks, block); i >= 0 {
		p.blocks = slices.Delete(p.blocks, i, i+1)
		p.free += blockSize(block)
	}
}

// takeBlock takes the first free block of a length.
func (p *addressPool) takeBlock(bits int) (netip.Prefix, bool) {
	for block := netip.PrefixFrom(p.prefix.Addr(), bits); p.prefix.Contains(block.Addr()); block = netip.PrefixFrom(lastOf(block).Next(), bits) {
		if p.fits(block) && p.claimBlock(block) {
			return block, true
		}
	}
	return netip.Prefix{}, false
}

// blockSize is the number of addresses of an IPv4 block. IPv6 pools are never full.
func blockSize(block netip.Prefix) int {
	if block.Addr().Is6() {
		return 0
	}
	return 1 << (32 - block.Bits())
}

// takeBlock gives out a block of a subnet: the wanted one, or any when wanted is empty. It returns its first address.
func (cl *cloud) takeBlock(subnet *core.Subnet, wanted string, bits int, v6 bool) (string, error) {
	id, pool := value(subnet.Id), cl.subnetPool(subnet, v6)
	if pool == nil || bits <= pool.prefix.Bits() || bits > pool.prefix.Addr().BitLen() {
		return "", errInvalid("cidrPrefixLength %d is not within subnet %s.", bits, id)
	}
	if wanted == "" {
		if !v6 {
			if err := cl.rule(AddressBlockNeedsAddress, bits); err != nil {
				return "", err
			}
		}
		if block, ok := pool.takeBlock(bits); ok {
			return block.Addr().String(), nil
		}
		if err := cl.rule(SubnetFull, id); err != nil {
			return "", err
		}
		return "", errLimit("The subnet %s has no free block of length /%d.", id, bits)
	}
	a, err := netip.ParseAddr(wanted)
	if err != nil || a.Is6() != v6 {
		return "", cl.rule(AddressOutsideSubnet, wanted, id)
	}
	block := netip.PrefixFrom(a, bits)
	if block.Masked() != block {
		if err := cl.rule(AddressBlockUnaligned, wanted, bits); err != nil {
			return "", err
		}
		block = block.Masked()
	}
	if !pool.fits(block) {
		if err := cl.rule(AddressOutsideSubnet, block.String(), id); err != nil {
			return "", err
		}
	}
	if !pool.claimBlock(block) {
		if err := cl.rule(AddressInUse, block.String(), id); err != nil {
			return "", err
		}
	}
	return block.Addr().String(), nil
}

// giveBlockBack returns an address, or the block that begins with it.
func (cl *cloud) giveBlockBack(subnetID, address string, bits *int) {
	if bits == nil {
		cl.giveBack(subnetID, address)
		return
	}
	subnet := subnets.find(cl, subnetID)
	a, err := netip.ParseAddr(address)
	if subnet == nil || err != nil {
		return
	}
	if pool := cl.subnetPool(subnet, a.Is6()); pool != nil {
		pool.releaseBlock(netip.PrefixFrom(a, *bits))
	}
}
