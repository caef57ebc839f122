// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package loadbalancer

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/oracle/oci-cloud-controller-manager/pkg/oci"
)

// RuleSetUpdater is a Cloud whose balancers have rule sets.
type RuleSetUpdater interface {
	CreateRuleSet(ctx context.Context, id string, rs oci.RuleSet, retryToken string) (workRequestID string, err error)
	UpdateRuleSet(ctx context.Context, id string, rs oci.RuleSet, etag string) (workRequestID string, err error)
	DeleteRuleSet(ctx context.Context, id, name string) (workRequestID string, err error)
}

// RuleSets are the rule sets that a Service asks for, by name. Unmanaged, those of the balancer and of its listeners stay as
// they are.
//
// Names of rule sets are the user's choice and say nothing about who made them. Ours are those that the annotation names, and
// those that the record of the Service names: see Applied and operation.claimRuleSets.
type RuleSets struct {
	Managed bool
	Sets    map[string]oci.RuleSet
}

// ruleSets reads the annotation.
func ruleSets(s *Settings, value string) error {
	sets, err := oci.ParseRuleSets(value)
	if err == nil {
		s.RuleSets = RuleSets{Managed: true, Sets: sets}
	}
	return err
}

// names are sorted.
func (r RuleSets) names() []string { return sortedKeys(r.Sets) }

// digests is what the record keeps: enough to see that the user has changed a rule set.
func (r RuleSets) digests() map[string]string {
	out := make(map[string]string, len(r.Sets))
	for name, set := range r.Sets {
		out[name] = digestOf(set)
	}
	return out
}

func digestOf(set oci.RuleSet) string {
	sum := sha256.Sum256([]byte(set.Rules))
	return hex.EncodeToString(sum[:6])
}

// merge returns the rule sets that a listener should have: all that the Service asks for, and those that others made.
func (r RuleSets) merge(have []string, last Applied) []string {
	if !r.Managed {
		return have
	}
	var out []string
	for _, name := range have {
		_, wanted := r.Sets[name]
		if _, was := last.RuleSets[name]; wanted || !was {
			out = append(out, name)
		}
	}
	for _, name := range r.names() {
		if !slices.Contains(out, name) {
			out = append(out, name)
		}
	}
	return out
}

// same says whether a rule set of the cloud is what the Service asks for. What the service fills in is no difference, unless
// the user has taken it out of the annotation since.
func (r RuleSets) same(have oci.RuleSet, last Applied) bool {
	want := r.Sets[have.Name]
	digest := last.RuleSets[have.Name]
	return want.SatisfiedBy(have) && (digest == "" || digest == digestOf(want))
}

func (p *printer) ruleSets(r RuleSets) {
	if r.Managed && len(r.Sets) == 0 {
		p.line(1, "rule sets: none")
	}
	for _, name := range r.names() {
		p.line(1, "rule set %s: %s", name, r.Sets[name].Rules)
	}
}

// ruleSets makes what the listeners refer to, and changes it.
func (d *differ) ruleSets() {
	for _, name := range d.want.RuleSets.names() {
		have, exists := d.have.RuleSets[name]
		switch {
		case !exists:
			d.ruleSteps = append(d.ruleSteps, d.plan.add(Step{Action: CreateRuleSet, Name: name, Want: -1}))
		case !d.want.RuleSets.same(have, d.last):
			d.plan.add(Step{Action: UpdateRuleSet, Name: name, Want: -1})
		}
	}
}

// releases notes that a step takes rule sets off a listener.
func (d *differ) releases(step int, names []string) {
	for _, name := range names {
		d.released[name] = append(d.released[name], step)
	}
}

// obsoleteRuleSets deletes those of ours that the Service does not ask for any more. One that a listener of somebody else
// refers to stays.
func (d *differ) obsoleteRuleSets() Problems {
	var problems Problems
	if !d.want.RuleSets.Managed {
		return nil
	}
	for _, name := range sortedKeys(d.have.RuleSets) {
		_, wanted := d.want.RuleSets.Sets[name]
		_, ours := d.last.RuleSets[name]
		switch {
		case wanted || !ours:
		case d.foreignRuleSets[name]:
			problems.warn(ReasonKeptInUse, fmt.Sprintf("rule set %s is no longer needed by the Service, but stays: a listener that is not ours refers to it", name))
		default:
			d.plan.add(Step{Action: DeleteRuleSet, Name: name, Want: -1, After: d.released[name]})
		}
	}
	return problems
}

// ruleSetRequest works out the change of a step that is about a rule set.
func (a *applier) ruleSetRequest(step Step) (request, error) {
	updater, ok := a.cloud.(RuleSetUpdater)
	have, exists := a.current.RuleSets[step.Name]
	want := a.want.RuleSets.Sets[step.Name]
	id, etag := a.current.ID, a.current.ETag
	switch {
	case !ok:
		return nil, fmt.Errorf("loadbalancer: balancers of type %s have no rule sets", a.cloud.Kind())
	case step.Action == DeleteRuleSet && !exists:
		return nil, nil
	case step.Action == DeleteRuleSet:
		return func(ctx context.Context) (string, error) {
			work, err := updater.DeleteRuleSet(ctx, id, step.Name)
			if err == nil {
				delete(a.op.mem.ruleSets, step.Name)
			}
			return work, err
		}, nil
	case exists != (step.Action == UpdateRuleSet):
		return nil, errReplan
	case exists && a.want.RuleSets.same(have, a.last):
		return nil, nil
	}
	return func(ctx context.Context) (string, error) {
		send := func() (string, error) { return updater.CreateRuleSet(ctx, id, want, "") }
		if exists {
			send = func() (string, error) { return updater.UpdateRuleSet(ctx, id, want, etag) }
		}
		work, err := send()
		if err == nil {
			a.op.sentRuleSet(a.last, want)
		}
		return work, err
	}, nil
}

// sentRuleSet notes which rules were last sent: what the service makes of fields that are not among them any more is its own
// business.
func (op *operation) sentRuleSet(last Applied, set oci.RuleSet) {
	if op.mem.ruleSets == nil {
		op.mem.ruleSets = map[string]string{}
	}
	op.mem.ruleSets[set.Name], last.RuleSets[set.Name] = digestOf(set), digestOf(set)
}

// last is what was last applied, as far as the Service and this process know.
func (op *operation) last() Applied {
	a := lastApplied(op.svc)
	if op.only != nil {
		a = Applied{RuleSets: a.RuleSets} // the rest is about the balancer that is replaced
	}
	if a.RuleSets == nil {
		a.RuleSets = map[string]string{}
	}
	maps.Copy(a.RuleSets, op.mem.ruleSets)
	if a.Kind == "" && op.only == nil { // it could not be recorded
		a.AsFound = op.mem.asFound
	}
	return a
}

// claimRuleSets records the names of rule sets before they are made, so that a process that ends right after that leaves none
// behind of which nobody knows whose it is.
func (op *operation) claimRuleSets(ctx context.Context, wanted RuleSets) error {
	record := lastApplied(op.svc)
	if record.RuleSets == nil {
		record.RuleSets = map[string]string{}
	}
	known := len(record.RuleSets)
	for _, name := range wanted.names() {
		if _, is := record.RuleSets[name]; !is {
			record.RuleSets[name] = ""
		}
	}
	if len(record.RuleSets) == known {
		return nil
	}
	return op.record(ctx, op.svc.Annotations[AnnotationOCID], record)
}

// listedRuleSets joins names for people.
func listedRuleSets(names []string) string {
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(slices.Sorted(slices.Values(names)), ", ")
}
