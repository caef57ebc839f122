// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package loadbalancer_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/oracle/oci-cloud-controller-manager/pkg/loadbalancer"
	"github.com/oracle/oci-cloud-controller-manager/pkg/oci"
	"github.com/oracle/oci-cloud-controller-manager/test/ocisim"
)

const accountKey = prefixCommon + "workload-service-account"

// accounts are the ServiceAccounts that can be used.
type accounts struct {
	rig    *rig
	byName map[string]*loadbalancer.Identity
	err    error // instead of that
	asked  int
}

func (a *accounts) Identity(_ context.Context, namespace, name string) (*loadbalancer.Identity, error) {
	a.asked++
	identity := a.byName[namespace+"/"+name]
	switch {
	case a.err != nil:
		return nil, a.err
	case identity == nil:
		return nil, &loadbalancer.IdentityError{Text: "there is no ServiceAccount " + namespace + "/" + name, Lasting: true}
	}
	return identity, nil
}

// account makes a ServiceAccount whose calls the region logs under its name.
func (r *rig) account(name string) {
	r.Helper()
	const namespace = "shop/"
	client := r.connectAs(namespace+name, r.region.Transport())
	key := r.region.Options().Tenancy + "/" + namespace + name + "/20:3b:97:13:55:1c:aa:66:41:41:4b:7c:7c:ef:2e:42"
	r.region.RegisterKey(key, nil, ocisim.Principal{ID: namespace + name})
	r.accounts.byName[namespace+name] = &loadbalancer.Identity{LB: client.LoadBalancers(), NLB: client.NetworkLoadBalancers(), PublicIPs: client.Network()}
}

// callers are the principals of calls about balancers and public IPs.
func (r *rig) callers() []string {
	var out []string
	for _, c := range r.region.Calls() {
		if c.Operation != "GetSubnet" && !slices.Contains(out, c.Principal) {
			out = append(out, c.Principal)
		}
	}
	return out
}

// Everything that is done about the balancer of a Service with a ServiceAccount is done by that, its deletion included.
func TestWorkloadIdentity(t *testing.T) {
	onBothKinds(t, ocisim.Options{Seed: 81}, func(r *rig, kind oci.BalancerKind) {
		nodes := r.nodes(1)
		r.account("balancer")
		r.region.AddPublicIP(ocisim.PublicIP{Compartment: r.compartment, Name: "reserved"})
		svc := r.service("web", kind, 80)
		r.edit(svc, annotate(accountKey, "balancer"))
		r.edit(svc, func(s *v1.Service) { s.Spec.LoadBalancerIP = *r.region.PublicIPs()[0].IpAddress })
		step := func(what string, do func()) {
			r.Helper()
			r.region.ResetCalls()
			do()
			r.equal("callers at the "+what, r.callers(), []string{"shop/balancer"})
		}
		step("creation", func() { r.mustSync(svc, nodes) })
		if r.count("GetPublicIpByIpAddress") == 0 {
			r.Error("the reserved address was not looked up")
		}
		step("repetition", func() { r.unchanged(svc, nodes) })
		step("change", func() {
			r.edit(svc, func(s *v1.Service) { s.Spec.Ports[0].NodePort = 31234 })
			r.mustSync(svc, nodes)
		})
		nodes = append(nodes, r.node("node-2"))
		step("change of nodes", func() { r.mustUpdateBackends(svc, nodes) })
		step("audit", func() {
			if found, err := r.m.Audit(r.Context(), []*v1.Service{r.cluster.get(svc.UID)}, nodes); err != nil || len(found) > 0 {
				r.Errorf("audit: %v, %v", found, err)
			}
		})
		step("deletion", func() {
			if !r.drop(r.Context(), r.condemn(svc)) {
				r.Error("not deleted")
			}
		})
		r.noEvents()

		other := r.service("other", kind, 80)
		r.region.ResetCalls()
		r.mustSync(other, nodes)
		r.equal("callers for a Service without one", slices.Contains(r.callers(), "shop/balancer"), false)
	})
}

// On a live balancer another ServiceAccount, or none any more, takes effect with the next sync; the balancer stays.
func TestWorkloadIdentityChanges(t *testing.T) {
	onBothKinds(t, ocisim.Options{Seed: 86}, func(r *rig, kind oci.BalancerKind) {
		nodes := r.nodes(1)
		r.account("first")
		r.account("second")
		svc := r.service("web", kind, 80)
		r.mustSync(svc, nodes)
		id := r.only().ID
		for i, name := range []string{"first", "second", "", "first"} {
			r.edit(svc, func(s *v1.Service) {
				s.Annotations[accountKey] = name
				s.Spec.Ports[0].NodePort = 31000 + int32(i)
			})
			r.region.ResetCalls()
			r.mustSync(svc, nodes)
			callers := r.callers()
			r.equal("number of callers", len(callers), 1)
			if got := callers[0]; name != "" && got != "shop/"+name || name == "" && strings.HasPrefix(got, "shop/") {
				r.Errorf("%q: called as %s", name, got)
			}
			r.equal("balancer", r.only().ID, id)
		}
		r.noEvents()
	})
}

