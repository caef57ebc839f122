// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package nodes

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
)

// retryInterval is the pause after a failed request, for example while the API
// server is away.
const retryInterval = time.Second

// node is one simulated kubelet.
type node struct {
	index      int
	name       string
	registered chan struct{} // closed when it is registered, or refused

	// Guarded by Fleet.mu.
	ready     bool
	since     time.Time // of ready, or of the last boot
	booting   bool      // must register
	reporting bool      // has a status to report
	halted    bool
	refused   bool // the API server wants no such node; err says why
	err       error

	// Used only by the worker that has taken the node from the queue.
	uid        types.UID
	lease      *coordinationv1.Lease
	nextRenew  time.Time
	nextStatus time.Time
}

func newNode(index int, name string) *node {
	n := &node{index: index, name: name, registered: make(chan struct{}), ready: true}
	n.boot()
	return n
}

func (n *node) boot() {
	n.halted, n.booting, n.since = false, true, time.Now()
}

func (n *node) setReady(ready bool) {
	if n.ready != ready {
		n.ready, n.reporting, n.since = ready, true, time.Now()
	}
}

// task is what a kubelet has to do now.
type task struct {
	boot, report bool
	conditions   []v1.NodeCondition
}

// take returns the node's task; false means that the node does nothing at all.
func (f *Fleet) take(n *node, now time.Time) (task, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if n.halted || n.refused {
		return task{}, false
	}
	t := task{
		boot:       n.booting,
		report:     n.reporting || !now.Before(n.nextStatus),
		conditions: conditions(n.ready, n.since, now),
	}
	n.booting, n.reporting = false, false
	return t, true
}

// beat lets the kubelet do what is due and returns when it wants to be called
// again; 0 is never.
func (f *Fleet) beat(ctx context.Context, n *node) time.Duration {
	now := time.Now()
	t, ok := f.take(n, now)
	if !ok {
		return 0
	}
	var err error
	if t.boot {
		err = f.register(ctx, n, t, now)
	} else {
		err = f.heartbeat(ctx, n, t, now)
	}
	if err != nil {
		return f.failed(ctx, n, t, err)
	}
	return max(time.Until(n.nextRenew), time.Millisecond)
}

// failed puts the task back, or gives the node up if trying again is of no use.
func (f *Fleet) failed(ctx context.Context, n *node, t task, err error) time.Duration {
	if ctx.Err() != nil {
		return 0
	}
	klog.FromContext(ctx).V(2).Info("Simulated kubelet failed", "node", n.name, "err", err)
	f.mu.Lock()
	defer f.mu.Unlock()
	n.err = err
	n.booting = n.booting || t.boot
	n.reporting = n.reporting || t.report
	switch {
	case t.boot && (apierrors.IsForbidden(err) || apierrors.IsInvalid(err) || apierrors.IsBadRequest(err)):
		n.refused = true
		n.close()
		return 0
	case apierrors.IsNotFound(err) && !n.booting:
		// The Node was deleted. A kubelet registers only when it starts.
		n.halted = true
		return 0
	}
	return retryInterval
}

func (n *node) close() {
	select {
	case <-n.registered:
	default:
		close(n.registered)
	}
}

// register creates the Node, or takes over the one that is there, and the lease.
func (f *Fleet) register(ctx context.Context, n *node, t task, now time.Time) error {
	object, err := f.client.CoreV1().Nodes().Create(ctx, f.nodeOf(n, t.conditions), metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		object, err = f.report(ctx, n, t)
	}
	if err != nil {
		return err
	}
	n.uid = object.UID
	if err := f.createLease(ctx, n, now); err != nil {
		return err
	}
	// The beats of a fleet that registers at once are spread over the interval:
	// multiples of the golden ratio are evenly spaced for any number of nodes.
	_, phase := math.Modf(float64(n.index+1) * math.Phi)
	n.nextRenew = now.Add(time.Duration(phase * float64(f.options.RenewInterval)))
	n.nextStatus = now.Add(time.Duration(phase * float64(f.options.StatusInterval)))

	f.mu.Lock()
	defer f.mu.Unlock()
	n.err = nil
	n.close()
	return nil
}

// heartbeat reports the status and renews the lease, if it is time to.
func (f *Fleet) heartbeat(ctx context.Context, n *node, t task, now time.Time) error {
	if t.report {
		if _, err := f.report(ctx, n, t); err != nil {
			return err
		}
		n.nextStatus = now.Add(f.options.StatusInterval)
	}
	if now.Before(n.nextRenew) {
		return nil
	}
	if err := f.renew(ctx, n, now); err != nil {
		return err
	}
	n.nextRenew = now.Add(f.options.RenewInterval)
	return nil
}

// report patches the conditions of the Node and nothing else: addresses belong to
// the cloud provider once it has set them.
func (f *Fleet) report(ctx context.Context, n *node, t task) (*v1.Node, error) {
	patch, err := json.Marshal(map[string]any{"status": map[string]any{"conditions": t.conditions}})
	if err != nil {
		return nil, err
	}
	return f.client.CoreV1().Nodes().Patch(ctx, n.name, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status")
}

// renew renews the lease, and makes a new one if somebody deleted or changed it.
func (f *Fleet) renew(ctx context.Context, n *node, now time.Time) error {
	lease := n.lease.DeepCopy()
	lease.Spec.RenewTime = &metav1.MicroTime{Time: now}
	updated, err := f.client.CoordinationV1().Leases(v1.NamespaceNodeLease).Update(ctx, lease, metav1.UpdateOptions{})
	switch {
	case err == nil:
		n.lease = updated
		return nil
	case !apierrors.IsConflict(err) && !apierrors.IsNotFound(err):
		return err
	}
	// A lease without its Node would be collected as garbage.
	if _, err := f.client.CoreV1().Nodes().Get(ctx, n.name, metav1.GetOptions{}); err != nil {
		return err
	}
	return f.createLease(ctx, n, now)
}

// createLease creates the lease, or takes over the one that is there.
func (f *Fleet) createLease(ctx context.Context, n *node, now time.Time) error {
	leases := f.client.CoordinationV1().Leases(v1.NamespaceNodeLease)
	lease := newLease(n.name, n.uid, now)
	created, err := leases.Create(ctx, lease, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		existing, getErr := leases.Get(ctx, n.name, metav1.GetOptions{})
		if getErr != nil {
			return fmt.Errorf("lease: %w", getErr)
		}
		lease.ResourceVersion = existing.ResourceVersion
		created, err = leases.Update(ctx, lease, metav1.UpdateOptions{})
	}
	if err != nil {
		return fmt.Errorf("lease: %w", err)
	}
	n.lease = created
	return nil
}
