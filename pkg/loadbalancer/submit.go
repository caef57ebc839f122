// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package loadbalancer

import (
	"context"
	"errors"
	"time"

	"github.com/oracle/oci-cloud-controller-manager/pkg/oci"
)

const (
	// maxSubmits bounds how often one change is sent because the balancer was busy or had changed.
	maxSubmits = 10
	// busyPause is the pause before a change is sent again that an LB refused as busy.
	busyPause = 2 * time.Second
)

// request sends one change and returns its work request.
type request func(ctx context.Context) (string, error)

// submit sends the change that a step stands for, worked out from the balancer as it is now. An empty work request
// without an error means that there is nothing left to do.
func (a *applier) submit(ctx context.Context, step Step) (string, error) {
	<-a.turn
	defer func() { a.turn <- struct{}{} }()
	if a.isHeld() {
		return "", errHeld
	}
	if a.reread {
		if err := a.refresh(ctx); err != nil {
			return "", err
		}
	}
	var err error
	for range maxSubmits {
		if a.cloud.Kind() == oci.KindNLB {
			if err := a.rest(ctx); err != nil {
				return "", err
			}
		}
		send, planErr := a.request(step)
		if send == nil || planErr != nil {
			return "", planErr
		}
		callCtx, cancel := a.op.call(ctx)
		var work string
		work, err = send(callCtx)
		cancel()
		switch {
		case err == nil && work == "":
			// The service named no work request: the balancer itself has to show the end.
			return "", a.refresh(ctx)
		case err == nil:
			return work, nil
		case errors.Is(err, oci.ErrPrecondition):
			a.reread = true
		case errors.Is(err, oci.ErrIncorrectState):
			if err := a.op.pause(ctx, busyPause); err != nil {
				return "", err
			}
		case errors.Is(err, oci.ErrNotFound), errors.Is(err, oci.ErrConflict):
			// Perhaps somebody else has made or removed it; if so, the step has nothing to do or cannot be done.
			before := a.current
			if refreshErr := a.refresh(ctx); refreshErr != nil || sameShapeOf(before, a.current, step) {
				return "", err
			}
			continue
		default:
			a.op.mem.quiet = false // whether the change was accepted may be unknown
			return "", err
		}
		if err := a.refresh(ctx); err != nil {
			return "", err
		}
	}
	return "", err
}

// sameShapeOf says whether the object of a step exists in both or in neither.
func sameShapeOf(a, b *oci.Balancer, step Step) bool {
	_, setA := a.BackendSets[step.Name]
	_, setB := b.BackendSets[step.Name]
	_, listenerA := a.Listeners[step.Name]
	_, listenerB := b.Listeners[step.Name]
	_, rulesA := a.RuleSets[step.Name]
	_, rulesB := b.RuleSets[step.Name]
	_, certificateA := a.Certificates[step.Name]
	_, certificateB := b.Certificates[step.Name]
	return setA == setB && listenerA == listenerB && rulesA == rulesB && certificateA == certificateB
}

// rest waits until an NLB takes changes. It is the caller's turn.
func (a *applier) rest(ctx context.Context) error {
	rested, err := a.op.poll(ctx, a.cloud, a.current, func(d time.Duration) error { return a.op.pause(ctx, d) }, stateUpdating, stateCreating)
	switch {
	case err != nil:
		return err
	case rested == nil:
		return errReplan
	}
	a.current = rested
	return nil
}

// request works out the change of a step. Nil means that it is done already; errReplan, that it is not possible any more.
func (a *applier) request(step Step) (request, error) {
	id, etag := a.current.ID, a.current.ETag
	set, hasSet := a.current.BackendSets[step.Name]
	listener, hasListener := a.current.Listeners[step.Name]
	switch step.Action {
	case CreateBackendSet:
		if hasSet {
			return nil, errReplan
		}
		return func(ctx context.Context) (string, error) {
			return a.cloud.CreateBackendSet(ctx, id, a.want.newBackendSet(a.want.BackendSets[step.Want]), "")
		}, nil
	case UpdateBackendSet:
		return a.updateBackendSet(step, set, hasSet)
	case DeleteBackendSet:
		if !hasSet {
			return nil, nil
		}
		return func(ctx context.Context) (string, error) { return a.cloud.DeleteBackendSet(ctx, id, step.Name) }, nil
	case CreateListener:
		if hasListener {
			return nil, errReplan
		}
		return func(ctx context.Context) (string, error) {
			return a.cloud.CreateListener(ctx, id, a.want.newListener(a.want.Listeners[step.Want]), "")
		}, nil
	case UpdateListener:
		if !hasListener {
			return nil, errReplan
		}
		merged := a.want.mergeListener(listener, a.want.Listeners[step.Want], a.last)
		if sameListener(listener, merged) {
			return nil, nil
		}
		return func(ctx context.Context) (string, error) { return a.cloud.UpdateListener(ctx, id, merged, etag) }, nil
	case DeleteListener:
		if !hasListener {
			return nil, nil
		}
		return func(ctx context.Context) (string, error) { return a.cloud.DeleteListener(ctx, id, step.Name) }, nil
	case CreateRuleSet, UpdateRuleSet, DeleteRuleSet:
		return a.ruleSetRequest(step)
	}
	return a.balancerRequest(step)
}

// updateBackendSet changes a backend set. A plan for nodes changes only its backends.
func (a *applier) updateBackendSet(step Step, have oci.BackendSet, exists bool) (request, error) {
	if !exists {
		return nil, errReplan
	}
	want := a.want.BackendSets[step.Want]
	merged := a.want.mergeBackendSet(have, want, a.last)
	if step.BackendsOnly {
		merged = a.want.mergeBackends(have, want)
	}
	if sameBackendSet(have, merged) {
		return nil, nil
	}
	id, etag := a.current.ID, a.current.ETag
	return func(ctx context.Context) (string, error) { return a.cloud.UpdateBackendSet(ctx, id, merged, etag) }, nil
}

// balancerRequest works out the change of a step that is about the balancer as a whole.
func (a *applier) balancerRequest(step Step) (request, error) {
	id, etag := a.current.ID, a.current.ETag
	switch step.Action {
	case CreateCertificate, DeleteCertificate:
		return a.certificateRequest(step)
	case UpdateNSGs:
		merged := a.want.mergeNSGs(a.current.NSGIDs, a.last)
		if sameSet(merged, a.current.NSGIDs) {
			return nil, nil
		}
		return func(ctx context.Context) (string, error) { return a.cloud.UpdateNSGs(ctx, id, merged, etag) }, nil
	case UpdateShape:
		updater, ok := a.cloud.(ShapeUpdater)
		if !ok || a.current.Shape != nil && *a.current.Shape == a.want.Shape.Value {
			return nil, nil
		}
		return func(ctx context.Context) (string, error) {
			return updater.UpdateShape(ctx, id, a.want.Shape.Value, etag)
		}, nil
	case UpdateIPMode:
		return a.modeRequest()
	case UpdateTags:
		marks := marksOf(a.op.svc, a.op.m.cfg.ClusterID)
		if hasTags(a.current, marks) {
			return nil, nil
		}
		tags := oci.Tags{Freeform: withTags(a.current.Freeform, marks)}
		return func(ctx context.Context) (string, error) { return a.cloud.UpdateTags(ctx, id, tags, etag) }, nil
	}
	return nil, errors.New("loadbalancer: no such step: " + string(step.Action))
}
