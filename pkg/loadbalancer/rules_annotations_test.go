// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package loadbalancer_test

import (
	"fmt"
	"slices"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/oracle/oci-cloud-controller-manager/pkg/loadbalancer"
	"github.com/oracle/oci-cloud-controller-manager/pkg/oci"
	"github.com/oracle/oci-cloud-controller-manager/test/ocisim"
)

const listModeNLB = prefixNLB + "security-list-management-mode"

func listModeOf(kind oci.BalancerKind) string {
	if kind == oci.KindNLB {
		return listModeNLB
	}
	return listModeLB
}

// The older annotation about security lists, at creation and on a live balancer, in any case; the newer one outweighs it.
func TestListModeAnnotation(t *testing.T) {
	withRulesOnBoth(t, ocisim.Options{Seed: 118}, func(r *rig, kind oci.BalancerKind) {
		nodes := []*v1.Node{r.worker("a", r.ruled.workers)}
		key := listModeOf(kind)
		front, work := allRules()
		svc := r.service("web", kind, 80)
		for _, mode := range []string{"All", "Frontend", "all", "NONE", "frontend", "None"} {
			r.edit(svc, annotate(key, mode))
			svc = r.mustSync(svc, nodes)
			switch mode {
			case "All", "all":
				r.hasRules(r.ruled.frontList, ours(front...)...)
				r.hasRules(r.ruled.workList, ours(work...)...)
			case "Frontend", "frontend":
				r.hasRules(r.ruled.frontList, ours(front[:1]...)...)
				r.hasRules(r.ruled.workList)
			default:
				r.asAtStart()
			}
			r.unchanged(svc, nodes)
		}
		r.noEvents()
		r.edit(svc, annotate(ruleMode, "SL-All"))
		svc = r.mustSync(svc, nodes)
		r.hasRules(r.ruled.workList, ours(work...)...)
		r.oneSeries(loadbalancer.ReasonAnnotationIgnored, key, ruleMode)
		r.remove(svc)
		r.asAtStart()
	})
}

// The annotation with source ranges, at creation and on a live balancer; without it everybody may connect.
func TestSourceRangesAnnotation(t *testing.T) {
	withRulesOnBoth(t, ocisim.Options{Seed: 132}, func(r *rig, kind oci.BalancerKind) {
		nodes := []*v1.Node{r.worker("a", r.ruled.workers)}
		svc := r.service("web", kind, 80)
		r.edit(svc, annotate(ruleMode, "SL-Frontend"))
		for value, clients := range map[string][]string{
			"203.0.113.7/24 ,198.51.100.0/24,": {"203.0.113.0/24", "198.51.100.0/24"}, "2001:DB8::/32": {"2001:db8::/32"}, "": {"0.0.0.0/0"},
		} {
			r.edit(svc, annotate(sourceRanges, value))
			svc = r.mustSync(svc, nodes)
			var want []string
			for _, c := range clients {
				want = append(want, "in tcp 80 from "+c)
			}
			r.hasRules(r.ruled.frontList, ours(want...)...)
			r.unchanged(svc, nodes)
		}
		r.noEvents()
		r.remove(svc)
		r.asAtStart()
	})
}

// Groups of the nodes that come and go on a live balancer: those that come are opened, and those that go are closed.
func TestBackendGroupsChange(t *testing.T) {
	withRulesOnBoth(t, ocisim.Options{Seed: 119}, func(r *rig, kind oci.BalancerKind) {
		nodes := []*v1.Node{r.worker("a", r.ruled.workers)}
		second := r.region.AddSecurityGroup(ocisim.SecurityGroup{VCN: r.ruled.vcn, Name: "second"})
		r.ruled.start = r.ruled.now()
		svc := r.service("web", kind, 80)
		r.inNSGMode(svc)
		for _, groups := range [][]string{{r.ruled.backends}, {r.ruled.backends, second}, {second}, nil, {r.ruled.backends}} {
			r.edit(svc, func(s *v1.Service) {
				delete(s.Annotations, backendNSG)
				for _, id := range groups {
					s.Annotations[backendNSG] += id + ", "
				}
			})
			svc = r.mustSync(svc, nodes)
			managed := *r.managed(svc).Id
			own := []string{"in tcp 80 from 0.0.0.0/0"}
			for _, id := range []string{r.ruled.backends, second} {
				var want []string
				if text := r.ruled.start[id]; text != "" {
					want = append(want, text)
				}
				if slices.Contains(groups, id) {
					want = append(want, owned(svc, "in tcp 30080 from "+managed, "in tcp 10256 from "+managed)...)
					own = append(own, "out tcp 30080 to "+id, "out tcp 10256 to "+id)
				}
				slices.Sort(want)
				r.equal("rules of the nodes' group", r.groupRules(id), want)
			}
			r.equal("rules of the balancer's group", r.groupRules(managed), owned(svc, own...))
			r.unchanged(svc, nodes)
		}
		r.noEvents()
		r.remove(svc)
		r.asAtStart()
	})
}

