// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package loadbalancer

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"

	"github.com/oracle/oci-cloud-controller-manager/internal/keylock"
	"github.com/oracle/oci-cloud-controller-manager/pkg/oci"
)

// Manager looks after the balancers of all Services of the cluster. Its methods may be called concurrently; calls about
// one Service run one after the other.
type Manager struct {
	cfg        Config
	deps       Deps
	own        *principal // who calls unless a Service says otherwise
	principals *principals

	started time.Time
	locks   *keylock.Locks[types.UID]
	memory  *memory
	lists   *snapshots[place, []*oci.Balancer]
	subnets *snapshots[string, *oci.Subnet]
	// listTimes and listTime are when security lists were made.
	listTimes *snapshots[network, map[string]time.Time]
	listTime  *snapshots[string, time.Time]
	secrets   *secretCache
	sweeping  sweeping
}

// cleanupFinalizer is set by the framework before the first Ensure of a Service, but on the API's object, not on the one
// that it passes on (k8s.io/cloud-provider, service controller). So a Service that is passed without it was never
// ensured before, by no process.
const cleanupFinalizer = "service.kubernetes.io/load-balancer-cleanup"

// New returns a Manager. Zero times in the configuration stand for their defaults.
func New(cfg Config, deps Deps) *Manager {
	m := &Manager{
		cfg:     cfg.withDefaults(),
		deps:    deps,
		started: time.Now(),
		locks:   keylock.New[types.UID](),
		memory:  newMemory(),
		secrets: newSecretCache(),
	}
	m.principals = &principals{byName: map[string]*principal{}}
	m.own = m.principals.put("", &Identity{LB: deps.LB, NLB: deps.NLB, PublicIPs: deps.PublicIPs})
	m.lists = newSnapshots(func(ctx context.Context, p place) ([]*oci.Balancer, error) {
		return m.principals.get(p.as).clouds[p.kind].List(ctx, p.compartment, "")
	})
	m.subnets = newSnapshots(deps.Subnets.GetSubnet)
	m.listTimes = newSnapshots(m.readListTimes)
	m.listTime = newSnapshots(m.readListTime)
	return m
}

// Name returns the display name of a Service's balancer.
func (m *Manager) Name(svc *v1.Service) string {
	return DisplayName(svc, WantedKind(svc.Annotations), m.cfg.DisplayNamePrefix)
}

// Ensure makes the Service's balancer what the Service asks for, creating it if there is none, and returns the status that
// the Service should have.
//
// Errors: *Pending if the work goes on; *Refusal if it failed and the user was told; ErrServiceGone.
func (m *Manager) Ensure(ctx context.Context, svc *v1.Service, nodes []*v1.Node) (*v1.LoadBalancerStatus, error) {
	ctx, cancel := context.WithTimeout(ctx, m.cfg.OperationTimeout)
	defer cancel()
	var status *v1.LoadBalancerStatus
	first := !slices.Contains(svc.Finalizers, cleanupFinalizer)
	err := m.locked(ctx, svc, nodes, time.Now().Add(m.cfg.Hold), func(ctx context.Context, op *operation) error {
		op.mem.first = op.mem.first || first
		b, settings, err := op.ensure(ctx)
		op.publish()
		if err == nil {
			op.mem.succeeded()
			status = statusOf(b, settings)
		}
		op.condition(ctx, err)
		return err
	})
	return status, err
}

// UpdateBackends makes the nodes the backends of the Service's balancer, and changes nothing else about it.
//
// Errors: as Ensure; ErrMissing if there is no balancer, or none that backends could be changed of.
func (m *Manager) UpdateBackends(ctx context.Context, svc *v1.Service, nodes []*v1.Node) error {
	ctx, cancel := context.WithTimeout(ctx, m.cfg.OperationTimeout)
	defer cancel()
	err := m.locked(ctx, svc, nodes, time.Now().Add(m.cfg.Hold), func(ctx context.Context, op *operation) error {
		err := op.updateBackends(ctx)
		op.publish()
		return err
	})
	if errors.Is(err, ErrServiceGone) {
		return nil // the deletion looks after the balancer
	}
	return err
}

