// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package loadbalancer_test

import (
	"testing"

	v1 "k8s.io/api/core/v1"

	"github.com/oracle/oci-cloud-controller-manager/pkg/oci"
	"github.com/oracle/oci-cloud-controller-manager/test/ocisim"
)

// Rules of Services that went while no process ran, without anybody who looked after them, are removed by the first pass of
// the next process, also if no Service is left; those in the lists of the nodes too (C057, C072).
func TestRulesOfServicesThatWentUnseen(t *testing.T) {
	withRules(t, ocisim.Options{Seed: 76}, func(r *rig) {
		nodes := []*v1.Node{r.worker("a", r.ruled.workers), r.worker("b", r.ruled.far)}
		svc := r.mustSync(r.service("web", oci.KindLB, 80), nodes)
		for _, list := range []string{r.ruled.frontList, r.ruled.workList, r.ruled.farList} {
			r.equal("rules", len(r.added(list)) > 0, true)
		}
		r.cluster.remove(svc.UID)
		r.restart()
		r.region.ResetCalls()
		restore := r.region.Fault(ocisim.Fault{Operation: "ListSecurityLists", Status: 500, Times: 100})
		if _, err := r.m.Audit(r.Context(), nil, nodes); err == nil {
			r.Error("a pass that could not read the lists says that it is through")
		}
		restore()
		r.equal("rules after a pass that could not read", len(r.added(r.ruled.farList)) > 0, true)
		if _, err := r.m.Audit(r.Context(), nil, nodes); err != nil {
			r.Error(err)
		}
		r.asAtStart()
		r.region.ResetCalls()
		if _, err := r.m.Audit(r.Context(), nil, nodes); err != nil {
			r.Error(err)
		}
		r.equal("calls of the next pass", len(r.region.Calls()), 0)
	})
}
