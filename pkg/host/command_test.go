// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package host

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestCommandThatHangs is killed, with its children, when its time is up; one that hangs in the kernel cannot be, and holds up nobody
// but its own volume.
func TestCommandThatHangs(t *testing.T) {
	l := newLab(t)
	l.program("iscsiadm", `sleep 60 & echo $! >"$LAB/sleeper"; wait`)
	begin := time.Now()
	_, err := l.run(t.Context(), newCommand(200*time.Millisecond, "iscsiadm", "-m", "node"))
	l.wants(err, context.DeadlineExceeded)
	if !strings.Contains(err.Error(), "iscsiadm -m node") || time.Since(begin) > 30*time.Second {
		t.Errorf("after %s: %v", time.Since(begin), err)
	}
	pid, err := os.ReadFile(l.at("sleeper"))
	l.must(err)
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		status, err := os.ReadFile("/proc/" + strings.TrimSpace(string(pid)) + "/status")
		if err != nil || bytes.Contains(status, []byte("State:\tZ")) {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("its child is alive: %s", status)
		}
	}
}

// TestOneStuckVolume: an operation that does not come back answers its caller in time, keeps its volume, and no other one.
func TestOneStuckVolume(t *testing.T) {
	l := newLab(t)
	free := make(chan struct{})
	err := l.operate(l.within(50*time.Millisecond), "a", func(_ context.Context, act *activity) error {
		act.at("mkfs.ext4 /dev/sdb")
		<-free
		return nil
	})
	l.wants(err, context.DeadlineExceeded)
	for _, again := range []error{
		err,
		l.operate(t.Context(), "a", func(context.Context, *activity) error { return nil }),
		l.Unpublish(l.within(time.Second), "a", l.at("kubelet/x")),
	} {
		var busy *BusyError
		if !errors.As(again, &busy) || busy.Volume != "a" || busy.Doing != "mkfs.ext4 /dev/sdb" {
			t.Errorf("error %v", again)
		}
	}
	l.must(l.operate(t.Context(), "b", func(context.Context, *activity) error { return nil }))
	close(free)
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(time.Millisecond) {
		if err = l.operate(t.Context(), "a", func(context.Context, *activity) error { return nil }); err == nil {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal(err)
		}
	}
}

// TestMkfsGoesOnWithoutItsCaller: half a file system is worth less than none.
func TestMkfsGoesOnWithoutItsCaller(t *testing.T) {
	l := newLab(t)
	d := l.disk(testDisk)
	r := l.paravirtualized(d, testDisk*mib)
	l.program("mkfs.ext4", `while [ ! -e "$LAB/go" ]; do sleep 0.02; done; exec /usr/sbin/mkfs.ext4 "$@"`)
	err := l.Stage(l.within(500*time.Millisecond), r)
	l.wants(err, context.DeadlineExceeded)
	if !strings.Contains(err.Error(), "mkfs.ext4") {
		t.Errorf("the error does not say what is under way: %v", err)
	}
	l.write("go", "")
	var busy *BusyError
	for err = l.Stage(l.within(20*time.Second), r); errors.As(err, &busy); err = l.Stage(l.within(20*time.Second), r) {
		time.Sleep(5 * time.Millisecond)
	}
	l.must(err)
	if n := len(l.calls("mkfs")); n != 1 {
		t.Errorf("%d times mkfs", n)
	}
}

// TestMkfsNeedsProof: whatever mount-utils thinks, mkfs runs for a device that was proven to be empty, and for that only.
func TestMkfsNeedsProof(t *testing.T) {
	l := newLab(t)
	l.program("mkfs.ext4", "exit 0")
	a := Device{Name: "a", Path: "/dev/a", Number: Number{8, 0}}
	b := Device{Name: "b", Path: "/dev/b", Number: Number{8, 16}}
	for _, e := range []*executor{{device: a}, {device: a, proof: &blankProof{device: b}}, {device: b, proof: &blankProof{device: b}}} {
		e.h, e.ctx, e.act = l.Host, t.Context(), &activity{}
		if _, err := e.Command("mkfs.ext4", "-F", "/dev/a").CombinedOutput(); !errors.Is(err, ErrNotBlank) {
			t.Errorf("error %v", err)
		}
	}
	if calls := l.calls(""); len(calls) > 0 {
		t.Errorf("ran %v", calls)
	}
}

