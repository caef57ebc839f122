// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package blockvolume

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/oracle/oci-cloud-controller-manager/pkg/oci"
)

// What an error means for the caller. Every error of this package matches one of them.
var (
	// ErrInvalid means that the request cannot be carried out as it is, now or later.
	ErrInvalid = errors.New("invalid request")
	// ErrOutOfRange means a size that is contradictory, or that no volume can have.
	ErrOutOfRange = errors.New("size out of range")
	// ErrExists means that something with this name exists, but is not what is asked for.
	ErrExists = errors.New("exists with other properties")
	// ErrNotFound means that what the request is about is proven not to exist.
	ErrNotFound = errors.New("does not exist")
	// ErrForbidden means that the cloud answered as if it were not there, or refused, and that its absence is not proven:
	// usually, a policy statement is missing.
	ErrForbidden = errors.New("not authorized, or not found")
	// ErrExhausted means that the cloud has no room for what is asked for, and that nothing is being made.
	ErrExhausted = errors.New("no capacity, or a limit is reached")
	// ErrInstanceFull means that the instance cannot have more volumes.
	ErrInstanceFull = errors.New("the instance has no room for another volume")
	// ErrPending means that the work goes on, or that its outcome is not known yet: the same request, later, finds out.
	ErrPending = errors.New("still working")
	// ErrUnavailable means that the cloud is throttling or failing. The same request may be sent again.
	ErrUnavailable = errors.New("the cloud does not answer as it should")
	// ErrInUse means that something has to end first that this package does not end.
	ErrInUse = errors.New("in use")
	// ErrElsewhere means that the volume is attached to another instance, or in a way that excludes what is asked for.
	ErrElsewhere = errors.New("attached elsewhere")
	// ErrInstanceState means that the state of the instance does not allow it.
	ErrInstanceState = errors.New("the instance is not in a state for this")
	// ErrFailed means that the cloud took the work up and failed. What it left behind is removed; the same request starts anew.
	ErrFailed = errors.New("the cloud failed to do it")
)

// Error is a failed operation.
type Error struct {
	Kind  error  // one of the sentinels above
	Text  string // what was tried, and what is in the way
	Cause error  // the answer of the cloud, if there is one
}

// Error says what was tried and what came of it.
func (e *Error) Error() string {
	if e.Cause == nil {
		return e.Text
	}
	return e.Text + ": " + e.Cause.Error()
}

// Unwrap returns the sentinel and the cause.
func (e *Error) Unwrap() []error {
	if e.Cause == nil {
		return []error{e.Kind}
	}
	return []error{e.Kind, e.Cause}
}

func problem(kind error, format string, args ...any) error {
	return &Error{Kind: kind, Text: fmt.Sprintf(format, args...)}
}

// failed is a problem whose kind follows from the answer of the cloud. An error that has a kind already keeps it.
func failed(err error, format string, args ...any) error {
	var known *Error
	if errors.As(err, &known) {
		return err
	}
	return &Error{Kind: kindOf(err), Text: fmt.Sprintf(format, args...), Cause: err}
}

// because is a problem of a given kind with the answer of the cloud.
func because(kind, cause error, format string, args ...any) error {
	return &Error{Kind: kind, Text: fmt.Sprintf(format, args...), Cause: cause}
}

// kindOf judges an answer of the cloud that says nothing special to the operation.
func kindOf(err error) error {
	var (
		answer  *oci.Error
		unknown *oci.PresenceError
	)
	switch {
	case errors.As(err, &unknown):
		if len(unknown.Unwrap()) == 0 { // 404s only
			return ErrForbidden
		}
		return kindOf(errors.Join(unknown.Unwrap()...))
	case errors.Is(err, oci.ErrThrottled):
		return ErrUnavailable
	case errors.Is(err, oci.ErrOutOfCapacity), errors.Is(err, oci.ErrLimitExceeded):
		return ErrExhausted
	case errors.Is(err, oci.ErrNotFound), errors.Is(err, oci.ErrUnauthorized):
		return ErrForbidden
	case errors.Is(err, oci.ErrIncorrectState), errors.Is(err, oci.ErrPrecondition), errors.Is(err, oci.ErrInvalidRetryToken):
		return ErrPending
	case errors.Is(err, oci.ErrConflict):
		return ErrInUse
	case !errors.As(err, &answer), answer.Status == 0:
		if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
			return ErrPending
		}
		return ErrUnavailable
	case answer.Status == http.StatusForbidden:
		return ErrForbidden
	case answer.Status >= http.StatusInternalServerError:
		return ErrUnavailable
	}
	return ErrInvalid
}

// inDoubt is for an error that leaves open whether something was made. Who takes it for final, as ErrForbidden is, would forget what may be
// there.
func inDoubt(err error) error {
	if errors.Is(err, ErrForbidden) {
		return &Error{Kind: ErrPending, Text: "it cannot be seen what there is already", Cause: err}
	}
	return err
}

// refused says whether the answer proves that a create was not carried out: the service compares the retry token with
// those it knows before anything else, so any answer of its own about the request itself means that there is nothing.
func refused(err error) bool {
	var answer *oci.Error
	switch {
	case errors.Is(err, oci.ErrOutOfCapacity):
		return true
	case !errors.As(err, &answer), errors.Is(err, oci.ErrThrottled), errors.Is(err, oci.ErrInvalidRetryToken):
		return false
	}
	return answer.Status >= http.StatusBadRequest && answer.Status < http.StatusInternalServerError
}
