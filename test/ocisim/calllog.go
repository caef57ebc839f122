// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package ocisim

import (
	"slices"
	"sync"
	"time"
)

// Call is one line of the call log. Bodies are not kept, because they carry private keys and passphrases.
type Call struct {
	Seq       uint64        `json:"seq"`
	Time      time.Time     `json:"time"` // of the region's clock, when the call arrived
	Duration  time.Duration `json:"duration"`
	Principal string        `json:"principal"`
	Service   string        `json:"service"`
	Operation string        `json:"operation"` // empty for a path that is no operation
	Write     bool          `json:"write"`
	Method    string        `json:"method"`
	Path      string        `json:"path"`
	Query     string        `json:"query,omitempty"`

	Resource    string `json:"resource,omitempty"` // first path parameter
	Created     string `json:"created,omitempty"`  // OCID of what the call created
	WorkRequest string `json:"workRequest,omitempty"`
	RetryToken  string `json:"retryToken,omitempty"`
	IfMatch     string `json:"ifMatch,omitempty"`
	Replayed    bool   `json:"replayed,omitempty"` // answered from the retry token's record

	Status    int    `json:"status"` // 0 when the connection was dropped before the call was applied
	Code      string `json:"code,omitempty"`
	RequestID string `json:"requestId,omitempty"`
	Fault     string `json:"fault,omitempty"`  // what was injected
	Reason    string `json:"reason,omitempty"` // why a request was not authenticated
}

// Name is "service.Operation".
func (c Call) Name() string { return c.Service + "." + c.Operation }

// callLog keeps the last calls in a ring, and counts all of them.
type callLog struct {
	ring   []Call
	size   int
	next   int
	seq    uint64
	counts map[string]int
}

func newCallLog(size int) callLog {
	return callLog{size: size, counts: map[string]int{}}
}

func (l *callLog) add(c *Call) {
	l.seq++
	c.Seq = l.seq
	l.counts[c.Name()]++
	if len(l.ring) < l.size {
		l.ring = append(l.ring, *c)
		return
	}
	l.ring[l.next] = *c
	l.next = (l.next + 1) % l.size
}

// Calls returns the call log, oldest first: the last Options.LogSize calls since the start or ResetCalls.
func (r *Region) Calls() []Call {
	cl := r.lock()
	defer r.mu.Unlock()
	l := &cl.log
	return append(slices.Clone(l.ring[l.next:]), l.ring[:l.next]...)
}

// Counts returns the number of calls by "service.Operation" since the start or ResetCalls, refused ones included.
func (r *Region) Counts() map[string]int {
	cl := r.lock()
	defer r.mu.Unlock()
	counts := make(map[string]int, len(cl.log.counts))
	for name, n := range cl.log.counts {
		counts[name] = n
	}
	return counts
}

// ResetCalls empties the call log and its counters. Sequence numbers go on.
func (r *Region) ResetCalls() {
	cl := r.lock()
	defer r.mu.Unlock()
	seq := cl.log.seq
	cl.log = newCallLog(cl.options.LogSize)
	cl.log.seq = seq
}

// observers have a lock of their own: they outlive a Reset.
type observers struct {
	mu    sync.Mutex
	calls []*observer
}

// OnCall lets a function see every call after it took effect and before its answer leaves, until remove is called. It
// runs without the region's lock and may use the region; the caller of the API waits for it. So a test can stop a
// process exactly between a call's effect and its answer.
func (r *Region) OnCall(observe func(Call)) (remove func()) {
	r.observers.mu.Lock()
	defer r.observers.mu.Unlock()
	mine := &observer{observe}
	r.observers.calls = append(r.observers.calls, mine)
	return func() {
		r.observers.mu.Lock()
		defer r.observers.mu.Unlock()
		r.observers.calls = without(r.observers.calls, mine)
	}
}

func (o *observers) list() []func(Call) {
	o.mu.Lock()
	defer o.mu.Unlock()
	list := make([]func(Call), 0, len(o.calls))
	for _, one := range o.calls {
		list = append(list, one.see)
	}
	return list
}

// observer has an address, so that one can be told from another.
type observer struct {
	see func(Call)
}
