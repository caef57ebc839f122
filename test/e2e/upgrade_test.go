// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"crypto/tls"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/oracle/oci-cloud-controller-manager/test/ocisim"
	"github.com/oracle/oci-cloud-controller-manager/test/testbed"
)

const (
	oldDaemonSet = "../../test/fixtures/v1.35/daemonset.yaml"

	// lbFinalizer is the framework's, on every Service with a balancer.
	lbFinalizer = "service.kubernetes.io/load-balancer-cleanup"
)

// oldManifest starts our binary with the flags and the environment of release v1.35's manifest. Only the path of the
// config is another one; and since there is no pod, the kubeconfigs stand for what a pod finds in its file system.
func (l *lab) oldManifest(name string, flags ...string) *lab {
	l.t.Helper()
	text, err := os.ReadFile(oldDaemonSet)
	if err != nil {
		l.t.Fatal(err)
	}
	var manifest appsv1.DaemonSet
	if err := yaml.UnmarshalStrict(text, &manifest); err != nil {
		l.t.Fatal(err)
	}
	container := manifest.Spec.Template.Spec.Containers[0]
	var env []string
	for _, e := range container.Env {
		env = append(env, e.Name+"="+e.Value)
	}
	args := slices.Concat(container.Command[1:], container.Args)
	replaced := slices.IndexFunc(args, func(a string) bool { return strings.HasPrefix(a, "--cloud-config=/etc/oci/") })
	if replaced < 0 || len(env) == 0 || len(args) < 5 {
		l.t.Fatalf("the fixture has arguments %q and environment %q", args, env)
	}
	args[replaced] = "--cloud-config=" + l.ConfigPath()
	kubeconfig := l.accountKubeconfig()
	for _, flag := range []string{"kubeconfig", "authentication-kubeconfig", "authorization-kubeconfig"} {
		args = append(args, "--"+flag+"="+kubeconfig)
	}
	l.ccm = l.start(name, env, append(args, flags...)...)
	return l.watch()
}

// TestUpgrade: a cluster of release v1.35 gets our binary and nothing else. Its ClusterRole, flags, environment and
// balancers stay.
func TestUpgrade(t *testing.T) {
	l := newLab(t, testbed.Options{RBAC: testbed.OldRBAC})
	former := l.former()
	lists := l.Region.SecurityLists()
	a := l.inherit(former, "a", "lb", nil)
	b := l.inherit(former, "b", "nlb", nil)
	before := string(l.Region.Snapshot())

	l.oldManifest("v1.35")
	l.eventually("nodes initialised", l.NodesInitialized)
	l.until("both Services are looked at", func() (bool, string) {
		seen := l.calls(func(c ocisim.Call) bool {
			return c.Principal == l.User.OCID && strings.HasSuffix(c.Operation, "LoadBalancer")
		})
		return seen >= 2, l.CallLog(10)
	})
	l.settled()
	if after := string(l.Region.Snapshot()); after != before {
		t.Errorf("the first reconcile changed the region:\n%s", l.CallLog(20))
	}
	l.healthy()

	// The duties: new Services, changes, nodes, deletion.
	l.service("c", "lb", nil)
	l.service("d", "nlb", nil)
	l.served("c")
	l.served("d")
	for _, name := range []string{"a", "b"} {
		l.edit(name, func(svc *v1.Service) {
			svc.Spec.Ports = append(svc.Spec.Ports, v1.ServicePort{Name: "more", Port: 8080})
		})
	}
	both := func(nodes string) []string {
		rows := []string{"lb 80: " + nodes, "lb 80: " + nodes, "lb 8080: " + nodes, "nlb 80: " + nodes, "nlb 80: " + nodes, "nlb 8080: " + nodes}
		slices.Sort(rows)
		return rows
	}
	l.wantBackends(both(ips(0, 1, 2))...)
	l.patchNode(testbed.NodeName(2), `{"metadata":{"labels":{"node.kubernetes.io/exclude-from-external-load-balancers":"true"}}}`)
	l.wantBackends(both(ips(0, 1))...)
	l.settled()
	l.adopted(a, b)
	for _, name := range []string{"a", "b", "c", "d"} {
		l.gone(name)
	}
	l.empty()
	l.closeByHand(lists)

	// What the old role lacks is told once, and nothing was tried that it forbids.
	l.event("kube-system", "cloud-controller-manager", "PermissionMissing", "namespaces", "clusterId")
	if events := l.Events(l.ctx, "kube-system", "cloud-controller-manager"); strings.Count(events, "PermissionMissing x1: ") != 1 {
		t.Errorf("want one event about one missing rule, got\n%s", events)
	}
	if n := strings.Count(l.log(l.ccm), "lacks the rule"); n != 1 {
		t.Errorf("the log tells %d times what the role lacks, want once", n)
	}
	l.stop()
	l.onlyTheServiceAccount()
}

// adopted checks that the two oldest balancers still are those of a and b, with the shape that they had and with the
// marks that they got when they had to be written to.
func (l *lab) adopted(a, b *v1.Service) {
	l.t.Helper()
	lbs, nlbs := l.Region.LoadBalancers(), l.Region.NetworkLoadBalancers()
	if len(lbs) != 2 || len(nlbs) != 2 {
		l.t.Fatalf("%d load balancers and %d network load balancers, want 2 and 2", len(lbs), len(nlbs))
	}
	if *lbs[0].DisplayName != string(a.UID) || *lbs[0].ShapeName != "100Mbps" {
		l.t.Errorf("the old load balancer is %s with shape %s", *lbs[0].DisplayName, *lbs[0].ShapeName)
	}
	for name, tags := range map[string]map[string]string{string(a.UID): lbs[0].FreeformTags, string(b.UID): nlbs[0].FreeformTags} {
		if tags["oci-k8s-owner"] != name {
			l.t.Errorf("the adopted balancer of %s has the tags %v", name, tags)
		}
	}
	for name, id := range map[string]string{"a": *lbs[0].Id, "b": *nlbs[0].Id} {
		if got := l.get(name).Annotations["oci.oraclecloud.com/load-balancer-ocid"]; got != id {
			l.t.Errorf("Service %s notes balancer %s, want %s", name, got, id)
		}
	}
	for i, svc := range []*v1.Service{a, b} {
		have := l.get(svc.Name).Status.LoadBalancer.Ingress
		if len(have) == 0 {
			l.t.Errorf("Service %s has lost its address", svc.Name)
			continue
		}
		if i == 0 && have[0].IP != *lbs[0].IpAddresses[0].IpAddress {
			l.t.Errorf("Service a has another address: %v", have)
		}
	}
}

// healthy asks the health endpoint on the port that the flags leave at its default.
func (l *lab) healthy() {
	l.t.Helper()
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}} //nolint:gosec // self-signed
	defer client.CloseIdleConnections()
	l.until("health", func() (bool, string) {
		request, err := http.NewRequestWithContext(l.ctx, http.MethodGet, "https://127.0.0.1:10258/healthz", nil)
		if err != nil {
			return false, err.Error()
		}
		response, err := client.Do(request)
		if err != nil {
			return false, err.Error()
		}
		defer response.Body.Close()
		return response.StatusCode == http.StatusOK, response.Status
	})
}
