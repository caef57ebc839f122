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
	"time"

	"k8s.io/klog/v2"
)

// Modes of what is made in the directories of the kubelet, as the existing implementation makes them.
const (
	directoryMode = 0o750
	fileMode      = 0o640
)

// nodeFile is the file in the staging directory of a raw block volume at which the device is mounted. The existing implementation has the
// same, so that each can take down what the other has staged.
const nodeFile = "mountfile"

// StageRequest says which volume is to be staged, and how.
type StageRequest struct {
	Volume     string // OCID
	Attachment Attachment
	Staging    string      // path of the host
	Filesystem *Filesystem // nil for raw block volumes
}

// Stage connects the disk of an attachment and mounts it at the staging path. It can be repeated.
func (h *Host) Stage(ctx context.Context, r StageRequest) error {
	if err := r.Attachment.validate(); err != nil {
		return err
	}
	staging, err := h.canonical(r.Staging)
	if err != nil {
		return err
	}
	r.Staging = staging
	r.Attachment.Targets = distinct(r.Attachment.Targets)
	return h.operate(ctx, r.Volume, func(ctx context.Context, act *activity) error {
		err := h.stage(ctx, act, r)
		if err == nil {
			return nil
		}
		if left := h.undo(ctx, act, r.Volume); left != nil {
			return fmt.Errorf("%w; %w: %w", err, ErrLeftBehind, left)
		}
		return err
	})
}

// distinct drops what is there twice: the first path of a multipath attachment is often in the list of all paths, too.
func distinct(targets []Target) []Target {
	var list []Target
	for _, t := range targets {
		if !slices.Contains(list, t) {
			list = append(list, t)
		}
	}
	return list
}

func (h *Host) stage(ctx context.Context, act *activity, r StageRequest) error {
	if err := h.connect(ctx, act, r); err != nil {
		return err
	}
	act.at("waiting for the device")
	d, err := h.await(ctx, r.Attachment)
	if err != nil {
		return err
	}
	if r.Filesystem == nil {
		return h.stageNode(ctx, act, d, r.Staging)
	}
	done, err := h.stagedAlready(ctx, act, d, r.Staging)
	switch {
	case err != nil:
		return err
	case done && r.Filesystem.Grow && !r.Filesystem.ReadOnly: // the process may have died after the mount
		return (&executor{h: h, ctx: ctx, act: act, device: d}).resize(r.Staging)
	case done:
		return nil
	}
	if err := os.MkdirAll(h.paths.file(r.Staging), directoryMode); err != nil {
		return fmt.Errorf("staging directory: %w", err)
	}
	return h.mountFilesystem(ctx, act, d, r)
}

// undo disconnects what a failed stage has connected, since the caller may not come again. What is in use stays, and so does the
// record; the error says what.
func (h *Host) undo(ctx context.Context, act *activity, volume string) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), loginLimit)
	defer cancel()
	act.at("undoing")
	rec, found, err := h.recall(volume)
	if err != nil || !found {
		return err
	}
	mounts, err := h.mountTable()
	if err != nil {
		return err
	}
	for _, path := range []string{rec.Staging, filepath.Join(rec.Staging, nodeFile)} {
		if hasMount(mounts, path) {
			return fmt.Errorf("%s is mounted", path)
		}
	}
	if err := h.disconnect(ctx, act, rec); err != nil {
		return fmt.Errorf("the disk stays connected: %w", err)
	}
	return h.forget(volume)
}

// connect makes the sessions of an iSCSI attachment.
func (h *Host) connect(ctx context.Context, act *activity, r StageRequest) error {
	a := r.Attachment
	rec := record{Volume: r.Volume, Staging: r.Staging, Type: a.Type, Targets: a.Targets, Multipath: a.Multipath}
	old, found, err := h.recall(r.Volume)
	if err != nil {
		return err
	}
	if found && !slices.Equal(old.Targets, rec.Targets) {
		// The volume was attached in another way before, and nobody has taken that down.
		if err := h.disconnect(ctx, act, old); err != nil {
			return fmt.Errorf("an earlier attachment of the volume: %w", err)
		}
	}
	if a.Type != ISCSI {
		return h.remember(rec)
	}
	if a.Multipath {
		rec.Agent = !found || old.Agent
		act.at("waiting for the cloud agent's sessions")
		if rec.Agent = rec.Agent && h.agentConnects(ctx, a.Targets); rec.Agent {
			return h.remember(rec)
		}
	}
	if err := h.remember(rec); err != nil { // before there is anything to take down
		return err
	}
	var errs []error
	for _, t := range a.Targets {
		act.at("logging in to %s at %s", t.IQN, t.Portal)
		if _, err := h.login(ctx, t, a); err != nil {
			errs = append(errs, err)
		}
	}
	if len(errs) < len(a.Targets) {
		return nil // one path is enough
	}
	return errors.Join(errs...)
}

