// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/oracle/oci-cloud-controller-manager/test/cluster/process"
	"github.com/oracle/oci-cloud-controller-manager/test/ocisim"
	"github.com/oracle/oci-cloud-controller-manager/test/testbed"
)

const (
	startBudget = 2 * time.Second
	startLimit  = 5 * time.Minute // of the whole row
	startLook   = 10 * time.Millisecond
	// startTries is how often each binary starts. The fastest one counts: the others tell what else the machine did.
	startTries = 3
)

// starter is a binary and its first useful work.
type starter struct {
	binary, work string
	run          func(context.Context, *testbed.Bed) (p *process.Process, began time.Time, err error)
	useful       func(context.Context, *testbed.Bed) error
}

func starters() []starter {
	return []starter{
		{
			"oci-cloud-controller-manager", "a node is initialised",
			func(ctx context.Context, b *testbed.Bed) (*process.Process, time.Time, error) {
				if _, err := testbed.Binary(ctx, "oci-cloud-controller-manager"); err != nil { // built, if need be
					return nil, time.Time{}, err
				}
				began := time.Now()
				ccm, err := b.StartCCM(ctx)
				if err != nil {
					return nil, began, err
				}
				return ccm.Process, began, nil
			},
			func(ctx context.Context, b *testbed.Bed) error { return b.NodesInitialized(ctx) },
		},
		{
			"oci-csi-controller-driver", "volumes are listed",
			func(ctx context.Context, b *testbed.Bed) (*process.Process, time.Time, error) {
				return startDriver(ctx, b, "oci-csi-controller-driver", controllerAccount, "--cloud-config="+b.ConfigPath())
			},
			func(ctx context.Context, b *testbed.Bed) error {
				return called(ctx, b, "oci-csi-controller-driver", func(ctx context.Context, conn *grpc.ClientConn) error {
					_, err := csi.NewControllerClient(conn).ListVolumes(ctx, &csi.ListVolumesRequest{})
					return err
				})
			},
		},
		{
			"oci-csi-node-driver", "the node's topology is told",
			func(ctx context.Context, b *testbed.Bed) (*process.Process, time.Time, error) {
				return startDriver(ctx, b, "oci-csi-node-driver", nodeAccount, "--nodeid="+testbed.NodeName(0), "--host-root=/")
			},
			func(ctx context.Context, b *testbed.Bed) error {
				return called(ctx, b, "oci-csi-node-driver", func(ctx context.Context, conn *grpc.ClientConn) error {
					_, err := csi.NewNodeClient(conn).NodeGetInfo(ctx, &csi.NodeGetInfoRequest{})
					return err
				})
			},
		},
	}
}

// measureStarts starts each binary against an API server that answers.
func measureStarts(ctx context.Context) (string, bool, error) {
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	fastest := map[string]time.Duration{}
	for range startTries {
		if err := startEach(ctx, fastest); err != nil {
			return "", false, err
		}
	}
	var figures []string
	kept := true
	for _, s := range starters() {
		took := fastest[s.binary]
		figures = append(figures, fmt.Sprintf("%s %.2f s until %s", s.binary, took.Seconds(), s.work))
		kept = kept && took < startBudget
	}
	return strings.Join(figures, ", "), kept, nil
}

// startEach starts each binary once, in a cluster that has seen none of them.
func startEach(ctx context.Context, fastest map[string]time.Duration) (err error) {
	bed, err := testbed.Start(ctx, testbed.Options{
		Region: ocisim.Options{Seed: 1, Durations: testbed.QuickDurations()}, Progress: os.Stderr,
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, bed.Stop()) }()
	if err := bed.Cluster.Apply(ctx, driverAccess); err != nil {
		return err
	}
	for _, s := range starters() {
		took, err := s.measure(ctx, bed)
		if err != nil {
			return fmt.Errorf("%s: %w\n%s", s.binary, err, bed.Cluster.LogTails(10))
		}
		if before, known := fastest[s.binary]; !known || took < before {
			fastest[s.binary] = took
		}
	}
	return nil
}

func (s *starter) measure(ctx context.Context, bed *testbed.Bed) (time.Duration, error) {
	p, began, err := s.run(ctx, bed)
	if err != nil {
		return 0, err
	}
	defer p.Kill()
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	err = s.useful(ctx, bed)
	return time.Since(began), err
}

// Where the drivers' rights are, and who has them.
const (
	driverAccess      = "manifests/container-storage-interface/oci-csi-node-rbac.yaml"
	driverNamespace   = "kube-system"
	controllerAccount = "csi-oci-controller-sa"
	nodeAccount       = "csi-oci-node-sa"
)

func socket(b *testbed.Bed, binary string) string {
	return "unix://" + filepath.Join(b.Cluster.Dir(), binary+".sock")
}

func startDriver(ctx context.Context, b *testbed.Bed, name, account string, flags ...string) (p *process.Process, began time.Time, err error) {
	path, err := testbed.Binary(ctx, name)
	if err != nil {
		return nil, began, err
	}
	kubeconfig, err := b.Cluster.ServiceAccountKubeconfig(ctx, driverNamespace, account)
	if err != nil {
		return nil, began, err
	}
	began = time.Now()
	p, err = b.Cluster.StartProcess(process.Spec{
		Name: name, Path: path, Env: b.Env(), Args: append([]string{"--endpoint=" + socket(b, name), "--kubeconfig=" + kubeconfig}, flags...),
	})
	return p, began, err
}

// called repeats a call until it succeeds.
func called(ctx context.Context, b *testbed.Bed, name string, call func(context.Context, *grpc.ClientConn) error) error {
	for {
		err := onceCalled(ctx, socket(b, name), call)
		if err == nil {
			return nil
		}
		if pauseErr := pause(ctx, startLook); pauseErr != nil {
			return fmt.Errorf("%w (last: %w)", pauseErr, err)
		}
	}
}

// onceCalled connects anew: a connection that failed waits longer each time.
func onceCalled(ctx context.Context, at string, call func(context.Context, *grpc.ClientConn) error) error {
	conn, err := grpc.NewClient(at, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	ready, err := csi.NewIdentityClient(conn).Probe(ctx, &csi.ProbeRequest{})
	switch {
	case err != nil:
		return err
	case ready.GetReady() != nil && !ready.GetReady().GetValue():
		return errors.New("it is not ready")
	}
	return call(ctx, conn)
}