// What a ServiceAccount may not see proves nothing, and what the process itself has read for others proves nothing for it.
func TestWorkloadIdentityWithoutPolicy(t *testing.T) {
	simulate(t, ocisim.Options{Seed: 82}, func(r *rig) {
		nodes := r.nodes(1)
		r.account("balancer")
		svc := r.service("web", oci.KindLB, 80)
		r.edit(svc, annotate(accountKey, "balancer"))
		svc = r.mustSync(svc, nodes)
		r.mustSync(r.service("other", oci.KindLB, 80), nodes)
		r.region.Deny(ocisim.Policy{Principal: "shop/balancer", ResourceType: "load-balancers", Verb: ocisim.Inspect})
		if r.drop(r.Context(), r.condemn(svc)) {
			r.Error("the finalizer went though the balancer lives")
		}
		r.equal("balancers", len(r.live()), 2)
		r.oneSeries(loadbalancer.ReasonCloudError, "manage load-balancers")
	})
}

// An account that cannot be used stops changes with one event; it does not stop the deletion.
func TestWorkloadIdentityIsGone(t *testing.T) {
	onBothKinds(t, ocisim.Options{Seed: 83}, func(r *rig, kind oci.BalancerKind) {
		nodes := r.nodes(1)
		svc := r.service("web", kind, 80)
		r.edit(svc, annotate(accountKey, "balancer"))
		for range 3 {
			var refusal *loadbalancer.Refusal
			if _, err := r.m.Ensure(r.Context(), svc, nodes); !errors.As(err, &refusal) {
				r.Fatalf("got %v, want a refusal", err)
			}
		}
		r.equal("count", r.oneSeries(loadbalancer.ReasonIdentityUnusable, "there is no ServiceAccount shop/balancer").count, 3)
		r.equal("calls", len(r.region.Calls()), 0)
		r.equal("condition", r.cluster.condition(svc.UID), "False IdentityUnusable")
		if err := r.m.UpdateBackends(r.Context(), svc, nodes); err == nil {
			r.Error("the backends were changed")
		}

		r.account("balancer")
		svc = r.mustSync(svc, nodes)
		r.cluster.events = nil
		r.accounts.err = &loadbalancer.IdentityError{Text: "the API server does not answer"}
		if r.drop(r.Context(), r.condemn(svc)) {
			r.Error("deleted as somebody else, though the failure may pass")
		}
		r.accounts.err = nil
		delete(r.accounts.byName, "shop/balancer")
		r.cluster.events = nil
		r.region.ResetCalls()
		if !r.drop(r.Context(), r.condemn(svc)) {
			r.Error("not deleted")
		}
		r.equal("callers", slices.Contains(r.callers(), "shop/balancer"), false)
		r.oneSeries(loadbalancer.ReasonIdentityUnusable, "there is no ServiceAccount shop/balancer", "identity of the cloud controller manager")
		r.equal("balancers", len(r.live()), 0)
	})
}

// The token of a create belongs to the principal: when another account takes over after a lost answer, there is still one
// balancer.
func TestWorkloadIdentityChangesAfterLostCreate(t *testing.T) {
	onBothKinds(t, ocisim.Options{Seed: 84, EventualReads: 2}, func(r *rig, kind oci.BalancerKind) {
		nodes := r.nodes(1)
		r.account("first")
		r.account("second")
		svc := r.service("web", kind, 80)
		r.edit(svc, annotate(accountKey, "first"))
		heal := r.region.Fault(ocisim.Fault{Operation: creation(kind), Drop: ocisim.AfterApply})
		if _, err := r.m.Ensure(r.Context(), r.cluster.get(svc.UID), nodes); err == nil {
			r.Fatal("no error")
		}
		heal()
		r.edit(svc, annotate(accountKey, "second"))
		r.mustSync(svc, nodes)
		time.Sleep(5 * time.Minute)
		r.only()
	})
}

// An illegal name is one event, and no reason to keep a balancer.
func TestWorkloadIdentityWithIllegalName(t *testing.T) {
	simulate(t, ocisim.Options{Seed: 85}, func(r *rig) {
		nodes := r.nodes(1)
		svc := r.mustSync(r.service("web", oci.KindLB, 80), nodes)
		r.edit(svc, annotate(accountKey, "Not A Name"))
		if _, err := r.m.Ensure(r.Context(), svc, nodes); err == nil {
			r.Error("no error")
		}
		e := r.oneSeries(loadbalancer.ReasonInvalidAnnotation, accountKey)
		if !strings.Contains(e.Message, "name of a ServiceAccount") {
			r.Error(e.Message)
		}
		r.equal("asked", r.accounts.asked, 0)
		if !r.drop(r.Context(), r.condemn(svc)) {
			r.Error("not deleted")
		}
	})
}
