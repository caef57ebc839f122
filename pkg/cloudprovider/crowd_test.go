// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package cloudprovider_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"

	"github.com/oracle/oci-cloud-controller-manager/pkg/cloudprovider"
	"github.com/oracle/oci-cloud-controller-manager/pkg/inventory"
	"github.com/oracle/oci-cloud-controller-manager/pkg/oci"
	"github.com/oracle/oci-cloud-controller-manager/test/ocisim"
)

// addInstances makes running instances in a private subnet, and returns their OCIDs.
func (b *bed) addInstances(n int, v ocisim.VNIC) []string {
	b.t.Helper()
	if v.Subnet == "" {
		b.region.AddSubnet(ocisim.Subnet{VCN: b.vcn, Name: "private", CIDR: "10.0.16.0/20", IPv6CIDR: "fd00:10:0:1::/64", Private: true})
		v.Subnet = "private"
	}
	var ids []string
	for i := range n {
		ids = append(ids, b.region.AddInstance(ocisim.Instance{Name: fmt.Sprint("w-", i), VNIC: v}))
	}
	return ids
}

// lists are the calls that a pass over all nodes may make, with how many.
func (b *bed) lists(instances, attachments, addresses int) map[string]int {
	return map[string]int{
		"compute.ListInstances": instances, "compute.ListVnicAttachments": attachments, "virtualnetwork.ListPrivateIps": addresses,
	}
}

// A pass over a hundred nodes reads lists, and writes nothing if nothing has changed, although each node has two internal
// addresses, which the framework takes for a change.
func TestPassReadsListsAndWritesNothing(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long: make test-long runs it, without the race detector")
	}
	inBubble(t, ocisim.Options{PageSize: 1000}, func(t *testing.T, b *bed) {
		ids := b.addInstances(100, ocisim.VNIC{IPv6: []string{ocisim.Auto}})
		b.startNodes()
		for i, id := range ids {
			b.addNode(fmt.Sprint("w-", i), id, func(n *v1.Node) { label(n, "oci.oraclecloud.com/ip-family-ipv6", "") })
		}
		b.hold(30 * time.Second)
		for i := range ids {
			n := b.node(fmt.Sprint("w-", i))
			if !b.isInitialized(n.Name) || len(n.Status.Addresses) != 3 {
				t.Fatalf("%s: taints %v, addresses %v", n.Name, n.Spec.Taints, n.Status.Addresses)
			}
		}
		b.hold(5 * time.Minute) // past the first pass
		b.region.ResetCalls()
		before := len(b.writes())
		b.hold(15 * time.Minute)
		if writes := b.writes()[before:]; len(writes) > 0 {
			t.Errorf("writes in three passes without a change: %v", writes)
		}
		// The instances themselves are read by every second pass: their shape and tags hardly ever change.
		want := b.lists(2, 3, 3)
		want["virtualnetwork.ListIpv6s"], want["virtualnetwork.GetSubnet"] = 3, 3
		got := b.region.Counts()
		if n := got["compute.ListInstances"]; n == 1 || n == 3 {
			want["compute.ListInstances"] = n
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("calls of three passes (-want +got):\n%s", diff)
		}
	})
}

// P2 of the budgets: 500 nodes join at once, with 100 ms for a call and 20 calls a second.
func TestManyNodesJoinAtOnce(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long: make test-long runs it, without the race detector")
	}
	options := ocisim.Options{
		PageSize: 1000, Latency: map[string]ocisim.Range{"*": {Min: 100 * time.Millisecond}},
		Read: ocisim.Rate{PerSecond: 20, Burst: 20},
	}
	inBubble(t, options, func(t *testing.T, b *bed) {
		ids := b.addInstances(500, ocisim.VNIC{})
		b.startNodes()
		for i, id := range ids {
			b.addNode(fmt.Sprint("w-", i), id)
		}
		began := time.Now()
		joined := func() int {
			n := 0
			for i := range ids {
				if b.isInitialized(fmt.Sprint("w-", i)) {
					n++
				}
			}
			return n
		}
		for joined() < len(ids) && time.Since(began) < 15*time.Second {
			b.hold(time.Second)
		}
		if n := joined(); n < len(ids) {
			t.Errorf("%d of %d nodes are initialised after 15 s", n, len(ids))
		}
		t.Logf("budget P2: all initialised within %s of virtual time, %d calls", time.Since(began), total(b.region.Counts()))
		// The first second's nodes are not known to be a crowd. One by one, it would be 1,500 calls.
		if n := total(b.region.Counts()); n > 150 {
			t.Errorf("%d calls for 500 nodes: %v", n, b.region.Counts())
		}
	})
}

