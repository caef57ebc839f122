// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package loadbalancer_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/oracle/oci-cloud-controller-manager/pkg/loadbalancer"
	"github.com/oracle/oci-cloud-controller-manager/pkg/oci"
	"github.com/oracle/oci-cloud-controller-manager/test/ocisim"
)

// A failing deletion follows its back-off, 5 s to 5 min, however often the framework calls; an edit is tried at once.
func TestFailingDeletionKeepsItsBackOff(t *testing.T) {
	onBothKinds(t, ocisim.Options{Seed: 111}, func(r *rig, kind oci.BalancerKind) {
		svc := r.mustSync(r.service("web", kind, 80), r.nodes(1))
		restore := r.region.Deny(ocisim.Policy{Operation: deletion(kind)})
		svc = r.condemn(svc)
		attempt := func() error {
			_, exists, err := r.m.Exists(r.Context(), r.cluster.get(svc.UID))
			if err == nil && !exists {
				r.Fatal("the balancer seems to be gone")
			}
			if err == nil {
				err = r.m.Delete(r.Context(), r.cluster.get(svc.UID))
			}
			return err
		}
		var pauses []time.Duration
		last := time.Time{}
		texts := map[string]bool{}
		remove := r.region.OnCall(func(c ocisim.Call) {
			if c.Operation == deletion(kind) {
				if !last.IsZero() {
					pauses = append(pauses, time.Since(last).Round(time.Second))
				}
				last = time.Now()
			}
		})
		calls := 0
		for began := time.Now(); time.Since(began) < 30*time.Minute; time.Sleep(time.Second) {
			before := len(r.region.Calls())
			err := attempt()
			if err == nil {
				r.Fatal("deleted")
			}
			texts[err.Error()] = true
			if len(r.region.Calls()) > before {
				calls++
			}
		}
		remove()
		r.equal("pauses", fmt.Sprint(pauses), "[5s 10s 20s 40s 1m20s 2m40s 5m0s 5m0s 5m0s 5m0s]")
		r.equal("tries with calls", calls, len(pauses)+1)
		r.equal("texts", len(texts), 1)
		r.oneSeries(loadbalancer.ReasonCloudError, "manage "+resourceType(kind))

		restore()
		var refusal *loadbalancer.Refusal
		if err := attempt(); !errors.As(err, &refusal) {
			r.Errorf("got %v before its time", err)
		}
		r.edit(svc, annotate("example.com/note", "edited"))
		if err := attempt(); err != nil {
			r.Errorf("after an edit: %v", err)
		}
		r.equal("balancers", len(r.live()), 0)
	})
}
