// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

// Package manifests_test checks the shipped manifests against the contract with existing clusters.
package manifests_test

import (
	"bufio"
	"bytes"
	"errors"
	"io"
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
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/oracle/oci-cloud-controller-manager/pkg/cloudprovider"
	"github.com/oracle/oci-cloud-controller-manager/pkg/config"
)

const (
	dir      = "cloud-controller-manager"
	old      = "../test/fixtures/v1.35" // the manifests of the existing implementation
	image    = "ghcr.io/oracle/cloud-provider-oci"
	app      = "oci-cloud-controller-manager"
	role     = "system:cloud-controller-manager"
	tokenFor = "create serviceaccounts/token/"
)

// decode reads all objects of a file. Unknown and repeated fields are errors.
func decode(t *testing.T, path string) []runtime.Object {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var objects []runtime.Object
	decoder := serializer.NewCodecFactory(scheme.Scheme, serializer.EnableStrict).UniversalDeserializer()
	reader := yaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(data)))
	for {
		document, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return objects
		}
		if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		object, _, err := decoder.Decode(document, nil, nil)
		if err != nil {
			t.Fatalf("%s: %v\n%s", path, err, document)
		}
		objects = append(objects, object)
	}
}

// named returns the object of type T with a name.
func named[T runtime.Object](t *testing.T, objects []runtime.Object, name string) T {
	t.Helper()
	for _, o := range objects {
		if x, ok := o.(T); ok && o.(metav1.Object).GetName() == name {
			return x
		}
	}
	t.Fatalf("there is no %T %s", *new(T), name)
	return *new(T)
}

func TestObjectsKeepTheirNames(t *testing.T) {
	objects := append(decode(t, filepath.Join(dir, "oci-cloud-controller-manager.yaml")), decode(t, filepath.Join(dir, "oci-cloud-controller-manager-rbac.yaml"))...)
	var got []string
	for _, o := range objects {
		m := o.(metav1.Object)
		got = append(got, o.GetObjectKind().GroupVersionKind().Kind+" "+m.GetNamespace()+"/"+m.GetName())
	}
	for _, want := range []string{
		"ServiceAccount kube-system/cloud-controller-manager",
		"ClusterRole /system:cloud-controller-manager",
		"ClusterRoleBinding /oci-cloud-controller-manager",
		"DaemonSet kube-system/oci-cloud-controller-manager",
	} {
		if !slices.Contains(got, want) {
			t.Errorf("%s is missing among %q", want, got)
		}
	}
	// A binding's role cannot be changed in place, nor can a selector: kubectl apply would fail on an existing cluster.
	oldObjects := append(decode(t, filepath.Join(old, "rbac.yaml")), decode(t, filepath.Join(old, "daemonset.yaml"))...)
	if diff := cmp.Diff(named[*rbacv1.ClusterRoleBinding](t, oldObjects, app), named[*rbacv1.ClusterRoleBinding](t, objects, app)); diff != "" {
		t.Errorf("ClusterRoleBinding changed (-old +new)\n%s", diff)
	}
	if diff := cmp.Diff(named[*rbacv1.ClusterRole](t, oldObjects, role).ObjectMeta, named[*rbacv1.ClusterRole](t, objects, role).ObjectMeta); diff != "" {
		t.Errorf("name or labels of the ClusterRole changed (-old +new)\n%s", diff)
	}
}

