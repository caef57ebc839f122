// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package host

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"k8s.io/klog/v2"
)

const (
	// nudgeAfter is when the kernel and udev are asked to look again, if the device is not right yet, and how often after that.
	nudgeAfter = 2 * time.Second
	// pathsWait is how long all paths of a multipath attachment are waited for. After that one is enough: the others may be
	// broken, and the volume is needed.
	pathsWait = 30 * time.Second
)

func notProven(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrNotProven, fmt.Sprintf(format, args...))
}

// find looks for the device of an attachment, and proves that it is that. The answer complete is false for a multipath map
// that lacks paths. What does not fit, or not yet, is an error that wraps ErrNotProven.
func (h *Host) find(a Attachment) (d Device, complete bool, err error) {
	complete = true
	switch {
	case a.Type == Paravirtualized:
		d, err = h.findParavirtualized(a)
	case a.Multipath:
		d, complete, err = h.findMultipath(a)
	default:
		d, err = h.findISCSI(a.Targets[0])
	}
	if err != nil {
		return Device{}, false, err
	}
	switch {
	case d.Size == 0:
		return Device{}, false, notProven("%s has no size", d.Path)
	case d.Size < a.Size:
		return Device{}, false, notProven("%s has %d bytes, and the volume has %d", d.Path, d.Size, a.Size)
	}
	return d, complete, nil
}

// findISCSI finds the disk of the session with a target; where multipathd has taken it, the map over it.
func (h *Host) findISCSI(t Target) (Device, error) {
	name, err := h.diskOf(t)
	if err != nil {
		return Device{}, err
	}
	if _, is := h.multipathMap(name); is {
		return h.mapOver([]string{name})
	}
	return h.deviceNamed(name)
}

// diskOf finds the disk that a target has, and compares with the link that udev has made of its address.
func (h *Host) diskOf(t Target) (string, error) {
	s, found, err := h.sessionOf(t)
	switch {
	case err != nil:
		return "", err
	case !found:
		return "", notProven("there is no iSCSI session with %s at %s", t.IQN, t.Portal)
	case s.state != loggedIn:
		return "", notProven("the iSCSI session with %s at %s is in state %s", t.IQN, t.Portal, s.state)
	}
	disks := slices.DeleteFunc(slices.Clone(s.disks), func(l lun) bool { return t.LUN >= 0 && l.number != t.LUN })
	if len(disks) != 1 {
		return "", notProven("the iSCSI session with %s at %s has %d disks, and not one", t.IQN, t.Portal, len(disks))
	}
	disk := disks[0]
	link := fmt.Sprintf("/dev/disk/by-path/ip-%s:%d-iscsi-%s-lun-%d", t.Portal.Addr(), t.Portal.Port(), t.IQN, disk.number)
	switch d, err := h.deviceAt(link); {
	case errors.Is(err, errNoDevice): // no udev, or not yet; the session is the proof
	case err != nil:
		return "", err
	case d.Name != disk.name:
		return "", notProven("%s leads to %s, and the session's disk is %s", link, d.Name, disk.name)
	}
	return disk.name, nil
}

// findMultipath finds the map over the disks of all targets.
func (h *Host) findMultipath(a Attachment) (Device, bool, error) {
	var disks []string
	var errs []error
	for _, t := range a.Targets {
		disk, err := h.diskOf(t)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		disks = append(disks, disk)
	}
	if len(disks) == 0 {
		return Device{}, false, errors.Join(errs...)
	}
	d, err := h.mapOver(disks)
	if err != nil {
		return Device{}, false, errors.Join(append(errs, err)...)
	}
	return d, len(errs) == 0 && len(h.slaves(d.Name)) == len(disks), nil
}

