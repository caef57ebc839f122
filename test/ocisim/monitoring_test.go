// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package ocisim_test

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"maps"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/oracle/oci-go-sdk/v65/common"
	"github.com/oracle/oci-go-sdk/v65/monitoring"

	"github.com/oracle/oci-cloud-controller-manager/test/ocisim"
	"github.com/oracle/oci-cloud-controller-manager/test/pki"
)

// telemetry is a fixture with an SDK client of Monitoring at the host of PostMetricData.
type telemetry struct {
	*fixture
	monitoring.MonitoringClient
}

func onTelemetry(t *testing.T, options ocisim.Options, test func(*testing.T, *telemetry)) {
	t.Helper()
	pki.SigningKey()
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, options)
		c := try(monitoring.NewMonitoringClientWithConfigurationProvider(sdkProvider(f.region))).must(t)
		c.HTTPClient, c.Configuration.CircuitBreaker = &http.Client{Transport: f.region.Transport()}, nil
		c.Host = strings.Replace(c.Host, "telemetry", "telemetry-ingestion", 1)
		test(t, &telemetry{f, c})
	})
}

func (f *telemetry) metric(name string) monitoring.MetricDataDetails {
	return monitoring.MetricDataDetails{
		Namespace: common.String("cloud_controller"), CompartmentId: &f.compartment, Name: &name,
		Dimensions: map[string]string{"operation": "create"},
		Datapoints: []monitoring.Datapoint{{Timestamp: &common.SDKTime{Time: time.Now()}, Value: common.Float64(1.5)}},
	}
}

func (f *telemetry) post(atomicity monitoring.PostMetricDataDetailsBatchAtomicityEnum, metrics ...monitoring.MetricDataDetails) (monitoring.PostMetricDataResponse, error) {
	return f.PostMetricData(f.t.Context(), monitoring.PostMetricDataRequest{
		PostMetricDataDetails: monitoring.PostMetricDataDetails{MetricData: metrics, BatchAtomicity: atomicity},
	})
}

func TestPostMetricData(t *testing.T) {
	onTelemetry(t, ocisim.Options{Signatures: true}, func(t *testing.T, f *telemetry) {
		r := try(f.post("", f.metric("lb.latency"), f.metric("lb.errors"))).must(t)
		if *r.FailedMetricsCount != 0 || len(r.FailedMetrics) != 0 {
			t.Errorf("failed %v", r.FailedMetrics)
		}
		got := f.region.Metrics()
		if len(got) != 2 || *got[1].Name != "lb.errors" || *got[0].Datapoints[0].Value != 1.5 || got[0].Principal != "ocid1.user.oc1..u" ||
			!got[0].Time.Equal(f.region.Now()) {
			t.Errorf("metrics %v", got)
		}
		got[0].Dimensions["operation"] = "changed by the test"
		if f.region.Metrics()[0].Dimensions["operation"] != "create" {
			t.Error("the inspector hands out what is stored")
		}

		c := f.MonitoringClient
		c.Host = strings.Replace(c.Host, "telemetry-ingestion", "telemetry", 1)
		f.MonitoringClient = c
		_, err := f.post("", f.metric("lb.latency"))
		refused(t, err, 404, "NotFound")
		restore := f.region.Deny(ocisim.Policy{Verb: ocisim.Use, ResourceType: "metrics"})
		c.Host = strings.Replace(c.Host, "telemetry", "telemetry-ingestion", 1)
		f.MonitoringClient = c
		_, err = f.post("", f.metric("lb.latency"))
		refused(t, err, 404, "NotAuthorizedOrNotFound")
		restore()
	})
}

