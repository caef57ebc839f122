// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package block

import (
	"sync"

	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/legacyregistry"
)

var unknownParameters = metrics.NewCounterVec(&metrics.CounterOpts{
	Name:           "oci_csi_unknown_parameters_total",
	Help:           "Requests whose class has a parameter that the driver does not know, by kind of class and parameter.",
	StabilityLevel: metrics.ALPHA,
}, []string{"class", "parameter"})

var registerMetrics = sync.OnceFunc(func() { legacyregistry.MustRegister(unknownParameters) })
