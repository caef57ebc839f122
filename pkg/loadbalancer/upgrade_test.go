// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package loadbalancer_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/oracle/oci-go-sdk/v65/common"
	"github.com/oracle/oci-go-sdk/v65/core"
	lbsdk "github.com/oracle/oci-go-sdk/v65/loadbalancer"
	v1 "k8s.io/api/core/v1"

	"github.com/oracle/oci-cloud-controller-manager/pkg/loadbalancer"
	"github.com/oracle/oci-cloud-controller-manager/pkg/oci"
	"github.com/oracle/oci-cloud-controller-manager/test/ocisim"
)

const (
	lb, nlb = oci.KindLB, oci.KindNLB

	listenerTLS = prefixCommon + "oci-load-balancer-listener-ssl-config"
	setTLS      = prefixCommon + "oci-load-balancer-backendset-ssl-config"
	setHeaders  = `{"headers": {"items": [{"action": "ADD_HTTP_REQUEST_HEADER", "header": "x-from", "value": "lb"}]}}`
)

// annotateSince is an annotation that was set while nobody looked.
func annotateSince(key, value string) func(*rig, string, *v1.Service) {
	return func(r *rig, _ string, svc *v1.Service) { r.edit(svc, annotate(key, value)) }
}

// renamed is a listener that has a legacy name.
func renamed(from, to string) func(*rig, string, *v1.Service) {
	return func(r *rig, id string, _ *v1.Service) {
		err := r.region.Foreign().LoadBalancer(id, func(v *lbsdk.LoadBalancer) {
			l := v.Listeners[from]
			delete(v.Listeners, from)
			l.Name = &to
			v.Listeners[to] = l
		})
		if err != nil {
			r.Fatal(err)
		}
	}
}

