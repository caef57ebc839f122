// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package bodies_test

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/oracle/oci-go-sdk/v65/core"

	"github.com/oracle/oci-cloud-controller-manager/test/ocisim"
	"github.com/oracle/oci-cloud-controller-manager/test/ocisim/bodies"
)

// loops makes a body of loop devices, or skips.
func loops(t *testing.T) (body *bodies.Loop, root, dir string) {
	t.Helper()
	root, dir = t.TempDir(), t.TempDir()
	body, err := bodies.NewLoop(bodies.LoopOptions{Root: root, Dir: dir})
	if errors.Is(err, bodies.ErrNoLoopDevices) {
		t.Skipf("loop devices are needed: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	return body, root, dir
}

// write puts text on a device, and sees to it that the device has it.
func write(t *testing.T, path string, at int64, text string) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteAt([]byte(text), at); err != nil {
		t.Fatal(err)
	}
	if err := f.Sync(); err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, path string, at int64, n int) string {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	buf := make([]byte, n)
	if _, err := f.ReadAt(buf, at); err != nil {
		t.Fatal(err)
	}
	return string(buf)
}

func sizeOf(t *testing.T, path string) int64 {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	size, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		t.Fatal(err)
	}
	return size
}

const gigabyte = 1 << 30

// TestLoopKeepsContent follows data through the life of a volume: detach and attach again, elsewhere and at another
// path, clone, backup, restore, growth.
func TestLoopKeepsContent(t *testing.T) {
	body, root, dir := loops(t)
	l := newLab(t, body)
	at := func(instance, device string) string { return filepath.Join(root, instance, device) }
	const b, c, d = "/dev/oracleoci/oraclevdb", "/dev/oracleoci/oraclevdc", "/dev/oracleoci/oraclevdd"

	volume := l.volume()
	first := l.attach(l.instance, volume, b, false)
	device := at(l.instance, b)
	if got := sizeOf(t, device); got != 50*gigabyte {
		t.Errorf("device of %d bytes", got)
	}
	write(t, device, 0, "beginning")
	write(t, device, 49*gigabyte, "far away")
	l.detach(first)
	if _, err := os.Lstat(device); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the device path is still there: %v", err)
	}
	if _, there := body.Device(volume); there {
		t.Error("a detached volume has a device")
	}

	second := l.addInstance("node-2")
	l.attach(second, volume, c, false)
	device = at(second, c)
	if got := read(t, device, 0, 9) + read(t, device, 49*gigabyte, 8); got != "beginningfar away" {
		t.Errorf("content after attaching again: %q", got)
	}

	// Copies are of the moment, also of an attached volume.
	clone := l.create(core.VolumeSourceFromVolumeDetails{Id: &volume})
	r, err := l.storage.CreateVolumeBackup(t.Context(), core.CreateVolumeBackupRequest{CreateVolumeBackupDetails: core.CreateVolumeBackupDetails{VolumeId: &volume}})
	if err != nil {
		t.Fatal(err)
	}
	l.await("backup", func() bool {
		return l.region.VolumeBackups()[0].LifecycleState == core.VolumeBackupLifecycleStateAvailable
	})
	write(t, device, 0, "CHANGED  ")
	restored := l.create(core.VolumeSourceFromVolumeBackupDetails{Id: r.Id})
	for i, copied := range []string{clone, restored} {
		path := []string{b, c}[i]
		l.attach(l.instance, copied, path, false)
		if got := read(t, at(l.instance, path), 0, 9) + read(t, at(l.instance, path), 49*gigabyte, 8); got != "beginningfar away" {
			t.Errorf("copy %d: %q", i, got)
		}
	}
	if got := read(t, device, 0, 9); got != "CHANGED  " {
		t.Errorf("original: %q", got)
	}

	l.resize(volume, 60)
	if got := sizeOf(t, device); got != 60*gigabyte {
		t.Errorf("the device has %d bytes after the growth", got)
	}
	write(t, device, 59*gigabyte, "new end")
	if used := usedBytes(t, dir); used > 64<<20 {
		t.Errorf("the files fill %d bytes: they should be sparse", used)
	}
	empty := l.volume()
	l.attach(l.instance, empty, d, false)
	if got := read(t, at(l.instance, d), 0, 4); got != "\x00\x00\x00\x00" {
		t.Errorf("a new volume has %q", got)
	}
	if errs := l.region.BodyErrors(); len(errs) > 0 {
		t.Error(errs)
	}
}

// TestLoopShared lets two instances see one volume.
func TestLoopShared(t *testing.T) {
	body, root, _ := loops(t)
	l := newLab(t, body)
	second := l.addInstance("node-2")
	volume := l.volume()
	const path = "/dev/oracleoci/oraclevdb"
	one := l.attach(l.instance, volume, path, true)
	l.attach(second, volume, path, true)
	write(t, filepath.Join(root, l.instance, path), 4096, "hello")
	l.detach(one)
	if got := read(t, filepath.Join(root, second, path), 4096, 5); got != "hello" {
		t.Errorf("the other instance reads %q", got)
	}
}

// TestLoopCleansUp looks for what is left after a termination, a delete, a reset and a close.
func TestLoopCleansUp(t *testing.T) {
	body, root, dir := loops(t)
	l := newLab(t, body)
	left := func() int {
		t.Helper()
		n := 0
		for _, where := range []string{root, dir} {
			list, err := os.ReadDir(where)
			if err != nil {
				t.Fatal(err)
			}
			n += len(list)
		}
		return n
	}
	volume := l.volume()
	a := l.attach(l.instance, volume, "/dev/oracleoci/oraclevdb", false)
	name, _ := body.Device(volume)
	if err := l.region.Foreign().TerminateInstance(l.instance); err != nil {
		t.Fatal(err)
	}
	l.await("end of the attachment", func() bool { return l.attachmentState(a) == core.VolumeAttachmentLifecycleStateDetached })
	if got := sizeOf(t, name); got != 0 {
		t.Errorf("%s has %d bytes after the detach", name, got)
	}
	if left() != 1 {
		t.Errorf("%d things are left, want the volume's file", left())
	}
	if _, err := l.storage.DeleteVolume(t.Context(), core.DeleteVolumeRequest{VolumeId: &volume}); err != nil {
		t.Fatal(err)
	}
	l.await("end of the file", func() bool { return l.volumeState(volume) == core.VolumeLifecycleStateTerminated && left() == 0 })

	l.instance = l.addInstance("node-2")
	l.attach(l.instance, l.volume(), "/dev/oracleoci/oraclevdb", false)
	l.region.Reset()
	if left() != 0 {
		t.Errorf("%d things are left after a reset", left())
	}
	l.compartment = l.region.AddCompartment(ocisim.Compartment{Name: "cluster"})
	l.instance = l.addInstance("node-3")
	volume = l.volume()
	l.attach(l.instance, volume, "/dev/oracleoci/oraclevdb", false)
	name, _ = body.Device(volume)
	if err := l.region.Close(); err != nil {
		t.Fatal(err)
	}
	if left() != 0 {
		t.Errorf("%d things are left after the close", left())
	}
	if got := sizeOf(t, name); got != 0 {
		t.Errorf("%s has %d bytes after the close", name, got)
	}
}
func usedBytes(t *testing.T, dir string) int64 {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil {
		t.Fatal(err)
	}
	var used int64
	for _, file := range files {
		info, err := os.Stat(file)
		if err != nil {
			t.Fatal(err)
		}
		stat, ok := info.Sys().(*syscall.Stat_t)
		if !ok {
			t.Fatal("no block counts")
		}
		used += stat.Blocks * 512
	}
	return used
}
