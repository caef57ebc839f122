// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package csi_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/oracle/oci-go-sdk/v65/core"
	v1 "k8s.io/api/core/v1"

	"github.com/oracle/oci-cloud-controller-manager/test/ocisim"
	"github.com/oracle/oci-cloud-controller-manager/test/testbed"
)

// attachTime of TestAttach is longer than the attacher waits for an answer.
const attachTime = 5 * time.Second

// TestAttach: attachments of nodes and instances that are gone are detached, and those that take longer than the attacher waits
// are made once. C092, C113.
func TestAttach(t *testing.T) {
	durations := testbed.StorageDurations()
	durations["volumeattachment.attach"] = ocisim.Range{Min: attachTime, Max: attachTime}
	durations["instance.terminate"] = durations["volumeattachment.detach"]
	l := newLab(t, setting{
		region: ocisim.Options{Durations: durations}, nodes: 7,
		storage: testbed.StorageOptions{Flags: map[string][]string{"csi-attacher": {"--timeout=2s"}}},
	})
	for i := range 3 {
		l.class(inZone(i), nil, testbed.Zone(i))
	}
	l.parallel(map[string]func(*lab){
		"terminated":   terminated,
		"only-node":    func(l *lab) { nodeOnly(l, 1, "RUNNING") },
		"stopped":      func(l *lab) { nodeOnly(l, 2, "STOPPED") },
		"slow":         slow,
		"changed-mind": changedMind,
	})
	// Alone, since it takes a permission away.
	forbidden(l)
}

// inZone is the class of volumes that are where a node is.
func inZone(node int) string { return strings.ToLower(testbed.Zone(node)) }

// onNode is a claim whose volume is where a node is, attached to it.
func (l *lab) onNode(claim string, node int) (volume *v1.PersistentVolume, attachment string) {
	l.t.Helper()
	l.claim(claim, inZone(node), "50Gi", nil)
	volume = l.bound(claim)
	attachment = l.attach(volume, testbed.NodeName(node))
	return volume, attachment
}

func (l *lab) setState(node int, state string) {
	l.t.Helper()
	l.must(l.Region.Foreign().Instance(testbed.InstanceID(node), func(i *core.Instance) {
		i.LifecycleState = core.InstanceLifecycleStateEnum(state)
	}))
}

// terminated: the instance is terminated, its Node is deleted, and the cloud has detached the volume by itself: C092 (a).
func terminated(l *lab) {
	volume, a := l.onNode("terminated", 0)
	l.attached(a)
	l.must(l.Region.Foreign().TerminateInstance(testbed.InstanceID(0)))
	l.nodeDeleted(testbed.NodeName(0))
	l.until("the cloud has detached it", func() (bool, string) {
		n := len(l.attachmentsOf(volume.Spec.CSI.VolumeHandle))
		return n == 0, fmt.Sprint(n)
	})
	l.detached(a)
	l.release("terminated")
}

// nodeOnly: the Node is gone, and its instance, in any state, still has the volume: C092 (b, d). It is detached, and can be
// attached to another node.
func nodeOnly(l *lab, node int, state string) {
	claim := fmt.Sprintf("node-only-%d", node)
	volume, a := l.onNode(claim, node)
	l.attached(a)
	l.setState(node, state)
	l.nodeDeleted(testbed.NodeName(node))
	l.detached(a)
	if n := len(l.attachmentsOf(volume.Spec.CSI.VolumeHandle)); n > 0 {
		l.t.Errorf("the VolumeAttachment is gone, and %d attachments are not", n)
	}
	other := l.attach(volume, testbed.NodeName(node+3))
	l.attached(other)
	l.detached(other)
	l.release(claim)
}

// slow: attaching takes longer than the attacher waits; its next calls join the same attachment. C113.
func slow(l *lab) {
	volume, a := l.onNode("slow", 3)
	l.attached(a)
	if n := l.calls(func(c *ocisim.Call) bool { return c.Operation == "AttachVolume" && l.names(c, volume) }); n != 1 {
		l.t.Errorf("%d calls of AttachVolume for one attachment", n)
	}
	l.detached(a)
	l.release("slow")
}

// names says whether a call made an attachment of a volume.
func (l *lab) names(c *ocisim.Call, volume *v1.PersistentVolume) bool {
	a, found := l.Region.VolumeAttachment(c.Created)
	return found && *a.GetVolumeId() == volume.Spec.CSI.VolumeHandle
}

// changedMind: the pod is gone while its volume is still being attached. It is detached in the end, and nothing is left. C113.
func changedMind(l *lab) {
	volume, a := l.onNode("changed-mind", 4)
	id := volume.Spec.CSI.VolumeHandle
	l.until("it is being attached", func() (bool, string) {
		n := len(l.attachmentsOf(id))
		return n > 0, fmt.Sprint(n)
	})
	l.detached(a)
	l.never("something is attached", func() (bool, string) {
		list := l.attachmentsOf(id)
		return len(list) > 0, fmt.Sprint(len(list))
	})
	l.release("changed-mind")
}

// forbidden: the attachments of the volume cannot be read. The VolumeAttachment stays until they can be: C092 (c).
func forbidden(l *lab) {
	volume, a := l.onNode("forbidden", 6)
	l.attached(a)
	restore := l.Region.Deny(ocisim.Policy{ResourceType: "volume-attachments"})
	l.detach(a)
	l.never("the VolumeAttachment goes", func() (bool, string) { return l.attachmentGone(a), "it is gone" })
	if n := len(l.attachmentsOf(volume.Spec.CSI.VolumeHandle)); n != 1 {
		l.t.Errorf("%d attachments, want the one that nobody could detach", n)
	}
	restore()
	l.until("the VolumeAttachment goes", func() (bool, string) { return l.attachmentGone(a), l.Events(l.ctx, v1.NamespaceDefault, a) })

	// The same for a volume that cannot be deleted.
	restore = l.Region.Deny(ocisim.Policy{ResourceType: "volumes"})
	l.deleteClaim("forbidden")
	l.never("the PersistentVolume goes", func() (bool, string) {
		list := l.volumeNames()
		return !list[volume.Name], "it is gone"
	})
	restore()
	l.until("the PersistentVolume goes", func() (bool, string) {
		return !l.volumeNames()[volume.Name], l.Events(l.ctx, v1.NamespaceDefault, volume.Name)
	})
	if state := l.cloudVolume(volume).LifecycleState; state != core.VolumeLifecycleStateTerminated && state != core.VolumeLifecycleStateTerminating {
		l.t.Errorf("the volume in the region is %s", state)
	}
}
