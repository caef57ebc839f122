// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package loadbalancer_test

import (
	"slices"
	"testing"

	"github.com/oracle/oci-go-sdk/v65/common"
	nlbsdk "github.com/oracle/oci-go-sdk/v65/networkloadbalancer"
	v1 "k8s.io/api/core/v1"

	"github.com/oracle/oci-cloud-controller-manager/pkg/loadbalancer"
	"github.com/oracle/oci-cloud-controller-manager/pkg/oci"
	"github.com/oracle/oci-cloud-controller-manager/test/ocisim"
)

func withFamilies(policy v1.IPFamilyPolicy, families ...v1.IPFamily) func(*v1.Service) {
	return func(s *v1.Service) { s.Spec.IPFamilyPolicy, s.Spec.IPFamilies = &policy, families }
}

func dualStack(policy v1.IPFamilyPolicy) func(*v1.Service) {
	return withFamilies(policy, v1.IPv4Protocol, v1.IPv6Protocol)
}

func singleStack() func(*v1.Service) {
	return withFamilies(v1.IPFamilyPolicySingleStack, v1.IPv4Protocol)
}

// W17: a live NLB becomes dual stack and single stack again: the families change before what needs them is made, and after it
// is gone; the status has the new address at once.
func TestIPModeOfALiveNLB(t *testing.T) {
	for _, policy := range []v1.IPFamilyPolicy{v1.IPFamilyPolicyPreferDualStack, v1.IPFamilyPolicyRequireDualStack} {
		t.Run(string(policy), func(t *testing.T) {
			simulate(t, ocisim.Options{Seed: 91}, func(r *rig) {
				r.cfg.Subnet1 = r.dual
				r.restart()
				nodes := r.nodes(2)
				svc := r.service("web", oci.KindNLB, 80)
				r.mustSync(svc, nodes)
				r.equal("mode", r.only().IPMode, oci.IPModeV4)

				r.region.ResetCalls()
				r.edit(svc, dualStack(policy))
				r.edit(svc, annotate(prefixNLB+"assigned-ipv6", "fd00:10::77"))
				svc = r.mustSync(svc, nodes)
				r.equal("writes", written(r.region.Calls()), []string{"UpdateNetworkLoadBalancer", "CreateBackendSet", "CreateListener"})
				r.equal("mode", r.only().IPMode, oci.IPModeDual)
				if !slices.ContainsFunc(svc.Status.LoadBalancer.Ingress, func(i v1.LoadBalancerIngress) bool { return i.IP == "fd00:10::77" }) {
					r.Errorf("status %v lacks the IPv6 address", svc.Status.LoadBalancer.Ingress)
				}
				r.equal("backends", r.backends("TCP-80-IPv6"), []string{nodes[0].Status.Addresses[1].Address, nodes[1].Status.Addresses[1].Address})
				r.unchanged(svc, nodes)

				r.region.ResetCalls()
				r.edit(svc, singleStack())
				r.edit(svc, func(s *v1.Service) { delete(s.Annotations, prefixNLB+"assigned-ipv6") })
				svc = r.mustSync(svc, nodes)
				r.equal("writes", written(r.region.Calls()), []string{"DeleteListener", "DeleteBackendSet", "UpdateNetworkLoadBalancer"})
				r.equal("mode", r.only().IPMode, oci.IPModeV4)
				r.equal("addresses", len(svc.Status.LoadBalancer.Ingress), 1)
				r.unchanged(svc, nodes)
				r.noEvents()
			})
		})
	}
}

// A Service that could do with IPv6, in a subnet that has none, costs one read per sync, and no event; one that requires it
// gets an event.
func TestIPModeInAnIPv4Subnet(t *testing.T) {
	simulate(t, ocisim.Options{Seed: 92}, func(r *rig) {
		nodes := r.nodes(1)
		svc := r.service("web", oci.KindNLB, 80)
		r.mustSync(svc, nodes)
		r.edit(svc, dualStack(v1.IPFamilyPolicyPreferDualStack))
		r.mustSync(svc, nodes)
		r.equal("mode", r.only().IPMode, oci.IPModeV4)
		r.unchanged(svc, nodes)
		r.noEvents()
		r.edit(svc, dualStack(v1.IPFamilyPolicyRequireDualStack))
		r.mustSync(svc, nodes)
		r.oneSeries(loadbalancer.ReasonImmutable, "IPv6", "subnet")
		r.unchanged(svc, nodes)
	})
}

// C055: an IPv6 listener of somebody else keeps the balancer dual stack.
func TestIPModeInUseByOthers(t *testing.T) {
	simulate(t, ocisim.Options{Seed: 93}, func(r *rig) {
		r.cfg.Subnet1 = r.dual
		r.restart()
		nodes := r.nodes(1)
		svc := r.service("web", oci.KindNLB, 80)
		r.edit(svc, dualStack(v1.IPFamilyPolicyPreferDualStack))
		r.mustSync(svc, nodes)
		if err := r.region.Foreign().NetworkLoadBalancer(r.only().ID, func(v *nlbsdk.NetworkLoadBalancer) {
			v.BackendSets["hand"] = nlbsdk.BackendSet{Name: common.String("hand"), Policy: nlbsdk.NetworkLoadBalancingPolicyTwoTuple, IpVersion: nlbsdk.IpVersionIpv6, HealthChecker: v.BackendSets["TCP-80"].HealthChecker}
			v.Listeners["hand-9443"] = nlbsdk.Listener{Name: common.String("hand-9443"), DefaultBackendSetName: common.String("hand"), Port: common.Int(9443), Protocol: nlbsdk.ListenerProtocolsTcp, IpVersion: nlbsdk.IpVersionIpv6}
		}); err != nil {
			r.Fatal(err)
		}
		r.edit(svc, singleStack())
		r.mustSync(svc, nodes)
		r.equal("mode", r.only().IPMode, oci.IPModeDual)
		r.equal("listeners", len(r.only().Listeners), 2)
		r.oneSeries(loadbalancer.ReasonKeptInUse, "hand-9443")
		r.unchanged(svc, nodes)
	})
}

// The address families of a load balancer cannot change: that is one event.
func TestIPModeOfALoadBalancer(t *testing.T) {
	simulate(t, ocisim.Options{Seed: 94}, func(r *rig) {
		r.cfg.Subnet1 = r.dual
		r.restart()
		nodes := r.nodes(1)
		svc := r.service("web", oci.KindLB, 80)
		r.mustSync(svc, nodes)
		r.region.ResetCalls()
		r.edit(svc, dualStack(v1.IPFamilyPolicyPreferDualStack))
		for range 3 {
			r.mustSync(svc, nodes)
		}
		r.equal("count", r.oneSeries(loadbalancer.ReasonImmutable, "IPv6").count, 1)
		r.equal("writes", written(r.region.Calls()), []string{})
		r.unchanged(svc, nodes)

		r.cluster.events = nil
		dual := r.service("dual", oci.KindLB, 80)
		r.edit(dual, dualStack(v1.IPFamilyPolicyRequireDualStack))
		r.mustSync(dual, nodes)
		r.noEvents()
		r.edit(dual, singleStack())
		r.mustSync(dual, nodes)
		r.oneSeries(loadbalancer.ReasonImmutable, "IPv4 alone")
		r.unchanged(dual, nodes)
	})
}
