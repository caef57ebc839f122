// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

// Package inventory knows the instances of the cluster and their network cards.
//
// Everything is read through snapshots: the caller says how old an answer may be, and reads that would be made at the
// same time are made once. What is asked for by name is answered from lists that all callers share.
package inventory

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/oracle/oci-cloud-controller-manager/pkg/oci"
)

// Compute is what the inventory needs of the compute service.
type Compute interface {
	GetInstance(ctx context.Context, id string) (*oci.Instance, error)
	ListInstances(ctx context.Context, compartmentID, displayName string) ([]*oci.Instance, error)
	ListVNICAttachments(ctx context.Context, compartmentID, instanceID string) ([]*oci.VNICAttachment, error)
}

// Network is what the inventory needs of the virtual network service.
type Network interface {
	GetVNIC(ctx context.Context, id string) (*oci.VNIC, error)
	GetSubnet(ctx context.Context, id string) (*oci.Subnet, error)
	ListPrivateIPs(ctx context.Context, subnetID, vnicID string) ([]*oci.PrivateIP, error)
	ListIPv6s(ctx context.Context, subnetID, vnicID string) ([]*oci.IPv6, error)
	ListPublicIPs(ctx context.Context, compartmentID, scope, availabilityDomain string) ([]*oci.PublicIP, error)
}

// Config says where the cluster's instances are.
type Config struct {
	// CompartmentID is where names are looked up.
	CompartmentID string

	// VCNID limits lookups by name to one VCN. If it is empty, the VCN of SubnetID is taken; if that is empty too, every
	// VCN counts, and equal names in two of them are ambiguous.
	VCNID    string
	SubnetID string

	// Trim takes out of an instance what nobody will ask for, before it is remembered; nil keeps everything. Metadata and
	// tags are most of what an instance weighs.
	Trim func(*oci.Instance)
	// Report is told when a list does not serve and single reads stand in for it; may be nil.
	Report func(Fallback)
}

// ErrNoPrimaryVNIC says that an instance has no attached primary VNIC: it is being launched or terminated.
var ErrNoPrimaryVNIC = errors.New("instance has no attached primary VNIC")

const (
	stateTerminating = "TERMINATING"
	stateTerminated  = "TERMINATED"
	stateAttached    = "ATTACHED"

	// immutable is the staleness accepted for what never changes in the life of a resource.
	immutable = unusedAfter
)

// Inventory is safe for concurrent use. The values that it returns are shared and must not be changed.
type Inventory struct {
	config  Config
	compute Compute
	network Network

	instances   snapshots[*oci.Instance]
	lists       snapshots[map[string]*oci.Instance] // by compartment
	attachments snapshots[[]*oci.VNICAttachment]
	vnics       snapshots[*oci.VNIC]
	subnets     snapshots[*oci.Subnet]
	primaries   snapshots[struct{}] // the VNICs that are primary, which never changes in their life
	catalogues  snapshots[*catalogue]
	misses      misses

	// For crowds.
	wirings     snapshots[*wiring]      // by compartment
	books       snapshots[*addressBook] // by subnet
	publicLists snapshots[*publicList]  // by scope, availability domain and compartment
	publics     snapshots[string]       // public addresses, by VNIC
	pace        *pace
	announced   announcements

	heldUp heldUp
}

// New returns an Inventory that has read nothing yet.
func New(config Config, compute Compute, network Network) *Inventory {
	registerMetrics()
	i := &Inventory{config: config, compute: compute, network: network, pace: newPace()}
	for kind, name := range map[string]*string{
		"instance": &i.instances.kind, "instances": &i.lists.kind, "attachments-of-instance": &i.attachments.kind, "vnic": &i.vnics.kind,
		"subnet": &i.subnets.kind, "catalogue": &i.catalogues.kind, "attachments": &i.wirings.kind, "addresses": &i.books.kind,
		"public-addresses": &i.publicLists.kind,
	} {
		*name = kind
	}
	for _, pause := range []*time.Duration{&i.lists.pause, &i.wirings.pause, &i.books.pause, &i.publicLists.pause} {
		*pause = listPause
	}
	return i
}

// trimmed prepares an instance for being remembered.
func (i *Inventory) trimmed(instance *oci.Instance) *oci.Instance {
	if i.config.Trim != nil {
		i.config.Trim(instance)
	}
	for _, text := range []*string{
		&instance.ID, &instance.CompartmentID, &instance.AvailabilityDomain, &instance.FaultDomain,
		&instance.Region, &instance.Shape, &instance.State,
	} {
		*text = shared(*text)
	}
	return instance
}

// Forget drops what is known about an instance that is gone.
func (i *Inventory) Forget(id string) {
	if instance, known := i.instances.last(id); known {
		i.attachments.forget(attachmentsKey(id, instance.CompartmentID))
	}
	i.instances.forget(id)
}

func attachmentsKey(instanceID, compartmentID string) string {
	return instanceID + " in " + compartmentID
}

// PrimaryVNIC returns the primary VNIC of an instance.
func (i *Inventory) PrimaryVNIC(ctx context.Context, instance *oci.Instance, need Need) (*oci.VNIC, error) {
	if need.crowded() {
		vnics, ok, err := i.wired(ctx, instance, need)
		if err != nil {
			return nil, err
		}
		if ok {
			return vnics[0], nil
		}
	}
	attached, err := i.attached(ctx, instance, need)
	if err != nil {
		return nil, err
	}
	return i.primaryOf(ctx, instance, attached, need)
}

