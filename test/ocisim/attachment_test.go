// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package ocisim_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/oracle/oci-go-sdk/v65/common"
	"github.com/oracle/oci-go-sdk/v65/core"
	"github.com/oracle/oci-go-sdk/v65/workrequests"

	"github.com/oracle/oci-cloud-controller-manager/test/ocisim"
)

// attach attaches paravirtualized, or as details say.
func (b *blocks) attach(instance, volume string, details core.AttachVolumeDetails) (core.VolumeAttachment, error) {
	r, err := b.attachWork(instance, volume, details)
	return r.VolumeAttachment, err
}

func (b *blocks) attachWork(instance, volume string, details core.AttachVolumeDetails) (core.AttachVolumeResponse, error) {
	if details == nil {
		details = core.AttachParavirtualizedVolumeDetails{InstanceId: &instance, VolumeId: &volume}
	}
	return b.compute.AttachVolume(b.t.Context(), core.AttachVolumeRequest{AttachVolumeDetails: details})
}

func (b *blocks) detach(id string) error {
	_, err := b.compute.DetachVolume(b.t.Context(), core.DetachVolumeRequest{VolumeAttachmentId: &id})
	return err
}

func (b *blocks) getAttachment(id string) core.VolumeAttachment {
	b.t.Helper()
	r, err := b.compute.GetVolumeAttachment(b.t.Context(), core.GetVolumeAttachmentRequest{VolumeAttachmentId: &id})
	return must(b.t, r, err).VolumeAttachment
}

func (b *blocks) attachmentIn(id string, want core.VolumeAttachmentLifecycleStateEnum) {
	b.t.Helper()
	if got := b.getAttachment(id).GetLifecycleState(); got != want {
		b.t.Fatalf("attachment is %s, want %s", got, want)
	}
}

// attached is an attachment that is there.
func (b *blocks) attached(instance, volume string, details core.AttachVolumeDetails) core.VolumeAttachment {
	b.t.Helper()
	a, err := b.attach(instance, volume, details)
	must(b.t, a, err)
	time.Sleep(11 * time.Second)
	b.attachmentIn(*a.GetId(), core.VolumeAttachmentLifecycleStateAttached)
	return b.getAttachment(*a.GetId())
}

func (b *blocks) workIn(id *string, want workrequests.WorkRequestStatusEnum) workrequests.WorkRequest {
	b.t.Helper()
	r, err := b.work.GetWorkRequest(b.t.Context(), workrequests.GetWorkRequestRequest{WorkRequestId: id})
	if must(b.t, r, err).Status != want {
		b.t.Errorf("work request is %s, want %s", r.Status, want)
	}
	return r.WorkRequest
}

