// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package loadbalancer

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/oracle/oci-cloud-controller-manager/pkg/firewall"
	"github.com/oracle/oci-cloud-controller-manager/pkg/oci"
)

const openingRules = "open the security rules"

// withRules adds the steps about security rules to a plan.
func (op *operation) withRules(ctx context.Context, plan Plan) Plan {
	w := op.rules
	if w == nil || w.blocked || w.failed {
		return plan
	}
	changes, err := op.m.deps.Firewall.Rules.Check(ctx, w.claim)
	if err != nil {
		op.rulesFailed(w, "read the security rules", err)
		return plan
	}
	return plan.withRules(changes, w.hold)
}

// withRules puts the opening of rules before everything that needs them, and the closing behind everything. hold leaves the
// closing out.
func (p Plan) withRules(changes firewall.Changes, hold bool) Plan {
	var open, closed []string
	for target, change := range changes {
		for _, r := range change.Add {
			open = append(open, fmt.Sprintf("%s on %s", r, target))
		}
		for _, r := range change.Remove {
			closed = append(closed, fmt.Sprintf("%s on %s", r, target))
		}
	}
	slices.Sort(open)
	slices.Sort(closed)
	if len(open) > 0 {
		p = p.first(Step{Action: OpenRules, Want: -1, Detail: strings.Join(open, "; ")}, Step.needsRules)
	}
	if len(closed) > 0 && !hold {
		all := make([]int, len(p))
		for i := range all {
			all[i] = i
		}
		p.add(Step{Action: CloseRules, Want: -1, After: all, Detail: strings.Join(closed, "; ")})
	}
	return p
}

// needsRules says whether rules have to be open before a step.
func (s Step) needsRules() bool { return s.bringsTraffic() || s.Action == UpdateNSGs }

// bringsTraffic says whether a step brings traffic that rules have to let through.
func (s Step) bringsTraffic() bool {
	switch s.Action {
	case CreateBackendSet, UpdateBackendSet, CreateListener, UpdateListener:
		return true
	}
	return false
}

