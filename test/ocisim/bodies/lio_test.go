// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package bodies_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/oracle/oci-go-sdk/v65/common"
	"github.com/oracle/oci-go-sdk/v65/core"

	"github.com/oracle/oci-cloud-controller-manager/test/ocisim/bodies"
)

// newLIO is a lab whose attachments are targets of this kernel. Few machines have one: make test-vm runs the test in a
// guest that does.
func newLIO(t *testing.T) *lab {
	t.Helper()
	if os.Getenv("VM_TEST") == "" {
		t.Skip("changes the kernel's iSCSI targets: make test-vm runs it in a guest")
	}
	dir := t.TempDir()
	script := filepath.Join(dir, "lio.sh")
	if err := os.WriteFile(script, []byte(bodies.LIOScript()), 0o755); err != nil {
		t.Fatal(err)
	}
	body, err := bodies.NewISCSI(bodies.ISCSIOptions{Command: []string{"/bin/sh", script}, Dir: filepath.Join(dir, "volumes")})
	if err != nil {
		t.Fatal(err)
	}
	return newLab(t, body)
}

// run runs a command of the guest.
func run(t *testing.T, argv ...string) string {
	t.Helper()
	out, err := exec.Command(argv[0], argv[1:]...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", strings.Join(argv, " "), err, out)
	}
	return strings.TrimSpace(string(out))
}

// login logs in to the target of an attachment, and returns the device that appears.
func (l *lab) login(a core.IScsiVolumeAttachment) string {
	l.t.Helper()
	portal := fmt.Sprintf("%s:%d", *a.Ipv4, *a.Port)
	node := func(args ...string) {
		run(l.t, append([]string{"iscsiadm", "-m", "node", "-T", *a.Iqn, "-p", portal}, args...)...)
	}
	node("-o", "new")
	if a.ChapUsername != nil {
		node("-o", "update", "-n", "node.session.auth.authmethod", "-v", "CHAP")
		node("-o", "update", "-n", "node.session.auth.username", "-v", *a.ChapUsername)
		node("-o", "update", "-n", "node.session.auth.password", "-v", *a.ChapSecret)
	}
	node("--login")
	device := fmt.Sprintf("/dev/disk/by-path/ip-%s-iscsi-%s-lun-1", portal, *a.Iqn)
	l.await("device "+device, func() bool { _, err := os.Stat(device); return err == nil })
	return device
}

func (l *lab) logout(a core.IScsiVolumeAttachment) {
	l.t.Helper()
	run(l.t, "iscsiadm", "-m", "node", "-T", *a.Iqn, "--logout")
	run(l.t, "iscsiadm", "-m", "node", "-o", "delete", "-T", *a.Iqn)
}

// attachISCSI attaches by iSCSI and returns the attachment as the API shows it.
func (l *lab) attachISCSI(volume string, chap bool) core.IScsiVolumeAttachment {
	l.t.Helper()
	id, _ := l.request(core.AttachIScsiVolumeDetails{InstanceId: &l.instance, VolumeId: &volume, UseChap: common.Bool(chap)})
	l.await("attachment", func() bool { return l.attachmentState(id) == core.VolumeAttachmentLifecycleStateAttached })
	a, _ := l.region.VolumeAttachment(id)
	shown, ok := a.(core.IScsiVolumeAttachment)
	if !ok {
		l.t.Fatalf("attachment %v", a)
	}
	return shown
}

// TestLIO logs in to a real target, writes, grows the volume under the session, detaches, and finds the data again after
// another attachment, this time with CHAP.
func TestLIO(t *testing.T) {
	l := newLIO(t)
	volume := l.volume()
	first := l.attachISCSI(volume, false)
	device := l.login(first)
	before := run(t, "blockdev", "--getsize64", device)
	if before != fmt.Sprint(50<<30) {
		t.Errorf("the device has %s bytes; want those of 50 GiB", before)
	}
	run(t, "mkfs.ext4", "-q", "-F", "-O", "^has_journal", "-E", "lazy_itable_init=1", device)
	mounted(t, device, func(dir string) {
		if err := os.WriteFile(filepath.Join(dir, "file"), []byte("kept"), 0o600); err != nil {
			t.Fatal(err)
		}
	})
	l.resize(volume, 60)
	l.await("the larger device", func() bool { return run(t, "blockdev", "--getsize64", device) == fmt.Sprint(60<<30) })
	l.logout(first)
	l.detach(*first.Id)
	if _, err := os.Stat("/sys/kernel/config/target/iscsi/" + *first.Iqn); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the target is still there: %v", err)
	}

	second := l.attachISCSI(volume, true)
	device = l.login(second)
	mounted(t, device, func(dir string) {
		text, err := os.ReadFile(filepath.Join(dir, "file"))
		if err != nil || string(text) != "kept" {
			t.Errorf("%q, %v", text, err)
		}
	})
	l.logout(second)
	l.detach(*second.Id)
	stores, err := filepath.Glob("/sys/kernel/config/target/core/fileio_0/*/enable")
	if err != nil || len(stores) != 0 {
		t.Errorf("backing stores left: %v, %v", stores, err)
	}
}

func mounted(t *testing.T, device string, use func(dir string)) {
	t.Helper()
	dir := t.TempDir()
	if err := syscall.Mount(device, dir, "ext4", 0, ""); err != nil {
		t.Fatal(err)
	}
	use(dir)
	if err := syscall.Unmount(dir, 0); err != nil {
		t.Fatal(err)
	}
}

// TestLIODisk lets a paravirtualized attachment appear as a SCSI disk with the volume's serial.
func TestLIODisk(t *testing.T) {
	l := newLIO(t)
	id := l.attach(l.instance, l.volume(), "", false)
	disks := func() int {
		n := 0
		models, _ := filepath.Glob("/sys/block/sd*/device/vendor")
		for _, m := range models {
			if text, err := os.ReadFile(m); err == nil && strings.HasPrefix(string(text), "LIO-ORG") {
				n++
			}
		}
		return n
	}
	l.await("disk", func() bool { return disks() == 1 })
	l.detach(id)
	l.await("end of the disk", func() bool { return disks() == 0 })
}
