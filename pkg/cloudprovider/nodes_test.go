// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package cloudprovider_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/oracle/oci-go-sdk/v65/core"
	v1 "k8s.io/api/core/v1"
	cloudproviderapi "k8s.io/cloud-provider/api"

	"github.com/oracle/oci-cloud-controller-manager/pkg/inventory"
	"github.com/oracle/oci-cloud-controller-manager/test/ocisim"
)

// What a node gets: contract/ccm.md §5.3, §5.4, §6.1.
func TestNodeIsInitialized(t *testing.T) {
	inBubble(t, ocisim.Options{}, func(t *testing.T, b *bed) {
		id := b.region.AddInstance(ocisim.Instance{
			Name: "w-0", Shape: "VM.Standard.A1.Flex", FaultDomain: "FAULT-DOMAIN-2", AvailabilityDomain: "Uocm:US-ASHBURN-AD-2",
			VNIC: ocisim.VNIC{Subnet: "nodes", PrivateIP: "10.0.1.7", PublicIP: "203.0.113.7"},
		})
		b.startNodes()
		b.addNode("w-0", id)
		b.hold(2 * time.Second)
		n := b.node("w-0")
		if !b.isInitialized("w-0") {
			t.Fatalf("still tainted: %v", n.Spec.Taints)
		}
		if n.Spec.ProviderID != id {
			t.Errorf("providerID %q; what kubelet has set stays", n.Spec.ProviderID)
		}
		want := map[string]string{
			v1.LabelHostname:                   "w-0",
			v1.LabelInstanceType:               "VM.Standard.A1.Flex",
			v1.LabelInstanceTypeStable:         "VM.Standard.A1.Flex",
			v1.LabelTopologyZone:               "US-ASHBURN-AD-2",
			v1.LabelFailureDomainBetaZone:      "US-ASHBURN-AD-2",
			v1.LabelTopologyRegion:             "iad",
			v1.LabelFailureDomainBetaRegion:    "iad",
			"oci.oraclecloud.com/fault-domain": "FAULT-DOMAIN-2",
		}
		if diff := cmp.Diff(want, n.Labels); diff != "" {
			t.Errorf("labels (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff(map[string]string{"oci.oraclecloud.com/compartment-id": b.compartment}, n.Annotations); diff != "" {
			t.Errorf("annotations (-want +got):\n%s", diff)
		}
		addresses := []v1.NodeAddress{{Type: v1.NodeInternalIP, Address: "10.0.1.7"}, {Type: v1.NodeExternalIP, Address: "203.0.113.7"}, {Type: v1.NodeHostName, Address: "w-0"}}
		if diff := cmp.Diff(addresses, n.Status.Addresses); diff != "" {
			t.Errorf("addresses (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff(map[string]int{"compute.GetInstance": 1, "compute.ListVnicAttachments": 1, "virtualnetwork.GetVnic": 1}, b.region.Counts()); diff != "" {
			t.Errorf("calls (-want +got):\n%s", diff)
		}
	})
}

// TestMissingPolicyDeletesNothing is case C001.
func TestMissingPolicyDeletesNothing(t *testing.T) {
	inBubble(t, ocisim.Options{}, func(t *testing.T, b *bed) {
		ids := map[string]string{}
		for _, name := range []string{"w-1", "w-2", "w-3"} {
			ids[name] = b.region.AddInstance(ocisim.Instance{Name: name, VNIC: ocisim.VNIC{Subnet: "nodes"}})
		}
		restore := b.region.Deny(ocisim.Policy{ResourceType: "instances"})
		b.startNodes()
		for name, id := range ids {
			b.addNode(name, id, notReady, aged)
		}
		b.hold(10 * time.Minute)
		for name := range ids {
			if b.node(name) == nil {
				t.Errorf("%s was deleted", name)
			}
			if b.isInitialized(name) {
				t.Errorf("%s was initialised", name)
			}
		}
		events := b.eventsOf("Node", "InstanceUnreadable")
		if len(events) != 3 {
			t.Errorf("%d events; want one series for each node", len(events))
		}
		for _, e := range events {
			if e.Type != v1.EventTypeWarning || !strings.Contains(e.Message, "404") || !strings.Contains(e.Message, "opc-request-id") ||
				!strings.Contains(e.Message, "read instance-family in compartment "+b.compartment) {
				t.Errorf("event %q lacks code, request ID or policy", e.Message)
			}
			if e.Count < 2 {
				t.Errorf("event count %d; it should grow", e.Count)
			}
		}
		restore()
		b.hold(6 * time.Minute)
		for name := range ids {
			if !b.isInitialized(name) {
				t.Errorf("%s was not initialised after the policy came", name)
			}
		}

		// The mirror: a real end, while the policy is fine.
		if err := b.region.Foreign().TerminateInstance(ids["w-2"]); err != nil {
			t.Fatal(err)
		}
		b.hold(2 * time.Minute)
		for name := range ids {
			if gone := b.node(name) == nil; gone != (name == "w-2") {
				t.Errorf("%s gone: %v", name, gone)
			}
		}
	})
}

// TestOutageDeletesNothing is case C002.
func TestOutageDeletesNothing(t *testing.T) {
	for name, fault := range map[string]ocisim.Fault{
		"connection drops":     {Drop: ocisim.BeforeApply},
		"answer is lost":       {Drop: ocisim.AfterApply},
		"half of the answer":   {HalfBody: true},
		"401":                  {Status: 401},
		"404":                  {Status: 404},
		"429":                  {Status: 429},
		"500":                  {Status: 500},
		"503":                  {Status: 503},
		"no answer":            {Delay: 24 * time.Hour},
		"only the read fails":  {Operation: "GetInstance", Status: 503},
		"read 404, list fails": {Operation: "ListInstances", Status: 500},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, ocisim.Options{}, func(t *testing.T, b *bed) {
				id := b.region.AddInstance(ocisim.Instance{Name: "w-1", VNIC: ocisim.VNIC{Subnet: "nodes"}})
				if name == "read 404, list fails" {
					b.region.Deny(ocisim.Policy{ResourceType: "instances", Operation: "GetInstance"})
				}
				b.region.Fault(fault)
				b.startNodes()
				b.addNode("w-1", id, notReady, aged, initialized)
				b.hold(10 * time.Minute)
				if b.node("w-1") == nil {
					t.Error("the Node was deleted")
				}
			})
		})
	}
}

