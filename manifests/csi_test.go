// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package manifests_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"
)

const (
	csiDir     = "container-storage-interface"
	driver     = "blockvolume.csi.oraclecloud.com"
	controller = "csi-oci-controller"
	node       = "csi-oci-node"
)

func csiObjects(t *testing.T) []runtime.Object {
	t.Helper()
	var all []runtime.Object
	for _, name := range []string{"oci-csi-node-rbac.yaml", "oci-csi-controller-driver.yaml", "oci-csi-node-driver.yaml", "storage-class.yaml", "volume-attributes-class-example.yaml"} {
		all = append(all, decode(t, filepath.Join(csiDir, name))...)
	}
	return all
}

func oldCSIObjects(t *testing.T) []runtime.Object {
	t.Helper()
	var all []runtime.Object
	for _, name := range []string{"csi-rbac.yaml", "csi-controller.yaml", "csi-node.yaml", "csi-storageclass.yaml"} {
		all = append(all, decode(t, filepath.Join(old, name))...)
	}
	return all
}

func objectNames(objects []runtime.Object) []string {
	var list []string
	for _, o := range objects {
		m := o.(metav1.Object)
		list = append(list, o.GetObjectKind().GroupVersionKind().Kind+" "+m.GetNamespace()+"/"+m.GetName())
	}
	return list
}

func TestCSIObjectsKeepTheirNames(t *testing.T) {
	got := objectNames(csiObjects(t))
	for _, want := range objectNames(oldCSIObjects(t)) {
		switch {
		case strings.HasPrefix(want, "ConfigMap "): // wrappers of host programs, which are not needed any more
		case strings.Contains(want, "fss.") || strings.Contains(want, "lustre."): // not served by this release
		case !slices.Contains(got, want):
			t.Errorf("%s is missing among %q", want, got)
		}
	}
}

// TestCSIWorkloadsReplaceTheOldOnes: a selector cannot be changed in place, and an apply must find the Secret of old.
func TestCSIWorkloadsReplaceTheOldOnes(t *testing.T) {
	was, is := oldCSIObjects(t), csiObjects(t)
	oldController, newController := named[*appsv1.Deployment](t, was, controller), named[*appsv1.Deployment](t, is, controller)
	oldNode, newNode := named[*appsv1.DaemonSet](t, was, node), named[*appsv1.DaemonSet](t, is, node)
	for what, pair := range map[string][2]any{
		"selector of the controller":      {oldController.Spec.Selector, newController.Spec.Selector},
		"labels of the controller":        {oldController.Spec.Template.Labels, newController.Spec.Template.Labels},
		"replicas of the controller":      {oldController.Spec.Replicas, newController.Spec.Replicas},
		"node selector of the controller": {oldController.Spec.Template.Spec.NodeSelector, newController.Spec.Template.Spec.NodeSelector},
		"tolerations of the controller":   {oldController.Spec.Template.Spec.Tolerations, newController.Spec.Template.Spec.Tolerations},
		"pull secrets of the controller":  {oldController.Spec.Template.Spec.ImagePullSecrets, newController.Spec.Template.Spec.ImagePullSecrets},
		"selector of the nodes":           {oldNode.Spec.Selector, newNode.Spec.Selector},
		"labels of the nodes":             {oldNode.Spec.Template.Labels, newNode.Spec.Template.Labels},
		"tolerations of the nodes":        {oldNode.Spec.Template.Spec.Tolerations, newNode.Spec.Template.Spec.Tolerations},
		"account of the nodes":            {oldNode.Spec.Template.Spec.ServiceAccountName, newNode.Spec.Template.Spec.ServiceAccountName},
		"environment of the nodes' name":  {oldNode.Spec.Template.Spec.Containers[0].Env[0], newNode.Spec.Template.Spec.Containers[0].Env[0]},
	} {
		if diff := cmp.Diff(pair[0], pair[1]); diff != "" {
			t.Errorf("%s changed (-old +new)\n%s", what, diff)
		}
	}
	secret := func(d *appsv1.Deployment) string {
		for _, v := range d.Spec.Template.Spec.Volumes {
			if v.Secret != nil {
				return v.Secret.SecretName
			}
		}
		return ""
	}
	if secret(oldController) != secret(newController) {
		t.Errorf("the config is in the Secret %s, was in %s", secret(newController), secret(oldController))
	}
}

// TestStorageClassesAreTheOldOnes: nothing but metadata and the permission to grow can be changed in place.
func TestStorageClassesAreTheOldOnes(t *testing.T) {
	for _, name := range []string{"oci-bv", "oci-bv-encrypted"} {
		was, is := named[*storagev1.StorageClass](t, oldCSIObjects(t), name), named[*storagev1.StorageClass](t, csiObjects(t), name)
		was.ObjectMeta, is.ObjectMeta = metav1.ObjectMeta{}, metav1.ObjectMeta{}
		if diff := cmp.Diff(was, is); diff != "" {
			t.Errorf("%s changed (-old +new)\n%s", name, diff)
		}
	}
}

