// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

//go:debug rsa1024min=0

package blockvolume_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/oracle/oci-go-sdk/v65/core"

	"github.com/oracle/oci-cloud-controller-manager/pkg/blockvolume"
	"github.com/oracle/oci-cloud-controller-manager/pkg/oci"
	"github.com/oracle/oci-cloud-controller-manager/test/ocisim"
	"github.com/oracle/oci-cloud-controller-manager/test/pki"
)

const (
	gib       = int64(1) << 30
	clusterID = "cluster-1"
	// name has the form of the names that the external-provisioner gives.
	name = "csi-6f1c9ab0-52b4-4f63-9d4e-1a2b3c4d5e6f"
)

// rig is a simulated region with two nodes in one availability domain, and a service.
type rig struct {
	*testing.T
	region *ocisim.Region

	compartment, other string
	ad, elsewhere      string
	one, two           string // instances

	cfg    blockvolume.Config
	limits oci.RateLimits
	s      *blockvolume.Service
}

// durations make every change of a state take a known time.
func durations() map[string]ocisim.Range {
	out := map[string]ocisim.Range{}
	for name, d := range map[string]time.Duration{
		"volume.create": 8 * time.Second, "volume.restore": 20 * time.Second, "volume.hydrate": time.Minute,
		"volume.update": 5 * time.Second, "volume.delete": 4 * time.Second,
		"volumebackup.image": 3 * time.Second, "volumebackup.upload": 40 * time.Second, "volumebackup.delete": 4 * time.Second,
		"volumeattachment.attach": 10 * time.Second, "volumeattachment.detach": 12 * time.Second, "volumeattachment.login": 3 * time.Second,
		"work.accept": time.Second, "instance.*": 30 * time.Second, "volumegroup.*": 2 * time.Second,
	} {
		out[name] = ocisim.Range{Min: d, Max: d}
	}
	return out
}

// simulate runs a test on virtual time. The process of the service has been up for a minute.
func simulate(t *testing.T, o ocisim.Options, test func(r *rig)) {
	t.Helper()
	pki.SigningKeyPEM() // made outside of the bubble
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, o)
		time.Sleep(time.Minute)
		r.region.ResetCalls()
		test(r)
	})
}

func newRig(t *testing.T, o ocisim.Options) *rig {
	t.Helper()
	if o.Durations == nil {
		o.Durations = durations()
	}
	r := &rig{T: t, region: ocisim.New(o), limits: oci.RateLimits{Disabled: true}}
	r.compartment = r.region.AddCompartment(ocisim.Compartment{Name: "cluster"})
	r.other = r.region.AddCompartment(ocisim.Compartment{Name: "other"})
	vcn := r.region.AddVCN(ocisim.VCN{Compartment: r.compartment})
	r.region.AddSubnet(ocisim.Subnet{VCN: vcn, Name: "nodes", CIDR: "10.0.0.0/20"})
	ads := r.region.Options().AvailabilityDomains
	r.ad, r.elsewhere = ads[0], ads[1]
	r.one, r.two = r.instance("node-1"), r.instance("node-2")
	r.cfg = blockvolume.Config{ClusterID: clusterID, CompartmentID: r.compartment}
	r.restart()
	return r
}

// instance adds an instance in the first availability domain.
func (r *rig) instance(name string, change ...func(*ocisim.Instance)) string {
	i := ocisim.Instance{Compartment: r.compartment, Name: name, Shape: "VM.Standard3.Flex", AvailabilityDomain: r.ad}
	for _, f := range change {
		f(&i)
	}
	return r.region.AddInstance(i)
}

// restart replaces the service by that of a new process.
func (r *rig) restart() { r.s = r.newService(r.region.Transport()) }

func (r *rig) newService(transport http.RoundTripper) *blockvolume.Service {
	r.Helper()
	client := r.connect(transport)
	return blockvolume.New(r.cfg, blockvolume.Deps{Storage: client.BlockStorage(), Compute: client.Compute(), Domains: client.Identity()})
}

func (r *rig) connect(transport http.RoundTripper) *oci.Client {
	r.Helper()
	principal, err := oci.UserPrincipal(oci.UserCredentials{
		Tenancy: r.region.Options().Tenancy, User: "ocid1.user.oc1..csi", Region: r.region.Options().Region,
		Fingerprint: "20:3b:97:13:55:1c:aa:66:41:41:4b:7c:7c:ef:2e:42", PrivateKey: pki.SigningKeyPEM(),
	})
	if err != nil {
		r.Fatal(err)
	}
	client, err := oci.New(oci.Options{Provider: principal, Transport: transport, Limits: r.limits, ClusterID: clusterID})
	if err != nil {
		r.Fatal(err)
	}
	return client
}