func TestAttachmentLife(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		b := newBlocks(t, ocisim.Options{})
		volume := b.volume()
		device := "/dev/oracleoci/oraclevdc"
		r, err := b.attachWork(b.instance, volume, core.AttachParavirtualizedVolumeDetails{
			InstanceId: &b.instance, VolumeId: &volume, Device: &device, IsPvEncryptionInTransitEnabled: common.Bool(true),
		})
		must(t, r, err)
		a, ok := r.VolumeAttachment.(core.ParavirtualizedVolumeAttachment)
		if !ok || a.LifecycleState != core.VolumeAttachmentLifecycleStateAttaching || *a.Device != device || *a.IsShareable || *a.IsReadOnly ||
			!*a.IsPvEncryptionInTransitEnabled || *a.CompartmentId != b.compartment || *a.AvailabilityDomain != b.ad || *r.Etag == "" {
			t.Errorf("attachment %v", r.VolumeAttachment)
		}
		b.workIn(r.OpcWorkRequestId, workrequests.WorkRequestStatusAccepted)
		blockRefused(t, b.detach(*a.Id), http.StatusConflict, "IncorrectState")
		blockRefused(t, b.deleteVolume(volume), http.StatusConflict, "Conflict")
		time.Sleep(time.Second)
		b.workIn(r.OpcWorkRequestId, workrequests.WorkRequestStatusInProgress)
		b.attachmentIn(*a.Id, core.VolumeAttachmentLifecycleStateAttaching)
		time.Sleep(10 * time.Second)
		b.attachmentIn(*a.Id, core.VolumeAttachmentLifecycleStateAttached)
		work := b.workIn(r.OpcWorkRequestId, workrequests.WorkRequestStatusSucceeded)
		if len(work.Resources) != 3 || *work.Resources[0].Identifier != *a.Id || *work.Resources[2].Identifier != volume ||
			work.Resources[0].ActionType != workrequests.WorkRequestResourceActionTypeCreated || *work.PercentComplete != 100 {
			t.Errorf("work request %v", work)
		}

		d, err := b.compute.DetachVolume(t.Context(), core.DetachVolumeRequest{VolumeAttachmentId: a.Id})
		must(t, d, err)
		b.attachmentIn(*a.Id, core.VolumeAttachmentLifecycleStateDetaching)
		blockRefused(t, b.detach(*a.Id), http.StatusConflict, "IncorrectState")
		blockRefused(t, b.deleteVolume(volume), http.StatusConflict, "Conflict")
		time.Sleep(13 * time.Second)
		b.attachmentIn(*a.Id, core.VolumeAttachmentLifecycleStateDetached)
		b.workIn(d.OpcWorkRequestId, workrequests.WorkRequestStatusSucceeded)
		blockRefused(t, b.detach(*a.Id), http.StatusNotFound, "NotAuthorizedOrNotFound")
		if n := len(b.listAttachments(nil, &volume)); n != 1 {
			t.Errorf("%d records of a detached volume", n)
		}
		if err := b.deleteVolume(volume); err != nil {
			t.Error(err)
		}
		time.Sleep(24 * time.Hour)
		if n := len(b.listAttachments(nil, &volume)); n != 0 {
			t.Errorf("%d records after a day", n)
		}
	})
}

func (b *blocks) listAttachments(instance, volume *string) []core.VolumeAttachment {
	b.t.Helper()
	r, err := b.compute.ListVolumeAttachments(b.t.Context(), core.ListVolumeAttachmentsRequest{
		CompartmentId: &b.compartment, InstanceId: instance, VolumeId: volume,
	})
	return must(b.t, r, err).Items
}

func TestISCSIAttachment(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		b := newBlocks(t, ocisim.Options{})
		plain, fast := b.volume(), b.region.AddVolume(ocisim.Volume{AvailabilityDomain: b.ad, VpusPerGB: common.Int64(30)})
		iscsi := func(volume string, change func(*core.AttachIScsiVolumeDetails)) core.IScsiVolumeAttachment {
			t.Helper()
			d := core.AttachIScsiVolumeDetails{InstanceId: &b.instance, VolumeId: &volume}
			if change != nil {
				change(&d)
			}
			a, ok := b.attached(b.instance, volume, d).(core.IScsiVolumeAttachment)
			if !ok {
				t.Fatalf("not iSCSI: %v", a)
			}
			return a
		}
		one := iscsi(plain, func(d *core.AttachIScsiVolumeDetails) { d.UseChap = common.Bool(true) })
		if *one.Ipv4 != "169.254.2.2" || *one.Port != 3260 || !strings.HasPrefix(*one.Iqn, "iqn.2015-12.com.oracleiaas:") || *one.IsMultipath ||
			*one.ChapUsername != plain || len(*one.ChapSecret) != 32 || one.IscsiLoginState != core.VolumeAttachmentIscsiLoginStateUnknown ||
			one.EncryptionInTransitType != core.EncryptionInTransitTypeNone || *one.IsEncryptionInTransitEnabled {
			t.Errorf("attachment %v", one)
		}
		two := iscsi(fast, nil)
		if *two.Ipv4 != "169.254.2.3" || !*two.IsMultipath || len(two.MultipathDevices) != 2 || *two.MultipathDevices[1].Ipv4 != "169.254.2.5" ||
			*two.MultipathDevices[0].Iqn != *two.Iqn || two.ChapSecret != nil {
			t.Errorf("attachment of an ultra high performance volume %v", two)
		}
		// The agent logs in where it has to: several paths are its business, one is only when asked.
		login := func(id string) core.VolumeAttachmentIscsiLoginStateEnum {
			a, _ := b.getAttachment(id).(core.IScsiVolumeAttachment)
			return a.IscsiLoginState
		}
		if got := login(*two.Id); got != core.VolumeAttachmentIscsiLoginStateLoggingIn {
			t.Errorf("login state %s", got)
		}
		time.Sleep(3 * time.Second)
		if one, two := login(*one.Id), login(*two.Id); one != core.VolumeAttachmentIscsiLoginStateUnknown || two != core.VolumeAttachmentIscsiLoginStateLoginSucceeded {
			t.Errorf("login states %s and %s", one, two)
		}
		r, err := b.compute.UpdateVolumeAttachment(t.Context(), core.UpdateVolumeAttachmentRequest{
			VolumeAttachmentId: one.Id, UpdateVolumeAttachmentDetails: core.UpdateVolumeAttachmentDetails{
				IscsiLoginState: core.UpdateVolumeAttachmentDetailsIscsiLoginStateLoginFailed,
			},
		})
		must(t, r, err)
		if got := login(*one.Id); got != core.VolumeAttachmentIscsiLoginStateLoginFailed {
			t.Errorf("login state %s", got)
		}
		volume := b.volume()
		_, err = b.attach(b.instance, volume, core.AttachIScsiVolumeDetails{
			InstanceId: &b.instance, VolumeId: &volume, EncryptionInTransitType: core.EncryptionInTransitTypeBmEncryptionInTransit,
		})
		blockRefused(t, err, http.StatusBadRequest, "InvalidParameter")
	})
}

