// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package ocisim

import (
	"regexp"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/oracle/oci-go-sdk/v65/monitoring"
)

// Documented limits of PostMetricData.
const (
	maxMetricStreams  = 50
	maxDimensions     = 20
	maxDimensionKey   = 256
	maxDimensionValue = 512
	maxMetadata       = 256
	metricPast        = 2 * time.Hour
	metricFuture      = 10 * time.Minute
)

var (
	metricNamespace = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_]*$`)
	metricName      = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9._$-]*$`)
	dimensionKey    = regexp.MustCompile(`^[!-~]+$`) // printable ASCII without the space
)

func checkNamespace(namespace string) error {
	for _, prefix := range []string{"oci_", "oracle_"} {
		if strings.HasPrefix(namespace, prefix) {
			return errInvalid("The namespace must not start with %s", prefix)
		}
	}
	return checkPattern("namespace", namespace, metricNamespace)
}

func checkDimensions(dimensions map[string]string) error {
	if n := len(dimensions); n < 1 || n > maxDimensions {
		return errInvalid("The number of dimensions must be between 1 and %d", maxDimensions)
	}
	for key, v := range dimensions {
		if err := checkPattern("dimension key", key, dimensionKey); err != nil {
			return err
		}
		if err := checkSize("dimension key", key, 1, maxDimensionKey); err != nil {
			return err
		}
		if err := checkSize("dimension value", v, 1, maxDimensionValue); err != nil {
			return err
		}
		if !utf8.ValidString(v) {
			return errInvalid("The value of dimension %s is no Unicode", key)
		}
	}
	return nil
}

// checkMetricText checks what describes a metric without being part of its identity.
func checkMetricText(group *string, metadata map[string]string) error {
	if group != nil {
		if err := checkPattern("resourceGroup", *group, metricName); err != nil {
			return err
		}
	}
	for key, v := range metadata {
		if err := checkSize("metadata key", key, 1, maxMetadata); err != nil {
			return err
		}
		if err := checkSize("metadata value", v, 0, maxMetadata); err != nil {
			return err
		}
	}
	return nil
}

// checkDatapoints takes points of less than two hours ago and less than ten minutes ahead. The clock is that of
// clients, which Advance does not move.
func (c *call) checkDatapoints(points []monitoring.Datapoint) error {
	if len(points) == 0 {
		return errInvalid("At least one data point is required")
	}
	for _, p := range points {
		if age := time.Since(p.Timestamp.Time); age >= metricPast || -age >= metricFuture {
			return errInvalid("The timestamp %s is not within the last 2 hours and the next 10 minutes", p.Timestamp.UTC().Format(time.RFC3339))
		}
		if p.Count != nil && *p.Count < 1 {
			return errInvalid("count must be greater than zero")
		}
	}
	return nil
}
