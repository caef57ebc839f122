// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package loadbalancer_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/oracle/oci-cloud-controller-manager/pkg/loadbalancer"
	"github.com/oracle/oci-cloud-controller-manager/pkg/oci"
	"github.com/oracle/oci-cloud-controller-manager/test/ocisim"
)

const replaceKey = prefixCommon + "load-balancer-replace"

func otherKind(kind oci.BalancerKind) oci.BalancerKind {
	if kind == oci.KindLB {
		return oci.KindNLB
	}
	return oci.KindLB
}

// moves are the changes that replace a balancer.
func (r *rig) moves(kind oci.BalancerKind) map[string]func(*v1.Service) {
	toType := annotate(prefixCommon+"load-balancer-type", string(otherKind(kind)))
	toCompartment := annotate(prefixCommon+"compartment-id", r.other)
	return map[string]func(*v1.Service){
		"type":        toType,
		"compartment": toCompartment,
		"both":        func(s *v1.Service) { toType(s); toCompartment(s) },
	}
}

func onMoves(t *testing.T, seed uint64, test func(r *rig, kind oci.BalancerKind, move func(*v1.Service))) {
	t.Helper()
	for _, name := range []string{"type", "compartment", "both"} {
		t.Run(name, func(t *testing.T) {
			onBothKinds(t, ocisim.Options{Seed: seed, Durations: fixed(3 * time.Second)}, func(r *rig, kind oci.BalancerKind) {
				test(r, kind, r.moves(kind)[name])
			})
		})
	}
}

// settle syncs as the framework does after it has written a status: until nothing is left to do.
func (r *rig) settle(svc *v1.Service, nodes []*v1.Node) *v1.Service {
	r.Helper()
	for range 3 {
		svc = r.mustSync(svc, nodes)
	}
	return svc
}

// C042: with the opt-in, another type or compartment means another balancer: the new one is in the status before the old one
// goes. Nothing but that is written, and nothing is told.
func TestReplacement(t *testing.T) {
	onMoves(t, 101, func(r *rig, kind oci.BalancerKind, move func(*v1.Service)) {
		nodes := r.nodes(2)
		svc := r.service("web", kind, 80)
		svc = r.mustSync(svc, nodes)
		old := r.only()
		addresses := svc.Status.LoadBalancer.String()
		r.region.OnCall(func(c ocisim.Call) {
			if c.Operation == deletion(old.Kind) && c.Status > 0 && c.Status < 300 && r.cluster.get(svc.UID).Status.LoadBalancer.String() == addresses {
				r.Error("the old balancer was deleted while it was in the status")
			}
		})
		r.edit(svc, annotate(replaceKey, "True"))
		r.unchanged(svc, nodes)
		r.edit(svc, move)
		svc = r.mustSync(svc, nodes)
		if svc.Status.LoadBalancer.String() == addresses {
			r.Error("the status has the old addresses")
		}
		svc = r.settle(svc, nodes)
		b := r.only()
		if b.ID == old.ID {
			r.Fatal("the balancer was not replaced")
		}
		r.equal("kind", b.Kind, loadbalancer.WantedKind(svc.Annotations))
		if want := svc.Annotations[prefixCommon+"compartment-id"]; want != "" {
			r.equal("compartment", b.CompartmentID, want)
		}
		r.equal("recorded", svc.Annotations[loadbalancer.AnnotationOCID], b.ID)
		r.equal("backends", r.backends("TCP-80"), addressesOf(nodes...))
		r.unchanged(svc, nodes)
		r.noEvents()
		if !r.drop(r.Context(), r.condemn(svc)) {
			r.Error("not deleted")
		}
		r.equal("balancers", len(r.live()), 0)
	})
}

