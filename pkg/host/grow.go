// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package host

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"time"
)

// growWait is how long a disk may take to show its new size after a rescan, which is at once; that of a paravirtualized disk comes with
// a notice of the hypervisor.
const growWait = 30 * time.Second

// Grow lets a mounted volume reach the size that the cloud has given it, and its file system with it. It returns the size of the
// device in bytes. The path is one at which the volume is staged or published.
func (h *Host) Grow(ctx context.Context, volume, path string, size int64) (int64, error) {
	path, err := h.canonical(path)
	if err != nil {
		return 0, err
	}
	var got int64
	err = h.operate(ctx, volume, func(ctx context.Context, act *activity) error {
		var err error
		got, err = h.grow(ctx, act, path, size)
		return err
	})
	if err != nil {
		return 0, err // got belongs to the operation as long as it is under way
	}
	return got, nil
}

func (h *Host) grow(ctx context.Context, act *activity, path string, size int64) (int64, error) {
	mounts, err := h.mountTable()
	if err != nil {
		return 0, err
	}
	m, is := mounts.at(path)
	if !is {
		path = filepath.Join(path, nodeFile)
		if m, is = mounts.at(path); !is {
			return 0, fmt.Errorf("%s: %w", filepath.Dir(path), ErrNotMounted)
		}
	}
	var d Device
	if m.isNode() {
		d, err = h.nodeAt(path)
	} else {
		d, err = h.deviceOf(m)
	}
	if err != nil {
		return 0, err
	}
	act.at("waiting for the new size of %s", d.Path)
	if d, err = h.growDevice(ctx, d, size); err != nil {
		return 0, err
	}
	if m.isNode() {
		return d.Size, nil
	}
	if m.readOnly() { // perhaps only here
		on := mounts.of(d)
		i := slices.IndexFunc(on, func(other mounted) bool { return !other.readOnly() })
		if i < 0 {
			return d.Size, nil
		}
		path = on[i].path
	}
	e := &executor{h: h, ctx: ctx, act: act, device: d}
	return d.Size, e.resize(path)
}

// growDevice lets the kernel see the new size of a disk, or of the disks of a map.
func (h *Host) growDevice(ctx context.Context, d Device, size int64) (Device, error) {
	ctx, cancel := context.WithTimeout(ctx, growWait)
	defer cancel()
	paths := []string{d.Name}
	isMap := h.isMultipath(d.Name)
	if isMap {
		paths = h.slaves(d.Name)
	}
	for p := newPace(); ; {
		for _, name := range paths {
			if err := h.rescan(name); err != nil && !isMap { // a lost path of a map cannot be asked
				return Device{}, err
			}
		}
		if isMap {
			if err := h.resizeMap(ctx, d); err != nil {
				return Device{}, err
			}
		}
		now, err := h.deviceNamed(d.Name)
		if err != nil {
			return Device{}, err
		}
		if now.Size >= size {
			return now, nil
		}
		if !p.wait(ctx) {
			return Device{}, fmt.Errorf("%w: %s has %d bytes of %d", ErrTooSmall, now.Path, now.Size, size)
		}
	}
}
