// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package ocisim_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/oracle/oci-go-sdk/v65/common"
	"github.com/oracle/oci-go-sdk/v65/core"
	"github.com/oracle/oci-go-sdk/v65/workrequests"

	"github.com/oracle/oci-cloud-controller-manager/test/ocisim"
)

func (b *blocks) updateInstance(d core.UpdateInstanceDetails) (core.UpdateInstanceResponse, error) {
	return b.compute.UpdateInstance(b.t.Context(), core.UpdateInstanceRequest{InstanceId: &b.instance, UpdateInstanceDetails: d})
}

func (b *blocks) getInstance() core.Instance {
	b.t.Helper()
	r, err := b.compute.GetInstance(b.t.Context(), core.GetInstanceRequest{InstanceId: &b.instance})
	return must(b.t, r, err).Instance
}

// TestUpdateInstanceNames changes what needs no reboot: it is there at once, and the instance stays up.
func TestUpdateInstanceNames(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		b := newBlocks(t, ocisim.Options{})
		etag := b.region.ETag(b.instance)
		r, err := b.updateInstance(core.UpdateInstanceDetails{
			DisplayName: common.String("renamed"), FreeformTags: map[string]string{"a": "b"}, Metadata: map[string]string{"k": "v"},
		})
		must(t, r, err)
		if *r.DisplayName != "renamed" || r.FreeformTags["a"] != "b" || r.Metadata["k"] != "v" || *r.Etag == etag ||
			r.LifecycleState != core.InstanceLifecycleStateRunning {
			t.Errorf("instance %v", r.Instance)
		}
		_, err = b.updateInstance(core.UpdateInstanceDetails{DisplayName: common.String("again")})
		blockRefused(t, err, http.StatusConflict, "IncorrectState")
		time.Sleep(6 * time.Second)
		work := b.workIn(r.OpcWorkRequestId, workrequests.WorkRequestStatusSucceeded)
		if *work.OperationType != "UpdateInstance" || *work.Resources[0].Identifier != b.instance {
			t.Errorf("work request %v", work)
		}
		_, err = b.compute.UpdateInstance(t.Context(), core.UpdateInstanceRequest{
			InstanceId: &b.instance, IfMatch: &etag, UpdateInstanceDetails: core.UpdateInstanceDetails{DisplayName: common.String("x")},
		})
		blockRefused(t, err, http.StatusPreconditionFailed, "NoEtagMatch")
	})
}

// TestUpdateInstanceShape follows the reboot that a change of shape takes.
func TestUpdateInstanceShape(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		b := newBlocks(t, ocisim.Options{})
		larger := core.UpdateInstanceDetails{ShapeConfig: &core.UpdateInstanceShapeConfigDetails{Ocpus: common.Float32(4)}}
		avoid := larger
		avoid.UpdateOperationConstraint = core.UpdateInstanceDetailsUpdateOperationConstraintAvoidDowntime
		_, err := b.updateInstance(avoid)
		blockRefused(t, err, http.StatusConflict, "Conflict")
		r, err := b.updateInstance(larger)
		must(t, r, err)
		for _, step := range []struct {
			after time.Duration
			state core.InstanceLifecycleStateEnum
			ocpus float32
		}{
			{0, core.InstanceLifecycleStateRunning, 2},
			{6 * time.Second, core.InstanceLifecycleStateStopping, 2},
			{30 * time.Second, core.InstanceLifecycleStateStarting, 4},
			{20 * time.Second, core.InstanceLifecycleStateRunning, 4},
		} {
			time.Sleep(step.after)
			if v := b.getInstance(); v.LifecycleState != step.state || *v.ShapeConfig.Ocpus != step.ocpus || *v.ShapeConfig.MemoryInGBs != 16 {
				t.Errorf("instance is %s with %g OCPUs, want %s with %g", v.LifecycleState, *v.ShapeConfig.Ocpus, step.state, step.ocpus)
			}
		}
		b.workIn(r.OpcWorkRequestId, workrequests.WorkRequestStatusSucceeded)

		// A stopped instance is changed as it lies.
		if err := b.region.Foreign().StopInstance(b.instance); err != nil {
			t.Fatal(err)
		}
		_, err = b.updateInstance(core.UpdateInstanceDetails{FaultDomain: common.String("FAULT-DOMAIN-3")})
		blockRefused(t, err, http.StatusConflict, "IncorrectState")
		time.Sleep(30 * time.Second)
		r, err = b.updateInstance(core.UpdateInstanceDetails{FaultDomain: common.String("FAULT-DOMAIN-3"), Shape: common.String("VM.Standard2.2")})
		must(t, r, err)
		time.Sleep(6 * time.Second)
		if v := b.getInstance(); v.LifecycleState != core.InstanceLifecycleStateStopped || *v.FaultDomain != "FAULT-DOMAIN-3" || v.ShapeConfig != nil {
			t.Errorf("instance %v", v)
		}
	})
}

