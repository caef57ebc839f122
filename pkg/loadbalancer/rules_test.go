// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package loadbalancer_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/oracle/oci-go-sdk/v65/common"
	"github.com/oracle/oci-go-sdk/v65/core"
	v1 "k8s.io/api/core/v1"

	"github.com/oracle/oci-cloud-controller-manager/pkg/oci"
	"github.com/oracle/oci-cloud-controller-manager/test/ocisim"
)

// The life of a Service in mode SL-All: lists have just what it needs, at each step, and are at the end what they were. C072,
// C073.
func TestRulesOfLists(t *testing.T) {
	withRulesOnBoth(t, ocisim.Options{Seed: 61}, func(r *rig, kind oci.BalancerKind) {
		nodes := []*v1.Node{r.worker("a", r.ruled.workers)}
		svc := r.service("web", kind, 80)
		r.edit(svc, annotate(ruleMode, "SL-All"))
		svc = r.mustSync(svc, nodes)
		r.hasRules(r.ruled.frontList, ours("in tcp 80 from 0.0.0.0/0", "out tcp 30080 to "+workersCIDR, "out tcp 10256 to "+workersCIDR)...)
		r.hasRules(r.ruled.workList, ours("in tcp 30080 from "+frontCIDR, "in tcp 10256 from "+frontCIDR)...)
		r.hasRules(r.ruled.old)
		r.unchanged(svc, nodes)

		// Another port, another node port, another policy, other clients.
		r.edit(svc, func(s *v1.Service) {
			s.Spec.Ports = newService("x", kind, 81).Spec.Ports
			s.Spec.Ports[0].NodePort = 31111
			s.Spec.ExternalTrafficPolicy, s.Spec.HealthCheckNodePort = v1.ServiceExternalTrafficPolicyLocal, 32555
			s.Spec.LoadBalancerSourceRanges = []string{"203.0.113.0/24", "198.51.100.0/24"}
		})
		svc = r.mustSync(svc, nodes)
		clients := []string{"in tcp 81 from 203.0.113.0/24", "in tcp 81 from 198.51.100.0/24"}
		r.hasRules(r.ruled.frontList, ours(append(clients, "out tcp 31111 to "+workersCIDR, "out tcp 32555 to "+workersCIDR)...)...)
		work := []string{"in tcp 31111 from " + frontCIDR, "in tcp 32555 from " + frontCIDR}
		if kind == oci.KindNLB { // the nodes see the addresses of the clients
			work = append(work, "in tcp 31111 from 203.0.113.0/24", "in tcp 31111 from 198.51.100.0/24")
		}
		r.hasRules(r.ruled.workList, ours(work...)...)
		r.unchanged(svc, nodes)

		r.noEvents()
		r.remove(svc)
		r.asAtStart()
	})
}

// Rules are open before anything needs them and closed when nothing does any more.
func TestRulesInOrder(t *testing.T) {
	withRulesOnBoth(t, ocisim.Options{Seed: 62}, func(r *rig, kind oci.BalancerKind) {
		nodes := []*v1.Node{r.worker("a", r.ruled.workers)}
		svc := r.service("web", kind, 80)
		r.edit(svc, annotate(ruleMode, "SL-All"))
		r.region.ResetCalls()
		svc = r.mustSync(svc, nodes)
		r.equal("creation", written(r.region.Calls()), []string{"UpdateSecurityList", "UpdateSecurityList", creation(kind)})

		r.edit(svc, func(s *v1.Service) { s.Spec.Ports = newService("x", kind, 81).Spec.Ports })
		r.region.ResetCalls()
		svc = r.mustSync(svc, nodes)
		calls := written(r.region.Calls())
		r.equal("deletions on the way to another port", r.count("DeleteListener")+r.count("DeleteBackendSet"), 2)
		closed := calls[max(len(calls)-2, 0):]
		opening := slices.DeleteFunc(slices.Clone(calls[:len(calls)-len(closed)]), func(c string) bool {
			return strings.HasPrefix(c, "Delete") // which needs no rules, and has an order of its own
		})
		r.equal("opening for another port", opening, []string{"UpdateSecurityList", "UpdateSecurityList", "CreateBackendSet", "CreateListener"})
		r.equal("closing at the end", closed, []string{"UpdateSecurityList", "UpdateSecurityList"})

		r.region.ResetCalls()
		r.remove(svc)
		deletion := strings.Replace(creation(kind), "Create", "Delete", 1)
		r.equal("deletion", written(r.region.Calls()), []string{"UpdateSecurityList", "UpdateSecurityList", deletion})
		r.noEvents()
	})
}

