// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

// Package nodes simulates the kubelets of many machines that do not exist: Node
// objects that look as a kubelet started with --cloud-provider=external registers
// them, with leases and status heartbeats that can be stopped and resumed.
package nodes

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/util/workqueue"
)

// Options describe a fleet. Functions get the index of a node, from 0.
type Options struct {
	// Count of nodes; Fleet.Add makes more.
	Count int
	// Name of a node; nil names them node-0000, node-0001, …
	Name func(i int) string
	// ProviderID is what kubelet's --provider-id would say; nil or "" is none.
	ProviderID func(i int) string
	// NodeIP is what kubelet's --node-ip would say: one address, or an IPv4 and
	// an IPv6 address with a comma between them; nil or "" is none.
	NodeIP func(i int) string
	// Labels are added to those that every kubelet sets.
	Labels func(i int) map[string]string
	// Images is the number of container images that a node reports; kubelet names up to 50, most of what a Node weighs.
	Images int
	// Initialized leaves out the taint that asks for a cloud-controller-manager.
	Initialized bool

	// RenewInterval is the time between renewals of a lease; 0 is kubelet's 10 s.
	// A sparse one needs a long grace period in kube-controller-manager.
	RenewInterval time.Duration
	// StatusInterval is the time between status reports without news; 0 is
	// kubelet's 5 minutes.
	StatusInterval time.Duration
	// Workers bounds the requests in flight; 0 is 16.
	Workers int
}

func (o *Options) setDefaults() {
	if o.Name == nil {
		o.Name = func(i int) string { return fmt.Sprintf("node-%04d", i) }
	}
	none := func(int) string { return "" }
	if o.ProviderID == nil {
		o.ProviderID = none
	}
	if o.NodeIP == nil {
		o.NodeIP = none
	}
	if o.Labels == nil {
		o.Labels = func(int) map[string]string { return nil }
	}
	if o.RenewInterval == 0 {
		o.RenewInterval = 10 * time.Second
	}
	if o.StatusInterval == 0 {
		o.StatusInterval = 5 * time.Minute
	}
	if o.Workers == 0 {
		o.Workers = 16
	}
}

// ErrUnknownNode is returned for a name that the fleet does not have.
var ErrUnknownNode = errors.New("no such node in the fleet")

// Fleet is a set of simulated nodes. Its methods may be called concurrently.
type Fleet struct {
	options Options
	client  kubernetes.Interface
	queue   workqueue.TypedDelayingInterface[string] // nodes whose kubelet has something to do
	version string                                   // of Kubernetes
	cancel  context.CancelFunc
	workers sync.WaitGroup

	mu    sync.Mutex
	names []string
	nodes map[string]*node
}

// Start registers the nodes and keeps them alive until Stop. It returns when all
// are registered with their leases, or with the reason why one cannot be. The
// context bounds the registration only. The client must not have a rate limit that
// the fleet's heartbeats exceed: Count / RenewInterval requests per second.
func Start(ctx context.Context, client kubernetes.Interface, options Options) (*Fleet, error) {
	options.setDefaults()
	version, err := client.Discovery().ServerVersion()
	if err != nil {
		return nil, fmt.Errorf("ask for the version of Kubernetes: %w", err)
	}
	run, cancel := context.WithCancel(context.WithoutCancel(ctx))
	f := &Fleet{
		options: options,
		client:  client,
		queue:   workqueue.NewTypedDelayingQueue[string](),
		version: version.GitVersion,
		cancel:  cancel,
		nodes:   map[string]*node{},
	}
	for range options.Workers {
		f.workers.Go(func() { f.work(run) })
	}
	if err := f.Add(ctx, options.Count); err != nil {
		f.Stop()
		return nil, err
	}
	return f, nil
}

// Stop ends all heartbeats. The Node objects stay as they are.
func (f *Fleet) Stop() {
	f.cancel()
	f.queue.ShutDown()
	f.workers.Wait()
}

// Names of all nodes, in order of their index.
func (f *Fleet) Names() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.names)
}

// Add registers n more nodes and returns when they are registered.
func (f *Fleet) Add(ctx context.Context, n int) error {
	f.mu.Lock()
	added := make([]*node, 0, n)
	for range n {
		i := len(f.names)
		name := f.options.Name(i)
		if _, exists := f.nodes[name]; exists {
			f.mu.Unlock()
			return fmt.Errorf("node %d is named %q like another", i, name)
		}
		added = append(added, newNode(i, name))
		f.names = append(f.names, name)
		f.nodes[name] = added[len(added)-1]
	}
	f.mu.Unlock()

	for _, node := range added {
		f.queue.Add(node.name)
	}
	for _, node := range added {
		select {
		case <-node.registered:
		case <-ctx.Done():
			return fmt.Errorf("register node %s: %w", node.name, errors.Join(context.Cause(ctx), f.lastError(node)))
		}
		if err := f.refusal(node); err != nil {
			return fmt.Errorf("register node %s: %w", node.name, err)
		}
	}
	return nil
}

// SetReady makes the kubelets of the named nodes report that they are ready or not.
// The report is on its way when SetReady returns.
func (f *Fleet) SetReady(ready bool, names ...string) error {
	return f.change(names, func(n *node) { n.setReady(ready) })
}

// Halt cuts the named machines off: no lease is renewed, no status reported. In a
// real cluster, and here with a kube-controller-manager, their Nodes become
// NotReady (Unknown) after a grace period.
func (f *Fleet) Halt(names ...string) error {
	return f.change(names, func(n *node) { n.halted = true })
}

// Resume boots the named machines, halted or not: their kubelets register, which
// brings back a Node that was deleted meanwhile, and report their status at once.
func (f *Fleet) Resume(names ...string) error {
	return f.change(names, (*node).boot)
}

func (f *Fleet) change(names []string, change func(*node)) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, name := range names {
		if f.nodes[name] == nil {
			return fmt.Errorf("%w: %q", ErrUnknownNode, name)
		}
	}
	for _, name := range names {
		change(f.nodes[name])
		f.queue.Add(name)
	}
	return nil
}

// work lets one kubelet after the other do what is due.
func (f *Fleet) work(ctx context.Context) {
	for {
		name, shutdown := f.queue.Get()
		if shutdown {
			return
		}
		f.mu.Lock()
		n := f.nodes[name]
		f.mu.Unlock()
		next := f.beat(ctx, n)
		f.queue.Done(name)
		if next > 0 {
			f.queue.AddAfter(name, next)
		}
	}
}

func (f *Fleet) lastError(n *node) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return n.err
}

// refusal is the error after which a node is not registered at all.
func (f *Fleet) refusal(n *node) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if n.refused {
		return n.err
	}
	return nil
}

// nodeOf fills in what a kubelet sends when it registers.
func (f *Fleet) nodeOf(n *node, conditions []v1.NodeCondition) *v1.Node {
	object := newObject(n.name, f.options.NodeIP(n.index), conditions)
	object.Status.NodeInfo.KubeletVersion = f.version
	object.Spec.ProviderID = f.options.ProviderID(n.index)
	object.Status.Images = images(f.options.Images)
	for key, value := range f.options.Labels(n.index) {
		object.Labels[key] = value
	}
	if !f.options.Initialized {
		object.Spec.Taints = uninitialized()
	}
	return object
}
