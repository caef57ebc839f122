// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package loadbalancer

import (
	"context"
	"sync"
	"time"
)

// snapshotTimeout bounds one load, which goes on when the caller that started it has gone.
const snapshotTimeout = time.Minute

// snapshots keeps loaded values for callers who say how old a value may be. Callers who need the same value share a load.
type snapshots[K comparable, V any] struct {
	load func(ctx context.Context, key K) (V, error)

	mu      sync.Mutex
	entries map[K]*snapshot[V]
}

type snapshot[V any] struct {
	value   V
	at      time.Time // when the load of value began
	valid   bool
	running *loading[V]
	next    *loading[V] // begins when running ends
}

// loading is one load. Its result may be read when done is closed.
type loading[V any] struct {
	at    time.Time
	done  chan struct{}
	value V
	err   error
	stale bool // invalidated while it ran
}

func newSnapshots[K comparable, V any](load func(ctx context.Context, key K) (V, error)) *snapshots[K, V] {
	return &snapshots[K, V]{load: load, entries: map[K]*snapshot[V]{}}
}

// get returns a value that is at most maxAge old, and when its load began. A maxAge of 0 asks for a load that begins after
// this call.
func (s *snapshots[K, V]) get(ctx context.Context, key K, maxAge time.Duration) (V, time.Time, error) {
	s.mu.Lock()
	e := s.entries[key]
	if e == nil {
		e = &snapshot[V]{}
		s.entries[key] = e
	}
	if e.valid && maxAge > 0 && time.Since(e.at) <= maxAge {
		defer s.mu.Unlock()
		return e.value, e.at, nil
	}
	var l *loading[V]
	switch {
	case e.running == nil:
		e.running = &loading[V]{done: make(chan struct{})}
		l = e.running
		s.start(ctx, key, e)
	case maxAge > 0 && !e.running.stale:
		l = e.running
	default:
		if e.next == nil {
			e.next = &loading[V]{done: make(chan struct{})}
		}
		l = e.next
	}
	s.mu.Unlock()
	select {
	case <-l.done:
		return l.value, l.at, l.err
	case <-ctx.Done():
		var none V
		return none, time.Time{}, context.Cause(ctx)
	}
}

// start runs e.running. The caller holds the lock.
func (s *snapshots[K, V]) start(ctx context.Context, key K, e *snapshot[V]) {
	l := e.running
	l.at = time.Now()
	go func() {
		loadCtx, cancel := context.WithTimeout(context.WithoutCancel(ctx), snapshotTimeout)
		defer cancel()
		l.value, l.err = s.load(loadCtx, key)
		s.mu.Lock()
		defer s.mu.Unlock()
		e.valid = l.err == nil && !l.stale
		if e.valid {
			e.value, e.at = l.value, l.at
		}
		e.running, e.next = e.next, nil
		if e.running != nil {
			s.start(ctx, key, e)
		}
		close(l.done)
	}()
}

// invalidate drops a value that is known to be out of date.
func (s *snapshots[K, V]) invalidate(key K) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if e := s.entries[key]; e != nil {
		e.valid = false
		if e.running != nil {
			e.running.stale = true
		}
	}
}
