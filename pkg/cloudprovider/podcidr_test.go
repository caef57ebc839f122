// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package cloudprovider_test

import (
	"fmt"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/oracle/oci-go-sdk/v65/core"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/oracle/oci-cloud-controller-manager/pkg/podcidr"
	"github.com/oracle/oci-cloud-controller-manager/test/ocisim"
)

// startPodCIDRs starts the node controllers in a cluster of these families, whose nodes get pod CIDRs.
func (b *bed) startPodCIDRs(families ...v1.IPFamily) {
	b.t.Helper()
	b.region.AddSubnet(ocisim.Subnet{VCN: b.vcn, Name: "pods", CIDR: "10.0.64.0/18", IPv6CIDR: "2001:db8:0:1::/64"})
	service := &v1.Service{ObjectMeta: metav1.ObjectMeta{Name: "kubernetes", Namespace: "default"}, Spec: v1.ServiceSpec{IPFamilies: families}}
	if _, err := b.client.CoreV1().Services("default").Create(b.ctx, service, metav1.CreateOptions{}); err != nil {
		b.t.Fatal(err)
	}
	b.options.PodCIDRs = podcidr.New(b.oci.Network(), "cluster")
	b.startNodesOnly()
}

func (b *bed) addPodNode(name, request, state string) {
	b.t.Helper()
	id := b.region.AddInstance(ocisim.Instance{
		Name: name, State: state, VNIC: ocisim.VNIC{Subnet: "pods"}, Metadata: map[string]string{podcidr.MetadataKey: request},
	})
	b.addNode(name, id)
}

// blocks are the address blocks in the cloud with the tag of pod CIDRs.
func (b *bed) blocks() []string {
	var list []string
	for _, p := range b.region.PrivateIPs() {
		if _, ok := p.FreeformTags["pod-cidr"]; ok {
			list = append(list, fmt.Sprintf("%s/%d", *p.IpAddress, *p.CidrPrefixLength))
		}
	}
	for _, p := range b.region.IPv6s() {
		if _, ok := p.FreeformTags["pod-cidr"]; ok {
			list = append(list, netip.MustParsePrefix(fmt.Sprintf("%s/%d", *p.IpAddress, *p.CidrPrefixLength)).String())
		}
	}
	slices.Sort(list)
	return list
}

// podCIDRs are those of all nodes.
func (b *bed) podCIDRs(names ...string) []string {
	var list []string
	for _, name := range names {
		n := b.node(name)
		if len(n.Spec.PodCIDRs) > 0 && n.Spec.PodCIDR != n.Spec.PodCIDRs[0] {
			b.t.Errorf("%s: podCIDR %s, podCIDRs %v", name, n.Spec.PodCIDR, n.Spec.PodCIDRs)
		}
		list = append(list, n.Spec.PodCIDRs...)
	}
	slices.Sort(list)
	return list
}

// Nodes get blocks of their own, of both families in the cluster's order; a restart allocates nothing.
func TestPodCIDRs(t *testing.T) {
	inBubble(t, ocisim.Options{PageSize: 3}, func(t *testing.T, b *bed) {
		b.startPodCIDRs(v1.IPv6Protocol, v1.IPv4Protocol)
		var names []string
		for i := range 5 {
			names = append(names, fmt.Sprint("w-", i))
			b.addPodNode(names[i], `{"ip-count": 256, "cidr-blocks": ["10.0.64.0/18"]}`, "")
		}
		b.addNode("plain", b.region.AddInstance(ocisim.Instance{Name: "plain", VNIC: ocisim.VNIC{Subnet: "pods"}}))
		b.hold(time.Minute)
		for _, name := range names {
			cidrs := b.node(name).Spec.PodCIDRs
			if len(cidrs) != 2 || !strings.HasSuffix(cidrs[0], "/120") || !strings.HasSuffix(cidrs[1], "/24") {
				t.Errorf("%s: %v", name, cidrs)
			}
		}
		if got, want := b.podCIDRs(names...), b.blocks(); !slices.Equal(got, want) || len(got) != 10 {
			t.Errorf("nodes have %v; the cloud has %v", got, want)
		}
		if got := b.node("plain").Spec.PodCIDRs; len(got) != 0 {
			t.Errorf("a node that did not ask got %v", got)
		}
		b.hold(13 * time.Hour)
		if n := b.region.Counts()["virtualnetwork.CreatePrivateIp"]; n != 5 {
			t.Errorf("%d blocks were made for 5 nodes", n)
		}
	})
}

