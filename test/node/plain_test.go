// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package node_test

import (
	"testing"

	v1 "k8s.io/api/core/v1"
)

// TestPods makes sure that nodes run pods at all, without any driver.
func TestPods(t *testing.T) {
	l := newLab(t)
	for _, m := range l.machines {
		pod := l.start(podSpec("plain-"+m.name, m, v1.VolumeSource{EmptyDir: &v1.EmptyDirVolumeSource{}}))
		l.write(pod, "file", "text")
		if got := l.read(pod, "file"); got != "text" {
			t.Errorf("read %q", got)
		}
		l.remove(pod.Name)
	}
}
