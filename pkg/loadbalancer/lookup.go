// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package loadbalancer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/oracle/oci-cloud-controller-manager/pkg/oci"
)

// States of balancers.
const (
	stateCreating = "CREATING"
	stateUpdating = "UPDATING"
	stateActive   = "ACTIVE"
	stateFailed   = "FAILED"
	stateDeleting = "DELETING"
	stateDeleted  = "DELETED"
)

// place is where balancers are listed.
type place struct {
	kind        oci.BalancerKind
	compartment string
	as          string // name of the principal that lists
}

// find returns the Service's balancer with its ETag, or nil if complete lists prove that there is none; since says when
// the oldest of these lists was begun. An unchanged Service costs one read: of the recorded OCID.
func (op *operation) find(ctx context.Context) (b *oci.Balancer, since time.Time, err error) {
	if b, err = op.byOCID(ctx); b != nil || err != nil {
		return b, time.Time{}, err
	}
	// A list that others have read recently is enough to find something that is there, not to prove that nothing is.
	ages := []time.Duration{op.m.cfg.ListMaxAge, 0}
	if len(op.svc.Status.LoadBalancer.Ingress) == 0 {
		ages = ages[1:]
	}
	for _, age := range ages {
		candidates, at, err := op.listed(ctx, age)
		if err != nil {
			return nil, time.Time{}, err
		}
		b, err := op.read(ctx, candidates, age == 0)
		if b != nil || err != nil {
			return b, time.Time{}, err
		}
		since = at
	}
	if op.mem.id != "" && op.settled("", since).IsZero() {
		op.mem.gone, op.mem.id = op.mem.id, ""
	}
	return nil, since, nil
}

// byOCID reads the balancer whose OCID this process or the Service remembers. The OCID is only a hint: the balancer has to
// be the Service's. Nil means that lists have to be looked at.
func (op *operation) byOCID(ctx context.Context) (*oci.Balancer, error) {
	ids := []string{op.mem.id, op.svc.Annotations[AnnotationOCID]}
	for i, id := range ids {
		if id == "" || id == op.except || slices.Contains(ids[:i], id) {
			continue
		}
		cloud := op.cloudOf(id)
		if cloud == nil {
			op.warn(ReasonNotOurs, fmt.Sprintf("annotation %s has the value %q, which is no OCID of a balancer; the balancer is looked up by its marks", AnnotationOCID, id))
			continue
		}
		b, err := cloud.Get(ctx, id)
		switch {
		case errors.Is(err, oci.ErrNotFound): // proves nothing
		case err != nil:
			return nil, op.refuse("look up the balancer", cloud.Kind(), err)
		case b.State == stateDeleted:
			op.mem.gone = id
		case op.owns(b) == notOwned:
			op.warn(ReasonNotOurs, fmt.Sprintf("annotation %s names %s, which is not this Service's balancer; it is left alone", AnnotationOCID, id))
		default:
			if id == op.mem.id && op.mem.create != nil {
				op.mem.create.known = true
			}
			return b, nil
		}
	}
	return nil, nil
}

// listed returns the Service's balancers from complete lists, the most fitting one first, and when the oldest of the
// lists was begun.
func (op *operation) listed(ctx context.Context, maxAge time.Duration) ([]*oci.Balancer, time.Time, error) {
	var found []*oci.Balancer
	since := time.Now()
	places, optional := op.places()
	for i, p := range slices.Concat(places, optional) {
		all, at, err := op.m.lists.get(ctx, p, maxAge)
		switch {
		case errors.Is(err, oci.ErrNotFound) && i >= len(places):
			// Nothing points there, and what this principal may not see there it cannot have made.
			op.log.V(2).Info("Passed over balancers that cannot be listed", "kind", p.kind, "compartment", p.compartment, "reason", err)
			continue
		case err != nil:
			return nil, time.Time{}, op.refuse("look up the balancer", p.kind, err)
		}
		if at.Before(since) {
			since = at
		}
		for _, b := range all {
			if b.State != stateDeleted && b.ID != op.except && op.owns(b) != notOwned {
				found = append(found, b)
			}
		}
	}
	op.rank(found)
	return found, since, nil
}

