// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package loadbalancer_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/oracle/oci-go-sdk/v65/core"
	v1 "k8s.io/api/core/v1"

	"github.com/oracle/oci-cloud-controller-manager/pkg/oci"
	"github.com/oracle/oci-cloud-controller-manager/test/ocisim"
)

// The periodic pass notices rules that somebody has removed, at the cost of one read for each list.
func TestAuditOfRules(t *testing.T) {
	withRules(t, ocisim.Options{Seed: 70}, func(r *rig) {
		nodes := []*v1.Node{r.worker("a", r.ruled.workers)}
		var services []*v1.Service
		for i := range 5 {
			svc := r.service(fmt.Sprintf("web-%d", i), oci.KindLB, 80)
			r.edit(svc, func(s *v1.Service) { s.Spec.Ports[0].NodePort = 30080 + int32(i) })
			services = append(services, r.mustSync(svc, nodes))
		}
		for i, svc := range services {
			services[i] = r.cluster.get(svc.UID)
		}
		time.Sleep(10 * time.Minute)
		r.region.ResetCalls()
		found, err := r.m.Audit(r.Context(), services, nodes)
		r.equal("audit", fmt.Sprint(found, err), "[] <nil>")
		counts := map[string]int{}
		for _, c := range r.region.Calls() {
			counts[c.Operation]++
		}
		if len(r.region.Calls()) > 4 || counts["GetSecurityList"] > 2 || len(written(r.region.Calls())) > 0 {
			r.Errorf("calls of the periodic pass: %v", counts)
		}

		err = r.region.Foreign().SecurityList(r.ruled.workList, func(l *core.SecurityList) {
			l.IngressSecurityRules = slices.DeleteFunc(l.IngressSecurityRules, func(x core.IngressSecurityRule) bool {
				return x.TcpOptions != nil && *x.TcpOptions.DestinationPortRange.Min == 30083
			})
		})
		if err != nil {
			r.Fatal(err)
		}
		time.Sleep(10 * time.Minute)
		found, err = r.m.Audit(r.Context(), services, nodes)
		r.equal("audit", fmt.Sprint(found, err), "[shop/web-3] <nil>")
		r.mustSync(services[3], nodes)
		r.equal("rules", slices.Contains(r.added(r.ruled.workList), ours("in tcp 30083 from " + frontCIDR)[0]), true)
		r.noEvents()
	})
}

// P4: a new process and 200 Services that are as they should be, with their rules in four lists.
func TestRestartWithManyServicesAndRules(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long: make test-long runs it, without the race detector")
	}
	withRules(t, ocisim.Options{Seed: 72, Durations: fixed(time.Second), PageSize: 1000}, func(r *rig) {
		r.region.SetBehaviour(func(b *ocisim.Behaviour) { b.MaxSecurityListRules = 1000 })
		nodes := []*v1.Node{r.worker("a", r.ruled.workers), r.worker("b", r.ruled.far)}
		var services []*v1.Service
		for i := range 200 {
			svc := r.service(fmt.Sprintf("web-%d", i), oci.KindLB, 80)
			if i%2 == 0 {
				svc = r.service(fmt.Sprintf("net-%d", i), oci.KindNLB, 80)
				r.edit(svc, annotate(ruleMode, "SL-All"))
			}
			r.edit(svc, func(s *v1.Service) { s.Spec.Ports[0].NodePort = 30000 + int32(i%50) })
			services = append(services, r.mustSync(svc, nodes))
		}
		time.Sleep(time.Hour)
		r.restart()
		r.region.ResetCalls()
		for _, svc := range services {
			if _, err := r.m.Ensure(r.Context(), r.cluster.get(svc.UID), nodes); err != nil {
				r.Error(err)
			}
		}
		counts := map[string]int{}
		for _, c := range r.region.Calls() {
			counts[c.Operation]++
		}
		r.equal("writes", written(r.region.Calls()), []string{})
		const reads, lists = 204, 10 // list pages, and what is read once about subnets and nodes
		if n := len(r.region.Calls()); n > reads+lists {
			r.Errorf("%d calls: %v", n, counts)
		}
	})
}

// A Service whose creation never succeeded leaves no rules.
func TestRulesOfServiceWithoutBalancer(t *testing.T) {
	for _, restarted := range []bool{false, true} {
		t.Run(fmt.Sprintf("restarted %t", restarted), func(t *testing.T) {
			withRulesOnBoth(t, ocisim.Options{Seed: 73}, func(r *rig, kind oci.BalancerKind) {
				nodes := []*v1.Node{r.worker("a", r.ruled.workers)}
				r.nodesNow = nodes
				r.restart()
				svc := r.service("web", kind, 80)
				r.edit(svc, annotate(ruleMode, "SL-All"))
				r.region.Fault(ocisim.Fault{Operation: creation(kind), Nth: 1, Times: 100, Status: 400, Code: "LimitExceeded"})
				if err := r.sync(svc, nodes, time.Minute); err == nil {
					r.Fatal("no error")
				}
				r.equal("rules", len(r.added(r.ruled.workList)), 2)
				if restarted {
					r.restart()
				}
				r.remove(svc)
				r.asAtStart()
			})
		})
	}
}

// Rules that another Service may need, of which nothing is known yet, wait for it: one that cannot need any holds nothing
// up, and when one that could has gone without a word, the next pass removes them, also if no Service is left.
func TestRulesWhileAnotherServiceIsStuck(t *testing.T) {
	withRulesOnBoth(t, ocisim.Options{Seed: 74}, func(r *rig, stuckKind oci.BalancerKind) {
		nodes := []*v1.Node{r.worker("a", r.ruled.workers)}
		stuck := r.service("stuck", stuckKind, 80) // of an NLB no rules are managed by default
		web := r.mustSync(r.service("web", oci.KindLB, 80), nodes)
		time.Sleep(time.Minute)
		r.remove(web)
		if stuckKind == oci.KindLB {
			r.equal("rules that wait", len(r.added(r.ruled.frontList)) > 0 && len(r.added(r.ruled.workList)) > 0, true)
			if _, err := r.m.Audit(r.Context(), []*v1.Service{stuck}, nodes); err != nil {
				r.Error(err)
			}
			r.equal("rules that wait after a pass", len(r.added(r.ruled.frontList)) > 0, true)
			r.cluster.remove(stuck.UID)
			if _, err := r.m.Audit(r.Context(), nil, nodes); err != nil {
				r.Error(err)
			}
		}
		r.asAtStart()
		r.cluster.remove(stuck.UID)
		for range 2 { // the first one of a process looks back
			r.region.ResetCalls()
			if _, err := r.m.Audit(r.Context(), nil, nodes); err != nil {
				r.Error(err)
			}
		}
		r.equal("calls of a pass when all is done", len(r.region.Calls()), 0)
	})
}
