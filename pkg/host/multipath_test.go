// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package host

import (
	"context"
	"net/netip"
	"os"
	"slices"
	"strings"
	"testing"
	"time"
)

// multipath is a request to stage a raw block volume over some portals; the sessions have loop devices for paths.
func (l *lab) multipath(paths int) (StageRequest, []disk) {
	l.Helper()
	r := l.iscsi()
	r.Attachment.Multipath, r.Attachment.Targets, r.Filesystem = true, nil, nil
	var disks []disk
	for i := range paths {
		t := Target{IQN: testIQN, Portal: portal(byte(2 + i)), LUN: -1}
		d := l.disk(testDisk)
		l.target(t, d)
		r.Attachment.Targets = append(r.Attachment.Targets, t)
		disks = append(disks, d)
	}
	return r, disks
}

// TestMultipath: the map over all paths is the device. The sessions are made here, since no agent makes them, and then end here.
func TestMultipath(t *testing.T) {
	l := newLab(t)
	r, disks := l.multipath(3)
	l.multipathOver("dm-7", 7, disks...)
	a := r.Attachment
	if _, _, err := l.find(a); err == nil || !strings.Contains(err.Error(), "no iSCSI session") {
		t.Errorf("error %v", err)
	}
	l.must(l.operate(l.within(20*time.Second), r.Volume, func(ctx context.Context, act *activity) error { return l.connect(ctx, act, r) }))
	if n := l.sessionCount(); n != 3 {
		t.Fatalf("%d sessions", n)
	}
	d, err := l.await(l.within(time.Second), a)
	if err != nil || d.Path != "/dev/mapper/mpatha" || d.Name != "dm-7" {
		t.Errorf("device %+v: %v", d, err)
	}
	// A path that has no session is missing; the map is still the device.
	l.must(os.Remove(l.at("sys/class/iscsi_session/session2")))
	if d, complete, err := l.find(a); complete || err == nil && d.Name != "dm-7" {
		t.Errorf("%+v %v %v", d, complete, err)
	}
	l.must(os.Remove(l.at("sys/class/block/dm-7/slaves", disks[1].name)))
	if d, complete, err := l.find(a); complete || err != nil || d.Name != "dm-7" {
		t.Errorf("%+v %v %v", d, complete, err)
	}
	if d, err := l.await(l.within(200*time.Millisecond), a); err != nil || d.Name != "dm-7" {
		t.Errorf("%+v %v", d, err)
	}
	l.program("multipath", "")
	l.must(l.Unstage(l.within(20*time.Second), r.Volume, r.Staging))
	l.nothingLeft()
	if calls := l.calls("multipath "); len(calls) == 0 || calls[0] != "multipath -f mpatha" {
		t.Errorf("ran %v", l.calls(""))
	}
}

// TestSessionsOfTheAgent are neither made nor ended here.
func TestSessionsOfTheAgent(t *testing.T) {
	l := newLab(t)
	r, disks := l.multipath(2)
	l.multipathOver("dm-7", 7, disks...)
	for _, s := range []string{"session1", "session2"} {
		l.link("../../devices/platform/host2/"+s+"/iscsi_session/"+s, "sys/class/iscsi_session/"+s)
	}
	l.must(l.operate(l.within(20*time.Second), r.Volume, func(ctx context.Context, act *activity) error { return l.connect(ctx, act, r) }))
	l.must(l.Unstage(l.within(20*time.Second), r.Volume, r.Staging))
	if calls := l.calls(""); len(calls) > 0 || l.sessionCount() != 2 {
		t.Errorf("ran %v, %d sessions", calls, l.sessionCount())
	}
	if list := names(l.at("state")); len(list) > 0 {
		t.Errorf("records %v", list)
	}
}

// TestOnePathIsEnough: of two portals one does not answer.
func TestOnePathIsEnough(t *testing.T) {
	l := newLab(t)
	r, _ := l.multipath(2)
	l.must(os.Remove(l.at("targets", testIQN+"-169.254.2.3:3260")))
	l.must(l.operate(l.within(20*time.Second), r.Volume, func(ctx context.Context, act *activity) error { return l.connect(ctx, act, r) }))
	if n := l.sessionCount(); n != 1 {
		t.Errorf("%d sessions", n)
	}
	l.must(l.Unstage(l.within(20*time.Second), r.Volume, r.Staging))
	l.nothingLeft()
}

// TestSinglePathThatMultipathdHasTaken: on hosts whose multipathd takes every disk, the map is the device.
func TestSinglePathThatMultipathdHasTaken(t *testing.T) {
	l := newLab(t)
	r := l.iscsi()
	d := l.disk(testDisk)
	l.target(r.Attachment.Targets[0], d)
	l.multipathOver("dm-9", 9, d)
	l.link("../../devices/platform/host2/session1/iscsi_session/session1", "sys/class/iscsi_session/session1")
	got, complete, err := l.find(r.Attachment)
	if err != nil || !complete || got.Name != "dm-9" {
		t.Errorf("%+v %v %v", got, complete, err)
	}
	behind, err := l.sessionsBehind(got)
	if err != nil || len(behind) != 1 || behind[0].iqn != testIQN {
		t.Errorf("%+v %v", behind, err)
	}
}

func TestPortalIPv6(t *testing.T) {
	if got := PortalIPv6(netip.MustParseAddr("169.254.2.2")).String(); got != "fd00:c1::a9fe:202" {
		t.Errorf("address %s", got)
	}
	six := netip.MustParseAddr("fd00:c1::1")
	if PortalIPv6(six) != six {
		t.Error("an IPv6 address has changed")
	}
	if !slices.Equal([]Signature{FilesystemType(""), FilesystemType("ext3"), FilesystemType("xfs"), FilesystemType("btrfs"), FilesystemType("ntfs")},
		[]Signature{Ext4, Ext3, XFS, Btrfs, Ext4}) {
		t.Error("file systems")
	}
}
