// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package host

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// lab is a host whose /dev, /sys and programs are in a directory. Disks are loop devices; iSCSI sessions are directories in the
// form of sysfs, which a small iscsiadm makes and removes; mount and mkfs are real, and all calls are written down.
type lab struct {
	*testing.T
	*Host

	dir   string
	disks []disk
}

// disk is a loop device over a file.
type disk struct {
	name, file string
}

const testIQN = "iqn.2015-12.com.oracleiaas:0123"

// needRoot leaves a test out that mounts.
func needRoot(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("mounts and makes loop devices: needs root")
	}
	if _, err := os.Stat("/dev/loop-control"); err != nil {
		t.Skip("mounts and makes loop devices: this machine has none")
	}
}

// newLab makes a host without disks, sessions and programs other than those of this machine.
func newLab(t *testing.T) *lab {
	t.Helper()
	l := &lab{T: t, dir: t.TempDir()}
	for _, dir := range []string{"bin", "dev/oracleoci", "dev/disk/by-path", "sys/class/block", "sys/class/iscsi_session", "sys/dev/block", "udev/data", "targets", "records", "state"} {
		l.must(os.MkdirAll(l.at(dir), 0o755))
	}
	l.write("unix", "Num RefCount Protocol\n0: 2 0 00010000 0001 01 3 "+daemonSocket+"\n")
	l.program("iscsiadm", fakeISCSIAdm)
	l.program("udevadm", "exit 0")
	for _, name := range []string{"mkfs.ext4", "mkfs.ext3", "mount", "umount", "blkid", "fsck", "resize2fs"} {
		if path, err := exec.LookPath(name); err == nil {
			l.program(name, fmt.Sprintf("exec %s \"$@\"", path))
		}
	}
	l.restart()
	t.Cleanup(l.cleanUp)
	return l
}

// labHost is the host in the directory of a lab. Directories of the kubelet are where they are.
func labHost(dir string) (*Host, error) {
	return New(Options{Paths: Paths{
		Dev: dir + "/dev", Sys: dir + "/sys", Udev: dir + "/udev", MountInfo: "/proc/self/mountinfo", UnixSockets: dir + "/unix",
		Programs: []string{dir + "/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"},
	}, StateDir: dir + "/state", AgentWait: 50 * time.Millisecond})
}

// restart is a new process on the same host.
func (l *lab) restart() {
	l.Helper()
	h, err := labHost(l.dir)
	l.must(err)
	l.Host = h
}

func (l *lab) cleanUp() {
	for range 64 { // what is mounted below, from the last one on
		mounts, err := l.mountTable()
		l.must(err)
		last := ""
		for _, m := range mounts {
			if strings.HasPrefix(m.path, l.dir) {
				last = m.path
			}
		}
		if last == "" {
			break
		}
		if err := unix.Unmount(last, unix.MNT_DETACH); err != nil {
			l.Errorf("unmount %s: %v", last, err)
			break
		}
	}
	for _, d := range l.disks {
		if out, err := exec.Command("losetup", "-d", "/dev/"+d.name).CombinedOutput(); err != nil {
			l.Errorf("losetup -d: %v %s", err, out)
		}
	}
}

func (l *lab) at(elem ...string) string { return filepath.Join(append([]string{l.dir}, elem...)...) }

func (l *lab) must(err error) {
	l.Helper()
	if err != nil {
		l.Fatal(err)
	}
}

func (l *lab) write(path, text string) {
	l.Helper()
	l.must(os.MkdirAll(filepath.Dir(l.at(path)), 0o755))
	l.must(os.WriteFile(l.at(path), []byte(text), 0o644))
}

func (l *lab) link(target, path string) {
	l.Helper()
	l.must(os.MkdirAll(filepath.Dir(l.at(path)), 0o755))
	if err := os.Remove(l.at(path)); err != nil && !errors.Is(err, os.ErrNotExist) {
		l.Fatal(err)
	}
	l.must(os.Symlink(target, l.at(path)))
}

