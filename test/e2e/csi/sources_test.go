// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package csi_test

import (
	"fmt"

	"github.com/oracle/oci-go-sdk/v65/core"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"

	"github.com/oracle/oci-cloud-controller-manager/test/ocisim"
	"github.com/oracle/oci-cloud-controller-manager/test/testbed"
)

// snapshot: a snapshot has a handle long before it is ready, has one backup although the answer of the first create was lost, and
// is what larger volumes are made from, also when its source is gone; with it goes its backup. C100, C101.
func snapshot(l *lab) {
	l.claim("source", "at-once", "50Gi", nil)
	volume := l.bound("source")
	id := volume.Spec.CSI.VolumeHandle
	defer l.Region.Fault(ocisim.Fault{Operation: "CreateVolumeBackup", Resource: id, Nth: 1, Drop: ocisim.AfterApply})()
	l.snapshot("snap", "incremental", "source")
	l.until("the snapshot has a handle", func() (bool, string) {
		return l.handleOf("snap") != "", l.Events(l.ctx, v1.NamespaceDefault, "snap")
	})
	if ready, there, _ := unstructured.NestedBool(l.object(testbed.VolumeSnapshots, "snap").Object, "status", "readyToUse"); !there || ready {
		l.t.Errorf("readyToUse = %t, told: %t, while the backup is uploaded", ready, there)
	}
	done := l.ready(testbed.VolumeSnapshots, "snap")
	if size, _, _ := unstructured.NestedString(done.Object, "status", "restoreSize"); size != "50Gi" {
		l.t.Errorf("restoreSize = %s, want 50Gi", size)
	}
	if list := l.backupsOf(id); len(list) != 1 || *list[0].Id != l.handleOf("snap") || list[0].Type != core.VolumeBackupTypeIncremental {
		l.t.Errorf("backups of the volume: %d, want that of the snapshot, incremental", len(list))
	}
	l.release("source")

	l.claim("restored", "at-once", "80Gi", from("VolumeSnapshot", "snap"))
	restored := l.bound("restored")
	if size := l.capacity(restored.Name); size != "80Gi" || restored.Spec.CSI.VolumeAttributes["needResize"] != "true" {
		l.t.Errorf("the restored volume has %s and the attributes %v", size, restored.Spec.CSI.VolumeAttributes)
	}
	source, ok := l.cloudVolume(restored).SourceDetails.(core.VolumeSourceFromVolumeBackupDetails)
	if !ok || *source.Id != l.handleOf("snap") {
		l.t.Errorf("the source of the restored volume is %v", l.cloudVolume(restored).SourceDetails)
	}
	l.release("restored")

	l.claim("too-small", "at-once", "50Gi", from("VolumeSnapshot", "no-such-snapshot"))
	l.event("too-small", "ProvisioningFailed", "no-such-snapshot")
	l.deleteClaim("too-small")
	handle := l.handleOf("snap")
	l.removed(testbed.VolumeSnapshots, "snap")
	l.until("the backup is gone", func() (bool, string) {
		for _, b := range l.Region.VolumeBackups() {
			if *b.Id == handle {
				return b.LifecycleState == core.VolumeBackupLifecycleStateTerminated, string(b.LifecycleState)
			}
		}
		return true, ""
	})
}

// clone: a claim with another one as its source gets a copy, in the same availability domain. C102.
func clone(l *lab) {
	l.claim("original", "at-once", "50Gi", nil)
	original := l.bound("original")
	l.claim("clone", "at-once", "60Gi", from("PersistentVolumeClaim", "original"))
	copied := l.bound("clone")
	source, ok := l.cloudVolume(copied).SourceDetails.(core.VolumeSourceFromVolumeDetails)
	if !ok || *source.Id != original.Spec.CSI.VolumeHandle {
		l.t.Errorf("the source of the clone is %v", l.cloudVolume(copied).SourceDetails)
	}
	if from, to := *l.cloudVolume(original).AvailabilityDomain, *l.cloudVolume(copied).AvailabilityDomain; from != to {
		l.t.Errorf("a clone in %s of a volume in %s", to, from)
	}
	if got := l.capacity(copied.Name); got != "60Gi" || copied.Spec.CSI.VolumeAttributes["needResize"] != "true" {
		l.t.Errorf("the clone has %s and the attributes %v", got, copied.Spec.CSI.VolumeAttributes)
	}
	l.release("clone")
	l.release("original")
}