func TestDaemonSetReplacesTheOldOne(t *testing.T) {
	was := named[*appsv1.DaemonSet](t, decode(t, filepath.Join(old, "daemonset.yaml")), app)
	is := named[*appsv1.DaemonSet](t, decode(t, filepath.Join(dir, "oci-cloud-controller-manager.yaml")), app)
	for what, pair := range map[string][2]any{
		"metadata":        {was.ObjectMeta, is.ObjectMeta},
		"selector":        {was.Spec.Selector, is.Spec.Selector},
		"pod metadata":    {was.Spec.Template.ObjectMeta, is.Spec.Template.ObjectMeta},
		"update strategy": {was.Spec.UpdateStrategy, is.Spec.UpdateStrategy},
		"service account": {was.Spec.Template.Spec.ServiceAccountName, is.Spec.Template.Spec.ServiceAccountName},
		"node selector":   {was.Spec.Template.Spec.NodeSelector, is.Spec.Template.Spec.NodeSelector},
		"host network":    {was.Spec.Template.Spec.HostNetwork, is.Spec.Template.Spec.HostNetwork},
		"command":         {was.Spec.Template.Spec.Containers[0].Command, is.Spec.Template.Spec.Containers[0].Command},
		"container name":  {was.Spec.Template.Spec.Containers[0].Name, is.Spec.Template.Spec.Containers[0].Name},
		"environment":     {was.Spec.Template.Spec.Containers[0].Env, is.Spec.Template.Spec.Containers[0].Env},
		"mounts":          {was.Spec.Template.Spec.Containers[0].VolumeMounts, is.Spec.Template.Spec.Containers[0].VolumeMounts},
	} {
		if diff := cmp.Diff(pair[0], pair[1]); diff != "" {
			t.Errorf("%s changed (-old +new)\n%s", what, diff)
		}
	}
	for _, toleration := range was.Spec.Template.Spec.Tolerations {
		if !slices.Contains(is.Spec.Template.Spec.Tolerations, toleration) {
			t.Errorf("the toleration %v is gone", toleration)
		}
	}
	for _, v := range was.Spec.Template.Spec.Volumes {
		i := slices.IndexFunc(is.Spec.Template.Spec.Volumes, func(w corev1.Volume) bool { return w.Name == v.Name })
		if i < 0 {
			t.Errorf("the volume %s is gone", v.Name)
			continue
		}
		w := is.Spec.Template.Spec.Volumes[i].DeepCopy()
		if w.Secret != nil {
			w.Secret.DefaultMode = nil // tighter than it was
		}
		if diff := cmp.Diff(&v, w); diff != "" {
			t.Errorf("the volume %s changed (-old +new)\n%s", v.Name, diff)
		}
	}
}

func TestDaemonSetIsHardened(t *testing.T) {
	pod := named[*appsv1.DaemonSet](t, decode(t, filepath.Join(dir, "oci-cloud-controller-manager.yaml")), app).Spec.Template.Spec
	if pod.PriorityClassName != "system-cluster-critical" {
		t.Errorf("priority class is %q", pod.PriorityClassName)
	}
	if c := pod.SecurityContext; c == nil || c.RunAsNonRoot == nil || !*c.RunAsNonRoot || c.SeccompProfile == nil ||
		c.SeccompProfile.Type != corev1.SeccompProfileTypeRuntimeDefault {
		t.Errorf("pod security context is %v", c)
	}
	for _, c := range pod.Containers {
		s := c.SecurityContext
		if s == nil || s.AllowPrivilegeEscalation == nil || *s.AllowPrivilegeEscalation || s.ReadOnlyRootFilesystem == nil ||
			!*s.ReadOnlyRootFilesystem || s.Capabilities == nil || !slices.Contains(s.Capabilities.Drop, "ALL") || len(s.Capabilities.Add) > 0 {
			t.Errorf("%s: security context is %v", c.Name, s)
		}
		for _, m := range c.VolumeMounts {
			if !m.ReadOnly {
				t.Errorf("%s: %s is mounted writable", c.Name, m.MountPath)
			}
		}
		if c.Resources.Requests.Cpu().IsZero() || c.Resources.Requests.Memory().IsZero() || c.Resources.Limits.Memory().IsZero() {
			t.Errorf("%s: resources are %v", c.Name, c.Resources)
		}
		for name, probe := range map[string]*corev1.Probe{"startup": c.StartupProbe, "liveness": c.LivenessProbe, "readiness": c.ReadinessProbe} {
			if probe == nil || probe.HTTPGet == nil || probe.HTTPGet.Scheme != corev1.URISchemeHTTPS || probe.HTTPGet.Path != "/healthz" {
				t.Errorf("%s: %s probe is %v", c.Name, name, probe)
				continue
			}
			i := slices.IndexFunc(c.Ports, func(p corev1.ContainerPort) bool { return p.Name == probe.HTTPGet.Port.StrVal })
			if i < 0 || c.Ports[i].ContainerPort != 10258 {
				t.Errorf("%s: the %s probe asks another port than the secure one", c.Name, name)
			}
		}
		name, tag, _ := strings.Cut(c.Image, ":")
		if name != image || !regexp.MustCompile(`^v\d+\.\d+\.\d+$`).MatchString(tag) {
			t.Errorf("%s: image is %s, want a release of %s", c.Name, c.Image, image)
		}
	}
}

