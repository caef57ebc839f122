// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package host

import (
	"encoding/binary"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

const testDisk = 32 // MiB

// le is a number in little endian.
func le(n int64) string {
	b := make([]byte, 4)
	binary.LittleEndian.PutUint32(b, uint32(n))
	return string(b)
}

// TestNothingIsFormattedThatIsNotEmpty: C098. Each disk has something, or cannot be read. Blkid, which is told to say what it says
// of an empty disk, is not believed. The count of mkfs and a checksum of the disk prove that nothing was written.
func TestNothingIsFormattedThatIsNotEmpty(t *testing.T) {
	if testing.Short() {
		t.Skip("makes and reads many disks: left out with -short")
	}
	type place struct {
		at   int64
		text string
	}
	const size = testDisk * mib
	mbr := strings.Repeat("\x00", 446) + "\x80\x01\x01\x00\x83\xfe\xff\xff" + le(2048) + le(4096) + strings.Repeat("\x00", 48) + "\x55\xaa"
	for name, c := range map[string]struct {
		put  []place
		want error
		says string
	}{
		"partition table of DOS":         {[]place{{0, mbr}}, ErrNotBlank, "partition table"},
		"GPT":                            {[]place{{512, "EFI PART"}}, ErrNotBlank, "GPT"},
		"GPT of which the first is lost": {[]place{{-512, "EFI PART"}}, ErrNotBlank, "GPT"},
		"LVM":                            {[]place{{512, "LABELONE\x01"}, {536, "LVM2 001"}}, ErrNotBlank, "LVM"},
		"LUKS":                           {[]place{{0, "LUKS\xba\xbe\x00\x02"}}, ErrNotBlank, "LUKS"},
		"LUKS2 whose first is lost":      {[]place{{16 * kib, "SKUL\xba\xbe\x00\x02"}}, ErrNotBlank, "LUKS"},
		"RAID 1.2":                       {[]place{{4 * kib, le(0xa92b4efc) + le(1)}}, ErrNotBlank, "RAID"},
		"RAID 1.0":                       {[]place{{size - 8*kib, le(0xa92b4efc) + le(1)}, {size - 8*kib + 128, le((size - 8*kib) / 512)}}, ErrNotBlank, "RAID"},
		"RAID 0.90":                      {[]place{{size - 64*kib, le(0xa92b4efc) + le(0) + le(90)}}, ErrNotBlank, "RAID"},
		"swap":                           {[]place{{4*kib - 10, "SWAPSPACE2"}}, ErrNotBlank, "swap"},
		"ZFS":                            {[]place{{128 * kib, "\x0c\xb1\xba\x00\x00\x00\x00\x00"}}, ErrNotBlank, "ZFS"},
		"ASM":                            {[]place{{32, "ORCLDISK"}}, ErrNotBlank, "ASM"},
		"NTFS":                           {[]place{{3, "NTFS    "}}, ErrNotBlank, "ntfs"},
		"btrfs":                          {[]place{{64*kib + 64, "_BHRfS_M"}}, ErrOtherFilesystem, "btrfs"},
		"xfs":                            {[]place{{0, "XFSB"}}, ErrOtherFilesystem, "xfs"},
		"one byte in the head":           {[]place{{headLength - 1, "x"}}, ErrNotBlank, "unknown"},
		"one byte in the tail":           {[]place{{-1, "x"}}, ErrNotBlank, "unknown"},
		"encrypted data without header":  {[]place{{0, strings.Repeat("\x93\x1f", 4096)}}, ErrNotBlank, "unknown"},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t)
			d := l.disk(testDisk)
			for _, p := range c.put {
				l.put(d, p.at, p.text)
			}
			l.program("blkid", "exit 2")
			before := l.sum(d)
			err := l.Stage(l.within(20*time.Second), l.paravirtualized(d, size))
			l.wants(err, c.want)
			if !strings.Contains(err.Error(), c.says) {
				t.Errorf("the error does not say %q: %v", c.says, err)
			}
			l.untouched(d, before)
		})
	}
}

// untouched makes sure that nothing was written to a disk, and that it is not mounted.
func (l *lab) untouched(d disk, before [32]byte) {
	l.Helper()
	if calls := append(l.calls("mkfs"), append(l.calls("mount"), l.calls("fsck")...)...); len(calls) > 0 {
		l.Errorf("ran %v", calls)
	}
	if l.sum(d) != before {
		l.Error("the disk has changed")
	}
	if files := names(l.at("state")); len(files) > 0 {
		l.Errorf("the failure leaves records: %v", files)
	}
}

// TestUnreadableIsNotEmpty: C098 (b) and (c). Reads of a loop device fail behind the end of its file.
func TestUnreadableIsNotEmpty(t *testing.T) {
	for name, left := range map[string]int64{"the head": 0, "in the head": mib, "the tail": testDisk / 2 * mib, "the last sector": testDisk*mib - 4*kib} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t)
			d := l.disk(testDisk)
			l.program("blkid", "exit 2")
			l.must(os.Truncate(d.file, left))
			err := l.Stage(l.within(20*time.Second), l.paravirtualized(d, testDisk*mib))
			if err == nil || !strings.Contains(err.Error(), "input/output error") {
				t.Errorf("error %v", err)
			}
			if calls := l.calls("mkfs"); len(calls) > 0 {
				t.Errorf("ran %v", calls)
			}
		})
	}
	t.Run("no device", func(t *testing.T) {
		l := newLab(t)
		d := l.disk(testDisk)
		l.program("blkid", "exit 2")
		r := l.paravirtualized(d, testDisk*mib)
		l.must(os.Remove(l.at("dev", d.name)))
		l.wants(l.Stage(l.within(time.Second), r), ErrNotProven)
		if calls := l.calls("mkfs"); len(calls) > 0 {
			t.Errorf("ran %v", calls)
		}
	})
}

