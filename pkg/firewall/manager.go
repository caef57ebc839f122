// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package firewall

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"
)

// Defaults of Config.
const (
	defaultMaxAge = time.Minute
	// Limits of oci-api.md §3.5.
	defaultMaxListRules  = 200
	defaultMaxGroupRules = 120
)

// Config is how a Manager works.
type Config struct {
	// ClusterID is the cluster's identity. Without one, rules of security lists are described as "k8s" only, and those
	// that no owner has claimed since the start are left alone, because they can be another cluster's.
	ClusterID string
	// KeepAnonymous keeps rules without description that the existing implementation has written (Claim.Legacy) and
	// nobody needs any more. They are reported.
	KeepAnonymous bool
	// MaxAge is how old a read may be that serves all owners; 0 means 60 s.
	MaxAge time.Duration
	// Owners returns everybody who may need rules now: the Services of type LoadBalancer that are not finally deleted. It
	// must not call the Manager, and is asked at most once in 5 s. Nil: nobody but those who have claimed.
	Owners func() []Owner
	// MaxListRules is the limit of rules of a security list for each direction, MaxGroupRules that of an NSG for both
	// together; 0 means 200 and 120. The cloud's word is final: these only refuse before anything is written.
	MaxListRules, MaxGroupRules int
}

// Manager gives owners the rules that they need. It is safe for concurrent use; calls for one owner must not overlap.
type Manager struct {
	cfg    Config
	lists  Lists
	groups Groups
	book   *book
	named  *roll

	mu    sync.Mutex
	desks map[Target]*desk

	own ownGroups
}

// New returns a Manager. It makes no call.
func New(cfg Config, lists Lists, groups Groups) *Manager {
	if cfg.MaxAge == 0 {
		cfg.MaxAge = defaultMaxAge
	}
	if cfg.MaxListRules == 0 {
		cfg.MaxListRules = defaultMaxListRules
	}
	if cfg.MaxGroupRules == 0 {
		cfg.MaxGroupRules = defaultMaxGroupRules
	}
	return &Manager{
		cfg: cfg, lists: lists, groups: groups, desks: map[Target]*desk{},
		book: newBook(cfg.ClusterID == ""), named: &roll{call: cfg.Owners}, own: newOwnGroups(),
	}
}

// Check says what Open and Settle would write for a claim, from reads that are at most Config.MaxAge old. It has no effect,
// on the needs that are known of the owner neither. Nothing to do is an empty result.
//
// Errors: *LimitError if Open would not have the room, *AccessError, ErrInvalidRule.
func (m *Manager) Check(ctx context.Context, c Claim) (Changes, error) {
	want, err := canonicalNeeds(c.Rules)
	if err != nil {
		return nil, err
	}
	legacy, err := canonicalNeeds(c.Legacy)
	if err != nil {
		return nil, err
	}
	requests := map[Target]*request{}
	for _, t := range union(slices.Collect(maps.Keys(want)), slices.Collect(maps.Keys(legacy)), m.book.touched(c.Owner)) {
		requests[t] = &request{owner: c.Owner, want: want[t], legacy: legacy[t], remove: true, dry: true}
	}
	report, err := m.ask(ctx, requests, want)
	if err != nil {
		return nil, err
	}
	return report.Changed, nil
}

// Open adds the rules of a claim that are missing, before listeners and backends are made that need them. What the owner
// needed before still counts. Nothing is written unless all rules of the claim fit.
//
// Errors: as of Check; *ConflictError; those of the cloud.
func (m *Manager) Open(ctx context.Context, c Claim) error {
	want, err := canonicalNeeds(c.Rules)
	if err != nil {
		return err
	}
	try, requests := map[Target]*request{}, map[Target]*request{}
	for t, rules := range want {
		try[t] = &request{owner: c.Owner, want: rules, dry: true}
		requests[t] = &request{owner: c.Owner, want: rules}
	}
	if _, err := m.ask(ctx, try, want); err != nil {
		return err
	}
	m.book.open(c.Owner, want)
	_, err = m.ask(ctx, requests, want)
	return err
}

