// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unique"

	"github.com/oracle/oci-cloud-controller-manager/pkg/oci"
)

// attachment is what is kept of an oci.VNICAttachment.
type attachment struct{ vnicID, subnetID string }

// wiring is which VNICs the instances of a compartment have, by a complete list.
type wiring struct {
	of       map[string][]attachment // by instance, in the order of the VNICs' OCIDs
	inSubnet map[string]int          // number of VNICs
}

// wiring returns the attachments of a compartment. Everybody who asks shares one list.
func (i *Inventory) wiring(ctx context.Context, compartmentID string, maxAge time.Duration) (*wiring, error) {
	return i.wirings.get(ctx, compartmentID, maxAge, func(ctx context.Context) (*wiring, error) {
		all, err := i.compute.ListVNICAttachments(ctx, compartmentID, "")
		if err != nil {
			return nil, err
		}
		i.serves(Fallback{List: ListOfAttachments, CompartmentID: compartmentID})
		w := &wiring{of: map[string][]attachment{}, inSubnet: map[string]int{}}
		for _, a := range inUse(all) {
			if a.InstanceID == "" {
				continue
			}
			instance := shared(a.InstanceID)
			w.of[instance] = append(w.of[instance], attachment{shared(a.VNICID), shared(a.SubnetID)})
			w.inSubnet[shared(a.SubnetID)]++
		}
		i.pace.set("primary VNICs in "+compartmentID, i.primariesUnknown(w))
		return w, nil
	})
}

// primariesUnknown counts the VNICs of instances that have several, and of which it is not known yet which is the primary.
func (i *Inventory) primariesUnknown(w *wiring) int {
	n := 0
	for _, attached := range w.of {
		known := func(a attachment) bool { _, primary := i.primaries.last(a.vnicID); return primary }
		if len(attached) > 1 && !slices.ContainsFunc(attached, known) {
			n += len(attached)
		}
	}
	return n
}

// shared returns the one copy of a text that the process keeps: thousands of instances have the same compartment, and
// the same OCID stands in three lists.
func shared(text string) string { return unique.Make(text).Value() }

// addressBook is what complete lists said about the addresses of the VNICs in a subnet. One that is of no use says why.
type addressBook struct {
	asOf    time.Time
	entries map[string]entry // by VNIC

	denied  error // the lists answered 404
	crowded bool  // the lists have so many more rows than the subnet has nodes that single reads are cheaper
}

// entry is what the lists say about a VNIC.
type entry struct {
	address   string // primary private IPv4; empty if the VNIC has none
	hostName  string
	privateIP string // OCID of the object of address, where it may have a public one
	ipv6      []string
}

const (
	// crowdFactor is how many times more rows than VNICs of instances a subnet's address lists may have. Pods with
	// addresses of their own have rows there.
	crowdFactor = 4
	// crowdedFor and deniedFor are how long an address book is not tried again.
	crowdedFor = time.Hour
	deniedFor  = 10 * time.Minute
)

// useless says whether the book's VNICs must be read one by one.
func (b *addressBook) useless() bool {
	age := time.Since(b.asOf)
	return b.denied != nil && age < deniedFor || b.crowded && age < crowdedFor
}

// book returns the addresses in a subnet with that many VNICs of instances.
func (i *Inventory) book(ctx context.Context, subnetID string, vnics int, maxAge time.Duration) (*addressBook, error) {
	if last, ok := i.books.last(subnetID); ok && last.useless() {
		return last, nil
	}
	return i.books.get(ctx, subnetID, maxAge, func(ctx context.Context) (*addressBook, error) {
		return i.readBook(ctx, subnetID, vnics, maxAge)
	})
}

func (i *Inventory) readBook(ctx context.Context, subnetID string, vnics int, maxAge time.Duration) (*addressBook, error) {
	b := &addressBook{asOf: time.Now()}
	// No older than the addresses: a subnet that has become dual-stack or public since must not cost nodes their addresses.
	subnet, err := i.subnet(ctx, subnetID, maxAge)
	f := Fallback{List: ListOfPrivateIPs, SubnetID: subnetID, Nodes: vnics}
	var private []*oci.PrivateIP
	var ipv6 []*oci.IPv6
	if err == nil {
		f.CompartmentID = subnet.CompartmentID
		private, err = i.network.ListPrivateIPs(ctx, subnetID, "")
	}
	if err == nil && len(subnet.IPv6CIDRs) > 0 {
		f.List = ListOfIPv6s
		ipv6, err = i.network.ListIPv6s(ctx, subnetID, "")
	}
	if errors.Is(err, oci.ErrNotFound) {
		b.denied, f.Denied = err, err
		i.fallBack(f, 1)
		return b, nil
	}
	if err != nil {
		return nil, err
	}
	f.List, f.Rows = ListOfPrivateIPs, len(private)+len(ipv6)
	if f.Rows > crowdFactor*max(vnics, fewEnough) {
		b.crowded = true
		i.fallBack(f, 1)
		return b, nil
	}
	i.serves(f)
	i.serves(Fallback{List: ListOfIPv6s, SubnetID: subnetID, CompartmentID: subnet.CompartmentID})
	b.entries = entriesOf(private, ipv6, !subnet.ProhibitPublicIP)
	return b, nil
}

