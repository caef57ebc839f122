// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package host_test

import (
	"errors"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/oracle/oci-go-sdk/v65/common"
	"github.com/oracle/oci-go-sdk/v65/core"

	"github.com/oracle/oci-cloud-controller-manager/pkg/host"
	"github.com/oracle/oci-cloud-controller-manager/test/vm"
)

// guest is a machine with real volumes.
type guest struct {
	*vm.Guest

	host *host.Host
}

const gib = int64(1) << 30

func newGuest(t *testing.T) *guest {
	t.Helper()
	g := &guest{Guest: vm.New(t)}
	var err error
	g.host, err = host.New(host.Options{Paths: host.HostPaths(""), StateDir: filepath.Join(g.Dir, "state"), AgentWait: 100 * time.Millisecond})
	g.Must(err)
	return g
}

// attach attaches a volume and returns the attachment and what a node is told of it.
func (g *guest) attach(details core.AttachVolumeDetails) (id string, a host.Attachment) {
	g.Helper()
	shown := g.Attach(details)
	id = *shown.GetId()
	size := 50 * gib
	if v, ok := g.Region.Volume(*shown.GetVolumeId()); ok {
		size = *v.SizeInGBs * gib
	}
	s, is := shown.(core.IScsiVolumeAttachment)
	if !is {
		return id, host.Attachment{Type: host.Paravirtualized, Device: *shown.GetDevice(), Size: size}
	}
	a = host.Attachment{Type: host.ISCSI, Size: size, Targets: []host.Target{target(*s.Iqn, *s.Ipv4, *s.Port)}}
	if s.ChapUsername != nil {
		a.CHAP = &host.CHAP{User: *s.ChapUsername, Secret: *s.ChapSecret}
	}
	for _, d := range s.MultipathDevices {
		a.Multipath = true
		a.Targets = append(a.Targets, target(*d.Iqn, *d.Ipv4, *d.Port))
	}
	return id, a
}

func target(iqn, address string, port int) host.Target {
	return host.Target{IQN: iqn, Portal: netip.AddrPortFrom(netip.MustParseAddr(address), uint16(port)), LUN: -1}
}

// request is one to stage a volume as a file system.
func (g *guest) request(volume string, a host.Attachment, kind host.Signature) host.StageRequest {
	return host.StageRequest{
		Volume: volume, Attachment: a, Staging: filepath.Join(g.Dir, "staging", volume[len(volume)-8:]),
		Filesystem: &host.Filesystem{Type: kind, Format: host.FormatIfBlank},
	}
}

// TestVMISCSI: a volume's life with a real initiator and target: login with CHAP, mkfs, mount, growth, logout, and its data on the next
// attachment.
func TestVMISCSI(t *testing.T) {
	g := newGuest(t)
	volume := g.Volume(10)
	details := core.AttachIScsiVolumeDetails{InstanceId: &g.Instance, VolumeId: &volume, UseChap: common.Bool(true)}
	id, a := g.attach(details)
	r := g.request(volume, a, host.Ext4)
	pod := host.PublishRequest{Volume: volume, Staging: r.Staging, Target: filepath.Join(g.Dir, "pod")}
	g.Must(g.host.Stage(g.Soon(), r))
	g.Must(g.host.Stage(g.Soon(), r))
	g.Must(g.host.Publish(g.Soon(), pod))
	g.Must(os.WriteFile(filepath.Join(pod.Target, "data"), []byte("precious"), 0o600))
	g.Resize(volume, 60)
	if size, err := g.host.Grow(g.Soon(), volume, pod.Target, 60*gib); err != nil || size != 60*gib {
		t.Fatalf("size %d: %v", size, err)
	}
	if u, err := g.host.Stats(g.Soon(), pod.Target); err != nil || u.Bytes.Total < 55*gib {
		t.Errorf("usage %+v: %v", u, err)
	}
	if err := g.host.Unstage(g.Soon(), volume, r.Staging); !errors.Is(err, host.ErrInUse) {
		t.Errorf("error %v", err)
	}
	g.Must(g.host.Unpublish(g.Soon(), volume, pod.Target))
	g.Must(g.host.Unstage(g.Soon(), volume, r.Staging))
	if n := g.Sessions(); n != 0 {
		t.Fatalf("%d sessions", n)
	}
	g.Detach(id)

	id, r.Attachment = g.attach(details)
	r.Filesystem.Format = host.FormatNever
	g.Must(g.host.Stage(g.Soon(), r))
	if text, err := os.ReadFile(filepath.Join(r.Staging, "data")); err != nil || string(text) != "precious" {
		t.Errorf("data %q: %v", text, err)
	}
	g.Must(g.host.Unstage(g.Soon(), volume, r.Staging))
	g.Detach(id)
	wrong := r
	id, wrong.Attachment = g.attach(details)
	wrong.Attachment.CHAP = &host.CHAP{User: "somebody", Secret: "0123456789ab"}
	if err := g.host.Stage(g.Soon(), wrong); !errors.Is(err, host.ErrCredentials) {
		t.Errorf("wrong credentials: %v", err)
	}
	g.Detach(id)
}

