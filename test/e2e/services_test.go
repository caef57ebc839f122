// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"strings"
	"testing"

	"github.com/oracle/oci-go-sdk/v65/common"
	"github.com/oracle/oci-go-sdk/v65/loadbalancer"
	v1 "k8s.io/api/core/v1"

	"github.com/oracle/oci-cloud-controller-manager/test/cluster"
	"github.com/oracle/oci-cloud-controller-manager/test/ocisim"
	"github.com/oracle/oci-cloud-controller-manager/test/testbed"
)

// TestMainJob is the life of two Services: create, ports, nodes, restart, delete.
func TestMainJob(t *testing.T) {
	l := newLab(t, testbed.Options{}).ready()
	l.service("a", "", nil)
	l.service("b", "nlb", nil)
	lbService, nlbService := l.served("a"), l.served("b")
	l.wantBackends("lb 80: "+ips(0, 1, 2), "nlb 80: "+ips(0, 1, 2))
	lb, nlb := l.Region.LoadBalancers()[0], l.Region.NetworkLoadBalancers()[0]
	if *lb.DisplayName != string(lbService.UID) || *nlb.DisplayName != "default/b/"+string(nlbService.UID) {
		t.Errorf("display names %s and %s are not those of the contract", *lb.DisplayName, *nlb.DisplayName)
	}
	for kind, tags := range map[string]map[string]string{"lb": lb.FreeformTags, "nlb": nlb.FreeformTags} {
		if tags["oci-k8s-cluster"] == "" || tags["oci-k8s-owner"] == "" {
			t.Errorf("%s carries no marks: %v", kind, tags)
		}
	}
	if _, ok := lb.BackendSets["TCP-80"]; !ok {
		t.Errorf("backend sets %v have not the contract's names", lb.BackendSets)
	}

	for _, name := range []string{"a", "b"} {
		l.edit(name, func(svc *v1.Service) {
			svc.Spec.Ports = append(svc.Spec.Ports, v1.ServicePort{Name: "more", Port: 8080})
		})
	}
	l.wantBackends("lb 80: "+ips(0, 1, 2), "lb 8080: "+ips(0, 1, 2), "nlb 80: "+ips(0, 1, 2), "nlb 8080: "+ips(0, 1, 2))
	l.patchNode(testbed.NodeName(1), `{"metadata":{"labels":{"node.kubernetes.io/exclude-from-external-load-balancers":"true"}}}`)
	l.wantBackends("lb 80: "+ips(0, 2), "lb 8080: "+ips(0, 2), "nlb 80: "+ips(0, 2), "nlb 8080: "+ips(0, 2))
	l.settled()

	// A restart changes nothing: the second reconcile writes nothing.
	l.ccm.Kill()
	before := l.calls(writes)
	l.run()
	l.eventually("nodes", l.NodesInitialized)
	l.settled()
	if n := l.calls(writes) - before; n != 0 {
		t.Errorf("%d writes to the region after a restart without a change", n)
	}
	l.gone("a")
	l.gone("b")
	l.empty()
	l.onlyTheServiceAccount()
}

// onlyTheServiceAccount checks in the audit log that the cloud-controller-manager acted as its ServiceAccount, and
// that its role was enough: nothing was forbidden.
func (l *lab) onlyTheServiceAccount() {
	l.t.Helper()
	const user = "system:serviceaccount:kube-system:cloud-controller-manager"
	events, err := l.Cluster.AuditLog().Select(cluster.AuditFilter{User: user})
	if err != nil {
		l.t.Fatal(err)
	}
	if len(events) == 0 {
		l.t.Fatal("no request of the ServiceAccount in the audit log")
	}
	for _, e := range events {
		if e.ResponseStatus != nil && e.ResponseStatus.Code == 403 {
			l.t.Errorf("the role forbids %s %s", e.Verb, e.RequestURI)
		}
	}
}

// TestC020NodesWithoutUsableIDs: zero usable backends out of some nodes is an error with the reasons, not a success.
func TestC020NodesWithoutUsableIDs(t *testing.T) {
	world := testbed.WorldOf(2)
	instances := world.Instances
	world.Instances = nil // the nodes exist, their instances do not yet
	o := testbed.DemoNodes(testbed.WorldOf(2), false)
	l := newLab(t, testbed.Options{World: world, Nodes: o}).run()
	l.service("a", "nlb", nil)
	l.event("default", "a", "NoUsableNodes", testbed.NodeName(0), testbed.NodeName(1))
	if svc := l.get("a"); len(svc.Status.LoadBalancer.Ingress) != 0 {
		t.Errorf("the status says success: %v", svc.Status.LoadBalancer)
	}
	for _, i := range instances {
		l.Region.AddInstance(i)
	}
	l.eventually("nodes initialised", l.NodesInitialized)
	l.served("a")
	l.wantBackends("nlb 80: " + ips(0, 1))
}

