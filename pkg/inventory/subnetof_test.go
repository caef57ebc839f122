// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package inventory_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/oracle/oci-cloud-controller-manager/pkg/inventory"
	"github.com/oracle/oci-cloud-controller-manager/pkg/oci"
	"github.com/oracle/oci-cloud-controller-manager/test/ocisim"
)

// The subnet of a node is that of the VNIC that has its address. It is found out once.
func TestSubnetOf(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(ocisim.Options{})
		other := s.AddSubnet(ocisim.Subnet{VCN: s.vcn1, Name: "storage", CIDR: "10.0.200.0/24"})
		id := s.AddInstance(ocisim.Instance{Name: "w-0", VNIC: ocisim.VNIC{Subnet: s.nodes}, VNICs: []ocisim.VNIC{{Subnet: other}}})
		vnics := s.InstanceVNICs(id)
		inv := s.inventory(t)
		for _, test := range []struct {
			name, address, want string
		}{
			{"primary", *vnics[0].PrivateIp, s.nodes},
			{"secondary", *vnics[1].PrivateIp, other},
			{"address of nobody", "192.0.2.1", s.nodes},
		} {
			got, err := inv.SubnetOf(t.Context(), id, []string{test.address}, inventory.Need{Crowd: 1})
			if err != nil || got != test.want {
				t.Errorf("%s: got %s, %v; want %s", test.name, got, err, test.want)
			}
		}
		time.Sleep(12 * time.Hour)
		s.ResetCalls()
		if got, err := inv.SubnetOf(t.Context(), id, []string{*vnics[1].PrivateIp}, inventory.Need{}); err != nil || got != other {
			t.Errorf("later: %s, %v", got, err)
		}
		if n := s.total(); n != 0 {
			t.Errorf("%d calls for what is known", n)
		}
		if _, err := inv.SubnetOf(t.Context(), "ocid1.instance.oc1.iad.nowhere", nil, inventory.Need{}); !errors.Is(err, oci.ErrNotFound) {
			t.Errorf("unknown instance: %v", err)
		}
	})
}
