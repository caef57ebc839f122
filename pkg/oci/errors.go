// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package oci

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/oracle/oci-go-sdk/v65/common"
)

// Errors that an *Error matches with errors.Is.
var (
	// ErrNotFound is any 404. It does not prove absence: OCI also answers 404 where a policy is missing. See Presence.
	ErrNotFound = errors.New("not found, or not authorized to see it")
	// ErrThrottled is any 429.
	ErrThrottled = errors.New("too many requests")
	// ErrConflict is any 409.
	ErrConflict = errors.New("conflict")
	// ErrIncorrectState is a 409 that passes when the resource comes to rest: the codes IncorrectState and LockConflict,
	// and of the network load balancer service, which uses no other code for that, Conflict.
	ErrIncorrectState = errors.New("resource is busy")
	// ErrPrecondition is any 412: the resource changed since its ETag was read, or (network security groups) is in use.
	ErrPrecondition = errors.New("precondition failed")
	// ErrGroupInUse is the 412 with which a network security group is not deleted, because VNICs are still in it.
	ErrGroupInUse = errors.New("network security group is in use")
	// ErrLimitExceeded is a service limit of the tenancy or a quota of the compartment.
	ErrLimitExceeded = errors.New("limit or quota exceeded")
	// ErrOutOfCapacity means that the availability domain has no room: the request was refused, and nothing was made.
	ErrOutOfCapacity = errors.New("out of capacity")
	// ErrUnauthorized is any 401: the signature or the token was not accepted.
	ErrUnauthorized = errors.New("not authenticated")
	// ErrInvalidRetryToken is a 409 for a retry token that was used before with another body, or whose resource is gone.
	ErrInvalidRetryToken = errors.New("retry token is no longer valid")
)

// Error codes of the OCI API, https://docs.oracle.com/iaas/Content/API/References/apierrors.htm.
const (
	codeIncorrectState        = "IncorrectState"
	codeLockConflict          = "LockConflict"
	codeConflict              = "Conflict"
	codeInvalidatedRetryToken = "InvalidatedRetryToken"
	codeLimitExceeded         = "LimitExceeded"
	codeQuotaExceeded         = "QuotaExceeded"
	codePreconditionFailed    = "PreconditionFailed" // an outdated ETag is NoEtagMatch
	codeSeOutOfCapacity       = "SeOutOfCapacity"
	codeOutOfCapacity         = "OutOfCapacity"
	codeOutOfHostCapacity     = "OutOfHostCapacity"
)

// Error is a failed operation of an OCI service.
type Error struct {
	Service   Service
	Operation string

	// Status, Code, Message and RequestID are the service's answer. Status is 0 if there was none.
	Status    int
	Code      string
	Message   string
	RequestID string

	// Principal says who was refused. It is set for 401 and 403 only.
	Principal string

	// Attempts counts the requests sent for this operation.
	Attempts int

	cause error
}

// Error says which operation failed and all that the service answered.
func (e *Error) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s: ", e.Service, e.Operation)
	if e.Status == 0 {
		fmt.Fprintf(&b, "%v", e.cause)
	} else {
		fmt.Fprintf(&b, "%d %s: %s", e.Status, e.Code, e.Message)
	}
	var more []string
	if e.Principal != "" {
		more = append(more, "as "+e.Principal)
	}
	if e.RequestID != "" {
		more = append(more, "opc-request-id "+e.RequestID)
	}
	if e.Attempts > 1 {
		more = append(more, strconv.Itoa(e.Attempts)+" attempts")
	}
	if len(more) > 0 {
		fmt.Fprintf(&b, " (%s)", strings.Join(more, ", "))
	}
	if e.Status != 0 && e.cause != nil {
		fmt.Fprintf(&b, "; gave up: %v", e.cause)
	}
	return b.String()
}

// Unwrap returns what stopped the operation besides the service's answer: a network error, or the end of the context.
func (e *Error) Unwrap() error { return e.cause }