func TestOtherAttachmentTypes(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		b := newBlocks(t, ocisim.Options{DropOptional: 0.5})
		one, two := b.volume(), b.volume()
		emulated := b.attached(b.instance, one, core.AttachEmulatedVolumeDetails{InstanceId: &b.instance, VolumeId: &one})
		if _, ok := emulated.(core.EmulatedVolumeAttachment); !ok || emulated.GetIsShareable() == nil {
			t.Errorf("attachment %v", emulated)
		}
		determined := b.attached(b.instance, two, core.AttachServiceDeterminedVolumeDetails{InstanceId: &b.instance, VolumeId: &two})
		if _, ok := determined.(core.ParavirtualizedVolumeAttachment); !ok {
			t.Errorf("attachment %v", determined)
		}
		b.post(api+"/volumeAttachments", object{"type": "nvme", "instanceId": b.instance, "volumeId": one}).wantError(http.StatusBadRequest, "InvalidParameter")
		b.post(api+"/volumeAttachments", object{"instanceId": b.instance, "volumeId": one}).wantError(http.StatusBadRequest, "MissingParameter")
		b.post(api+"/volumeAttachments", object{"type": "iscsi", "volumeId": one}).wantError(http.StatusBadRequest, "MissingParameter")
	})
}

// shared is a shareable attachment.
func shared(instance, volume string, readOnly bool) core.AttachVolumeDetails {
	return core.AttachParavirtualizedVolumeDetails{
		InstanceId: &instance, VolumeId: &volume, IsShareable: common.Bool(true), IsReadOnly: &readOnly,
	}
}

func TestSharing(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		b := newBlocks(t, ocisim.Options{})
		second := b.region.AddInstance(ocisim.Instance{Name: "node-2", AvailabilityDomain: b.ad})
		third := b.region.AddInstance(ocisim.Instance{Name: "node-3", AvailabilityDomain: b.ad})
		volume := b.volume()
		exclusive := b.attached(b.instance, volume, nil)
		message := func(err error) string {
			t.Helper()
			blockRefused(t, err, http.StatusConflict, "Conflict")
			failure, _ := common.IsServiceError(err)
			return failure.GetMessage()
		}
		_, err := b.attach(b.instance, volume, nil)
		if got := message(err); got != "Volume "+volume+" currently attached." {
			t.Error(got)
		}
		_, err = b.attach(second, volume, nil)
		if got := message(err); got != "Volume "+volume+" currently attached." {
			t.Error(got)
		}
		_, err = b.attach(second, volume, shared(second, volume, false))
		if got := message(err); !strings.Contains(got, "is not configured as shareable") {
			t.Error(got)
		}
		// It is taken until it is detached, not until that was asked for.
		if err := b.detach(*exclusive.GetId()); err != nil {
			t.Fatal(err)
		}
		_, err = b.attach(second, volume, nil)
		message(err)
		time.Sleep(13 * time.Second)

		b.attached(b.instance, volume, shared(b.instance, volume, true))
		b.attached(second, volume, shared(second, volume, true))
		_, err = b.attach(third, volume, shared(third, volume, false))
		message(err)
		_, err = b.attach(third, volume, nil)
		message(err)
		_, err = b.attach(second, volume, shared(second, volume, true))
		message(err)
		b.change(func(t *ocisim.Behaviour) { t.MaxInstancesPerVolume = 2 })
		_, err = b.attach(third, volume, shared(third, volume, true))
		blockRefused(t, err, http.StatusBadRequest, "LimitExceeded")
		blockRefused(t, b.deleteVolume(volume), http.StatusConflict, "Conflict")
	})
}