func TestMetricChecks(t *testing.T) {
	type metric = monitoring.MetricDataDetails
	at := func(d time.Duration) func(*metric) {
		return func(m *metric) { m.Datapoints[0].Timestamp = &common.SDKTime{Time: time.Now().Add(d)} }
	}
	many := map[string]string{}
	for i := range 21 {
		many["d"+strconv.Itoa(i)] = "v"
	}
	onTelemetry(t, ocisim.Options{}, func(t *testing.T, f *telemetry) {
		for name, change := range map[string]func(*metric){
			"reserved namespace": func(m *metric) { m.Namespace = common.String("oci_lbaas") },
			"namespace":          func(m *metric) { m.Namespace = common.String("cloud-controller") },
			"name":               func(m *metric) { m.Name = common.String("1st") },
			"no dimension":       func(m *metric) { m.Dimensions = map[string]string{} },
			"21 dimensions":      func(m *metric) { m.Dimensions = many },
			"dimension key":      func(m *metric) { m.Dimensions = map[string]string{"a b": "c"} },
			"long key":           func(m *metric) { m.Dimensions = map[string]string{strings.Repeat("k", 257): "c"} },
			"empty value":        func(m *metric) { m.Dimensions = map[string]string{"a": ""} },
			"long value":         func(m *metric) { m.Dimensions = map[string]string{"a": strings.Repeat("v", 513)} },
			"no data point":      func(m *metric) { m.Datapoints = []monitoring.Datapoint{} },
			"old":                at(-2 * time.Hour),
			"early":              at(10 * time.Minute),
			"count":              func(m *metric) { m.Datapoints[0].Count = common.Int(0) },
			"resource group":     func(m *metric) { m.ResourceGroup = common.String("-") },
			"metadata":           func(m *metric) { m.Metadata = map[string]string{"unit": strings.Repeat("u", 257)} },
		} {
			bad, good := f.metric("bad"), f.metric("good")
			change(&bad)
			t.Log(name)
			_, err := f.post("", bad)
			refused(t, err, 400, "InvalidParameter")
			_, err = f.post(monitoring.PostMetricDataDetailsBatchAtomicityAtomic, good, bad)
			refused(t, err, 400, "InvalidParameter")
			before := len(f.region.Metrics())
			r := try(f.post("", bad, good)).must(t)
			if *r.FailedMetricsCount != 1 || len(r.FailedMetrics) != 1 || *r.FailedMetrics[0].Message == "" ||
				!maps.Equal(r.FailedMetrics[0].MetricData.Dimensions, bad.Dimensions) {
				t.Errorf("%s: failed %v", name, r.FailedMetrics)
			}
			if n := len(f.region.Metrics()); n != before+1 {
				t.Errorf("%s: %d metrics, had %d", name, n, before)
			}
		}
		for name, change := range map[string]func(*metric){
			"just in time": at(-2*time.Hour + time.Second), "just not too early": at(10*time.Minute - time.Second),
			"20 dimensions": func(m *metric) { delete(many, "d0"); m.Dimensions = many },
		} {
			good := f.metric("good")
			change(&good)
			if _, err := f.post("", good); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		elsewhere := f.metric("elsewhere")
		elsewhere.CompartmentId = common.String("none")
		_, err := f.post("", elsewhere)
		refused(t, err, 404, "NotAuthorizedOrNotFound")
	})
}

func TestMetricBatches(t *testing.T) {
	onTelemetry(t, ocisim.Options{LogSize: 60}, func(t *testing.T, f *telemetry) {
		var batch []monitoring.MetricDataDetails
		for i := range 50 {
			batch = append(batch, f.metric("m"+strconv.Itoa(i)))
		}
		try(f.post("", batch...)).must(t)
		_, err := f.post("", append(batch, f.metric("one-too-many"))...)
		refused(t, err, 400, "InvalidParameter")
		_, err = f.post("", []monitoring.MetricDataDetails{}...)
		refused(t, err, 400, "InvalidParameter")
		try(f.post("", batch...)).must(t)
		got := f.region.Metrics()
		if len(got) != 60 || *got[59].Name != "m49" || *got[0].Name != "m40" {
			t.Errorf("%d metrics from %s", len(got), *got[0].Name)
		}
	})
}

// TestMetricEncoding posts a compressed body, as the SDK lets its callers do by themselves.
func TestMetricEncoding(t *testing.T) {
	onTelemetry(t, ocisim.Options{}, func(t *testing.T, f *telemetry) {
		raw, err := json.Marshal(monitoring.PostMetricDataDetails{MetricData: []monitoring.MetricDataDetails{f.metric("packed")}})
		noError(t, err)
		var packed bytes.Buffer
		w := gzip.NewWriter(&packed)
		_, err = w.Write(raw)
		noError(t, err)
		noError(t, w.Close())
		c := f.client
		c.do(http.MethodPost, "/20180401/metrics", packed.String(), "Content-Encoding", "gzip").want(http.StatusOK)
		if got := f.region.Metrics(); len(got) != 1 || *got[0].Name != "packed" {
			t.Errorf("metrics %v", got)
		}
		c.do(http.MethodPost, "/20180401/metrics", string(raw), "Content-Encoding", "gzip").wantError(400, "CannotParseRequest")
		c.do(http.MethodPost, "/20180401/metrics", string(raw), "Content-Encoding", "br").wantError(400, "InvalidParameter")
	})
}
