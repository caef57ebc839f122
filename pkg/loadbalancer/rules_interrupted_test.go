// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package loadbalancer_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/oracle/oci-cloud-controller-manager/pkg/oci"
	"github.com/oracle/oci-cloud-controller-manager/test/ocisim"
)

// C026: a Service that is deleted before the next process has finished a change of mode leaves no rule, neither where the
// record says that it has some nor where the killed process had begun.
func TestDeletedAfterAnInterruptedChangeOfMode(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long: make test-long runs it, without the race detector")
	}
	for _, s := range ruleScenarios() {
		if s.name != "lists to groups" && s.name != "groups to lists" {
			continue
		}
		t.Run(s.name, func(t *testing.T) {
			withRules(t, ocisim.Options{Seed: 99, Durations: fixed(time.Second)}, func(r *rig) {
				r.nodesNow = []*v1.Node{r.worker("a", r.ruled.workers)}
				points := 0
				for s.deletedAfter(r, points+1) {
					points++
				}
				if points < 5 {
					r.Errorf("only %d kill points", points)
				}
				time.Sleep(5 * time.Minute) // reads that the dead processes shared end with their own deadlines
			})
		})
	}
}

// deletedAfter is false if the process did not come to that call.
func (s ruleScenario) deletedAfter(r *rig, call int) bool {
	svc := r.serviceUID("web", types.UID(fmt.Sprintf("uid-%d", call)), oci.KindLB, 80)
	r.restart()
	s.before(r, svc)
	r.mustSync(svc, r.nodesNow)
	s.edit(r, svc)
	point := &ocisim.KillPoint{Call: call, Applied: true}
	ctx, end := context.WithCancel(r.Context())
	defer end()
	ctx, network := point.Process(ctx, r.region.Transport())
	_ = s.do(ctx, r, r.newManager(network), svc, r.nodesNow)
	r.restart()
	r.remove(svc)
	r.asAtStart()
	r.equal(point.String()+": balancers", len(r.live()), 0)
	return point.Reached()
}
