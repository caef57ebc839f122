// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package block_test

import (
	"testing"

	spec "github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"

	"github.com/oracle/oci-cloud-controller-manager/test/ocisim"
)

// TestExpand: C081. Capacity is in bytes and real, in the first answer and in each that follows.
func TestExpand(t *testing.T) {
	inBed(t, ocisim.Options{}, func(b *bed) {
		volume := b.volume(func(v *ocisim.Volume) { v.SizeInGBs = 60 })
		grow := func(bytes int64, c *spec.VolumeCapability) (*spec.ControllerExpandVolumeResponse, error) {
			return call(b, b.c.ControllerExpandVolume, &spec.ControllerExpandVolumeRequest{
				VolumeId: volume, CapacityRange: &spec.CapacityRange{RequiredBytes: bytes}, VolumeCapability: c,
			})
		}
		for i, tt := range []struct {
			ask, want int64
			use       *spec.VolumeCapability
			node      bool
		}{
			{70 * gib, 70 * gib, mounted(writer), true}, {70 * gib, 70 * gib, mounted(writer), true}, {70 * gib, 70 * gib, nil, true},
			{gib, 70 * gib, mounted(writer), true}, {70*gib + 1, 71 * gib, device(writer), false}, {71 * gib, 71 * gib, device(writer), false},
		} {
			got, err := grow(tt.ask, tt.use)
			if err != nil || got.GetCapacityBytes() != tt.want || got.GetNodeExpansionRequired() != tt.node {
				b.Errorf("%d: %v, %v; want %d bytes, node expansion %v", i, got, err, tt.want, tt.node)
			}
		}
		if n := b.region.Counts()["blockstorage.UpdateVolume"]; n != 2 {
			b.Errorf("%d updates, want 2", n)
		}
		_, err := grow(33<<40, nil)
		b.refused(err, codes.OutOfRange)
		_, err = call(b, b.c.ControllerExpandVolume, &spec.ControllerExpandVolumeRequest{VolumeId: volume})
		b.refused(err, codes.InvalidArgument)
		_, err = call(b, b.c.ControllerExpandVolume, &spec.ControllerExpandVolumeRequest{
			VolumeId: "ocid1.bootvolume.oc1.iad.b", CapacityRange: &spec.CapacityRange{RequiredBytes: gib},
		})
		b.refused(err, codes.InvalidArgument)
	})
}
