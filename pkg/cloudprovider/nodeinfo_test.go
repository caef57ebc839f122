// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package cloudprovider_test

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/oracle/oci-go-sdk/v65/core"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/oracle/oci-cloud-controller-manager/test/ocisim"
)

const (
	faultDomain = "oci.oraclecloud.com/fault-domain"
	compartment = "oci.oraclecloud.com/compartment-id"
	fullADName  = "csi-ipv6-full-ad-name"
)

// isStatus says whether a write is of addresses, which the framework makes.
func isStatus(write string) bool { return write == "patch nodes/status" }

// What is wrong is corrected in one patch; keys of others are not touched; what is right causes no write.
func TestNodeInfoCorrects(t *testing.T) {
	inBubble(t, ocisim.Options{}, func(t *testing.T, b *bed) {
		id := b.region.AddInstance(ocisim.Instance{Name: "w-1", FaultDomain: "FAULT-DOMAIN-2", AvailabilityDomain: "Uocm:US-ASHBURN-AD-2", VNIC: ocisim.VNIC{Subnet: "nodes"}})
		b.options.IPv6SingleStack = true
		b.startNodesOnly()
		b.addNode("w-1", id, initialized, func(n *v1.Node) {
			label(n, faultDomain, "FAULT-DOMAIN-1")
			label(n, "theirs", "stays")
			annotate(n, compartment, "ocid1.compartment.oc1..wrong")
			annotate(n, "theirs", "stays")
		})
		b.hold(time.Second)
		n := b.node("w-1")
		if diff := cmp.Diff(map[string]string{
			v1.LabelHostname: "w-1", "theirs": "stays", faultDomain: "FAULT-DOMAIN-2", fullADName: "Uocm.US-ASHBURN-AD-2",
			v1.LabelInstanceType: "VM.Standard.E5.Flex", v1.LabelInstanceTypeStable: "VM.Standard.E5.Flex",
			v1.LabelFailureDomainBetaZone: "US-ASHBURN-AD-2", v1.LabelTopologyZone: "US-ASHBURN-AD-2",
			v1.LabelFailureDomainBetaRegion: "iad", v1.LabelTopologyRegion: "iad",
		}, n.Labels); diff != "" {
			t.Errorf("labels (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff(map[string]string{"theirs": "stays", compartment: b.compartment}, n.Annotations); diff != "" {
			t.Errorf("annotations (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff([]string{"create nodes", "patch nodes"}, slices.DeleteFunc(b.writes(), isStatus)); diff != "" {
			t.Errorf("writes (-want +got):\n%s", diff)
		}

		// Heartbeats and the resyncs of a day.
		b.client.ClearActions()
		for range 20 {
			b.ready("w-1", v1.ConditionTrue)
			b.hold(5 * time.Minute)
		}
		b.hold(26 * time.Hour)
		writes := map[string]int{}
		for _, w := range slices.DeleteFunc(b.writes(), isStatus) {
			writes[w]++
		}
		if diff := cmp.Diff(map[string]int{"update nodes": 20}, writes); diff != "" {
			t.Errorf("writes besides the test's own (-want +got):\n%s", diff)
		}
	})
}

// A change in the cloud arrives with the next resync.
func TestNodeInfoFollowsTheCloud(t *testing.T) {
	inBubble(t, ocisim.Options{}, func(t *testing.T, b *bed) {
		id := b.region.AddInstance(ocisim.Instance{Name: "w-1", FaultDomain: "FAULT-DOMAIN-2", VNIC: ocisim.VNIC{Subnet: "nodes"}})
		b.startNodesOnly()
		b.addNode("w-1", id)
		b.hold(time.Minute)
		moved := "FAULT-DOMAIN-3"
		if err := b.region.Foreign().Instance(id, func(i *core.Instance) { i.FaultDomain = &moved }); err != nil {
			t.Fatal(err)
		}
		b.hold(13 * time.Hour)
		if got := b.node("w-1").Labels[faultDomain]; got != moved {
			t.Errorf("fault domain %s; want %s", got, moved)
		}
	})
}

// What the API does not say is left as it is.
func TestNodeInfoWithoutFaultDomain(t *testing.T) {
	inBubble(t, ocisim.Options{}, func(t *testing.T, b *bed) {
		id := b.region.AddInstance(ocisim.Instance{Name: "w-1", VNIC: ocisim.VNIC{Subnet: "nodes"}})
		if err := b.region.Foreign().Instance(id, func(i *core.Instance) { i.FaultDomain = nil }); err != nil {
			t.Fatal(err)
		}
		b.startNodesOnly()
		b.addNode("w-1", id, func(n *v1.Node) { label(n, faultDomain, "FAULT-DOMAIN-1") })
		b.addNode("w-2", id)
		b.hold(time.Minute)
		if got := b.node("w-1").Labels[faultDomain]; got != "FAULT-DOMAIN-1" {
			t.Errorf("fault domain %q", got)
		}
		if got, set := b.node("w-2").Labels[faultDomain]; set {
			t.Errorf("fault domain %q", got)
		}
		if !b.isInitialized("w-2") {
			t.Error("not initialised")
		}
	})
}

// A node that was initialised without providerID is found by its name.
func TestNodeInfoByName(t *testing.T) {
	inBubble(t, ocisim.Options{}, func(t *testing.T, b *bed) {
		b.startNodesOnly()
		b.addNode("w-1", "", initialized)
		b.hold(time.Second)
		if got := b.node("w-1").Annotations[compartment]; got != "" {
			t.Fatalf("compartment %q", got)
		}
		b.region.AddInstance(ocisim.Instance{Name: "w-1", VNIC: ocisim.VNIC{Subnet: "nodes"}})
		b.hold(time.Minute)
		if got := b.node("w-1").Annotations[compartment]; got != b.compartment {
			t.Errorf("compartment %q; want %q", got, b.compartment)
		}
	})
}

// A Node that was made anew under the same name does not get what was meant for the old one.
func TestNodeInfoMindsTheUID(t *testing.T) {
	inBubble(t, ocisim.Options{Latency: map[string]ocisim.Range{"compute.GetInstance": {Min: 10 * time.Second}}}, func(t *testing.T, b *bed) {
		first := b.region.AddInstance(ocisim.Instance{Name: "first", FaultDomain: "FAULT-DOMAIN-1", VNIC: ocisim.VNIC{Subnet: "nodes"}})
		b.startNodesOnly()
		b.addNode("w-1", first, initialized)
		b.hold(5 * time.Second)
		if err := b.client.CoreV1().Nodes().Delete(b.ctx, "w-1", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		b.addNode("w-1", "aws:///x", initialized)
		b.hold(time.Minute)
		if got := maps.Clone(b.node("w-1").Labels); len(got) != 1 {
			t.Errorf("labels %v", got)
		}
	})
}

// Labels of the topology are completed, and never changed: a wrong one is an event with the command that mends it.
func TestTopologyLabels(t *testing.T) {
	inBubble(t, ocisim.Options{}, func(t *testing.T, b *bed) {
		b.startNodesOnly()
		add := func(name string, labels map[string]string) {
			id := b.region.AddInstance(ocisim.Instance{Name: name, AvailabilityDomain: "Uocm:US-ASHBURN-AD-2", VNIC: ocisim.VNIC{Subnet: "nodes"}})
			b.addNode(name, id, initialized, func(n *v1.Node) { n.Labels = labels })
		}
		const zone, betaZone = v1.LabelTopologyZone, v1.LabelFailureDomainBetaZone
		add("half", map[string]string{zone: "US-ASHBURN-AD-2"})
		add("wrong", map[string]string{zone: "elsewhere"})
		add("both-wrong", map[string]string{zone: "elsewhere", betaZone: "elsewhere"})
		b.hold(time.Minute)
		for name, want := range map[string][2]string{
			"half": {"US-ASHBURN-AD-2", "US-ASHBURN-AD-2"}, "wrong": {"elsewhere", ""}, "both-wrong": {"elsewhere", "elsewhere"},
		} {
			labels := b.node(name).Labels
			if got := [2]string{labels[zone], labels[betaZone]}; got != want {
				t.Errorf("%s: zone labels %q; want %q", name, got, want)
			}
			if labels[v1.LabelTopologyRegion] != "iad" || labels[v1.LabelInstanceTypeStable] == "" {
				t.Errorf("%s: labels %v", name, labels)
			}
		}
		events := b.eventsOf("Node", "NodeLabelDiffers")
		if len(events) != 2 {
			t.Fatalf("%d events; want one for each of two nodes", len(events))
		}
		for _, e := range events {
			command := "kubectl label node " + e.InvolvedObject.Name + " --overwrite " + betaZone + "=US-ASHBURN-AD-2 " + zone + "=US-ASHBURN-AD-2"
			if !strings.Contains(e.Message, command) {
				t.Errorf("%q lacks %q", e.Message, command)
			}
		}
		// A label that is taken away comes back.
		b.update("half", func(n *v1.Node) { delete(n.Labels, v1.LabelTopologyRegion) })
		b.hold(time.Minute)
		if got := b.node("half").Labels[v1.LabelTopologyRegion]; got != "iad" {
			t.Errorf("region %q", got)
		}
	})
}
