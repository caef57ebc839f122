// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package node_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/oracle/oci-go-sdk/v65/core"
	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/oracle/oci-cloud-controller-manager/test/cluster"
	"github.com/oracle/oci-cloud-controller-manager/test/testbed"
)

// nodeDriver is the container of the DaemonSet that is ours, and the program in it.
const nodeDriver = "oci-csi-node-driver"

// startStorage starts the storage drivers as manifests define them: the controller and its sidecars as processes, the node driver
// as pods.
func (l *lab) startStorage(manifests string) {
	l.t.Helper()
	storage, err := l.StartStorage(l.ctx, testbed.StorageOptions{Manifests: manifests})
	if err != nil {
		l.t.Fatal(err)
	}
	l.t.Cleanup(func() {
		if err := storage.Err(); err != nil {
			l.t.Error(err)
		}
		storage.Stop()
	})
	l.applyDaemonSet(manifests)
	l.watchAttachments()
}

// driversReady waits until the kubelets know the driver.
func (l *lab) driversReady() {
	l.t.Helper()
	for _, m := range l.machines {
		l.driverReady(m)
	}
}

// daemonSet is that of the node driver in manifests, which are a directory or a pattern.
func daemonSet(t *testing.T, manifests string) *unstructured.Unstructured {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join("..", "..", manifests))
	if err != nil {
		t.Fatal(err)
	}
	objects, err := cluster.LoadManifests(paths...)
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(objects, func(o *unstructured.Unstructured) bool { return o.GetKind() == "DaemonSet" })
	if i < 0 {
		t.Fatalf("%s has no DaemonSet", manifests)
	}
	return objects[i]
}

// applyDaemonSet runs the node driver as manifests say.
func (l *lab) applyDaemonSet(manifests string) {
	l.t.Helper()
	if err := l.Cluster.ApplyObjects(l.ctx, daemonSet(l.t, manifests)); err != nil {
		l.t.Fatal(err)
	}
}

// driverImages are the images of the containers of the DaemonSets, the shipped one and that of release v1.35, whose image is ours,
// too: an upgrade changes the image only. It has the program, and nothing else.
func (l *lab) driverImages() []image {
	l.t.Helper()
	binary, err := testbed.Binary(l.ctx, nodeDriver)
	if err != nil {
		l.t.Fatal(err)
	}
	var containers []v1.Container
	for _, manifests := range []string{testbed.ShippedStorage, testbed.OldStorage} {
		var d appsv1.DaemonSet
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(daemonSet(l.t, manifests).Object, &d); err != nil {
			l.t.Fatal(err)
		}
		containers = append(containers, d.Spec.Template.Spec.Containers...)
	}
	var images []image
	for _, c := range containers {
		if slices.ContainsFunc(images, func(i image) bool { return i.name == c.Image }) {
			continue
		}
		if strings.Contains(c.Image, "node-driver-registrar") {
			program := filepath.Join(l.runtime, "registrar")
			images = append(images, image{name: c.Image, files: map[string]string{"/csi-node-driver-registrar": program}, entrypoint: []string{"/csi-node-driver-registrar"}})
			continue
		}
		images = append(images, image{name: c.Image, files: map[string]string{"/usr/local/bin/" + nodeDriver: binary}})
	}
	return images
}

// driverReady waits until the kubelet of a machine knows the driver.
func (l *lab) driverReady(m *machine) {
	l.t.Helper()
	l.until("driver on "+m.name, func() (bool, string) {
		l.alive(m.kubelet)
		node, err := l.Cluster.Client().StorageV1().CSINodes().Get(l.ctx, m.name, metav1.GetOptions{})
		if err != nil {
			return false, err.Error()
		}
		for _, d := range node.Spec.Drivers {
			if d.Name == testbed.BlockDriver {
				return d.NodeID == m.name && len(d.TopologyKeys) > 0, fmt.Sprintf("%+v", d)
			}
		}
		return false, "no driver; " + l.podsOn(m)
	})
}

// podsOn describes the system's pods on a machine.
func (l *lab) podsOn(m *machine) string {
	pods, err := l.Cluster.Client().CoreV1().Pods(metav1.NamespaceSystem).List(l.ctx, metav1.ListOptions{FieldSelector: "spec.nodeName=" + m.name})
	if err != nil {
		return err.Error()
	}
	var out []string
	for i := range pods.Items {
		p := &pods.Items[i]
		out = append(out, fmt.Sprintf("%s %s %s", p.Name, p.Status.Phase, l.Events(l.ctx, p.Namespace, p.Name)))
	}
	return strings.Join(out, "; ")
}

