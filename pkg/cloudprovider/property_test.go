// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package cloudprovider_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/oracle/oci-go-sdk/v65/core"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	framework "k8s.io/cloud-provider"
	"pgregory.net/rapid"

	"github.com/oracle/oci-cloud-controller-manager/test/ocisim"
)

// machine is an instance of a random world.
type machine struct {
	display, host string // host "-" is none
	ip            string
	ours          bool // in the VCN of the cluster
	elsewhere     bool // in another compartment
	state         string
	public, ipv6  bool
	second        bool // has a second VNIC, in the other VCN
	lacks         []string

	id string
}

// called is the name that its operating system has: the host name label of its VNIC, without one its display name.
func (m machine) called() string {
	if m.host != "-" {
		return strings.ToLower(m.host)
	}
	return strings.ToLower(m.display)
}

func (m machine) alive() bool { return m.state != "TERMINATED" && m.state != "TERMINATING" }

// member is a Node of a random world.
type member struct {
	name, hostname string
	own            int    // its machine, -1 if it has none
	spelling       string // of the provider ID: %s is its machine
	address        bool   // kubelet was told the address of its machine
	ipv6           bool   // IPv6 addresses are asked for
	hint           string // the compartment in its annotation: "", "home", "elsewhere", "wrong"
	initialized    bool
}

type randomWorld struct {
	machines []machine
	members  []member
	page     int
	inCrowd  bool // the nodes are known, so that many of them are answered from lists
}

var worldNames = []string{"node-1", "node-10", "node-1-0", "NODE-1", "w"}

func drawWorld(t *rapid.T) randomWorld {
	w := randomWorld{page: rapid.IntRange(1, 5).Draw(t, "page size"), inCrowd: rapid.Bool().Draw(t, "in crowd")}
	labels := map[string]bool{}
	for n := range rapid.IntRange(1, 7).Draw(t, "machines") {
		m := machine{
			display:   rapid.SampledFrom(worldNames).Draw(t, "display name"),
			host:      rapid.SampledFrom([]string{"-", "-", "node-1", "node-10", "Node-1-0", "w"}).Draw(t, "host name"),
			ours:      rapid.IntRange(0, 3).Draw(t, "VCN") > 0,
			elsewhere: rapid.IntRange(0, 4).Draw(t, "compartment") == 0,
			state:     rapid.SampledFrom([]string{"RUNNING", "RUNNING", "STOPPED", "TERMINATING", "TERMINATED"}).Draw(t, "state"),
			public:    rapid.Bool().Draw(t, "public"),
			ipv6:      rapid.Bool().Draw(t, "IPv6"),
			second:    rapid.IntRange(0, 4).Draw(t, "second VNIC") == 0,
		}
		m.ip = fmt.Sprintf("10.0.1.%d", n+1)
		if !m.ours { // it may have the address of another machine in the cluster's VCN
			m.ip, m.ipv6, m.second = fmt.Sprintf("10.0.1.%d", n), false, false
		}
		label := fmt.Sprint(m.ours, strings.ToLower(m.host))
		if labels[label] {
			m.host = "-" // a subnet has each label once
		}
		labels[label] = true
		for _, field := range []string{"display name", "fault domain", "region", "tags", "metadata", "shape"} {
			if rapid.IntRange(0, 7).Draw(t, field) == 0 && (field != "display name" || m.host != "-") {
				m.lacks = append(m.lacks, field)
			}
		}
		w.machines = append(w.machines, m)
	}
	for range rapid.IntRange(1, 7).Draw(t, "nodes") {
		n := drawMember(t, w.machines)
		if !slices.ContainsFunc(w.members, func(o member) bool { return o.name == n.name }) {
			w.members = append(w.members, n)
		}
	}
	return w
}

func drawMember(t *rapid.T, machines []machine) member {
	n := member{
		own:         rapid.IntRange(-1, len(machines)-1).Draw(t, "machine"),
		spelling:    rapid.SampledFrom([]string{"", "", "", "%s", "oci://%s", "oci:///%s", "aws:///i-1", "ocid1.volume.oc1.iad.x"}).Draw(t, "provider ID"),
		ipv6:        rapid.Bool().Draw(t, "wants IPv6"),
		hint:        rapid.SampledFrom([]string{"", "", "home", "elsewhere", "wrong"}).Draw(t, "hint"),
		initialized: rapid.IntRange(0, 3).Draw(t, "initialized") == 0,
	}
	if n.own >= 0 && n.spelling == "" && !n.findable(machines[n.own]) {
		n.own = -1 // a node of this cluster is in its VCN, and nothing runs on a terminated instance that could register
	}
	if n.own < 0 {
		n.name = rapid.SampledFrom([]string{"node", "node-100", "ghost"}).Draw(t, "name") // of no machine, though prefixes
		n.hostname = n.name
		return n
	}
	m := machines[n.own]
	n.address = rapid.IntRange(0, 2).Draw(t, "address") == 0
	n.name, n.hostname = m.called(), m.called()
	if rapid.IntRange(0, 4).Draw(t, "renamed") == 0 {
		n.name = "k8s-" + m.called() // the label of the host name says what it is called
	}
	return n
}

