// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package cloudprovider

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	cloudprovider "k8s.io/cloud-provider"
	"k8s.io/klog/v2"

	"github.com/oracle/oci-cloud-controller-manager/pkg/loadbalancer"
)

// Balancers looks after the balancers of Services; *loadbalancer.Manager is one, and says what each method returns.
type Balancers interface {
	Ensure(ctx context.Context, service *v1.Service, nodes []*v1.Node) (*v1.LoadBalancerStatus, error)
	UpdateBackends(ctx context.Context, service *v1.Service, nodes []*v1.Node) error
	Exists(ctx context.Context, service *v1.Service) (*v1.LoadBalancerStatus, bool, error)
	Delete(ctx context.Context, service *v1.Service) error
	Audit(ctx context.Context, services []*v1.Service, nodes []*v1.Node) ([]types.NamespacedName, error)
	Name(service *v1.Service) string
}

const (
	// OperationTimeout is for one pass over a Service. It leaves room for the waits for the client's budget when many
	// Services come at once; what takes minutes in the cloud is not waited for, except at the deletion.
	OperationTimeout = 10 * time.Minute

	// syncDeadline is the deadline that every operation gets here: some come from the framework without one.
	syncDeadline = 15 * time.Minute

	// waitDeadline bounds a wait in the background. The Service is queued then in any case.
	waitDeadline = 20 * time.Minute

	// againDelay keeps a Service whose waits end at once from going round without a pause; retryDelay is the same for
	// failures.
	againDelay = 200 * time.Millisecond
	retryDelay = 5 * time.Second
)

// loadBalancers implements cloudprovider.LoadBalancer.
type loadBalancers struct {
	provider *Provider
	support  *ServiceSupport
	manager  Balancers

	mu      sync.Mutex
	queue   *serviceQueue // nil until the framework's controller is made
	waiting map[types.UID]*backgroundWait
}

var _ cloudprovider.LoadBalancer = (*loadBalancers)(nil)

func newLoadBalancers(p *Provider, support *ServiceSupport, manager Balancers) *loadBalancers {
	return &loadBalancers{provider: p, support: support, manager: manager, waiting: map[types.UID]*backgroundWait{}}
}

// GetLoadBalancerName implements cloudprovider.LoadBalancer.
func (b *loadBalancers) GetLoadBalancerName(_ context.Context, _ string, service *v1.Service) string {
	return b.manager.Name(service)
}

// GetLoadBalancer implements cloudprovider.LoadBalancer. The framework asks before it deletes, and drops the finalizer
// when the answer is no.
func (b *loadBalancers) GetLoadBalancer(ctx context.Context, _ string, service *v1.Service) (status *v1.LoadBalancerStatus, exists bool, err error) {
	ctx, leave, err := b.provider.gate.enter(ctx, syncDeadline)
	if err != nil {
		return nil, false, err
	}
	defer leave()
	release := b.support.hold(service)
	defer func() { release(err) }()
	status, exists, err = b.manager.Exists(ctx, service)
	if err == nil && !exists && !wantsBalancer(service) {
		err = b.support.clear(ctx, service)
	}
	return status, exists, err
}

// EnsureLoadBalancer implements cloudprovider.LoadBalancer.
func (b *loadBalancers) EnsureLoadBalancer(ctx context.Context, _ string, service *v1.Service, nodes []*v1.Node) (*v1.LoadBalancerStatus, error) {
	ctx, leave, err := b.provider.gate.enter(ctx, syncDeadline)
	if err != nil {
		return nil, cloudprovider.ImplementedElsewhere // shutting down: the next process does it
	}
	defer leave()
	status, err := b.manager.Ensure(ctx, service, nodes)
	if err != nil {
		return nil, b.answer(ctx, service, err)
	}
	return status, nil
}

