// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package csi_test

import (
	"fmt"
	"slices"

	"github.com/oracle/oci-go-sdk/v65/core"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"

	"github.com/oracle/oci-cloud-controller-manager/test/testbed"
)

func (l *lab) create(kind schema.GroupVersionResource, name string, fields map[string]any) {
	l.t.Helper()
	l.must(l.CreateSnapshotObject(l.ctx, kind, name, fields))
}

// snapshotClass makes a VolumeSnapshotClass.
func (l *lab) snapshotClass(name string, parameters map[string]any) {
	l.t.Helper()
	l.create(testbed.VolumeSnapshotClasses, name, map[string]any{
		"driver": testbed.BlockDriver, "deletionPolicy": "Delete", "parameters": parameters,
	})
}

// snapshot asks for a snapshot of a claim.
func (l *lab) snapshot(name, class, claim string) {
	l.t.Helper()
	l.create(testbed.VolumeSnapshots, name, map[string]any{"spec": map[string]any{
		"volumeSnapshotClassName": class, "source": map[string]any{"persistentVolumeClaimName": claim},
	}})
}

// object reads one; nil means that it is not there.
func (l *lab) object(kind schema.GroupVersionResource, name string) *unstructured.Unstructured {
	l.t.Helper()
	o, err := l.SnapshotObject(l.ctx, kind, name)
	if apierrors.IsNotFound(err) {
		return nil
	}
	l.must(err)
	return o
}

// ready waits until a snapshot or group snapshot is ready to use.
func (l *lab) ready(kind schema.GroupVersionResource, name string) *unstructured.Unstructured {
	l.t.Helper()
	var o *unstructured.Unstructured
	l.until(name+" is ready to use", func() (bool, string) {
		if o = l.object(kind, name); o == nil {
			return false, "it does not exist"
		}
		ready, _, _ := unstructured.NestedBool(o.Object, "status", "readyToUse")
		return ready, fmt.Sprintf("%v; %s", o.Object["status"], l.Events(l.ctx, v1.NamespaceDefault, name))
	})
	return o
}

// memberOf is the name of a snapshot of a group.
func (l *lab) memberOf(group string) string {
	l.t.Helper()
	var member string
	l.until(group+" has members", func() (bool, string) {
		list, err := l.SnapshotObjects(l.ctx, testbed.VolumeSnapshots)
		if err != nil {
			return false, err.Error()
		}
		for i := range list {
			if of, _, _ := unstructured.NestedString(list[i].Object, "status", "volumeGroupSnapshotName"); of == group {
				member = list[i].GetName()
			}
		}
		return member != "", fmt.Sprintf("%d snapshots", len(list))
	})
	return member
}

// removed deletes an object and waits until it is gone.
func (l *lab) removed(kind schema.GroupVersionResource, name string) {
	l.t.Helper()
	l.must(l.DeleteSnapshotObject(l.ctx, kind, name))
	l.until(name+" is gone", func() (bool, string) {
		o := l.object(kind, name)
		if o == nil {
			return true, ""
		}
		return false, fmt.Sprintf("%v; %s", o.Object["status"], l.Events(l.ctx, v1.NamespaceDefault, name))
	})
}

// handleOf is the OCID of the backup of a snapshot; "" as long as there is none.
func (l *lab) handleOf(snapshot string) string {
	l.t.Helper()
	o := l.object(testbed.VolumeSnapshots, snapshot)
	if o == nil {
		return ""
	}
	content, _, _ := unstructured.NestedString(o.Object, "status", "boundVolumeSnapshotContentName")
	if content == "" {
		return ""
	}
	c, err := l.SnapshotObject(l.ctx, testbed.VolumeSnapshotContents, content)
	if apierrors.IsNotFound(err) {
		return ""
	}
	l.must(err)
	handle, _, _ := unstructured.NestedString(c.Object, "status", "snapshotHandle")
	return handle
}

// backupsOf are the backups of a volume that are there.
func (l *lab) backupsOf(volume string) []core.VolumeBackup {
	return slices.DeleteFunc(l.Region.VolumeBackups(), func(b core.VolumeBackup) bool {
		return *b.VolumeId != volume || b.LifecycleState == core.VolumeBackupLifecycleStateTerminated ||
			b.LifecycleState == core.VolumeBackupLifecycleStateTerminating
	})
}

// from lets a claim have the content of a snapshot or of another claim.
func from(kind, name string) func(*v1.PersistentVolumeClaim) {
	return func(c *v1.PersistentVolumeClaim) {
		c.Spec.DataSource = &v1.TypedLocalObjectReference{Kind: kind, Name: name}
		if kind == "VolumeSnapshot" {
			c.Spec.DataSource.APIGroup = ptr.To(testbed.VolumeSnapshots.Group)
		}
	}
}
