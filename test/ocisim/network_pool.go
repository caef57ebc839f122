// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package ocisim

import (
	"net/netip"

	"github.com/oracle/oci-go-sdk/v65/core"
)

// publicRange is where public addresses come from. It is the range reserved for benchmarks, so that no address of
// the simulator can be anybody's.
var publicRange = netip.MustParsePrefix("198.18.0.0/15")

// addressPool hands out the addresses of a subnet, lowest first.
type addressPool struct {
	prefix netip.Prefix
	next   netip.Addr
	used   map[netip.Addr]bool
	blocks []netip.Prefix // taken as a whole
	free   int            // remaining; meaningless for IPv6, which is never full
}

// reservedHead and reservedTail are the addresses of a subnet that OCI keeps: network, router and broadcast.
const (
	reservedHead = 2
	reservedTail = 1
)

func newAddressPool(prefix netip.Prefix) *addressPool {
	prefix = prefix.Masked()
	p := &addressPool{prefix: prefix, used: map[netip.Addr]bool{}, free: 1 << 30}
	p.next = p.first()
	if bits := prefix.Addr().BitLen() - prefix.Bits(); bits < 30 {
		p.free = 1<<bits - reservedHead - reservedTail
	}
	return p
}

func (p *addressPool) first() netip.Addr {
	a := p.prefix.Addr()
	for range reservedHead {
		a = a.Next()
	}
	return a
}

// assignable says whether an address may be given to a VNIC.
func (p *addressPool) assignable(a netip.Addr) bool {
	if !p.prefix.Contains(a) || a.Less(p.first()) {
		return false
	}
	return a.Is6() || p.prefix.Contains(a.Next())
}

// take returns a free address.
func (p *addressPool) take() (netip.Addr, bool) {
	if p.free <= 0 {
		return netip.Addr{}, false
	}
	for {
		block, blocked := p.blockOf(p.next)
		if !blocked && !p.used[p.next] && p.assignable(p.next) {
			break
		}
		if blocked {
			p.next = lastOf(block)
		}
		p.next = p.next.Next()
		if !p.assignable(p.next) {
			p.next = p.first()
		}
	}
	a := p.next
	p.claim(a)
	p.next = p.next.Next()
	return a, true
}

// claim marks an address as used; false if it was.
func (p *addressPool) claim(a netip.Addr) bool {
	if _, blocked := p.blockOf(a); blocked || p.used[a] {
		return false
	}
	p.used[a] = true
	p.free--
	return true
}

func (p *addressPool) release(a netip.Addr) {
	if p.used[a] {
		delete(p.used, a)
		p.free++
	}
}

// subnetPool returns the pool of a subnet for a family, or nil when the subnet has no such block.
func (cl *cloud) subnetPool(subnet *core.Subnet, v6 bool) *addressPool {
	key, block := value(subnet.Id), value(subnet.CidrBlock)
	if v6 {
		key, block = key+"/v6", value(subnet.Ipv6CidrBlock)
	}
	if pool := cl.pools[key]; pool != nil {
		return pool
	}
	prefix, err := netip.ParsePrefix(block)
	if err != nil {
		return nil
	}
	pool := newAddressPool(prefix)
	cl.pools[key] = pool
	return pool
}

// takeAddress gives out an address of a subnet: the wanted one, or any when wanted is empty.
func (cl *cloud) takeAddress(subnet *core.Subnet, wanted string, v6 bool) (string, error) {
	pool := cl.subnetPool(subnet, v6)
	id := value(subnet.Id)
	if wanted == "" {
		if pool != nil {
			if a, ok := pool.take(); ok {
				return a.String(), nil
			}
		}
		if err := cl.rule(SubnetFull, id); err != nil {
			return "", err
		}
		return "", errLimit("The subnet %s has no free IP address.", id)
	}
	a, err := netip.ParseAddr(wanted)
	if err != nil || pool == nil || !pool.assignable(a) {
		return wanted, cl.rule(AddressOutsideSubnet, wanted, id)
	}
	if !pool.claim(a) {
		return wanted, cl.rule(AddressInUse, wanted, id)
	}
	return a.String(), nil
}

// giveBack returns an address of a subnet.
func (cl *cloud) giveBack(subnetID, address string) {
	subnet := subnets.find(cl, subnetID)
	a, err := netip.ParseAddr(address)
	if subnet == nil || err != nil {
		return
	}
	if pool := cl.subnetPool(subnet, a.Is6()); pool != nil {
		pool.release(a)
	}
}

// takePublicAddress gives out a public address: the wanted one, or any when wanted is empty.
func (cl *cloud) takePublicAddress(wanted string) (string, error) {
	if wanted == "" {
		a, ok := cl.publicPool.take()
		if !ok {
			return "", errLimit("No public IP address is left.")
		}
		return a.String(), nil
	}
	a, err := netip.ParseAddr(wanted)
	if err != nil || !a.Is4() {
		return "", errInvalid("%s is not an IPv4 address", wanted)
	}
	if !cl.publicPool.claim(a) {
		return "", cl.rule(ReservedIPInUse, wanted, "another public IP")
	}
	return a.String(), nil
}

func (cl *cloud) givePublicBack(address string) {
	if a, err := netip.ParseAddr(address); err == nil {
		cl.publicPool.release(a)
	}
}
