// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package loadbalancer

import (
	"errors"
	"time"
)

// delayedDeletion is a deletion that failed. The service controller has a back-off of its own, but it also calls whenever anything about
// the Service changes, its status included; then the last answer holds until its time is over.
type delayedDeletion struct {
	until time.Time
	gate  string // what the Service was: an edit is tried at once
	err   error
	// lookup means that it was the look for the balancer that failed: whoever looks again meanwhile gets the same answer,
	// which the service controller reports in the same event.
	lookup bool
}

// tooEarly returns the last error of a deletion for as long as it makes no sense to try again.
func (op *operation) tooEarly() error {
	if d := op.mem.deletion; d != nil && time.Now().Before(d.until) && d.gate == op.specHash() {
		return d.err
	}
	return nil
}

// delay notes the outcome of a step of a deletion.
func (op *operation) delay(err error) {
	var refusal *Refusal
	switch {
	case err == nil:
		op.mem.deletion = nil
	case errors.As(err, &refusal):
		op.mem.deletion = &delayedDeletion{until: time.Now().Add(refusal.RetryAfter), gate: op.specHash(), err: err}
	}
}
