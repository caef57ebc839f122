// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package loadbalancer_test

import (
	"context"
	"fmt"
	"slices"

	"github.com/oracle/oci-go-sdk/v65/common"
	lbsdk "github.com/oracle/oci-go-sdk/v65/loadbalancer"
	nlbsdk "github.com/oracle/oci-go-sdk/v65/networkloadbalancer"
	v1 "k8s.io/api/core/v1"

	"github.com/oracle/oci-cloud-controller-manager/pkg/loadbalancer"
	"github.com/oracle/oci-cloud-controller-manager/pkg/oci"
	"github.com/oracle/oci-cloud-controller-manager/test/ocisim"
)

// live reads all balancers of the region that are not gone, by another path than the manager's.
func (r *rig) live() []*oci.Balancer {
	r.Helper()
	client := r.connect(r.region.Transport())
	var out []*oci.Balancer
	for _, compartment := range []string{r.compartment, r.other} {
		for _, cloud := range []loadbalancer.Cloud{client.LoadBalancers(), client.NetworkLoadBalancers()} {
			all, err := cloud.List(context.Background(), compartment, "")
			if err != nil {
				r.Fatal(err)
			}
			for _, b := range all {
				if b.State != "DELETED" {
					out = append(out, b)
				}
			}
		}
	}
	return out
}

// only returns the one balancer there is.
func (r *rig) only() *oci.Balancer {
	r.Helper()
	all := r.live()
	if len(all) != 1 {
		var names []string
		for _, b := range all {
			names = append(names, b.ID+" "+b.State+" "+b.DisplayName)
		}
		r.Fatalf("%d balancers, want 1: %v", len(all), names)
	}
	return all[0]
}

// drain drains a backend of the one balancer as a person would, and gives it the weight 3.
func (r *rig) drain(set, ip string) {
	r.Helper()
	b := r.only()
	var err error
	if b.Kind == oci.KindLB {
		err = r.region.Foreign().LoadBalancer(b.ID, func(v *lbsdk.LoadBalancer) {
			for i := range v.BackendSets[set].Backends {
				if x := &v.BackendSets[set].Backends[i]; *x.IpAddress == ip {
					x.Drain, x.Weight = common.Bool(true), common.Int(3)
				}
			}
		})
	} else {
		err = r.region.Foreign().NetworkLoadBalancer(b.ID, func(v *nlbsdk.NetworkLoadBalancer) {
			for i := range v.BackendSets[set].Backends {
				if x := &v.BackendSets[set].Backends[i]; *x.IpAddress == ip {
					x.IsDrain, x.Weight = common.Bool(true), common.Int(3)
				}
			}
		})
	}
	if err != nil {
		r.Fatal(err)
	}
}

// backends are the addresses in a backend set of the one balancer.
func (r *rig) backends(set string) []string {
	r.Helper()
	bs, ok := r.only().BackendSets[set]
	if !ok {
		r.Fatalf("no backend set %s", set)
	}
	var ips []string
	for _, b := range bs.Backends {
		ips = append(ips, b.IP)
	}
	slices.Sort(ips)
	return ips
}

func addressesOf(nodes ...*v1.Node) []string {
	var ips []string
	for _, n := range nodes {
		ips = append(ips, n.Status.Addresses[0].Address)
	}
	slices.Sort(ips)
	return ips
}

func operations(calls []ocisim.Call) []string {
	var out []string
	for _, c := range calls {
		out = append(out, c.Operation)
	}
	return out
}

// written are the operations of the calls that changed something.
func written(calls []ocisim.Call) []string {
	var out []string
	for _, c := range calls {
		if c.Write && c.Status < 300 && c.Status > 0 {
			out = append(out, c.Operation)
		}
	}
	return out
}

// legacyBalancer makes a balancer as the existing implementation would for a Service with TCP ports: by its display
// name, without tags, with the node as it likes. It returns the OCID.
func (r *rig) legacyBalancer(svc *v1.Service, kind oci.BalancerKind) string {
	r.Helper()
	b := &oci.Balancer{
		Kind: kind, CompartmentID: r.compartment, DisplayName: loadbalancer.DisplayName(svc, kind, r.cfg.DisplayNamePrefix),
		SubnetIDs: []string{r.public}, BackendSets: map[string]oci.BackendSet{}, Listeners: map[string]oci.Listener{},
	}
	policy, preserve := "ROUND_ROBIN", (*bool)(nil)
	if kind == oci.KindNLB {
		policy, preserve = "FIVE_TUPLE", common.Bool(false)
	} else {
		b.Shape = &oci.Shape{Name: "100Mbps"}
	}
	for _, p := range svc.Spec.Ports {
		name := fmt.Sprintf("TCP-%d", p.Port)
		b.BackendSets[name] = oci.BackendSet{Name: name, Policy: policy, PreserveSource: preserve, Checker: oci.HealthChecker{
			Protocol: "HTTP", Port: 10256, URLPath: "/healthz", ReturnCode: 200, Retries: 3, IntervalMillis: 10000, TimeoutMillis: 3000,
		}}
		b.Listeners[name] = oci.Listener{Name: name, BackendSetName: name, Port: int(p.Port), Protocol: "TCP"}
	}
	return r.make(b)
}

// make creates a balancer past the manager.
func (r *rig) make(b *oci.Balancer) string {
	r.Helper()
	client := r.connect(r.region.Transport())
	var cloud loadbalancer.Cloud = client.LoadBalancers()
	if b.Kind == oci.KindNLB {
		cloud = client.NetworkLoadBalancers()
	}
	work, _, err := cloud.Create(r.Context(), b, "")
	if err != nil {
		r.Fatal(err)
	}
	done, err := cloud.Wait(r.Context(), work)
	if err != nil {
		r.Fatal(err)
	}
	return done.ResourceID
}

// rename gives a balancer another display name, past the manager.
func (r *rig) rename(id, name string) {
	r.Helper()
	err := r.region.Foreign().LoadBalancer(id, func(v *lbsdk.LoadBalancer) { v.DisplayName = &name })
	if err != nil {
		err = r.region.Foreign().NetworkLoadBalancer(id, func(v *nlbsdk.NetworkLoadBalancer) { v.DisplayName = &name })
	}
	if err != nil {
		r.Fatal(err)
	}
}

// setState puts a load balancer into a state.
func (r *rig) setState(id string, state lbsdk.LoadBalancerLifecycleStateEnum) {
	r.Helper()
	if err := r.region.Foreign().LoadBalancer(id, func(v *lbsdk.LoadBalancer) { v.LifecycleState = state }); err != nil {
		r.Fatal(err)
	}
}