// TestC021DeadMachine: a Node whose machine is gone blocks no update for the others.
func TestC021DeadMachine(t *testing.T) {
	l := newLab(t, testbed.Options{World: testbed.WorldOf(4)}).ready()
	l.service("a", "lb", nil)
	l.served("a")
	if err := l.Region.Foreign().TerminateInstance(testbed.InstanceID(2)); err != nil {
		t.Fatal(err)
	}
	l.patchNode(testbed.NodeName(3), `{"metadata":{"labels":{"node.kubernetes.io/exclude-from-external-load-balancers":"true"}}}`)
	l.until("update in spite of the dead machine", func() (bool, string) {
		got := strings.Join(l.backends(), ";")
		return got == "lb 80: "+ips(0, 1, 2) || got == "lb 80: "+ips(0, 1), got
	})
}

// TestC022NotReadyNodesStay: readiness is left to the balancer's health check.
func TestC022NotReadyNodesStay(t *testing.T) {
	l := newLab(t, testbed.Options{}).ready("--node-monitor-period=1s")
	l.service("a", "lb", nil)
	l.served("a")
	l.settled()
	before := l.calls(writes)
	if err := l.Nodes.SetReady(false, l.Nodes.Names()...); err != nil {
		t.Fatal(err)
	}
	l.never("a write while nodes are not ready", func() (bool, string) {
		return l.calls(writes) > before, strings.Join(l.backends(), "; ")
	})
	l.patchNode(testbed.NodeName(2), `{"spec":{"taints":[{"key":"ToBeDeletedByClusterAutoscaler","effect":"NoSchedule"}]}}`)
	l.wantBackends("lb 80: " + ips(0, 1))
}

// TestC024DeletedInTheConsole: the periodic pass finds the loss without any trigger; with the policy taken away it does
// not make a second balancer.
func TestC024DeletedInTheConsole(t *testing.T) {
	l := newLab(t, testbed.Options{}).ready("--oci-service-resync-period=2s")
	l.service("a", "lb", nil)
	l.served("a")
	l.settled()
	lost := *l.Region.LoadBalancers()[0].Id
	if err := l.Region.Foreign().Delete(lost); err != nil {
		t.Fatal(err)
	}
	l.until("a new balancer", func() (bool, string) {
		all := l.Region.LoadBalancers()
		return len(all) == 1 && *all[0].Id != lost && all[0].LifecycleState == loadbalancer.LoadBalancerLifecycleStateActive, l.CallLog(10)
	})
	l.settled()
	restore := l.Region.Deny(ocisim.Policy{ResourceType: "load-balancers", Verb: ocisim.Inspect})
	before := l.calls(operation("CreateLoadBalancer"))
	l.never("a create while the policy is gone", func() (bool, string) {
		return l.calls(operation("CreateLoadBalancer")) > before, l.CallLog(10)
	})
	restore()
	l.never("a second balancer after the policy returned", func() (bool, string) {
		return len(l.Region.LoadBalancers()) != 1, l.CallLog(10)
	})
}

// TestC025OneBalancerOnly: answers that are lost after they were applied, and lists that fail, do not double a balancer.
func TestC025OneBalancerOnly(t *testing.T) {
	l := newLab(t, testbed.Options{}).ready()
	l.Region.Fault(ocisim.Fault{Operation: "CreateLoadBalancer", Nth: 1, Drop: ocisim.AfterApply})
	l.Region.Fault(ocisim.Fault{Operation: "CreateNetworkLoadBalancer", Nth: 1, Drop: ocisim.AfterApply})
	l.Region.Fault(ocisim.Fault{Operation: "ListLoadBalancers", Nth: 1, Status: 500})
	l.Region.Fault(ocisim.Fault{Operation: "ListNetworkLoadBalancers", Nth: 1, Status: 404})
	l.service("a", "lb", nil)
	l.service("b", "nlb", nil)
	l.served("a")
	l.served("b")
	if a, b := len(l.Region.LoadBalancers()), len(l.Region.NetworkLoadBalancers()); a != 1 || b != 1 {
		t.Errorf("%d load balancers and %d network load balancers, want one of each", a, b)
	}
	l.gone("a")
	l.gone("b")
	l.empty()
}

