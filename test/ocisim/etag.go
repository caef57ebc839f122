// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package ocisim

import (
	"fmt"
	"net/http"
)

// newETag returns a tag in the form seen on security lists, eight hex digits, that differs from the old one.
func (cl *cloud) newETag(old string) string {
	for {
		if tag := cl.hex(8, lowerHex); tag != old {
			return tag
		}
	}
}

// checkMatch refuses a call whose if-match header names another version of the target.
func (c *call) checkMatch() error {
	if !c.operation.IfMatch || c.target == nil {
		return nil
	}
	tag := c.header.Get("If-Match")
	if tag == "" || tag == "*" || tag == c.target.etag {
		return nil
	}
	return &APIError{
		Status: http.StatusPreconditionFailed, Code: "NoEtagMatch",
		Message: fmt.Sprintf("Entity %s with ID %s has a computed tag of %s, but is passed a tag of %s",
			c.target.kind.label, c.target.id, c.target.etag, tag),
	}
}