// TestStates is case C003.
func TestStates(t *testing.T) {
	for state, want := range map[string]struct{ kept, shutdown bool }{
		"PROVISIONING":   {kept: true},
		"STARTING":       {kept: true},
		"RUNNING":        {kept: true},
		"STOPPING":       {kept: true, shutdown: true},
		"STOPPED":        {kept: true, shutdown: true},
		"MOVING":         {kept: true},
		"CREATING_IMAGE": {kept: true},
		"TERMINATING":    {},
		"TERMINATED":     {},
		"HIBERNATING":    {kept: true},
	} {
		t.Run(state, func(t *testing.T) {
			inBubble(t, ocisim.Options{}, func(t *testing.T, b *bed) {
				id := b.region.AddInstance(ocisim.Instance{Name: "w-1", State: state, VNIC: ocisim.VNIC{Subnet: "nodes"}})
				b.startNodes()
				b.addNode("w-1", id, notReady, aged, initialized)
				b.hold(time.Minute)
				n := b.node("w-1")
				if (n != nil) != want.kept {
					t.Fatalf("kept: %v", n != nil)
				}
				if n != nil && isTainted(n, cloudproviderapi.TaintNodeShutdown) != want.shutdown {
					t.Errorf("taints %v; want shutdown: %v", n.Spec.Taints, want.shutdown)
				}
			})
		})
	}
}

