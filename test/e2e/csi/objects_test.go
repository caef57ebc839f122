// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package csi_test

import (
	"fmt"

	"github.com/oracle/oci-go-sdk/v65/core"
	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"
	"k8s.io/utils/ptr"

	"github.com/oracle/oci-cloud-controller-manager/test/testbed"
)

// shipped is the default class of the manifests.
const shipped = "oci-bv"

// class makes a StorageClass of this driver that binds at once; with zones, only there.
func (l *lab) class(name string, parameters map[string]string, zones ...string) {
	l.t.Helper()
	c := &storagev1.StorageClass{
		ObjectMeta: metav1.ObjectMeta{Name: name}, Provisioner: testbed.BlockDriver, Parameters: parameters,
		VolumeBindingMode: ptr.To(storagev1.VolumeBindingImmediate), AllowVolumeExpansion: ptr.To(true),
	}
	if len(zones) > 0 {
		c.AllowedTopologies = []v1.TopologySelectorTerm{{MatchLabelExpressions: []v1.TopologySelectorLabelRequirement{
			{Key: v1.LabelTopologyZone, Values: zones}, {Key: v1.LabelFailureDomainBetaZone, Values: zones},
		}}}
	}
	_, err := l.Cluster.Client().StorageV1().StorageClasses().Create(l.ctx, c, metav1.CreateOptions{})
	l.must(err)
}

// claim makes a claim.
func (l *lab) claim(name, class, size string, change func(*v1.PersistentVolumeClaim)) *v1.PersistentVolumeClaim {
	l.t.Helper()
	c := &v1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: v1.NamespaceDefault},
		Spec: v1.PersistentVolumeClaimSpec{
			AccessModes: []v1.PersistentVolumeAccessMode{v1.ReadWriteOnce}, StorageClassName: &class,
			Resources: v1.VolumeResourceRequirements{Requests: v1.ResourceList{v1.ResourceStorage: resource.MustParse(size)}},
		},
	}
	if change != nil {
		change(c)
	}
	c, err := l.Cluster.Client().CoreV1().PersistentVolumeClaims(c.Namespace).Create(l.ctx, c, metav1.CreateOptions{})
	l.must(err)
	return c
}

func (l *lab) getClaim(name string) *v1.PersistentVolumeClaim {
	l.t.Helper()
	c, err := l.Cluster.Client().CoreV1().PersistentVolumeClaims(v1.NamespaceDefault).Get(l.ctx, name, metav1.GetOptions{})
	l.must(err)
	return c
}

