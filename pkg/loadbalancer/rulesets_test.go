// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package loadbalancer_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/oracle/oci-go-sdk/v65/common"
	lbsdk "github.com/oracle/oci-go-sdk/v65/loadbalancer"
	v1 "k8s.io/api/core/v1"

	"github.com/oracle/oci-cloud-controller-manager/pkg/loadbalancer"
	"github.com/oracle/oci-cloud-controller-manager/pkg/oci"
	"github.com/oracle/oci-cloud-controller-manager/test/ocisim"
)

const (
	ruleSetsKey = prefixCommon + "oci-load-balancer-rule-sets"

	removeDebug = `{"items":[{"action":"REMOVE_HTTP_REQUEST_HEADER","header":"x-debug"}]}`
	removeOther = `{"items":[{"action":"REMOVE_HTTP_REQUEST_HEADER","header":"x-other"}]}`
	onlyReads   = `{"items":[{"action":"CONTROL_ACCESS_USING_HTTP_METHODS","allowedMethods":["GET"]}]}`
	redirect301 = `{"items":[{"action":"REDIRECT","responseCode":301,"redirectUri":{"protocol":"HTTPS"},"conditions":[{"attributeName":"PATH","attributeValue":"/","operator":"FORCE_LONGEST_PREFIX_MATCH"}]}]}`
)

// rulesOn are the rule sets of each listener of the one balancer: "80: a b".
func (r *rig) rulesOn() []string {
	r.Helper()
	var out []string
	for name, l := range r.only().Listeners {
		out = append(out, strings.TrimSpace(name+": "+strings.Join(slices.Sorted(slices.Values(l.RuleSetNames)), " ")))
	}
	slices.Sort(out)
	return out
}

func (r *rig) ruleSets() []string {
	r.Helper()
	var out []string
	for name := range r.only().RuleSets {
		out = append(out, name)
	}
	slices.Sort(out)
	return out
}

// changedRules edits the annotation, syncs, and returns what was written; a second sync writes nothing.
func (r *rig) changedRules(svc *v1.Service, nodes []*v1.Node, value string) []string {
	r.Helper()
	r.region.ResetCalls()
	r.edit(svc, annotate(ruleSetsKey, value))
	r.mustSync(svc, nodes)
	out := written(r.region.Calls())
	slices.Sort(out)
	r.unchanged(svc, nodes)
	return out
}

// W14, W30: rule sets are on all listeners from their creation on; what the service fills in is no difference.
func TestRuleSets(t *testing.T) {
	simulate(t, ocisim.Options{Seed: 71}, func(r *rig) {
		nodes := r.nodes(1)
		svc := r.service("web", oci.KindLB, 80, 81)
		r.edit(svc, annotate(prefixLB+"backend-protocol", "HTTP"))
		r.edit(svc, annotate(ruleSetsKey, `{"methods":`+onlyReads+`,"debug":`+removeDebug+`}`))
		r.mustSync(svc, nodes)
		r.equal("writes of the creation", written(r.region.Calls()), []string{"CreateLoadBalancer"})
		r.equal("on", r.rulesOn(), []string{"HTTP-80: debug methods", "HTTP-81: debug methods"})
		if rules := r.only().RuleSets["methods"].Rules; !strings.Contains(rules, "405") {
			r.Fatalf("the service filled nothing in: %s", rules)
		}
		r.unchanged(svc, nodes)
		r.restart()
		r.unchanged(svc, nodes)

		r.region.ResetCalls()
		r.edit(svc, func(s *v1.Service) { s.Spec.Ports = newService("x", oci.KindLB, 80, 82).Spec.Ports })
		r.mustSync(svc, nodes)
		r.equal("on a new listener", r.rulesOn(), []string{"HTTP-80: debug methods", "HTTP-82: debug methods"})
		r.equal("updates", r.count("UpdateListener"), 0)
		r.unchanged(svc, nodes)

		r.equal("other rules", r.changedRules(svc, nodes, `{"methods":`+onlyReads+`,"debug":`+removeOther+`}`), []string{"UpdateRuleSet"})
		r.equal("another set", r.changedRules(svc, nodes, `{"methods":`+onlyReads+`,"other":`+removeOther+`}`),
			[]string{"CreateRuleSet", "DeleteRuleSet", "UpdateListener", "UpdateListener"})
		r.equal("on", r.rulesOn(), []string{"HTTP-80: methods other", "HTTP-82: methods other"})
		r.equal("sets", r.ruleSets(), []string{"methods", "other"})
		r.equal("in another spelling", r.changedRules(svc, nodes, ` {"other":`+strings.ToLower(removeOther)+`,"methods":`+onlyReads+`}`), []string{})
		r.equal("none", r.changedRules(svc, nodes, ""), []string{"DeleteRuleSet", "DeleteRuleSet", "UpdateListener", "UpdateListener"})
		r.equal("on", r.rulesOn(), []string{"HTTP-80:", "HTTP-82:"})
		r.noEvents()
	})
}

// A field that the user takes out of a rule goes back to the service's default, by one update, also if that is the value that
// it had.
func TestRuleSetFieldRemoved(t *testing.T) {
	for _, code := range []string{"301", "302"} {
		simulate(t, ocisim.Options{Seed: 72}, func(r *rig) {
			nodes := r.nodes(1)
			svc := r.service("web", oci.KindLB, 80)
			value := `{"https":` + strings.Replace(redirect301, "301", code, 1) + `}`
			r.edit(svc, annotate(ruleSetsKey, value))
			r.mustSync(svc, nodes)
			r.unchanged(svc, nodes)
			r.equal("updates", r.changedRules(svc, nodes, strings.Replace(value, `"responseCode":`+code+`,`, "", 1)), []string{"UpdateRuleSet"})
			if rules := r.only().RuleSets["https"].Rules; !strings.Contains(rules, `"responseCode":302`) {
				r.Errorf("rules are %s", rules)
			}
			r.restart()
			r.unchanged(svc, nodes)
			r.noEvents()
		})
	}
}

