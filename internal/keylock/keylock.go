// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

// Package keylock has mutexes by key that can be waited for with a deadline.
package keylock

import (
	"context"
	"sync"
)

// Locks are mutexes by key. The zero value is not usable; see New.
type Locks[K comparable] struct {
	mu   sync.Mutex
	held map[K]*lock
}

type lock struct {
	free  chan struct{} // holds one element while the lock is free
	users int           // who holds it or waits for it
}

// New returns locks that nobody holds.
func New[K comparable]() *Locks[K] { return &Locks[K]{held: map[K]*lock{}} }

// Acquire waits for the lock of a key. release must be called once if the error is nil; otherwise it is the cause for which
// ctx ended.
func (l *Locks[K]) Acquire(ctx context.Context, key K) (release func(), err error) {
	l.mu.Lock()
	one := l.held[key]
	if one == nil {
		one = &lock{free: make(chan struct{}, 1)}
		one.free <- struct{}{}
		l.held[key] = one
	}
	one.users++
	l.mu.Unlock()
	select {
	case <-one.free:
		return func() {
			one.free <- struct{}{}
			l.leave(key, one)
		}, nil
	case <-ctx.Done():
		l.leave(key, one)
		return nil, context.Cause(ctx)
	}
}

func (l *Locks[K]) leave(key K, one *lock) {
	l.mu.Lock()
	defer l.mu.Unlock()
	one.users--
	if one.users == 0 {
		delete(l.held, key)
	}
}

// Busy says whether somebody holds the lock of a key.
func (l *Locks[K]) Busy(key K) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.held[key] != nil
}
