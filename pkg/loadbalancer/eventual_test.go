// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package loadbalancer_test

import (
	"fmt"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/oracle/oci-cloud-controller-manager/pkg/oci"
	"github.com/oracle/oci-cloud-controller-manager/test/ocisim"
)

// onEventual runs a test under ever slower reads, with lists that keep step with single reads and with lists that do not.
func onEventual(t *testing.T, test func(r *rig, kind oci.BalancerKind)) {
	t.Helper()
	for reads := 1; reads <= 5; reads++ {
		for _, apart := range []bool{false, true} {
			t.Run(fmt.Sprintf("%d reads, lists apart %t", reads, apart), func(t *testing.T) {
				behaviour := ocisim.DefaultBehaviour()
				behaviour.ListsLagByThemselves = apart
				onBothKinds(t, ocisim.Options{Seed: 121, EventualReads: reads, Behaviour: behaviour}, test)
			})
		}
	}
}

// C026: after a lost answer to a create, a deletion leaves nothing, however slowly the balancer shows up: one that is in a list
// and answers 404 is not gone.
func TestDeleteAfterLostCreateUnderSlowReads(t *testing.T) {
	if testing.Short() {
		t.Skip("long, and nothing runs at the same time in it: in make test-long")
	}
	for _, restart := range []bool{false, true} {
		onEventual(t, func(r *rig, kind oci.BalancerKind) {
			heal := r.region.Fault(ocisim.Fault{Operation: creation(kind), Drop: ocisim.AfterApply})
			svc := r.service("web", kind, 80)
			r.interrupted(time.Second, svc, r.nodes(1))
			heal()
			if restart {
				r.restart()
			}
			svc = r.condemn(svc)
			for range 20 {
				if r.drop(r.Context(), svc) {
					break
				}
			}
			time.Sleep(5 * time.Minute)
			r.equal("balancers", len(r.live()), 0)
		})
	}
}

// C025: there is one balancer, however slowly it shows up: after a lost answer, by the same process and by the next one, and
// after the spec has changed.
func TestOneBalancerUnderSlowReads(t *testing.T) {
	if testing.Short() {
		t.Skip("long, and nothing runs at the same time in it: in make test-long")
	}
	for _, restart := range []bool{false, true} {
		for _, edit := range []bool{false, true} {
			onEventual(t, func(r *rig, kind oci.BalancerKind) {
				nodes := r.nodes(1)
				heal := r.region.Fault(ocisim.Fault{Operation: creation(kind), Drop: ocisim.AfterApply})
				svc := r.service("web", kind, 80)
				r.interrupted(time.Second, svc, nodes)
				heal()
				if restart {
					r.restart()
				}
				if edit {
					r.edit(svc, func(s *v1.Service) { s.Spec.Ports[0].NodePort = 31234 })
				}
				r.mustSync(svc, nodes)
				time.Sleep(5 * time.Minute)
				r.only()
				r.unchanged(svc, nodes)
			})
		}
	}
}
