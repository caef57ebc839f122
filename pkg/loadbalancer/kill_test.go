// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package loadbalancer_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/oracle/oci-cloud-controller-manager/pkg/loadbalancer"
	"github.com/oracle/oci-cloud-controller-manager/pkg/oci"
	"github.com/oracle/oci-cloud-controller-manager/test/ocisim"
)

// scenario is something that a process is killed in. before prepares it with a process of its own; do is done by the one
// that is killed and, again, by the next one.
type scenario struct {
	name   string
	before func(r *rig, svc *v1.Service, nodes []*v1.Node)
	do     func(ctx context.Context, r *rig, m *loadbalancer.Manager, svc *v1.Service, nodes []*v1.Node) error
}

func ensure(ctx context.Context, r *rig, m *loadbalancer.Manager, svc *v1.Service, nodes []*v1.Node) error {
	return drive(ctx, m, r.cluster, svc, nodes, 30*time.Minute)
}

func scenarios() []scenario {
	synced := func(r *rig, svc *v1.Service, nodes []*v1.Node) { r.mustSync(svc, nodes) }
	return []scenario{
		{name: "create", before: func(*rig, *v1.Service, []*v1.Node) {}, do: ensure},
		{name: "change ports", before: func(r *rig, svc *v1.Service, nodes []*v1.Node) {
			synced(r, svc, nodes)
			r.edit(svc, func(s *v1.Service) {
				s.Spec.Ports = newService("x", oci.KindLB, 443, 81).Spec.Ports
				s.Spec.Ports[0].NodePort = 31999
			})
		}, do: ensure},
		{name: "change rule sets or families", before: func(r *rig, svc *v1.Service, nodes []*v1.Node) {
			r.edit(svc, annotate(prefixNLB+"subnet", r.dual))
			rules := loadbalancer.WantedKind(svc.Annotations) == oci.KindLB
			if rules {
				r.edit(svc, func(s *v1.Service) {
					delete(s.Annotations, prefixNLB+"subnet")
					s.Annotations[ruleSetsKey] = `{"a":` + removeDebug + `,"b":` + onlyReads + `}`
				})
			}
			synced(r, svc, nodes)
			if rules {
				r.edit(svc, annotate(ruleSetsKey, `{"b":`+removeOther+`,"c":`+onlyReads+`}`))
			} else {
				r.edit(svc, dualStack(v1.IPFamilyPolicyPreferDualStack))
			}
		}, do: ensure},
		{name: "change nodes", before: func(r *rig, svc *v1.Service, nodes []*v1.Node) {
			synced(r, svc, nodes[:1])
		}, do: func(ctx context.Context, _ *rig, m *loadbalancer.Manager, svc *v1.Service, nodes []*v1.Node) error {
			for {
				err := m.UpdateBackends(ctx, svc, nodes)
				var pending *loadbalancer.Pending
				if !errors.As(err, &pending) {
					return err
				}
				if err := pending.Wait(ctx); err != nil {
					return err
				}
			}
		}},
		{name: "delete", before: func(r *rig, svc *v1.Service, nodes []*v1.Node) {
			synced(r, svc, nodes)
			r.condemn(svc)
		}, do: func(ctx context.Context, _ *rig, m *loadbalancer.Manager, svc *v1.Service, _ []*v1.Node) error {
			_, exists, err := m.Exists(ctx, svc)
			if err == nil && exists {
				err = m.Delete(ctx, svc)
			}
			return err
		}},
	}
}