// A TERMINATING instance whose node is still ready is still there.
func TestTerminatingButReady(t *testing.T) {
	inBubble(t, ocisim.Options{}, func(t *testing.T, b *bed) {
		id := b.region.AddInstance(ocisim.Instance{Name: "w-1", State: "TERMINATING", VNIC: ocisim.VNIC{Subnet: "nodes"}})
		b.initialize()
		instances, _ := b.provider.InstancesV2()
		b.addNode("w-1", id)
		for _, ready := range []bool{true, false} {
			n := b.node("w-1")
			if !ready {
				notReady(n)
			}
			exists, err := instances.InstanceExists(b.ctx, n)
			if exists != ready || err != nil {
				t.Errorf("ready %v: exists %v, error %v", ready, exists, err)
			}
		}
	})
}

// The shutdown taint goes when the machine is back.
func TestShutdownTaintGoes(t *testing.T) {
	inBubble(t, ocisim.Options{}, func(t *testing.T, b *bed) {
		id := b.region.AddInstance(ocisim.Instance{Name: "w-1", State: "STOPPED", VNIC: ocisim.VNIC{Subnet: "nodes"}})
		b.startNodes()
		b.addNode("w-1", id, notReady, initialized)
		b.hold(10 * time.Second)
		if !isTainted(b.node("w-1"), cloudproviderapi.TaintNodeShutdown) {
			t.Fatal("no shutdown taint")
		}
		if err := b.region.Foreign().StartInstance(id); err != nil {
			t.Fatal(err)
		}
		b.ready("w-1", v1.ConditionTrue)
		b.hold(10 * time.Second)
		if isTainted(b.node("w-1"), cloudproviderapi.TaintNodeShutdown) {
			t.Error("the shutdown taint stays")
		}
	})
}

// TestNewInstanceNotVisibleYet is case C004.
func TestNewInstanceNotVisibleYet(t *testing.T) {
	inBubble(t, ocisim.Options{EventualReads: 10}, func(t *testing.T, b *bed) {
		b.startNodes()
		id := b.region.AddInstance(ocisim.Instance{Name: "w-1", VNIC: ocisim.VNIC{Subnet: "nodes"}})
		hide := b.region.Fault(ocisim.Fault{Operation: "GetInstance", Status: 404})
		b.addNode("w-1", id, notReady)
		for range 12 {
			b.hold(5 * time.Second)
			if b.node("w-1") == nil {
				t.Fatal("the Node was deleted")
			}
		}
		hide()
		b.hold(3 * time.Minute)
		if !b.isInitialized("w-1") {
			t.Error("the Node was not initialised when its instance appeared")
		}
	})
}

// Within its grace period, a Node survives even a proof of absence; afterwards it does not.
func TestGracePeriod(t *testing.T) {
	inBubble(t, ocisim.Options{}, func(t *testing.T, b *bed) {
		b.options.NewNodeGrace = time.Minute
		b.startNodes()
		b.addNode("w-1", "ocid1.instance.oc1.iad.absent", notReady)
		b.hold(59 * time.Second)
		if b.node("w-1") == nil {
			t.Fatal("deleted within the grace period")
		}
		b.hold(30 * time.Second)
		if b.node("w-1") != nil {
			t.Error("not deleted after the grace period")
		}
	})
}

