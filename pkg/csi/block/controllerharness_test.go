// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

//go:debug rsa1024min=0

package block_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	spec "github.com/container-storage-interface/spec/lib/go/csi"
	"github.com/oracle/oci-go-sdk/v65/core"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/oracle/oci-cloud-controller-manager/pkg/blockvolume"
	"github.com/oracle/oci-cloud-controller-manager/pkg/csi/block"
	"github.com/oracle/oci-cloud-controller-manager/pkg/oci"
	"github.com/oracle/oci-cloud-controller-manager/test/ocisim"
	"github.com/oracle/oci-cloud-controller-manager/test/pki"
)

const (
	gib     = int64(1) << 30
	newName = "csi-6f1c9ab0-52b4-4f63-9d4e-1a2b3c4d5e6f"
)

// claims is a cluster with two Nodes and one claim.
type claims struct {
	mu     sync.Mutex
	nodes  []*block.Node
	claim  *block.Claim
	pvs    []string
	events []string
	broken error // of every read
}

func (c *claims) Node(_ context.Context, name string) (*block.Node, error) {
	if c.broken != nil {
		return nil, c.broken
	}
	for _, n := range c.nodes {
		if n.Name == name {
			return n, nil
		}
	}
	return nil, fmt.Errorf("node %s: %w", name, block.ErrNoNode)
}

func (c *claims) Nodes(context.Context) ([]*block.Node, error)               { return c.nodes, c.broken }
func (c *claims) VolumeHandles(context.Context) ([]string, error)            { return c.pvs, c.broken }
func (c *claims) Claim(context.Context, string, string, string) *block.Claim { return c.claim }

func (c *claims) Warn(_ context.Context, claim *block.Claim, reason, message string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.events = append(c.events, fmt.Sprintf("%s/%s %s: %s", claim.Namespace, claim.Name, reason, message))
}

// bed is a simulated region with two Nodes in one availability domain, and the controller services.
type bed struct {
	*testing.T
	region *ocisim.Region

	compartment, ad, elsewhere string
	one, two                   string // instances of node-1 and node-2

	transport http.RoundTripper // of the process; nil is the region's
	limits    oci.RateLimits    // of the process; those of the region apply in any case
	cluster   *claims
	options   block.ControllerOptions
	c         *block.Controller
}

// inBed runs a test on virtual time, a minute after the start of the process.
func inBed(t *testing.T, o ocisim.Options, test func(b *bed)) {
	t.Helper()
	pki.SigningKeyPEM() // made outside of the bubble
	synctest.Test(t, func(t *testing.T) {
		b := &bed{T: t, region: ocisim.New(o), limits: oci.RateLimits{Disabled: true}, cluster: &claims{claim: &block.Claim{Namespace: "shop", Name: "data", Created: time.Now()}}}
		b.compartment = b.region.AddCompartment(ocisim.Compartment{Name: "cluster"})
		vcn := b.region.AddVCN(ocisim.VCN{Compartment: b.compartment})
		b.region.AddSubnet(ocisim.Subnet{VCN: vcn, Name: "nodes", CIDR: "10.0.0.0/20"})
		ads := b.region.Options().AvailabilityDomains
		b.ad, b.elsewhere = ads[0], ads[1]
		b.one, b.two = b.addNode("node-1"), b.addNode("node-2")
		b.start()
		time.Sleep(time.Minute)
		b.region.ResetCalls()
		test(b)
	})
}

func (b *bed) addNode(name string) string {
	id := b.region.AddInstance(ocisim.Instance{Compartment: b.compartment, Name: name, Shape: "VM.Standard3.Flex", AvailabilityDomain: b.ad})
	b.cluster.nodes = append(b.cluster.nodes, &block.Node{Name: name, InstanceID: id, CompartmentID: b.compartment})
	return id
}

