// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package loadbalancer

import (
	"strings"

	"github.com/oracle/oci-cloud-controller-manager/pkg/oci"
)

// RuleMode says which security rules are kept in step with a Service. Its values are those of the annotation
// security-rule-management-mode.
type RuleMode string

// The modes.
const (
	RulesAll      RuleMode = "SL-All"      // security lists of the balancer's subnets and of the nodes' subnets
	RulesFrontend RuleMode = "SL-Frontend" // security lists of the balancer's subnets: who may connect
	RulesNSG      RuleMode = "NSG"         // a network security group of the Service, and groups of the nodes
	RulesNone     RuleMode = "None"
)

// Prefix of the modes that are about security lists. The annotations and keys about security lists alone leave it out.
const prefixListMode = "SL-"

// listMode is the mode that "All", "Frontend" or "None" stands for.
func listMode(text string) RuleMode {
	if text == string(RulesNone) {
		return RulesNone
	}
	return RuleMode(prefixListMode + text)
}

// Values of the annotations and keys about security lists alone.
func listModes() []string { return []string{"All", "Frontend", "None"} }

// Values of the annotation that has all modes.
func ruleModes() []string {
	return []string{string(RulesAll), string(RulesFrontend), string(RulesNSG), string(RulesNone)}
}

// parts are what a mode manages.
func (m RuleMode) parts() ruleParts {
	return ruleParts{Frontend: m == RulesAll || m == RulesFrontend, Nodes: m == RulesAll, Groups: m == RulesNSG}
}

// ruleParts are parts of what the rules of a Service can be about.
type ruleParts struct {
	// Frontend are rules in the security lists of the balancer's subnets that let clients in.
	Frontend bool `json:"frontend,omitempty"`
	// Nodes are rules in security lists that let the balancer reach the nodes, on both sides.
	Nodes bool `json:"nodes,omitempty"`
	// Groups are rules of network security groups.
	Groups bool `json:"groups,omitempty"`
}

// without leaves out the parts that somebody else looks after.
func (p ruleParts) without(other ruleParts) ruleParts {
	return ruleParts{Frontend: p.Frontend && !other.Frontend, Nodes: p.Nodes && !other.Nodes, Groups: p.Groups && !other.Groups}
}

func (p ruleParts) none() bool { return p == ruleParts{} }

// RuleOrigin says where a mode comes from.
type RuleOrigin string

// The origins.
const (
	RulesByAnnotation RuleOrigin = "annotation"
	RulesByConfig     RuleOrigin = "config"
	RulesByDefault    RuleOrigin = "default"
	// RulesByFormer is the existing implementation, before the upgrade.
	RulesByFormer RuleOrigin = "v1.35"
)

// RuleChoice is a mode and who chose it.
type RuleChoice struct {
	Mode RuleMode   `json:"mode"`
	From RuleOrigin `json:"from"`
}

// describe says for people where the mode comes from.
func (c RuleChoice) describe(kind oci.BalancerKind) string {
	switch c.From {
	case RulesByAnnotation:
		return string(c.Mode) + ", from an annotation"
	case RulesByConfig:
		return string(c.Mode) + ", from " + configModeKey(kind) + " in the cloud configuration"
	case RulesByFormer:
		return string(c.Mode) + ", which up to v1.35 the cloud configuration had no influence on"
	default:
		return string(c.Mode) + ", the default"
	}
}

// configModeKey is the key of the cloud configuration that sets the mode.
func configModeKey(kind oci.BalancerKind) string {
	if kind == oci.KindNLB {
		return "networkLoadBalancer.securityListManagementMode"
	}
	return "loadBalancer.securityListManagementMode"
}

// listModeKey is the annotation about security lists of a kind of balancer.
func listModeKey(kind oci.BalancerKind) string {
	if kind == oci.KindNLB {
		return annotationListModeNLB
	}
	return annotationListMode
}

// builtInMode is that of a Service for which nobody has chosen one.
func builtInMode(kind oci.BalancerKind) RuleMode {
	if kind == oci.KindNLB {
		return RulesNone
	}
	return RulesAll
}

// chooseRules decides about the mode: an annotation comes before the configuration, and that before the default.
func chooseRules(s Settings, cfg Config) RuleChoice {
	configured := cfg.RulesLB
	if s.Kind == oci.KindNLB {
		configured = cfg.RulesNLB
	}
	switch {
	case s.RuleMode != "":
		return RuleChoice{s.RuleMode, RulesByAnnotation}
	case s.ListMode != "":
		return RuleChoice{s.ListMode, RulesByAnnotation}
	case configured != "":
		return RuleChoice{configured, RulesByConfig}
	default:
		return RuleChoice{builtInMode(s.Kind), RulesByDefault}
	}
}

// formerRules is the mode in which the existing implementation worked for a Service (contract ccm.md §2.1–2.3, §4.9): it
// passed over the configuration, and over values that are not spelt exactly so.
func formerRules(annotations map[string]string, kind oci.BalancerKind) RuleChoice {
	choice := RuleChoice{builtInMode(kind), RulesByFormer}
	if text, set := annotations[annotationRuleMode]; set {
		choice.Mode = RulesNone // refused, or so asked for
		for _, mode := range []RuleMode{RulesAll, RulesFrontend, RulesNSG} {
			if strings.EqualFold(text, string(mode)) {
				choice.Mode = mode
			}
		}
		return choice
	}
	text, set := annotations[listModeKey(kind)]
	for _, mode := range listModes() {
		if set && text == mode {
			choice.Mode = listMode(mode)
		}
	}
	return choice
}
