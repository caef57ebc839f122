// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package ocisim

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"sync"
)

// ErrKilled is what a process sees of the network after it was killed. A real one would see nothing any more.
var ErrKilled = errors.New("ocisim: the process was killed")

// KillPoint is a moment at which a process ends: with one of its calls to the API, either before that call arrives or
// after it was applied and before its answer came back. These are all the moments that differ for the API.
type KillPoint struct {
	Call    int  // number of the call in the life of the process, from 1
	Applied bool // the call takes effect; only its answer is lost

	mu      sync.Mutex
	calls   int
	last    string
	reached bool
}

// KillPoints yields one kill point after the other, until a process comes to its end without reaching its point. The
// body of the loop makes a fresh world, runs a scenario with the process that KillPoint.Process gives it, and then
// checks what a second process makes of what the first one left:
//
//	for point := range ocisim.KillPoints() {
//		region := newWorld()
//		ctx, transport := point.Process(t.Context(), region.Transport())
//		_ = scenario(ctx, transport)          // fails if it was killed
//		if err := scenario(t.Context(), region.Transport()); err != nil {
//			t.Errorf("%s: %v", point, err)
//		}
//	}
//
// The scenario must make the same calls every time, up to the point.
func KillPoints() iter.Seq[*KillPoint] {
	return func(yield func(*KillPoint) bool) {
		for n := 1; ; n++ {
			for _, applied := range []bool{false, true} {
				point := &KillPoint{Call: n, Applied: applied}
				if !yield(point) || !point.Reached() {
					return
				}
			}
		}
	}
}

// Process returns the context and the network of a process that ends at the point. From then on the context is canceled,
// and calls fail with ErrKilled. A point kills one process.
func (p *KillPoint) Process(ctx context.Context, network http.RoundTripper) (context.Context, http.RoundTripper) {
	ctx, cancel := context.WithCancel(ctx)
	return ctx, &mortal{point: p, next: network, die: cancel}
}

// Reached says whether a process ended at the point.
func (p *KillPoint) Reached() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.reached
}

// String tells the point: "call 3 (POST /20170115/loadBalancers), answer lost".
func (p *KillPoint) String() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	what := "call lost"
	if p.Applied {
		what = "answer lost"
	}
	if p.last == "" {
		return fmt.Sprintf("call %d, %s", p.Call, what)
	}
	return fmt.Sprintf("call %d (%s), %s", p.Call, p.last, what)
}

// take counts a call and says whether it is the last one, or comes after it.
func (p *KillPoint) take(req *http.Request) (last, dead bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.calls++
	if last = p.calls == p.Call; last {
		p.reached, p.last = true, req.Method+" "+req.URL.Path
	}
	return last, p.calls > p.Call
}

// mortal is the network of a process that ends with a certain call.
type mortal struct {
	point *KillPoint
	next  http.RoundTripper
	die   func()
}

// RoundTrip implements http.RoundTripper.
func (m *mortal) RoundTrip(req *http.Request) (*http.Response, error) {
	last, dead := m.point.take(req)
	switch {
	case dead || last && !m.point.Applied:
		m.die()
		if req.Body != nil {
			_ = req.Body.Close()
		}
		return nil, ErrKilled
	case last:
		response, err := m.next.RoundTrip(req)
		if err == nil {
			_ = response.Body.Close()
		}
		m.die()
		return nil, ErrKilled
	}
	return m.next.RoundTrip(req)
}
