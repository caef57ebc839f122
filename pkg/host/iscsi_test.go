// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package host

import (
	"encoding/json"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestLifeOfAnISCSIVolume: what runs on the node, in which order, from the first stage to the last unstage.
func TestLifeOfAnISCSIVolume(t *testing.T) {
	l := newLab(t)
	d := l.disk(testDisk)
	r := l.iscsi()
	r.Attachment.Size = testDisk * mib
	r.Attachment.CHAP = &CHAP{User: "me", Secret: "hush"}
	r.Attachment.QueueDepth = 128
	l.target(r.Attachment.Targets[0], d)
	target := l.at("kubelet/pod/mount")
	l.must(l.Stage(l.within(20*time.Second), r))
	l.must(l.Publish(l.within(20*time.Second), PublishRequest{Volume: r.Volume, Staging: r.Staging, Target: target, ReadOnly: true}))
	l.wants(l.Unstage(l.within(20*time.Second), r.Volume, r.Staging), ErrInUse)
	l.must(l.Unpublish(l.within(20*time.Second), r.Volume, target))
	l.must(l.Unstage(l.within(20*time.Second), r.Volume, r.Staging))
	node := "iscsiadm -m node -T " + testIQN + " -p 169.254.2.2:3260 "
	device := "/dev/" + d.name
	want := []string{
		node + "-o new",
		node + "-o update -n node.startup -v automatic",
		node + "-o update -n node.session.queue_depth -v 128",
		node + "-o update -n node.session.auth.authmethod -v CHAP",
		node + "-o update -n node.session.auth.username -v me",
		node + "-o update -n node.session.auth.password -v hush",
		node + "-l",
		"blkid -p -s TYPE -s PTTYPE -o export " + device,
		"mkfs.ext4 -F -m0 " + device,
		"mount -t ext4 -o defaults " + device + " " + r.Staging,
		"mount -o bind " + r.Staging + " " + target,
		"mount -o bind,remount,relatime,ro " + target,
		"umount " + target,
		"umount " + r.Staging,
		node + "-u",
		node + "-o delete",
	}
	if diff := cmp.Diff(want, l.calls("")); diff != "" {
		t.Errorf("programs (-want +got):\n%s", diff)
	}
	l.nothingLeft()
	if _, err := os.Stat(target); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the target directory is left: %v", err)
	}
}

// nothingLeft makes sure that no session, record or mount of a volume is left.
func (l *lab) nothingLeft() {
	l.Helper()
	for _, dir := range []string{"sys/class/iscsi_session", "records", "state"} {
		if list := names(l.at(dir)); len(list) > 0 {
			l.Errorf("left in %s: %v", dir, list)
		}
	}
	mounts, err := l.mountTable()
	l.must(err)
	for _, m := range mounts {
		if strings.HasPrefix(m.path, l.dir) {
			l.Errorf("still mounted: %s", m.path)
		}
	}
}

// TestSessionThatIsThere: a login that somebody has made is taken, whether the kernel shows it before or only iscsiadm knows it.
func TestSessionThatIsThere(t *testing.T) {
	l := newLab(t)
	d := l.disk(testDisk)
	r := l.iscsi()
	l.target(r.Attachment.Targets[0], d)
	l.link("../../devices/platform/host2/session1/iscsi_session/session1", "sys/class/iscsi_session/session1")
	l.must(l.Stage(l.within(20*time.Second), r))
	if calls := l.calls("iscsiadm"); len(calls) > 0 {
		t.Errorf("ran %v", calls)
	}
	// It is logged out, although iscsiadm has no record of it.
	l.must(l.Unstage(l.within(20*time.Second), r.Volume, r.Staging))
	if !slices.Contains(l.calls("iscsiadm"), "iscsiadm -m session -r 1 -u") {
		t.Errorf("ran %v", l.calls("iscsiadm"))
	}
	l.nothingLeft()

	l.write("fail-login", "15\n")
	l.program("udevadm", `ln -sfn ../../devices/platform/host2/session1/iscsi_session/session1 "$LAB/sys/class/iscsi_session/session1"`)
	l.must(l.Stage(l.within(20*time.Second), r))
}

