// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package loadbalancer

import (
	"context"
	"errors"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/oracle/oci-cloud-controller-manager/pkg/oci"
)

// ensure brings the Service's balancer to what the Service asks for.
func (op *operation) ensure(ctx context.Context) (*oci.Balancer, Settings, error) {
	if err := op.identify(ctx); err != nil {
		return nil, Settings{}, err
	}
	if err := op.finishOpen(ctx); err != nil {
		return nil, Settings{}, err
	}
	live, since, err := op.findAtRest(ctx)
	if err != nil {
		return nil, Settings{}, err
	}
	kind := WantedKind(op.svc.Annotations)
	if live != nil {
		if op.replaces(live) {
			return op.replace(ctx, live)
		}
		kind = live.Kind
	}
	settings, problems := ParseAnnotations(op.svc.Annotations, kind)
	var model *Model
	if live == nil {
		live, model, err = op.create(ctx, settings, problems, since)
	} else {
		live, model, err = op.update(ctx, settings, problems, live)
	}
	if err != nil {
		return nil, settings, err
	}
	op.mem.id = live.ID
	former, err := op.settleReplacement(ctx, live)
	if err != nil {
		return nil, settings, err
	}
	record := op.applied(model)
	record.Former = former
	op.save(ctx, live.ID, record.withoutLost(live))
	if former == nil {
		err = op.dropFormerGroup(ctx, live, model)
	}
	if err != nil {
		return nil, settings, err
	}
	if err := op.refuseLate(); err != nil {
		return nil, settings, err
	}
	if len(live.Addresses) == 0 {
		return nil, settings, pendingUntil("the address of "+live.ID, time.Now().Add(lastPoll))
	}
	return live, settings, nil
}

// refuseLate ends a sync that has done what it could. A Service without an address gets it first.
func (op *operation) refuseLate() error {
	switch {
	case len(op.late) == 0:
		return nil
	case len(op.svc.Status.LoadBalancer.Ingress) == 0:
		op.warnings = append(op.warnings, op.late...)
		return nil
	}
	return op.refuseProblems(op.late)
}

// findAtRest finds the Service's balancer and waits until it can be changed. A balancer that is being deleted is waited
// for until it is gone; one whose creation failed is removed.
func (op *operation) findAtRest(ctx context.Context) (*oci.Balancer, time.Time, error) {
	for {
		b, since, err := op.find(ctx)
		if err != nil || b == nil {
			return nil, since, err
		}
		switch b.State {
		case stateCreating, stateDeleting:
			rested, err := op.atRest(ctx, b, stateCreating, stateDeleting)
			if err != nil {
				return nil, since, err
			}
			if rested == nil {
				op.isGone(b)
				continue
			}
			b = rested
		}
		if b.State != stateFailed || b.Kind == oci.KindNLB && op.wasActive(b) {
			return b, since, nil
		}
		return nil, since, op.removeFailed(ctx, b)
	}
}

// isGone notes that a balancer was proven to be gone.
func (op *operation) isGone(b *oci.Balancer) {
	op.mem.gone, op.mem.id = b.ID, ""
	op.m.lists.invalidate(op.place(b.Kind, b.CompartmentID))
}

// desired makes the model, and tells what is to be told about it.
func (op *operation) desired(settings Settings, problems Problems, facts Facts) (*Model, error) {
	facts.Gone = op.m.deps.Gone
	model, more := Desired(op.svc, op.nodes, settings, op.m.cfg, facts)
	problems = append(problems, more...)
	op.warnings = append(op.warnings, problems.Warnings()...)
	op.late = problems.Late()
	op.complete = true
	if fatal := problems.Fatal(); len(fatal) > 0 {
		return nil, op.refuseProblems(fatal)
	}
	return model, nil
}

