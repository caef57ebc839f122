// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package loadbalancer

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/oracle/oci-cloud-controller-manager/pkg/oci"
)

// The kind of a balancer and its compartment cannot change. A Service that asks for others keeps its balancer, unless it has
// the annotation that lets it be replaced. Then, in this order, each step being found again by the next process:
//
//  1. The record says where a successor will be (Applied.Successor).
//  2. The successor is made. Until it is in use, the old balancer follows the nodes and, as far as it can, the Service.
//  3. The record changes to the successor, and says which balancer is left over (Applied.Former). Ensure returns the new
//     addresses.
//  4. When they are in the Service's status, the old balancer is deleted, and the record forgets it.
//
// A deletion of the Service deletes both. If the wish is withdrawn before the record has changed, the successor is deleted.

// Spot is where a balancer is.
type Spot struct {
	ID            string           `json:"id,omitempty"`
	Kind          oci.BalancerKind `json:"kind"`
	CompartmentID string           `json:"compartment"`
}

// mayReplace says whether the Service lets its balancer be replaced.
func (op *operation) mayReplace() bool {
	allowed, err := strconv.ParseBool(strings.ToLower(strings.TrimSpace(op.svc.Annotations[annotationReplace])))
	return err == nil && allowed
}

// elsewhere says whether the Service asks for a balancer of another kind, or in another compartment. Only what the Service
// says counts: another compartment in the configuration moves nothing.
func (op *operation) elsewhere(b *oci.Balancer) bool {
	if WantedKind(op.svc.Annotations) != b.Kind && legalKind(op.svc.Annotations) {
		return true
	}
	named := strings.TrimSpace(op.svc.Annotations[annotationCompartment])
	return named != "" && named == op.compartment() && b.CompartmentID != "" && named != b.CompartmentID
}

// replaces says whether a balancer is to be replaced.
func (op *operation) replaces(b *oci.Balancer) bool { return op.mayReplace() && op.elsewhere(b) }

// replace makes the successor of a balancer and puts it into use.
func (op *operation) replace(ctx context.Context, old *oci.Balancer) (*oci.Balancer, Settings, error) {
	if err := op.keepServing(ctx, old); err != nil {
		return nil, Settings{}, err
	}
	spot := Spot{Kind: WantedKind(op.svc.Annotations), CompartmentID: op.compartment()}
	if op.cloud(spot.Kind) == nil {
		return old, Settings{Kind: old.Kind}, nil
	}
	if record := lastApplied(op.svc); record.Successor == nil || *record.Successor != spot {
		if err := op.abandon(ctx, old, record.Successor); err != nil {
			return nil, Settings{}, err
		}
		record.Successor = &spot
		if err := op.record(ctx, old.ID, record); err != nil {
			return nil, Settings{}, err
		}
	}
	next := op.succeeding(old, spot)
	live, settings, model, err := next.ensureSuccessor(ctx)
	op.warnings = append(op.warnings, next.warnings...)
	op.complete = next.complete
	if err != nil {
		return nil, settings, err
	}
	op.log.Info("Balancer is replaced", "balancer", old.ID, "successor", live.ID)
	op.mem.become(next.mem)
	op.mem.id = live.ID
	record := next.applied(model)
	record.Former = &Spot{ID: old.ID, Kind: old.Kind, CompartmentID: old.CompartmentID}
	op.svc = next.svc // with what was recorded on the way
	op.save(ctx, live.ID, record)
	return live, settings, nil
}

// keepServing applies to the old balancer what it can be applied of the Service. What it cannot do is no problem: perhaps
// that is why it is replaced.
func (op *operation) keepServing(ctx context.Context, old *oci.Balancer) error {
	settings, problems := ParseAnnotations(op.svc.Annotations, old.Kind)
	facts := Facts{Live: old, Last: op.last(), Gone: op.m.deps.Gone}
	model, more := Desired(op.svc, op.nodes, settings, op.m.cfg, facts)
	if len(problems.Fatal())+len(more.Fatal()) > 0 {
		return nil
	}
	if before := op.rulesBefore(); before != nil {
		model.join(before.group())
	}
	last := op.last()
	_, err := op.converge(ctx, old, model, last, func(b *oci.Balancer) Plan {
		plan, _ := Diff(b, model, last, nil)
		return plan
	})
	return err
}

