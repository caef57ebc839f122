// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package block_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	spec "github.com/container-storage-interface/spec/lib/go/csi"
	"golang.org/x/sys/unix"
	"google.golang.org/grpc/codes"
)

// TestPodsOneAfterTheOther: C104. A volume is formatted once, and every call can be repeated, by another process, too.
func TestPodsOneAfterTheOther(t *testing.T) {
	l := newNodeLab(t)
	l.appear(l.disk(diskSize), "b")
	p := l.pod()
	for round := range 2 {
		for range 2 {
			l.must(l.stage(p, 20*time.Second))
			l.must(l.publish(p))
			l.restart()
		}
		file := filepath.Join(p.target, "data")
		if round == 0 {
			l.must(os.WriteFile(file, []byte("precious"), 0o600))
		}
		if text, err := os.ReadFile(file); err != nil || string(text) != "precious" {
			t.Fatalf("round %d: %q, %v", round, text, err)
		}
		for range 2 {
			l.must(l.unpublish(p))
			l.restart()
			l.must(l.unstage(p))
		}
	}
	if n := len(l.calls("mkfs")); n != 1 {
		t.Errorf("%d times mkfs", n)
	}
	if list := l.mounts(l.dir); len(list) > 0 {
		t.Errorf("still mounted: %v", list)
	}
	if _, err := os.Lstat(p.target); !os.IsNotExist(err) {
		t.Errorf("the target is still there: %v", err)
	}
}

// TestOutOfOrder: C104. Publish before Stage, after a reboot that leaves directories and no mounts, and at paths that cannot be.
func TestOutOfOrder(t *testing.T) {
	l := newNodeLab(t)
	l.appear(l.disk(diskSize), "b")
	p := l.pod()
	refusedWith(t, l.publish(p), codes.FailedPrecondition, "not staged")
	l.must(l.unpublish(p))
	l.must(l.unstage(p))
	l.must(l.stage(p, 20*time.Second))
	l.must(l.publish(p))
	l.cleanUp() // a reboot takes the mounts away
	l.restart()
	refusedWith(t, l.publish(p), codes.FailedPrecondition, "not staged")
	l.must(l.stage(p, 20*time.Second))
	refusedWith(t, l.unstage(&pod{volume: p.volume, staging: "relative"}), codes.InvalidArgument, "not absolute")
	long := *p
	long.target = "/" + strings.Repeat("x/", 2100)
	refusedWith(t, l.publish(&long), codes.InvalidArgument, "too long")
	l.must(l.publish(p))
	refusedWith(t, l.unstage(p), codes.FailedPrecondition, p.target)
	l.must(l.unpublish(p))
	l.must(l.unstage(p))
}

// TestReadWriteOncePod: a volume for one pod is published at one path.
func TestReadWriteOncePod(t *testing.T) {
	l := newNodeLab(t)
	l.appear(l.disk(diskSize), "b")
	p := l.pod(mode(spec.VolumeCapability_AccessMode_SINGLE_NODE_SINGLE_WRITER))
	l.must(l.stage(p, 20*time.Second))
	l.must(l.publish(p))
	l.must(l.publish(p))
	other := *p
	other.target = l.at("kubelet/pods/other/mount")
	refusedWith(t, l.publish(&other), codes.FailedPrecondition, p.target)
	l.must(l.unpublish(p))
	l.must(l.publish(&other))
}

// TestRawBlockVolume: C103.
func TestRawBlockVolume(t *testing.T) {
	l := newNodeLab(t)
	d := l.disk(diskSize)
	l.appear(d, "b")
	p := l.pod(raw)
	p.target = l.at("kubelet/volumeDevices/pod")
	for range 2 {
		l.must(l.stage(p, 20*time.Second))
		l.must(l.publish(p))
	}
	l.must(os.WriteFile(p.target, []byte("raw"), 0o600))
	if text, err := os.ReadFile("/dev/" + d.name); err != nil || string(text[:3]) != "raw" {
		t.Errorf("the disk does not have what was written: %v", err)
	}
	got, err := l.stats(p, p.target)
	l.must(err)
	if u := got.GetUsage(); len(u) != 1 || u[0].GetUnit() != spec.VolumeUsage_BYTES || u[0].GetTotal() != diskSize {
		t.Errorf("usage %v", u)
	}
	grown, err := l.NodeExpandVolume(during(t, 5*time.Second), &spec.NodeExpandVolumeRequest{VolumeId: p.volume, VolumePath: p.target})
	if l.must(err); grown.GetCapacityBytes() != diskSize {
		t.Errorf("size %d", grown.GetCapacityBytes())
	}
	l.must(l.unpublish(p))
	l.must(l.unstage(p))
	if ran := append(l.calls("mkfs"), l.calls("fsck")...); len(ran) > 0 {
		t.Errorf("ran %v", ran)
	}
}

