// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"context"
	"net/netip"
	"slices"
	"time"

	"github.com/oracle/oci-cloud-controller-manager/pkg/oci"
)

// subnetAge is how old an answer about VNICs may be that does not explain the addresses of a node.
const subnetAge = 30 * time.Second

// SubnetOf returns the subnet of an instance's VNIC that has one of the addresses, or of the primary one if none has. A VNIC
// never moves to another subnet, so what is known already is taken however old it is; need.MaxAge does not count.
func (i *Inventory) SubnetOf(ctx context.Context, instanceID string, addresses []string, need Need) (string, error) {
	primary := ""
	for _, age := range []time.Duration{immutable, subnetAge} {
		need.MaxAge = age
		instance, err := i.Instance(ctx, instanceID, need)
		if err != nil {
			return "", err
		}
		vnics, err := i.VNICs(ctx, instance, need)
		if err != nil {
			return "", err
		}
		for _, v := range vnics {
			if hasAddress(v, addresses) {
				return v.SubnetID, nil
			}
		}
		primary = vnics[0].SubnetID
	}
	return primary, nil
}

// hasAddress says whether a VNIC has one of the addresses.
func hasAddress(v *oci.VNIC, addresses []string) bool {
	own := append([]string{v.PrivateIP}, v.IPv6Addresses...)
	return slices.ContainsFunc(own, func(text string) bool {
		a, err := netip.ParseAddr(text)
		return err == nil && slices.ContainsFunc(addresses, func(other string) bool {
			b, err := netip.ParseAddr(other)
			return err == nil && a == b
		})
	})
}
