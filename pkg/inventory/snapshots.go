// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"context"
	"fmt"
	"sync"
	"time"
)

const (
	// unusedAfter is how long a snapshot is kept that nobody refreshes, so that the memory of a cluster that replaces
	// its nodes all day does not grow for ever.
	unusedAfter = 24 * time.Hour

	sweepInterval = time.Hour
)

// snapshots remembers what reads returned. The caller states how old an answer may be; reads of the same key that
// would be made at the same time are one read.
//
// Values are shared by all callers, who must not change them.
type snapshots[V any] struct {
	kind string // in metrics

	mu      sync.Mutex
	entries map[string]snapshot[V]
	flights map[string]*flight[V]
	swept   time.Time

	// pause is how long a failed read is not tried again, doubled with each failure in a row up to maxPause; zero is not
	// at all. Meanwhile everybody who needs it gets its error: thousands of nodes must not each repeat a list that was
	// throttled.
	pause  time.Duration
	failed map[string]failure
}

// failure is the last read of a key, if it failed.
type failure struct {
	err   error
	until time.Time
	pause time.Duration
}

const (
	listPause = 2 * time.Second
	maxPause  = 30 * time.Second
)

type snapshot[V any] struct {
	value V
	asOf  time.Time // when the read began: the value is at least as new
}

// flight is a read under way. It lives as long as someone waits for it.
type flight[V any] struct {
	began   time.Time
	cancel  context.CancelFunc
	done    chan struct{}
	waiters int // guarded by snapshots.mu

	value V
	err   error
}

// get returns the value of key as of at most maxAge ago. A failed read is not remembered, but for the pause of lists, and
// does not replace what an earlier one returned.
func (s *snapshots[V]) get(ctx context.Context, key string, maxAge time.Duration, fetch func(context.Context) (V, error)) (V, error) {
	s.mu.Lock()
	now := time.Now()
	if e, ok := s.entries[key]; ok && now.Sub(e.asOf) <= maxAge {
		s.mu.Unlock()
		questions.WithLabelValues(s.kind, hit).Inc()
		answerAge.WithLabelValues(s.kind).Observe(now.Sub(e.asOf).Seconds())
		return e.value, nil
	}
	if f, ok := s.failed[key]; ok && now.Before(f.until) {
		s.mu.Unlock()
		questions.WithLabelValues(s.kind, paused).Inc()
		var none V
		return none, f.err
	}
	f := s.flights[key]
	if f == nil || now.Sub(f.began) > maxAge {
		f = s.start(ctx, key, now, fetch)
	} else {
		questions.WithLabelValues(s.kind, joined).Inc()
	}
	f.waiters++
	s.mu.Unlock()

	select {
	case <-f.done:
		return f.value, f.err
	case <-ctx.Done():
		s.leave(key, f)
		var none V
		return none, fmt.Errorf("read of %s: %w", key, context.Cause(ctx))
	}
}

// start begins a read that outlives the context of the caller who happened to come first. s.mu is held.
func (s *snapshots[V]) start(ctx context.Context, key string, now time.Time, fetch func(context.Context) (V, error)) *flight[V] {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	f := &flight[V]{began: now, cancel: cancel, done: make(chan struct{})}
	if s.flights == nil {
		s.flights = map[string]*flight[V]{}
	}
	s.flights[key] = f
	go func() {
		defer cancel()
		f.value, f.err = fetch(ctx)
		s.land(key, f)
		close(f.done)
	}()
	return f
}

func (s *snapshots[V]) land(key string, f *flight[V]) {
	result := read
	if f.err != nil {
		result = failed
	}
	questions.WithLabelValues(s.kind, result).Inc()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.flights[key] == f {
		delete(s.flights, key)
	}
	switch {
	case f.err == nil:
		s.store(key, f.value, f.began)
		delete(s.failed, key)
	case s.pause > 0 && f.waiters > 0: // not because everybody has left
		pause := s.pause
		if last, ok := s.failed[key]; ok {
			pause = min(2*last.pause, maxPause)
		}
		if s.failed == nil {
			s.failed = map[string]failure{}
		}
		s.failed[key] = failure{f.err, time.Now().Add(pause), pause}
	}
}

// store keeps the newest value of a key. s.mu is held.
func (s *snapshots[V]) store(key string, value V, asOf time.Time) {
	if e, ok := s.entries[key]; ok && e.asOf.After(asOf) {
		return
	}
	if s.entries == nil {
		s.entries = map[string]snapshot[V]{}
	}
	s.entries[key] = snapshot[V]{value, asOf}
	now := time.Now()
	if s.swept.IsZero() {
		s.swept = now
	}
	if now.Sub(s.swept) < sweepInterval {
		return
	}
	s.swept = now
	for k, e := range s.entries {
		if now.Sub(e.asOf) > unusedAfter {
			delete(s.entries, k)
		}
	}
}

// put adds a value that came with another read.
func (s *snapshots[V]) put(key string, value V, asOf time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.store(key, value, asOf)
}

// last returns the newest value known, however old it is.
func (s *snapshots[V]) last(key string) (V, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e, ok := s.entries[key]
	return e.value, ok
}

// lastWithAge is last with the age of the value.
func (s *snapshots[V]) lastWithAge(key string) (V, time.Duration, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e, ok := s.entries[key]
	return e.value, time.Since(e.asOf), ok
}

func (s *snapshots[V]) forget(key string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.entries, key)
}

func (s *snapshots[V]) leave(key string, f *flight[V]) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f.waiters--
	if f.waiters > 0 {
		return
	}
	f.cancel()
	if s.flights[key] == f {
		delete(s.flights, key)
	}
}
