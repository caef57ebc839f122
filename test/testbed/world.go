// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package testbed

import (
	"fmt"
	"strings"
	"time"

	"github.com/oracle/oci-cloud-controller-manager/test/cluster/nodes"
	"github.com/oracle/oci-cloud-controller-manager/test/ocisim"
)

// Identifiers of the demo world.
const (
	Compartment   = "ocid1.compartment.oc1..aaaaaaaademo"
	VCN           = "ocid1.vcn.oc1.iad.aaaaaaaademo"
	PublicSubnet  = "ocid1.subnet.oc1.iad.aaaaaaaademolb"
	PrivateSubnet = "ocid1.subnet.oc1.iad.aaaaaaaademonodes"
	PublicList    = "ocid1.securitylist.oc1.iad.aaaaaaaademolb"
	PrivateList   = "ocid1.securitylist.oc1.iad.aaaaaaaademonodes"
)

// InstanceID is the OCID of the i-th instance of the demo world, from 0.
func InstanceID(i int) string { return fmt.Sprintf("ocid1.instance.oc1.iad.aaaaaaaademonode%d", i+1) }

// NodeName is the name of the i-th node and instance, from 0.
func NodeName(i int) string { return fmt.Sprintf("node-%d", i+1) }

// NodeIP is the private address of the i-th node, from 0.
func NodeIP(i int) string { return fmt.Sprintf("10.0.10.%d", 11+i) }

// DemoWorld is one compartment with a public subnet for balancers, a private one for nodes, and three instances in
// three availability domains. Each subnet has a security list of its own, in which somebody has rules already.
func DemoWorld() ocisim.World { return WorldOf(3) }

// WorldOf is the demo world with n instances; at most 200.
func WorldOf(n int) ocisim.World {
	unreachable := 3
	w := ocisim.World{
		Compartments: []ocisim.Compartment{{ID: Compartment, Name: "demo"}},
		VCNs:         []ocisim.VCN{{ID: VCN, Name: "demo", CIDRs: []string{"10.0.0.0/16"}}},
		SecurityLists: []ocisim.SecurityList{
			{
				ID: PublicList, Name: "load-balancers",
				Ingress: []ocisim.SecurityRule{{Protocol: "icmp", ICMPType: &unreachable, Description: "path MTU"}},
				Egress:  []ocisim.SecurityRule{{Protocol: "udp", Ports: "123", Description: "time"}},
			},
			{
				ID: PrivateList, Name: "nodes",
				Ingress: []ocisim.SecurityRule{
					{Peer: "10.0.10.0/24", Description: "between nodes"},
					{Protocol: "tcp", Ports: "22", Peer: "10.0.0.0/16", Description: "administrators"},
				},
				Egress: []ocisim.SecurityRule{{Description: "anything"}},
			},
		},
		Subnets: []ocisim.Subnet{
			{ID: PublicSubnet, Name: "load-balancers", CIDR: "10.0.20.0/24", SecurityLists: []string{PublicList}},
			{ID: PrivateSubnet, Name: "nodes", CIDR: "10.0.10.0/24", Private: true, SecurityLists: []string{PrivateList}},
		},
	}
	for i := range n {
		w.Instances = append(w.Instances, ocisim.Instance{
			ID: InstanceID(i), Name: NodeName(i), VNIC: ocisim.VNIC{Subnet: "nodes", PrivateIP: NodeIP(i)},
		})
	}
	return w
}

// DemoNodes are simulated nodes for the instances of a demo world, with or without the providerID that kubelet's
// flag would set.
func DemoNodes(w ocisim.World, providerIDs bool) nodes.Options {
	o := nodes.Options{Count: len(w.Instances), Name: NodeName, NodeIP: NodeIP}
	if providerIDs {
		o.ProviderID = InstanceID
	}
	return o
}

// QuickDurations lets the region's state changes take moments instead of minutes.
func QuickDurations() map[string]ocisim.Range {
	quick := map[string]ocisim.Range{
		"work.accept":     {Min: 10 * time.Millisecond, Max: 50 * time.Millisecond},
		"publicip.assign": {Min: 10 * time.Millisecond, Max: 50 * time.Millisecond},
	}
	for _, kind := range []string{"loadbalancer", "networkloadbalancer"} {
		for _, step := range []string{"create", "update", "delete"} {
			quick[kind+"."+step] = ocisim.Range{Min: 200 * time.Millisecond, Max: 600 * time.Millisecond}
		}
	}
	return quick
}

// UserConfig is the cloud-provider.yaml of a user principal in the demo world.
func UserConfig(b *Bed) string {
	key := strings.ReplaceAll(strings.TrimSpace(b.User.PrivateKeyPEM()), "\n", "\n    ")
	return fmt.Sprintf(`auth:
  region: %s
  tenancy: %s
  user: %s
  fingerprint: %s
  key: |
    %s
compartment: %s
vcn: %s
loadBalancer:
  subnet1: %s
`, b.User.Region, b.User.Tenancy, b.User.OCID, b.User.Fingerprint, key, Compartment, VCN, PublicSubnet)
}

// InstanceConfig is the cloud-provider.yaml of an instance principal in the demo world: what is missing comes from the
// instance metadata service.
func InstanceConfig(*Bed) string {
	return fmt.Sprintf(`useInstancePrincipals: true
vcn: %s
loadBalancer:
  subnet1: %s
`, VCN, PublicSubnet)
}

// WithoutRules makes no security rules the mode of a config with a block about load balancers, for what is not about them: by
// default they are managed for load balancers.
func WithoutRules(config string) string {
	return strings.Replace(config, "loadBalancer:\n", "loadBalancer:\n  securityListManagementMode: None\n", 1)
}
