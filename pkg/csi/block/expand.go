// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package block

import (
	"context"

	spec "github.com/container-storage-interface/spec/lib/go/csi"
)

// ControllerExpandVolume implements csi.ControllerServer. The answer has the real size, in bytes, also when there was nothing to do; the file
// system may lag behind either way.
func (c *Controller) ControllerExpandVolume(ctx context.Context, r *spec.ControllerExpandVolumeRequest) (*spec.ControllerExpandVolumeResponse, error) {
	if err := required("volume ID", r.GetVolumeId()); err != nil {
		return nil, err
	}
	if r.GetCapacityRange() == nil {
		return nil, required("capacity range", "")
	}
	if err := exists("volume", r.GetVolumeId()); err != nil {
		return nil, err
	}
	v, err := c.options.Volumes.Expand(ctx, r.GetVolumeId(), r.GetCapacityRange().GetRequiredBytes(), r.GetCapacityRange().GetLimitBytes())
	if err != nil {
		return nil, err
	}
	return &spec.ControllerExpandVolumeResponse{CapacityBytes: v.SizeBytes, NodeExpansionRequired: r.GetVolumeCapability().GetBlock() == nil}, nil
}