// TestC027DeleteWithoutPolicy: gone or not allowed to see it? The finalizer stays until that is known.
func TestC027DeleteWithoutPolicy(t *testing.T) {
	l := newLab(t, testbed.Options{}).ready()
	l.service("a", "lb", nil)
	l.served("a")
	l.settled()
	restore := l.Region.Deny(ocisim.Policy{ResourceType: "load-balancers", Verb: ocisim.Inspect})
	l.delete("a")
	l.event("default", "a", "", "load-balancers")
	l.never("the finalizer is dropped without proof", func() (bool, string) {
		return len(l.get("a").Finalizers) == 0, l.CallLog(10)
	})
	restore()
	l.poke("a")
	l.eventually("gone", func(ctx ctxT) error { return l.ServiceGone(ctx, "default", "a") })
	l.empty()

	// Removed by hand: the deletion goes through.
	l.service("b", "lb", nil)
	l.served("b")
	l.settled()
	if err := l.Region.Foreign().Delete(*l.Region.LoadBalancers()[0].Id); err != nil {
		t.Fatal(err)
	}
	l.gone("b")
}

// TestC029PortChange: order of changes, swaps and renames.
func TestC029PortChange(t *testing.T) {
	for _, kind := range []string{"lb", "nlb"} {
		t.Run(kind, func(t *testing.T) {
			l := newLab(t, testbed.Options{}).ready()
			l.service("a", kind, func(svc *v1.Service) {
				svc.Spec.Ports = []v1.ServicePort{{Name: "x", Port: 80, NodePort: 30080}, {Name: "y", Port: 443, NodePort: 30443}}
			})
			l.served("a")
			l.settled()
			l.edit("a", func(svc *v1.Service) { svc.Spec.Ports[0].Port = 81 })
			l.wantBackends(kind+" 443: "+ips(0, 1, 2), kind+" 81: "+ips(0, 1, 2))
			l.settled()
			if touched := l.calls(func(c ocisim.Call) bool {
				return c.Operation == "DeleteListener" && strings.Contains(c.Path, "443")
			}); touched != 0 {
				t.Error("the listener of an unchanged port was deleted")
			}
			l.edit("a", func(svc *v1.Service) {
				svc.Spec.Ports[0].NodePort, svc.Spec.Ports[1].NodePort = 30443, 30080
			})
			l.until("swapped node ports", func() (bool, string) {
				got := l.backendPorts()
				return got["81"] == 30443 && got["443"] == 30080, l.CallLog(10)
			})
			l.settled()
			before := l.calls(writes)
			l.edit("a", func(svc *v1.Service) { svc.Spec.Ports[0].Name = "renamed" })
			l.never("a write for a rename", func() (bool, string) { return l.calls(writes) > before, l.CallLog(5) })
			for _, c := range l.Region.Calls() {
				if c.Write && c.Status >= 400 && c.Status != 409 {
					t.Errorf("the region refused %s: %d %s", c.Operation, c.Status, c.Code)
				}
			}
		})
	}
}

// backendPorts maps listener ports to the port of their backends.
func (l *lab) backendPorts() map[string]int {
	ports := map[string]int{}
	for _, lb := range l.Region.LoadBalancers() {
		for _, li := range lb.Listeners {
			for _, b := range lb.BackendSets[*li.DefaultBackendSetName].Backends {
				ports[itoa(*li.Port)] = *b.Port
			}
		}
	}
	for _, nlb := range l.Region.NetworkLoadBalancers() {
		for _, li := range nlb.Listeners {
			for _, b := range nlb.BackendSets[*li.DefaultBackendSetName].Backends {
				ports[itoa(*li.Port)] = *b.Port
			}
		}
	}
	return ports
}

// TestC034CauseOfAFailedWorkRequest and C161: one event series with code and message of the work request.
func TestC034CauseOfAFailedWorkRequest(t *testing.T) {
	l := newLab(t, testbed.Options{}).ready()
	remove := l.Region.Fault(ocisim.Fault{
		Operation: "CreateLoadBalancer", FailWork: true, Code: "BAD_INPUT", Message: "no free addresses in subnet s1",
	})
	l.service("a", "lb", nil)
	l.event("default", "a", "WorkRequestFailed", "BAD_INPUT", "no free addresses in subnet s1", "opc-request-id")
	remove()
	l.poke("a") // a change of the Service ends the slow retry
	l.served("a")
	if n := len(l.Region.LoadBalancers()); n != 1 {
		t.Errorf("%d load balancers: the failed one must be gone", n)
	}
}