// inheritedLBs are Services with load balancers: all that the existing implementation makes differently (contract ccm.md §2–4).
func inheritedLBs() []inherited {
	withTLS := []string{prefixLB + "ssl-ports", "443", prefixLB + "tls-secret", "web-tls"}
	both := append(slices.Clone(withTLS), prefixLB+"tls-backendset-secret", "backends")
	return []inherited{
		{name: "plain"},
		{name: "same-ports"},
		{name: "all", set: []string{listModeLB, "All"}},
		{name: "frontend", set: []string{listModeLB, "Frontend"}},
		{name: "none", set: []string{listModeLB, "None"}},
		{name: "sl-all", set: []string{ruleMode, "sl-all"}},
		{name: "sl-frontend", set: []string{ruleMode, "SL-Frontend", listModeLB, "All"}, events: []string{"AnnotationIgnored"}},
		{name: "rules-none", set: []string{ruleMode, "None"}},
		{name: "groups", set: []string{ruleMode, "NSG", backendNSG, "$backends", prefixCommon + "oci-network-security-groups", "$group"}},
		{name: "ranges", from: []string{"203.0.113.0/24", "198.51.100.0/24"}},
		{name: "ranges-annotation", set: []string{sourceRanges, "203.0.113.0/24", listModeLB, "All"}},
		{name: "local", local: true},
		{name: "internal", set: []string{prefixLB + "internal", "true"}},
		{name: "flexible", set: []string{prefixLB + "shape", "Flexible", prefixLB + "shape-flex-min", "10", prefixLB + "shape-flex-max", "50"}},
		{name: "shape", set: []string{prefixLB + "shape", "400Mbps"}},
		{name: "connections", set: []string{prefixLB + "connection-idle-timeout", "100", prefixLB + "connection-proxy-protocol-version", "2"}},
		{name: "proxy", set: []string{prefixLB + "connection-proxy-protocol-version", "1", prefixLB + "backend-protocol", "HTTP"}},
		{name: "checks", set: []string{prefixLB + "health-check-retries", "5", prefixLB + "health-check-interval", "20000", prefixLB + "health-check-timeout", "4000", prefixCommon + "loadbalancer-policy", "IP_HASH"}},
		{name: "selector", set: []string{prefixCommon + "node-label-selector", "kubernetes.io/hostname=c"}},
		{name: "http", set: []string{prefixLB + "backend-protocol", "HTTP"}},
		{name: "http-lower", set: []string{prefixLB + "backend-protocol", "HTTP"}, since: renamed("HTTP-80", "http-80")},
		{name: "http-was-tcp", set: []string{prefixLB + "backend-protocol", "HTTP"}, since: renamed("HTTP-80", "TCP-80")},
		{name: "tls", set: withTLS},
		{name: "tls-both", set: both},
		{name: "tls-options", set: append(slices.Clone(both), listenerTLS, `{"CipherSuiteName": "oci-tls-12-13-wider-ssl-cipher-suite-v1", "protocols": ["TLSv1.2", "TLSv1.3"]}`)},
		{name: "tls-versions", set: append(slices.Clone(both), listenerTLS, `{"protocols": ["TLSv1.2"]}`, setTLS, `{"protocols": ["TLSv1.2"]}`)},
		{name: "tls-legacy-name", set: withTLS, since: renamed("TCP-443", "TCP-443-web-tls")},
		{name: "grpc", ports: []string{"443"}, set: append(slices.Clone(withTLS), prefixLB+"backend-protocol", "grpc")},
		{
			name: "tls-versions-since", set: both, since: annotateSince(listenerTLS, `{"protocols": ["TLSv1.2", "TLSv1.1"]}`), events: []string{"LeftAsFound"},
		},
		{name: "rule-sets", set: []string{prefixLB + "backend-protocol", "HTTP", prefixCommon + "oci-load-balancer-rule-sets", setHeaders}},
		{
			name: "rule-sets-missing", set: []string{prefixLB + "backend-protocol", "HTTP", prefixCommon + "oci-load-balancer-rule-sets", setHeaders},
			since: func(r *rig, id string, _ *v1.Service) { // a listener that was added to the live balancer
				err := r.region.Foreign().LoadBalancer(id, func(v *lbsdk.LoadBalancer) {
					l := v.Listeners["HTTP-443"]
					l.RuleSetNames = nil
					v.Listeners["HTTP-443"] = l
				})
				if err != nil {
					r.Fatal(err)
				}
			},
			writes: []string{"UpdateListener", "UpdateLoadBalancer"},
		},
		{name: "mode-in-lower-case", set: []string{listModeLB, "none"}, events: []string{"SecurityRulesLeft"}},
		{
			name: "foreign-settings", since: func(r *rig, id string, _ *v1.Service) {
				err := r.region.Foreign().LoadBalancer(id, func(v *lbsdk.LoadBalancer) {
					v.BackendSets["TCP-80"].Backends[0].Weight = common.Int(7)
					v.FreeformTags = map[string]string{"team": "shop"}
				})
				if err != nil {
					r.Fatal(err)
				}
			},
		},
	}
}

