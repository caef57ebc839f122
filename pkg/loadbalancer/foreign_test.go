// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package loadbalancer_test

import (
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/oracle/oci-go-sdk/v65/common"
	lbsdk "github.com/oracle/oci-go-sdk/v65/loadbalancer"
	nlbsdk "github.com/oracle/oci-go-sdk/v65/networkloadbalancer"
	v1 "k8s.io/api/core/v1"

	"github.com/oracle/oci-cloud-controller-manager/pkg/loadbalancer"
	"github.com/oracle/oci-cloud-controller-manager/pkg/oci"
	"github.com/oracle/oci-cloud-controller-manager/test/ocisim"
)

// A 412 is answered by reading, merging and sending again; a foreign change in between survives.
func TestForeignWriterInBetween(t *testing.T) {
	onBothKinds(t, ocisim.Options{Seed: 6}, func(r *rig, kind oci.BalancerKind) {
		nodes := r.nodes(2)
		svc := r.service("web", kind, 80, 443)
		r.mustSync(svc, nodes)
		id, done := r.only().ID, false
		r.region.OnCall(func(c ocisim.Call) {
			if done || c.Method != http.MethodGet || c.Resource != id {
				return
			}
			done = true // between our read and our first write
			r.weight(id, "TCP-80", 7)
		})
		nodes = append(nodes, r.node("node-3"))
		r.mustUpdateBackends(svc, nodes)
		refused := 0
		for _, c := range r.region.Calls() {
			if c.Status == 412 {
				refused++
			}
		}
		if refused == 0 {
			r.Error("no write was refused: the test did not meet its case")
		}
		r.equal("backends", r.backends("TCP-80"), addressesOf(nodes...))
		for _, b := range r.only().BackendSets["TCP-80"].Backends {
			want := 7
			if b.IP == nodes[2].Status.Addresses[0].Address {
				want = 1
			}
			r.equal("weight of "+b.IP, b.Weight, want)
		}
		r.noEvents()
	})
}

// weight gives all backends of a set a weight, as a person would.
func (r *rig) weight(id, set string, weight int) {
	err := r.region.Foreign().LoadBalancer(id, func(v *lbsdk.LoadBalancer) {
		for i := range v.BackendSets[set].Backends {
			v.BackendSets[set].Backends[i].Weight = &weight
		}
	})
	if err != nil {
		err = r.region.Foreign().NetworkLoadBalancer(id, func(v *nlbsdk.NetworkLoadBalancer) {
			for i := range v.BackendSets[set].Backends {
				v.BackendSets[set].Backends[i].Weight = &weight
			}
		})
	}
	if err != nil {
		r.Error(err)
	}
}

// C055: what others set on our balancer, and on our listeners and backend sets, survives every kind of update.
func TestForeignSettingsSurviveLB(t *testing.T) {
	simulate(t, ocisim.Options{Seed: 7}, func(r *rig) {
		nodes := r.nodes(2)
		svc := r.service("web", oci.KindLB, 80)
		r.mustSync(svc, nodes)
		id := r.only().ID
		cookie := lbsdk.LbCookieSessionPersistenceConfigurationDetails{CookieName: common.String("sticky")}
		err := r.region.Foreign().LoadBalancer(id, func(v *lbsdk.LoadBalancer) {
			set := v.BackendSets["TCP-80"]
			set.LbCookieSessionPersistenceConfiguration = &cookie
			set.BackendMaxConnections = common.Int(512)
			set.Policy = common.String("LEAST_CONNECTIONS")
			set.HealthChecker.ResponseBodyRegex = common.String(".*ok.*")
			set.HealthChecker.IntervalInMillis = common.Int(20000)
			v.BackendSets["TCP-80"] = set
			v.BackendSets["hand"] = lbsdk.BackendSet{Name: common.String("hand"), Policy: common.String("IP_HASH"), HealthChecker: set.HealthChecker}
			l := v.Listeners["TCP-80"]
			l.RuleSetNames = []string{"waf"}
			l.RoutingPolicyName = common.String("routes")
			l.HostnameNames = []string{"shop"}
			l.ConnectionConfiguration = &lbsdk.ConnectionConfiguration{IdleTimeout: common.Int64(1200)}
			v.Listeners["TCP-80"] = l
			v.Listeners["hand-9443"] = lbsdk.Listener{Name: common.String("hand-9443"), DefaultBackendSetName: common.String("hand"), Port: common.Int(9443), Protocol: common.String("TCP")}
			v.RuleSets = map[string]lbsdk.RuleSet{"waf": {Name: common.String("waf")}}
			v.RoutingPolicies = map[string]lbsdk.RoutingPolicy{"routes": {Name: common.String("routes")}}
			v.Hostnames = map[string]lbsdk.Hostname{"shop": {Name: common.String("shop"), Hostname: common.String("shop.example")}}
			v.NetworkSecurityGroupIds = []string{r.groups[5]}
			v.FreeformTags["team"] = "shop"
			v.DefinedTags = map[string]map[string]any{"ops": {"owner": "ann"}}
		})
		if err != nil {
			r.Fatal(err)
		}
		before, _ := r.region.LoadBalancer(id)
		r.unchanged(svc, nodes)

		nodes = append(nodes, r.node("node-3"))
		r.mustUpdateBackends(svc, nodes)
		for _, change := range []func(*v1.Service){
			func(s *v1.Service) { s.Spec.Ports[0].NodePort = 31234 },
			func(s *v1.Service) {
				s.Spec.Ports = append(s.Spec.Ports, newService("x", oci.KindLB, 81).Spec.Ports...)
			},
			annotate(prefixLB+"shape", "flexible"),
			annotate(prefixLB+"health-check-retries", "5"),
			annotate(prefixLB+"backend-protocol", "HTTP"),
			annotate(prefixCommon+"oci-network-security-groups", r.groups[0]),
			func(s *v1.Service) { delete(s.Annotations, prefixCommon+"oci-network-security-groups") },
			func(s *v1.Service) { s.Spec.Ports = s.Spec.Ports[:1] },
			func(s *v1.Service) { delete(s.Annotations, prefixLB+"health-check-retries") },
			func(s *v1.Service) { delete(s.Annotations, prefixLB+"backend-protocol") },
		} {
			r.edit(svc, change)
			r.mustSync(svc, nodes)
		}
		after, _ := r.region.LoadBalancer(id)
		ours := func(v lbsdk.LoadBalancer) lbsdk.LoadBalancer { // what the Service controls
			set := v.BackendSets["TCP-80"]
			set.Backends = nil
			v.BackendSets["TCP-80"] = set
			return v
		}
		if diff := cmp.Diff(ours(before), ours(after)); diff != "" {
			r.Errorf("foreign settings changed:\n%s", diff)
		}
		r.noEvents()
	})
}

