// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package oci

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

const (
	// maxAttempts bounds the tries for failures that say nothing about when to come back; it is the SDK's number. With
	// the delays below that is about 35 s. Being throttled is not bounded by it: waiting is then all there is to do.
	maxAttempts = 8

	// firstDelay is the mean pause before the second attempt; each later one is twice as long, up to maxDelay.
	firstDelay = 500 * time.Millisecond
	maxDelay   = 10 * time.Second

	// maxRetryAfter bounds what a Retry-After header can make us wait.
	maxRetryAfter = 2 * time.Minute
)

// errNoTimeLeft tells that the next try would come after the caller's deadline.
var errNoTimeLeft = errors.New("the deadline leaves no time for another try")

// Reasons of a retry: values of the metric's label.
const (
	retryThrottled    = "throttled"
	retryBusy         = "busy"
	retryServer       = "server"
	retryNetwork      = "network"
	retryUnauthorized = "unauthorized"
	retryNotYetThere  = "eventual_consistency"
)

// retryPolicy decides for one operation whether a failed request is repeated.
//
// The causes are those of oci-api.md §2.4: 429; 409 IncorrectState and LockConflict (and the network load balancer's
// Conflict while UPDATING); 5xx except 501; network errors. Besides, a 401 is tried once more with a fresh token, and a 404
// on a read of a resource that this process created a moment ago. Any other 404 stands: it is an answer.
type retryPolicy struct {
	op          op
	recent      *recentCreates
	refreshable bool
	rand        func() float64

	refreshed bool
}

// retryDecision is empty for "do not repeat".
type retryDecision struct {
	reason  string
	delay   time.Duration
	refresh bool // get a new token first
}

func (p *retryPolicy) decide(e *Error, attempts int, retryAfter time.Duration) retryDecision {
	reason := p.reason(e)
	switch {
	case reason == "":
		return retryDecision{}
	case reason == retryUnauthorized:
		p.refreshed = true
		return retryDecision{reason: reason, refresh: true}
	case attempts >= maxAttempts && reason != retryThrottled && reason != retryNotYetThere:
		return retryDecision{}
	}
	return retryDecision{reason: reason, delay: max(backoff(attempts, p.rand), retryAfter)}
}

// reason says why the request may be repeated; empty means that it must not.
func (p *retryPolicy) reason(e *Error) string {
	switch {
	// These prove that the request was not carried out, so they may be repeated whatever it was.
	case e.Status == http.StatusTooManyRequests:
		return retryThrottled
	case errors.Is(e, ErrIncorrectState):
		return retryBusy
	case e.Status == http.StatusUnauthorized:
		if p.refreshable && !p.refreshed {
			return retryUnauthorized
		}
		return ""
	case e.Status == http.StatusNotFound:
		if !p.op.write && p.op.target != "" && p.recent.has(p.op.target) {
			return retryNotYetThere
		}
		return ""

	case errors.Is(e, ErrOutOfCapacity):
		return "" // it is an answer, whatever its status

	// Of these nobody knows.
	case e.Status >= 500 && e.Status != http.StatusNotImplemented:
		if p.op.repeatable {
			return retryServer
		}
		return ""
	case e.Status == 0 && isNetworkError(e.cause):
		if p.op.repeatable || neverSent(e.cause) {
			return retryNetwork
		}
		return ""
	}
	return ""
}

// backoff returns the pause after the given number of attempts: exponential, and spread over ±50 % so that callers that
// failed together do not come back together.
func backoff(attempts int, rand func() float64) time.Duration {
	mean := maxDelay
	if attempts < 10 {
		mean = min(firstDelay<<(attempts-1), maxDelay)
	}
	return time.Duration(float64(mean) * (0.5 + rand()))
}

// isNetworkError says whether a request failed on its way, as opposed to being wrong or refused here.
func isNetworkError(err error) bool {
	var (
		untrusted *tls.CertificateVerificationError
		unknown   x509.UnknownAuthorityError
		hostname  x509.HostnameError
		dns       *net.DNSError
		broken    *brokenAnswerError
	)
	switch {
	case errors.As(err, &untrusted), errors.As(err, &unknown), errors.As(err, &hostname):
		return false // trying again does not change a certificate
	case errors.As(err, &dns) && dns.IsNotFound:
		return false // nor a name that does not exist
	case errors.As(err, &broken):
		return true
	case errors.Is(err, context.DeadlineExceeded): // of the single attempt: the caller's is handled before
		return true
	}
	var transport *url.Error // what http.Client returns
	return errors.As(err, &transport)
}

// neverSent says whether it is certain that no byte of the request reached the service.
func neverSent(err error) bool {
	var opErr *net.OpError
	if errors.As(err, &opErr) && opErr.Op == "dial" {
		return true
	}
	var dns *net.DNSError
	return errors.As(err, &dns)
}

// retryAfter reads the header of that name: seconds, possibly with a fraction, or a date.
func retryAfter(response *http.Response) time.Duration {
	if response == nil {
		return 0
	}
	value := response.Header.Get("Retry-After")
	if value == "" {
		return 0
	}
	var wait time.Duration
	if seconds, err := strconv.ParseFloat(value, 64); err == nil {
		wait = time.Duration(min(seconds, maxRetryAfter.Seconds()) * float64(time.Second))
	} else if at, err := http.ParseTime(value); err == nil {
		wait = time.Until(at)
	}
	return min(max(wait, 0), maxRetryAfter)
}
