// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package loadbalancer_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/oracle/oci-go-sdk/v65/common"
	lbsdk "github.com/oracle/oci-go-sdk/v65/loadbalancer"
	nlbsdk "github.com/oracle/oci-go-sdk/v65/networkloadbalancer"
	v1 "k8s.io/api/core/v1"

	"github.com/oracle/oci-cloud-controller-manager/pkg/loadbalancer"
	"github.com/oracle/oci-cloud-controller-manager/pkg/oci"
	"github.com/oracle/oci-cloud-controller-manager/test/ocisim"
)

// A flexible balancer cannot become a fixed one: that is told, and everything else is applied.
func TestFlexibleToFixed(t *testing.T) {
	simulate(t, ocisim.Options{Seed: 32}, func(r *rig) {
		nodes := r.nodes(1)
		svc := r.service("web", oci.KindLB, 80)
		r.mustSync(svc, nodes)
		r.edit(svc, annotate(prefixLB+"shape", "100Mbps"))
		r.edit(svc, annotate(prefixLB+"health-check-retries", "5"))
		r.mustSync(svc, nodes)
		r.equal("shape", r.only().Shape.Name, "flexible")
		r.equal("retries", r.only().BackendSets["TCP-80"].Checker.Retries, 5)
		r.oneSeries(loadbalancer.ReasonImmutable, "shape")
	})
}

// C038: another subnet on a live balancer is told once; nothing is done there.
func TestSubnetChange(t *testing.T) {
	onBothKinds(t, ocisim.Options{Seed: 33}, func(r *rig, kind oci.BalancerKind) {
		nodes := r.nodes(1)
		key := prefixLB + "subnet1"
		if kind == oci.KindNLB {
			key = prefixNLB + "subnet"
		}
		svc := r.service("web", kind, 80)
		r.mustSync(svc, nodes)
		r.region.ResetCalls()
		r.edit(svc, annotate(key, r.dual))
		for range 10 {
			r.mustSync(svc, nodes)
		}
		r.equal("count", r.oneSeries(loadbalancer.ReasonImmutable, r.dual, r.public).count, 1)
		r.equal("writes", written(r.region.Calls()), []string{})
	})
}