// W2: a range that is taken away is closed, though the Service itself still has the port.
func TestNarrowedRangeCloses(t *testing.T) {
	withRulesOnBoth(t, ocisim.Options{Seed: 63}, func(r *rig, kind oci.BalancerKind) {
		nodes := []*v1.Node{r.worker("a", r.ruled.workers)}
		svc := r.service("web", kind, 443)
		r.edit(svc, annotate(ruleMode, "SL-Frontend"))
		svc = r.mustSync(svc, nodes)
		r.hasRules(r.ruled.frontList, ours("in tcp 443 from 0.0.0.0/0")...)
		r.hasRules(r.ruled.workList)
		r.edit(svc, func(s *v1.Service) { s.Annotations[sourceRanges] = "203.0.113.0/24, 198.51.100.0/24" })
		svc = r.mustSync(svc, nodes)
		r.hasRules(r.ruled.frontList, ours("in tcp 443 from 203.0.113.0/24", "in tcp 443 from 198.51.100.0/24")...)
		r.restart() // what was open before is not remembered
		r.edit(svc, func(s *v1.Service) { s.Spec.LoadBalancerSourceRanges = []string{"198.51.100.0/24"} })
		r.mustSync(svc, nodes)
		r.hasRules(r.ruled.frontList, ours("in tcp 443 from 198.51.100.0/24")...)
	})
}

// C070: a rule lives until the last Service has gone that needs it, whatever the order; one that somebody else has made is
// used, and stays.
func TestSharedPort(t *testing.T) {
	for _, order := range [][]int{{0, 1, 2}, {2, 0, 1}, {1, 2, 0}} {
		t.Run(fmt.Sprint(order), func(t *testing.T) {
			withRules(t, ocisim.Options{Seed: 64}, func(r *rig) {
				err := r.region.Foreign().SecurityList(r.ruled.frontList, func(l *core.SecurityList) {
					l.IngressSecurityRules = append(l.IngressSecurityRules, core.IngressSecurityRule{
						Protocol: common.String("6"), Source: common.String("0.0.0.0/0"), Description: common.String("by hand"), IsStateless: common.Bool(false),
						SourceType: core.IngressSecurityRuleSourceTypeCidrBlock,
						TcpOptions: &core.TcpOptions{DestinationPortRange: &core.PortRange{Min: common.Int(443), Max: common.Int(443)}},
					})
				})
				if err != nil {
					r.Fatal(err)
				}
				r.ruled.start = r.ruled.now()
				nodes := []*v1.Node{r.worker("a", r.ruled.workers)}
				var services []*v1.Service
				for i := range 3 {
					svc := r.service(fmt.Sprintf("web-%d", i), oci.KindLB, 443)
					r.edit(svc, func(s *v1.Service) { s.Spec.Ports[0].NodePort = 30443 + int32(i) })
					services = append(services, r.mustSync(svc, nodes))
				}
				health := ours("in tcp 10256 from " + frontCIDR)
				want := func(left []int) []string {
					out := slices.Clone(health)
					for _, i := range left {
						out = append(out, ours(fmt.Sprintf("in tcp %d from %s", 30443+i, frontCIDR))...)
					}
					return out
				}
				left := []int{0, 1, 2}
				r.hasRules(r.ruled.workList, want(left)...)
				for _, i := range order {
					r.remove(services[i])
					left = slices.DeleteFunc(left, func(j int) bool { return j == i })
					if len(left) > 0 {
						r.hasRules(r.ruled.workList, want(left)...)
					}
				}
				r.asAtStart()
				r.noEvents()
			})
		})
	}
}