// places are where the Service's balancer can be. In the first ones it is looked for without fail: where the record says it
// was, and where the annotations ask for it. In the optional ones there may be a balancer from before an annotation was
// changed; they count as far as they can be listed, since many clusters have no policy for the kind that they do not use.
// At a deletion, what is recorded counts, and annotations only if nothing is: a wrong one must not stand in the way.
func (op *operation) places() (required, optional []place) {
	if op.only != nil {
		return []place{*op.only}, nil
	}
	last := lastApplied(op.svc)
	for _, spot := range last.leftOvers() {
		required = append(required, op.place(spot.Kind, spot.CompartmentID))
	}
	wanted := op.place(WantedKind(op.svc.Annotations), op.compartment())
	kinds := []oci.BalancerKind{last.Kind, kindOf(op.svc.Annotations[AnnotationOCID]), kindOf(op.mem.id)}
	for _, kind := range kinds {
		if kind == "" {
			continue
		}
		if last.CompartmentID != "" {
			required = append(required, op.place(kind, last.CompartmentID))
		} else {
			required = append(required, op.place(kind, wanted.compartment))
		}
	}
	if !op.deletion || len(required) == len(last.leftOvers()) {
		required = append(required, wanted)
	}
	for _, kind := range []oci.BalancerKind{wanted.kind, oci.KindLB, oci.KindNLB} {
		for _, c := range []string{wanted.compartment, last.CompartmentID, op.m.cfg.CompartmentID} {
			optional = append(optional, op.place(kind, c))
		}
	}
	required, optional = distinct(required), distinct(optional)
	optional = slices.DeleteFunc(optional, func(p place) bool { return slices.Contains(required, p) })
	known := func(p place) bool { return p.compartment == "" || op.cloud(p.kind) == nil }
	return slices.DeleteFunc(required, known), slices.DeleteFunc(optional, known)
}

func distinct(places []place) []place {
	var out []place
	for _, p := range places {
		if !slices.Contains(out, p) {
			out = append(out, p)
		}
	}
	return out
}

// compartment is the one that the Service asks for.
func (op *operation) compartment() string {
	id := strings.TrimSpace(op.svc.Annotations[annotationCompartment])
	if id == "" || checkOCID(id, "compartment", "tenancy") != nil {
		return op.m.cfg.CompartmentID
	}
	return id
}

// kindOf tells the kind of a balancer by the type in its OCID; empty if it is neither.
func kindOf(id string) oci.BalancerKind {
	parsed, err := oci.ParseOCID(id)
	switch {
	case err != nil:
		return ""
	case parsed.Type == "loadbalancer":
		return oci.KindLB
	case parsed.Type == "networkloadbalancer":
		return oci.KindNLB
	}
	return ""
}

// rank sorts balancers of one Service: those in use come first, then those with the address in the Service's status, those
// of the kind that is asked for, and the oldest.
func (op *operation) rank(found []*oci.Balancer) {
	no := func(b bool) int {
		if b {
			return 0
		}
		return 1
	}
	slices.SortStableFunc(found, func(a, b *oci.Balancer) int {
		return cmp.Or(
			cmp.Compare(usability(a), usability(b)),
			cmp.Compare(no(op.inStatus(a)), no(op.inStatus(b))),
			cmp.Compare(no(a.Kind == WantedKind(op.svc.Annotations)), no(b.Kind == WantedKind(op.svc.Annotations))),
			a.TimeCreated.Compare(b.TimeCreated),
			cmp.Compare(a.ID, b.ID),
		)
	})
}

func usability(b *oci.Balancer) int {
	switch b.State {
	case stateActive, stateUpdating:
		return 0
	case stateCreating:
		return 1
	case stateFailed:
		return 2
	default:
		return 3
	}
}

// inStatus says whether an address of the balancer is in the Service's status.
func (op *operation) inStatus(b *oci.Balancer) bool {
	for _, ingress := range op.svc.Status.LoadBalancer.Ingress {
		if slices.ContainsFunc(b.Addresses, func(a oci.BalancerAddress) bool { return sameAddress(a.IP, ingress.IP) }) {
			return true
		}
	}
	return false
}

// read reads the first of the candidates that is really there and the Service's. fresh says that the list they are from
// was read just now: what is in it and answers 404 is there, but hidden from us.
func (op *operation) read(ctx context.Context, candidates []*oci.Balancer, fresh bool) (*oci.Balancer, error) {
	for i, c := range candidates {
		cloud := op.cloud(c.Kind)
		b, err := cloud.Get(ctx, c.ID)
		switch {
		case errors.Is(err, oci.ErrNotFound) && !fresh:
			continue
		case errors.Is(err, oci.ErrNotFound):
			gone, proofErr := op.gone(ctx, cloud, c)
			if proofErr != nil {
				err = proofErr
			}
			if !gone {
				return nil, op.refuse("look up the balancer", c.Kind, err)
			}
			continue
		case err != nil:
			return nil, op.refuse("look up the balancer", c.Kind, err)
		case b.State == stateDeleted || op.owns(b) == notOwned:
			continue
		}
		if more := candidates[i+1:]; len(more) > 0 {
			others := make([]string, len(more))
			for j, x := range more {
				others[j] = x.ID
			}
			op.warn(ReasonSeveralBalancers, fmt.Sprintf("the Service has several balancers; %s is used, and these are left alone: %s", b.ID, strings.Join(others, ", ")))
		}
		return b, nil
	}
	return nil, nil
}

func (op *operation) owns(b *oci.Balancer) ownership { return owns(op.svc, op.m.cfg.ClusterID, b) }
