// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package loadbalancer_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/oracle/oci-go-sdk/v65/common"
	"github.com/oracle/oci-go-sdk/v65/core"
	v1 "k8s.io/api/core/v1"

	"github.com/oracle/oci-cloud-controller-manager/pkg/loadbalancer"
	"github.com/oracle/oci-cloud-controller-manager/pkg/oci"
	"github.com/oracle/oci-cloud-controller-manager/test/ocisim"
)

// allRules are the rules of a Service with port 80 and nodes in the subnet workers, in the lists of both sides.
func allRules() (front, work []string) {
	return []string{"in tcp 80 from 0.0.0.0/0", "out tcp 30080 to " + workersCIDR, "out tcp 10256 to " + workersCIDR},
		[]string{"in tcp 30080 from " + frontCIDR, "in tcp 10256 from " + frontCIDR}
}

// An annotation that changes the mode opens what the new one needs and closes what the old one had.
func TestModeChangedByAnnotation(t *testing.T) {
	withRulesOnBoth(t, ocisim.Options{Seed: 81}, func(r *rig, kind oci.BalancerKind) {
		nodes := []*v1.Node{r.worker("a", r.ruled.workers)}
		svc := r.service("web", kind, 80)
		front, work := allRules()
		set := func(mode string) {
			r.Helper()
			r.edit(svc, func(s *v1.Service) {
				s.Annotations = maps.Clone(s.Annotations)
				delete(s.Annotations, ruleMode)
				if mode != "" {
					s.Annotations[ruleMode] = mode
				}
			})
			svc = r.mustSync(svc, nodes)
			r.unchanged(svc, nodes)
		}
		for _, restarted := range []bool{false, true} {
			for _, mode := range []string{"SL-All", "None", "sl-all", "SL-Frontend", "SL-All", "none"} {
				if restarted {
					r.restart()
				}
				set(mode)
				switch strings.ToLower(mode) {
				case "sl-all":
					r.hasRules(r.ruled.frontList, ours(front...)...)
					r.hasRules(r.ruled.workList, ours(work...)...)
				case "sl-frontend":
					r.hasRules(r.ruled.frontList, ours(front[:1]...)...)
					r.hasRules(r.ruled.workList)
				default:
					r.asAtStart()
				}
			}
		}
		r.cfg.RulesLB, r.cfg.RulesNLB = loadbalancer.RulesAll, loadbalancer.RulesAll
		r.restart()
		set("") // the annotation goes, so that the configuration counts
		r.hasRules(r.ruled.frontList, ours(front...)...)
		r.noEvents()
		r.remove(svc)
		r.asAtStart()
	})
}

// A mode that changes in the configuration closes nothing: the rules stay, whatever other Services and new processes do, are
// named in an event, and are not made again if somebody removes them. An annotation closes them.
func TestModeChangedInConfig(t *testing.T) {
	withRules(t, ocisim.Options{Seed: 82}, func(r *rig) {
		nodes := []*v1.Node{r.worker("a", r.ruled.workers)}
		svc := r.mustSync(r.service("web", oci.KindLB, 80), nodes)
		other := r.service("other", oci.KindLB, 81)
		r.edit(other, annotate(listModeLB, "All"))
		other = r.mustSync(other, nodes)
		front, work := allRules()
		workOf := func(port int) string { return fmt.Sprintf("in tcp %d from %s", port, frontCIDR) }
		both := []string{"in tcp 30080 from " + frontCIDR, "in tcp 10256 from " + frontCIDR, workOf(30081)}
		r.hasRules(r.ruled.workList, ours(both...)...)
		r.noEvents()

		r.cfg.RulesLB = loadbalancer.RulesNone
		r.restart()
		r.region.ResetCalls()
		other = r.mustSync(other, nodes)
		svc = r.mustSync(svc, nodes)
		r.equal("writes", written(r.region.Calls()), []string{})
		r.oneSeries("SecurityRulesLeft", "None, from loadBalancer.securityListManagementMode", "ingress TCP 80 from 0.0.0.0/0", "egress TCP 30080 to "+workersCIDR, r.ruled.workList, ruleMode+": None")
		r.cluster.events = nil

		// Neither edits of other Services nor another process take them away.
		r.edit(other, func(s *v1.Service) { s.Spec.Ports[0].NodePort = 31081 })
		other = r.mustSync(other, nodes)
		r.hasRules(r.ruled.workList, ours(append(slices.Clone(work), workOf(31081))...)...)
		r.restart()
		svc, other = r.mustSync(svc, nodes), r.mustSync(other, nodes)
		r.edit(other, func(s *v1.Service) { s.Spec.Ports[0].NodePort = 32081 })
		other = r.mustSync(other, nodes)
		r.hasRules(r.ruled.workList, ours(append(slices.Clone(work), workOf(32081))...)...)
		r.hasRules(r.ruled.frontList, ours(append(slices.Clone(front), "in tcp 81 from 0.0.0.0/0", "out tcp 32081 to "+workersCIDR)...)...)

		// Nobody keeps them in step.
		r.edit(svc, func(s *v1.Service) { s.Spec.Ports = newService("x", oci.KindLB, 82).Spec.Ports })
		svc = r.mustSync(svc, nodes)
		r.hasRules(r.ruled.workList, ours(append(slices.Clone(work), workOf(32081))...)...)
		err := r.region.Foreign().SecurityList(r.ruled.workList, func(l *core.SecurityList) {
			l.IngressSecurityRules = slices.DeleteFunc(l.IngressSecurityRules, func(x core.IngressSecurityRule) bool {
				return x.TcpOptions != nil && *x.TcpOptions.DestinationPortRange.Min == 30080
			})
		})
		if err != nil {
			r.Fatal(err)
		}
		time.Sleep(2 * time.Minute)
		svc = r.mustSync(svc, nodes)
		r.hasRules(r.ruled.workList, ours(workOf(10256), workOf(32081))...)

		r.edit(svc, annotate(ruleMode, "None"))
		svc = r.mustSync(svc, nodes)
		r.hasRules(r.ruled.frontList, ours("in tcp 81 from 0.0.0.0/0", "out tcp 32081 to "+workersCIDR, "out tcp 10256 to "+workersCIDR)...)
		r.remove(svc)
		r.remove(other)
		r.asAtStart()
		r.noEvents()
	})
}

