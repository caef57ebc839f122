// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package oci

import (
	"context"
	"fmt"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// Defaults of the configuration keys rateLimiter.rateLimitQPS{Read,Write} and rateLimiter.rateLimitBucket{Read,Write}.
const (
	defaultQPS   = 20
	defaultBurst = 5
)

// RateLimit is a rate in requests per second and how many may go at once. Zero fields take the defaults 20 and 5.
type RateLimit struct {
	QPS   float32
	Burst int
}

// RateLimits bound the requests to every service. Each service has a budget for reads and one for writes, so that neither
// a busy service nor many reads hold up the rest.
type RateLimits struct {
	Read, Write RateLimit

	// Disabled removes the limits. A 429 is still answered by waiting before that request is repeated.
	Disabled bool
}

type limiterKey struct {
	service Service
	write   bool
}

func (k limiterKey) direction() string {
	if k.write {
		return "write"
	}
	return "read"
}

func newLimiters(limits RateLimits) map[limiterKey]*limiter {
	all := map[limiterKey]*limiter{}
	for _, service := range Services() {
		for _, write := range []bool{false, true} {
			key := limiterKey{service, write}
			limit := limits.Read
			if write {
				limit = limits.Write
			}
			all[key] = newLimiter(key, limit, limits.Disabled)
		}
	}
	return all
}

const (
	// recoveryTime is how long the budget takes to grow from nothing to its full rate when no 429 comes.
	recoveryTime = time.Minute

	// lowestShare of the full rate is kept even when every request is throttled.
	lowestShare = 1.0 / 32
)

// limiter is a blocking token bucket whose rate follows what the service bears: a 429 halves it, and it grows back
// evenly with time (additive increase, multiplicative decrease).
//
// Waiters form a queue; only the first of them looks at the bucket. So a change of rate or a pause applies to all who
// wait, and they are served in the order in which they came.
type limiter struct {
	key      limiterKey
	full     rate.Limit
	disabled bool
	turn     chan struct{} // holds one element while somebody is first in the queue

	mu           sync.Mutex
	bucket       *rate.Limiter
	grown        time.Time // when the rate was last brought up to date
	lastDecrease time.Time
	pausedUntil  time.Time
}

func newLimiter(key limiterKey, limit RateLimit, disabled bool) *limiter {
	if limit.QPS <= 0 {
		limit.QPS = defaultQPS
	}
	if limit.Burst <= 0 {
		limit.Burst = defaultBurst
	}
	full := rate.Limit(limit.QPS)
	return &limiter{
		key:      key,
		full:     full,
		disabled: disabled,
		turn:     make(chan struct{}, 1),
		bucket:   rate.NewLimiter(full, limit.Burst),
	}
}

// wait blocks until the budget allows one more request or ctx ends.
func (l *limiter) wait(ctx context.Context) error {
	if l.disabled {
		return ctx.Err()
	}
	started := time.Now()
	err := l.queue(ctx)
	observeLimiterWait(l.key, time.Since(started))
	if err != nil {
		return fmt.Errorf("waiting for the client-side budget for %ss: %w", l.key.direction(), err)
	}
	return nil
}

func (l *limiter) queue(ctx context.Context) error {
	select {
	case l.turn <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-l.turn }()
	for {
		if err := ctx.Err(); err != nil {
			return ctx.Err()
		}
		delay := l.take(time.Now())
		if delay <= 0 {
			return nil
		}
		if err := sleep(ctx, delay); err != nil {
			return err
		}
	}
}

// take takes a token, or says how long to wait before asking again.
func (l *limiter) take(now time.Time) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.grow(now)
	if pause := l.pausedUntil.Sub(now); pause > 0 {
		return pause
	}
	if l.bucket.AllowN(now, 1) {
		return 0
	}
	missing := 1 - l.bucket.TokensAt(now)
	return max(time.Duration(missing/float64(l.bucket.Limit())*float64(time.Second)), time.Millisecond)
}

// grow brings the rate up to date.
func (l *limiter) grow(now time.Time) {
	limit := l.bucket.Limit()
	if limit < l.full {
		limit += l.full * rate.Limit(now.Sub(l.grown).Seconds()/recoveryTime.Seconds())
		l.bucket.SetLimitAt(now, min(limit, l.full))
	}
	l.grown = now
}

// throttled tells that a request that was sent at the given time was answered with 429. Requests that were on their way
// when the rate was last halved count as one with that: they say nothing about the new rate.
func (l *limiter) throttled(sent time.Time, retryAfter time.Duration) {
	if l.disabled {
		return
	}
	now := time.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.grow(now)
	if until := now.Add(retryAfter); retryAfter > 0 && until.After(l.pausedUntil) {
		l.pausedUntil = until
	}
	if !sent.After(l.lastDecrease) && !l.lastDecrease.IsZero() {
		return
	}
	l.lastDecrease = now
	l.bucket.SetLimitAt(now, max(l.bucket.Limit()/2, l.full*lowestShare))
	// What was saved for a burst is not there to be spent now.
	if saved := int(l.bucket.TokensAt(now)); saved > 0 {
		l.bucket.AllowN(now, saved)
	}
}
