// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	cloudproviderapi "k8s.io/cloud-provider/api"

	"github.com/oracle/oci-cloud-controller-manager/test/ocisim"
	"github.com/oracle/oci-cloud-controller-manager/test/testbed"
)

// Keys on Nodes that the contract names (contract/ccm.md §5.4, §6.1).
const (
	labelFaultDomain      = "oci.oraclecloud.com/fault-domain"
	labelIPv6             = "oci.oraclecloud.com/ip-family-ipv6"
	annotationCompartment = "oci.oraclecloud.com/compartment-id"
)

// otherCompartment is one beside the cluster's.
const otherCompartment = "ocid1.compartment.oc1..aaaaaaaaother"

// machine is an instance and the Node that its kubelet registers, with what must become of the Node.
type machine struct {
	name       string // of the Node
	instance   ocisim.Instance
	providerID string // as kubelet's flag has it
	nodeIP     string // as kubelet's flag has it
	labels     map[string]string
	annotation string // compartment that the Node claims at first

	wantProviderID string   // default: providerID
	wantAddresses  []string // "InternalIP 10.0.10.11"; the Hostname follows by itself
}

// kubelet is the Node that a kubelet with --cloud-provider=external registers.
func (m machine) kubelet() *v1.Node {
	n := &v1.Node{ObjectMeta: metav1.ObjectMeta{
		Name: m.name, Labels: map[string]string{v1.LabelHostname: m.name}, Annotations: map[string]string{},
	}}
	for key, value := range m.labels {
		n.Labels[key] = value
	}
	if m.annotation != "" {
		n.Annotations[annotationCompartment] = m.annotation
	}
	n.Spec.ProviderID = m.providerID
	n.Spec.Taints = []v1.Taint{{Key: cloudproviderapi.TaintExternalCloudProvider, Value: "true", Effect: v1.TaintEffectNoSchedule}}
	if m.nodeIP != "" {
		n.Annotations[cloudproviderapi.AnnotationAlphaProvidedIPAddr] = m.nodeIP
		for ip := range strings.SplitSeq(m.nodeIP, ",") {
			n.Status.Addresses = append(n.Status.Addresses, v1.NodeAddress{Type: v1.NodeInternalIP, Address: ip})
		}
	}
	n.Status.Addresses = append(n.Status.Addresses, v1.NodeAddress{Type: v1.NodeHostName, Address: m.name})
	n.Status.Conditions = []v1.NodeCondition{{Type: v1.NodeReady, Status: v1.ConditionTrue, Reason: "KubeletReady"}}
	n.Status.Images = []v1.ContainerImage{{Names: []string{"registry.example/pause:3.10"}, SizeBytes: 736 << 10}}
	return n
}

func (l *lab) register(n *v1.Node) {
	l.t.Helper()
	if _, err := l.Cluster.Client().CoreV1().Nodes().Create(l.ctx, n, metav1.CreateOptions{}); err != nil {
		l.t.Fatal(err)
	}
}

func (l *lab) getNode(name string) *v1.Node {
	l.t.Helper()
	n, err := l.Cluster.Client().CoreV1().Nodes().Get(l.ctx, name, metav1.GetOptions{})
	if err != nil {
		l.t.Fatal(err)
	}
	return n
}

// nodeFacts are what the CCM writes on a Node.
type nodeFacts struct {
	ProviderID  string
	Waiting     bool // has the taint of an uninitialised node
	Labels      map[string]string
	Compartment string
	Addresses   []string
}

