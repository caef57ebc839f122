// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package loadbalancer_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/oracle/oci-cloud-controller-manager/pkg/loadbalancer"
	"github.com/oracle/oci-cloud-controller-manager/pkg/oci"
	"github.com/oracle/oci-cloud-controller-manager/test/ocisim"
)

// C020: no usable backend out of some nodes is an error until one is usable; some out of more is a warning.
func TestNodesWithoutProviderID(t *testing.T) {
	onBothKinds(t, ocisim.Options{}, func(r *rig, kind oci.BalancerKind) {
		nodes := r.nodes(2)
		ids := []string{nodes[0].Spec.ProviderID, nodes[1].Spec.ProviderID}
		nodes[0].Spec.ProviderID, nodes[1].Spec.ProviderID = "", ""
		svc := r.service("web", kind, 80)

		_, err := r.m.Ensure(r.Context(), svc, nodes)
		var refusal *loadbalancer.Refusal
		if !errors.As(err, &refusal) {
			r.Fatalf("got %v, want a refusal", err)
		}
		r.oneSeries(loadbalancer.ReasonNoUsableNodes, "node-1: it has no providerID yet", "node-2: it has no providerID yet")
		r.equal("condition", r.cluster.condition(svc.UID), "False NoUsableNodes")
		r.equal("balancers", len(r.live()), 0)

		nodes[0].Spec.ProviderID = ids[0]
		r.mustSync(svc, nodes)
		r.equal("backends", r.backends("TCP-80"), addressesOf(nodes[0]))
		skipped := r.cluster.series(loadbalancer.ReasonNodesSkipped)
		if len(skipped) != 1 || skipped[0].count != 1 {
			r.Errorf("events about skipped nodes: %v", skipped)
		}
		nodes[1].Spec.ProviderID = ids[1]
		r.mustUpdateBackends(svc, nodes)
		r.equal("backends", r.backends("TCP-80"), addressesOf(nodes...))
	})
}

// A live balancer keeps its backends when a fault makes every node unusable.
func TestUnusableNodesNeverEmptyABalancer(t *testing.T) {
	onBothKinds(t, ocisim.Options{}, func(r *rig, kind oci.BalancerKind) {
		nodes := r.nodes(2)
		svc := r.service("web", kind, 80)
		r.mustSync(svc, nodes)
		var broken []*v1.Node
		for _, n := range nodes {
			n = n.DeepCopy()
			n.Spec.ProviderID = "aws:///zone/i-123"
			broken = append(broken, n)
		}
		r.region.ResetCalls()
		var refusal *loadbalancer.Refusal
		if err := r.m.UpdateBackends(r.Context(), svc, broken); !errors.As(err, &refusal) {
			r.Errorf("update: got %v, want a refusal", err)
		}
		if _, err := r.m.Ensure(r.Context(), svc, broken); !errors.As(err, &refusal) {
			r.Errorf("ensure: got %v, want a refusal", err)
		}
		r.equal("writes", written(r.region.Calls()), []string{})
		r.equal("backends", r.backends("TCP-80"), addressesOf(nodes...))
	})
}

// C021: the node whose instance is terminated is left out; the others and a new one are backends.
func TestTerminatedInstance(t *testing.T) {
	onBothKinds(t, ocisim.Options{}, func(r *rig, kind oci.BalancerKind) {
		nodes := r.nodes(5)
		svc := r.service("web", kind, 80)
		r.mustSync(svc, nodes)
		if err := r.region.Foreign().TerminateInstance(nodes[2].Spec.ProviderID[len("oci://"):]); err != nil {
			r.Fatal(err)
		}
		time.Sleep(5 * time.Minute)
		nodes = append(nodes, r.node("node-6"))
		r.mustUpdateBackends(svc, nodes)
		r.equal("backends", r.backends("TCP-80"), addressesOf(nodes[0], nodes[1], nodes[3], nodes[4], nodes[5]))
		r.oneSeries(loadbalancer.ReasonNodesSkipped, "node-3: its instance is terminated")
	})
}

// C022: readiness plays no part.
func TestReadinessPlaysNoPart(t *testing.T) {
	onBothKinds(t, ocisim.Options{}, func(r *rig, kind oci.BalancerKind) {
		nodes := r.nodes(3)
		svc := r.service("web", kind, 80)
		r.mustSync(svc, nodes)
		r.region.ResetCalls()
		for _, ready := range []v1.ConditionStatus{v1.ConditionFalse, v1.ConditionUnknown, v1.ConditionTrue} {
			for _, n := range nodes {
				n.Status.Conditions = []v1.NodeCondition{{Type: v1.NodeReady, Status: ready}}
			}
			r.mustUpdateBackends(svc, nodes)
			r.mustSync(svc, nodes)
		}
		r.equal("writes", written(r.region.Calls()), []string{})
	})
}

