// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package host

import (
	"bytes"
	"encoding/binary"
	"slices"
)

// Signature is what was recognised on a device: "ext4", "LVM physical volume".
type Signature string

// The file systems that volumes can be formatted with.
const (
	Ext3  Signature = "ext3"
	Ext4  Signature = "ext4"
	XFS   Signature = "xfs"
	Btrfs Signature = "btrfs"
)

// Other names that more than one place knows.
const (
	partitionTable Signature = "partition table"
	gpt            Signature = "GPT partition table"
	raid           Signature = "RAID member"
)

// magic is a sign at a fixed place. Places are in bytes, from the beginning, or, if they are negative, from the end.
type magic struct {
	name Signature
	at   int64
	sign string
}

const (
	kib = int64(1) << 10
	mib = int64(1) << 20
)

// magics are signs of what must not be written over, and is no file system of ours. The places are those of the formats'
// documentation and of libblkid's.
func magics() []magic {
	list := []magic{
		{gpt, 512, "EFI PART"}, {gpt, 4 * kib, "EFI PART"}, {gpt, -512, "EFI PART"}, {gpt, -4 * kib, "EFI PART"},
		{"LUKS", 0, "LUKS\xba\xbe"},
		{raid, 0, "\xfc\x4e\x2b\xa9"}, {raid, 4 * kib, "\xfc\x4e\x2b\xa9"}, // md 1.1 and 1.2, little endian
		{raid, -512, "\xde\x11\xde\x11"}, {raid, -512, "\x11\xde\x11\xde"}, // DDF
		{"bcache", 4*kib + 24, "\xc6\x85\x73\xf6\x4e\x1a\x45\xca\x82\x65\xf5\x7f\x48\xba\x6d\x81"},
		{"Oracle ASM disk", 32, "ORCLDISK"},
		{"Ceph volume", 0, "bluestore block device"},
		{"BitLocker", 3, "-FVE-FS-"}, {"ntfs", 3, "NTFS    "}, {"exfat", 3, "EXFAT   "},
		{"fat", 54, "FAT12   "}, {"fat", 54, "FAT16   "}, {"fat", 82, "FAT32   "},
		{"f2fs", kib, "\x10\x20\xf5\xf2"}, {"ocfs2", kib, "OCFSV2"}, {"ocfs2", 2 * kib, "OCFSV2"},
		{"ocfs2", 4 * kib, "OCFSV2"}, {"ocfs2", 8 * kib, "OCFSV2"}, {"gfs2", 64 * kib, "\x01\x16\x19\x70"},
		{"jfs", 32 * kib, "JFS1"}, {"iso9660", 32*kib + 1, "CD001"}, {"udf", 32*kib + 1, "BEA01"}, {"squashfs", 0, "hsqs"},
		{"reiserfs", 64*kib + 52, "ReIsEr"}, {"reiserfs", 8*kib + 52, "ReIsEr"}, {"erofs", kib, "\xe2\xe1\xf5\xe0"},
		{"VMFS", mib, "\x0d\xd0\x01\xc0"}, {"VDO", 0, "dmvdo001"}, {"bcachefs", 4*kib + 24, "\xc6\x85\x73\xf6\x66\xce\x90\xa9\xd9\x6a\x60\xcf\x80\x3d\xf7\xef"},
		{"Stratis pool", 512, "!Stra0tis\x86\xff\x02^\x41rh"}, {"DRBD", -4*kib + 0x1c, "\x83\x74\x02\x67"}, {"DRBD", -4*kib + 0x3c, "\x83\x74\x02\x6d"},
	}
	for sector := range int64(4) { // the label is in one of the first four sectors
		list = append(list, magic{"LVM physical volume", sector * 512, "LABELONE"})
	}
	for _, page := range []int64{4 * kib, 8 * kib, 16 * kib, 64 * kib} {
		list = append(list, magic{"swap", page - 10, "SWAPSPACE2"}, magic{"swap", page - 10, "SWAP-SPACE"})
	}
	for _, at := range []int64{16 * kib, 32 * kib, 64 * kib, 128 * kib, 256 * kib, 512 * kib, 1 * mib} {
		list = append(list, magic{"LUKS", at, "SKUL\xba\xbe"}) // the second header of LUKS2
	}
	return list
}

// edges are the beginning and the end of a device.
type edges struct {
	head, tail []byte
	size       int64 // of the device, in bytes
}

// part returns n bytes of a device, or nothing if they are not in head or tail.
func (e edges) part(at int64, n int) []byte {
	if at < 0 {
		at += e.size
	}
	end := at + int64(n)
	tailAt := e.size - int64(len(e.tail))
	switch {
	case at < 0:
		return nil
	case end <= int64(len(e.head)):
		return e.head[at:end]
	case at >= tailAt && end <= e.size:
		return e.tail[at-tailAt : end-tailAt]
	}
	return nil
}

func (e edges) has(m magic) bool { return bytes.Equal(e.part(m.at, len(m.sign)), []byte(m.sign)) }

