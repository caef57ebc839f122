// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package block_test

import (
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	spec "github.com/container-storage-interface/spec/lib/go/csi"
	"golang.org/x/sys/unix"

	"github.com/oracle/oci-cloud-controller-manager/pkg/host"
)

const (
	mib      = int64(1) << 20
	diskSize = 32 * mib
)

// nodeLab is a node service over a real host: loop devices for paravirtualized disks, real mounts, and programs whose calls are
// written down.
type nodeLab struct {
	*testing.T
	spec.NodeClient

	dir   string
	disks int
}

// newNodeLab serves a node. Programs are those of this machine, but for those that are missing; iscsiadm is one of them, always.
func newNodeLab(t *testing.T, missing ...string) *nodeLab {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("mounts and makes loop devices: needs root")
	}
	if _, err := os.Stat("/dev/loop-control"); err != nil {
		t.Skip("mounts and makes loop devices: this machine has none")
	}
	l := &nodeLab{T: t, dir: t.TempDir()}
	for _, dir := range []string{"bin", "dev/oracleoci", "udev/data", "state"} {
		l.must(os.MkdirAll(l.at(dir), 0o755))
	}
	l.must(os.WriteFile(l.at("unix"), nil, 0o600))
	for _, name := range []string{"mount", "umount", "blkid", "mkfs.ext4", "mkfs.ext3", "fsck", "fsck.ext4", "resize2fs"} {
		if path, err := exec.LookPath(name); err == nil && !slices.Contains(missing, name) {
			l.program(name, fmt.Sprintf("exec %s \"$@\"", path))
		}
	}
	l.program("udevadm", "exit 0")
	t.Cleanup(l.cleanUp)
	l.restart()
	return l
}

// restart is a new process on the same machine.
func (l *nodeLab) restart() {
	l.Helper()
	h, err := host.New(host.Options{Paths: host.Paths{
		Dev: l.at("dev"), Sys: "/sys", Udev: l.at("udev"), MountInfo: "/proc/self/mountinfo", UnixSockets: l.at("unix"),
		Programs: []string{l.at("bin")},
	}, StateDir: l.at("state")})
	l.must(err)
	l.NodeClient = serveNode(l.T, nodeOptions(h))
}

func (l *nodeLab) at(elem ...string) string {
	return filepath.Join(append([]string{l.dir}, elem...)...)
}

func (l *nodeLab) must(err error) {
	l.Helper()
	if err != nil {
		l.Fatal(err)
	}
}

func (l *nodeLab) program(name, body string) {
	l.Helper()
	text := fmt.Sprintf("#!/bin/sh\necho \"%s $*\" >>%s\n%s\n", name, l.at("calls"), body)
	l.must(os.WriteFile(l.at("bin", name), []byte(text), 0o755))
}

// cleanUp unmounts what is mounted below the lab, from the last one on.
func (l *nodeLab) cleanUp() {
	for range 64 {
		list := l.mounts(l.dir)
		if len(list) == 0 {
			return
		}
		if err := unix.Unmount(list[len(list)-1], unix.MNT_DETACH); err != nil {
			l.Errorf("unmount: %v", err)
			return
		}
	}
}

// mounts are the paths below a directory at which something is mounted, in the order of mounting.
func (l *nodeLab) mounts(dir string) []string {
	l.Helper()
	text, err := os.ReadFile("/proc/self/mountinfo")
	l.must(err)
	var list []string
	for line := range strings.Lines(string(text)) {
		path := strings.ReplaceAll(strings.Fields(line)[4], `\040`, " ")
		if path == dir || strings.HasPrefix(path, dir+"/") {
			list = append(list, path)
		}
	}
	return list
}

// calls are the programs that ran so far, those whose call begins so.
func (l *nodeLab) calls(prefix string) []string {
	l.Helper()
	text, err := os.ReadFile(l.at("calls"))
	if err != nil && !os.IsNotExist(err) {
		l.Fatal(err)
	}
	var list []string
	for line := range strings.Lines(string(text)) {
		if line = strings.TrimSpace(line); strings.HasPrefix(line, prefix) {
			list = append(list, line)
		}
	}
	return list
}

// loopDisk is a disk of the machine.
type loopDisk struct{ name, file string }

