// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package bodies_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/oracle/oci-go-sdk/v65/common"
	"github.com/oracle/oci-go-sdk/v65/core"
	"github.com/oracle/oci-go-sdk/v65/workrequests"

	"github.com/oracle/oci-cloud-controller-manager/test/ocisim"
)

// lab is a region whose attachments have a body, with the SDK's clients. State changes of the region take no time, so
// that only the bodies do.
type lab struct {
	t           *testing.T
	region      *ocisim.Region
	compartment string
	instance    string
	ad          string
	storage     core.BlockstorageClient
	compute     core.ComputeClient
	work        workrequests.WorkRequestClient
}

// noSigner signs nothing: the region asks for no signatures.
type noSigner struct{}

func (noSigner) Sign(*http.Request) error { return nil }

func newLab(t *testing.T, body ocisim.AttachmentBody) *lab {
	t.Helper()
	l := &lab{t: t}
	l.region = ocisim.New(ocisim.Options{Attachments: body, Durations: map[string]ocisim.Range{"*": {}}})
	t.Cleanup(func() {
		if err := l.region.Close(); err != nil {
			t.Error(err)
		}
	})
	l.compartment = l.region.AddCompartment(ocisim.Compartment{Name: "cluster"})
	l.ad = l.region.Options().AvailabilityDomains[0]
	l.instance = l.addInstance("node-1")
	client := common.BaseClient{
		HTTPClient: &http.Client{Transport: l.region.Transport()}, Signer: noSigner{},
		Host: "https://iaas.us-ashburn-1.oraclecloud.com", BasePath: "20160918", UserAgent: "test",
	}
	l.storage.BaseClient, l.compute.BaseClient, l.work.BaseClient = client, client, client
	return l
}

func (l *lab) addInstance(name string) string {
	return l.region.AddInstance(ocisim.Instance{Name: name, AvailabilityDomain: l.ad})
}

func (l *lab) volume() string {
	return l.region.AddVolume(ocisim.Volume{AvailabilityDomain: l.ad})
}

// await polls until a condition holds.
func (l *lab) await(what string, done func() bool) {
	l.t.Helper()
	for deadline := time.Now().Add(time.Minute); !done(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			l.t.Fatalf("no %s after a minute; errors of bodies: %v", what, l.region.BodyErrors())
		}
	}
}

func (l *lab) attachmentState(id string) core.VolumeAttachmentLifecycleStateEnum {
	l.t.Helper()
	a, ok := l.region.VolumeAttachment(id)
	if !ok {
		l.t.Fatalf("no attachment %s", id)
	}
	return a.GetLifecycleState()
}

// request asks for an attachment and returns its OCID and that of the work request.
func (l *lab) request(details core.AttachVolumeDetails) (attachment, work string) {
	l.t.Helper()
	r, err := l.compute.AttachVolume(l.t.Context(), core.AttachVolumeRequest{AttachVolumeDetails: details})
	if err != nil {
		l.t.Fatal(err)
	}
	return *r.GetId(), *r.OpcWorkRequestId
}

// attach attaches paravirtualized at a device path, and waits.
func (l *lab) attach(instance, volume, device string, shareable bool) string {
	l.t.Helper()
	d := core.AttachParavirtualizedVolumeDetails{InstanceId: &instance, VolumeId: &volume, IsShareable: &shareable}
	if device != "" {
		d.Device = &device
	}
	id, _ := l.request(d)
	l.await("attachment", func() bool { return l.attachmentState(id) == core.VolumeAttachmentLifecycleStateAttached })
	return id
}

func (l *lab) detach(id string) {
	l.t.Helper()
	if _, err := l.compute.DetachVolume(l.t.Context(), core.DetachVolumeRequest{VolumeAttachmentId: &id}); err != nil {
		l.t.Fatal(err)
	}
	l.await("detachment", func() bool { return l.attachmentState(id) == core.VolumeAttachmentLifecycleStateDetached })
}

func (l *lab) volumeState(id string) core.VolumeLifecycleStateEnum {
	v, _ := l.region.Volume(id)
	return v.LifecycleState
}

// create makes a volume from a source, and waits for its content.
func (l *lab) create(source core.VolumeSourceDetails) string {
	l.t.Helper()
	r, err := l.storage.CreateVolume(l.t.Context(), core.CreateVolumeRequest{CreateVolumeDetails: core.CreateVolumeDetails{
		CompartmentId: &l.compartment, AvailabilityDomain: &l.ad, SourceDetails: source,
	}})
	if err != nil {
		l.t.Fatal(err)
	}
	l.await("volume", func() bool { return l.volumeState(*r.Id) == core.VolumeLifecycleStateAvailable })
	return *r.Id
}

func (l *lab) resize(volume string, gigabytes int64) {
	l.t.Helper()
	if _, err := l.storage.UpdateVolume(l.t.Context(), core.UpdateVolumeRequest{
		VolumeId: &volume, UpdateVolumeDetails: core.UpdateVolumeDetails{SizeInGBs: &gigabytes},
	}); err != nil {
		l.t.Fatal(err)
	}
	l.await("resize", func() bool {
		v, _ := l.region.Volume(volume)
		return *v.SizeInGBs == gigabytes && v.LifecycleState == core.VolumeLifecycleStateAvailable
	})
}
