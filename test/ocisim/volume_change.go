// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package ocisim

import (
	"context"

	"github.com/oracle/oci-go-sdk/v65/common"
	"github.com/oracle/oci-go-sdk/v65/core"
)

// setVolumeState moves a volume from one state to another, if it is still in the first.
func (cl *cloud) setVolumeState(id string, from, to core.VolumeLifecycleStateEnum) bool {
	v := volumes.find(cl, id)
	if v == nil || v.LifecycleState != from {
		return false
	}
	return volumes.update(cl, id, func(v *core.Volume) { v.LifecycleState = to })
}

// provisionVolume takes a new volume to AVAILABLE, or to FAULTY. A restore passes through RESTORING. Content of a
// source is there at once for the volume's users; until it is copied, isHydrated is false.
func (cl *cloud) provisionVolume(id string, source volumeSource, faulty bool) {
	cl.copyContent(source.id, id, func(err error) {
		faulty = faulty || err != nil
		from := core.VolumeLifecycleStateProvisioning
		wait := cl.duration("volume.create")
		if source.restore {
			cl.after(wait, func() { cl.setVolumeState(id, from, core.VolumeLifecycleStateRestoring) })
			wait += cl.duration("volume.restore")
		}
		cl.after(wait, func() {
			if source.restore {
				from = core.VolumeLifecycleStateRestoring
			}
			if faulty {
				cl.setVolumeState(id, from, core.VolumeLifecycleStateFaulty)
				return
			}
			if cl.setVolumeState(id, from, core.VolumeLifecycleStateAvailable) {
				cl.hydrateVolume(id)
				cl.tuneLater(id)
			}
		})
	})
}

func (cl *cloud) hydrateVolume(id string) {
	if v := volumes.find(cl, id); v == nil || value(v.IsHydrated) {
		return
	}
	cl.after(cl.duration("volume.hydrate"), func() {
		volumes.update(cl, id, func(v *core.Volume) { v.IsHydrated = common.Bool(true) })
	})
}

// copyContent gives a new volume or backup the content of another; without a source, or without bodies, there is
// nothing to do.
func (cl *cloud) copyContent(from, to string, done func(error)) {
	if from == "" {
		done(nil)
		return
	}
	cl.withBody(func(ctx context.Context, body AttachmentBody) error { return body.Copy(ctx, from, to) }, done, from, to)
}

// updateVolume changes names and tags at once, and size and performance in a while.
func updateVolume(c *call) (*answer, error) {
	d, err := decode[core.UpdateVolumeDetails](c)
	if err != nil {
		return nil, err
	}
	cl, id, v := c.cloud, c.target.id, volumes.of(c.target)
	if err := c.changeable(id, string(v.LifecycleState)); err != nil {
		return nil, err
	}
	if d.DisplayName != nil {
		if err := checkSize("displayName", *d.DisplayName, 1, maxBlockName); err != nil {
			return nil, err
		}
	}
	if len(d.BlockVolumeReplicas) > 0 {
		return nil, errInvalid("blockVolumeReplicas is not supported.")
	}
	size, err := c.newSize(volumeSubject{id, v.AvailabilityDomain, value(v.SizeInGBs), value(v.IsHydrated)}, d.SizeInGBs)
	if err != nil {
		return nil, err
	}
	old := performanceOf(v)
	performance, err := newPerformance(d.VpusPerGB, d.IsAutoTuneEnabled, c.policiesOf(d.AutotunePolicies), &old)
	if err != nil {
		return nil, err
	}
	volumes.update(cl, id, func(v *core.Volume) {
		if d.DisplayName != nil {
			v.DisplayName = d.DisplayName
		}
		if d.IsReservationsEnabled != nil {
			v.IsReservationsEnabled = d.IsReservationsEnabled
		}
		setTags(&v.FreeformTags, &v.DefinedTags, d.FreeformTags, d.DefinedTags)
	})
	if size != value(v.SizeInGBs) || !performance.equal(old) {
		cl.changeVolume(id, func(v *core.Volume) {
			v.SizeInGBs, v.SizeInMBs = common.Int64(size), common.Int64(size*mbsPerGB)
			performance.applyTo(v)
		}, size*gigabyte, c.failure != nil)
	}
	return c.show(c.target), nil
}

// gigabyte is what the service calls so.
const gigabyte = 1 << 30

// changeable refuses changes of a volume that is gone or on its way to another state.
func (c *call) changeable(id, state string) error {
	switch {
	case terminal(state):
		return c.rule(TerminatedVolumeChanged)
	case state != string(core.VolumeLifecycleStateAvailable):
		return c.rule(VolumeNotChangeable, id, state)
	}
	return nil
}

// volumeSubject is what the rules about sizes need to know of a volume or boot volume.
type volumeSubject struct {
	id        string
	domain    *string
	gigabytes int64
	hydrated  bool
}

// newSize is the size that an update asks for, in GB: it must not shrink.
func (c *call) newSize(v volumeSubject, wanted *int64) (int64, error) {
	if wanted == nil {
		return v.gigabytes, nil
	}
	switch {
	case *wanted > maxVolumeGBs:
		return 0, errInvalid("sizeInGBs must be between %d and %d", minVolumeGBs, maxVolumeGBs)
	case *wanted < v.gigabytes:
		return 0, errInvalid("The size of volume %s cannot be changed from %d GB to %d GB.", v.id, v.gigabytes, *wanted)
	case *wanted == v.gigabytes:
		return v.gigabytes, c.rule(VolumeSameSize, v.id, v.gigabytes)
	}
	if !v.hydrated {
		if err := c.rule(VolumeChangeHydrating, v.id); err != nil {
			return 0, err
		}
	}
	if c.backupRunning(v.id) {
		if err := c.rule(VolumeChangeInBackup, v.id); err != nil {
			return 0, err
		}
	}
	return *wanted, c.volumeRoom(value(v.domain), 0, *wanted-v.gigabytes)
}

// changeVolume applies a change of size or performance when it has taken effect. A failed one leaves all as it was.
func (cl *cloud) changeVolume(id string, change func(*core.Volume), bytes int64, fail bool) {
	before := core.VolumeLifecycleStateAvailable
	if cl.behaviour.ResizeProvisions {
		cl.setVolumeState(id, before, core.VolumeLifecycleStateProvisioning)
		before = core.VolumeLifecycleStateProvisioning
	}
	if cl.behaviour.ResizeShownAtOnce && !fail {
		volumes.update(cl, id, change)
	}
	cl.after(cl.duration("volume.update"), func() {
		if fail {
			cl.setVolumeState(id, before, core.VolumeLifecycleStateAvailable)
			return
		}
		cl.withBody(func(ctx context.Context, body AttachmentBody) error { return body.Resize(ctx, id, bytes) }, func(err error) {
			if v := volumes.find(cl, id); err != nil || v == nil || v.LifecycleState != before {
				cl.setVolumeState(id, before, core.VolumeLifecycleStateAvailable)
				return
			}
			volumes.update(cl, id, func(v *core.Volume) {
				change(v)
				v.LifecycleState = core.VolumeLifecycleStateAvailable
			})
			cl.tuneLater(id)
		}, id)
	})
}
