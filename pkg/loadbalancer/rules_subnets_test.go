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

	"github.com/oracle/oci-cloud-controller-manager/pkg/loadbalancer"
	"github.com/oracle/oci-cloud-controller-manager/pkg/oci"
	"github.com/oracle/oci-cloud-controller-manager/test/ocisim"
)

// touched are the calls about a subnet or a security list.
func (r *rig) touched(ids ...string) (reads, writes int) {
	for _, c := range r.region.Calls() {
		if !slices.ContainsFunc(ids, func(id string) bool { return strings.HasSuffix(c.Path, "/"+id) }) {
			continue
		}
		if c.Write {
			writes++
		} else {
			reads++
		}
	}
	return reads, writes
}

// C038: when the annotation names another subnet than the one that the balancer is in, the rules stay in that, follow the Service
// there, and nothing is written in the other one.
func TestRulesStayInTheRealSubnet(t *testing.T) {
	withRulesOnBoth(t, ocisim.Options{Seed: 113}, func(r *rig, kind oci.BalancerKind) {
		key := prefixLB + "subnet1"
		if kind == oci.KindNLB {
			key = prefixNLB + "subnet"
		}
		nodes := []*v1.Node{r.worker("a", r.ruled.workers)}
		svc := r.service("web", kind, 80)
		r.edit(svc, annotate(ruleMode, "SL-All"))
		svc = r.mustSync(svc, nodes)
		r.region.ResetCalls()
		r.edit(svc, func(s *v1.Service) {
			s.Annotations[key] = r.ruled.far
			s.Spec.Ports[0].NodePort = 31080
		})
		for range 5 {
			svc = r.mustSync(svc, nodes)
		}
		r.equal("count", r.oneSeries(loadbalancer.ReasonImmutable, r.ruled.far, r.ruled.front).count, 1)
		r.hasRules(r.ruled.frontList, ours("in tcp 80 from 0.0.0.0/0", "out tcp 31080 to "+workersCIDR, "out tcp 10256 to "+workersCIDR)...)
		r.hasRules(r.ruled.workList, ours("in tcp 31080 from "+frontCIDR, "in tcp 10256 from "+frontCIDR)...)
		r.remove(svc)
		if _, writes := r.touched(r.ruled.far, r.ruled.farList); writes > 0 {
			r.Errorf("%d writes where the balancer is not", writes)
		}
		r.asAtStart()
	})
}

// C075: of three lists of a subnet, one of which guards other subnets as well, it is always the same one that is edited, in
// whatever order the subnet names them; the VCN's default list, which is older than all, is not touched unless a subnet has it.
func TestListIsChosenWhateverTheOrder(t *testing.T) {
	withRulesOnBoth(t, ocisim.Options{Seed: 114}, func(r *rig, kind oci.BalancerKind) {
		three := []string{r.ruled.old, r.ruled.farList, r.ruled.workList} // the list of the workers is the oldest, that of far the youngest
		nodes := []*v1.Node{r.worker("a", r.ruled.workers)}
		for _, order := range [][]int{{0, 1, 2}, {2, 1, 0}, {1, 2, 0}, {1, 0, 2}} {
			err := r.region.Foreign().Subnet(r.ruled.workers, func(s *core.Subnet) {
				s.SecurityListIds = []string{three[order[0]], three[order[1]], three[order[2]]}
			})
			if err != nil {
				r.Fatal(err)
			}
			r.restart()
			svc := r.service("web", kind, 80)
			r.edit(svc, annotate(ruleMode, "SL-All"))
			r.region.ResetCalls()
			svc = r.mustSync(svc, nodes)
			r.hasRules(r.ruled.workList, ours("in tcp 30080 from "+frontCIDR, "in tcp 10256 from "+frontCIDR)...)
			r.remove(svc)
			for _, c := range r.region.Calls() {
				if c.Operation == "UpdateSecurityList" && !strings.HasSuffix(c.Path, r.ruled.workList) && !strings.HasSuffix(c.Path, r.ruled.frontList) {
					r.Errorf("%v: another list was written: %s", order, c.Path)
				}
			}
			r.asAtStart()
		}
		r.noEvents()
	})
}

