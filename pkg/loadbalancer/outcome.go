// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package loadbalancer

import (
	"context"
	"errors"
	"time"
)

// ErrServiceGone means that the Service does not exist any more, or is being deleted: nothing is made for it.
var ErrServiceGone = errors.New("the Service is deleted or being deleted")

// ErrMissing means that UpdateBackends found no balancer. The Service should be synced as a whole.
var ErrMissing = errors.New("the Service has no balancer")

// Pending means that the work is not done yet and goes on in the cloud, or has to be continued later. It is no failure:
// the caller should call again when Wait returns.
type Pending struct {
	// What is waited for.
	What string
	// Reason is set where the work is delayed because of a failure that the user was told of: it is that event's.
	Reason string

	wait func(ctx context.Context) error
}

func (p *Pending) Error() string { return "in progress: " + p.What }

// Wait returns when it is worth calling again, or with the error of ctx. What comes of the work is told by that call.
func (p *Pending) Wait(ctx context.Context) error { return p.wait(ctx) }

// pendingUntil waits for a time.
func pendingUntil(what string, at time.Time) *Pending {
	return &Pending{What: what, wait: func(ctx context.Context) error { return sleep(ctx, time.Until(at)) }}
}

// Refusal is a sync that failed, or was refused, for a reason that the user has been told in an event. Its text is that of
// the event, and stays the same for as long as the cause does.
type Refusal struct {
	Reason string
	// RetryAfter is the time after which another try makes sense, growing from try to try.
	RetryAfter time.Duration

	text  string
	cause error
}

func (r *Refusal) Error() string { return r.text }

func (r *Refusal) Unwrap() error { return r.cause }

// sleep waits for d, or for the end of ctx.
func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
