// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package cloudprovider

import (
	"sync"

	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/legacyregistry"
)

// The metrics are package-level because the registry they belong to is the process's.
var (
	deletionsPaused = metrics.NewGauge(&metrics.GaugeOpts{
		Name:           "oci_ccm_node_deletions_paused",
		Help:           "1 while Nodes are not deleted because the instances of too many of them seem to be absent.",
		StabilityLevel: metrics.ALPHA,
	})

	configWarnings = metrics.NewGauge(&metrics.GaugeOpts{
		Name:           "oci_ccm_config_warnings",
		Help:           "Number of problems in the cloud config that did not stop the start.",
		StabilityLevel: metrics.ALPHA,
	})

	servicePasses = metrics.NewCounterVec(&metrics.CounterOpts{
		Name:           "oci_ccm_service_passes_total",
		Help:           "Periodic passes over all load balancers by result (ok, error).",
		StabilityLevel: metrics.ALPHA,
	}, []string{"result"})

	servicesQueued = metrics.NewCounterVec(&metrics.CounterOpts{
		Name:           "oci_ccm_services_queued_total",
		Help:           "Services queued again by us, by reason (audit, cloud, node, retry).",
		StabilityLevel: metrics.ALPHA,
	}, []string{"reason"})

	registerOnce sync.Once
)

func registerMetrics() {
	registerOnce.Do(func() {
		legacyregistry.MustRegister(deletionsPaused, configWarnings, servicePasses, servicesQueued)
	})
}

// SetConfigWarnings sets the metric that counts what is questionable in the cloud config.
func SetConfigWarnings(n int) {
	registerMetrics()
	configWarnings.Set(float64(n))
}
