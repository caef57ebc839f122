// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package cloudprovider

import (
	"context"
	"errors"
	"time"

	v1 "k8s.io/api/core/v1"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"

	"github.com/oracle/oci-cloud-controller-manager/pkg/inventory"
)

const (
	nodeMinRetry = time.Second
	nodeMaxRetry = 5 * time.Minute
)

// nodeQueue works on the names of nodes. A failed one is tried again with growing delay.
type nodeQueue struct {
	name   string
	synced cache.InformerSynced
	queue  workqueue.TypedRateLimitingInterface[string]
	// sync works on a node; again is when to look at it anew, 0 for when it changes.
	sync func(ctx context.Context, name string) (again time.Duration, err error)
}

func newNodeQueue(name string, synced cache.InformerSynced, sync func(context.Context, string) (time.Duration, error)) *nodeQueue {
	return &nodeQueue{
		name: name, synced: synced, sync: sync,
		queue: workqueue.NewTypedRateLimitingQueueWithConfig(
			workqueue.NewTypedItemExponentialFailureRateLimiter[string](nodeMinRetry, nodeMaxRetry),
			workqueue.TypedRateLimitingQueueConfig[string]{Name: name},
		),
	}
}

func (q *nodeQueue) add(obj any) {
	if node, ok := obj.(*v1.Node); ok {
		q.queue.Add(node.Name)
	}
}

// run works until ctx ends.
func (q *nodeQueue) run(ctx context.Context, workers int) {
	defer utilruntime.HandleCrashWithContext(ctx)
	defer q.queue.ShutDown()
	if !cache.WaitForCacheSync(ctx.Done(), q.synced) {
		return
	}
	for range workers {
		go wait.UntilWithContext(ctx, func(ctx context.Context) {
			for q.next(ctx) {
			}
		}, time.Second)
	}
	<-ctx.Done()
}

func (q *nodeQueue) next(ctx context.Context) bool {
	name, shutdown := q.queue.Get()
	if shutdown {
		return false
	}
	defer q.queue.Done(name)
	again, err := q.sync(ctx, name)
	var notFound *inventory.NotFoundError
	switch {
	case err == nil:
		q.queue.Forget(name)
	case errors.Is(err, errShutdown):
		return true
	case errors.As(err, &notFound):
		q.queue.Forget(name)
		again = time.Until(notFound.Retry)
	default:
		klog.FromContext(ctx).Error(err, "Could not bring the node up to date", "node", klog.KRef("", name), "controller", q.name)
		q.queue.AddRateLimited(name)
	}
	if again > 0 {
		q.queue.AddAfter(name, again)
	}
	return true
}
