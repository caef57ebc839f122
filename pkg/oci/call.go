// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package oci

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"k8s.io/klog/v2"
)

const (
	// defaultDeadline bounds an operation whose caller set no deadline.
	defaultDeadline = 2 * time.Minute

	// attemptTimeout bounds one request, so that a connection that went silent is noticed while the caller's deadline
	// still leaves time for another try. The SDK's own limit is 60 s.
	attemptTimeout = 30 * time.Second
)

// op describes one call of an OCI operation.
type op struct {
	service Service
	name    string // operation as the API names it: "GetInstance"
	write   bool   // counts against the budget for writes

	// resource and verb are labels of oci_requests_total: "instance", "get".
	resource, verb string

	// repeatable says that sending the same request twice does no harm: reads, writes of a state, and creates that
	// carry a retry token. Other calls are repeated only where the failure proves that nothing was done.
	repeatable bool

	// target is the OCID that a read is about; empty for lists.
	target string
}

// invoke calls one operation of an OCI service. fn makes the request with the SDK and returns, besides the result, the raw
// response (of a failed request too). invoke waits for the budget, repeats what may be repeated inside the deadline of ctx,
// counts, and returns failures as *Error.
func invoke[T any](ctx context.Context, c *Client, o op, fn func(context.Context) (T, *http.Response, error)) (T, error) {
	if _, bounded := ctx.Deadline(); !bounded {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, defaultDeadline)
		defer cancel()
	}
	var result T
	err := c.perform(ctx, o, func(ctx context.Context) outcome {
		r, response, err := fn(ctx) //nolint:bodyclose // the SDK has read and closed it
		return outcome{response: response, err: err, take: func() { result = r }}
	})
	countOperation(o, err)
	if err != nil {
		var none T
		return none, err
	}
	return result, nil
}

// outcome is what became of one request.
type outcome struct {
	response *http.Response // nil if there was none
	err      error
	take     func() // hands the result over; called if err is nil
}

// perform sends requests until one succeeds or the policy says to give up.
func (c *Client) perform(ctx context.Context, o op, send func(context.Context) outcome) error {
	budget := c.limiters[limiterKey{o.service, o.write}]
	policy := retryPolicy{op: o, recent: c.recent, refreshable: c.refresher != nil, rand: c.rand}
	var last *Error
	for attempts := 0; ; {
		if err := budget.wait(ctx); err != nil {
			return gaveUp(o, last, attempts, err)
		}
		attempts++
		started := time.Now()
		r := c.attempt(ctx, o, send)
		if r.err == nil {
			r.take()
			return nil
		}
		last = newError(o, r.err, r.response)
		last.Attempts = attempts
		if last.Status == http.StatusUnauthorized || last.Status == http.StatusForbidden {
			last.Principal = c.principalName
		}
		if ctx.Err() != nil {
			return gaveUp(o, last, attempts, ctx.Err())
		}
		retryAfter := retryAfter(r.response)
		if last.Status == http.StatusTooManyRequests {
			budget.throttled(started, retryAfter)
		}
		decision := policy.decide(last, attempts, retryAfter)
		if decision.reason == "" {
			return last
		}
		if deadline, ok := ctx.Deadline(); ok && time.Until(deadline) <= decision.delay {
			last.cause = joinCause(last.cause, errNoTimeLeft)
			return last
		}
		countRetry(o, decision.reason)
		if decision.refresh {
			if err := c.refresher.refresh(started); err != nil {
				last.cause = err
				return last
			}
		}
		if err := sleep(ctx, decision.delay); err != nil {
			return gaveUp(o, last, attempts, err)
		}
	}
}

// attempt sends one request and records it.
func (c *Client) attempt(ctx context.Context, o op, send func(context.Context) outcome) outcome {
	attemptCtx, cancel := context.WithTimeout(ctx, attemptTimeout)
	defer cancel()
	started := time.Now()
	r := await(attemptCtx, send)
	took := time.Since(started)
	status, requestID := 0, ""
	if r.response != nil {
		status, requestID = r.response.StatusCode, r.response.Header.Get("opc-request-id")
	}
	countRequest(o, status, r.err, took)
	klog.FromContext(ctx).V(4).Info("Called OCI", "ociService", o.service, "operation", o.name, "resourceID", o.target,
		"status", status, "opcRequestID", requestID, "duration", took)
	return r
}

// await runs send until it is done or ctx ends.
//
// The SDK waits for the end of its context too, but then reads a variable that its other goroutine may be writing
// (common.Retry in retry.go: the response, an interface). So it gets a context that does not end, and only the HTTP request
// gets ours, see dispatcher. Signing, which may ask for a token, goes on in the background; its request is then not sent.
func await(ctx context.Context, send func(context.Context) outcome) outcome {
	outcomes := make(chan outcome, 1)
	go func() { outcomes <- send(withoutEnd(ctx)) }()
	select {
	case r := <-outcomes:
		return r
	case <-ctx.Done():
	}
	select {
	case r := <-outcomes:
		return r
	default:
		return outcome{err: ctx.Err()}
	}
}

// requestContext is the key under which a context that does not end holds the one that it was made from.
type requestContext struct{}

func withoutEnd(ctx context.Context) context.Context {
	return context.WithValue(context.WithoutCancel(ctx), requestContext{}, ctx)
}

// dispatcher sends the SDK's requests, each under the context that the call really has.
type dispatcher struct{ client *http.Client }

// Do implements common.HTTPRequestDispatcher.
func (d dispatcher) Do(request *http.Request) (*http.Response, error) {
	if ctx, ok := request.Context().Value(requestContext{}).(context.Context); ok {
		if err := ctx.Err(); err != nil {
			return nil, err // it took too long to sign
		}
		request = request.WithContext(ctx) //nolint:contextcheck // it is inherited, by way of a value
	}
	return d.client.Do(request)
}

// remember notes that this process created the resource: reads of it may still answer 404 for a while.
func (c *Client) remember(ocid string) { c.recent.add(ocid) }

// forget ends that for a resource whose deletion was accepted: a 404 is what its readers wait for then.
func (c *Client) forget(ocid string) { c.recent.remove(ocid) }

// gaveUp is the error of an operation whose context ended, before the first request or after an answer.
func gaveUp(o op, last *Error, attempts int, cause error) *Error {
	if last == nil {
		return &Error{Service: o.service, Operation: o.name, Attempts: attempts, cause: cause}
	}
	last.cause = joinCause(last.cause, cause)
	return last
}

func joinCause(first, second error) error {
	if first == nil {
		return second
	}
	return fmt.Errorf("%w: %w", second, first)
}

// sleep waits for d or for the end of ctx.
func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
