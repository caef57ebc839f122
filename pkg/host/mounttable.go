// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package host

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
	"k8s.io/mount-utils"
)

// mounted is an entry of the mount table.
type mounted struct {
	path    string
	root    string // what of the file system is mounted: "/" is all of it
	kind    string // type of the file system
	source  string
	number  Number // of the file system's device
	options []string
}

// table is the mount table, in the order of mounting.
type table []mounted

// mountTable reads the mount table. It asks no file system, so that it answers also when one hangs.
func (h *Host) mountTable() (table, error) {
	infos, err := mount.ParseMountInfo(h.paths.MountInfo)
	if err != nil {
		return nil, fmt.Errorf("mount table: %w", err)
	}
	t := make(table, 0, len(infos))
	for _, i := range infos {
		t = append(t, mounted{
			path: unescape(i.MountPoint), root: unescape(i.Root), kind: i.FsType, source: unescape(i.Source),
			number: Number{Major: uint32(i.Major), Minor: uint32(i.Minor)}, options: i.MountOptions,
		})
	}
	return t, nil
}

// unescape undoes what the kernel does to blanks and backslashes in paths.
func unescape(path string) string {
	if !strings.Contains(path, `\`) {
		return path
	}
	return strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`, `\043`, "#").Replace(path)
}

// at finds what is mounted at a path, on top.
func (t table) at(path string) (mounted, bool) {
	for _, m := range slices.Backward(t) {
		if m.path == path {
			return m, true
		}
	}
	return mounted{}, false
}

// of lists where a device is mounted: its file system, or its node, as raw block volumes are.
func (t table) of(d Device) []mounted {
	var list []mounted
	for _, m := range t {
		node := m.number.Major == 0 && m.root == "/"+d.Name && (m.kind == "devtmpfs" || m.kind == "tmpfs")
		// Btrfs shows a number that is no device's.
		named := m.number.Major == 0 && (m.source == d.Path || m.source == "/dev/"+d.Name)
		if m.number == d.Number || node || named {
			list = append(list, m)
		}
	}
	return list
}

// deviceOf finds the device whose file system is mounted.
func (h *Host) deviceOf(m mounted) (Device, error) {
	if m.number.Major == 0 && strings.HasPrefix(m.source, "/dev/") {
		return h.deviceAt(m.source)
	}
	return h.deviceNumbered(m.number)
}

// isNode says whether the mount is one of a device's node.
func (m mounted) isNode() bool {
	return m.number.Major == 0 && (m.kind == "devtmpfs" || m.kind == "tmpfs") && m.root != "/"
}

func (m mounted) readOnly() bool { return slices.Contains(m.options, "ro") }

// canonical is a path as the mount table has it: links in the directory are followed. Of the last element nothing is asked,
// which may be a file system that does not answer.
func (h *Host) canonical(path string) (string, error) {
	if !filepath.IsAbs(path) {
		return "", fmt.Errorf("%w: path %q is not absolute", ErrInvalid, path)
	}
	if len(path) >= unix.PathMax {
		return "", fmt.Errorf("%w: the path %.64q… is too long: it has %d bytes", ErrInvalid, path, len(path))
	}
	path = filepath.Clean(path)
	at, rest := "/", elements(filepath.Dir(path))
	for links := 0; len(rest) > 0; {
		next := rest[0]
		if rest = rest[1:]; next == ".." {
			at = filepath.Dir(at)
			continue
		}
		target, err := os.Readlink(h.paths.file(filepath.Join(at, next)))
		if err != nil { // no link, or not there yet
			at = filepath.Join(at, next)
			continue
		}
		if links++; links > maxLinks {
			return "", fmt.Errorf("%w: path %q has too many links", ErrInvalid, path)
		}
		if filepath.IsAbs(target) {
			at = "/"
		}
		rest = append(elements(target), rest...)
	}
	return filepath.Join(at, filepath.Base(path)), nil
}

// elements are the parts of a path.
func elements(path string) []string {
	return strings.FieldsFunc(filepath.Clean(path), func(r rune) bool { return r == filepath.Separator })
}