// C080: nodes in three subnets, each with a list of its own. A node that moves takes its rules along; a subnet that loses its last
// node loses its rules; and what is read is read for each subnet, not for each node.
func TestNodesInThreeSubnets(t *testing.T) {
	withRulesOnBoth(t, ocisim.Options{Seed: 115}, func(r *rig, kind oci.BalancerKind) {
		const thirdCIDR = "10.0.23.0/24"
		thirdList := r.region.AddSecurityList(ocisim.SecurityList{VCN: r.ruled.vcn, Name: "third"})
		third := r.region.AddSubnet(ocisim.Subnet{VCN: r.ruled.vcn, Name: "third", CIDR: thirdCIDR, SecurityLists: []string{thirdList}})
		r.ruled.start = r.ruled.now()
		subnets := []string{r.ruled.workers, r.ruled.far, third}
		var nodes []*v1.Node
		for i := range 12 {
			nodes = append(nodes, r.worker(fmt.Sprintf("node-%d", i), subnets[i%3]))
		}
		svc := r.service("web", kind, 80)
		r.edit(svc, annotate(ruleMode, "SL-All"))
		r.region.ResetCalls()
		svc = r.mustSync(svc, nodes)
		for i, id := range append(slices.Clone(subnets), r.ruled.workList, r.ruled.farList, thirdList) {
			most := 1
			if i < len(subnets) {
				most = 2 // once to find the nodes in it, and once for its blocks and lists
			}
			if reads, _ := r.touched(id); reads > most {
				r.Errorf("%s was read %d times", id, reads)
			}
		}
		open := func(cidrs map[string]string) {
			r.Helper()
			front := []string{"in tcp 80 from 0.0.0.0/0"}
			for _, list := range []string{r.ruled.workList, r.ruled.farList, thirdList} {
				cidr := cidrs[list]
				if cidr == "" {
					r.hasRules(list)
					continue
				}
				r.hasRules(list, ours("in tcp 30080 from "+frontCIDR, "in tcp 10256 from "+frontCIDR)...)
				front = append(front, "out tcp 30080 to "+cidr, "out tcp 10256 to "+cidr)
			}
			r.hasRules(r.ruled.frontList, ours(front...)...)
		}
		all := map[string]string{r.ruled.workList: workersCIDR, r.ruled.farList: farCIDR, thirdList: thirdCIDR}
		open(all)

		// All but one node of the third subnet go; then that one moves: it comes back with another instance.
		kept := slices.DeleteFunc(slices.Clone(nodes), func(n *v1.Node) bool { return slices.Index(nodes, n)%3 == 2 })
		last := nodes[2]
		r.mustUpdateBackends(svc, append(slices.Clone(kept), last))
		open(all)
		moved := r.worker("moved", r.ruled.workers)
		moved.Name = last.Name
		r.mustUpdateBackends(svc, append(slices.Clone(kept), moved))
		delete(all, thirdList)
		open(all)
		svc = r.mustSync(svc, append(slices.Clone(kept), moved))
		r.unchanged(svc, append(slices.Clone(kept), moved))
		r.noEvents()
		r.remove(svc)
		r.asAtStart()
	})
}

