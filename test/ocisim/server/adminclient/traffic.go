// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package adminclient

import (
	"context"
	"net/http"
	"net/netip"

	"github.com/oracle/oci-cloud-controller-manager/test/ocisim"
	"github.com/oracle/oci-cloud-controller-manager/test/ocisim/server"
)

// Traffic tells where balancers listen. Without "serve --traffic" it is an error 409, as MapBackend and SetLoopback are.
func (c *Client) Traffic(ctx context.Context) (t server.Traffic, err error) {
	return t, c.call(ctx, http.MethodGet, "/traffic", nil, nil, &t)
}

// MapBackend leads a backend, an address of one, or a block of addresses to a real socket or host; "" ends it.
func (c *Client) MapBackend(ctx context.Context, backend, to string) error {
	return c.call(ctx, http.MethodPost, "/traffic/backends", nil, map[string]string{"backend": backend, "to": to}, nil)
}

// SetLoopback chooses where the balancer with an address listens.
func (c *Client) SetLoopback(ctx context.Context, address string, loopback netip.Addr) error {
	return c.call(ctx, http.MethodPost, "/traffic/addresses", nil, map[string]string{"address": address, "loopback": loopback.String()}, nil)
}

// SetBackendHealth makes the health of a backend what a test wants; "" lets its checks decide again.
func (c *Client) SetBackendHealth(ctx context.Context, balancerID, backendSet, backend string, status ocisim.HealthStatus) error {
	return c.call(ctx, http.MethodPost, "/backend-health", nil, map[string]any{
		"balancer": balancerID, "backendSet": backendSet, "backend": backend, "status": status,
	}, nil)
}