// bootArea is what file systems of ours leave to boot loaders, or have their own head in. Signs further on can be the data of
// somebody who keeps images of disks in the file system.
const bootArea = kib

// signatures lists what is recognised. Where there is a file system of ours, other signs count only where it has no data.
func (e edges) signatures() []Signature {
	var list []Signature
	add := func(s Signature) {
		if s != "" && !slices.Contains(list, s) {
			list = append(list, s)
		}
	}
	add(e.ext())
	if e.has(magic{at: 0, sign: "XFSB"}) {
		add(XFS)
	}
	if e.has(magic{at: 64*kib + 64, sign: "_BHRfS_M"}) {
		add(Btrfs)
	}
	ours := len(list) > 0
	for _, m := range magics() {
		if (!ours || m.at >= 0 && m.at < bootArea) && e.has(m) {
			add(m.name)
		}
	}
	add(e.raidAtTheEnd())
	if !ours {
		add(e.zfs())
	}
	add(e.masterBootRecord())
	return list
}

// ext tells the ext file systems apart, by the features that they need.
func (e edges) ext() Signature {
	super := e.part(kib, 1024)
	if super == nil || super[0x38] != 0x53 || super[0x39] != 0xef {
		return ""
	}
	compatible, incompatible, readOnly := word(super, 0x5c), word(super, 0x60), word(super, 0x64)
	const (
		hasJournal      = 0x4
		isJournal       = 0x8
		ext3Incompat    = 0x2 | 0x4 | 0x10 // filetype, recover, meta_bg
		ext3ReadOnlyAll = 0x1 | 0x2 | 0x4  // sparse_super, large_file, btree_dir
	)
	switch {
	case incompatible&isJournal != 0:
		return "ext journal"
	case incompatible&^ext3Incompat != 0, readOnly&^ext3ReadOnlyAll != 0:
		return Ext4
	case compatible&hasJournal != 0:
		return Ext3
	}
	return "ext2"
}

// raidAtTheEnd finds superblocks of md at the end, below which the file system of a mirror is seen: 1.0 is 8 to 12 KiB before it,
// 0.90 in the last whole 64 KiB but one. Data can look like that, but does not say at which sector it is.
func (e edges) raidAtTheEnd() Signature {
	const md, version1, version0 = 0xa92b4efc, 1, 0
	if at := e.size&^(4*kib-1) - 8*kib; at > 0 {
		b := e.part(at, 136)
		if b != nil && word(b, 0) == md && word(b, 4) == version1 && int64(binary.LittleEndian.Uint64(b[128:])) == at/sectorSize {
			return raid
		}
	}
	if at := e.size&^(64*kib-1) - 64*kib; at > 0 {
		b := e.part(at, 12)
		if b != nil && word(b, 0) == md && word(b, 4) == version0 && word(b, 8) == 90 {
			return raid
		}
	}
	return ""
}

// zfs finds an uberblock in one of the four labels of 256 KiB, of which two are at each end.
func (e edges) zfs() Signature {
	const label, ring = 256 * kib, 128 * kib
	for _, start := range []int64{0, label, e.size&^(label-1) - 2*label, e.size&^(label-1) - label} {
		for at := start + ring; at < start+label; at += kib {
			if b := e.part(at, 8); start >= 0 && (bytes.Equal(b, []byte("\x0c\xb1\xba\x00\x00\x00\x00\x00")) || bytes.Equal(b, []byte("\x00\x00\x00\x00\x00\xba\xb1\x0c"))) {
				return "ZFS pool member"
			}
		}
	}
	return ""
}

// masterBootRecord finds a partition table of DOS. Boot sectors of file systems have the same mark at the end, but no entries.
func (e edges) masterBootRecord() Signature {
	sector := e.part(0, 512)
	if sector == nil || sector[510] != 0x55 || sector[511] != 0xaa {
		return ""
	}
	for entry := 446; entry < 510; entry += 16 {
		kind, status, length := sector[entry+4], sector[entry], word(sector, entry+12)
		if kind != 0 && status&0x7f == 0 && length != 0 {
			return partitionTable
		}
	}
	return ""
}

func word(b []byte, at int) uint32 { return binary.LittleEndian.Uint32(b[at:]) }

// filesystemSize is the size in bytes that a file system has given itself, which is less than that of the device after the volume has
// grown; 0 if it is not known.
func (e edges) filesystemSize(s Signature) int64 {
	super := e.part(kib, 1024)
	switch {
	case super == nil:
		return 0
	case s == Ext3 || s == Ext4:
		blocks := int64(word(super, 0x4))
		if word(super, 0x60)&0x80 != 0 { // 64bit
			blocks |= int64(word(super, 0x150)) << 32
		}
		return blocks * (kib << (word(super, 0x18) & 7))
	case s == XFS:
		first := e.part(0, 16)
		return int64(binary.BigEndian.Uint64(first[8:])) * int64(binary.BigEndian.Uint32(first[4:]))
	case s == Btrfs:
		if b := e.part(64*kib+0x70, 8); b != nil {
			return int64(binary.LittleEndian.Uint64(b))
		}
	}
	return 0
}
