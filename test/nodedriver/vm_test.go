// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package nodedriver_test

import (
	"context"
	"encoding/json"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"github.com/oracle/oci-go-sdk/v65/common"
	"github.com/oracle/oci-go-sdk/v65/core"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/oracle/oci-cloud-controller-manager/test/nodedriver"
	"github.com/oracle/oci-cloud-controller-manager/test/vm"
)

const gib = int64(1) << 30

// guest is a machine with real volumes, and a node driver on it.
type guest struct {
	*vm.Guest

	driver *nodedriver.Driver
}

func newGuest(t *testing.T) *guest {
	t.Helper()
	return &guest{Guest: vm.New(t), driver: newDriver(t)}
}

// iscsi attaches a volume by iSCSI, and returns what the kubelet is told, in the form of contract storage.md §3.1.
func (g *guest) iscsi(volume, fsType string, chap bool) (id string, v nodedriver.Volume) {
	g.Helper()
	shown := g.Attach(core.AttachIScsiVolumeDetails{InstanceId: &g.Instance, VolumeId: &volume, UseChap: common.Bool(chap)})
	a, is := shown.(core.IScsiVolumeAttachment)
	if !is {
		g.Fatalf("attachment %T", shown)
	}
	c := map[string]string{
		"attachment-type": "iscsi", "iscci_iqn": *a.Iqn, "iscsi_ip": *a.Ipv4, "iscsi_port": strconv.Itoa(*a.Port),
		"vpusPerGB": "10", "multipathEnabled": "false", "multipathDevices": "",
	}
	if a.ChapUsername != nil {
		c["chapUser"], c["chapSecret"] = *a.ChapUsername, *a.ChapSecret
	}
	if len(a.MultipathDevices) > 0 {
		devices, err := json.Marshal(a.MultipathDevices)
		g.Must(err)
		c["multipathEnabled"], c["multipathDevices"], c["vpusPerGB"] = "true", string(devices), "120"
	}
	return *a.Id, g.known(volume, fsType, c)
}

// paravirtualized attaches a volume as a SCSI disk that appears at a consistent device path.
func (g *guest) paravirtualized(volume, fsType, device string) (id string, v nodedriver.Volume) {
	g.Helper()
	a := g.Attach(core.AttachParavirtualizedVolumeDetails{InstanceId: &g.Instance, VolumeId: &volume, Device: &device})
	return *a.GetId(), g.known(volume, fsType, map[string]string{"attachment-type": "paravirtualized", "device": device})
}

// known is a volume as the kubelet knows it.
func (g *guest) known(volume, fsType string, publish map[string]string) nodedriver.Volume {
	shown, _ := g.Region.Volume(volume)
	publish["size"] = strconv.FormatInt(*shown.SizeInGBs*gib, 10)
	dir := filepath.Join(g.Dir, volume[len(volume)-8:])
	return nodedriver.Volume{
		ID: volume, FSType: fsType, Publish: publish, Context: map[string]string{}, Staging: filepath.Join(dir, "staging"), Target: filepath.Join(dir, "pod"),
	}
}

// nothingLeft fails the test if there is something left of volumes, or an iSCSI session, or a record of one.
func (g *guest) nothingLeft(t *testing.T, volumes ...nodedriver.Volume) {
	t.Helper()
	nothingLeft(t, g.driver, volumes...)
	if n := g.Sessions(); n != 0 {
		t.Errorf("%d iSCSI sessions are left", n)
	}
	records, err := filepath.Glob("/etc/iscsi/nodes/*") // the pattern is right
	g.Must(err)
	if len(records) > 0 {
		t.Errorf("records of targets are left: %v", records)
	}
}

// TestVMDriver: what the driver's process answers in a guest, and that the codes of its errors are right. C109, C094.
func TestVMDriver(t *testing.T) {
	g := newGuest(t)
	d := g.driver
	volume := g.Volume(10)
	id, v := g.iscsi(volume, "xfs", true)
	var info *csi.NodeGetInfoResponse
	_, err := d.Call(g.Soon(), func(ctx context.Context, c csi.NodeClient) (err error) {
		info, err = c.NodeGetInfo(ctx, &csi.NodeGetInfoRequest{})
		return err
	})
	g.Must(err)
	if info.GetNodeId() != nodedriver.NodeName || info.GetAccessibleTopology().GetSegments()["topology.kubernetes.io/zone"] != nodedriver.Zone || info.GetMaxVolumesPerNode() <= 0 {
		t.Errorf("node %v", info)
	}
	wrong := v
	wrong.Publish = map[string]string{}
	for key, value := range v.Publish {
		wrong.Publish[key] = value
	}
	wrong.Publish["chapSecret"] = "0123456789ab"
	if _, err := d.Stage(g.Soon(), wrong); err == nil || strings.Contains(err.Error(), wrong.Publish["chapSecret"]) {
		t.Errorf("wrong credentials: %v", err)
	}
	g.nothingLeft(t, v)
	if _, err := d.Publish(g.Soon(), v); status.Code(err) != codes.FailedPrecondition {
		t.Errorf("publish before stage: %v", err)
	}
	life := nodedriver.Life{Volume: v, NewSize: 60 * gib, Grow: func() error {
		if _, err := d.Unstage(g.Soon(), v); status.Code(err) != codes.FailedPrecondition {
			t.Errorf("unstage of a volume that is published: %v", err)
		}
		g.stats(t, v, 50*gib)
		g.Resize(volume, 60)
		return nil
	}}
	if _, err := d.Live(g.Soon(), life); err != nil {
		t.Fatal(err)
	}
	g.nothingLeft(t, v)
	g.Detach(id)
	for name, call := range map[string]func(context.Context, nodedriver.Volume) (int, error){"unpublish": d.Unpublish, "unstage": d.Unstage} {
		if _, err := call(g.Soon(), v); err != nil {
			t.Errorf("%s of what has gone: %v", name, err)
		}
	}
}

