// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package loadbalancer_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/oracle/oci-cloud-controller-manager/pkg/loadbalancer"
	"github.com/oracle/oci-cloud-controller-manager/pkg/oci"
	"github.com/oracle/oci-cloud-controller-manager/test/ocisim"
)

// fixed makes every change take the same time.
func fixed(d time.Duration) map[string]ocisim.Range {
	out := map[string]ocisim.Range{}
	out["work.accept"] = ocisim.Range{} // part of T
	for _, kind := range []string{"loadbalancer", "networkloadbalancer"} {
		for _, change := range []string{"create", "update", "delete"} {
			out[kind+"."+change] = ocisim.Range{Min: d, Max: d}
		}
	}
	return out
}

// How late the end of a work request may be noticed: the longest pause between two looks at it, which grows with the number
// of work requests that are waited for.
const (
	lag       = time.Second
	lagOfMany = 5 * time.Second
)

func within(r *rig, what string, took, budget time.Duration) {
	r.Helper()
	r.Logf("budget %s took %v", what, took.Round(100*time.Millisecond)) // read by test/bench
	if took > budget {
		r.Errorf("%s took %v, want at most %v", what, took, budget)
	}
}

// P4: a new process and 200 Services that are as they should be: one read each, and the lists that the periodic pass
// reads once for all.
func TestRestartWithManyServices(t *testing.T) {
	many := 200
	if testing.Short() { // a few are enough for the race detector
		many = 20
	}
	simulate(t, ocisim.Options{Seed: 41, Durations: fixed(time.Second), PageSize: 100}, func(r *rig) {
		nodes := r.nodes(3)
		var services []*v1.Service
		for i := range many {
			kind := oci.KindLB
			if i%2 == 0 {
				kind = oci.KindNLB
			}
			services = append(services, r.mustSync(r.service(fmt.Sprintf("web-%d", i), kind, 80), nodes))
		}
		time.Sleep(time.Hour)
		r.restart()
		r.region.ResetCalls()
		var group sync.WaitGroup
		for _, svc := range services {
			group.Go(func() {
				if _, err := r.m.Ensure(r.Context(), r.cluster.get(svc.UID), nodes); err != nil {
					r.Error(err)
				}
			})
		}
		group.Wait()
		calls := len(r.region.Calls())
		r.Logf("budget P4: %d calls", calls) // read by test/bench
		if calls > many+4 {
			r.Errorf("%d calls, want at most %d", calls, many+4)
		}
		r.region.ResetCalls()
		found, err := r.m.Audit(r.Context(), services, nodes)
		if err != nil || len(found) > 0 {
			r.Errorf("audit: %v, %v", found, err)
		}
		r.equal("calls of the periodic pass", operations(r.region.Calls()), []string{"ListNetworkLoadBalancers", "ListLoadBalancers"})

		// Services without a record, as after an upgrade, share the lists too.
		for _, svc := range services {
			r.edit(svc, func(s *v1.Service) { delete(s.Annotations, loadbalancer.AnnotationOCID) })
		}
		r.restart()
		r.region.ResetCalls()
		for _, svc := range services {
			if _, err := r.m.Ensure(r.Context(), r.cluster.get(svc.UID), nodes); err != nil {
				r.Error(err)
			}
		}
		if n := len(r.region.Calls()); n > many+4 {
			r.Errorf("%d calls without records, want at most %d", n, many+4)
		}
	})
}

// P5, P6: the time of a creation, and of a port that is added.
func TestTimes(t *testing.T) {
	const T = 30 * time.Second
	onBothKinds(t, ocisim.Options{Seed: 42, Durations: fixed(T)}, func(r *rig, kind oci.BalancerKind) {
		nodes := r.nodes(3)
		svc := r.service("web", kind, 80, 81, 82)
		began := time.Now()
		r.mustSync(svc, nodes)
		within(r, "P5: a creation: "+string(kind), time.Since(began), T+lag)
		r.equal("creates", r.count(creation(kind)), 1)

		r.edit(svc, func(s *v1.Service) { s.Spec.Ports = newService("x", kind, 80, 81, 82, 83).Spec.Ports })
		began = time.Now()
		r.mustSync(svc, nodes)
		within(r, "P6: a new port: "+string(kind), time.Since(began), 2*T+lag)
		r.noEvents()
	})
}

