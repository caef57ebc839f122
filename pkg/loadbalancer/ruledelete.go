// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package loadbalancer

import (
	"context"
	"errors"
	"maps"
	"slices"

	v1 "k8s.io/api/core/v1"

	"github.com/oracle/oci-cloud-controller-manager/pkg/firewall"
	"github.com/oracle/oci-cloud-controller-manager/pkg/oci"
)

// deleteAll removes the Service's rules, its balancers, and its network security group, in this order: so a process that dies
// on the way leaves something that tells the next one that there is more to do.
func (op *operation) deleteAll(ctx context.Context) error {
	if op.m.deps.Firewall.off() {
		return op.delete(ctx)
	}
	op.waitForOpen(ctx)
	b, err := op.byOCID(ctx)
	if err != nil {
		return err
	}
	if b == nil {
		found, _, err := op.listed(ctx, 0)
		if err != nil {
			return err
		}
		if len(found) > 0 {
			b = found[0]
		}
	}
	groups, err := op.findGroups(ctx, b)
	if err != nil {
		return err
	}
	if b == nil || !b.DeleteProtection { // a balancer that stays keeps its rules
		if err := op.releaseRules(ctx, b, groups); err != nil {
			return err
		}
	}
	if err := op.delete(ctx); err != nil {
		return err
	}
	return op.deleteGroups(ctx, groups)
}

// mayHaveRules says whether a Service without a balancer may still have rules, or a network security group.
func (op *operation) mayHaveRules() bool {
	if op.m.deps.Firewall.off() {
		return false
	}
	if before := op.rulesBefore(); before != nil {
		return !before.Need.none() || len(before.unkempt()) > 0 || before.Legacy != nil || before.group() != ""
	}
	settings, _ := ParseAnnotations(op.svc.Annotations, WantedKind(op.svc.Annotations))
	return chooseRules(settings, op.m.cfg).Mode != RulesNone
}

// releaseRules removes the rules that only this Service needs. b is its balancer; nil if it has none. Of its network security
// groups only those count that are left.
func (op *operation) releaseRules(ctx context.Context, b *oci.Balancer, left []leftGroup) error {
	before := op.rulesBefore()
	guessed := before == nil
	if guessed {
		before = op.guessRules(b)
	}
	p := &rulePlanner{op: op, w: &ruleWork{kind: WantedKind(op.svc.Annotations)}, subnets: map[string]ruleSubnet{}}
	claim := firewall.Claim{Owner: string(op.svc.UID)}
	rules := ruleSet{}
	var inUse []string
	needs := append(before.unkempt(), before.Need)
	if !guessed {
		// A process may have ended in the middle of a change: then there are rules that are not recorded yet.
		needs = append(needs, op.guessRules(b).Need)
	}
	for _, n := range needs {
		if b != nil {
			n.Subnets = union(n.Subnets, b.SubnetIDs)
		}
		if n.Nodes {
			if inUse == nil {
				inUse = op.allNodeSubnets(ctx)
			}
			n.NodeSubnets = union(n.NodeSubnets, inUse)
		}
		rules.addAll(rulesOf(n, p.readSubnets(ctx, n, false)))
		if !slices.ContainsFunc(left, func(g leftGroup) bool { return g.id == n.Group }) {
			delete(rules, firewall.Target{Kind: firewall.NSG, ID: n.Group})
		}
		for _, id := range n.BackendGroups {
			rules.touch(firewall.Target{Kind: firewall.NSG, ID: id})
		}
	}
	claim.Rules = rules
	if before.Legacy != nil {
		legacy := *before.Legacy
		if guessed {
			legacy.NodeSubnets = inUse
		}
		claim.Legacy = legacyRules(legacy, p.readSubnets(ctx, legacy, false))
	}
	if p.w.trouble != nil {
		return op.refuse("close the security rules", p.w.kind, p.w.trouble)
	}
	report, err := op.m.deps.Firewall.Rules.Release(ctx, claim.Owner, claim)
	if len(report.Waiting) > 0 { // for Services that may turn out not to need them, and end without having looked there
		for id := range p.subnets {
			if subnet, _, err := op.m.subnets.get(ctx, id, op.m.cfg.RuleSubnetMaxAge); err == nil {
				op.m.sweeping.note(firewall.SecurityList, firewall.Place{CompartmentID: subnet.CompartmentID, VCNID: subnet.VCNID})
			}
		}
	}
	var access *firewall.AccessError
	if errors.As(err, &access) || errors.Is(err, oci.ErrNotFound) {
		// Who may not change rules cannot have made them, unless the policy was taken away since. That must not keep the
		// Service for ever.
		op.warn(ReasonRulesNotApplied, op.words(explain("close the security rules", p.w.kind, err)))
		err = nil
	}
	if err != nil {
		return op.refuse("close the security rules", p.w.kind, err)
	}
	return nil
}

// touch puts a target into the set, with no rules if it has none.
func (r ruleSet) touch(t firewall.Target) {
	if _, known := r[t]; !known {
		r[t] = nil
	}
}

// guessRules is what the rules of a Service can be of which nothing is recorded.
func (op *operation) guessRules(b *oci.Balancer) *RulesApplied {
	kind := WantedKind(op.svc.Annotations)
	if b != nil {
		kind = b.Kind
	}
	settings, _ := ParseAnnotations(op.svc.Annotations, kind)
	m := &Model{Kind: kind, IPMode: oci.IPModeDual, Checker: checker(op.svc), SubnetIDs: SubnetCandidates(settings, op.m.cfg)}
	preserve := kind == oci.KindNLB && local(op.svc)
	m.BackendSets = []BackendSet{{IPVersion: ipV4, PreserveSource: &preserve}, {IPVersion: ipV6}}
	if b != nil {
		m.SubnetIDs = b.SubnetIDs
	}
	if b != nil && isLegacy(b) {
		former := formerRules(op.svc.Annotations, kind)
		return takeOver(former, needOf(op.svc, settings, former, m))
	}
	choice := chooseRules(settings, op.m.cfg)
	return &RulesApplied{RuleChoice: choice, Need: needOf(op.svc, settings, choice, m)}
}

// allNodeSubnets are the subnets of all nodes, as far as they are known.
func (op *operation) allNodeSubnets(ctx context.Context) []string {
	nodes := op.nodes
	if op.m.deps.Nodes != nil {
		var err error
		if nodes, err = op.m.deps.Nodes(ctx); err != nil {
			op.log.Error(err, "Could not list the nodes; the security rules in the recorded subnets are closed")
			return []string{}
		}
	}
	nodes = slices.DeleteFunc(slices.Clone(nodes), func(n *v1.Node) bool {
		_, err := newTarget(n, op.m.deps.Gone)
		return err != nil
	})
	found, _ := op.m.deps.Firewall.NodeSubnets(ctx, nodes)
	return append([]string{}, union(slices.Collect(maps.Values(found)), nil)...)
}

// union joins two sets.
func union(a, b []string) []string {
	return slices.Compact(slices.Sorted(slices.Values(slices.Concat(a, b))))
}
