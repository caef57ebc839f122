// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package blockvolume

import (
	"context"

	"k8s.io/klog/v2"

	"github.com/oracle/oci-cloud-controller-manager/pkg/oci"
)

// Discard deletes what was made under the name of a volume that nobody wants any more: all that carries its mark, and nothing that only
// has its name. It returns nil when a complete list has nothing of it any more; until then, it has to be called again.
//
// Errors: ErrPending while something is being made or deleted, and those of Delete.
func (s *Service) Discard(ctx context.Context, name string) error {
	release, err := lock(ctx, s.names, volumeKey(name), "volume "+name)
	if err != nil {
		return err
	}
	defer release()
	found, err := s.findVolumes(ctx, name)
	if err != nil {
		return err
	}
	left := 0
	for _, v := range append(found.live, found.faulty...) {
		if s.owns(name, v.DisplayName, v.Tags) != ownedByMark {
			continue
		}
		left++
		if v.State == oci.VolumeProvisioning || v.State == oci.VolumeRestoring {
			continue
		}
		klog.FromContext(ctx).Info("Deleting a volume that nobody wants any more", "volume", name, "volumeID", v.ID)
		if err := s.Delete(ctx, v.ID); err != nil {
			return err
		}
	}
	if left > 0 {
		return problem(ErrPending, "discard volume %s: %d are being made or deleted", name, left)
	}
	return nil
}
