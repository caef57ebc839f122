// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package host

import (
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// byPath is the link that udev makes for the target of the tests.
const byPath = "dev/disk/by-path/ip-169.254.2.2:3260-iscsi-" + testIQN + "-lun-1"

// TestTheWrongDisk: C097. Whatever leads to another disk than the attachment's, nothing is written or mounted.
func TestTheWrongDisk(t *testing.T) {
	if testing.Short() {
		t.Skip("waits for disks that do not come: left out with -short")
	}
	for name, c := range map[string]struct {
		set  func(l *lab, right, wrong disk) StageRequest
		says string
	}{
		"the link of a LUN that was used again": {func(l *lab, right, wrong disk) StageRequest {
			l.target(l.iscsi().Attachment.Targets[0], right)
			l.link("../../"+wrong.name, byPath)
			return l.iscsi()
		}, "by-path"},
		"a session with two disks": {func(l *lab, right, wrong disk) StageRequest {
			l.target(l.iscsi().Attachment.Targets[0], right, wrong)
			return l.iscsi()
		}, "2 disks"},
		"a session without disk": {func(l *lab, _, _ disk) StageRequest {
			l.target(l.iscsi().Attachment.Targets[0])
			return l.iscsi()
		}, "0 disks"},
		"a session at another portal": {func(l *lab, right, _ disk) StageRequest {
			r := l.iscsi()
			l.target(r.Attachment.Targets[0], right)
			l.write("sys/devices/platform/host2/session1/connection1:0/iscsi_connection/connection1:0/persistent_address", "169.254.2.9\n")
			return r
		}, "no iSCSI session"},
		"a session that has lost its connection": {func(l *lab, right, _ disk) StageRequest {
			r := l.iscsi()
			l.target(r.Attachment.Targets[0], right)
			l.write("sys/devices/platform/host2/session1/iscsi_session/session1/state", "FAILED\n")
			return r
		}, "FAILED"},
		"another size": {func(l *lab, right, _ disk) StageRequest {
			r := l.iscsi()
			l.target(r.Attachment.Targets[0], right)
			r.Attachment.Size = 2 * testDisk * mib
			return r
		}, "bytes"},
		"a consistent path from before the disk": {func(l *lab, _, wrong disk) StageRequest {
			n, _ := blockNumber("/dev/" + wrong.name)
			l.write("udev/data/b"+n.String(), "S:disk/by-id/x\nS:oracleoci/oraclevdc\nE:ID_FS_TYPE=\n")
			return l.paravirtualized(wrong, testDisk*mib)
		}, "oraclevdc"},
		"a consistent path to a disk of iSCSI": {func(l *lab, _, wrong disk) StageRequest {
			l.target(l.iscsi().Attachment.Targets[0], wrong)
			l.link("../../devices/platform/host2/session1/iscsi_session/session1", "sys/class/iscsi_session/session1")
			return l.paravirtualized(wrong, testDisk*mib)
		}, testIQN},
		"a consistent path to a partition": {func(l *lab, _, wrong disk) StageRequest {
			l.write("sys/class/block/"+wrong.name+"/partition", "1\n")
			return l.paravirtualized(wrong, testDisk*mib)
		}, "partition"},
		"a consistent path to nothing": {func(l *lab, _, wrong disk) StageRequest {
			r := l.paravirtualized(wrong, testDisk*mib)
			l.link("../sdzz", "dev/oracleoci/oraclevdb")
			return r
		}, "is not there"},
		"a map over a disk of another volume": {func(l *lab, right, wrong disk) StageRequest {
			l.target(l.iscsi().Attachment.Targets[0], right)
			l.multipathOver("dm-7", 7, right, wrong)
			return l.iscsi()
		}, "not the attachment's"},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t)
			right, wrong := l.disk(testDisk), l.disk(testDisk)
			r := c.set(l, right, wrong)
			before := [2][32]byte{l.sum(right), l.sum(wrong)}
			err := l.Stage(l.within(time.Second), r)
			l.wants(err, ErrNotProven)
			if !strings.Contains(err.Error(), c.says) {
				t.Errorf("the error does not say %q: %v", c.says, err)
			}
			if strings.Contains(name, "map") { // whose disk cannot be disconnected, which is remembered
				l.must(os.RemoveAll(l.at("state")))
			}
			for i, d := range []disk{right, wrong} {
				l.untouched(d, before[i])
			}
		})
	}
}

// multipathOver lets sysfs show a map of multipathd over disks.
func (l *lab) multipathOver(name string, minor uint32, disks ...disk) {
	l.Helper()
	l.block(name, Number{Major: 253, Minor: minor}, testDisk*mib)
	l.write("sys/class/block/"+name+"/dm/uuid", "mpath-36001405\n")
	l.write("sys/class/block/"+name+"/dm/name", "mpatha\n")
	for _, d := range disks {
		l.link("../../"+d.name, "sys/class/block/"+name+"/slaves/"+d.name)
		l.link("../../"+name, "sys/class/block/"+d.name+"/holders/"+name)
	}
}

