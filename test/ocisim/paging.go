// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package ocisim

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// listing is a list operation's choice of resources.
type listing struct {
	kind *kindInfo
	key  string // compartment, parent, or "" for all of the kind
	// match narrows the list; nil takes all.
	match func(*resource) bool
	// render makes the items, for lists of summaries; nil shows the resources as they are.
	render func(*resource) any
	// items wraps the list as {"items": [...]}, as newer services do; older ones answer a bare array.
	items bool
}

// cursor is what a page token carries: the last item shown, the query, and when.
type cursor struct {
	Query  string    `json:"q"`
	Seq    uint64    `json:"s"`
	Name   string    `json:"n,omitempty"`
	Issued time.Time `json:"t"`
	Nonce  uint32    `json:"r"` // no two tokens are equal, even those after an empty page
}

// list answers one page. The cursor is the place of the last item in the order, not a count, so that resources which
// exist throughout are listed exactly once however much else comes and goes between the pages.
func (c *call) list(l listing) (*answer, error) {
	return c.page(c.store.under(l.kind, l.key), l)
}

// page is list over given resources, in order of their seq, wherever they come from.
func (c *call) page(items []*resource, l listing) (*answer, error) {
	limit, err := c.limit()
	if err != nil {
		return nil, err
	}
	from, err := c.cursor()
	if err != nil {
		return nil, err
	}
	order, err := c.order()
	if err != nil {
		return nil, err
	}
	if order.sorted() {
		items = slices.Clone(items)
		slices.SortStableFunc(items, order.compare)
	}
	start := 0
	if from != nil {
		start = order.after(items, *from)
	}
	page := make([]*resource, 0, min(limit, len(items)-start))
	var last *resource
	more := false
	for _, res := range items[start:] {
		if !c.listed(res, l) {
			continue
		}
		if len(page) == limit {
			more = true
			break
		}
		if c.miss(res, true) {
			continue
		}
		page = append(page, res)
		last = res
	}
	if more && c.chance(c.options.ShortPages) {
		page, last = c.shorten(page)
	}
	a := &answer{status: http.StatusOK, body: c.renderPage(page, l)}
	if more {
		next := cursor{Query: c.fingerprint(), Issued: c.now, Nonce: c.random.Uint32()}
		switch {
		case last != nil:
			next.Seq, next.Name = last.seq, last.name
		case from != nil:
			next.Seq, next.Name = from.Seq, from.Name
		default:
			// Nothing shown yet: the cursor before the first item.
			next.Seq, next.Name = order.origin()
		}
		a.nextPage = c.seal(next)
	}
	return a, nil
}

// shorten cuts a page at random.
func (c *call) shorten(page []*resource) ([]*resource, *resource) {
	page = page[:c.random.IntN(len(page)+1)]
	if len(page) == 0 {
		return page, nil
	}
	return page, page[len(page)-1]
}

// listed applies the filters that all lists have in common, and the list's own.
func (c *call) listed(res *resource, l listing) bool {
	for _, filter := range [...]struct{ name, value string }{
		{"compartmentId", res.compartment},
		{"availabilityDomain", res.domain},
		{"displayName", res.name},
		{"lifecycleState", res.state},
	} {
		if _, known := c.route.query[filter.name]; !known {
			continue
		}
		if want := c.query.Get(filter.name); want != "" && want != filter.value {
			return false
		}
	}
	return l.match == nil || l.match(res)
}

func (c *call) renderPage(page []*resource, l listing) []byte {
	var buf []byte
	if l.items {
		buf = append(buf, `{"items":`...)
	}
	buf = append(buf, '[')
	for i, res := range page {
		if i > 0 {
			buf = append(buf, ',')
		}
		if l.render != nil {
			buf = append(buf, c.encoder.encode(l.render(res))...)
		} else {
			buf = append(buf, c.encoded(res)...)
		}
	}
	buf = append(buf, ']')
	if l.items {
		buf = append(buf, '}')
	}
	return buf
}

