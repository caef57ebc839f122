// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package loadbalancer_test

import (
	"slices"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/oracle/oci-cloud-controller-manager/pkg/loadbalancer"
	"github.com/oracle/oci-cloud-controller-manager/pkg/oci"
	"github.com/oracle/oci-cloud-controller-manager/test/ocisim"
)

// The way of a plain Service: one create with everything, no event, no second write, one read per sync, nothing left
// after its deletion (P4, P5).
func TestLifecycle(t *testing.T) {
	onBothKinds(t, ocisim.Options{Seed: 1}, func(r *rig, kind oci.BalancerKind) {
		nodes := r.nodes(3)
		svc := r.service("web", kind, 80, 443, 8080)
		began := time.Now()
		svc = r.mustSync(svc, nodes)
		creation := "CreateLoadBalancer"
		if kind == oci.KindNLB {
			creation = "CreateNetworkLoadBalancer"
		}
		r.equal("writes", written(r.region.Calls()), []string{creation})
		if took := time.Since(began); took > 70*time.Second {
			r.Errorf("took %v", took)
		}
		b := r.only()
		r.equal("kind", b.Kind, kind)
		r.equal("display name", b.DisplayName, loadbalancer.DisplayName(svc, kind, ""))
		r.equal("marks", b.Freeform, map[string]string{"oci-k8s-cluster": clusterID, "oci-k8s-owner": "uid-web"})
		for _, name := range []string{"TCP-80", "TCP-443", "TCP-8080"} {
			r.equal("backends of "+name, r.backends(name), addressesOf(nodes...))
			r.equal("listener "+name, b.Listeners[name].BackendSetName, name)
		}
		if kind == oci.KindLB {
			r.equal("shape", *b.Shape, oci.Shape{Name: "flexible", MinMbps: 10, MaxMbps: 100})
		}
		if len(svc.Status.LoadBalancer.Ingress) != 1 {
			r.Errorf("status %v, want one address", svc.Status.LoadBalancer)
		}
		r.equal("recorded OCID", svc.Annotations[loadbalancer.AnnotationOCID], b.ID)
		r.equal("condition", r.cluster.condition(svc.UID), "True Synced")
		r.noEvents()
		r.unchanged(svc, nodes)
		r.equal("annotation writes", r.cluster.saves, 1)

		_, exists, err := r.m.Exists(r.Context(), svc)
		if !exists || err != nil {
			r.Errorf("exists %v, %v", exists, err)
		}
		if err := r.m.Delete(r.Context(), svc); err != nil {
			r.Errorf("delete: %v", err)
		}
		if left := r.live(); len(left) > 0 {
			r.Errorf("left: %v", left)
		}
		_, exists, err = r.m.Exists(r.Context(), svc)
		if exists || err != nil {
			r.Errorf("after the deletion: exists %v, %v", exists, err)
		}
		if err := r.m.Delete(r.Context(), svc); err != nil {
			r.Errorf("second delete: %v", err)
		}
		r.noEvents()
	})
}

// P6, P7: what a change writes.
func TestChanges(t *testing.T) {
	onBothKinds(t, ocisim.Options{Seed: 2}, func(r *rig, kind oci.BalancerKind) {
		nodes := r.nodes(3)
		svc := r.service("web", kind, 80, 443)
		r.mustSync(svc, nodes)

		step := func(what string, do func(), want ...string) {
			r.Helper()
			r.region.ResetCalls()
			do()
			got := written(r.region.Calls())
			if kind == oci.KindLB { // its changes run side by side; which ones wait for which, the tests of plans say
				slices.Sort(got)
				slices.Sort(want)
			}
			r.equal(what, got, want)
			r.unchanged(svc, nodes)
		}
		step("add a port", func() {
			r.edit(svc, func(s *v1.Service) {
				s.Spec.Ports = append(s.Spec.Ports, v1.ServicePort{Name: "new", Protocol: v1.ProtocolTCP, Port: 81, NodePort: 30081})
			})
			r.mustSync(svc, nodes)
		}, "CreateBackendSet", "CreateListener")
		step("remove a port", func() {
			r.edit(svc, func(s *v1.Service) { s.Spec.Ports = s.Spec.Ports[:2] })
			r.mustSync(svc, nodes)
		}, "DeleteListener", "DeleteBackendSet")
		step("replace a port", func() {
			r.edit(svc, func(s *v1.Service) { s.Spec.Ports[0].Port = 82 })
			r.mustSync(svc, nodes)
		}, "CreateBackendSet", "DeleteListener", "CreateListener", "DeleteBackendSet")
		step("swap node ports", func() {
			r.edit(svc, func(s *v1.Service) {
				p := s.Spec.Ports
				p[0].NodePort, p[1].NodePort = p[1].NodePort, p[0].NodePort
			})
			r.mustSync(svc, nodes)
		}, "UpdateBackendSet", "UpdateBackendSet")
		step("swap ports", func() {
			r.edit(svc, func(s *v1.Service) {
				p := s.Spec.Ports
				p[0].Port, p[1].Port = p[1].Port, p[0].Port
			})
			r.mustSync(svc, nodes)
		}, "UpdateBackendSet", "UpdateBackendSet")
		step("rename a port", func() {
			r.edit(svc, func(s *v1.Service) { s.Spec.Ports[0].Name = "renamed" })
			r.mustSync(svc, nodes)
		})
		step("node added", func() {
			nodes = append(nodes, r.node("node-4"))
			r.mustUpdateBackends(svc, nodes)
		}, "UpdateBackendSet", "UpdateBackendSet")
		r.equal("backends", r.backends("TCP-82"), addressesOf(nodes...))
		step("local traffic policy", func() {
			r.edit(svc, func(s *v1.Service) {
				s.Spec.ExternalTrafficPolicy = v1.ServiceExternalTrafficPolicyLocal
				s.Spec.HealthCheckNodePort = 32555
			})
			r.mustSync(svc, nodes)
		}, "UpdateBackendSet", "UpdateBackendSet")
		r.equal("health port", r.only().BackendSets["TCP-82"].Checker.Port, 32555)
		r.noEvents()
	})
}