// C026, acceptance 4: a process that dies with any of its calls leaves nothing that the next one does not put right.
func TestKilledAnywhere(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long: make test-long runs it, without the race detector")
	}
	points := 0
	short := ocisim.Range{Min: time.Second, Max: time.Second} // fewer looks at work requests, the other calls are the same
	durations := map[string]ocisim.Range{}
	for _, kind := range []string{"loadbalancer", "networkloadbalancer"} {
		for _, change := range []string{"create", "update", "delete"} {
			durations[kind+"."+change] = short
		}
	}
	for _, s := range scenarios() {
		for _, applied := range []bool{false, true} {
			name := s.name + "/call lost"
			if applied {
				name = s.name + "/answer lost"
			}
			t.Run(name, func(t *testing.T) {
				onBothKinds(t, ocisim.Options{Seed: 21, Durations: durations}, func(r *rig, kind oci.BalancerKind) {
					want := s.uninterrupted(r, kind)
					for last := 1; s.killedAt(r, kind, last, applied, want); last++ {
						points++
					}
					time.Sleep(5 * time.Minute) // reads that the dead processes shared end with their own deadlines
				})
			})
		}
	}
	t.Logf("%d kill points", points)
}

// uninterrupted returns what the scenario comes to.
func (s scenario) uninterrupted(r *rig, kind oci.BalancerKind) *oci.Balancer {
	svc, nodes := r.service("web", kind, 80, 443), r.nodes(3)
	r.nodesNow = nodes
	s.before(r, svc, nodes)
	if err := s.do(r.Context(), r, r.m, r.cluster.get(svc.UID), nodes); err != nil {
		r.Fatal(err)
	}
	if s.name == "delete" {
		return nil
	}
	want := r.only()
	if err := r.m.Delete(r.Context(), svc); err != nil {
		r.Fatal(err)
	}
	return want
}

// killedAt runs the scenario with a process that dies with a certain call, and then with another one. It is false if the
// first one did not die.
func (s scenario) killedAt(r *rig, kind oci.BalancerKind, last int, applied bool, want *oci.Balancer) bool {
	r.cluster.events = nil
	svc, nodes := r.serviceUID("web", types.UID(fmt.Sprintf("uid-%d-%t", last, applied)), kind, 80, 443), r.nodesNow
	r.restart()
	s.before(r, svc, nodes)

	ctx, end := context.WithCancel(r.Context())
	defer end()
	point := &ocisim.KillPoint{Call: last, Applied: applied}
	ctx, network := point.Process(ctx, r.region.Transport())
	err := s.do(ctx, r, r.newManager(network), r.cluster.get(svc.UID), nodes)
	if !point.Reached() {
		if err != nil {
			r.Errorf("%s: not killed, but: %v", point, err)
		}
		_ = r.m.Delete(r.Context(), svc)
		return false
	}

	r.restart()
	if err := s.do(r.Context(), r, r.m, r.cluster.get(svc.UID), nodes); err != nil {
		r.Errorf("%s: the next process: %v", point, err)
	}
	if want == nil {
		if left := r.live(); len(left) > 0 {
			r.Errorf("%s: left: %v", point, left)
		}
		r.cluster.remove(svc.UID)
		return true
	}
	got := r.only()
	opaque := cmpopts.IgnoreUnexported(oci.BackendSet{}, oci.Backend{}, oci.Listener{})
	sorted := cmpopts.SortSlices(func(a, b oci.Backend) bool { return a.IP < b.IP })
	ignored := cmpopts.IgnoreFields(oci.Balancer{}, "ID", "ETag", "TimeCreated", "Addresses", "DisplayName", "Tags")
	if diff := cmp.Diff(want, got, opaque, sorted, ignored, cmpopts.EquateEmpty()); diff != "" {
		r.Errorf("%s: another outcome than without a kill:\n%s", point, diff)
	}
	r.equal("owner", got.Freeform[loadbalancer.TagOwner], svc.UID)
	if len(r.cluster.events) > 0 {
		r.Errorf("%s: events %v", point, r.cluster.events)
	}
	if s.name != "change nodes" {
		r.unchanged(svc, nodes)
	}
	if err := r.m.Delete(r.Context(), svc); err != nil {
		r.Errorf("%s: delete: %v", point, err)
	}
	if left := r.live(); len(left) > 0 {
		r.Errorf("%s: left after the deletion: %v", point, left)
	}
	r.cluster.remove(svc.UID)
	return true
}
