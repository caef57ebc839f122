// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package loadbalancer_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/oracle/oci-cloud-controller-manager/pkg/loadbalancer"
	"github.com/oracle/oci-cloud-controller-manager/pkg/oci"
	"github.com/oracle/oci-cloud-controller-manager/test/ocisim"
)

func creation(kind oci.BalancerKind) string {
	if kind == oci.KindNLB {
		return "CreateNetworkLoadBalancer"
	}
	return "CreateLoadBalancer"
}

func listing(kind oci.BalancerKind) string {
	if kind == oci.KindNLB {
		return "ListNetworkLoadBalancers"
	}
	return "ListLoadBalancers"
}

func resourceType(kind oci.BalancerKind) string {
	if kind == oci.KindNLB {
		return "network-load-balancers"
	}
	return "load-balancers"
}

// count counts the calls of an operation that reached the service.
func (r *rig) count(operation string) int {
	n := 0
	for _, c := range r.region.Calls() {
		if c.Operation == operation {
			n++
		}
	}
	return n
}

// C024: a balancer that was deleted in the console is made again, whatever triggers the sync.
func TestDeletedInConsole(t *testing.T) {
	triggers := map[string]func(r *rig, svc *v1.Service, nodes []*v1.Node){
		"service sync": func(r *rig, svc *v1.Service, nodes []*v1.Node) { r.mustSync(svc, nodes) },
		"node sync": func(r *rig, svc *v1.Service, nodes []*v1.Node) {
			if err := r.updateBackends(svc, append(nodes, r.node("node-9"))); !errors.Is(err, loadbalancer.ErrMissing) {
				r.Errorf("node sync: got %v, want ErrMissing", err)
			}
			r.mustSync(svc, nodes)
		},
		"periodic pass": func(r *rig, svc *v1.Service, nodes []*v1.Node) {
			found, err := r.m.Audit(r.Context(), []*v1.Service{r.cluster.get(svc.UID)}, nodes)
			if err != nil || len(found) != 1 || found[0].Name != svc.Name {
				r.Errorf("audit: %v, %v", found, err)
			}
			r.mustSync(svc, nodes)
		},
		"new process": func(r *rig, svc *v1.Service, nodes []*v1.Node) {
			r.restart()
			r.mustSync(svc, nodes)
		},
	}
	for name, trigger := range triggers {
		t.Run(name, func(t *testing.T) {
			onBothKinds(t, ocisim.Options{}, func(r *rig, kind oci.BalancerKind) {
				nodes := r.nodes(1)
				svc := r.mustSync(r.service("web", kind, 80), nodes)
				first := r.only()
				if err := r.region.Foreign().Delete(first.ID); err != nil {
					r.Fatal(err)
				}
				time.Sleep(time.Hour)
				trigger(r, svc, nodes)
				second := r.only()
				if second.ID == first.ID {
					r.Error("the balancer came back")
				}
				r.equal("recorded", r.cluster.get(svc.UID).Annotations[loadbalancer.AnnotationOCID], second.ID)
				r.unchanged(svc, nodes)
			})
		})
	}
}

// C024, S1: with the policy gone the balancer only looks deleted; no second one may come of it.
func TestPolicyRevokedMakesNoSecondBalancer(t *testing.T) {
	onBothKinds(t, ocisim.Options{}, func(r *rig, kind oci.BalancerKind) {
		nodes := r.nodes(1)
		svc := r.mustSync(r.service("web", kind, 80), nodes)
		restore := r.region.Deny(ocisim.Policy{ResourceType: resourceType(kind), Verb: ocisim.Inspect})
		time.Sleep(time.Hour)
		for range 5 {
			_, err := r.m.Ensure(r.Context(), svc, nodes)
			var refusal *loadbalancer.Refusal
			if !errors.As(err, &refusal) {
				r.Fatalf("got %v, want a refusal", err)
			}
			if _, exists, err := r.m.Exists(r.Context(), svc); err == nil && !exists {
				r.Error("the balancer seems not to exist")
			}
			time.Sleep(time.Minute)
		}
		r.equal("creates", r.count(creation(kind)), 1)
		series := r.oneSeries(loadbalancer.ReasonCloudError, "404 NotAuthorizedOrNotFound", "opc-request-id", "manage "+resourceType(kind))
		if series.count < 5 {
			r.Errorf("the event was counted %d times", series.count)
		}
		restore()
		r.mustSync(svc, nodes)
		r.only()
	})
}

