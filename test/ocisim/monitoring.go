// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package ocisim

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/oracle/oci-go-sdk/v65/common"
	"github.com/oracle/oci-go-sdk/v65/monitoring"
)

// ServiceMonitoring is the name of the Monitoring service.
const ServiceMonitoring = "monitoring"

// Metric is a metric object that somebody posted: one metric stream with its data points.
type Metric struct {
	Time      time.Time `json:"time"` // of the call
	Principal string    `json:"principal,omitempty"`

	monitoring.MetricDataDetails
}

// Metrics returns what was posted and accepted, in order; the oldest are forgotten beyond Options.LogSize.
func (r *Region) Metrics() []Metric {
	cl := r.lock()
	defer r.mu.Unlock()
	list := make([]Metric, 0, len(cl.metrics))
	for i := range cl.metrics {
		list = append(list, *cloneOf(&cl.metrics[i]))
	}
	return list
}

// What is not established about Monitoring.
const (
	MetricHost     Situation = "metric data posted to the host of the other operations"
	MetricEncoding Situation = "metric data in an encoding that is not gzip"
)

func monitoringRulings() map[Situation]Ruling {
	return map[Situation]Ruling{
		MetricHost: {
			Status: http.StatusNotFound, Code: "NotFound",
			Message: "PostMetricData is not available at %s: the host starts with telemetry-ingestion.",
			Reason:  "the documentation names the hosts; the answer of the wrong one was not seen",
		},
		MetricEncoding: {
			Status: http.StatusBadRequest, Code: "InvalidParameter", Message: "The content encoding %s is not valid.",
			Reason: "validation of a parameter",
		},
	}
}

func monitoringService() service {
	return service{operations: []Operation{{
		Service: ServiceMonitoring, Name: "PostMetricData", Method: http.MethodPost, Path: "/20180401/metrics",
		Verb: Use, Resource: "metrics", handle: postMetricData,
	}}}
}

func postMetricData(c *call) (*answer, error) {
	if strings.HasPrefix(c.host, "telemetry.") {
		if err := c.rule(MetricHost, c.host); err != nil {
			return nil, err
		}
	}
	if err := c.inflate(); err != nil {
		return nil, err
	}
	d, err := decode[monitoring.PostMetricDataDetails](c)
	if err != nil {
		return nil, err
	}
	if n := len(d.MetricData); n < 1 || n > maxMetricStreams {
		return nil, errInvalid("metricData size must be between 1 and %d", maxMetricStreams)
	}
	for _, m := range d.MetricData {
		if err := c.createIn(value(m.CompartmentId)); err != nil {
			return nil, err
		}
	}
	var good []monitoring.MetricDataDetails
	failed := []monitoring.FailedMetricRecord{}
	for i, m := range d.MetricData {
		if problem := c.metricProblem(m); problem != "" {
			failed = append(failed, monitoring.FailedMetricRecord{Message: common.String(problem), MetricData: &d.MetricData[i]})
		} else {
			good = append(good, m)
		}
	}
	atomic := d.BatchAtomicity == monitoring.PostMetricDataDetailsBatchAtomicityAtomic
	if len(failed) > 0 && (atomic || len(good) == 0) {
		return nil, errInvalid("%s", *failed[0].Message)
	}
	for _, m := range good {
		c.metrics = append(c.metrics, Metric{c.now, c.principal.ID, m})
	}
	if excess := len(c.metrics) - c.options.LogSize; excess > 0 {
		c.metrics = slices.Delete(c.metrics, 0, excess)
	}
	return c.send(http.StatusOK, monitoring.PostMetricDataResponseDetails{
		FailedMetricsCount: common.Int(len(failed)), FailedMetrics: failed,
	}), nil
}

// maxMetricBody bounds what a compressed body may become, in bytes.
const maxMetricBody = 16 << 20

// inflate unpacks a body that was sent compressed.
func (c *call) inflate() error {
	encoding := c.header.Get("Content-Encoding")
	switch encoding {
	case "", "identity":
		return nil
	case "gzip":
	default:
		return c.rule(MetricEncoding, encoding)
	}
	malformed := &APIError{Status: http.StatusBadRequest, Code: "CannotParseRequest", Message: messageParse}
	reader, err := gzip.NewReader(bytes.NewReader(c.body))
	if err != nil {
		return malformed
	}
	body, err := io.ReadAll(io.LimitReader(reader, maxMetricBody+1))
	if err != nil || len(body) > maxMetricBody {
		return malformed
	}
	c.body = body
	return nil
}

// metricProblem says what is wrong with a metric object, or "".
func (c *call) metricProblem(m monitoring.MetricDataDetails) string {
	for _, check := range []func() error{
		func() error { return checkNamespace(value(m.Namespace)) },
		func() error { return checkPattern("name", value(m.Name), metricName) },
		func() error { return checkDimensions(m.Dimensions) },
		func() error { return checkMetricText(m.ResourceGroup, m.Metadata) },
		func() error { return c.checkDatapoints(m.Datapoints) },
	} {
		if err := check(); err != nil {
			return fmt.Sprintf("%s: %s", value(m.Name), asRefusal(err).Message)
		}
	}
	return ""
}
