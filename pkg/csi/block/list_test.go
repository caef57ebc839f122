// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package block_test

import (
	"slices"
	"testing"

	spec "github.com/container-storage-interface/spec/lib/go/csi"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/codes"

	"github.com/oracle/oci-cloud-controller-manager/pkg/csi/block"
	"github.com/oracle/oci-cloud-controller-manager/test/ocisim"
)

// TestListVolumes: pages fit together, and published nodes are complete or an error.
func TestListVolumes(t *testing.T) {
	inBed(t, ocisim.Options{}, func(b *bed) {
		b.start(func(o *block.ControllerOptions) { o.PublishedNodes = true })
		elsewhere := b.region.AddCompartment(ocisim.Compartment{Name: "other"})
		var want []string
		for range 4 {
			want = append(want, b.volume())
		}
		foreign := b.volume(func(v *ocisim.Volume) { v.Compartment = elsewhere })
		b.cluster.pvs = []string{want[0], foreign, "ocid1.volume.oc1.iad.none"}
		want = append(want, foreign)
		slices.Sort(want)
		must(b, b.c.ControllerPublishVolume, publish(foreign, "node-2"))
		at := map[string][]string{}
		var got []string
		for token := ""; ; {
			page := must(b, b.c.ListVolumes, &spec.ListVolumesRequest{MaxEntries: 2, StartingToken: token})
			for _, e := range page.GetEntries() {
				got = append(got, e.GetVolume().GetVolumeId())
				if nodes := e.GetStatus().GetPublishedNodeIds(); len(nodes) > 0 {
					at[e.GetVolume().GetVolumeId()] = nodes
				}
			}
			if token = page.GetNextToken(); token == "" {
				break
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			b.Error(diff)
		}
		if diff := cmp.Diff(map[string][]string{foreign: {"node-2"}}, at); diff != "" {
			b.Error(diff)
		}
		one := must(b, b.c.ControllerGetVolume, &spec.ControllerGetVolumeRequest{VolumeId: foreign})
		if one.GetVolume().GetCapacityBytes() != 50*gib || !slices.Equal(one.GetStatus().GetPublishedNodeIds(), []string{"node-2"}) {
			b.Errorf("volume %v", one)
		}
		_, err := call(b, b.c.ListVolumes, &spec.ListVolumesRequest{StartingToken: "page 2"})
		b.refused(err, codes.Aborted)
		allow := b.region.Deny(ocisim.Policy{ResourceType: "volume-attachments"})
		_, err = call(b, b.c.ListVolumes, &spec.ListVolumesRequest{})
		b.refused(err, codes.PermissionDenied)
		allow()
		b.region.Deny(ocisim.Policy{ResourceType: "volumes", Compartment: elsewhere})
		page := must(b, b.c.ListVolumes, &spec.ListVolumesRequest{})
		if !slices.ContainsFunc(page.GetEntries(), func(e *spec.ListVolumesResponse_Entry) bool {
			return e.GetVolume().GetVolumeId() == foreign && slices.Equal(e.GetStatus().GetPublishedNodeIds(), []string{"node-2"})
		}) {
			b.Errorf("a volume that is attached, but cannot be read, is missing: %v", page)
		}
	})
}