// Without the opt-in, it is one event, and nothing else.
func TestNoReplacementWithoutOptIn(t *testing.T) {
	onMoves(t, 102, func(r *rig, kind oci.BalancerKind, move func(*v1.Service)) {
		nodes := r.nodes(1)
		svc := r.mustSync(r.service("web", kind, 80), nodes)
		old := r.only()
		r.region.ResetCalls()
		r.edit(svc, annotate(replaceKey, "false"))
		r.edit(svc, move)
		for range 3 {
			r.mustSync(svc, nodes)
		}
		r.equal("count", r.oneSeries(loadbalancer.ReasonImmutable, replaceKey).count, 1)
		r.equal("balancer", r.only().ID, old.ID)
		r.equal("writes", written(r.region.Calls()), []string{})
	})
}

// A deletion in the middle of a replacement deletes both balancers.
func TestDeleteWhileReplacing(t *testing.T) {
	for _, after := range []time.Duration{time.Second, 2500 * time.Millisecond, time.Hour} {
		onMoves(t, 103, func(r *rig, kind oci.BalancerKind, move func(*v1.Service)) {
			nodes := r.nodes(1)
			svc := r.mustSync(r.service("web", kind, 80), nodes)
			r.edit(svc, annotate(replaceKey, "true"))
			r.edit(svc, move)
			if after < time.Hour {
				r.interrupted(after, svc, nodes)
			} else {
				r.mustSync(svc, nodes)
				r.equal("balancers", len(r.live()), 2)
			}
			r.restart()
			if !r.drop(r.Context(), r.condemn(svc)) {
				r.Error("not deleted")
			}
			time.Sleep(5 * time.Minute)
			r.equal("balancers", len(r.live()), 0)
		})
	}
}

// A replacement that is taken back before it is done leaves the old balancer; one that is done and taken back leads to a third
// one.
func TestReplacementTakenBack(t *testing.T) {
	onMoves(t, 104, func(r *rig, kind oci.BalancerKind, move func(*v1.Service)) {
		nodes := r.nodes(1)
		svc := r.mustSync(r.service("web", kind, 80), nodes)
		old := r.only()
		back := svc.DeepCopy().Annotations
		r.edit(svc, annotate(replaceKey, "true"))
		r.edit(svc, move)
		r.interrupted(time.Second, svc, nodes)
		r.restart()
		r.edit(svc, func(s *v1.Service) {
			for _, key := range []string{prefixCommon + "compartment-id", prefixCommon + "load-balancer-type"} {
				delete(s.Annotations, key)
				if value, had := back[key]; had {
					s.Annotations[key] = value
				}
			}
		})
		r.settle(svc, nodes)
		time.Sleep(5 * time.Minute)
		r.equal("balancer", r.only().ID, old.ID)
		r.unchanged(svc, nodes)
		r.noEvents()
	})
}

// Until the successor is in use, the old balancer follows the nodes and the Service, also if the successor cannot be made.
func TestOldBalancerServesWhileReplacing(t *testing.T) {
	onBothKinds(t, ocisim.Options{Seed: 105}, func(r *rig, kind oci.BalancerKind) {
		nodes := r.nodes(1)
		svc := r.mustSync(r.service("web", kind, 80), nodes)
		old := r.only()
		other := otherKind(kind)
		heal := r.region.Fault(ocisim.Fault{Operation: creation(other), Status: 400, Code: "LimitExceeded", Message: "no more"})
		r.edit(svc, annotate(replaceKey, "true"))
		r.edit(svc, annotate(prefixCommon+"load-balancer-type", string(other)))
		if err := r.sync(svc, nodes, time.Minute); err == nil {
			r.Fatal("no error")
		}
		r.edit(svc, func(s *v1.Service) { s.Spec.Ports[0].NodePort = 31234 })
		nodes = append(nodes, r.node("node-2"))
		_ = r.sync(svc, nodes, time.Minute)
		r.equal("balancer", r.only().ID, old.ID)
		r.equal("port", r.only().BackendSets["TCP-80"].Backends[0].Port, 31234)
		nodes = append(nodes, r.node("node-3"))
		r.mustUpdateBackends(svc, nodes)
		r.equal("backends", r.backends("TCP-80"), addressesOf(nodes...))
		if n := len(r.cluster.series(loadbalancer.ReasonLimitExceeded)); n != 1 {
			r.Errorf("events %v", r.cluster.events)
		}
		heal()
		r.settle(svc, nodes)
		r.equal("kind", r.only().Kind, other)
		r.equal("backends", r.backends("TCP-80"), addressesOf(nodes...))
	})
}

