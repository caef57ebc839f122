// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package ocisim

import (
	"regexp"
	"strings"

	"github.com/oracle/oci-go-sdk/v65/common"
	"github.com/oracle/oci-go-sdk/v65/loadbalancer"
)

// Bounds of names and of what they name. A host name is one of DNS; the others are from memory.
const (
	maxHostname     = 255
	maxPathRouteLen = 256
)

var (
	// virtualHost is a host name, perhaps with an asterisk as its first or its last label.
	virtualHost = regexp.MustCompile(`^(\*\.)?[A-Za-z0-9]([A-Za-z0-9-]*[A-Za-z0-9])?(\.[A-Za-z0-9]([A-Za-z0-9-]*[A-Za-z0-9])?)*(\.\*)?$`)
	// routingName is the form of the names of routing policies and of their rules.
	routingName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
)

func hostnamePart() lbPart[loadbalancer.Hostname, loadbalancer.CreateHostnameDetails, loadbalancer.UpdateHostnameDetails] {
	return lbPart[loadbalancer.Hostname, loadbalancer.CreateHostnameDetails, loadbalancer.UpdateHostnameDetails]{
		one: "Hostname", many: "Hostnames", path: "hostnames", param: "name", label: "Hostname",
		of:     func(v *loadbalancer.LoadBalancer) *map[string]loadbalancer.Hostname { return &v.Hostnames },
		nameOf: func(d *loadbalancer.CreateHostnameDetails) *string { return d.Name },
		merge: func(h *loadbalancer.Hostname, d *loadbalancer.UpdateHostnameDetails) {
			replace(&h.Hostname, d.Hostname)
		},
		check: func(cl *cloud, v *loadbalancer.LoadBalancer, name string, h *loadbalancer.Hostname) error {
			if err := checkPartName("hostname name", name, maxLBListenerName); err != nil {
				return err
			}
			if err := checkSize("hostname", value(h.Hostname), 1, maxHostname); err != nil {
				return err
			}
			if err := checkPattern("hostname", *h.Hostname, virtualHost); err != nil {
				return err
			}
			h.Name = common.String(name)
			for _, other := range sortedKeys(v.Hostnames) {
				if other != name && strings.EqualFold(value(v.Hostnames[other].Hostname), *h.Hostname) {
					return cl.rule(HostnameTaken, name, other)
				}
			}
			return nil
		},
		used: attached("Hostname", func(l *loadbalancer.Listener, name string) bool { return contains(l.HostnameNames, name) }),
	}
}

func routingPolicyPart() lbPart[loadbalancer.RoutingPolicy, loadbalancer.CreateRoutingPolicyDetails, loadbalancer.UpdateRoutingPolicyDetails] {
	return lbPart[loadbalancer.RoutingPolicy, loadbalancer.CreateRoutingPolicyDetails, loadbalancer.UpdateRoutingPolicyDetails]{
		one: "RoutingPolicy", many: "RoutingPolicies", path: "routingPolicies", param: "routingPolicyName", label: "Routing policy",
		of:     func(v *loadbalancer.LoadBalancer) *map[string]loadbalancer.RoutingPolicy { return &v.RoutingPolicies },
		nameOf: func(d *loadbalancer.CreateRoutingPolicyDetails) *string { return d.Name },
		merge: func(p *loadbalancer.RoutingPolicy, d *loadbalancer.UpdateRoutingPolicyDetails) {
			p.Rules = d.Rules
			if d.ConditionLanguageVersion != "" {
				p.ConditionLanguageVersion = loadbalancer.RoutingPolicyConditionLanguageVersionEnum(d.ConditionLanguageVersion)
			}
		},
		check: (*cloud).checkRoutingPolicy,
		used: attached("Routing policy", func(l *loadbalancer.Listener, name string) bool {
			return value(l.RoutingPolicyName) == name
		}),
	}
}

func (cl *cloud) checkRoutingPolicy(v *loadbalancer.LoadBalancer, name string, p *loadbalancer.RoutingPolicy) error {
	if err := checkRoutingName("routing policy name", name); err != nil {
		return err
	}
	p.Name = common.String(name)
	if len(p.Rules) == 0 {
		return errMissing("rules")
	}
	if err := cl.balancerLimit("routingRules", len(p.Rules)); err != nil {
		return err
	}
	seen := map[string]bool{}
	for _, rule := range p.Rules {
		ruleName := value(rule.Name)
		if err := checkRoutingName("routing rule name", ruleName); err != nil {
			return err
		}
		if seen[ruleName] {
			return errInvalid("Routing policy '%s' has two rules named '%s'.", name, ruleName)
		}
		seen[ruleName] = true
		if problem := conditionProblem(value(rule.Condition)); problem != "" {
			if err := cl.rule(BadRoutingCondition, ruleName, problem); err != nil {
				return err
			}
		}
		targets := routingTargets(rule)
		if len(targets) != 1 {
			return errInvalid("Routing rule '%s' needs one action.", ruleName)
		}
		if _, ok := v.BackendSets[targets[0]]; !ok {
			return errInvalid("Backend set '%s' of routing rule '%s' does not exist.", targets[0], ruleName)
		}
	}
	return nil
}

