// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package loadbalancer_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"

	"github.com/oracle/oci-cloud-controller-manager/pkg/loadbalancer"
	"github.com/oracle/oci-cloud-controller-manager/pkg/oci"
	"github.com/oracle/oci-cloud-controller-manager/test/ocisim"
)

// What a change of an annotation comes to, where it is not the new value.
const (
	immutable = "immutable" // it is told and not applied
	ignored   = "ignored"   // it counts at creation only
)

// reach is how one annotation reaches the cloud.
type reach struct {
	kind          oci.BalancerKind
	key           string
	value         func(r *rig, second bool) string
	look          func(r *rig, b *oci.Balancer) any
	first, second any
	before        func(r *rig, s *v1.Service) // what it needs besides; may be nil
}

// ownTests are those of annotations that are about more than a field of the balancer. A row here without a test does not
// compile.
func ownTests() map[string][]func(*testing.T) {
	return map[string][]func(*testing.T){
		prefixCommon + "load-balancer-type":       {TestLifecycle, TestNoReplacementWithoutOptIn, TestReplacement},
		prefixCommon + "load-balancer-replace":    {TestReplacement, TestNoReplacementWithoutOptIn},
		prefixCommon + "workload-service-account": {TestWorkloadIdentity, TestWorkloadIdentityChanges, TestWorkloadIdentityIsGone},

		prefixLB + "security-list-management-mode":          {TestListModeAnnotation},
		prefixNLB + "security-list-management-mode":         {TestListModeAnnotation},
		prefixCommon + "security-rule-management-mode":      {TestRulesOfGroups, TestModeChangedByAnnotation, TestFromGroupsToListsAndBack},
		prefixCommon + "oci-backend-network-security-group": {TestRulesOfGroups, TestBackendGroupsChange},
		sourceRanges: {TestSourceRangesAnnotation, TestNarrowedRangeCloses},

		prefixLB + "ssl-ports":                                   {TestTLS, TestTLSOnALivePort, TestTLSTakenOff},
		prefixLB + "tls-secret":                                  {TestTLS, TestCertificateRotation, TestSecretNameChanges, TestBadSecrets},
		prefixLB + "tls-backendset-secret":                       {TestTLS, TestCertificateRotation, TestTLSTakenOff},
		prefixCommon + "oci-load-balancer-listener-ssl-config":   {TestCiphers},
		prefixCommon + "oci-load-balancer-backendset-ssl-config": {TestCiphers},
	}
}

func set80(b *oci.Balancer) oci.BackendSet { return b.BackendSets["TCP-80"] }

func anyListener(b *oci.Balancer) oci.Listener {
	for _, l := range b.Listeners {
		return l
	}
	return oci.Listener{}
}

func localTraffic(_ *rig, s *v1.Service) {
	s.Spec.ExternalTrafficPolicy, s.Spec.HealthCheckNodePort = v1.ServiceExternalTrafficPolicyLocal, 32000
}

func alsoAnnotated(key, value string) func(*rig, *v1.Service) {
	return func(_ *rig, s *v1.Service) { s.Annotations[key] = value }
}

