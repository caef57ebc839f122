// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/oracle/oci-cloud-controller-manager/test/ocisim"
)

// maxWait bounds the time that a request may wait for something to happen.
const maxWait = 10 * time.Minute

// CallPage is the answer of GET /calls.
type CallPage struct {
	Calls []ocisim.Call `json:"calls"`
	Next  uint64        `json:"next"` // for since, to read on
}

// callFilter says which calls a reader wants. Empty fields match everything.
type callFilter struct {
	since              uint64
	operations         []string
	principal, service string
	status             int
	writes             bool
	limit              int
	wait               time.Duration
	follow             bool
	resource           string
}

func parseCallFilter(q url.Values) (callFilter, error) {
	f := callFilter{
		operations: q["operation"],
		principal:  q.Get("principal"),
		service:    q.Get("service"),
		writes:     q.Get("writes") == "true",
		follow:     q.Get("follow") == "true",
		resource:   q.Get("resource"),
	}
	var errs []error
	number := func(name string, into *int) {
		if text := q.Get(name); text != "" {
			n, err := strconv.Atoi(text)
			if err != nil {
				errs = append(errs, fmt.Errorf("%s: %w", name, err))
			}
			*into = n
		}
	}
	number("status", &f.status)
	number("limit", &f.limit)
	if text := q.Get("since"); text != "" {
		n, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			errs = append(errs, fmt.Errorf("since: %w", err))
		}
		f.since = n
	}
	var err error
	if f.wait, err = parseWait(q); err != nil {
		errs = append(errs, err)
	}
	return f, errors.Join(errs...)
}

// parseWait reads how long a request may wait.
func parseWait(q url.Values) (time.Duration, error) {
	text := q.Get("wait")
	if text == "" {
		return 0, nil
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		return 0, fmt.Errorf("wait: %w", err)
	}
	return min(d, maxWait), nil
}

func (f callFilter) matches(c ocisim.Call) bool {
	switch {
	case c.Seq <= f.since,
		f.principal != "" && c.Principal != f.principal,
		f.service != "" && c.Service != f.service,
		f.status != 0 && c.Status != f.status,
		f.writes && !c.Write,
		f.resource != "" && c.Resource != f.resource && c.Created != f.resource:
		return false
	}
	return matchesOperation(f.operations, c)
}

// page selects from the log. Next is where to read on: behind the last call taken, or behind the whole log.
func (f callFilter) page(log []ocisim.Call) CallPage {
	page := CallPage{Calls: []ocisim.Call{}, Next: f.since}
	for _, c := range log {
		if f.matches(c) {
			page.Calls = append(page.Calls, c)
		}
		page.Next = max(page.Next, c.Seq)
		if f.limit > 0 && len(page.Calls) == f.limit {
			break
		}
	}
	return page
}

// calls answers GET /calls: at once, after the next matching call (wait), or as an endless stream (follow).
func (a *admin) calls(w http.ResponseWriter, r *http.Request) {
	filter, err := parseCallFilter(r.URL.Query())
	if err != nil {
		adminError(w, http.StatusBadRequest, err)
		return
	}
	if filter.follow {
		a.stream(w, r, filter)
		return
	}
	deadline := time.NewTimer(filter.wait)
	defer deadline.Stop()
	for {
		changed := a.changes.wait()
		page := filter.page(a.server.region.Calls())
		if len(page.Calls) > 0 || filter.wait == 0 {
			writeJSON(w, http.StatusOK, page)
			return
		}
		select {
		case <-changed:
		case <-deadline.C:
			writeJSON(w, http.StatusOK, page)
			return
		case <-r.Context().Done():
			return
		}
	}
}

// stream writes one JSON object a line, until the reader leaves.
func (a *admin) stream(w http.ResponseWriter, r *http.Request, filter callFilter) {
	w.Header().Set("Content-Type", "application/x-ndjson")
	out, flush := json.NewEncoder(w), http.NewResponseController(w)
	_ = flush.Flush() // the reader shall know that it is connected
	for {
		changed := a.changes.wait()
		page := filter.page(a.server.region.Calls())
		for _, c := range page.Calls {
			if out.Encode(c) != nil {
				return
			}
		}
		if flush.Flush() != nil {
			return
		}
		filter.since = page.Next
		select {
		case <-changed:
		case <-r.Context().Done():
			return
		}
	}
}

func (a *admin) counters(w http.ResponseWriter, _ *http.Request) {
	writeJSON(w, http.StatusOK, a.server.region.Counts())
}

func (a *admin) resetCounters(w http.ResponseWriter, _ *http.Request) {
	a.server.region.ResetCalls()
	a.server.edge.reset()
	w.WriteHeader(http.StatusNoContent)
}

func (a *admin) stopAfter(w http.ResponseWriter, r *http.Request) {
	var rule StopRule
	if !decode(w, r, &rule) {
		return
	}
	stop, err := a.server.StopAfter(rule)
	if err != nil {
		adminError(w, http.StatusBadRequest, err)
		return
	}
	writeJSON(w, http.StatusCreated, stop.Status())
}

func (a *admin) listStops(w http.ResponseWriter, _ *http.Request) {
	list := []StopStatus{}
	for _, s := range a.server.hooks.list() {
		list = append(list, s.Status())
	}
	writeJSON(w, http.StatusOK, list)
}

var errNoStop = errors.New("no such hold; it may have been released")

func (a *admin) getStop(w http.ResponseWriter, r *http.Request) {
	wait, err := parseWait(r.URL.Query())
	if err != nil {
		adminError(w, http.StatusBadRequest, err)
		return
	}
	stop, ok := a.server.hooks.find(r.PathValue("id"))
	if !ok {
		adminError(w, http.StatusNotFound, errNoStop)
		return
	}
	if wait > 0 {
		timer := time.NewTimer(wait)
		defer timer.Stop()
		select {
		case <-stop.holding:
		case <-timer.C:
		case <-r.Context().Done():
			return
		}
	}
	writeJSON(w, http.StatusOK, stop.Status())
}

func (a *admin) endStop(w http.ResponseWriter, r *http.Request) {
	stop, ok := a.server.hooks.find(r.PathValue("id"))
	if !ok {
		adminError(w, http.StatusNotFound, errNoStop)
		return
	}
	if r.URL.Query().Get("discard") == "true" {
		stop.Discard()
	} else {
		stop.Release()
	}
	writeJSON(w, http.StatusOK, stop.Status())
}
