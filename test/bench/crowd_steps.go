// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	cloudproviderapi "k8s.io/cloud-provider/api"

	"golang.org/x/sync/errgroup"

	"github.com/oracle/oci-cloud-controller-manager/test/testbed"
)

// arrivals says when each Node was made and when it was initialised, as a client of the API server sees it.
type arrivals struct {
	mu          sync.Mutex
	made, ready map[string]time.Time
}

// watchArrivals watches until ctx ends.
func (c *crowd) watchArrivals(ctx context.Context) (*arrivals, error) {
	config := c.bed.Cluster.Config()
	config.ContentType = runtime.ContentTypeProtobuf // cheaper to read
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	a := &arrivals{made: map[string]time.Time{}, ready: map[string]time.Time{}}
	factory := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithTransform(func(obj any) (any, error) {
		if n, ok := obj.(*v1.Node); ok {
			n.ManagedFields, n.Status = nil, v1.NodeStatus{}
		}
		return obj, nil
	}))
	informer := factory.Core().V1().Nodes().Informer()
	if _, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    a.see,
		UpdateFunc: func(_, obj any) { a.see(obj) },
	}); err != nil {
		return nil, err
	}
	factory.StartWithContext(ctx)
	if !cache.WaitForCacheSync(ctx.Done(), informer.HasSynced) {
		return nil, context.Cause(ctx)
	}
	return a, nil
}

func (a *arrivals) see(obj any) {
	node, ok := obj.(*v1.Node)
	if !ok {
		return
	}
	waiting := slices.ContainsFunc(node.Spec.Taints, func(t v1.Taint) bool { return t.Key == cloudproviderapi.TaintExternalCloudProvider })
	a.mu.Lock()
	defer a.mu.Unlock()
	now := time.Now()
	if _, seen := a.made[node.Name]; !seen {
		a.made[node.Name] = now
	}
	if _, done := a.ready[node.Name]; !done && !waiting {
		a.ready[node.Name] = now
	}
}

func (a *arrivals) count() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.ready)
}

// times returns the 99th percentile of what nodes waited, and when the last one was initialised.
func (a *arrivals) times() (p99 time.Duration, last time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	var waits []time.Duration
	for name, at := range a.ready {
		waits = append(waits, at.Sub(a.made[name]))
		if at.After(last) {
			last = at
		}
	}
	slices.Sort(waits)
	return waits[len(waits)*99/100], last
}

// measureJoin lets all nodes join at once.
func (c *crowd) measureJoin(ctx context.Context, f *crowdFigures) error {
	if err := c.strict(true); err != nil {
		return err
	}
	watch, cancel := context.WithCancel(ctx)
	defer cancel()
	seen, err := c.watchArrivals(watch)
	if err != nil {
		return err
	}
	if err := c.start(ctx); err != nil {
		return err
	}
	if err := pause(ctx, 3*time.Second); err != nil { // its workers start
		return err
	}
	c.bed.Region.ResetCalls()
	began := time.Now()
	if err := c.bed.Nodes.Add(ctx, c.nodes); err != nil {
		return err
	}
	f.register = time.Since(began)
	c.say("kubelets registered in %s", f.register.Round(100*time.Millisecond))
	if err := testbed.Until(ctx, func(context.Context) (bool, string) {
		n := seen.count()
		return n == c.nodes, fmt.Sprintf("%d of %d nodes are initialised", n, c.nodes)
	}); err != nil {
		return err
	}
	p99, last := seen.times()
	f.join, f.joinP99 = last.Sub(began), p99
	cancel()
	if err := c.quiet(ctx, 1, 5*time.Second); err != nil {
		return err
	}
	f.calls = total(c.bed.Region.Counts())
	c.say("joined in %s (99 %% of the nodes within %s each), %d calls", f.join.Round(100*time.Millisecond), p99.Round(100*time.Millisecond), f.calls)
	return c.stop()
}