// start replaces the services by those of a new process.
func (b *bed) start(change ...func(*block.ControllerOptions)) {
	b.Helper()
	principal, err := oci.UserPrincipal(oci.UserCredentials{
		Tenancy: b.region.Options().Tenancy, User: "ocid1.user.oc1..csi", Region: b.region.Options().Region,
		Fingerprint: "20:3b:97:13:55:1c:aa:66:41:41:4b:7c:7c:ef:2e:42", PrivateKey: pki.SigningKeyPEM(),
	})
	if err != nil {
		b.Fatal(err)
	}
	transport := b.transport
	if transport == nil {
		transport = b.region.Transport()
	}
	client, err := oci.New(oci.Options{Provider: principal, Transport: transport, Limits: b.limits, ClusterID: "cluster-1"})
	if err != nil {
		b.Fatal(err)
	}
	volumes := blockvolume.New(blockvolume.Config{ClusterID: "cluster-1", CompartmentID: b.compartment},
		blockvolume.Deps{Storage: client.BlockStorage(), Compute: client.Compute(), Domains: client.Identity()})
	b.options = block.ControllerOptions{Volumes: volumes, Cluster: b.cluster}
	for _, f := range change {
		f(&b.options)
	}
	b.c = block.NewController(b.options)
}

// call calls a method with the time that sidecars give it.
func call[Q, A any](b *bed, method func(context.Context, Q) (A, error), request Q) (A, error) {
	ctx, cancel := context.WithTimeout(b.Context(), 2*time.Minute)
	defer cancel()
	return method(ctx, request)
}

// must calls a method that has to succeed.
func must[Q, A any](b *bed, method func(context.Context, Q) (A, error), request Q) A {
	b.Helper()
	answer, err := call(b, method, request)
	if err != nil {
		b.Fatal(err)
	}
	return answer
}

// codeOf is the code that a caller gets.
func codeOf(err error) codes.Code {
	var coded interface{ GRPCStatus() *status.Status }
	switch {
	case err == nil:
		return codes.OK
	case errors.As(err, &coded):
		return coded.GRPCStatus().Code()
	}
	return block.Code(err)
}

// refused asserts the code of an error.
func (b *bed) refused(err error, want codes.Code) {
	b.Helper()
	if got := codeOf(err); got != want {
		b.Errorf("code %s (%v), want %s", got, err, want)
	}
}

// writes are the calls that changed something since the last reset.
func (b *bed) writes() []string {
	var out []string
	for _, c := range b.region.Calls() {
		if c.Write {
			out = append(out, c.Operation)
		}
	}
	slices.Sort(out)
	return out
}

func mounted(mode spec.VolumeCapability_AccessMode_Mode) *spec.VolumeCapability {
	return &spec.VolumeCapability{
		AccessType: &spec.VolumeCapability_Mount{Mount: &spec.VolumeCapability_MountVolume{FsType: "ext4"}},
		AccessMode: &spec.VolumeCapability_AccessMode{Mode: mode},
	}
}

func device(mode spec.VolumeCapability_AccessMode_Mode) *spec.VolumeCapability {
	return &spec.VolumeCapability{
		AccessType: &spec.VolumeCapability_Block{Block: &spec.VolumeCapability_BlockVolume{}},
		AccessMode: &spec.VolumeCapability_AccessMode{Mode: mode},
	}
}

const (
	writer = spec.VolumeCapability_AccessMode_SINGLE_NODE_WRITER
	many   = spec.VolumeCapability_AccessMode_MULTI_NODE_MULTI_WRITER
)

// ask is a request for 50 GiB in the domain of the Nodes.
func (b *bed) ask(change ...func(*spec.CreateVolumeRequest)) *spec.CreateVolumeRequest {
	r := &spec.CreateVolumeRequest{
		Name:               newName,
		CapacityRange:      &spec.CapacityRange{RequiredBytes: 50 * gib},
		VolumeCapabilities: []*spec.VolumeCapability{mounted(writer)},
		AccessibilityRequirements: &spec.TopologyRequirement{
			Preferred: []*spec.Topology{{Segments: map[string]string{block.TopologyZone: blockvolume.ShortDomain(b.ad)}}},
		},
	}
	for _, f := range change {
		f(r)
	}
	return r
}

// volume seeds an available volume in the domain of the Nodes.
func (b *bed) volume(change ...func(*ocisim.Volume)) string {
	v := ocisim.Volume{Compartment: b.compartment, AvailabilityDomain: b.ad, SizeInGBs: 50}
	for _, f := range change {
		f(&v)
	}
	return b.region.AddVolume(v)
}

// open are the attachments that are not over.
func (b *bed) open() []core.VolumeAttachment {
	return slices.DeleteFunc(b.region.VolumeAttachments(), func(a core.VolumeAttachment) bool {
		return a.GetLifecycleState() == core.VolumeAttachmentLifecycleStateDetached
	})
}
