// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package adminclient

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/oracle/oci-cloud-controller-manager/test/ocisim"
	"github.com/oracle/oci-cloud-controller-manager/test/ocisim/server"
)

// Made is something in force that can be taken back.
type Made[T any] struct {
	ID    string `json:"id"`
	Value T      `json:"value"`
}

// made posts something and returns its identifier and the function that takes it back.
func (c *Client) made(ctx context.Context, path string, body any) (string, func(context.Context) error, error) {
	var made struct {
		ID string `json:"id"`
	}
	if err := c.call(ctx, http.MethodPost, path, nil, body, &made); err != nil {
		return "", nil, err
	}
	return made.ID, func(ctx context.Context) error {
		return c.call(ctx, http.MethodDelete, path+"/"+made.ID, nil, nil, nil)
	}, nil
}

// Reset empties the region: resources, faults, denials, grants and acts that were made here, and the call log.
func (c *Client) Reset(ctx context.Context) error {
	return c.call(ctx, http.MethodPost, "/reset", nil, nil, nil)
}

// Fault arms a fault until remove is called. A fault that cannot be is refused.
func (c *Client) Fault(ctx context.Context, f ocisim.Fault) (remove func(context.Context) error, err error) {
	_, remove, err = c.made(ctx, "/faults", f)
	return remove, err
}

// Faults lists the faults that were made through the admin API.
func (c *Client) Faults(ctx context.Context) (list []Made[ocisim.Fault], err error) {
	return list, c.call(ctx, http.MethodGet, "/faults", nil, nil, &list)
}

// ClearFaults removes the faults that were made through the admin API.
func (c *Client) ClearFaults(ctx context.Context) error {
	return c.call(ctx, http.MethodDelete, "/faults", nil, nil, nil)
}

// Deny takes permissions away until restore is called.
func (c *Client) Deny(ctx context.Context, p ocisim.Policy) (restore func(context.Context) error, err error) {
	_, restore, err = c.made(ctx, "/denials", p)
	return restore, err
}

// Denials lists the permissions that were taken away through the admin API.
func (c *Client) Denials(ctx context.Context) (list []Made[ocisim.Policy], err error) {
	return list, c.call(ctx, http.MethodGet, "/denials", nil, nil, &list)
}

// ClearDenials gives back the permissions that were taken away through the admin API.
func (c *Client) ClearDenials(ctx context.Context) error {
	return c.call(ctx, http.MethodDelete, "/denials", nil, nil, nil)
}

// Grant limits a principal to policy statements until revoke is called. One that cannot be understood is refused.
func (c *Client) Grant(ctx context.Context, g ocisim.Grant) (revoke func(context.Context) error, err error) {
	_, revoke, err = c.made(ctx, "/grants", g)
	return revoke, err
}

// Grants lists the grants that were made through the admin API.
func (c *Client) Grants(ctx context.Context) (list []Made[ocisim.Grant], err error) {
	return list, c.call(ctx, http.MethodGet, "/grants", nil, nil, &list)
}

// ClearGrants ends the grants that were made through the admin API: nobody is limited by them any more.
func (c *Client) ClearGrants(ctx context.Context) error {
	return c.call(ctx, http.MethodDelete, "/grants", nil, nil, nil)
}

// Foreign writes as somebody else, at once.
func (c *Client) Foreign(ctx context.Context, w server.ForeignWrite) error {
	return c.call(ctx, http.MethodPost, "/foreign", nil, w, nil)
}

// ForeignAt writes as somebody else before or after a call of a client, as Before or After of the write say, until
// remove is called.
func (c *Client) ForeignAt(ctx context.Context, w server.ForeignWrite) (remove func(context.Context) error, err error) {
	_, remove, err = c.made(ctx, "/foreign", w)
	return remove, err
}

// ForeignActs lists the writes that are tied to calls, with what became of them.
func (c *Client) ForeignActs(ctx context.Context) (list []Made[server.ForeignState], err error) {
	return list, c.call(ctx, http.MethodGet, "/foreign", nil, nil, &list)
}

// Now is the region's time.
func (c *Client) Now(ctx context.Context) (time.Time, error) {
	var clock struct {
		Now time.Time `json:"now"`
	}
	err := c.call(ctx, http.MethodGet, "/clock", nil, nil, &clock)
	return clock.Now, err
}

// Stops lists the holds that are not over.
func (c *Client) Stops(ctx context.Context) (list []server.StopStatus, err error) {
	return list, c.call(ctx, http.MethodGet, "/hooks", nil, nil, &list)
}

// Users lists the users with their keys and config files.
func (c *Client) Users(ctx context.Context) (list []server.User, err error) {
	return list, c.call(ctx, http.MethodGet, "/users", nil, nil, &list)
}

// Edge lists the calls that never reached the region: metadata, tokens, the proxy.
func (c *Client) Edge(ctx context.Context) (list []server.EdgeCall, err error) {
	return list, c.call(ctx, http.MethodGet, "/edge", nil, nil, &list)
}

// ExpireTokens ends every security token and returns how many there were.
func (c *Client) ExpireTokens(ctx context.Context) (int, error) {
	var answer struct {
		Expired int `json:"expired"`
	}
	err := c.call(ctx, http.MethodPost, "/tokens/expire", nil, nil, &answer)
	return answer.Expired, err
}

// SetMetadataFault lets the metadata service fail; the zero value ends that.
func (c *Client) SetMetadataFault(ctx context.Context, f server.MetadataFault) error {
	return c.call(ctx, http.MethodPost, "/metadata/fault", nil, map[string]any{
		"status": f.Status, "calls": f.Calls, "for": ocisim.Duration(f.For), "delay": ocisim.Duration(f.Delay),
	}, nil)
}

// Operation is an operation that the region knows, with the permission that it needs.
type Operation struct {
	Service  string      `json:"service"`
	Name     string      `json:"name"`
	Verb     ocisim.Verb `json:"verb"`
	Resource string      `json:"resource"`
}

// Operations lists what the region knows.
func (c *Client) Operations(ctx context.Context) (list []Operation, err error) {
	return list, c.call(ctx, http.MethodGet, "/operations", nil, nil, &list)
}

// Kinds says how many resources there are, by kind and state.
func (c *Client) Kinds(ctx context.Context) (list []ocisim.KindSummary, err error) {
	return list, c.call(ctx, http.MethodGet, "/kinds", nil, nil, &list)
}

// ObjectPage is a part of the region's resources.
type ObjectPage struct {
	Objects []ocisim.Object `json:"objects"`
	Matched int             `json:"matched"` // how many there are in all
}

// Objects returns resources, by the conditions that the query states.
func (c *Client) Objects(ctx context.Context, query ocisim.ObjectQuery) (page ObjectPage, err error) {
	q := url.Values{"kind": query.Kinds, "id": query.IDs}
	for name, v := range map[string]string{"under": query.Under, "state": query.State, "text": query.Text} {
		if v != "" {
			q.Set(name, v)
		}
	}
	if query.Skip > 0 {
		q.Set("skip", strconv.Itoa(query.Skip))
	}
	if query.Limit > 0 {
		q.Set("limit", strconv.Itoa(query.Limit))
	}
	return page, c.call(ctx, http.MethodGet, "/objects", q, nil, &page)
}
