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