// TestVolumeStats: C109.
func TestVolumeStats(t *testing.T) {
	l := newNodeLab(t)
	l.appear(l.disk(diskSize), "b")
	l.appear(l.disk(diskSize), "c")
	p := l.pod()
	l.must(l.stage(p, 20*time.Second))
	l.must(l.publish(p))
	got, err := l.stats(p, p.target)
	l.must(err)
	units := map[spec.VolumeUsage_Unit]*spec.VolumeUsage{}
	for _, u := range got.GetUsage() {
		units[u.GetUnit()] = u
	}
	bytes, inodes := units[spec.VolumeUsage_BYTES], units[spec.VolumeUsage_INODES]
	if bytes.GetTotal() < diskSize/2 || bytes.GetTotal() > diskSize || bytes.GetAvailable() <= 0 || inodes.GetTotal() <= 0 || inodes.GetUsed() <= 0 {
		t.Errorf("usage %v", got.GetUsage())
	}
	_, err = l.stats(p, l.at("kubelet"))
	refusedWith(t, err, codes.NotFound)
	other := *p
	other.volume, other.staging, other.publish = nodeVolume+"2", l.at("kubelet/plugins/other"), oldParavirtualized("device", "/dev/oracleoci/oraclevdc")
	l.must(l.stage(&other, 20*time.Second))
	_, err = l.stats(&other, p.target)
	refusedWith(t, err, codes.NotFound, other.volume)
	_, err = l.NodeExpandVolume(during(t, 5*time.Second), &spec.NodeExpandVolumeRequest{VolumeId: other.volume, VolumePath: p.target})
	refusedWith(t, err, codes.NotFound, other.volume)
}

// TestNothingIsFormattedInDoubt: C097, C098. Each disk is the wrong one, or has something, or cannot be read. Mkfs does not run, and the
// disk is as it was.
func TestNothingIsFormattedInDoubt(t *testing.T) {
	for name, c := range map[string]struct {
		prepare func(*nodeLab, loopDisk, *pod)
		code    codes.Code
		says    string
	}{
		"LVM":      {func(l *nodeLab, d loopDisk, _ *pod) { l.put(d, 512, "LABELONE"); l.put(d, 536, "LVM2 001") }, codes.FailedPrecondition, "LVM"},
		"one byte": {func(l *nodeLab, d loopDisk, _ *pod) { l.put(d, mib, "x") }, codes.FailedPrecondition, "not empty"},
		"xfs":      {func(l *nodeLab, d loopDisk, _ *pod) { l.put(d, 0, "XFSB") }, codes.FailedPrecondition, "another file system"},
		"unreadable": {func(l *nodeLab, d loopDisk, _ *pod) {
			l.program("blkid", "exit 2")
			l.must(os.Truncate(d.file, 0))
		}, codes.Internal, "input/output error"},
		"restored":           {func(_ *nodeLab, _ loopDisk, p *pod) { p.publish["needResize"] = "true" }, codes.FailedPrecondition, "never formatted"},
		"formatPolicy never": {func(_ *nodeLab, _ loopDisk, p *pod) { p.context = map[string]string{"formatPolicy": "never"} }, codes.FailedPrecondition, "never formatted"},
		"read-only": {func(_ *nodeLab, _ loopDisk, p *pod) {
			p.capability = capability(mode(spec.VolumeCapability_AccessMode_MULTI_NODE_READER_ONLY))
		}, codes.FailedPrecondition, "read-only"},
		"larger than the volume":  {func(_ *nodeLab, _ loopDisk, p *pod) { p.publish["size"] = "1048576" }, codes.Unavailable, "not formatted"},
		"smaller than the volume": {func(_ *nodeLab, _ loopDisk, p *pod) { p.publish["size"] = "53687091200" }, codes.Unavailable, "bytes"},
		"a stale link": {func(l *nodeLab, d loopDisk, _ *pod) {
			var st unix.Stat_t
			l.must(unix.Stat("/dev/"+d.name, &st))
			record := filepath.Join("udev/data", "b"+number(st.Rdev))
			l.must(os.WriteFile(l.at(record), []byte("S:oracleoci/oraclevdc\n"), 0o600))
		}, codes.Unavailable, "oraclevdc"},
		"no link": {func(l *nodeLab, _ loopDisk, _ *pod) { l.must(os.Remove(l.at("dev/oracleoci/oraclevdb"))) }, codes.Unavailable, "oraclevdb"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newNodeLab(t)
			d := l.disk(diskSize)
			l.appear(d, "b")
			p := l.pod()
			c.prepare(l, d, p)
			before := l.sum(d)
			limit := 5 * time.Second
			if c.code == codes.Unavailable { // waits for the right disk until the time is up
				limit = 3 * time.Second
			}
			refusedWith(t, l.stage(p, limit), c.code, c.says)
			if ran := append(l.calls("mkfs"), l.calls("mount")...); len(ran) > 0 {
				t.Errorf("ran %v", ran)
			}
			if l.sum(d) != before {
				t.Error("the disk has changed")
			}
			l.must(l.unstage(p))
		})
	}
}