func entriesOf(private []*oci.PrivateIP, ipv6 []*oci.IPv6, public bool) map[string]entry {
	entries := make(map[string]entry, len(private))
	for _, p := range private {
		if !p.IsPrimary || p.VNICID == "" {
			continue
		}
		e := entry{address: p.IPAddress, hostName: p.HostnameLabel}
		if public {
			e.privateIP = p.ID
		}
		entries[shared(p.VNICID)] = e
	}
	for _, a := range ipv6 {
		if a.VNICID == "" {
			continue
		}
		e := entries[a.VNICID]
		e.ipv6 = append(e.ipv6, a.IPAddress)
		entries[shared(a.VNICID)] = e
	}
	return entries
}

// wired is VNICs for a crowd: from the lists of attachments and addresses. The VNICs have no names, tags and groups.
// false says that the lists do not know the instance's VNICs.
func (i *Inventory) wired(ctx context.Context, instance *oci.Instance, need Need) ([]*oci.VNIC, bool, error) {
	compartment := instance.CompartmentID
	if compartment == "" {
		compartment = i.config.CompartmentID
	}
	w, err := i.wiring(ctx, compartment, need.MaxAge)
	if errors.Is(err, oci.ErrNotFound) {
		// The attachments of each instance, and its VNIC.
		i.fallBack(Fallback{List: ListOfAttachments, CompartmentID: compartment, Nodes: need.Crowd, Denied: err}, 2)
		return nil, false, nil
	}
	if err != nil {
		return nil, false, err
	}
	attached := w.of[instance.ID]
	if len(attached) == 0 {
		return nil, false, nil
	}
	vnics := make([]*oci.VNIC, len(attached))
	for n, a := range attached {
		if vnics[n], err = i.wiredVNIC(ctx, instance, a, w.inSubnet[a.subnetID], need); err != nil {
			return nil, false, err
		}
	}
	return vnics, true, i.primaryFirst(ctx, instance, vnics, need)
}

// primaryFirst puts the primary VNIC first. An only one is the primary; which of several is, a single read says once in
// the life of each VNIC.
func (i *Inventory) primaryFirst(ctx context.Context, instance *oci.Instance, vnics []*oci.VNIC, need Need) error {
	if len(vnics) == 1 {
		vnics[0].IsPrimary = true
		return nil
	}
	for n, v := range vnics {
		_, primary := i.primaries.last(v.ID)
		if !primary && !v.IsPrimary {
			full, err := i.vnic(ctx, v.ID, Need{MaxAge: immutable, Patient: need.Patient})
			if err != nil {
				return err
			}
			primary = full.IsPrimary
		}
		if primary || v.IsPrimary {
			v.IsPrimary = true
			copy(vnics[1:n+1], vnics[:n])
			vnics[0] = v
			return nil
		}
	}
	return fmt.Errorf("%s: %w: none of its %d VNICs says that it is", instance.ID, ErrNoPrimaryVNIC, len(vnics))
}

// wiredVNIC returns a VNIC from the lists, or from a single read where they do not have it.
func (i *Inventory) wiredVNIC(ctx context.Context, instance *oci.Instance, a attachment, neighbours int, need Need) (*oci.VNIC, error) {
	var e entry
	known := false
	if a.subnetID != "" {
		b, err := i.book(ctx, a.subnetID, neighbours, need.MaxAge)
		if err != nil {
			return nil, err
		}
		e, known = b.entries[a.vnicID]
	}
	if !known {
		v, err := i.vnic(ctx, a.vnicID, need)
		if err != nil {
			return nil, err
		}
		copied := *v
		return &copied, nil
	}
	v := &oci.VNIC{
		ID: a.vnicID, SubnetID: a.subnetID, CompartmentID: instance.CompartmentID,
		PrivateIP: e.address, HostnameLabel: e.hostName, IPv6Addresses: ordered(e.ipv6),
	}
	if e.privateIP == "" {
		return v, nil
	}
	var err error
	v.PublicIP, err = i.publicOf(ctx, instance, place{a, e.privateIP, neighbours}, need)
	return v, err
}

// ordered returns addresses in an order that does not depend on how they were read.
func ordered(addresses []string) []string {
	sorted := slices.Clone(addresses)
	slices.SortFunc(sorted, compareAddresses)
	return sorted
}

// inUse picks the attachments that count, in the order of their VNICs' OCIDs.
func inUse(all []*oci.VNICAttachment) []*oci.VNICAttachment {
	var attached []*oci.VNICAttachment
	for _, a := range all {
		if a.State == stateAttached && a.VNICID != "" {
			attached = append(attached, a)
		}
	}
	slices.SortFunc(attached, func(a, b *oci.VNICAttachment) int { return strings.Compare(a.VNICID, b.VNICID) })
	return attached
}
