// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package csi_test

import (
	"fmt"

	"github.com/oracle/oci-go-sdk/v65/core"
	v1 "k8s.io/api/core/v1"

	"github.com/oracle/oci-cloud-controller-manager/test/ocisim"
	"github.com/oracle/oci-cloud-controller-manager/test/testbed"
)

// tags: a volume says which claim it is for, beside the tags of its class; JSON that cannot be read is refused before anything is
// made. C107.
func tags(l *lab) {
	l.class("tagged", map[string]string{"oci.oraclecloud.com/initial-freeform-tags-override": `{"team":"storage"}`})
	l.claim("tagged", "tagged", "50Gi", nil)
	volume := l.bound("tagged")
	got := l.cloudVolume(volume).FreeformTags
	for _, want := range []string{"tagged", volume.Name, v1.NamespaceDefault} {
		found := false
		for _, value := range got {
			found = found || value == want
		}
		if !found {
			l.t.Errorf("no tag says %s: %v", want, got)
		}
	}
	if got["team"] != "storage" {
		l.t.Errorf("the tag of the class is missing: %v", got)
	}
	l.release("tagged")

	l.class("bad-tags", map[string]string{"oci.oraclecloud.com/initial-freeform-tags-override": `{"team":`})
	l.refused("bad-tags", "oci.oraclecloud.com/initial-freeform-tags-override")
}

// refused checks that a claim of a class is refused with a text, without a volume.
func (l *lab) refused(class, text string) {
	l.t.Helper()
	l.claim(class, class, "50Gi", nil)
	l.event(class, "ProvisioningFailed", "InvalidArgument", text)
	if list := l.named(testbed.VolumeName(l.getClaim(class))); len(list) > 0 {
		l.t.Errorf("%d volumes were made", len(list))
	}
	l.deleteClaim(class)
}

// parameters: a key that is nearly one of ours is told on the claim, and the volume is made; a bad value is refused. C110.
func parameters(l *lab) {
	l.class("typo", map[string]string{"VpusPerGB": "20"})
	l.claim("typo", "typo", "50Gi", nil)
	volume := l.bound("typo")
	l.event("typo", "UnknownParameter", "VpusPerGB", "vpusPerGB")
	if got := *l.cloudVolume(volume).VpusPerGB; got != 10 {
		l.t.Errorf("the volume has %d VPUs per GB", got)
	}
	l.release("typo")
	l.class("bad-value", map[string]string{"vpusPerGB": "abc"})
	l.refused("bad-value", "vpusPerGB")
}

// deleted: claims whose volume is gone, or whose volume is still attached, leave nothing. C114.
func deleted(l *lab) {
	l.claim("lost", "at-once", "50Gi", nil)
	lost := l.bound("lost")
	l.must(l.Region.Foreign().Volume(lost.Spec.CSI.VolumeHandle, func(v *core.Volume) {
		v.LifecycleState = core.VolumeLifecycleStateTerminated
	}))
	l.release("lost")

	l.claim("busy", "at-once", "50Gi", nil)
	busy := l.bound("busy")
	nodes := l.nodesIn(*l.cloudVolume(busy).AvailabilityDomain)
	a := l.attach(busy, nodes[0])
	l.attached(a)
	l.deleteClaim("busy")
	l.never("the volume is deleted under its attachment", func() (bool, string) {
		state := l.cloudVolume(busy).LifecycleState
		return state != core.VolumeLifecycleStateAvailable, string(state)
	})
	l.detached(a)
	l.until("the volume is deleted", func() (bool, string) {
		state := l.cloudVolume(busy).LifecycleState
		return state == core.VolumeLifecycleStateTerminated, string(state) + "; " + l.Events(l.ctx, v1.NamespaceDefault, busy.Name)
	})
}

// attachments: ten volumes that are attached to one node at once get ten devices, and no call of the user's is refused. C090.
func attachments(l *lab) {
	var volumes, names []string
	const many = 10
	for i := range many {
		l.claim(fmt.Sprintf("many-%d", i), "on-node-1", "50Gi", nil)
	}
	devices := map[string]bool{}
	for i := range many {
		volume := l.bound(fmt.Sprintf("many-%d", i))
		volumes = append(volumes, volume.Spec.CSI.VolumeHandle)
		names = append(names, l.attach(volume, testbed.NodeName(0)))
	}
	for i, name := range names {
		devices[l.attached(name).Status.AttachmentMetadata["device"]] = true
		if n := l.calls(func(c *ocisim.Call) bool {
			return c.Operation == "AttachVolume" && c.Status >= 400 && c.Resource == volumes[i]
		}); n > 0 {
			l.t.Errorf("%d attachments of %s were refused", n, volumes[i])
		}
	}
	if len(devices) != many {
		l.t.Errorf("devices %v for %d volumes", devices, many)
	}
	for i, name := range names {
		l.detached(name)
		l.release(fmt.Sprintf("many-%d", i))
	}
}
