// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package nodedriver

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Disk is a loop device, which the driver takes for a paravirtualized one.
type Disk struct {
	Device string // "/dev/loop7"
	File   string
	Size   int64 // bytes
}

// NewDisk makes a disk that is empty.
func NewDisk(ctx context.Context, file string, size int64) (*Disk, error) {
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		return nil, err
	}
	if err := os.Truncate(file, size); err != nil {
		return nil, err
	}
	out, err := exec.CommandContext(ctx, "losetup", "--find", "--show", file).CombinedOutput()
	if err != nil {
		return nil, fmt.Errorf("losetup: %w: %s", err, out)
	}
	return &Disk{Device: strings.TrimSpace(string(out)), File: file, Size: size}, nil
}

// Grow gives the disk a new size.
func (k *Disk) Grow(ctx context.Context, size int64) error {
	if err := os.Truncate(k.File, size); err != nil {
		return err
	}
	if out, err := exec.CommandContext(ctx, "losetup", "--set-capacity", k.Device).CombinedOutput(); err != nil {
		return fmt.Errorf("losetup: %w: %s", err, out)
	}
	k.Size = size
	return nil
}

// Close takes the disk away. One that is in use goes later, which is an error.
func (k *Disk) Close() error {
	if out, err := exec.Command("losetup", "--detach", k.Device).CombinedOutput(); err != nil {
		return fmt.Errorf("losetup: %w: %s", err, out)
	}
	backing, err := os.ReadFile(filepath.Join("/sys/block", filepath.Base(k.Device), "loop", "backing_file"))
	if err == nil && strings.TrimSpace(string(backing)) == k.File {
		return fmt.Errorf("%s is still in use", k.Device)
	}
	return nil
}

// Volume is a volume on the disk, below a directory of the kubelet.
func (k *Disk) Volume(id, fsType, kubelet string) Volume {
	return Volume{
		ID: id, FSType: fsType, Staging: filepath.Join(kubelet, "staging"), Target: filepath.Join(kubelet, "pods", "target"),
		Publish: map[string]string{"attachment-type": "paravirtualized", "device": k.Device, "size": fmt.Sprint(k.Size)},
	}
}