// TestCompartmentAnnotationIsNotNeeded is case C005: providerID yes or no, annotation right, wrong or none.
func TestCompartmentAnnotationIsNotNeeded(t *testing.T) {
	for _, withID := range []bool{true, false} {
		for name, annotation := range map[string]string{"right": "right", "none": "", "wrong": "ocid1.compartment.oc1..wrong"} {
			t.Run(fmt.Sprintf("providerID %v, annotation %s", withID, name), func(t *testing.T) {
				inBubble(t, ocisim.Options{}, func(t *testing.T, b *bed) {
					id := b.region.AddInstance(ocisim.Instance{Name: "w-1", VNIC: ocisim.VNIC{Subnet: "nodes"}})
					b.startNodes()
					providerID, wantID := "", "oci://"+id
					if withID {
						providerID, wantID = id, id
					}
					b.addNode("w-1", providerID, func(n *v1.Node) {
						switch annotation {
						case "":
						case "right":
							annotate(n, "oci.oraclecloud.com/compartment-id", b.compartment)
						default:
							annotate(n, "oci.oraclecloud.com/compartment-id", annotation)
						}
					})
					b.hold(5 * time.Second)
					if !b.isInitialized("w-1") {
						t.Fatal("not initialised")
					}
					n := b.node("w-1")
					if n.Spec.ProviderID != wantID {
						t.Errorf("providerID %q; want %q", n.Spec.ProviderID, wantID)
					}
					if got := n.Annotations["oci.oraclecloud.com/compartment-id"]; got != b.compartment {
						t.Errorf("compartment %q; want %q", got, b.compartment)
					}
				})
			})
		}
	}
}

// A wrong annotation proves nothing: the instance is in a compartment that this principal may not see.
func TestWrongCompartmentProvesNothing(t *testing.T) {
	inBubble(t, ocisim.Options{}, func(t *testing.T, b *bed) {
		secret := b.region.AddCompartment(ocisim.Compartment{Name: "secret"})
		id := b.region.AddInstance(ocisim.Instance{Name: "w-1", Compartment: secret, VNIC: ocisim.VNIC{Subnet: "nodes"}})
		b.startNodes()
		b.addNode("w-1", id, initialized, aged)
		b.hold(time.Second) // the node info controller corrects the annotation
		b.region.Deny(ocisim.Policy{ResourceType: "instances", Compartment: secret})
		b.ready("w-1", v1.ConditionUnknown)
		b.hold(10 * time.Minute)
		if b.node("w-1") == nil {
			t.Error("the Node was deleted")
		}
	})
}

// TestProviderIDs is case C006, the part of the nodes.
func TestProviderIDs(t *testing.T) {
	for _, test := range []struct {
		name, providerID string // %s is the instance
		initialized      bool
		reason           string // of an event
	}{
		{name: "bare", providerID: "%s", initialized: true},
		{name: "with scheme", providerID: "oci://%s", initialized: true},
		{name: "with three slashes", providerID: "oci:///%s", initialized: true},
		{name: "none", providerID: "", initialized: true},
		{name: "another cloud", providerID: "aws:///us-east-1a/i-1", reason: "ForeignNode"},
		{name: "another resource", providerID: "ocid1.volume.oc1.iad.x", reason: "InvalidProviderID"},
		{name: "half an OCID", providerID: "ocid1.instance", reason: "InvalidProviderID"},
	} {
		t.Run(test.name, func(t *testing.T) {
			inBubble(t, ocisim.Options{}, func(t *testing.T, b *bed) {
				id := b.region.AddInstance(ocisim.Instance{Name: "w-1", VNIC: ocisim.VNIC{Subnet: "nodes", PrivateIP: "10.0.1.1"}})
				providerID := strings.ReplaceAll(test.providerID, "%s", id)
				b.startNodes()
				b.addNode("w-1", providerID, aged)
				b.addNode("w-2", b.region.AddInstance(ocisim.Instance{Name: "w-2", VNIC: ocisim.VNIC{Subnet: "nodes"}}))
				b.hold(5 * time.Second)
				if got := b.isInitialized("w-1"); got != test.initialized {
					t.Errorf("initialised: %v", got)
				}
				if !b.isInitialized("w-2") {
					t.Error("the other node suffers")
				}
				// Neither now nor when it is not ready does it crash or delete anything.
				b.update("w-1", initialized)
				b.ready("w-1", v1.ConditionUnknown)
				b.hold(10 * time.Minute)
				n := b.node("w-1")
				if n == nil {
					t.Fatal("the Node was deleted")
				}
				if want := providerID; want != "" && n.Spec.ProviderID != want {
					t.Errorf("providerID %q; want %q", n.Spec.ProviderID, want)
				}
				if test.reason != "" && len(b.eventsOf("Node", test.reason)) != 1 {
					t.Errorf("%d events %s; want one series", len(b.eventsOf("Node", test.reason)), test.reason)
				}
			})
		})
	}
}

