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

	"golang.org/x/sys/unix"
	"k8s.io/klog/v2"
)

// PublishRequest says which staged volume is to be shown where.
type PublishRequest struct {
	Volume   string
	Staging  string
	Target   string
	Block    bool // a raw block volume
	ReadOnly bool
	// Exclusive lets the volume be published at no other path.
	Exclusive bool
	Options   []string // of the mount; those that only a file system has are in force since it was staged
}

// Publish mounts what is staged at the target, too. It can be repeated.
func (h *Host) Publish(ctx context.Context, r PublishRequest) error {
	var err error
	if r.Staging, err = h.canonical(r.Staging); err != nil {
		return err
	}
	if r.Target, err = h.canonical(r.Target); err != nil {
		return err
	}
	return h.operate(ctx, r.Volume, func(ctx context.Context, act *activity) error { return h.publish(ctx, act, r) })
}

func (h *Host) publish(ctx context.Context, act *activity, r PublishRequest) error {
	source := r.Staging
	if r.Block {
		source = filepath.Join(r.Staging, nodeFile)
	}
	mounts, err := h.mountTable()
	if err != nil {
		return err
	}
	staged, is := mounts.at(source)
	if !is || staged.isNode() != r.Block {
		return fmt.Errorf("volume %s at %s: %w", r.Volume, source, ErrNotStaged)
	}
	if err := h.alive(staged, source); err != nil {
		return fmt.Errorf("volume %s at %s: %w: %w", r.Volume, source, ErrNotStaged, err)
	}
	if other := publishedElsewhere(mounts, staged, source, r.Target); r.Exclusive && other != "" {
		return fmt.Errorf("volume %s: %w: %s", r.Volume, ErrPublished, other)
	}
	options := bindOptions(staged, r)
	if there, is := mounts.at(r.Target); is {
		if there.number != staged.number || there.root != staged.root {
			return fmt.Errorf("%s: %w: %s", r.Target, ErrOtherMount, there.source)
		}
		if len(options) == 0 || !slices.ContainsFunc(options, func(o string) bool { return !slices.Contains(there.options, o) }) {
			return nil
		}
		return h.remount(ctx, act, r.Target, options) // the process died between the two steps
	}
	if r.Block {
		err = h.makeFile(r.Target)
	} else if err = os.MkdirAll(h.paths.file(r.Target), directoryMode); err != nil {
		err = fmt.Errorf("target directory: %w", err)
	}
	if err != nil {
		return err
	}
	return h.bind(ctx, act, source, r.Target, options)
}

// publishedElsewhere finds another path than a target at which a staged volume is mounted; empty if there is none.
func publishedElsewhere(mounts table, staged mounted, source, target string) string {
	for _, m := range mounts {
		if m.number == staged.number && m.root == staged.root && m.path != source && m.path != target {
			return m.path
		}
	}
	return ""
}

// alive looks whether the device of a mount is still there.
func (h *Host) alive(m mounted, path string) error {
	if m.isNode() {
		_, err := h.nodeAt(path)
		return err
	}
	_, err := h.deviceOf(m)
	return err
}

// perMount are the options that a mount has, and not the file system.
func perMount() []string {
	return []string{"ro", "nosuid", "nodev", "noexec", "noatime", "nodiratime", "relatime", "nosymfollow"}
}

// bindOptions are the options of a bind mount: none if it needs no others than the staged mount has, which it gets by itself;
// otherwise all, since setting some takes the others away.
func bindOptions(staged mounted, r PublishRequest) []string {
	wanted := slices.Clone(r.Options)
	if r.ReadOnly {
		wanted = append(wanted, "ro")
	}
	wanted = slices.DeleteFunc(wanted, func(o string) bool { return !slices.Contains(perMount(), o) || slices.Contains(staged.options, o) })
	if len(wanted) == 0 {
		return nil
	}
	kept := slices.DeleteFunc(slices.Clone(staged.options), func(o string) bool { return !slices.Contains(perMount(), o) })
	slices.Sort(wanted)
	return append(kept, slices.Compact(wanted)...)
}

// bind mounts a directory or file at another place. Options come into force in a second step: a first one ignores them.
func (h *Host) bind(ctx context.Context, act *activity, source, target string, options []string) error {
	act.at("mounting %s at %s", source, target)
	running := context.WithoutCancel(ctx)
	if _, err := h.run(running, newCommand(mountLimit, "mount", "-o", "bind", source, target)); err != nil {
		return fmt.Errorf("mount %s at %s: %w", source, target, err)
	}
	if len(options) == 0 {
		return nil
	}
	if err := h.remount(running, act, target, options); err != nil {
		return errors.Join(err, h.unmount(running, act, target)) // never with other rights than asked for
	}
	return nil
}

func (h *Host) remount(ctx context.Context, act *activity, target string, options []string) error {
	act.at("setting the options of %s", target)
	all := "bind,remount"
	for _, o := range options {
		all += "," + o
	}
	if _, err := h.run(context.WithoutCancel(ctx), newCommand(mountLimit, "mount", "-o", all, target)); err != nil {
		return fmt.Errorf("mount options of %s: %w", target, err)
	}
	return nil
}

// Unpublish unmounts a volume from a target, and removes the directory or file there, if it is empty. It can be repeated.
func (h *Host) Unpublish(ctx context.Context, volume, target string) error {
	target, err := h.canonical(target)
	if err != nil {
		return err
	}
	return h.operate(ctx, volume, func(ctx context.Context, act *activity) error {
		if err := h.unmount(ctx, act, target); err != nil {
			return err
		}
		err := h.removeEmpty(target)
		switch {
		case errors.Is(err, unix.ENOTEMPTY), errors.Is(err, fs.ErrExist):
			// Somebody has written here while nothing was mounted. It is theirs.
			klog.FromContext(ctx).Info("a target directory has files; it stays", "path", target)
		case err != nil && !errors.Is(err, fs.ErrNotExist):
			return fmt.Errorf("target: %w", err)
		}
		return nil
	})
}

// removeEmpty removes an empty directory, or an empty file. A file with content is somebody's.
func (h *Host) removeEmpty(path string) error {
	path = h.paths.file(path)
	info, err := os.Lstat(path)
	if err != nil {
		return err
	}
	if info.Mode().IsRegular() && info.Size() > 0 {
		return fmt.Errorf("%s: %w", path, fs.ErrExist)
	}
	return os.Remove(path)
}