// succeeding is the operation on the successor: it sees the Service as one that has no other balancer.
func (op *operation) succeeding(old *oci.Balancer, spot Spot) *operation {
	if op.mem.successor == nil {
		op.mem.successor = newServiceMemory()
	}
	where := op.place(spot.Kind, spot.CompartmentID)
	return &operation{
		m: op.m, as: op.as, svc: op.svc, nodes: op.nodes, mem: op.mem.successor, log: op.log, holdUntil: op.holdUntil,
		only: &where, except: old.ID,
	}
}

func (op *operation) ensureSuccessor(ctx context.Context) (*oci.Balancer, Settings, *Model, error) {
	settings, problems := ParseAnnotations(op.svc.Annotations, op.only.kind)
	if err := op.finishOpen(ctx); err != nil {
		return nil, settings, nil, err
	}
	live, since, err := op.findAtRest(ctx)
	if err != nil {
		return nil, settings, nil, err
	}
	var model *Model
	if live == nil {
		live, model, err = op.create(ctx, settings, problems, since)
	} else {
		live, model, err = op.update(ctx, settings, problems, live)
	}
	if err == nil && len(live.Addresses) == 0 {
		err = pendingUntil("the address of "+live.ID, time.Now().Add(lastPoll))
	}
	return live, settings, model, err
}

// become takes over what is known about the successor, which is the Service's balancer from now on.
func (s *serviceMemory) become(successor *serviceMemory) {
	s.id, s.gone, s.create, s.burnt = successor.id, successor.gone, successor.create, successor.burnt
	s.open, s.sent, s.quiet = successor.open, successor.sent, successor.quiet
	s.ruleSets, s.rules = successor.ruleSets, successor.rules
	s.successor = nil
}

// settleReplacement deletes what is left over of a replacement, whether it was carried out or given up. It returns what is still left.
func (op *operation) settleReplacement(ctx context.Context, live *oci.Balancer) (former *Spot, err error) {
	record := lastApplied(op.svc)
	if err := op.abandon(ctx, live, record.Successor); err != nil {
		return record.Former, err
	}
	former = record.Former
	switch {
	case former == nil || former.ID == live.ID:
		return nil, nil
	case !op.inStatus(live):
		return former, nil // clients do not know the new addresses yet
	}
	cloud := op.cloud(former.Kind)
	if cloud == nil {
		return former, nil
	}
	b, err := cloud.Get(ctx, former.ID)
	switch {
	case errors.Is(err, oci.ErrNotFound):
		gone, proofErr := op.gone(ctx, cloud, &oci.Balancer{Kind: former.Kind, ID: former.ID, CompartmentID: former.CompartmentID})
		if proofErr != nil {
			err = proofErr
		}
		if !gone {
			return former, op.refuse("look up the balancer that was replaced", former.Kind, err)
		}
		return nil, nil
	case err != nil:
		return former, op.refuse("look up the balancer that was replaced", former.Kind, err)
	case b.State == stateDeleted || op.owns(b) == notOwned:
		return nil, nil
	}
	if err := op.removeLeftOver(ctx, b); err != nil {
		return former, err
	}
	return nil, nil
}

// abandon deletes a successor that is not wanted any more.
func (op *operation) abandon(ctx context.Context, live *oci.Balancer, spot *Spot) error {
	if spot == nil || spot.Kind == live.Kind && spot.CompartmentID == live.CompartmentID {
		op.mem.successor = nil
		return nil
	}
	if op.cloud(spot.Kind) == nil {
		return nil
	}
	next := op.succeeding(live, *spot)
	next.waitForOpen(ctx)
	rest, since, err := next.listed(ctx, 0)
	if err != nil {
		return err
	}
	for _, b := range rest {
		if b.ID == op.svc.Annotations[AnnotationOCID] || op.inStatus(b) {
			continue // whatever the record says, it is in use
		}
		if err := op.removeLeftOver(ctx, b); err != nil {
			return err
		}
	}
	if at := next.settled("", since); !at.IsZero() {
		return next.settling(at)
	}
	op.mem.successor = nil
	return nil
}

// removeLeftOver deletes a balancer that is not the Service's any more. The memory of the Service is about the other one.
func (op *operation) removeLeftOver(ctx context.Context, b *oci.Balancer) error {
	id, gone := op.mem.id, op.mem.gone
	err := op.removeOne(ctx, b)
	op.mem.id, op.mem.gone = id, gone
	return err
}

// leftOvers are where balancers of an unfinished replacement can be.
func (a Applied) leftOvers() []Spot {
	var out []Spot
	for _, spot := range []*Spot{a.Successor, a.Former} {
		if spot != nil {
			out = append(out, *spot)
		}
	}
	return slices.Compact(out)
}
