// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package adminclient

import (
	"context"

	"github.com/oracle/oci-cloud-controller-manager/test/ocisim"
)

// CallLog returns all calls that the log still has, oldest first. With State and Counters it makes a Client a source of
// package oracle.
func (c *Client) CallLog(ctx context.Context) ([]ocisim.Call, error) {
	page, err := c.Calls(ctx, CallQuery{})
	if err != nil {
		return nil, err
	}
	return page.Calls, nil
}
