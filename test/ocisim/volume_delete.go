// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package ocisim

import (
	"context"
	"net/http"

	"github.com/oracle/oci-go-sdk/v65/core"
)

func deleteVolume(c *call) (*answer, error) {
	id, v := c.target.id, volumes.of(c.target)
	if err := c.deletable(id, string(v.LifecycleState)); err != nil {
		return nil, err
	}
	if cl := c.cloud; cl.attachedTo(id) != nil {
		return nil, errConflict("Volume %s may not be deleted while attached to an Instance.", id)
	}
	if group := value(v.VolumeGroupId); group != "" {
		if err := c.rule(VolumeInGroup, id, group); err != nil {
			return nil, err
		}
	}
	return c.deleted(id, string(v.LifecycleState), c.terminateVolume)
}

// deleted answers a delete that the rules allow. What is gone already stays so.
func (c *call) deleted(id, state string, terminate func(string)) (*answer, error) {
	if !terminal(state) {
		terminate(id)
	}
	return none(http.StatusNoContent), nil
}

// deletable refuses the delete of a volume or backup that is gone, in a transient state, or still a source.
func (c *call) deletable(id, state string) error {
	switch state {
	case string(core.VolumeLifecycleStateAvailable), string(core.VolumeLifecycleStateFaulty):
	case string(core.VolumeLifecycleStateTerminated):
		if err := c.rule(VolumeDeletedTwice); err != nil {
			return err
		}
	default:
		if err := c.rule(VolumeNotDeletable, id, state); err != nil {
			return err
		}
	}
	for _, kind := range [...]*kindInfo{volumes.kindInfo, bootVolumes.kindInfo} {
		if copies := c.store.under(kind, hydratingKey(id)); len(copies) > 0 {
			if err := c.rule(VolumeSourceInUse, id, copies[0].id); err != nil {
				return err
			}
		}
	}
	if c.backupRunning(id) {
		return c.rule(VolumeSourceInUse, id, "a backup")
	}
	return nil
}

// terminateVolume takes a volume to TERMINATED; the record stays visible for a while.
func (cl *cloud) terminateVolume(id string) {
	volumes.update(cl, id, func(v *core.Volume) { v.LifecycleState = core.VolumeLifecycleStateTerminating })
	cl.after(cl.duration("volume.delete"), func() {
		if cl.setVolumeState(id, core.VolumeLifecycleStateTerminating, core.VolumeLifecycleStateTerminated) {
			cl.dropContent(id)
			cl.after(cl.behaviour.TerminatedVolumeVisible, func() { volumes.remove(cl, id) })
		}
	})
}

// dropContent forgets what a deleted volume or backup held.
func (cl *cloud) dropContent(id string) {
	cl.withBody(func(ctx context.Context, body AttachmentBody) error { return body.Delete(ctx, id) }, func(error) {}, id)
}

// removeVolume takes a volume away as if it had never been, and its attachments with it.
func (cl *cloud) removeVolume(id string) {
	for a := range volumeAttachments.under(cl, id) {
		cl.removeAttachment(a.id())
	}
	volumes.remove(cl, id)
	cl.dropContent(id)
}
