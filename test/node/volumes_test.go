// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package node_test

import (
	"net/http"
	"strconv"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/oracle/oci-cloud-controller-manager/test/testbed"
)

const (
	// shippedClass is the default StorageClass of the manifests.
	shippedClass = "oci-bv"
	// xfsClass is like it, but for the file system.
	xfsClass = "xfs"
	gibibyte = int64(1) << 30
)

func gibibytes(n int64) v1.ResourceList {
	return v1.ResourceList{v1.ResourceStorage: *resource.NewQuantity(n*gibibyte, resource.BinarySI)}
}

// TestPodsWithVolumes runs pods with volumes on real kubelets.
func TestPodsWithVolumes(t *testing.T) {
	l := newLab(t)
	l.startStorage(testbed.ShippedStorage)
	l.driversReady()
	l.addXFSClass()
	t.Run("peace", func(t *testing.T) {
		for name, test := range map[string]func(*lab){
			"another node": testAnotherNode, "growth": testGrowth, "raw block": testRawBlock, "fsGroup": testFSGroup, "encrypted class": testEncryptedClass,
			"clone": testClone,
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				test(l.with(t))
			})
		}
	})
	l.unused()
	t.Run("killed while a pod starts", func(t *testing.T) { testKilledAtStart(l.with(t)) })
	t.Run("killed while a pod ends", func(t *testing.T) { testKilledAtEnd(l.with(t)) })
	t.Run("reboot", func(t *testing.T) { testReboot(l.with(t)) })
	l.unused()
	t.Run("instance stopped", func(t *testing.T) { testInstanceStopped(l.with(t)) })
	l.unused()
	if errs := l.Region.BodyErrors(); len(errs) > 0 {
		t.Errorf("disks: %v", errs)
	}
}

// with is the lab for a subtest.
func (l *lab) with(t *testing.T) *lab {
	own := *l
	own.t = t
	return &own
}

// addXFSClass makes a class of volumes whose file system grows online in a container, too.
func (l *lab) addXFSClass() {
	l.t.Helper()
	classes := l.Cluster.Client().StorageV1().StorageClasses()
	class, err := classes.Get(l.ctx, shippedClass, metav1.GetOptions{})
	if err != nil {
		l.t.Fatal(err)
	}
	class.ObjectMeta = metav1.ObjectMeta{Name: xfsClass}
	class.Parameters = map[string]string{"csi.storage.k8s.io/fstype": "xfs"}
	if _, err := classes.Create(l.ctx, class, metav1.CreateOptions{}); err != nil {
		l.t.Fatal(err)
	}
}

// testAnotherNode: the data of a pod that is deleted is there when it comes up on another node.
func testAnotherNode(l *lab) {
	l.claim("moving", shippedClass, v1.PersistentVolumeFilesystem)
	pod := l.start(podSpec("moving", l.machines[0], claimed("moving")))
	l.write(pod, "file", "written on the first node")
	volume := l.volumeOf("moving")
	l.remove("moving")

	pod = l.start(podSpec("moving", l.machines[1], claimed("moving")))
	if got := l.read(pod, "file"); got != "written on the first node" {
		l.t.Errorf("on the second node the file has %q", got)
	}
	l.write(pod, "file", "written on the second node")
	if on := l.attachedTo(volume); len(on) != 1 || on[0] != testbed.InstanceID(1) {
		l.t.Errorf("the volume is attached to %v", on)
	}
	l.remove("moving")

	pod = l.start(podSpec("moving", l.machines[0], claimed("moving")))
	if got := l.read(pod, "file"); got != "written on the second node" {
		l.t.Errorf("back on the first node the file has %q", got)
	}
	l.remove("moving")
	l.discard("moving")
}

// testEncryptedClass: the other shipped class.
func testEncryptedClass(l *lab) {
	l.claim("encrypted", "oci-bv-encrypted", v1.PersistentVolumeFilesystem)
	pod := l.start(podSpec("encrypted", l.machines[1], claimed("encrypted")))
	l.write(pod, "file", "text")
	l.remove("encrypted")
	l.discard("encrypted")
}

// testGrowth: a file system grows while a pod uses it (C082).
func testGrowth(l *lab) {
	l.claim("growing", xfsClass, v1.PersistentVolumeFilesystem)
	pod := l.start(podSpec("growing", l.machines[0], claimed("growing")))
	l.write(pod, "file", "from before")
	if got := l.size(pod); got < 48*gibibyte || got > 50*gibibyte {
		l.t.Fatalf("the file system has %d bytes before it grows", got)
	}
	patch := `{"spec":{"resources":{"requests":{"storage":"70Gi"}}}}`
	claims := l.Cluster.Client().CoreV1().PersistentVolumeClaims(v1.NamespaceDefault)
	if _, err := claims.Patch(l.ctx, "growing", types.MergePatchType, []byte(patch), metav1.PatchOptions{}); err != nil {
		l.t.Fatal(err)
	}
	l.until("the file system has grown", func() (bool, string) {
		pvc, err := claims.Get(l.ctx, "growing", metav1.GetOptions{})
		if err != nil {
			return false, err.Error()
		}
		capacity, size := pvc.Status.Capacity[v1.ResourceStorage], l.size(pod)
		return capacity.Value() == 70*gibibyte && size > 68*gibibyte && size <= 70*gibibyte,
			capacity.String() + ", " + strconv.FormatInt(size, 10) + " bytes; " + l.Events(l.ctx, v1.NamespaceDefault, "growing")
	})
	if got := l.read(pod, "file"); got != "from before" {
		l.t.Errorf("after the growth the file has %q", got)
	}
	now := l.running("growing")
	if now.UID != pod.UID || now.Status.ContainerStatuses[0].RestartCount != 0 {
		l.t.Error("the pod did not run on")
	}
	l.remove("growing")
	l.discard("growing")
}

