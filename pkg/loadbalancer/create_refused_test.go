// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package loadbalancer_test

import (
	"fmt"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/oracle/oci-cloud-controller-manager/pkg/loadbalancer"
	"github.com/oracle/oci-cloud-controller-manager/pkg/oci"
	"github.com/oracle/oci-cloud-controller-manager/test/ocisim"
)

// C034: the cause in the work request's error list reaches the user; the failed balancer is removed, and the next try is
// slow.
func TestCreationFails(t *testing.T) {
	onBothKinds(t, ocisim.Options{}, func(r *rig, kind oci.BalancerKind) {
		nodes := r.nodes(1)
		heal := r.region.Fault(ocisim.Fault{Operation: creation(kind), FailWork: true, Code: "BAD_INPUT", Message: "no free addresses in subnet s1"})
		svc := r.service("web", kind, 80)
		if err := r.sync(svc, nodes, 2*time.Minute); err == nil {
			r.Fatal("no error")
		}
		r.equal("condition", r.cluster.condition(svc.UID), "False WorkRequestFailed")
		r.equal("balancers", len(r.live()), 0)
		if err := r.sync(svc, nodes, 8*time.Minute); err == nil {
			r.Fatal("no error")
		}
		series := r.oneSeries(loadbalancer.ReasonWorkRequestFailed, "create the balancer", "BAD_INPUT", "no free addresses in subnet s1")
		if n := r.count(creation(kind)); n < 2 || n > 5 {
			r.Errorf("%d creates in 10 minutes, want 2 to 5", n)
		}
		if series.count < 2 {
			r.Errorf("the event was counted %d times", series.count)
		}
		heal()
		r.mustSync(svc, nodes)
		r.equal("state", r.only().State, "ACTIVE")
	})
}

// The same, met by a process that did not make the balancer.
func TestFailedBalancerIsReplaced(t *testing.T) {
	onBothKinds(t, ocisim.Options{}, func(r *rig, kind oci.BalancerKind) {
		nodes := r.nodes(1)
		r.region.Fault(ocisim.Fault{Operation: creation(kind), Nth: 1, FailWork: true, Code: "BAD_INPUT", Message: "no free addresses in subnet s1"})
		svc := r.service("web", kind, 80)
		r.interrupted(3*time.Second, svc, nodes)
		time.Sleep(5 * time.Minute)
		r.equal("state", r.only().State, "FAILED")
		r.restart()
		r.mustSync(svc, nodes)
		r.equal("state", r.only().State, "ACTIVE")
		if all := r.cluster.series(loadbalancer.ReasonBalancerFailed); len(all) != 1 {
			r.Errorf("events: %v", r.cluster.events)
		}
	})
}

// A balancer that is FAILED and may have served is nobody's to delete but its owner's.
func TestFailedAfterServingIsKept(t *testing.T) {
	simulate(t, ocisim.Options{}, func(r *rig) {
		nodes := r.nodes(1)
		svc := r.mustSync(r.service("web", oci.KindLB, 80), nodes)
		id := r.only().ID
		r.setState(id, "FAILED")
		if err := r.sync(svc, nodes, 10*time.Minute); err == nil {
			r.Error("no error")
		}
		r.equal("balancer", r.only().ID, id)
		r.oneSeries(loadbalancer.ReasonBalancerFailed, id)
	})
}

