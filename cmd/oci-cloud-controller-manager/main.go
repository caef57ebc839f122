// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

// Command oci-cloud-controller-manager connects a Kubernetes cluster with the Oracle cloud that it runs on: it initialises
// nodes, removes those whose instances are gone, and makes load balancers for Services.
package main

import (
	"context"
	"os"
	"runtime/debug"
	"time"

	genericserver "k8s.io/apiserver/pkg/server"
	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/logs/json/register"          // --logging-format=json
	_ "k8s.io/component-base/metrics/prometheus/clientgo" // metrics of client-go
	_ "k8s.io/component-base/metrics/prometheus/version"  // the metric with the version
	"k8s.io/klog/v2"
)

// shutdownTimeout bounds the end of the process after a signal. Kubernetes kills it after 30 s.
const shutdownTimeout = 15 * time.Second

// garbagePercent is how much garbage the heap may hold, in percent of what is in use. Go's default of 100 costs a cluster of
// thousands of nodes tens of MiB (docs/performance.md), and saves CPU time of which the process uses little.
const garbagePercent = 50

func main() { os.Exit(run()) }

func run() int {
	if _, set := os.LookupEnv("GOGC"); !set {
		debug.SetGCPercent(garbagePercent)
	}
	ctx := genericserver.SetupSignalContext() // the second signal ends the process at once
	p := &process{context: ctx}
	command, err := p.command()
	if err != nil {
		klog.ErrorS(err, "Could not set up the command line")
		return 1
	}
	code := cli.Run(command)
	p.shutdown()
	return code
}

// shutdown brings the work under way to an end, and lets the next process take over without waiting for the lease to end.
// The order matters: no two processes must work at the same time.
func (p *process) shutdown() {
	if p.provider == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(p.context), shutdownTimeout)
	defer cancel()
	p.provider.Shutdown(ctx)
	p.leadership.release(ctx)
	klog.Flush()
}
