// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package host

import (
	"fmt"

	"k8s.io/mount-utils"
)

// mounter mounts for mount-utils, by the host's mount program, and looks into the mount table without asking file systems.
type mounter struct{ *executor }

var _ mount.Interface = mounter{}

// MountSensitiveWithoutSystemdWithMountFlags implements mount.Interface, as do the other Mount methods.
func (m mounter) MountSensitiveWithoutSystemdWithMountFlags(source, target, kind string, options, sensitive, flags []string) error {
	args, _ := mount.MakeMountArgsSensitiveWithMountFlags(source, target, kind, options, sensitive, flags)
	_, err := m.run(append([]string{"mount"}, args...))
	if err != nil {
		m.failed = err
	}
	return err
}

// Mount implements mount.Interface.
func (m mounter) Mount(source, target, kind string, options []string) error {
	return m.MountSensitiveWithoutSystemdWithMountFlags(source, target, kind, options, nil, nil)
}

// MountSensitive implements mount.Interface.
func (m mounter) MountSensitive(source, target, kind string, options, sensitive []string) error {
	return m.MountSensitiveWithoutSystemdWithMountFlags(source, target, kind, options, sensitive, nil)
}

// MountSensitiveWithoutSystemd implements mount.Interface.
func (m mounter) MountSensitiveWithoutSystemd(source, target, kind string, options, sensitive []string) error {
	return m.MountSensitiveWithoutSystemdWithMountFlags(source, target, kind, options, sensitive, nil)
}

// Unmount implements mount.Interface.
func (m mounter) Unmount(target string) error {
	_, err := m.run([]string{"umount", target})
	return err
}

// List implements mount.Interface.
func (m mounter) List() ([]mount.MountPoint, error) {
	all, err := m.h.mountTable()
	if err != nil {
		return nil, err
	}
	list := make([]mount.MountPoint, 0, len(all))
	for _, at := range all {
		list = append(list, mount.MountPoint{Device: at.source, Path: at.path, Type: at.kind, Opts: at.options})
	}
	return list, nil
}

// IsMountPoint implements mount.Interface.
func (m mounter) IsMountPoint(path string) (bool, error) {
	all, err := m.h.mountTable()
	if err != nil {
		return false, err
	}
	_, is := all.at(path)
	return is, nil
}

// IsLikelyNotMountPoint implements mount.Interface.
func (m mounter) IsLikelyNotMountPoint(path string) (bool, error) {
	is, err := m.IsMountPoint(path)
	return !is, err
}

// CanSafelySkipMountPointCheck implements mount.Interface.
func (m mounter) CanSafelySkipMountPointCheck() bool { return false }

// GetMountRefs implements mount.Interface.
func (m mounter) GetMountRefs(path string) ([]string, error) {
	all, err := m.h.mountTable()
	if err != nil {
		return nil, err
	}
	at, is := all.at(path)
	if !is {
		return nil, fmt.Errorf("%s: %w", path, ErrNotMounted)
	}
	var refs []string
	for _, other := range all {
		if other.number == at.number && other.root == at.root && other.path != path {
			refs = append(refs, other.path)
		}
	}
	return refs, nil
}
