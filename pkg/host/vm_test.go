// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package host_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
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
	"github.com/oracle/oci-cloud-controller-manager/test/ocisim"
	"github.com/oracle/oci-cloud-controller-manager/test/ocisim/bodies"
)

// guest is a machine with iSCSI, multipath and hot-plugged disks, whose cloud is a simulated region in the same machine.
type guest struct {
	*testing.T

	host     *host.Host
	region   *ocisim.Region
	instance string
	compute  core.ComputeClient
	storage  core.BlockstorageClient
	dir      string
}

type noSigner struct{}

func (noSigner) Sign(*http.Request) error { return nil }

const gib = int64(1) << 30

func newGuest(t *testing.T) *guest {
	t.Helper()
	if os.Getenv("VM_TEST") == "" {
		t.Skip("needs an iSCSI initiator and target, and udev: make test-vm runs it in a guest")
	}
	g := &guest{T: t, dir: t.TempDir()}
	script := filepath.Join(g.dir, "lio.sh")
	g.must(os.WriteFile(script, []byte(bodies.LIOScript()), 0o755))
	body, err := bodies.NewISCSI(bodies.ISCSIOptions{Command: []string{"/bin/sh", script}, Dir: filepath.Join(g.dir, "volumes")})
	g.must(err)
	g.region = ocisim.New(ocisim.Options{Attachments: body, Durations: map[string]ocisim.Range{"*": {}}})
	t.Cleanup(func() { g.must(g.region.Close()) })
	g.region.AddCompartment(ocisim.Compartment{Name: "cluster"})
	g.instance = g.region.AddInstance(ocisim.Instance{Name: "node-1", AvailabilityDomain: g.region.Options().AvailabilityDomains[0]})
	client := common.BaseClient{
		HTTPClient: &http.Client{Transport: g.region.Transport()}, Signer: noSigner{},
		Host: "https://iaas.us-ashburn-1.oraclecloud.com", BasePath: "20160918", UserAgent: "test",
	}
	g.compute.BaseClient, g.storage.BaseClient = client, client
	g.host, err = host.New(host.Options{Paths: host.HostPaths(""), StateDir: filepath.Join(g.dir, "state"), AgentWait: 100 * time.Millisecond})
	g.must(err)
	return g
}

func (g *guest) must(err error) {
	g.Helper()
	if err != nil {
		g.Fatal(err)
	}
}

func (g *guest) context() context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	g.Cleanup(cancel)
	return ctx
}

func (g *guest) command(argv ...string) string {
	g.Helper()
	out, err := exec.Command(argv[0], argv[1:]...).CombinedOutput()
	if err != nil {
		g.Fatalf("%s: %v\n%s", strings.Join(argv, " "), err, out)
	}
	return strings.TrimSpace(string(out))
}

func (g *guest) await(what string, done func() bool) {
	g.Helper()
	for deadline := time.Now().Add(time.Minute); !done(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			g.Fatalf("no %s after a minute; errors of the targets: %v", what, g.region.BodyErrors())
		}
	}
}

func (g *guest) volume(vpus int64) string {
	return g.region.AddVolume(ocisim.Volume{AvailabilityDomain: g.region.Options().AvailabilityDomains[0], VpusPerGB: &vpus})
}

