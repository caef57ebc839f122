// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package loadbalancer

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"

	v1 "k8s.io/api/core/v1"

	"github.com/oracle/oci-cloud-controller-manager/pkg/firewall"
)

// sweepPlaces are where rules of ours can be that nobody needs any more, by kind of target.
type sweepPlaces map[firewall.TargetKind][]firewall.Place

func (s sweepPlaces) add(kind firewall.TargetKind, p firewall.Place) {
	if !slices.Contains(s[kind], p) {
		s[kind] = append(s[kind], p)
	}
}

// sweeping remembers where rules of ours may be left when there is no Service any more that leads there.
type sweeping struct {
	mu     sync.Mutex
	places sweepPlaces
	// lookedBack means that what was left before the process started has been thought of.
	lookedBack bool
}

// note remembers a place.
func (s *sweeping) note(kind firewall.TargetKind, p firewall.Place) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.places == nil {
		s.places = sweepPlaces{}
	}
	s.places.add(kind, p)
}

// take returns what is remembered along with other places, and forgets it.
func (s *sweeping) take(places sweepPlaces) sweepPlaces {
	s.mu.Lock()
	defer s.mu.Unlock()
	for kind, list := range s.places {
		for _, p := range list {
			places.add(kind, p)
		}
	}
	s.places = nil
	return places
}

func (s *sweeping) hasLookedBack() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.lookedBack
}

// rulesDrifted says whether a sync of the Service would change security rules, and puts the Service's network security group
// into the model. Where nobody may look, there is nothing to find.
func (op *operation) rulesDrifted(ctx context.Context, in ruleInputs, places sweepPlaces) bool {
	w, err := op.planRules(ctx, in)
	if w == nil || err != nil {
		return false
	}
	in.model.join(w.applied.Need.Group)
	op.notePlaces(ctx, in.model, w, places)
	if w.blocked || w.failed {
		return w.lacksGroup
	}
	changes, err := op.m.deps.Firewall.Rules.Check(ctx, w.claim)
	return err == nil && len(changes) > 0
}

// notePlaces notes where the Service has rules.
func (op *operation) notePlaces(ctx context.Context, m *Model, w *ruleWork, places sweepPlaces) {
	for _, n := range append(w.applied.unkempt(), w.applied.Need) {
		for _, id := range append(slices.Clone(n.Subnets), n.NodeSubnets...) {
			if subnet, _, err := op.m.subnets.get(ctx, id, op.m.cfg.RuleSubnetMaxAge); err == nil {
				places.add(firewall.SecurityList, firewall.Place{CompartmentID: subnet.CompartmentID, VCNID: subnet.VCNID})
			}
		}
	}
	if !w.applied.Need.Groups {
		return
	}
	if vcn, err := op.vcnOf(ctx, m.SubnetIDs); err == nil {
		places.add(firewall.NSG, firewall.Place{CompartmentID: m.CompartmentID, VCNID: vcn})
	}
}

// lookBack adds, once in the life of a process, where rules of ours can be from before it started: Services may have gone
// since, without a process that looked after them, and no Service has to be left that leads there. It comes back if
// something could not be read. Rules that were opened under another configuration, around other subnets that no node is in,
// are not thought of.
func (m *Manager) lookBack(ctx context.Context, nodes []*v1.Node, places sweepPlaces) {
	if m.deps.Firewall.off() || m.sweeping.hasLookedBack() {
		return
	}
	found, unknown := m.deps.Firewall.NodeSubnets(ctx, nodes)
	ids := union(slices.Collect(maps.Values(found)), slices.Collect(maps.Keys(m.cfg.SecurityLists)))
	done := !slices.ContainsFunc(slices.Collect(maps.Values(unknown)), passing)
	for _, id := range union(ids, []string{m.cfg.Subnet1, m.cfg.Subnet2}) {
		if id == "" {
			continue
		}
		subnet, _, err := m.subnets.get(ctx, id, m.cfg.RuleSubnetMaxAge)
		if err == nil {
			places.add(firewall.SecurityList, firewall.Place{CompartmentID: subnet.CompartmentID, VCNID: subnet.VCNID})
		}
		done = done && (err == nil || !passing(err))
	}
	m.sweeping.mu.Lock()
	defer m.sweeping.mu.Unlock()
	m.sweeping.lookedBack = m.sweeping.lookedBack || done
}

// sweep removes rules of ours that nobody needs, in some places and in those where Services were deleted since. It comes
// back to where something is left.
func (m *Manager) sweep(ctx context.Context, places sweepPlaces) error {
	if m.deps.Firewall.off() {
		return nil
	}
	var errs []error
	places = m.sweeping.take(places)
	for _, kind := range []firewall.TargetKind{firewall.SecurityList, firewall.NSG} {
		if len(places[kind]) == 0 {
			continue
		}
		report, err := m.deps.Firewall.Rules.Sweep(ctx, kind, places[kind]...)
		if err != nil || len(report.Waiting) > 0 {
			for _, p := range places[kind] {
				m.sweeping.note(kind, p)
			}
		}
		var access *firewall.AccessError
		if err != nil && !errors.As(err, &access) { // the Services that need a policy are told
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}