// TestLeastPrivilege holds the roles to what the framework's controllers (k8s.io/cloud-provider v0.37) and ours call.
func TestLeastPrivilege(t *testing.T) {
	objects := decode(t, filepath.Join(dir, "oci-cloud-controller-manager-rbac.yaml"))
	cluster := permissions(named[*rbacv1.ClusterRole](t, objects, role).Rules)
	inNamespace := permissions(named[*rbacv1.Role](t, objects, app).Rules)

	wantCluster := []string{
		"get nodes", "list nodes", "watch nodes", "update nodes", "patch nodes", "delete nodes", "patch nodes/status",
		"get services", "list services", "watch services", "patch services", "patch services/status",
		"create events", "patch events",
		"get namespaces/kube-system",
		"create authentication.k8s.io tokenreviews", "create authorization.k8s.io subjectaccessreviews",
	}
	wantNamespace := []string{
		"create coordination.k8s.io leases", "get coordination.k8s.io leases/cloud-controller-manager", "update coordination.k8s.io leases/cloud-controller-manager",
		"create serviceaccounts",
	}
	for _, account := range append(slices.Clone(oldAccounts), clientNames()...) {
		wantNamespace = append(wantNamespace, "get serviceaccounts/"+account, tokenFor+account)
	}
	slices.Sort(wantCluster)
	slices.Sort(wantNamespace)
	if diff := cmp.Diff(wantCluster, cluster); diff != "" {
		t.Errorf("ClusterRole (-want +got)\n%s", diff)
	}
	if diff := cmp.Diff(wantNamespace, inNamespace); diff != "" {
		t.Errorf("Role (-want +got)\n%s", diff)
	}
	if got := permissions(named[*rbacv1.ClusterRole](t, objects, app+":service-controller").Rules); !slices.Equal(got, []string{"patch services"}) {
		t.Errorf("the account of the service controller gets %q", got)
	}
	if got := permissions(named[*rbacv1.ClusterRole](t, objects, app+":tls-secrets").Rules); !slices.Equal(got, []string{"get secrets", "watch secrets"}) {
		t.Errorf("the role for TLS Secrets has %q", got)
	}
	for _, o := range objects {
		if b, ok := o.(*rbacv1.ClusterRoleBinding); ok && b.RoleRef.Name == app+":tls-secrets" {
			t.Errorf("%s lets the Secrets of the whole cluster be read", b.Name)
		}
	}
}

// oldAccounts are those of Kubernetes' own controllers, as whom ours acted in older versions.
var oldAccounts = []string{"node-controller", "service-controller"}

func clientNames() []string {
	var list []string
	for _, c := range cloudprovider.Clients() {
		list = append(list, c.Name)
	}
	return list
}

// TestAccountsOfControllers: with --use-service-account-credentials each controller has a ServiceAccount, and by its roles
// what the code says that it needs, and nothing else.
func TestAccountsOfControllers(t *testing.T) {
	objects := decode(t, filepath.Join(dir, "oci-cloud-controller-manager-rbac.yaml"))
	for _, c := range cloudprovider.Clients() {
		if a := named[*corev1.ServiceAccount](t, objects, c.Name); a.Namespace != "kube-system" {
			t.Errorf("the ServiceAccount %s is in namespace %q", c.Name, a.Namespace)
		}
		var want []string
		for _, p := range slices.Concat(c.Needs, c.Features) {
			line := p.Verb + " " + strings.Trim(p.Resource+"/"+p.Subresource, "/")
			if p.Name != "" {
				line += "/" + p.Name
			}
			if p.Namespace != "" {
				line += " in " + p.Namespace
			}
			want = append(want, line)
		}
		slices.Sort(want)
		if diff := cmp.Diff(want, permissionsOf(t, objects, c.Name)); diff != "" {
			t.Errorf("%s (-want +got)\n%s", c.Name, diff)
		}
	}
	// Whoever is bound must be one of ours, and be meant.
	for _, o := range objects {
		var subjects []rbacv1.Subject
		switch b := o.(type) {
		case *rbacv1.RoleBinding:
			subjects = b.Subjects
		case *rbacv1.ClusterRoleBinding:
			subjects = b.Subjects
		default:
			continue
		}
		_, of, controllers := strings.Cut(o.(metav1.Object).GetName(), ":")
		if !controllers {
			of = "cloud-controller-manager"
		}
		if want := []rbacv1.Subject{{Kind: "ServiceAccount", Name: of, Namespace: "kube-system"}}; !cmp.Equal(want, subjects) {
			t.Errorf("%s is for %v", o.(metav1.Object).GetName(), subjects)
		}
	}
}

