// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package blockvolume_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/oracle/oci-cloud-controller-manager/pkg/blockvolume"
	"github.com/oracle/oci-cloud-controller-manager/test/ocisim"
)

// TestSharedLists: requests that come while the attachments are being listed share the next list, and one that is given up takes nothing from
// the others, whether it came first or later.
func TestSharedLists(t *testing.T) {
	for name, impatient := range map[string]int{"nobody": -1, "the first": 0, "the first of those who share": 1, "another": 7} {
		t.Run(name, func(t *testing.T) {
			slow := ocisim.Range{Min: time.Second, Max: time.Second}
			simulate(t, ocisim.Options{Latency: map[string]ocisim.Range{"compute.ListVolumeAttachments": slow}}, func(r *rig) {
				const n = 20
				volumes := make([]string, n)
				for i := range volumes {
					volumes[i] = r.volume()
				}
				together(n, func(i int) {
					time.Sleep(time.Duration(i) * time.Millisecond)
					limit := time.Minute
					if i == impatient {
						limit = 500 * time.Millisecond
					}
					_, err := within(r, limit, func(ctx context.Context) (struct{}, error) {
						return struct{}{}, r.s.Detach(ctx, detachRequest{VolumeID: volumes[i], InstanceID: r.one})
					})
					if gaveUp := errors.Is(err, blockvolume.ErrPending); gaveUp != (i == impatient) || err != nil && !gaveUp {
						t.Errorf("%d: %v", i, err)
					}
				})
				r.calls("compute.ListVolumeAttachments", 2)
			})
		})
	}
}