// inheritedNLBs are Services with network load balancers.
func inheritedNLBs() []inherited {
	listModeNLB := prefixNLB + "security-list-management-mode"
	nsg := []string{ruleMode, "nsg", backendNSG, "$backends"}
	return []inherited{
		{name: "n-plain"},
		{name: "n-all", set: []string{listModeNLB, "All"}},
		{name: "n-frontend", set: []string{listModeNLB, "Frontend"}},
		{name: "n-groups", set: nsg},
		{name: "n-groups-local", set: nsg, local: true},
		{name: "n-groups-udp", ports: []string{"80", "UDP 53", "UDP 443", "TCP 443"}, set: nsg, events: []string{"LeftAsFound"}},
		{name: "n-udp", ports: []string{"UDP 53"}},
		{name: "n-both", ports: []string{"TCP 53", "UDP 53"}},
		{name: "n-local", local: true},
		{name: "n-local-all", local: true, set: []string{ruleMode, "SL-All"}, from: []string{"203.0.113.0/24"}},
		{name: "n-not-preserved", local: true, set: []string{ruleMode, "SL-All", prefixNLB + "is-preserve-source", "false"}},
		{name: "n-capitals", local: true, set: []string{prefixCommon + "load-balancer-type", "NLB"}, events: []string{"LeftAsFound"}},
		{name: "n-capitals-all", local: true, set: []string{prefixCommon + "load-balancer-type", "NLB", ruleMode, "SL-All"}, events: []string{"LeftAsFound"}},
		{name: "n-capitals-cluster", set: []string{prefixCommon + "load-balancer-type", "NLB"}},
		{name: "n-internal", set: []string{prefixNLB + "internal", "true", prefixNLB + "subnet", "$private"}},
		{name: "n-checks", set: []string{prefixNLB + "health-check-retries", "5", prefixNLB + "health-check-interval", "20000", prefixNLB + "backend-policy", "TWO_TUPLE", prefixNLB + "is-ppv2-enabled", "True"}},
		{name: "n-groups-of-users", set: []string{prefixNLB + "oci-network-security-groups", "$group"}},
		{name: "n-dual", dual: true, set: []string{prefixNLB + "subnet", "$dual"}, events: []string{"NodesSkipped"}},
		{name: "n-dual-all", dual: true, set: []string{prefixNLB + "subnet", "$dual", ruleMode, "SL-All"}, events: []string{"NodesSkipped"}},
		{
			name: "n-dual-without-nodes", dual: true, events: []string{"LeftAsFound"},
			set: []string{prefixNLB + "subnet", "$dual", ruleMode, "SL-All", prefixNLB + "node-label-selector", "!kubernetes.io/hostname"},
		},
		{name: "n-dual-in-single", dual: true, set: []string{prefixNLB + "subnet", "$public"}},
	}
}

// byDefault says whether the mode of a Service's security rules follows from nothing that is written on it.
func (x inherited) byDefault() bool {
	set := pairs(x.set)
	return set[ruleMode] == "" && set[listModeLB] == "" && set[prefixNLB+"security-list-management-mode"] == ""
}

// expected are the reasons of the events of the first pass.
func (x inherited) expected(configured loadbalancer.RuleMode) []string {
	out := slices.Clone(x.events)
	if x.kind == lb && x.byDefault() && (configured == loadbalancer.RulesNone || configured == loadbalancer.RulesFrontend) {
		out = append(out, "SecurityRulesLeft")
	}
	silent := x.byDefault() && (x.kind == nlb || configured == loadbalancer.RulesNone)
	if len(x.from) > 0 && silent {
		out = append(out, "SourceRangesIgnored")
	}
	slices.Sort(out)
	return out
}

// Acceptance 5: all that the existing implementation can have left, with Services that share lists, under each mode that an
// old configuration can have. Nothing is recreated; no rule is opened or closed, by the first pass or by the one over all
// balancers; what is written is just what docs/upgrade.md says.
func TestUpgrade(t *testing.T) {
	if testing.Short() {
		t.Skip("long, and nothing runs at the same time in it: in make test-long")
	}
	documented := documentedWrites(t)
	for _, configured := range []loadbalancer.RuleMode{"", loadbalancer.RulesNone, loadbalancer.RulesFrontend, loadbalancer.RulesAll} {
		for kind, cases := range map[oci.BalancerKind][]inherited{lb: inheritedLBs(), nlb: inheritedNLBs()} {
			t.Run(fmt.Sprintf("%s mode %q", kind, configured), func(t *testing.T) {
				withRules(t, ocisim.Options{Seed: 201}, func(r *rig) {
					nodes := []*v1.Node{r.worker("a", r.ruled.workers), r.worker("b", r.ruled.far), r.node("c")}
					former := r.former(nodes)
					var svcs []*v1.Service
					for i, x := range cases {
						x.kind = kind
						svcs = append(svcs, r.inherit(former, i, x))
					}
					r.aged()
					r.ruled.keepAnonymous = configured == "" || configured == loadbalancer.RulesAll
					r.cfg.RulesLB = configured // the only key that an old file can have
					r.restart()
					rules, balancers := r.ruled.now(), r.balancerIDs()
					for i, x := range cases {
						x.kind = kind
						r.region.ResetCalls()
						svcs[i] = r.mustSync(svcs[i], nodes)
						writes := slices.Sorted(slices.Values(written(r.region.Calls())))
						for _, operation := range writes {
							if !slices.Contains(documented, operation) {
								r.Errorf("%s: docs/upgrade.md does not explain %s", x.name, operation)
							}
						}
						r.equal(x.name+": writes of the first pass", writes, slices.Sorted(slices.Values(x.writes)))
						r.equal(x.name+": events", r.cluster.reasons(x.name), x.expected(configured))
						r.equal(x.name+": condition", r.cluster.condition(svcs[i].UID), "True Synced")
					}
					if now := r.ruled.now(); !maps.Equal(now, rules) {
						r.Errorf("the first pass has changed rules:\n%v\n%v", rules, now)
					}
					r.equal("balancers", r.balancerIDs(), balancers)
					r.quiet(nodes)

					// A second process, and a change of the nodes, change nothing of that either.
					r.restart()
					for _, svc := range svcs {
						r.mustUpdateBackends(svc, nodes)
						svc = r.mustSync(svc, nodes)
						r.unchanged(svc, nodes)
					}
					if now := r.ruled.now(); !maps.Equal(now, rules) {
						r.Errorf("the second pass has changed rules:\n%v\n%v", rules, now)
					}
					for _, svc := range r.cluster.all() {
						if unfound := former.Unfound(svc); len(unfound) > 0 {
							r.Errorf("%s: after the way back the existing implementation would %v", svc.Name, unfound)
						}
					}
				})
			})
		}
	}
}