func factsOf(n *v1.Node) nodeFacts {
	f := nodeFacts{ProviderID: n.Spec.ProviderID, Waiting: hasTaint(n, cloudproviderapi.TaintExternalCloudProvider),
		Labels: map[string]string{}, Compartment: n.Annotations[annotationCompartment]}
	for _, key := range []string{
		v1.LabelInstanceType, v1.LabelInstanceTypeStable, v1.LabelTopologyZone, v1.LabelFailureDomainBetaZone,
		v1.LabelTopologyRegion, v1.LabelFailureDomainBetaRegion, labelFaultDomain,
	} {
		if value, ok := n.Labels[key]; ok {
			f.Labels[key] = value
		}
	}
	for _, a := range n.Status.Addresses {
		f.Addresses = append(f.Addresses, fmt.Sprintf("%s %s", a.Type, a.Address))
	}
	return f
}

func hasTaint(n *v1.Node, key string) bool {
	return slices.ContainsFunc(n.Spec.Taints, func(t v1.Taint) bool { return t.Key == key })
}

// wantFacts are the facts of a Node whose instance has this OCID.
func (l *lab) wantFacts(m machine) nodeFacts {
	l.t.Helper()
	instance, ok := l.Region.Instance(m.instance.ID)
	if !ok {
		l.t.Fatalf("the region has no instance %s", m.instance.ID)
	}
	_, zone, _ := strings.Cut(*instance.AvailabilityDomain, ":")
	want := nodeFacts{
		ProviderID: m.wantProviderID, Compartment: *instance.CompartmentId,
		Addresses: append(slices.Clone(m.wantAddresses), "Hostname "+m.name),
		Labels: map[string]string{
			v1.LabelInstanceType: *instance.Shape, v1.LabelInstanceTypeStable: *instance.Shape,
			v1.LabelTopologyZone: zone, v1.LabelFailureDomainBetaZone: zone,
			v1.LabelTopologyRegion: *instance.Region, v1.LabelFailureDomainBetaRegion: *instance.Region,
			labelFaultDomain: *instance.FaultDomain,
		},
	}
	if want.ProviderID == "" {
		want.ProviderID = m.providerID
	}
	return want
}

// wantNode waits until a Node is as its instance says.
func (l *lab) wantNode(m machine) {
	l.t.Helper()
	want := l.wantFacts(m)
	l.until(m.name+" is initialised", func() (bool, string) {
		diff := cmp.Diff(want, factsOf(l.getNode(m.name)))
		return diff == "", "(-want +got)\n" + diff + l.Events(l.ctx, "default", m.name)
	})
}

// wantUntouched checks that a Node still is as its kubelet registered it.
func (l *lab) wantUntouched(m machine) {
	l.t.Helper()
	if diff := cmp.Diff(factsOf(m.kubelet()), factsOf(l.getNode(m.name))); diff != "" {
		l.t.Errorf("%s was touched (-registered +now):\n%s", m.name, diff)
	}
}

// wantKept checks that what the CCM does not remember of a Node is still there after it wrote the Node.
func (l *lab) wantKept(m machine) {
	l.t.Helper()
	before, now := m.kubelet(), l.getNode(m.name)
	if diff := cmp.Diff(before.Status.Images, now.Status.Images); diff != "" {
		l.t.Errorf("%s: images (-registered +now):\n%s", m.name, diff)
	}
	managers := map[string]bool{}
	for _, f := range now.ManagedFields {
		managers[f.Manager] = true
	}
	if len(managers) < 2 { // who registered it, and the CCM
		l.t.Errorf("%s: its fields are managed by %v only", m.name, managers)
	}
}

// initWorld has a second VCN, a second compartment and a dual-stack subnet.
func initWorld() ocisim.World {
	w := testbed.WorldOf(0)
	w.Compartments = append(w.Compartments, ocisim.Compartment{ID: otherCompartment, Name: "other"})
	w.VCNs[0].IPv6CIDRs = []string{"2001:db8::/56"}
	w.VCNs = append(w.VCNs, ocisim.VCN{Name: "twin", CIDRs: []string{"10.0.0.0/16"}})
	w.Subnets = append(w.Subnets,
		ocisim.Subnet{Name: "dual", CIDR: "10.0.30.0/24", IPv6CIDR: "2001:db8:0:1::/64"},
		ocisim.Subnet{Name: "twin-nodes", VCN: "twin", CIDR: "10.0.10.0/24"},
	)
	return w
}

