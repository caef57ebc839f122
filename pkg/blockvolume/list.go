// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package blockvolume

import (
	"context"
	"slices"
	"strings"

	"github.com/oracle/oci-cloud-controller-manager/pkg/oci"
)

// List lists the volumes that are not gone in the compartment of volumes, oldest first. It is complete, or an error.
func (s *Service) List(ctx context.Context) ([]*oci.Volume, error) {
	all, err := s.deps.Storage.ListVolumes(ctx, s.cfg.CompartmentID, "")
	if err != nil {
		return nil, failed(err, "list volumes")
	}
	live := slices.DeleteFunc(all, func(v *oci.Volume) bool {
		return v.State == oci.VolumeTerminating || v.State == oci.VolumeTerminated
	})
	slices.SortFunc(live, func(a, b *oci.Volume) int {
		if c := a.TimeCreated.Compare(b.TimeCreated); c != 0 {
			return c
		}
		return strings.Compare(a.ID, b.ID)
	})
	return live, nil
}

// Attachments lists the attachments that are not over, by volume, of all instances in the compartments of the cluster and in
// those given: volumes may be anywhere. It is complete, or an error: who misses one here may attach the volume anew.
func (s *Service) Attachments(ctx context.Context, compartments ...string) (map[string][]*oci.VolumeAttachment, error) {
	out := map[string][]*oci.VolumeAttachment{}
	for _, compartment := range s.compartments(compartments...) {
		all, err := s.deps.Compute.ListVolumeAttachments(ctx, compartment, oci.AttachmentFilter{})
		if err != nil {
			return nil, failed(err, "list the attachments in compartment %s", compartment)
		}
		for _, a := range all {
			if a.State != oci.AttachmentDetached {
				out[a.VolumeID] = append(out[a.VolumeID], a)
			}
		}
	}
	return out, nil
}
