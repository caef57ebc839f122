// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package cluster_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	v1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/oracle/oci-cloud-controller-manager/test/cluster"
	"github.com/oracle/oci-cloud-controller-manager/test/cluster/nodes"
)

// eventually polls until the condition holds, which on a busy machine may take long.
func eventually(t *testing.T, what string, condition func() bool) {
	t.Helper()
	for deadline := time.Now().Add(2 * time.Minute); !condition(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("never: %s", what)
		}
	}
}

// inhabitants are the processes that work in dir or have it in their arguments.
func inhabitants(t *testing.T, dir string) []string {
	t.Helper()
	processes, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, process := range processes {
		cwd, _ := os.Readlink(filepath.Join(process, "cwd")) // a zombie has none
		args, _ := os.ReadFile(filepath.Join(process, "cmdline"))
		if cwd == dir || strings.Contains(string(args), dir) {
			found = append(found, strings.ReplaceAll(string(args), "\x00", " "))
		}
	}
	return found
}

func wantGone(t *testing.T, dir string) {
	t.Helper()
	if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%s: %v, want that it does not exist", dir, err)
	}
	if found := inhabitants(t, dir); len(found) != 0 {
		t.Errorf("processes of a stopped cluster:\n%s", strings.Join(found, "\n"))
	}
}

