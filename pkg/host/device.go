// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package host

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Number is the number of a device.
type Number struct{ Major, Minor uint32 }

func (n Number) String() string { return fmt.Sprintf("%d:%d", n.Major, n.Minor) }

// Device is a block device as the kernel shows it.
type Device struct {
	Name   string // "sdb", "dm-3"
	Path   string // "/dev/sdb", "/dev/mapper/mpatha"
	Number Number
	Size   int64 // bytes
}

// sectorSize is the unit of sizes in sysfs, whatever the device's own sectors are.
const sectorSize = 512

// maxLinks is how many links one after the other are followed.
const maxLinks = 8

// errNoDevice says that there is no such device.
var errNoDevice = errors.New("no such device")

// deviceNamed reads a device from sysfs.
func (h *Host) deviceNamed(name string) (Device, error) {
	d := Device{Name: name, Path: "/dev/" + name}
	number, err := h.attribute(h.paths.block(name, "dev"))
	if err != nil {
		return Device{}, fmt.Errorf("device %s: %w", name, err)
	}
	if _, err := fmt.Sscanf(number, "%d:%d", &d.Number.Major, &d.Number.Minor); err != nil {
		return Device{}, fmt.Errorf("device %s: number %q: %w", name, number, err)
	}
	if d.Size, err = h.sizeOf(name); err != nil {
		return Device{}, err
	}
	if mapName, err := h.attribute(h.paths.block(name, "dm", "name")); err == nil {
		d.Path = "/dev/mapper/" + mapName
	}
	return d, nil
}

// sizeOf reads the size of a device in bytes.
func (h *Host) sizeOf(name string) (int64, error) {
	text, err := h.attribute(h.paths.block(name, "size"))
	if err != nil {
		return 0, fmt.Errorf("size of %s: %w", name, err)
	}
	sectors, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("size of %s: %w", name, err)
	}
	return sectors * sectorSize, nil
}

// deviceNumbered finds the device with a number.
func (h *Host) deviceNumbered(n Number) (Device, error) {
	target, err := os.Readlink(filepath.Join(h.paths.Sys, "dev", "block", n.String()))
	if errors.Is(err, fs.ErrNotExist) {
		return Device{}, fmt.Errorf("device %s: %w", n, errNoDevice)
	}
	if err != nil {
		return Device{}, fmt.Errorf("device %s: %w", n, err)
	}
	return h.deviceNamed(filepath.Base(target))
}

// deviceAt follows a path of the host below /dev to a device.
func (h *Host) deviceAt(path string) (Device, error) {
	at := path
	for range maxLinks {
		if at = filepath.Clean(at); !strings.HasPrefix(at, "/dev/") {
			return Device{}, fmt.Errorf("%s leads to %s, which is not below /dev", path, at)
		}
		target, err := os.Readlink(h.paths.device(at))
		switch {
		case errors.Is(err, unix.EINVAL):
			n, err := blockNumber(h.paths.device(at))
			if err != nil {
				return Device{}, fmt.Errorf("%s: %w", path, err)
			}
			return h.deviceNumbered(n)
		case errors.Is(err, fs.ErrNotExist):
			return Device{}, fmt.Errorf("%s: %w", at, errNoDevice)
		case err != nil:
			return Device{}, fmt.Errorf("%s: %w", path, err)
		case !filepath.IsAbs(target):
			target = filepath.Join(filepath.Dir(at), target)
		}
		at = target
	}
	return Device{}, fmt.Errorf("%s: too many links", path)
}

// blockNumber is the number of the device that a node is for. It must be a node, whose inode a file system in memory has.
func blockNumber(node string) (Number, error) {
	var st unix.Stat_t
	if err := unix.Lstat(node, &st); err != nil {
		return Number{}, &os.PathError{Op: "lstat", Path: node, Err: err}
	}
	if st.Mode&unix.S_IFMT != unix.S_IFBLK {
		return Number{}, fmt.Errorf("%s is not a block device", node)
	}
	return Number{Major: unix.Major(st.Rdev), Minor: unix.Minor(st.Rdev)}, nil
}

// open opens a device, and sees to it that it is the one meant. While it is open, the kernel gives neither its name nor its number
// to another one.
func (h *Host) open(d Device, flags int) (*os.File, error) {
	path := h.paths.device(d.Path)
	if _, err := os.Lstat(path); err != nil {
		path = h.paths.device("/dev/" + d.Name) // a map whose link udev has not made yet
	}
	f, err := os.OpenFile(path, flags|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("device %s: %w", d.Name, err)
	}
	var st unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &st); err != nil {
		f.Close()
		return nil, fmt.Errorf("device %s: %w", d.Name, err)
	}
	if n := (Number{Major: unix.Major(st.Rdev), Minor: unix.Minor(st.Rdev)}); st.Mode&unix.S_IFMT != unix.S_IFBLK || n != d.Number {
		f.Close()
		return nil, fmt.Errorf("%w: %s is device %s, not %s", ErrNotProven, path, n, d.Number)
	}
	return f, nil
}

// attribute reads a small file of sysfs.
func (h *Host) attribute(path string) (string, error) {
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENODEV) || errors.Is(err, unix.ENXIO) {
		return "", errNoDevice
	}
	if err != nil {
		return "", err
	}
	return strings.TrimSpace(string(text)), nil
}

// names lists a directory of sysfs; one that does not exist is empty.
func names(dir string) []string {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil
	}
	list := make([]string, 0, len(entries))
	for _, e := range entries {
		list = append(list, e.Name())
	}
	return list
}

// holders are the devices made of a device, such as maps; slaves those that it is made of.
func (h *Host) holders(name string) []string { return names(h.paths.block(name, "holders")) }
func (h *Host) slaves(name string) []string  { return names(h.paths.block(name, "slaves")) }

// partitions are those that the kernel has found on a device.
func (h *Host) partitions(name string) []string {
	var list []string
	for _, child := range names(h.paths.block(name)) {
		if _, err := os.Stat(h.paths.block(name, child, "partition")); err == nil {
			list = append(list, child)
		}
	}
	return list
}

// rescan lets the kernel ask a disk for its size again. Disks that tell by themselves have no such file.
func (h *Host) rescan(name string) error {
	err := os.WriteFile(h.paths.block(name, "device", "rescan"), []byte("1"), 0o200)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("rescan %s: %w", name, err)
	}
	return nil
}
