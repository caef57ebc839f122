// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package host

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

// How much of a device is read to know its content, in bytes. All formats that are known have their signs there; LUKS2 may have its
// second header further on, but never without the first one.
const (
	headLength = 2 * mib
	tailLength = 1 * mib
	// alignment is that of direct reads: no disk has larger sectors.
	alignment = 4096
)

// content is what was read of a device.
type content struct {
	device     Device
	signatures []Signature
	filesystem int64 // size that the file system has given itself; 0 if there is none, or it is not known
	blank      bool  // head and tail were read, and are zero throughout
}

// blankProof says that a device was found empty. Only inspect makes one, and mkfs runs only with one.
type blankProof struct{ device Device }

// proof is the permission to format.
func (c content) proof() (blankProof, bool) { return blankProof{device: c.device}, c.blank }

// what names the content, for people.
func (c content) what() string {
	switch {
	case c.blank:
		return "nothing"
	case len(c.signatures) == 0:
		return "data of unknown kind"
	}
	list := make([]string, 0, len(c.signatures))
	for _, s := range c.signatures {
		list = append(list, string(s))
	}
	return strings.Join(list, ", ")
}

// inspect reads the head and the tail of a device, from the disk and not from the kernel's memory of it.
func (h *Host) inspect(ctx context.Context, d Device) (content, error) {
	f, err := h.open(d, os.O_RDONLY|unix.O_DIRECT)
	if errors.Is(err, unix.EINVAL) { // the disk, or what is below it, cannot do that
		f, err = h.open(d, os.O_RDONLY)
	}
	if err != nil {
		return content{}, err
	}
	defer f.Close()
	size, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		return content{}, fmt.Errorf("size of %s: %w", d.Path, err)
	}
	if size != d.Size || size == 0 {
		return content{}, notProven("%s has %d bytes, and had %d a moment ago", d.Path, size, d.Size)
	}
	e := edges{size: size}
	if e.head, err = readAt(ctx, f, 0, min(headLength, size)); err != nil {
		return content{}, fmt.Errorf("read the head of %s: %w", d.Path, err)
	}
	start := max(0, (size-tailLength)&^(alignment-1))
	if e.tail, err = readAt(ctx, f, start, size-start); err != nil {
		return content{}, fmt.Errorf("read the tail of %s: %w", d.Path, err)
	}
	c := content{device: d, signatures: e.signatures(), blank: zero(e.head) && zero(e.tail)}
	if len(h.partitions(d.Name)) > 0 && !slices.Contains(c.signatures, partitionTable) {
		c.signatures = append(c.signatures, partitionTable)
	}
	c.blank = c.blank && len(c.signatures) == 0
	if len(c.signatures) == 1 {
		c.filesystem = e.filesystemSize(c.signatures[0])
	}
	return c, nil
}

// readAt reads exactly n bytes into memory that is aligned for direct reads.
func readAt(ctx context.Context, f *os.File, at, n int64) ([]byte, error) {
	whole := (n + alignment - 1) &^ (alignment - 1)
	b := aligned(int(whole))
	for got := int64(0); got < n; {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		m, err := f.ReadAt(b[got:min(whole, got+mib)], at+got)
		got += int64(m)
		if errors.Is(err, io.EOF) && got >= n {
			break
		}
		if err != nil {
			return nil, err
		}
	}
	return b[:n], nil
}

// aligned is memory that begins at a multiple of alignment.
func aligned(n int) []byte {
	b := make([]byte, n+alignment)
	skip := 0
	if over := int(uintptr(unsafe.Pointer(unsafe.SliceData(b))) % alignment); over > 0 {
		skip = alignment - over
	}
	return b[skip : skip+n : skip+n]
}

func zero(b []byte) bool { return !slices.ContainsFunc(b, func(x byte) bool { return x != 0 }) }
