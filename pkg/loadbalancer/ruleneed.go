// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package loadbalancer

import (
	"fmt"
	"slices"

	v1 "k8s.io/api/core/v1"

	"github.com/oracle/oci-cloud-controller-manager/pkg/oci"
)

// Need is what the security rules of a Service follow from: everything but the CIDR blocks and the security lists of the
// subnets. It is kept in the record of what was last applied, so it is small, and it always has the same order.
type Need struct {
	ruleParts
	Ports []NeededPort `json:"ports,omitempty"`
	// HealthPort is where the nodes answer the health check, over TCP.
	HealthPort int `json:"health,omitempty"`
	// Sources are the client addresses that may connect.
	Sources []string `json:"sources,omitempty"`
	// Preserve means that the nodes see the addresses of the clients.
	Preserve bool `json:"preserve,omitempty"`
	// V4 and V6 are the families in which the balancer reaches the nodes.
	V4 bool `json:"v4,omitempty"`
	V6 bool `json:"v6,omitempty"`
	// Subnets are those of the balancer; NodeSubnets those of the nodes that are its backends.
	Subnets     []string `json:"subnets,omitempty"`
	NodeSubnets []string `json:"nodeSubnets,omitempty"`
	// Group is the network security group that was made for the Service; BackendGroups are those of the nodes.
	Group         string   `json:"group,omitempty"`
	BackendGroups []string `json:"backendGroups,omitempty"`
}

// NeededPort is a port of the Service.
type NeededPort struct {
	Protocol string `json:"protocol"` // TCP, UDP, TCP_AND_UDP
	Port     int    `json:"port"`
	NodePort int    `json:"nodePort"`
}

// needOf says what rules a Service needs whose balancer is as the model says. It is pure. The node subnets and the group are
// not in it yet.
func needOf(svc *v1.Service, s Settings, choice RuleChoice, m *Model) Need {
	n := Need{ruleParts: choice.Mode.parts()}
	if n.none() {
		return n
	}
	merged, _ := mergePorts(svc)
	for _, p := range merged {
		n.Ports = append(n.Ports, NeededPort{Protocol: p.protocol, Port: int(p.port), NodePort: int(p.nodePort)})
	}
	n.HealthPort = m.Checker.Port
	n.Sources = sources(svc, s, m.IPMode)
	for _, bs := range m.BackendSets {
		n.V4 = n.V4 || bs.IPVersion != ipV6
		n.V6 = n.V6 || bs.IPVersion == ipV6
		n.Preserve = n.Preserve || orDefault(bs.PreserveSource, false)
	}
	if n.Groups {
		n.BackendGroups = s.BackendNSGIDs
		if m.AsFound != "" {
			n.keepPortsAsFound()
		}
		return n
	}
	n.Subnets = slices.Sorted(slices.Values(m.SubnetIDs))
	return n
}

// checkRules refuses what no rule can be made of, and tells the user what has no effect.
func checkRules(svc *v1.Service, s Settings, cfg Config) Problems {
	var problems Problems
	choice := chooseRules(s, cfg)
	if _, err := parseRanges(svc.Spec.LoadBalancerSourceRanges); err != nil {
		problems.fatal(ReasonInvalidSourceRange, fmt.Sprintf("spec.loadBalancerSourceRanges: %v", err))
	}
	if len(svc.Spec.LoadBalancerSourceRanges) > 0 && len(s.SourceRanges) > 0 {
		problems.warn(ReasonAnnotationIgnored, fmt.Sprintf("annotation %s has no effect, since spec.loadBalancerSourceRanges outweighs it", annotationSourceRanges))
	}
	if s.RuleMode != "" && s.ListMode != "" && s.RuleMode != s.ListMode {
		problems.warn(ReasonAnnotationIgnored, fmt.Sprintf("annotation %s has no effect, since %s outweighs it", listModeKey(s.Kind), annotationRuleMode))
	}
	if choice.Mode == RulesNone && (len(svc.Spec.LoadBalancerSourceRanges) > 0 || len(s.SourceRanges) > 0) {
		problems.warn(ReasonSourceRangesIgnored, fmt.Sprintf("the source ranges of the Service have no effect: no security rules are managed for it (mode %s); "+
			"the security lists and groups of the subnets decide who can connect; to have the ranges applied, set the annotation %s to %s, %s or %s",
			choice.describe(s.Kind), annotationRuleMode, RulesAll, RulesFrontend, RulesNSG))
	}
	switch {
	case choice.Mode != RulesNSG && len(s.BackendNSGIDs) > 0:
		problems.warn(ReasonAnnotationIgnored, fmt.Sprintf("annotation %s has no effect in the mode of security rules %s; it needs %s: %s",
			annotationBackendNSG, choice.Mode, annotationRuleMode, RulesNSG))
	case choice.Mode == RulesNSG && len(s.NSGIDs) >= maxNSGs:
		problems.fatal(ReasonInvalidAnnotation, fmt.Sprintf("annotation %s names %d groups; in the mode of security rules %s the balancer is in one more, and it can be in at most %d: name at most %d",
			groupsKey(s.Kind), len(s.NSGIDs), RulesNSG, maxNSGs, maxNSGs-1))
	}
	return problems
}

