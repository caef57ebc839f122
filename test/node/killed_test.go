// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package node_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/oracle/oci-cloud-controller-manager/test/testbed"
)

// pauses are how long after something has begun the kill comes. Staging takes some 100 ms on an idle machine. Kills after each
// single command of the driver are tested elsewhere (pkg/host); here it is about the kubelet and the driver together.
func pauses() []time.Duration {
	return []time.Duration{0, 60 * time.Millisecond, 200 * time.Millisecond}
}

// killDriver kills the process of the driver on a machine; its container starts again.
func (l *lab) killDriver(m *machine) {
	l.t.Helper()
	processes, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		l.t.Fatal(err)
	}
	for _, path := range processes {
		cmdline, _ := os.ReadFile(path)
		program, _, _ := strings.Cut(string(cmdline), "\x00")
		groups, _ := os.ReadFile(filepath.Join(filepath.Dir(path), "cgroup"))
		if filepath.Base(program) != nodeDriver || !strings.Contains(string(groups), "/"+suite+"/"+m.name+"/") {
			continue
		}
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(path)))
		if err != nil {
			l.t.Fatal(err)
		}
		if err := syscall.Kill(pid, syscall.SIGKILL); err == nil {
			return
		}
	}
	// A driver that is just being started again is dead enough.
	l.t.Logf("no driver runs on %s", m.name)
}

// killBoth kills the driver and the kubelet of a machine, and starts the kubelet again.
func (l *lab) killBoth(m *machine) {
	l.t.Helper()
	m.kubelet.Kill()
	l.killDriver(m)
	l.startKubelet(m)
}

// testKilledAtStart: kubelet and node driver are killed while a volume is staged and published (C104).
func testKilledAtStart(l *lab) {
	m := l.machines[0]
	for i, pause := range pauses() {
		name := fmt.Sprintf("starting-%d", i)
		l.claim(name, shippedClass, v1.PersistentVolumeFilesystem)
		l.create(podSpec(name, m, claimed(name)))
		l.until("disk of "+name, func() (bool, string) {
			disks, _ := filepath.Glob(filepath.Join(m.dir, "dev/oracleoci/*"))
			return len(disks) > i, fmt.Sprint(disks)
		})
		time.Sleep(pause)
		l.killBoth(m)
		pod := l.running(name)
		l.write(pod, "file", name)
	}
	for i := range pauses() {
		name := fmt.Sprintf("starting-%d", i)
		pod := l.running(name)
		if got := l.read(pod, "file"); got != name {
			l.t.Errorf("%s has %q", name, got)
		}
		if pod.Status.ContainerStatuses[0].RestartCount != 0 {
			l.t.Errorf("%s was started again", name)
		}
	}
	for i := range pauses() {
		l.remove(fmt.Sprintf("starting-%d", i))
		l.discard(fmt.Sprintf("starting-%d", i))
	}
}

// testKilledAtEnd: the same while a volume is unpublished and unstaged. The data is there on the other node (C104).
func testKilledAtEnd(l *lab) {
	m := l.machines[0]
	l.claim("ending", shippedClass, v1.PersistentVolumeFilesystem)
	for i, pause := range pauses() {
		text := fmt.Sprintf("round %d", i)
		pod := l.start(podSpec("ending", m, claimed("ending")))
		l.write(pod, "file", text)
		if err := l.Cluster.Client().CoreV1().Pods(v1.NamespaceDefault).Delete(l.ctx, "ending", metav1.DeleteOptions{}); err != nil {
			l.t.Fatal(err)
		}
		l.until("the container has ended", func() (bool, string) {
			_, err := l.call(pod, "GET", "/mode"+query("path", "/"), "")
			return err != nil, "it runs"
		})
		time.Sleep(pause)
		l.killBoth(m)
		l.remove("ending")
		pod = l.start(podSpec("ending", l.machines[1], claimed("ending")))
		if got := l.read(pod, "file"); got != text {
			l.t.Errorf("after %s the file has %q", text, got)
		}
		if on := l.attachedTo(l.volumeOf("ending")); len(on) != 1 || on[0] != testbed.InstanceID(1) {
			l.t.Errorf("the volume is attached to %v", on)
		}
		l.remove("ending")
	}
	l.discard("ending")
}
