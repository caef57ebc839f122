// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package loadbalancer

import (
	"cmp"
	"net/netip"
	"slices"

	"github.com/oracle/oci-cloud-controller-manager/pkg/oci"
)

// sortedAddresses puts public addresses before private ones, IPv4 before IPv6, and then sorts by number. The service gives
// them in any order.
func sortedAddresses(addresses []oci.BalancerAddress) []oci.BalancerAddress {
	out := slices.Clone(addresses)
	slices.SortStableFunc(out, func(a, b oci.BalancerAddress) int {
		if a.Public != b.Public {
			if a.Public {
				return -1
			}
			return 1
		}
		x, errX := netip.ParseAddr(a.IP)
		y, errY := netip.ParseAddr(b.IP)
		if errX != nil || errY != nil {
			return cmp.Compare(a.IP, b.IP)
		}
		return x.Compare(y) // IPv4 sorts before IPv6
	})
	return out
}

// canonical is the one spelling of an address; text that is none stays as it is.
func canonical(text string) string {
	ip, err := netip.ParseAddr(text)
	if err != nil {
		return text
	}
	return ip.String()
}

// sameAddress compares addresses by value.
func sameAddress(a, b string) bool {
	x, errX := netip.ParseAddr(a)
	y, errY := netip.ParseAddr(b)
	return errX == nil && errY == nil && x == y
}

// isPublicCandidate says whether the text can be the address of a public IP object, which is always IPv4.
func isPublicCandidate(text string) bool {
	ip, err := netip.ParseAddr(text)
	return err == nil && ip.Is4()
}