// flags gives the flags of a container by name.
func flags(c corev1.Container) map[string]string {
	out := map[string]string{}
	for _, a := range c.Args {
		name, value, _ := strings.Cut(strings.TrimLeft(a, "-"), "=")
		out[name] = value
	}
	return out
}

// TestSidecars holds the sidecars to the versions that the tests build, and to the flags of old where those say what is made.
func TestSidecars(t *testing.T) {
	modules, err := os.ReadFile("../test/cluster/tools/go.mod")
	if err != nil {
		t.Fatal(err)
	}
	was := named[*appsv1.Deployment](t, oldCSIObjects(t), controller).Spec.Template.Spec.Containers
	is := named[*appsv1.Deployment](t, csiObjects(t), controller).Spec.Template.Spec.Containers
	sources := map[string]string{
		"csi-volume-provisioner": "external-provisioner/v6", "csi-attacher": "external-attacher/v4", "csi-resizer": "external-resizer/v2",
		"csi-snapshotter": "external-snapshotter/v8", "snapshot-controller": "external-snapshotter/v8",
	}
	for _, c := range is {
		module, isSidecar := sources[c.Name]
		if !isSidecar {
			continue
		}
		delete(sources, c.Name)
		_, tag, _ := strings.Cut(c.Image, ":")
		if !regexp.MustCompile(`github\.com/kubernetes-csi/` + regexp.QuoteMeta(module+" "+tag) + `\b`).Match(modules) {
			t.Errorf("%s has version %s, which the tests do not run", c.Name, tag)
		}
		i := slices.IndexFunc(was, func(w corev1.Container) bool { return w.Name == c.Name })
		if i < 0 {
			t.Errorf("%s has another name than before", c.Name)
			continue
		}
		now := flags(c)
		for name, value := range flags(was[i]) {
			if got, ok := now[name]; !ok || got != value {
				t.Errorf("%s: --%s was %q, is %q", c.Name, name, value, got)
			}
		}
		for _, name := range []string{"kube-api-qps", "kube-api-burst", "retry-interval-max"} {
			if now[name] == "" {
				t.Errorf("%s: --%s is left at its default", c.Name, name)
			}
		}
	}
	if len(sources) > 0 {
		t.Errorf("sidecars that are missing: %v", sources)
	}
}

func TestCSIControllerIsHardened(t *testing.T) {
	pod := named[*appsv1.Deployment](t, csiObjects(t), controller).Spec.Template.Spec
	if c := pod.SecurityContext; c == nil || c.RunAsNonRoot == nil || !*c.RunAsNonRoot || c.FSGroup == nil || c.SeccompProfile == nil ||
		c.SeccompProfile.Type != corev1.SeccompProfileTypeRuntimeDefault {
		t.Errorf("pod security context is %v", c)
	}
	for _, v := range pod.Volumes {
		if v.HostPath != nil {
			t.Errorf("the volume %s is a directory of the host", v.Name)
		}
	}
	for _, c := range pod.Containers {
		s := c.SecurityContext
		if s == nil || s.AllowPrivilegeEscalation == nil || *s.AllowPrivilegeEscalation || s.ReadOnlyRootFilesystem == nil ||
			!*s.ReadOnlyRootFilesystem || s.Capabilities == nil || !slices.Contains(s.Capabilities.Drop, "ALL") || len(s.Capabilities.Add) > 0 {
			t.Errorf("%s: security context is %v", c.Name, s)
		}
		if c.Resources.Requests.Cpu().IsZero() || c.Resources.Requests.Memory().IsZero() || c.Resources.Limits.Memory().IsZero() {
			t.Errorf("%s: resources are %v", c.Name, c.Resources)
		}
	}
}

// TestCSIPorts: the pods of controller and nodes may share a host and its ports, and the probes ask what is served.
func TestCSIPorts(t *testing.T) {
	objects := csiObjects(t)
	taken := map[int32]string{10258: app}
	for _, pod := range []corev1.PodSpec{
		named[*appsv1.Deployment](t, objects, controller).Spec.Template.Spec, named[*appsv1.DaemonSet](t, objects, node).Spec.Template.Spec,
	} {
		c := pod.Containers[0]
		if !strings.HasPrefix(c.Image, image+":v") || len(c.Ports) != 1 || c.LivenessProbe == nil || c.LivenessProbe.HTTPGet.Path != "/healthz" {
			t.Errorf("%s: image %s, ports %v, liveness probe %v", c.Name, c.Image, c.Ports, c.LivenessProbe)
			continue
		}
		port := c.Ports[0].ContainerPort
		if other := taken[port]; other != "" {
			t.Errorf("%s has the port %d of %s", c.Name, port, other)
		}
		taken[port] = c.Name
		if got := flags(c)["http-endpoint"]; got != fmt.Sprintf(":%d", port) || c.LivenessProbe.HTTPGet.Port.StrVal != c.Ports[0].Name {
			t.Errorf("%s: --http-endpoint=%s, port %d, and the probe asks %s", c.Name, got, port, c.LivenessProbe.HTTPGet.Port.StrVal)
		}
	}
}