func clientFor(t *testing.T, config *rest.Config, err error) kubernetes.Interface {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// TestStartStop starts two clusters at once, stops them, and starts one again.
func TestStartStop(t *testing.T) {
	if _, err := cluster.BuildControlPlane(t.Context(), "", os.Stderr); err != nil {
		t.Fatal(err)
	}
	run := func() (*cluster.Cluster, string, error) {
		began := time.Now()
		var progress strings.Builder
		c, err := cluster.Run(t.Context(), cluster.Options{TempDir: t.TempDir(), Progress: &progress})
		t.Logf("start: %s", time.Since(began).Round(time.Millisecond))
		return c, progress.String(), err
	}
	stop := func(c *cluster.Cluster) {
		t.Helper()
		if found := inhabitants(t, c.Dir()); len(found) != 3 { // etcd, kube-apiserver, janitor
			t.Errorf("processes of a running cluster:\n%s", strings.Join(found, "\n"))
		}
		began := time.Now()
		if err := c.Stop(); err != nil {
			t.Errorf("Stop: %v", err)
		}
		t.Logf("stop: %s", time.Since(began).Round(time.Millisecond))
		wantGone(t, c.Dir())
		if err := c.Err(); err != nil {
			t.Errorf("Err after Stop = %v", err)
		}
	}

	var pair [2]*cluster.Cluster
	var starts errgroup.Group
	for i := range pair {
		starts.Go(func() (err error) {
			pair[i], _, err = run()
			return err
		})
	}
	if err := starts.Wait(); err != nil {
		t.Fatal(err)
	}
	if pair[0].URL() == pair[1].URL() || pair[0].Dir() == pair[1].Dir() {
		t.Errorf("two clusters share %s or %s", pair[0].URL(), pair[0].Dir())
	}
	const name = "only-here"
	namespace := &v1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if _, err := pair[0].Client().CoreV1().Namespaces().Create(t.Context(), namespace, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := pair[1].Client().CoreV1().Namespaces().Get(t.Context(), name, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("the other cluster's namespace: %v", err)
	}
	for _, c := range pair {
		stop(c)
	}

	again, progress, err := run()
	if err != nil {
		t.Fatal(err)
	}
	if progress != "" {
		t.Errorf("a later start says %q", progress)
	}
	stop(again)
}

// TestControlPlane shares one cluster between tests that do not disturb each other.
func TestControlPlane(t *testing.T) {
	c := cluster.Start(t, cluster.WithControllerManager(), cluster.WithScheduler())
	t.Run("RBAC refuses strangers", func(t *testing.T) { testStrangers(t, c) })
	t.Run("service account", func(t *testing.T) { testServiceAccount(t, c) })
	t.Run("apply and kubectl", func(t *testing.T) { testApply(t, c) })
	t.Run("scheduler", func(t *testing.T) { testScheduler(t, c) })
	t.Run("outage", func(t *testing.T) { testOutage(t, c) })
}

func testStrangers(t *testing.T, c *cluster.Cluster) {
	nobody := c.Config()
	nobody.CertData, nobody.KeyData = nil, nil
	anonymous := clientFor(t, nobody, nil)
	config, err := c.ConfigFor("mallory", "strangers")
	mallory := clientFor(t, config, err)
	for user, client := range map[string]kubernetes.Interface{"system:anonymous": anonymous, "mallory": mallory} {
		_, err := client.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
		if !apierrors.IsForbidden(err) {
			t.Errorf("%s lists nodes: %v, want Forbidden", user, err)
		}
		event, err := c.AuditLog().Wait(t.Context(), cluster.AuditFilter{User: user, Verb: "list", Resource: "nodes", Forbidden: true})
		if err != nil {
			t.Fatal(err)
		}
		if event.ResponseStatus.Code != 403 {
			t.Errorf("audit: code %d, want 403", event.ResponseStatus.Code)
		}
	}

	stolen := c.Config()
	stolen.CertData, stolen.KeyData, stolen.BearerToken = nil, nil, "made-up"
	if _, err := clientFor(t, stolen, nil).CoreV1().Nodes().List(t.Context(), metav1.ListOptions{}); !apierrors.IsUnauthorized(err) {
		t.Errorf("a made-up token lists nodes: %v, want Unauthorized", err)
	}

	// A certificate is bound to groups, and RBAC looks at them.
	path, err := c.KubeconfigFor("trent", "system:masters")
	if err != nil {
		t.Fatal(err)
	}
	config, err = clientcmd.BuildConfigFromFlags("", path)
	if _, err := clientFor(t, config, err).CoreV1().Nodes().List(t.Context(), metav1.ListOptions{}); err != nil {
		t.Errorf("a member of system:masters lists nodes: %v", err)
	}
}

func testServiceAccount(t *testing.T, c *cluster.Cluster) {
	const namespace, name = metav1.NamespaceSystem, "watcher"
	const user = "system:serviceaccount:" + namespace + ":" + name
	ctx := t.Context()
	if _, err := c.ServiceAccountKubeconfig(ctx, namespace, name); !apierrors.IsNotFound(err) {
		t.Errorf("kubeconfig of a missing service account: %v, want NotFound", err)
	}
	account := &v1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if _, err := c.Client().CoreV1().ServiceAccounts(namespace).Create(ctx, account, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	path, err := c.ServiceAccountKubeconfig(ctx, namespace, name)
	if err != nil {
		t.Fatal(err)
	}
	config, err := clientcmd.BuildConfigFromFlags("", path)
	client := clientFor(t, config, err)
	if _, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("without a role: %v, want Forbidden", err)
	}

	role := &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Rules:      []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"nodes"}, Verbs: []string{"list"}}},
	}
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name},
		Subjects:   []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: namespace, Name: name}},
	}
	if _, err := c.Client().RbacV1().ClusterRoles().Create(ctx, role, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Client().RbacV1().ClusterRoleBindings().Create(ctx, binding, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the role takes effect", func() bool {
		_, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
		return err == nil
	})
	if err := client.CoreV1().Nodes().Delete(ctx, "any", metav1.DeleteOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("a verb outside the role: %v, want Forbidden", err)
	}

	refused, err := c.AuditLog().Wait(ctx, cluster.AuditFilter{User: user, Verb: "delete", Resource: "nodes", Name: "any"})
	if err != nil {
		t.Fatal(err)
	}
	if refused.Annotations["authorization.k8s.io/decision"] != "forbid" {
		t.Errorf("audit: annotations %v, want the decision forbid", refused.Annotations)
	}
	all, err := c.AuditLog().Select(cluster.AuditFilter{User: user})
	if err != nil {
		t.Fatal(err)
	}
	if len(all) < 3 { // list refused, list allowed, delete refused
		t.Errorf("audit: %d requests of %s, want at least 3", len(all), user)
	}
	created, err := c.AuditLog().Select(cluster.AuditFilter{User: "kubernetes-admin", Verb: "create", Group: rbacv1.GroupName, Resource: "clusterroles", Name: name})
	if err != nil || len(created) != 1 {
		t.Errorf("audit: %d creations of the role by the administrator, %v; want 1", len(created), err)
	}
}

