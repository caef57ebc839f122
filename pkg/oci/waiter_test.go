// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package oci

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// workRequests is a service whose work requests end after a time.
type workRequests struct {
	born     time.Time
	lasts    time.Duration
	outcome  WorkRequest
	err      error
	looks    atomic.Int32
	firstSaw time.Duration
}

func (w *workRequests) get(ctx context.Context, id string) (WorkRequest, error) {
	if w.looks.Add(1) == 1 {
		w.firstSaw = time.Since(w.born)
	}
	if w.err != nil {
		return WorkRequest{}, w.err
	}
	if time.Since(w.born) < w.lasts {
		return WorkRequest{ID: id, State: WorkRequestInProgress}, ctx.Err()
	}
	done := w.outcome
	done.ID = id
	return done, ctx.Err()
}

func TestWaiterLooksEarlyAndThenLess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &workRequests{born: time.Now(), lasts: time.Minute, outcome: WorkRequest{State: WorkRequestSucceeded, ResourceID: "lb"}}
		got, err := newWaiter(ServiceLoadBalancer, w.get).Wait(t.Context(), "wr")
		if err != nil || got.ResourceID != "lb" {
			t.Errorf("got %+v, %v", got, err)
		}
		if w.firstSaw != firstLook {
			t.Errorf("first look after %v", w.firstSaw)
		}
		if took := time.Since(w.born); took > time.Minute+leastPause {
			t.Errorf("a work request of a minute was waited for %v", took)
		}
		if n := w.looks.Load(); n > 122 {
			t.Errorf("%d looks in a minute", n)
		}
	})
}

// Many waits share half of the default read budget, instead of each looking every second.
func TestWaitersOfManyLookLess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const many = 50
		w := &workRequests{born: time.Now(), lasts: 2 * time.Minute, outcome: WorkRequest{State: WorkRequestSucceeded}}
		shared := newWaiter(ServiceLoadBalancer, w.get)
		var all sync.WaitGroup
		for i := range many {
			all.Go(func() {
				if _, err := shared.Wait(t.Context(), fmt.Sprint("wr-", i)); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		took := time.Since(w.born)
		if took > 2*time.Minute+mostPause {
			t.Errorf("waited for %v", took)
		}
		if perSecond := float64(w.looks.Load()) / took.Seconds(); perSecond > 12 {
			t.Errorf("%.1f looks a second for %d waits", perSecond, many)
		}
	})
}

func TestWaiterReportsFailures(t *testing.T) {
	refused := errors.New("refused")
	tests := []struct {
		name string
		w    workRequests
		want func(error) bool
	}{
		{"failed", workRequests{outcome: WorkRequest{State: WorkRequestFailed, Errors: []WorkRequestProblem{{"BAD_INPUT", "no"}}}}, isWorkRequestError(WorkRequestFailed)},
		{"canceled", workRequests{outcome: WorkRequest{State: WorkRequestCanceled}}, isWorkRequestError(WorkRequestCanceled)},
		{"unreadable", workRequests{err: refused}, func(err error) bool { return errors.Is(err, refused) }},
	}
	for i := range tests {
		tt := &tests[i]
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				if _, err := newWaiter(ServiceLoadBalancer, tt.w.get).Wait(t.Context(), "wr"); !tt.want(err) {
					t.Errorf("error %v", err)
				}
			})
		})
	}
}

func isWorkRequestError(state WorkRequestState) func(error) bool {
	return func(err error) bool {
		var failed *WorkRequestError
		return errors.As(err, &failed) && failed.WorkRequest.State == state && failed.WorkRequest.ID == "wr" && failed.Service == ServiceLoadBalancer
	}
}

func TestWaitersShareOneLoop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &workRequests{born: time.Now(), lasts: 20 * time.Second, outcome: WorkRequest{State: WorkRequestSucceeded}}
		waiter := newWaiter(ServiceLoadBalancer, w.get)
		var wg sync.WaitGroup
		for i := range 50 {
			wg.Go(func() {
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				if i == 0 { // who started the loop leaves first
					cancel()
				}
				if _, err := waiter.Wait(ctx, "wr"); (err != nil) != (i == 0) {
					t.Errorf("caller %d: %v", i, err)
				}
			})
			synctest.Wait()
		}
		wg.Wait()
		if n := w.looks.Load(); n > 42 {
			t.Errorf("%d looks for 50 callers", n)
		}
		if len(waiter.watches) != 0 {
			t.Errorf("%d loops kept", len(waiter.watches))
		}
		// Who comes later looks anew.
		if _, err := waiter.Wait(t.Context(), "wr"); err != nil {
			t.Error(err)
		}
	})
}

func TestLoopEndsWithTheLastCaller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const patient = 30*time.Second + 123*time.Millisecond // between two looks
		w := &workRequests{born: time.Now(), lasts: time.Hour}
		waiter := newWaiter(ServiceLoadBalancer, w.get)
		var wg sync.WaitGroup
		for _, patience := range []time.Duration{3 * time.Second, patient} {
			wg.Go(func() {
				ctx, cancel := context.WithTimeout(t.Context(), patience)
				defer cancel()
				if _, err := waiter.Wait(ctx, "wr"); !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("error %v", err)
				}
			})
		}
		wg.Wait()
		if took := time.Since(w.born); took != patient {
			t.Errorf("the patient caller left after %v", took)
		}
		seen := w.looks.Load()
		time.Sleep(time.Minute)
		synctest.Wait()
		if w.looks.Load() != seen {
			t.Error("the loop goes on though nobody waits")
		}
	})
}
