// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package cloudprovider_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/oracle/oci-go-sdk/v65/core"
	v1 "k8s.io/api/core/v1"

	"github.com/oracle/oci-cloud-controller-manager/test/ocisim"
)

// Addresses and their order: contract/ccm.md §5.3, case C011.
func TestAddresses(t *testing.T) {
	const private, public, global, local = "10.0.1.7", "203.0.113.7", "2001:db8::7", "fd00:10::7"
	internal := func(a string) v1.NodeAddress { return v1.NodeAddress{Type: v1.NodeInternalIP, Address: a} }
	external := func(a string) v1.NodeAddress { return v1.NodeAddress{Type: v1.NodeExternalIP, Address: a} }
	withLabel := func(n *v1.Node) { label(n, "oci.oraclecloud.com/ip-family-ipv6", "") }
	nodeIP := func(ips string) func(*v1.Node) {
		return func(n *v1.Node) { annotate(n, "alpha.kubernetes.io/provided-node-ip", ips) }
	}
	openShift := func(v *core.Vnic) {
		v.DefinedTags = map[string]map[string]any{"openshift-cluster": {"boot-volume-type": "ISCSI"}}
	}
	for name, test := range map[string]struct {
		v4, public string // of the primary VNIC
		v6         []string
		node       func(*v1.Node)
		tags       map[string]map[string]any // of the instance
		second     func(*core.Vnic)
		want       []v1.NodeAddress
		fails      bool
	}{
		"private only":               {v4: private, want: []v1.NodeAddress{internal(private)}},
		"private and public":         {v4: private, public: public, want: []v1.NodeAddress{internal(private), external(public)}},
		"IPv6 is not asked for":      {v4: private, v6: []string{global}, want: []v1.NodeAddress{internal(private)}},
		"IPv6 by label":              {v4: private, public: public, v6: []string{global, local}, node: withLabel, want: []v1.NodeAddress{internal(private), external(public), external(global), internal(local)}},
		"IPv6 by kubelet":            {v4: private, v6: []string{global}, node: nodeIP(private + "," + global), want: []v1.NodeAddress{internal(private), external(global)}},
		"kubelet asks for IPv4":      {v4: private, v6: []string{global}, node: nodeIP(private), want: []v1.NodeAddress{internal(private)}},
		"kubelet asks for any":       {v4: private, v6: []string{global}, node: nodeIP("0.0.0.0"), want: []v1.NodeAddress{internal(private)}},
		"IPv6 only":                  {v6: []string{"2001:0DB8:0::0007"}, want: []v1.NodeAddress{external(global)}},
		"no address":                 {fails: true},
		"not an address":             {v4: "10.0.1.777", fails: true},
		"the same address twice":     {v4: private, v6: []string{global, global}, node: withLabel, want: []v1.NodeAddress{internal(private), external(global)}},
		"secondary VNIC":             {v4: private, second: openShift, want: []v1.NodeAddress{internal(private)}},
		"OpenShift":                  {v4: private, v6: []string{global}, node: withLabel, tags: map[string]map[string]any{"openshift-cluster": {}}, second: openShift, want: []v1.NodeAddress{internal(private), external(global), internal("10.0.2.1"), external("203.0.113.99")}},
		"OpenShift, VNIC not for it": {v4: private, tags: map[string]map[string]any{"openshift-cluster": {}}, second: func(*core.Vnic) {}, want: []v1.NodeAddress{internal(private)}},
		"OpenShift, VNIC of another": {v4: private, tags: map[string]map[string]any{"openshift-other": {}}, second: openShift, want: []v1.NodeAddress{internal(private)}},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, ocisim.Options{}, func(t *testing.T, b *bed) {
				id := b.region.AddInstance(ocisim.Instance{
					Name: "w-1", VNIC: ocisim.VNIC{Subnet: "nodes"},
					VNICs: []ocisim.VNIC{{Subnet: "nodes", PrivateIP: "10.0.2.1", PublicIP: "203.0.113.99"}},
				})
				vnics := b.region.InstanceVNICs(id)
				change := func(id string, f func(*core.Vnic)) {
					t.Helper()
					if err := b.region.Foreign().VNIC(id, f); err != nil {
						t.Fatal(err)
					}
				}
				change(*vnics[0].Id, func(v *core.Vnic) {
					v.PrivateIp, v.PublicIp, v.Ipv6Addresses = orNil(test.v4), orNil(test.public), test.v6
				})
				if test.second != nil {
					change(*vnics[1].Id, test.second)
				}
				if err := b.region.Foreign().Instance(id, func(i *core.Instance) { i.DefinedTags = test.tags }); err != nil {
					t.Fatal(err)
				}
				b.initialize()
				b.addNode("w-1", id)
				n := b.node("w-1")
				if test.node != nil {
					test.node(n)
				}
				instances, _ := b.provider.InstancesV2()
				metadata, err := instances.InstanceMetadata(b.ctx, n)
				if (err != nil) != test.fails {
					t.Fatalf("error %v", err)
				}
				if err == nil {
					if diff := cmp.Diff(test.want, metadata.NodeAddresses); diff != "" {
						t.Errorf("(-want +got):\n%s", diff)
					}
				}
			})
		})
	}
}

func orNil(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

// The framework takes the addresses in the order that kubelet asks for, whatever ours is.
func TestDualStackNode(t *testing.T) {
	inBubble(t, ocisim.Options{}, func(t *testing.T, b *bed) {
		id := b.region.AddInstance(ocisim.Instance{Name: "w-1", VNIC: ocisim.VNIC{Subnet: "nodes", PrivateIP: "10.0.1.7", IPv6: []string{"2001:db8::7"}}})
		b.startNodes()
		b.addNode("w-1", id, func(n *v1.Node) { annotate(n, "alpha.kubernetes.io/provided-node-ip", "2001:db8::7,10.0.1.7") })
		b.hold(time.Second)
		want := []v1.NodeAddress{
			{Type: v1.NodeExternalIP, Address: "2001:db8::7"}, {Type: v1.NodeInternalIP, Address: "10.0.1.7"}, {Type: v1.NodeHostName, Address: "w-1"},
		}
		if diff := cmp.Diff(want, b.node("w-1").Status.Addresses); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
}

// A node named by its IPv6 address is found by that address of its VNIC.
func TestNodeNamedByItsAddress(t *testing.T) {
	inBubble(t, ocisim.Options{}, func(t *testing.T, b *bed) {
		id := b.region.AddInstance(ocisim.Instance{Name: "some", VNIC: ocisim.VNIC{Subnet: "nodes", IPv6: []string{"2001:db8::7"}}})
		b.startNodes()
		b.addNode("2001-db8--7", "")
		b.addNode("2001-db8--8", "")
		b.hold(time.Minute)
		if got := b.node("2001-db8--7").Spec.ProviderID; got != "oci://"+id {
			t.Errorf("providerID %q", got)
		}
		if b.isInitialized("2001-db8--8") {
			t.Error("a node was initialised for an address that nobody has")
		}
	})
}
