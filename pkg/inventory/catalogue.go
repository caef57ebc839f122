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

	labelled map[string]bool // the instances that have a host name label

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
		labelled:     map[string]bool{},
	}
	vcn, err := i.vcn(ctx)
	if err != nil {
		return nil, err
	}
	var instances map[string]*oci.Instance
	var wired *wiring
	group, groupCtx := errgroup.WithContext(ctx)
	group.Go(func() (err error) {
		instances, err = i.list(groupCtx, compartmentID, 0)
		return err
	})
	group.Go(func() (err error) {
		wired, err = i.wiring(groupCtx, compartmentID, 0)
		return err
	})
	if err := group.Wait(); err != nil {
		return nil, err
	}
	bySubnet := map[string][]plug{}
	for instanceID, attached := range wired.of {
		for _, a := range attached {
			if a.subnetID != "" {
				bySubnet[a.subnetID] = append(bySubnet[a.subnetID], plug{instanceID, a.vnicID})
			}
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
			inVCN[a.instanceID] = true
		}
	}
	for _, id := range keys(instances) {
		instance := instances[id]
		if gone(instance) || vcn != "" && !inVCN[instance.ID] {
			continue
		}
		c.instances[instance.ID] = instance
		add(c.displayNames, strings.ToLower(instance.DisplayName), instance.ID)
	}
	return c, i.addCards(ctx, c, subnets, bySubnet)
}

// plug is where a VNIC is attached.
type plug struct{ instanceID, vnicID string }

// vcn returns the OCID of the VCN that names are looked up in; empty means all.
func (i *Inventory) vcn(ctx context.Context) (string, error) {
	if i.config.VCNID != "" || i.config.SubnetID == "" {
		return i.config.VCNID, nil
	}
	subnet, err := i.subnet(ctx, i.config.SubnetID, immutable)
	if err != nil {
		return "", fmt.Errorf("find the cluster's VCN by subnet %s: %w", i.config.SubnetID, err)
	}
	return subnet.VCNID, nil
}

// subnetsOf reads the subnets that carry instances, and returns those of the VCN, and the OCIDs of those that it may not
// read. VCN and DNS label never change, so each subnet is read once.
func (i *Inventory) subnetsOf(ctx context.Context, bySubnet map[string][]plug, vcn string) (map[string]*oci.Subnet, []string, error) {
	ids := keys(bySubnet)
	all := make([]*oci.Subnet, len(ids))
	group, groupCtx := errgroup.WithContext(ctx)
	group.SetLimit(concurrentReads)
	for n, id := range ids {
		group.Go(func() error {
			subnet, err := i.subnet(groupCtx, id, immutable)
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
func (i *Inventory) addCards(ctx context.Context, c *catalogue, subnets map[string]*oci.Subnet, bySubnet map[string][]plug) error {
	ids := keys(subnets)
	all := make([][]card, len(ids))
	group, groupCtx := errgroup.WithContext(ctx)
	group.SetLimit(concurrentReads)
	for n, id := range ids {
		group.Go(func() (err error) {
			all[n], err = i.cards(groupCtx, id, bySubnet[id])
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
		c.labelled[card.instanceID] = true
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

// cards reads what a subnet says about its VNICs: two lists, or a read of each VNIC where they do not serve.
func (i *Inventory) cards(ctx context.Context, subnetID string, plugs []plug) ([]card, error) {
	book, err := i.book(ctx, subnetID, len(plugs), recentCatalogue)
	if err != nil {
		return nil, err
	}
	var cards []card
	var unknown []plug // all of them, where the lists do not serve
	for _, p := range plugs {
		if e, ok := book.entries[p.vnicID]; ok {
			cards = append(cards, card{p.instanceID, e.hostName, append([]string{e.address}, e.ipv6...)})
		} else {
			unknown = append(unknown, p)
		}
	}
	single, err := i.cardsByVNIC(ctx, unknown)
	return append(cards, single...), err
}

func (i *Inventory) cardsByVNIC(ctx context.Context, plugs []plug) ([]card, error) {
	cards := make([]card, len(plugs))
	group, groupCtx := errgroup.WithContext(ctx)
	group.SetLimit(concurrentReads)
	for n, a := range plugs {
		group.Go(func() error {
			vnic, err := i.vnic(groupCtx, a.vnicID, Need{MaxAge: immutable})
			if errors.Is(err, oci.ErrNotFound) {
				return nil // detached since the list was read
			}
			if err == nil {
				cards[n] = card{a.instanceID, vnic.HostnameLabel, append([]string{vnic.PrivateIP}, vnic.IPv6Addresses...)}
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