func TestForeignSettingsSurviveNLB(t *testing.T) {
	simulate(t, ocisim.Options{Seed: 8}, func(r *rig) {
		nodes := r.nodes(2)
		svc := r.service("web", oci.KindNLB, 80)
		r.mustSync(svc, nodes)
		id := r.only().ID
		err := r.region.Foreign().NetworkLoadBalancer(id, func(v *nlbsdk.NetworkLoadBalancer) {
			set := v.BackendSets["TCP-80"]
			set.IsFailOpen = common.Bool(true)
			set.IsInstantFailoverEnabled = common.Bool(true)
			set.Policy = nlbsdk.NetworkLoadBalancingPolicyTwoTuple
			v.BackendSets["TCP-80"] = set
			v.BackendSets["hand"] = nlbsdk.BackendSet{Name: common.String("hand"), Policy: nlbsdk.NetworkLoadBalancingPolicyTwoTuple, HealthChecker: set.HealthChecker}
			l := v.Listeners["TCP-80"]
			l.TcpIdleTimeout = common.Int(600)
			v.Listeners["TCP-80"] = l
			v.Listeners["hand-9443"] = nlbsdk.Listener{Name: common.String("hand-9443"), DefaultBackendSetName: common.String("hand"), Port: common.Int(9443), Protocol: nlbsdk.ListenerProtocolsTcp}
			v.NetworkSecurityGroupIds = []string{r.groups[5]}
			v.FreeformTags["team"] = "shop"
		})
		if err != nil {
			r.Fatal(err)
		}
		before, _ := r.region.NetworkLoadBalancer(id)
		r.unchanged(svc, nodes)
		nodes = append(nodes, r.node("node-3"))
		r.mustUpdateBackends(svc, nodes)
		for _, change := range []func(*v1.Service){
			func(s *v1.Service) { s.Spec.Ports[0].NodePort = 31234 },
			func(s *v1.Service) {
				s.Spec.Ports = append(s.Spec.Ports, newService("x", oci.KindNLB, 81).Spec.Ports...)
			},
			annotate(prefixNLB+"health-check-retries", "5"),
			annotate(prefixNLB+"is-ppv2-enabled", "true"),
			annotate(prefixNLB+"oci-network-security-groups", r.groups[0]),
			func(s *v1.Service) { delete(s.Annotations, prefixNLB+"oci-network-security-groups") },
			func(s *v1.Service) { s.Spec.Ports = s.Spec.Ports[:1] },
			func(s *v1.Service) { delete(s.Annotations, prefixNLB+"health-check-retries") },
			func(s *v1.Service) { delete(s.Annotations, prefixNLB+"is-ppv2-enabled") },
		} {
			r.edit(svc, change)
			r.mustSync(svc, nodes)
		}
		after, _ := r.region.NetworkLoadBalancer(id)
		ours := func(v nlbsdk.NetworkLoadBalancer) nlbsdk.NetworkLoadBalancer {
			set := v.BackendSets["TCP-80"]
			set.Backends = nil
			v.BackendSets["TCP-80"] = set
			l := v.Listeners["TCP-80"]
			if l.IsPpv2Enabled != nil && !*l.IsPpv2Enabled {
				l.IsPpv2Enabled = nil // false is the default
			}
			v.Listeners["TCP-80"] = l
			v.TimeUpdated = nil
			return v
		}
		if diff := cmp.Diff(ours(before), ours(after)); diff != "" {
			r.Errorf("foreign settings changed:\n%s", diff)
		}
		r.noEvents()
	})
}

// A backend set of ours that somebody's listener uses stays when the Service does not need it any more.
func TestBackendSetInForeignUse(t *testing.T) {
	simulate(t, ocisim.Options{Seed: 9}, func(r *rig) {
		nodes := r.nodes(1)
		svc := r.service("web", oci.KindLB, 80, 81)
		r.mustSync(svc, nodes)
		err := r.region.Foreign().LoadBalancer(r.only().ID, func(v *lbsdk.LoadBalancer) {
			v.Listeners["hand-9443"] = lbsdk.Listener{Name: common.String("hand-9443"), DefaultBackendSetName: common.String("TCP-81"), Port: common.Int(9443), Protocol: common.String("TCP")}
		})
		if err != nil {
			r.Fatal(err)
		}
		r.edit(svc, func(s *v1.Service) { s.Spec.Ports = s.Spec.Ports[:1] })
		r.mustSync(svc, nodes)
		r.equal("listeners", len(r.only().Listeners), 2)
		r.oneSeries(loadbalancer.ReasonKeptInUse, "TCP-81")
		r.unchanged(svc, nodes)
	})
}
