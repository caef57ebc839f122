// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package node_test

import (
	"fmt"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/oracle/oci-cloud-controller-manager/test/testbed"
)

// testReboot: a node crashes under a running pod and starts again. Nothing is mounted any more, what the driver and the kubelet have
// noted says otherwise, and the volume is attached as before. The same pod runs again, with its data (C104).
func testReboot(l *lab) {
	m := l.machines[0]
	l.claim("rebooted", shippedClass, v1.PersistentVolumeFilesystem)
	pod := l.start(podSpec("rebooted", m, claimed("rebooted")))
	l.write(pod, "file", "from before")
	volume := l.volumeOf("rebooted")

	l.powerOff(m)
	l.powerOn(m)
	l.until("the container of the pod is started again", func() (bool, string) {
		l.alive(m.kubelet)
		now, err := l.Cluster.Client().CoreV1().Pods(v1.NamespaceDefault).Get(l.ctx, "rebooted", metav1.GetOptions{})
		if err != nil {
			return false, err.Error()
		}
		s := now.Status.ContainerStatuses
		return len(s) == 1 && s[0].RestartCount > 0 && s[0].State.Running != nil,
			fmt.Sprintf("%+v; %s", s, l.Events(l.ctx, v1.NamespaceDefault, "rebooted"))
	})
	now := l.running("rebooted")
	if now.UID != pod.UID {
		l.t.Error("it is another pod")
	}
	if got := l.read(now, "file"); got != "from before" {
		l.t.Errorf("after the reboot the file has %q", got)
	}
	if on := l.attachedTo(volume); len(on) != 1 || on[0] != testbed.InstanceID(0) {
		l.t.Errorf("the volume is attached to %v", on)
	}
	l.remove("rebooted")
	l.discard("rebooted")
}