// permissionsOf lists what a ServiceAccount in kube-system may do by its bindings; " in <namespace>" where that is not
// everywhere.
func permissionsOf(t *testing.T, objects []runtime.Object, account string) []string {
	t.Helper()
	subject := rbacv1.Subject{Kind: "ServiceAccount", Name: account, Namespace: "kube-system"}
	var all []string
	for _, o := range objects {
		switch b := o.(type) {
		case *rbacv1.ClusterRoleBinding:
			if slices.Contains(b.Subjects, subject) {
				all = append(all, permissions(named[*rbacv1.ClusterRole](t, objects, b.RoleRef.Name).Rules)...)
			}
		case *rbacv1.RoleBinding:
			if slices.Contains(b.Subjects, subject) {
				for _, p := range permissions(named[*rbacv1.Role](t, objects, b.RoleRef.Name).Rules) {
					all = append(all, p+" in "+b.Namespace)
				}
			}
		}
	}
	slices.Sort(all)
	return all
}

// permissions lists rules as "verb [group] resource[/name]".
func permissions(rules []rbacv1.PolicyRule) []string {
	var out []string
	for _, r := range rules {
		names := r.ResourceNames
		if len(names) == 0 {
			names = []string{""}
		}
		for _, group := range r.APIGroups {
			for _, resource := range r.Resources {
				for _, verb := range r.Verbs {
					for _, name := range names {
						p := strings.TrimSuffix(resource+"/"+name, "/")
						if group != "" {
							p = group + " " + p
						}
						out = append(out, verb+" "+p)
					}
				}
			}
		}
	}
	slices.Sort(out)
	return out
}

func TestExampleConfigs(t *testing.T) {
	principals := map[string]config.Principal{
		"provider-config-example.yaml":                     config.UserPrincipal,
		"provider-config-instance-principals-example.yaml": config.InstancePrincipal,
		"provider-config-workload-identity-example.yaml":   config.WorkloadIdentity,
	}
	for name, principal := range principals {
		c, report := config.ReadFile(filepath.Join(dir, name), true)
		for _, p := range report.Problems {
			t.Error(p)
		}
		if got := c.Principal(); got != principal {
			t.Errorf("%s: calls would be made as %s, want %s", name, got, principal)
		}
		if c.Compartment == "" || c.LoadBalancer.Subnet1 == "" {
			t.Errorf("%s: compartment %q, subnet1 %q", name, c.Compartment, c.LoadBalancer.Subnet1)
		}
	}
	files, err := filepath.Glob(filepath.Join(dir, "provider-config-*.yaml"))
	if err != nil || len(files) != len(principals) {
		t.Errorf("example configs are %q (%v), want %d", files, err, len(principals))
	}
}

// TestWorkloadIdentityExample holds the example to tokens of one account.
func TestWorkloadIdentityExample(t *testing.T) {
	const name = app + "-workload-identity"
	objects := decode(t, filepath.Join(dir, "workload-identity-rbac-example.yaml"))
	r := named[*rbacv1.Role](t, objects, name)
	if got := permissions(r.Rules); len(got) != 1 || got[0] != tokenFor+"balancer" || r.Namespace != "shop" {
		t.Errorf("Role in %s allows %q", r.Namespace, got)
	}
	binding := named[*rbacv1.RoleBinding](t, objects, name)
	if binding.Namespace != r.Namespace || binding.RoleRef.Kind != "Role" || binding.RoleRef.Name != name || len(binding.Subjects) != 2 {
		t.Errorf("RoleBinding %+v", binding)
	}
}
