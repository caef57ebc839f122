// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package nodedriver_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/oracle/oci-cloud-controller-manager/test/nodedriver"
)

const (
	firstDevice  = "/dev/oracleoci/oraclevdb"
	secondDevice = "/dev/oracleoci/oraclevdc"
)

// checksum is that of a volume: of the parts of its sparse file that are not zero, and where they are.
func (g *guest) checksum(volume string) [sha256.Size]byte {
	g.Helper()
	g.Command("sync")
	f, err := os.Open(g.File(volume))
	g.Must(err)
	defer f.Close()
	sum, block := sha256.New(), make([]byte, 4096)
	for at := int64(0); ; {
		at, err = f.Seek(at, unix.SEEK_DATA)
		if errors.Is(err, unix.ENXIO) {
			break
		}
		g.Must(err)
		end, err := f.Seek(at, unix.SEEK_HOLE)
		g.Must(err)
		for ; at < end; at += int64(len(block)) {
			n, err := f.ReadAt(block, at)
			if err != nil && !errors.Is(err, io.EOF) {
				g.Fatal(err)
			}
			if len(bytes.Trim(block[:n], "\x00")) > 0 {
				g.Must(binary.Write(sum, binary.BigEndian, at))
				sum.Write(block[:n])
			}
		}
	}
	return [sha256.Size]byte(sum.Sum(nil))
}

// put writes onto a device.
func (g *guest) put(device string, at int64, text string) {
	g.Helper()
	f, err := os.OpenFile(device, os.O_WRONLY, 0)
	g.Must(err)
	_, err = f.WriteAt([]byte(text), at)
	g.Must(errors.Join(err, f.Sync(), f.Close()))
	g.Command("blockdev", "--flushbufs", device)
}

// mapped makes a device of the device mapper, and returns what removes it.
func (g *guest) mapped(name, uuid, table string) (remove func()) {
	g.Helper()
	cmd := exec.Command("dmsetup", "create", name, "--uuid", uuid)
	cmd.Stdin = strings.NewReader(table + "\n")
	if out, err := cmd.CombinedOutput(); err != nil {
		g.Fatalf("dmsetup: %v %s", err, out)
	}
	g.Command("udevadm", "settle")
	return func() { g.Command("dmsetup", "remove", "--retry", name) }
}

// refuses lets the driver stage a volume, which it must not: no mkfs, no mount, and volumes are as they were.
func (g *guest) refuses(t *testing.T, v nodedriver.Volume, limit time.Duration, says string, volumes ...string) {
	t.Helper()
	before := map[string][sha256.Size]byte{}
	for _, id := range volumes {
		before[id] = g.checksum(id)
	}
	g.Must(g.driver.KillAt(0))
	_, err := g.driver.Node(g.Soon()) // its start is not what takes long
	g.Must(err)
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	logged := len(g.driver.Log())
	_, err = g.driver.Stage(ctx, v)
	cancel()
	// One whose time was up may still be undoing.
	if _, err := g.driver.Unstage(g.Soon(), v); err != nil {
		t.Errorf("unstage: %v", err)
	}
	if log := g.driver.Log()[logged:]; err == nil || !strings.Contains(err.Error()+log, says) {
		t.Errorf("error %v, want one that says %q; the log:\n%s", err, says, log)
	}
	for _, name := range []string{"mkfs", "mount", "fsck"} {
		if calls, err := g.driver.Calls(name); err != nil || len(calls) > 0 {
			t.Errorf("ran %q: %v", calls, err)
		}
	}
	for _, id := range volumes {
		if g.checksum(id) != before[id] {
			t.Errorf("volume %s has changed", id)
		}
	}
	nothingLeft(t, g.driver, v)
}

