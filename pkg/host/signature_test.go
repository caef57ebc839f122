// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package host

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
)

// edgesOf reads a file as inspect reads a device.
func edgesOf(t *testing.T, path string) edges {
	t.Helper()
	all, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return edges{head: all[:headLength], tail: all[int64(len(all))-tailLength:], size: int64(len(all))}
}

// TestRealFilesystems: those that the programs of this machine make.
func TestRealFilesystems(t *testing.T) {
	for _, c := range []struct {
		want Signature
		argv []string
	}{
		{Ext4, []string{"mkfs.ext4", "-q", "-F"}},
		{Ext4, []string{"mkfs.ext4", "-q", "-F", "-O", "^64bit,^metadata_csum"}},
		{Ext4, []string{"mkfs.ext4", "-q", "-F", "-O", "^has_journal"}},
		{Ext3, []string{"mkfs.ext3", "-q", "-F"}},
		{"ext2", []string{"mkfs.ext2", "-q", "-F"}},
		{"ext journal", []string{"mke2fs", "-q", "-F", "-O", "journal_dev"}},
		{"swap", []string{"mkswap"}},
		{XFS, []string{"mkfs.xfs", "-q", "-f"}},
		{Btrfs, []string{"mkfs.btrfs", "-q"}},
		{"fat", []string{"mkfs.vfat"}},
	} {
		t.Run(c.argv[0]+" "+string(c.want), func(t *testing.T) {
			if _, err := exec.LookPath(c.argv[0]); err != nil {
				t.Skipf("this machine has no %s", c.argv[0])
			}
			file := filepath.Join(t.TempDir(), "disk")
			const size = 400 * mib // mkfs.xfs makes none of less than 300 MiB
			if err := os.WriteFile(file, nil, 0o600); err != nil {
				t.Fatal(err)
			}
			if err := os.Truncate(file, size); err != nil {
				t.Fatal(err)
			}
			if out, err := exec.Command(c.argv[0], append(c.argv[1:], file)...).CombinedOutput(); err != nil {
				t.Fatalf("%v %s", err, out)
			}
			e := edgesOf(t, file)
			if got := e.signatures(); !slices.Equal(got, []Signature{c.want}) {
				t.Errorf("signatures %v", got)
			}
			if slices.Contains([]Signature{Ext3, Ext4, XFS, Btrfs}, c.want) {
				if got := e.filesystemSize(c.want); got != size {
					t.Errorf("size %d", got)
				}
			}
		})
	}
}

// TestDataThatLooksLikeADisk: a file system of ours in which somebody keeps an image of a disk is not taken for that.
func TestDataThatLooksLikeADisk(t *testing.T) {
	fill := func(marks map[int64]string) []Signature {
		const size = 64 * mib
		all := make([]byte, size)
		all[kib+0x38], all[kib+0x39] = 0x53, 0xef // ext4
		all[kib+0x5c], all[kib+0x60] = 0x4, 0x40
		for at, text := range marks {
			if at < 0 {
				at += size
			}
			copy(all[at:], text)
		}
		return edges{head: all[:headLength], tail: all[size-tailLength:], size: size}.signatures()
	}
	for at, text := range map[int64]string{-512: "EFI PART", 512 * kib: "SKUL\xba\xbe", 32*kib + 1: "CD001", -8 * kib: le(0xa92b4efc) + le(1), 256 * kib: "\x0c\xb1\xba\x00\x00\x00\x00\x00"} {
		if got := fill(map[int64]string{at: text}); !slices.Equal(got, []Signature{Ext4}) {
			t.Errorf("%q at %d: %v", text, at, got)
		}
	}
	for at, text := range map[int64]string{0: "LUKS\xba\xbe", 512: "LABELONE", 64*kib + 64: "_BHRfS_M"} {
		if got := fill(map[int64]string{at: text}); len(got) != 2 {
			t.Errorf("%q at %d: %v", text, at, got)
		}
	}
	member := le(0xa92b4efc) + le(1)
	if got := fill(map[int64]string{-8 * kib: member, -8*kib + 128: le((64*mib - 8*kib) / 512)}); len(got) != 2 {
		t.Errorf("a mirror whose data begin at the beginning: %v", got)
	}
}

// TestSmallDevices: head and tail are the same bytes, and places outside of them are none.
func TestSmallDevices(t *testing.T) {
	for _, size := range []int64{512, 4 * kib, 64 * kib, mib} {
		all := make([]byte, size)
		e := edges{head: all, tail: all, size: size}
		if got := e.signatures(); len(got) > 0 {
			t.Errorf("%d bytes: %v", size, got)
		}
	}
}
