// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package blockvolume

// Limits of the size of a volume in GB, and of its performance (oci-api.md §3.5).
const (
	gibibyte = 1 << 30

	MinSizeGB = 50
	MaxSizeGB = 32 * 1024

	DefaultVPUs = 10
	MaxVPUs     = 120
	vpuStep     = 10
)

// SizeGB is the size of a volume that has at least the required and at most limit bytes; 0 stands for "no matter". A limit
// never raises the size. Errors: ErrOutOfRange.
func SizeGB(required, limit int64) (int64, error) {
	switch {
	case required < 0, limit < 0:
		return 0, problem(ErrOutOfRange, "required %d bytes, limit %d bytes: a size cannot be negative", required, limit)
	case limit > 0 && limit < required:
		return 0, problem(ErrOutOfRange, "the limit of %d bytes is below the required %d bytes", limit, required)
	case required > MaxSizeGB*gibibyte:
		return 0, problem(ErrOutOfRange, "required %d bytes, but a volume has at most %d GiB", required, MaxSizeGB)
	}
	size := max((required+gibibyte-1)/gibibyte, MinSizeGB)
	if limit > 0 && size*gibibyte > limit {
		return 0, problem(ErrOutOfRange, "volumes have whole GiB, at least %d: %d GiB are above the limit of %d bytes", MinSizeGB, size, limit)
	}
	return size, nil
}

// CheckVPUs says what is wrong with a performance in units per GB; nil means nothing. Errors: ErrInvalid.
func CheckVPUs(vpus int64) error {
	if vpus < 0 || vpus > MaxVPUs || vpus%vpuStep != 0 {
		return problem(ErrInvalid, "%d performance units per GB: it must be a multiple of %d between 0 and %d", vpus, vpuStep, MaxVPUs)
	}
	return nil
}