// W42, C046: UDP has rules too, in lists and in groups; the health check is TCP in any case.
func TestRulesForUDP(t *testing.T) {
	withRules(t, ocisim.Options{Seed: 65}, func(r *rig) {
		nodes := []*v1.Node{r.worker("a", r.ruled.workers)}
		svc := r.service("dns", oci.KindNLB, 53)
		r.edit(svc, func(s *v1.Service) {
			s.Annotations[ruleMode] = "SL-All"
			s.Spec.Ports[0].Protocol = v1.ProtocolUDP
		})
		svc = r.mustSync(svc, nodes)
		r.hasRules(r.ruled.frontList, ours("in udp 53 from 0.0.0.0/0", "out udp 30053 to "+workersCIDR, "out tcp 10256 to "+workersCIDR)...)
		r.hasRules(r.ruled.workList, ours("in udp 30053 from "+frontCIDR, "in tcp 10256 from "+frontCIDR)...)
		r.edit(svc, func(s *v1.Service) {
			tcp := s.Spec.Ports[0]
			tcp.Name, tcp.Protocol = "tcp", v1.ProtocolTCP
			s.Spec.Ports = append(s.Spec.Ports, tcp)
		})
		svc = r.mustSync(svc, nodes)
		r.hasRules(r.ruled.workList, ours("in udp 30053 from "+frontCIDR, "in tcp 30053 from "+frontCIDR, "in tcp 10256 from "+frontCIDR)...)
		r.remove(svc)
		r.asAtStart()
		r.noEvents()
	})
}

// A node in another subnet: rules are open before it becomes a backend, and closed when it has gone.
func TestRulesFollowNodes(t *testing.T) {
	withRulesOnBoth(t, ocisim.Options{Seed: 66}, func(r *rig, kind oci.BalancerKind) {
		near, far := r.worker("near", r.ruled.workers), r.worker("far", r.ruled.far)
		svc := r.service("web", kind, 80)
		r.edit(svc, annotate(ruleMode, "SL-All"))
		svc = r.mustSync(svc, []*v1.Node{near})
		r.hasRules(r.ruled.farList)
		r.region.ResetCalls()
		r.mustUpdateBackends(svc, []*v1.Node{near, far})
		r.equal("writes", written(r.region.Calls()), []string{"UpdateSecurityList", "UpdateSecurityList", "UpdateBackendSet"})
		r.hasRules(r.ruled.farList, ours("in tcp 30080 from "+frontCIDR, "in tcp 10256 from "+frontCIDR)...)
		r.hasRules(r.ruled.frontList, ours("in tcp 80 from 0.0.0.0/0", "out tcp 30080 to "+workersCIDR, "out tcp 10256 to "+workersCIDR,
			"out tcp 30080 to "+farCIDR, "out tcp 10256 to "+farCIDR)...)
		svc = r.mustSync(svc, []*v1.Node{near, far})
		r.unchanged(svc, []*v1.Node{near, far})
		r.region.ResetCalls()
		r.mustUpdateBackends(svc, []*v1.Node{near})
		r.equal("writes", written(r.region.Calls()), []string{"UpdateBackendSet", "UpdateSecurityList", "UpdateSecurityList"})
		r.hasRules(r.ruled.farList)
		r.noEvents()
		r.remove(svc)
		r.asAtStart()
	})
}

// W10: a node whose subnet cannot be found out is named, and costs the others nothing.
func TestNodeWithoutSubnet(t *testing.T) {
	withRules(t, ocisim.Options{Seed: 67}, func(r *rig) {
		near, lost := r.worker("near", r.ruled.workers), r.worker("lost", r.ruled.far)
		lost.Spec.ProviderID = "oci://ocid1.instance.oc1.iad.nowhere"
		nodes := []*v1.Node{near, lost}
		svc := r.mustSync(r.service("web", oci.KindLB, 80), nodes)
		r.oneSeries("NodeSubnetUnknown", "lost", "404")
		r.hasRules(r.ruled.workList, ours("in tcp 30080 from "+frontCIDR, "in tcp 10256 from "+frontCIDR)...)
		r.equal("backends", r.backends("TCP-80"), addressesOf(nodes...))
		// Narrowing works all the same, and what was open for nodes stays.
		r.edit(svc, func(s *v1.Service) { s.Spec.LoadBalancerSourceRanges = []string{"203.0.113.0/24"} })
		r.mustSync(svc, nodes)
		r.hasRules(r.ruled.frontList, ours("in tcp 80 from 203.0.113.0/24", "out tcp 30080 to "+workersCIDR, "out tcp 10256 to "+workersCIDR)...)
		r.cluster.events = nil
		r.mustSync(svc, []*v1.Node{lost})
		r.hasRules(r.ruled.workList, ours("in tcp 30080 from "+frontCIDR, "in tcp 10256 from "+frontCIDR)...)
	})
}

