// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package firewall

import (
	"context"
	"errors"
	"slices"

	"github.com/oracle/oci-cloud-controller-manager/pkg/oci"
)

// Place is where targets are.
type Place struct{ CompartmentID, VCNID string }

// Sweep looks for rules of ours that nobody needs, on all targets of a kind in some places, and removes them: what owners
// left behind that were changed or deleted while no process, or another one, looked after them. It forgets owners that do
// not exist any more. Call it now and then; it costs one list for each place, and of NSGs one read for each that carries
// the mark of backend NSGs, of which a rule counts only if its owner has settled.
//
// What others may still need is in Report.Waiting. Where something fails, the rest is done all the same.
func (m *Manager) Sweep(ctx context.Context, k TargetKind, places ...Place) (Report, error) {
	m.closeAccounts()
	requests := map[Target]*request{}
	var errs []error
	for _, p := range places {
		found, err := m.suspects(ctx, k, p)
		if err != nil {
			errs = append(errs, err)
		}
		for _, t := range found {
			requests[t] = &request{remove: true}
		}
	}
	report, err := m.ask(ctx, requests, nil)
	return report, errors.Join(append(errs, err)...)
}

// closeAccounts drops what is known of owners that do not exist any more.
func (m *Manager) closeAccounts() {
	if m.cfg.Owners == nil {
		return
	}
	before := m.book.owners() // read first: an owner that comes in between is in neither list
	named := m.named.refresh()
	for _, owner := range before {
		if !slices.ContainsFunc(named, func(o Owner) bool { return o.ID == owner }) {
			m.book.close(owner)
		}
	}
}

// suspects are the targets of a place that may have rules that have to go.
func (m *Manager) suspects(ctx context.Context, k TargetKind, p Place) ([]Target, error) {
	var out []Target
	if k == NSG {
		groups, err := m.groups.ListSecurityGroups(ctx, p.CompartmentID, p.VCNID)
		if err != nil {
			return nil, explain(Target{Kind: k}, err)
		}
		for _, g := range groups {
			if g.Freeform[tagBackend] == tagBackendValue && alive(g.State) {
				out = append(out, Target{NSG, g.ID})
			}
		}
		return out, nil
	}
	lists, err := m.lists.ListSecurityLists(ctx, p.CompartmentID, p.VCNID)
	if err != nil {
		return nil, explain(Target{Kind: k}, err)
	}
	for _, l := range lists {
		t := Target{SecurityList, l.ID}
		if alive(l.State) && m.suspicious(t, heldRules(l.Ingress, l.Egress)) {
			out = append(out, t)
		}
	}
	return out, nil
}

// suspicious says whether a list has a rule with our mark that nobody is known to need.
func (m *Manager) suspicious(t Target, have []held) bool {
	m.book.mu.Lock()
	defer m.book.mu.Unlock()
	s := m.sharedView(t, nil, &request{}, false).sift(have, nil, true)
	return len(s.stale) > 0
}

const terminated = "TERMINATED"

// alive says whether something can still be done with a target.
func alive(state string) bool { return state != "TERMINATING" && state != terminated }

// unlessGone is nil instead of a 404 of a target that is proven to be gone: nobody can have needs there. A target that
// nobody has just named, but an owner once did, is also given up if this process has never been able to read it.
func (m *Manager) unlessGone(ctx context.Context, t Target, cause error, given bool) error {
	if !errors.Is(cause, oci.ErrNotFound) {
		return cause
	}
	d, err := m.desk(t)
	if err != nil {
		return err
	}
	place, wasRead := d.whereSeen()
	if !given && !wasRead {
		m.book.forget(t)
		return nil
	}
	presence, _, err := oci.Decide(ctx, oci.Evidence{
		Read:        func(ctx context.Context) (string, error) { return m.stateOf(ctx, t) },
		Terminal:    []string{terminated},
		Compartment: place.CompartmentID,
		List:        func(ctx context.Context) (string, bool, error) { return m.listed(ctx, t, place) },
	})
	if err == nil && presence == oci.Gone {
		m.book.forget(t)
		return nil
	}
	return cause
}

func (m *Manager) stateOf(ctx context.Context, t Target) (string, error) {
	if t.Kind == NSG {
		g, err := m.groups.GetSecurityGroup(ctx, t.ID)
		if err != nil {
			return "", err
		}
		return g.State, nil
	}
	l, err := m.lists.GetSecurityList(ctx, t.ID)
	if err != nil {
		return "", err
	}
	return l.State, nil
}

func (m *Manager) listed(ctx context.Context, t Target, p Place) (state string, found bool, err error) {
	if t.Kind == NSG {
		all, err := m.groups.ListSecurityGroups(ctx, p.CompartmentID, p.VCNID)
		for _, g := range all {
			if g.ID == t.ID {
				return g.State, true, err
			}
		}
		return "", false, err
	}
	all, err := m.lists.ListSecurityLists(ctx, p.CompartmentID, p.VCNID)
	for _, l := range all {
		if l.ID == t.ID {
			return l.State, true, err
		}
	}
	return "", false, err
}