// C043: a reserved public IP, and whatever else can be in spec.loadBalancerIP. One that does not exist and one that may not be read
// have the same answer of the API, so their event names both causes.
func TestReservedIP(t *testing.T) {
	onBothKinds(t, ocisim.Options{Seed: 34}, func(r *rig, kind oci.BalancerKind) {
		nodes := r.nodes(1)
		for range 2 {
			r.region.AddPublicIP(ocisim.PublicIP{Compartment: r.compartment, Name: "reserved"})
		}
		ips := r.region.PublicIPs()
		free, second := *ips[0].IpAddress, *ips[1].IpAddress
		machine := r.region.AddInstance(ocisim.Instance{Compartment: r.compartment, Name: "jump", VNIC: ocisim.VNIC{Subnet: r.public, PublicIP: ocisim.Auto}})
		ephemeral := *r.region.InstanceVNICs(machine)[0].PublicIp
		svc := r.service("web", kind, 80)
		r.edit(svc, func(s *v1.Service) { s.Spec.LoadBalancerIP = free })
		svc = r.mustSync(svc, nodes)
		r.equal("status", svc.Status.LoadBalancer.Ingress, []v1.LoadBalancerIngress{{IP: free}})
		r.noEvents()

		internal := prefixLB + "internal"
		if kind == oci.KindNLB {
			internal = prefixNLB + "internal"
		}
		for name, test := range map[string]struct {
			change  func(*v1.Service)
			message string
		}{
			"in use":    {func(s *v1.Service) { s.Spec.LoadBalancerIP = free }, "it is in use (state ASSIGN"},
			"ephemeral": {func(s *v1.Service) { s.Spec.LoadBalancerIP = ephemeral }, "it is not a reserved public IP (its lifetime is EPHEMERAL)"},
			"unknown":   {func(s *v1.Service) { s.Spec.LoadBalancerIP = "203.0.113.9" }, "there is no public IP with this address"},
			"private":   {func(s *v1.Service) { s.Spec.LoadBalancerIP = "10.9.3.9"; s.Annotations[internal] = "true" }, "the balancer is internal"},
			"no IP":     {func(s *v1.Service) { s.Spec.LoadBalancerIP = "web.example" }, "it is no IP address"},
			"IPv6":      {func(s *v1.Service) { s.Spec.LoadBalancerIP = "fd00::1" }, "only a reserved public IPv4 address"},
			"internal":  {func(s *v1.Service) { s.Spec.LoadBalancerIP = second; s.Annotations[internal] = "true" }, "the balancer is internal"},
		} {
			r.cluster.events = nil
			other := r.service("other-"+strings.ReplaceAll(name, " ", ""), kind, 80)
			r.edit(other, test.change)
			if _, err := r.m.Ensure(r.Context(), other, nodes); err == nil {
				r.Errorf("%s: no error", name)
			}
			r.oneSeries(loadbalancer.ReasonInvalidAddress, test.message)
		}
		r.cluster.events = nil
		restore := r.region.Deny(ocisim.Policy{ResourceType: "public-ips"})
		other := r.service("other-policy", kind, 80)
		r.edit(other, func(s *v1.Service) { s.Spec.LoadBalancerIP = second })
		r.refused(other, nodes, loadbalancer.ReasonInvalidAddress)
		r.oneSeries(loadbalancer.ReasonInvalidAddress, second, "read public-ips")
		restore()
		r.equal("balancers", len(r.live()), 1)

		for what, address := range map[string]string{second: second, "no reserved address any more": ""} {
			r.cluster.events = nil
			r.edit(svc, func(s *v1.Service) { s.Spec.LoadBalancerIP = address })
			for range 3 {
				svc = r.mustSync(svc, nodes)
			}
			r.equal("count", r.oneSeries(loadbalancer.ReasonImmutable, "spec.loadBalancerIP", what).count, 1)
			r.equal("status", svc.Status.LoadBalancer.Ingress, []v1.LoadBalancerIngress{{IP: free}})
		}
		if err := r.m.Delete(r.Context(), svc); err != nil {
			r.Error(err)
		}
		time.Sleep(10 * time.Minute)
		for _, ip := range r.region.PublicIPs() {
			if *ip.IpAddress == free && ip.LifecycleState != "AVAILABLE" {
				r.Errorf("the reserved IP is %s after the deletion", ip.LifecycleState)
			}
		}
		r.equal("public IPs", len(r.region.PublicIPs()), 3) // with the ephemeral one
	})
}

// C044: of a public NLB the status shows the public address; both if asked for; always in one order.
func TestStatus(t *testing.T) {
	simulate(t, ocisim.Options{Seed: 35}, func(r *rig) {
		nodes := r.nodes(1)
		svc := r.mustSync(r.service("web", oci.KindNLB, 80), nodes)
		if n := len(r.only().Addresses); n != 2 {
			r.Fatalf("%d addresses, want a public and a private one", n)
		}
		if got := svc.Status.LoadBalancer.Ingress; len(got) != 1 || strings.HasPrefix(got[0].IP, "10.") || got[0].IPMode != nil {
			r.Errorf("status %v, want the public address alone", got)
		}
		r.edit(svc, annotate(prefixNLB+"external-ip-only", "false"))
		r.edit(svc, annotate(prefixCommon+"ingress-ip-mode", "Proxy"))
		svc = r.mustSync(svc, nodes)
		both := svc.Status.LoadBalancer
		if len(both.Ingress) != 2 || !strings.HasPrefix(both.Ingress[1].IP, "10.") || *both.Ingress[0].IPMode != v1.LoadBalancerIPModeProxy {
			r.Errorf("status %v, want both addresses, the public one first, with the mode Proxy", both)
		}
		for range 5 {
			err := r.region.Foreign().NetworkLoadBalancer(r.only().ID, func(v *nlbsdk.NetworkLoadBalancer) { slices.Reverse(v.IpAddresses) })
			if err != nil {
				r.Fatal(err)
			}
			svc = r.mustSync(svc, nodes)
			r.equal("status", svc.Status.LoadBalancer.String(), both.String())
		}
	})
}

