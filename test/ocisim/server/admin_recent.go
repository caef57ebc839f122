// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/oracle/oci-cloud-controller-manager/test/ocisim"
)

// scanChunk is the number of calls that are copied from the log at a time while it is searched.
const scanChunk = 1000

// RecentCalls is the answer of GET /calls/recent.
type RecentCalls struct {
	Calls []ocisim.Call `json:"calls"` // newest first
	// More says that older calls match as well: behind the last one of Calls, and behind since if that was given.
	More bool `json:"more"`
	// Since is when the call of the number since was made, zero when the log does not have it any more: after a reset
	// the numbers start again, and only the time tells.
	Since   time.Time `json:"since,omitzero"`
	LastSeq uint64    `json:"lastSeq"` // newest call of the log, whether it matches or not
	Last    time.Time `json:"last"`    // when that was made
	// Mentioned names the principals and resources of Calls, as far as the region or the server knows them.
	Mentioned map[string]ocisim.Mention `json:"mentioned"`
}

// recentFilter is what GET /calls/recent takes. Unlike the filter of GET /calls it is made for people: parts of names
// match, and the newest calls come first.
type recentFilter struct {
	before, since          uint64
	limit                  int
	operation, who, text   string
	lowStatus, highStatus  int
	dropped, struck, wrote bool
}

var errStatus = errors.New(`want a status, a class such as "4xx", "errors" or "dropped"`)

func parseRecentFilter(q url.Values) (recentFilter, error) {
	f := recentFilter{
		operation: strings.ToLower(q.Get("operation")),
		who:       strings.ToLower(q.Get("principal")),
		text:      strings.ToLower(q.Get("text")),
		wrote:     q.Get("writes") == "true",
		struck:    q.Get("faults") == "true",
	}
	var errs []error
	number := func(name string, fallback int) int {
		n, err := parseCount(q, name, fallback)
		errs = append(errs, err)
		return n
	}
	f.before, f.since = uint64(number("before", 0)), uint64(number("since", 0))
	f.limit = min(max(number("limit", 200), 1), scanChunk)
	errs = append(errs, f.parseStatus(q.Get("status")))
	return f, errors.Join(errs...)
}

func (f *recentFilter) parseStatus(text string) error {
	switch {
	case text == "":
	case text == "errors":
		f.lowStatus, f.highStatus = 400, 599
	case text == "dropped":
		f.dropped = true
	case len(text) == 3 && strings.HasSuffix(text, "xx") && text[0] >= '1' && text[0] <= '5':
		f.lowStatus = 100 * int(text[0]-'0')
		f.highStatus = f.lowStatus + 99
	default:
		n, err := strconv.Atoi(text)
		if err != nil || n < 100 || n > 599 {
			return fmt.Errorf("status: %w, not %q", errStatus, text)
		}
		f.lowStatus, f.highStatus = n, n
	}
	return nil
}

func (f recentFilter) matches(c ocisim.Call) bool {
	switch {
	case f.wrote && !c.Write,
		f.struck && c.Fault == "",
		f.dropped && c.Status != 0,
		f.lowStatus > 0 && (c.Status < f.lowStatus || c.Status > f.highStatus),
		f.operation != "" && !strings.Contains(strings.ToLower(c.Name()), f.operation),
		f.who != "" && !strings.Contains(strings.ToLower(c.Principal), f.who):
		return false
	}
	return f.text == "" || strings.Contains(strings.ToLower(callText(c)), f.text)
}

// callText is where free text is looked for.
func callText(c ocisim.Call) string {
	return strings.Join([]string{
		c.Name(), c.Principal, c.Method, c.Path, c.Query, c.Resource, c.Created, c.WorkRequest, c.RetryToken, c.IfMatch,
		c.Code, c.RequestID, c.Fault, c.Reason, strconv.Itoa(c.Status),
	}, "\n")
}

// recentCalls answers GET /calls/recent.
func (a *admin) recentCalls(w http.ResponseWriter, r *http.Request) {
	f, err := parseRecentFilter(r.URL.Query())
	if err != nil {
		adminError(w, http.StatusBadRequest, err)
		return
	}
	found := f.search(a.server.region)
	found.Mentioned = a.mentioned(found.Calls)
	writeJSON(w, http.StatusOK, found)
}

// mentioned looks up who called, and what about.
func (a *admin) mentioned(calls []ocisim.Call) map[string]ocisim.Mention {
	var ids []string
	for _, c := range calls {
		ids = append(ids, c.Principal, c.Resource, c.Created)
	}
	names := a.server.region.Mentions(ids)
	for _, u := range a.server.Users() {
		names[u.OCID] = ocisim.Mention{Kind: "user", Name: u.Name}
	}
	return names
}

// recentEdge answers GET /edge/recent: the newest calls that the server answered itself, newest first.
func (a *admin) recentEdge(w http.ResponseWriter, r *http.Request) {
	_, limit, err := parseWindow(r.URL.Query())
	if err != nil {
		adminError(w, http.StatusBadRequest, err)
		return
	}
	list := a.server.EdgeCalls()
	list = list[max(len(list)-limit, 0):]
	slices.Reverse(list)
	writeJSON(w, http.StatusOK, list)
}

// search reads the log backwards until it has enough.
func (f recentFilter) search(region *ocisim.Region) RecentCalls {
	found := RecentCalls{Calls: []ocisim.Call{}}
	if last := region.CallsBefore(0, 1); len(last) == 1 {
		found.LastSeq, found.Last = last[0].Seq, last[0].Time
	}
	if f.since > 0 {
		if c := region.CallsBefore(f.since+1, 1); len(c) == 1 && c[0].Seq == f.since {
			found.Since = c[0].Time
		}
	}
	before := f.before
	for {
		chunk := region.CallsBefore(before, scanChunk)
		for _, c := range chunk {
			if c.Seq <= f.since {
				return found
			}
			if !f.matches(c) {
				continue
			}
			if len(found.Calls) == f.limit {
				found.More = true
				return found
			}
			found.Calls = append(found.Calls, c)
		}
		if len(chunk) == 0 {
			return found
		}
		if before = chunk[len(chunk)-1].Seq; before == 1 {
			return found
		}
	}
}
