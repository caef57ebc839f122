// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

// Package vm is for tests that run in a Linux guest (test.sh) whose volumes are real: iSCSI targets and SCSI disks of the guest itself, as a
// simulated region in the same process attaches and detaches them.
package vm

import (
	"context"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/oracle/oci-go-sdk/v65/common"
	"github.com/oracle/oci-go-sdk/v65/core"

	"github.com/oracle/oci-cloud-controller-manager/test/ocisim"
	"github.com/oracle/oci-cloud-controller-manager/test/ocisim/bodies"
)

// Guest is a machine with iSCSI, multipath and hot-plugged disks, and its cloud.
type Guest struct {
	testing.TB

	Dir      string // of the test
	Region   *ocisim.Region
	Instance string // OCID of the guest in the region

	body    *bodies.ISCSI
	compute core.ComputeClient
	storage core.BlockstorageClient
}

type noSigner struct{}

func (noSigner) Sign(*http.Request) error { return nil }

// patience is how long things of the guest may take, which shares its processor with whatever the machine does.
const patience = 4 * time.Minute

// New makes a region for a test, which is left out where there is no guest.
func New(t testing.TB) *Guest {
	t.Helper()
	if os.Getenv("VM_TEST") == "" {
		t.Skip("needs an iSCSI initiator and target, and udev: make test-vm runs it in a guest")
	}
	g := &Guest{TB: t, Dir: t.TempDir()}
	script := filepath.Join(g.Dir, "lio.sh")
	g.Must(os.WriteFile(script, []byte(bodies.LIOScript()), 0o755))
	body, err := bodies.NewISCSI(bodies.ISCSIOptions{Command: []string{"/bin/sh", script}, Dir: filepath.Join(g.Dir, "volumes")})
	g.Must(err)
	g.body = body
	g.Region = ocisim.New(ocisim.Options{Attachments: body, Durations: map[string]ocisim.Range{"*": {}}})
	t.Cleanup(func() { g.Must(g.Region.Close()) })
	g.Region.AddCompartment(ocisim.Compartment{Name: "cluster"})
	g.Instance = g.Region.AddInstance(ocisim.Instance{Name: "node-1", AvailabilityDomain: g.Region.Options().AvailabilityDomains[0]})
	client := common.BaseClient{
		HTTPClient: &http.Client{Transport: g.Region.Transport()}, Signer: noSigner{},
		Host: "https://iaas.us-ashburn-1.oraclecloud.com", BasePath: "20160918", UserAgent: "test",
	}
	g.compute.BaseClient, g.storage.BaseClient = client, client
	return g
}

// Must ends the test at an error.
func (g *Guest) Must(err error) {
	g.Helper()
	if err != nil {
		g.Fatal(err)
	}
}

// Soon is a context that lasts as long as things may take.
func (g *Guest) Soon() context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	g.Cleanup(cancel)
	return ctx
}

// Command runs a program of the guest, and returns what it says.
func (g *Guest) Command(argv ...string) string {
	g.Helper()
	out, err := exec.Command(argv[0], argv[1:]...).CombinedOutput()
	if err != nil {
		g.Fatalf("%s: %v\n%s", strings.Join(argv, " "), err, out)
	}
	return strings.TrimSpace(string(out))
}

// Asks says whether a program ends well.
func (g *Guest) Asks(argv ...string) bool { return exec.Command(argv[0], argv[1:]...).Run() == nil }

// Await waits until something is so.
func (g *Guest) Await(what string, done func() bool) {
	g.Helper()
	for deadline := time.Now().Add(patience); !done(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			g.Fatalf("no %s after %s; errors of the targets: %v", what, patience, g.Region.BodyErrors())
		}
	}
}

// Volume makes a volume of 50 GiB.
func (g *Guest) Volume(vpus int64) string {
	return g.Region.AddVolume(ocisim.Volume{AvailabilityDomain: g.Region.Options().AvailabilityDomains[0], VpusPerGB: &vpus})
}

// File is the file that has what is on a volume.
func (g *Guest) File(volume string) string { return g.body.File(volume) }

// Attach attaches a volume to the guest, and returns the attachment as the API shows it.
func (g *Guest) Attach(details core.AttachVolumeDetails) core.VolumeAttachment {
	g.Helper()
	r, err := g.compute.AttachVolume(g.Soon(), core.AttachVolumeRequest{AttachVolumeDetails: details})
	g.Must(err)
	id := *r.GetId()
	g.Await("attachment", func() bool {
		a, _ := g.Region.VolumeAttachment(id)
		return a.GetLifecycleState() == core.VolumeAttachmentLifecycleStateAttached
	})
	a, _ := g.Region.VolumeAttachment(id)
	return a
}

// Detach ends an attachment.
func (g *Guest) Detach(id string) {
	g.Helper()
	_, err := g.compute.DetachVolume(g.Soon(), core.DetachVolumeRequest{VolumeAttachmentId: &id})
	g.Must(err)
	g.Await("detachment", func() bool {
		a, _ := g.Region.VolumeAttachment(id)
		return a.GetLifecycleState() == core.VolumeAttachmentLifecycleStateDetached
	})
}

// Resize gives a volume a new size in GiB.
func (g *Guest) Resize(volume string, gigabytes int64) {
	g.Helper()
	_, err := g.storage.UpdateVolume(g.Soon(), core.UpdateVolumeRequest{VolumeId: &volume, UpdateVolumeDetails: core.UpdateVolumeDetails{SizeInGBs: &gigabytes}})
	g.Must(err)
	g.Await("new size", func() bool {
		v, _ := g.Region.Volume(volume)
		return *v.SizeInGBs == gigabytes && v.LifecycleState == core.VolumeLifecycleStateAvailable
	})
}

// Sessions counts the iSCSI sessions of the guest.
func (g *Guest) Sessions() int {
	list, _ := filepath.Glob("/sys/class/iscsi_session/session*") // the pattern is right
	return len(list)
}
