// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package node_test

import (
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/oracle/oci-go-sdk/v65/common"
	"github.com/oracle/oci-go-sdk/v65/core"
)

// attachments are those of the region. Those that are over stay in the list for a while.
func (l *lab) attachments() []core.VolumeAttachment { return l.Region.VolumeAttachments() }

// attachedTo lists the instances that a volume is attached to, or on its way to or from.
func (l *lab) attachedTo(volume string) []string {
	var instances []string
	for _, a := range l.attachments() {
		if *a.GetVolumeId() == volume && a.GetLifecycleState() != core.VolumeAttachmentLifecycleStateDetached {
			instances = append(instances, *a.GetInstanceId())
		}
	}
	return instances
}

// watchAttachments looks all the time whether a volume is attached to two instances, until the end of the test, which fails if that
// was ever so.
func (l *lab) watchAttachments() {
	stop := make(chan struct{})
	var watch sync.WaitGroup
	watch.Go(func() {
		double := map[string]bool{}
		for {
			for _, d := range doubles(l.attachments()) {
				double[d] = true
			}
			select {
			case <-stop:
				for _, d := range slices.Sorted(maps.Keys(double)) {
					l.t.Errorf("a volume was attached twice: %s", d)
				}
				return
			case <-time.After(20 * time.Millisecond):
			}
		}
	})
	l.t.Cleanup(func() {
		close(stop)
		watch.Wait()
	})
}

// doubles describes the volumes that have more than one attachment that is not over.
func doubles(attachments []core.VolumeAttachment) []string {
	instances := map[string][]string{}
	for _, a := range attachments {
		if a.GetLifecycleState() != core.VolumeAttachmentLifecycleStateDetached {
			instances[*a.GetVolumeId()] = append(instances[*a.GetVolumeId()], fmt.Sprintf("%s (%s)", *a.GetInstanceId(), a.GetLifecycleState()))
		}
	}
	var list []string
	for volume, on := range instances {
		if len(on) > 1 {
			list = append(list, fmt.Sprintf("%s: %v", volume, on))
		}
	}
	return list
}

// TestDoublesAreSeen makes sure that the watch of attachments is not blind.
func TestDoublesAreSeen(t *testing.T) {
	on := func(instance string, state core.VolumeAttachmentLifecycleStateEnum) core.VolumeAttachment {
		return core.ParavirtualizedVolumeAttachment{VolumeId: common.String("volume"), InstanceId: &instance, LifecycleState: state}
	}
	for _, state := range []core.VolumeAttachmentLifecycleStateEnum{
		core.VolumeAttachmentLifecycleStateAttaching, core.VolumeAttachmentLifecycleStateAttached, core.VolumeAttachmentLifecycleStateDetaching,
	} {
		if got := doubles([]core.VolumeAttachment{on("a", core.VolumeAttachmentLifecycleStateAttached), on("b", state)}); len(got) != 1 {
			t.Errorf("with a second attachment in state %s: %v", state, got)
		}
	}
	if got := doubles([]core.VolumeAttachment{on("a", core.VolumeAttachmentLifecycleStateAttached), on("b", core.VolumeAttachmentLifecycleStateDetached)}); len(got) != 0 {
		t.Errorf("with an attachment that is over: %v", got)
	}
}
