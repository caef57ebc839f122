// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package loadbalancer_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	lbsdk "github.com/oracle/oci-go-sdk/v65/loadbalancer"

	"github.com/oracle/oci-cloud-controller-manager/pkg/loadbalancer"
	"github.com/oracle/oci-cloud-controller-manager/pkg/oci"
	"github.com/oracle/oci-cloud-controller-manager/test/ocisim"
)

func deletion(kind oci.BalancerKind) string {
	if kind == oci.KindNLB {
		return "DeleteNetworkLoadBalancer"
	}
	return "DeleteLoadBalancer"
}

// condemn marks a Service as being deleted.
func (r *rig) condemn(svc *v1.Service) *v1.Service {
	now := metav1.Now()
	r.edit(svc, func(s *v1.Service) { s.DeletionTimestamp = &now })
	return r.cluster.get(svc.UID)
}

// drop does what the service controller does for a Service that is being deleted: ask whether there is a balancer, delete
// it, and take the finalizer away; after a failure, pause. It says whether the finalizer went.
func (r *rig) drop(ctx context.Context, svc *v1.Service) bool {
	_, exists, err := r.m.Exists(ctx, svc)
	if err == nil && exists {
		err = r.m.Delete(ctx, svc)
	}
	var pending *loadbalancer.Pending
	if errors.As(err, &pending) {
		r.Errorf("a deletion is pending: %v", err)
	}
	var refusal *loadbalancer.Refusal
	if errors.As(err, &refusal) {
		time.Sleep(refusal.RetryAfter) // what comes before that is not tried
	}
	return err == nil
}

// C027: a balancer that is truly gone lets the Service go; one that cannot be seen does not, and is deleted once the
// policy is back.
func TestDeleteProvesAbsence(t *testing.T) {
	onBothKinds(t, ocisim.Options{}, func(r *rig, kind oci.BalancerKind) {
		nodes := r.nodes(1)
		gone := r.mustSync(r.service("gone", kind, 80), nodes)
		hidden := r.mustSync(r.service("hidden", kind, 80), nodes)
		for _, b := range r.live() {
			if b.Freeform[loadbalancer.TagOwner] == "uid-gone" {
				if err := r.region.Foreign().Delete(b.ID); err != nil {
					r.Fatal(err)
				}
			}
		}
		time.Sleep(time.Hour)
		if !r.drop(r.Context(), r.condemn(gone)) {
			r.Error("the Service whose balancer is gone keeps its finalizer")
		}
		r.noEvents()

		for name, policy := range map[string]ocisim.Policy{
			"all gone":      {ResourceType: resourceType(kind), Verb: ocisim.Inspect},
			"reads gone":    {ResourceType: resourceType(kind), Verb: ocisim.Read},
			"no deletion":   {ResourceType: resourceType(kind), Verb: ocisim.Manage},
			"of everything": {Verb: ocisim.Inspect},
		} {
			restore := r.region.Deny(policy)
			if r.drop(r.Context(), r.condemn(hidden)) {
				r.Fatalf("%s: the finalizer went though the balancer lives", name)
			}
			restore()
		}
		for _, e := range r.cluster.events {
			if !strings.Contains(e.Message, "manage "+resourceType(kind)) || !strings.Contains(e.Message, "opc-request-id") {
				r.Errorf("event without policy or request ID: %s", e.Message)
			}
		}
		if !r.drop(r.Context(), r.condemn(hidden)) {
			r.Error("not deleted after the policy was back")
		}
		r.equal("balancers", len(r.live()), 0)
	})
}

// C027: the same without any record of the balancer, after a restart.
func TestDeleteWithoutRecord(t *testing.T) {
	onBothKinds(t, ocisim.Options{}, func(r *rig, kind oci.BalancerKind) {
		svc := r.mustSync(r.service("web", kind, 80), r.nodes(1))
		r.edit(svc, func(s *v1.Service) {
			delete(s.Annotations, loadbalancer.AnnotationOCID)
			delete(s.Annotations, loadbalancer.AnnotationLastApplied)
		})
		r.restart()
		restore := r.region.Deny(ocisim.Policy{ResourceType: resourceType(kind), Verb: ocisim.Inspect})
		if r.drop(r.Context(), r.condemn(svc)) {
			r.Fatal("the finalizer went though the balancer lives")
		}
		restore()
		if !r.drop(r.Context(), r.condemn(svc)) {
			r.Error("not deleted")
		}
		r.equal("balancers", len(r.live()), 0)
	})
}

