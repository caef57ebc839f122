// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package oci

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// pageOf reads the page token of a request; the first page is 0. Tokens are "pN".
func pageOf(t *testing.T, r sent) int {
	t.Helper()
	query, err := url.ParseQuery(r.Query)
	if err != nil {
		t.Fatal(err)
	}
	token := query.Get("page")
	if token == "" {
		return 0
	}
	n, err := strconv.Atoi(strings.TrimPrefix(token, "p"))
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func next(n int) []string { return []string{"opc-next-page", fmt.Sprintf("p%d", n)} }

// lists are all operations that read page by page; each returns how many entries it found.
var lists = []struct {
	name       string
	collection bool
	list       func(ctx context.Context, c *Client) (int, error)
}{
	{"instances", false, func(ctx context.Context, c *Client) (int, error) {
		l, err := c.Compute().ListInstances(ctx, "c", "n")
		return len(l), err
	}},
	{"VNIC attachments", false, func(ctx context.Context, c *Client) (int, error) {
		l, err := c.Compute().ListVNICAttachments(ctx, "c", "")
		return len(l), err
	}},
	{"subnets", false, func(ctx context.Context, c *Client) (int, error) {
		l, err := c.Network().ListSubnets(ctx, "c", "")
		return len(l), err
	}},
	{"public IPs", false, func(ctx context.Context, c *Client) (int, error) {
		l, err := c.Network().ListPublicIPs(ctx, "c", "REGION", "")
		return len(l), err
	}},
	{"private IPs", false, func(ctx context.Context, c *Client) (int, error) {
		l, err := c.Network().ListPrivateIPs(ctx, "s", "")
		return len(l), err
	}},
	{"IPv6 addresses", false, func(ctx context.Context, c *Client) (int, error) {
		l, err := c.Network().ListIPv6s(ctx, "s", "")
		return len(l), err
	}},
	{"load balancers", false, func(ctx context.Context, c *Client) (int, error) {
		l, err := c.LoadBalancers().List(ctx, "c", "")
		return len(l), err
	}},
	{"work requests of a load balancer", false, func(ctx context.Context, c *Client) (int, error) {
		l, err := c.LoadBalancers().ListWorkRequests(ctx, "b", "c")
		return len(l), err
	}},
	{"network load balancers", true, func(ctx context.Context, c *Client) (int, error) {
		l, err := c.NetworkLoadBalancers().List(ctx, "c", "")
		return len(l), err
	}},
	{"work requests of a network load balancer", true, func(ctx context.Context, c *Client) (int, error) {
		l, err := c.NetworkLoadBalancers().ListWorkRequests(ctx, "b", "c")
		return len(l), err
	}},
}

// entries is the body of a page with n entries.
func entries(n int, collection bool) any {
	items := make([]any, n)
	for i := range items {
		items[i] = map[string]any{"id": "x", "resources": []any{map[string]any{"identifier": "b"}}}
	}
	if collection {
		return map[string]any{"items": items}
	}
	return items
}

func TestListsReadAllPages(t *testing.T) {
	for _, l := range lists {
		t.Run(l.name, func(t *testing.T) {
			sizes := []int{2, 0, 3, 1} // a page may be empty while others follow
			c, s := serve(t, func(r sent) reply {
				n := pageOf(t, r)
				out := reply{status: 200, body: entries(sizes[n], l.collection)}
				if n+1 < len(sizes) {
					out.headers = next(n + 1)
				}
				return out
			})
			got, err := l.list(t.Context(), c)
			if err != nil || got != 6 {
				t.Errorf("got %d entries, error %v; want 6", got, err)
			}
			for _, r := range s.received() {
				if query, _ := url.ParseQuery(r.Query); query.Get("limit") != "1000" {
					t.Errorf("limit is %q, want 1000: %s", query.Get("limit"), r.Query)
				}
			}
		})
	}
}

// A list that breaks off is an error, never a part of the list.
func TestListsAreCompleteOrFail(t *testing.T) {
	for _, l := range lists {
		t.Run(l.name, func(t *testing.T) {
			c, _ := serve(t, func(r sent) reply {
				if pageOf(t, r) == 0 {
					return reply{status: 200, body: entries(2, l.collection), headers: next(1)}
				}
				return reply{status: 404, body: map[string]any{"code": "NotAuthorizedOrNotFound", "message": "no"}}
			})
			got, err := l.list(t.Context(), c)
			if !errors.Is(err, ErrNotFound) || got != 0 {
				t.Errorf("got %d entries, error %v; want none and ErrNotFound", got, err)
			}
		})
	}
}

func TestListsEnd(t *testing.T) {
	tests := []struct {
		name  string
		page  func(n int) reply // n-th page asked for, from 0
		pages int
	}{
		{
			name:  "the same token again",
			page:  func(int) reply { return reply{status: 200, body: entries(1, false), headers: next(7)} },
			pages: 2,
		},
		{
			name: "a circle of tokens",
			page: func(n int) reply {
				return reply{status: 200, body: entries(1, false), headers: next(1 + n%3)}
			},
			pages: 4,
		},
		{
			name:  "empty pages without end",
			page:  func(n int) reply { return reply{status: 200, body: entries(0, false), headers: next(n + 1)} },
			pages: maxEmptyPages + 1,
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			n := -1
			c, s := serve(t, func(sent) reply { n++; return test.page(n) })
			got, err := c.Compute().ListInstances(t.Context(), "c", "")
			if !errors.Is(err, ErrIncompleteList) || got != nil {
				t.Errorf("got %v, error %v; want ErrIncompleteList", got, err)
			}
			if asked := len(s.received()); asked != test.pages {
				t.Errorf("asked for %d pages, want %d", asked, test.pages)
			}
		})
	}
}

