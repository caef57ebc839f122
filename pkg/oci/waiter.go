// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package oci

import (
	"context"
	"sync"
	"time"
)

// Pauses between two looks at a work request. Network load balancers take about 20 s and load balancers about a minute to
// be created, backend sets 10 s and more (oci-api.md §5), so the first looks catch what was refused at once. Later the end
// of an operation is seen within half a second where few are waited for; the more there are, the longer the pauses, so that
// even fifty of them take half of the default budget of reads.
const (
	firstLook   = 500 * time.Millisecond
	lookGrowth  = 1.6
	pauseOfMany = 200 * time.Millisecond // for each work request that is waited for
	leastPause  = 500 * time.Millisecond
	mostPause   = 5 * time.Second
)

// waiter waits for work requests of one service. All callers that wait for the same work request share one loop.
type waiter struct {
	service Service
	get     func(ctx context.Context, id string) (WorkRequest, error)

	mu      sync.Mutex
	watches map[string]*watch
}

// watch is the loop of one work request.
type watch struct {
	callers int
	cancel  context.CancelFunc
	done    chan struct{} // closed when result and err are set
	result  WorkRequest
	err     error
}

// newWaiter returns a waiter that reads work requests with get. get returns the error list of a FAILED request.
func newWaiter(service Service, get func(ctx context.Context, id string) (WorkRequest, error)) *waiter {
	return &waiter{service: service, get: get, watches: map[string]*watch{}}
}

// Wait returns when the work request has ended: SUCCEEDED, or FAILED or CANCELED with a *WorkRequestError. It returns
// earlier with the error of a read that failed for good, or of ctx.
func (w *waiter) Wait(ctx context.Context, id string) (WorkRequest, error) {
	watched := w.join(ctx, id)
	defer w.leave(id, watched)
	select {
	case <-watched.done:
		return watched.result, watched.err
	case <-ctx.Done():
		return WorkRequest{}, ctx.Err()
	}
}

// join takes part in the loop of a work request, starting it for the first caller. The loop outlives the context of the
// caller who started it, as long as others wait.
func (w *waiter) join(ctx context.Context, id string) *watch {
	w.mu.Lock()
	defer w.mu.Unlock()
	if watched := w.watches[id]; watched != nil {
		watched.callers++
		return watched
	}
	loopCtx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	watched := &watch{callers: 1, cancel: cancel, done: make(chan struct{})}
	w.watches[id] = watched
	go func() {
		defer cancel()
		watched.result, watched.err = w.poll(loopCtx, id)
		w.forget(id, watched)
		close(watched.done)
	}()
	return watched
}

// leave ends the loop with the last caller.
func (w *waiter) leave(id string, watched *watch) {
	w.mu.Lock()
	defer w.mu.Unlock()
	watched.callers--
	if watched.callers > 0 {
		return
	}
	watched.cancel()
	if w.watches[id] == watched {
		delete(w.watches, id)
	}
}

// forget takes a finished loop out, so that who comes later looks anew.
func (w *waiter) forget(id string, watched *watch) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.watches[id] == watched {
		delete(w.watches, id)
	}
}

// longestPause is how long a loop pauses at most, given how many there are.
func (w *waiter) longestPause() time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	return min(max(time.Duration(len(w.watches))*pauseOfMany, leastPause), mostPause)
}

func (w *waiter) poll(ctx context.Context, id string) (WorkRequest, error) {
	pause := firstLook
	for {
		if err := sleep(ctx, pause); err != nil {
			return WorkRequest{}, err
		}
		request, err := w.get(ctx, id)
		if err != nil {
			return WorkRequest{}, err
		}
		switch {
		case request.State == WorkRequestSucceeded:
			return request, nil
		case request.State.Done():
			return request, &WorkRequestError{Service: w.service, WorkRequest: request}
		}
		pause = min(time.Duration(float64(pause)*lookGrowth), w.longestPause())
	}
}