// A cluster whose policy covers one kind of balancers only, as the documentation of the existing implementation has it,
// creates and deletes those.
func TestPolicyForOneKindOnly(t *testing.T) {
	simulate(t, ocisim.Options{}, func(r *rig) {
		r.region.Deny(ocisim.Policy{ResourceType: "network-load-balancers", Verb: ocisim.Inspect})
		svc := r.mustSync(r.service("web", oci.KindLB, 80), r.nodes(1))
		if !r.drop(r.Context(), r.condemn(svc)) {
			r.Error("not deleted")
		}
		r.noEvents()
	})
}

// C027 (c): a deletion that meets an open change, or a balancer that is being created, waits.
func TestDeleteWaits(t *testing.T) {
	onBothKinds(t, ocisim.Options{}, func(r *rig, kind oci.BalancerKind) {
		nodes := r.nodes(1)
		svc := r.mustSync(r.service("web", kind, 80), nodes)
		r.edit(svc, func(s *v1.Service) { s.Spec.Ports[0].NodePort = 31234 })
		r.interrupted(time.Second, svc, nodes)
		heal := r.region.Fault(ocisim.Fault{Operation: deletion(kind), Nth: 1, Times: 3, Status: 409, Code: "IncorrectState", Message: "work request open"})
		if !r.drop(r.Context(), r.condemn(svc)) {
			r.Error("not deleted")
		}
		heal()

		young := r.service("young", kind, 80)
		r.interrupted(time.Second, young, nodes)
		r.equal("state", r.only().State, "CREATING")
		r.restart()
		if !r.drop(r.Context(), r.condemn(young)) {
			r.Error("a balancer that was being created was not deleted")
		}
		r.equal("balancers", len(r.live()), 0)
		r.noEvents()
	})
}

// C026: the answer to a create was lost, and the Service is deleted before the balancer shows up.
func TestDeleteAfterLostCreate(t *testing.T) {
	for _, restart := range []bool{false, true} {
		onBothKinds(t, ocisim.Options{EventualReads: 3}, func(r *rig, kind oci.BalancerKind) {
			heal := r.region.Fault(ocisim.Fault{Operation: creation(kind), Drop: ocisim.AfterApply})
			svc := r.service("web", kind, 80)
			r.interrupted(time.Second, svc, r.nodes(1))
			heal()
			if restart {
				r.restart()
			}
			if !r.drop(r.Context(), r.condemn(svc)) {
				r.Error("not deleted")
			}
			time.Sleep(5 * time.Minute)
			r.equal("balancers", len(r.live()), 0)
		})
	}
}

// C026: nothing is made for a Service that is being deleted, and node changes leave it alone.
func TestNothingForDeletedServices(t *testing.T) {
	onBothKinds(t, ocisim.Options{}, func(r *rig, kind oci.BalancerKind) {
		nodes := r.nodes(1)
		svc := r.service("web", kind, 80)
		stale := svc.DeepCopy()
		r.condemn(svc)
		if _, err := r.m.Ensure(r.Context(), stale, nodes); !errors.Is(err, loadbalancer.ErrServiceGone) {
			r.Errorf("ensure: %v, want ErrServiceGone", err)
		}
		if err := r.m.UpdateBackends(r.Context(), stale, nodes); err != nil {
			r.Errorf("update: %v", err)
		}
		r.cluster.remove(svc.UID)
		if _, err := r.m.Ensure(r.Context(), stale, nodes); !errors.Is(err, loadbalancer.ErrServiceGone) {
			r.Errorf("ensure of a vanished Service: %v, want ErrServiceGone", err)
		}
		r.equal("calls", len(r.region.Calls()), 0)
	})
}

// Bad annotations never block a deletion (W25).
func TestBadAnnotationsDoNotBlockDeletion(t *testing.T) {
	onBothKinds(t, ocisim.Options{}, func(r *rig, kind oci.BalancerKind) {
		svc := r.mustSync(r.service("web", kind, 80), r.nodes(1))
		r.edit(svc, func(s *v1.Service) {
			for _, key := range []string{
				prefixLB + "internal", prefixLB + "shape-flex-min", prefixNLB + "internal", prefixNLB + "external-ip-only",
				prefixCommon + "load-balancer-type", prefixCommon + "compartment-id", prefixCommon + "security-rule-management-mode",
				prefixCommon + "node-label-selector", prefixNLB + "is-preserve-source", "oci.oraclecloud.com/nonsense",
			} {
				s.Annotations[key] = "((("
			}
			s.Spec.IPFamilies = nil
		})
		if !r.drop(r.Context(), r.condemn(svc)) {
			r.Error("not deleted")
		}
		r.equal("balancers", len(r.live()), 0)
		r.noEvents()
	})
}