// A page that fails for a moment is asked for again; the pages before it are not.
func TestListRepeatsOnlyTheFailedPage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		failed := false
		c, s := serve(t, func(r sent) reply {
			n := pageOf(t, r)
			if n == 1 && !failed {
				failed = true
				return reply{status: 503, body: map[string]any{"code": "ServiceUnavailable", "message": "later"}}
			}
			out := reply{status: 200, body: entries(1, false)}
			if n < 2 {
				out.headers = next(n + 1)
			}
			return out
		})
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		got, err := c.Compute().ListInstances(ctx, "c", "")
		if err != nil || len(got) != 3 {
			t.Fatalf("got %d entries, error %v; want 3", len(got), err)
		}
		var asked []int
		for _, r := range s.received() {
			asked = append(asked, pageOf(t, r))
		}
		if diff := cmp.Diff([]int{0, 1, 1, 2}, asked); diff != "" {
			t.Errorf("pages asked for (-want +got):\n%s", diff)
		}
	})
}

// The identity API announces a second page but has no way to ask for it.
func TestAvailabilityDomainsAreCompleteOrFail(t *testing.T) {
	ads := []any{map[string]any{"name": "Uocm:PHX-AD-1"}, map[string]any{"name": "Uocm:PHX-AD-2"}, map[string]any{}}
	c, _ := serve(t, func(sent) reply { return reply{status: 200, body: ads} })
	got, err := c.Identity().ListAvailabilityDomains(t.Context(), "c")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"Uocm:PHX-AD-1", "Uocm:PHX-AD-2"}, got); diff != "" {
		t.Errorf("names (-want +got):\n%s", diff)
	}
	c, _ = serve(t, func(sent) reply { return reply{status: 200, body: ads, headers: next(1)} })
	if got, err := c.Identity().ListAvailabilityDomains(t.Context(), "c"); !errors.Is(err, ErrIncompleteList) {
		t.Errorf("got %v, error %v; want ErrIncompleteList", got, err)
	}
}
