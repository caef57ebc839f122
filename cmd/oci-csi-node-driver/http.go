// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"k8s.io/component-base/metrics/legacyregistry"
)

const (
	headerTimeout = 10 * time.Second
	httpGrace     = 5 * time.Second
)

// serveHTTP serves health and metrics until ctx ends.
func serveHTTP(ctx context.Context, address string) error {
	mux := http.NewServeMux()
	mux.HandleFunc("/healthz", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("ok")) })
	mux.Handle("/metrics", legacyregistry.Handler())
	server := &http.Server{Addr: address, Handler: mux, ReadHeaderTimeout: headerTimeout}
	served := make(chan error, 1)
	go func() { served <- server.ListenAndServe() }()
	select {
	case err := <-served:
		return fmt.Errorf("--http-endpoint: %w", err)
	case <-ctx.Done():
	}
	end, cancel := context.WithTimeout(context.WithoutCancel(ctx), httpGrace)
	defer cancel()
	if err := server.Shutdown(end); err != nil && !errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("--http-endpoint: %w", err)
	}
	return nil
}
