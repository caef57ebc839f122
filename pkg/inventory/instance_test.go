// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package inventory_test

import (
	"errors"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/oracle/oci-cloud-controller-manager/pkg/inventory"
	"github.com/oracle/oci-cloud-controller-manager/pkg/oci"
	"github.com/oracle/oci-cloud-controller-manager/test/ocisim"
)

// Single reads that are throttled for minutes: lists answer, soon and then at once; when it is over, single reads do again.
func TestThrottledSingleRead(t *testing.T) {
	for name, fault := range map[string]ocisim.Fault{
		"throttled":             {Status: http.StatusTooManyRequests},
		"throttled, with pause": {Status: http.StatusTooManyRequests, RetryAfter: 3 * time.Second},
		"slow":                  {Delay: time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newSite(ocisim.Options{})
				ids := s.addNodes(3, ocisim.VNIC{Subnet: "nodes"})
				inv := s.inventory(t)
				fault.Operation = "GetInstance"
				remove := s.Fault(fault)
				ask := func(id string, within time.Duration) {
					t.Helper()
					began := time.Now()
					instance, err := inv.Instance(t.Context(), id, inventory.Within(8*time.Second))
					if err != nil || instance.ID != id {
						t.Errorf("%+v, %v", instance, err)
					}
					if took := time.Since(began); took > within {
						t.Errorf("took %s", took)
					}
				}
				ask(ids[0], 20*time.Second)
				time.Sleep(30 * time.Second)
				s.ResetCalls()
				for _, id := range ids {
					ask(id, 5*time.Second)
				}
				if n := s.Counts()["compute.GetInstance"]; n > 0 {
					t.Errorf("%d single reads while they are held up", n)
				}
				remove()
				time.Sleep(2 * time.Minute)
				s.ResetCalls()
				ask(ids[1], time.Second)
				if counts := s.Counts(); counts["compute.GetInstance"] != 1 || counts["compute.ListInstances"] != 0 {
					t.Errorf("calls when it is over: %v", counts)
				}
			})
		})
	}
}

// What the lists do not have is an error after a bounded time, never an absence.
func TestThrottledSingleReadProvesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(ocisim.Options{})
		s.Fault(ocisim.Fault{Operation: "GetInstance", Status: http.StatusTooManyRequests})
		inv := s.inventory(t)
		for range 5 {
			began := time.Now()
			instance, presence, _, err := inv.Presence(t.Context(), "ocid1.instance.oc1.iad.absent", inventory.Within(8*time.Second))
			if presence != oci.Unknown || !errors.Is(err, inventory.ErrHeldUp) || instance != nil {
				t.Errorf("%+v, %v, %v", instance, presence, err)
			}
			if took := time.Since(began); took > 30*time.Second {
				t.Errorf("took %s", took)
			}
			time.Sleep(5 * time.Second)
		}
	})
}