// groupsKey is the annotation with the groups of a kind of balancer.
func groupsKey(kind oci.BalancerKind) string {
	if kind == oci.KindNLB {
		return prefixNLB + "oci-network-security-groups"
	}
	return prefixCommon + "oci-network-security-groups"
}

// RulesApplied is what the record says about the security rules of a Service.
type RulesApplied struct {
	RuleChoice
	// Need are the rules that were kept in step. It is empty in mode None.
	Need Need `json:"need"`
	// Kept are rules of former modes that stay although nobody keeps them in step.
	Kept []Need `json:"kept,omitempty"`
	// Replaced are the rules of a balancer that was replaced, until it is gone.
	Replaced *Need `json:"replaced,omitempty"`
	// Legacy is what the existing implementation had written, if it had made the balancer.
	Legacy *Need `json:"legacy,omitempty"`
	// Group is the network security group of a former mode, until it is deleted.
	Group string `json:"group,omitempty"`
}

// unkempt are the rules that stay, as far as they are there, and that nobody keeps in step.
func (r *RulesApplied) unkempt() []Need {
	needs := slices.Clone(r.Kept)
	if r.Replaced != nil {
		needs = append(needs, *r.Replaced)
	}
	return needs
}

// group is the network security group that was made for the Service, and is perhaps still there.
func (r *RulesApplied) group() string {
	switch {
	case r == nil:
		return ""
	case r.Need.Group != "":
		return r.Need.Group
	default:
		return r.Group
	}
}

// takeOver is the record that the existing implementation would have left of a Service.
func takeOver(former RuleChoice, need Need) *RulesApplied {
	r := &RulesApplied{RuleChoice: former, Need: need}
	if need.Frontend || need.Nodes {
		r.Legacy = &need
	}
	return r
}

// nextRules says what becomes of former rules when the mode is now the given one. left are the parts of them, if any, that
// are kept in step no more by this step, and stay.
//
// A mode that an annotation changes, by coming, going or changing, closes what the former one has opened: the user has edited
// the Service. One that changes in the configuration, or by an upgrade, must not close anything: what was open stays, until an
// annotation says otherwise.
func nextRules(before *RulesApplied, choice RuleChoice) (kept []Need, left *Need) {
	if before == nil {
		return nil, nil
	}
	edited := before.From == RulesByAnnotation || choice.From == RulesByAnnotation && before.From != RulesByFormer
	if edited && before.RuleChoice != choice {
		return nil, nil
	}
	managed := choice.Mode.parts()
	for _, n := range before.Kept {
		if n.ruleParts = n.without(managed); !n.none() {
			kept = append(kept, n)
		}
	}
	if before.Mode == choice.Mode {
		return kept, nil
	}
	rest := before.Need
	if rest.ruleParts = rest.without(managed); rest.none() {
		return kept, nil
	}
	return append(kept, rest), &rest
}