// TestSameNameInTwoVCNs is case C008.
func TestSameNameInTwoVCNs(t *testing.T) {
	for _, configured := range []bool{true, false} {
		t.Run(fmt.Sprintf("vcn configured %v", configured), func(t *testing.T) {
			inBubble(t, ocisim.Options{}, func(t *testing.T, b *bed) {
				other := b.region.AddVCN(ocisim.VCN{Name: "vcn2"})
				b.region.AddSubnet(ocisim.Subnet{VCN: other, Name: "other", CIDR: "10.0.0.0/20"})
				theirs := b.region.AddInstance(ocisim.Instance{Name: "w-0", VNIC: ocisim.VNIC{Subnet: "other"}})
				ours := b.region.AddInstance(ocisim.Instance{Name: "w-0", VNIC: ocisim.VNIC{Subnet: "nodes"}})
				if !configured {
					b.options.Inventory = inventory.New(inventory.Config{CompartmentID: b.compartment}, b.oci.Compute(), b.oci.Network())
				}
				b.startNodes()
				b.addNode("w-0", "")
				b.hold(10 * time.Second)
				n := b.node("w-0")
				if configured {
					if n.Spec.ProviderID != "oci://"+ours {
						t.Errorf("providerID %q; want that of vcn1, %s", n.Spec.ProviderID, ours)
					}
					return
				}
				if n.Spec.ProviderID != "" || b.isInitialized("w-0") {
					t.Errorf("the Node was touched: %+v", n.Spec)
				}
				e := b.event("Node", "InstanceAmbiguous")
				if e == nil || !strings.Contains(e.Message, ours) || !strings.Contains(e.Message, theirs) {
					t.Errorf("event %+v; want one with both OCIDs", e)
				}
			})
		})
	}
}

// TestOneUnknownNodeCostsLittle is case C009: 200 instances, 20 good nodes and one whose name nobody has, on a budget of
// 10 calls per second.
func TestOneUnknownNodeCostsLittle(t *testing.T) {
	rate := ocisim.Rate{PerSecond: 10, Burst: 10}
	inBubble(t, ocisim.Options{PageSize: 50, Rates: map[string]ocisim.Rate{"compute.read": rate, "virtualnetwork.read": rate}}, func(t *testing.T, b *bed) {
		b.region.AddInstance(ocisim.Instance{Name: "w-%d", Count: 200, VNIC: ocisim.VNIC{Subnet: "nodes"}})
		b.startNodes()
		b.addNode("typo-1", "", notReady)
		for i, instance := range b.region.Instances()[:20] {
			b.addNode(fmt.Sprintf("w-%d", i+1), *instance.Id)
		}
		b.hold(30 * time.Second)
		for i := range 20 {
			if name := fmt.Sprintf("w-%d", i+1); !b.isInitialized(name) {
				t.Errorf("%s is not initialised after 30 s", name)
			}
		}
		b.region.ResetCalls()
		b.hold(10 * time.Minute)
		total := 0
		for _, n := range b.region.Counts() {
			total += n
		}
		// Twice in ten minutes the addresses of 20 nodes are read (attachments and VNIC) and once the instances: 100. The
		// unknown name costs up to five refreshes of the shared lists (four pages each of instances, attachments and
		// addresses, one of IPv6 addresses): 65.
		if total > 165 {
			t.Errorf("%d calls in ten minutes; want at most 165: %v", total, b.region.Counts())
		}
		if b.node("typo-1") == nil || b.isInitialized("typo-1") {
			t.Error("the unknown node was deleted or initialised")
		}
		if e := b.event("Node", "InstanceNotFound"); e == nil || !strings.Contains(e.Message, "typo-1") || !strings.Contains(e.Message, "--provider-id") {
			t.Errorf("event %+v", e)
		}
	})
}