// TestVMNothingIsWritten: C098, on the device mapper: sectors that cannot be read, disks that are part of something, signs of what others have
// put there; and disks whose size is not the volume's. The count of mkfs and a checksum of the volume prove it.
func TestVMNothingIsWritten(t *testing.T) {
	g := newGuest(t)
	volume := g.Volume(10)
	id, v := g.paravirtualized(volume, "ext4", firstDevice)
	g.Await("disk", func() bool { _, err := os.Stat(firstDevice); return err == nil })
	sectors := 50 * gib / 512
	whole := fmt.Sprintf("0 %d linear %s 0", sectors, firstDevice)
	over := v
	over.Publish = map[string]string{"attachment-type": "paravirtualized", "device": "/dev/mapper/bad", "size": fmt.Sprint(50 * gib)}
	sized := func(size int64) nodedriver.Volume {
		other := v
		other.Publish = map[string]string{"attachment-type": "paravirtualized", "device": firstDevice, "size": fmt.Sprint(size)}
		return other
	}
	mbr := "\x80\x01\x01\x00\x83\xfe\xff\xff\x00\x08\x00\x00\x00\x10\x00\x00" + strings.Repeat("\x00", 48) + "\x55\xaa"
	for _, c := range []struct {
		name  string
		uuid  string
		table string // of a map over the disk
		at    int64
		put   string // on the disk; zero afterwards
		stage nodedriver.Volume
		limit time.Duration
		says  string
	}{
		{name: "first sector", table: fmt.Sprintf("0 8 error\n8 %d linear %s 8", sectors-8, firstDevice), stage: over, says: "input/output error"},
		{name: "last sector", table: fmt.Sprintf("0 %d linear %s 0\n%d 8 error", sectors-8, firstDevice, sectors-8), stage: over, says: "input/output error"},
		{name: "all sectors", table: fmt.Sprintf("0 %d error", sectors), stage: over, says: "input/output error"},
		{name: "part of a map", uuid: "test", table: whole, stage: v, says: "/dev/mapper/bad"},
		{name: "logical volume", uuid: "LVM-a", table: whole, stage: v, says: "/dev/mapper/bad"},
		{name: "open LUKS device", uuid: "CRYPT-LUKS2-a", table: whole, stage: v, says: "/dev/mapper/bad"},
		{name: "LVM label", at: 512, put: "LABELONE\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x20\x00\x00\x00LVM2 001", stage: v, says: "LVM"},
		{name: "LUKS header", put: "LUKS\xba\xbe\x00\x02", stage: v, says: "LUKS"},
		{name: "partition table", at: 446, put: mbr, stage: v, says: "partition"},
		{name: "last byte", at: 50*gib - 1, put: "x", stage: v, says: "unknown"},
		{name: "larger than the volume", stage: sized(49 * gib), says: "bytes"},
		{name: "smaller than the volume", stage: sized(51 * gib), limit: 3 * time.Second, says: "and the volume has"},
	} {
		t.Run(c.name, func(t *testing.T) {
			reread := func() {
				if c.name == "partition table" {
					g.Command("blockdev", "--rereadpt", firstDevice)
				}
			}
			if c.put != "" {
				defer reread()
				g.put(firstDevice, c.at, c.put)
				defer g.put(firstDevice, c.at, strings.Repeat("\x00", len(c.put)))
				reread()
			}
			if c.table != "" {
				defer g.mapped("bad", c.uuid, c.table)()
			}
			if c.limit == 0 {
				c.limit = time.Minute
			}
			g.refuses(t, c.stage, c.limit, c.says, volume)
		})
	}
	g.Detach(id)
}

// swap lets two links lead to each other's device.
func (g *guest) swap(one, other string) {
	g.Helper()
	to, err := os.Readlink(one)
	g.Must(err)
	toOther, err := os.Readlink(other)
	g.Must(err)
	g.link(toOther, one)
	g.link(to, other)
}

func (g *guest) link(to, at string) {
	g.Helper()
	g.Must(os.MkdirAll(filepath.Dir(at), 0o755))
	g.Must(errors.Join(os.Symlink(to, at+".new"), os.Rename(at+".new", at)))
}

// TestVMTheWrongDisk: C097. Links that lead to another volume's disk are not believed: while udev does nothing, nobody gets a disk, and none
// is written to; as soon as udev can put them right, each gets its own.
func TestVMTheWrongDisk(t *testing.T) {
	g := newGuest(t)
	volumes := []string{g.Volume(10), g.Volume(10), g.Volume(10)}
	var ids []string
	var staged []nodedriver.Volume
	for i, device := range []string{firstDevice, secondDevice} {
		id, v := g.paravirtualized(volumes[i], "ext4", device)
		ids, staged = append(ids, id), append(staged, v)
	}
	g.Await("disks", func() bool { return g.Asks("test", "-b", firstDevice, "-a", "-b", secondDevice) })
	g.Command("udevadm", "settle")
	id, third := g.iscsi(volumes[2], "ext4", false)
	ids = append(ids, id)

	t.Run("swapped", func(t *testing.T) {
		g.Command("udevadm", "control", "--stop-exec-queue")
		defer g.Command("udevadm", "control", "--start-exec-queue")
		g.swap(firstDevice, secondDevice)
		for _, v := range staged {
			g.refuses(t, v, 3*time.Second, "which udev knows as", volumes...)
		}
	})
	t.Run("iSCSI link to another disk", func(t *testing.T) {
		oldDriver{T: t, driver: g.driver}.device(third) // a session that is there, and its links, too
		g.Command("udevadm", "settle")
		g.Command("udevadm", "control", "--stop-exec-queue")
		defer g.Command("udevadm", "control", "--start-exec-queue")
		c := third.Publish
		wrong := fmt.Sprintf("/dev/disk/by-path/ip-%s:%s-iscsi-%s-lun-1", c["iscsi_ip"], c["iscsi_port"], c["iscci_iqn"])
		to, err := filepath.EvalSymlinks(firstDevice)
		g.Must(err)
		g.link(to, wrong)
		defer os.Remove(wrong)
		// Without udev, a logout takes so long that the answer says that it is under way, and not why.
		g.refuses(t, third, 5*time.Second, "", volumes...)
	})
	t.Run("put right", func(t *testing.T) {
		for _, v := range staged {
			if _, err := g.driver.Stage(g.Soon(), v); err != nil {
				t.Fatal(err)
			}
			g.Must(os.WriteFile(g.driver.Path(filepath.Join(v.Staging, "name")), []byte(v.ID), 0o600))
			if _, err := g.driver.Unstage(g.Soon(), v); err != nil {
				t.Fatal(err)
			}
		}
		for i, v := range staged {
			if image, err := exec.Command("debugfs", "-R", "cat name", g.File(volumes[i])).Output(); err != nil || string(image) != v.ID {
				t.Errorf("volume %s has %q: %v", v.ID, image, err)
			}
		}
	})
	for _, id := range ids {
		g.Detach(id)
	}
}
