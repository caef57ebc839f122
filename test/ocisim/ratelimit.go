// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package ocisim

import (
	"net/http"
	"time"
)

// bucketName is the scope of a budget: one principal, one service, one direction.
type bucketName struct {
	principal, service string
	write              bool
}

type bucketState struct {
	tokens float64
	filled time.Time
}

// SetRates changes the budgets of all principals from now on.
func (r *Region) SetRates(read, write Rate) {
	cl := r.lock()
	defer r.mu.Unlock()
	cl.options.Read, cl.options.Write = read, write
	cl.buckets = map[bucketName]*bucketState{}
}

func (cl *cloud) rate(o *Operation) Rate {
	direction, rate := ".read", cl.options.Read
	if o.write() {
		direction, rate = ".write", cl.options.Write
	}
	if own, ok := cl.rates[o.Service+direction]; ok {
		return own
	}
	return rate
}

// takeToken spends one call of the caller's budget, or refuses it with 429.
func (cl *cloud) takeToken(c *call) error {
	rate := cl.rate(c.operation)
	if rate.PerSecond <= 0 {
		return nil
	}
	if takeFrom(cl.buckets, bucketName{c.principal.ID, c.operation.Service, c.operation.write()}, rate, cl.now) {
		return nil
	}
	return &APIError{
		Status: http.StatusTooManyRequests, Code: "TooManyRequests", Message: messageThrottle,
		RetryAfter: cl.options.RetryAfter,
	}
}

// takeFrom spends one call of a budget; false if it is used up. A budget starts full.
func takeFrom(buckets map[bucketName]*bucketState, name bucketName, rate Rate, now time.Time) bool {
	burst := float64(max(rate.Burst, 1))
	b := buckets[name]
	if b == nil {
		b = &bucketState{tokens: burst, filled: now}
		buckets[name] = b
	}
	b.tokens = min(burst, b.tokens+now.Sub(b.filled).Seconds()*rate.PerSecond)
	b.filled = now
	if b.tokens < 1 {
		return false
	}
	b.tokens--
	return true
}
