// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package blockvolume_test

import (
	"errors"
	"testing"

	"pgregory.net/rapid"

	"github.com/oracle/oci-cloud-controller-manager/pkg/blockvolume"
)

// C083: minimum, maximum, rounding.
func TestSize(t *testing.T) {
	const tib = 1024 * gib
	for _, tt := range []struct {
		name            string
		required, limit int64
		want            int64 // GB; 0: out of range
	}{
		{"nothing said", 0, 0, 50},
		{"1Gi", gib, 0, 50},
		{"50Gi", 50 * gib, 0, 50},
		{"50G", 50e9, 0, 50},
		{"50.5Gi", 50*gib + gib/2, 0, 51},
		{"51200.1Mi", 50*gib + 104858, 0, 51},
		{"32Ti", 32 * tib, 0, 32 * 1024},
		{"33Ti", 33 * tib, 0, 0},
		{"a byte above 32Ti", 32*tib + 1, 0, 0},
		{"limit below the minimum", gib, 10 * gib, 0},
		{"limit below required", 100 * gib, 99 * gib, 0},
		{"a limit does not raise the size", 70 * gib, 100 * gib, 70},
		{"limit only", 0, 100 * gib, 50},
		{"limit only, below the minimum", 0, 49 * gib, 0},
		{"rounding goes above the limit", 60*gib + 1, 60*gib + 5, 0},
		{"exactly the limit", 60 * gib, 60 * gib, 60},
		{"negative", -1, 0, 0},
		{"negative limit", 0, -1, 0},
		{"limit above the maximum", gib, 100 * tib, 50},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := blockvolume.SizeGB(tt.required, tt.limit)
			if got != tt.want || (tt.want == 0) != errors.Is(err, blockvolume.ErrOutOfRange) {
				t.Errorf("%d GB, %v; want %d", got, err, tt.want)
			}
		})
	}
}

func TestSizeIsWithinWhatIsAskedFor(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		required := rapid.Int64Range(0, 40*1024*gib).Draw(t, "required")
		limit := rapid.OneOf(rapid.Just(int64(0)), rapid.Int64Range(0, 40*1024*gib)).Draw(t, "limit")
		got, err := blockvolume.SizeGB(required, limit)
		if err != nil {
			return
		}
		bytes := got * gib
		if bytes < required || limit > 0 && bytes > limit || got < 50 || got > 32*1024 || got > 50 && bytes-required >= gib {
			t.Fatalf("%d GB for %d to %d bytes", got, required, limit)
		}
	})
}