// C022: who waits for the lock of a Service works with the nodes of now, not with those of when it was called.
func TestSlowNodeSyncDoesNotOverwrite(t *testing.T) {
	onBothKinds(t, ocisim.Options{Durations: map[string]ocisim.Range{
		"loadbalancer.update":        {Min: 5 * time.Second, Max: 5 * time.Second},
		"networkloadbalancer.update": {Min: 5 * time.Second, Max: 5 * time.Second},
	}}, func(r *rig, kind oci.BalancerKind) {
		old := r.nodes(3)
		svc := r.service("web", kind, 80)
		r.mustSync(svc, old)
		now := append(slices.Clone(old[1:]), r.node("node-4"))
		r.nodesNow = now
		r.restart()

		first := make(chan error, 1)
		go func() { first <- r.updateBackends(svc, now) }()
		time.Sleep(time.Second)
		if err := r.updateBackends(svc, old); err != nil { // a sync that was started earlier and comes later
			r.Error(err)
		}
		if err := <-first; err != nil {
			r.Error(err)
		}
		r.equal("backends", r.backends("TCP-80"), addressesOf(now...))
	})
}

// No eligible node at all is no fault: the balancer is made, with empty sets, and the user is told.
func TestNoNodes(t *testing.T) {
	onBothKinds(t, ocisim.Options{}, func(r *rig, kind oci.BalancerKind) {
		svc := r.service("web", kind, 80, 443)
		r.mustSync(svc, nil)
		r.equal("backends", r.backends("TCP-443"), []string{})
		r.oneSeries(loadbalancer.ReasonNoEligibleNodes)
		r.unchanged(svc, nil)
		nodes := r.nodes(2)
		r.mustUpdateBackends(svc, nodes)
		r.equal("backends", r.backends("TCP-443"), addressesOf(nodes...))
		r.mustUpdateBackends(svc, nil)
		r.equal("backends", r.backends("TCP-443"), []string{})
		r.equal("listeners", len(r.only().Listeners), 2)
	})
}

// C064: selectors.
func TestNodeSelector(t *testing.T) {
	onBothKinds(t, ocisim.Options{}, func(r *rig, kind oci.BalancerKind) {
		key := prefixCommon + "node-label-selector"
		if kind == oci.KindNLB {
			key = prefixNLB + "node-label-selector"
		}
		nodes := r.nodes(4)
		nodes[0].Labels["pool"] = "a"
		nodes[1].Labels["pool"] = "a"
		nodes[2].Labels["pool"] = "b"
		svc := r.service("web", kind, 80)
		r.edit(svc, annotate(key, "pool=a,tier!=db"))
		r.mustSync(svc, nodes)
		r.equal("backends", r.backends("TCP-80"), addressesOf(nodes[0], nodes[1]))

		nodes[1].Labels["tier"] = "db"
		r.mustUpdateBackends(svc, nodes)
		r.equal("after a label", r.backends("TCP-80"), addressesOf(nodes[0]))
		r.noEvents()

		r.edit(svc, annotate(key, "pool in (a"))
		var refusal *loadbalancer.Refusal
		if err := r.m.UpdateBackends(r.Context(), svc, nodes[1:]); !errors.As(err, &refusal) {
			r.Errorf("invalid selector: got %v, want a refusal", err)
		}
		r.equal("after an invalid selector", r.backends("TCP-80"), addressesOf(nodes[0]))
		r.oneSeries(loadbalancer.ReasonInvalidAnnotation, key)

		r.edit(svc, annotate(key, "pool=none"))
		r.mustSync(svc, nodes)
		r.equal("after a selector without match", r.backends("TCP-80"), addressesOf(nodes[0]))
		r.equal("events", len(r.cluster.series(loadbalancer.ReasonNoNodeSelected)), 1)

		r.edit(svc, func(s *v1.Service) { delete(s.Annotations, key) })
		r.mustSync(svc, nodes)
		r.equal("without selector", r.backends("TCP-80"), addressesOf(nodes...))
	})
}

// A backend that was drained by hand stays drained when nodes come and go, and when its node port changes.
func TestDrainedBackendStaysDrained(t *testing.T) {
	onBothKinds(t, ocisim.Options{}, func(r *rig, kind oci.BalancerKind) {
		nodes := r.nodes(2)
		svc := r.service("web", kind, 80)
		r.mustSync(svc, nodes)
		drained := nodes[0].Status.Addresses[0].Address
		r.drain("TCP-80", drained)
		flags := func() map[string]bool {
			out := map[string]bool{}
			for _, b := range r.only().BackendSets["TCP-80"].Backends {
				out[b.IP] = b.Drain && b.Weight == 3
			}
			return out
		}
		nodes = append(nodes, r.node("node-3"))
		r.mustUpdateBackends(svc, nodes)
		r.equal("drained with a new node", flags()[drained], true)
		r.edit(svc, func(s *v1.Service) { s.Spec.Ports[0].NodePort = 31111 })
		r.mustSync(svc, nodes)
		r.equal("drained at a new node port", flags()[drained], true)
		r.equal("the others", flags()[nodes[1].Status.Addresses[0].Address], false)
	})
}
