// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

// Package cluster runs a real Kubernetes control plane for tests and demos: etcd,
// kube-apiserver with RBAC and an audit log, and on request kube-controller-manager,
// kube-scheduler and any number of simulated nodes (package nodes).
//
// The programs are built from the Go module proxy in the nested module tools and
// cached outside the work tree, so the first use on a machine takes minutes and
// every later one milliseconds. Nothing needs root: everything listens on loopback
// and lives in one temporary directory, and nothing outlives the program that
// started it, even if that is killed (package process). Linux only.
//
// A test writes
//
//	c := cluster.Start(t, cluster.WithControllerManager())
//	kubeconfig, err := c.ServiceAccountKubeconfig(ctx, "kube-system", "cloud-controller-manager")
//
// and a program calls [Run] and, at its end, [Cluster.Stop].
package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/oracle/oci-cloud-controller-manager/test/cluster/nodes"
	"github.com/oracle/oci-cloud-controller-manager/test/cluster/process"
)

// Options says what Run shall start. The zero value is etcd and kube-apiserver.
type Options struct {
	// ControllerManager and Scheduler add these components.
	ControllerManager bool
	Scheduler         bool
	// NodeMonitorGracePeriod is how long kube-controller-manager waits for a sign
	// of life before it marks a node as not ready; 0 leaves its default (50 s).
	// Simulated nodes with sparse heartbeats need a long one, tests of dead nodes
	// a short one.
	NodeMonitorGracePeriod time.Duration
	// APIServerFlags, ControllerManagerFlags and SchedulerFlags are appended to
	// the flags of the component, so that they win over ours.
	APIServerFlags         []string
	ControllerManagerFlags []string
	SchedulerFlags         []string

	// TempDir is where the cluster's directory is made; "" is the system's.
	TempDir string
	// CacheDir is where built programs are kept; "" is DefaultCacheDir.
	CacheDir string
	// Progress gets a line when something takes long; nil is standard error.
	Progress io.Writer
}

// startTimeout is far above the three to four seconds that a start takes on two
// idle cores; a busy machine needs the rest.
const startTimeout = 3 * time.Minute

// Cluster is a running control plane.
type Cluster struct {
	options  Options
	binaries string
	group    *process.Group
	port     *process.ReservedPort
	pki      *pki
	config   *rest.Config
	client   *kubernetes.Clientset
	http     *http.Client
	mapper   lazyMapper
	failed   chan struct{} // closed when a component ended by itself
	stop     sync.Once
	stopErr  error

	mu        sync.Mutex
	apiserver *process.Process
	fleets    []*nodes.Fleet
	failure   error
}

// Run builds what is missing, starts a cluster, and returns when it is ready to be
// used. The context bounds the start only; the cluster runs until Stop.
func Run(ctx context.Context, options Options) (*Cluster, error) {
	if options.Progress == nil {
		options.Progress = os.Stderr
	}
	binaries, err := BuildControlPlane(ctx, options.CacheDir, options.Progress)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, startTimeout, fmt.Errorf("control plane not ready after %s", startTimeout))
	defer cancel()

	c := &Cluster{options: options, binaries: binaries, failed: make(chan struct{})}
	if err := c.start(ctx); err != nil {
		return nil, errors.Join(err, c.Stop())
	}
	return c, nil
}

func (c *Cluster) start(ctx context.Context) error {
	var err error
	if c.group, err = process.NewGroup(c.options.TempDir, "oci-ccm-cluster-"); err != nil {
		return err
	}
	if c.port, err = process.ReservePort(); err != nil {
		return err
	}
	if err := c.startEtcd(); err != nil {
		return err
	}
	if c.pki, err = newPKI(c.path("pki")); err != nil {
		return err
	}
	if err := c.connect(); err != nil {
		return err
	}
	if err := c.StartAPIServer(ctx); err != nil {
		return err
	}
	if c.options.ControllerManager {
		if err := c.startControllerManager(); err != nil {
			return err
		}
	}
	if c.options.Scheduler {
		if err := c.startScheduler(); err != nil {
			return err
		}
	}
	return c.waitUsable(ctx)
}

