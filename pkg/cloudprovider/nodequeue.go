// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package cloudprovider

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"

	"github.com/oracle/oci-cloud-controller-manager/pkg/inventory"
)

const (
	nodeMinRetry = time.Second
	nodeMaxRetry = 5 * time.Minute

	// patchDeadline bounds one write to the API server.
	patchDeadline = 30 * time.Second
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

// watch queues nodes that appear, and those for which an update makes a difference.
func (q *nodeQueue) watch(informer cache.SharedIndexInformer, differs func(before, after *v1.Node) bool) error {
	_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: func(obj any) {
			if node, ok := obj.(*v1.Node); ok {
				q.queue.Add(node.Name)
			}
		},
		UpdateFunc: func(old, current any) {
			before, ok1 := old.(*v1.Node)
			after, ok2 := current.(*v1.Node)
			if ok1 && ok2 && differs(before, after) {
				q.queue.Add(after.Name)
			}
		},
	})
	return err
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

// patchNode changes a Node, unless its name belongs to another one by now. A null in a merge patch deletes, so what is
// empty must not be in it.
func patchNode(ctx context.Context, client kubernetes.Interface, node *v1.Node, metadata map[string]any, spec map[string]any) error {
	metadata["uid"] = node.UID // with another UID, the patch is refused
	body := map[string]any{"metadata": metadata}
	if len(spec) > 0 {
		body["spec"] = spec
	}
	patch, err := json.Marshal(body)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, patchDeadline)
	defer cancel()
	_, err = client.CoreV1().Nodes().Patch(ctx, node.Name, types.MergePatchType, patch, metav1.PatchOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("patch node %s: %w", node.Name, err)
	}
	return nil
}
