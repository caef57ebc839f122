// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package cloudprovider

import (
	"context"
	"errors"
	"sync"
	"time"
)

// errShutdown is the answer to everything that is asked of a provider that is shutting down.
var errShutdown = errors.New("the cloud controller manager is shutting down")

// letFinish is how long work under way may go on after the gate is closed. A call to the API takes a second at most; what
// takes longer waits for something, and the next process can do that as well.
const letFinish = 3 * time.Second

// gate counts the operations under way, so that a process can end between two of them.
type gate struct {
	mu     sync.Mutex
	inside int
	closed bool
	empty  chan struct{} // closed when the gate is closed and nothing is inside
	cutOff context.Context
	cut    context.CancelFunc
}

func newGate() *gate {
	g := &gate{empty: make(chan struct{})}
	g.cutOff, g.cut = context.WithCancel(context.Background())
	return g
}

// enter begins an operation that may take the given time. leave must be called at its end.
//
// The framework ends its contexts with the first signal, which would tear a call away from its answer. So the operation
// takes over the values and the deadline of ctx, but not its end: close sees to that.
func (g *gate) enter(ctx context.Context, limit time.Duration) (inner context.Context, leave func(), err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return nil, nil, errShutdown
	}
	g.inside++
	if deadline, ok := ctx.Deadline(); ok {
		limit = min(limit, time.Until(deadline))
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), limit)
	stop := context.AfterFunc(g.cutOff, cancel)
	return ctx, func() {
		stop()
		cancel()
		g.mu.Lock()
		defer g.mu.Unlock()
		g.inside--
		if g.closed && g.inside == 0 {
			close(g.empty)
		}
	}, nil
}

func (g *gate) isClosed() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.closed
}

// close lets nothing more in, and returns when all are out or ctx ends.
func (g *gate) close(ctx context.Context) {
	g.mu.Lock()
	if !g.closed {
		g.closed = true
		if g.inside == 0 {
			close(g.empty)
		}
	}
	g.mu.Unlock()

	timer := time.NewTimer(letFinish)
	defer timer.Stop()
	select {
	case <-g.empty:
	case <-timer.C:
	case <-ctx.Done():
	}
	g.cut()
	select {
	case <-g.empty:
	case <-ctx.Done():
	}
}
