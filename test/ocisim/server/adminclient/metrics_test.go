// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package adminclient_test

import (
	"net/http"
	"strings"
	"testing"
	"time"
)

func TestMetrics(t *testing.T) {
	f := start(t)
	body := `{"metricData": [{"namespace": "test", "compartmentId": "` + f.Region().Options().Tenancy + `", "name": "calls",
		"dimensions": {"node": "a"}, "datapoints": [{"timestamp": "` + time.Now().UTC().Format(time.RFC3339) + `", "value": 2.5}]}]}`
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, f.URL()+"/20180401/metrics", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	response, err := f.api.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	got, err := f.admin.Metrics(t.Context())
	if err != nil || response.StatusCode != http.StatusOK || len(got) != 1 {
		t.Fatalf("status %d, metrics %v: %v", response.StatusCode, got, err)
	}
	if m := got[0]; *m.Name != "calls" || *m.Datapoints[0].Value != 2.5 || m.Dimensions["node"] != "a" || m.Time.IsZero() {
		t.Errorf("metric %v", m)
	}
}
