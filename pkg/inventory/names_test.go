// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package inventory_test

import (
	"net/http"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/oracle/oci-cloud-controller-manager/pkg/inventory"
	"github.com/oracle/oci-cloud-controller-manager/test/ocisim"
)

func TestNodeNames(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(ocisim.Options{})
		id := s.AddInstance(ocisim.Instance{
			Name: "display", VNIC: ocisim.VNIC{Subnet: "nodes", PrivateIP: "10.0.1.1", Hostname: "worker-1"},
			VNICs: []ocisim.VNIC{{Subnet: "other", PrivateIP: "10.0.2.1", Hostname: "-"}},
		})
		inv := s.inventory(t)
		instance, err := inv.Instance(t.Context(), id, inventory.Within(time.Hour))
		if err != nil {
			t.Fatal(err)
		}
		got, err := inv.NodeNames(t.Context(), instance)
		if slices.Sort(got); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]string{"10.0.1.1", "10.0.2.1", "worker-1", "worker-1.nodes.one.oraclevcn.com"}, got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		s.Fault(ocisim.Fault{Operation: "ListVnicAttachments", Status: http.StatusNotFound})
		if got, err := s.inventory(t).NodeNames(t.Context(), instance); err == nil {
			t.Errorf("what is not known became %q", got)
		}
	})
}
