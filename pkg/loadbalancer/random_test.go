// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package loadbalancer_test

import (
	"fmt"
	"maps"
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

// Random Services become other ones, with random settings of others on the balancer: what is reached is what a creation would
// have made; the settings of others are as they were; a second sync writes nothing; and after every single call traffic can
// pass to each port that was there before and is there after.
func TestRandomChanges(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long: make test-long runs it, without the race detector")
	}
	for seed := range uint64(4) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			onBothKinds(t, ocisim.Options{Seed: seed, EventualReads: int(seed % 3), Durations: fixed(time.Second)}, func(r *rig, kind oci.BalancerKind) {
				r.cfg.Subnet1 = r.dual
				r.restart()
				random := rand.New(rand.NewPCG(seed, 1))
				all := r.nodes(5)
				svc := r.service("web", kind, 80)
				r.mustSync(svc, all[:2])
				r.handMade()
				for range 8 {
					r.randomForeign(random)
					foreign := r.foreign()
					nodes := slices.Clone(all[:1+random.IntN(5)])
					change := r.randomSpec(random, kind)
					before := r.cluster.get(svc.UID)
					r.edit(svc, change)
					stop := r.watchTraffic(r.ownerOf("uid-web").ID, before, r.cluster.get(svc.UID), all)
					r.mustSync(svc, nodes)
					stop()
					r.unchanged(svc, nodes)
					if diff := cmp.Diff(foreign, r.foreign()); diff != "" {
						r.Fatalf("changed what is not ours:\n%s", diff)
					}

					twin := r.service("twin", kind, 80)
					r.edit(twin, change)
					r.mustSync(twin, nodes)
					got, want := r.ownerOf("uid-web"), r.ownerOf("uid-twin")
					if diff := cmp.Diff(r.summary(want), r.summary(got), cmpopts.EquateEmpty()); diff != "" {
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

// flow is traffic that a Service promises.
type flow struct {
	port     int
	protocol v1.Protocol
	v6       bool
}

// flows are those of a Service with the node ports that lead to its pods.
func flows(s *v1.Service) map[flow]int {
	out := map[flow]int{}
	for _, p := range s.Spec.Ports {
		for _, family := range s.Spec.IPFamilies {
			out[flow{int(p.Port), p.Protocol, family == v1.IPv6Protocol}] = int(p.NodePort)
		}
	}
	return out
}

// watchTraffic looks at a balancer after each call to the region: what both Services promise has to work all the time. A node
// port of either is good: which of them the nodes know is not the balancer's business.
func (r *rig) watchTraffic(id string, before, after *v1.Service, nodes []*v1.Node) (stop func()) {
	r.Helper()
	addresses := map[string]bool{}
	for _, n := range nodes {
		for _, a := range n.Status.Addresses {
			addresses[a.Address] = true
		}
	}
	first, second := flows(before), flows(after)
	lost := map[string]bool{}
	return r.region.OnCall(func(c ocisim.Call) {
		passing := r.passing(id, addresses)
		for f, nodePort := range first {
			other, both := second[f]
			if !both || f.v6 && r.kindOf(id) == oci.KindLB {
				continue
			}
			if !slices.ContainsFunc(passing[f], func(port int) bool { return port == nodePort || port == other }) {
				message := fmt.Sprintf("%v leads to %v, want node port %d or %d", f, passing[f], nodePort, other)
				if !lost[message] {
					r.Errorf("after %s: %s", c.Operation, message)
				}
				lost[message] = true
			}
		}
	})
}

func (r *rig) kindOf(id string) oci.BalancerKind {
	if strings.Contains(id, ".networkloadbalancer.") {
		return oci.KindNLB
	}
	return oci.KindLB
}

// passing is the traffic that a balancer passes on to nodes, with the ports there.
func (r *rig) passing(id string, nodes map[string]bool) map[flow][]int {
	out := map[flow][]int{}
	for f, routes := range r.routes(id) {
		for _, x := range routes {
			if nodes[x.node] {
				out[f] = append(out[f], x.port)
			}
		}
	}
	return out
}

// route is where a balancer sends traffic of a listener.
type route struct {
	node      string // address
	port      int
	checkPort int // where the health check of the node goes
	preserved bool
}

// routes are the ways that a balancer knows to backends that take traffic.
func (r *rig) routes(id string) map[flow][]route {
	out := map[flow][]route{}
	if r.kindOf(id) == oci.KindLB {
		b, _ := r.region.LoadBalancer(id)
		for _, l := range b.Listeners {
			set := b.BackendSets[*l.DefaultBackendSetName]
			for _, x := range set.Backends {
				if !*x.Drain && !*x.Offline {
					f := flow{*l.Port, v1.ProtocolTCP, false}
					out[f] = append(out[f], route{*x.IpAddress, *x.Port, *set.HealthChecker.Port, false})
				}
			}
		}
		return out
	}
	b, _ := r.region.NetworkLoadBalancer(id)
	for _, l := range b.Listeners {
		set := b.BackendSets[*l.DefaultBackendSetName]
		for _, x := range set.Backends {
			if x.IsDrain != nil && *x.IsDrain || x.IsOffline != nil && *x.IsOffline {
				continue
			}
			for _, protocol := range []v1.Protocol{v1.ProtocolTCP, v1.ProtocolUDP} {
				if strings.Contains(string(l.Protocol), string(protocol)) {
					f := flow{*l.Port, protocol, l.IpVersion == nlbsdk.IpVersionIpv6}
					out[f] = append(out[f], route{*x.IpAddress, *x.Port, *set.HealthChecker.Port, set.IsPreserveSource != nil && *set.IsPreserveSource})
				}
			}
		}
	}
	return out
}

const foreignTag = "by-hand"

// randomForeign changes something on the Service's balancer that no Service controls.
func (r *rig) randomForeign(random *rand.Rand) {
	r.Helper()
	b := r.ownerOf("uid-web")
	value, what := fmt.Sprint(random.IntN(1000)), random.IntN(4)
	groups := append(slices.DeleteFunc(slices.Clone(b.NSGIDs), func(id string) bool { return id == r.groups[5] }), r.groups[5])
	parts := &partsOf{r, b.ID}
	parts.change(func(v *lbsdk.LoadBalancer) {
		switch what {
		case 0:
			v.FreeformTags[foreignTag] = value
		case 1:
			v.NetworkSecurityGroupIds = groups
		case 2:
			if v.RuleSets == nil {
				v.RuleSets = map[string]lbsdk.RuleSet{}
			}
			v.RuleSets["waf"] = lbsdk.RuleSet{Name: common.String("waf"), Items: []lbsdk.Rule{lbsdk.RemoveHttpResponseHeaderRule{Header: common.String("x-" + value)}}}
			for name, l := range v.Listeners {
				if !slices.Contains(l.RuleSetNames, "waf") {
					l.RuleSetNames = append(slices.Clone(l.RuleSetNames), "waf")
					v.Listeners[name] = l
				}
			}
		case 3:
			l := v.Listeners["hand-9443"]
			l.ConnectionConfiguration = &lbsdk.ConnectionConfiguration{IdleTimeout: common.Int64(int64(1 + random.IntN(1000)))}
			v.Listeners["hand-9443"] = l
		}
	}, func(v *nlbsdk.NetworkLoadBalancer) {
		switch what {
		case 0:
			v.FreeformTags[foreignTag] = value
		case 1:
			v.NetworkSecurityGroupIds = groups
		default:
			set := v.BackendSets["hand"]
			set.IsFailOpen = common.Bool(random.IntN(2) == 0)
			v.BackendSets["hand"] = set
		}
	})
}

// foreign are the settings of others on the Service's balancer, with all their fields.
func (r *rig) foreign() map[string]string {
	r.Helper()
	id := r.ownerOf("uid-web").ID
	out := map[string]string{}
	note := func(tags map[string]string, groups []string, parts ...fmt.Stringer) {
		out["tag"], out["group"] = tags[foreignTag], fmt.Sprint(slices.Contains(groups, r.groups[5]))
		for i, p := range parts {
			out[fmt.Sprint(i)] = p.String()
		}
	}
	if r.kindOf(id) == oci.KindLB {
		b, _ := r.region.LoadBalancer(id)
		note(b.FreeformTags, b.NetworkSecurityGroupIds, b.Listeners["hand-9443"], b.BackendSets["hand"], b.RuleSets["waf"])
		return out
	}
	b, _ := r.region.NetworkLoadBalancer(id)
	note(b.FreeformTags, b.NetworkSecurityGroupIds, b.Listeners["hand-9443"], b.BackendSets["hand"])
	return out
}

// randomSpec draws ports, policy, families and annotations.
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
		prefixCommon + "loadbalancer-policy": {"IP_HASH", "least_connections"}, prefixLB + "health-check-retries": {"1", "2"},
		prefixLB + "health-check-interval": {"5000", "20000ms"}, prefixLB + "health-check-timeout": {"1000"},
		prefixLB + "connection-idle-timeout": {"100", "200"}, prefixLB + "backend-protocol": {"HTTP", "tcp"},
		prefixLB + "connection-proxy-protocol-version": {"1", "2"},
		prefixCommon + "oci-network-security-groups":   {r.groups[0], r.groups[0] + "," + r.groups[1]},
		ruleSetsKey: {`{"a":` + removeDebug + `}`, `{"a":` + onlyReads + `,"b":` + removeOther + `}`, `{"b":` + redirect301 + `}`, ""},
	}
	dual := false
	if kind == oci.KindNLB {
		values = map[string][]string{
			prefixNLB + "backend-policy": {"TWO_TUPLE", "three_tuple"}, prefixNLB + "health-check-retries": {"1", "2"}, prefixNLB + "is-ppv2-enabled": {"true", "false"},
			prefixNLB + "health-check-interval": {"12000"}, prefixNLB + "health-check-timeout": {"1000"},
			prefixNLB + "oci-network-security-groups": {r.groups[0], r.groups[0] + "," + r.groups[1]},
		}
		dual = random.IntN(2) == 0
	}
	chosen := map[string]string{}
	for _, key := range slices.Sorted(maps.Keys(values)) {
		if key == ruleSetsKey { // taken away, it leaves the rule sets where they are
			chosen[key] = values[key][random.IntN(len(values[key]))]
		} else if random.IntN(2) == 0 {
			chosen[key] = values[key][random.IntN(len(values[key]))]
		}
	}
	local := random.IntN(2) == 0
	return func(s *v1.Service) {
		s.Spec.Ports = ports
		singleStack()(s)
		if dual {
			dualStack(v1.IPFamilyPolicyPreferDualStack)(s)
		}
		s.Spec.ExternalTrafficPolicy, s.Spec.HealthCheckNodePort = v1.ServiceExternalTrafficPolicyCluster, 0
		if local {
			s.Spec.ExternalTrafficPolicy, s.Spec.HealthCheckNodePort = v1.ServiceExternalTrafficPolicyLocal, 32000
		}
		for key := range values {
			delete(s.Annotations, key)
		}
		maps.Copy(s.Annotations, chosen)
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
func (r *rig) summary(b *oci.Balancer) map[string]string {
	theirs := func(names []string) []string {
		out := slices.DeleteFunc(slices.Clone(names), func(name string) bool { return name == "waf" || name == r.groups[5] })
		slices.Sort(out)
		return out
	}
	out := map[string]string{"mode": b.IPMode, "groups": fmt.Sprint(theirs(b.NSGIDs))}
	for name, set := range b.RuleSets {
		if name != "waf" {
			out["rule set "+name] = set.Rules
		}
	}
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
		text := fmt.Sprintf("%s -> %s %s %v %v", l.Protocol, bs.Name, bs.Policy, backends, theirs(l.RuleSetNames))
		if l.IdleTimeoutSeconds != nil {
			text += fmt.Sprintf(" idle %d", *l.IdleTimeoutSeconds)
		}
		if l.ProxyProtocolVersion != nil {
			text += fmt.Sprintf(" proxy %d", *l.ProxyProtocolVersion)
		}
		if l.PPv2 != nil && *l.PPv2 {
			text += " ppv2"
		}
		if bs.PreserveSource != nil {
			text += fmt.Sprintf(" preserve %t", *bs.PreserveSource)
		}
		out[fmt.Sprint(l.Port, l.IPVersion)] = text + fmt.Sprint(" ", bs.Checker.Port, bs.Checker.Retries, bs.Checker.IntervalMillis, bs.Checker.TimeoutMillis)
	}
	return out
}
