// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package sanity_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/oracle/oci-go-sdk/v65/core"
	"golang.org/x/sys/unix"

	"github.com/oracle/oci-cloud-controller-manager/pkg/blockvolume"
	"github.com/oracle/oci-cloud-controller-manager/pkg/csi"
	"github.com/oracle/oci-cloud-controller-manager/pkg/csi/block"
	"github.com/oracle/oci-cloud-controller-manager/pkg/host"
	"github.com/oracle/oci-cloud-controller-manager/pkg/oci"
	"github.com/oracle/oci-cloud-controller-manager/test/ocisim"
	"github.com/oracle/oci-cloud-controller-manager/test/ocisim/bodies"
	"github.com/oracle/oci-cloud-controller-manager/test/pki"
)

const (
	nodeName = "node-1"
	shape    = "VM.Standard.E5.Flex"
	// maxVolumes is how many volumes the region attaches to an instance, and the node has room for.
	maxVolumes = 4
)

// rig is a region, our two services as processes would serve them, and a machine whose disks are loop devices.
type rig struct {
	*testing.T

	dir                          string
	region                       *ocisim.Region
	compartment, domain          string
	instance                     string
	controllerSocket, nodeSocket string
}

func newRig(t *testing.T) *rig {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("mounts and makes loop devices: needs root")
	}
	r := &rig{T: t, dir: t.TempDir()}
	for _, dir := range []string{"dev/oracleoci", "udev", "kubelet"} {
		r.must(os.MkdirAll(r.at(dir), 0o755))
	}
	r.makeRegion()
	r.serveController()
	r.serveNode()
	return r
}

func (r *rig) at(elem ...string) string { return filepath.Join(append([]string{r.dir}, elem...)...) }

func (r *rig) must(err error) {
	r.Helper()
	if err != nil {
		r.Fatal(err)
	}
}

func (r *rig) file(name, text string) string {
	r.Helper()
	r.must(os.WriteFile(r.at(name), []byte(text), 0o600))
	return r.at(name)
}

// machine is a body whose devices are those of the rig's machine.
type machine struct {
	*bodies.Loop

	dev string
}

// Attach makes a node of the loop device where the machine has its devices.
func (m *machine) Attach(ctx context.Context, a ocisim.BodyAttachment) error {
	if err := m.Loop.Attach(ctx, a); err != nil {
		return err
	}
	device, is := m.Device(a.Volume)
	if !is {
		return fmt.Errorf("attachment %s has no device", a.ID)
	}
	var st unix.Stat_t
	if err := unix.Stat(device, &st); err != nil {
		return fmt.Errorf("%s: %w", device, err)
	}
	err := unix.Mknod(filepath.Join(m.dev, filepath.Base(device)), unix.S_IFBLK|0o600, int(st.Rdev))
	if err != nil && !os.IsExist(err) {
		return fmt.Errorf("node of %s: %w", device, err)
	}
	return nil
}

// makeRegion makes a region that does everything in a few milliseconds, so that what takes time is ours.
func (r *rig) makeRegion() {
	r.Helper()
	dev := r.at("dev")
	loop, err := bodies.NewLoop(bodies.LoopOptions{Path: func(a ocisim.BodyAttachment) string {
		if a.Device == "" {
			return ""
		}
		return filepath.Join(dev, strings.TrimPrefix(a.Device, "/dev/"))
	}})
	r.must(err)
	behaviour := ocisim.DefaultBehaviour()
	behaviour.MaxVolumesPerInstance = map[string]int{"": maxVolumes}
	quick := ocisim.Range{Min: 5 * time.Millisecond, Max: 20 * time.Millisecond}
	r.region = ocisim.New(ocisim.Options{
		AvailabilityDomains: []string{"Uocm:US-ASHBURN-AD-1"}, // most of csi-sanity's requests name none
		Attachments:         &machine{Loop: loop, dev: dev}, Behaviour: behaviour, PageSize: 2, Durations: map[string]ocisim.Range{"*": quick},
	})
	r.Cleanup(func() {
		r.must(r.region.Close())
		for _, err := range r.region.BodyErrors() {
			r.Error(err)
		}
	})
	r.compartment = r.region.AddCompartment(ocisim.Compartment{Name: "cluster"})
	vcn := r.region.AddVCN(ocisim.VCN{Compartment: r.compartment})
	r.region.AddSubnet(ocisim.Subnet{VCN: vcn, Name: "nodes", CIDR: "10.0.0.0/20"})
	r.domain = r.region.Options().AvailabilityDomains[0]
	r.instance = r.region.AddInstance(ocisim.Instance{Compartment: r.compartment, Name: nodeName, Shape: shape, AvailabilityDomain: r.domain})
}

// cluster is a Kubernetes cluster of one node.
type kubernetes struct{ *rig }