// Is makes errors.Is work with the sentinels of this package.
func (e *Error) Is(target error) bool {
	switch target {
	case ErrNotFound:
		return e.Status == http.StatusNotFound
	case ErrThrottled:
		return e.Status == http.StatusTooManyRequests
	case ErrConflict:
		return e.Status == http.StatusConflict
	case ErrIncorrectState:
		return e.Status == http.StatusConflict && (e.Code == codeIncorrectState || e.Code == codeLockConflict ||
			e.Service == ServiceNetworkLoadBalancer && e.Code == codeConflict)
	case ErrPrecondition:
		return e.Status == http.StatusPreconditionFailed
	case ErrGroupInUse:
		return e.Status == http.StatusPreconditionFailed && e.Code == codePreconditionFailed && e.Service == ServiceVirtualNetwork
	case ErrLimitExceeded:
		return e.Code == codeLimitExceeded || e.Code == codeQuotaExceeded
	case ErrOutOfCapacity:
		return e.outOfCapacity()
	case ErrUnauthorized:
		return e.Status == http.StatusUnauthorized
	case ErrInvalidRetryToken:
		return e.Status == http.StatusConflict && e.Code == codeInvalidatedRetryToken
	}
	return false
}

// outOfCapacity knows the codes for it and, since the services also answer it as an InternalServerError like any other
// (oci-api.md §2.3), the words "out of … capacity" of that answer. It is the one place where a text counts: taken for a
// failure of the service, the request would be repeated for half a minute, and its outcome would be in doubt.
func (e *Error) outOfCapacity() bool {
	switch e.Code {
	case codeSeOutOfCapacity, codeOutOfCapacity, codeOutOfHostCapacity:
		return true
	}
	message := strings.ToLower(e.Message)
	return e.Status == http.StatusInternalServerError && strings.Contains(message, "out of ") && strings.Contains(message, "capacity")
}

// newError turns what the SDK returned for one request into an *Error.
func newError(o op, err error, response *http.Response) *Error {
	e := &Error{Service: o.service, Operation: o.name}
	var failure common.ServiceError
	if errors.As(err, &failure) {
		e.Status = failure.GetHTTPStatusCode()
		e.Code = failure.GetCode()
		e.Message = failure.GetMessage()
		e.RequestID = failure.GetOpcRequestID()
		return e
	}
	e.cause = err
	if response != nil {
		e.RequestID = response.Header.Get("opc-request-id")
		var mismatch *json.UnmarshalTypeError
		if !errors.As(err, &mismatch) {
			e.cause = &brokenAnswerError{err}
		}
	}
	return e
}

// brokenAnswerError is an answer of success whose body could not be read to its end: the operation was carried out, but
// nobody knows with what result.
type brokenAnswerError struct{ err error }

func (e *brokenAnswerError) Error() string { return "the answer broke off: " + e.err.Error() }
func (e *brokenAnswerError) Unwrap() error { return e.err }

// WorkRequestError is a work request that ended in FAILED or CANCELED.
type WorkRequestError struct {
	Service     Service
	WorkRequest WorkRequest
}

// Error carries every entry of the work request's error list.
func (e *WorkRequestError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s work request %s", e.Service, e.WorkRequest.ID)
	if e.WorkRequest.Operation != "" {
		fmt.Fprintf(&b, " (%s)", e.WorkRequest.Operation)
	}
	fmt.Fprintf(&b, " %s", e.WorkRequest.State)
	for i, p := range e.WorkRequest.Errors {
		if i == 0 {
			b.WriteString(": ")
		} else {
			b.WriteString("; ")
		}
		fmt.Fprintf(&b, "%s: %s", p.Code, p.Message)
	}
	if e.WorkRequest.RequestID != "" {
		fmt.Fprintf(&b, " (opc-request-id %s)", e.WorkRequest.RequestID)
	}
	return b.String()
}
