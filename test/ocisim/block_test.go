// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package ocisim_test

import (
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/oracle/oci-go-sdk/v65/common"
	"github.com/oracle/oci-go-sdk/v65/core"
	"github.com/oracle/oci-go-sdk/v65/workrequests"

	"github.com/oracle/oci-cloud-controller-manager/test/ocisim"
	"github.com/oracle/oci-cloud-controller-manager/test/pki"
)

// blocks is a small world for volumes, with the SDK's clients.
type blocks struct {
	*fixture

	storage core.BlockstorageClient
	compute core.ComputeClient
	work    workrequests.WorkRequestClient
	ad      string // availability domain of the instance
}

// fixed is a duration without a choice.
func fixed(d time.Duration) ocisim.Range { return ocisim.Range{Min: d, Max: d} }

// blockDurations make every state change take a known time.
func blockDurations() map[string]ocisim.Range {
	return map[string]ocisim.Range{
		"volume.create": fixed(8 * time.Second), "volume.restore": fixed(20 * time.Second), "volume.hydrate": fixed(time.Minute),
		"volume.update": fixed(5 * time.Second), "volume.delete": fixed(4 * time.Second),
		"volumebackup.image": fixed(3 * time.Second), "volumebackup.upload": fixed(40 * time.Second), "volumebackup.delete": fixed(4 * time.Second),
		"volumeattachment.attach": fixed(10 * time.Second), "volumeattachment.detach": fixed(12 * time.Second),
		"volumeattachment.login": fixed(3 * time.Second), "work.accept": fixed(time.Second),
		"instance.update": fixed(5 * time.Second), "instance.stop": fixed(30 * time.Second), "instance.start": fixed(20 * time.Second),
		"instance.terminate": fixed(time.Minute), "volumegroup.*": fixed(2 * time.Second),
	}
}

func newBlocks(t *testing.T, options ocisim.Options) *blocks {
	t.Helper()
	if options.Durations == nil {
		options.Durations = blockDurations()
	}
	b := &blocks{fixture: newFixture(t, options)}
	provider := sdkProvider(b.region)
	clients := []*common.BaseClient{}
	var err error
	if b.storage, err = core.NewBlockstorageClientWithConfigurationProvider(provider); err != nil {
		t.Fatal(err)
	}
	if b.compute, err = core.NewComputeClientWithConfigurationProvider(provider); err != nil {
		t.Fatal(err)
	}
	if b.work, err = workrequests.NewWorkRequestClientWithConfigurationProvider(provider); err != nil {
		t.Fatal(err)
	}
	clients = append(clients, &b.storage.BaseClient, &b.compute.BaseClient, &b.work.BaseClient)
	for _, c := range clients {
		c.HTTPClient = &http.Client{Transport: b.region.Transport()}
		c.Configuration.CircuitBreaker = nil
	}
	instance, _ := b.region.Instance(b.instance)
	b.ad = *instance.AvailabilityDomain
	return b
}

// inBubble runs a test on virtual time. The key is made outside: it would be a bubble's goroutine's otherwise.
func inBubble(t *testing.T, test func(*testing.T)) {
	t.Helper()
	pki.SigningKey()
	synctest.Test(t, test)
}

// blockRefused asserts an error of the service.
func blockRefused(t *testing.T, err error, status int, code string) {
	t.Helper()
	failure, ok := common.IsServiceError(err)
	if !ok || failure.GetHTTPStatusCode() != status || failure.GetCode() != code {
		t.Fatalf("error %v, want %d %s", err, status, code)
	}
}

func must[T any](t *testing.T, v T, err error) T {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// create makes a volume; change may alter the details.
func (b *blocks) create(change func(*core.CreateVolumeDetails)) (core.Volume, error) {
	d := core.CreateVolumeDetails{CompartmentId: &b.compartment, AvailabilityDomain: &b.ad, SizeInGBs: common.Int64(50)}
	if change != nil {
		change(&d)
	}
	r, err := b.storage.CreateVolume(b.t.Context(), core.CreateVolumeRequest{CreateVolumeDetails: d})
	return r.Volume, err
}

func (b *blocks) mustCreate(change func(*core.CreateVolumeDetails)) core.Volume {
	b.t.Helper()
	v, err := b.create(change)
	return must(b.t, v, err)
}

// volume is an available volume.
func (b *blocks) volume() string {
	b.t.Helper()
	return b.region.AddVolume(ocisim.Volume{AvailabilityDomain: b.ad})
}

func (b *blocks) getVolume(id string) core.Volume {
	b.t.Helper()
	r, err := b.storage.GetVolume(b.t.Context(), core.GetVolumeRequest{VolumeId: &id})
	return must(b.t, r, err).Volume
}

// volumeIn asserts the state of a volume.
func (b *blocks) volumeIn(id string, want core.VolumeLifecycleStateEnum) {
	b.t.Helper()
	if got := b.getVolume(id).LifecycleState; got != want {
		b.t.Fatalf("volume is %s, want %s", got, want)
	}
}

func (b *blocks) updateVolume(id string, d core.UpdateVolumeDetails) (core.Volume, error) {
	r, err := b.storage.UpdateVolume(b.t.Context(), core.UpdateVolumeRequest{VolumeId: &id, UpdateVolumeDetails: d})
	return r.Volume, err
}

func (b *blocks) deleteVolume(id string) error {
	_, err := b.storage.DeleteVolume(b.t.Context(), core.DeleteVolumeRequest{VolumeId: &id})
	return err
}

func (b *blocks) backup(volume string) (core.VolumeBackup, error) {
	r, err := b.storage.CreateVolumeBackup(b.t.Context(), core.CreateVolumeBackupRequest{
		CreateVolumeBackupDetails: core.CreateVolumeBackupDetails{VolumeId: &volume},
	})
	return r.VolumeBackup, err
}

// change alters the behaviour table.
func (b *blocks) change(how func(*ocisim.Behaviour)) { b.region.SetBehaviour(how) }

// allow lets a situation pass.
func (b *blocks) allow(s ocisim.Situation) {
	b.change(func(t *ocisim.Behaviour) {
		r := t.Rulings[s]
		r.Allow = true
		t.Rulings[s] = r
	})
}
