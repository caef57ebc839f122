// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package oci

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
)

func TestErrorMatchesSentinels(t *testing.T) {
	sentinels := map[string]error{
		"ErrNotFound": ErrNotFound, "ErrThrottled": ErrThrottled, "ErrConflict": ErrConflict, "ErrIncorrectState": ErrIncorrectState,
		"ErrPrecondition": ErrPrecondition, "ErrLimitExceeded": ErrLimitExceeded, "ErrUnauthorized": ErrUnauthorized,
		"ErrInvalidRetryToken": ErrInvalidRetryToken, "ErrGroupInUse": ErrGroupInUse,
	}
	tests := []struct {
		service Service
		status  int
		code    string
		want    []string
	}{
		{ServiceCompute, 404, "NotAuthorizedOrNotFound", []string{"ErrNotFound"}},
		{ServiceCompute, 429, "TooManyRequests", []string{"ErrThrottled"}},
		{ServiceCompute, 409, "IncorrectState", []string{"ErrConflict", "ErrIncorrectState"}},
		{ServiceCompute, 409, "LockConflict", []string{"ErrConflict", "ErrIncorrectState"}},
		{ServiceLoadBalancer, 409, "Conflict", []string{"ErrConflict"}},
		{ServiceNetworkLoadBalancer, 409, "Conflict", []string{"ErrConflict", "ErrIncorrectState"}},
		{ServiceNetworkLoadBalancer, 409, "NotAuthorizedOrResourceAlreadyExists", []string{"ErrConflict"}},
		{ServiceLoadBalancer, 409, "InvalidatedRetryToken", []string{"ErrConflict", "ErrInvalidRetryToken"}},
		{ServiceVirtualNetwork, 412, "NoEtagMatch", []string{"ErrPrecondition"}},
		{ServiceVirtualNetwork, 412, "PreconditionFailed", []string{"ErrPrecondition", "ErrGroupInUse"}},
		{ServiceNetworkLoadBalancer, 412, "PreconditionFailed", []string{"ErrPrecondition"}},
		{ServiceLoadBalancer, 400, "LimitExceeded", []string{"ErrLimitExceeded"}},
		{ServiceLoadBalancer, 400, "QuotaExceeded", []string{"ErrLimitExceeded"}},
		{ServiceLoadBalancer, 400, "InvalidParameter", nil},
		{ServiceCompute, 401, "NotAuthenticated", []string{"ErrUnauthorized"}},
		{ServiceCompute, 500, "InternalServerError", nil},
	}
	for _, tt := range tests {
		err := fmt.Errorf("ensure: %w", &Error{Service: tt.service, Status: tt.status, Code: tt.code})
		for name, sentinel := range sentinels {
			if got, want := errors.Is(err, sentinel), slices.Contains(tt.want, name); got != want {
				t.Errorf("%d %s of %s is %s: %t, want %t", tt.status, tt.code, tt.service, name, got, want)
			}
		}
	}
}

func TestErrorTellsEverything(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tests := []struct {
			name  string
			first responder
			want  string
		}{
			{"refused", func(int, *http.Request) (*http.Response, error) {
				return answer(400, `{"code":"LimitExceeded","message":"lb-flexible-count"}`), nil
			}, "compute GetInstance: 400 LimitExceeded: lb-flexible-count (opc-request-id /REQ/1)"},
			{"not authenticated", func(int, *http.Request) (*http.Response, error) {
				return refusal(401, "NotAuthenticated"), nil
			}, "compute GetInstance: 401 NotAuthenticated: as the test wants it (as user principal " + testUser + " (key " + testFingerprint + "), opc-request-id /REQ/1)"},
			{"failed throughout", func(int, *http.Request) (*http.Response, error) {
				return refusal(503, "ServiceUnavailable"), nil
			}, "compute GetInstance: 503 ServiceUnavailable: as the test wants it (opc-request-id /REQ/1, 8 attempts)"},
			{"not JSON", func(int, *http.Request) (*http.Response, error) {
				return answer(403, "<html>proxy</html>"), nil
			}, "compute GetInstance: 403 BadErrorResponse: "},
		}
		for _, tt := range tests {
			c, _ := newTestClient(t, tt.first)
			_, err := c.Compute().GetInstance(t.Context(), testInstance)
			if err == nil || !strings.HasPrefix(err.Error(), tt.want) {
				t.Errorf("%s:\n got %v\nwant %s", tt.name, err, tt.want)
			}
		}
	})
}

func TestWorkRequestErrorCarriesEveryProblem(t *testing.T) {
	err := &WorkRequestError{Service: ServiceLoadBalancer, WorkRequest: WorkRequest{
		ID: "ocid1.loadbalancerworkrequest.oc1..w", Operation: "CreateLoadBalancer", State: WorkRequestFailed,
		Errors: []WorkRequestProblem{{"BAD_INPUT", "limit reached"}, {"INTERNAL_ERROR", "and more"}},
	}}
	want := "loadbalancer work request ocid1.loadbalancerworkrequest.oc1..w (CreateLoadBalancer) FAILED: BAD_INPUT: limit reached; INTERNAL_ERROR: and more"
	if err.Error() != want {
		t.Errorf("got  %s\nwant %s", err, want)
	}
}
