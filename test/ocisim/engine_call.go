// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package ocisim

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"time"
)

// request is a call as it arrived, from a connection or from the in-process transport.
type request struct {
	SignedRequest

	path  string // escaped
	query url.Values
}

// call is one call while it is handled. Handlers run with the region's lock held and read what they need from it.
type call struct {
	*cloud

	operation *Operation
	route     *route
	principal Principal
	params    []string
	query     url.Values
	header    http.Header
	host      string // that the call was made to
	body      []byte
	target    *resource // resolved from the first path parameter, nil where the operation has no Target

	record    *Call
	failure   *workFailure // a fault that makes the work request of this call fail
	tokenKey  tokenKey
	tokenLive func() bool // whether what a repeated retry token would answer for still exists
}

// param returns a path parameter by name.
func (c *call) param(name string) string {
	for i, n := range c.route.params {
		if n == name {
			return c.params[i]
		}
	}
	panic("ocisim: " + c.operation.FullName() + " has no path parameter " + name)
}

// outcome is what leaves the engine: an answer, or a connection that breaks.
type outcome struct {
	status int
	header http.Header
	body   []byte
	drop   bool // no answer at all
	half   bool // the connection breaks in the middle of the body
}

// serve handles a call from start to end. It holds the region's lock only while the call is decided and applied;
// signatures are verified before, delays and observers come after.
func (r *Region) serve(ctx context.Context, req *request) (*outcome, error) {
	began := r.Now()
	record := &Call{
		Time: began, Method: req.Method, Path: req.path, Query: req.query.Encode(),
		RetryToken: req.Header.Get("Opc-Retry-Token"), IfMatch: req.Header.Get("If-Match"),
	}
	c := &call{query: req.query, header: req.Header, host: req.Host, body: req.Body, record: record}
	principal, authErr := r.identify(req.SignedRequest)
	c.principal = principal
	record.Principal = principal.ID

	strike, err := r.admit(c, req, authErr)
	if err == nil {
		if waitErr := sleep(ctx, strike.before); waitErr != nil {
			r.abandon(c, began, strike)
			return nil, waitErr
		}
		if strike.dropBefore {
			r.abandon(c, began, strike)
			return &outcome{drop: true}, nil
		}
		err = strike.errBefore
		for _, act := range strike.actBefore {
			act(*record)
		}
	}
	out, observers := r.apply(c, began, err, strike)
	for _, act := range strike.actAfter {
		act(*record)
	}
	for _, observe := range observers {
		observe(*record)
	}
	if waitErr := sleep(ctx, strike.after); waitErr != nil {
		return nil, waitErr
	}
	return out, nil
}

// admit decides whether the call reaches its handler at all: route, authentication, rate, faults.
func (r *Region) admit(c *call, req *request, authErr error) (strike, error) {
	entry, params, routeErr := r.routes.match(req.Method, req.path)
	cl := r.lock()
	defer r.mu.Unlock()
	c.cloud = cl
	if routeErr == nil {
		c.route, c.params, c.operation = entry, params, entry.operation
		c.record.Service, c.record.Operation = c.operation.Service, c.operation.Name
		c.record.Write = c.operation.write()
		if len(params) > 0 {
			c.record.Resource = params[0]
		}
	}
	switch {
	case authErr != nil:
		c.record.Reason = authErr.Error()
		return strike{}, errUnauthenticated()
	case routeErr != nil:
		return strike{}, routeErr
	}
	if err := cl.takeToken(c); err != nil {
		return strike{}, err
	}
	return cl.strikes(c), nil
}

// apply runs the call and records it. It returns the answer and the observers to tell.
func (r *Region) apply(c *call, began time.Time, refused error, s strike) (*outcome, []func(Call)) {
	cl := r.lock()
	defer r.mu.Unlock()
	c.cloud = cl
	var a *answer
	err := refused
	if err == nil {
		c.failure = s.work
		a, err = c.execute()
	}
	if err == nil && s.errAfter != nil {
		a, err = nil, s.errAfter
	}
	out := c.outcome(a, err)
	out.drop, out.half = s.dropAfter, s.half
	c.finish(began, r.Now(), out, err, s)
	return out, r.observers.list()
}

// abandon records a call whose connection broke before anything was applied.
func (r *Region) abandon(c *call, began time.Time, s strike) {
	c.cloud = r.lock()
	c.finish(began, r.Now(), nil, nil, s)
	observers := r.observers.list()
	r.mu.Unlock()
	for _, observe := range observers {
		observe(*c.record)
	}
}

func (c *call) finish(began, ended time.Time, out *outcome, err error, s strike) {
	c.record.Duration = ended.Sub(began)
	if s.note != "" {
		c.record.Fault = s.note
	}
	if out != nil {
		c.record.Status = out.status
		c.record.RequestID = out.header.Get("Opc-Request-Id")
		c.record.WorkRequest = out.header.Get("Opc-Work-Request-Id")
	}
	var refusal *APIError
	if errors.As(err, &refusal) {
		c.record.Code = refusal.Code
	}
	c.log.add(c.record)
}

// execute applies the rules that all operations share and then the operation's own.
func (c *call) execute() (*answer, error) {
	if err := c.checkQuery(); err != nil {
		return nil, err
	}
	if err := c.resolve(); err != nil {
		return nil, err
	}
	replay, err := c.replay()
	if err != nil || replay != nil {
		return replay, err
	}
	if err := c.checkMatch(); err != nil {
		return nil, err
	}
	settle := c.strikeWork()
	a, err := c.operation.handle(c)
	settle()
	if err != nil {
		return nil, err
	}
	c.remember(a)
	return a, nil
}

// checkQuery refuses a call without a required query parameter.
func (c *call) checkQuery() error {
	for name, required := range c.route.query {
		if required && c.query.Get(name) == "" {
			return errMissing(name)
		}
	}
	return nil
}

// resolve finds the target and the compartment that the call is about, and asks the policies. Whatever is wrong, the
// answer is the same.
func (c *call) resolve() error {
	compartment := ""
	if _, known := c.route.query["compartmentId"]; known {
		if compartment = c.query.Get("compartmentId"); compartment != "" && compartments.find(c.cloud, compartment) == nil {
			return errNotFound()
		}
	}
	if kind := c.operation.Target; kind != nil {
		res := c.store.byID[c.params[0]]
		if res == nil || res.kind != kind || (c.operation.Method == http.MethodGet && c.miss(res, false)) {
			return errNotFound()
		}
		c.target = res
		compartment = res.compartment
	}
	if c.denied(c.operation.policy(), c.operation.Verb, compartment) {
		return errNotFound()
	}
	return nil
}

// sleep waits for d or for the end of the context.
func sleep(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return ctx.Err()
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