// TestEmptyAndYetNotFormatted: an empty disk is left alone when it should not be empty, or is not the one that was attached.
func TestEmptyAndYetNotFormatted(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*StageRequest)
		want   error
	}{
		"restored or cloned":         {func(r *StageRequest) { r.Filesystem.Format = FormatNever }, ErrNotFormatted},
		"no policy":                  {func(r *StageRequest) { r.Filesystem.Format = "" }, ErrNotFormatted},
		"read-only":                  {func(r *StageRequest) { r.Filesystem.ReadOnly = true }, ErrNotFormatted},
		"read-only by mount options": {func(r *StageRequest) { r.Filesystem.Options = []string{"ro"} }, ErrNotFormatted},
		"larger than the volume":     {func(r *StageRequest) { r.Attachment.Size -= mib }, ErrNotProven},
		"smaller than the volume":    {func(r *StageRequest) { r.Attachment.Size += mib }, ErrNotProven},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t)
			d := l.disk(testDisk)
			r := l.paravirtualized(d, testDisk*mib)
			c.change(&r)
			before := l.sum(d)
			l.wants(l.Stage(l.within(time.Second), r), c.want)
			l.untouched(d, before)
		})
	}
}

// TestMissingMkfs: C096. The error names the package, and the disk is as it was.
func TestMissingMkfs(t *testing.T) {
	l := newLab(t)
	d := l.disk(testDisk)
	r := l.paravirtualized(d, testDisk*mib)
	r.Filesystem.Type = XFS
	l.Host.paths.Programs = l.Host.paths.Programs[:1] // this machine may have it
	before := l.sum(d)
	err := l.Stage(l.within(10*time.Second), r)
	if err == nil || !strings.Contains(err.Error(), "xfsprogs") {
		t.Errorf("error %v", err)
	}
	l.untouched(d, before)
}

// TestEmptyDiskIsFormattedOnce: and keeps its data in all that follows.
func TestEmptyDiskIsFormattedOnce(t *testing.T) {
	for _, kind := range []Signature{Ext4, Ext3} {
		t.Run(string(kind), func(t *testing.T) {
			l := newLab(t)
			d := l.disk(testDisk)
			r := l.paravirtualized(d, testDisk*mib)
			r.Filesystem.Type = kind
			for i := range 3 {
				l.must(l.Stage(l.within(20*time.Second), r))
				l.must(l.Stage(l.within(20*time.Second), r)) // again, without a word
				if got := l.mountedAt(r.Staging); got != "/dev/"+d.name {
					t.Fatalf("mounted: %q", got)
				}
				file := filepath.Join(r.Staging, "data")
				if i == 0 {
					l.must(os.WriteFile(file, []byte("precious"), 0o600))
				}
				if text, err := os.ReadFile(file); err != nil || string(text) != "precious" {
					t.Fatalf("round %d: %q, %v", i, text, err)
				}
				l.restart()
				l.must(l.Unstage(l.within(20*time.Second), r.Volume, r.Staging))
				l.must(l.Unstage(l.within(20*time.Second), r.Volume, r.Staging))
				if got := l.mountedAt(r.Staging); got != "" {
					t.Fatalf("still mounted: %q", got)
				}
			}
			if n := len(l.calls("mkfs")); n != 1 {
				t.Errorf("%d times mkfs: %v", n, l.calls("mkfs"))
			}
			if n := len(l.calls("fsck")); n != 2 {
				t.Errorf("%d times fsck, want one before each later mount", n)
			}
		})
	}
}

// TestDamagedFilesystemIsNotMounted: what fsck does not repair unasked is an error that says so.
func TestDamagedFilesystemIsNotMounted(t *testing.T) {
	l := newLab(t)
	d := l.disk(testDisk)
	if out, err := exec.Command("mkfs.ext4", "-q", "-F", "/dev/"+d.name).CombinedOutput(); err != nil {
		t.Fatalf("%v %s", err, out)
	}
	l.program("fsck", "echo UNEXPECTED INCONSISTENCY; exit 4")
	err := l.Stage(l.within(20*time.Second), l.paravirtualized(d, testDisk*mib))
	l.wants(err, ErrDamaged)
	if !strings.Contains(err.Error(), "UNEXPECTED INCONSISTENCY") || l.mountedAt(l.at("kubelet/staging")) != "" {
		t.Errorf("error %v", err)
	}
}

// TestXFSIsMountedWithoutItsUUID: and made without force.
func TestXFSIsMountedWithoutItsUUID(t *testing.T) {
	l := newLab(t)
	d := l.disk(testDisk)
	l.program("mkfs.xfs", "exit 0")
	l.program("mount", "echo no such thing; exit 32")
	r := l.paravirtualized(d, testDisk*mib)
	r.Filesystem.Type = XFS
	if err := l.Stage(l.within(20*time.Second), r); exitOf(err) != 32 || !strings.Contains(err.Error(), "no such thing") {
		t.Errorf("error %v", err)
	}
	want := []string{"mkfs.xfs /dev/" + d.name, "mount -t xfs -o nouuid,defaults /dev/" + d.name + " " + r.Staging}
	if got := append(l.calls("mkfs"), l.calls("mount")...); strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("ran %q", got)
	}
}
