// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"crypto/tls"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/oracle/oci-go-sdk/v65/common"
	"github.com/oracle/oci-go-sdk/v65/loadbalancer"
	"github.com/oracle/oci-go-sdk/v65/networkloadbalancer"
	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/oracle/oci-cloud-controller-manager/test/ocisim"
	"github.com/oracle/oci-cloud-controller-manager/test/ocisim/server"
	"github.com/oracle/oci-cloud-controller-manager/test/testbed"
)

const (
	oldDaemonSet = "../../test/fixtures/v1.35/daemonset.yaml"

	// lbFinalizer is the framework's, on every Service with a balancer.
	lbFinalizer = "service.kubernetes.io/load-balancer-cleanup"
)

// oldManifest starts our binary with the flags and the environment of release v1.35's manifest. Only the path of the
// config is another one; and since there is no pod, the kubeconfigs stand for what a pod finds in its file system.
func (l *lab) oldManifest() *lab {
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
	l.ccm = l.start("v1.35", env, args...)
	return l.watch()
}

// TestUpgrade: a cluster of release v1.35 gets our binary and nothing else. Its ClusterRole, flags, environment and
// balancers stay.
func TestUpgrade(t *testing.T) {
	l := newLab(t, testbed.Options{
		RBAC:   testbed.OldRBAC,
		Config: func(b *testbed.Bed) string { return testbed.WithoutRules(testbed.UserConfig(b)) }, // the region has no rules of v1.35's
	})
	old, err := l.Server.User("old")
	if err != nil {
		t.Fatal(err)
	}
	a := l.oldService("a", "lb")
	b := l.oldService("b", "nlb")
	l.oldLoadBalancer(old, a)
	l.oldNetworkLoadBalancer(old, b)
	before := string(l.Region.Snapshot())

	l.oldManifest()
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

// oldService is a Service as v1.35 leaves it, before its balancer has an address.
func (l *lab) oldService(name, kind string) *v1.Service {
	return l.service(name, kind, func(svc *v1.Service) { svc.Finalizers = []string{lbFinalizer} })
}

// inStatus writes the address of a balancer into the status of its Service.
func (l *lab) inStatus(svc *v1.Service, ip string) {
	l.t.Helper()
	svc.Status.LoadBalancer.Ingress = []v1.LoadBalancerIngress{{IP: ip}}
	if _, err := l.Cluster.Client().CoreV1().Services(svc.Namespace).UpdateStatus(l.ctx, svc, metav1.UpdateOptions{}); err != nil {
		l.t.Fatal(err)
	}
}

// asUser lets a client of the SDK call the region as a user.
func (l *lab) asUser(u *server.User, base *common.BaseClient) {
	base.HTTPClient = &http.Client{Transport: l.Region.Transport()}
}

func credentials(u *server.User) common.ConfigurationProvider {
	return common.NewRawConfigurationProvider(u.Tenancy, u.OCID, u.Region, u.Fingerprint, u.PrivateKeyPEM(), nil)
}

// oldLoadBalancer makes what v1.35 makes of a Service with one port (contract/ccm.md §3, §4.4, §4.11, §4.12).
func (l *lab) oldLoadBalancer(u *server.User, svc *v1.Service) {
	l.t.Helper()
	client, err := loadbalancer.NewLoadBalancerClientWithConfigurationProvider(credentials(u))
	if err != nil {
		l.t.Fatal(err)
	}
	l.asUser(u, &client.BaseClient)
	var backends []loadbalancer.BackendDetails
	for i := range 3 {
		backends = append(backends, loadbalancer.BackendDetails{
			IpAddress: common.String(testbed.NodeIP(i)), Port: common.Int(int(svc.Spec.Ports[0].NodePort)), Weight: common.Int(1),
		})
	}
	_, err = client.CreateLoadBalancer(l.ctx, loadbalancer.CreateLoadBalancerRequest{
		OpcRetryToken: common.String(string(svc.UID)),
		CreateLoadBalancerDetails: loadbalancer.CreateLoadBalancerDetails{
			CompartmentId: common.String(testbed.Compartment), DisplayName: common.String(string(svc.UID)),
			ShapeName: common.String("100Mbps"), SubnetIds: []string{testbed.PublicSubnet}, IsPrivate: common.Bool(false),
			IpMode: loadbalancer.CreateLoadBalancerDetailsIpModeIpv4,
			BackendSets: map[string]loadbalancer.BackendSetDetails{"TCP-80": {
				Policy: common.String("ROUND_ROBIN"), Backends: backends,
				HealthChecker: &loadbalancer.HealthCheckerDetails{
					Protocol: common.String("HTTP"), Port: common.Int(10256), UrlPath: common.String("/healthz"), ReturnCode: common.Int(200),
					Retries: common.Int(3), TimeoutInMillis: common.Int(3000), IntervalInMillis: common.Int(10000), IsForcePlainText: common.Bool(false),
				},
			}},
			Listeners: map[string]loadbalancer.ListenerDetails{"TCP-80": {
				DefaultBackendSetName: common.String("TCP-80"), Port: common.Int(80), Protocol: common.String("TCP"),
			}},
		},
	})
	if err != nil {
		l.t.Fatal(err)
	}
	l.until("the old load balancer", func() (bool, string) {
		all := l.Region.LoadBalancers()
		if len(all) != 1 || all[0].LifecycleState != loadbalancer.LoadBalancerLifecycleStateActive {
			return false, fmt.Sprint(len(all))
		}
		l.inStatus(svc, *all[0].IpAddresses[0].IpAddress)
		return true, ""
	})
}

// oldNetworkLoadBalancer is the same for a network load balancer.
func (l *lab) oldNetworkLoadBalancer(u *server.User, svc *v1.Service) {
	l.t.Helper()
	client, err := networkloadbalancer.NewNetworkLoadBalancerClientWithConfigurationProvider(credentials(u))
	if err != nil {
		l.t.Fatal(err)
	}
	l.asUser(u, &client.BaseClient)
	var backends []networkloadbalancer.Backend
	for i := range 3 {
		backends = append(backends, networkloadbalancer.Backend{
			IpAddress: common.String(testbed.NodeIP(i)), TargetId: common.String(testbed.InstanceID(i)),
			Port: common.Int(int(svc.Spec.Ports[0].NodePort)), Weight: common.Int(1),
		})
	}
	_, err = client.CreateNetworkLoadBalancer(l.ctx, networkloadbalancer.CreateNetworkLoadBalancerRequest{
		OpcRetryToken: common.String(string(svc.UID)),
		CreateNetworkLoadBalancerDetails: networkloadbalancer.CreateNetworkLoadBalancerDetails{
			CompartmentId: common.String(testbed.Compartment), SubnetId: common.String(testbed.PublicSubnet), IsPrivate: common.Bool(false),
			DisplayName:  common.String(svc.Namespace + "/" + svc.Name + "/" + string(svc.UID)),
			NlbIpVersion: networkloadbalancer.NlbIpVersionIpv4,
			BackendSets: map[string]networkloadbalancer.BackendSetDetails{"TCP-80": {
				Policy: networkloadbalancer.NetworkLoadBalancingPolicyFiveTuple, Backends: backends,
				IsPreserveSource: common.Bool(false), IpVersion: networkloadbalancer.IpVersionIpv4,
				HealthChecker: &networkloadbalancer.HealthChecker{
					Protocol: networkloadbalancer.HealthCheckProtocolsHttp, Port: common.Int(10256), UrlPath: common.String("/healthz"),
					ReturnCode: common.Int(200), Retries: common.Int(3), TimeoutInMillis: common.Int(3000), IntervalInMillis: common.Int(10000),
				},
			}},
			Listeners: map[string]networkloadbalancer.ListenerDetails{"TCP-80": {
				Name: common.String("TCP-80"), DefaultBackendSetName: common.String("TCP-80"), Port: common.Int(80),
				Protocol: networkloadbalancer.ListenerProtocolsTcp, IpVersion: networkloadbalancer.IpVersionIpv4,
			}},
		},
	})
	if err != nil {
		l.t.Fatal(err)
	}
	l.until("the old network load balancer", func() (bool, string) {
		all := l.Region.NetworkLoadBalancers()
		if len(all) != 1 || all[0].LifecycleState != networkloadbalancer.LifecycleStateActive {
			return false, fmt.Sprint(len(all))
		}
		for _, address := range all[0].IpAddresses {
			if address.IsPublic != nil && *address.IsPublic {
				l.inStatus(svc, *address.IpAddress)
			}
		}
		return true, ""
	})
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