// C055: rule sets of others stay, on our listeners too; without the annotation all of them do.
func TestForeignRuleSets(t *testing.T) {
	simulate(t, ocisim.Options{Seed: 73}, func(r *rig) {
		nodes := r.nodes(1)
		svc := r.service("web", oci.KindLB, 80)
		r.mustSync(svc, nodes)
		id := r.only().ID
		if err := r.region.Foreign().LoadBalancer(id, func(v *lbsdk.LoadBalancer) {
			v.RuleSets = map[string]lbsdk.RuleSet{"waf": {Name: common.String("waf"), Items: []lbsdk.Rule{lbsdk.RemoveHttpResponseHeaderRule{Header: common.String("server")}}}}
			l := v.Listeners["TCP-80"]
			l.RuleSetNames = []string{"waf"}
			v.Listeners["TCP-80"] = l
		}); err != nil {
			r.Fatal(err)
		}
		r.unchanged(svc, nodes)
		r.equal("added", r.changedRules(svc, nodes, `{"debug":`+removeDebug+`}`), []string{"CreateRuleSet", "UpdateListener"})
		r.equal("on", r.rulesOn(), []string{"TCP-80: debug waf"})
		r.equal("emptied", r.changedRules(svc, nodes, "{}"), []string{"DeleteRuleSet", "UpdateListener"})
		r.equal("on", r.rulesOn(), []string{"TCP-80: waf"})
		r.equal("sets", r.ruleSets(), []string{"waf"})

		// Without the annotation nothing is managed, so nothing is taken away.
		r.changedRules(svc, nodes, `{"debug":`+removeDebug+`}`)
		r.region.ResetCalls()
		r.edit(svc, func(s *v1.Service) { delete(s.Annotations, ruleSetsKey) })
		r.mustSync(svc, nodes)
		r.equal("writes", written(r.region.Calls()), []string{})
		r.equal("on", r.rulesOn(), []string{"TCP-80: debug waf"})
		r.noEvents()
	})
}

// A rule set that a listener of somebody else refers to stays.
func TestRuleSetInUseByOthers(t *testing.T) {
	simulate(t, ocisim.Options{Seed: 74}, func(r *rig) {
		nodes := r.nodes(1)
		svc := r.service("web", oci.KindLB, 80)
		r.edit(svc, annotate(ruleSetsKey, `{"debug":`+removeDebug+`}`))
		r.mustSync(svc, nodes)
		r.handMade()
		if err := r.region.Foreign().LoadBalancer(r.only().ID, func(v *lbsdk.LoadBalancer) {
			l := v.Listeners["hand-9443"]
			l.RuleSetNames = []string{"debug"}
			v.Listeners["hand-9443"] = l
		}); err != nil {
			r.Fatal(err)
		}
		r.edit(svc, annotate(ruleSetsKey, "{}"))
		r.mustSync(svc, nodes)
		r.oneSeries(loadbalancer.ReasonKeptInUse, "rule set debug")
		r.equal("on", r.rulesOn(), []string{"TCP-80:", "hand-9443: debug"})
	})
}

// A process that ends right after it made a rule set leaves none that nobody knows: it is deleted though the user takes it back
// before the next process starts.
func TestRuleSetOfAKilledProcess(t *testing.T) {
	for _, live := range []bool{true, false} {
		simulate(t, ocisim.Options{Seed: 75}, func(r *rig) {
			nodes := r.nodes(1)
			svc := r.service("web", oci.KindLB, 80)
			last := "CreateLoadBalancer"
			if live {
				r.mustSync(svc, nodes)
				last = "CreateRuleSet"
			}
			r.edit(svc, annotate(ruleSetsKey, `{"debug":`+removeDebug+`}`))
			ctx, kill := context.WithCancel(r.Context())
			remove := r.region.OnCall(func(c ocisim.Call) {
				if c.Operation == last {
					kill()
				}
			})
			if _, err := r.m.Ensure(ctx, r.cluster.get(svc.UID), nodes); err == nil {
				r.Fatal("not killed")
			}
			remove()
			time.Sleep(5 * time.Minute)
			r.equal("sets", r.ruleSets(), []string{"debug"})
			r.restart()
			r.edit(svc, annotate(ruleSetsKey, ""))
			r.mustSync(svc, nodes)
			r.equal("sets", r.ruleSets(), []string{})
			r.unchanged(svc, nodes)
		})
	}
}

// What is no rule set is one event and no write; on a network load balancer the annotation is one event.
func TestBadRuleSets(t *testing.T) {
	simulate(t, ocisim.Options{Seed: 76}, func(r *rig) {
		nodes := r.nodes(1)
		svc := r.service("web", oci.KindLB, 80)
		r.edit(svc, annotate(ruleSetsKey, `{"debug":{"items":[{"action":"REMOVE_HTTP_REQUEST_HEADER"}]}}`))
		if _, err := r.m.Ensure(r.Context(), svc, nodes); err == nil {
			r.Error("no error")
		}
		r.oneSeries(loadbalancer.ReasonInvalidAnnotation, ruleSetsKey, "rule set debug: rule 1: header is missing")
		r.equal("writes", written(r.region.Calls()), []string{})

		r.cluster.events = nil
		other := r.service("other", oci.KindNLB, 80)
		r.edit(other, annotate(ruleSetsKey, `{"debug":`+removeDebug+`}`))
		r.mustSync(other, nodes)
		r.oneSeries(loadbalancer.ReasonAnnotationIgnored, ruleSetsKey)
	})
}