// The configured list is edited if the subnet has it, else the oldest one; a subnet without a list is an event.
func TestWhichList(t *testing.T) {
	withRules(t, ocisim.Options{Seed: 68}, func(r *rig) {
		nodes := []*v1.Node{r.worker("a", r.ruled.workers)}
		r.cfg.SecurityLists = map[string]string{r.ruled.workers: r.ruled.old, r.ruled.front: r.ruled.farList}
		r.restart()
		svc := r.mustSync(r.service("web", oci.KindLB, 80), nodes)
		r.hasRules(r.ruled.workList)
		r.hasRules(r.ruled.old, ours("in tcp 30080 from "+frontCIDR, "in tcp 10256 from "+frontCIDR)...)
		r.hasRules(r.ruled.farList)
		r.noEvents()
		r.remove(svc)
		r.asAtStart()

		bare := r.region.AddSubnet(ocisim.Subnet{VCN: r.ruled.vcn, Name: "bare", CIDR: "10.0.30.0/24"})
		if err := r.region.Foreign().Subnet(bare, func(s *core.Subnet) { s.SecurityListIds = nil }); err != nil {
			r.Fatal(err)
		}
		r.mustSync(r.service("bare", oci.KindLB, 80), []*v1.Node{r.worker("b", bare)})
		r.oneSeries("NoSecurityList", bare, "NSG")
	})
}

// Without the policy for security lists the balancer works, and one event says what is missing; with it, the periodic pass
// brings the rules.
func TestPolicyForListsMissing(t *testing.T) {
	withRulesOnBoth(t, ocisim.Options{Seed: 69}, func(r *rig, kind oci.BalancerKind) {
		nodes := []*v1.Node{r.worker("a", r.ruled.workers)}
		svc := r.service("web", kind, 80)
		r.edit(svc, annotate(ruleMode, "SL-All"))
		restore := r.region.Deny(ocisim.Policy{ResourceType: "security-lists"})
		svc = r.mustSync(svc, nodes)
		r.oneSeries("SecurityRulesNotApplied", "404", "Allow <subject> to manage security-lists in compartment")
		r.equal("condition", r.cluster.condition(svc.UID), "True Synced")
		svc = r.mustSync(svc, nodes)
		if n := len(r.cluster.events); n != 1 {
			r.Errorf("%d events after another sync: %v", n, r.cluster.events)
		}
		found, err := r.m.Audit(r.Context(), []*v1.Service{svc}, nodes)
		if err != nil || len(found) > 0 {
			r.Errorf("audit without policy: %v, %v", found, err)
		}
		restore()
		time.Sleep(2 * time.Minute)
		found, err = r.m.Audit(r.Context(), []*v1.Service{svc}, nodes)
		r.equal("audit", fmt.Sprint(found, err), "[shop/web] <nil>")
		svc = r.mustSync(svc, nodes)
		r.hasRules(r.ruled.workList, ours("in tcp 30080 from "+frontCIDR, "in tcp 10256 from "+frontCIDR)...)
		r.equal("condition message", r.cluster.get(svc.UID).Status.Conditions[0].Message, "")

		// The deletion does not depend on it either.
		r.cluster.events = nil
		r.region.Deny(ocisim.Policy{ResourceType: "security-lists"})
		time.Sleep(2 * time.Minute)
		r.remove(svc)
		r.equal("balancers", len(r.live()), 0)
		r.oneSeries("SecurityRulesNotApplied", "manage security-lists")
	})
}

// The limit of rules is met before anything is written, and told.
func TestTooManyRules(t *testing.T) {
	withRules(t, ocisim.Options{Seed: 71}, func(r *rig) {
		nodes := []*v1.Node{r.worker("a", r.ruled.workers)}
		svc := r.service("web", oci.KindLB, 80)
		r.edit(svc, func(s *v1.Service) {
			for i := range 210 {
				s.Spec.LoadBalancerSourceRanges = append(s.Spec.LoadBalancerSourceRanges, fmt.Sprintf("203.0.113.%d/32", i))
			}
		})
		r.region.ResetCalls()
		if err := r.sync(svc, nodes, time.Minute); err == nil {
			r.Error("no error")
		}
		r.equal("writes", written(r.region.Calls()), []string{})
		r.oneSeries("SecurityRulesNotApplied", "200", r.ruled.frontList)
		r.asAtStart()
		r.cluster.events = nil
		r.edit(svc, func(s *v1.Service) { s.Spec.LoadBalancerSourceRanges = s.Spec.LoadBalancerSourceRanges[:5] })
		r.mustSync(svc, nodes)
		r.equal("rules", len(r.added(r.ruled.frontList)), 5+2)
	})
}