func TestAttachRefusals(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		b := newBlocks(t, ocisim.Options{})
		volume := b.volume()
		far := b.region.AddVolume(ocisim.Volume{AvailabilityDomain: b.region.Options().AvailabilityDomains[1]})
		stopped := b.region.AddInstance(ocisim.Instance{Name: "off", AvailabilityDomain: b.ad, State: "STOPPED"})
		fresh, err := b.create(nil)
		must(t, fresh, err)

		_, err = b.attach(b.instance, "ocid1.volume.oc1.iad.gone", nil)
		blockRefused(t, err, http.StatusNotFound, "NotAuthorizedOrNotFound")
		_, err = b.attach(b.instance, *fresh.Id, nil)
		blockRefused(t, err, http.StatusNotFound, "NotAuthorizedOrNotFound")
		_, err = b.attach("ocid1.instance.oc1.iad.gone", volume, nil)
		blockRefused(t, err, http.StatusBadRequest, "RelatedResourceNotAuthorizedOrNotFound")
		_, err = b.attach(b.instance, far, nil)
		blockRefused(t, err, http.StatusBadRequest, "InvalidParameter")
		_, err = b.attach(stopped, volume, nil)
		blockRefused(t, err, http.StatusConflict, "IncorrectState")
		_, err = b.attach(stopped, volume, core.AttachIScsiVolumeDetails{InstanceId: &stopped, VolumeId: &volume})
		blockRefused(t, err, http.StatusConflict, "IncorrectState")
		if n := len(b.region.VolumeAttachments()); n != 0 {
			t.Errorf("%d attachments after refusals", n)
		}
		b.allow(ocisim.AttachToStopped)
		b.attached(stopped, volume, nil)
	})
}

func TestDevices(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		b := newBlocks(t, ocisim.Options{PageSize: 10})
		list := func(change func(*core.ListInstanceDevicesRequest)) []string {
			t.Helper()
			req := core.ListInstanceDevicesRequest{InstanceId: &b.instance}
			if change != nil {
				change(&req)
			}
			var names []string
			for {
				r, err := b.compute.ListInstanceDevices(t.Context(), req)
				must(t, r, err)
				for _, d := range r.Items {
					names = append(names, strings.TrimPrefix(*d.Name, "/dev/oracleoci/oraclevd"))
				}
				if req.Page = r.OpcNextPage; req.Page == nil {
					return names
				}
			}
		}
		want := strings.Split("b c d e f g h i j k l m n o p q r s t u v w x y z aa ab ac ad ae af ag", " ")
		if diff := cmp.Diff(want, list(nil)); diff != "" {
			t.Error(diff)
		}
		volume, other := b.volume(), b.volume()
		at := func(volume, device string) error {
			_, err := b.attach(b.instance, volume, core.AttachParavirtualizedVolumeDetails{InstanceId: &b.instance, VolumeId: &volume, Device: &device})
			return err
		}
		blockRefused(t, at(volume, "/dev/sdb"), http.StatusBadRequest, "InvalidParameter")
		if err := at(volume, "/dev/oracleoci/oraclevdb"); err != nil {
			t.Fatal(err)
		}
		blockRefused(t, at(other, "/dev/oracleoci/oraclevdb"), http.StatusConflict, "Conflict")
		free := func(r *core.ListInstanceDevicesRequest) { r.IsAvailable = common.Bool(true) }
		if diff := cmp.Diff(want[1:], list(free)); diff != "" {
			t.Error(diff)
		}
		taken := list(func(r *core.ListInstanceDevicesRequest) { r.IsAvailable = common.Bool(false) })
		named := list(func(r *core.ListInstanceDevicesRequest) { r.Name = common.String("/dev/oracleoci/oraclevdag") })
		if fmt.Sprint(taken, named) != "[b] [ag]" {
			t.Errorf("lists %v %v", taken, named)
		}
		down := list(func(r *core.ListInstanceDevicesRequest) {
			r.SortBy, r.SortOrder = core.ListInstanceDevicesSortByDisplayname, core.ListInstanceDevicesSortOrderDesc
		})
		if len(down) != 32 || down[0] != "z" || down[31] != "aa" {
			t.Errorf("sorted list %v", down)
		}
	})
}