// C058: kind × config × annotations, as far as the rules that are written for a new Service. The configuration's key for one kind
// is none for the other one; a value that does not exist is refused.
func TestModesOpenTheirRules(t *testing.T) {
	front, work := allRules()
	withRulesOnBoth(t, ocisim.Options{Seed: 120, Durations: fixed(0)}, func(r *rig, kind oci.BalancerKind) {
		nodes := []*v1.Node{r.worker("a", r.ruled.workers)}
		builtIn := loadbalancer.RulesAll
		if kind == oci.KindNLB {
			builtIn = loadbalancer.RulesNone
		}
		number := 0
		for _, configured := range []loadbalancer.RuleMode{"", loadbalancer.RulesAll, loadbalancer.RulesFrontend, loadbalancer.RulesNone} {
			for _, other := range []loadbalancer.RuleMode{"", loadbalancer.RulesFrontend} {
				r.cfg.RulesLB, r.cfg.RulesNLB = configured, other
				if kind == oci.KindNLB {
					r.cfg.RulesLB, r.cfg.RulesNLB = other, configured
				}
				r.restart()
				byConfig := configured
				if configured == "" {
					byConfig = builtIn
				}
				for _, test := range []struct {
					key, value string
					want       loadbalancer.RuleMode // empty: refused
				}{
					{"", "", byConfig},
					{listModeOf(kind), "All", loadbalancer.RulesAll},
					{listModeOf(kind), "none", loadbalancer.RulesNone},
					{listModeOf(kind), "Sometimes", ""},
					{ruleMode, "SL-Frontend", loadbalancer.RulesFrontend},
					{ruleMode, "NSG", loadbalancer.RulesNSG},
					{ruleMode, "Sometimes", ""},
				} {
					number++
					what := fmt.Sprintf("config %q, of the other kind %q, %s=%s", configured, other, test.key, test.value)
					svc := r.serviceUID("web", types.UID(fmt.Sprintf("uid-web-%d", number)), kind, 80)
					if test.key != "" {
						r.edit(svc, annotate(test.key, test.value))
					}
					if test.want == "" {
						r.cluster.events = nil
						r.refused(svc, nodes, loadbalancer.ReasonInvalidAnnotation)
						r.oneSeries(loadbalancer.ReasonInvalidAnnotation, test.key, "Sometimes")
						r.cluster.events = nil
						r.asAtStart()
						r.cluster.remove(svc.UID)
						continue
					}
					svc = r.mustSync(svc, nodes)
					wantFront, wantWork := front, work
					switch test.want {
					case loadbalancer.RulesFrontend:
						wantFront, wantWork = front[:1], nil
					case loadbalancer.RulesNSG, loadbalancer.RulesNone:
						wantFront, wantWork = nil, nil
					}
					r.equal(what+": front", r.added(r.ruled.frontList), sorted(ours(wantFront...)))
					r.equal(what+": nodes", r.added(r.ruled.workList), sorted(ours(wantWork...)))
					r.equal(what+": group", r.managed(svc) != nil, test.want == loadbalancer.RulesNSG)
					r.remove(svc)
				}
			}
		}
		r.asAtStart()
		r.noEvents()
	})
}

func sorted(texts []string) []string {
	slices.Sort(texts)
	return texts
}