func (i *Inventory) primaryOf(ctx context.Context, instance *oci.Instance, attached []*oci.VNICAttachment, need Need) (*oci.VNIC, error) {
	if len(attached) == 1 {
		return i.vnic(ctx, attached[0].VNICID, need)
	}
	for _, a := range attached {
		if _, primary := i.primaries.last(a.VNICID); primary {
			return i.vnic(ctx, a.VNICID, need)
		}
	}
	for _, a := range attached {
		vnic, err := i.vnic(ctx, a.VNICID, need)
		if err != nil {
			return nil, err
		}
		if vnic.IsPrimary {
			return vnic, nil
		}
	}
	return nil, fmt.Errorf("%s: %w: none of its %d VNICs says that it is", instance.ID, ErrNoPrimaryVNIC, len(attached))
}

// VNICs returns all attached VNICs of an instance, the primary one first and the others in the order of their OCIDs, as
// of at most maxAge ago. It is all of them or an error.
func (i *Inventory) VNICs(ctx context.Context, instance *oci.Instance, need Need) ([]*oci.VNIC, error) {
	if need.crowded() {
		if vnics, ok, err := i.wired(ctx, instance, need); ok || err != nil {
			return vnics, err
		}
	}
	attached, err := i.attached(ctx, instance, need)
	if err != nil {
		return nil, err
	}
	primary, err := i.primaryOf(ctx, instance, attached, need)
	if err != nil {
		return nil, err
	}
	vnics := []*oci.VNIC{primary}
	for _, a := range attached {
		if a.VNICID == primary.ID {
			continue
		}
		vnic, err := i.vnic(ctx, a.VNICID, need)
		if err != nil {
			return nil, err
		}
		vnics = append(vnics, vnic)
	}
	return vnics, nil
}

// attached returns the attachments of an instance that carry traffic, at least one, in the order of their VNICs.
func (i *Inventory) attached(ctx context.Context, instance *oci.Instance, need Need) ([]*oci.VNICAttachment, error) {
	list := func(compartmentID string, maxAge time.Duration) ([]*oci.VNICAttachment, error) {
		if compartmentID == "" {
			compartmentID = i.config.CompartmentID
		}
		return i.attachments.get(ctx, attachmentsKey(instance.ID, compartmentID), maxAge, func(ctx context.Context) ([]*oci.VNICAttachment, error) {
			if need.crowded() { // the list of the compartment does not serve
				if err := i.pace.wait(ctx, need, "the VNICs of "+instance.ID); err != nil {
					return nil, err
				}
			}
			all, err := i.compute.ListVNICAttachments(ctx, compartmentID, instance.ID)
			return inUse(all), err
		})
	}
	attached, err := list(instance.CompartmentID, need.MaxAge)
	if err != nil && !errors.Is(err, oci.ErrNotFound) {
		return nil, err
	}
	if len(attached) > 0 {
		return attached, nil
	}
	// Attachments are listed by compartment, and what the caller has may be from before the instance was moved.
	fresh, freshErr := i.Instance(ctx, instance.ID, Need{})
	if freshErr != nil {
		return nil, freshErr
	}
	if fresh.CompartmentID != instance.CompartmentID {
		attached, err = list(fresh.CompartmentID, 0)
	}
	if err != nil {
		return nil, err
	}
	if len(attached) == 0 {
		return nil, fmt.Errorf("%s (%s): %w", instance.ID, fresh.State, ErrNoPrimaryVNIC)
	}
	return attached, nil
}

// VNIC returns a VNIC by a read of its own, with its tags.
func (i *Inventory) VNIC(ctx context.Context, id string, need Need) (*oci.VNIC, error) {
	return i.vnic(ctx, id, need)
}

func (i *Inventory) vnic(ctx context.Context, id string, need Need) (*oci.VNIC, error) {
	vnic, err := i.vnics.get(ctx, id, need.MaxAge, func(ctx context.Context) (*oci.VNIC, error) {
		if err := i.pace.wait(ctx, need, "VNIC "+id); err != nil {
			return nil, err
		}
		vnic, err := i.network.GetVNIC(ctx, id)
		if err != nil {
			return nil, err
		}
		vnic.IPv6Addresses = ordered(vnic.IPv6Addresses)
		return vnic, nil
	})
	if err == nil && vnic.IsPrimary {
		i.primaries.put(id, struct{}{}, time.Now())
	}
	return vnic, err
}

// subnet returns a subnet. Its VCN and its DNS label never change.
func (i *Inventory) subnet(ctx context.Context, id string, maxAge time.Duration) (*oci.Subnet, error) {
	return i.subnets.get(ctx, id, maxAge, func(ctx context.Context) (*oci.Subnet, error) {
		return i.network.GetSubnet(ctx, id)
	})
}

// Terminated says whether an instance is known to be terminated, from what was read before: it makes no call.
func (i *Inventory) Terminated(id string) bool {
	instance, known := i.instances.last(id)
	return known && instance.State == stateTerminated
}
