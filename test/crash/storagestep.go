// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"

	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/oracle/oci-cloud-controller-manager/test/testbed"
)

const (
	class      = "crash"   // of all kinds
	smallSize  = "50Gi"    // of a volume
	largeSize  = "60Gi"    // after it was expanded
	fewVPUs    = 10        // per GB, of a volume
	manyVPUs   = 20        // after it was changed
	groupLabel = "example" // whose value is the name of the kill point
)

// makeClasses makes the classes of volumes and snapshots. All volumes are where the first node is.
func (m *storageMatrix) makeClasses(ctx context.Context) error {
	client := m.bed.Cluster.Client().StorageV1()
	_, err := client.StorageClasses().Create(ctx, &storagev1.StorageClass{
		ObjectMeta: metav1.ObjectMeta{Name: class}, Provisioner: testbed.BlockDriver,
		VolumeBindingMode: ptr.To(storagev1.VolumeBindingImmediate), AllowVolumeExpansion: ptr.To(true),
		AllowedTopologies: []v1.TopologySelectorTerm{{MatchLabelExpressions: []v1.TopologySelectorLabelRequirement{
			{Key: v1.LabelTopologyZone, Values: []string{testbed.Zone(0)}},
			{Key: v1.LabelFailureDomainBetaZone, Values: []string{testbed.Zone(0)}},
		}}},
	}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	_, err = client.VolumeAttributesClasses().Create(ctx, &storagev1.VolumeAttributesClass{
		ObjectMeta: metav1.ObjectMeta{Name: class}, DriverName: testbed.BlockDriver,
		Parameters: map[string]string{"vpusPerGB": fmt.Sprint(manyVPUs)},
	}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	for _, kind := range []schema.GroupVersionResource{testbed.VolumeSnapshotClasses, testbed.VolumeGroupSnapshotClasses} {
		if err := m.bed.CreateSnapshotObject(ctx, kind, class, map[string]any{"driver": testbed.BlockDriver, "deletionPolicy": "Delete"}); err != nil {
			return err
		}
	}
	return nil
}

// do takes a step. What is gone already need not be deleted.
func (m *storageMatrix) do(ctx context.Context, s step, name string) error {
	client := m.bed.Cluster.Client()
	var err error
	switch s {
	case createVolume:
		err = m.claim(ctx, name, nil)
	case cloneVolume:
		err = m.claim(ctx, copyOf(name), &v1.TypedLocalObjectReference{Kind: "PersistentVolumeClaim", Name: name})
	case restoreVolume:
		err = m.claim(ctx, copyOf(name), &v1.TypedLocalObjectReference{APIGroup: ptr.To(testbed.VolumeSnapshots.Group), Kind: "VolumeSnapshot", Name: name})
	case attachVolume:
		err = m.attach(ctx, name)
	case expandVolume:
		err = m.patch(ctx, name, fmt.Sprintf(`{"spec":{"resources":{"requests":{"storage":%q}}}}`, largeSize))
	case modifyVolume:
		err = m.patch(ctx, name, fmt.Sprintf(`{"spec":{"volumeAttributesClassName":%q}}`, class))
	case takeSnapshot:
		err = m.bed.CreateSnapshotObject(ctx, testbed.VolumeSnapshots, name, map[string]any{"spec": map[string]any{
			"volumeSnapshotClassName": class, "source": map[string]any{"persistentVolumeClaimName": name},
		}})
	case takeGroupSnapshot:
		err = m.bed.CreateSnapshotObject(ctx, testbed.VolumeGroupSnapshots, name, map[string]any{"spec": map[string]any{
			"volumeGroupSnapshotClassName": class,
			"source":                       map[string]any{"selector": map[string]any{"matchLabels": map[string]any{groupLabel: name}}},
		}})
	case detachVolume:
		err = client.StorageV1().VolumeAttachments().Delete(ctx, name, metav1.DeleteOptions{})
	case deleteSnapshot:
		err = m.bed.DeleteSnapshotObject(ctx, testbed.VolumeSnapshots, name)
	case deleteGroupSnapshot:
		err = m.bed.DeleteSnapshotObject(ctx, testbed.VolumeGroupSnapshots, name)
	case deleteClone:
		err = client.CoreV1().PersistentVolumeClaims(v1.NamespaceDefault).Delete(ctx, copyOf(name), metav1.DeleteOptions{})
	case deleteVolume:
		err = client.CoreV1().PersistentVolumeClaims(v1.NamespaceDefault).Delete(ctx, name, metav1.DeleteOptions{})
	}
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// copyOf names the clone or the restored volume.
func copyOf(name string) string { return name + "-copy" }

func (m *storageMatrix) claim(ctx context.Context, name string, source *v1.TypedLocalObjectReference) error {
	_, err := m.bed.Cluster.Client().CoreV1().PersistentVolumeClaims(v1.NamespaceDefault).Create(ctx, &v1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{groupLabel: name}},
		Spec: v1.PersistentVolumeClaimSpec{
			AccessModes: []v1.PersistentVolumeAccessMode{v1.ReadWriteOnce}, StorageClassName: ptr.To(class), DataSource: source,
			Resources: v1.VolumeResourceRequirements{Requests: v1.ResourceList{v1.ResourceStorage: resource.MustParse(smallSize)}},
		},
	}, metav1.CreateOptions{})
	return err
}

func (m *storageMatrix) patch(ctx context.Context, claim, patch string) error {
	_, err := m.bed.Cluster.Client().CoreV1().PersistentVolumeClaims(v1.NamespaceDefault).Patch(ctx, claim, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
	return err
}

func (m *storageMatrix) attach(ctx context.Context, name string) error {
	client := m.bed.Cluster.Client()
	c, err := client.CoreV1().PersistentVolumeClaims(v1.NamespaceDefault).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	_, err = client.StorageV1().VolumeAttachments().Create(ctx, &storagev1.VolumeAttachment{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: storagev1.VolumeAttachmentSpec{
			Attacher: testbed.BlockDriver, NodeName: testbed.NodeName(0),
			Source: storagev1.VolumeAttachmentSource{PersistentVolumeName: &c.Spec.VolumeName},
		},
	}, metav1.CreateOptions{})
	return err
}

// seen says what the objects of the API lack for a step to be through; "" means nothing.
func (m *storageMatrix) seen(ctx context.Context, s step, name string) (string, error) {
	switch s {
	case createVolume:
		return m.bound(ctx, name)
	case cloneVolume, restoreVolume:
		return m.bound(ctx, copyOf(name))
	case expandVolume, modifyVolume:
		return m.changed(ctx, s, name)
	case takeSnapshot:
		return m.ready(ctx, testbed.VolumeSnapshots, name)
	case takeGroupSnapshot:
		return m.ready(ctx, testbed.VolumeGroupSnapshots, name)
	case deleteSnapshot:
		return m.gone(ctx, testbed.VolumeSnapshots, name)
	case deleteGroupSnapshot:
		return m.gone(ctx, testbed.VolumeGroupSnapshots, name)
	case deleteClone:
		return m.released(ctx, copyOf(name))
	case deleteVolume:
		return m.released(ctx, name)
	default: // attachments are compared with the region as a whole
		return "", nil
	}
}

func (m *storageMatrix) bound(ctx context.Context, claim string) (string, error) {
	c, err := m.bed.Cluster.Client().CoreV1().PersistentVolumeClaims(v1.NamespaceDefault).Get(ctx, claim, metav1.GetOptions{})
	if err != nil || c.Status.Phase == v1.ClaimBound {
		return "", err
	}
	return fmt.Sprintf("claim %s is %s; %s", claim, c.Status.Phase, m.bed.Events(ctx, v1.NamespaceDefault, claim)), nil
}

// changed compares the volume of a claim in the API, and in the region, with what was asked for.
func (m *storageMatrix) changed(ctx context.Context, s step, claim string) (string, error) {
	client := m.bed.Cluster.Client().CoreV1()
	c, err := client.PersistentVolumeClaims(v1.NamespaceDefault).Get(ctx, claim, metav1.GetOptions{})
	if err != nil {
		return "", err
	}
	volume, err := client.PersistentVolumes().Get(ctx, c.Spec.VolumeName, metav1.GetOptions{})
	if err != nil {
		return "", err
	}
	cloud, _ := m.bed.Region.Volume(volume.Spec.CSI.VolumeHandle)
	size, vpus := volume.Spec.Capacity[v1.ResourceStorage], int64(0)
	if cloud.VpusPerGB != nil {
		vpus = *cloud.VpusPerGB
	}
	switch {
	case s == expandVolume && size.String() != largeSize:
		return fmt.Sprintf("the volume has %s", size.String()), nil
	case s == modifyVolume && (vpus != manyVPUs || ptr.Deref(c.Status.CurrentVolumeAttributesClassName, "") != class):
		return fmt.Sprintf("the volume has %d VPUs per GB, its claim %+v", vpus, c.Status), nil
	}
	return "", nil
}

func (m *storageMatrix) ready(ctx context.Context, kind schema.GroupVersionResource, name string) (string, error) {
	o, err := m.bed.SnapshotObject(ctx, kind, name)
	if err != nil {
		return "", err
	}
	if ready, _, _ := unstructured.NestedBool(o.Object, "status", "readyToUse"); !ready {
		return fmt.Sprintf("%s %s: %v; %s", kind.Resource, name, o.Object["status"], m.bed.Events(ctx, v1.NamespaceDefault, name)), nil
	}
	return "", nil
}

func (m *storageMatrix) gone(ctx context.Context, kind schema.GroupVersionResource, name string) (string, error) {
	o, err := m.bed.SnapshotObject(ctx, kind, name)
	if apierrors.IsNotFound(err) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("%s %s is still there: %v", kind.Resource, name, o.Object["status"]), nil
}

// released says whether a claim is gone; Unjustified looks at what else has to be.
func (m *storageMatrix) released(ctx context.Context, claim string) (string, error) {
	_, err := m.bed.Cluster.Client().CoreV1().PersistentVolumeClaims(v1.NamespaceDefault).Get(ctx, claim, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return m.volumeLeft(ctx, claim)
	}
	return "claim " + claim + " is still there", err
}

// volumeLeft names a volume of a claim that is gone.
func (m *storageMatrix) volumeLeft(ctx context.Context, claim string) (string, error) {
	list, err := m.bed.Cluster.Client().CoreV1().PersistentVolumes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return "", err
	}
	for i := range list.Items {
		if ref := list.Items[i].Spec.ClaimRef; ref != nil && ref.Name == claim {
			return fmt.Sprintf("volume %s of %s is still there: %s", list.Items[i].Name, claim, m.bed.Events(ctx, v1.NamespaceDefault, list.Items[i].Name)), nil
		}
	}
	return "", nil
}