// UpdateLoadBalancer implements cloudprovider.LoadBalancer. The framework calls it without a deadline, with the Service as
// it knew it at its last sync, and would report a failure as another trouble than the one that the next Ensure reports. So a
// failure here is left to Ensure, for which the Service is queued.
func (b *loadBalancers) UpdateLoadBalancer(ctx context.Context, _ string, service *v1.Service, nodes []*v1.Node) error {
	ctx, leave, err := b.provider.gate.enter(ctx, syncDeadline)
	if err != nil {
		return cloudprovider.ImplementedElsewhere
	}
	defer leave()
	err = b.manager.UpdateBackends(ctx, service, nodes)
	if err == nil {
		return nil
	}
	answer := b.answer(ctx, service, err)
	if q := b.framework(); q != nil && answer != cloudprovider.ImplementedElsewhere { //nolint:errorlint // as the framework compares it
		klog.FromContext(ctx).Error(err, "Could not update the backends; the Service is synced as a whole", "service", klog.KObj(service))
		q.add(keyOf(service), queuedByRetry, againDelay)
		return cloudprovider.ImplementedElsewhere
	}
	return answer
}

// answer turns what the domain returned into what the framework understands. It knows one answer that is neither a success
// nor a failure, and compares it with ==: then it writes no event and no status, and the worker is free. That is right for
// what goes on in the cloud, and for what the user has been told already; the Service is queued again when its time comes.
// Other errors get the framework's event and back-off.
func (b *loadBalancers) answer(ctx context.Context, service *v1.Service, err error) error {
	var pending *loadbalancer.Pending
	var refusal *loadbalancer.Refusal
	switch {
	case errors.Is(err, loadbalancer.ErrServiceGone), b.provider.gate.isClosed():
		return cloudprovider.ImplementedElsewhere
	case errors.As(err, &pending):
		if b.resume(ctx, service, pending) {
			return cloudprovider.ImplementedElsewhere
		}
	case errors.As(err, &refusal):
		if q := b.framework(); q != nil {
			klog.FromContext(ctx).Error(err, "The load balancer cannot be made what its Service wants", "service", klog.KObj(service), "retryIn", refusal.RetryAfter)
			q.add(keyOf(service), queuedByRetry, max(refusal.RetryAfter, againDelay))
			return cloudprovider.ImplementedElsewhere
		}
	}
	return err
}

// EnsureLoadBalancerDeleted implements cloudprovider.LoadBalancer. Whatever is not the end of the deletion has to be an
// error: the framework drops the finalizer also for ImplementedElsewhere.
func (b *loadBalancers) EnsureLoadBalancerDeleted(ctx context.Context, _ string, service *v1.Service) (err error) {
	ctx, leave, err := b.provider.gate.enter(ctx, syncDeadline)
	if err != nil {
		return err
	}
	defer leave()
	release := b.support.hold(service)
	defer func() { release(err) }()
	if err := b.manager.Delete(ctx, service); err != nil {
		return fmt.Errorf("%w", err) // wrapped, it is not equal to ImplementedElsewhere, whatever it is
	}
	return b.support.clear(ctx, service)
}

// resume waits for the cloud in the background and queues the Service then. What was waited for before no longer counts:
// a change of the Service may have made it another wish. It is false if there is no way to queue the Service.
func (b *loadBalancers) resume(ctx context.Context, service *v1.Service, pending *loadbalancer.Pending) bool {
	q := b.framework()
	if q == nil {
		return false
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), waitDeadline)
	mine := &backgroundWait{cancel: cancel}
	b.mu.Lock()
	before := b.waiting[service.UID]
	b.waiting[service.UID] = mine
	b.mu.Unlock()
	if before != nil {
		before.cancel()
	}
	stop := context.AfterFunc(b.provider.context, cancel) //nolint:contextcheck // the wait outlives the operation, not the process
	go func() {
		defer cancel()
		defer stop()
		delay := againDelay
		err := pending.Wait(ctx)
		b.mu.Lock()
		current := b.waiting[service.UID] == mine
		if current {
			delete(b.waiting, service.UID)
		}
		b.mu.Unlock()
		if !current {
			return
		}
		if err != nil {
			klog.FromContext(ctx).Info("Waiting for the cloud ended", "service", klog.KObj(service), "err", err)
			delay = retryDelay
		}
		q.add(keyOf(service), queuedByCloud, delay)
	}()
	return true
}

// backgroundWait is a wait of resume; the map of waits tells whether it still counts.
type backgroundWait struct {
	cancel context.CancelFunc
}

// framework returns the way into the framework's queue, nil if there is none.
func (b *loadBalancers) framework() *serviceQueue {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.queue == nil || !b.queue.ready() {
		return nil
	}
	return b.queue
}

func (b *loadBalancers) setQueue(q *serviceQueue) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.queue = q
}
