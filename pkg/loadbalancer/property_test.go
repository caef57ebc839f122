// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package loadbalancer

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/oracle/oci-cloud-controller-manager/pkg/oci"
)

// C059: names fit, are legal, say what they are made of, and never meet.
func TestNames(t *testing.T) {
	legal := regexp.MustCompile(`^[A-Za-z0-9_-]{1,32}$`)
	kinds := map[oci.BalancerKind][]string{
		oci.KindLB:  {"TCP", "HTTP", "HTTP2", "GRPC"},
		oci.KindNLB: {"TCP", "UDP", "TCP_AND_UDP"},
	}
	rapid.Check(t, func(t *rapid.T) {
		kind := rapid.SampledFrom([]oci.BalancerKind{oci.KindLB, oci.KindNLB}).Draw(t, "kind")
		protocol := rapid.SampledFrom(kinds[kind]).Draw(t, "protocol")
		port := rapid.Int32Range(1, 65535).Draw(t, "port")
		v6 := kind == oci.KindNLB && rapid.Bool().Draw(t, "v6")
		name := objectName(protocol, port, v6)
		if !legal.MatchString(name) {
			t.Fatalf("illegal name %q", name)
		}
		// Reading a name back gives what it was made of: hence no two of them are equal.
		if got, ok := parseName(kind, name, true); !ok || got != (parsedName{protocol, int(port), v6}) {
			t.Fatalf("%q reads as %+v, %t", name, got, ok)
		}
	})
}

// Names of others are nobody's of ours.
func TestForeignNames(t *testing.T) {
	for _, name := range []string{
		"", "hand-9443", "TCP", "TCP-", "TCP-0", "TCP-080", "TCP-65536", "TCP--1", "TCP-80-UPPER", "SCTP-80", "TCP-80-", "tcp_and_udp-80",
		"TCP-80-IPv6", "UDP-80",
	} {
		if _, ok := parseName(oci.KindLB, name, true); ok {
			t.Errorf("LB listener %q is taken for ours", name)
		}
	}
	for _, name := range []string{"hand", "TCP-80-secret", "HTTP-80", "GRPC-80", "TCP-80-ipv6", "TCP-80-IPv6-x"} {
		if ownBackendSet(oci.KindNLB, name) {
			t.Errorf("NLB backend set %q is taken for ours", name)
		}
	}
	if _, ok := ownListener(oci.KindLB, oci.Listener{Name: "TCP-80", Port: 81}); ok {
		t.Error("a listener whose port is not the one in its name is taken for ours")
	}
}

// wish is a Service with what is known about it.
type wish struct {
	svc   *v1.Service
	nodes []*v1.Node
	last  Applied // to the live balancer
}

func drawWish(t *rapid.T, kind oci.BalancerKind, dual bool, label string) wish {
	svc := &v1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "uid", Annotations: map[string]string{annotationType: string(kind)}},
		Spec:       v1.ServiceSpec{Type: v1.ServiceTypeLoadBalancer, IPFamilies: []v1.IPFamily{v1.IPv4Protocol}},
	}
	if dual {
		svc.Spec.IPFamilies = append(svc.Spec.IPFamilies, v1.IPv6Protocol)
	}
	for _, port := range rapid.SliceOfNDistinct(rapid.SampledFrom([]int32{53, 80, 81, 443}), 1, 4, rapid.ID).Draw(t, label+" ports") {
		p := v1.ServicePort{Port: port, NodePort: rapid.Int32Range(30000, 30002).Draw(t, "node port"), Protocol: v1.ProtocolTCP}
		if kind == oci.KindNLB {
			p.Protocol = rapid.SampledFrom([]v1.Protocol{v1.ProtocolTCP, v1.ProtocolUDP}).Draw(t, "protocol")
			if rapid.Bool().Draw(t, "both") {
				both := p
				both.Protocol = map[v1.Protocol]v1.Protocol{v1.ProtocolTCP: v1.ProtocolUDP, v1.ProtocolUDP: v1.ProtocolTCP}[p.Protocol]
				svc.Spec.Ports = append(svc.Spec.Ports, both)
			}
		}
		svc.Spec.Ports = append(svc.Spec.Ports, p)
	}
	if rapid.Bool().Draw(t, "local") {
		svc.Spec.ExternalTrafficPolicy, svc.Spec.HealthCheckNodePort = v1.ServiceExternalTrafficPolicyLocal, 32000
	}
	values := map[string][]string{
		prefixCommon + "loadbalancer-policy": {"IP_HASH", "LEAST_CONNECTIONS"}, prefixCommon + "oci-network-security-groups": {group("a"), group("a") + "," + group("b")},
		prefixLB + "load-balancer-health-check-retries": {"1", "2"}, prefixLB + "load-balancer-connection-idle-timeout": {"100", "200"},
		prefixLB + "load-balancer-connection-proxy-protocol-version": {"1", "2"}, prefixLB + "load-balancer-backend-protocol": {"HTTP", "TCP"},
		prefixLB + "load-balancer-health-check-interval": {"20000"}, prefixLB + "load-balancer-health-check-timeout": {"1000", "2000"},
	}
	if kind == oci.KindLB && rapid.Bool().Draw(t, "TLS") {
		drawTLS(t, svc)
	}
	if kind == oci.KindLB { // taken away, the annotation leaves the rule sets where they are
		svc.Annotations[prefixCommon+"oci-load-balancer-rule-sets"] = rapid.SampledFrom([]string{
			"", `{"a":` + rulesOne + `}`, `{"a":` + rulesTwo + `,"b":` + rulesOne + `}`, `{"b":` + rulesTwo + `,"c":` + rulesTwo + `}`,
		}).Draw(t, label+" rule sets")
	}
	if kind == oci.KindNLB {
		values = map[string][]string{
			prefixNLB + "backend-policy": {"TWO_TUPLE", "THREE_TUPLE"}, prefixNLB + "oci-network-security-groups": {group("a"), group("b") + "," + group("c")},
			prefixNLB + "health-check-retries": {"1", "2"}, prefixNLB + "health-check-interval": {"20000"}, prefixNLB + "health-check-timeout": {"1000"},
			prefixNLB + "is-ppv2-enabled": {"true", "false"},
		}
	}
	for _, key := range slices.Sorted(maps.Keys(values)) {
		if rapid.Bool().Draw(t, key) {
			svc.Annotations[key] = rapid.SampledFrom(values[key]).Draw(t, "value")
		}
	}
	drawRules(t, svc, kind, label)
	w := wish{svc: svc}
	for _, i := range rapid.SliceOfNDistinct(rapid.IntRange(1, 4), 1, 4, rapid.ID).Draw(t, label+" nodes") {
		w.nodes = append(w.nodes, &v1.Node{
			ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("node-%d", i)},
			Spec:       v1.NodeSpec{ProviderID: fmt.Sprintf("oci://ocid1.instance.oc1.iad.n%d", i)},
			Status: v1.NodeStatus{Addresses: []v1.NodeAddress{
				{Type: v1.NodeInternalIP, Address: fmt.Sprintf("10.0.0.%d", i)}, {Type: v1.NodeInternalIP, Address: fmt.Sprintf("fd00::%d", i)},
			}},
		})
	}
	return w
}

