// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package cloudprovider

import (
	"context"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	coreinformers "k8s.io/client-go/informers/core/v1"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"
)

// Reasons to queue a Service again, as label of the metric.
const (
	queuedByAudit = "audit" // its balancer is missing or differs
	queuedByCloud = "cloud" // the cloud has finished what it was asked for
	queuedByNode  = "node"  // a node's address or label changed
	queuedByRetry = "retry" // an update of its backends failed

	queuedBySecret = "secret" // the Secret of its certificate changed
)

// serviceQueue puts Services into the framework's queue, which is private to the framework. The framework fills it from an
// informer's event handler; that handler is captured when it is registered, and called with an event of our own making.
// No API object is written for that, and the framework's workers, order and back-off stay in force.
type serviceQueue struct {
	informer coreinformers.ServiceInformer
	services corelisters.ServiceLister

	// delayed holds keys until it is time; the same key twice is queued once.
	delayed workqueue.TypedDelayingInterface[string]

	mu      sync.Mutex
	handler cache.ResourceEventHandler
}

func newServiceQueue(informer coreinformers.ServiceInformer) *serviceQueue {
	return &serviceQueue{
		informer: informer,
		services: informer.Lister(),
		delayed: workqueue.NewTypedDelayingQueueWithConfig(
			workqueue.TypedDelayingQueueConfig[string]{Name: "oci-service-again"}),
	}
}

// Informer implements coreinformers.ServiceInformer for the framework's controller.
func (q *serviceQueue) Informer() cache.SharedIndexInformer {
	return &capturingInformer{q.informer.Informer(), q}
}

// Lister implements coreinformers.ServiceInformer.
func (q *serviceQueue) Lister() corelisters.ServiceLister { return q.services }

// capturingInformer is the shared informer, except that it remembers who listens.
type capturingInformer struct {
	cache.SharedIndexInformer
	queue *serviceQueue
}

// AddEventHandlerWithResyncPeriod implements cache.SharedInformer. It is the only way by which the framework's controller
// registers its handler.
func (i *capturingInformer) AddEventHandlerWithResyncPeriod(h cache.ResourceEventHandler, resync time.Duration) (cache.ResourceEventHandlerRegistration, error) {
	i.queue.mu.Lock()
	i.queue.handler = h
	i.queue.mu.Unlock()
	return i.SharedIndexInformer.AddEventHandlerWithResyncPeriod(h, resync)
}

// add queues a Service at once, or after a delay. key is "namespace/name".
func (q *serviceQueue) add(key, reason string, delay time.Duration) {
	servicesQueued.WithLabelValues(reason).Inc()
	q.delayed.AddAfter(key, delay)
}

// ready says whether the framework's handler is known.
func (q *serviceQueue) ready() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.handler != nil
}

// run hands the keys over until the queue is shut down.
func (q *serviceQueue) run(ctx context.Context) {
	for {
		key, shutdown := q.delayed.Get()
		if shutdown {
			return
		}
		q.hand(ctx, key)
		q.delayed.Done(key)
	}
}

func (q *serviceQueue) hand(ctx context.Context, key string) {
	namespace, name, err := cache.SplitMetaNamespaceKey(key)
	if err != nil {
		return
	}
	service, err := q.services.Services(namespace).Get(name)
	if err != nil {
		return // deleted
	}
	q.mu.Lock()
	handler := q.handler
	q.mu.Unlock()
	if handler != nil {
		klog.FromContext(ctx).V(4).Info("Queueing the Service again", "service", klog.KObj(service))
		handler.OnAdd(service, false)
	}
}

func keyOf(service *v1.Service) string { return service.Namespace + "/" + service.Name }
