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

// place is where a public address may be: on a private address of a VNIC, which has so many neighbours in its subnet.
type place struct {
	attachment

	privateIPID string
	neighbours  int
}

// publicOf returns the public address of a VNIC whose subnet allows one, or "".
//
// An address in the lists is believed. That there is none is not, unless the VNIC itself said so within publicCheck:
// the object may be in another compartment, and a node must not lose its address for that.
func (i *Inventory) publicOf(ctx context.Context, instance *oci.Instance, at place, need Need) (string, error) {
	for _, scope := range []struct{ name, domain string }{{scopeDomain, instance.AvailabilityDomain}, {scopeRegion, ""}} {
		list, err := i.publicIPs(ctx, instance.CompartmentID, scope.name, scope.domain, need)
		if err != nil {
			return "", err
		}
		if address := list.byPrivateIP[at.privateIPID]; address != "" {
			i.publics.put(at.vnicID, address, time.Now())
			return address, nil
		}
	}
	age := publicCheck
	if said, ok := i.publics.last(at.vnicID); ok && said != "" {
		age = min(age, need.MaxAge) // it had one, which the lists do not show any more
	}
	i.pace.set("public addresses in "+at.subnetID, at.neighbours)
	v, err := i.vnic(ctx, at.vnicID, Need{MaxAge: age, Patient: need.Patient})
	if err != nil {
		return "", err
	}
	i.publics.put(at.vnicID, v.PublicIP, time.Now())
	return v.PublicIP, nil
}

// publicList is what a list said about public addresses, by the OCID of the private IP that they are assigned to.
type publicList struct {
	asOf        time.Time
	byPrivateIP map[string]string
	denied      bool // the list answered 404
}

// publicIPs returns the public addresses of a compartment. A list that a policy hides is empty: then each VNIC is asked.
func (i *Inventory) publicIPs(ctx context.Context, compartmentID, scope, domain string, need Need) (*publicList, error) {
	key := scope + " " + domain + " in " + compartmentID
	if last, ok := i.publicLists.last(key); ok && last.denied && time.Since(last.asOf) < deniedFor {
		return last, nil
	}
	return i.publicLists.get(ctx, key, need.MaxAge, func(ctx context.Context) (*publicList, error) {
		list := &publicList{asOf: time.Now(), byPrivateIP: map[string]string{}}
		all, err := i.network.ListPublicIPs(ctx, compartmentID, scope, domain)
		if errors.Is(err, oci.ErrNotFound) {
			list.denied = true
			// The reads are paced by subnet.
			i.fallBack(Fallback{List: ListOfPublicIPs, CompartmentID: compartmentID, Nodes: need.Crowd, Denied: err}, 0)
			return list, nil
		}
		if err != nil {
			return nil, err
		}
		for _, p := range all {
			if p.AssignedEntityID != "" && p.IPAddress != "" {
				list.byPrivateIP[p.AssignedEntityID] = p.IPAddress
			}
		}
		return list, nil
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
