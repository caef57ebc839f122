// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package loadbalancer

import (
	"context"
	"errors"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/oracle/oci-cloud-controller-manager/pkg/oci"
)

// Audit returns the Services whose balancer is missing or is not what the Service asks for. It reads lists, which all
// Services share, and no balancer alone; it changes nothing and tells nobody. Services that are being worked on, or being
// deleted, or whose settings are illegal, are passed over. An error means that some lists could not be read; what the
// others show is returned with it.
func (m *Manager) Audit(ctx context.Context, svcs []*v1.Service, nodes []*v1.Node) ([]types.NamespacedName, error) {
	ctx, cancel := context.WithTimeout(ctx, m.cfg.OperationTimeout)
	defer cancel()
	m.memory.keep(svcs)
	m.secrets.keep(svcs)
	lists, places := map[place]listing{}, sweepPlaces{}
	var wanting []types.NamespacedName
	var errs []error
	for _, svc := range svcs {
		if svc.DeletionTimestamp != nil || m.locks.Busy(svc.UID) {
			continue
		}
		// What the memory holds is not needed, and not ours without the lock.
		op := &operation{m: m, as: m.own, svc: svc, mem: newServiceMemory(), quietly: true}
		if err := op.identify(ctx); err != nil {
			continue // its next sync says why
		}
		live, err := op.fromLists(ctx, lists)
		if err != nil {
			if !slices.Contains(errs, err) { // one per list, not one per Service
				errs = append(errs, err)
			}
			continue
		}
		if op.drifted(ctx, live, nodes, places) {
			wanting = append(wanting, types.NamespacedName{Namespace: svc.Namespace, Name: svc.Name})
		}
	}
	m.lookBack(ctx, nodes, places)
	if err := m.sweep(ctx, places); err != nil {
		errs = append(errs, err)
	}
	return wanting, errors.Join(errs...)
}

// listing is a list that was read, or could not be.
type listing struct {
	all []*oci.Balancer
	err error
}

// fromLists finds the Service's balancer in lists that are read once for all Services.
func (op *operation) fromLists(ctx context.Context, lists map[place]listing) (*oci.Balancer, error) {
	required, _ := op.places()
	var found []*oci.Balancer
	for _, p := range required {
		l, known := lists[p]
		if !known {
			l.all, _, l.err = op.m.lists.get(ctx, p, 0)
			lists[p] = l
		}
		if l.err != nil {
			return nil, l.err
		}
		for _, b := range l.all {
			if b.State != stateDeleted && op.owns(b) != notOwned {
				found = append(found, b)
			}
		}
	}
	op.rank(found)
	for _, b := range found {
		if b.ID == op.svc.Annotations[AnnotationOCID] {
			return b, nil
		}
	}
	if len(found) == 0 {
		return nil, nil
	}
	return found[0], nil
}

// drifted says whether a sync of the Service would do something.
func (op *operation) drifted(ctx context.Context, live *oci.Balancer, nodes []*v1.Node, places sweepPlaces) bool {
	if live == nil {
		return true
	}
	if live.State != stateActive {
		return live.State == stateFailed
	}
	if len(lastApplied(op.svc).leftOvers()) > 0 || op.replaces(live) {
		return true
	}
	settings, problems := ParseAnnotations(op.svc.Annotations, live.Kind)
	model, more := Desired(op.svc, nodes, settings, op.m.cfg, Facts{
		Live: live, Last: lastApplied(op.svc), Gone: op.m.deps.Gone, Certificates: op.m.secrets.known(settings.TLS.secrets(op.svc.Namespace)),
	})
	if len(problems.Fatal())+len(more.Fatal()) > 0 {
		return false
	}
	op.nodes = nodes
	if op.rulesDrifted(ctx, ruleInputs{settings: settings, model: model, live: live}, places) {
		return true
	}
	plan, _ := Diff(live, model, lastApplied(op.svc), nil)
	return len(plan) > 0
}

// memoryLasts is how long a Service is remembered that nobody asks about: longer than any create can stay in doubt.
const memoryLasts = time.Hour

// keep forgets Services that do not exist any more.
func (m *memory) keep(svcs []*v1.Service) {
	known := sets.New[types.UID]()
	for _, svc := range svcs {
		known.Insert(svc.UID)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for uid, s := range m.services {
		if !known.Has(uid) && time.Since(s.used) > memoryLasts {
			delete(m.services, uid)
		}
	}
}
