// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/oracle/oci-cloud-controller-manager/pkg/oci"
)

// concurrentReads bounds the reads that one refresh has under way. The client's limiter bounds their rate.
const concurrentReads = 8

// catalogue is a complete view of one compartment by everything that can name an instance. It is made of lists, so that
// a lookup by name costs pages, whoever asks and however many ask. Terminated instances, and those outside the VCN, are
// not in it.
type catalogue struct {
	asOf      time.Time
	instances map[string]*oci.Instance

	// Each index leads to the OCIDs of all instances that match.
	displayNames map[string][]string // lower case
	hostNames    map[string][]string // VNIC host name labels, lower case, alone and as label.subnet
	addresses    map[netip.Addr][]string

	// hidden are subnets that answered 404. They cannot be in the view: they are another VCN's, or a policy is missing.
	hidden []string
}

// catalogue returns the view of a compartment as of at most maxAge ago.
func (i *Inventory) catalogue(ctx context.Context, compartmentID string, maxAge time.Duration) (*catalogue, error) {
	return i.catalogues.get(ctx, compartmentID, maxAge, func(ctx context.Context) (*catalogue, error) {
		c, err := i.readCatalogue(ctx, compartmentID)
		if err != nil {
			return nil, fmt.Errorf("list the instances of compartment %s: %w", compartmentID, err)
		}
		return c, nil
	})
}

func (i *Inventory) readCatalogue(ctx context.Context, compartmentID string) (*catalogue, error) {
	c := &catalogue{
		asOf:         time.Now(),
		instances:    map[string]*oci.Instance{},
		displayNames: map[string][]string{},
		hostNames:    map[string][]string{},
		addresses:    map[netip.Addr][]string{},
	}
	vcn, err := i.vcn(ctx)
	if err != nil {
		return nil, err
	}
	var instances map[string]*oci.Instance
	var attachments []*oci.VNICAttachment
	group, groupCtx := errgroup.WithContext(ctx)
	group.Go(func() (err error) {
		instances, err = i.list(groupCtx, compartmentID, 0)
		return err
	})
	group.Go(func() (err error) {
		attachments, err = i.compute.ListVNICAttachments(groupCtx, compartmentID, "")
		return err
	})
	if err := group.Wait(); err != nil {
		return nil, err
	}
	bySubnet := map[string][]*oci.VNICAttachment{}
	for _, a := range inUse(attachments) {
		if a.SubnetID != "" && a.InstanceID != "" {
			bySubnet[a.SubnetID] = append(bySubnet[a.SubnetID], a)
		}
	}
	subnets, hidden, err := i.subnetsOf(ctx, bySubnet, vcn)
	c.hidden = hidden
	if err != nil {
		return nil, err
	}
	inVCN := map[string]bool{}
	for id := range subnets {
		for _, a := range bySubnet[id] {
			inVCN[a.InstanceID] = true
		}
	}
	for _, id := range keys(instances) {
		instance := instances[id]
		if gone(instance) || vcn != "" && !inVCN[instance.ID] {
			continue
		}
		c.instances[instance.ID] = instance
		add(c.displayNames, strings.ToLower(instance.DisplayName), instance.ID)
		i.instances.put(instance.ID, instance, c.asOf)
	}
	return c, i.addCards(ctx, c, subnets, bySubnet)
}

// vcn returns the OCID of the VCN that names are looked up in; empty means all.
func (i *Inventory) vcn(ctx context.Context) (string, error) {
	if i.config.VCNID != "" || i.config.SubnetID == "" {
		return i.config.VCNID, nil
	}
	subnet, err := i.subnet(ctx, i.config.SubnetID)
	if err != nil {
		return "", fmt.Errorf("find the cluster's VCN by subnet %s: %w", i.config.SubnetID, err)
	}
	return subnet.VCNID, nil
}