// program puts a program into the host, which writes down how it is called. LAB is the lab's directory. The process that has
// called it is killed when the number of calls reaches that in the file "kill", after the program has done its work.
func (l *lab) program(name, body string) {
	l.Helper()
	path := l.at("bin", name)
	l.must(os.WriteFile(path+".body", []byte("#!/bin/sh\nLAB="+l.dir+"\n"+body+"\n"), 0o755))
	l.must(os.WriteFile(path, []byte(`#!/bin/sh
LAB=`+l.dir+`
echo "`+name+` $*" >>$LAB/calls
`+path+`.body "$@"
status=$?
if [ -e $LAB/kill ] && [ "$(wc -l <$LAB/calls)" -eq "$(cat $LAB/kill)" ]; then kill -9 $PPID; fi
exit $status
`), 0o755))
}

// fakeISCSIAdm keeps records in $LAB/records, and makes sessions of those prepared in $LAB/targets. A file fail-ACTION has an exit
// status in its place.
const fakeISCSIAdm = `
action= iqn=
while [ $# -gt 0 ]; do
	case $1 in
	-T) iqn=$2; shift ;;
	-p) portal=$2; shift ;;
	-o) action=$2; shift ;;
	-l) action=login ;;
	-u) action=logout ;;
	-r) sid=$2; shift ;;
	esac
	shift
done
if [ -e "$LAB/fail-$action" ]; then echo "told to fail" >&2; exit "$(cat "$LAB/fail-$action")"; fi
if [ -n "$iqn" ]; then key=$iqn-$portal; else key=$(grep -l "^session$sid\$" "$LAB"/targets/* | head -1); key=${key##*/}; fi
class=$LAB/sys/class/iscsi_session
case $action in
new) : >"$LAB/records/$key" ;;
update) [ -e "$LAB/records/$key" ] || exit 21 ;;
delete) [ -e "$LAB/records/$key" ] || exit 21; rm "$LAB/records/$key" ;;
login)
	[ -e "$LAB/records/$key" ] || exit 21
	[ -e "$LAB/targets/$key" ] || { echo "cannot connect" >&2; exit 8; }
	s=$(cat "$LAB/targets/$key")
	[ ! -e "$class/$s" ] || exit 15
	ln -s "../../devices/platform/host2/$s/iscsi_session/$s" "$class/$s" ;;
logout)
	[ -z "$iqn" ] || [ -e "$LAB/records/$key" ] || exit 21
	s=$(cat "$LAB/targets/$key")
	[ -e "$class/$s" ] || exit 21
	[ -e "$LAB/deaf" ] || rm "$class/$s" ;;
esac
exit 0
`

// disk adds a loop device of some MiB, which sysfs shows.
func (l *lab) disk(megabytes int64) disk {
	l.Helper()
	needRoot(l.T)
	d := disk{file: l.at(fmt.Sprintf("disk-%d", len(l.disks)))}
	l.must(os.WriteFile(d.file, nil, 0o600))
	l.must(os.Truncate(d.file, megabytes*mib))
	out, err := exec.Command("losetup", "-f", "--show", d.file).CombinedOutput()
	if err != nil {
		l.Fatalf("losetup: %v %s", err, out)
	}
	d.name = filepath.Base(strings.TrimSpace(string(out)))
	l.disks = append(l.disks, d)
	n, err := blockNumber("/dev/" + d.name)
	l.must(err)
	l.must(unix.Mknod(l.at("dev", d.name), unix.S_IFBLK|0o600, int(unix.Mkdev(n.Major, n.Minor))))
	l.block(d.name, n, megabytes*mib)
	return d
}

// block lets sysfs show a device.
func (l *lab) block(name string, n Number, size int64) {
	l.Helper()
	dir := filepath.Join("sys", "class", "block", name)
	l.write(filepath.Join(dir, "dev"), n.String()+"\n")
	l.write(filepath.Join(dir, "size"), fmt.Sprintf("%d\n", size/sectorSize))
	for _, sub := range []string{"holders", "slaves"} {
		l.must(os.MkdirAll(l.at(dir, sub), 0o755))
	}
	l.link("../../class/block/"+name, filepath.Join("sys", "dev", "block", n.String()))
}