func TestUpdateInstanceRefusals(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		b := newBlocks(t, ocisim.Options{})
		for name, d := range map[string]core.UpdateInstanceDetails{
			"fault domain": {FaultDomain: common.String("FAULT-DOMAIN-9")},
			"ssh key":      {Metadata: map[string]string{"ssh_authorized_keys": "new"}},
			"metadata":     {Metadata: map[string]string{"k": strings.Repeat("x", 32_000)}},
			"no shape":     {Shape: common.String("VM.Standard2.1"), ShapeConfig: &core.UpdateInstanceShapeConfigDetails{Ocpus: common.Float32(1)}},
			"no processor": {ShapeConfig: &core.UpdateInstanceShapeConfigDetails{Ocpus: common.Float32(0)}},
		} {
			t.Log(name)
			_, err := b.updateInstance(d)
			blockRefused(t, err, http.StatusBadRequest, "InvalidParameter")
		}
		b.change(func(t *ocisim.Behaviour) { t.MaxPVVolumes["VM.Small.Flex"] = 0 })
		b.attached(b.instance, b.volume(), nil)
		_, err := b.updateInstance(core.UpdateInstanceDetails{Shape: common.String("VM.Small.Flex")})
		blockRefused(t, err, http.StatusBadRequest, "LimitExceeded")

		b.region.Fault(ocisim.Fault{Operation: "UpdateInstance", FailWork: true, Times: 1})
		r, err := b.updateInstance(core.UpdateInstanceDetails{Shape: common.String("VM.Standard.E6.Flex")})
		must(t, r, err)
		time.Sleep(6 * time.Second)
		b.workIn(r.OpcWorkRequestId, workrequests.WorkRequestStatusFailed)
		if v := b.getInstance(); *v.Shape != "VM.Standard.E5.Flex" || v.LifecycleState != core.InstanceLifecycleStateRunning {
			t.Errorf("after a failed update: %s %s", *v.Shape, v.LifecycleState)
		}
	})
}