func instanceID(name string) string { return "ocid1.instance.oc1.iad.aaaaaaaa" + name }

// onNodes is an instance in the subnet of the nodes.
func onNodes(name, ip string) ocisim.Instance {
	return ocisim.Instance{ID: instanceID(name), Name: name, VNIC: ocisim.VNIC{Subnet: "nodes", PrivateIP: ip}}
}

// nodeTable is what kubelets may say, and what must come of it.
func nodeTable() []machine {
	elsewhere := func(i ocisim.Instance) ocisim.Instance {
		i.Compartment = otherCompartment
		return i
	}
	called := func(i ocisim.Instance, name string) ocisim.Instance {
		i.Name, i.Hostname = name, "-"
		return i
	}
	dual := func(name, ip, ip6 string) ocisim.Instance {
		i := onNodes(name, ip)
		i.Subnet, i.IPv6 = "dual", []string{ip6}
		return i
	}
	noRegion := onNodes("b2", "10.0.10.32")
	noRegion.ID = "ocid1.instance.oc1..aaaaaaaab2"
	public := onNodes("c1", "10.0.20.41")
	public.Subnet, public.PublicIP = "load-balancers", "203.0.113.41"
	const wrong = "ocid1.compartment.oc1..aaaaaaaawrong"
	return []machine{
		// C005: providerID yes and no, annotation none, right and wrong.
		{name: "a1", instance: onNodes("a1", "10.0.10.21"), providerID: instanceID("a1"), wantAddresses: []string{"InternalIP 10.0.10.21"}},
		{name: "a2", instance: onNodes("a2", "10.0.10.22"), wantProviderID: "oci://" + instanceID("a2"), wantAddresses: []string{"InternalIP 10.0.10.22"}},
		{name: "a3", instance: onNodes("a3", "10.0.10.23"), providerID: instanceID("a3"), annotation: wrong, wantAddresses: []string{"InternalIP 10.0.10.23"}},
		{name: "a4", instance: onNodes("a4", "10.0.10.24"), annotation: wrong, wantProviderID: "oci://" + instanceID("a4"), wantAddresses: []string{"InternalIP 10.0.10.24"}},
		{name: "a5", instance: elsewhere(onNodes("a5", "10.0.10.25")), providerID: instanceID("a5"), wantAddresses: []string{"InternalIP 10.0.10.25"}},
		{name: "a6", instance: elsewhere(onNodes("a6", "10.0.10.26")), annotation: otherCompartment, wantProviderID: "oci://" + instanceID("a6"), wantAddresses: []string{"InternalIP 10.0.10.26"}},

		// C006: spellings of the providerID.
		{name: "b1", instance: onNodes("b1", "10.0.10.31"), providerID: "oci://" + instanceID("b1"), wantAddresses: []string{"InternalIP 10.0.10.31"}},
		{name: "b2", instance: noRegion, providerID: noRegion.ID, wantAddresses: []string{"InternalIP 10.0.10.32"}},
		{name: "b3", instance: onNodes("b3", "10.0.10.33"), providerID: "oci:///" + instanceID("b3"), wantAddresses: []string{"InternalIP 10.0.10.33"}},
		{name: "b4", instance: called(onNodes("b4", "10.0.10.34"), "called otherwise"), nodeIP: "10.0.10.34", wantProviderID: "oci://" + instanceID("b4"), wantAddresses: []string{"InternalIP 10.0.10.34"}},

		// Public addresses, and C011: two families, in the order that kubelet asks for.
		{name: "c1", instance: public, providerID: instanceID("c1"), wantAddresses: []string{"InternalIP 10.0.20.41", "ExternalIP 203.0.113.41"}},
		{name: "d1", instance: dual("d1", "10.0.30.51", "2001:db8:0:1::51"), providerID: instanceID("d1"), labels: map[string]string{labelIPv6: ""},
			wantAddresses: []string{"InternalIP 10.0.30.51", "ExternalIP 2001:db8:0:1::51"}},
		{name: "d2", instance: dual("d2", "10.0.30.52", "2001:db8:0:1::52"), providerID: instanceID("d2"), nodeIP: "10.0.30.52,2001:db8:0:1::52",
			wantAddresses: []string{"InternalIP 10.0.30.52", "ExternalIP 2001:db8:0:1::52"}},
		{name: "d3", instance: dual("d3", "10.0.30.53", "2001:db8:0:1::53"), providerID: instanceID("d3"), nodeIP: "2001:db8:0:1::53,10.0.30.53",
			wantAddresses: []string{"ExternalIP 2001:db8:0:1::53", "InternalIP 10.0.30.53"}},
		{name: "2001-db8-0-1--54", instance: called(dual("d4", "10.0.30.54", "2001:db8:0:1::54"), "a display name"), nodeIP: "2001:db8:0:1::54",
			wantProviderID: "oci://" + instanceID("d4"), wantAddresses: []string{"ExternalIP 2001:db8:0:1::54", "InternalIP 10.0.30.54"}},

		// C008: the same name in two VCNs; the cluster's VCN is in the config.
		{name: "w-0", instance: onNodes("w-0", "10.0.10.61"), wantProviderID: "oci://" + instanceID("w-0"), wantAddresses: []string{"InternalIP 10.0.10.61"}},
	}
}

