// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package host

import (
	"context"
	"fmt"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// Usage is what a volume has and how much of it is used.
type Usage struct {
	Block bool // a raw block volume: of which only Bytes.Total is known

	Bytes, Inodes Amounts
}

// Amounts are of bytes or inodes.
type Amounts struct{ Total, Used, Available int64 }

// Stats tells how full a volume is. A file system that does not answer is a BusyError from the second time on, and holds up nobody else.
func (h *Host) Stats(ctx context.Context, path string) (Usage, error) {
	path, err := h.canonical(path)
	if err != nil {
		return Usage{}, err
	}
	mounts, err := h.mountTable()
	if err != nil {
		return Usage{}, err
	}
	m, is := mounts.at(path)
	if !is {
		path = filepath.Join(path, nodeFile)
		if m, is = mounts.at(path); !is {
			return Usage{}, fmt.Errorf("%s: %w", filepath.Dir(path), ErrNotMounted)
		}
	}
	if m.isNode() {
		d, err := h.nodeAt(path)
		if err != nil {
			return Usage{}, err
		}
		return Usage{Block: true, Bytes: Amounts{Total: d.Size}}, nil
	}
	answer := make(chan Usage, 1)
	err = h.operate(ctx, "at "+path, func(_ context.Context, act *activity) error {
		act.at("asking the file system")
		var s unix.Statfs_t
		if err := unix.Statfs(h.paths.file(path), &s); err != nil {
			return fmt.Errorf("usage of %s: %w", path, err)
		}
		answer <- usageOf(s)
		return nil
	})
	if err != nil {
		return Usage{}, err
	}
	return <-answer, nil
}

// Fits makes sure that what is mounted at a path is not another volume than the one named, as far as the record of that tells. A
// volume that the existing implementation has staged has none.
func (h *Host) Fits(volume, path string) error {
	path, err := h.canonical(path)
	if err != nil {
		return err
	}
	rec, found, err := h.recall(volume)
	if err != nil || !found {
		return err
	}
	mounts, err := h.mountTable()
	if err != nil {
		return err
	}
	there, is, err := h.stagedDevice(mounts, path)
	if err != nil || !is {
		return err
	}
	staged, is, err := h.stagedDevice(mounts, rec.Staging)
	if err == nil && is && staged.Number != there.Number {
		err = fmt.Errorf("%s has %s, and volume %s is %s: %w", path, there.Path, volume, staged.Path, ErrOtherVolume)
	}
	return err
}

func usageOf(s unix.Statfs_t) Usage {
	block := s.Bsize
	return Usage{
		Bytes:  Amounts{Total: int64(s.Blocks) * block, Used: int64(s.Blocks-s.Bfree) * block, Available: int64(s.Bavail) * block},
		Inodes: Amounts{Total: int64(s.Files), Used: int64(s.Files - s.Ffree), Available: int64(s.Ffree)},
	}
}
