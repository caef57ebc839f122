// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package block

import (
	"context"
	"fmt"
	"time"

	spec "github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/oracle/oci-cloud-controller-manager/pkg/blockvolume"
)

// validateTimeout bounds ValidateVolumeCapabilities, whose callers do not all have a deadline.
const validateTimeout = 3 * time.Minute

// ValidateVolumeCapabilities implements csi.ControllerServer: it compares.
func (c *Controller) ValidateVolumeCapabilities(ctx context.Context, r *spec.ValidateVolumeCapabilitiesRequest) (*spec.ValidateVolumeCapabilitiesResponse, error) {
	if err := required("volume ID", r.GetVolumeId()); err != nil {
		return nil, err
	}
	if len(r.GetVolumeCapabilities()) == 0 {
		return nil, required("volume capabilities", "")
	}
	if err := exists("volume", r.GetVolumeId()); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, validateTimeout)
	defer cancel()
	if _, err := c.options.Volumes.Get(ctx, r.GetVolumeId()); err != nil {
		return nil, err
	}
	for _, capability := range r.GetVolumeCapabilities() {
		use, err := accessOf(capability)
		if err == nil && blockvolume.IsBootVolume(r.GetVolumeId()) && (!use.block || use.shared) {
			err = status.Error(codes.InvalidArgument, "a boot volume can only be used as a raw block volume on one node")
		}
		if err != nil {
			return &spec.ValidateVolumeCapabilitiesResponse{Message: status.Convert(err).Message()}, nil
		}
	}
	if _, _, err := readParameters(StorageClass, r.GetParameters()); err != nil {
		return &spec.ValidateVolumeCapabilitiesResponse{Message: err.Error()}, nil
	}
	if _, strange, err := readParameters(VolumeAttributesClass, r.GetMutableParameters()); err != nil {
		return &spec.ValidateVolumeCapabilitiesResponse{Message: err.Error()}, nil
	} else if len(strange) > 0 {
		return &spec.ValidateVolumeCapabilitiesResponse{Message: fmt.Sprintf("%s: %s", VolumeAttributesClass, strange[0])}, nil
	}
	return &spec.ValidateVolumeCapabilitiesResponse{Confirmed: &spec.ValidateVolumeCapabilitiesResponse_Confirmed{
		VolumeContext: r.GetVolumeContext(), VolumeCapabilities: r.GetVolumeCapabilities(), Parameters: r.GetParameters(), MutableParameters: r.GetMutableParameters(),
	}}, nil
}
