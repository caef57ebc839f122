// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"time"
)

// profilePort is where a profiled cloud-controller-manager serves; one runs at a time.
const profilePort = 21258

// profileFlags let everybody on this machine read profiles.
func profileFlags() []string {
	return []string{
		fmt.Sprintf("--secure-port=%d", profilePort), "--bind-address=127.0.0.1", "--profiling=true",
		"--authentication-skip-lookup=true", "--authorization-always-allow-paths=/debug/pprof/*",
	}
}

// profileCPU writes a CPU profile of a pass and a half, if profiles are asked for. The channel tells when it is there.
func (c *crowd) profileCPU(ctx context.Context) <-chan error {
	done := make(chan error, 1)
	if c.profiles == "" {
		done <- nil
		return done
	}
	go func() {
		seconds := int((passPeriod * 3 / 2).Seconds())
		done <- c.profile(ctx, "cpu", fmt.Sprintf("profile?seconds=%d", seconds), time.Duration(seconds)*time.Second)
	}()
	return done
}

// profileHeap writes a profile of the memory in use, if profiles are asked for.
func (c *crowd) profileHeap(ctx context.Context) error {
	if c.profiles == "" {
		return nil
	}
	return errors.Join(c.profile(ctx, "heap", "heap", 0), c.profile(ctx, "goroutines", "goroutine?debug=1", 0))
}

func (c *crowd) profile(ctx context.Context, kind, path string, takes time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, takes+time.Minute)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, fmt.Sprintf("https://127.0.0.1:%d/debug/pprof/%s", profilePort, path), http.NoBody)
	if err != nil {
		return err
	}
	transport := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}} // its certificate is made at its start
	defer transport.CloseIdleConnections()
	res, err := (&http.Client{Transport: transport}).Do(req)
	if err != nil {
		return fmt.Errorf("%s profile: %w", kind, err)
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return fmt.Errorf("%s profile: %s", kind, res.Status)
	}
	if err := os.MkdirAll(c.profiles, 0o755); err != nil {
		return err
	}
	text, err := io.ReadAll(res.Body)
	if err != nil {
		return fmt.Errorf("%s profile: %w", kind, err)
	}
	return os.WriteFile(filepath.Join(c.profiles, fmt.Sprintf("%d-nodes.%s", c.nodes, kind)), text, 0o644)
}