// twin is an instance of the same name in the other VCN.
func twin(name, ip string) ocisim.Instance {
	i := onNodes(name, ip)
	i.ID, i.Subnet = instanceID(name+"twin"), "twin-nodes"
	return i
}

// TestNodeInitialisation: C005, C006, C008, C011, with the contract's labels, annotation and addresses.
func TestNodeInitialisation(t *testing.T) {
	l := newLab(t, testbed.Options{World: initWorld(), Nodes: noFleet()})
	table := nodeTable()
	for _, m := range table {
		l.Region.AddInstance(m.instance)
		l.register(m.kubelet())
	}
	l.Region.AddInstance(twin("w-0", "10.0.10.61"))
	refused := []struct {
		machine
		reason, text string
	}{
		{machine{name: "aws", providerID: "aws:///us-east-1a/i-1"}, "ForeignNode", "aws:///us-east-1a/i-1"},
		{machine{name: "volume", providerID: "ocid1.volume.oc1.iad.aaaaaaaax"}, "InvalidProviderID", "volume, not instance"},
		{machine{name: "typo-1"}, "InstanceNotFound", "typo-1"},
		{machine{name: "2001-db8-0-1--99"}, "InstanceNotFound", "2001-db8-0-1--99"}, // looks like an address, but no VNIC has it
	}
	for _, r := range refused {
		l.register(r.kubelet())
	}
	l.run("--node-status-update-frequency=2s")
	for _, m := range table {
		t.Run(m.name, func(t *testing.T) {
			l := l.in(t)
			l.wantNode(m)
			l.wantKept(m)
		})
	}
	for _, r := range refused {
		t.Run(r.name, func(t *testing.T) {
			l := l.in(t)
			l.event("default", r.name, r.reason, r.text)
			l.wantUntouched(r.machine)
		})
	}
	l.stop()

	// Without a VCN in the config both are possible, so neither is taken.
	first, second := onNodes("w-1", "10.0.10.62"), twin("w-1", "10.0.10.62")
	ambiguous := machine{name: "w-1", instance: first}
	l.Region.AddInstance(first)
	l.Region.AddInstance(second)
	l.register(ambiguous.kubelet())
	text, _, _ := strings.Cut(testbed.UserConfig(l.Bed), "vcn:")
	l.configure(text)
	l.run()
	l.event("default", "w-1", "InstanceAmbiguous", first.ID, second.ID, "vcn")
	l.wantUntouched(ambiguous)
	for _, m := range table { // and nobody else is disturbed
		if diff := cmp.Diff(l.wantFacts(m), factsOf(l.getNode(m.name))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", m.name, diff)
		}
	}
	l.nothingWritten()
	l.onlyTheServiceAccount()
}

