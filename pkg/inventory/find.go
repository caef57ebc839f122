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

	"github.com/oracle/oci-cloud-controller-manager/pkg/oci"
)

const (
	// catalogueAge is how old the shared lists may be for a name that they do answer. A name that they do not answer is
	// looked for once more in lists that are no older than recentCatalogue.
	catalogueAge    = time.Minute
	recentCatalogue = 5 * time.Second
)

// Query asks for the instance of a machine whose OCID is not known.
type Query struct {
	// Names are what the machine is called: host name, fully qualified or not, or display name. A name that is the text
	// of an address, also an IPv6 address written with hyphens, is looked up as an address too.
	Names []string
	// Addresses are private addresses that the machine says it has.
	Addresses []string
	// CompartmentID is a hint: where to look if the configured compartment does not have it. It may be wrong.
	CompartmentID string
}

// NotFoundError says that complete lists have no instance that answers a query. That is no proof that the machine is
// gone: it may be called something else.
type NotFoundError struct {
	Query        Query
	Compartments []string
	VCNID        string
	// HiddenSubnets answered 404 and could not be searched: they belong to another VCN, or a policy is missing.
	HiddenSubnets []string
	// Retry is when the lists will be read again on behalf of this query.
	Retry time.Time
}

// Error names what was looked for, and where.
func (e *NotFoundError) Error() string {
	where := "compartment " + strings.Join(e.Compartments, " or ")
	if e.VCNID != "" {
		where += ", VCN " + e.VCNID
	}
	text := fmt.Sprintf("no instance in %s has the display name, VNIC host name or private address %s", where, e.Query)
	if len(e.HiddenSubnets) > 0 {
		text += fmt.Sprintf(" (not searched, since the API answers 404: subnet %s)", strings.Join(e.HiddenSubnets, ", "))
	}
	return text
}

// AmbiguousError says that several instances answer a query.
type AmbiguousError struct {
	Query       Query
	InstanceIDs []string // in the order of the OCIDs
}

// Error names all instances that match.
func (e *AmbiguousError) Error() string {
	return fmt.Sprintf("%s could be any of these instances: %s", e.Query, strings.Join(e.InstanceIDs, ", "))
}

// String lists the names and addresses asked for.
func (q Query) String() string {
	return strings.Join(append(slices.Clone(q.Names), q.Addresses...), ", ")
}

// Find returns the one instance that is called, or addressed, like that: *NotFoundError if there is none and
// *AmbiguousError if there are several. Names are equal or not, without regard to case; a common prefix means nothing.
//
// Both errors are remembered for a time that grows with each repetition, so that a name that nobody has costs nothing.
func (i *Inventory) Find(ctx context.Context, q Query) (*oci.Instance, error) {
	key := q.key()
	if err := i.misses.remembered(key); err != nil {
		return nil, err
	}
	instance, err := i.find(ctx, q, catalogueAge)
	if unresolved(err) {
		instance, err = i.find(ctx, q, recentCatalogue)
	}
	if unresolved(err) {
		return nil, i.misses.remember(key, err)
	}
	if err == nil {
		i.misses.forget(key)
	}
	return instance, err
}

func (i *Inventory) find(ctx context.Context, q Query, maxAge time.Duration) (*oci.Instance, error) {
	vcn, err := i.vcn(ctx)
	if err != nil {
		return nil, err
	}
	compartments := []string{i.config.CompartmentID}
	if q.CompartmentID != "" && q.CompartmentID != i.config.CompartmentID {
		compartments = append(compartments, q.CompartmentID)
	}
	var hidden []string
	var e evidence
	for _, compartment := range compartments {
		c, err := i.catalogue(ctx, compartment, maxAge)
		if len(e.instances) > 0 && errors.Is(err, oci.ErrNotFound) {
			continue // a wrong hint
		}
		if err != nil {
			return nil, err
		}
		e.gather(c, q)
		hidden = append(hidden, c.hidden...)
	}
	switch ids := e.conclude(vcn != ""); len(ids) {
	case 0:
		return nil, &NotFoundError{Query: q, Compartments: compartments, VCNID: vcn, HiddenSubnets: distinct(hidden)}
	case 1:
		return e.instances[ids[0]], nil
	default:
		return nil, &AmbiguousError{Query: q, InstanceIDs: ids}
	}
}

// evidence is what speaks for the instances that may answer a query.
type evidence struct {
	instances      map[string]*oci.Instance
	byVNIC, byName []string // OCIDs of those with such a host name or address, and of those with such a display name
	addressed      bool     // an address is among it
	nameless       bool     // one of byName has no host name label
}

func (e *evidence) gather(c *catalogue, q Query) {
	var byVNIC, byName []string
	for _, name := range q.Names {
		name = strings.ToLower(name)
		byName = append(byName, c.displayNames[name]...)
		byVNIC = append(byVNIC, c.hostNames[name]...)
		if host, ok := hostInVCN(name); ok {
			byVNIC = append(byVNIC, c.hostNames[host]...)
		}
	}
	for _, address := range q.addresses() {
		byVNIC = append(byVNIC, c.addresses[address]...)
		e.addressed = e.addressed || len(c.addresses[address]) > 0
	}
	for _, id := range slices.Concat(byVNIC, byName) {
		if e.instances == nil {
			e.instances = map[string]*oci.Instance{}
		}
		e.instances[id] = c.instances[id]
	}
	e.nameless = e.nameless || slices.ContainsFunc(byName, func(id string) bool { return !c.labelled[id] })
	e.byVNIC, e.byName = append(e.byVNIC, byVNIC...), append(e.byName, byName...)
}

// conclude returns the OCIDs of the instances that answer the query: none, one, or several that nothing tells apart.
//
// What the network says of a machine (host name label, address) is unique within a VCN; display names are not, and
// people change them. So equal display names do not disturb a match by VNIC, unless they are the only name that the other
// machine has: without a host name label, a machine is called by its display name. And a display name that belongs to
// another machine than the VNIC does, disturbs it: nothing then says which of them is meant.
func (e *evidence) conclude(oneVCN bool) []string {
	byVNIC, byName := distinct(e.byVNIC), distinct(e.byName)
	if oneVCN && len(byVNIC) == 1 && slices.Contains(byName, byVNIC[0]) && (e.addressed || !e.nameless) {
		return byVNIC
	}
	return distinct(slices.Concat(byVNIC, byName))
}

// hostInVCN takes "host.subnet" from the name "host.subnet.vcn.oraclevcn.com" that the VCN's resolver gives a VNIC.
func hostInVCN(name string) (string, bool) {
	labels := strings.Split(strings.TrimSuffix(name, "."), ".")
	if len(labels) != 5 || labels[3] != "oraclevcn" || labels[4] != "com" {
		return "", false
	}
	return labels[0] + "." + labels[1], true
}

// addresses are the addresses of the query, and those that its names may be the text of.
func (q Query) addresses() []netip.Addr {
	var list []netip.Addr
	for _, text := range slices.Concat(q.Addresses, q.Names) {
		address, err := netip.ParseAddr(text)
		if err != nil {
			address, err = netip.ParseAddr(strings.ReplaceAll(text, "-", ":"))
		}
		if err == nil && !slices.Contains(list, address.Unmap()) {
			list = append(list, address.Unmap())
		}
	}
	return list
}

func (q Query) key() string {
	return strings.ToLower(strings.Join(q.Names, ",") + ";" + strings.Join(q.Addresses, ",") + ";" + q.CompartmentID)
}

func distinct(ids []string) []string {
	slices.Sort(ids)
	return slices.Compact(ids)
}