func checkRoutingName(label, name string) error {
	if err := checkSize(label, name, 1, maxSetName); err != nil {
		return err
	}
	return checkPattern(label, name, routingName)
}

// routingTargets are the backend sets that a routing rule forwards to.
func routingTargets(rule loadbalancer.RoutingRule) []string {
	var names []string
	for _, action := range rule.Actions {
		switch a := action.(type) {
		case loadbalancer.ForwardToBackendSet:
			names = append(names, value(a.BackendSetName))
		case *loadbalancer.ForwardToBackendSet:
			names = append(names, value(a.BackendSetName))
		}
	}
	return names
}

// conditionProblem says what is wrong with the outline of a condition such as
// any(http.request.url.path sw (i '/video'), all(http.request.headers[(i 'host')] eq (i 'example.com'))).
func conditionProblem(text string) string {
	var open []rune
	quoted := false
	for _, r := range text {
		switch {
		case r == '\'':
			quoted = !quoted
		case quoted:
		case r == '(' || r == '[':
			open = append(open, r)
		case r == ')' || r == ']':
			want := '('
			if r == ']' {
				want = '['
			}
			if len(open) == 0 || open[len(open)-1] != want {
				return "unexpected " + string(r)
			}
			open = open[:len(open)-1]
		}
	}
	switch {
	case strings.TrimSpace(text) == "":
		return "it is empty"
	case quoted:
		return "a quote is not closed"
	case len(open) > 0:
		return "a bracket is not closed"
	}
	return ""
}

func pathRouteSetPart() lbPart[loadbalancer.PathRouteSet, loadbalancer.CreatePathRouteSetDetails, loadbalancer.UpdatePathRouteSetDetails] {
	return lbPart[loadbalancer.PathRouteSet, loadbalancer.CreatePathRouteSetDetails, loadbalancer.UpdatePathRouteSetDetails]{
		one: "PathRouteSet", many: "PathRouteSets", path: "pathRouteSets", param: "pathRouteSetName", label: "Path route set",
		of:     func(v *loadbalancer.LoadBalancer) *map[string]loadbalancer.PathRouteSet { return &v.PathRouteSets },
		nameOf: func(d *loadbalancer.CreatePathRouteSetDetails) *string { return d.Name },
		check:  (*cloud).checkPathRouteSet,
		used: attached("Path route set", func(l *loadbalancer.Listener, name string) bool {
			return value(l.PathRouteSetName) == name
		}),
	}
}

// checkPathRouteSet refuses routes that are not plain paths, that are there twice, or that lead to no backend set.
func (cl *cloud) checkPathRouteSet(v *loadbalancer.LoadBalancer, name string, set *loadbalancer.PathRouteSet) error {
	if err := checkPartName("path route set name", name, maxSetName); err != nil {
		return err
	}
	set.Name = common.String(name)
	if len(set.PathRoutes) == 0 {
		return errMissing("pathRoutes")
	}
	if err := cl.balancerLimit("pathRoutes", len(set.PathRoutes)); err != nil {
		return err
	}
	type match struct {
		path string
		how  loadbalancer.PathMatchTypeMatchTypeEnum
	}
	seen := map[match]bool{}
	for _, route := range set.PathRoutes {
		path := value(route.Path)
		if err := checkSize("path", path, 1, maxPathRouteLen); err != nil {
			return err
		}
		suffix := route.PathMatchType.MatchType == loadbalancer.PathMatchTypeMatchTypeSuffixMatch
		if strings.ContainsAny(path, "*? \t") || (!suffix && !strings.HasPrefix(path, "/")) {
			return errInvalid("path '%s' is not valid: it must be a plain path", path)
		}
		m := match{strings.ToLower(path), route.PathMatchType.MatchType}
		if seen[m] {
			return errInvalid("Path route set '%s' has two routes for %s %s.", name, m.how, path)
		}
		seen[m] = true
		if _, ok := v.BackendSets[value(route.BackendSetName)]; !ok {
			return errInvalid("Backend set '%s' of path '%s' does not exist.", value(route.BackendSetName), path)
		}
	}
	return nil
}