// Exists says whether the Service has a balancer. The answer is no only if complete lists prove it, and no create of which
// the outcome is unknown can still bring one; whatever is doubtful is a yes, or an error.
func (m *Manager) Exists(ctx context.Context, svc *v1.Service) (*v1.LoadBalancerStatus, bool, error) {
	ctx, cancel := context.WithTimeout(ctx, m.cfg.OperationTimeout)
	defer cancel()
	release, err := m.locks.Acquire(ctx, svc.UID)
	if err != nil {
		return nil, false, fmt.Errorf("look up the balancer of Service %s: another operation on it did not end: %w", serviceKey(svc), err)
	}
	defer release()
	op := m.operation(ctx, svc, nil, time.Now().Add(m.cfg.Hold))
	op.deletion = true // nobody else asks
	if err := op.tooEarly(); err != nil {
		if op.mem.deletion.lookup {
			return nil, false, err
		}
		return &v1.LoadBalancerStatus{}, true, nil // Delete says why
	}
	err = op.identify(ctx)
	var b *oci.Balancer
	var since time.Time
	if err == nil {
		b, since, err = op.find(ctx)
	}
	switch {
	case err != nil:
		op.delay(err)
		if op.mem.deletion != nil {
			op.mem.deletion.lookup = true
		}
		return nil, false, err
	case b != nil:
		settings, _ := ParseAnnotations(svc.Annotations, b.Kind)
		return statusOf(b, settings), true, nil
	}
	return &v1.LoadBalancerStatus{}, len(op.mem.open) > 0 || !op.undoubted(since).IsZero() || op.mayHaveRules(), nil
}

// locked runs an operation under the Service's lock, with the Service as it is now.
func (m *Manager) locked(ctx context.Context, svc *v1.Service, nodes []*v1.Node, holdUntil time.Time, do func(context.Context, *operation) error) error {
	lockCtx, cancel := context.WithDeadlineCause(ctx, holdUntil, errHeld)
	release, err := m.locks.Acquire(lockCtx, svc.UID)
	cancel()
	switch {
	case errors.Is(err, errHeld):
		return &Pending{What: "another operation on the Service", wait: func(ctx context.Context) error {
			release, err := m.locks.Acquire(ctx, svc.UID)
			if err == nil {
				release()
			}
			return err
		}}
	case err != nil:
		return err
	}
	defer release()
	live, err := m.fresh(ctx, svc)
	if err != nil {
		return err
	}
	if m.deps.Nodes != nil {
		if nodes, err = m.deps.Nodes(ctx); err != nil {
			return fmt.Errorf("list nodes for Service %s: %w", serviceKey(svc), err)
		}
	}
	op := m.operation(ctx, live, nodes, holdUntil)
	return do(klog.NewContext(ctx, op.log), op)
}

func (m *Manager) operation(ctx context.Context, svc *v1.Service, nodes []*v1.Node, holdUntil time.Time) *operation {
	return &operation{
		m:         m,
		as:        m.own,
		svc:       svc,
		nodes:     nodes,
		mem:       m.memory.of(svc.UID),
		log:       klog.FromContext(ctx).WithValues("service", klog.KObj(svc)),
		holdUntil: holdUntil,
	}
}

// fresh reads the live Service. ErrServiceGone means that nothing may be made for it.
func (m *Manager) fresh(ctx context.Context, svc *v1.Service) (*v1.Service, error) {
	live := svc
	if m.deps.Fresh != nil {
		var err error
		live, err = m.deps.Fresh(ctx, svc)
		switch {
		case apierrors.IsNotFound(err):
			return nil, fmt.Errorf("service %s: %w", serviceKey(svc), ErrServiceGone)
		case err != nil:
			return nil, fmt.Errorf("read Service %s: %w", serviceKey(svc), err)
		}
	}
	if live.UID != svc.UID || live.DeletionTimestamp != nil {
		return nil, fmt.Errorf("service %s: %w", serviceKey(svc), ErrServiceGone)
	}
	return live, nil
}