// findable says whether a machine is where it is looked for: not terminated; in the VCN of the cluster; in the compartment of
// the cluster, or the hinted one.
func (n member) findable(m machine) bool {
	return m.alive() && m.ours && (!m.elsewhere || n.hint == "elsewhere")
}

// candidates are the machines that anything of a node matches. This is the contract in words: equal names, not prefixes, without
// regard to case, and equal addresses.
func (w randomWorld) candidates(n member) []int {
	var found []int
	for i, m := range w.machines {
		if !n.findable(m) {
			continue
		}
		matches := n.address && m.ip == w.machines[n.own].ip
		for _, name := range []string{n.name, n.hostname} {
			matches = matches || strings.EqualFold(name, m.host) || strings.EqualFold(name, m.display) && !slices.Contains(m.lacks, "display name")
		}
		if matches {
			found = append(found, i)
		}
	}
	return found
}

// verdict is what may become of a node: its own instance, or one of these events, or either.
type verdict struct {
	own    bool
	events []string
}

func (w randomWorld) verdictOn(n member) verdict {
	switch {
	case strings.HasPrefix(n.spelling, "aws:"):
		return verdict{events: []string{"ForeignNode"}}
	case strings.HasPrefix(n.spelling, "ocid1.volume"):
		return verdict{events: []string{"InvalidProviderID"}}
	case n.own < 0 && n.spelling != "":
		return verdict{events: []string{"InstanceUnreadable"}}
	case n.own < 0:
		return verdict{events: []string{"InstanceNotFound", "InstanceUnreadable"}} // the second for a hint that cannot be listed
	}
	m := w.machines[n.own]
	switch {
	case m.state == "TERMINATED" && n.initialized:
		return verdict{events: []string{""}} // it keeps what it has, and is deleted as soon as it is not ready
	case m.state == "TERMINATED", slices.Contains(m.lacks, "shape") && !n.initialized && (n.spelling != "" || len(w.candidates(n)) == 1):
		return verdict{events: []string{"CloudRequestFailed"}} // the framework would never set the label of the shape again
	case n.spelling != "", len(w.candidates(n)) == 1:
		return verdict{own: true}
	case slices.Contains(m.lacks, "shape") && !n.initialized:
		return verdict{events: []string{"InstanceAmbiguous", "CloudRequestFailed"}}
	}
	return verdict{own: true, events: []string{"InstanceAmbiguous"}}
}

// judge says what is wrong with an answer about a node; "" if nothing is. events are the texts of its events by reason.
func (w randomWorld) judge(n member, metadata *framework.InstanceMetadata, err error, events map[string]string) string {
	want := w.verdictOn(n)
	if err == nil && metadata != nil && metadata.ProviderID != "" {
		if !want.own {
			return fmt.Sprintf("got %+v; want an event %q", metadata, want.events)
		}
		return w.compare(n, metadata)
	}
	for _, reason := range want.events {
		text, told := events[reason]
		if !told && reason != "" {
			continue
		}
		if reason == "InstanceAmbiguous" && !strings.Contains(text, w.machines[n.own].id) {
			return fmt.Sprintf("the event %q does not name its instance", text)
		}
		return ""
	}
	return fmt.Sprintf("got %+v, error %v, events %v; want %+v", metadata, err, events, want)
}

// compare compares an answer with the machine of a node.
func (w randomWorld) compare(n member, got *framework.InstanceMetadata) string {
	m := w.machines[n.own]
	want := framework.InstanceMetadata{
		ProviderID: "oci://" + m.id, InstanceType: "VM.Standard.E5.Flex", Zone: "US-ASHBURN-AD-2", Region: "iad",
		NodeAddresses: []v1.NodeAddress{{Type: v1.NodeInternalIP, Address: m.ip}},
	}
	if n.spelling != "" {
		want.ProviderID = strings.ReplaceAll(n.spelling, "%s", m.id)
	}
	if slices.Contains(m.lacks, "shape") {
		want.InstanceType = ""
	}
	if !slices.Contains(m.lacks, "fault domain") {
		want.AdditionalLabels = map[string]string{faultDomain: "FAULT-DOMAIN-2"}
	}
	if m.public {
		want.NodeAddresses = append(want.NodeAddresses, v1.NodeAddress{Type: v1.NodeExternalIP, Address: m.publicIP()})
	}
	if m.ipv6 && n.ipv6 {
		want.NodeAddresses = append(want.NodeAddresses, v1.NodeAddress{Type: v1.NodeExternalIP, Address: m.ipv6Address()})
	}
	return cmp.Diff(want, *got, cmpopts.EquateEmpty())
}

func (m machine) number() string      { return m.ip[strings.LastIndexByte(m.ip, '.')+1:] }
func (m machine) ipv6Address() string { return "2001:db8::1:" + m.number() }

// publicIP differs from those of the other VCN.
func (m machine) publicIP() string {
	if m.ours {
		return "203.0.113." + m.number()
	}
	return "198.51.100." + m.number()
}

