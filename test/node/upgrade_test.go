// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package node_test

import (
	"fmt"
	"slices"
	"sync"
	"testing"

	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/oracle/oci-cloud-controller-manager/test/testbed"
)

// TestChangeOfManifests runs our images with the manifests of release v1.35, and then the shipped DaemonSet in place of the old one, and goes
// back, under a pod that uses its volume all the time. At first the driver is on the nodes before the cloud-controller-manager has
// labelled them (C087).
func TestChangeOfManifests(t *testing.T) {
	l := newNodes(t)
	l.startStorage(testbed.OldStorage)
	l.until("drivers run", func() (bool, string) {
		return l.driversRun(driverImage(t, testbed.OldStorage)), l.podsOn(l.machines[0]) + l.podsOn(l.machines[1])
	})
	l.neverWithoutTopology(l.runCCM)
	l.driversReady()
	l.claim("kept", shippedClass, v1.PersistentVolumeFilesystem)
	pod := l.start(podSpec("kept", l.machines[0], claimed("kept")))
	l.write(pod, "file", "0")
	for i, manifests := range []string{testbed.ShippedStorage, testbed.OldStorage} {
		l.roll(manifests)
		if got, want := l.read(pod, "file"), fmt.Sprint(i); got != want {
			t.Errorf("after the change to %s the file has %q, want %q", manifests, got, want)
		}
		if now := l.running("kept"); now.UID != pod.UID || now.Status.ContainerStatuses[0].RestartCount != 0 {
			t.Errorf("the pod did not run on during the change to %s", manifests)
		}
		l.write(pod, "file", fmt.Sprint(i+1))
		// What was staged under the other manifests is unstaged here, and the volume goes to the other node and comes back.
		for _, m := range []*machine{l.machines[1], l.machines[0]} {
			l.remove("kept")
			pod = l.start(podSpec("kept", m, claimed("kept")))
			if got, want := l.read(pod, "file"), fmt.Sprint(i+1); got != want {
				t.Errorf("on %s, with %s, the file has %q, want %q", m.name, manifests, got, want)
			}
		}
	}
	l.remove("kept")
	l.discard("kept")
	l.unused()
}

// roll changes the manifests of the node driver, and waits until the driver of all nodes runs with them.
func (l *lab) roll(manifests string) {
	l.t.Helper()
	l.applyDaemonSet(manifests)
	l.until("the DaemonSet is that of "+manifests, func() (bool, string) {
		d, err := l.Cluster.Client().AppsV1().DaemonSets(metav1.NamespaceSystem).Get(l.ctx, "csi-oci-node", metav1.GetOptions{})
		if err != nil {
			return false, err.Error()
		}
		s := d.Status
		// Of the old one, containers for services that this release does not have never run for long.
		return s.ObservedGeneration == d.Generation && s.UpdatedNumberScheduled == machines && s.CurrentNumberScheduled == machines &&
			l.driversRun(driverImage(l.t, manifests)), fmt.Sprintf("%+v", s)
	})
	l.driversReady()
}

// driverImage is the image of our container.
func driverImage(t *testing.T, manifests string) string {
	t.Helper()
	containers, _, err := unstructured.NestedSlice(daemonSet(t, manifests).Object, "spec", "template", "spec", "containers")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range containers {
		if c, ok := c.(map[string]any); ok && c["name"] == nodeDriver {
			return fmt.Sprint(c["image"])
		}
	}
	t.Fatalf("%s has no container %s", manifests, nodeDriver)
	return ""
}

// neverWithoutTopology watches the drivers of nodes while something happens: a node that had none for a moment would give its pods
// volumes of another availability domain.
func (l *lab) neverWithoutTopology(do func()) {
	l.t.Helper()
	w, err := l.Cluster.Client().StorageV1().CSINodes().Watch(l.ctx, metav1.ListOptions{})
	if err != nil {
		l.t.Fatal(err)
	}
	var watch sync.WaitGroup
	watch.Go(func() {
		for e := range w.ResultChan() {
			node, ok := e.Object.(*storagev1.CSINode)
			if !ok {
				continue
			}
			for _, d := range node.Spec.Drivers {
				if len(d.TopologyKeys) == 0 {
					l.t.Errorf("%s has the driver %s without topology", node.Name, d.Name)
				}
			}
		}
	})
	do()
	w.Stop()
	watch.Wait()
}

// driversRun says whether the driver runs on all nodes, and nowhere in an older pod.
func (l *lab) driversRun(image string) bool {
	pods, err := l.Cluster.Client().CoreV1().Pods(metav1.NamespaceSystem).List(l.ctx, metav1.ListOptions{LabelSelector: "app=csi-oci-node"})
	if err != nil || len(pods.Items) != machines {
		return false
	}
	for i := range pods.Items {
		p := &pods.Items[i]
		if p.DeletionTimestamp != nil || !slices.ContainsFunc(p.Spec.Containers, func(c v1.Container) bool { return c.Image == image }) {
			return false
		}
		for _, s := range p.Status.ContainerStatuses {
			if s.Name == nodeDriver && s.State.Running == nil {
				return false
			}
		}
	}
	return true
}
