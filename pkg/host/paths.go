// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package host

import (
	"path/filepath"
	"strings"
)

// Paths say where the host is seen from this process.
type Paths struct {
	// Root is the host's root directory, for the directories of the kubelet and for programs.
	Root string
	// Dev and Sys are the host's /dev and /sys, Udev its /run/udev.
	Dev, Sys, Udev string
	// MountInfo is the mount table of the host, in the form of /proc/self/mountinfo.
	MountInfo string
	// UnixSockets is the list of Unix sockets, in the form of /proc/net/unix, which has iscsid's.
	UnixSockets string
	// MountNamespace is the file of the mount namespace that programs run in; empty is that of this process.
	MountNamespace string
	// Programs are the directories of the host in which programs are looked for.
	Programs []string
}

// HostPaths are the paths of a host whose root directory is mounted at root, as the manifests do at /host, with everything
// that is mounted below it; or of this machine, if root is empty.
func HostPaths(root string) Paths {
	p := Paths{
		Root: root, Dev: root + "/dev", Sys: root + "/sys", Udev: root + "/run/udev",
		MountInfo: "/proc/self/mountinfo", UnixSockets: "/proc/net/unix",
		Programs: []string{"/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"},
	}
	if root != "" {
		// The /proc below the host's root shows the host's processes, whatever PID namespace this one is in.
		p.MountInfo = root + "/proc/1/mountinfo"
		p.MountNamespace = root + "/proc/1/ns/mnt"
	}
	return p
}

// file is where this process sees a path of the host.
func (p Paths) file(path string) string { return filepath.Join(p.Root+"/", path) }

// device is where this process sees a path below /dev.
func (p Paths) device(path string) string {
	return filepath.Join(p.Dev, strings.TrimPrefix(path, "/dev/"))
}

// block is the directory of sysfs of a block device.
func (p Paths) block(name string, elem ...string) string {
	return filepath.Join(append([]string{p.Sys, "class", "block", name}, elem...)...)
}