func TestCSIDriver(t *testing.T) {
	d := named[*storagev1.CSIDriver](t, csiObjects(t), driver)
	if d.Spec.AttachRequired == nil || !*d.Spec.AttachRequired || d.Spec.FSGroupPolicy == nil || *d.Spec.FSGroupPolicy != storagev1.FileFSGroupPolicy {
		t.Errorf("attachRequired %v, fsGroupPolicy %v", d.Spec.AttachRequired, d.Spec.FSGroupPolicy)
	}
	if d.Spec.PreventPodSchedulingIfMissing == nil || !*d.Spec.PreventPodSchedulingIfMissing || d.Spec.NodeAllocatableUpdatePeriodSeconds == nil {
		t.Error("pods may go to nodes without the driver, or the limit of volumes is read once only")
	}
}

// TestCSILeastPrivilege holds the accounts to what the sidecars and the driver call (test/e2e/csi runs all of them with these).
func TestCSILeastPrivilege(t *testing.T) {
	objects := csiObjects(t)
	nodeAccount := permissionsOf(t, objects, "csi-oci-node-sa")
	if diff := cmp.Diff([]string{"get configmaps/oci-csi-config in kube-system", "get nodes", "get storage.k8s.io volumeattachments"}, nodeAccount); diff != "" {
		t.Errorf("nodes (-want +got)\n%s", diff)
	}
	account := permissionsOf(t, objects, "csi-oci-controller-sa")
	for _, p := range account {
		for _, never := range []string{"secrets", "serviceaccounts", "pods", "*", "delete nodes", "update nodes", "delete persistentvolumeclaims", "endpoints"} {
			if strings.Contains(p, never) {
				t.Errorf("the controller may %s", p)
			}
		}
		if strings.Contains(p, "configmaps") && p != "create configmaps in kube-system" && !strings.Contains(p, "configmaps/oci-csi-drafts in kube-system") {
			t.Errorf("the controller may %s", p)
		}
		if strings.Contains(p, "leases") && p != "create coordination.k8s.io leases in kube-system" && !strings.Contains(p, "leases/") {
			t.Errorf("the controller may %s: it could take the lead from others", p)
		}
	}
	for _, o := range objects {
		if r, ok := o.(*rbacv1.ClusterRole); ok && slices.ContainsFunc(r.Rules, func(r rbacv1.PolicyRule) bool { return len(r.NonResourceURLs) > 0 }) {
			t.Errorf("%s has rules about URLs", r.Name)
		}
	}
	// The accounts of the two are apart, and both are used.
	if got := named[*appsv1.Deployment](t, objects, controller).Spec.Template.Spec.ServiceAccountName; got != "csi-oci-controller-sa" {
		t.Errorf("the controller is %s", got)
	}
}

// TestExampleClasses: examples are for this driver. Their kinds are not part of Kubernetes, so that nothing else reads them here.
func TestExampleClasses(t *testing.T) {
	for name, kind := range map[string]string{
		"volume-snapshot-class-example.yaml": "VolumeSnapshotClass", "volume-group-snapshot-class-example.yaml": "VolumeGroupSnapshotClass",
	} {
		data, err := os.ReadFile(filepath.Join(csiDir, name))
		if err != nil {
			t.Fatal(err)
		}
		var class struct {
			Kind, APIVersion, Driver, DeletionPolicy string
			Metadata                                 metav1.ObjectMeta
			Parameters                               map[string]string
		}
		if err := yaml.UnmarshalStrict(data, &class); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if class.Kind != kind || class.Driver != driver || class.DeletionPolicy != "Delete" || !strings.HasSuffix(class.APIVersion, "snapshot.storage.k8s.io/v1") {
			t.Errorf("%s: %+v", name, class)
		}
	}
	for _, o := range csiObjects(t) {
		if c, ok := o.(*storagev1.VolumeAttributesClass); ok && (c.DriverName != driver || c.Parameters["vpusPerGB"] == "") {
			t.Errorf("%s: %+v", c.Name, c)
		}
	}
}