// A failed read of addresses leaves those that the Node has.
func TestAddressesSurviveFailedReads(t *testing.T) {
	for _, operation := range []string{"GetInstance", "ListVnicAttachments", "GetVnic"} {
		t.Run(operation, func(t *testing.T) {
			inBubble(t, ocisim.Options{}, func(t *testing.T, b *bed) {
				id := b.region.AddInstance(ocisim.Instance{Name: "w-1", VNIC: ocisim.VNIC{Subnet: "nodes", PrivateIP: "10.0.1.1", PublicIP: "203.0.113.1"}})
				b.startNodes()
				b.addNode("w-1", id)
				b.hold(time.Second)
				want := b.node("w-1").Status.Addresses
				if len(want) != 3 {
					t.Fatalf("addresses %v", want)
				}
				b.region.Fault(ocisim.Fault{Operation: operation, Status: 404})
				b.hold(30 * time.Minute)
				if diff := cmp.Diff(want, b.node("w-1").Status.Addresses); diff != "" {
					t.Errorf("(-before +after):\n%s", diff)
				}
			})
		})
	}
}

// An address that changes in the cloud changes on the Node at the next pass.
func TestAddressesFollowTheCloud(t *testing.T) {
	inBubble(t, ocisim.Options{}, func(t *testing.T, b *bed) {
		id := b.region.AddInstance(ocisim.Instance{Name: "w-1", VNIC: ocisim.VNIC{Subnet: "nodes", PrivateIP: "10.0.1.1", PublicIP: "203.0.113.1"}})
		b.startNodes()
		b.addNode("w-1", id)
		b.hold(time.Second)
		vnic := b.region.InstanceVNICs(id)[0]
		moved := "203.0.113.99"
		if err := b.region.Foreign().VNIC(*vnic.Id, func(v *core.Vnic) { v.PublicIp = &moved }); err != nil {
			t.Fatal(err)
		}
		b.hold(6 * time.Minute)
		if got := b.node("w-1").Status.Addresses[1].Address; got != moved {
			t.Errorf("external address %s; want %s", got, moved)
		}
	})
}

// TestAbsentFieldsDoNotCrash is case C012: for answers with optional fields missing at random, nothing panics, and what a
// node needs is either there or waited for.
func TestAbsentFieldsDoNotCrash(t *testing.T) {
	for seed := range uint64(10) {
		inBubble(t, ocisim.Options{Seed: seed, DropOptional: 0.4}, func(t *testing.T, b *bed) {
			b.region.AddInstance(ocisim.Instance{
				Name: "w-%d", Count: 6, VNIC: ocisim.VNIC{Subnet: "nodes", PublicIP: ocisim.Auto, IPv6: []string{ocisim.Auto}}, VNICs: []ocisim.VNIC{{Subnet: "nodes"}},
			})
			b.startNodes()
			for i, instance := range b.region.Instances() {
				providerID := *instance.Id
				if i%2 == 1 {
					providerID = ""
				}
				b.addNode(fmt.Sprintf("w-%d", i+1), providerID)
			}
			b.hold(10 * time.Minute)
			for i := range 6 {
				name := fmt.Sprintf("w-%d", i+1)
				n := b.node(name)
				if n == nil {
					t.Fatalf("seed %d: %s was deleted", seed, name)
				}
				if !b.isInitialized(name) {
					continue
				}
				for _, key := range []string{v1.LabelTopologyZone, v1.LabelTopologyRegion, v1.LabelInstanceTypeStable} {
					if n.Labels[key] == "" {
						t.Errorf("seed %d: %s was initialised without %s", seed, name, key)
					}
				}
			}
		})
	}
}
