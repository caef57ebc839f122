// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package ocisim_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/oracle/oci-go-sdk/v65/common"
	"github.com/oracle/oci-go-sdk/v65/core"
	"github.com/oracle/oci-go-sdk/v65/workrequests"

	"github.com/oracle/oci-cloud-controller-manager/test/ocisim"
)

// slowBody takes a minute for everything, and fails on demand.
type slowBody struct {
	mu    sync.Mutex
	log   []string
	fails string // the call that fails
}

var errBody = errors.New("the body is broken")

func (s *slowBody) do(ctx context.Context, what string) error {
	s.mu.Lock()
	s.log = append(s.log, what)
	s.mu.Unlock()
	select {
	case <-time.After(time.Minute):
	case <-ctx.Done():
		return ctx.Err()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.fails == what {
		return errBody
	}
	return nil
}

func (s *slowBody) Attach(ctx context.Context, _ ocisim.BodyAttachment) error {
	return s.do(ctx, "attach")
}
func (s *slowBody) Detach(ctx context.Context, _ ocisim.BodyAttachment) error {
	return s.do(ctx, "detach")
}
func (s *slowBody) Resize(ctx context.Context, _ string, _ int64) error { return s.do(ctx, "resize") }
func (s *slowBody) Copy(ctx context.Context, _, _ string) error         { return s.do(ctx, "copy") }
func (s *slowBody) Delete(ctx context.Context, _ string) error          { return s.do(ctx, "delete") }

func (s *slowBody) Clear(context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.log = append(s.log, "clear")
	return nil
}

// failing makes a call fail from now on.
func (s *slowBody) failing(what string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fails = what
}

func (s *slowBody) seen() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Join(s.log, " ")
}

// withSlowBody runs a test on a region whose state changes take no time, so that only those of the body do.
func withSlowBody(t *testing.T, test func(*testing.T, *blocks, *slowBody)) {
	t.Helper()
	inBubble(t, func(t *testing.T) {
		body := &slowBody{}
		b := newBlocks(t, ocisim.Options{Attachments: body, Durations: map[string]ocisim.Range{"*": {}}})
		t.Cleanup(func() {
			if err := b.region.Close(); err != nil {
				t.Error(err)
			}
			if !strings.HasSuffix(body.seen(), "clear") {
				t.Errorf("calls %s", body.seen())
			}
		})
		test(t, b, body)
	})
}

// TestStatesWaitForBodies: what the body has not done has not happened, and the region answers meanwhile.
func TestStatesWaitForBodies(t *testing.T) {
	withSlowBody(t, func(t *testing.T, b *blocks, body *slowBody) {
		volume := b.volume()
		r, err := b.attachWork(b.instance, volume, nil)
		must(t, r, err)
		b.getVolume(volume) // somebody looks, which starts the work
		time.Sleep(59 * time.Second)
		b.attachmentIn(*r.GetId(), core.VolumeAttachmentLifecycleStateAttaching)
		b.workIn(r.OpcWorkRequestId, workrequests.WorkRequestStatusInProgress)
		time.Sleep(2 * time.Second)
		b.attachmentIn(*r.GetId(), core.VolumeAttachmentLifecycleStateAttached)
		b.workIn(r.OpcWorkRequestId, workrequests.WorkRequestStatusSucceeded)

		v, err := b.updateVolume(volume, core.UpdateVolumeDetails{SizeInGBs: common.Int64(60)})
		must(t, v, err)
		b.volumeIn(volume, core.VolumeLifecycleStateProvisioning)
		time.Sleep(59 * time.Second)
		b.volumeIn(volume, core.VolumeLifecycleStateProvisioning)
		time.Sleep(2 * time.Second)
		b.volumeIn(volume, core.VolumeLifecycleStateAvailable)

		clone := b.mustCreate(func(d *core.CreateVolumeDetails) {
			d.SizeInGBs, d.SourceDetails = nil, core.VolumeSourceFromVolumeDetails{Id: &volume}
		})
		time.Sleep(59 * time.Second)
		b.volumeIn(*clone.Id, core.VolumeLifecycleStateProvisioning)
		time.Sleep(2 * time.Second)
		b.volumeIn(*clone.Id, core.VolumeLifecycleStateAvailable)

		if err := b.detach(*r.GetId()); err != nil {
			t.Fatal(err)
		}
		b.getVolume(volume)
		time.Sleep(59 * time.Second)
		b.attachmentIn(*r.GetId(), core.VolumeAttachmentLifecycleStateDetaching)
		time.Sleep(2 * time.Second)
		b.attachmentIn(*r.GetId(), core.VolumeAttachmentLifecycleStateDetached)
		if err := b.deleteVolume(volume); err != nil {
			t.Fatal(err)
		}
		b.volumeIn(volume, core.VolumeLifecycleStateTerminated)
		time.Sleep(2 * time.Minute)
		if diff := cmp.Diff("attach resize copy detach delete", body.seen()); diff != "" {
			t.Error(diff)
		}
	})
}

