// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package csi

import (
	"sync"

	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/legacyregistry"
)

// operations has the name and the labels that csi-lib-utils gives the calls of a driver, so that dashboards for other drivers
// fit.
var operations = metrics.NewHistogramVec(&metrics.HistogramOpts{
	Subsystem:      "csi_plugin",
	Name:           "operations_seconds",
	Help:           "Seconds that calls of the CSI driver took, by method and gRPC status code.",
	Buckets:        []float64{.1, .25, .5, 1, 2.5, 5, 10, 15, 25, 50, 120, 300, 600},
	StabilityLevel: metrics.ALPHA,
}, []string{"driver_name", "method_name", "grpc_status_code"})

var panics = metrics.NewCounterVec(&metrics.CounterOpts{
	Name:           "oci_csi_panics_total",
	Help:           "Calls that ended in a panic, which is a fault of the driver.",
	StabilityLevel: metrics.ALPHA,
}, []string{"driver_name", "method_name"})

var registerMetrics = sync.OnceFunc(func() { legacyregistry.MustRegister(operations, panics) })