// nothingWritten: nodes are only looked at.
func (l *lab) nothingWritten() {
	l.t.Helper()
	for _, c := range l.Region.Calls() {
		if c.Write {
			l.t.Errorf("%s was called: %s", c.Name(), c.Path)
		}
	}
}

// TestC009UnknownNodeCostsNothing: a name that no instance has neither burns the budget nor holds up others.
func TestC009UnknownNodeCostsNothing(t *testing.T) {
	const good = 20
	world := testbed.WorldOf(200)
	fleet := testbed.DemoNodes(world, false)
	fleet.Count = good
	l := newLab(t, testbed.Options{
		World: world, Nodes: fleet,
		Region: ocisim.Options{PageSize: 50, Read: ocisim.Rate{PerSecond: 10, Burst: 10}, RetryAfter: time.Second},
	})
	typo := machine{name: "typo-1"}
	n := typo.kubelet()
	n.Status.Conditions[0].Status = v1.ConditionFalse // so that the lifecycle controller asks too
	l.register(n)
	l.run("--node-monitor-period=1s")
	l.service("a", "nlb", nil)
	l.until("the others are initialised", func() (bool, string) {
		waiting := 0
		for _, name := range l.Nodes.Names() {
			if hasTaint(l.getNode(name), cloudproviderapi.TaintExternalCloudProvider) {
				waiting++
			}
		}
		return waiting == 0, fmt.Sprintf("%d of %d wait", waiting, good)
	})
	l.served("a")
	l.event("default", "typo-1", "InstanceNotFound", "typo-1")
	l.settled()

	// One look at everything takes four pages each of instances, attachments and addresses. In the window the name may
	// be looked for as often as its growing delay (15 s, 30 s, …) allows, and no node is asked for by itself.
	const (
		window = 20 * time.Second
		budget = 3 * 12
	)
	before := l.Region.Counts()
	time.Sleep(window)
	total := 0
	for name, n := range l.Region.Counts() {
		n -= before[name]
		total += n
		if n > 0 && (name == "compute.GetInstance" || name == "virtualnetwork.GetVnic") {
			t.Errorf("%d calls of %s in %s: the nodes are initialised and ready", n, name, window)
		}
	}
	if total > budget {
		t.Errorf("%d calls in %s, want at most %d:\n%s", total, window, budget, l.CallLog(total))
	}
	t.Logf("%d calls in %s", total, window)
	l.wantUntouched(typo)
	l.onlyTheServiceAccount()
}

// TestC012MissingFields: whatever optional field an answer lacks, nothing crashes, and in the end the nodes are there.
func TestC012MissingFields(t *testing.T) {
	world := testbed.WorldOf(4)
	o := testbed.DemoNodes(world, false)
	o.ProviderID = func(i int) string { return []string{testbed.InstanceID(i), ""}[i%2] }
	l := newLab(t, testbed.Options{World: world, Nodes: o, Region: ocisim.Options{DropOptional: 0.25}}).run("--node-monitor-period=1s")
	l.service("a", "lb", nil)
	l.service("b", "nlb", nil)
	if err := l.Nodes.SetReady(false, testbed.NodeName(0)); err != nil {
		t.Fatal(err)
	}
	l.eventually("nodes initialised", l.NodesInitialized)
	l.served("a")
	l.served("b")
	if got := len(l.nodeNames()); got != 4 {
		t.Errorf("%d nodes, want 4: a missing field is no proof of absence", got)
	}
}