// A failed list is never "none" (W60), an answer that is lost costs no second block, and half a success is completed.
func TestPodCIDRsAreNotAllocatedTwice(t *testing.T) {
	for name, fault := range map[string]ocisim.Fault{
		"list fails":     {Operation: "ListPrivateIps", Status: 500, Times: 30},
		"answer lost":    {Operation: "CreatePrivateIp", Drop: ocisim.AfterApply, Times: 30},
		"IPv6 fails":     {Operation: "CreateIpv6", Status: http.StatusConflict, Code: "Conflict", Times: 3},
		"throttled":      {Operation: "CreatePrivateIp", Status: http.StatusTooManyRequests, Times: 40},
		"applied, 5xx":   {Operation: "CreateIpv6", Status: 500, Applied: true, Times: 30},
		"nothing":        {},
		"list is hidden": {Operation: "ListIpv6s", Status: 404, Times: 30},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, ocisim.Options{EventualReads: 1}, func(t *testing.T, b *bed) {
				b.startPodCIDRs(v1.IPv4Protocol, v1.IPv6Protocol)
				if fault.Operation != "" {
					b.region.Fault(fault)
				}
				for i := range 3 {
					b.addPodNode(fmt.Sprint("w-", i), `{"ip-count": 16}`, "")
				}
				b.hold(time.Hour)
				got, want := b.podCIDRs("w-0", "w-1", "w-2"), b.blocks()
				if !slices.Equal(got, want) || len(got) != 6 {
					t.Errorf("nodes have %v; the cloud has %v", got, want)
				}
			})
		})
	}
}

// An instance that does not run yet is looked at again; a request that cannot be met is an event, once.
func TestPodCIDRRequests(t *testing.T) {
	inBubble(t, ocisim.Options{}, func(t *testing.T, b *bed) {
		b.startPodCIDRs(v1.IPv4Protocol)
		b.addPodNode("starting", `{"ip-count": 16}`, "STARTING")
		b.addPodNode("nonsense", `ip-count: 16`, "")
		b.addPodNode("other-family", `{"ip-count": 16, "cidr-blocks": ["2001:db8:0:1::/64"]}`, "")
		b.hold(10 * time.Minute)
		if got := b.blocks(); len(got) != 0 {
			t.Errorf("blocks %v", got)
		}
		invalid := b.eventsOf("Node", "PodCIDRRequestInvalid")
		if len(invalid) != 2 {
			t.Errorf("%d events; want one for each of two nodes", len(invalid))
		}
		for _, i := range b.region.Instances() {
			if *i.DisplayName == "starting" {
				err := b.region.Foreign().Instance(*i.Id, func(i *core.Instance) { i.LifecycleState = core.InstanceLifecycleStateRunning })
				if err != nil {
					t.Fatal(err)
				}
			}
		}
		b.hold(2 * time.Minute)
		if got := b.podCIDRs("starting"); len(got) != 1 || !strings.HasSuffix(got[0], "/28") {
			t.Errorf("pod CIDRs %v", got)
		}
	})
}

// A missing policy and a full subnet are events that say what to do.
func TestPodCIDRTroubles(t *testing.T) {
	inBubble(t, ocisim.Options{}, func(t *testing.T, b *bed) {
		b.startPodCIDRs(v1.IPv4Protocol)
		restore := b.region.Deny(ocisim.Policy{ResourceType: "private-ips", Verb: ocisim.Use})
		b.addPodNode("w-0", `{"ip-count": 4096}`, "")
		b.hold(time.Minute)
		if e := b.event("Node", "PodCIDRFailed"); e == nil || !strings.Contains(e.Message, "use virtual-network-family") {
			t.Errorf("event %v; want one that names the policy", e)
		}
		restore()
		for _, name := range []string{"w-1", "w-2"} { // a /18 has two /20 beside the network's own addresses
			b.addPodNode(name, `{"ip-count": 4096}`, "")
		}
		b.hold(10 * time.Minute)
		if got := b.blocks(); len(got) != 2 || !slices.Equal(got, b.podCIDRs("w-0", "w-1", "w-2")) {
			t.Errorf("blocks %v; want two, and nodes that have them", got)
		}
		found := false
		for _, e := range b.eventsOf("Node", "PodCIDRFailed") {
			found = found || strings.Contains(e.Message, "smaller ip-count")
		}
		if !found {
			t.Error("no event says what to do about a full subnet")
		}
	})
}

// After a start, nodes that have no pod CIDR and want none cost lists, not a read each.
func TestPodCIDRRestartReadsLists(t *testing.T) {
	inBubble(t, ocisim.Options{PageSize: 1000}, func(t *testing.T, b *bed) {
		for i, id := range b.addInstances(50, ocisim.VNIC{}) {
			b.addNode(fmt.Sprint("w-", i), id, aged, initialized)
		}
		b.startPodCIDRs(v1.IPv4Protocol)
		b.hold(time.Minute)
		if n := b.region.Counts()["compute.GetInstance"]; n != 0 {
			t.Errorf("%d single reads of 50 instances", n)
		}
	})
}