// attributes: a VolumeAttributesClass sets the performance of a new volume, and another one changes it. C108.
func attributes(l *lab) {
	l.attributes("fast", map[string]string{"vpusPerGB": "20"})
	l.attributes("plain", map[string]string{"vpusPerGB": "10"})
	l.claim("tuned", "at-once", "50Gi", func(c *v1.PersistentVolumeClaim) { c.Spec.VolumeAttributesClassName = ptr.To("fast") })
	volume := l.bound("tuned")
	if got := *l.cloudVolume(volume).VpusPerGB; got != 20 {
		l.t.Errorf("a new volume has %d VPUs per GB, want 20", got)
	}
	l.changeClaim("tuned", func(c *v1.PersistentVolumeClaim) { c.Spec.VolumeAttributesClassName = ptr.To("plain") })
	l.until("the claim has the other class", func() (bool, string) {
		status := l.getClaim("tuned").Status
		return ptr.Deref(status.CurrentVolumeAttributesClassName, "") == "plain", fmt.Sprintf("%+v; %s", status, l.Events(l.ctx, v1.NamespaceDefault, "tuned"))
	})
	if got := *l.cloudVolume(volume).VpusPerGB; got != 10 {
		l.t.Errorf("the changed volume has %d VPUs per GB, want 10", got)
	}
	l.release("tuned")
}

// group: a group snapshot of the claims with a label is a snapshot of each, and leaves no volume group behind.
func group(l *lab) {
	l.create(testbed.VolumeGroupSnapshotClasses, "together", map[string]any{"driver": testbed.BlockDriver, "deletionPolicy": "Delete"})
	var ids []string
	for _, name := range []string{"member-1", "member-2"} {
		l.claim(name, "at-once", "50Gi", func(c *v1.PersistentVolumeClaim) { c.Labels = map[string]string{"app": "group"} })
		ids = append(ids, l.bound(name).Spec.CSI.VolumeHandle)
	}
	l.create(testbed.VolumeGroupSnapshots, "group", map[string]any{"spec": map[string]any{
		"volumeGroupSnapshotClassName": "together",
		"source":                       map[string]any{"selector": map[string]any{"matchLabels": map[string]any{"app": "group"}}},
	}})
	l.ready(testbed.VolumeGroupSnapshots, "group")
	member := l.memberOf("group")
	l.ready(testbed.VolumeSnapshots, member)
	l.claim("from-member", "at-once", "50Gi", from("VolumeSnapshot", member))
	l.bound("from-member")
	l.release("from-member")
	for _, id := range ids {
		if list := l.backupsOf(id); len(list) != 1 || list[0].VolumeGroupBackupId == nil {
			l.t.Errorf("%d backups of %s, want one of a group", len(list), id)
		}
	}
	l.until("no volume group is left", func() (bool, string) {
		for _, g := range l.Region.VolumeGroups() {
			if g.LifecycleState != core.VolumeGroupLifecycleStateTerminated {
				return false, *g.DisplayName + " " + string(g.LifecycleState)
			}
		}
		return true, ""
	})
	l.removed(testbed.VolumeGroupSnapshots, "group")
	l.until("the backups are gone", func() (bool, string) {
		n := 0
		for _, id := range ids {
			n += len(l.backupsOf(id))
		}
		return n == 0, fmt.Sprint(n)
	})
	l.release("member-1")
	l.release("member-2")
}