// subnetsOf reads the subnets that carry instances, and returns those of the VCN, and the OCIDs of those that it may not
// read. VCN and DNS label never change, so each subnet is read once.
func (i *Inventory) subnetsOf(ctx context.Context, bySubnet map[string][]*oci.VNICAttachment, vcn string) (map[string]*oci.Subnet, []string, error) {
	ids := keys(bySubnet)
	all := make([]*oci.Subnet, len(ids))
	group, groupCtx := errgroup.WithContext(ctx)
	group.SetLimit(concurrentReads)
	for n, id := range ids {
		group.Go(func() error {
			subnet, err := i.subnet(groupCtx, id)
			if err != nil && !errors.Is(err, oci.ErrNotFound) {
				return err
			}
			all[n] = subnet
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return nil, nil, err
	}
	subnets := map[string]*oci.Subnet{}
	var hidden []string
	for n, subnet := range all {
		switch {
		case subnet == nil:
			hidden = append(hidden, ids[n])
		case vcn == "" || subnet.VCNID == vcn:
			subnets[ids[n]] = subnet
		}
	}
	return subnets, hidden, nil
}

// card is what names an instance on the network.
type card struct {
	instanceID, hostName string
	addresses            []string
}

// addCards indexes the instances by the host names and addresses of their VNICs.
func (i *Inventory) addCards(ctx context.Context, c *catalogue, subnets map[string]*oci.Subnet, bySubnet map[string][]*oci.VNICAttachment) error {
	ids := keys(subnets)
	all := make([][]card, len(ids))
	group, groupCtx := errgroup.WithContext(ctx)
	group.SetLimit(concurrentReads)
	for n, id := range ids {
		group.Go(func() (err error) {
			all[n], err = i.cards(groupCtx, id, len(subnets[id].IPv6CIDRs) > 0, bySubnet[id])
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	for n, cards := range all {
		for _, card := range cards {
			if c.instances[card.instanceID] != nil {
				c.index(card, subnets[ids[n]].DNSLabel)
			}
		}
	}
	return nil
}

func (c *catalogue) index(card card, subnetLabel string) {
	if card.hostName != "" {
		host := strings.ToLower(card.hostName)
		add(c.hostNames, host, card.instanceID)
		if subnetLabel != "" {
			add(c.hostNames, host+"."+strings.ToLower(subnetLabel), card.instanceID)
		}
	}
	for _, text := range card.addresses {
		if address, err := netip.ParseAddr(text); err == nil {
			add(c.addresses, address.Unmap(), card.instanceID)
		}
	}
}

// cards lists the network cards of one subnet. Where a policy hides the lists, each VNIC is read once in its life.
func (i *Inventory) cards(ctx context.Context, subnetID string, ipv6 bool, attachments []*oci.VNICAttachment) ([]card, error) {
	owner := map[string]string{}
	for _, a := range attachments {
		owner[a.VNICID] = a.InstanceID
	}
	var cards []card
	private, err := i.network.ListPrivateIPs(ctx, subnetID, "")
	for _, p := range private {
		c := card{instanceID: owner[p.VNICID], addresses: []string{p.IPAddress}}
		if p.IsPrimary {
			c.hostName = p.HostnameLabel
		}
		cards = append(cards, c)
	}
	if err == nil && ipv6 {
		var addresses []*oci.IPv6
		addresses, err = i.network.ListIPv6s(ctx, subnetID, "")
		for _, a := range addresses {
			cards = append(cards, card{instanceID: owner[a.VNICID], addresses: []string{a.IPAddress}})
		}
	}
	if errors.Is(err, oci.ErrNotFound) {
		return i.cardsByVNIC(ctx, attachments)
	}
	return cards, err
}

func (i *Inventory) cardsByVNIC(ctx context.Context, attachments []*oci.VNICAttachment) ([]card, error) {
	cards := make([]card, len(attachments))
	group, groupCtx := errgroup.WithContext(ctx)
	group.SetLimit(concurrentReads)
	for n, a := range attachments {
		group.Go(func() error {
			vnic, err := i.vnic(groupCtx, a.VNICID, immutable)
			if errors.Is(err, oci.ErrNotFound) {
				return nil // detached since the list was read
			}
			if err == nil {
				cards[n] = card{a.InstanceID, vnic.HostnameLabel, append([]string{vnic.PrivateIP}, vnic.IPv6Addresses...)}
			}
			return err
		})
	}
	return cards, group.Wait()
}

func gone(instance *oci.Instance) bool {
	return instance.State == stateTerminated || instance.State == stateTerminating
}

func add[K comparable](index map[K][]string, key K, id string) {
	if !slices.Contains(index[key], id) {
		index[key] = append(index[key], id)
	}
}

func keys[V any](m map[string]V) []string {
	list := make([]string, 0, len(m))
	for k := range m {
		list = append(list, k)
	}
	slices.Sort(list)
	return list
}
