// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package ocisim

import (
	"net/http"
	"slices"
	"strings"
)

// sortKeys are what a list can be sorted by, by the value of sortBy in capitals; the key "" is the default, and what the
// value NAME or TIMESTAMP means where it has no entry.
type sortKeys[T any] map[string]func(T) string

// pageOf answers one page of a list of values that are not resources of the store, and that are the same from page to
// page. items wraps it as {"items": [...]}.
func pageOf[T any](c *call, list []T, keys sortKeys[T], items bool) (*answer, error) {
	limit, err := c.limit()
	if err != nil {
		return nil, err
	}
	from, err := c.cursor()
	if err != nil {
		return nil, err
	}
	by := strings.ToUpper(c.query.Get("sortBy"))
	if keys[by] == nil && (by == "NAME" || by == "TIMESTAMP") {
		by = ""
	}
	key := keys[by]
	if key == nil {
		return nil, errInvalid("sortBy has an unknown value")
	}
	direction := strings.ToUpper(c.query.Get("sortOrder"))
	if direction != "" && direction != "ASC" && direction != "DESC" {
		return nil, errInvalid("sortOrder must be ASC or DESC")
	}
	slices.SortStableFunc(list, func(a, b T) int {
		if direction == "DESC" {
			a, b = b, a
		}
		return strings.Compare(key(a), key(b))
	})
	start := 0
	if from != nil {
		start = int(min(from.Seq, uint64(len(list))))
	}
	end := min(start+limit, len(list))
	page := append([]T{}, list[start:end]...) // never null
	a := c.send(http.StatusOK, page)
	if items {
		a = c.send(http.StatusOK, map[string][]T{"items": page})
	}
	if end < len(list) {
		a.nextPage = c.seal(cursor{Query: c.fingerprint(), Seq: uint64(end), Issued: c.now, Nonce: c.random.Uint32()})
	}
	return a, nil
}
