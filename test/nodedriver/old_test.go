// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package nodedriver_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/oracle/oci-cloud-controller-manager/test/nodedriver"
)

// oldDriver does on a node what release v1.35 does, command by command, as contract storage.md §4.4 to §4.7 has it written down.
type oldDriver struct {
	*testing.T

	driver *nodedriver.Driver // for its mount namespace
}

func (o oldDriver) run(argv ...string) string {
	o.Helper()
	out, err := o.driver.Run(argv...)
	must(o.T, err)
	return out
}

// device logs in, if that is needed, and finds the device of a volume.
func (o oldDriver) device(v nodedriver.Volume) string {
	o.Helper()
	c := v.Publish
	if c["attachment-type"] != "iscsi" {
		return c["device"]
	}
	iqn, portal := c["iscci_iqn"], c["iscsi_ip"]+":"+c["iscsi_port"]
	o.run("iscsiadm", "-m", "node", "-o", "new", "-T", iqn, "-p", portal)
	o.run("iscsiadm", "-m", "node", "-o", "update", "-T", iqn, "-n", "node.startup", "-v", "automatic")
	o.run("iscsiadm", "-m", "node", "-T", iqn, "-p", portal, "-l")
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		if found, _ := filepath.Glob("/dev/disk/by-path/ip-" + portal + "-iscsi-" + iqn + "-lun-*"); len(found) == 1 { // the pattern is right
			return found[0]
		}
	}
	o.Fatal("no link in /dev/disk/by-path")
	return ""
}

// stage is NodeStageVolume and NodePublishVolume of an empty volume.
func (o oldDriver) stage(v nodedriver.Volume) {
	o.Helper()
	device := o.device(v)
	staged, target := v.Staging, v.Target
	must(o.T, os.MkdirAll(v.Staging, 0o750))
	if v.FSType == "" {
		staged = filepath.Join(v.Staging, "mountfile")
		must(o.T, os.WriteFile(staged, nil, 0o640))
		must(o.T, os.MkdirAll(filepath.Dir(target), 0o750))
		must(o.T, os.WriteFile(target, nil, 0o640))
		o.run("mount", "-o", "bind", device, staged)
	} else {
		must(o.T, os.MkdirAll(target, 0o750))
		o.run("mkfs."+v.FSType, "-F", "-m0", device)
		o.run("mount", "-t", v.FSType, "-o", "defaults", device, staged)
	}
	o.run("mount", "-o", "bind", staged, target)
}

// byPath is the form of the links of iSCSI disks.
var byPath = regexp.MustCompile(`^ip-([^-]+:\d+)-iscsi-(.+)-lun-\d+$`)

// linksTo takes the names of the by-path links to a device apart. links are all there are.
func (o oldDriver) linksTo(device string) (found [][]string, links []string) {
	o.Helper()
	links, err := filepath.Glob("/dev/disk/by-path/*")
	must(o.T, err)
	for _, link := range links {
		if to, err := filepath.EvalSymlinks(link); err == nil && to == device {
			found = append(found, byPath.FindStringSubmatch(filepath.Base(link)))
		}
	}
	return found, links
}

// unstage is NodeUnpublishVolume and NodeUnstageVolume: all that is known of the attachment is what is mounted.
func (o oldDriver) unstage(v nodedriver.Volume) {
	o.Helper()
	staged := v.Staging
	if v.FSType == "" {
		staged = filepath.Join(v.Staging, "mountfile")
	}
	device := o.run("findmnt", "-n", "-o", "SOURCE", "-T", staged)
	if _, inside, is := strings.Cut(device, "["); is {
		device = "/dev" + strings.TrimSuffix(inside, "]")
	}
	o.run("umount", v.Target)
	must(o.T, os.Remove(o.driver.Path(v.Target)))
	found, links := o.linksTo(device)
	// udev may make the link only now: the driver under test does not wait for it.
	for deadline := time.Now().Add(time.Minute); len(found) == 0 && v.Publish["attachment-type"] == "iscsi" && time.Now().Before(deadline); {
		time.Sleep(200 * time.Millisecond)
		found, links = o.linksTo(device)
	}
	o.run("umount", staged)
	if v.FSType == "" {
		must(o.T, os.Remove(o.driver.Path(staged)))
	}
	if v.Publish["attachment-type"] != "iscsi" {
		return
	}
	if len(found) != 1 || found[0] == nil {
		o.Fatalf("links to %s: %v, of %v", device, found, links)
	}
	portal, iqn := found[0][1], found[0][2]
	o.run("iscsiadm", "-m", "node", "-T", iqn, "-p", portal, "-u")
	o.run("iscsiadm", "-m", "node", "-o", "delete", "-T", iqn, "-p", portal)
}

// upAndBack upgrades a node whose volume is staged, then rolls it back with the volume staged anew, and upgrades it again.
func upAndBack(t *testing.T, d *nodedriver.Driver, v nodedriver.Volume, nothingLeft func()) {
	t.Helper()
	old := oldDriver{T: t, driver: d}
	file := d.Path(filepath.Join(v.Target, "data"))
	kept := func(when string) {
		t.Helper()
		if text, err := os.ReadFile(file); v.FSType != "" && (err != nil || string(text) != "old") {
			t.Errorf("%s: the pod's file has %q: %v", when, text, err)
		}
	}
	calls := func(list ...func() (int, error)) {
		t.Helper()
		for i, call := range list {
			if _, err := call(); err != nil {
				t.Fatalf("call %d: %v", i, err)
			}
		}
	}
	stage := func() (int, error) { return d.Stage(soon(t), v) }
	publish := func() (int, error) { return d.Publish(soon(t), v) }
	unpublish := func() (int, error) { return d.Unpublish(soon(t), v) }
	unstage := func() (int, error) { return d.Unstage(soon(t), v) }

	old.stage(v)
	if v.FSType != "" {
		must(t, os.WriteFile(file, []byte("old"), 0o600))
	}
	must(t, d.KillAt(0))
	size := v.Publish["size"]
	delete(v.Publish, "size") // which the old controller does not say
	calls(stage, publish)     // the kubelet does not remember
	kept("upgraded")
	calls(unpublish, unstage)
	nothingLeft()

	v.Publish["size"] = size
	calls(stage, publish)
	kept("staged anew")
	d.Kill()
	old.unstage(v)
	calls(stage, unstage) // which find what is remembered of a volume that is not there
	nothingLeft()
	formatted(t, d, 0)
}

// TestUpgradeAndRollBackOfTheNode: what the one driver has staged, the other one takes down, on loop devices.
func TestUpgradeAndRollBackOfTheNode(t *testing.T) {
	for _, fsType := range []string{"ext4", ""} {
		t.Run("type "+fsType, func(t *testing.T) {
			d, k := newDriver(t), newDisk(t, 32*mib)
			v := k.Volume("ocid1.volume.oc1..upgraded", fsType, t.TempDir())
			upAndBack(t, d, v, func() { nothingLeft(t, d, v) })
		})
	}
}

// TestVMUpgradeAndRollBackOfTheNode: the same with iSCSI sessions and records of targets.
func TestVMUpgradeAndRollBackOfTheNode(t *testing.T) {
	for _, fsType := range []string{"ext4", ""} {
		t.Run("type "+fsType, func(t *testing.T) {
			g := newGuest(t)
			id, v := g.iscsi(g.Volume(10), fsType, false)
			upAndBack(t, g.driver, v, func() { g.nothingLeft(t, v) })
			g.Detach(id)
		})
	}
}
