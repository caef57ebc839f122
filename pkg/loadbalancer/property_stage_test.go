// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package loadbalancer

import (
	"slices"
	"strings"

	"pgregory.net/rapid"

	"github.com/oracle/oci-cloud-controller-manager/pkg/oci"
)

// stage is a balancer on which steps are performed under the rules of the API.
type stage struct {
	t *rapid.T
	*oci.Balancer
	model   *Model
	last    Applied
	staying map[promise][]int
	secure  map[int]bool // ports that have TLS before and after
	gates
}

// perform does the steps of a plan in an order that is drawn among the possible ones.
func (s stage) perform(plan Plan) {
	done := make([]bool, len(plan))
	for range plan {
		var ready []int
		for i, step := range plan {
			if !done[i] && !slices.ContainsFunc(step.After, func(j int) bool { return !done[j] }) {
				ready = append(ready, i)
			}
		}
		if len(ready) == 0 {
			s.t.Fatalf("steps wait for each other:\n%s", plan)
		}
		i := rapid.SampledFrom(ready).Draw(s.t, "next step")
		s.step(plan[i])
		done[i] = true
		s.check(plan, plan[i])
	}
}

func (s stage) step(step Step) {
	switch step.Action {
	case CreateBackendSet:
		s.BackendSets[step.Name] = s.model.newBackendSet(s.model.BackendSets[step.Want])
	case UpdateBackendSet:
		s.BackendSets[step.Name] = s.model.mergeBackendSet(s.BackendSets[step.Name], s.model.BackendSets[step.Want], s.last)
	case DeleteBackendSet:
		delete(s.BackendSets, step.Name)
	case CreateListener:
		s.Listeners[step.Name] = s.model.newListener(s.model.Listeners[step.Want])
	case UpdateListener:
		s.Listeners[step.Name] = s.model.mergeListener(s.Listeners[step.Name], s.model.Listeners[step.Want], s.last)
	case DeleteListener:
		delete(s.Listeners, step.Name)
	case UpdateNSGs:
		s.NSGIDs = s.model.mergeNSGs(s.NSGIDs, s.last)
	case CreateCertificate:
		if _, exists := s.Certificates[step.Name]; exists {
			s.t.Fatalf("bundle %s is made twice", step.Name)
		}
		s.Certificates[step.Name] = s.model.Certificates[step.Name]
	case DeleteCertificate:
		delete(s.Certificates, step.Name)
	case UpdateIPMode:
		s.IPMode = s.model.IPMode
	case CreateRuleSet, UpdateRuleSet:
		s.RuleSets[step.Name] = s.model.RuleSets.Sets[step.Name]
		s.last.RuleSets[step.Name] = digestOf(s.RuleSets[step.Name]) // as the applier does
	case DeleteRuleSet:
		delete(s.RuleSets, step.Name)
	case OpenRules, CloseRules:
		s.gates.perform(step.Action)
	case UpdateTags:
		s.Freeform = withTags(s.Freeform, map[string]string{TagOwner: "uid"})
	default:
		s.t.Fatalf("unexpected step %s", step)
	}
}

// check holds the balancer against the rules of the API, and sees that ports that stay are served.
func (s stage) check(plan Plan, step Step) {
	ports := map[portKey]string{}
	for name, l := range s.Listeners {
		if other := ports[keyOf(l)]; other != "" {
			s.t.Fatalf("after %q the listeners %s and %s are on one port:\n%s", step, name, other, plan)
		}
		ports[keyOf(l)] = name
		if _, ok := s.BackendSets[l.BackendSetName]; !ok {
			s.t.Fatalf("after %q listener %s has no backend set:\n%s", step, name, plan)
		}
		if l.IPVersion == ipV6 && s.IPMode != oci.IPModeDual {
			s.t.Fatalf("after %q listener %s is for IPv6, and the balancer %s:\n%s", step, name, s.IPMode, plan)
		}
		for _, set := range l.RuleSetNames {
			if _, ok := s.RuleSets[set]; !ok {
				s.t.Fatalf("after %q listener %s has no rule set %s:\n%s", step, name, set, plan)
			}
		}
	}
	s.checkTLS(plan, step)
	for p, nodePorts := range s.staying {
		l := s.Listeners[ports[p.portKey]]
		bs := s.BackendSets[l.BackendSetName]
		passes := s.Kind == oci.KindLB && l.Name != "" || strings.Contains(l.Protocol, string(p.protocol))
		reaches := slices.ContainsFunc(bs.Backends, func(b oci.Backend) bool {
			return slices.Contains(nodePorts, b.Port) && s.letsThrough(l, bs, b, p.protocol)
		})
		if !passes || !reaches {
			s.t.Fatalf("after %q there is no way for %v to the node ports %v:\n%s", step, p, nodePorts, plan)
		}
	}
}
