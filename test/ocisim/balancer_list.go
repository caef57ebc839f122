// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package ocisim

import (
	"net/http"
	"slices"
	"strings"
)

// listParts answers one page of the parts of a balancer, which are no resources of their own: they are in the order of
// their names, and the cursor is a name. names is sorted.
func (c *call) listParts(names []string, item func(name string) any, wrap bool) (*answer, error) {
	limit, err := c.limit()
	if err != nil {
		return nil, err
	}
	from, err := c.cursor()
	if err != nil {
		return nil, err
	}
	o, err := c.order()
	if err != nil {
		return nil, err
	}
	direction := 1
	if o.down {
		direction = -1
		names = slices.Clone(names)
		slices.Reverse(names)
	}
	start := 0
	if from != nil {
		for start < len(names) && direction*strings.Compare(names[start], from.Name) <= 0 {
			start++
		}
	}
	end := min(start+limit, len(names))
	more := end < len(names)
	if more && c.chance(c.options.ShortPages) && end-start > 1 {
		end = start + 1 + c.random.IntN(end-start-1)
	}
	page := make([]any, 0, end-start)
	for _, name := range names[start:end] {
		page = append(page, item(name))
	}
	a := c.send(http.StatusOK, page)
	if wrap {
		a.body = append(append([]byte(`{"items":`), a.body...), '}')
	}
	if more {
		a.nextPage = c.seal(cursor{Query: c.fingerprint(), Name: names[end-1], Issued: c.now, Nonce: c.random.Uint32()})
	}
	return a, nil
}