const (
	rulesOne = `{"items":[{"action":"REMOVE_HTTP_REQUEST_HEADER","header":"x-one"}]}`
	rulesTwo = `{"items":[{"action":"REMOVE_HTTP_REQUEST_HEADER","header":"x-two"}]}`
)

func group(name string) string { return "ocid1.networksecuritygroup.oc1.iad." + name }

// model is what the wish comes to, for a new balancer or for a live one.
func (w wish) model(t *rapid.T, kind oci.BalancerKind, live *oci.Balancer) *Model {
	settings, problems := ParseAnnotations(w.svc.Annotations, kind)
	network := propertyNetwork()[balancerSubnet]
	subnet := &oci.Subnet{ID: balancerSubnet, CIDRs: network.V4, IPv6CIDRs: network.V6}
	cfg := Config{CompartmentID: "ocid1.compartment.oc1..c", Subnet1: subnet.ID}
	m, more := Desired(w.svc, w.nodes, settings, cfg, Facts{Live: live, Last: w.last, Subnets: []*oci.Subnet{subnet}, Certificates: certificatesOf(w.svc)})
	if problems = append(problems, more...); len(problems) > 0 {
		t.Fatalf("problems: %v", problems)
	}
	m.join(w.need(m).Group)
	return m
}

// Any Service can become any other one: the plan is legal at every step, in whatever order the steps that do not wait for
// each other are done; it keeps the ports that both have open, from the clients through the security rules, whichever mode they
// are in, to the nodes; what is reached is what a creation would have made; what belongs to others is as it was; and nothing is
// left to do.
func TestPlans(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		kind := rapid.SampledFrom([]oci.BalancerKind{oci.KindLB, oci.KindNLB}).Draw(t, "kind")
		dual := func(label string) bool { return kind == oci.KindNLB && rapid.Bool().Draw(t, label) }
		from, to := drawWish(t, kind, dual("dual from"), "from"), drawWish(t, kind, dual("dual to"), "to")

		before := from.model(t, kind, nil)
		last := before.applied()
		live := before.Balancer()
		live.ID, live.State = "ocid", "ACTIVE"
		from.last, to.last = last, last
		live.RuleSets = maps.Clone(live.RuleSets)
		if plan, _ := Diff(live, from.model(t, kind, live), last, nil); len(plan) > 0 {
			t.Fatalf("a new balancer needs changes:\n%s", plan)
		}
		addForeign(live)
		foreign := foreignParts(live)

		want := to.model(t, kind, live)
		plan, problems := Diff(live, want, last, map[string]string{TagOwner: "uid"})
		if len(problems) > 0 {
			t.Fatalf("problems: %v", problems)
		}
		s := stage{
			t: t, Balancer: live, model: want, last: last, staying: stayingFlows(from.svc, to.svc), secure: securePorts(before, want),
			gates: gatesBetween(from.need(before), to.need(want)),
		}
		plan = plan.withRules(s.changes, false)
		s.perform(plan)
		if diff := cmp.Diff(ruleTexts(rulesOf(to.need(want), propertyNetwork())), ruleTexts(s.open)); diff != "" {
			t.Fatalf("the rules are not what a creation would have opened:\n%s\nby\n%s", diff, plan)
		}

		if again, _ := Diff(live, want, last, nil); len(again) > 0 {
			t.Fatalf("after the plan\n%s\nthere is more to do:\n%s", plan, again)
		}
		if again, _ := Diff(live, want, want.applied(), nil); len(again) > 0 {
			t.Fatalf("with the new record there is more to do:\n%s", again)
		}
		if diff := cmp.Diff(foreign, foreignParts(live), unexported); diff != "" {
			t.Fatalf("changed what is not ours:\n%s\nby\n%s", diff, plan)
		}
		if diff := cmp.Diff(controlled(want.Balancer()), controlled(live), cmpopts.SortSlices(func(a, b string) bool { return a < b })); diff != "" {
			t.Fatalf("the balancer is not what a creation would have made:\n%s\nby\n%s", diff, plan)
		}
	})
}

