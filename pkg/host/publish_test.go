// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package host

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// staged is a lab with a volume that is staged.
func staged(t *testing.T, raw bool) (*lab, disk, StageRequest) {
	t.Helper()
	l := newLab(t)
	d := l.disk(testDisk)
	r := l.paravirtualized(d, testDisk*mib)
	if raw {
		r.Filesystem = nil
	}
	l.must(l.Stage(l.within(20*time.Second), r))
	return l, d, r
}

// TestPublish: C104. Publish is a bind mount of what is staged, and can be repeated; so can Unpublish.
func TestPublish(t *testing.T) {
	l, d, r := staged(t, false)
	p := PublishRequest{Volume: r.Volume, Staging: r.Staging, Target: l.at("kubelet/pod with blanks/a\\b/mount")}
	for range 2 {
		l.must(l.Publish(l.within(5*time.Second), p))
	}
	if got := l.mountedAt(p.Target); got != "/dev/"+d.name {
		t.Errorf("mounted: %q", got)
	}
	l.must(os.WriteFile(filepath.Join(p.Target, "x"), []byte("x"), 0o600))
	ro := p
	ro.Target, ro.ReadOnly = l.at("kubelet/other"), true
	l.must(l.Publish(l.within(5*time.Second), ro))
	if err := os.WriteFile(filepath.Join(ro.Target, "y"), nil, 0o600); !errors.Is(err, unix.EROFS) {
		t.Errorf("write to a read-only target: %v", err)
	}
	if n := len(l.calls("mount -o bind ")); n != 2 {
		t.Errorf("%d bind mounts: %v", n, l.calls("mount"))
	}
	// The process died between the mount and its options.
	l.must(unix.Unmount(ro.Target, 0))
	l.must(unix.Mount(r.Staging, ro.Target, "", unix.MS_BIND, ""))
	l.must(l.Publish(l.within(5*time.Second), ro))
	if err := os.WriteFile(filepath.Join(ro.Target, "y"), nil, 0o600); !errors.Is(err, unix.EROFS) {
		t.Errorf("write to a read-only target: %v", err)
	}
	for range 2 {
		l.must(l.Unpublish(l.within(5*time.Second), p.Volume, p.Target))
		l.must(l.Unpublish(l.within(5*time.Second), p.Volume, ro.Target))
	}
	l.must(l.Unstage(l.within(5*time.Second), r.Volume, r.Staging))
	l.nothingLeft()
}

// TestPublishWithoutStage: C104, also after a reboot between Stage and Publish, which leaves directories and no mounts.
func TestPublishWithoutStage(t *testing.T) {
	l, _, r := staged(t, false)
	p := PublishRequest{Volume: r.Volume, Staging: r.Staging, Target: l.at("kubelet/pod/mount")}
	l.must(unix.Unmount(r.Staging, 0))
	l.wants(l.Publish(l.within(5*time.Second), p), ErrNotStaged)
	p.Block = true
	l.wants(l.Publish(l.within(5*time.Second), p), ErrNotStaged)
	if _, err := os.Stat(p.Target); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a target was made: %v", err)
	}
	p.Block = false
	l.restart()
	l.must(l.Stage(l.within(20*time.Second), r))
	l.must(l.Publish(l.within(5*time.Second), p))
}

// TestTargetOfSomebodyElse: what is mounted at a target, or lies there, stays.
func TestTargetOfSomebodyElse(t *testing.T) {
	l, _, r := staged(t, false)
	p := PublishRequest{Volume: r.Volume, Staging: r.Staging, Target: l.at("kubelet/pod/mount")}
	l.must(os.MkdirAll(p.Target, 0o755))
	l.must(unix.Mount("none", p.Target, "tmpfs", 0, ""))
	l.wants(l.Publish(l.within(5*time.Second), p), ErrOtherMount)
	l.must(unix.Unmount(p.Target, 0))
	l.write("kubelet/pod/mount/file", "somebody's")
	l.must(l.Unpublish(l.within(5*time.Second), r.Volume, p.Target))
	if text, err := os.ReadFile(filepath.Join(p.Target, "file")); err != nil || string(text) != "somebody's" {
		t.Errorf("the file: %q %v", text, err)
	}
}

// TestKubeletBehindALink: C104. The kubelet's root directory is a link; the mount table has the place that it leads to.
func TestKubeletBehindALink(t *testing.T) {
	l := newLab(t)
	l.must(os.MkdirAll(l.at("real/deep"), 0o755))
	l.link("deep/../../real/deep", "real/step")
	l.link(l.at("real/step"), "kubelet")
	d := l.disk(testDisk)
	r := l.paravirtualized(d, testDisk*mib)
	p := PublishRequest{Volume: r.Volume, Staging: r.Staging, Target: l.at("kubelet/pod/mount")}
	for range 2 {
		l.must(l.Stage(l.within(20*time.Second), r))
		l.must(l.Publish(l.within(5*time.Second), p))
	}
	if got := l.mountedAt(l.at("real/deep/pod/mount")); got != "/dev/"+d.name {
		t.Errorf("mounted: %q", got)
	}
	l.must(l.Unpublish(l.within(5*time.Second), r.Volume, p.Target))
	l.must(l.Unstage(l.within(5*time.Second), r.Volume, r.Staging))
	l.nothingLeft()
	l.wants(l.Unpublish(l.within(time.Second), r.Volume, "relative"), ErrInvalid)
}