// C025: whatever happens to lookups and answers, there is one balancer in the end.
func TestOneBalancerOnly(t *testing.T) {
	if testing.Short() {
		t.Skip("long, and nothing runs at the same time in it: in make test-long")
	}
	type fixture = func(r *rig, kind oci.BalancerKind)
	fault := func(f ocisim.Fault, creates bool) fixture {
		return func(r *rig, kind oci.BalancerKind) {
			f.Operation = listing(kind)
			if creates {
				f.Operation = creation(kind)
			}
			r.region.Fault(f)
		}
	}
	none := func(*rig, oci.BalancerKind) {}
	tests := map[string]struct {
		options        ocisim.Options
		before, during fixture
	}{
		"list fails": {before: fault(ocisim.Fault{Nth: 1, Times: 12, Status: 500}, false)},
		"ours is on a late page": {
			options: ocisim.Options{PageSize: 2, ShortPages: 0.5},
			before: func(r *rig, kind oci.BalancerKind) {
				for i := range 7 {
					r.mustSync(r.service(fmt.Sprintf("other-%d", i), kind, 80), nil)
				}
			},
		},
		"answer lost":                   {before: fault(ocisim.Fault{Nth: 1, Drop: ocisim.AfterApply}, true)},
		"answer lost, and every repeat": {before: fault(ocisim.Fault{Nth: 1, Times: 20, Drop: ocisim.AfterApply}, true)},
		"answer is 500 though applied":  {before: fault(ocisim.Fault{Nth: 1, Times: 20, Status: 500, Applied: true}, true)},
		"answer broken":                 {before: fault(ocisim.Fault{Nth: 1, HalfBody: true}, true)},
		"request lost":                  {before: fault(ocisim.Fault{Nth: 1, Times: 3, Drop: ocisim.BeforeApply}, true)},
		"eventual consistency":          {options: ocisim.Options{EventualReads: 5}},
		"eventual consistency, lost answer": {
			options: ocisim.Options{EventualReads: 5},
			before:  fault(ocisim.Fault{Nth: 1, Times: 20, Drop: ocisim.AfterApply}, true),
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			onBothKinds(t, test.options, func(r *rig, kind oci.BalancerKind) {
				nodes := r.nodes(1)
				if test.before == nil {
					test.before = none
				}
				test.before(r, kind)
				svc := r.mustSync(r.service("web", kind, 80), nodes)
				ours := 0
				for _, b := range r.live() {
					if b.Freeform[loadbalancer.TagOwner] == "uid-web" {
						ours++
					}
				}
				r.equal("balancers", ours, 1)
				if err := r.m.Delete(r.Context(), svc); err != nil {
					r.Error(err)
				}
			})
		})
	}
}

// C025: the spec changes after the answer to a create was lost. The token is another one then, so the first create must
// have shown up, or not, before.
func TestSpecChangesAfterLostAnswer(t *testing.T) {
	for _, applied := range []bool{true, false} {
		t.Run(fmt.Sprintf("applied %t", applied), func(t *testing.T) {
			onBothKinds(t, ocisim.Options{EventualReads: 2}, func(r *rig, kind oci.BalancerKind) {
				nodes := r.nodes(1)
				moment := ocisim.BeforeApply
				if applied {
					moment = ocisim.AfterApply
				}
				heal := r.region.Fault(ocisim.Fault{Operation: creation(kind), Drop: moment})
				svc := r.service("web", kind, 80)
				if _, err := r.m.Ensure(r.Context(), svc, nodes); err == nil {
					r.Fatal("no error")
				}
				heal()
				r.edit(svc, func(s *v1.Service) { s.Spec.Ports[0].NodePort = 31234 })
				r.mustSync(svc, nodes)
				r.equal("backend port", r.only().BackendSets["TCP-80"].Backends[0].Port, 31234)
			})
		})
	}
}

// C025 (e), C026: a process that is killed or loses its lease after the create, and the next one.
func TestHandOverWhileCreating(t *testing.T) {
	onBothKinds(t, ocisim.Options{}, func(r *rig, kind oci.BalancerKind) {
		nodes := r.nodes(1)
		svc := r.service("web", kind, 80)
		ctx, kill := context.WithCancel(r.Context())
		old := r.m
		done := make(chan struct{})
		go func() {
			defer close(done)
			_, _ = old.Ensure(ctx, svc, nodes)
		}()
		time.Sleep(2 * time.Second)
		r.restart()
		r.mustSync(svc, nodes)
		kill()
		<-done
		r.equal("creates", r.count(creation(kind)), 1)
		r.only()
	})
}

