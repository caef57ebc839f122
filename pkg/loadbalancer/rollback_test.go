// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package loadbalancer_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/oracle/oci-cloud-controller-manager/test/legacy"
	"github.com/oracle/oci-cloud-controller-manager/test/ocisim"
)

// rolledBack is a Service that this program makes, and changes, before the way back.
type rolledBack struct {
	inherited

	edit func(r *rig, svc *v1.Service)
	// unfound is what the existing implementation does not recognise, as docs/upgrade.md says.
	unfound []string
}

func rolledBackServices() []rolledBack {
	port := func(i int, number, nodePort int32) func(*rig, *v1.Service) {
		return func(r *rig, svc *v1.Service) {
			r.edit(svc, func(s *v1.Service) { s.Spec.Ports[i].Port, s.Spec.Ports[i].NodePort = number, nodePort })
		}
	}
	set := func(key, value string) func(*rig, *v1.Service) {
		return func(r *rig, svc *v1.Service) { r.edit(svc, annotate(key, value)) }
	}
	withTLS := []string{prefixLB + "ssl-ports", "443", prefixLB + "tls-secret", "web-tls", prefixLB + "tls-backendset-secret", "backends"}
	return []rolledBack{
		{inherited: inherited{name: "plain", kind: lb}, edit: port(0, 8080, 32001)},
		{inherited: inherited{name: "ranges", kind: lb, from: []string{"203.0.113.0/24"}}, edit: func(r *rig, svc *v1.Service) {
			r.edit(svc, func(s *v1.Service) { s.Spec.LoadBalancerSourceRanges = []string{"198.51.100.0/24", "192.0.2.0/24"} })
		}},
		{inherited: inherited{name: "frontend", kind: lb, set: []string{ruleMode, "SL-Frontend"}}, edit: set(ruleMode, "SL-All")},
		{inherited: inherited{name: "to-groups", kind: lb}, edit: func(r *rig, svc *v1.Service) { r.inNSGMode(svc) }},
		{inherited: inherited{name: "groups", kind: lb, set: []string{ruleMode, "NSG", backendNSG, "$backends"}}, edit: port(1, 444, 32002)},
		{inherited: inherited{name: "tls", kind: lb, set: withTLS}, edit: func(r *rig, _ *v1.Service) {
			r.secrets.put("shop", "web-tls", r.secrets.pair(r.T, "renewed"))
		}},
		{inherited: inherited{name: "http", kind: lb}, edit: set(prefixLB+"backend-protocol", "HTTP")},
		{inherited: inherited{name: "n-none", kind: nlb}, edit: port(0, 8080, 32003)},
		{inherited: inherited{name: "n-all", kind: nlb, local: true, set: []string{ruleMode, "SL-All"}}, edit: port(0, 8081, 32004)},
		{inherited: inherited{name: "n-groups", kind: nlb, local: true, set: []string{ruleMode, "NSG", backendNSG, "$backends"}}, edit: port(0, 8082, 32005)},
		{inherited: inherited{name: "n-dual", kind: nlb, dual: true, local: true, ports: []string{"8090", "8444"}, set: []string{ruleMode, "SL-All", prefixNLB + "subnet", "$dual"}}, edit: port(0, 8083, 32006)},
		{inherited: inherited{name: "n-both", kind: nlb, ports: []string{"TCP 53", "UDP 53"}}, edit: func(*rig, *v1.Service) {}},
		{
			inherited: inherited{name: "n-udp-to-both", kind: nlb, ports: []string{"UDP 53"}},
			edit: func(r *rig, svc *v1.Service) {
				r.edit(svc, func(s *v1.Service) {
					tcp := s.Spec.Ports[0]
					tcp.Name, tcp.Protocol = "tcp", v1.ProtocolTCP
					s.Spec.Ports = append(s.Spec.Ports, tcp)
				})
			},
			unfound: []string{"create listener TCP_AND_UDP-53", "delete listener UDP-53"},
		},
	}
}

// start makes a Service by this program.
func (x rolledBack) start(r *rig, i int, nodes []*v1.Node) *v1.Service {
	r.Helper()
	svc := r.declare(i, x.inherited)
	return r.mustSync(svc, nodes)
}

