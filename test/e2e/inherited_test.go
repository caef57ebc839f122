// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/oracle/oci-go-sdk/v65/common"
	"github.com/oracle/oci-go-sdk/v65/core"
	"github.com/oracle/oci-go-sdk/v65/loadbalancer"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/oracle/oci-cloud-controller-manager/test/legacy"
	"github.com/oracle/oci-cloud-controller-manager/test/ocisim"
	"github.com/oracle/oci-cloud-controller-manager/test/pki"
	"github.com/oracle/oci-cloud-controller-manager/test/testbed"
)

// former is release v1.35 in the cluster of the lab.
func (l *lab) former() *legacy.Release {
	l.t.Helper()
	u, err := l.Server.User("former")
	if err != nil {
		l.t.Fatal(err)
	}
	var nodes []*v1.Node
	for i := range l.World.Instances {
		nodes = append(nodes, &v1.Node{
			ObjectMeta: metav1.ObjectMeta{Name: testbed.NodeName(i)},
			Spec:       v1.NodeSpec{ProviderID: testbed.InstanceID(i)},
			Status:     v1.NodeStatus{Addresses: []v1.NodeAddress{{Type: v1.NodeInternalIP, Address: testbed.NodeIP(i)}}},
		})
	}
	return &legacy.Release{
		Region: l.Region, Compartment: testbed.Compartment, VCN: testbed.VCN, Subnets: []string{testbed.PublicSubnet}, Nodes: nodes,
		Credentials: common.NewRawConfigurationProvider(u.Tenancy, u.OCID, u.Region, u.Fingerprint, u.PrivateKeyPEM(), nil),
		Services:    l.loadBalanced,
		Secrets:     map[string]legacy.Secret{},
	}
}

// loadBalanced are the Services of type LoadBalancer.
func (l *lab) loadBalanced() []*v1.Service {
	l.t.Helper()
	list, err := l.Cluster.Client().CoreV1().Services(v1.NamespaceDefault).List(l.ctx, metav1.ListOptions{})
	if err != nil {
		l.t.Fatal(err)
	}
	var out []*v1.Service
	for i := range list.Items {
		if list.Items[i].Spec.Type == v1.ServiceTypeLoadBalancer {
			out = append(out, &list.Items[i])
		}
	}
	return out
}

// inherit makes a Service as v1.35 leaves it, with its balancer and rules: finalizer, and status with all addresses.
func (l *lab) inherit(former *legacy.Release, name, kind string, change func(*v1.Service)) *v1.Service {
	l.t.Helper()
	svc := l.service(name, kind, func(svc *v1.Service) {
		svc.Finalizers = []string{lbFinalizer}
		if change != nil {
			change(svc)
		}
	})
	id, err := former.Make(l.ctx, svc)
	if err != nil {
		l.t.Fatalf("%s: %v", name, err)
	}
	for _, ip := range l.addressesOf(id) {
		svc.Status.LoadBalancer.Ingress = append(svc.Status.LoadBalancer.Ingress, v1.LoadBalancerIngress{IP: ip})
	}
	if _, err := l.Cluster.Client().CoreV1().Services(svc.Namespace).UpdateStatus(l.ctx, svc, metav1.UpdateOptions{}); err != nil {
		l.t.Fatal(err)
	}
	return svc
}

// addressesOf are the addresses of a balancer, public ones first.
func (l *lab) addressesOf(id string) []string {
	var public, private []string
	add := func(ip *string, isPublic *bool) {
		if isPublic != nil && *isPublic {
			public = append(public, *ip)
		} else {
			private = append(private, *ip)
		}
	}
	for _, b := range l.Region.LoadBalancers() {
		for _, a := range b.IpAddresses {
			if *b.Id == id {
				add(a.IpAddress, a.IsPublic)
			}
		}
	}
	for _, b := range l.Region.NetworkLoadBalancers() {
		for _, a := range b.IpAddresses {
			if *b.Id == id {
				add(a.IpAddress, a.IsPublic)
			}
		}
	}
	return append(public, private...)
}

// closeByHand puts the rules of security lists back to what they were, as docs/upgrade.md says of those of v1.35: that program
// has not described them, and this one does not remove them.
func (l *lab) closeByHand(lists []core.SecurityList) {
	l.t.Helper()
	for _, before := range lists {
		now, _ := l.Region.SecurityList(*before.Id)
		for _, r := range now.IngressSecurityRules {
			if r.Description != nil && strings.HasPrefix(*r.Description, "k8s ") {
				l.t.Errorf("a rule of ours is left over: %v", r)
			}
		}
		err := l.Region.Foreign().SecurityList(*before.Id, func(list *core.SecurityList) {
			list.IngressSecurityRules, list.EgressSecurityRules = before.IngressSecurityRules, before.EgressSecurityRules
		})
		if err != nil {
			l.t.Error(err)
		}
	}
}