// Settle makes the claim all that the owner needs: it adds what is missing, and removes rules of ours that nobody needs any
// more, also on targets that the owner has left. Call it at the end of every sync, when listeners and backends are as they
// should be, also if Check found nothing to do: until an owner has settled, it counts as one that may need anything. An
// owner without a balancer may settle first, instead of opening.
//
// Where it fails for one target the others are done all the same, and the claim holds. Errors: as of Open.
func (m *Manager) Settle(ctx context.Context, c Claim) (Report, error) {
	want, err := canonicalNeeds(c.Rules)
	if err != nil {
		return newReport(), err
	}
	legacy, err := canonicalNeeds(c.Legacy)
	if err != nil {
		return newReport(), err
	}
	m.book.inherit(c.Owner, c.Inherited)
	return m.settle(ctx, c.Owner, want, legacy)
}

// Release removes the rules of ours that nobody but this owner needs: on the targets of c, which is what the owner is
// thought to have, and on those that are known from before. Call it when the owner's balancer is deleted, before or after.
// It is over when the error is nil: what others may still need (Report.Waiting) is removed when they have settled, also after a restart.
//
// Errors: as of Open.
func (m *Manager) Release(ctx context.Context, owner string, c Claim) (Report, error) {
	had, err := canonicalNeeds(c.Rules)
	if err != nil {
		return newReport(), err
	}
	legacy, err := canonicalNeeds(c.Legacy)
	if err != nil {
		return newReport(), err
	}
	m.book.remember(had)
	m.book.inherit(owner, false)
	none := needs{}
	for t := range had {
		none[t] = ruleSet{}
	}
	report, err := m.settle(ctx, owner, none, legacy)
	if err == nil && m.cfg.Owners == nil {
		m.book.close(owner) // otherwise Sweep does that: while it is still named, it must be known to need nothing
	}
	return report, err
}

func (m *Manager) settle(ctx context.Context, owner string, want, legacy needs) (Report, error) {
	requests := map[Target]*request{}
	for _, t := range m.book.settle(owner, want, legacy) {
		requests[t] = &request{owner: owner, want: want[t], remove: true}
	}
	report, err := m.ask(ctx, requests, want)
	for t, r := range requests {
		if r.done != nil && r.ended() && r.err == nil && len(r.waiting) == 0 {
			m.book.untouch(owner, t)
		}
	}
	return report, err
}

// ask has requests served, all targets at the same time, and reports what came of them. Those for a target that is gone,
// and on which nothing is wanted, are done.
func (m *Manager) ask(ctx context.Context, requests map[Target]*request, want needs) (Report, error) {
	report := newReport()
	targets := slices.SortedFunc(maps.Keys(requests), compareTargets)
	desks := make([]*desk, len(targets))
	for i, t := range targets {
		d, err := m.desk(t)
		if err != nil {
			return report, err
		}
		desks[i], requests[t].done = d, make(chan struct{})
	}
	for i, t := range targets {
		desks[i].submit(ctx, requests[t])
	}
	var errs []error
	for _, t := range targets {
		r := requests[t]
		select {
		case <-r.done:
		case <-ctx.Done():
			return report, errors.Join(append(errs, fmt.Errorf("%s: %w", t, context.Cause(ctx)))...)
		}
		err := r.err
		if err != nil && len(want[t]) == 0 {
			_, given := want[t]
			err = m.unlessGone(ctx, t, err, given)
		}
		if err != nil {
			errs = append(errs, err)
		}
		report.take(t, r.outcome)
	}
	return report, errors.Join(errs...)
}

// ended says whether the outcome is there.
func (r *request) ended() bool {
	select {
	case <-r.done:
		return true
	default:
		return false
	}
}

func (m *Manager) desk(t Target) (*desk, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	d := m.desks[t]
	if d == nil {
		k, err := m.kindOf(t.Kind)
		if err != nil {
			return nil, err
		}
		d = &desk{m: m, target: t, kind: k}
		m.desks[t] = d
	}
	return d, nil
}

func union(lists ...[]Target) []Target {
	all := slices.Concat(lists...)
	slices.SortFunc(all, compareTargets)
	return slices.Compact(all)
}
