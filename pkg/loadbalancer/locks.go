// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package loadbalancer

import (
	"context"
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

// locks are mutexes by Service that can be waited for with a deadline.
type locks struct {
	mu   sync.Mutex
	held map[types.UID]*lock
}

type lock struct {
	free  chan struct{} // holds one element while the lock is free
	users int           // who holds it or waits for it
}

func newLocks() *locks { return &locks{held: map[types.UID]*lock{}} }

// acquire waits for the lock of a Service. release must be called once if the error is nil.
func (l *locks) acquire(ctx context.Context, uid types.UID) (release func(), err error) {
	l.mu.Lock()
	one := l.held[uid]
	if one == nil {
		one = &lock{free: make(chan struct{}, 1)}
		one.free <- struct{}{}
		l.held[uid] = one
	}
	one.users++
	l.mu.Unlock()
	select {
	case <-one.free:
		return func() {
			one.free <- struct{}{}
			l.leave(uid, one)
		}, nil
	case <-ctx.Done():
		l.leave(uid, one)
		return nil, context.Cause(ctx)
	}
}

func (l *locks) leave(uid types.UID, one *lock) {
	l.mu.Lock()
	defer l.mu.Unlock()
	one.users--
	if one.users == 0 {
		delete(l.held, uid)
	}
}

// busy says whether somebody holds the lock of a Service.
func (l *locks) busy(uid types.UID) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.held[uid] != nil
}
