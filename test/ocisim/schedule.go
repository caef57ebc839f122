// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package ocisim

import (
	"container/heap"
	"time"
)

// event is a change that happens at a point of the region's time.
type event struct {
	at     time.Time
	seq    uint64 // events of one moment run in the order in which they were scheduled
	run    func()
	cancel bool
}

// schedule holds the events to come. Nothing runs by itself: the events that are due run at the start of the next
// call or inspection, in order, each at its own time. So state machines need neither timers nor goroutines, and
// work alike on real time, in a testing/synctest bubble and after Advance.
type schedule struct {
	events eventHeap
	seq    uint64
}

func (s *schedule) add(at time.Time, run func()) *event {
	s.seq++
	e := &event{at: at, seq: s.seq, run: run}
	heap.Push(&s.events, e)
	return e
}

// next returns the first event that is due at now, or nil.
func (s *schedule) next(now time.Time) *event {
	for len(s.events) > 0 && !s.events[0].at.After(now) {
		e, ok := heap.Pop(&s.events).(*event)
		if ok && !e.cancel {
			return e
		}
	}
	return nil
}

type eventHeap []*event

func (h eventHeap) Len() int { return len(h) }

func (h eventHeap) Less(i, j int) bool {
	if h[i].at.Equal(h[j].at) {
		return h[i].seq < h[j].seq
	}
	return h[i].at.Before(h[j].at)
}

func (h eventHeap) Swap(i, j int) { h[i], h[j] = h[j], h[i] }

// Push implements heap.Interface.
func (h *eventHeap) Push(x any) {
	if e, ok := x.(*event); ok {
		*h = append(*h, e)
	}
}

// Pop implements heap.Interface.
func (h *eventHeap) Pop() any {
	old := *h
	last := old[len(old)-1]
	old[len(old)-1] = nil
	*h = old[:len(old)-1]
	return last
}
