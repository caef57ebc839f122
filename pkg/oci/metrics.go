// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package oci

import (
	"errors"
	"strconv"
	"sync"
	"time"

	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/legacyregistry"
)

// codeNoAnswer is the code label where the service gave no answer, as in the existing implementation.
const codeNoAnswer = 555

// The metrics are package-level because the registry they belong to is the process's: two clients of one process count
// into the same series.
var (
	// operations keeps the name, labels and meaning of the existing implementation: one count per operation (repeats
	// of its request not counted), code 200 for success.
	operations = metrics.NewCounterVec(&metrics.CounterOpts{
		Name:           "oci_requests_total",
		Help:           "OCI operations by resource, verb and final status code. Code 555 means that there was no answer.",
		StabilityLevel: metrics.ALPHA,
	}, []string{"resource", "code", "verb"})

	requests = metrics.NewCounterVec(&metrics.CounterOpts{
		Name:           "oci_client_requests_total",
		Help:           "HTTP requests to OCI, repeats included, by service, operation and status code. Code 555 means that there was no answer.",
		StabilityLevel: metrics.ALPHA,
	}, []string{"service", "operation", "code"})

	requestDuration = metrics.NewHistogramVec(&metrics.HistogramOpts{
		Name:           "oci_client_request_duration_seconds",
		Help:           "Duration of single HTTP requests to OCI by service and operation.",
		Buckets:        []float64{0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30},
		StabilityLevel: metrics.ALPHA,
	}, []string{"service", "operation"})

	limiterWait = metrics.NewHistogramVec(&metrics.HistogramOpts{
		Name:           "oci_client_rate_limiter_duration_seconds",
		Help:           "Time that requests waited for the client-side budget, by service and direction (read, write).",
		Buckets:        []float64{0.001, 0.01, 0.1, 0.5, 1, 2.5, 5, 10, 30, 60, 120},
		StabilityLevel: metrics.ALPHA,
	}, []string{"service", "direction"})

	retries = metrics.NewCounterVec(&metrics.CounterOpts{
		Name:           "oci_client_retries_total",
		Help:           "Repeated requests to OCI by service, operation and reason.",
		StabilityLevel: metrics.ALPHA,
	}, []string{"service", "operation", "reason"})

	registerOnce sync.Once
)

// registerMetrics puts the metrics into the registry that /metrics serves.
func registerMetrics() {
	registerOnce.Do(func() {
		legacyregistry.MustRegister(operations, requests, requestDuration, limiterWait, retries)
	})
}

// countOperation counts an operation by its outcome.
func countOperation(o op, err error) {
	code := 200
	if err != nil {
		code = codeNoAnswer
		var failure *Error
		if errors.As(err, &failure) && failure.Status != 0 {
			code = failure.Status
		}
	}
	operations.WithLabelValues(o.resource, strconv.Itoa(code), o.verb).Inc()
}

// countRequest counts one request.
func countRequest(o op, status int, err error, took time.Duration) {
	if status == 0 || err != nil && status < 400 { // no answer, or one that broke off
		status = codeNoAnswer
	}
	requests.WithLabelValues(string(o.service), o.name, strconv.Itoa(status)).Inc()
	requestDuration.WithLabelValues(string(o.service), o.name).Observe(took.Seconds())
}

func countRetry(o op, reason string) {
	retries.WithLabelValues(string(o.service), o.name, reason).Inc()
}

func observeLimiterWait(key limiterKey, waited time.Duration) {
	limiterWait.WithLabelValues(string(key.service), key.direction()).Observe(waited.Seconds())
}
