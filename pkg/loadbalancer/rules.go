// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package loadbalancer

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"

	"github.com/oracle/oci-cloud-controller-manager/pkg/firewall"
	"github.com/oracle/oci-cloud-controller-manager/pkg/oci"
)

// ruleWork is what is to be done about the security rules of a Service in one operation.
type ruleWork struct {
	// applied is what the record says afterwards.
	applied RulesApplied
	claim   firewall.Claim
	// takeover is what the existing implementation has left, if nothing was recorded of the Service until now.
	takeover *RulesApplied
	// hold means that nothing may be closed: not all that the Service needs is known.
	hold bool
	// blocked means that the firewall is not asked at all: what is known would look like less than what is needed.
	blocked bool
	// lacksGroup means that the network security group of the Service is missing.
	lacksGroup bool
	// failed means that something was tried in this operation and did not succeed; it is not tried again in it.
	failed bool
	// trouble is a failure that makes the operation one that has to be repeated, once all else is done.
	trouble error
	// problems are what the user should know.
	problems Problems
	// kind is that of the balancer.
	kind oci.BalancerKind
}

// ruleInputs are what the rules of a Service follow from.
type ruleInputs struct {
	settings Settings
	model    *Model
	live     *oci.Balancer
	// recorded takes the rules of the record, since the Service's settings are refused.
	recorded bool
	// mayWrite allows making the network security group of the Service.
	mayWrite bool
}

// rulesBefore is what the Service's rules were when they were last in order; nil if that is not known.
func (op *operation) rulesBefore() *RulesApplied {
	if op.mem.rules != nil {
		return op.mem.rules
	}
	return lastApplied(op.svc).Rules
}

// planRules works out what the rules of a Service should be. It changes nothing, but for the network security group, which
// has to be there before anything can refer to it. Nil means that rules are not managed by this process.
func (op *operation) planRules(ctx context.Context, in ruleInputs) (*ruleWork, error) {
	if op.m.deps.Firewall.off() {
		return nil, nil
	}
	p := &rulePlanner{op: op, in: in, w: &ruleWork{kind: in.settings.Kind}, subnets: map[string]ruleSubnet{}}
	before := op.rulesBefore()
	if in.recorded {
		return p.asRecorded(ctx, before), nil
	}
	choice := chooseRules(in.settings, op.m.cfg)
	if before == nil && in.live != nil && isLegacy(in.live) {
		former := formerRules(op.svc.Annotations, in.live.Kind)
		before = takeOver(former, p.complete(ctx, needOf(op.svc, in.settings, former, in.model), nil))
		p.w.takeover = before
	}
	applied := &p.w.applied
	applied.RuleChoice = choice
	applied.Need = p.complete(ctx, needOf(op.svc, in.settings, choice, in.model), before)
	var left *Need
	applied.Replaced = op.replacedRules(before, in.live)
	if op.only == nil || op.only.kind == lastApplied(op.svc).Kind {
		applied.Kept, left = nextRules(before, choice)
	} // else the annotation of the type was edited, which may have changed the mode too
	if before != nil {
		applied.Legacy = before.Legacy
	}
	var err error
	if choice.Mode == RulesNSG {
		applied.Need.Group, err = op.managedGroup(ctx, p.w, in)
	} else {
		applied.Group = before.group()
	}
	if err != nil {
		return nil, err
	}
	p.claim(ctx, left)
	p.touchFormer(ctx, before)
	return p.w, nil
}

// touchFormer makes the firewall look where the Service had rules before.
func (p *rulePlanner) touchFormer(ctx context.Context, before *RulesApplied) {
	if before == nil {
		return
	}
	for _, n := range append(before.unkempt(), before.Need) {
		for target := range rulesOf(n, p.readSubnets(ctx, n, false)) {
			ruleSet(p.w.claim.Rules).touch(target)
		}
	}
}