// P3 of the budgets: nodes that are not ready are asked about every 5 s.
func TestManyNodesNotReady(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long: make test-long runs it, without the race detector")
	}
	inBubble(t, ocisim.Options{PageSize: 1000}, func(t *testing.T, b *bed) {
		ids := b.addInstances(60, ocisim.VNIC{})
		b.startNodes()
		for i, id := range ids {
			b.addNode(fmt.Sprint("w-", i), id, aged)
		}
		b.hold(time.Minute)
		for i := range 50 {
			b.ready(fmt.Sprint("w-", i), v1.ConditionUnknown)
		}
		b.hold(10 * time.Second)
		b.region.ResetCalls()
		b.hold(10 * time.Minute)
		got := b.region.Counts()
		if got["compute.ListInstances"] > 61 || got["compute.GetInstance"] > 0 {
			t.Errorf("calls in 10 minutes: %v; want a list every 10 s and no single read", got)
		}
		t.Logf("budget P3: %d lists in 10 minutes, %d single reads", got["compute.ListInstances"], got["compute.GetInstance"])
		if got["compute.ListInstances"] < 30 {
			t.Errorf("only %d lists: a terminated instance would not be noticed", got["compute.ListInstances"])
		}
		if err := b.region.Foreign().TerminateInstance(ids[7]); err != nil {
			t.Fatal(err)
		}
		b.hold(5 * time.Minute)
		if b.node("w-7") != nil {
			t.Error("the node of a terminated instance is still there")
		}
		if b.node("w-8") == nil {
			t.Error("the node of a running instance was deleted")
		}
	})
}

// A restart looks at all nodes at once, for their labels and annotations.
func TestRestartReadsLists(t *testing.T) {
	inBubble(t, ocisim.Options{PageSize: 1000}, func(t *testing.T, b *bed) {
		ids := b.addInstances(100, ocisim.VNIC{})
		for i, id := range ids {
			b.addNode(fmt.Sprint("w-", i), id, aged, initialized)
		}
		b.startNodes()
		b.hold(time.Minute)
		for i := range ids {
			if b.node(fmt.Sprint("w-", i)).Labels["oci.oraclecloud.com/fault-domain"] == "" {
				t.Fatalf("w-%d has no label of its fault domain", i)
			}
		}
		want := b.lists(1, 1, 1)
		want["virtualnetwork.ListIpv6s"], want["virtualnetwork.GetSubnet"] = 1, 1
		if diff := cmp.Diff(want, b.region.Counts()); diff != "" {
			t.Errorf("calls (-want +got):\n%s", diff)
		}
	})
}

// Where a policy for address lists is missing, VNICs are read one by one, nodes keep and get their addresses, and the
// operator is told once.
func TestAddressListsDenied(t *testing.T) {
	inBubble(t, ocisim.Options{}, func(t *testing.T, b *bed) {
		b.options.Inventory = inventory.New(inventory.Config{
			CompartmentID: b.compartment, VCNID: b.vcn, Trim: cloudprovider.TrimInstance(nil),
			Report: func(f inventory.Fallback) { b.provider.ReportFallback(f) },
		}, b.oci.Compute(), b.oci.Network())
		b.region.Deny(ocisim.Policy{ResourceType: "private-ips"})
		ids := b.addInstances(30, ocisim.VNIC{})
		b.startNodes()
		for i, id := range ids {
			b.addNode(fmt.Sprint("w-", i), id)
		}
		b.hold(20 * time.Minute)
		for i, id := range ids {
			n := b.node(fmt.Sprint("w-", i))
			want := v1.NodeAddress{Type: v1.NodeInternalIP, Address: *b.region.InstanceVNICs(id)[0].PrivateIp}
			if !b.isInitialized(n.Name) || !slices.Contains(n.Status.Addresses, want) {
				t.Errorf("%s: taints %v, addresses %v; want %v", n.Name, n.Spec.Taints, n.Status.Addresses, want)
			}
		}
		if events := b.eventsOf("Lease", "AddressListsUnusable"); len(events) != 1 {
			t.Errorf("%d events; want one: %v", len(events), events)
		}
	})
}

// What is remembered of an instance has no metadata and no tags but those that count.
func TestTrimInstance(t *testing.T) {
	i := &oci.Instance{
		ID: "ocid1.instance.oc1.iad.x", Metadata: map[string]string{"user_data": "…"},
		Tags: oci.Tags{
			Freeform: map[string]string{"a": "b"},
			Defined:  map[string]map[string]any{"Operations": {"CostCenter": 42}, "openshift-abc": {"boot-volume-type": "ISCSI"}},
		},
	}
	cloudprovider.TrimInstance(nil)(i)
	want := &oci.Instance{ID: "ocid1.instance.oc1.iad.x", Tags: oci.Tags{Defined: map[string]map[string]any{"openshift-abc": {}}}}
	if diff := cmp.Diff(want, i); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
