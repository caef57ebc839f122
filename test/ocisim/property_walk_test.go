// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package ocisim

import (
	"encoding/json"
	"maps"
	"strings"
	"time"

	"pgregory.net/rapid"
)

// walk is a list that somebody reads page by page while other things happen.
type walk struct {
	request outgoing
	page    string
	issued  time.Time
	must    map[string]bool // there since the first page, and visible
	may     map[string]bool // there at some time
	seen    map[string]int
}

// beginWalk starts to read a list.
func (m *machine) beginWalk(t *rapid.T) {
	if len(m.walks) > 3 {
		t.Skip("enough lists are being read")
	}
	q := m.pick(t, func(o *Operation) bool {
		return strings.HasPrefix(o.Name, "List") && strings.Contains(o.Query, "page") && o.Name != "ListWorkRequestErrors" && o.Name != "ListWorkRequestLogs"
	})
	there, ok := m.reference(t, q)
	if !ok {
		t.Skip("the list cannot be read")
	}
	w := &walk{request: *q, must: maps.Clone(there), may: there, seen: map[string]int{}}
	m.walks = append(m.walks, w)
	clear(m.moved)
	m.followWalks()
	m.turn(t, len(m.walks)-1)
}

// nextPage reads on in some list.
func (m *machine) nextPage(t *rapid.T) {
	if len(m.walks) == 0 {
		t.Skip("no list is being read")
	}
	m.turn(t, rapid.IntRange(0, len(m.walks)-1).Draw(t, "list"))
}

// turn reads one page.
func (m *machine) turn(t *rapid.T, index int) {
	w := m.walks[index]
	q := w.request
	q.query = maps.Clone(q.query)
	if w.page != "" {
		q.query.Set("page", w.page)
	}
	in := m.call(t, &q)
	if in.err != nil || in.status >= 400 {
		if in.code == "PaginationTokenExpired" && time.Since(w.issued) <= m.region.cloud.behaviour.PageTokenLife {
			t.Fatalf("a page token of %s expired", time.Since(w.issued))
		}
		if in.code == "PaginationTokenExpired" || in.code == "NotAuthorizedOrNotFound" {
			m.walks = append(m.walks[:index], m.walks[index+1:]...)
		}
		return
	}
	m.followWalks()
	for id := range itemIDs(t, in.body) {
		if w.seen[id]++; w.seen[id] > 1 && !m.moved[id] {
			t.Fatalf("%s is listed twice by %s", id, &w.request)
		}
		if !w.may[id] {
			t.Fatalf("%s is listed by %s and was never in the list", id, &w.request)
		}
	}
	if w.page = in.header.Get("Opc-Next-Page"); w.page != "" {
		w.issued = time.Now()
		return
	}
	for id := range w.must {
		if w.seen[id] == 0 {
			t.Fatalf("%s was there all the time and is not listed by %s", id, &w.request)
		}
	}
	m.coverage.transition("walk", "begin", "end")
	m.walks = append(m.walks[:index], m.walks[index+1:]...)
}

// followWalks keeps account of what is in the lists that are being read.
func (m *machine) followWalks() {
	for _, w := range m.walks {
		there, ok := m.reference(nil, &w.request)
		if !ok {
			there = map[string]bool{}
		}
		maps.Copy(w.may, there)
		for id := range w.must {
			if !there[id] || m.moved[id] || m.hiddenFrom(id, w.request.principal) {
				delete(w.must, id)
			}
		}
	}
}

func (m *machine) hiddenFrom(id, principal string) bool {
	res := m.region.cloud.store.byID[id]
	return res != nil && m.region.cloud.veiled(res, reader{principal: principal, list: m.region.cloud.behaviour.ListsLagByThemselves})
}

// reference is the list as one page, without anything that makes lists hard to read.
func (m *machine) reference(t *rapid.T, q *outgoing) (map[string]bool, bool) {
	cl := m.region.lock()
	defer m.region.mu.Unlock()
	options, denials := cl.options, cl.denials
	cl.options.PageSize, cl.options.ShortPages, cl.options.DropOptional, cl.denials = 1_000_000, 0, 0, nil
	veils := map[*resource]*veil{}
	for _, res := range cl.store.byID {
		if res.veil != nil {
			veils[res], res.veil = res.veil, nil
		}
	}
	defer func() {
		cl.options, cl.denials = options, denials
		for res, v := range veils {
			res.veil = v
		}
	}()
	entry, _, err := m.region.routes.match(q.op.Method, q.op.Path)
	if err != nil {
		return nil, false
	}
	query := maps.Clone(q.query)
	query.Del("limit")
	c := &call{cloud: cl, operation: q.op, route: entry, params: q.params, query: query, record: &Call{}, principal: Principal{ID: q.principal}}
	a, err := c.execute()
	if err != nil {
		return nil, false
	}
	return itemIDs(t, a.body), true
}

// itemIDs are the identifiers of the items of a page.
func itemIDs(t *rapid.T, body []byte) map[string]bool {
	var list []json.RawMessage
	if json.Unmarshal(body, &list) != nil {
		var page struct{ Items []json.RawMessage }
		if err := json.Unmarshal(body, &page); err != nil && t != nil {
			t.Fatalf("page %s: %v", body, err)
		}
		list = page.Items
	}
	ids := map[string]bool{}
	for _, raw := range list {
		var item struct{ ID, VnicID, LoadBalancerID, NetworkLoadBalancerID string }
		id := string(raw) // an item without an identifier is what it says
		if json.Unmarshal(raw, &item) == nil {
			id = orElse(orElse(item.ID, item.VnicID), orElse(item.LoadBalancerID+item.NetworkLoadBalancerID, id))
		}
		if ids[id] && t != nil {
			t.Fatalf("%q is twice on one page", id)
		}
		ids[id] = true
	}
	return ids
}
