// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package blockvolume_test

import (
	"testing"

	"github.com/oracle/oci-cloud-controller-manager/pkg/blockvolume"
	"github.com/oracle/oci-cloud-controller-manager/test/ocisim"
)

// Lists are complete, or an error.
func TestLists(t *testing.T) {
	simulate(t, ocisim.Options{PageSize: 2, ShortPages: 0.3}, func(r *rig) {
		var ids []string
		for range 7 {
			ids = append(ids, r.volume())
		}
		far := r.instance("far", func(i *ocisim.Instance) { i.Compartment = r.other })
		foreign := r.volume(func(v *ocisim.Volume) { v.Compartment = r.other })
		r.mustAttach(ids[0], r.one)
		r.mustAttach(foreign, far)
		r.mustAttach(ids[1], r.two)
		if err := r.detach(detachRequest{VolumeID: ids[1], InstanceID: r.two}); err != nil {
			t.Fatal(err)
		}
		if err := r.remove(ids[2]); err != nil {
			t.Fatal(err)
		}
		list, err := r.s.List(r.Context())
		if err != nil || len(list) != 6 {
			t.Errorf("%v, %v", list, err)
		}
		attached, err := r.s.Attachments(r.Context(), r.other)
		if err != nil || len(attached) != 2 || attached[ids[0]][0].InstanceID != r.one || attached[foreign][0].InstanceID != far {
			t.Errorf("%v, %v", attached, err)
		}
		r.region.Deny(ocisim.Policy{ResourceType: "volume-attachments", Compartment: r.other})
		_, err = r.s.Attachments(r.Context(), r.other)
		r.refused(err, blockvolume.ErrForbidden)
	})
}
