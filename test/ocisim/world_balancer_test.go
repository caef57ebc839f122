// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package ocisim_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/oracle/oci-go-sdk/v65/common"
	"github.com/oracle/oci-go-sdk/v65/loadbalancer"
	"github.com/oracle/oci-go-sdk/v65/networkloadbalancer"
	"sigs.k8s.io/yaml"

	"github.com/oracle/oci-cloud-controller-manager/test/ocisim"
	"github.com/oracle/oci-cloud-controller-manager/test/pki"
)

const balancerSeed = `
compartments: [{name: cluster}]
vcns: [{name: net, ipv6Cidrs: ["2001:db8::/56"]}]
securityGroups: [{name: web}]
subnets:
- {name: balancers, cidr: 10.0.0.0/24, ipv6Cidr: "2001:db8::/64"}
- {name: nodes, cidr: 10.0.8.0/24, private: true}
publicIPs: [{name: ingress, address: 198.18.0.200}]
instances: [{name: node-%d, count: 3, subnet: nodes}]
loadBalancers:
- name: web
  reservedIp: ingress
  securityGroups: [web]
  minMbps: 20
  maxMbps: 400
  backendSets:
  - {name: http, protocol: HTTP, port: 10256, urlPath: /healthz, backends: [{instance: "node-*", port: 30080}]}
  listeners: [{port: 80}, {name: admin, protocol: HTTP, port: 8080, backendSet: http}]
- {name: service-%d, count: 3, private: true, freeformTags: {service: uid-%d}}
networkLoadBalancers:
- name: edge
  ipVersion: IPV4_AND_IPV6
  backendSets: [{name: tcp, port: 10256, backends: [{instance: node-2, port: 30443}, {address: 10.0.8.200, port: 30443, drain: true}]}]
  listeners: [{port: 443}]
- {name: old, subnet: nodes, private: true, state: FAILED}
`

// TestSeedBalancers seeds balancers from a file and changes one through the API: they are like those that were
// created, and ACTIVE at once.
func TestSeedBalancers(t *testing.T) {
	pki.SigningKey()
	synctest.Test(t, func(t *testing.T) {
		var world ocisim.World
		if err := yaml.UnmarshalStrict([]byte(balancerSeed), &world); err != nil {
			t.Fatal(err)
		}
		region := ocisim.New(ocisim.Options{Seed: 1, Signatures: true})
		if err := region.Seed(world); err != nil {
			t.Fatal(err)
		}
		compartment := region.Compartments()[1].Id
		client, err := loadbalancer.NewLoadBalancerClientWithConfigurationProvider(sdkProvider(region))
		if err != nil {
			t.Fatal(err)
		}
		client.HTTPClient = &http.Client{Transport: region.Transport()}
		list, err := client.ListLoadBalancers(t.Context(), loadbalancer.ListLoadBalancersRequest{CompartmentId: compartment})
		if err != nil {
			t.Fatal(err)
		}
		if len(list.Items) != 4 {
			t.Fatalf("%d load balancers", len(list.Items))
		}
		checkSeededLoadBalancer(t, region, list.Items[0])
		for n, v := range list.Items[1:] {
			if want := fmt.Sprintf("service-%d", n+1); *v.DisplayName != want || v.FreeformTags["service"] != fmt.Sprintf("uid-%d", n+1) {
				t.Errorf("%s with tags %v is not %s", *v.DisplayName, v.FreeformTags, want)
			}
			if len(v.IpAddresses) != 1 || *v.IpAddresses[0].IsPublic || v.LifecycleState != loadbalancer.LoadBalancerLifecycleStateActive {
				t.Errorf("private load balancer %v", v)
			}
		}
		_, err = client.DeleteListener(t.Context(), loadbalancer.DeleteListenerRequest{LoadBalancerId: list.Items[0].Id, ListenerName: common.String("admin")})
		if err != nil {
			t.Fatal(err)
		}
		checkSeededNLBs(t, region)
	})
}

func checkSeededLoadBalancer(t *testing.T, region *ocisim.Region, v loadbalancer.LoadBalancer) {
	t.Helper()
	set := v.BackendSets["http"]
	if len(set.Backends) != 3 || *set.Backends[1].Name != "10.0.8.3:30080" || *set.HealthChecker.IntervalInMillis != 10000 {
		t.Errorf("backend set %v", set)
	}
	if l := v.Listeners["TCP-80"]; *l.DefaultBackendSetName != "http" || *v.Listeners["admin"].Protocol != "HTTP" {
		t.Errorf("listeners %v", v.Listeners)
	}
	if *v.ShapeDetails.MinimumBandwidthInMbps != 20 || *v.ShapeDetails.MaximumBandwidthInMbps != 400 {
		t.Errorf("shape %v", v.ShapeDetails)
	}
	if len(v.IpAddresses) != 1 || *v.IpAddresses[0].IpAddress != "198.18.0.200" || v.IpAddresses[0].ReservedIp == nil {
		t.Errorf("addresses %v", v.IpAddresses)
	}
	group := *region.SecurityGroups()[0].Id
	members := 0
	for _, nic := range region.VNICs() {
		if len(nic.NsgIds) == 1 && nic.NsgIds[0] == group {
			members++
		}
	}
	if members != 1 || len(v.NetworkSecurityGroupIds) != 1 {
		t.Errorf("%d VNICs in the group, groups %v", members, v.NetworkSecurityGroupIds)
	}
}

