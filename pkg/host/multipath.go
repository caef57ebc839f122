// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package host

import (
	"context"
	"fmt"
	"slices"
	"strings"
)

// multipathMap finds the map that multipathd has made of a disk, if there is one.
func (h *Host) multipathMap(disk string) (string, bool) {
	for _, holder := range h.holders(disk) {
		if h.isMultipath(holder) {
			return holder, true
		}
	}
	return "", false
}

// isMultipath says whether a device is a map of multipathd.
func (h *Host) isMultipath(name string) bool {
	uuid, err := h.attribute(h.paths.block(name, "dm", "uuid"))
	return err == nil && strings.HasPrefix(uuid, "mpath-")
}

// unused makes sure that a device is not mounted, and that no other device is made of it or of its partitions. The map of multipathd
// over a disk counts for what it is used for.
func (h *Host) unused(d Device) error {
	mounts, err := h.mountTable()
	if err != nil {
		return err
	}
	return h.unusedIn(mounts, d)
}

func (h *Host) unusedIn(mounts table, d Device) error {
	if on := mounts.of(d); len(on) > 0 {
		return fmt.Errorf("%w: %s is mounted at %s", ErrInUse, d.Path, on[0].path)
	}
	for _, name := range append(h.partitions(d.Name), d.Name) {
		for _, holder := range h.holders(name) {
			above, err := h.deviceNamed(holder)
			if err != nil {
				return err
			}
			if name != d.Name || !h.isMultipath(holder) {
				return fmt.Errorf("%w: %s is part of %s", ErrInUse, d.Path, above.Path)
			}
			if err := h.unusedIn(mounts, above); err != nil {
				return err
			}
		}
		if name == d.Name {
			continue
		}
		part, err := h.deviceNamed(name)
		if err != nil {
			return err
		}
		if on := mounts.of(part); len(on) > 0 {
			return fmt.Errorf("%w: %s is mounted at %s", ErrInUse, part.Path, on[0].path)
		}
	}
	return nil
}

// flushMap removes the map over disks that are about to go.
func (h *Host) flushMap(ctx context.Context, name string) error {
	d, err := h.deviceNamed(name)
	if err != nil {
		return err
	}
	if err := h.unused(d); err != nil {
		return err
	}
	if _, err := h.run(ctx, newCommand(quickLimit, "multipath", "-f", strings.TrimPrefix(d.Path, "/dev/mapper/"))); err != nil {
		return fmt.Errorf("remove the multipath map %s: %w", d.Path, err)
	}
	return nil
}

// resizeMap lets multipathd see that the disks of a map have grown.
func (h *Host) resizeMap(ctx context.Context, d Device) error {
	if _, err := h.run(ctx, newCommand(quickLimit, "multipathd", "resize", "map", strings.TrimPrefix(d.Path, "/dev/mapper/"))); err != nil {
		return fmt.Errorf("resize the multipath map %s: %w", d.Path, err)
	}
	return nil
}

// mapOver finds the one map that is made of nothing but the disks given, which are those of an attachment.
func (h *Host) mapOver(disks []string) (Device, error) {
	var found string
	for _, disk := range disks {
		m, ok := h.multipathMap(disk)
		switch {
		case !ok:
			continue // its path is not in the map yet
		case found == "":
			found = m
		case found != m:
			return Device{}, notProven("disks of the attachment are in two maps, %s and %s", found, m)
		}
	}
	if found == "" {
		return Device{}, notProven("multipathd has made no map of %s", strings.Join(disks, ", "))
	}
	for _, slave := range h.slaves(found) {
		if !slices.Contains(disks, slave) {
			return Device{}, notProven("the map %s has the disk %s, which is not the attachment's", found, slave)
		}
	}
	return h.deviceNamed(found)
}