func TestTooManyVolumes(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		b := newBlocks(t, ocisim.Options{})
		for range 16 {
			_, err := b.attach(b.instance, b.volume(), nil)
			if err != nil {
				t.Fatal(err)
			}
		}
		volume := b.volume()
		_, err := b.attach(b.instance, volume, nil)
		blockRefused(t, err, http.StatusBadRequest, "LimitExceeded")
		failure, _ := common.IsServiceError(err)
		want := "Cannot attach volume " + volume + " to instance " + b.instance +
			" because the instance already has the maximum number 16 of attached PV volumes for the shape VM.Standard.E5.Flex."
		if failure.GetMessage() != want {
			t.Error(failure.GetMessage())
		}
		iscsi := func() error {
			v := b.volume()
			_, err := b.attach(b.instance, v, core.AttachIScsiVolumeDetails{InstanceId: &b.instance, VolumeId: &v})
			return err
		}
		for range 16 {
			if err := iscsi(); err != nil {
				t.Fatal(err)
			}
		}
		blockRefused(t, iscsi(), http.StatusBadRequest, "LimitExceeded")
	})
}

// TestAttachmentFailures lets both work requests fail: an attach that fails leaves nothing, a detach everything.
func TestAttachmentFailures(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		b := newBlocks(t, ocisim.Options{})
		volume := b.volume()
		remove := b.region.Fault(ocisim.Fault{Operation: "AttachVolume", FailWork: true, Message: "no paths left"})
		r, err := b.attachWork(b.instance, volume, nil)
		must(t, r, err)
		time.Sleep(11 * time.Second)
		b.attachmentIn(*r.GetId(), core.VolumeAttachmentLifecycleStateDetached)
		b.workIn(r.OpcWorkRequestId, workrequests.WorkRequestStatusFailed)
		problems, err := b.work.ListWorkRequestErrors(t.Context(), workrequests.ListWorkRequestErrorsRequest{WorkRequestId: r.OpcWorkRequestId})
		if must(t, problems, err); len(problems.Items) != 1 || *problems.Items[0].Message != "no paths left" || *problems.Items[0].Code != "INTERNAL_ERROR" {
			t.Errorf("errors %v", problems.Items)
		}
		logs, err := b.work.ListWorkRequestLogs(t.Context(), workrequests.ListWorkRequestLogsRequest{WorkRequestId: r.OpcWorkRequestId})
		if must(t, logs, err); len(logs.Items) != 3 {
			t.Errorf("log %v", logs.Items)
		}
		remove()
		a := b.attached(b.instance, volume, nil)
		b.region.Fault(ocisim.Fault{Operation: "DetachVolume", FailWork: true, Times: 1})
		if err := b.detach(*a.GetId()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(13 * time.Second)
		b.attachmentIn(*a.GetId(), core.VolumeAttachmentLifecycleStateAttached)

		list, err := b.work.ListWorkRequests(t.Context(), workrequests.ListWorkRequestsRequest{CompartmentId: &b.compartment})
		if must(t, list, err); len(list.Items) != 3 || *list.Items[0].OperationType != "AttachVolume" || list.Items[2].Status != workrequests.WorkRequestSummaryStatusFailed {
			t.Errorf("work requests %v", list.Items)
		}
		of, err := b.work.ListWorkRequests(t.Context(), workrequests.ListWorkRequestsRequest{CompartmentId: &b.compartment, ResourceId: a.GetId()})
		if must(t, of, err); len(of.Items) != 2 {
			t.Errorf("%d work requests of the attachment", len(of.Items))
		}
	})
}