// Acceptance 5, the way back: what this program has made and changed, the existing implementation finds by its names, tags and
// rules, and removes, and then the region is as it was before.
func TestRollBack(t *testing.T) {
	if testing.Short() {
		t.Skip("long, and nothing runs at the same time in it: in make test-long")
	}
	withRules(t, ocisim.Options{Seed: 211}, func(r *rig) {
		nodes := []*v1.Node{r.worker("a", r.ruled.workers), r.worker("b", r.ruled.far), r.node("c")}
		var svcs []*v1.Service
		for i, x := range rolledBackServices() {
			svcs = append(svcs, x.start(r, i, nodes))
		}
		for i, x := range rolledBackServices() {
			x.edit(r, svcs[i])
			svcs[i] = r.mustSync(svcs[i], nodes)
		}
		former := r.former(nodes)
		for i, x := range rolledBackServices() {
			r.equal(x.name+": not found", former.Unfound(r.cluster.get(svcs[i].UID)), x.unfound)
		}
		slices.Reverse(svcs) // it keeps the rule for kube-proxy's port as long as there is a Service of any mode
		for _, svc := range svcs {
			r.condemn(svc)
			if err := former.Remove(r.Context(), r.cluster.get(svc.UID)); err != nil {
				r.Errorf("%s: %v", svc.Name, err)
			}
			r.cluster.remove(svc.UID)
		}
		r.equal("balancers", len(r.live()), 0)
		r.asAtStart()
	})
}

// A deletion that this program has begun, the existing implementation ends, wherever the process was killed. Only in mode NSG,
// when just the group is left, it does not look for that, as it never does without a balancer; docs/upgrade.md says so.
func TestRollBackInADeletion(t *testing.T) {
	if testing.Short() {
		t.Skip("long, and nothing runs at the same time in it: in make test-long")
	}
	for i, x := range rolledBackServices() {
		if !slices.Contains([]string{"plain", "groups", "n-all", "n-groups"}, x.name) {
			continue
		}
		t.Run(x.name, func(t *testing.T) {
			for kill := 1; ; kill++ {
				done := false
				withRules(t, ocisim.Options{Seed: 212}, func(r *rig) {
					nodes := []*v1.Node{r.worker("a", r.ruled.workers), r.worker("b", r.ruled.far)}
					svc := x.start(r, i, nodes)
					done = r.killedInDeletion(svc, kill)
					r.endDeletion(r.former(nodes), svc, fmt.Sprintf("killed after write %d", kill))
				})
				if done {
					if kill < 3 {
						t.Errorf("the deletion has %d writes only", kill-1)
					}
					return
				}
			}
		})
	}
}

// killedInDeletion deletes a Service in a process that ends with its n-th write; it says whether that came to its end before.
func (r *rig) killedInDeletion(svc *v1.Service, n int) bool {
	r.Helper()
	ctx, kill := context.WithCancel(r.Context())
	defer kill()
	writes := 0
	defer r.region.OnCall(func(c ocisim.Call) {
		if c.Write {
			if writes++; writes == n {
				kill()
			}
		}
	})()
	r.condemn(svc)
	_, exists, err := r.m.Exists(ctx, r.cluster.get(svc.UID))
	if err == nil && exists {
		err = r.m.Delete(ctx, r.cluster.get(svc.UID))
	}
	return err == nil && writes < n
}

// endDeletion lets the existing implementation end a deletion, and compares the region with the start.
func (r *rig) endDeletion(former *legacy.Release, svc *v1.Service, when string) {
	r.Helper()
	time.Sleep(10 * time.Minute) // what is under way in the region comes to its end
	left := r.live()
	if err := former.Remove(r.Context(), r.cluster.get(svc.UID)); err != nil {
		r.Errorf("%s: %v", when, err)
	}
	r.equal(when+": balancers", len(r.live()), 0)
	if g := r.managed(svc); g != nil && len(left) == 0 {
		r.ruled.start[*g.Id] = r.ruled.now()[*g.Id]
	}
	r.asAtStart()
}