func (c *call) limit() (int, error) {
	limit := c.options.PageSize
	text := c.query.Get("limit")
	if text == "" {
		return limit, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		return 0, errInvalid("limit must be a number from 1")
	}
	return min(n, limit), nil
}

// order of a list: by creation unless the query asks for another.
type order struct {
	byName bool
	down   bool
}

func (c *call) order() (order, error) {
	var o order
	switch by := strings.ToUpper(c.query.Get("sortBy")); by {
	case "":
	case "TIMECREATED", "TIME_CREATED", "TIMEACCEPTED":
		o.down = true // the documented default of this key
	case "DISPLAYNAME", "DISPLAY_NAME", "NAME", "PATH":
		o.byName = true
	default:
		return o, errInvalid("sortBy has an unknown value")
	}
	switch direction := strings.ToUpper(c.query.Get("sortOrder")); direction {
	case "":
	case "ASC":
		o.down = false
	case "DESC":
		o.down = true
	default:
		return o, errInvalid("sortOrder must be ASC or DESC")
	}
	return o, nil
}

func (o order) sorted() bool { return o.byName || o.down }

func (o order) compare(a, b *resource) int {
	return o.place(a.name, a.seq, cursor{Name: b.name, Seq: b.seq})
}

// place compares a resource with a cursor in this order.
func (o order) place(name string, seq uint64, c cursor) int {
	result := 0
	if o.byName {
		result = strings.Compare(name, c.Name)
	}
	if result == 0 {
		switch {
		case seq < c.Seq:
			result = -1
		case seq > c.Seq:
			result = 1
		}
	}
	if o.down {
		return -result
	}
	return result
}

// after returns the index of the first item behind the cursor.
func (o order) after(items []*resource, c cursor) int {
	i, _ := slices.BinarySearchFunc(items, c, func(res *resource, c cursor) int {
		if o.place(res.name, res.seq, c) <= 0 {
			return -1
		}
		return 1
	})
	return i
}

// origin is the cursor that lies before everything.
func (o order) origin() (seq uint64, name string) {
	if o.down {
		return ^uint64(0), "\U0010ffff"
	}
	return 0, ""
}

// fingerprint identifies the query that a page token belongs to: everything but page and limit.
func (c *call) fingerprint() string {
	var b strings.Builder
	b.WriteString(c.operation.FullName())
	for _, p := range c.params {
		b.WriteString("/" + p)
	}
	names := make([]string, 0, len(c.query))
	for name := range c.query {
		if name != "page" && name != "limit" {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	for _, name := range names {
		b.WriteString("&" + name + "=" + strings.Join(c.query[name], ","))
	}
	sum := sha256.Sum256([]byte(b.String()))
	return base64.RawURLEncoding.EncodeToString(sum[:9])
}

// seal makes an opaque token. It is bound to this region, so that a made-up one is recognised.
func (c *call) seal(next cursor) string {
	raw, err := json.Marshal(next)
	if err != nil {
		panic("ocisim: " + err.Error())
	}
	return base64.RawURLEncoding.EncodeToString(append(c.mac(raw), raw...))
}

func (c *call) mac(raw []byte) []byte {
	h := hmac.New(sha256.New, c.secret[:])
	h.Write(raw)
	return h.Sum(nil)[:8]
}

// cursor reads the page token of the query; nil without one.
func (c *call) cursor() (*cursor, error) {
	text := c.query.Get("page")
	if text == "" {
		return nil, nil
	}
	malformed := &APIError{
		Status: http.StatusBadRequest, Code: "PaginationTokenFormat",
		Message: "The page token is not valid for this request.",
	}
	raw, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil || len(raw) < 8 || !hmac.Equal(raw[:8], c.mac(raw[8:])) {
		return nil, malformed
	}
	var from cursor
	if json.Unmarshal(raw[8:], &from) != nil || from.Query != c.fingerprint() {
		return nil, malformed
	}
	if c.now.Sub(from.Issued) > c.behaviour.PageTokenLife {
		return nil, &APIError{
			Status: http.StatusBadRequest, Code: "PaginationTokenExpired",
			Message: "The page token has expired.",
		}
	}
	return &from, nil
}
