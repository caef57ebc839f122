// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package adminclient

import (
	"context"
	"net/http"

	"github.com/oracle/oci-cloud-controller-manager/test/ocisim"
)

// Metrics returns what programs posted to Monitoring.
func (c *Client) Metrics(ctx context.Context) (metrics []ocisim.Metric, err error) {
	err = c.call(ctx, http.MethodGet, "/metrics", nil, nil, &metrics)
	return metrics, err
}

// CallLog returns all calls that the log still has, oldest first. With State and Counters it makes a Client a source of
// package oracle.
func (c *Client) CallLog(ctx context.Context) ([]ocisim.Call, error) {
	page, err := c.Calls(ctx, CallQuery{})
	if err != nil {
		return nil, err
	}
	return page.Calls, nil
}
