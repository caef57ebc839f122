// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package ocisim

import (
	"errors"
	"net/http"
	"strconv"
	"time"
)

// answer is what a handler returns. It is not changed afterwards, because a retry token may give it again.
type answer struct {
	status      int
	body        []byte
	etag        string
	workRequest string
	nextPage    string
	retryAfter  time.Duration // on the answers of work requests
	location    string        // path of a new resource
}

// show answers 200 with a resource and its etag.
func (c *call) show(res *resource) *answer {
	return &answer{status: http.StatusOK, body: c.encoded(res), etag: res.etag}
}

// created is show for a new resource: it records the resource with the call and the retry token, and hides it from
// the first reads (Options.EventualReads).
func (c *call) created(res *resource) *answer {
	c.markCreated(res)
	return c.show(res)
}

// markCreated is for operations whose answer does not carry the resource that they created.
func (c *call) markCreated(res *resource) {
	c.record.Created = res.id
	if res.kind.eventual {
		c.hide(res)
	}
	c.tokenLive = res.alive
}

// alive says whether a resource is there and not on its way out.
func (res *resource) alive() bool { return !res.gone && !terminal(res.state) }

// terminal says whether a lifecycle state has no way back to life.
func terminal(state string) bool {
	switch state {
	case "TERMINATING", "TERMINATED", "DELETING", "DELETED", "DETACHING", "DETACHED":
		return true
	}
	return false
}

// send answers with a value that is not a stored resource.
func (c *call) send(status int, v any) *answer {
	return &answer{status: status, body: c.encoder.encode(v)}
}

// none answers without a body.
func none(status int) *answer { return &answer{status: status} }

// accepted answers with a work request and without a body.
func accepted(status int, work *workRequest) *answer {
	return &answer{status: status, workRequest: work.id}
}

// encoded renders a resource, from the cache unless fields are dropped at random.
func (c *call) encoded(res *resource) []byte {
	if p := c.options.DropOptional; p > 0 {
		return c.encoder.encodeDropping(res.rendered(), res.kind.keep, func() bool { return c.chance(p) })
	}
	return c.representation(res)
}

// representation is a resource as the API shows it, with all its fields.
func (cl *cloud) representation(res *resource) []byte {
	if res.json == nil {
		res.json = cl.encoder.encode(res.rendered())
	}
	return res.json
}

func (res *resource) rendered() any {
	if res.kind.render != nil {
		return res.kind.render(res.value)
	}
	return res.value
}

// outcome turns the result of a call into status, headers and body.
func (c *call) outcome(a *answer, err error) *outcome {
	out := &outcome{header: http.Header{}}
	out.header.Set("Opc-Request-Id", c.requestID(c.header.Get("Opc-Request-Id")))
	// Clients compare this header with their own clock, which Advance does not move.
	out.header.Set("Date", time.Now().UTC().Format(http.TimeFormat))
	if err != nil {
		refusal := asRefusal(err)
		out.status = refusal.Status
		out.body = refusal.Body()
		out.header.Set("Content-Type", "application/json")
		if refusal.RetryAfter > 0 {
			out.header.Set("Retry-After", seconds(refusal.RetryAfter))
		}
		return out
	}
	out.status = a.status
	out.body = a.body
	if len(a.body) > 0 {
		out.header.Set("Content-Type", "application/json")
	}
	setIf(out.header, "Etag", a.etag)
	setIf(out.header, "Opc-Work-Request-Id", a.workRequest)
	setIf(out.header, "Opc-Next-Page", a.nextPage)
	setIf(out.header, "Location", a.location)
	setIf(out.header, "Content-Location", a.location)
	if a.retryAfter > 0 {
		out.header.Set("Retry-After", seconds(a.retryAfter))
	}
	return out
}

// asRefusal makes an answer of any error. An error that is not a refusal is a defect of the simulator, and looks
// like one of the service.
func asRefusal(err error) *APIError {
	var refusal *APIError
	if errors.As(err, &refusal) {
		return refusal
	}
	return &APIError{Status: http.StatusInternalServerError, Code: "InternalServerError", Message: err.Error()}
}

func setIf(h http.Header, name, value string) {
	if value != "" {
		h.Set(name, value)
	}
}

func seconds(d time.Duration) string {
	return strconv.FormatFloat(d.Seconds(), 'f', -1, 64)
}