// C077: a list that is nearly full refuses a Service with three ports as a whole; the list and the region stay as they are, and a
// Service in another subnet is not affected. When there is room, all goes well.
func TestNearlyFullList(t *testing.T) {
	withRulesOnBoth(t, ocisim.Options{Seed: 116}, func(r *rig, kind oci.BalancerKind) {
		fill := func(l *core.SecurityList) {
			for port := len(l.IngressSecurityRules); port < 199; port++ {
				l.IngressSecurityRules = append(l.IngressSecurityRules, core.IngressSecurityRule{
					Protocol: common.String("6"), Source: common.String("192.0.2.0/24"), SourceType: core.IngressSecurityRuleSourceTypeCidrBlock, IsStateless: common.Bool(false),
					TcpOptions: &core.TcpOptions{DestinationPortRange: &core.PortRange{Min: common.Int(20000 + port), Max: common.Int(20000 + port)}},
				})
			}
		}
		if err := r.region.Foreign().SecurityList(r.ruled.frontList, fill); err != nil {
			r.Fatal(err)
		}
		r.ruled.start = r.ruled.now()
		nodes := []*v1.Node{r.worker("a", r.ruled.workers)}
		big := r.service("big", kind, 80, 81, 82)
		r.edit(big, annotate(ruleMode, "SL-All"))
		r.region.ResetCalls()
		if err := r.sync(big, nodes, time.Minute); err == nil {
			r.Error("no error")
		}
		r.oneSeries("SecurityRulesNotApplied", "200", r.ruled.frontList, "loadBalancer.securityLists")
		r.equal("writes", written(r.region.Calls()), []string{})
		r.asAtStart()
		r.cluster.events = nil

		small := r.service("small", kind, 80)
		r.edit(small, func(s *v1.Service) {
			s.Annotations[ruleMode] = "SL-All"
			s.Annotations[map[oci.BalancerKind]string{oci.KindLB: prefixLB + "subnet1", oci.KindNLB: prefixNLB + "subnet"}[kind]] = r.ruled.far
		})
		small = r.mustSync(small, nodes)
		r.hasRules(r.ruled.farList, ours("in tcp 80 from 0.0.0.0/0", "out tcp 30080 to "+workersCIDR, "out tcp 10256 to "+workersCIDR)...)
		r.noEvents()

		err := r.region.Foreign().SecurityList(r.ruled.frontList, func(l *core.SecurityList) { l.IngressSecurityRules = l.IngressSecurityRules[:50] })
		if err != nil {
			r.Fatal(err)
		}
		time.Sleep(2 * time.Minute)
		big = r.mustSync(big, nodes)
		list, _ := r.region.SecurityList(r.ruled.frontList)
		r.equal("rules", len(list.IngressSecurityRules), 53)
		r.remove(big)
		r.remove(small)
		list, _ = r.region.SecurityList(r.ruled.frontList)
		r.equal("rules in the end", len(list.IngressSecurityRules), 50)
		r.hasRules(r.ruled.farList)
	})
}

// C048: the health check follows externalTrafficPolicy, and the rules follow the health check; at no moment are the nodes out of
// reach.
func TestHealthCheckFollowsThePolicy(t *testing.T) {
	withRulesOnBoth(t, ocisim.Options{Seed: 117, Durations: fixed(time.Second)}, func(r *rig, kind oci.BalancerKind) {
		nodes := []*v1.Node{r.dualWorker("a", r.ruled.workers)}
		sides := r.nodeSides(nodes)
		svc := r.service("web", kind, 445)
		r.edit(svc, annotate(ruleMode, "SL-All"))
		svc = r.mustSync(svc, nodes)
		const healthPort = 32555
		for _, local := range []bool{true, false, true} {
			before := svc
			r.edit(svc, func(s *v1.Service) {
				s.Spec.ExternalTrafficPolicy, s.Spec.HealthCheckNodePort = v1.ServiceExternalTrafficPolicyCluster, 0
				if local {
					s.Spec.ExternalTrafficPolicy, s.Spec.HealthCheckNodePort = v1.ServiceExternalTrafficPolicyLocal, healthPort
				}
			})
			stop := r.watchWay(r.only().ID, before, r.cluster.get(svc.UID), sides)
			svc = r.mustSync(svc, nodes)
			stop()
			port := 10256
			if local {
				port = healthPort
			}
			checker := r.only().BackendSets["TCP-445"].Checker
			r.equal("health check", fmt.Sprint(checker.Protocol, checker.Port, checker.URLPath), fmt.Sprint("HTTP", port, "/healthz"))
			check := fmt.Sprintf("tcp %d", port)
			work := []string{"in tcp 30445 from " + frontCIDR, "in " + check + " from " + frontCIDR}
			if local && kind == oci.KindNLB {
				work = append(work, "in tcp 30445 from 0.0.0.0/0")
			}
			r.hasRules(r.ruled.workList, ours(work...)...)
			r.hasRules(r.ruled.frontList, ours("in tcp 445 from 0.0.0.0/0", "out tcp 30445 to "+workersCIDR, "out "+check+" to "+workersCIDR)...)
			r.unchanged(svc, nodes)
		}
		r.noEvents()
		r.remove(svc)
		r.asAtStart()
	})
}