func (l *lab) changeClaim(name string, change func(*v1.PersistentVolumeClaim)) {
	l.t.Helper()
	claims := l.Cluster.Client().CoreV1().PersistentVolumeClaims(v1.NamespaceDefault)
	l.must(retry.RetryOnConflict(retry.DefaultRetry, func() error {
		c, err := claims.Get(l.ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		change(c)
		_, err = claims.Update(l.ctx, c, metav1.UpdateOptions{})
		return err
	}))
}

// grow asks for another size.
func (l *lab) grow(name, size string) {
	l.t.Helper()
	l.changeClaim(name, func(c *v1.PersistentVolumeClaim) {
		c.Spec.Resources.Requests[v1.ResourceStorage] = resource.MustParse(size)
	})
}

// bound waits until a claim is bound, and returns its volume in the API.
func (l *lab) bound(claim string) *v1.PersistentVolume {
	l.t.Helper()
	var volume string
	l.until(claim+" is bound", func() (bool, string) {
		c := l.getClaim(claim)
		volume = c.Spec.VolumeName
		return c.Status.Phase == v1.ClaimBound, string(c.Status.Phase) + "; " + l.Events(l.ctx, v1.NamespaceDefault, claim)
	})
	return l.volume(volume)
}

func (l *lab) volume(name string) *v1.PersistentVolume {
	l.t.Helper()
	v, err := l.Cluster.Client().CoreV1().PersistentVolumes().Get(l.ctx, name, metav1.GetOptions{})
	l.must(err)
	return v
}

// cloudVolume is the volume in the region.
func (l *lab) cloudVolume(v *v1.PersistentVolume) *core.Volume {
	l.t.Helper()
	c, found := l.Region.Volume(v.Spec.CSI.VolumeHandle)
	if !found {
		l.t.Fatalf("the region has no volume %s of %s", v.Spec.CSI.VolumeHandle, v.Name)
	}
	return &c
}

// named are the volumes of the region with a display name, terminated ones not.
func (l *lab) named(name string) []core.Volume {
	var list []core.Volume
	for _, v := range l.Region.Volumes() {
		if *v.DisplayName == name && v.LifecycleState != core.VolumeLifecycleStateTerminated {
			list = append(list, v)
		}
	}
	return list
}

// capacity of a volume in the API, as text.
func (l *lab) capacity(volume string) string {
	l.t.Helper()
	size := l.volume(volume).Spec.Capacity[v1.ResourceStorage]
	return size.String()
}

// release deletes a claim and waits until its volume is gone from the API; a volume of the region goes with it.
func (l *lab) release(claim string) {
	l.t.Helper()
	volume := l.getClaim(claim).Spec.VolumeName
	l.deleteClaim(claim)
	l.until("volume "+volume+" of "+claim+" is gone", func() (bool, string) {
		v, err := l.Cluster.Client().CoreV1().PersistentVolumes().Get(l.ctx, volume, metav1.GetOptions{})
		if err != nil {
			return apierrors.IsNotFound(err), err.Error()
		}
		return false, string(v.Status.Phase) + "; " + l.Events(l.ctx, v1.NamespaceDefault, volume)
	})
}

func (l *lab) deleteClaim(name string) {
	l.t.Helper()
	l.must(l.Cluster.Client().CoreV1().PersistentVolumeClaims(v1.NamespaceDefault).Delete(l.ctx, name, metav1.DeleteOptions{}))
}

// pod makes a pod with claims as volumes. On a simulated node it never runs, but it is scheduled, and its volumes are attached.
func (l *lab) pod(name string, claims ...string) {
	l.t.Helper()
	p := &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: v1.PodSpec{
			Containers:                    []v1.Container{{Name: "main", Image: "registry.example/nothing"}},
			TerminationGracePeriodSeconds: ptr.To[int64](0),
		},
	}
	for _, c := range claims {
		p.Spec.Volumes = append(p.Spec.Volumes, v1.Volume{Name: c, VolumeSource: v1.VolumeSource{
			PersistentVolumeClaim: &v1.PersistentVolumeClaimVolumeSource{ClaimName: c},
		}})
	}
	_, err := l.Cluster.Client().CoreV1().Pods(v1.NamespaceDefault).Create(l.ctx, p, metav1.CreateOptions{})
	l.must(err)
}

// scheduled waits until a pod has a node.
func (l *lab) scheduled(pod string) string {
	l.t.Helper()
	node := ""
	l.until(pod+" is scheduled", func() (bool, string) {
		p, err := l.Cluster.Client().CoreV1().Pods(v1.NamespaceDefault).Get(l.ctx, pod, metav1.GetOptions{})
		if err != nil {
			return false, err.Error()
		}
		node = p.Spec.NodeName
		return node != "", fmt.Sprintf("%+v", p.Status.Conditions)
	})
	return node
}

// podGone deletes a pod at once, since nothing runs.
func (l *lab) podGone(name string) {
	l.t.Helper()
	l.must(l.Cluster.Client().CoreV1().Pods(v1.NamespaceDefault).Delete(l.ctx, name, metav1.DeleteOptions{GracePeriodSeconds: ptr.To[int64](0)}))
}

// attachmentOf waits for the VolumeAttachment of a volume to a node, which the attach-detach controller makes.
func (l *lab) attachmentOf(volume, node string) *storagev1.VolumeAttachment {
	l.t.Helper()
	name := ""
	l.until("there is a VolumeAttachment of "+volume, func() (bool, string) {
		list, err := l.Cluster.Client().StorageV1().VolumeAttachments().List(l.ctx, metav1.ListOptions{})
		if err != nil {
			return false, err.Error()
		}
		for i := range list.Items {
			a := &list.Items[i].Spec
			if a.NodeName == node && a.Source.PersistentVolumeName != nil && *a.Source.PersistentVolumeName == volume {
				name = list.Items[i].Name
			}
		}
		return name != "", fmt.Sprintf("%d others", len(list.Items))
	})
	return l.attached(name)
}

// attributes makes a VolumeAttributesClass.
func (l *lab) attributes(name string, parameters map[string]string) {
	l.t.Helper()
	_, err := l.Cluster.Client().StorageV1().VolumeAttributesClasses().Create(l.ctx, &storagev1.VolumeAttributesClass{
		ObjectMeta: metav1.ObjectMeta{Name: name}, DriverName: testbed.BlockDriver, Parameters: parameters,
	}, metav1.CreateOptions{})
	l.must(err)
}
