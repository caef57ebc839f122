// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package adminclient

import (
	"context"
	"net/http"

	"github.com/oracle/oci-cloud-controller-manager/test/ocisim"
	"github.com/oracle/oci-cloud-controller-manager/test/ocisim/server"
)

// Options returns the options in effect, without durations, latencies, rates and the behaviour table.
func (c *Client) Options(ctx context.Context) (o ocisim.Options, err error) {
	return o, c.call(ctx, http.MethodGet, "/options", nil, nil, &o)
}

// PatchOptions changes options by a document with some of their keys, in JSON or YAML.
func (c *Client) PatchOptions(ctx context.Context, patch []byte) error {
	return c.call(ctx, http.MethodPatch, "/options", nil, patch, nil)
}

// Durations returns how long each state change takes.
func (c *Client) Durations(ctx context.Context) (d map[string]ocisim.Range, err error) {
	return d, c.call(ctx, http.MethodGet, "/durations", nil, nil, &d)
}

// SetDurations changes how long some state changes take. Names may be patterns ("loadbalancer.*"); nil is the default
// again.
func (c *Client) SetDurations(ctx context.Context, d map[string]*ocisim.Range) error {
	return c.call(ctx, http.MethodPatch, "/durations", nil, d, nil)
}

// Latency returns the delays of answers that were set.
func (c *Client) Latency(ctx context.Context) (d map[string]ocisim.Range, err error) {
	return d, c.call(ctx, http.MethodGet, "/latency", nil, nil, &d)
}

// SetLatency changes delays of answers by "service.Operation", "service.*" or "*"; nil ends one.
func (c *Client) SetLatency(ctx context.Context, d map[string]*ocisim.Range) error {
	return c.call(ctx, http.MethodPatch, "/latency", nil, d, nil)
}

// Rates returns the budgets.
func (c *Client) Rates(ctx context.Context) (r server.Rates, err error) {
	return r, c.call(ctx, http.MethodGet, "/rates", nil, nil, &r)
}

// SetRates changes the budgets: those for reads and writes as they stand, those of services that are named; nil takes
// one out.
func (c *Client) SetRates(ctx context.Context, r server.Rates) error {
	return c.call(ctx, http.MethodPatch, "/rates", nil, r, nil)
}

// Behaviour returns the table of what is not established about the real services.
func (c *Client) Behaviour(ctx context.Context) (b ocisim.Behaviour, err error) {
	return b, c.call(ctx, http.MethodGet, "/behaviour", nil, nil, &b)
}

// PatchBehaviour changes entries of the table by a document in the form of GET /behaviour, in JSON or YAML.
func (c *Client) PatchBehaviour(ctx context.Context, patch []byte) error {
	return c.call(ctx, http.MethodPatch, "/behaviour", nil, patch, nil)
}
