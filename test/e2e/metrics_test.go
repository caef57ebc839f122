// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/oracle/oci-cloud-controller-manager/test/testbed"
)

// TestMetricsEndpoint: the counters of OCI calls are where operators look, beside those of the framework, and /healthz needs
// no credentials.
func TestMetricsEndpoint(t *testing.T) {
	port := freePort(t)
	l := newLab(t, testbed.Options{}).ready(fmt.Sprintf("--secure-port=%d", port), "--authorization-always-allow-paths=/healthz,/metrics")
	l.service("a", "lb", nil)
	l.served("a")
	client := &http.Client{Transport: &http.Transport{
		TLSClientConfig:   &tls.Config{InsecureSkipVerify: true}, //nolint:gosec // the certificate is made by the process itself
		DisableKeepAlives: true,
	}}
	get := func(path string) (int, string) {
		t.Helper()
		res, err := client.Get(fmt.Sprintf("https://127.0.0.1:%d%s", port, path))
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = res.Body.Close() }()
		body, err := io.ReadAll(res.Body)
		if err != nil {
			t.Fatal(err)
		}
		return res.StatusCode, string(body)
	}
	if status, body := get("/healthz"); status != http.StatusOK || body != "ok" {
		t.Errorf("healthz: %d %s", status, body)
	}
	_, text := get("/metrics")
	for _, want := range []string{
		`oci_requests_total{code="200",resource="load_balancer",verb="create"} 1`,
		`oci_client_requests_total{code="204",operation="CreateLoadBalancer",service="loadbalancer"} 1`,
		"oci_client_rate_limiter_duration_seconds_bucket",
		"workqueue_depth{name=\"service\"}",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %s in /metrics", want)
		}
	}
	if strings.Contains(text, l.User.OCID) {
		t.Error("the metrics name the user")
	}
}

func freePort(t *testing.T) int {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	return listener.Addr().(*net.TCPAddr).Port
}