// target prepares an iSCSI target whose session has disks, at the LUNs 1, 2, …
func (l *lab) target(t Target, disks ...disk) {
	l.Helper()
	n := len(names(l.at("targets"))) + 1
	s := fmt.Sprintf("session%d", n)
	dir := "sys/devices/platform/host2/" + s
	l.write(dir+"/iscsi_session/"+s+"/targetname", t.IQN+"\n")
	l.write(dir+"/iscsi_session/"+s+"/state", loggedIn+"\n")
	l.link("../..", dir+"/iscsi_session/"+s+"/device")
	connection := fmt.Sprintf("%s/connection%d:0/iscsi_connection/connection%d:0/", dir, n, n)
	l.write(connection+"persistent_address", t.Portal.Addr().String()+"\n")
	l.write(connection+"persistent_port", fmt.Sprintf("%d\n", t.Portal.Port()))
	for i, d := range disks {
		l.must(os.MkdirAll(l.at(dir, fmt.Sprintf("target2:0:%d/2:0:%d:%d/block/%s", n, n, i+1, d.name)), 0o755))
	}
	l.write("targets/"+t.IQN+"-"+t.Portal.String(), s+"\n")
}

// sessionCount says how many sessions there are.
func (l *lab) sessionCount() int { return len(names(l.at("sys/class/iscsi_session"))) }

// calls are the programs that ran so far, those of this name only, if there is one.
func (l *lab) calls(name string) []string {
	text, err := os.ReadFile(l.at("calls"))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		l.Fatal(err)
	}
	var list []string
	for line := range strings.Lines(string(text)) {
		if line = strings.TrimSpace(line); strings.HasPrefix(line, name) {
			list = append(list, line)
		}
	}
	return list
}

// portal is one of the cloud's addresses.
func portal(last byte) netip.AddrPort {
	return netip.AddrPortFrom(netip.AddrFrom4([4]byte{169, 254, 2, last}), 3260)
}

// iscsi is a request to stage a volume of one target as ext4.
func (l *lab) iscsi() StageRequest {
	return StageRequest{
		Volume: "ocid1.volume.oc1..a", Staging: l.at("kubelet/staging"),
		Attachment: Attachment{Type: ISCSI, Targets: []Target{{IQN: testIQN, Portal: portal(2), LUN: -1}}},
		Filesystem: &Filesystem{Type: Ext4, Format: FormatIfBlank},
	}
}

// paravirtualized is a request to stage a disk by its consistent device path.
func (l *lab) paravirtualized(d disk, size int64) StageRequest {
	l.link("../"+d.name, "dev/oracleoci/oraclevdb")
	r := l.iscsi()
	r.Attachment = Attachment{Type: Paravirtualized, Device: "/dev/oracleoci/oraclevdb", Size: size}
	return r
}

// within is a context that ends soon.
func (l *lab) within(d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(l.Context(), d)
	l.Cleanup(cancel)
	return ctx
}

// wants fails the test if an error is not of a kind.
func (l *lab) wants(err, kind error) {
	l.Helper()
	if !errors.Is(err, kind) {
		l.Fatalf("error %v, want one that is %v", err, kind)
	}
}

// mountedAt says what is mounted at a path: the name of its source, or nothing.
func (l *lab) mountedAt(path string) string {
	l.Helper()
	mounts, err := l.mountTable()
	l.must(err)
	m, _ := mounts.at(path)
	return m.source
}

// sum is the checksum of what a disk has.
func (l *lab) sum(d disk) [sha256.Size]byte {
	l.Helper()
	if out, err := exec.Command("blockdev", "--flushbufs", "/dev/"+d.name).CombinedOutput(); err != nil {
		l.Logf("flush: %v %s", err, out)
	}
	text, err := os.ReadFile(d.file)
	l.must(err)
	return sha256.Sum256(text)
}

// put writes into the file of a disk before anybody reads the disk.
func (l *lab) put(d disk, at int64, text string) {
	l.Helper()
	f, err := os.OpenFile(d.file, os.O_RDWR, 0)
	l.must(err)
	defer f.Close()
	if at < 0 {
		info, err := f.Stat()
		l.must(err)
		at += info.Size()
	}
	_, err = f.WriteAt([]byte(text), at)
	l.must(err)
}