// update changes a live balancer.
func (op *operation) update(ctx context.Context, settings Settings, problems Problems, live *oci.Balancer) (*oci.Balancer, *Model, error) {
	facts, err := op.liveFacts(ctx, live)
	if err != nil {
		return nil, nil, err
	}
	facts.Last = op.last()
	if facts.Certificates, err = op.readSecrets(ctx, settings); err != nil {
		return nil, nil, err
	}
	model, err := op.desired(settings, problems, facts)
	if err != nil {
		op.refusedRules(ctx, live)
		return nil, nil, err
	}
	if err := op.prepareRules(ctx, ruleInputs{settings: settings, model: model, live: live, mayWrite: true}); err != nil {
		return nil, nil, err
	}
	last := op.last()
	if !model.RuleSets.Managed {
		op.mem.ruleSets = nil
	}
	marks := marksOf(op.svc, op.m.cfg.ClusterID)
	told := false
	live, err = op.converge(ctx, live, model, last, func(b *oci.Balancer) Plan {
		plan, problems := Diff(b, model, last, marks)
		if !told {
			op.warnings = append(op.warnings, problems...)
			told = true
		}
		if plan = op.withRules(ctx, plan); len(plan) > 0 {
			op.saveTakeover(ctx, b, model)
		}
		return plan
	})
	return live, model, firstError(err, op.rulesDone(ctx, err))
}

// updateBackends changes the backends of a live balancer.
func (op *operation) updateBackends(ctx context.Context) error {
	if err := op.identify(ctx); err != nil {
		return err
	}
	if err := op.finishOpen(ctx); err != nil {
		return err
	}
	live, _, err := op.find(ctx)
	if err != nil {
		return err
	}
	if live == nil || live.State != stateActive && live.State != stateUpdating {
		return ErrMissing
	}
	settings, problems := ParseAnnotations(op.svc.Annotations, live.Kind)
	model, more := Desired(op.svc, op.nodes, settings, op.m.cfg, Facts{Live: live, Last: op.last(), Gone: op.m.deps.Gone})
	// Whatever else is wrong with the Service, Ensure tells; its backends follow the nodes all the same.
	problems = append(problems, more...)
	if fatal := problems.filter(func(p Problem) bool { return p.Fatal && p.Nodes }); len(fatal) > 0 {
		return op.refuseProblems(fatal)
	}
	if err := op.prepareRules(ctx, ruleInputs{settings: settings, model: model, live: live, recorded: len(problems.Fatal()) > 0}); err != nil {
		return err
	}
	op.warnings = append(op.warnings, more.filter(func(p Problem) bool { return p.Reason == ReasonNodesSkipped || p.Reason == ReasonNoNodeSelected })...)
	_, err = op.converge(ctx, live, model, lastApplied(op.svc), func(b *oci.Balancer) Plan { return op.withRules(ctx, DiffBackends(b, model)) })
	return firstError(err, op.rulesDone(ctx, err))
}

// wasActive says whether the balancer has once served the Service.
func (op *operation) wasActive(b *oci.Balancer) bool {
	return op.svc.Annotations[AnnotationOCID] == b.ID || op.inStatus(b)
}

// statusOf is the status of a Service with this balancer: an entry for each address, always in the same order. Of a public
// balancer only public addresses are shown, unless the Service asks for the others too.
func statusOf(b *oci.Balancer, s Settings) *v1.LoadBalancerStatus {
	status := &v1.LoadBalancerStatus{}
	all := b.Private || !orDefault(s.ExternalIPOnly, true) ||
		!slices.ContainsFunc(b.Addresses, func(a oci.BalancerAddress) bool { return a.Public })
	for _, a := range sortedAddresses(b.Addresses) {
		if all || a.Public {
			status.Ingress = append(status.Ingress, v1.LoadBalancerIngress{IP: a.IP, IPMode: s.IngressIPMode})
		}
	}
	return status
}

// readFacts reads what a creation needs to know.
func (op *operation) readFacts(ctx context.Context, s Settings) (Facts, error) {
	var facts Facts
	var err error
	facts.Last = op.last()
	if facts.Certificates, err = op.readSecrets(ctx, s); err != nil {
		return facts, err
	}
	for _, id := range SubnetCandidates(s, op.m.cfg) {
		subnet, _, err := op.m.subnets.get(ctx, id, op.m.cfg.SubnetMaxAge)
		if err != nil {
			return facts, op.refuse("read subnet "+id, s.Kind, err)
		}
		facts.Subnets = append(facts.Subnets, subnet)
	}
	if ip := op.svc.Spec.LoadBalancerIP; ip != "" && op.as.publicIPs != nil && isPublicCandidate(ip) && !orDefault(s.Internal, false) {
		found, err := op.as.publicIPs.GetPublicIPByAddress(ctx, ip)
		switch {
		case errors.Is(err, oci.ErrNotFound): // Desired says so
		case err != nil:
			return facts, op.refuse("look up spec.loadBalancerIP", s.Kind, err)
		default:
			facts.ReservedIP = found
		}
	}
	return facts, nil
}