// TestVMHotDisks: paravirtualized disks appear at consistent paths, which are used again for other volumes.
func TestVMHotDisks(t *testing.T) {
	g := newGuest(t)
	paths := []string{"/dev/oracleoci/oraclevdb", "/dev/oracleoci/oraclevdc"}
	var volumes, ids []string
	for i := range 2 {
		volumes = append(volumes, g.Volume(10))
		id, a := g.attach(core.AttachParavirtualizedVolumeDetails{InstanceId: &g.Instance, VolumeId: &volumes[i], Device: &paths[i]})
		ids = append(ids, id)
		r := g.request(volumes[i], a, host.Ext4)
		g.Must(g.host.Stage(g.Soon(), r))
		g.Must(os.WriteFile(filepath.Join(r.Staging, "name"), []byte(volumes[i]), 0o600))
	}
	for i, v := range volumes {
		g.Must(g.host.Unstage(g.Soon(), v, g.request(v, host.Attachment{}, host.Ext4).Staging))
		g.Detach(ids[i])
	}
	// The other way round.
	for i, v := range volumes {
		id, a := g.attach(core.AttachParavirtualizedVolumeDetails{InstanceId: &g.Instance, VolumeId: &volumes[i], Device: &paths[1-i]})
		ids[i] = id
		r := g.request(v, a, host.Ext4)
		r.Filesystem.Format = host.FormatNever
		g.Must(g.host.Stage(g.Soon(), r))
		if text, err := os.ReadFile(filepath.Join(r.Staging, "name")); err != nil || string(text) != v {
			t.Errorf("%s has %q: %v", v, text, err)
		}
		g.Must(g.host.Unstage(g.Soon(), v, r.Staging))
	}
	for _, id := range ids {
		g.Detach(id)
	}
}

// TestVMMultipath: a map over three portals, of which one is lost while the volume is in use.
func TestVMMultipath(t *testing.T) {
	g := newGuest(t)
	g.Command("modprobe", "-a", "dm_multipath", "dm_service_time")
	g.Command("multipathd")
	defer func() { _ = exec.Command("multipathd", "shutdown").Run() }()
	g.Await("multipathd", func() bool { return exec.Command("multipathd", "show", "daemon").Run() == nil })
	volume := g.Volume(120)
	id, a := g.attach(core.AttachIScsiVolumeDetails{InstanceId: &g.Instance, VolumeId: &volume})
	if !a.Multipath || len(a.Targets) < 2 {
		t.Fatalf("attachment %+v", a)
	}
	portals := map[netip.AddrPort]bool{}
	for _, x := range a.Targets {
		portals[x.Portal] = true
	}
	r := g.request(volume, a, host.Ext4)
	g.Must(g.host.Stage(g.Soon(), r))
	if n := g.Sessions(); n != len(portals) {
		t.Errorf("%d sessions with %d portals", n, len(portals))
	}
	if source := g.Command("findmnt", "-n", "-o", "SOURCE", r.Staging); !strings.HasPrefix(source, "/dev/mapper/mpath") {
		t.Errorf("mounted: %s", source)
	}
	g.Command("iscsiadm", "-m", "node", "-T", a.Targets[0].IQN, "-p", a.Targets[0].Portal.String(), "--logout")
	g.Must(os.WriteFile(filepath.Join(r.Staging, "data"), []byte("precious"), 0o600))
	g.Resize(volume, 60)
	if size, err := g.host.Grow(g.Soon(), volume, r.Staging, 60*gib); err != nil || size != 60*gib {
		t.Errorf("size %d: %v", size, err)
	}
	if u, err := g.host.Stats(g.Soon(), r.Staging); err != nil || u.Bytes.Total < 55*gib {
		t.Errorf("usage %+v: %v", u, err)
	}
	g.Must(g.host.Unstage(g.Soon(), volume, r.Staging))
	if n := g.Sessions(); n != 0 {
		t.Errorf("%d sessions are left", n)
	}
	g.Detach(id)
}