// claim creates a PersistentVolumeClaim.
func (l *lab) claim(name, class string, mode v1.PersistentVolumeMode) {
	l.t.Helper()
	_, err := l.Cluster.Client().CoreV1().PersistentVolumeClaims(v1.NamespaceDefault).Create(l.ctx, claimOf(name, class, mode), metav1.CreateOptions{})
	if err != nil {
		l.t.Fatal(err)
	}
}

func claimOf(name, class string, mode v1.PersistentVolumeMode) *v1.PersistentVolumeClaim {
	return &v1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: v1.PersistentVolumeClaimSpec{
			StorageClassName: &class, VolumeMode: &mode, AccessModes: []v1.PersistentVolumeAccessMode{v1.ReadWriteOnce},
			Resources: v1.VolumeResourceRequirements{Requests: gibibytes(50)},
		},
	}
}

// volumeOf is the OCID of the volume of a bound claim.
func (l *lab) volumeOf(claim string) string {
	l.t.Helper()
	pvc, err := l.Cluster.Client().CoreV1().PersistentVolumeClaims(v1.NamespaceDefault).Get(l.ctx, claim, metav1.GetOptions{})
	if err != nil {
		l.t.Fatal(err)
	}
	pv, err := l.Cluster.Client().CoreV1().PersistentVolumes().Get(l.ctx, pvc.Spec.VolumeName, metav1.GetOptions{})
	if err != nil {
		l.t.Fatal(err)
	}
	return pv.Spec.CSI.VolumeHandle
}

// discard deletes a claim, and waits until nothing of its volume is left: in the cloud, and on nodes.
func (l *lab) discard(claim string) {
	l.t.Helper()
	volume := l.volumeOf(claim)
	if err := l.Cluster.Client().CoreV1().PersistentVolumeClaims(v1.NamespaceDefault).Delete(l.ctx, claim, metav1.DeleteOptions{}); err != nil {
		l.t.Fatal(err)
	}
	l.until("volume of "+claim+" is gone", func() (bool, string) {
		for _, a := range l.attachments() {
			if *a.GetVolumeId() == volume && a.GetLifecycleState() != core.VolumeAttachmentLifecycleStateDetached {
				return false, fmt.Sprintf("attached to %s: %s", *a.GetInstanceId(), a.GetLifecycleState())
			}
		}
		v, there := l.Region.Volume(volume)
		return !there || v.LifecycleState == core.VolumeLifecycleStateTerminated, string(v.LifecycleState)
	})
}

// unused waits until no machine that is on has anything of the driver's volumes: no mounts, no devices, no records.
func (l *lab) unused() {
	l.t.Helper()
	l.until("nothing is left on the nodes", func() (bool, string) {
		for _, m := range l.machines {
			if m.init == nil {
				continue
			}
			if left := m.leftovers(); len(left) > 0 {
				return false, m.name + ": " + strings.Join(left, ", ")
			}
		}
		return true, ""
	})
}

// leftovers lists what a machine has of volumes.
func (m *machine) leftovers() []string {
	var left []string
	table, err := os.ReadFile(fmt.Sprintf("/proc/%d/mountinfo", m.pid))
	if err != nil {
		return []string{err.Error()}
	}
	for line := range strings.Lines(string(table)) {
		if fields := strings.Fields(line); len(fields) > 4 && isVolumePath(fields[4]) {
			left = append(left, fields[4])
		}
	}
	for _, pattern := range []string{
		"dev/oracleoci/*",
		"fs/var/lib/kubelet/plugins/kubernetes.io/csi/" + testbed.BlockDriver + "/*",
		"fs/var/lib/kubelet/plugins/" + testbed.BlockDriver + "/volumes/*",
		"fs/var/lib/kubelet/pods/*/volumes/kubernetes.io~csi/*",
	} {
		found, _ := filepath.Glob(filepath.Join(m.dir, pattern))
		left = append(left, found...)
	}
	return left
}

func isVolumePath(path string) bool {
	return strings.Contains(path, "/plugins/kubernetes.io/csi/") || strings.Contains(path, "/kubernetes.io~csi/") ||
		strings.Contains(path, "/volumeDevices/")
}