// findParavirtualized follows the consistent device path.
func (h *Host) findParavirtualized(a Attachment) (Device, error) {
	d, err := h.deviceAt(a.Device)
	if errors.Is(err, errNoDevice) {
		return Device{}, notProven("%s is not there", a.Device)
	}
	if err != nil {
		return Device{}, err
	}
	behind, err := h.sessionsBehind(d)
	if err != nil {
		return Device{}, err
	}
	if len(behind) > 0 {
		return Device{}, notProven("%s leads to %s, which is a disk of the iSCSI target %s", a.Device, d.Name, behind[0].iqn)
	}
	if _, err := os.Stat(h.paths.block(d.Name, "partition")); err == nil {
		return Device{}, notProven("%s leads to %s, which is a partition", a.Device, d.Name)
	}
	if other := h.otherLink(d, a.Device); other != "" {
		return Device{}, notProven("%s leads to %s, which udev knows as %s", a.Device, d.Name, other)
	}
	return d, nil
}

// otherLink looks into udev's record of a device. If it has consistent device paths, but not the one by which the device was
// found, that one is older than the device.
func (h *Host) otherLink(d Device, path string) string {
	record, err := os.ReadFile(filepath.Join(h.paths.Udev, "data", "b"+d.Number.String()))
	if err != nil {
		return "" // no udev
	}
	dir, other := filepath.Dir(path), ""
	for line := range strings.Lines(string(record)) {
		link, is := strings.CutPrefix(strings.TrimSpace(line), "S:")
		switch link = "/dev/" + link; {
		case !is || filepath.Dir(link) != dir:
		case link == path:
			return ""
		default:
			other = link
		}
	}
	return other
}

// await finds the device of an attachment, and waits for it. What does not fit is looked at again, after udev and the kernel have been
// asked to look, until the context ends: the error then is the last thing that did not fit.
func (h *Host) await(ctx context.Context, a Attachment) (Device, error) {
	begin, nudged := time.Now(), time.Now()
	for p := newPace(); ; {
		d, complete, err := h.find(a)
		switch {
		case err == nil && complete:
			return d, nil
		case err == nil && time.Since(begin) >= pathsWait:
			klog.FromContext(ctx).Info("a multipath volume lacks paths", "device", d.Path, "paths", h.slaves(d.Name), "want", len(a.Targets))
			return d, nil
		case err != nil && !errors.Is(err, ErrNotProven):
			return Device{}, err
		}
		if time.Since(nudged) >= nudgeAfter {
			h.nudge(ctx, a)
			nudged = time.Now()
		}
		if !p.wait(ctx) {
			if err == nil { // some paths
				return d, nil
			}
			return Device{}, fmt.Errorf("after %s: %w", time.Since(begin).Round(time.Second), err)
		}
	}
}

// nudge asks the kernel for the sizes of the disks of an attachment, and udev for its links. It is all right if it cannot.
func (h *Host) nudge(ctx context.Context, a Attachment) {
	var disks []string
	for _, t := range a.Targets {
		if s, found, err := h.sessionOf(t); err == nil && found {
			for _, l := range s.disks {
				disks = append(disks, l.name)
			}
		}
	}
	if a.Device != "" {
		if d, err := h.deviceAt(a.Device); err == nil {
			disks = append(append(disks, d.Name), h.slaves(d.Name)...)
		}
	}
	logger := klog.FromContext(ctx)
	for _, d := range disks {
		if err := h.rescan(d); err != nil {
			logger.V(2).Info("no rescan", "device", d, "err", err)
		}
	}
	trigger := []string{"udevadm", "trigger", "--action=change", "--subsystem-match=block"}
	if a.Type == ISCSI { // of a paravirtualized one nobody knows which disk should have the link
		for _, d := range disks {
			trigger = append(trigger, "--sysname-match="+d)
		}
	}
	for _, argv := range [][]string{trigger, {"udevadm", "settle", "--timeout=5"}} {
		if _, err := h.run(ctx, newCommand(quickLimit, argv...)); err != nil {
			logger.V(2).Info("udev did not look again", "err", err)
			return
		}
	}
}