// connect makes the administrator's configuration, clients and kubeconfig.
func (c *Cluster) connect() error {
	var err error
	if c.config, err = c.ConfigFor("kubernetes-admin", "system:masters"); err != nil {
		return err
	}
	if c.http, err = rest.HTTPClientFor(c.config); err != nil {
		return err
	}
	if c.client, err = kubernetes.NewForConfigAndClient(c.config, c.http); err != nil {
		return err
	}
	return clientcmd.WriteToFile(kubeconfig(c.config), c.KubeconfigPath())
}

// path is a path in the cluster's directory.
func (c *Cluster) path(elements ...string) string {
	return filepath.Join(append([]string{c.group.Dir()}, elements...)...)
}

// Stop ends everything the cluster consists of, including simulated nodes and the
// processes of StartProcess, and removes its directory. It may be called repeatedly.
func (c *Cluster) Stop() error {
	c.stop.Do(func() { c.stopErr = c.tearDown() })
	return c.stopErr
}

// tearDown copes with a cluster that did not get far.
func (c *Cluster) tearDown() error {
	c.mu.Lock()
	fleets := c.fleets
	c.mu.Unlock()
	for _, fleet := range fleets {
		fleet.Stop()
	}
	var err error
	if c.group != nil {
		err = c.group.Stop()
	}
	if c.http != nil {
		c.http.CloseIdleConnections()
	}
	if c.port != nil {
		err = errors.Join(err, c.port.Close())
	}
	return err
}

// Wait blocks until the context ends, and returns nil, or until a component of the
// control plane ends by itself, and returns why. A kube-apiserver that was stopped
// with StopAPIServer does not count.
func (c *Cluster) Wait(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return nil
	case <-c.failed:
		return c.Err()
	}
}

// Err tells which component of the control plane ended by itself, if any.
func (c *Cluster) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.failure
}

// watch notes when a component ends without having been asked to.
func (c *Cluster) watch(p *process.Process) {
	<-p.Done()
	if p.Asked() {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.failure != nil {
		return
	}
	cause := p.Err()
	if cause == nil {
		cause = errors.New("exit status 0")
	}
	c.failure = fmt.Errorf("%s ended by itself: %w\n%s", p.Name(), cause, p.LogTail(20))
	close(c.failed)
}

// StartProcess runs a program of the caller's, for example our own binary, under
// the same protection as the control plane: it ends with the cluster, and its log
// is in logs/NAME.log.
func (c *Cluster) StartProcess(spec process.Spec) (*process.Process, error) {
	return c.group.Start(spec)
}

// SimulateNodes starts nodes without machines. They end with the cluster.
func (c *Cluster) SimulateNodes(ctx context.Context, options nodes.Options) (*nodes.Fleet, error) {
	// One identity for all of them, known to the audit policy. It is in
	// system:masters because NodeRestriction ties a system:node: identity to one Node.
	config, err := c.ConfigFor(simulatedKubeletUser, "system:masters")
	if err != nil {
		return nil, err
	}
	config.ContentType = runtime.ContentTypeProtobuf // as kubelets do; thousands of them in JSON are a load
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	fleet, err := nodes.Start(ctx, client, options)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	c.fleets = append(c.fleets, fleet)
	c.mu.Unlock()
	return fleet, nil
}

// Dir is the cluster's directory. It is gone after Stop.
func (c *Cluster) Dir() string { return c.group.Dir() }

// URL is the address of the API server, for example https://127.0.0.1:40123.
func (c *Cluster) URL() string { return "https://" + c.port.Addr().String() }

// Client has the rights of a cluster administrator and no client-side rate limit.
func (c *Cluster) Client() kubernetes.Interface { return c.client }

// Config returns a copy of the administrator's configuration.
func (c *Cluster) Config() *rest.Config { return rest.CopyConfig(c.config) }

// ready asks the API server whether it is ready to serve.
func (c *Cluster) ready(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	return c.client.Discovery().RESTClient().Get().AbsPath("/readyz").Do(ctx).Error()
}

// poll calls probe every 50 ms until it succeeds, the context ends or a component
// of the control plane has died.
func (c *Cluster) poll(ctx context.Context, what string, probe func(context.Context) error) error {
	var last error
	err := wait.PollUntilContextCancel(ctx, 50*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		if failure := c.Err(); failure != nil {
			return false, failure
		}
		last = probe(ctx)
		return last == nil, nil
	})
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return fmt.Errorf("wait for %s: %w (last: %w)\n%s", what, context.Cause(ctx), last, c.LogTails(20))
	default:
		return fmt.Errorf("wait for %s: %w", what, err)
	}
}