// legacyRules puts rules into lists as the existing implementation has done it: without a description, TCP only (contract
// ccm.md §4.9).
func (r *rig) legacyRules(front, work []string) {
	r.Helper()
	for list, rules := range map[string][]string{r.ruled.frontList: front, r.ruled.workList: work} {
		err := r.region.Foreign().SecurityList(list, func(l *core.SecurityList) {
			for _, text := range rules {
				word := strings.Fields(text) // in tcp 80 from 0.0.0.0/0
				var port int
				if _, err := fmt.Sscan(word[2], &port); err != nil {
					r.Fatal(err)
				}
				options := &core.TcpOptions{DestinationPortRange: &core.PortRange{Min: &port, Max: &port}}
				if word[0] == "in" {
					l.IngressSecurityRules = append(l.IngressSecurityRules, core.IngressSecurityRule{
						Protocol: common.String("6"), Source: &word[4], SourceType: core.IngressSecurityRuleSourceTypeCidrBlock, IsStateless: common.Bool(false), TcpOptions: options,
					})
				} else {
					l.EgressSecurityRules = append(l.EgressSecurityRules, core.EgressSecurityRule{
						Protocol: common.String("6"), Destination: &word[4], DestinationType: core.EgressSecurityRuleDestinationTypeCidrBlock, IsStateless: common.Bool(false), TcpOptions: options,
					})
				}
			}
		})
		if err != nil {
			r.Fatal(err)
		}
	}
}

// Upgrade: a region as the existing implementation has left it. Whatever the configuration says, the first reconcile writes
// nothing to the lists: it had no influence on what was opened.
func TestUpgradeOpensAndClosesNothing(t *testing.T) {
	if testing.Short() {
		t.Skip("long, and nothing runs at the same time in it: in make test-long")
	}
	front, work := allRules()
	for _, configured := range []loadbalancer.RuleMode{"", loadbalancer.RulesNone, loadbalancer.RulesFrontend, loadbalancer.RulesAll} {
		annotations := []string{"", "None"}
		if configured == loadbalancer.RulesNone {
			annotations = []string{"", "All", "Frontend", "None", "none"}
		}
		for _, annotation := range annotations {
			t.Run(fmt.Sprintf("config %q annotation %q", configured, annotation), func(t *testing.T) {
				withRulesOnBoth(t, ocisim.Options{Seed: 83}, func(r *rig, kind oci.BalancerKind) {
					nodes := []*v1.Node{r.worker("a", r.ruled.workers)}
					svc := r.service("web", kind, 80)
					former := map[oci.BalancerKind]string{oci.KindLB: "All", oci.KindNLB: "None"}[kind]
					if annotation != "" {
						key := listModeLB
						if kind == oci.KindNLB {
							key = prefixNLB + "security-list-management-mode"
						}
						r.edit(svc, annotate(key, annotation))
						former = map[string]string{"none": former}[annotation] + strings.TrimPrefix(annotation, "none")
					}
					switch former {
					case "All":
						r.legacyRules(front, work)
					case "Frontend":
						r.legacyRules(front[:1], nil)
					}
					r.cfg.RulesLB = configured // the only key that an old file can have
					r.cfg.Subnet1 = r.ruled.front
					r.public = r.ruled.front
					r.legacyBalancer(svc, kind)
					r.restart()
					before := r.ruled.now()
					r.region.ResetCalls()
					svc = r.mustSync(svc, nodes)
					if now := r.ruled.now(); !maps.Equal(before, now) {
						r.Errorf("the first reconcile changed rules:\n%v\n%v", before, now)
					}
					for _, call := range written(r.region.Calls()) {
						if strings.Contains(call, "Security") {
							r.Errorf("the first reconcile: %s", call)
						}
					}
					narrower := kind == oci.KindLB && (annotation == "" && (configured == loadbalancer.RulesNone || configured == loadbalancer.RulesFrontend) || annotation == "none")
					if narrower {
						r.oneSeries("SecurityRulesLeft", "egress TCP 30080")
					} else {
						r.noEvents()
					}
					r.unchanged(svc, nodes)
					r.cluster.events = nil

					// By default what carries no mark stays, and is named.
					r.remove(svc)
					if now := r.ruled.now(); !maps.Equal(before, now) {
						r.Errorf("the deletion changed rules without a mark:\n%v\n%v", before, now)
					}
				})
			})
		}
	}
}