// build makes the machines in the region.
func (w randomWorld) build(b *bed) {
	b.t.Helper()
	elsewhere := b.region.AddCompartment(ocisim.Compartment{Name: "elsewhere"})
	other := b.region.AddVCN(ocisim.VCN{Name: "vcn2"})
	b.region.AddSubnet(ocisim.Subnet{VCN: other, Name: "other", CIDR: "10.0.0.0/20"})
	for i := range w.machines {
		m := &w.machines[i]
		seed := ocisim.Instance{
			Name: m.display, FaultDomain: "FAULT-DOMAIN-2", AvailabilityDomain: "Uocm:US-ASHBURN-AD-2",
			VNIC: ocisim.VNIC{Subnet: "other", Hostname: m.host, PrivateIP: m.ip},
		}
		if m.elsewhere {
			seed.Compartment = elsewhere
		}
		if m.ours {
			seed.VNIC.Subnet = "nodes"
		}
		if m.public {
			seed.VNIC.PublicIP = m.publicIP()
		}
		if m.ipv6 {
			seed.VNIC.IPv6 = []string{m.ipv6Address()}
		}
		if m.second {
			seed.VNICs = []ocisim.VNIC{{Subnet: "other", Hostname: "-"}}
		}
		if m.state != "TERMINATED" {
			seed.State = m.state
		}
		m.id = b.region.AddInstance(seed)
		m.strip(b)
		if m.state == "TERMINATED" {
			if err := b.region.Foreign().TerminateInstance(m.id); err != nil {
				b.t.Fatal(err)
			}
		}
	}
	b.hold(10 * time.Minute) // terminated ones end
}

// strip takes away the optional fields that the API leaves out.
func (m machine) strip(b *bed) {
	b.retag(m.id, func(i *core.Instance) {
		for _, field := range m.lacks {
			switch field {
			case "display name":
				i.DisplayName = nil
			case "fault domain":
				i.FaultDomain = nil
			case "region":
				i.Region = nil
			case "tags":
				i.FreeformTags, i.DefinedTags = nil, nil
			case "metadata":
				i.Metadata = nil
			case "shape":
				i.Shape = nil
			}
		}
	})
}

// join adds the Node of a member.
func (w randomWorld) join(b *bed, n member) {
	b.t.Helper()
	id := "ocid1.instance.oc1.iad.absent"
	if n.own >= 0 {
		id = w.machines[n.own].id
	}
	b.addNode(n.name, strings.ReplaceAll(n.spelling, "%s", id), func(node *v1.Node) {
		label(node, v1.LabelHostname, n.hostname)
		if n.initialized {
			initialized(node)
		}
		if n.ipv6 {
			label(node, "oci.oraclecloud.com/ip-family-ipv6", "true")
		}
		if n.address {
			annotate(node, "alpha.kubernetes.io/provided-node-ip", w.machines[n.own].ip)
		}
		switch n.hint {
		case "home":
			annotate(node, compartment, b.compartment)
		case "elsewhere":
			annotate(node, compartment, b.compartmentNamed("elsewhere"))
		case "wrong":
			annotate(node, compartment, "ocid1.compartment.oc1..wrong")
		}
	})
}

func (b *bed) compartmentNamed(name string) string {
	b.t.Helper()
	for _, c := range b.region.Compartments() {
		if *c.Name == name {
			return *c.Id
		}
	}
	b.t.Fatalf("no compartment %s", name)
	return ""
}

// For random nodes, instances and VNICs, each node gets exactly its own instance, with all that belongs to it, or an event that
// says why not. It gets its own where nothing else can be meant. Single reads and lists say the same.
func TestEachNodeGetsItsOwnInstance(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		w := drawWorld(rt)
		var problems []string
		inBubble(t, ocisim.Options{PageSize: w.page}, func(_ *testing.T, b *bed) {
			w.build(b)
			b.initialize()
			for _, n := range w.members {
				w.join(b, n)
			}
			if w.inCrowd {
				b.run()
			}
			instances, _ := b.provider.InstancesV2()
			for _, n := range w.members {
				metadata, err := instances.InstanceMetadata(b.ctx, b.node(n.name))
				if problem := w.judge(n, metadata, err, b.textsOf(n.name)); problem != "" {
					problems = append(problems, fmt.Sprintf("%+v: %s", n, problem))
				}
			}
		})
		if len(problems) > 0 {
			rt.Fatalf("machines:\n%+v\n%s", w.machines, strings.Join(problems, "\n"))
		}
	})
}

// textsOf are the texts of the events about a node, by reason.
func (b *bed) textsOf(node string) map[string]string {
	b.t.Helper()
	synctest.Wait()
	list, err := b.client.CoreV1().Events("").List(b.ctx, metav1.ListOptions{})
	if err != nil {
		b.t.Fatal(err)
	}
	texts := map[string]string{}
	for _, e := range list.Items {
		if e.InvolvedObject.Kind == "Node" && e.InvolvedObject.Name == node {
			texts[e.Reason] = e.Message
		}
	}
	return texts
}
