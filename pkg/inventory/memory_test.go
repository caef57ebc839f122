// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package inventory_test

import (
	"context"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/oracle/oci-cloud-controller-manager/pkg/inventory"
	"github.com/oracle/oci-cloud-controller-manager/pkg/oci"
	"github.com/oracle/oci-cloud-controller-manager/pkg/taglabel"
	"github.com/oracle/oci-cloud-controller-manager/test/ocisim"
)

// The heap per node at 5,000 nodes, with all lists read: 2 KiB are allowed, also where two tags become labels.
func TestMemoryPerNode(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long: make test-long runs it, without the race detector")
	}
	const nodes, limit = 5000, 2048
	s := newSite(ocisim.Options{PageSize: 1000})
	s.AddSubnet(ocisim.Subnet{VCN: s.vcn1, Name: "closed", CIDR: "10.0.32.0/19", Private: true})
	s.AddInstance(ocisim.Instance{
		Name: "w-%d", Count: nodes, VNIC: ocisim.VNIC{Subnet: "closed"}, Metadata: map[string]string{"user_data": strings.Repeat("x", 4096)},
		Tags: ocisim.Tags{
			Freeform: map[string]string{"pool": "a", "cluster": "b"},
			Defined:  map[string]map[string]any{"Operations": {"CostCenter": strings.Repeat("4", 200), "Owner": "x"}, "Oracle-Tags": {"CreatedBy": "y"}},
		},
	})
	var ids []string
	for _, i := range s.Instances() {
		ids = append(ids, *i.Id)
	}
	need := crowd(nodes)
	need.MaxAge = time.Hour
	ask := func(inv *inventory.Inventory) {
		for _, id := range ids {
			instance, err := inv.Instance(t.Context(), id, need)
			if err != nil {
				t.Fatal(err)
			}
			if vnics, err := inv.VNICs(t.Context(), instance, need); err != nil || vnics[0].PrivateIP == "" {
				t.Fatal(vnics, err)
			}
		}
	}
	for name, labels := range map[string][]taglabel.Tag{"no tags": nil, "two tags": {{Key: "pool"}, {Namespace: "Operations", Key: "CostCenter"}}} {
		trim := func(c *inventory.Config) {
			keeper := taglabel.NewKeeper(labels)
			c.Trim = func(i *oci.Instance) {
				i.Metadata = nil
				i.Freeform, i.Defined = keeper.Keep(i.Freeform, i.Defined)
			}
		}
		ask(s.inventory(t, trim)) // the region keeps what it has rendered once
		before := heap()
		inv := s.inventory(t, trim)
		ask(inv)
		perNode := (heap() - before) / nodes
		runtime.KeepAlive(inv)
		t.Logf("%d bytes of heap per node, %s", perNode, name)
		if perNode > limit || perNode < 200 {
			t.Errorf("%d bytes of heap per node at %d nodes, %s; %d are allowed", perNode, nodes, name, limit)
		}
	}
}

// heap is the memory in use after a collection.
func heap() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// What is not needed is taken out before it is remembered, whichever way it was read.
func TestTrim(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(ocisim.Options{})
		ids := s.addNodes(5, ocisim.VNIC{Subnet: "nodes"})
		inv := s.inventory(t, func(c *inventory.Config) {
			c.Trim = func(i *oci.Instance) { i.DisplayName = "trimmed" }
		})
		for _, need := range []inventory.Need{{}, crowd(5)} {
			if i, err := inv.Instance(context.Background(), ids[0], need); err != nil || i.DisplayName != "trimmed" {
				t.Errorf("%+v, %v", i, err)
			}
		}
	})
}