// ruled are all security rules of the region.
func (l *lab) ruled() map[string]any {
	out := map[string]any{}
	for _, list := range l.Region.SecurityLists() {
		out[*list.Id] = []any{list.IngressSecurityRules, list.EgressSecurityRules}
	}
	for _, g := range l.Region.SecurityGroups() {
		out[*g.Id] = []any{g.FreeformTags, l.Region.GroupRules(*g.Id)}
	}
	return out
}

const backendGroup = "ocid1.networksecuritygroup.oc1.iad.aaaaaaaabackends"

// inheritAll makes Services of all the kinds of rules, names and certificates that v1.35 knows. The certificate of the last
// one was renewed without v1.35 noticing.
func (l *lab) inheritAll(former *legacy.Release) []*v1.Service {
	l.t.Helper()
	one, renewed := pki.New(l.t, "one"), pki.New(l.t, "renewed")
	for _, name := range []string{"tls", "renewed"} {
		l.secret(name, one)
		former.Secrets[v1.NamespaceDefault+"/"+name] = legacy.Secret{Certificate: one.Certificate, Key: one.Key}
	}
	set := func(list ...string) func(*v1.Service) {
		return func(svc *v1.Service) {
			for pair := range slices.Chunk(list, 2) {
				svc.Annotations[pair[0]] = pair[1]
			}
		}
	}
	local := func(change func(*v1.Service)) func(*v1.Service) {
		return func(svc *v1.Service) {
			change(svc)
			svc.Spec.ExternalTrafficPolicy = v1.ServiceExternalTrafficPolicyLocal
		}
	}
	udp := func(change func(*v1.Service)) func(*v1.Service) {
		return func(svc *v1.Service) {
			change(svc)
			svc.Spec.Ports = []v1.ServicePort{{Name: "dns", Port: 53, Protocol: v1.ProtocolUDP}}
		}
	}
	const mode, groups, prefix = "oci.oraclecloud.com/security-rule-management-mode", "oci.oraclecloud.com/oci-backend-network-security-group", "service.beta.kubernetes.io/oci-load-balancer-"
	var svcs []*v1.Service
	for _, x := range []struct {
		name, kind string
		change     func(*v1.Service)
	}{
		{"plain", "lb", nil},
		{"same-port", "lb", set(prefix+"security-list-management-mode", "All")},
		{"frontend", "lb", set(mode, "SL-Frontend")},
		{"groups", "lb", set(mode, "NSG", groups, backendGroup)},
		{"http", "lb", set(prefix+"backend-protocol", "HTTP")},
		{"tls", "lb", set(prefix+"ssl-ports", "80", prefix+"tls-secret", "tls")},
		{"n-plain", "nlb", nil},
		{"n-local", "nlb", local(set(mode, "SL-All"))},
		{"n-capitals", "NLB", local(set(mode, "SL-All"))},
		{"n-groups-udp", "nlb", udp(set(mode, "NSG", groups, backendGroup))},
		{"renewed", "lb", set(prefix+"ssl-ports", "80", prefix+"tls-secret", "renewed")},
	} {
		svcs = append(svcs, l.inherit(former, x.name, x.kind, x.change))
	}
	for _, b := range l.Region.LoadBalancers() {
		err := l.Region.Foreign().LoadBalancer(*b.Id, func(v *loadbalancer.LoadBalancer) { // as older releases called them
			if x, ok := v.Listeners["TCP-80"]; ok && v.Certificates["tls"].CertificateName != nil {
				delete(v.Listeners, "TCP-80")
				x.Name = common.String("TCP-80-tls")
				v.Listeners["TCP-80-tls"] = x
			}
		})
		if err != nil {
			l.t.Fatal(err)
		}
	}
	l.secret("renewed", renewed)
	return svcs
}

