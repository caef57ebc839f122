// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package testbed

import (
	"context"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
)

// The snapshot APIs, which client-go does not know.
var (
	VolumeSnapshots             = schema.GroupVersionResource{Group: "snapshot.storage.k8s.io", Version: "v1", Resource: "volumesnapshots"}
	VolumeSnapshotContents      = schema.GroupVersionResource{Group: "snapshot.storage.k8s.io", Version: "v1", Resource: "volumesnapshotcontents"}
	VolumeSnapshotClasses       = schema.GroupVersionResource{Group: "snapshot.storage.k8s.io", Version: "v1", Resource: "volumesnapshotclasses"}
	VolumeGroupSnapshots        = schema.GroupVersionResource{Group: "groupsnapshot.storage.k8s.io", Version: "v1", Resource: "volumegroupsnapshots"}
	VolumeGroupSnapshotContents = schema.GroupVersionResource{Group: "groupsnapshot.storage.k8s.io", Version: "v1", Resource: "volumegroupsnapshotcontents"}
	VolumeGroupSnapshotClasses  = schema.GroupVersionResource{Group: "groupsnapshot.storage.k8s.io", Version: "v1", Resource: "volumegroupsnapshotclasses"}
)

// Dynamic is a client for what client-go does not know, with the rights of an administrator.
func (b *Bed) Dynamic() (dynamic.Interface, error) { return dynamic.NewForConfig(b.Cluster.Config()) }

// kindOf names the kind of what CreateSnapshotObject makes.
func kindOf(r schema.GroupVersionResource) string {
	return map[string]string{
		"volumesnapshots": "VolumeSnapshot", "volumegroupsnapshots": "VolumeGroupSnapshot",
		"volumesnapshotclasses": "VolumeSnapshotClass", "volumegroupsnapshotclasses": "VolumeGroupSnapshotClass",
	}[r.Resource]
}

// snapshotObjects are those of a kind; snapshots themselves are in the namespace "default".
func (b *Bed) snapshotObjects(kind schema.GroupVersionResource) (dynamic.ResourceInterface, error) {
	client, err := b.Dynamic()
	if err != nil {
		return nil, err
	}
	if kind == VolumeSnapshots || kind == VolumeGroupSnapshots {
		return client.Resource(kind).Namespace(metav1.NamespaceDefault), nil
	}
	return client.Resource(kind), nil
}

// CreateSnapshotObject makes a snapshot, a group snapshot or a class of them of its fields.
func (b *Bed) CreateSnapshotObject(ctx context.Context, kind schema.GroupVersionResource, name string, fields map[string]any) error {
	objects, err := b.snapshotObjects(kind)
	if err != nil {
		return err
	}
	o := &unstructured.Unstructured{Object: fields}
	o.SetAPIVersion(kind.GroupVersion().String())
	o.SetKind(kindOf(kind))
	o.SetName(name)
	_, err = objects.Create(ctx, o, metav1.CreateOptions{})
	return err
}

// SnapshotObject reads an object of the snapshot APIs.
func (b *Bed) SnapshotObject(ctx context.Context, kind schema.GroupVersionResource, name string) (*unstructured.Unstructured, error) {
	objects, err := b.snapshotObjects(kind)
	if err != nil {
		return nil, err
	}
	return objects.Get(ctx, name, metav1.GetOptions{})
}

// SnapshotObjects reads all objects of a kind.
func (b *Bed) SnapshotObjects(ctx context.Context, kind schema.GroupVersionResource) ([]unstructured.Unstructured, error) {
	objects, err := b.snapshotObjects(kind)
	if err != nil {
		return nil, err
	}
	list, err := objects.List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	return list.Items, nil
}

// DeleteSnapshotObject deletes one.
func (b *Bed) DeleteSnapshotObject(ctx context.Context, kind schema.GroupVersionResource, name string) error {
	objects, err := b.snapshotObjects(kind)
	if err != nil {
		return err
	}
	return objects.Delete(ctx, name, metav1.DeleteOptions{})
}

// snapshotOwners are the names under which snapshots and group snapshots were asked for, and the handles of all snapshots.
func (b *Bed) snapshotOwners(ctx context.Context) ([]string, error) {
	client, err := b.Dynamic()
	if err != nil {
		return nil, err
	}
	contents, err := client.Resource(VolumeSnapshotContents).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	var names []string
	for i := range contents.Items {
		names = append(names, "snapshot-"+field(&contents.Items[i], "spec", "volumeSnapshotRef", "uid"))
		for _, at := range [][]string{{"spec", "source", "snapshotHandle"}, {"status", "snapshotHandle"}} {
			if handle := field(&contents.Items[i], at...); handle != "" {
				names = append(names, handle)
			}
		}
	}
	groups, err := client.Resource(VolumeGroupSnapshotContents).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	for i := range groups.Items {
		name := "groupsnapshot-" + field(&groups.Items[i], "spec", "volumeGroupSnapshotRef", "uid")
		names = append(names, name)
		for zone := range 3 { // the part of each availability domain, if the volumes are in several
			names = append(names, name+"-"+strings.ToLower(Zone(zone)))
		}
	}
	return names, nil
}

// field is a text in an object; "" where there is none.
func field(o *unstructured.Unstructured, path ...string) string {
	text, _, _ := unstructured.NestedString(o.Object, path...)
	return text
}