// Rules that the existing implementation has left in a group of nodes that the annotation does not name any more stay until the
// Service is edited: nodes may still be in that group. In the groups of Services of our own they go with the edit.
func TestGroupsOfFormerNodes(t *testing.T) {
	for _, kind := range []oci.BalancerKind{lb, nlb} {
		t.Run(string(kind), func(t *testing.T) {
			withRules(t, ocisim.Options{Seed: 204}, func(r *rig) {
				nodes := []*v1.Node{r.worker("a", r.ruled.workers)}
				svc := r.inherit(r.former(nodes), 0, inherited{name: "web", kind: kind, set: []string{ruleMode, "NSG", backendNSG, "$backends"}})
				left := r.groups[1]
				err := r.region.Foreign().SecurityGroup(left, func(g *core.NetworkSecurityGroup) { g.FreeformTags = map[string]string{"ManagedBy": "CCM"} })
				if err == nil {
					_, err = r.region.Foreign().AddRules(left, core.SecurityRule{
						Direction: core.SecurityRuleDirectionIngress, Protocol: common.String("6"), Source: r.managed(svc).Id,
						SourceType: core.SecurityRuleSourceTypeNetworkSecurityGroup, Description: common.String("service-uid-" + string(svc.UID)),
						IsStateless: common.Bool(false), TcpOptions: &core.TcpOptions{DestinationPortRange: &core.PortRange{Min: common.Int(31000), Max: common.Int(31000)}},
					})
				}
				if err != nil {
					r.Fatal(err)
				}
				r.aged()
				for range 2 {
					r.restart()
					rules := r.ruled.now()
					svc = r.mustSync(svc, nodes)
					r.quiet(nodes)
					r.equal("rules", r.ruled.now(), rules)
				}
				r.noEvents()
				r.edit(svc, func(s *v1.Service) { s.Spec.LoadBalancerSourceRanges = []string{"203.0.113.0/24"} })
				r.mustSync(svc, nodes)
				if _, err := r.m.Audit(r.Context(), r.cluster.all(), nodes); err != nil {
					r.Error(err)
				}
				r.equal("rules that are left", r.groupRules(left), []string{})
			})
		})
	}
}

