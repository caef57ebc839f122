// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package firewall

import "slices"

// join computes what the requests of a batch mean for a target as it is now, and joins in one plan what is to be written.
// Dry requests get their answers, those that do not fit their errors.
func (m *Manager) join(d *desk, batch []*request) *plan {
	named := m.named.get() // before the book is read: who is not in it yet has settled nothing
	m.book.mu.Lock()
	defer m.book.mu.Unlock()
	have := d.state.rules
	newPlan := func() *plan {
		return &plan{target: d.target, limits: d.kind.limits(), have: have, drop: map[int]struct{}{}}
	}
	joined := newPlan()
	// Those that remove come first: they make room for others.
	for _, removing := range []bool{true, false} {
		for _, r := range batch {
			if r.remove != removing {
				continue
			}
			r.outcome = outcome{}
			p := joined
			if r.dry {
				p = newPlan()
			}
			for _, v := range m.views(d.target, named, r, false) {
				p.take(r, v, r.remove && !r.dry)
			}
			if r.dry && r.remove {
				m.preview(newPlan, named, r)
			}
		}
	}
	return joined
}

// preview makes the answer of a dry request what Open and Settle together would write, and keeps its error: that of Open.
func (m *Manager) preview(newPlan func() *plan, named []Owner, r *request) {
	err := r.err
	r.outcome = outcome{}
	p := newPlan()
	p.limits = limits{direction: noLimit, all: 0}
	for _, v := range m.views(p.target, named, r, true) {
		p.take(r, v, true)
	}
	r.err = err
}

// noLimit is above all limits.
const noLimit = 1 << 30

// views are the views that a request has of a target. With alone, want is taken for all that the owner needs; otherwise
// its former needs count too. The caller holds the lock of the book.
func (m *Manager) views(t Target, named []Owner, r *request, alone bool) []view {
	if t.Kind == SecurityList {
		return []view{m.sharedView(t, named, r, alone)}
	}
	owners := []string{r.owner}
	if r.owner == "" {
		owners = owners[:0]
		for owner, a := range m.book.accounts {
			if _, touched := a.touched[t]; a.settled && (touched || !a.inherited) {
				owners = append(owners, owner)
			}
		}
		slices.Sort(owners)
	}
	var out []view
	for _, owner := range owners {
		out = append(out, m.ownView(t, owner, r, alone))
	}
	return out
}

// sharedView is the view of all owners.
func (m *Manager) sharedView(t Target, named []Owner, r *request, alone bool) view {
	own := m.book.accounts[r.owner]
	return view{
		mark: listMark(m.cfg.ClusterID), keepAnonymous: m.cfg.KeepAnonymous,
		needed: func(rule Rule) bool {
			users := m.book.uses[t][rule]
			if alone && own != nil && own.contributes(t, rule) {
				users--
			}
			return users > 0 || r.want.has(rule)
		},
		unsure: func(rule Rule) bool {
			return slices.ContainsFunc(named, func(o Owner) bool {
				if alone && o.ID == r.owner {
					return false
				}
				a := m.book.accounts[o.ID]
				return (a == nil || !a.settled) && (o.MayNeed == nil || o.MayNeed(rule))
			})
		},
		legacy: func(rule Rule) bool { return m.book.legacy[t][rule] > 0 || r.legacy.has(rule) },
		known:  func(rule Rule) bool { return m.book.known == nil || m.book.known[t].has(rule) },
	}
}

// ownView is the view of one owner on rules that only it has.
func (m *Manager) ownView(t Target, owner string, r *request, alone bool) view {
	own := m.book.accounts[owner]
	return view{
		mark: groupMark(owner), keepAnonymous: true,
		needed: func(rule Rule) bool {
			return r.want.has(rule) || !alone && own != nil && own.contributes(t, rule)
		},
		unsure: func(Rule) bool { return !alone && (own == nil || !own.settled) },
		legacy: func(Rule) bool { return false },
		known:  func(Rule) bool { return true },
	}
}
