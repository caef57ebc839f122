// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package oci

import (
	"context"
	"errors"
	"fmt"
	"net/http"
)

// ErrIncompleteList means that a list could not be read to its end, so that nothing can be said about what is not in it.
var ErrIncompleteList = errors.New("incomplete list")

const (
	// maxPages bounds a list. With the default of 1,000 entries a page it is far above any tenancy's limits.
	maxPages = 10_000
	// maxEmptyPages bounds the pages without an entry in a row. The API may send such pages in the middle of a list
	// when a filter matches little, but it has to come to an end.
	maxEmptyPages = 100
)

// page is one page of a list.
type page[T any] struct {
	items []T
	next  *string // token of the next page; nil or empty on the last one
}

// listAll reads all pages of a list and converts the entries. Each page is an API call of its own with its own retries.
// It returns the whole list or an error, never a part.
func listAll[S, D any](ctx context.Context, c *Client, o op, convert func(S) D,
	fetch func(ctx context.Context, token *string) (page[S], *http.Response, error),
) ([]D, error) {
	var (
		out   []D
		token *string
		seen  = map[string]struct{}{}
		empty int
	)
	for n := 1; ; n++ {
		p, err := invoke(ctx, c, o, func(ctx context.Context) (page[S], *http.Response, error) {
			return fetch(ctx, token)
		})
		if err != nil {
			return nil, err
		}
		for _, item := range p.items {
			out = append(out, convert(item))
		}
		if value(p.next) == "" {
			return out, nil
		}
		if len(p.items) > 0 {
			empty = 0
		} else if empty++; empty > maxEmptyPages {
			return nil, fmt.Errorf("%s: %w: %d pages in a row without an entry", o.name, ErrIncompleteList, empty)
		}
		if n == maxPages {
			return nil, fmt.Errorf("%s: %w: no end after %d pages", o.name, ErrIncompleteList, n)
		}
		if _, again := seen[*p.next]; again {
			return nil, fmt.Errorf("%s: %w: page token of page %d came before", o.name, ErrIncompleteList, n)
		}
		seen[*p.next] = struct{}{}
		token = p.next
	}
}