func testApply(t *testing.T, c *cluster.Cluster) {
	path := filepath.Join(t.TempDir(), "manifest.yaml")
	apply := func(port string) {
		t.Helper()
		manifest := strings.ReplaceAll(`
apiVersion: v1
kind: Namespace
metadata: {name: applied}
---
apiVersion: v1
kind: Service
metadata: {name: web, namespace: applied}
spec:
  type: LoadBalancer
  ports: [{name: http, port: PORT}]
---
apiVersion: v1
kind: ConfigMap
metadata: {name: applied}
data: {key: value}
`, "PORT", port)
		if err := os.WriteFile(path, []byte(manifest), 0o644); err != nil {
			t.Fatal(err)
		}
		if err := c.Apply(t.Context(), path); err != nil {
			t.Fatal(err)
		}
		got, err := c.Kubectl(t.Context(), "get", "service", "web", "--namespace=applied", "--output=jsonpath={.spec.ports[*].port}")
		if err != nil || got != port {
			t.Errorf("kubectl says port %q, %v; want %s", got, err, port)
		}
	}
	apply("80")
	apply("8080")
	config, err := c.Client().CoreV1().ConfigMaps(metav1.NamespaceDefault).Get(t.Context(), "applied", metav1.GetOptions{})
	if err != nil || config.Data["key"] != "value" {
		t.Errorf("the config map in the default namespace: %v, %v", config.Data, err)
	}
	if _, err := c.Kubectl(t.Context(), "get", "service", "none"); err == nil || !strings.Contains(err.Error(), "NotFound") {
		t.Errorf("kubectl get of a missing object: %v, want its message", err)
	}
}

func testScheduler(t *testing.T, c *cluster.Cluster) {
	fleet, err := c.SimulateNodes(t.Context(), nodes.Options{
		Count: 1, Initialized: true, Name: func(int) string { return "schedulable" },
	})
	if err != nil {
		t.Fatal(err)
	}
	pod := &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "pod"},
		Spec:       v1.PodSpec{Containers: []v1.Container{{Name: "c", Image: "none"}}},
	}
	pods := c.Client().CoreV1().Pods(metav1.NamespaceDefault)
	if _, err := pods.Create(t.Context(), pod, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the pod is bound", func() bool {
		pod, err := pods.Get(t.Context(), "pod", metav1.GetOptions{})
		return err == nil && pod.Spec.NodeName == fleet.Names()[0]
	})
}

func testOutage(t *testing.T, c *cluster.Cluster) {
	c.StopAPIServer()
	if _, err := c.Client().CoreV1().Nodes().List(t.Context(), metav1.ListOptions{}); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("a request during the outage: %v, want that the connection is refused", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if err := c.Wait(ctx); err != nil {
		t.Errorf("Wait calls an outage on demand a failure: %v", err)
	}
	if err := c.StartAPIServer(t.Context()); err != nil {
		t.Fatal(err)
	}
	// The data survived, and the controllers come back to work.
	const name = "after-outage"
	namespace := &v1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if _, err := c.Client().CoreV1().Namespaces().Create(t.Context(), namespace, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Client().CoreV1().ServiceAccounts(metav1.NamespaceSystem).Get(t.Context(), "default", metav1.GetOptions{}); err != nil {
		t.Errorf("an object from before the outage: %v", err)
	}
	eventually(t, "the controller-manager gives the namespace its service account", func() bool {
		_, err := c.Client().CoreV1().ServiceAccounts(name).Get(t.Context(), "default", metav1.GetOptions{})
		return err == nil
	})
}

// TestComponentDies checks that a component that ends by itself is reported.
func TestComponentDies(t *testing.T) {
	c, err := cluster.Run(t.Context(), cluster.Options{APIServerFlags: []string{"--no-such-flag"}})
	if err == nil {
		t.Errorf("Run with a wrong flag succeeded; Stop: %v", c.Stop())
		return
	}
	if !strings.Contains(err.Error(), "kube-apiserver ended by itself") || !strings.Contains(err.Error(), "no-such-flag") {
		t.Errorf("Run = %v, want the component and the end of its log", err)
	}
}
