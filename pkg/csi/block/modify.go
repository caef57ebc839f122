// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package block

import (
	"context"

	spec "github.com/container-storage-interface/spec/lib/go/csi"

	"github.com/oracle/oci-cloud-controller-manager/pkg/blockvolume"
)

// ControllerModifyVolume implements csi.ControllerServer: performance and tags follow a VolumeAttributesClass.
func (c *Controller) ControllerModifyVolume(ctx context.Context, r *spec.ControllerModifyVolumeRequest) (*spec.ControllerModifyVolumeResponse, error) {
	if err := required("volume ID", r.GetVolumeId()); err != nil {
		return nil, err
	}
	w, err := c.read(ctx, VolumeAttributesClass, r.GetMutableParameters(), nil)
	if err != nil {
		return nil, err
	}
	if err := exists("volume", r.GetVolumeId()); err != nil {
		return nil, err
	}
	change := blockvolume.Modification{VPUsPerGB: w.vpus, AutoTune: w.autoTune, Tags: w.tags}
	if _, err := c.options.Volumes.Modify(ctx, r.GetVolumeId(), change); err != nil {
		return nil, err
	}
	return &spec.ControllerModifyVolumeResponse{}, nil
}

// override lays the parameters of a VolumeAttributesClass over those of the StorageClass.
func (c *Controller) override(ctx context.Context, w wishes, mutable map[string]string, claim *Claim) (wishes, error) {
	if len(mutable) == 0 {
		return w, nil
	}
	m, err := c.read(ctx, VolumeAttributesClass, mutable, claim)
	if err != nil {
		return w, err
	}
	if m.vpus != nil {
		w.vpus = m.vpus
	}
	if m.autoTune.Detached != nil {
		w.autoTune.Detached = m.autoTune.Detached
	}
	if m.autoTune.MaxVPUs != nil {
		w.autoTune.MaxVPUs = m.autoTune.MaxVPUs
	}
	w.more = m.tags
	return w, nil
}