func TestInstanceEndDetachesVolumes(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		b := newBlocks(t, ocisim.Options{})
		one, two := b.volume(), b.volume()
		there := b.attached(b.instance, one, nil)
		coming, err := b.attach(b.instance, two, nil)
		must(t, coming, err)
		boot := b.region.BootVolumes()[0]
		if *boot.SizeInGBs != 47 || *boot.ImageId == "" {
			t.Errorf("boot volume %v", boot)
		}
		_, err = b.storage.DeleteBootVolume(t.Context(), core.DeleteBootVolumeRequest{BootVolumeId: boot.Id})
		blockRefused(t, err, http.StatusConflict, "Conflict")

		r, err := b.compute.TerminateInstance(t.Context(), core.TerminateInstanceRequest{InstanceId: &b.instance})
		must(t, r, err)
		b.attachmentIn(*there.GetId(), core.VolumeAttachmentLifecycleStateDetaching)
		time.Sleep(time.Minute)
		for _, a := range []core.VolumeAttachment{there, coming} {
			b.attachmentIn(*a.GetId(), core.VolumeAttachmentLifecycleStateDetached)
		}
		attachments, err := b.compute.ListBootVolumeAttachments(t.Context(), core.ListBootVolumeAttachmentsRequest{
			AvailabilityDomain: &b.ad, CompartmentId: &b.compartment, InstanceId: &b.instance,
		})
		if must(t, attachments, err); len(attachments.Items) != 1 || attachments.Items[0].LifecycleState != core.BootVolumeAttachmentLifecycleStateDetached {
			t.Errorf("boot attachments %v", attachments.Items)
		}
		time.Sleep(4 * time.Second)
		if got := b.region.BootVolumes()[0].LifecycleState; got != core.BootVolumeLifecycleStateTerminated {
			t.Errorf("boot volume is %s", got)
		}
		// The record of the instance goes before those of its attachments; volumes stay.
		time.Sleep(2 * time.Hour)
		if n := len(b.listAttachments(&b.instance, nil)); n != 2 {
			t.Errorf("%d attachments are listed", n)
		}
		b.volumeIn(one, core.VolumeLifecycleStateAvailable)
	})
}

func TestPreservedBootVolume(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		b := newBlocks(t, ocisim.Options{})
		r, err := b.compute.TerminateInstance(t.Context(), core.TerminateInstanceRequest{InstanceId: &b.instance, PreserveBootVolume: common.Bool(true)})
		must(t, r, err)
		time.Sleep(48 * time.Hour)
		boot := b.region.BootVolumes()
		if len(boot) != 1 || boot[0].LifecycleState != core.BootVolumeLifecycleStateAvailable {
			t.Fatalf("boot volumes %v", boot)
		}
		d, err := b.storage.DeleteBootVolume(t.Context(), core.DeleteBootVolumeRequest{BootVolumeId: boot[0].Id})
		must(t, d, err)
	})
}

func TestStopEndsISCSISessions(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		b := newBlocks(t, ocisim.Options{})
		volume := b.volume()
		a := b.attached(b.instance, volume, core.AttachIScsiVolumeDetails{
			InstanceId: &b.instance, VolumeId: &volume, IsAgentAutoIscsiLoginEnabled: common.Bool(true),
		})
		time.Sleep(3 * time.Second)
		login := func(want core.VolumeAttachmentIscsiLoginStateEnum) {
			t.Helper()
			if got, _ := b.getAttachment(*a.GetId()).(core.IScsiVolumeAttachment); got.IscsiLoginState != want || got.LifecycleState != core.VolumeAttachmentLifecycleStateAttached {
				t.Errorf("attachment is %s, %s", got.LifecycleState, got.IscsiLoginState)
			}
		}
		login(core.VolumeAttachmentIscsiLoginStateLoginSucceeded)
		if err := b.region.Foreign().StopInstance(b.instance); err != nil {
			t.Fatal(err)
		}
		time.Sleep(30 * time.Second)
		login(core.VolumeAttachmentIscsiLoginStateUnknown)
		if err := b.region.Foreign().StartInstance(b.instance); err != nil {
			t.Fatal(err)
		}
		time.Sleep(23 * time.Second)
		login(core.VolumeAttachmentIscsiLoginStateLoginSucceeded)
	})
}