// C025 (f): a recorded OCID of a balancer that is gone, or that is somebody else's, is no more than a hint.
func TestRecordedOCIDIsOnlyAHint(t *testing.T) {
	onBothKinds(t, ocisim.Options{}, func(r *rig, kind oci.BalancerKind) {
		nodes := r.nodes(1)
		first := r.mustSync(r.service("first", kind, 80), nodes)
		theirs := r.only()
		svc := r.service("web", kind, 80)
		r.edit(svc, annotate(loadbalancer.AnnotationOCID, theirs.ID))
		svc = r.mustSync(svc, nodes)
		if got := svc.Annotations[loadbalancer.AnnotationOCID]; got == theirs.ID {
			r.Error("took over the balancer of another Service")
		}
		r.equal("events", len(r.cluster.series(loadbalancer.ReasonNotOurs)), 1)
		r.equal("balancers", len(r.live()), 2)
		r.unchanged(first, nodes)

		r.edit(svc, annotate(loadbalancer.AnnotationOCID, "ocid1.instance.oc1.iad.x"))
		r.mustSync(svc, nodes)
		r.equal("balancers", len(r.live()), 2)
	})
}

// C025: of two balancers of one Service the oldest that works is used; the other one is named, not touched.
func TestSeveralBalancers(t *testing.T) {
	onBothKinds(t, ocisim.Options{}, func(r *rig, kind oci.BalancerKind) {
		nodes := r.nodes(1)
		svc := r.service("web", kind, 80)
		legacy := r.legacyBalancer(svc, kind)
		time.Sleep(time.Hour)
		younger := r.legacyBalancer(svc, kind)
		svc = r.mustSync(svc, nodes)
		r.equal("used", svc.Annotations[loadbalancer.AnnotationOCID], legacy)
		r.equal("balancers", len(r.live()), 2)
		r.oneSeries(loadbalancer.ReasonSeveralBalancers, legacy, younger)
		r.unchanged(svc, nodes)
		if err := r.m.Delete(r.Context(), svc); err != nil {
			r.Error(err)
		}
		r.equal("balancers after the deletion", len(r.live()), 0)
	})
}

// A balancer of the existing implementation is adopted without a write when nothing differs, and marked with the first
// write that is needed (C060: then it is found whatever its name is).
func TestAdoption(t *testing.T) {
	onBothKinds(t, ocisim.Options{}, func(r *rig, kind oci.BalancerKind) {
		nodes := r.nodes(2)
		svc := r.service("web", kind, 80)
		svc.CreationTimestamp = metav1.NewTime(time.Now().Add(-time.Hour))
		r.cluster.put(svc)
		id := r.legacyBalancer(svc, kind)
		r.mustUpdateBackends(svc, nodes)
		if b := r.only(); b.Freeform[loadbalancer.TagOwner] != "" {
			r.Error("a change of nodes marked the balancer")
		}
		r.region.ResetCalls()
		svc = r.mustSync(svc, nodes)
		r.equal("writes of the first sync", written(r.region.Calls()), []string{})
		r.equal("recorded", svc.Annotations[loadbalancer.AnnotationOCID], id)

		r.edit(svc, func(s *v1.Service) { s.Spec.Ports[0].NodePort = 31234 })
		svc = r.mustSync(svc, nodes)
		r.equal("mark", r.only().Freeform[loadbalancer.TagOwner], "uid-web")
		r.equal("balancer", r.only().ID, id)
		r.noEvents()

		r.rename(id, "renamed by hand")
		r.edit(svc, func(s *v1.Service) { delete(s.Annotations, loadbalancer.AnnotationOCID) })
		r.restart()
		nodes = append(nodes, r.node("node-3"))
		r.mustSync(svc, nodes)
		r.equal("after the new name", r.only().ID, id)
		r.equal("backends", r.backends("TCP-80"), addressesOf(nodes...))
	})
}

// C033: a process that meets a balancer that is being created waits for it; others are not held up.
func TestRestartWhileCreating(t *testing.T) {
	slow := ocisim.Range{Min: 90 * time.Second, Max: 90 * time.Second}
	onBothKinds(t, ocisim.Options{Durations: map[string]ocisim.Range{"loadbalancer.create": slow, "networkloadbalancer.create": slow}}, func(r *rig, kind oci.BalancerKind) {
		nodes := r.nodes(1)
		svc := r.service("web", kind, 80)
		began := time.Now()
		_, err := r.m.Ensure(r.Context(), svc, nodes)
		var pending *loadbalancer.Pending
		if !errors.As(err, &pending) {
			r.Fatalf("got %v, want Pending", err)
		}
		if held := time.Since(began); held > 16*time.Second {
			r.Errorf("the caller was held for %v", held)
		}
		r.restart()
		began = time.Now()
		if _, err := r.m.Ensure(r.Context(), svc, nodes); !errors.As(err, &pending) {
			r.Fatalf("new process: got %v, want Pending", err)
		}
		if held := time.Since(began); held > 16*time.Second {
			r.Errorf("the caller of the new process was held for %v", held)
		}
		r.mustSync(svc, nodes)
		r.equal("creates", r.count(creation(kind)), 1)
		r.noEvents()
		r.unchanged(svc, nodes)
	})
}
