// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package oci

import (
	"context"
	"errors"
	"net/http"

	"github.com/oracle/oci-go-sdk/v65/common"
)

// ErrNoWorkRequest means that a work request was asked for without its OCID: the service accepted a change but named no
// work request. Only the resource itself can tell then how far the change is.
var ErrNoWorkRequest = errors.New("no work request given")

// readOp describes a call that changes nothing.
func readOp(service Service, name, resource, verb string) op {
	return op{service: service, name: name, resource: resource, verb: verb, repeatable: true}
}

// writeOp describes a change that may be repeated: a create with a retry token, an update of a state, a deletion.
func writeOp(service Service, name, resource, verb string) op {
	return op{service: service, name: name, resource: resource, verb: verb, write: true, repeatable: true}
}

// change makes a change that answers with a work request, and returns its OCID. The work request is a resource that may
// be missing from reads at first like any other.
func (c *Client) change(ctx context.Context, o op, fn func(ctx context.Context) (workRequestID *string, r *http.Response, err error)) (string, error) {
	id, err := invoke(ctx, c, o, fn)
	if err != nil {
		return "", err
	}
	c.remember(value(id))
	return value(id), nil
}

// retryToken returns the token under which one change is sent, repeats included. Updates have no token of the caller's:
// theirs only ties the repeats of one call together, so that a change whose answer was lost is not refused as outdated
// when it is sent again.
func retryToken(given string) *string {
	if given == "" {
		given = common.RetryToken()
	}
	return &given
}