// testClone: a larger copy of a volume is used on the same node at the same time. Its file system has the identity of the original's,
// and grows when it is mounted first; neither is formatted (C101, C102).
func testClone(l *lab) {
	l.claim("original", xfsClass, v1.PersistentVolumeFilesystem)
	original := l.start(podSpec("original", l.machines[1], claimed("original")))
	l.write(original, "file", "copied")
	clone := claimOf("clone", xfsClass, v1.PersistentVolumeFilesystem)
	clone.Spec.Resources.Requests = gibibytes(60)
	clone.Spec.DataSource = &v1.TypedLocalObjectReference{Kind: "PersistentVolumeClaim", Name: "original"}
	if _, err := l.Cluster.Client().CoreV1().PersistentVolumeClaims(v1.NamespaceDefault).Create(l.ctx, clone, metav1.CreateOptions{}); err != nil {
		l.t.Fatal(err)
	}
	pod := l.start(podSpec("clone", l.machines[1], claimed("clone")))
	if got := l.read(pod, "file"); got != "copied" {
		l.t.Errorf("the clone's file has %q", got)
	}
	if got := l.size(pod); got < 58*gibibyte || got > 60*gibibyte {
		l.t.Errorf("the clone's file system has %d bytes", got)
	}
	l.write(pod, "file", "changed in the clone")
	if got := l.read(original, "file"); got != "copied" {
		l.t.Errorf("the original's file has %q after the clone's was changed", got)
	}
	for _, name := range []string{"clone", "original"} {
		l.remove(name)
		l.discard(name)
	}
}

// size is that of a pod's volume, in bytes.
func (l *lab) size(pod *v1.Pod) int64 {
	l.t.Helper()
	n, err := strconv.ParseInt(l.ask(pod, http.MethodGet, "/size"+query("path", dataPath), ""), 10, 64)
	if err != nil {
		l.t.Fatal(err)
	}
	return n
}

// testRawBlock: a device without a file system, first on one node and then on the other (C103).
func testRawBlock(l *lab) {
	l.claim("raw", shippedClass, v1.PersistentVolumeBlock)
	const far = 49 * gibibyte
	at := func(offset int64, more ...string) string {
		return "/block" + query(append([]string{"path", dataPath, "at", strconv.FormatInt(offset, 10)}, more...)...)
	}
	pod := l.start(asDevice(podSpec("raw", l.machines[0], claimed("raw"))))
	if got := l.size(pod); got != 50*gibibyte {
		l.t.Errorf("the device has %d bytes", got)
	}
	if got := l.ask(pod, http.MethodGet, at(0, "n", "4096"), ""); strings.Trim(got, "\x00") != "" {
		l.t.Errorf("a new device has %q", got)
	}
	l.ask(pod, http.MethodPut, at(0), "head")
	l.ask(pod, http.MethodPut, at(far), "tail")
	l.remove("raw")
	pod = l.start(asDevice(podSpec("raw", l.machines[1], claimed("raw"))))
	if got := l.ask(pod, http.MethodGet, at(0, "n", "4"), "") + l.ask(pod, http.MethodGet, at(far, "n", "4"), ""); got != "headtail" {
		l.t.Errorf("on the second node the device has %q", got)
	}
	l.remove("raw")
	l.discard("raw")
}

// testFSGroup: a pod that is not root may write to a volume that was just formatted, because the shipped CSIDriver says that the
// kubelet shall change its group (C106).
func testFSGroup(l *lab) {
	l.claim("grouped", shippedClass, v1.PersistentVolumeFilesystem)
	pod := podSpec("grouped", l.machines[1], claimed("grouped"))
	pod.Spec.SecurityContext = &v1.PodSecurityContext{RunAsUser: ptr.To[int64](1000), RunAsGroup: ptr.To[int64](1000), FSGroup: ptr.To[int64](2000)}
	pod = l.start(pod)
	l.write(pod, "file", "text")
	if got := l.ask(pod, http.MethodGet, "/mode"+query("path", dataPath), ""); !strings.HasSuffix(got, " 0:2000") || !strings.HasPrefix(got, "dg") {
		l.t.Errorf("the root directory of the volume: %q", got)
	}
	if got := l.ask(pod, http.MethodGet, "/mode"+query("path", dataPath+"/file"), ""); !strings.HasSuffix(got, " 1000:2000") {
		l.t.Errorf("a file of the pod: %q", got)
	}
	l.remove("grouped")
	l.discard("grouped")
}