// TestInUseBySomebodyElse: a proven device that is mounted elsewhere, or part of something else, is not touched.
func TestInUseBySomebodyElse(t *testing.T) {
	t.Run("part of a volume group", func(t *testing.T) {
		l := newLab(t)
		d := l.disk(testDisk)
		l.block("dm-3", Number{Major: 253, Minor: 3}, testDisk*mib)
		l.write("sys/class/block/dm-3/dm/uuid", "LVM-abc\n")
		l.link("../../dm-3", "sys/class/block/"+d.name+"/holders/dm-3")
		before := l.sum(d)
		l.wants(l.Stage(l.within(5*time.Second), l.paravirtualized(d, testDisk*mib)), ErrInUse)
		l.untouched(d, before)
	})
	t.Run("mounted elsewhere", func(t *testing.T) {
		l := newLab(t)
		d := l.disk(testDisk)
		r := l.paravirtualized(d, testDisk*mib)
		l.must(l.Stage(l.within(20*time.Second), r))
		other := r
		other.Volume, other.Staging = "ocid1.volume.oc1..b", l.at("kubelet/other")
		l.wants(l.Stage(l.within(5*time.Second), other), ErrInUse)
		other.Filesystem = nil
		l.wants(l.Stage(l.within(5*time.Second), other), ErrInUse)
		if got := l.mountedAt(other.Staging); got != "" {
			t.Errorf("mounted: %s", got)
		}
	})
	t.Run("another device at the staging path", func(t *testing.T) {
		l := newLab(t)
		first, second := l.disk(testDisk), l.disk(testDisk)
		r := l.paravirtualized(first, testDisk*mib)
		l.must(l.Stage(l.within(20*time.Second), r))
		r = l.paravirtualized(second, testDisk*mib)
		l.wants(l.Stage(l.within(5*time.Second), r), ErrOtherMount)
	})
}

// TestTheRightDiskComesLate: C097. What does not fit at first is waited for, and udev is asked to look again.
func TestTheRightDiskComesLate(t *testing.T) {
	l := newLab(t)
	right, wrong := l.disk(testDisk), l.disk(testDisk)
	l.target(l.iscsi().Attachment.Targets[0], right)
	l.link("../../"+wrong.name, byPath)
	// Udev mends the link when it is asked to.
	l.program("udevadm", `[ "$1" != trigger ] || { rm "$LAB/`+byPath+`"; ln -s ../../`+right.name+` "$LAB/`+byPath+`"; }`)
	before := l.sum(wrong)
	r := l.iscsi()
	l.must(l.Stage(l.within(30*time.Second), r))
	if got := l.mountedAt(r.Staging); got != "/dev/"+right.name {
		t.Errorf("mounted: %q", got)
	}
	if l.sum(wrong) != before {
		t.Error("the other disk has changed")
	}
}

// TestDeviceWhoseNodeIsAnother: the name in sysfs and the node in /dev disagree.
func TestDeviceWhoseNodeIsAnother(t *testing.T) {
	l := newLab(t)
	right, wrong := l.disk(testDisk), l.disk(testDisk)
	r := l.iscsi()
	l.target(r.Attachment.Targets[0], right)
	n, err := blockNumber("/dev/" + wrong.name)
	l.must(err)
	l.must(os.Remove(l.at("dev", right.name)))
	l.must(unix.Mknod(l.at("dev", right.name), unix.S_IFBLK|0o600, int(unix.Mkdev(n.Major, n.Minor))))
	l.wants(l.Stage(l.within(time.Second), r), ErrNotProven)
}

func TestAttachmentsThatMakeNoSense(t *testing.T) {
	l := newLab(t)
	good := l.iscsi().Attachment.Targets[0]
	for name, a := range map[string]Attachment{
		"no type":              {},
		"no target":            {Type: ISCSI},
		"two without multi":    {Type: ISCSI, Targets: []Target{good, good}},
		"no portal":            {Type: ISCSI, Targets: []Target{{IQN: testIQN}}},
		"option for a name":    {Type: ISCSI, Targets: []Target{{IQN: "-u", Portal: portal(2)}}},
		"path for a name":      {Type: ISCSI, Targets: []Target{{IQN: "iqn.2015-12.x:../../y", Portal: portal(2)}}},
		"pv without device":    {Type: Paravirtualized},
		"pv outside of /dev":   {Type: Paravirtualized, Device: "/etc/passwd"},
		"pv that climbs":       {Type: Paravirtualized, Device: "/dev/../etc/passwd"},
		"emulated":             {Type: "emulated"},
		"blank in a name":      {Type: ISCSI, Targets: []Target{{IQN: "iqn.2015-12.x:a b", Portal: portal(2)}}},
		"name of another kind": {Type: ISCSI, Targets: []Target{{IQN: "$(reboot)", Portal: portal(2)}}},
	} {
		r := l.iscsi()
		r.Attachment = a
		if err := l.Stage(l.within(time.Second), r); err == nil || errors.Is(err, ErrNotProven) {
			t.Errorf("%s: error %v", name, err)
		}
	}
	if calls := l.calls(""); len(calls) > 0 {
		t.Errorf("ran %v", calls)
	}
}