func reaches() []reach {
	type look = func(r *rig, b *oci.Balancer) any
	ipMode := func(r *rig, _ *oci.Balancer) any {
		return *r.cluster.get("uid-web").Status.LoadBalancer.Ingress[0].IPMode
	}
	shown := func(r *rig, _ *oci.Balancer) any { return len(r.cluster.get("uid-web").Status.LoadBalancer.Ingress) }
	backends := func(_ *rig, b *oci.Balancer) any { return len(set80(b).Backends) }
	hasAddress := func(ip string) look {
		return func(_ *rig, b *oci.Balancer) any {
			return slices.ContainsFunc(b.Addresses, func(a oci.BalancerAddress) bool { return a.IP == ip })
		}
	}
	return []reach{
		{oci.KindLB, prefixCommon + "loadbalancer-policy", texts("IP_HASH", "least_connections"), func(_ *rig, b *oci.Balancer) any { return set80(b).Policy }, "IP_HASH", "LEAST_CONNECTIONS", nil},
		{oci.KindNLB, prefixNLB + "backend-policy", texts("TWO_TUPLE", "three_tuple"), func(_ *rig, b *oci.Balancer) any { return set80(b).Policy }, "TWO_TUPLE", "THREE_TUPLE", nil},
		{oci.KindLB, prefixLB + "shape-flex-min", texts("20", "30 Mbps"), func(_ *rig, b *oci.Balancer) any { return *b.Shape }, "{flexible 20 400}", "{flexible 30 400}", alsoAnnotated(prefixLB+"shape-flex-max", "400")},
		{oci.KindLB, prefixLB + "shape", texts("100Mbps", "Flexible"), func(_ *rig, b *oci.Balancer) any { return *b.Shape }, "{100Mbps 0 0}", "{flexible 10 100}", nil},
		{oci.KindLB, prefixLB + "internal", texts("true", "false"), func(_ *rig, b *oci.Balancer) any { return b.Private }, true, immutable, nil},
		{oci.KindNLB, prefixNLB + "internal", texts("TRUE", "false"), func(_ *rig, b *oci.Balancer) any { return b.Private }, true, immutable, nil},
		{oci.KindLB, prefixLB + "subnet1", func(r *rig, second bool) string { return pick(second, r.dual, r.public) }, func(r *rig, b *oci.Balancer) any { return b.SubnetIDs[0] == r.dual }, true, immutable, nil},
		{oci.KindNLB, prefixNLB + "subnet", func(r *rig, second bool) string { return pick(second, r.dual, r.public) }, func(r *rig, b *oci.Balancer) any { return b.SubnetIDs[0] == r.dual }, true, immutable, nil},
		{oci.KindLB, prefixCommon + "compartment-id", func(r *rig, second bool) string { return pick(second, r.other, r.compartment) }, func(r *rig, b *oci.Balancer) any { return b.CompartmentID == r.other }, true, immutable, nil},
		{oci.KindNLB, prefixCommon + "compartment-id", func(r *rig, second bool) string { return pick(second, r.other, r.compartment) }, func(r *rig, b *oci.Balancer) any { return b.CompartmentID == r.other }, true, immutable, nil},
		{oci.KindLB, prefixCommon + "oci-network-security-groups", func(r *rig, second bool) string { return pick(second, r.groups[0]+", "+r.groups[1]+",", r.groups[1]) }, func(_ *rig, b *oci.Balancer) any { return len(b.NSGIDs) }, 2, 1, nil},
		{oci.KindNLB, prefixNLB + "oci-network-security-groups", func(r *rig, second bool) string { return pick(second, r.groups[0]+", "+r.groups[1]+",", r.groups[1]) }, func(_ *rig, b *oci.Balancer) any { return len(b.NSGIDs) }, 2, 1, nil},
		{oci.KindLB, prefixCommon + "initial-freeform-tags-override", texts(`{"team":"a"}`, `{"team":"b"}`), func(_ *rig, b *oci.Balancer) any { return b.Freeform["team"] + b.Freeform["from"] }, "a", ignored, nil},
		{oci.KindNLB, prefixNLB + "initial-freeform-tags-override", texts(`{"team":"a"}`, `{"team":"b"}`), func(_ *rig, b *oci.Balancer) any { return b.Freeform["team"] + b.Freeform["from"] }, "a", ignored, nil},
		{oci.KindNLB, prefixNLB + "freeform-tags", texts(`{"team":"a"}`, `{"team":"b"}`), func(_ *rig, b *oci.Balancer) any { return b.Freeform["team"] + b.Freeform["from"] }, "a", ignored, nil},
		{oci.KindLB, prefixCommon + "initial-defined-tags-override", texts(`{"ops":{"cost":"1"}}`, `{"ops":{"cost":"2"}}`), func(_ *rig, b *oci.Balancer) any { return fmt.Sprint(b.Defined, b.Freeform["from"]) }, "map[ops:map[cost:1]]", ignored, nil},
		{oci.KindNLB, prefixNLB + "initial-defined-tags-override", texts(`{"ops":{"cost":"1"}}`, `{"ops":{"cost":"2"}}`), func(_ *rig, b *oci.Balancer) any { return fmt.Sprint(b.Defined, b.Freeform["from"]) }, "map[ops:map[cost:1]]", ignored, nil},
		{oci.KindNLB, prefixNLB + "defined-tags", texts(`{"ops":{"cost":"1"}}`, `{"ops":{"cost":"2"}}`), func(_ *rig, b *oci.Balancer) any { return fmt.Sprint(b.Defined, b.Freeform["from"]) }, "map[ops:map[cost:1]]", ignored, nil},
		{oci.KindLB, prefixLB + "health-check-retries", texts("5", "7"), func(_ *rig, b *oci.Balancer) any { return set80(b).Checker.Retries }, 5, 7, nil},
		{oci.KindNLB, prefixNLB + "health-check-retries", texts("5", "7"), func(_ *rig, b *oci.Balancer) any { return set80(b).Checker.Retries }, 5, 7, nil},
		{oci.KindLB, prefixLB + "health-check-interval", texts("4000", "5000ms"), func(_ *rig, b *oci.Balancer) any { return set80(b).Checker.IntervalMillis }, 4000, 5000, nil},
		{oci.KindNLB, prefixNLB + "health-check-interval", texts("14000", "15000ms"), func(_ *rig, b *oci.Balancer) any { return set80(b).Checker.IntervalMillis }, 14000, 15000, nil},
		{oci.KindLB, prefixLB + "health-check-timeout", texts("400", "500ms"), func(_ *rig, b *oci.Balancer) any { return set80(b).Checker.TimeoutMillis }, 400, 500, nil},
		{oci.KindNLB, prefixNLB + "health-check-timeout", texts("400", "500ms"), func(_ *rig, b *oci.Balancer) any { return set80(b).Checker.TimeoutMillis }, 400, 500, nil},
		{oci.KindLB, prefixLB + "connection-idle-timeout", texts("100", "200s"), func(_ *rig, b *oci.Balancer) any { return *anyListener(b).IdleTimeoutSeconds }, 100, 200, nil},
		{oci.KindLB, prefixLB + "connection-proxy-protocol-version", texts("1", "2"), func(_ *rig, b *oci.Balancer) any { return *anyListener(b).ProxyProtocolVersion }, 1, 2, nil},
		{oci.KindLB, prefixLB + "backend-protocol", texts("http", "TCP"), func(_ *rig, b *oci.Balancer) any { return anyListener(b).Name + " " + anyListener(b).Protocol }, "HTTP-80 HTTP", "HTTP-80 TCP", nil},
		{oci.KindNLB, prefixNLB + "is-ppv2-enabled", texts("True", "false"), func(_ *rig, b *oci.Balancer) any { return *anyListener(b).PPv2 }, true, false, nil},
		{oci.KindNLB, prefixNLB + "is-preserve-source", texts("false", "true"), func(_ *rig, b *oci.Balancer) any { return *set80(b).PreserveSource }, false, true, localTraffic},
		{oci.KindNLB, prefixNLB + "assigned-private-ipv4", texts("10.0.0.77", "10.0.0.78"), hasAddress("10.0.0.77"), true, immutable, nil},
		{oci.KindNLB, prefixNLB + "assigned-ipv6", texts("fd00:10::77", "FD00:10::78"), hasAddress("fd00:10::77"), true, immutable, func(r *rig, s *v1.Service) {
			s.Annotations[prefixNLB+"subnet"] = r.dual
			dualStack(v1.IPFamilyPolicyRequireDualStack)(s)
		}},
		{oci.KindLB, prefixLB + "shape-flex-max", texts("200", "300 mbps"), func(_ *rig, b *oci.Balancer) any { return *b.Shape }, "{flexible 20 200}", "{flexible 20 300}", alsoAnnotated(prefixLB+"shape-flex-min", "20")},
		{oci.KindLB, prefixLB + "subnet2", func(r *rig, second bool) string { return pick(second, r.adNext, r.public) }, func(r *rig, b *oci.Balancer) any { return slices.Contains(b.SubnetIDs, r.adNext) }, true, immutable, func(r *rig, s *v1.Service) {
			s.Annotations[prefixLB+"subnet1"] = r.adFirst
		}},
		{oci.KindLB, prefixCommon + "ingress-ip-mode", texts("Proxy", "vip"), ipMode, "Proxy", "VIP", nil},
		{oci.KindNLB, prefixCommon + "ingress-ip-mode", texts("PROXY", "VIP"), ipMode, "Proxy", "VIP", nil},
		{oci.KindNLB, prefixNLB + "external-ip-only", texts("False", "true"), shown, 2, 1, nil},
		{oci.KindLB, prefixCommon + "node-label-selector", texts("kubernetes.io/hostname=node-1", "kubernetes.io/hostname"), backends, 1, 2, nil},
		{oci.KindNLB, prefixNLB + "node-label-selector", texts("kubernetes.io/hostname=node-1", "kubernetes.io/hostname"), backends, 1, 2, nil},
		{oci.KindLB, ruleSetsKey, texts(`{"debug":`+removeDebug+`}`, ""), func(_ *rig, b *oci.Balancer) any { return fmt.Sprint(len(b.RuleSets), anyListener(b).RuleSetNames) }, "1 [debug]", "0 []", nil},
	}
}