func TestBootVolumes(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		b := newBlocks(t, ocisim.Options{})
		list, err := b.storage.ListBootVolumes(t.Context(), core.ListBootVolumesRequest{CompartmentId: &b.compartment, AvailabilityDomain: &b.ad})
		if must(t, list, err); len(list.Items) != 1 || *list.Items[0].DisplayName != "node-1 (Boot Volume)" {
			t.Fatalf("boot volumes %v", list.Items)
		}
		original := list.Items[0]
		clone, err := b.storage.CreateBootVolume(t.Context(), core.CreateBootVolumeRequest{CreateBootVolumeDetails: core.CreateBootVolumeDetails{
			CompartmentId: &b.compartment, SourceDetails: core.BootVolumeSourceFromBootVolumeDetails{Id: original.Id},
		}})
		if must(t, clone, err); clone.LifecycleState != core.BootVolumeLifecycleStateProvisioning || *clone.IsHydrated || *clone.ImageId != *original.ImageId {
			t.Errorf("clone %v", clone.BootVolume)
		}
		_, err = b.storage.CreateBootVolume(t.Context(), core.CreateBootVolumeRequest{CreateBootVolumeDetails: core.CreateBootVolumeDetails{
			CompartmentId: &b.compartment, SourceDetails: core.BootVolumeSourceFromBootVolumeBackupDetails{Id: original.Id},
		}})
		blockRefused(t, err, http.StatusBadRequest, "InvalidParameter")
		time.Sleep(2 * time.Minute)
		update := func(d core.UpdateBootVolumeDetails) error {
			_, err := b.storage.UpdateBootVolume(t.Context(), core.UpdateBootVolumeRequest{BootVolumeId: clone.Id, UpdateBootVolumeDetails: d})
			return err
		}
		blockRefused(t, update(core.UpdateBootVolumeDetails{SizeInGBs: common.Int64(40)}), http.StatusBadRequest, "InvalidParameter")
		if err := update(core.UpdateBootVolumeDetails{SizeInGBs: common.Int64(100), DisplayName: common.String("spare")}); err != nil {
			t.Fatal(err)
		}
		blockRefused(t, update(core.UpdateBootVolumeDetails{SizeInGBs: common.Int64(101)}), http.StatusConflict, "IncorrectState")
		time.Sleep(5 * time.Second)
		r, err := b.storage.GetBootVolume(t.Context(), core.GetBootVolumeRequest{BootVolumeId: clone.Id})
		if must(t, r, err); *r.SizeInGBs != 100 || *r.DisplayName != "spare" || !*r.IsHydrated || r.LifecycleState != core.BootVolumeLifecycleStateAvailable {
			t.Errorf("boot volume %v", r.BootVolume)
		}
		d, err := b.storage.DeleteBootVolume(t.Context(), core.DeleteBootVolumeRequest{BootVolumeId: clone.Id})
		must(t, d, err)
		attachment := b.region.BootVolumeAttachments()[0]
		a, err := b.compute.GetBootVolumeAttachment(t.Context(), core.GetBootVolumeAttachmentRequest{BootVolumeAttachmentId: attachment.Id})
		if must(t, a, err); *a.BootVolumeId != *original.Id || *a.InstanceId != b.instance {
			t.Errorf("attachment %v", a.BootVolumeAttachment)
		}
	})
}

// TestBlockPolicies takes rights away; the answer is that for what does not exist.
func TestBlockPolicies(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		b := newBlocks(t, ocisim.Options{})
		volume := b.volume()
		denied := func(p ocisim.Policy, call func() error) {
			t.Helper()
			restore := b.region.Deny(p)
			defer restore()
			blockRefused(t, call(), http.StatusNotFound, "NotAuthorizedOrNotFound")
		}
		attach := func() error { _, err := b.attach(b.instance, volume, nil); return err }
		create := func() error { _, err := b.create(nil); return err }
		denied(ocisim.Policy{ResourceType: "volumes", Verb: ocisim.Manage}, create)
		denied(ocisim.Policy{ResourceType: "volumes", Verb: ocisim.Manage}, func() error { return b.deleteVolume(volume) })
		denied(ocisim.Policy{ResourceType: "volumes", Verb: ocisim.Use}, attach)
		denied(ocisim.Policy{ResourceType: "volume-attachments", Verb: ocisim.Manage}, attach)
		denied(ocisim.Policy{ResourceType: "volume-backups", Verb: ocisim.Manage}, func() error { _, err := b.backup(volume); return err })
		denied(ocisim.Policy{ResourceType: "volumes", Verb: ocisim.Inspect}, func() error {
			_, err := b.storage.ListVolumes(t.Context(), core.ListVolumesRequest{CompartmentId: &b.compartment})
			return err
		})
		if n := len(b.region.Volumes()); n != 1 {
			t.Errorf("%d volumes", n)
		}
		restore := b.region.Deny(ocisim.Policy{ResourceType: "instances", Verb: ocisim.Use})
		blockRefused(t, attach(), http.StatusBadRequest, "RelatedResourceNotAuthorizedOrNotFound")
		restore()
		a := b.attached(b.instance, volume, nil)
		for _, kind := range []string{"instances", "volumes", "volume-attachments"} {
			denied(ocisim.Policy{ResourceType: kind, Verb: ocisim.Use}, func() error { return b.detach(*a.GetId()) })
		}
		if err := b.detach(*a.GetId()); err != nil {
			t.Error(err)
		}
	})
}