// attach attaches a volume and returns the attachment and what a node is told of it.
func (g *guest) attach(details core.AttachVolumeDetails) (id string, a host.Attachment) {
	g.Helper()
	r, err := g.compute.AttachVolume(g.Context(), core.AttachVolumeRequest{AttachVolumeDetails: details})
	g.must(err)
	id = *r.GetId()
	g.await("attachment", func() bool {
		a, _ := g.region.VolumeAttachment(id)
		return a.GetLifecycleState() == core.VolumeAttachmentLifecycleStateAttached
	})
	shown, _ := g.region.VolumeAttachment(id)
	size := 50 * gib
	if v, ok := g.region.Volume(*shown.GetVolumeId()); ok {
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

func (g *guest) detach(id string) {
	g.Helper()
	_, err := g.compute.DetachVolume(g.Context(), core.DetachVolumeRequest{VolumeAttachmentId: &id})
	g.must(err)
	g.await("detachment", func() bool {
		a, _ := g.region.VolumeAttachment(id)
		return a.GetLifecycleState() == core.VolumeAttachmentLifecycleStateDetached
	})
}

func (g *guest) resize(volume string, gigabytes int64) {
	g.Helper()
	_, err := g.storage.UpdateVolume(g.Context(), core.UpdateVolumeRequest{VolumeId: &volume, UpdateVolumeDetails: core.UpdateVolumeDetails{SizeInGBs: &gigabytes}})
	g.must(err)
	g.await("new size", func() bool {
		v, _ := g.region.Volume(volume)
		return *v.SizeInGBs == gigabytes && v.LifecycleState == core.VolumeLifecycleStateAvailable
	})
}

// request is one to stage a volume as a file system.
func (g *guest) request(volume string, a host.Attachment, kind host.Signature) host.StageRequest {
	return host.StageRequest{
		Volume: volume, Attachment: a, Staging: filepath.Join(g.dir, "staging", volume[len(volume)-8:]),
		Filesystem: &host.Filesystem{Type: kind, Format: host.FormatIfBlank},
	}
}

func sessions() int {
	list, _ := filepath.Glob("/sys/class/iscsi_session/session*") // the pattern is right
	return len(list)
}

// TestVMISCSI: a volume's life with a real initiator and target: login with CHAP, mkfs, mount, growth, logout, and its data on the next
// attachment.
func TestVMISCSI(t *testing.T) {
	for _, kind := range []host.Signature{host.Ext4, host.XFS} {
		t.Run(string(kind), func(t *testing.T) {
			g := newGuest(t)
			volume := g.volume(10)
			details := core.AttachIScsiVolumeDetails{InstanceId: &g.instance, VolumeId: &volume, UseChap: common.Bool(true)}
			id, a := g.attach(details)
			r := g.request(volume, a, kind)
			pod := host.PublishRequest{Volume: volume, Staging: r.Staging, Target: filepath.Join(g.dir, "pod")}
			g.must(g.host.Stage(g.context(), r))
			g.must(g.host.Stage(g.context(), r))
			g.must(g.host.Publish(g.context(), pod))
			g.must(os.WriteFile(filepath.Join(pod.Target, "data"), []byte("precious"), 0o600))
			g.resize(volume, 60)
			if size, err := g.host.Grow(g.context(), volume, pod.Target, 60*gib); err != nil || size != 60*gib {
				t.Fatalf("size %d: %v", size, err)
			}
			if u, err := g.host.Stats(g.context(), pod.Target); err != nil || u.Bytes.Total < 55*gib {
				t.Errorf("usage %+v: %v", u, err)
			}
			if err := g.host.Unstage(g.context(), volume, r.Staging); !errors.Is(err, host.ErrInUse) {
				t.Errorf("error %v", err)
			}
			g.must(g.host.Unpublish(g.context(), volume, pod.Target))
			g.must(g.host.Unstage(g.context(), volume, r.Staging))
			if n := sessions(); n != 0 {
				t.Fatalf("%d sessions", n)
			}
			g.detach(id)

			id, r.Attachment = g.attach(details)
			r.Filesystem.Format = host.FormatNever
			g.must(g.host.Stage(g.context(), r))
			if text, err := os.ReadFile(filepath.Join(r.Staging, "data")); err != nil || string(text) != "precious" {
				t.Errorf("data %q: %v", text, err)
			}
			g.must(g.host.Unstage(g.context(), volume, r.Staging))
			g.detach(id)
			wrong := r
			id, wrong.Attachment = g.attach(details)
			wrong.Attachment.CHAP = &host.CHAP{User: "somebody", Secret: "0123456789ab"}
			if err := g.host.Stage(g.context(), wrong); !errors.Is(err, host.ErrCredentials) {
				t.Errorf("wrong credentials: %v", err)
			}
			g.detach(id)
		})
	}
}

// TestVMHotDisks: paravirtualized disks appear at consistent paths, which are used again for other volumes.
func TestVMHotDisks(t *testing.T) {
	g := newGuest(t)
	paths := []string{"/dev/oracleoci/oraclevdb", "/dev/oracleoci/oraclevdc"}
	var volumes, ids []string
	for i := range 2 {
		volumes = append(volumes, g.volume(10))
		id, a := g.attach(core.AttachParavirtualizedVolumeDetails{InstanceId: &g.instance, VolumeId: &volumes[i], Device: &paths[i]})
		ids = append(ids, id)
		r := g.request(volumes[i], a, host.Ext4)
		g.must(g.host.Stage(g.context(), r))
		g.must(os.WriteFile(filepath.Join(r.Staging, "name"), []byte(volumes[i]), 0o600))
	}
	for i, v := range volumes {
		g.must(g.host.Unstage(g.context(), v, g.request(v, host.Attachment{}, host.Ext4).Staging))
		g.detach(ids[i])
	}
	// The other way round.
	for i, v := range volumes {
		id, a := g.attach(core.AttachParavirtualizedVolumeDetails{InstanceId: &g.instance, VolumeId: &volumes[i], Device: &paths[1-i]})
		ids[i] = id
		r := g.request(v, a, host.Ext4)
		r.Filesystem.Format = host.FormatNever
		g.must(g.host.Stage(g.context(), r))
		if text, err := os.ReadFile(filepath.Join(r.Staging, "name")); err != nil || string(text) != v {
			t.Errorf("%s has %q: %v", v, text, err)
		}
		g.must(g.host.Unstage(g.context(), v, r.Staging))
	}
	for _, id := range ids {
		g.detach(id)
	}
}

// TestVMNothingIsFormatted: C098, on devices that the kernel's device mapper makes: sectors that cannot be read, at the beginning and at
// the end; and with a partition table that the kernel knows.
func TestVMNothingIsFormatted(t *testing.T) {
	g := newGuest(t)
	volume := g.volume(10)
	path := "/dev/oracleoci/oraclevdb"
	id, a := g.attach(core.AttachParavirtualizedVolumeDetails{InstanceId: &g.instance, VolumeId: &volume, Device: &path})
	g.await("disk", func() bool { _, err := os.Stat(path); return err == nil })
	sectors := 50 * gib / 512
	for name, table := range map[string]string{
		"the first sector": fmt.Sprintf("0 8 error\n8 %d linear %s 8", sectors-8, path),
		"the last sector":  fmt.Sprintf("0 %d linear %s 0\n%d 8 error", sectors-8, path, sectors-8),
	} {
		cmd := exec.Command("dmsetup", "create", "bad")
		cmd.Stdin = strings.NewReader(table + "\n")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("dmsetup: %v %s", err, out)
		}
		g.command("udevadm", "settle")
		bad := a
		bad.Device = "/dev/mapper/bad"
		err := g.host.Stage(g.context(), g.request(volume, bad, host.Ext4))
		if err == nil || !strings.Contains(err.Error(), "input/output error") {
			t.Errorf("%s: %v", name, err)
		}
		// While the map is there, its disk belongs to somebody else.
		if err := g.host.Stage(g.context(), g.request(volume, a, host.Ext4)); !errors.Is(err, host.ErrInUse) {
			t.Errorf("a disk that is part of a map: %v", err)
		}
		g.command("dmsetup", "remove", "--retry", "bad")
	}
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	g.must(err)
	entry := append(make([]byte, 446), 0x80, 1, 1, 0, 0x83, 0xfe, 0xff, 0xff, 0, 8, 0, 0, 0, 0x10, 0, 0)
	_, err = f.Write(append(append(entry, make([]byte, 48)...), 0x55, 0xaa))
	g.must(errors.Join(err, f.Sync(), f.Close()))
	g.command("blockdev", "--rereadpt", path)
	if err := g.host.Stage(g.context(), g.request(volume, a, host.Ext4)); !errors.Is(err, host.ErrNotBlank) || !strings.Contains(err.Error(), "partition") {
		t.Errorf("partition table: %v", err)
	}
	g.detach(id)
}

// TestVMMultipath: a map over three portals, of which one is lost while the volume is in use.
func TestVMMultipath(t *testing.T) {
	g := newGuest(t)
	g.command("modprobe", "-a", "dm_multipath", "dm_service_time")
	g.command("multipathd")
	defer func() { _ = exec.Command("multipathd", "shutdown").Run() }()
	g.await("multipathd", func() bool { return exec.Command("multipathd", "show", "daemon").Run() == nil })
	volume := g.volume(120)
	id, a := g.attach(core.AttachIScsiVolumeDetails{InstanceId: &g.instance, VolumeId: &volume})
	if !a.Multipath || len(a.Targets) < 2 {
		t.Fatalf("attachment %+v", a)
	}
	portals := map[netip.AddrPort]bool{}
	for _, x := range a.Targets {
		portals[x.Portal] = true
	}
	r := g.request(volume, a, host.Ext4)
	g.must(g.host.Stage(g.context(), r))
	if n := sessions(); n != len(portals) {
		t.Errorf("%d sessions with %d portals", n, len(portals))
	}
	if source := g.command("findmnt", "-n", "-o", "SOURCE", r.Staging); !strings.HasPrefix(source, "/dev/mapper/mpath") {
		t.Errorf("mounted: %s", source)
	}
	g.command("iscsiadm", "-m", "node", "-T", a.Targets[0].IQN, "-p", a.Targets[0].Portal.String(), "--logout")
	g.must(os.WriteFile(filepath.Join(r.Staging, "data"), []byte("precious"), 0o600))
	g.resize(volume, 60)
	if size, err := g.host.Grow(g.context(), volume, r.Staging, 60*gib); err != nil || size != 60*gib {
		t.Errorf("size %d: %v", size, err)
	}
	if u, err := g.host.Stats(g.context(), r.Staging); err != nil || u.Bytes.Total < 55*gib {
		t.Errorf("usage %+v: %v", u, err)
	}
	g.must(g.host.Unstage(g.context(), volume, r.Staging))
	if n := sessions(); n != 0 {
		t.Errorf("%d sessions are left", n)
	}
	g.detach(id)
}