var unexported = cmpopts.IgnoreUnexported(oci.BackendSet{}, oci.Listener{}, oci.Backend{})

func addForeign(b *oci.Balancer) {
	if b.RuleSets == nil {
		b.RuleSets = map[string]oci.RuleSet{}
	}
	b.RuleSets["waf"] = oci.RuleSet{Name: "waf", Rules: "[]"}
	b.BackendSets["hand"] = oci.BackendSet{Name: "hand", Policy: "IP_HASH"}
	b.Listeners["hand-9443"] = oci.Listener{Name: "hand-9443", BackendSetName: "hand", Port: 9443, Protocol: "TCP"}
	b.NSGIDs = append(slices.Clone(b.NSGIDs), group("hand"))
	b.Certificates = maps.Clone(b.Certificates)
	if b.Certificates == nil {
		b.Certificates = map[string]oci.Certificate{}
	}
	b.Certificates["hand-made"] = oci.Certificate{Name: "hand-made", Public: "by hand"}
	b.Freeform = map[string]string{"team": "shop"}
	for name, bs := range b.BackendSets {
		bs.Checker.ResponseBodyRegex = "ok"
		b.BackendSets[name] = bs
	}
	for name, l := range b.Listeners {
		l.RuleSetNames = append(slices.Clone(l.RuleSetNames), "waf")
		b.Listeners[name] = l
	}
}

// foreignParts are what no Service controls.
func foreignParts(b *oci.Balancer) []any {
	return []any{b.BackendSets["hand"], b.Listeners["hand-9443"], slices.Contains(b.NSGIDs, group("hand")), b.Freeform["team"], b.Certificates["hand-made"], b.RuleSets["waf"]}
}

// controlled are the fields that Services control, by port.
func controlled(b *oci.Balancer) map[string]any {
	out := map[string]any{"mode": b.IPMode}
	for name, set := range b.RuleSets {
		if name != "waf" {
			out["rule set "+name] = set.Rules
		}
	}
	for _, l := range b.Listeners {
		if l.Name == "hand-9443" {
			continue
		}
		ruleSets := slices.DeleteFunc(slices.Sorted(slices.Values(l.RuleSetNames)), func(name string) bool { return name == "waf" })
		bs := b.BackendSets[l.BackendSetName]
		checker := bs.Checker
		checker.ResponseBodyRegex = ""
		if plain := checker.ForcePlainText; plain != nil && !*plain {
			checker.ForcePlainText = nil
		}
		var backends []string
		for _, x := range bs.Backends {
			backends = append(backends, fmt.Sprintf("%s:%d %s", x.IP, x.Port, x.TargetID))
		}
		key := fmt.Sprintf("%d %s", l.Port, l.IPVersion)
		out[key] = []any{
			l.Protocol, l.BackendSetName, orDefault(l.IdleTimeoutSeconds, 0), orDefault(l.ProxyProtocolVersion, 0), orDefault(l.PPv2, false),
			bs.Policy, checker, orDefault(bs.PreserveSource, true), tlsText(b, l.SSL), tlsText(b, bs.SSL), fmt.Sprint(ruleSets),
		}
		out[key+" backends"] = backends
	}
	for _, id := range b.NSGIDs {
		if id != group("hand") {
			out[id] = true
		}
	}
	return out
}

// promise is traffic that a Service promises.
type promise struct {
	portKey
	protocol v1.Protocol
}

// promises are those of a Service with the node ports that lead to its pods.
func promises(svc *v1.Service) map[promise]int {
	out := map[promise]int{}
	for _, p := range svc.Spec.Ports {
		for _, family := range svc.Spec.IPFamilies {
			out[promise{portKey{int(p.Port), family == v1.IPv6Protocol}, p.Protocol}] = int(p.NodePort)
		}
	}
	return out
}

// stayingFlows are what both Services promise, with the node ports of either.
func stayingFlows(a, b *v1.Service) map[promise][]int {
	out := map[promise][]int{}
	second := promises(b)
	for p, port := range promises(a) {
		if other, both := second[p]; both {
			out[p] = []int{port, other}
		}
	}
	return out
}