func (k kubernetes) Node(_ context.Context, name string) (*block.Node, error) {
	if name != nodeName {
		return nil, fmt.Errorf("node %s: %w", name, block.ErrNoNode)
	}
	return &block.Node{Name: nodeName, InstanceID: k.instance, CompartmentID: k.compartment}, nil
}

func (k kubernetes) Nodes(ctx context.Context) ([]*block.Node, error) {
	node, err := k.Node(ctx, nodeName)
	return []*block.Node{node}, err
}

func (kubernetes) Claim(context.Context, string, string, string) *block.Claim { return nil }

func (kubernetes) VolumeHandles(context.Context) ([]string, error) { return nil, nil }

func (k kubernetes) Warn(_ context.Context, c *block.Claim, reason, message string) {
	k.Errorf("a warning on claim %+v: %s: %s", c, reason, message)
}

// serveController serves the controller services over the region.
func (r *rig) serveController() {
	r.Helper()
	principal, err := oci.UserPrincipal(oci.UserCredentials{
		Tenancy: r.region.Options().Tenancy, User: "ocid1.user.oc1..csi", Region: r.region.Options().Region,
		Fingerprint: "20:3b:97:13:55:1c:aa:66:41:41:4b:7c:7c:ef:2e:42", PrivateKey: pki.SigningKeyPEM(),
	})
	r.must(err)
	const id = "sanity"
	client, err := oci.New(oci.Options{Provider: principal, Transport: r.region.Transport(), Limits: oci.RateLimits{Disabled: true}, ClusterID: id})
	r.must(err)
	volumes := blockvolume.New(blockvolume.Config{ClusterID: id, CompartmentID: r.compartment, AbsenceSettle: -1},
		blockvolume.Deps{Storage: client.BlockStorage(), Compute: client.Compute(), Domains: client.Identity()})
	controller := block.NewController(block.ControllerOptions{Volumes: volumes, Cluster: kubernetes{r}, PublishedNodes: true})
	r.controllerSocket = r.serve("controller.sock", csi.Options{Plugin: block.PluginCapabilities(), Controller: controller, GroupController: controller})
}

// serveNode serves the node service of this machine.
func (r *rig) serveNode() {
	r.Helper()
	paths := host.HostPaths("")
	paths.Dev, paths.Udev = r.at("dev"), r.at("udev")
	h, err := host.New(host.Options{Paths: paths, StateDir: r.at("records")})
	r.must(err)
	node := block.NewNode(block.NodeOptions{
		NodeName: nodeName, Host: h, MaxVolumes: maxVolumes,
		Labels: func(context.Context) (map[string]string, error) {
			zone := blockvolume.ShortDomain(r.domain)
			return map[string]string{"topology.kubernetes.io/zone": zone, "node.kubernetes.io/instance-type": shape}, nil
		},
	})
	// From the node's, too, csi-sanity takes whether there is a group controller.
	r.nodeSocket = r.serve("node.sock", csi.Options{Plugin: block.PluginCapabilities(), Node: node})
	r.Cleanup(r.nothingLeft)
}

func (r *rig) serve(socket string, o csi.Options) string {
	r.Helper()
	o.Driver, o.Version, o.Endpoint, o.Code = block.DefaultName, block.Version, "unix://"+r.at(socket), block.Code
	server, err := csi.NewServer(o)
	r.must(err)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- server.Run(ctx) }()
	r.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			r.Error(err)
		}
	})
	return r.at(socket)
}

// nothingLeft looks whether all that the suite has made is gone: in the cloud, and on the machine.
func (r *rig) nothingLeft() {
	r.Helper()
	for _, a := range r.region.VolumeAttachments() {
		if a.GetLifecycleState() != core.VolumeAttachmentLifecycleStateDetached {
			r.Errorf("attachment %s is %s", *a.GetId(), a.GetLifecycleState())
		}
	}
	for _, v := range r.region.Volumes() {
		if v.LifecycleState != core.VolumeLifecycleStateTerminated && v.LifecycleState != core.VolumeLifecycleStateTerminating {
			r.Errorf("volume %s is %s", *v.DisplayName, v.LifecycleState)
		}
	}
	for _, b := range r.region.VolumeBackups() {
		if b.LifecycleState != core.VolumeBackupLifecycleStateTerminated && b.LifecycleState != core.VolumeBackupLifecycleStateTerminating {
			r.Errorf("backup %s is %s", *b.DisplayName, b.LifecycleState)
		}
	}
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	r.must(err)
	for line := range strings.Lines(string(mounts)) {
		if path := strings.Fields(line)[4]; strings.HasPrefix(path, r.dir) {
			r.Errorf("%s is still mounted", path)
			if err := unix.Unmount(path, unix.MNT_DETACH); err != nil {
				r.Error(err)
			}
		}
	}
	if records, err := os.ReadDir(r.at("records")); err != nil || len(records) > 0 {
		r.Errorf("records %v: %v", records, err)
	}
}
