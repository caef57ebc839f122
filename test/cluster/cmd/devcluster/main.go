// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

// Command devcluster leaves a Kubernetes control plane running for development,
// with simulated nodes if asked, and cleans everything up on Ctrl-C. It needs no root.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/oracle/oci-cloud-controller-manager/test/cluster"
	"github.com/oracle/oci-cloud-controller-manager/test/cluster/nodes"
)

type arguments struct {
	controllerManager, scheduler bool
	nodes                        int
	build, node, sidecars        bool
	runtime                      bool
}

func main() { os.Exit(devcluster()) }

// devcluster returns the exit code.
func devcluster() int {
	var a arguments
	flag.BoolVar(&a.controllerManager, "controller-manager", true, "run kube-controller-manager")
	flag.BoolVar(&a.scheduler, "scheduler", true, "run kube-scheduler")
	flag.IntVar(&a.nodes, "nodes", 0, "number of simulated nodes, up to 5000")
	flag.BoolVar(&a.build, "build", false, "only build what is not built yet, then exit")
	flag.BoolVar(&a.node, "node", false, "build kubelet and kube-proxy too")
	flag.BoolVar(&a.runtime, "runtime", false, "build containerd, runc and CNI plugins too")
	flag.BoolVar(&a.sidecars, "sidecars", false, "build the CSI sidecars and csi-sanity too")
	flag.Parse()

	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, a); err != nil {
		fmt.Fprintln(os.Stderr, "devcluster:", err)
		return 1
	}
	return 0
}

func run(ctx context.Context, a arguments) error {
	if a.node {
		dir, err := cluster.BuildNode(ctx, "", os.Stderr)
		if err != nil {
			return err
		}
		fmt.Println("Node:        ", dir)
	}
	if a.runtime {
		dir, err := cluster.BuildRuntime(ctx, "", os.Stderr)
		if err != nil {
			return err
		}
		fmt.Println("Runtime:     ", dir)
	}
	if a.sidecars {
		dir, err := cluster.BuildSidecars(ctx, "", os.Stderr)
		if err != nil {
			return err
		}
		fmt.Println("CSI sidecars:", dir)
	}
	if a.build {
		dir, err := cluster.BuildControlPlane(ctx, "", os.Stderr)
		if err != nil {
			return err
		}
		fmt.Println("Kubernetes:  ", dir)
		return nil
	}
	return serve(ctx, a)
}

// serve runs the cluster until the context ends or a component dies.
func serve(ctx context.Context, a arguments) (err error) {
	started := time.Now()
	options := cluster.Options{ControllerManager: a.controllerManager, Scheduler: a.scheduler}
	fleet := nodes.Options{Count: a.nodes}
	if a.nodes > 200 {
		// Sparse heartbeats leave the machine to what is developed on it.
		fleet.RenewInterval = 2 * time.Minute
		options.NodeMonitorGracePeriod = 10 * time.Minute
	}
	c, err := cluster.Run(ctx, options)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.Stop()) }()
	if a.nodes > 0 {
		if _, err := c.SimulateNodes(ctx, fleet); err != nil {
			return err
		}
	}

	fmt.Printf(`The cluster is up at %s, started in %s.

  export KUBECONFIG=%s
  %s get nodes

Logs and the audit log are in %s.
Ctrl-C stops the cluster and removes everything.
`, c.URL(), time.Since(started).Round(100*time.Millisecond), c.KubeconfigPath(), c.KubectlPath(), c.Dir())
	return c.Wait(ctx)
}