// C035: the default shape is flexible; a limit is told once and tried slowly.
func TestLimitExceeded(t *testing.T) {
	behaviour := ocisim.DefaultBehaviour()
	behaviour.ServiceLimits["lb-flexible-count"] = 0
	behaviour.ServiceLimits["lb-100mbps-count"] = 0
	simulate(t, ocisim.Options{Behaviour: behaviour}, func(r *rig) {
		nodes := r.nodes(1)
		svc := r.service("web", oci.KindLB, 80)
		if err := r.sync(svc, nodes, 10*time.Minute); err == nil {
			r.Fatal("no error")
		}
		if n := r.count("CreateLoadBalancer"); n < 2 || n > 5 {
			r.Errorf("%d creates in 10 minutes, want 2 to 5", n)
		}
		r.oneSeries(loadbalancer.ReasonLimitExceeded, "lb-flexible-count", "CreateLoadBalancer", "400 LimitExceeded", "opc-request-id")
		r.equal("condition", r.cluster.condition(svc.UID), "False LimitExceeded")

		// A change of the Service is tried at once.
		r.region.ResetCalls()
		r.edit(svc, annotate(prefixLB+"shape", "100Mbps"))
		if _, err := r.m.Ensure(r.Context(), svc, nodes); err == nil {
			r.Error("no error")
		}
		r.equal("creates after a change", r.count("CreateLoadBalancer"), 1)
	})
}

// C039: without a subnet nothing is written; the event says which key and which annotation are missing.
func TestNoSubnet(t *testing.T) {
	onBothKinds(t, ocisim.Options{}, func(r *rig, kind oci.BalancerKind) {
		r.cfg.Subnet1 = ""
		r.restart()
		nodes := r.nodes(1)
		key := prefixLB + "subnet1"
		if kind == oci.KindNLB {
			key = prefixNLB + "subnet"
		}
		svc := r.service("web", kind, 80)
		if _, err := r.m.Ensure(r.Context(), svc, nodes); err == nil {
			r.Fatal("no error")
		}
		r.oneSeries(loadbalancer.ReasonNoSubnet, "loadBalancer.subnet1", key)
		r.equal("writes", written(r.region.Calls()), []string{})
		r.edit(svc, annotate(key, r.public))
		r.mustSync(svc, nodes)
		r.equal("subnets", r.only().SubnetIDs, []string{r.public})
	})
}

// C040: a private subnet needs a private balancer; it is not made one silently.
func TestPrivateSubnet(t *testing.T) {
	onBothKinds(t, ocisim.Options{}, func(r *rig, kind oci.BalancerKind) {
		r.cfg.Subnet1 = r.private
		r.restart()
		key := prefixLB + "internal"
		if kind == oci.KindNLB {
			key = prefixNLB + "internal"
		}
		nodes := r.nodes(1)
		svc := r.service("web", kind, 80)
		if _, err := r.m.Ensure(r.Context(), svc, nodes); err == nil {
			r.Fatal("no error")
		}
		r.oneSeries(loadbalancer.ReasonPrivateSubnet, key, r.private)
		r.equal("creates", r.count(creation(kind)), 0)
		r.edit(svc, annotate(key, "TRUE"))
		svc = r.mustSync(svc, nodes)
		r.equal("private", r.only().Private, true)
		r.equal("status", len(svc.Status.LoadBalancer.Ingress), 1)
	})
}

// The limit of tags refuses the marks: the balancer is made without, and found by its name.
func TestNoRoomForMarks(t *testing.T) {
	onBothKinds(t, ocisim.Options{}, func(r *rig, kind oci.BalancerKind) {
		tags := map[string]string{}
		for i := range 9 {
			tags[fmt.Sprintf("key-%d", i)] = "value"
		}
		r.cfg.Tags = oci.Tags{Freeform: tags}
		r.restart()
		nodes := r.nodes(1)
		svc := r.mustSync(r.service("web", kind, 80), nodes)
		r.equal("tags", r.only().Freeform, tags)
		r.oneSeries(loadbalancer.ReasonNoMarks, loadbalancer.TagOwner)
		r.edit(svc, func(s *v1.Service) { delete(s.Annotations, loadbalancer.AnnotationOCID) })
		r.restart()
		r.mustSync(svc, nodes)
		r.only()
		r.edit(svc, func(s *v1.Service) { s.Spec.Ports[0].NodePort = 31234 })
		r.mustSync(svc, nodes)
		r.unchanged(svc, nodes)
	})
}