// disk makes a disk that the machine has, without a consistent device path.
func (l *nodeLab) disk(size int64) loopDisk {
	l.Helper()
	l.disks++
	d := loopDisk{file: l.at(fmt.Sprintf("disk-%d", l.disks))}
	l.must(os.WriteFile(d.file, nil, 0o600))
	l.must(os.Truncate(d.file, size))
	out, err := exec.Command("losetup", "-f", "--show", d.file).CombinedOutput()
	if err != nil {
		l.Fatalf("losetup: %v %s", err, out)
	}
	d.name = filepath.Base(strings.TrimSpace(string(out)))
	l.Cleanup(func() {
		l.cleanUp()
		if out, err := exec.Command("losetup", "-d", "/dev/"+d.name).CombinedOutput(); err != nil {
			l.Errorf("losetup -d: %v %s", err, out)
		}
	})
	var st unix.Stat_t
	l.must(unix.Stat("/dev/"+d.name, &st))
	l.must(unix.Mknod(l.at("dev", d.name), unix.S_IFBLK|0o600, int(st.Rdev)))
	return d
}

// appear is the disk's consistent device path.
func (l *nodeLab) appear(d loopDisk, letter string) {
	l.Helper()
	l.must(os.Symlink("../"+d.name, l.at("dev/oracleoci/oraclevd"+letter)))
}

// sum is the checksum of what a disk has.
func (l *nodeLab) sum(d loopDisk) [sha256.Size]byte {
	l.Helper()
	if out, err := exec.Command("blockdev", "--flushbufs", "/dev/"+d.name).CombinedOutput(); err != nil {
		l.Logf("flush: %v %s", err, out)
	}
	text, err := os.ReadFile(d.file)
	l.must(err)
	return sha256.Sum256(text)
}

// put writes into the file of a disk.
func (l *nodeLab) put(d loopDisk, at int64, text string) {
	l.Helper()
	f, err := os.OpenFile(d.file, os.O_RDWR, 0)
	l.must(err)
	defer f.Close()
	_, err = f.WriteAt([]byte(text), at)
	l.must(err)
}

// pod is a volume as the kubelet handles it.
type pod struct {
	volume, staging, target string
	publish, context        map[string]string
	capability              *spec.VolumeCapability
}

// pod is one whose volume is the disk oraclevdb.
func (l *nodeLab) pod(changes ...func(*spec.VolumeCapability)) *pod {
	return &pod{
		volume: nodeVolume, staging: l.at("kubelet/plugins/globalmount"), target: l.at("kubelet/pods/a b/mount"),
		publish: oldParavirtualized("size", fmt.Sprint(diskSize)), capability: capability(changes...),
	}
}

func (l *nodeLab) stage(p *pod, limit time.Duration) error {
	_, err := l.NodeStageVolume(during(l.T, limit), &spec.NodeStageVolumeRequest{
		VolumeId: p.volume, StagingTargetPath: p.staging, PublishContext: p.publish, VolumeContext: p.context, VolumeCapability: p.capability,
	})
	return err
}

func (l *nodeLab) publish(p *pod) error {
	_, err := l.NodePublishVolume(during(l.T, 10*time.Second), &spec.NodePublishVolumeRequest{
		VolumeId: p.volume, StagingTargetPath: p.staging, TargetPath: p.target, PublishContext: p.publish, VolumeContext: p.context, VolumeCapability: p.capability,
	})
	return err
}

func (l *nodeLab) unpublish(p *pod) error {
	_, err := l.NodeUnpublishVolume(during(l.T, 10*time.Second), &spec.NodeUnpublishVolumeRequest{VolumeId: p.volume, TargetPath: p.target})
	return err
}

func (l *nodeLab) unstage(p *pod) error {
	_, err := l.NodeUnstageVolume(during(l.T, 10*time.Second), &spec.NodeUnstageVolumeRequest{VolumeId: p.volume, StagingTargetPath: p.staging})
	return err
}

func (l *nodeLab) stats(p *pod, path string) (*spec.NodeGetVolumeStatsResponse, error) {
	return l.NodeGetVolumeStats(during(l.T, 10*time.Second), &spec.NodeGetVolumeStatsRequest{VolumeId: p.volume, VolumePath: path})
}

// number is the number of a device as udev writes it.
func number(rdev uint64) string { return fmt.Sprintf("%d:%d", unix.Major(rdev), unix.Minor(rdev)) }