// Each annotation, from the Service to the state of the balancer in the cloud, or to the Service's status: at creation, and
// when it is changed on a live balancer.
func TestAnnotationsReachTheCloud(t *testing.T) {
	if testing.Short() {
		t.Skip("long, and nothing runs at the same time in it: in make test-long")
	}
	covered := map[string]bool{}
	for _, test := range reaches() {
		covered[string(test.kind)+test.key] = true
		t.Run(string(test.kind)+" "+test.key[strings.LastIndex(test.key, "/")+1:], func(t *testing.T) {
			simulate(t, ocisim.Options{Seed: 31}, func(r *rig) {
				r.region.AddTagNamespace("ops")
				r.cfg.Tags = oci.Tags{Freeform: map[string]string{"from": "config"}}
				r.restart()
				nodes := r.nodes(2)
				svc := r.service("web", test.kind, 80)
				if test.before != nil {
					r.edit(svc, func(s *v1.Service) { test.before(r, s) })
				}
				r.edit(svc, annotate(test.key, test.value(r, false)))
				r.mustSync(svc, nodes)
				r.equal("at creation", test.look(r, r.only()), test.first)
				r.unchanged(svc, nodes)

				r.edit(svc, annotate(test.key, test.value(r, true)))
				r.mustSync(svc, nodes)
				want, events := test.second, 0
				switch test.second {
				case immutable:
					want, events = test.first, 1
				case ignored:
					want = test.first
				}
				r.equal("after the change", test.look(r, r.only()), want)
				r.equal("events", len(r.cluster.series(loadbalancer.ReasonImmutable)), events)
				r.unchanged(svc, nodes)
			})
		})
	}
	for _, a := range loadbalancer.Annotations() {
		for _, kind := range a.Kinds {
			if !a.Internal && !covered[string(kind)+a.Key] && len(ownTests()[a.Key]) == 0 {
				t.Errorf("no test takes %s to the state of a balancer of type %s", a.Key, kind)
			}
		}
	}
}

