// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

// Command oci-csi-node-driver is the part of the CSI driver that runs on every node: it connects the disks of volumes, formats
// them, and mounts them for pods. It calls the Kubernetes API for the node's own objects, and the cloud not at all.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	_ "k8s.io/component-base/metrics/prometheus/clientgo" // metrics of client-go
	_ "k8s.io/component-base/metrics/prometheus/version"  // the metric with the version
	"k8s.io/klog/v2"

	"github.com/oracle/oci-cloud-controller-manager/pkg/version"
)

const programName = "oci-csi-node-driver"

func main() { os.Exit(run(os.Args[1:])) }

func run(args []string) int {
	defer klog.Flush()
	o, err := parse(args, os.Stdout)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return 0
	case err != nil:
		fmt.Fprintf(os.Stderr, "%s: %v\n", programName, err)
		return 2
	case o.version:
		fmt.Println(programName + " " + version.Get().String())
		return 0
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	if err := o.serve(ctx, environment{lookup: os.LookupEnv, all: os.Environ()}); err != nil {
		klog.ErrorS(err, "Could not serve")
		return 1
	}
	return 0
}
