// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package bodies

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// nextData finds the next part of a file that has data, from an offset on. Behind the last one both ends are the size.
func nextData(f *os.File, from, size int64) (begin, end int64, err error) {
	begin, err = unix.Seek(int(f.Fd()), from, unix.SEEK_DATA)
	switch {
	case errors.Is(err, unix.ENXIO):
		return size, size, nil
	case errors.Is(err, unix.EINVAL), errors.Is(err, unix.EOPNOTSUPP):
		return from, size, nil // the file system does not know
	case err != nil:
		return 0, 0, fmt.Errorf("look for data: %w", err)
	}
	if end, err = unix.Seek(int(f.Fd()), begin, unix.SEEK_HOLE); err != nil {
		return 0, 0, fmt.Errorf("look for a hole: %w", err)
	}
	return begin, min(end, size), nil
}
