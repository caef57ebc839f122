// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"os"
	"testing"
	"time"
)

// Option changes the Options of Start.
type Option func(*Options)

// WithControllerManager adds kube-controller-manager.
func WithControllerManager() Option {
	return func(o *Options) { o.ControllerManager = true }
}

// WithScheduler adds kube-scheduler.
func WithScheduler() Option {
	return func(o *Options) { o.Scheduler = true }
}

// WithNodeMonitorGracePeriod adds kube-controller-manager and sets how long a node
// may be silent before it counts as not ready.
func WithNodeMonitorGracePeriod(grace time.Duration) Option {
	return func(o *Options) { o.ControllerManager, o.NodeMonitorGracePeriod = true, grace }
}

// WithAPIServerFlags adds flags of kube-apiserver; they win over ours.
func WithAPIServerFlags(flags ...string) Option {
	return func(o *Options) { o.APIServerFlags = append(o.APIServerFlags, flags...) }
}

// WithControllerManagerFlags adds kube-controller-manager with these flags; they
// win over ours.
func WithControllerManagerFlags(flags ...string) Option {
	return func(o *Options) {
		o.ControllerManager = true
		o.ControllerManagerFlags = append(o.ControllerManagerFlags, flags...)
	}
}

// Start runs a cluster for the duration of a test. A component that dies fails the
// test, and a failed test prints the ends of all logs.
func Start(t testing.TB, options ...Option) *Cluster {
	t.Helper()
	o := Options{Progress: os.Stderr}
	for _, option := range options {
		option(&o)
	}
	c, err := Run(t.Context(), o)
	if err != nil {
		t.Fatalf("start a cluster: %v", err)
	}
	t.Cleanup(func() {
		if err := c.Err(); err != nil {
			t.Errorf("cluster: %v", err)
		}
		if t.Failed() {
			t.Logf("logs of the cluster:\n%s", c.LogTails(40))
		}
		if err := c.Stop(); err != nil {
			t.Errorf("stop the cluster: %v", err)
		}
	})
	return c
}