// After the upgrade an edit of the Service changes rules: what was made before the upgrade is removed only if that is wanted.
func TestUpgradeThenEdit(t *testing.T) {
	for _, keep := range []bool{true, false} {
		t.Run(fmt.Sprintf("keep %t", keep), func(t *testing.T) {
			withRules(t, ocisim.Options{Seed: 84}, func(r *rig) {
				r.ruled.keepAnonymous = keep
				front, work := allRules()
				r.legacyRules(front, work)
				nodes := []*v1.Node{r.worker("a", r.ruled.workers)}
				svc := r.service("web", oci.KindLB, 80)
				r.public = r.ruled.front
				r.legacyBalancer(svc, oci.KindLB)
				r.restart()
				svc = r.mustSync(svc, nodes)
				r.restart()
				svc = r.mustSync(svc, nodes)
				r.hasRules(r.ruled.frontList, front...)
				r.edit(svc, func(s *v1.Service) { s.Spec.LoadBalancerSourceRanges = []string{"203.0.113.0/24"} })
				svc = r.mustSync(svc, nodes)
				narrowed := append(slices.Clone(front[1:]), ours("in tcp 80 from 203.0.113.0/24")...)
				if keep {
					narrowed = append(narrowed, front[0])
					r.oneSeries("SecurityRulesLeft", "ingress TCP 80 from 0.0.0.0/0", "--keep-anonymous-rules=false")
				} else {
					r.noEvents()
				}
				r.hasRules(r.ruled.frontList, narrowed...)
				r.restart()
				svc = r.mustSync(svc, nodes)
				r.remove(svc)
				if keep {
					r.hasRules(r.ruled.frontList, front...)
				} else {
					r.asAtStart()
				}
			})
		})
	}
}

// A balancer that is replaced by one of the other kind: its rules stay as long as it does, and then only those of the
// successor are left.
func TestRulesOfReplacement(t *testing.T) {
	withRules(t, ocisim.Options{Seed: 85, Durations: fixed(time.Second)}, func(r *rig) {
		nodes := []*v1.Node{r.worker("a", r.ruled.workers)}
		svc := r.mustSync(r.service("web", oci.KindLB, 80), nodes)
		front, work := allRules()
		r.edit(svc, func(s *v1.Service) {
			s.Annotations = maps.Clone(s.Annotations)
			s.Annotations[prefixCommon+"load-balancer-type"] = "nlb"
			s.Annotations[prefixCommon+"load-balancer-replace"] = "true"
		})
		for range 20 {
			status, err := r.m.Ensure(r.Context(), r.cluster.get(svc.UID), nodes)
			if len(r.live()) == 2 || r.live()[0].Kind == oci.KindLB {
				r.hasRules(r.ruled.frontList, ours(front...)...)
				r.hasRules(r.ruled.workList, ours(work...)...)
			}
			if err == nil {
				r.cluster.setStatus(svc.UID, status)
			}
			time.Sleep(5 * time.Second)
		}
		r.equal("kind", r.only().Kind, oci.KindNLB)
		r.asAtStart() // an NLB without annotation is in mode None
		for _, e := range r.cluster.events {
			if strings.HasPrefix(e.Reason, "SecurityRules") {
				r.Errorf("event %v", e)
			}
		}
		r.remove(svc)
		r.asAtStart()
	})
}