// TestBodiesFail: an error of the body is one of the operation.
func TestBodiesFail(t *testing.T) {
	withSlowBody(t, func(t *testing.T, b *blocks, body *slowBody) {
		volume := b.volume()
		body.failing("attach")
		r, err := b.attachWork(b.instance, volume, nil)
		must(t, r, err)
		b.getVolume(volume)
		time.Sleep(61 * time.Second)
		b.attachmentIn(*r.GetId(), core.VolumeAttachmentLifecycleStateDetached)
		b.workIn(r.OpcWorkRequestId, workrequests.WorkRequestStatusFailed)

		body.failing("detach")
		a := b.attachSlowly(volume)
		if err := b.detach(*a.GetId()); err != nil {
			t.Fatal(err)
		}
		b.getVolume(volume)
		time.Sleep(61 * time.Second)
		b.attachmentIn(*a.GetId(), core.VolumeAttachmentLifecycleStateAttached)

		body.failing("copy")
		clone := b.mustCreate(func(d *core.CreateVolumeDetails) {
			d.SizeInGBs, d.SourceDetails = nil, core.VolumeSourceFromVolumeDetails{Id: &volume}
		})
		time.Sleep(61 * time.Second)
		b.volumeIn(*clone.Id, core.VolumeLifecycleStateFaulty)

		body.failing("")
		b.region.Fault(ocisim.Fault{Operation: "CreateVolume", FailWork: true, Times: 1})
		for _, want := range []core.VolumeLifecycleStateEnum{core.VolumeLifecycleStateFaulty, core.VolumeLifecycleStateAvailable} {
			clone := b.mustCreate(func(d *core.CreateVolumeDetails) {
				d.SizeInGBs, d.SourceDetails = nil, core.VolumeSourceFromVolumeDetails{Id: &volume}
			})
			time.Sleep(61 * time.Second)
			b.volumeIn(*clone.Id, want)
		}

		body.failing("resize")
		v, err := b.updateVolume(volume, core.UpdateVolumeDetails{SizeInGBs: common.Int64(60)})
		must(t, v, err)
		b.getVolume(volume)
		time.Sleep(61 * time.Second)
		if v := b.getVolume(volume); v.LifecycleState != core.VolumeLifecycleStateAvailable || *v.SizeInGBs != 50 {
			t.Errorf("volume is %s with %d GB", v.LifecycleState, *v.SizeInGBs)
		}
		errs := b.region.BodyErrors()
		if len(errs) != 4 || slices.ContainsFunc(errs, func(err error) bool { return !errors.Is(err, errBody) }) {
			t.Errorf("errors %v", errs)
		}
	})
}

// attachSlowly waits for the body of an attachment.
func (b *blocks) attachSlowly(volume string) core.VolumeAttachment {
	b.t.Helper()
	a, err := b.attach(b.instance, volume, nil)
	must(b.t, a, err)
	b.getVolume(volume)
	time.Sleep(61 * time.Second)
	b.attachmentIn(*a.GetId(), core.VolumeAttachmentLifecycleStateAttached)
	return a
}

// TestBodiesKeepOrder terminates an instance while a volume appears on it: the body is told to take it away afterwards.
func TestBodiesKeepOrder(t *testing.T) {
	withSlowBody(t, func(t *testing.T, b *blocks, body *slowBody) {
		volume := b.volume()
		a, err := b.attach(b.instance, volume, nil)
		must(t, a, err)
		b.getVolume(volume)
		time.Sleep(30 * time.Second)
		if err := b.region.Foreign().TerminateInstance(b.instance); err != nil {
			t.Fatal(err)
		}
		b.getVolume(volume)
		time.Sleep(31 * time.Second)
		b.attachmentIn(*a.GetId(), core.VolumeAttachmentLifecycleStateDetaching)
		time.Sleep(time.Minute)
		b.attachmentIn(*a.GetId(), core.VolumeAttachmentLifecycleStateDetached)
		if body.seen() != "attach detach" {
			t.Errorf("calls %s", body.seen())
		}
	})
}

// TestResetDropsResults resets the region while the body works: nothing of the old world comes into the new one.
func TestResetDropsResults(t *testing.T) {
	withSlowBody(t, func(t *testing.T, b *blocks, body *slowBody) {
		volume := b.volume()
		a, err := b.attach(b.instance, volume, nil)
		must(t, a, err)
		b.getVolume(volume)
		time.Sleep(time.Second)
		b.region.Reset()
		if body.seen() != "attach clear" {
			t.Errorf("calls %s", body.seen())
		}
		if n := len(b.region.VolumeAttachments()); n != 0 {
			t.Errorf("%d attachments after the reset", n)
		}
	})
}

// TestSeededAttachmentsHaveBodies: what a world has attached is there, too.
func TestSeededAttachmentsHaveBodies(t *testing.T) {
	withSlowBody(t, func(t *testing.T, b *blocks, body *slowBody) {
		volume := b.volume()
		id := b.region.AddVolumeAttachment(ocisim.VolumeAttachment{Volume: volume, Instance: b.instance, Device: ocisim.Auto, Type: "iscsi"})
		time.Sleep(2 * time.Minute)
		a, _ := b.getAttachment(id).(core.IScsiVolumeAttachment)
		if *a.Device != "/dev/oracleoci/oraclevdb" || *a.Ipv4 != "169.254.2.2" || body.seen() != "attach" {
			t.Errorf("attachment %v, calls %s", a, body.seen())
		}
	})
}