// TestC035LimitExceeded: the default is flexible; a limit is named in an event and not hammered.
func TestC035LimitExceeded(t *testing.T) {
	behaviour := ocisim.DefaultBehaviour()
	behaviour.ServiceLimits["lb-100mbps-count"] = 0
	behaviour.ServiceLimits["lb-flexible-count"] = 1
	l := newLab(t, testbed.Options{Region: ocisim.Options{Behaviour: behaviour}}).ready()
	l.service("a", "", nil)
	l.served("a")
	if shape := *l.Region.LoadBalancers()[0].ShapeName; shape != "flexible" {
		t.Errorf("default shape %s", shape)
	}
	l.service("b", "", nil)
	l.event("default", "b", "LimitExceeded", "lb-flexible-count")
}

// TestC039NoSubnet: an event that names the key and the annotation; no write; the annotation heals it.
func TestC039NoSubnet(t *testing.T) {
	l := newLab(t, testbed.Options{Config: func(b *testbed.Bed) string {
		text, _, _ := strings.Cut(testbed.UserConfig(b), "vcn:")
		return text + "loadBalancer: {}\n"
	}}).ready()
	l.service("a", "lb", nil)
	l.event("default", "a", "NoSubnet", "loadBalancer.subnet1", "service.beta.kubernetes.io/oci-load-balancer-subnet1")
	if n := l.calls(writes); n != 0 {
		t.Errorf("%d writes without a subnet", n)
	}
	l.edit("a", func(svc *v1.Service) {
		svc.Annotations["service.beta.kubernetes.io/oci-load-balancer-subnet1"] = testbed.PublicSubnet
	})
	l.served("a")
}

// TestC055ForeignSettingsSurvive: what somebody else set on our balancer outlives a node change and a port change.
func TestC055ForeignSettingsSurvive(t *testing.T) {
	l := newLab(t, testbed.Options{}).ready()
	l.service("a", "lb", nil)
	l.served("a")
	l.settled()
	id := *l.Region.LoadBalancers()[0].Id
	err := l.Region.Foreign().LoadBalancer(id, func(lb *loadbalancer.LoadBalancer) {
		set := lb.BackendSets["TCP-80"]
		set.SessionPersistenceConfiguration = &loadbalancer.SessionPersistenceConfigurationDetails{CookieName: common.String("*")}
		set.Backends[0].MaxConnections = common.Int(256)
		lb.BackendSets["TCP-80"] = set
		hand := set
		hand.Name = common.String("hand")
		lb.BackendSets["hand"] = hand
		lb.Listeners["hand-9443"] = loadbalancer.Listener{
			Name: common.String("hand-9443"), Port: common.Int(9443), Protocol: common.String("TCP"), DefaultBackendSetName: common.String("hand"),
		}
		lb.FreeformTags["team"] = "blue"
	})
	if err != nil {
		t.Fatal(err)
	}
	l.patchNode(testbed.NodeName(2), `{"metadata":{"labels":{"node.kubernetes.io/exclude-from-external-load-balancers":"true"}}}`)
	l.until("node change", func() (bool, string) {
		lb, _ := l.Region.LoadBalancer(id)
		return len(lb.BackendSets["TCP-80"].Backends) == 2, strings.Join(l.backends(), "; ")
	})
	l.edit("a", func(svc *v1.Service) {
		svc.Spec.Ports = append(svc.Spec.Ports, v1.ServicePort{Name: "more", Port: 8080})
	})
	l.until("port change", func() (bool, string) {
		lb, _ := l.Region.LoadBalancer(id)
		_, ok := lb.Listeners["TCP-8080"]
		return ok, strings.Join(l.backends(), "; ")
	})
	l.settled()
	lb, _ := l.Region.LoadBalancer(id)
	set := lb.BackendSets["TCP-80"]
	if set.SessionPersistenceConfiguration == nil {
		t.Error("the session persistence that somebody set is lost")
	}
	if m := set.Backends[0].MaxConnections; m == nil || *m != 256 {
		t.Error("the connection limit of a backend is lost")
	}
	if _, ok := lb.Listeners["hand-9443"]; !ok || len(lb.BackendSets["hand"].Backends) != 3 {
		t.Error("a foreign listener or backend set was touched")
	}
	if lb.FreeformTags["team"] != "blue" {
		t.Error("a foreign tag is lost")
	}
}
