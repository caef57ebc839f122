// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"

	"github.com/oracle/oci-cloud-controller-manager/test/ocisim"
)

// StopRule says which call a Stop holds.
type StopRule struct {
	N          int      `json:"n"`                    // the n-th matching call, from 1
	Operations []string `json:"operations,omitempty"` // "CreateListener" or "loadbalancer.CreateListener"; none means every operation
	Principal  string   `json:"principal,omitempty"`  // only calls of this principal
	Writes     bool     `json:"writes,omitempty"`     // only calls that change something

	// Freeze lets the region take one call after the other while the rule is in force, so that none is applied
	// behind the held one. With it a test can end a client with many threads exactly after its n-th call. The rule
	// has to be made before the client makes calls.
	Freeze bool `json:"freeze,omitempty"`
}

// ErrStopRule refuses a rule that can never match.
var ErrStopRule = errors.New("n must be at least 1")

// StopState is where a Stop is in its life.
type StopState string

// States of a Stop.
const (
	StopArmed    StopState = "armed"    // the call has not come yet
	StopHolding  StopState = "holding"  // the call is applied, its answer is held
	StopReleased StopState = "released" // the answer went out, or the rule was withdrawn
)

// StopStatus is a Stop as the admin API shows it.
type StopStatus struct {
	ID    string       `json:"id"`
	Rule  StopRule     `json:"rule"`
	State StopState    `json:"state"`
	Seen  int          `json:"seen"` // matching calls so far
	Call  *ocisim.Call `json:"call,omitempty"`
}

// Stop pauses one call after it was applied and before it is answered, until it is released.
type Stop struct {
	hooks  *hooks
	id     string
	rule   StopRule
	status StopStatus // guarded by hooks.mu

	holding  chan struct{} // closed when the call is held, or when the stop is over before that
	released chan struct{} // closed when it is over
}

// ErrWithdrawn says that a Stop was released before its call came.
var ErrWithdrawn = errors.New("the stop was withdrawn before its call came")

// Wait blocks until the call is held and returns it.
func (s *Stop) Wait(ctx context.Context) (ocisim.Call, error) {
	select {
	case <-s.holding:
	case <-ctx.Done():
		return ocisim.Call{}, fmt.Errorf("wait for call %d of %v: %w", s.rule.N, s.rule.Operations, ctx.Err())
	}
	status := s.Status()
	if status.Call == nil {
		return ocisim.Call{}, ErrWithdrawn
	}
	return *status.Call, nil
}

// Status is a snapshot of the stop.
func (s *Stop) Status() StopStatus {
	s.hooks.mu.Lock()
	defer s.hooks.mu.Unlock()
	return s.status
}

// Release lets the held call be answered. It may be called at any time, and again.
func (s *Stop) Release() { s.hooks.end(s, false) }

// Discard is Release for a client that was killed meanwhile: what it had sent but Freeze kept waiting, or what still
// stands in a buffer, is not applied. All connections to the API are cut for that; other clients connect again.
func (s *Stop) Discard() { s.hooks.end(s, true) }

// hooks keeps the stops in force.
type hooks struct {
	turn        chan struct{} // taken by the one call that the region handles while a stop freezes
	connections *connections

	mu     sync.Mutex
	lastID int
	stops  []*Stop
	closed bool
}

func newHooks() *hooks {
	return &hooks{turn: make(chan struct{}, 1), connections: newConnections()}
}

func (h *hooks) add(rule StopRule) (*Stop, error) {
	if rule.N < 1 {
		return nil, fmt.Errorf("stop rule: %w", ErrStopRule)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.lastID++
	id := strconv.Itoa(h.lastID)
	s := &Stop{
		hooks:    h,
		id:       id,
		rule:     rule,
		status:   StopStatus{ID: id, Rule: rule, State: StopArmed},
		holding:  make(chan struct{}),
		released: make(chan struct{}),
	}
	h.stops = append(h.stops, s)
	return s, nil
}

// list returns the stops that are not over.
func (h *hooks) list() []*Stop {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.stops)
}

func (h *hooks) find(id string) (*Stop, bool) {
	for _, s := range h.list() {
		if s.id == id {
			return s, true
		}
	}
	return nil, false
}

// end releases a stop and forgets it.
func (h *hooks) end(s *Stop, discard bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if s.status.State == StopReleased {
		return
	}
	if s.status.State == StopArmed {
		close(s.holding)
	}
	if discard {
		h.connections.cut()
	}
	s.status.State = StopReleased
	close(s.released)
	h.stops = slices.DeleteFunc(h.stops, func(other *Stop) bool { return other == s })
}

// close releases everything, for the end of the server.
func (h *hooks) close() {
	h.mu.Lock()
	h.closed = true
	h.mu.Unlock()
	for _, s := range h.list() {
		s.Discard()
	}
}

// freezing tells whether calls have to take turns.
func (h *hooks) freezing() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.ContainsFunc(h.stops, func(s *Stop) bool { return s.rule.Freeze })
}

// enter waits for the turn of a call where calls take turns. It returns what to do when the call is answered, and false
// when the call must be dropped because its client is gone.
func (h *hooks) enter(ctx context.Context) (leave func(), ok bool) {
	if !h.freezing() {
		return func() {}, h.connections.alive(ctx)
	}
	select {
	case h.turn <- struct{}{}:
	case <-ctx.Done():
		return nil, false
	}
	leave = func() { <-h.turn }
	if !h.connections.alive(ctx) {
		leave()
		return nil, false
	}
	return leave, true
}

// called is told of every call of the region after it was applied, on the goroutine that will answer it.
func (h *hooks) called(c ocisim.Call) {
	for _, s := range h.count(c) {
		<-s.released
	}
}

// count adds the call to every stop that it matches and returns those for which it is the n-th.
func (h *hooks) count(c ocisim.Call) []*Stop {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return nil
	}
	var due []*Stop
	for _, s := range h.stops {
		if !s.rule.matches(c) {
			continue
		}
		s.status.Seen++
		if s.status.Seen == s.rule.N {
			s.status.State = StopHolding
			s.status.Call = &c
			close(s.holding)
			due = append(due, s)
		}
	}
	return due
}

func (r StopRule) matches(c ocisim.Call) bool {
	if r.Principal != "" && r.Principal != c.Principal {
		return false
	}
	return (c.Write || !r.Writes) && matchesOperation(r.Operations, c)
}

// matchesOperation tells whether a call is one of the operations, each with or without its service; none means any.
func matchesOperation(operations []string, c ocisim.Call) bool {
	if len(operations) == 0 {
		return true
	}
	return slices.ContainsFunc(operations, func(name string) bool {
		return name == "*" || name == c.Operation || name == c.Name()
	})
}