// asRecorded is the work for a Service whose settings are refused, and whose backends follow the nodes all the same: its rules
// stay as they are recorded, and only more nodes are let in.
func (p *rulePlanner) asRecorded(ctx context.Context, before *RulesApplied) *ruleWork {
	if before == nil {
		return nil
	}
	p.w.hold = true
	p.w.applied = *before
	if n := &p.w.applied.Need; n.Nodes {
		n.NodeSubnets = union(n.NodeSubnets, p.findNodeSubnets(ctx).ids)
	}
	p.claim(ctx, nil)
	return p.w
}

// replacedRules are the rules of a balancer that is being replaced, until it is gone.
func (op *operation) replacedRules(before *RulesApplied, live *oci.Balancer) *Need {
	former := lastApplied(op.svc).Former
	switch {
	case before == nil:
		return nil
	case op.only != nil && before.Replaced == nil: // this operation makes the successor
		return &before.Need
	case op.only != nil, former != nil && (live == nil || former.ID != live.ID):
		return before.Replaced
	default:
		return nil
	}
}

// isLegacy says whether the existing implementation made a balancer, and this one has not changed it yet.
func isLegacy(live *oci.Balancer) bool { return live.Freeform[TagOwner] == "" }

// rulePlanner makes a ruleWork.
type rulePlanner struct {
	op      *operation
	in      ruleInputs
	w       *ruleWork
	subnets map[string]ruleSubnet

	nodeSubnets *nodeSubnets
}

// nodeSubnets are the subnets of the nodes that are backends; all says that none is missing.
type nodeSubnets struct {
	ids []string
	all bool
}

// complete adds the node subnets to a need.
func (p *rulePlanner) complete(ctx context.Context, n Need, before *RulesApplied) Need {
	if !n.Nodes {
		return n
	}
	if p.nodeSubnets == nil {
		p.nodeSubnets = p.findNodeSubnets(ctx)
	}
	n.NodeSubnets = p.nodeSubnets.ids
	switch {
	case p.nodeSubnets.all:
	case before != nil && before.Need.Nodes:
		// What was opened for nodes that are not known any more must stay.
		n.NodeSubnets = union(n.NodeSubnets, before.Need.NodeSubnets)
	default:
		p.w.hold = p.w.hold || p.in.live != nil
	}
	return n
}

func (p *rulePlanner) findNodeSubnets(ctx context.Context) *nodeSubnets {
	op := p.op
	t := selectTargets(op.nodes, p.in.settings.Selector, op.m.deps.Gone)
	usable := make(map[string]bool, len(t.usable))
	for _, x := range t.usable {
		usable[x.node] = true
	}
	nodes := slices.DeleteFunc(slices.Clone(op.nodes), func(n *v1.Node) bool { return !usable[n.Name] })
	found, unknown := op.m.deps.Firewall.NodeSubnets(ctx, nodes)
	out := &nodeSubnets{all: len(unknown) == 0 && !p.in.model.KeepBackends}
	out.ids = union(slices.Collect(maps.Values(found)), nil)
	var names []string
	for _, name := range sortedKeys(unknown) {
		switch err := unknown[name]; {
		case passing(err):
			p.w.trouble = fmt.Errorf("find the subnet of node %s: %w", name, err)
		case len(names) < maxNamedNodes:
			names = append(names, name+": "+op.words(explain("find its subnet", p.w.kind, err)))
		default:
			names = append(names, name)
		}
	}
	if len(names) > 0 {
		p.w.problems.warn(ReasonNodeSubnetUnknown, fmt.Sprintf("the subnets of %d nodes are not known, so no security rules are opened for them: %s", len(names), named(names)))
	}
	return out
}

// passing says whether an error may go away by itself.
func passing(err error) bool {
	var cloud *oci.Error
	return errors.As(err, &cloud) && (cloud.Status == 0 || cloud.Status == http.StatusTooManyRequests || cloud.Status >= 500) ||
		errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled)
}

