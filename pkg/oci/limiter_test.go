// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package oci

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/time/rate"
)

func limited(qps float32, burst int) func(*Options) {
	return func(o *Options) {
		o.Limits = RateLimits{Read: RateLimit{qps, burst}, Write: RateLimit{qps, burst}}
	}
}

// parallel makes n calls at once and returns their errors.
func parallel(ctx context.Context, c *Client, o op, n int) []error {
	errs := make([]error, n)
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() { errs[i] = call(ctx, c, o) })
	}
	wg.Wait()
	return errs
}

// C158: a tight limit makes calls wait; none fails, and all are done in the time that the rate allows.
func TestTightLimitQueues(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, wire := newTestClient(t, always(200, runningInstance), limited(1, 1))
		started := time.Now()
		for i, err := range parallel(t.Context(), c, testWrite, 100) {
			if err != nil {
				t.Errorf("call %d: %v", i, err)
			}
		}
		if took := time.Since(started); took < 80*time.Second || took > 120*time.Second {
			t.Errorf("100 calls at 1 per second took %v, want 100 s ± 20 %%", took)
		}
		if wire.count() != 100 {
			t.Errorf("%d requests for 100 calls", wire.count())
		}
	})
}

func TestDefaultsAreTwentyPerSecondWithABurstOfFive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _ := newTestClient(t, always(200, runningInstance), func(o *Options) { o.Limits = RateLimits{} })
		started := time.Now()
		parallel(t.Context(), c, testRead, 5)
		if took := time.Since(started); took != 0 {
			t.Errorf("a burst of 5 took %v", took)
		}
		parallel(t.Context(), c, testRead, 100)
		if took := time.Since(started); took < 4500*time.Millisecond || took > 5500*time.Millisecond {
			t.Errorf("100 more took %v, want 5 s", took)
		}
	})
}

func TestDisabledLimiterLetsEverythingPass(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _ := newTestClient(t, always(200, runningInstance), func(o *Options) {
			o.Limits = RateLimits{Read: RateLimit{QPS: 1, Burst: 1}, Disabled: true}
		})
		started := time.Now()
		parallel(t.Context(), c, testRead, 100)
		if took := time.Since(started); took != 0 {
			t.Errorf("100 calls took %v", took)
		}
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		if err := call(ended, c, testRead); !errors.Is(err, context.Canceled) {
			t.Errorf("call with an ended context: %v", err)
		}
	})
}

// Neither waiting reads nor another service hold up a write.
func TestBudgetsAreSeparate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _ := newTestClient(t, always(200, runningInstance), limited(1, 1))
		ctx, cancel := context.WithCancel(t.Context())
		go parallel(ctx, c, testRead, 100)
		synctest.Wait()
		started := time.Now()
		if err := call(ctx, c, testWrite); err != nil {
			t.Error(err)
		}
		other := testRead
		other.service = ServiceIdentity
		if err := call(ctx, c, other); err != nil {
			t.Error(err)
		}
		if took := time.Since(started); took != 0 {
			t.Errorf("a write and a read of another service waited %v behind 100 reads", took)
		}
		cancel()
		synctest.Wait()
	})
}

func TestWaitingEndsWithTheContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, wire := newTestClient(t, always(200, runningInstance), limited(0.1, 1))
		if err := call(t.Context(), c, testRead); err != nil {
			t.Fatal(err)
		}
		// Two wait, for 10 and 20 s; the first gives up.
		impatient, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		var waited time.Duration
		var err error
		started := time.Now()
		var wg sync.WaitGroup
		wg.Go(func() { err = call(impatient, c, testRead); waited = time.Since(started) })
		synctest.Wait()
		if err := call(t.Context(), c, testRead); err != nil {
			t.Error(err)
		}
		wg.Wait()
		var failure *Error
		if !errors.As(err, &failure) || !errors.Is(err, context.DeadlineExceeded) || failure.Operation != "TestRead" || failure.Attempts != 0 {
			t.Errorf("error %#v, want one of TestRead without an attempt, for the deadline", err)
		}
		if waited != 2*time.Second {
			t.Errorf("gave up after %v, want 2 s", waited)
		}
		if took := time.Since(started); took < 9*time.Second || took > 11*time.Second {
			t.Errorf("the one behind was served after %v: who gives up must not use up budget", took)
		}
		if wire.count() != 2 {
			t.Errorf("%d requests, want 2", wire.count())
		}
	})
}

func TestWaitersAreServedInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLimiter(limiterKey{ServiceCompute, false}, RateLimit{QPS: 1, Burst: 1}, false)
		var mu sync.Mutex
		var order []int
		var wg sync.WaitGroup
		for i := range 10 {
			wg.Go(func() {
				if err := l.wait(t.Context()); err != nil {
					t.Error(err)
				}
				mu.Lock()
				defer mu.Unlock()
				order = append(order, i)
			})
			synctest.Wait()
		}
		wg.Wait()
		if fmt.Sprint(order) != "[0 1 2 3 4 5 6 7 8 9]" {
			t.Errorf("served in order %v", order)
		}
	})
}

// bucket is a service's own limit.
type bucket struct {
	limiter *rate.Limiter
	refused atomic.Int32
}

func (b *bucket) wire(int, *http.Request) (*http.Response, error) {
	if !b.limiter.Allow() {
		b.refused.Add(1)
		return refusal(429, "TooManyRequests"), nil
	}
	return answer(200, runningInstance), nil
}

// A service that bears less than the configured rate is not bombarded, everything gets done, and the rate comes back.
func TestRateFollowsTheService(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		service := &bucket{limiter: rate.NewLimiter(5, 5)}
		c, _ := newTestClient(t, service.wire, limited(20, 5))
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
		defer cancel()
		started := time.Now()
		for i, err := range parallel(ctx, c, testRead, 300) {
			if err != nil {
				t.Errorf("call %d: %v", i, err)
			}
		}
		// At 5 per second 300 calls take 60 s at best. An adaptive limit loses some, but stays near.
		if took := time.Since(started); took > 120*time.Second {
			t.Errorf("300 calls took %v, want less than twice the 60 s that the service allows", took)
		}
		if n := service.refused.Load(); n > 60 {
			t.Errorf("%d of 360 requests were refused: the rate does not follow the service", n)
		}

		service.limiter.SetLimit(1000)
		service.limiter.SetBurst(1000)
		time.Sleep(recoveryTime)
		started = time.Now()
		parallel(ctx, c, testRead, 105)
		if took := time.Since(started); took > 5500*time.Millisecond {
			t.Errorf("a minute later 105 calls took %v, want the full rate again (5 s)", took)
		}
	})
}

func TestThrottleHalvesOncePerRound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLimiter(limiterKey{ServiceCompute, false}, RateLimit{QPS: 16, Burst: 4}, false)
		sent := time.Now()
		time.Sleep(time.Second)
		for range 10 { // all were on their way together
			l.throttled(sent, 0)
		}
		if got := l.bucket.Limit(); got != 8 {
			t.Errorf("rate %v after one round of 429s, want 8", got)
		}
		if saved := l.bucket.Tokens(); saved >= 1 {
			t.Errorf("%v requests saved for a burst while throttled", saved)
		}
		for range 20 {
			sent = time.Now()
			time.Sleep(time.Millisecond)
			l.throttled(sent, 0)
		}
		if got := l.bucket.Limit(); got < 16*lowestShare || got > 1 {
			t.Errorf("rate %v after many rounds, want the lowest one", got)
		}
	})
}

// Retry-After of one answer pauses everybody who uses that budget, and nobody else.
func TestRetryAfterPausesTheBudget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _ := newTestClient(t, func(n int, _ *http.Request) (*http.Response, error) {
			if n == 1 {
				return refusal(429, "TooManyRequests", "Retry-After", "30"), nil
			}
			return answer(200, runningInstance), nil
		}, limited(100, 10))
		started := time.Now()
		var first time.Duration
		var wg sync.WaitGroup
		wg.Go(func() {
			if err := call(t.Context(), c, testRead); err != nil {
				t.Error(err)
			}
			first = time.Since(started)
		})
		synctest.Wait()
		if err := call(t.Context(), c, testWrite); err != nil || time.Since(started) != 0 {
			t.Errorf("a write waited %v: %v", time.Since(started), err)
		}
		if err := call(t.Context(), c, testRead); err != nil {
			t.Error(err)
		}
		if second := time.Since(started); second < 30*time.Second || second > 31*time.Second {
			t.Errorf("another read went after %v, want 30 s", second)
		}
		wg.Wait()
		if first < 30*time.Second || first > 31*time.Second {
			t.Errorf("the refused read came back after %v, want 30 s", first)
		}
	})
}
