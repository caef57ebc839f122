// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package loadbalancer_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/oracle/oci-go-sdk/v65/common"
	lbsdk "github.com/oracle/oci-go-sdk/v65/loadbalancer"
	nlbsdk "github.com/oracle/oci-go-sdk/v65/networkloadbalancer"
	v1 "k8s.io/api/core/v1"

	"github.com/oracle/oci-cloud-controller-manager/pkg/loadbalancer"
	"github.com/oracle/oci-cloud-controller-manager/pkg/oci"
	"github.com/oracle/oci-cloud-controller-manager/test/ocisim"
)

// Each annotation, from the Service to the state of the balancer in the cloud: at creation, and when it is changed on a
// live balancer.
func TestAnnotationsReachTheCloud(t *testing.T) {
	set := func(b *oci.Balancer) oci.BackendSet { return b.BackendSets["TCP-80"] }
	listener := func(b *oci.Balancer) oci.Listener {
		for _, l := range b.Listeners {
			return l
		}
		return oci.Listener{}
	}
	type look = func(r *rig, b *oci.Balancer) any
	const immutable = "immutable" // a change is told and not applied
	const ignored = "ignored"     // a change of what counts at creation only
	tests := []struct {
		kind          oci.BalancerKind
		key           string
		value         func(r *rig, second bool) string
		look          look
		first, second any
	}{
		{oci.KindLB, prefixCommon + "loadbalancer-policy", texts("IP_HASH", "least_connections"), func(_ *rig, b *oci.Balancer) any { return set(b).Policy }, "IP_HASH", "LEAST_CONNECTIONS"},
		{oci.KindNLB, prefixNLB + "backend-policy", texts("TWO_TUPLE", "three_tuple"), func(_ *rig, b *oci.Balancer) any { return set(b).Policy }, "TWO_TUPLE", "THREE_TUPLE"},
		{oci.KindLB, prefixLB + "shape-flex-min", texts("20", "30 Mbps"), func(_ *rig, b *oci.Balancer) any { return *b.Shape }, "{flexible 20 400}", "{flexible 30 400}"},
		{oci.KindLB, prefixLB + "shape", texts("100Mbps", "Flexible"), func(_ *rig, b *oci.Balancer) any { return *b.Shape }, "{100Mbps 0 0}", "{flexible 10 100}"},
		{oci.KindLB, prefixLB + "internal", texts("true", "false"), func(_ *rig, b *oci.Balancer) any { return b.Private }, true, immutable},
		{oci.KindNLB, prefixNLB + "internal", texts("TRUE", "false"), func(_ *rig, b *oci.Balancer) any { return b.Private }, true, immutable},
		{oci.KindLB, prefixLB + "subnet1", func(r *rig, second bool) string { return pick(second, r.dual, r.public) }, func(r *rig, b *oci.Balancer) any { return b.SubnetIDs[0] == r.dual }, true, immutable},
		{oci.KindNLB, prefixNLB + "subnet", func(r *rig, second bool) string { return pick(second, r.dual, r.public) }, func(r *rig, b *oci.Balancer) any { return b.SubnetIDs[0] == r.dual }, true, immutable},
		{oci.KindLB, prefixCommon + "compartment-id", func(r *rig, second bool) string { return pick(second, r.other, r.compartment) }, func(r *rig, b *oci.Balancer) any { return b.CompartmentID == r.other }, true, immutable},
		{oci.KindNLB, prefixCommon + "compartment-id", func(r *rig, second bool) string { return pick(second, r.other, r.compartment) }, func(r *rig, b *oci.Balancer) any { return b.CompartmentID == r.other }, true, immutable},
		{oci.KindLB, prefixCommon + "oci-network-security-groups", func(r *rig, second bool) string { return pick(second, r.groups[0]+", "+r.groups[1]+",", r.groups[1]) }, func(_ *rig, b *oci.Balancer) any { return len(b.NSGIDs) }, 2, 1},
		{oci.KindNLB, prefixNLB + "oci-network-security-groups", func(r *rig, second bool) string { return pick(second, r.groups[0]+", "+r.groups[1]+",", r.groups[1]) }, func(_ *rig, b *oci.Balancer) any { return len(b.NSGIDs) }, 2, 1},
		{oci.KindLB, prefixCommon + "initial-freeform-tags-override", texts(`{"team":"a"}`, `{"team":"b"}`), func(_ *rig, b *oci.Balancer) any { return b.Freeform["team"] + b.Freeform["from"] }, "a", ignored},
		{oci.KindNLB, prefixNLB + "initial-freeform-tags-override", texts(`{"team":"a"}`, `{"team":"b"}`), func(_ *rig, b *oci.Balancer) any { return b.Freeform["team"] + b.Freeform["from"] }, "a", ignored},
		{oci.KindNLB, prefixNLB + "freeform-tags", texts(`{"team":"a"}`, `{"team":"b"}`), func(_ *rig, b *oci.Balancer) any { return b.Freeform["team"] + b.Freeform["from"] }, "a", ignored},
		{oci.KindLB, prefixCommon + "initial-defined-tags-override", texts(`{"ops":{"cost":"1"}}`, `{"ops":{"cost":"2"}}`), func(_ *rig, b *oci.Balancer) any { return fmt.Sprint(b.Defined, b.Freeform["from"]) }, "map[ops:map[cost:1]]", ignored},
		{oci.KindNLB, prefixNLB + "initial-defined-tags-override", texts(`{"ops":{"cost":"1"}}`, `{"ops":{"cost":"2"}}`), func(_ *rig, b *oci.Balancer) any { return fmt.Sprint(b.Defined, b.Freeform["from"]) }, "map[ops:map[cost:1]]", ignored},
		{oci.KindNLB, prefixNLB + "defined-tags", texts(`{"ops":{"cost":"1"}}`, `{"ops":{"cost":"2"}}`), func(_ *rig, b *oci.Balancer) any { return fmt.Sprint(b.Defined, b.Freeform["from"]) }, "map[ops:map[cost:1]]", ignored},
		{oci.KindLB, prefixLB + "health-check-retries", texts("5", "7"), func(_ *rig, b *oci.Balancer) any { return set(b).Checker.Retries }, 5, 7},
		{oci.KindNLB, prefixNLB + "health-check-retries", texts("5", "7"), func(_ *rig, b *oci.Balancer) any { return set(b).Checker.Retries }, 5, 7},
		{oci.KindLB, prefixLB + "health-check-interval", texts("4000", "5000ms"), func(_ *rig, b *oci.Balancer) any { return set(b).Checker.IntervalMillis }, 4000, 5000},
		{oci.KindNLB, prefixNLB + "health-check-interval", texts("14000", "15000ms"), func(_ *rig, b *oci.Balancer) any { return set(b).Checker.IntervalMillis }, 14000, 15000},
		{oci.KindLB, prefixLB + "health-check-timeout", texts("400", "500ms"), func(_ *rig, b *oci.Balancer) any { return set(b).Checker.TimeoutMillis }, 400, 500},
		{oci.KindNLB, prefixNLB + "health-check-timeout", texts("400", "500ms"), func(_ *rig, b *oci.Balancer) any { return set(b).Checker.TimeoutMillis }, 400, 500},
		{oci.KindLB, prefixLB + "connection-idle-timeout", texts("100", "200s"), func(_ *rig, b *oci.Balancer) any { return *listener(b).IdleTimeoutSeconds }, 100, 200},
		{oci.KindLB, prefixLB + "connection-proxy-protocol-version", texts("1", "2"), func(_ *rig, b *oci.Balancer) any { return *listener(b).ProxyProtocolVersion }, 1, 2},
		{oci.KindLB, prefixLB + "backend-protocol", texts("http", "TCP"), func(_ *rig, b *oci.Balancer) any { return listener(b).Name + " " + listener(b).Protocol }, "HTTP-80 HTTP", "HTTP-80 TCP"},
		{oci.KindNLB, prefixNLB + "is-ppv2-enabled", texts("True", "false"), func(_ *rig, b *oci.Balancer) any { return *listener(b).PPv2 }, true, false},
		{oci.KindNLB, prefixNLB + "is-preserve-source", texts("false", "true"), func(_ *rig, b *oci.Balancer) any { return *set(b).PreserveSource }, false, true},
		{oci.KindNLB, prefixNLB + "assigned-private-ipv4", texts("10.0.0.77", "10.0.0.78"), func(_ *rig, b *oci.Balancer) any {
			return slices.ContainsFunc(b.Addresses, func(a oci.BalancerAddress) bool { return a.IP == "10.0.0.77" })
		}, true, immutable},
	}
	for _, test := range tests {
		t.Run(string(test.kind)+" "+test.key[strings.LastIndex(test.key, "/")+1:], func(t *testing.T) {
			simulate(t, ocisim.Options{Seed: 31}, func(r *rig) {
				r.region.AddTagNamespace("ops")
				r.cfg.Tags = oci.Tags{Freeform: map[string]string{"from": "config"}}
				r.restart()
				nodes := r.nodes(2)
				svc := r.service("web", test.kind, 80)
				if strings.HasSuffix(test.key, "is-preserve-source") {
					r.edit(svc, func(s *v1.Service) {
						s.Spec.ExternalTrafficPolicy, s.Spec.HealthCheckNodePort = v1.ServiceExternalTrafficPolicyLocal, 32000
					})
				}
				if strings.HasSuffix(test.key, "flex-min") {
					r.edit(svc, annotate(prefixLB+"shape-flex-max", "400"))
				}
				r.edit(svc, annotate(test.key, test.value(r, false)))
				r.mustSync(svc, nodes)
				r.equal("at creation", test.look(r, r.only()), test.first)
				r.unchanged(svc, nodes)

				r.edit(svc, annotate(test.key, test.value(r, true)))
				r.mustSync(svc, nodes)
				events := len(r.cluster.series(loadbalancer.ReasonImmutable))
				switch test.second {
				case immutable:
					r.equal("after the change", test.look(r, r.only()), test.first)
					r.equal("events", events, 1)
				case ignored:
					r.equal("after the change", test.look(r, r.only()), test.first)
					r.equal("events", events, 0)
				default:
					r.equal("after the change", test.look(r, r.only()), test.second)
					r.equal("events", events, 0)
				}
				r.unchanged(svc, nodes)
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

// A flexible balancer cannot become a fixed one: that is told, and everything else is applied.
func TestFlexibleToFixed(t *testing.T) {
	simulate(t, ocisim.Options{Seed: 32}, func(r *rig) {
		nodes := r.nodes(1)
		svc := r.service("web", oci.KindLB, 80)
		r.mustSync(svc, nodes)
		r.edit(svc, annotate(prefixLB+"shape", "100Mbps"))
		r.edit(svc, annotate(prefixLB+"health-check-retries", "5"))
		r.mustSync(svc, nodes)
		r.equal("shape", r.only().Shape.Name, "flexible")
		r.equal("retries", r.only().BackendSets["TCP-80"].Checker.Retries, 5)
		r.oneSeries(loadbalancer.ReasonImmutable, "shape")
	})
}

// C038: another subnet on a live balancer is told once; nothing is done there.
func TestSubnetChange(t *testing.T) {
	onBothKinds(t, ocisim.Options{Seed: 33}, func(r *rig, kind oci.BalancerKind) {
		nodes := r.nodes(1)
		key := prefixLB + "subnet1"
		if kind == oci.KindNLB {
			key = prefixNLB + "subnet"
		}
		svc := r.service("web", kind, 80)
		r.mustSync(svc, nodes)
		r.region.ResetCalls()
		r.edit(svc, annotate(key, r.dual))
		for range 10 {
			r.mustSync(svc, nodes)
		}
		r.equal("count", r.oneSeries(loadbalancer.ReasonImmutable, r.dual, r.public).count, 1)
		r.equal("writes", written(r.region.Calls()), []string{})
	})
}

// C043: a reserved public IP.
func TestReservedIP(t *testing.T) {
	onBothKinds(t, ocisim.Options{Seed: 34}, func(r *rig, kind oci.BalancerKind) {
		nodes := r.nodes(1)
		for range 2 {
			r.region.AddPublicIP(ocisim.PublicIP{Compartment: r.compartment, Name: "reserved"})
		}
		ips := r.region.PublicIPs()
		free, second := *ips[0].IpAddress, *ips[1].IpAddress
		svc := r.service("web", kind, 80)
		r.edit(svc, func(s *v1.Service) { s.Spec.LoadBalancerIP = free })
		svc = r.mustSync(svc, nodes)
		r.equal("status", svc.Status.LoadBalancer.Ingress, []v1.LoadBalancerIngress{{IP: free}})
		r.noEvents()

		internal := prefixLB + "internal"
		if kind == oci.KindNLB {
			internal = prefixNLB + "internal"
		}
		for name, test := range map[string]struct {
			change  func(*v1.Service)
			message string
		}{
			"in use":   {func(s *v1.Service) { s.Spec.LoadBalancerIP = free }, "it is in use (state ASSIGN"},
			"unknown":  {func(s *v1.Service) { s.Spec.LoadBalancerIP = "203.0.113.9" }, "there is no public IP with this address"},
			"no IP":    {func(s *v1.Service) { s.Spec.LoadBalancerIP = "web.example" }, "it is no IP address"},
			"IPv6":     {func(s *v1.Service) { s.Spec.LoadBalancerIP = "fd00::1" }, "only a reserved public IPv4 address"},
			"internal": {func(s *v1.Service) { s.Spec.LoadBalancerIP = second; s.Annotations[internal] = "true" }, "the balancer is internal"},
		} {
			r.cluster.events = nil
			other := r.service("other-"+strings.ReplaceAll(name, " ", ""), kind, 80)
			r.edit(other, test.change)
			if _, err := r.m.Ensure(r.Context(), other, nodes); err == nil {
				r.Errorf("%s: no error", name)
			}
			r.oneSeries(loadbalancer.ReasonInvalidAddress, test.message)
		}
		r.equal("balancers", len(r.live()), 1)

		r.cluster.events = nil
		r.edit(svc, func(s *v1.Service) { s.Spec.LoadBalancerIP = second })
		svc = r.mustSync(svc, nodes)
		r.oneSeries(loadbalancer.ReasonImmutable, "spec.loadBalancerIP", second)
		if err := r.m.Delete(r.Context(), svc); err != nil {
			r.Error(err)
		}
		time.Sleep(10 * time.Minute)
		for _, ip := range r.region.PublicIPs() {
			if *ip.IpAddress == free && ip.LifecycleState != "AVAILABLE" {
				r.Errorf("the reserved IP is %s after the deletion", ip.LifecycleState)
			}
		}
		r.equal("reserved IPs", len(r.region.PublicIPs()), 2)
	})
}

// C044: of a public NLB the status shows the public address; both if asked for; always in one order.
func TestStatus(t *testing.T) {
	simulate(t, ocisim.Options{Seed: 35}, func(r *rig) {
		nodes := r.nodes(1)
		svc := r.mustSync(r.service("web", oci.KindNLB, 80), nodes)
		if n := len(r.only().Addresses); n != 2 {
			r.Fatalf("%d addresses, want a public and a private one", n)
		}
		if got := svc.Status.LoadBalancer.Ingress; len(got) != 1 || strings.HasPrefix(got[0].IP, "10.") || got[0].IPMode != nil {
			r.Errorf("status %v, want the public address alone", got)
		}
		r.edit(svc, annotate(prefixNLB+"external-ip-only", "false"))
		r.edit(svc, annotate(prefixCommon+"ingress-ip-mode", "Proxy"))
		svc = r.mustSync(svc, nodes)
		both := svc.Status.LoadBalancer
		if len(both.Ingress) != 2 || !strings.HasPrefix(both.Ingress[1].IP, "10.") || *both.Ingress[0].IPMode != v1.LoadBalancerIPModeProxy {
			r.Errorf("status %v, want both addresses, the public one first, with the mode Proxy", both)
		}
		for range 5 {
			err := r.region.Foreign().NetworkLoadBalancer(r.only().ID, func(v *nlbsdk.NetworkLoadBalancer) { slices.Reverse(v.IpAddresses) })
			if err != nil {
				r.Fatal(err)
			}
			svc = r.mustSync(svc, nodes)
			r.equal("status", svc.Status.LoadBalancer.String(), both.String())
		}
	})
}

// C047: what no balancer can do is told before anything is made, and works once it is gone.
func TestUnsupportedPorts(t *testing.T) {
	for name, test := range map[string]struct {
		kind     oci.BalancerKind
		protocol v1.Protocol
		message  string
	}{
		"UDP on an LB":   {oci.KindLB, v1.ProtocolUDP, "load-balancer-type to nlb"},
		"SCTP on an LB":  {oci.KindLB, v1.ProtocolSCTP, "SCTP"},
		"SCTP on an NLB": {oci.KindNLB, v1.ProtocolSCTP, "SCTP"},
	} {
		t.Run(name, func(t *testing.T) {
			simulate(t, ocisim.Options{Seed: 36}, func(r *rig) {
				nodes := r.nodes(1)
				svc := r.service("web", test.kind, 80, 5060)
				r.edit(svc, func(s *v1.Service) { s.Spec.Ports[1].Protocol = test.protocol })
				for range 3 {
					if _, err := r.m.Ensure(r.Context(), svc, nodes); err == nil {
						r.Fatal("no error")
					}
				}
				r.equal("count", r.oneSeries(loadbalancer.ReasonUnsupportedService, test.message).count, 3)
				r.equal("writes", written(r.region.Calls()), []string{})
				r.edit(svc, func(s *v1.Service) { s.Spec.Ports = s.Spec.Ports[:1] })
				r.mustSync(svc, nodes)
				r.equal("listeners", len(r.only().Listeners), 1)
			})
		})
	}
}

// An NLB with addresses of both families has listeners and backends of both, by their names.
func TestDualStack(t *testing.T) {
	simulate(t, ocisim.Options{Seed: 37}, func(r *rig) {
		r.cfg.Subnet1 = r.dual
		r.restart()
		nodes := r.nodes(2)
		svc := r.service("web", oci.KindNLB, 80)
		r.edit(svc, func(s *v1.Service) {
			policy := v1.IPFamilyPolicyRequireDualStack
			s.Spec.IPFamilies, s.Spec.IPFamilyPolicy = []v1.IPFamily{v1.IPv4Protocol, v1.IPv6Protocol}, &policy
			s.Annotations[prefixNLB+"internal"] = "true"
		})
		svc = r.mustSync(svc, nodes)
		b := r.only()
		r.equal("listeners", len(b.Listeners), 2)
		r.equal("listener", b.Listeners["TCP-80-IPv6"].IPVersion, "IPV6")
		r.equal("backends", r.backends("TCP-80-IPv6"), []string{nodes[0].Status.Addresses[1].Address, nodes[1].Status.Addresses[1].Address})
		r.equal("addresses", len(svc.Status.LoadBalancer.Ingress), 2)
		r.unchanged(svc, nodes)
		r.edit(svc, func(s *v1.Service) { s.Spec.Ports[0].Port = 81 })
		r.mustSync(svc, nodes)
		r.equal("listeners after a change", len(r.only().Listeners), 2)
		r.unchanged(svc, nodes)
		r.noEvents()
	})
}

// Random Services become other ones, with foreign settings in between: what is reached is what a creation would have
// made, and a second sync writes nothing.
func TestRandomChanges(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long: make test-long runs it, without the race detector")
	}
	for seed := range uint64(4) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			onBothKinds(t, ocisim.Options{Seed: seed, EventualReads: int(seed % 3), Durations: fixed(time.Second)}, func(r *rig, kind oci.BalancerKind) {
				random := rand.New(rand.NewPCG(seed, 1))
				all := r.nodes(5)
				svc := r.service("web", kind, 80)
				r.mustSync(svc, all[:2])
				r.handMade()
				for range 5 {
					nodes := slices.Clone(all[:1+random.IntN(5)])
					change := r.randomSpec(random, kind)
					r.edit(svc, change)
					r.mustSync(svc, nodes)
					r.unchanged(svc, nodes)

					twin := r.service("twin", kind, 80)
					r.edit(twin, change)
					r.mustSync(twin, nodes)
					got, want := r.ownerOf("uid-web"), r.ownerOf("uid-twin")
					if _, ok := got.Listeners["hand-9443"]; !ok {
						r.Fatal("a foreign listener is gone")
					}
					if diff := cmp.Diff(summary(want), summary(got), cmpopts.EquateEmpty()); diff != "" {
						r.Fatalf("not what a creation makes:\n%s", diff)
					}
					if err := r.m.Delete(r.Context(), twin); err != nil {
						r.Fatal(err)
					}
				}
				r.noEvents()
			})
		})
	}
}

// handMade adds a listener and a backend set as a person would.
func (r *rig) handMade() {
	r.Helper()
	b := r.only()
	err := r.region.Foreign().LoadBalancer(b.ID, func(v *lbsdk.LoadBalancer) {
		v.BackendSets["hand"] = lbsdk.BackendSet{Name: common.String("hand"), Policy: common.String("IP_HASH"), HealthChecker: v.BackendSets["TCP-80"].HealthChecker}
		v.Listeners["hand-9443"] = lbsdk.Listener{Name: common.String("hand-9443"), DefaultBackendSetName: common.String("hand"), Port: common.Int(9443), Protocol: common.String("TCP")}
	})
	if err != nil {
		err = r.region.Foreign().NetworkLoadBalancer(b.ID, func(v *nlbsdk.NetworkLoadBalancer) {
			v.BackendSets["hand"] = nlbsdk.BackendSet{Name: common.String("hand"), Policy: nlbsdk.NetworkLoadBalancingPolicyTwoTuple, HealthChecker: v.BackendSets["TCP-80"].HealthChecker}
			v.Listeners["hand-9443"] = nlbsdk.Listener{Name: common.String("hand-9443"), DefaultBackendSetName: common.String("hand"), Port: common.Int(9443), Protocol: nlbsdk.ListenerProtocolsTcp}
		})
	}
	if err != nil {
		r.Fatal(err)
	}
}

// randomSpec draws ports, policy and annotations.
func (r *rig) randomSpec(random *rand.Rand, kind oci.BalancerKind) func(*v1.Service) {
	var ports []v1.ServicePort
	for _, port := range []int32{53, 80, 81, 443} {
		if random.IntN(2) == 0 && len(ports)+int(port) != 443 {
			continue
		}
		p := v1.ServicePort{Name: fmt.Sprint(port), Protocol: v1.ProtocolTCP, Port: port, NodePort: 30000 + random.Int32N(3)}
		if kind == oci.KindNLB && random.IntN(3) == 0 {
			both := p
			both.Name, both.Protocol = "udp", v1.ProtocolUDP
			ports = append(ports, both)
		}
		ports = append(ports, p)
	}
	values := map[string][]string{
		prefixCommon + "loadbalancer-policy": {"IP_HASH"}, prefixLB + "health-check-retries": {"1", "2"},
		prefixLB + "connection-idle-timeout": {"100", "200"}, prefixLB + "backend-protocol": {"HTTP"},
	}
	if kind == oci.KindNLB {
		values = map[string][]string{prefixNLB + "backend-policy": {"TWO_TUPLE"}, prefixNLB + "health-check-retries": {"1", "2"}, prefixNLB + "is-ppv2-enabled": {"true"}}
	}
	chosen := map[string]string{}
	for _, key := range slices.Sorted(keysOf(values)) {
		if random.IntN(2) == 0 {
			chosen[key] = values[key][random.IntN(len(values[key]))]
		}
	}
	local := random.IntN(2) == 0
	return func(s *v1.Service) {
		s.Spec.Ports = ports
		s.Spec.ExternalTrafficPolicy, s.Spec.HealthCheckNodePort = v1.ServiceExternalTrafficPolicyCluster, 0
		if local {
			s.Spec.ExternalTrafficPolicy, s.Spec.HealthCheckNodePort = v1.ServiceExternalTrafficPolicyLocal, 32000
		}
		for key := range values {
			delete(s.Annotations, key)
		}
		for key, value := range chosen {
			s.Annotations[key] = value
		}
	}
}

func keysOf[V any](m map[string]V) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		for key := range m {
			if !yield(key) {
				return
			}
		}
	}
}

