// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

// Package testbed puts a simulated OCI region, a real control plane, simulated nodes and the real
// cloud-controller-manager together, as a user would run them: the binary is a process of its own, acts as the
// ServiceAccount of the shipped manifests, and reaches the region over TLS with environment variables alone.
//
//	bed := testbed.New(t, testbed.Options{})
//	ccm := bed.StartCCM(t.Context())
package testbed

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/oracle/oci-cloud-controller-manager/test/cluster"
	"github.com/oracle/oci-cloud-controller-manager/test/cluster/nodes"
	"github.com/oracle/oci-cloud-controller-manager/test/cluster/process"
	"github.com/oracle/oci-cloud-controller-manager/test/ocisim"
	"github.com/oracle/oci-cloud-controller-manager/test/ocisim/server"
)

// Manifests of the repository, relative to its root, and the ServiceAccount they define.
const (
	ShippedRBAC = "manifests/cloud-controller-manager/oci-cloud-controller-manager-rbac.yaml"
	OldRBAC     = "test/fixtures/v1.35/rbac.yaml"

	namespace      = "kube-system"
	serviceAccount = "cloud-controller-manager"
)

// Options of a bed. The zero value is the demo world with three nodes that know their providerID.
type Options struct {
	Region ocisim.Options // signatures are always verified
	World  ocisim.World   // empty: DemoWorld

	Cluster cluster.Options
	RBAC    string // manifest with the ServiceAccount and its role; default ShippedRBAC

	Nodes nodes.Options // Count 0: one for each instance of the demo world; below 0: none, but Bed.Nodes.Add makes some

	// Config makes the cloud-provider.yaml; nil is a user principal in the demo world.
	Config func(*Bed) string
	// ConfigChange is appended to the default config.
	ConfigChange string

	BinDir   string    // directory of built binaries; default $OCI_CCM_BIN, else they are built
	Progress io.Writer // nil is standard error
}

// Bed is everything that runs but the cloud-controller-manager itself.
type Bed struct {
	Region  *ocisim.Region
	Server  *server.Server
	Cluster *cluster.Cluster
	Nodes   *nodes.Fleet
	World   ocisim.World
	User    *server.User

	options    Options
	kubeconfig string // of the ServiceAccount
	configPath string
	started    int // cloud-controller-managers so far
}

// New starts a bed for the duration of a test.
func New(t testing.TB, options Options) *Bed {
	t.Helper()
	bed, err := Start(t.Context(), options)
	if err != nil {
		t.Fatalf("start the test bed: %v", err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("last calls to the region:\n%s", bed.CallLog(60))
			t.Logf("logs:\n%s", bed.Cluster.LogTails(60))
			if os.Getenv("KEEP") != "" {
				t.Logf("kept: %s", bed.keep())
			}
		}
		if err := bed.Stop(); err != nil {
			t.Errorf("stop the test bed: %v", err)
		}
	})
	return bed
}

// Start starts a bed. The context bounds the start and, for the simulated region, the whole life.
func Start(ctx context.Context, options Options) (*Bed, error) {
	if options.RBAC == "" {
		options.RBAC = ShippedRBAC
	}
	if len(options.World.Compartments) == 0 { // the zero World
		options.World = DemoWorld()
	}
	if options.Progress == nil {
		options.Progress = os.Stderr
	}
	options.Region.Signatures = true
	options.Cluster.Progress = options.Progress
	bed := &Bed{options: options, World: options.World}
	if err := bed.start(context.WithoutCancel(ctx), ctx); err != nil {
		return nil, errors.Join(err, bed.Stop())
	}
	return bed, nil
}

func (b *Bed) start(life, ctx context.Context) error {
	b.Region = ocisim.New(b.options.Region)
	if err := b.Region.Seed(b.options.World); err != nil {
		return err
	}
	var err error
	if b.Server, err = server.Start(life, server.Options{Region: b.Region}); err != nil {
		return err
	}
	if b.User, err = b.Server.User("ccm"); err != nil {
		return err
	}
	if b.Cluster, err = cluster.Run(ctx, b.options.Cluster); err != nil {
		return err
	}
	root, err := repositoryRoot()
	if err != nil {
		return err
	}
	if err := b.Cluster.Apply(ctx, filepath.Join(root, b.options.RBAC)); err != nil {
		return err
	}
	if b.kubeconfig, err = b.Cluster.ServiceAccountKubeconfig(ctx, namespace, serviceAccount); err != nil {
		return err
	}
	if err := b.WriteConfig(b.config()); err != nil {
		return err
	}
	return b.startNodes(ctx)
}

func (b *Bed) startNodes(ctx context.Context) error {
	o := b.options.Nodes
	switch {
	case o.Count == 0:
		o = DemoNodes(b.World, true)
	case o.Count < 0:
		o.Count = 0
	}
	var err error
	b.Nodes, err = b.Cluster.SimulateNodes(ctx, o)
	return err
}

// config is the text of the cloud-provider.yaml.
func (b *Bed) config() string {
	if b.options.Config != nil {
		return b.options.Config(b)
	}
	return UserConfig(b) + b.options.ConfigChange
}

// WriteConfig replaces the cloud-provider.yaml for the next StartCCM.
func (b *Bed) WriteConfig(text string) error {
	b.configPath = filepath.Join(b.Cluster.Dir(), "cloud-provider.yaml")
	return os.WriteFile(b.configPath, []byte(text), 0o600)
}

// ConfigPath is the path of the cloud-provider.yaml.
func (b *Bed) ConfigPath() string { return b.configPath }

// Stop ends everything and removes what is on disk.
func (b *Bed) Stop() error {
	var err error
	if b.Cluster != nil {
		err = b.Cluster.Stop()
	}
	if b.Server != nil {
		b.Server.Close()
	}
	return err
}

// CCM is a running cloud-controller-manager.
type CCM struct {
	*process.Process

	Log string // path of its log
}

// StartCCM starts our binary with the bed's config as the ServiceAccount of the manifests. Flags come after the bed's
// own, so that they win.
func (b *Bed) StartCCM(ctx context.Context, flags ...string) (*CCM, error) {
	bin, err := binary(ctx, b.options.BinDir, "oci-cloud-controller-manager")
	if err != nil {
		return nil, err
	}
	b.started++
	name := fmt.Sprintf("ccm-%d", b.started)
	args := append([]string{
		"--kubeconfig=" + b.kubeconfig, "--cloud-config=" + b.configPath, "--leader-elect=false", "--secure-port=0", "-v=4",
	}, flags...)
	p, err := b.Cluster.StartProcess(process.Spec{Name: name, Path: bin, Args: args, Env: b.Env()})
	if err != nil {
		return nil, err
	}
	return &CCM{Process: p, Log: filepath.Join(b.Cluster.Dir(), "logs", name+".log")}, nil
}

// Env is the environment in which our binaries run: that of the region's server, nothing of ours.
func (b *Bed) Env() []string {
	return append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + b.Cluster.Dir()}, b.Server.Env()...)
}

// keep moves the directory of the run out of the way of its removal.
func (b *Bed) keep() string {
	to := filepath.Join(os.TempDir(), fmt.Sprintf("oci-ccm-kept-%d", time.Now().UnixNano()))
	if err := os.CopyFS(to, os.DirFS(b.Cluster.Dir())); err != nil {
		return err.Error()
	}
	return to
}