// The prefix of display names, which comes from the environment, changes: the balancer is found, keeps its name, and is deleted.
func TestPrefixChange(t *testing.T) {
	onBothKinds(t, ocisim.Options{Seed: 106}, func(r *rig, kind oci.BalancerKind) {
		for i, prefix := range []string{"", "team1", "team2-"} {
			r.cfg.DisplayNamePrefix = prefix
			r.restart()
			nodes := r.nodes(1)
			svc := r.service(fmt.Sprintf("web-%d", i), kind, 80)
			id := r.legacyBalancer(svc, kind) // by its name only
			r.cfg.DisplayNamePrefix = "another"
			r.restart()
			svc = r.mustSync(svc, nodes)
			r.equal("balancer", r.only().ID, id)
			r.edit(svc, func(s *v1.Service) { delete(s.Annotations, loadbalancer.AnnotationOCID) })
			if !r.drop(r.Context(), r.condemn(svc)) {
				r.Error("not deleted")
			}
			r.equal("balancers", len(r.live()), 0)
		}
		r.noEvents()
	})
}

// Killed with any of its calls, a replacement ends with one balancer.
func TestReplacementKilledAnywhere(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long: make test-long runs it, without the race detector")
	}
	for _, applied := range []bool{false, true} {
		onMoves(t, 107, func(r *rig, kind oci.BalancerKind, move func(*v1.Service)) {
			nodes := r.nodes(2)
			for call := 1; ; call++ {
				r.restart()
				svc := r.service(fmt.Sprintf("web-%d", call), kind, 80)
				svc = r.mustSync(svc, nodes)
				r.edit(svc, annotate(replaceKey, "true"))
				r.edit(svc, move)
				point := &ocisim.KillPoint{Call: call, Applied: applied}
				ctx, network := point.Process(r.Context(), r.region.Transport())
				dying := r.newManager(network)
				var err error
				for range 3 {
					if err = drive(ctx, dying, r.cluster, svc, nodes, 30*time.Minute); err != nil {
						break
					}
				}
				reached := point.Reached()
				if !reached && err != nil {
					r.Errorf("call %d: not killed, but: %v", call, err)
				}
				r.restart()
				svc = r.settle(svc, nodes)
				b := r.only()
				if b.Kind != loadbalancer.WantedKind(svc.Annotations) || svc.Annotations[loadbalancer.AnnotationOCID] != b.ID {
					r.Errorf("%s: %s of type %s, recorded %s", point, b.ID, b.Kind, svc.Annotations[loadbalancer.AnnotationOCID])
				}
				if want := svc.Annotations[prefixCommon+"compartment-id"]; want != "" && want != b.CompartmentID {
					r.Errorf("%s: the balancer is in %s", point, b.CompartmentID)
				}
				if !slices.ContainsFunc(b.Addresses, func(a oci.BalancerAddress) bool { return a.IP == svc.Status.LoadBalancer.Ingress[0].IP }) {
					r.Errorf("%s: status %v", point, svc.Status.LoadBalancer)
				}
				r.unchanged(svc, nodes)
				if err := r.m.Delete(r.Context(), svc); err != nil {
					r.Errorf("%s: delete: %v", point, err)
				}
				r.equal("balancers after the deletion", len(r.live()), 0)
				r.cluster.remove(svc.UID)
				if !reached {
					break
				}
			}
			time.Sleep(5 * time.Minute)
		})
	}
}