// agentConnects waits for sessions that somebody else makes, and says whether all are there.
func (h *Host) agentConnects(ctx context.Context, targets []Target) bool {
	ctx, cancel := context.WithTimeout(ctx, h.agentWait)
	defer cancel()
	for p := newPace(); ; {
		missing := 0
		for _, t := range targets {
			if _, found, err := h.sessionOf(t); err != nil || !found {
				missing++
			}
		}
		if missing == 0 {
			return true
		}
		if !p.wait(ctx) {
			return false
		}
	}
}

// stagedAlready looks whether the device is mounted at the staging path. A mount whose device has gone is removed.
func (h *Host) stagedAlready(ctx context.Context, act *activity, d Device, staging string) (bool, error) {
	mounts, err := h.mountTable()
	if err != nil {
		return false, err
	}
	m, is := mounts.at(staging)
	if !is {
		return false, nil
	}
	there, err := h.deviceOf(m)
	switch {
	case errors.Is(err, errNoDevice):
		klog.FromContext(ctx).Info("unmounting a file system whose disk has gone", "path", staging, "device", m.source)
		return false, h.unmount(ctx, act, staging)
	case err != nil:
		return false, err
	case there.Number != d.Number:
		return false, fmt.Errorf("%w: %s has %s, and the attachment's device is %s", ErrOtherMount, staging, there.Path, d.Path)
	}
	return true, nil
}

// stageNode mounts the node of a device at a file in the staging directory.
func (h *Host) stageNode(ctx context.Context, act *activity, d Device, staging string) error {
	path := filepath.Join(staging, nodeFile)
	mounts, err := h.mountTable()
	if err != nil {
		return err
	}
	if _, is := mounts.at(path); is {
		there, err := h.nodeAt(path)
		switch {
		case err == nil && there.Number == d.Number:
			return nil
		case err == nil:
			return fmt.Errorf("%w: %s has %s, and the attachment's device is %s", ErrOtherMount, path, there.Path, d.Path)
		case !errors.Is(err, errNoDevice):
			return err
		}
		klog.FromContext(ctx).Info("unmounting the node of a disk that has gone", "path", path)
		if err := h.unmount(ctx, act, path); err != nil {
			return err
		}
	}
	if err := h.unused(d); err != nil {
		return err
	}
	if err := h.makeFile(path); err != nil {
		return err
	}
	if err := h.bind(ctx, act, d.Path, path, nil); err != nil {
		return err
	}
	if there, err := h.nodeAt(path); err != nil || there.Number != d.Number {
		return errors.Join(notProven("%s was mounted, and something else is mounted at %s", d.Path, path), err, h.unmount(ctx, act, path))
	}
	return nil
}

// nodeAt is the device whose node is mounted at a file. Nodes are in memory, so that asking for one never hangs.
func (h *Host) nodeAt(path string) (Device, error) {
	n, err := blockNumber(h.paths.file(path))
	if err != nil {
		return Device{}, err
	}
	return h.deviceNumbered(n)
}

// makeFile makes an empty file to mount at.
func (h *Host) makeFile(path string) error {
	if err := os.MkdirAll(h.paths.file(filepath.Dir(path)), directoryMode); err != nil {
		return fmt.Errorf("file to mount at: %w", err)
	}
	f, err := os.OpenFile(h.paths.file(path), os.O_CREATE|os.O_EXCL|os.O_WRONLY, fileMode)
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("file to mount at: %w", err)
	}
	return f.Close()
}

// unmountTries is how many mounts on top of each other at one path are taken away.
const unmountTries = 16

// unmount unmounts all that is mounted at a path, and looks whether it has.
func (h *Host) unmount(ctx context.Context, act *activity, path string) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Duration(unmountTries)*mountLimit)
	defer cancel()
	for range unmountTries {
		mounts, err := h.mountTable()
		if err != nil {
			return err
		}
		if _, is := mounts.at(path); !is {
			return nil
		}
		act.at("umount %s", path)
		if _, err := h.run(ctx, newCommand(mountLimit, "umount", path)); err != nil {
			return fmt.Errorf("unmount: %w", err)
		}
	}
	return fmt.Errorf("unmount %s: %w", path, ErrOtherMount)
}
