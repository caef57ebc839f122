// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package host

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"

	"k8s.io/klog/v2"
	"k8s.io/mount-utils"
)

// FormatPolicy says what becomes of a device without a file system.
type FormatPolicy string

const (
	// FormatIfBlank lets a device be formatted that is proven to be empty.
	FormatIfBlank FormatPolicy = "ifBlank"
	// FormatNever is for volumes that must have content: restored and cloned ones, and those whose PV says so.
	FormatNever FormatPolicy = "never"
)

// Filesystem says how a volume is to be mounted.
type Filesystem struct {
	Type     Signature // Ext3, Ext4, XFS or Btrfs; see FilesystemType
	Options  []string  // of the mount
	ReadOnly bool
	Format   FormatPolicy // empty is FormatNever
	// Grow lets the file system fill the device, when it is smaller: the volume was restored or cloned to a larger size.
	Grow bool
}

// FilesystemType is the file system for a name from a StorageClass. As in the existing implementation, nothing and anything unknown
// is ext4; btrfs is new.
func FilesystemType(name string) Signature {
	if s := Signature(name); slices.Contains([]Signature{Ext3, XFS, Btrfs}, s) {
		return s
	}
	return Ext4
}

// mountFilesystem mounts a device that was proven to be the attachment's, and formats it before, if it is empty and may be formatted.
func (h *Host) mountFilesystem(ctx context.Context, act *activity, d Device, r StageRequest) error {
	hold, err := h.open(d, os.O_RDONLY) // until it is mounted: its name stays its name
	if err != nil {
		return err
	}
	defer hold.Close()
	if err := h.unused(d); err != nil {
		return err
	}
	act.at("reading %s", d.Path)
	c, err := h.inspect(ctx, d)
	if err != nil {
		return err
	}
	e := &executor{h: h, ctx: ctx, act: act, device: d}
	if e.proof, err = h.decide(c, r); err != nil {
		return err
	}
	// Reading may have taken a while.
	if again, _, err := h.find(r.Attachment); err != nil {
		return err
	} else if again.Number != d.Number {
		return notProven("%s was the device of the attachment, and now %s is", d.Path, again.Path)
	}
	if e.proof != nil {
		klog.FromContext(ctx).Info("formatting an empty volume", "volumeID", r.Volume, "device", d.Path, "bytes", d.Size, "fsType", r.Filesystem.Type)
	}
	options := slices.Clone(r.Filesystem.Options)
	if r.Filesystem.Type == XFS && !slices.Contains(options, "nouuid") {
		options = append(options, "nouuid") // a restored volume has the UUID of its source, which may be mounted here, too
	}
	if r.Filesystem.ReadOnly && !slices.Contains(options, "ro") {
		options = append(options, "ro")
	}
	if err := e.formatAndMount(r.Staging, string(r.Filesystem.Type), options); err != nil {
		return err
	}
	if err := h.mountedRight(ctx, act, d, r.Staging); err != nil {
		return err
	}
	if r.Filesystem.Grow && !r.Filesystem.ReadOnly && c.filesystem > 0 && c.filesystem < d.Size {
		return e.resize(r.Staging)
	}
	return nil
}

// decide says what is to be done with a device of this content. The proof is there if it is to be formatted.
func (h *Host) decide(c content, r StageRequest) (*blankProof, error) {
	want, d := r.Filesystem.Type, c.device
	proof, blank := c.proof()
	switch {
	case !blank && len(c.signatures) == 1 && c.signatures[0] == want:
		return nil, nil
	case !blank && len(c.signatures) == 1 && slices.Contains([]Signature{"ext2", Ext3, Ext4, XFS, Btrfs}, c.signatures[0]):
		return nil, fmt.Errorf("%w: %s has %s, and %s was asked for; nothing was changed: set the fsType of the volume to what it has", ErrOtherFilesystem, d.Path, c.what(), want)
	case !blank:
		return nil, fmt.Errorf("%w: %s has %s; it is not formatted. If nobody needs that, erase it (wipefs --all, then zero the first 2 MiB and the last 1 MiB)",
			ErrNotBlank, d.Path, c.what())
	case r.Filesystem.ReadOnly || slices.Contains(r.Filesystem.Options, "ro"):
		return nil, fmt.Errorf("%w: %s is empty, and is to be mounted read-only", ErrNotFormatted, d.Path)
	case r.Filesystem.Format != FormatIfBlank:
		return nil, fmt.Errorf("%w: %s is empty, but volumes that were restored or cloned, or whose formatPolicy is %q, are never formatted", ErrNotFormatted, d.Path, FormatNever)
	case r.Attachment.Size > 0 && d.Size != r.Attachment.Size:
		return nil, notProven("%s has %d bytes, and the volume had %d when it was attached: not formatted", d.Path, d.Size, r.Attachment.Size)
	}
	if _, err := h.lookUp("mkfs." + string(want)); err != nil {
		return nil, err
	}
	return &proof, nil
}

// formatAndMount lets mount-utils do it: blkid, mkfs or fsck, mount.
func (e *executor) formatAndMount(target, kind string, options []string) error {
	err := mount.NewSafeFormatAndMount(mounter{e}, e).FormatAndMount(e.device.Path, target, kind, options)
	if err == nil {
		return nil
	}
	cause := e.failed
	if cause == nil {
		cause = err
	}
	var failed mount.MountError
	if errors.As(err, &failed) && failed.Type == mount.HasFilesystemErrors {
		return fmt.Errorf("%w: run fsck by hand: %w", ErrDamaged, cause)
	}
	return fmt.Errorf("mount %s at %s: %w", e.device.Path, target, cause)
}

// mountedRight looks whether what was mounted is the device that was meant.
func (h *Host) mountedRight(ctx context.Context, act *activity, d Device, path string) error {
	mounts, err := h.mountTable()
	if err != nil {
		return err
	}
	m, is := mounts.at(path)
	if !is {
		return fmt.Errorf("%s: %w", path, ErrNotMounted)
	}
	got, err := h.deviceOf(m)
	if err == nil && got.Number == d.Number {
		return nil
	}
	return errors.Join(notProven("%s was mounted, and %s is mounted at %s", d.Path, m.source, path), err, h.unmount(ctx, act, path))
}

// resize lets the file system fill its device.
func (e *executor) resize(path string) error {
	if _, err := mount.NewResizeFs(e).Resize(e.device.Path, path); err != nil {
		cause := e.failed
		if cause == nil {
			cause = err
		}
		return fmt.Errorf("grow the file system at %s: %w", path, cause)
	}
	return nil
}