// P7: one node more, many balancers: they are changed side by side, and the changes of a load balancer are sent at once.
func TestNodeAddedToManyBalancers(t *testing.T) {
	const T = 10 * time.Second
	many := 50
	if testing.Short() { // a few are enough for the race detector
		many = 5
	}
	onBothKinds(t, ocisim.Options{Seed: 43, Durations: fixed(T)}, func(r *rig, kind oci.BalancerKind) {
		nodes := r.nodes(3)
		var services []*v1.Service
		for i := range many {
			services = append(services, r.mustSync(r.service(fmt.Sprintf("web-%d", i), kind, 80, 81, 82), nodes))
		}
		nodes = append(nodes, r.node("node-4"))
		r.region.ResetCalls()
		began := time.Now()
		var group sync.WaitGroup
		for _, svc := range services {
			group.Go(func() { r.mustUpdateBackends(svc, nodes) })
		}
		group.Wait()
		budget := 3 * (T + lagOfMany)
		if kind == oci.KindLB {
			budget = 3*T + 2*time.Second
		}
		within(r, "P7: a node: "+string(kind), time.Since(began), budget)
		if kind == oci.KindLB { // all changes are sent at once; the service works off those of one balancer in turn
			for _, c := range r.region.Calls() {
				if c.Write {
					within(r, "sending "+c.Path, c.Time.Sub(began), 2*time.Second)
				}
			}
		}
		r.equal("writes", len(written(r.region.Calls())), 3*len(services))
		for _, c := range r.region.Calls() {
			if c.Status >= 400 {
				r.Errorf("%s answered %d", c.Operation, c.Status)
			}
		}
		r.noEvents()
	})
}

// A thousand things at once on one Service change nothing more than one of them would (P12).
func TestConcurrentCalls(t *testing.T) {
	onBothKinds(t, ocisim.Options{Seed: 44, Durations: fixed(20 * time.Second)}, func(r *rig, kind oci.BalancerKind) {
		nodes := r.nodes(2)
		svc := r.service("web", kind, 80, 443)
		var group sync.WaitGroup
		for range 10 {
			group.Go(func() {
				if err := r.sync(svc, nodes, 10*time.Minute); err != nil {
					r.Error(err)
				}
			})
		}
		group.Wait()
		r.Logf("budget P12: %s: %d extra writes", kind, len(written(r.region.Calls()))-1) // read by test/bench
		r.equal("writes", written(r.region.Calls()), []string{creation(kind)})
		r.noEvents()
	})
}

// The periodic pass finds what is missing and what has drifted, and nothing else; it does so with what lists it can read.
func TestAudit(t *testing.T) {
	onBothKinds(t, ocisim.Options{Seed: 45}, func(r *rig, kind oci.BalancerKind) {
		nodes := r.nodes(2)
		fine := r.mustSync(r.service("fine", kind, 80), nodes)
		drifted := r.mustSync(r.service("drifted", kind, 80), nodes)
		missing := r.service("missing", kind, 80)
		invalid := r.mustSync(r.service("invalid", kind, 80), nodes)
		r.edit(invalid, func(s *v1.Service) { s.Spec.SessionAffinity = v1.ServiceAffinityClientIP })
		leaving := r.condemn(r.mustSync(r.service("leaving", kind, 80), nodes))
		r.weightless("uid-drifted")
		r.cluster.events = nil
		r.region.ResetCalls()
		services := []*v1.Service{fine, drifted, missing, r.cluster.get(invalid.UID), leaving}
		found, err := r.m.Audit(r.Context(), services, nodes)
		if err != nil {
			r.Error(err)
		}
		r.equal("found", found, "[shop/drifted shop/missing]")
		r.equal("calls", operations(r.region.Calls()), []string{listing(kind)})
		r.noEvents()

		elsewhere := r.service("elsewhere", kind, 80)
		r.edit(elsewhere, annotate(prefixCommon+"compartment-id", "ocid1.compartment.oc1..nowhere"))
		found, err = r.m.Audit(r.Context(), append(services, r.cluster.get(elsewhere.UID)), nodes)
		r.equal("found", found, "[shop/drifted shop/missing]")
		if err == nil || !strings.Contains(err.Error(), "404") {
			r.Errorf("error %v, want a 404", err)
		}
		restore := r.region.Deny(ocisim.Policy{ResourceType: resourceType(kind), Verb: ocisim.Inspect})
		if found, err = r.m.Audit(r.Context(), services, nodes); err == nil || len(found) > 0 {
			r.Errorf("without policy: %v, %v", found, err)
		}
		restore()
	})
}

// weightless takes a Service's backends away, as a person would.
func (r *rig) weightless(uid string) {
	r.Helper()
	b := r.ownerOf(uid)
	client := r.connect(r.region.Transport())
	var cloud loadbalancer.Cloud = client.LoadBalancers()
	if b.Kind == oci.KindNLB {
		cloud = client.NetworkLoadBalancers()
	}
	full, err := cloud.Get(r.Context(), b.ID)
	if err != nil {
		r.Fatal(err)
	}
	set := full.BackendSets["TCP-80"]
	set.Backends = nil
	work, err := cloud.UpdateBackendSet(r.Context(), b.ID, set, full.ETag)
	if err == nil {
		_, err = cloud.Wait(r.Context(), work)
	}
	if err != nil {
		r.Fatal(err)
	}
}