// pass waits until the process has looked at all balancers, and written what it had to, since a number of calls.
func (l *lab) pass(svcs []*v1.Service, since int) (writes []string) {
	l.t.Helper()
	ours := func(yield func(ocisim.Call) bool) {
		for _, c := range l.Region.Calls()[since:] {
			if c.Principal == l.User.OCID && !yield(c) {
				return
			}
		}
	}
	l.until("all Services are looked at", func() (bool, string) {
		seen := map[string]bool{}
		for c := range ours {
			if c.Operation == "GetLoadBalancer" || c.Operation == "GetNetworkLoadBalancer" {
				seen[c.Resource] = true
			}
		}
		for _, svc := range svcs {
			if !meta.IsStatusConditionTrue(l.get(svc.Name).Status.Conditions, "oci.oraclecloud.com/LoadBalancerSynced") {
				return false, svc.Name + " is not synced\n" + l.Events(l.ctx, v1.NamespaceDefault, svc.Name)
			}
		}
		return len(seen) == len(svcs), fmt.Sprintf("%d of %d", len(seen), len(svcs))
	})
	l.settled()
	for c := range ours {
		if c.Write && c.Status < 300 {
			writes = append(writes, c.Operation)
		}
	}
	slices.Sort(writes)
	return writes
}

// TestUpgradeLeavesAllAsItIs: acceptance of the upgrade with the real binary, under the ClusterRole, the flags and the
// environment of v1.35, for each mode that an old config can have. Nothing is recreated, no rule is opened or closed, and each
// write is one that docs/upgrade.md explains. The way back finds all of it, and a deletion leaves nothing.
func TestUpgradeLeavesAllAsItIs(t *testing.T) {
	world := testbed.DemoWorld()
	world.SecurityGroups = []ocisim.SecurityGroup{{ID: backendGroup, Name: "backends", Tags: ocisim.Tags{Freeform: map[string]string{"ManagedBy": "CCM"}}}}
	behaviour := ocisim.DefaultBehaviour() // a group can be deleted when the last VNIC in it has gone, which takes minutes otherwise
	behaviour.VNICLinger = ocisim.Range{Min: 100 * time.Millisecond, Max: time.Second}
	l := newLab(t, testbed.Options{RBAC: testbed.OldRBAC, World: world, Region: ocisim.Options{Behaviour: behaviour}})
	documented, err := legacy.FirstPassWrites("../../docs/upgrade.md")
	if err != nil {
		t.Fatal(err)
	}
	former := l.former()
	lists := l.Region.SecurityLists()
	svcs := l.inheritAll(former)
	rules := l.ruled()
	balancers := slices.Sorted(maps.Keys(l.balancers()))

	for i, configured := range []string{"Frontend", "None", "", "All"} {
		config := testbed.UserConfig(l.Bed)
		if configured != "" {
			config = strings.Replace(config, "loadBalancer:\n", "loadBalancer:\n  securityListManagementMode: "+configured+"\n", 1)
		}
		l.configure(config)
		since := len(l.Region.Calls())
		l.oldManifest("v1.35-"+itoa(i), "--secure-port=0")
		writes := l.pass(svcs, since)
		var want []string
		if i == 0 {
			want = []string{"CreateCertificate", "DeleteCertificate", "UpdateListener", "UpdateLoadBalancer"} // for the renewed certificate
		}
		if !slices.Equal(writes, want) {
			t.Errorf("config mode %q: the first pass has written %v, want %v\n%s", configured, writes, want, l.CallLog(30))
		}
		for _, operation := range writes {
			if !slices.Contains(documented, operation) {
				t.Errorf("docs/upgrade.md does not explain %s", operation)
			}
		}
		if diff := cmp.Diff(rules, l.ruled()); diff != "" {
			t.Errorf("config mode %q: rules have changed (-before +now):\n%s", configured, diff)
		}
		if now := slices.Sorted(maps.Keys(l.balancers())); !slices.Equal(now, balancers) {
			t.Errorf("config mode %q: balancers are %v, were %v", configured, now, balancers)
		}
		for _, name := range []string{"n-capitals", "n-groups-udp"} {
			l.event(v1.NamespaceDefault, name, "LeftAsFound")
		}
		for _, svc := range l.loadBalanced() {
			if unfound := former.Unfound(svc); len(unfound) > 0 {
				t.Errorf("%s: v1.35 would %v", svc.Name, unfound)
			}
		}
		if i < 3 {
			l.stop()
		}
	}
	for _, svc := range svcs {
		l.gone(svc.Name)
	}
	l.empty()
	l.closeByHand(lists)
	l.stop()
	l.onlyTheServiceAccount()
}

// balancers are those that there are, by OCID.
func (l *lab) balancers() map[string]bool {
	out := map[string]bool{}
	for _, b := range l.Region.LoadBalancers() {
		out[*b.Id] = b.LifecycleState != "DELETED"
	}
	for _, b := range l.Region.NetworkLoadBalancers() {
		out[*b.Id] = b.LifecycleState != "DELETED"
	}
	maps.DeleteFunc(out, func(_ string, lives bool) bool { return !lives })
	return out
}