// runRules carries out a step about security rules. Whether it succeeds or not, the other steps go on: traffic that is not
// let through is better than a balancer that is out of date altogether.
func (a *applier) runRules(ctx context.Context, step Step) bool {
	ctx, cancel := a.op.call(ctx)
	defer cancel()
	var err error
	var report firewall.Report
	doing := openingRules
	if step.Action == OpenRules {
		err = a.op.openRules(ctx)
	} else {
		doing = "close security rules"
		report, err = a.op.m.deps.Firewall.Rules.Settle(ctx, a.op.rules.claim)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if err != nil {
		a.op.rulesFailed(a.op.rules, doing, err)
		return true
	}
	a.accepted++
	a.op.tellReport(report)
	return true
}

// openRules opens what the Service needs.
func (op *operation) openRules(ctx context.Context) error {
	for _, id := range op.rules.applied.Need.BackendGroups {
		if err := op.m.deps.Firewall.Rules.MarkBackendGroup(ctx, id); err != nil {
			return err
		}
	}
	return op.m.deps.Firewall.Rules.Open(ctx, op.rules.claim)
}

// rulesFailed notes that something about security rules did not succeed. A missing policy is told, and hinders nothing else;
// after other failures the operation is repeated.
func (op *operation) rulesFailed(w *ruleWork, doing string, err error) {
	w.failed = true
	var access *firewall.AccessError
	if errors.As(err, &access) || errors.Is(err, oci.ErrNotFound) {
		e := explain(doing, w.kind, err)
		w.problems.warn(ReasonRulesNotApplied, op.words(e))
		return
	}
	if w.trouble == nil {
		w.trouble = fmt.Errorf("%s: %w", doing, err)
	}
}

// prepareRules works out what is to be done about rules, and puts the network security group of the Service into the model.
func (op *operation) prepareRules(ctx context.Context, in ruleInputs) error {
	w, err := op.planRules(ctx, in)
	switch {
	case err != nil:
		return op.refuse("manage the network security group of the Service", in.settings.Kind, err)
	case w == nil:
		return nil
	}
	op.rules = w
	in.model.join(w.applied.Need.Group)
	return nil
}

// join puts a network security group into the model.
func (m *Model) join(group string) {
	m.Group = group
	if group != "" && !slices.Contains(m.NSGIDs, group) {
		m.NSGIDs = slices.Sorted(slices.Values(append(slices.Clone(m.NSGIDs), group)))
	}
}

// openForCreation opens rules before the balancer is made that needs them, so that it serves from its first moment on. A
// missing policy does not hinder the creation; other failures do, and so does a limit.
func (op *operation) openForCreation(ctx context.Context, settings Settings, model *Model) error {
	if err := op.prepareRules(ctx, ruleInputs{settings: settings, model: model, mayWrite: true}); err != nil {
		return err
	}
	w := op.rules
	if w == nil {
		return nil
	}
	if !w.blocked && !w.failed && len(w.claim.Rules) > 0 {
		if err := op.openRules(ctx); err != nil {
			op.rulesFailed(w, openingRules, err)
		}
	}
	if w.trouble != nil {
		return op.rulesDone(ctx, nil)
	}
	return nil
}

// applied is the record of a model that was applied.
func (op *operation) applied(model *Model) Applied {
	a := model.applied()
	if op.rules != nil {
		a.Rules = &op.rules.applied
	} else {
		a.Rules = lastApplied(op.svc).Rules
	}
	return a
}

func firstError(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// rulesDone ends the part of an operation that is about rules, whose other part had the given outcome: if all is done, the
// claim is now all that the Service needs. It returns what has failed.
func (op *operation) rulesDone(ctx context.Context, outcome error) error {
	w := op.rules
	if w == nil {
		return nil
	}
	if outcome == nil && !w.blocked && !w.hold && w.trouble == nil {
		// Where a policy is missing for one target, the others are settled all the same.
		told := w.failed
		report, err := op.m.deps.Firewall.Rules.Settle(ctx, w.claim)
		var access *firewall.AccessError
		switch {
		case err == nil:
			op.tellReport(report)
		case !told || !errors.As(err, &access):
			op.rulesFailed(w, "close security rules", err)
		}
	}
	op.warnings = append(op.warnings, w.problems...)
	w.problems = nil
	if w.trouble != nil && outcome == nil {
		return op.refuse("keep the security rules", w.kind, w.trouble)
	}
	if outcome == nil && !w.hold && !w.blocked {
		applied := w.applied
		op.mem.rules = &applied
	}
	return nil
}

// tellReport tells what the user should know about rules that are not as they were made.
func (op *operation) tellReport(r firewall.Report) {
	var edited, kept []string
	for target, rules := range r.Edited {
		for _, text := range rules {
			edited = append(edited, fmt.Sprintf("%s on %s", text, target.ID))
		}
	}
	for target, rules := range r.Kept {
		for _, rule := range rules {
			kept = append(kept, fmt.Sprintf("%s on %s", rule, target.ID))
		}
	}
	slices.Sort(edited)
	slices.Sort(kept)
	problems := &op.rules.problems
	once := func(reason, text string) {
		if !slices.ContainsFunc(*problems, func(p Problem) bool { return p.Message == text }) {
			problems.warn(reason, text)
		}
	}
	if len(edited) > 0 {
		once(ReasonRulesEdited, "these security rules have the description of this cluster, but somebody has changed them; they are left alone: "+strings.Join(edited, "; "))
	}
	if len(kept) > 0 {
		once(ReasonRulesLeft, "these security rules were made by the implementation before this one, and nobody needs them any more; remove them by hand, or start with --keep-anonymous-rules=false: "+strings.Join(kept, "; "))
	}
}

// refusedRules keeps the claim of a Service whose sync is refused as it is recorded, so that others can close what only they
// have needed.
func (op *operation) refusedRules(ctx context.Context, live *oci.Balancer) {
	if op.m.deps.Firewall.off() {
		return
	}
	before := op.rulesBefore()
	if before == nil && live != nil {
		return // nothing is known; the firewall takes it into account
	}
	p := &rulePlanner{op: op, w: &ruleWork{}, subnets: map[string]ruleSubnet{}}
	if before != nil {
		p.w.applied = *before
	}
	p.claim(ctx, nil)
	if p.w.blocked || p.w.failed {
		return
	}
	if _, err := op.m.deps.Firewall.Rules.Settle(ctx, p.w.claim); err != nil {
		op.log.Error(err, "Could not keep the security rules of a Service whose sync is refused")
	}
}