func checkSeededNLBs(t *testing.T, region *ocisim.Region) {
	t.Helper()
	list := region.NetworkLoadBalancers()
	if len(list) != 2 || list[1].LifecycleState != networkloadbalancer.LifecycleStateFailed {
		t.Fatalf("network load balancers %v", list)
	}
	edge := list[0]
	if len(edge.IpAddresses) != 3 || edge.LifecycleState != networkloadbalancer.LifecycleStateActive {
		t.Errorf("addresses %v", edge.IpAddresses)
	}
	backends := edge.BackendSets["tcp"].Backends
	if len(backends) != 2 || !strings.HasPrefix(*backends[0].TargetId, "ocid1.instance.") || !*backends[1].IsDrain {
		t.Errorf("backends %v", backends)
	}
	if *edge.Listeners["TCP-443"].DefaultBackendSetName != "tcp" {
		t.Errorf("listeners %v", edge.Listeners)
	}
}

func TestSeedBalancerErrors(t *testing.T) {
	network := ocisim.World{
		VCNs:    []ocisim.VCN{{}},
		Subnets: []ocisim.Subnet{{Name: "public", CIDR: "10.0.0.0/24"}, {Name: "private", CIDR: "10.0.1.0/24", Private: true}},
	}
	tests := map[string]ocisim.World{
		"public in a private subnet": {LoadBalancers: []ocisim.LoadBalancer{{Subnets: []string{"private"}}}},
		"unknown shape":              {LoadBalancers: []ocisim.LoadBalancer{{Shape: "huge"}}},
		"listener without a set":     {LoadBalancers: []ocisim.LoadBalancer{{Listeners: []ocisim.Listener{{Port: 80}}}}},
		"backend without an address": {LoadBalancers: []ocisim.LoadBalancer{{BackendSets: []ocisim.BackendSet{{Name: "a", Backends: []ocisim.Backend{{Port: 80}}}}}}},
		"unknown instance":           {NetworkLoadBalancers: []ocisim.NetworkLoadBalancer{{BackendSets: []ocisim.BackendSet{{Name: "a", Backends: []ocisim.Backend{{Instance: "x", Port: 80}}}}}}},
		"IPv6 without a prefix":      {NetworkLoadBalancers: []ocisim.NetworkLoadBalancer{{IPVersion: "IPV6"}}},
		"unknown IP version":         {NetworkLoadBalancers: []ocisim.NetworkLoadBalancer{{IPVersion: "IPV5"}}},
		"shared address":             {NetworkLoadBalancers: []ocisim.NetworkLoadBalancer{{PrivateIP: "10.0.0.9", Count: 2}}},
		"more than the subnet holds": {LoadBalancers: []ocisim.LoadBalancer{{Count: 254, Private: true}}},
	}
	for name, world := range tests {
		region := ocisim.New(ocisim.Options{})
		if err := region.Seed(network); err != nil {
			t.Fatal(err)
		}
		if err := region.Seed(world); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// TestSeedingManyBalancers has the size that the project is made for; BenchmarkSeedBalancers measures it.
func TestSeedingManyBalancers(t *testing.T) {
	region := ocisim.New(ocisim.Options{PageSize: 1000})
	region.AddVCN(ocisim.VCN{Name: "net"})
	region.AddSubnet(ocisim.Subnet{Name: "balancers", CIDR: "10.0.0.0/16"})
	region.AddLoadBalancer(ocisim.LoadBalancer{
		Name: "service-%d", Count: 2000,
		BackendSets: []ocisim.BackendSet{{Name: "a", Backends: []ocisim.Backend{{Address: "10.0.200.1", Port: 30000}}}},
		Listeners:   []ocisim.Listener{{Port: 80}},
	})
	addresses := map[string]bool{}
	for _, v := range region.LoadBalancers() {
		addresses[*v.IpAddresses[0].IpAddress] = true
	}
	if len(addresses) != 2000 {
		t.Errorf("%d addresses", len(addresses))
	}
}