// Each write of a first pass is in the table of docs/upgrade.md, and each one in the table is made: for what happened while no
// process looked, and for what the existing implementation would have written at its next start, too.
func TestFirstPassWrites(t *testing.T) {
	var seen []string
	withTLS := []string{prefixLB + "ssl-ports", "443", prefixLB + "tls-secret", "web-tls", prefixLB + "tls-backendset-secret", "web-tls"}
	renewed := func(r *rig, _ string, _ *v1.Service) {
		r.secrets.put("shop", "web-tls", r.secrets.pair(r.T, "renewed"))
	}
	withoutRuleSets := inheritedLBs()[slices.IndexFunc(inheritedLBs(), func(x inherited) bool { return x.name == "rule-sets-missing" })]
	withoutRuleSets.kind = lb
	for _, x := range []inherited{
		withoutRuleSets,
		{name: "renewed", kind: lb, set: withTLS, since: renewed, writes: []string{"CreateCertificate", "DeleteCertificate", "UpdateBackendSet", "UpdateListener", "UpdateLoadBalancer"}},
		{name: "more-nodes", kind: lb, ports: []string{"80"}, writes: []string{"UpdateBackendSet", "UpdateLoadBalancer", "UpdateSecurityList", "UpdateSecurityList"}},
		{name: "more-nodes", kind: nlb, ports: []string{"80"}, writes: []string{"UpdateBackendSet", "UpdateNetworkLoadBalancer"}},
	} {
		t.Run(x.name+" "+string(x.kind), func(t *testing.T) {
			withRules(t, ocisim.Options{Seed: 202}, func(r *rig) {
				nodes := []*v1.Node{r.worker("a", r.ruled.workers)}
				svc := r.inherit(r.former(nodes), 0, x)
				r.aged()
				r.restart()
				if x.name == "more-nodes" {
					nodes = append(nodes, r.worker("b", r.ruled.far))
				}
				r.region.ResetCalls()
				svc = r.mustSync(svc, nodes)
				writes := slices.Sorted(slices.Values(written(r.region.Calls())))
				seen = append(seen, writes...)
				r.equal("writes", writes, x.writes)
				r.noEvents()
				r.unchanged(svc, nodes)
				r.quiet(nodes)
			})
		})
	}
	slices.Sort(seen)
	if seen = slices.Compact(seen); !slices.Equal(seen, documentedWrites(t)) {
		t.Errorf("first passes have written %v, and docs/upgrade.md says %v", seen, documentedWrites(t))
	}
}

// What stays as the existing implementation has left it, changes with the first edit of the Service, and not before: not when
// the balancer gets its marks, nor in another process.
func TestLeftAsFoundUntilEdited(t *testing.T) {
	cases := slices.Concat(inheritedLBs(), inheritedNLBs())
	cases = slices.DeleteFunc(cases, func(x inherited) bool { return !slices.Contains(x.events, "LeftAsFound") })
	if len(cases) < 5 {
		t.Fatalf("%d cases only", len(cases))
	}
	for i, x := range cases {
		x.kind = nlb
		if i == 0 {
			x.kind = lb
		}
		t.Run(x.name, func(t *testing.T) {
			withRules(t, ocisim.Options{Seed: 203}, func(r *rig) {
				nodes := []*v1.Node{r.worker("a", r.ruled.workers), r.worker("b", r.ruled.workers), r.node("c")}
				svc := r.inherit(r.former(nodes), 0, x)
				r.aged()
				r.restart()
				rules := r.ruled.now()
				svc = r.mustSync(svc, nodes)

				// A change of the nodes gives the balancer its marks.
				gone := nodes[1]
				nodes = []*v1.Node{nodes[0], nodes[2]}
				r.mustUpdateBackends(svc, nodes)
				svc = r.mustSync(svc, nodes)
				nodes = append(nodes, gone)
				svc = r.mustSync(svc, nodes)
				r.equal("mark", r.only().Freeform[loadbalancer.TagOwner], svc.UID)
				r.restart()
				svc = r.mustSync(svc, nodes)
				r.equal("events", r.cluster.reasons(x.name), x.events)
				r.equal("rules", r.ruled.now(), rules)

				r.cluster.events = nil
				r.region.ResetCalls()
				r.edit(svc, annotate(prefixCommon+"loadbalancer-policy", ""))
				svc = r.mustSync(svc, nodes)
				if len(written(r.region.Calls())) == 0 {
					r.Error("the edit has changed nothing")
				}
				r.equal("events", slices.Contains(r.cluster.reasons(x.name), "LeftAsFound"), false)
				r.unchanged(svc, nodes)
				r.restart()
				svc = r.mustSync(svc, nodes)
				r.unchanged(svc, nodes)
				r.quiet(nodes)
			})
		})
	}
}