// TestVMBtrfs: a file system that v1.35 does not have, on a disk that appears.
func TestVMBtrfs(t *testing.T) {
	g := newGuest(t)
	volume := g.Volume(10)
	id, v := g.paravirtualized(volume, "btrfs", firstDevice)
	life := nodedriver.Life{Volume: v, NewSize: 60 * gib, Grow: func() error {
		g.stats(t, v, 50*gib)
		g.Resize(volume, 60)
		return nil
	}}
	if _, err := g.driver.Live(g.Soon(), life); err != nil {
		t.Fatal(err)
	}
	g.nothingLeft(t, v)
	g.Detach(id)
}

// stats compares the size that the driver tells with the disk's.
func (g *guest) stats(t *testing.T, v nodedriver.Volume, size int64) {
	t.Helper()
	_, err := g.driver.Call(g.Soon(), func(ctx context.Context, c csi.NodeClient) error {
		r, err := c.NodeGetVolumeStats(ctx, &csi.NodeGetVolumeStatsRequest{VolumeId: v.ID, VolumePath: v.Target, StagingTargetPath: v.Staging})
		if err == nil && (len(r.GetUsage()) != 2 || r.GetUsage()[0].GetTotal() < size*9/10 || r.GetUsage()[0].GetTotal() > size) {
			t.Errorf("usage %v", r.GetUsage())
		}
		return err
	})
	if err != nil {
		t.Errorf("stats: %v", err)
	}
}

// TestVMKilledAfterEachCommand: C104, with real sessions, and with a multipath map: the driver dies after each command of a volume's life
// once, and in the end there is no session, no record, no mount, no map, and the volume was formatted once.
func TestVMKilledAfterEachCommand(t *testing.T) {
	for _, c := range []struct {
		name, fsType string
		vpus         int64
		deaths       int // at least
	}{{"ext4", "ext4", 10, 15}, {"multipath raw", "", 120, 5}} {
		t.Run(c.name, func(t *testing.T) {
			g := newGuest(t)
			volume := g.Volume(c.vpus)
			id, v := g.iscsi(volume, c.fsType, c.vpus == 10)
			logout := func() {}
			if c.vpus > 20 {
				multipathd(g.Guest)
				logout = g.agent(v)
			}
			g.Must(g.driver.KillEach())
			deaths, err := g.driver.Live(g.Soon(), nodedriver.Life{Volume: v, NewSize: 60 * gib, Grow: func() error {
				g.Resize(volume, 60)
				return nil
			}})
			calls, _ := g.driver.Calls("")
			if err != nil {
				t.Fatalf("%v, after %d deaths and the commands\n%s", err, deaths, strings.Join(calls, "\n"))
			}
			t.Logf("killed %d times, in %d commands", deaths, len(calls))
			if deaths < c.deaths {
				t.Errorf("it has died %d times only", deaths)
			}
			nothingLeft(t, g.driver, v)
			if c.fsType != "" {
				formatted(t, g.driver, 1)
			}
			logout()
			g.nothingLeft(t, v)
			g.Detach(id)
		})
	}
}

// agent does what the cloud's agent does on the node for multipath attachments: it logs in to all targets, and out in the end.
func (g *guest) agent(v nodedriver.Volume) (logout func()) {
	g.Helper()
	var targets []struct{ IQN, IPv4 string }
	g.Must(json.Unmarshal([]byte(v.Publish["multipathDevices"]), &targets))
	all := map[string]string{v.Publish["iscsi_ip"]: v.Publish["iscci_iqn"]}
	for _, t := range targets {
		all[t.IPv4] = t.IQN
	}
	node := func(args ...string) {
		for address, iqn := range all {
			g.Command(append([]string{"iscsiadm", "-m", "node", "-T", iqn, "-p", address + ":" + v.Publish["iscsi_port"]}, args...)...)
		}
	}
	node("-o", "new")
	node("-l")
	return func() {
		node("-u")
		node("-o", "delete")
	}
}

// multipathd runs for a test.
func multipathd(g *vm.Guest) {
	g.Command("modprobe", "-a", "dm_multipath", "dm_service_time")
	g.Command("multipathd")
	g.Cleanup(func() { g.Command("multipathd", "shutdown") })
	g.Await("multipathd", func() bool { return g.Asks("multipathd", "show", "daemon") })
}