// TestLogoutIsChecked: C104, and storage.md §11 #4. A session that does not end is an error; the next Unstage, of which nothing is
// mounted any more, ends it.
func TestLogoutIsChecked(t *testing.T) {
	l := newLab(t)
	r := l.iscsi()
	l.target(r.Attachment.Targets[0], l.disk(testDisk))
	l.must(l.Stage(l.within(20*time.Second), r))
	l.write("deaf", "")
	l.wants(l.Unstage(l.within(2*time.Second), r.Volume, r.Staging), ErrNotLoggedOut)
	if l.mountedAt(r.Staging) != "" || l.sessionCount() != 1 {
		t.Fatalf("mounted: %q, %d sessions", l.mountedAt(r.Staging), l.sessionCount())
	}
	l.must(os.Remove(l.at("deaf")))
	l.write("fail-logout", "9\n")
	l.restart()
	if err := l.Unstage(l.within(5*time.Second), r.Volume, r.Staging); exitOf(err) != 9 || !strings.Contains(err.Error(), "told to fail") {
		t.Errorf("error %v", err)
	}
	l.must(os.Remove(l.at("fail-logout")))
	l.must(l.Unstage(l.within(5*time.Second), r.Volume, r.Staging))
	l.nothingLeft()
}

// TestFailedLogin: C096. Errors say what to do, show no secret, and leave no record of the target.
func TestFailedLogin(t *testing.T) {
	for name, c := range map[string]struct {
		fail, status string
		want         error
		says         string
	}{
		"no daemon":          {"fail-login", "20", ErrNoDaemon, "systemctl enable --now iscsid"},
		"daemon is starting": {"fail-new", "18", ErrNoDaemon, "iscsi-initiator-utils"},
		"wrong credentials":  {"fail-login", "24", ErrCredentials, "CHAP"},
		"settings":           {"fail-update", "6", nil, "[redacted]"},
		"no answer":          {"", "", nil, "cannot connect"},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t)
			r := l.iscsi()
			r.Attachment.CHAP = &CHAP{User: "hush", Secret: "hush"}
			if c.fail != "" {
				l.target(r.Attachment.Targets[0])
				l.write(c.fail, c.status+"\n")
			}
			if name == "settings" { // of which the last one is the secret
				l.program("iscsiadm", `case "$*" in *password*) echo "bad value hush" >&2; exit 6 ;; *) exit 0 ;; esac`)
			}
			err := l.Stage(l.within(5*time.Second), r)
			if err == nil || c.want != nil && !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.says) || strings.Contains(err.Error(), "hush") {
				t.Errorf("error %v", err)
			}
			if list := append(names(l.at("records")), names(l.at("state"))...); len(list) > 0 {
				t.Errorf("left: %v", list)
			}
		})
	}
	t.Run("no iscsiadm", func(t *testing.T) {
		l := newLab(t)
		l.must(os.Remove(l.at("bin/iscsiadm")))
		l.Host.paths.Programs = l.Host.paths.Programs[:1]
		var absent *MissingToolError
		if err := l.Stage(l.within(5*time.Second), l.iscsi()); !errors.As(err, &absent) || !strings.Contains(err.Error(), "open-iscsi") {
			t.Errorf("error %v", err)
		}
		// A paravirtualized volume needs none.
		l.must(l.Stage(l.within(20*time.Second), l.paravirtualized(l.disk(testDisk), testDisk*mib)))
	})
}

// TestOldDriversVolume: what v1.35 has staged, of which there is no record here, is taken down, session and record included.
func TestOldDriversVolume(t *testing.T) {
	for _, raw := range []bool{false, true} {
		l := newLab(t)
		d := l.disk(testDisk)
		r := l.iscsi()
		if raw {
			r.Filesystem = nil
		}
		l.target(r.Attachment.Targets[0], d)
		l.must(l.Stage(l.within(20*time.Second), r))
		l.must(os.RemoveAll(l.at("state")))
		l.restart()
		// The umount works, and then the process is killed: only the record that was made of the mount knows of the session.
		l.write("fail-logout", "9\n")
		if err := l.Unstage(l.within(5*time.Second), r.Volume, r.Staging); err == nil {
			t.Fatal("no error")
		}
		l.must(os.Remove(l.at("fail-logout")))
		l.restart()
		l.must(l.Unstage(l.within(20*time.Second), r.Volume, r.Staging))
		l.nothingLeft()
	}
}

