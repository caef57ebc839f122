// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package node_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/oracle/oci-cloud-controller-manager/test/cluster/nodes"
)

// workloadImage is that of the pods of tests.
const workloadImage = "localhost/workload:1"

// noSimulatedNodes leaves the nodes to the kubelets.
func noSimulatedNodes() nodes.Options { return nodes.Options{Count: -1} }

// dataPath is where the volume of a pod is in it, as a file system or as a device.
const dataPath = "/data"

// podSpec is a pod with a volume, on a given node or, if that is nil, where the scheduler wants.
func podSpec(name string, on *machine, source v1.VolumeSource) *v1.Pod {
	pod := &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: v1.PodSpec{
			TerminationGracePeriodSeconds: ptr.To[int64](2),
			Containers: []v1.Container{{
				Name: "workload", Image: workloadImage, ImagePullPolicy: v1.PullNever,
				VolumeMounts: []v1.VolumeMount{{Name: "data", MountPath: dataPath}},
			}},
			Volumes: []v1.Volume{{Name: "data", VolumeSource: source}},
		},
	}
	if on != nil {
		pod.Spec.NodeSelector = map[string]string{v1.LabelHostname: on.name} // the scheduler has its say about the volume
	}
	return pod
}

// claimed is a volume of a pod that a PersistentVolumeClaim provides.
func claimed(claim string) v1.VolumeSource {
	return v1.VolumeSource{PersistentVolumeClaim: &v1.PersistentVolumeClaimVolumeSource{ClaimName: claim}}
}

// asDevice makes the volume of a pod a device.
func asDevice(pod *v1.Pod) *v1.Pod {
	c := &pod.Spec.Containers[0]
	c.VolumeMounts, c.VolumeDevices = nil, []v1.VolumeDevice{{Name: "data", DevicePath: dataPath}}
	return pod
}

// start creates a pod, waits until it runs, and returns it as it is then.
func (l *lab) start(pod *v1.Pod) *v1.Pod {
	l.t.Helper()
	l.create(pod)
	return l.running(pod.Name)
}

func (l *lab) create(pod *v1.Pod) {
	l.t.Helper()
	if _, err := l.Cluster.Client().CoreV1().Pods(v1.NamespaceDefault).Create(l.ctx, pod, metav1.CreateOptions{}); err != nil {
		l.t.Fatal(err)
	}
}

// running waits until a pod answers, and returns it.
func (l *lab) running(name string) *v1.Pod {
	l.t.Helper()
	var pod *v1.Pod
	l.until("pod "+name+" runs", func() (bool, string) {
		var err error
		if pod, err = l.Cluster.Client().CoreV1().Pods(v1.NamespaceDefault).Get(l.ctx, name, metav1.GetOptions{}); err != nil {
			return false, err.Error()
		}
		if pod.Status.Phase != v1.PodRunning || pod.Status.PodIP == "" {
			return false, fmt.Sprintf("%s on %q; %s", pod.Status.Phase, pod.Spec.NodeName, l.Events(l.ctx, v1.NamespaceDefault, name))
		}
		_, err = l.call(pod, http.MethodGet, "/mode"+query("path", "/"), "")
		return err == nil, fmt.Sprint(err)
	})
	return pod
}

// call sends a request to a pod.
func (l *lab) call(pod *v1.Pod, method, path, body string) (string, error) {
	req, err := http.NewRequestWithContext(l.ctx, method, "http://"+pod.Status.PodIP+":8080"+path, strings.NewReader(body))
	if err != nil {
		return "", err
	}
	res, err := l.http.Do(req)
	if err != nil {
		return "", err
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err == nil && res.StatusCode != http.StatusOK {
		err = errors.New(string(text))
	}
	return string(text), err
}

// ask is call for what must succeed.
func (l *lab) ask(pod *v1.Pod, method, path, body string) string {
	l.t.Helper()
	answer, err := l.call(pod, method, path, body)
	if err != nil {
		l.t.Fatalf("%s %s in pod %s: %v", method, path, pod.Name, err)
	}
	return answer
}

// write writes a file in a pod's volume, and read reads it.
func (l *lab) write(pod *v1.Pod, file, text string) {
	l.t.Helper()
	l.ask(pod, http.MethodPut, "/file"+query("path", dataPath+"/"+file), text)
}

func (l *lab) read(pod *v1.Pod, file string) string {
	l.t.Helper()
	return l.ask(pod, http.MethodGet, "/file"+query("path", dataPath+"/"+file), "")
}

// remove deletes a pod and waits until it is gone.
func (l *lab) remove(name string) {
	l.t.Helper()
	pods := l.Cluster.Client().CoreV1().Pods(v1.NamespaceDefault)
	if err := pods.Delete(l.ctx, name, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
		l.t.Fatal(err)
	}
	l.until("pod "+name+" is gone", func() (bool, string) {
		pod, err := pods.Get(l.ctx, name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return true, ""
		}
		if err != nil {
			return false, err.Error()
		}
		return false, fmt.Sprintf("%s; %s", pod.Status.Phase, l.Events(l.ctx, v1.NamespaceDefault, name))
	})
}