// within runs a call with a deadline, as a sidecar does.
func within[T any](r *rig, limit time.Duration, call func(ctx context.Context) (T, error)) (T, error) {
	ctx, cancel := context.WithTimeout(r.Context(), limit)
	defer cancel()
	return call(ctx)
}

// request asks for 50 GiB in the domain of the nodes.
func (r *rig) request(change ...func(*blockvolume.CreateRequest)) blockvolume.CreateRequest {
	q := blockvolume.CreateRequest{Name: name, RequiredBytes: 50 * gib, Domains: []string{blockvolume.ShortDomain(r.ad)}}
	for _, f := range change {
		f(&q)
	}
	return q
}

func (r *rig) create(change ...func(*blockvolume.CreateRequest)) (*blockvolume.Provisioned, error) {
	return within(r, 2*time.Minute, func(ctx context.Context) (*blockvolume.Provisioned, error) {
		return r.s.Create(ctx, r.request(change...))
	})
}

func (r *rig) mustCreate(change ...func(*blockvolume.CreateRequest)) *blockvolume.Provisioned {
	r.Helper()
	v, err := r.create(change...)
	if err != nil {
		r.Fatal(err)
	}
	return v
}

// volume seeds an available volume in the domain of the nodes.
func (r *rig) volume(change ...func(*ocisim.Volume)) string {
	v := ocisim.Volume{Compartment: r.compartment, AvailabilityDomain: r.ad, SizeInGBs: 50}
	for _, f := range change {
		f(&v)
	}
	return r.region.AddVolume(v)
}

func (r *rig) attach(volume, instance string, change ...func(*blockvolume.AttachRequest)) (*oci.VolumeAttachment, error) {
	q := blockvolume.AttachRequest{VolumeID: volume, InstanceID: instance, Node: "k-" + instance[len(instance)-6:]}
	for _, f := range change {
		f(&q)
	}
	return within(r, 2*time.Minute, func(ctx context.Context) (*oci.VolumeAttachment, error) { return r.s.Attach(ctx, q) })
}

func (r *rig) mustAttach(volume, instance string, change ...func(*blockvolume.AttachRequest)) *oci.VolumeAttachment {
	r.Helper()
	a, err := r.attach(volume, instance, change...)
	if err != nil {
		r.Fatal(err)
	}
	return a
}

func (r *rig) detach(q blockvolume.DetachRequest) error {
	_, err := within(r, 2*time.Minute, func(ctx context.Context) (struct{}, error) { return struct{}{}, r.s.Detach(ctx, q) })
	return err
}

// refused asserts the kind of an error.
func (r *rig) refused(err, kind error) {
	r.Helper()
	if !errors.Is(err, kind) {
		r.Errorf("error %v, want %v", err, kind)
	}
}

// calls asserts how often an operation was called since the last reset.
func (r *rig) calls(operation string, want int) {
	r.Helper()
	if got := r.region.Counts()[operation]; got != want {
		r.Errorf("%d calls of %s, want %d", got, operation, want)
	}
}

// living are the volumes that are not gone.
func (r *rig) living() []core.Volume {
	var out []core.Volume
	for _, v := range r.region.Volumes() {
		if v.LifecycleState != core.VolumeLifecycleStateTerminated && v.LifecycleState != core.VolumeLifecycleStateTerminating {
			out = append(out, v)
		}
	}
	return out
}

// open are the attachments that are not over.
func (r *rig) open() []core.VolumeAttachment {
	var out []core.VolumeAttachment
	for _, a := range r.region.VolumeAttachments() {
		if a.GetLifecycleState() != core.VolumeAttachmentLifecycleStateDetached {
			out = append(out, a)
		}
	}
	return out
}

// volumeState sets the state of a volume behind the region's back.
func (r *rig) volumeState(id string, state core.VolumeLifecycleStateEnum) {
	r.Helper()
	if err := r.region.Foreign().Volume(id, func(v *core.Volume) { v.LifecycleState = state }); err != nil {
		r.Fatal(err)
	}
}

// together runs a function n times at once.
func together(n int, run func(i int)) {
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() { run(i) })
	}
	all.Wait()
}

func numbered(n int) string { return fmt.Sprintf("csi-6f1c9ab0-52b4-4f63-9d4e-%012x", n) }
