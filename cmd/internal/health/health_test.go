// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package health

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
)

func TestHandler(t *testing.T) {
	var ready atomic.Bool
	server := httptest.NewServer(handler(ready.Load))
	defer server.Close()
	get := func(path string) (int, string) {
		t.Helper()
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		response, err := server.Client().Do(request)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = response.Body.Close() }()
		body, err := io.ReadAll(response.Body)
		if err != nil {
			t.Fatal(err)
		}
		return response.StatusCode, string(body)
	}
	if code, _ := get("/healthz"); code != http.StatusOK {
		t.Errorf("/healthz before it is ready: %d", code)
	}
	if code, _ := get("/readyz"); code != http.StatusServiceUnavailable {
		t.Errorf("/readyz before it is ready: %d", code)
	}
	ready.Store(true)
	if code, _ := get("/readyz"); code != http.StatusOK {
		t.Errorf("/readyz: %d", code)
	}
	if code, body := get("/metrics"); code != http.StatusOK || !strings.Contains(body, "go_goroutines") {
		t.Errorf("/metrics: %d", code)
	}
}

func TestServe(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	always := func() bool { return true }
	if err := Serve(ctx, "127.0.0.1:0", always); err != nil {
		t.Errorf("the end of the program: %v", err)
	}
	if err := Serve(t.Context(), "", always); err != nil {
		t.Errorf("no address: %v", err)
	}
	if err := Serve(t.Context(), "nonsense", always); err == nil {
		t.Error("an address that is none was served")
	}
}