// TestAttachedAgainUnderAnotherName: the sessions of an earlier attachment of the volume, which nobody has taken down, end before those
// of the new one begin.
func TestAttachedAgainUnderAnotherName(t *testing.T) {
	l := newLab(t)
	d := l.disk(testDisk)
	r := l.iscsi()
	l.target(r.Attachment.Targets[0], d)
	l.must(l.Stage(l.within(20*time.Second), r))
	l.must(l.unmount(t.Context(), &activity{}, r.Staging)) // the machine was started again, say
	r.Attachment.Targets = []Target{{IQN: testIQN + ":new", Portal: portal(3), LUN: 1}}
	l.target(r.Attachment.Targets[0], d)
	l.must(l.Stage(l.within(20*time.Second), r))
	if n := l.sessionCount(); n != 1 {
		t.Errorf("%d sessions", n)
	}
	l.must(l.Unstage(l.within(20*time.Second), r.Volume, r.Staging))
	l.nothingLeft()
}

// step is an operation of a child process.
type step struct {
	Dir     string
	Request StageRequest
	Target  string
	From    int // the operation to begin with
}

// steps are the operations of a volume's life.
func (s step) run(h *Host, done func(int)) error {
	ctx, cancel := timeout(30 * time.Second)
	defer cancel()
	for i, f := range []func() error{
		func() error { return h.Stage(ctx, s.Request) },
		func() error {
			return h.Publish(ctx, PublishRequest{Volume: s.Request.Volume, Staging: s.Request.Staging, Target: s.Target, ReadOnly: true})
		},
		func() error { return h.Unpublish(ctx, s.Request.Volume, s.Target) },
		func() error { return h.Unstage(ctx, s.Request.Volume, s.Request.Staging) },
	} {
		if i < s.From {
			continue
		}
		if err := f(); err != nil {
			return err
		}
		done(i + 1)
	}
	return nil
}

// TestKilledAfterAnyCommand: C104. A process that is killed after any of its commands leaves nothing that the next one does not find, and
// the disk is formatted once.
func TestKilledAfterAnyCommand(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a process for each command: left out with -short")
	}
	for n, more := 1, true; more && n < 100; n++ {
		l := newLab(t)
		s := step{Dir: l.dir, Request: l.iscsi(), Target: l.at("kubelet/pod/mount")}
		l.target(s.Request.Attachment.Targets[0], l.disk(testDisk))
		l.write("kill", itoa(n))
		more = l.child(s)
		l.must(os.RemoveAll(l.at("kill")))
		text, err := os.ReadFile(l.at("progress"))
		if err == nil {
			l.must(json.Unmarshal(text, &s.From))
		}
		killed := l.calls("")
		l.restart()
		if err := s.run(l.Host, func(int) {}); err != nil {
			t.Errorf("killed after %q: %v", killed[len(killed)-1], err)
		}
		l.nothingLeft()
		if n := len(l.calls("mkfs")); n != 1 {
			t.Errorf("killed after %q: %d times mkfs", killed[len(killed)-1], n)
		}
		if _, err := os.Stat(s.Target); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("killed after %q: the target is left", killed[len(killed)-1])
		}
		if !more && n < 12 {
			t.Errorf("only %d commands", n)
		}
	}
}

// TestFailedStageThatCannotBeUndone: the error says so, so that the caller unstages the volume; then nothing is left.
func TestFailedStageThatCannotBeUndone(t *testing.T) {
	l := newLab(t)
	d := l.disk(testDisk)
	l.put(d, 0, "somebody's")
	r := l.iscsi()
	l.target(r.Attachment.Targets[0], d)
	l.write("fail-logout", "1")
	err := l.Stage(l.within(20*time.Second), r)
	l.wants(err, ErrNotBlank)
	l.wants(err, ErrLeftBehind)
	if n := l.sessionCount(); n != 1 {
		t.Errorf("%d sessions", n)
	}
	l.must(os.Remove(l.at("fail-logout")))
	l.restart()
	l.must(l.Unstage(l.within(5*time.Second), r.Volume, r.Staging))
	l.nothingLeft()
	err = l.Stage(l.within(20*time.Second), r)
	if l.wants(err, ErrNotBlank); errors.Is(err, ErrLeftBehind) || l.sessionCount() != 0 {
		t.Errorf("%d sessions: %v", l.sessionCount(), err)
	}
}