// C047: what no balancer can do is told before anything is made, and works once it is gone.
func TestUnsupportedPorts(t *testing.T) {
	for name, test := range map[string]struct {
		kind     oci.BalancerKind
		protocol v1.Protocol
		message  string
	}{
		"UDP on an LB":   {oci.KindLB, v1.ProtocolUDP, "load-balancer-type to nlb"},
		"SCTP on an LB":  {oci.KindLB, v1.ProtocolSCTP, "SCTP"},
		"SCTP on an NLB": {oci.KindNLB, v1.ProtocolSCTP, "SCTP"},
	} {
		t.Run(name, func(t *testing.T) {
			simulate(t, ocisim.Options{Seed: 36}, func(r *rig) {
				nodes := r.nodes(1)
				svc := r.service("web", test.kind, 80, 5060)
				r.edit(svc, func(s *v1.Service) { s.Spec.Ports[1].Protocol = test.protocol })
				for range 3 {
					if _, err := r.m.Ensure(r.Context(), svc, nodes); err == nil {
						r.Fatal("no error")
					}
				}
				r.equal("count", r.oneSeries(loadbalancer.ReasonUnsupportedService, test.message).count, 3)
				r.equal("writes", written(r.region.Calls()), []string{})
				r.edit(svc, func(s *v1.Service) { s.Spec.Ports = s.Spec.Ports[:1] })
				r.mustSync(svc, nodes)
				r.equal("listeners", len(r.only().Listeners), 1)
			})
		})
	}
}

// An NLB with addresses of both families has listeners and backends of both, by their names.
func TestDualStack(t *testing.T) {
	simulate(t, ocisim.Options{Seed: 37}, func(r *rig) {
		r.cfg.Subnet1 = r.dual
		r.restart()
		nodes := r.nodes(2)
		svc := r.service("web", oci.KindNLB, 80)
		r.edit(svc, func(s *v1.Service) {
			policy := v1.IPFamilyPolicyRequireDualStack
			s.Spec.IPFamilies, s.Spec.IPFamilyPolicy = []v1.IPFamily{v1.IPv4Protocol, v1.IPv6Protocol}, &policy
			s.Annotations[prefixNLB+"internal"] = "true"
		})
		svc = r.mustSync(svc, nodes)
		b := r.only()
		r.equal("listeners", len(b.Listeners), 2)
		r.equal("listener", b.Listeners["TCP-80-IPv6"].IPVersion, "IPV6")
		r.equal("backends", r.backends("TCP-80-IPv6"), []string{nodes[0].Status.Addresses[1].Address, nodes[1].Status.Addresses[1].Address})
		r.equal("addresses", len(svc.Status.LoadBalancer.Ingress), 2)
		r.unchanged(svc, nodes)
		r.edit(svc, func(s *v1.Service) { s.Spec.Ports[0].Port = 81 })
		r.mustSync(svc, nodes)
		r.equal("listeners after a change", len(r.only().Listeners), 2)
		r.unchanged(svc, nodes)
		r.noEvents()
	})
}

// handMade adds a listener and a backend set as a person would.
func (r *rig) handMade() {
	r.Helper()
	b := r.only()
	err := r.region.Foreign().LoadBalancer(b.ID, func(v *lbsdk.LoadBalancer) {
		v.BackendSets["hand"] = lbsdk.BackendSet{Name: common.String("hand"), Policy: common.String("IP_HASH"), HealthChecker: v.BackendSets["TCP-80"].HealthChecker}
		v.Listeners["hand-9443"] = lbsdk.Listener{Name: common.String("hand-9443"), DefaultBackendSetName: common.String("hand"), Port: common.Int(9443), Protocol: common.String("TCP")}
	})
	if err != nil {
		err = r.region.Foreign().NetworkLoadBalancer(b.ID, func(v *nlbsdk.NetworkLoadBalancer) {
			v.BackendSets["hand"] = nlbsdk.BackendSet{Name: common.String("hand"), Policy: nlbsdk.NetworkLoadBalancingPolicyTwoTuple, HealthChecker: v.BackendSets["TCP-80"].HealthChecker}
			v.Listeners["hand-9443"] = nlbsdk.Listener{Name: common.String("hand-9443"), DefaultBackendSetName: common.String("hand"), Port: common.Int(9443), Protocol: nlbsdk.ListenerProtocolsTcp}
		})
	}
	if err != nil {
		r.Fatal(err)
	}
}
