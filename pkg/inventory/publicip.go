// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"context"
	"errors"
	"net/netip"
	"strings"
	"time"

	"github.com/oracle/oci-cloud-controller-manager/pkg/oci"
)

// Scopes of public addresses: ephemeral ones of VNICs live in an availability domain, reserved ones in the region,
// https://docs.oracle.com/iaas/api/#/en/iaas/latest/PublicIp/ListPublicIps.
const (
	scopeDomain = "AVAILABILITY_DOMAIN"
	scopeRegion = "REGION"
)

// publicCheck is how long it is believed that a VNIC has no public address, or another than the lists say. The lists of
// a compartment do not have the reserved addresses that live in another one.
const publicCheck = time.Hour

// publicOf returns the public address of a VNIC whose subnet allows one, or "".
//
// An address in the lists is believed. That there is none is not, unless the VNIC itself said so within publicCheck:
// the object may be in another compartment, and a node must not lose its address for that.
func (i *Inventory) publicOf(ctx context.Context, instance *oci.Instance, vnicID, privateIPID string, need Need) (string, error) {
	for _, scope := range []struct{ name, domain string }{{scopeDomain, instance.AvailabilityDomain}, {scopeRegion, ""}} {
		listed, err := i.publicIPs(ctx, instance.CompartmentID, scope.name, scope.domain, need.MaxAge)
		if err != nil && !errors.Is(err, oci.ErrNotFound) {
			return "", err
		}
		if address := listed[privateIPID]; address != "" {
			i.publics.put(vnicID, address, time.Now())
			return address, nil
		}
	}
	age := publicCheck
	if said, ok := i.publics.last(vnicID); ok && said != "" {
		age = min(age, need.MaxAge) // it had one, which the lists do not show any more
	}
	v, err := i.vnic(ctx, vnicID, Need{MaxAge: age, Patient: need.Patient})
	if err != nil {
		return "", err
	}
	i.publics.put(vnicID, v.PublicIP, time.Now())
	return v.PublicIP, nil
}

// publicIPs returns the public addresses of a compartment by the OCID of the private IP that they are assigned to.
func (i *Inventory) publicIPs(ctx context.Context, compartmentID, scope, domain string, maxAge time.Duration) (map[string]string, error) {
	key := scope + " " + domain + " in " + compartmentID
	return i.publicLists.get(ctx, key, maxAge, func(ctx context.Context) (map[string]string, error) {
		all, err := i.network.ListPublicIPs(ctx, compartmentID, scope, domain)
		if err != nil {
			return nil, err
		}
		byPrivateIP := map[string]string{}
		for _, p := range all {
			if p.AssignedEntityID != "" && p.IPAddress != "" {
				byPrivateIP[p.AssignedEntityID] = p.IPAddress
			}
		}
		return byPrivateIP, nil
	})
}

// compareAddresses orders addresses by their value, and what is none by its text.
func compareAddresses(a, b string) int {
	x, errX := netip.ParseAddr(a)
	y, errY := netip.ParseAddr(b)
	if errX != nil || errY != nil {
		return strings.Compare(a, b)
	}
	return x.Compare(y)
}
