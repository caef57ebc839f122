// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package node_test

import (
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"
	cloudproviderapi "k8s.io/cloud-provider/api"
	"k8s.io/utils/ptr"

	"github.com/oracle/oci-cloud-controller-manager/test/testbed"
)

// moveLimit is how long a pod may take to run on another node, once somebody has said that its node is out of service.
const moveLimit = time.Minute

// testInstanceStopped: an instance is stopped under a running pod. Its node gets the taint of a node that is shut down, and nothing
// happens to the pod, whose node may still run. Once an administrator has vouched for that the node is out of service, the pod
// runs on another node with its data, and the volume was never attached twice. The node comes back later, and is as good as new.
func testInstanceStopped(l *lab) {
	l.claim("web-data", shippedClass, v1.PersistentVolumeFilesystem)
	l.deploy("web", "web-data")
	pod := l.podOf("web", "")
	l.write(pod, "file", "precious")
	home := slices.IndexFunc(l.machines, func(m *machine) bool { return m.name == pod.Spec.NodeName })
	m, volume := l.machines[home], l.volumeOf("web-data")

	if err := l.Region.Foreign().StopInstance(testbed.InstanceID(home)); err != nil {
		l.t.Fatal(err)
	}
	l.powerOff(m)
	l.until("taint of a node that is shut down", func() (bool, string) {
		node := l.node(m)
		return tainted(node, cloudproviderapi.TaintNodeShutdown), fmt.Sprint(node.Spec.Taints)
	})
	if on := l.attachedTo(volume); len(on) != 1 || on[0] != testbed.InstanceID(home) {
		l.t.Errorf("before anybody has said that the node is out of service, the volume is attached to %v", on)
	}

	begin := time.Now()
	l.editTaints(m, func(taints []v1.Taint) []v1.Taint {
		return append(taints, v1.Taint{Key: v1.TaintNodeOutOfService, Value: "nodeshutdown", Effect: v1.TaintEffectNoExecute})
	})
	moved := l.podOf("web", m.name)
	took := time.Since(begin)
	l.t.Logf("the pod runs on %s, %s after its node was said to be out of service", moved.Spec.NodeName, took.Round(100*time.Millisecond))
	if took > moveLimit {
		l.t.Errorf("that took longer than %s", moveLimit)
	}
	if got := l.read(moved, "file"); got != "precious" {
		l.t.Errorf("on the other node the file has %q", got)
	}
	if on := l.attachedTo(volume); len(on) != 1 || on[0] == testbed.InstanceID(home) {
		l.t.Errorf("the volume is attached to %v", on)
	}

	l.comeBack(m, home)
	l.undeploy("web")
	again := l.start(podSpec("home", m, claimed("web-data")))
	if got := l.read(again, "file"); got != "precious" {
		l.t.Errorf("back on the first node the file has %q", got)
	}
	l.remove("home")
	l.discard("web-data")
}

// comeBack starts an instance again, and waits until its node is as before.
func (l *lab) comeBack(m *machine, i int) {
	l.t.Helper()
	if err := l.Region.Foreign().StartInstance(testbed.InstanceID(i)); err != nil {
		l.t.Fatal(err)
	}
	l.powerOn(m)
	l.until(m.name+" is ready again", func() (bool, string) { l.alive(m.kubelet); return l.ready(m) })
	l.editTaints(m, func(taints []v1.Taint) []v1.Taint {
		return slices.DeleteFunc(taints, func(t v1.Taint) bool { return t.Key == v1.TaintNodeOutOfService })
	})
	l.until(m.name+" has no taints", func() (bool, string) {
		node := l.node(m)
		return len(node.Spec.Taints) == 0, fmt.Sprint(node.Spec.Taints)
	})
	l.driverReady(m)
}

func (l *lab) node(m *machine) *v1.Node {
	l.t.Helper()
	n, err := l.Cluster.Client().CoreV1().Nodes().Get(l.ctx, m.name, metav1.GetOptions{})
	if err != nil {
		l.t.Fatal(err)
	}
	return n
}

func tainted(n *v1.Node, key string) bool {
	return slices.ContainsFunc(n.Spec.Taints, func(t v1.Taint) bool { return t.Key == key })
}

func (l *lab) editTaints(m *machine, change func([]v1.Taint) []v1.Taint) {
	l.t.Helper()
	nodes := l.Cluster.Client().CoreV1().Nodes()
	err := retry.RetryOnConflict(retry.DefaultRetry, func() error {
		node, err := nodes.Get(l.ctx, m.name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		node.Spec.Taints = change(node.Spec.Taints)
		_, err = nodes.Update(l.ctx, node, metav1.UpdateOptions{})
		return err
	})
	if err != nil {
		l.t.Fatal(err)
	}
}

// deploy creates a Deployment of one pod with a volume.
func (l *lab) deploy(name, claim string) {
	l.t.Helper()
	labels := map[string]string{"app": name}
	_, err := l.Cluster.Client().AppsV1().Deployments(v1.NamespaceDefault).Create(l.ctx, &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: appsv1.DeploymentSpec{
			Replicas: ptr.To[int32](1), Selector: &metav1.LabelSelector{MatchLabels: labels},
			Strategy: appsv1.DeploymentStrategy{Type: appsv1.RecreateDeploymentStrategyType},
			Template: v1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: podSpec(name, nil, claimed(claim)).Spec},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		l.t.Fatal(err)
	}
}

func (l *lab) undeploy(name string) {
	l.t.Helper()
	foreground := metav1.DeletePropagationForeground
	err := l.Cluster.Client().AppsV1().Deployments(v1.NamespaceDefault).Delete(l.ctx, name, metav1.DeleteOptions{PropagationPolicy: &foreground})
	if err != nil {
		l.t.Fatal(err)
	}
	l.until("pods of "+name+" are gone", func() (bool, string) {
		pods := l.podsOf(name)
		return len(pods) == 0, fmt.Sprint(len(pods))
	})
}

func (l *lab) podsOf(deployment string) []v1.Pod {
	l.t.Helper()
	pods, err := l.Cluster.Client().CoreV1().Pods(v1.NamespaceDefault).List(l.ctx, metav1.ListOptions{LabelSelector: "app=" + deployment})
	if err != nil {
		l.t.Fatal(err)
	}
	return pods.Items
}

// podOf waits for a pod of a Deployment that is on another node than the one named, and answers.
func (l *lab) podOf(deployment, notOn string) *v1.Pod {
	l.t.Helper()
	var name string
	l.until("a pod of "+deployment, func() (bool, string) {
		seen := ""
		for _, p := range l.podsOf(deployment) {
			seen += fmt.Sprintf("%s on %q %s; ", p.Name, p.Spec.NodeName, p.Status.Phase)
			if p.DeletionTimestamp == nil && p.Spec.NodeName != "" && p.Spec.NodeName != notOn {
				name = p.Name
				return true, ""
			}
		}
		return false, seen
	})
	return l.running(name)
}