// makeServices lets the cloud-controller-manager make all balancers. This is not measured, so nothing slows it down.
func (c *crowd) makeServices(ctx context.Context, _ *crowdFigures) error {
	if err := c.strict(false); err != nil {
		return err
	}
	if err := c.bed.WriteConfig(crowdConfig(c.bed) + "rateLimiter: {disableRateLimiter: true}\n"); err != nil {
		return err
	}
	if err := c.start(ctx); err != nil {
		return err
	}
	services := c.bed.Cluster.Client().CoreV1().Services("default")
	began := time.Now()
	group, groupCtx := errgroup.WithContext(ctx)
	group.SetLimit(16)
	for i := range crowdServices {
		group.Go(func() error {
			_, err := services.Create(groupCtx, crowdService(i), metav1.CreateOptions{})
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	if err := testbed.Until(ctx, func(ctx context.Context) (bool, string) {
		_ = pause(ctx, 2*time.Second) // a list of 500 Services is a load
		list, err := services.List(ctx, metav1.ListOptions{})
		if err != nil {
			return false, err.Error()
		}
		ready, example := 0, ""
		for _, s := range list.Items {
			if len(s.Status.LoadBalancer.Ingress) > 0 {
				ready++
			} else if s.Spec.Type == v1.ServiceTypeLoadBalancer {
				example = s.Name
			}
		}
		return ready == crowdServices, fmt.Sprintf("%d of %d Services have an address, but not %s", ready, crowdServices, example)
	}); err != nil {
		return err
	}
	c.say("%d balancers in %s", crowdServices, time.Since(began).Round(100*time.Millisecond))
	return c.stop()
}

// measurePasses starts the cloud-controller-manager again, as an upgrade does, and looks at its passes over all nodes.
func (c *crowd) measurePasses(ctx context.Context, f *crowdFigures) error {
	if err := c.strict(true); err != nil {
		return err
	}
	if err := c.bed.WriteConfig(crowdConfig(c.bed)); err != nil {
		return err
	}
	c.bed.Region.ResetCalls()
	// The pass over all balancers comes while nodes are not ready, so that its memory counts, but not its CPU time.
	if err := c.start(ctx, "--node-status-update-frequency="+passPeriod.String(), "--oci-service-resync-period=3m30s"); err != nil {
		return err
	}
	if err := c.quiet(ctx, crowdServices, 8*time.Second); err != nil {
		return err
	}
	c.say("started again: %d calls", total(c.bed.Region.Counts()))
	profiled := c.profileCPU(ctx)
	all, idle, err := c.observePasses(ctx)
	if err != nil {
		return err
	}
	if err := <-profiled; err != nil {
		return err
	}
	slices.SortFunc(all, func(a, b onePass) int { return int(a.took - b.took) })
	f.pass, f.idle = all[len(all)/2].took, idle
	for _, p := range all {
		f.passCPU += p.cpu / time.Duration(len(all))
		f.passCalls = max(f.passCalls, p.calls)
	}
	return nil
}

// measureNotReady lets nodes become not ready, and counts what is asked about them.
func (c *crowd) measureNotReady(ctx context.Context, f *crowdFigures) error {
	names := c.bed.Nodes.Names()
	if err := c.bed.Nodes.SetReady(false, names[len(names)-notReadyNodes:]...); err != nil {
		return err
	}
	if err := pause(ctx, 20*time.Second); err != nil {
		return err
	}
	c.bed.Region.ResetCalls()
	if err := pause(ctx, notReadyWatch); err != nil {
		return err
	}
	counts := c.bed.Region.Counts()
	pages := (c.nodes + crowdPageSize - 1) / crowdPageSize
	f.lists, f.singles = (counts["compute.ListInstances"]+pages-1)/pages, counts["compute.GetInstance"]
	var err error
	if f.resident, _, err = processMemory(c.ccm.PID()); err != nil {
		return err
	}
	if err := c.profileHeap(ctx); err != nil {
		return err
	}
	if err := c.stop(); err != nil {
		return err
	}
	c.say("%d nodes not ready: %d lists and %d single reads in %s; resident %s, at most %s",
		notReadyNodes, f.lists, f.singles, notReadyWatch, mebibytes(f.resident), mebibytes(c.peak))
	return nil
}

func mebibytes(n int64) string { return fmt.Sprintf("%d MiB", (n+1<<19)>>20) }