// badValue is illegal for the type of an annotation.
func badValue(a loadbalancer.Annotation) string {
	switch a.Type {
	case loadbalancer.TypeSelector:
		return "a in (x"
	case loadbalancer.TypeServiceAccount:
		return "Not A Name"
	default:
		return "((("
	}
}

// An illegal value of any annotation is one event that names it. It reaches the cloud neither at the creation nor on a live
// balancer, and does not stop the deletion. Of shapes only the API knows which there are: see TestUnknownShape.
func TestBadValuesOfAnnotations(t *testing.T) {
	for _, kind := range []oci.BalancerKind{oci.KindLB, oci.KindNLB} {
		t.Run(string(kind), func(t *testing.T) {
			simulate(t, ocisim.Options{Seed: 38, Durations: fixed(0)}, func(r *rig) {
				nodes := r.nodes(1)
				for i, a := range loadbalancer.Annotations() {
					if a.Internal || a.Type == loadbalancer.TypeShape || !a.AppliesTo(kind) {
						continue
					}
					refused := func(what string, svc *v1.Service) {
						r.Helper()
						r.cluster.events = nil
						r.region.ResetCalls()
						var refusal *loadbalancer.Refusal
						if _, err := r.m.Ensure(r.Context(), svc, nodes); !errors.As(err, &refusal) {
							r.Errorf("%s %s: got %v, want a refusal", a.Key, what, err)
						}
						named := slices.ContainsFunc(r.cluster.series(loadbalancer.ReasonInvalidAnnotation), func(e clusterEvent) bool {
							return strings.Contains(e.Message, a.Key[strings.LastIndex(a.Key, "/")+1:])
						})
						if !named || len(r.cluster.events) != 1 {
							r.Errorf("%s %s: events %v, want one that names it", a.Key, what, r.cluster.events)
						}
						r.equal(a.Key+" "+what+": writes", written(r.region.Calls()), []string{})
					}
					svc := r.service(fmt.Sprintf("web-%d", i), kind, 80)
					bad := annotate(a.Key, badValue(a))
					if a.Key == prefixCommon+"load-balancer-type" && kind == oci.KindNLB {
						bad = annotate(a.Key, "nlbs") // an illegal type counts as lb, so there is no NLB to be made
					}
					r.edit(svc, bad)
					refused("at creation", r.cluster.get(svc.UID))
					r.edit(svc, func(s *v1.Service) {
						delete(s.Annotations, a.Key)
						s.Annotations[prefixCommon+"load-balancer-type"] = string(kind)
					})
					r.mustSync(svc, nodes)
					r.edit(svc, bad)
					refused("on a live balancer", r.cluster.get(svc.UID))
					if !r.drop(r.Context(), r.condemn(svc)) {
						r.Errorf("%s: not deleted", a.Key)
					}
					r.equal(a.Key+": balancers", len(r.live()), 0)
				}
			})
		})
	}
}

func texts(first, second string) func(*rig, bool) string {
	return func(_ *rig, isSecond bool) string { return pick(isSecond, first, second) }
}

func pick(isSecond bool, first, second string) string {
	if isSecond {
		return second
	}
	return first
}