// TestDiskThatComesLate: C097. The link appears while Stage waits.
func TestDiskThatComesLate(t *testing.T) {
	l := newNodeLab(t)
	d := l.disk(diskSize)
	p := l.pod()
	timer := time.AfterFunc(time.Second, func() { l.appear(d, "b") })
	defer timer.Stop()
	l.must(l.stage(p, 20*time.Second))
	l.must(l.unstage(p))
}

// TestToolsThatAreMissing: C096. The error says which package to install; volumes that do not need the tool work.
func TestToolsThatAreMissing(t *testing.T) {
	l := newNodeLab(t, "mkfs.ext3")
	d := l.disk(diskSize)
	l.appear(d, "b")
	remote := l.pod()
	remote.publish = oldISCSI()
	refusedWith(t, l.stage(remote, 5*time.Second), codes.Unavailable, "iscsiadm", "iscsi-initiator-utils", "open-iscsi")
	refusedWith(t, l.stage(l.pod(fsType("ext3")), 5*time.Second), codes.Unavailable, "mkfs.ext3", "e2fsprogs")
	refusedWith(t, l.stage(l.pod(fsType("xfs")), 5*time.Second), codes.Unavailable, "mkfs.xfs", "xfsprogs")
	if l.calls("mkfs") != nil {
		t.Errorf("ran %v", l.calls("mkfs"))
	}
	l.must(l.stage(l.pod(), 20*time.Second))
}

// TestDaemonThatDoesNotRun: C096.
func TestDaemonThatDoesNotRun(t *testing.T) {
	l := newNodeLab(t)
	l.program("iscsiadm", `case "$*" in *-l*) exit 20 ;; esac`)
	p := l.pod()
	p.publish = oldISCSI()
	refusedWith(t, l.stage(p, 5*time.Second), codes.Unavailable, "iscsid is not running", "systemctl enable --now iscsid")
}

// TestTwoStages: a second call about a volume while the first is under way is Aborted, and other volumes do not wait.
func TestTwoStages(t *testing.T) {
	l := newNodeLab(t)
	l.appear(l.disk(diskSize), "b")
	l.appear(l.disk(diskSize), "c")
	path, err := exec.LookPath("mkfs.ext4")
	l.must(err)
	l.program("mkfs.ext4", `while [ ! -e `+l.at("go")+` ] && [ "$(grep -c "^mkfs" `+l.at("calls")+`)" -lt 2 ]; do sleep 0.05; done; exec `+path+` "$@"`)
	p := l.pod()
	first := make(chan error, 1)
	go func() { first <- l.stage(p, 30*time.Second) }()
	for len(l.calls("mkfs")) == 0 {
		time.Sleep(10 * time.Millisecond)
	}
	refusedWith(t, l.stage(p, 5*time.Second), codes.Aborted)
	other := *p
	other.volume, other.staging, other.publish = nodeVolume+"2", l.at("kubelet/plugins/other"), oldParavirtualized("device", "/dev/oracleoci/oraclevdc")
	l.must(l.stage(&other, 20*time.Second))
	l.must(os.WriteFile(l.at("go"), nil, 0o600))
	l.must(<-first)
}