// claim makes the claim. Rules of former modes are in it as far as they exist: so they are not taken for rules that nobody
// needs, and are not made again either when somebody removes them.
func (p *rulePlanner) claim(ctx context.Context, left *Need) {
	w := p.w
	managed := rulesOf(w.applied.Need, p.readSubnets(ctx, w.applied.Need, true))
	all, kept := ruleSet{}, ruleSet{}
	all.addAll(managed)
	for _, n := range w.applied.unkempt() {
		kept.addAll(rulesOf(n, p.readSubnets(ctx, n, false)))
	}
	all.addAll(kept)
	inherited := p.in.model == nil || p.in.model.AsFound != ""
	w.claim = firewall.Claim{Owner: string(p.op.svc.UID), Rules: all, Inherited: inherited}
	if w.applied.Legacy != nil {
		w.claim.Legacy = legacyRules(*w.applied.Legacy, p.readSubnets(ctx, *w.applied.Legacy, false))
	}
	if w.blocked || len(kept) == 0 {
		return
	}
	changes, err := p.op.m.deps.Firewall.Rules.Check(ctx, w.claim)
	if err != nil {
		w.blocked = true
		p.op.rulesFailed(w, "read the security rules", err)
		return
	}
	for target := range kept {
		gone := func(r firewall.Rule) bool {
			return slices.Contains(changes[target].Add, r) && !slices.Contains(managed[target], r)
		}
		all[target] = slices.DeleteFunc(all[target], gone)
		kept[target] = slices.DeleteFunc(kept[target], gone)
	}
	if left != nil {
		p.tellLeft(*left, kept)
	}
}

// legacyRules are those that the existing implementation wrote for a need: for TCP only.
func legacyRules(n Need, subnets map[string]ruleSubnet) ruleSet {
	n.Ports = slices.DeleteFunc(slices.Clone(n.Ports), func(p NeededPort) bool { return p.Protocol != string(v1.ProtocolTCP) })
	return rulesOf(n, subnets)
}

// tellLeft names the rules that a former mode has left and nobody keeps in step.
func (p *rulePlanner) tellLeft(left Need, kept ruleSet) {
	texts := kept.describe(rulesOf(left, p.subnets))
	if len(texts) == 0 {
		return
	}
	choice := p.w.applied.RuleChoice
	p.w.problems.warn(ReasonRulesLeft, fmt.Sprintf("these security rules stay, but are not kept in step with the Service any more, since the mode is %s; "+
		"to have those removed that this program has made, set the annotation %s: %s. %s",
		choice.describe(p.w.kind), annotationRuleMode, choice.Mode, strings.Join(texts, "; ")))
}

// describe puts into words the rules that are in both sets.
func (r ruleSet) describe(also ruleSet) []string {
	var out []string
	for target, rules := range r {
		for _, rule := range rules {
			if slices.Contains(also[target], rule) {
				out = append(out, fmt.Sprintf("%s on %s", rule, target.ID))
			}
		}
	}
	slices.Sort(out)
	return out
}

// readSubnets reads the subnets that a need is about. needed says that without them it cannot be met, which is told; what
// is left from former times is passed over.
func (p *rulePlanner) readSubnets(ctx context.Context, n Need, needed bool) map[string]ruleSubnet {
	ids := slices.Clone(n.Subnets)
	if n.Nodes {
		ids = append(ids, n.NodeSubnets...)
	}
	if !n.Frontend && !n.Nodes {
		return p.subnets
	}
	for _, id := range ids {
		if _, known := p.subnets[id]; known {
			continue
		}
		s, err := p.op.m.ruleSubnet(ctx, id)
		if err == nil || errors.Is(err, errNoList) {
			p.subnets[id] = s
		}
		switch {
		case err == nil || !needed && errors.Is(err, oci.ErrNotFound):
		case errors.Is(err, errNoList):
			p.w.problems.warn(ReasonNoSecurityList, fmt.Sprintf("no security rules are opened in subnet %s: it has no security list; attach one, or use the annotation %s: %s", id, annotationRuleMode, RulesNSG))
		default:
			p.w.blocked = true
			p.op.rulesFailed(p.w, "find the security lists", err)
		}
	}
	return p.subnets
}