func TestOutputOfCommands(t *testing.T) {
	l := newLab(t)
	l.program("multipath", `i=0; while [ $i -lt 3000 ]; do echo "line $i of much that nobody reads"; i=$((i+1)); done; echo the end >&2; exit 7`)
	out, err := l.run(t.Context(), newCommand(time.Minute, "multipath"))
	if len(out) > outputLimit || !strings.HasSuffix(out, "the end\n") || exitOf(err) != 7 {
		t.Errorf("%d bytes, %v", len(out), err)
	}
	if text := err.Error(); len(text) > 2*complaintLimit || !strings.HasSuffix(text, "the end") {
		t.Errorf("error %v", text)
	}
	if exitOf(errors.New("other")) != -1 {
		t.Error("an exit status of an error that has none")
	}
	if s := fmt.Sprintf("%v %+v %#v", CHAP{"u", "hush"}, Attachment{CHAP: &CHAP{"u", "hush"}}, CHAP{"u", "hush"}); strings.Contains(s, "hush") {
		t.Errorf("the secret shows: %s", s)
	}
}

// TestLacks: C096. What a host lacks is known at the start.
func TestLacks(t *testing.T) {
	l := newLab(t)
	l.Host.paths.Programs = l.Host.paths.Programs[:1]
	for _, name := range []string{"mount", "umount", "blkid", "multipath", "multipathd", "mkfs.ext4", "mkfs.ext3", "resize2fs", "fsck", "mkfs.xfs", "xfs_growfs"} {
		l.program(name, "exit 0")
	}
	l.write("unix", "Num RefCount Protocol\n")
	lacks := l.Lacks()
	if len(lacks) != 2 || !errors.Is(lacks[0].Err, ErrNoDaemon) || !strings.Contains(lacks[1].Err.Error(), "btrfs-progs") {
		t.Errorf("lacks %v", lacks)
	}
	l.must(os.Remove(l.at("bin/iscsiadm")))
	if lacks = l.Lacks(); len(lacks) != 2 || lacks[0].Without != "iSCSI attachments" || !strings.Contains(lacks[0].Err.Error(), "open-iscsi") {
		t.Errorf("lacks %v", lacks)
	}
}

// TestMountNamespace: programs run in another mount namespace, and see what is mounted there and not here.
func TestMountNamespace(t *testing.T) {
	needRoot(t)
	dir := t.TempDir()
	other := exec.Command("unshare", "--mount", "--propagation", "private", "sh", "-c", "mount -t tmpfs none "+dir+" && echo there >"+dir+"/file && echo ready && read line")
	in, err := other.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := other.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := other.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		in.Close()
		_ = other.Wait()
	}()
	if n, err := out.Read(make([]byte, 16)); n == 0 {
		t.Fatalf("no namespace: %v", err)
	}
	p := HostPaths("")
	p.MountNamespace = fmt.Sprintf("/proc/%d/ns/mnt", other.Process.Pid)
	h, err := New(Options{Paths: p, StateDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	for range 20 { // on many threads
		got, err := h.run(t.Context(), newCommand(time.Minute, "cat", dir+"/file"))
		if err != nil || got != "there\n" {
			t.Fatalf("%q: %v", got, err)
		}
		if _, err := os.Stat(filepath.Join(dir, "file")); !errors.Is(err, os.ErrNotExist) {
			t.Fatalf("this process went there, too: %v", err)
		}
	}
	if _, err := New(Options{Paths: HostPaths(t.TempDir()), StateDir: dir}); err == nil || !strings.Contains(err.Error(), "privileged") {
		t.Errorf("a host that is not mounted: %v", err)
	}
	if _, err := New(Options{Paths: HostPaths("")}); !errors.Is(err, ErrInvalid) {
		t.Errorf("no directory for records: %v", err)
	}
}
