// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package ocisim

import (
	"encoding/json"
	"fmt"
	"net/http"
	"time"
)

// APIError is a refusal in the form that the services give it.
type APIError struct {
	Status     int
	Code       string
	Message    string
	RetryAfter time.Duration // sent as a header when not zero
}

// Error implements error.
func (e *APIError) Error() string {
	return fmt.Sprintf("%d %s: %s", e.Status, e.Code, e.Message)
}

// Body returns the JSON body of the error.
func (e *APIError) Body() []byte {
	body, err := json.Marshal(map[string]string{"code": e.Code, "message": e.Message})
	if err != nil {
		// Two strings always marshal.
		panic(err)
	}
	return body
}

// Texts as the services use them, from Oracle's open-source error table and from users' logs.
const (
	messageNotFound = "Authorization failed or requested resource not found."
	messageRelated  = "Authorization failed or related resource not found: %s."
	messageAuth     = "The required information to complete authentication was not provided or was incorrect."
	messageThrottle = "User-rate limit exceeded."
	messageParse    = "Incorrectly formatted request. Please refer to our documentation for help."
	messageToken    = "The retry token was used with another request, or the resource that it created is gone."
	messageNoSuch   = "The requested operation does not exist."
	messageMethod   = "The method is not allowed for this resource."
)

// errNotFound is the one answer for an absent resource and for a missing policy. It carries no detail of the
// resource, because the two must not be told apart.
func errNotFound() error {
	return &APIError{Status: http.StatusNotFound, Code: "NotAuthorizedOrNotFound", Message: messageNotFound}
}

// errRelated says that a resource named in the body is absent or not visible.
func errRelated(id string) error {
	return &APIError{
		Status: http.StatusBadRequest, Code: "RelatedResourceNotAuthorizedOrNotFound",
		Message: fmt.Sprintf(messageRelated, id),
	}
}

func errInvalid(format string, args ...any) error {
	return &APIError{Status: http.StatusBadRequest, Code: "InvalidParameter", Message: fmt.Sprintf(format, args...)}
}

func errMissing(field string) error {
	return &APIError{
		Status: http.StatusBadRequest, Code: "MissingParameter",
		Message: fmt.Sprintf("The required parameter %s is missing.", field),
	}
}

func errConflict(format string, args ...any) error {
	return &APIError{Status: http.StatusConflict, Code: "Conflict", Message: fmt.Sprintf(format, args...)}
}

func errIncorrectState(format string, args ...any) error {
	return &APIError{Status: http.StatusConflict, Code: "IncorrectState", Message: fmt.Sprintf(format, args...)}
}

func errPrecondition(format string, args ...any) error {
	return &APIError{Status: http.StatusPreconditionFailed, Code: "PreconditionFailed", Message: fmt.Sprintf(format, args...)}
}

func errLimit(format string, args ...any) error {
	return &APIError{Status: http.StatusBadRequest, Code: "LimitExceeded", Message: fmt.Sprintf(format, args...)}
}

func errUnauthenticated() error {
	return &APIError{Status: http.StatusUnauthorized, Code: "NotAuthenticated", Message: messageAuth}
}

func errRetryToken() error {
	return &APIError{Status: http.StatusConflict, Code: "InvalidatedRetryToken", Message: messageToken}
}