// C042: whatever kinds of balancers a Service has had, all are deleted with it.
func TestDeleteBothKinds(t *testing.T) {
	onBothKinds(t, ocisim.Options{}, func(r *rig, kind oci.BalancerKind) {
		nodes := r.nodes(1)
		svc := r.service("web", kind, 80)
		other := oci.KindLB
		if kind == oci.KindLB {
			other = oci.KindNLB
		}
		orphan := r.legacyBalancer(svc, other) // from a change of the type under the existing implementation
		r.edit(svc, func(s *v1.Service) { s.Annotations[loadbalancer.AnnotationOCID] = orphan })
		svc = r.mustSync(svc, nodes)
		r.equal("balancer", r.only().ID, orphan)
		r.oneSeries(loadbalancer.ReasonImmutable, "load-balancer-type")
		r.legacyBalancer(svc, kind)
		r.equal("balancers", len(r.live()), 2)
		if !r.drop(r.Context(), r.condemn(svc)) {
			r.Error("not deleted")
		}
		r.equal("balancers", len(r.live()), 0)
	})
}

// C042: a change of type or of compartment is told; the balancer stays, and is found there by the deletion.
func TestTypeAndCompartmentChange(t *testing.T) {
	onBothKinds(t, ocisim.Options{}, func(r *rig, kind oci.BalancerKind) {
		nodes := r.nodes(1)
		svc := r.service("web", kind, 80)
		r.edit(svc, annotate(prefixCommon+"compartment-id", r.other))
		svc = r.mustSync(svc, nodes)
		first := r.only()
		r.equal("compartment", first.CompartmentID, r.other)
		other := "nlb"
		if kind == oci.KindNLB {
			other = "LB"
		}
		r.edit(svc, annotate(prefixCommon+"load-balancer-type", other))
		r.edit(svc, annotate(prefixCommon+"compartment-id", r.compartment))
		r.mustSync(svc, nodes)
		r.equal("balancer", r.only().ID, first.ID)
		r.equal("events", len(r.cluster.series(loadbalancer.ReasonImmutable)), 1)
		r.mustSync(svc, nodes)
		for _, e := range r.cluster.events {
			if e.count != 1 {
				r.Errorf("event told %d times: %s", e.count, e.Message)
			}
		}
		r.restart()
		svc = r.condemn(svc)
		r.edit(svc, func(s *v1.Service) { delete(s.Annotations, loadbalancer.AnnotationOCID) })
		if !r.drop(r.Context(), r.cluster.get(svc.UID)) {
			r.Error("not deleted")
		}
		r.equal("balancers", len(r.live()), 0)
	})
}

// C062: protection is told and never lifted.
func TestDeleteProtection(t *testing.T) {
	simulate(t, ocisim.Options{}, func(r *rig) {
		svc := r.mustSync(r.service("web", oci.KindLB, 80), r.nodes(1))
		protect := func(on bool) {
			if err := r.region.Foreign().LoadBalancer(r.only().ID, func(v *lbsdk.LoadBalancer) { v.IsDeleteProtectionEnabled = &on }); err != nil {
				r.Fatal(err)
			}
		}
		protect(true)
		svc = r.condemn(svc)
		var refusal *loadbalancer.Refusal
		for range 3 {
			if err := r.m.Delete(r.Context(), svc); !errors.As(err, &refusal) {
				r.Fatalf("got %v, want a refusal", err)
			}
			time.Sleep(refusal.RetryAfter)
		}
		r.equal("count", r.oneSeries(loadbalancer.ReasonDeleteProtected, r.only().ID).count, 3)
		if refusal.RetryAfter < 20*time.Second {
			r.Errorf("third retry after %v", refusal.RetryAfter)
		}
		protect(false)
		if err := r.m.Delete(r.Context(), svc); err != nil {
			r.Error(err)
		}
		r.equal("balancers", len(r.live()), 0)
	})
}

// A work request of a deletion that fails is an error, and the next try goes on.
func TestDeletionFails(t *testing.T) {
	onBothKinds(t, ocisim.Options{}, func(r *rig, kind oci.BalancerKind) {
		svc := r.mustSync(r.service("web", kind, 80), r.nodes(1))
		r.region.Fault(ocisim.Fault{Operation: deletion(kind), Nth: 1, FailWork: true, Code: "INTERNAL_ERROR", Message: "try again"})
		if r.drop(r.Context(), r.condemn(svc)) {
			r.Fatal("no error")
		}
		r.oneSeries(loadbalancer.ReasonWorkRequestFailed, "delete the balancer", "INTERNAL_ERROR: try again")
		if !r.drop(r.Context(), r.condemn(svc)) {
			r.Error("not deleted by the second try")
		}
		r.equal("balancers", len(r.live()), 0)
	})
}
