// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/oracle/oci-cloud-controller-manager/test/ocisim"
	"github.com/oracle/oci-cloud-controller-manager/test/testbed"
)

const inDemo = " in compartment " + testbed.Compartment

// documentedPolicies are exactly those that the documentation of release v1.35 asks for (contract/ccm.md §9). There is
// nothing about the tenancy, the identity service or network load balancers in it.
func documentedPolicies() []string {
	return []string{
		"Allow group ccm to read instance-family" + inDemo,
		"Allow group ccm to use virtual-network-family" + inDemo,
		"Allow group ccm to manage load-balancers" + inDemo,
		"Allow group ccm to manage security-lists" + inDemo,
	}
}

// grant limits the principal of the cloud-controller-manager to policy statements.
func (l *lab) grant(statements ...string) {
	l.t.Helper()
	if _, err := l.Region.Grant(ocisim.Grant{Principal: l.User.OCID, Statements: statements}); err != nil {
		l.t.Fatal(err)
	}
}

// inCluster are the machines of the table whose instances are in the cluster's compartment, and whose Nodes do not claim
// to be in another one.
func inCluster() []machine {
	return slices.DeleteFunc(nodeTable(), func(m machine) bool { return m.instance.Compartment != "" || m.annotation != "" })
}

// notReady lets a Node that no simulated kubelet looks after report that it is not ready.
func (l *lab) notReady(name string) {
	l.t.Helper()
	n := l.getNode(name)
	n.Status.Conditions[0].Status = v1.ConditionFalse
	if _, err := l.Cluster.Client().CoreV1().Nodes().UpdateStatus(l.ctx, n, metav1.UpdateOptions{}); err != nil {
		l.t.Fatal(err)
	}
}

// TestDocumentedPolicies: with the policies that the old documentation names everything works that they are for. What
// needs another one is refused with the statement to add, and disturbs nothing else.
func TestDocumentedPolicies(t *testing.T) {
	const reserved = "203.0.113.77"
	world := initWorld()
	world.PublicIPs = append(world.PublicIPs, ocisim.PublicIP{Name: "reserved", Address: reserved})
	l := newLab(t, testbed.Options{World: world, Nodes: noFleet()})
	l.grant(documentedPolicies()...)
	machines := inCluster()
	for _, m := range machines {
		l.Region.AddInstance(m.instance)
		l.register(m.kubelet())
	}
	lists := l.Region.SecurityLists()
	l.run(askOften, "--oci-new-node-grace-period=1s", "--node-status-update-frequency=2s")
	for _, m := range machines {
		l.wantNode(m)
	}

	// LBs, also with a reserved address, with security lists as by default.
	l.service("a", "lb", nil)
	l.service("b", "lb", func(svc *v1.Service) { svc.Spec.LoadBalancerIP = reserved })
	l.served("a")
	if svc := l.served("b"); svc.Status.LoadBalancer.Ingress[0].IP != reserved {
		t.Errorf("the Service with a reserved address has %v", svc.Status.LoadBalancer.Ingress)
	}
	l.edit("a", func(svc *v1.Service) {
		svc.Spec.Ports = append(svc.Spec.Ports, v1.ServicePort{Name: "more", Port: 8080})
	})
	l.until("both ports", func() (bool, string) {
		rows := l.backends()
		return len(rows) == 3, strings.Join(rows, "; ")
	})

	l.until("security rules", func() (bool, string) { return len(l.rulesOfOurs()) > 0, "none" })

	// Nothing else was refused: the policies are enough for it.
	for _, c := range l.Region.Calls() {
		if c.Status == 404 && c.Service != ocisim.ServiceNetworkLoadBalancer {
			t.Errorf("%s is refused: %s", c.Name(), c.Path)
		}
	}

	// A terminated instance, and one that is not there any more: exactly these Nodes go.
	gone := []string{machines[0].name, machines[1].name}
	if err := l.Region.Foreign().TerminateInstance(machines[0].instance.ID); err != nil {
		t.Fatal(err)
	}
	if err := l.Region.Foreign().Delete(machines[1].instance.ID); err != nil {
		t.Fatal(err)
	}
	left := slices.DeleteFunc(l.nodeNames(), func(n string) bool { return slices.Contains(gone, n) })
	for _, name := range gone {
		l.notReady(name)
	}
	l.wantNodes(left...)

	for _, name := range []string{"a", "b"} {
		l.gone(name)
	}
	l.empty()
	if diff := cmp.Diff(lists, l.Region.SecurityLists()); diff != "" {
		t.Errorf("the security lists are not what they were (-before +now):\n%s", diff)
	}

	// What needs another policy says so, in one event.
	l.service("g", "lb", func(svc *v1.Service) { svc.Annotations["oci.oraclecloud.com/security-rule-management-mode"] = "NSG" })
	l.event("default", "g", "SecurityRulesNotApplied", "404", "manage network-security-groups", "manage vcns")
	l.service("n", "nlb", nil)
	l.event("default", "n", "CloudError", "404", "manage network-load-balancers")
	if events := l.Events(l.ctx, "default", "n"); strings.Count(events, "CloudError") != 1 {
		t.Errorf("want one event about the missing policy, got\n%s", events)
	}

	l.gone("g")

	// That a network load balancer was not made is no proof that there is none: for that, too, the statement is needed.
	l.delete("n")
	l.event("default", "n", "SyncLoadBalancerFailed", "404", "manage network-load-balancers")
	l.grant("Allow group ccm to manage network-load-balancers" + inDemo)
	l.poke("n")
	l.eventually("n is gone", func(ctx ctxT) error { return l.ServiceGone(ctx, v1.NamespaceDefault, "n") })
	l.stop()
	if events := l.Events(l.ctx, "kube-system", "cloud-controller-manager"); strings.Contains(events, "AddressListsUnusable") {
		t.Errorf("addresses had to be read one by one:\n%s", events)
	}
	l.nothingForbidden()
}

// TestAddressesWithoutTheNetworkPolicy: with the policy for instances alone nodes are initialised too, since that policy
// covers VNICs. That this costs more calls is told once for each subnet, with the statement to add.
func TestAddressesWithoutTheNetworkPolicy(t *testing.T) {
	l := newLab(t, testbed.Options{World: testbed.WorldOf(8)})
	l.grant("Allow group ccm to read instance-family" + inDemo)
	l.run()
	l.eventually("nodes initialised", l.NodesInitialized)
	for i := range 8 {
		name := testbed.NodeName(i)
		l.wantNode(machine{
			name: name, instance: l.World.Instances[i], wantProviderID: testbed.InstanceID(i),
			wantAddresses: []string{"InternalIP " + testbed.NodeIP(i)},
		})
	}
	l.event("kube-system", "cloud-controller-manager", "AddressListsUnusable", testbed.PrivateSubnet, "use virtual-network-family")
	l.stop()
}
