// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package host

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
)

// Unstage unmounts a volume and disconnects its disk. It can be repeated: what is left to do is remembered, also when nothing is
// mounted any more. Volumes that the existing implementation has staged are taken down, too.
func (h *Host) Unstage(ctx context.Context, volume, staging string) error {
	staging, err := h.canonical(staging)
	if err != nil {
		return err
	}
	return h.operate(ctx, volume, func(ctx context.Context, act *activity) error {
		return h.unstage(ctx, act, volume, staging)
	})
}

func (h *Host) unstage(ctx context.Context, act *activity, volume, staging string) error {
	node := filepath.Join(staging, nodeFile)
	rec, found, err := h.recall(volume)
	if err != nil {
		return err
	}
	mounts, err := h.mountTable()
	if err != nil {
		return err
	}
	d, mounted, err := h.stagedDevice(mounts, staging)
	if err != nil {
		return err
	}
	if mounted {
		if err := elsewhere(mounts, d, staging, node); err != nil {
			return err
		}
		if !found {
			if rec, found, err = h.deduce(volume, staging, d); err != nil {
				return err
			}
		}
	}
	// The record is there now, before the mount goes from which it could be told.
	for _, path := range []string{node, staging} {
		if err := h.unmount(ctx, act, path); err != nil {
			return err
		}
	}
	if err := os.Remove(h.paths.file(node)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("unstage volume %s: %w", volume, err)
	}
	if !found {
		return nil
	}
	if err := h.disconnect(ctx, act, rec); err != nil {
		return fmt.Errorf("volume %s is unmounted, but still connected: %w", volume, err)
	}
	return h.forget(volume)
}

// stagedDevice finds the device that is mounted at a staging path. It is false if there is none, or it has gone.
func (h *Host) stagedDevice(mounts table, staging string) (Device, bool, error) {
	var d Device
	err := errNoDevice
	if m, is := mounts.at(staging); is {
		d, err = h.deviceOf(m)
	} else if node := filepath.Join(staging, nodeFile); hasMount(mounts, node) {
		d, err = h.nodeAt(node)
	}
	if errors.Is(err, errNoDevice) {
		return Device{}, false, nil
	}
	return d, err == nil, err
}

func hasMount(mounts table, path string) bool {
	_, is := mounts.at(path)
	return is
}

// elsewhere makes sure that a device is mounted at these paths only: pods that still have it would lose it.
func elsewhere(mounts table, d Device, paths ...string) error {
	for _, m := range mounts.of(d) {
		if !slices.Contains(paths, m.path) {
			return fmt.Errorf("%w: %s is mounted at %s", ErrInUse, d.Path, m.path)
		}
	}
	return nil
}

// deduce makes a record from what is mounted. Maps over several sessions that are on no record of ours are those of the cloud's agent.
func (h *Host) deduce(volume, staging string, d Device) (record, bool, error) {
	behind, err := h.sessionsBehind(d)
	if err != nil || len(behind) == 0 {
		return record{}, false, err
	}
	rec := record{Volume: volume, Staging: staging, Type: ISCSI, Multipath: len(behind) > 1, Agent: len(behind) > 1}
	for _, s := range behind {
		rec.Targets = append(rec.Targets, s.target())
	}
	return rec, true, h.remember(rec)
}

// disconnect ends the sessions of a volume that this process, or the existing implementation, has made.
func (h *Host) disconnect(ctx context.Context, act *activity, rec record) error {
	if rec.Type != ISCSI || rec.Agent {
		return nil
	}
	var disks []string
	for _, t := range rec.Targets {
		s, found, err := h.sessionOf(t)
		if err != nil {
			return err
		}
		if found {
			for _, l := range s.disks {
				disks = append(disks, l.name)
			}
		}
	}
	for _, disk := range disks {
		m, is := h.multipathMap(disk)
		if !is {
			continue
		}
		if slices.ContainsFunc(h.slaves(m), func(slave string) bool { return !slices.Contains(disks, slave) }) {
			return fmt.Errorf("%w: %s is in the map %s with disks of others", ErrInUse, disk, m)
		}
		act.at("removing the multipath map %s", m)
		if err := h.flushMap(ctx, m); err != nil {
			return err
		}
	}
	var errs []error
	for _, t := range rec.Targets {
		act.at("logging out from %s at %s", t.IQN, t.Portal)
		errs = append(errs, h.logout(ctx, t))
	}
	return errors.Join(errs...)
}