func (r *rig) ownerOf(uid string) *oci.Balancer {
	r.Helper()
	for _, b := range r.live() {
		if b.Freeform[loadbalancer.TagOwner] == uid {
			return b
		}
	}
	r.Fatalf("no balancer of %s", uid)
	return nil
}

// summary is what a Service controls on a balancer, by port.
func summary(b *oci.Balancer) map[string]string {
	out := map[string]string{}
	for name, l := range b.Listeners {
		if name == "hand-9443" {
			continue
		}
		bs := b.BackendSets[l.BackendSetName]
		var backends []string
		for _, x := range bs.Backends {
			backends = append(backends, fmt.Sprintf("%s:%d", x.IP, x.Port))
		}
		slices.Sort(backends)
		text := fmt.Sprintf("%s -> %s %s %v", l.Protocol, bs.Name, bs.Policy, backends)
		if l.IdleTimeoutSeconds != nil {
			text += fmt.Sprintf(" idle %d", *l.IdleTimeoutSeconds)
		}
		if l.PPv2 != nil && *l.PPv2 {
			text += " ppv2"
		}
		if bs.PreserveSource != nil {
			text += fmt.Sprintf(" preserve %t", *bs.PreserveSource)
		}
		out[fmt.Sprint(l.Port, l.IPVersion)] = text + fmt.Sprintf(" %d %d", bs.Checker.Port, bs.Checker.Retries)
	}
	return out
}