// TestRawBlock: the device's node is mounted at the file that v1.35 has, and nothing looks at the content.
func TestRawBlock(t *testing.T) {
	l, d, r := staged(t, true)
	l.must(l.Stage(l.within(20*time.Second), r))
	p := PublishRequest{Volume: r.Volume, Staging: r.Staging, Target: l.at("kubelet/volumeDevices/pod"), Block: true}
	for range 2 {
		l.must(l.Publish(l.within(5*time.Second), p))
	}
	for _, path := range []string{r.Staging + "/mountfile", p.Target} {
		if got, err := l.nodeAt(path); err != nil || got.Name != d.name {
			t.Errorf("%s is %v: %v", path, got, err)
		}
	}
	if u, err := l.Stats(l.within(time.Second), p.Target); err != nil || !u.Block || u.Bytes.Total != testDisk*mib {
		t.Errorf("stats %+v: %v", u, err)
	}
	l.wants(l.Unstage(l.within(5*time.Second), r.Volume, r.Staging), ErrInUse)
	l.must(l.Unpublish(l.within(5*time.Second), r.Volume, p.Target))
	for range 2 {
		l.must(l.Unstage(l.within(5*time.Second), r.Volume, r.Staging))
	}
	l.nothingLeft()
	if list := names(r.Staging); len(list) > 0 {
		t.Errorf("left: %v", list)
	}
	if slices.ContainsFunc(l.calls(""), func(c string) bool { return strings.HasPrefix(c, "mkfs") || strings.HasPrefix(c, "fsck") }) {
		t.Errorf("ran %v", l.calls(""))
	}
}

// TestGrow: the volume, its device and its file system, while it is mounted; again; and not before the device has grown.
func TestGrow(t *testing.T) {
	needResize(t)
	l, d, r := staged(t, false)
	p := PublishRequest{Volume: r.Volume, Staging: r.Staging, Target: l.at("kubelet/pod/mount")}
	l.must(l.Publish(l.within(5*time.Second), p))
	before, err := l.Stats(l.within(time.Second), p.Target)
	l.must(err)
	_, err = l.Grow(l.within(time.Second), r.Volume, p.Target, 2*testDisk*mib)
	l.wants(err, ErrTooSmall)
	l.grown(d, 2*testDisk)
	for range 2 {
		size, err := l.Grow(l.within(20*time.Second), r.Volume, p.Target, 2*testDisk*mib)
		if err != nil || size != 2*testDisk*mib {
			t.Fatalf("size %d: %v", size, err)
		}
	}
	after, err := l.Stats(l.within(time.Second), p.Target)
	l.must(err)
	if after.Bytes.Total < before.Bytes.Total*3/2 || after.Inodes.Total <= before.Inodes.Total || after.Bytes.Available <= 0 {
		t.Errorf("before %+v, after %+v", before, after)
	}
	_, err = l.Grow(l.within(time.Second), r.Volume, l.at("kubelet/nowhere"), 1)
	l.wants(err, ErrNotMounted)
	_, err = l.Stats(l.within(time.Second), l.at("kubelet/nowhere"))
	l.wants(err, ErrNotMounted)
}

// needResize leaves a test out where even root may not grow a mounted file system, as in some containers.
func needResize(t *testing.T) {
	t.Helper()
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	_, after, _ := strings.Cut(string(status), "CapEff:")
	line, _, _ := strings.Cut(after, "\n")
	effective, err := strconv.ParseUint(strings.TrimSpace(line), 16, 64)
	if err != nil {
		t.Fatal(err)
	}
	if effective&(1<<unix.CAP_SYS_RESOURCE) == 0 {
		t.Skip("growing a mounted ext4 needs CAP_SYS_RESOURCE, which this process lacks; make test-vm grows one, too")
	}
}

// grown makes a disk larger, as the cloud does.
func (l *lab) grown(d disk, megabytes int64) {
	l.Helper()
	l.must(os.Truncate(d.file, megabytes*mib))
	if out, err := exec.Command("losetup", "-c", "/dev/"+d.name).CombinedOutput(); err != nil {
		l.Fatalf("losetup: %v %s", err, out)
	}
	n, err := blockNumber("/dev/" + d.name)
	l.must(err)
	l.block(d.name, n, megabytes*mib)
}

// TestRestoredToALargerVolume: C101. The file system is grown when it is staged, also if the process died after the mount.
func TestRestoredToALargerVolume(t *testing.T) {
	needResize(t)
	l, d, r := staged(t, false)
	l.must(l.Unstage(l.within(5*time.Second), r.Volume, r.Staging))
	l.grown(d, 2*testDisk)
	r.Attachment.Size = 2 * testDisk * mib
	r.Filesystem.Format, r.Filesystem.Grow = FormatNever, true
	l.program("resize2fs", "exit 1")
	if err := l.Stage(l.within(20*time.Second), r); exitOf(err) != 1 {
		t.Fatalf("error %v", err)
	}
	l.program("resize2fs", `exec /usr/sbin/resize2fs "$@"`)
	l.must(l.Stage(l.within(20*time.Second), r))
	u, err := l.Stats(l.within(time.Second), r.Staging)
	if l.must(err); u.Bytes.Total < testDisk*mib*3/2 {
		t.Errorf("stats %+v", u)
	}
	if n := len(l.calls("mkfs")); n != 1 {
		t.Errorf("%d times mkfs", n)
	}
}
