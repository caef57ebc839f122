// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"sync"

	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/legacyregistry"
)

// The metrics are package-level because the registry they belong to is the process's.
var (
	questions = metrics.NewCounterVec(&metrics.CounterOpts{
		Name: "oci_inventory_questions_total",
		Help: "Questions about instances, VNICs and addresses by kind of snapshot and result: hit (answered from memory), joined " +
			"(waited for a read under way), read, failed, paused (answered with the error of a list that is not tried again yet).",
		StabilityLevel: metrics.ALPHA,
	}, []string{"kind", "result"})

	answerAge = metrics.NewHistogramVec(&metrics.HistogramOpts{
		Name:           "oci_inventory_answer_age_seconds",
		Help:           "Age of answers from memory by kind of snapshot.",
		Buckets:        []float64{1, 5, 10, 30, 60, 150, 300, 600, 3600, 86400},
		StabilityLevel: metrics.ALPHA,
	}, []string{"kind"})

	registerOnce sync.Once
)

func registerMetrics() {
	registerOnce.Do(func() { legacyregistry.MustRegister(questions, answerAge) })
}

// Results of questions.
const (
	hit    = "hit"
	joined = "joined"
	read   = "read"
	failed = "failed"
	paused = "paused"
)
