// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package cloudprovider_test

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/oracle/oci-cloud-controller-manager/test/ocisim"
)

// hour is a cluster whose nodes come and go for an hour.
type hour struct {
	*bed

	random     *rand.Rand
	ids        map[string]string // by node
	terminated map[string]bool   // by node
	strikes    int
}

// TestHourOfWeather lets nodes join, fail and be terminated for an hour, once in peace and once with throttling, errors,
// lost answers, missing policies and instances that lists do not show yet.
func TestHourOfWeather(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long: make test-long runs it, without the race detector")
	}
	calm := runHour(t, ocisim.Options{PageSize: 20, Seed: 1}, false)
	stormy := runHour(t, ocisim.Options{PageSize: 20, Seed: 1, EventualReads: 2}, true)
	t.Logf("%d calls in peace, %d in bad weather", calm, stormy)
	if stormy > 2*calm {
		t.Errorf("%d calls in bad weather, %d in peace; at most twice as many are allowed", stormy, calm)
	}
}

// runHour returns the number of calls.
func runHour(t *testing.T, options ocisim.Options, weather bool) int {
	t.Helper()
	calls := 0
	inBubble(t, options, func(t *testing.T, b *bed) {
		h := &hour{bed: b, random: rand.New(rand.NewPCG(7, 7)), ids: map[string]string{}, terminated: map[string]bool{}}
		b.region.AddSubnet(ocisim.Subnet{VCN: b.vcn, Name: "private", CIDR: "10.0.16.0/20", Private: true})
		b.startNodes()
		h.join(40)
		b.hold(2 * time.Minute)
		for range 20 {
			calls += total(b.region.Counts())
			b.region.ResetCalls()
			end := func() {}
			if weather {
				end = h.weather()
			}
			h.join(2)
			h.terminate()
			h.flap()
			b.hold(90 * time.Second)
			end()
			b.hold(90 * time.Second)
		}
		b.hold(20 * time.Minute)
		calls += total(b.region.Counts())
		h.check(t)
		if weather && h.strikes < 20 {
			t.Errorf("only %d calls were struck", h.strikes)
		}
	})
	return calls
}

func total(counts map[string]int) int {
	n := 0
	for _, c := range counts {
		n += c
	}
	return n
}

// join adds nodes: every third has a public address, every third IPv6, every fifth no providerID.
func (h *hour) join(n int) {
	for range n {
		i := len(h.ids)
		name := fmt.Sprint("w-", i)
		vnic := ocisim.VNIC{Subnet: "private"}
		switch i % 3 {
		case 1:
			vnic = ocisim.VNIC{Subnet: "nodes", PublicIP: ocisim.Auto}
		case 2:
			vnic = ocisim.VNIC{Subnet: "nodes", IPv6: []string{ocisim.Auto}}
		}
		h.ids[name] = h.region.AddInstance(ocisim.Instance{Name: name, VNIC: vnic})
		providerID := h.ids[name]
		if i%5 == 4 {
			providerID = ""
		}
		h.addNode(name, providerID, func(n *v1.Node) {
			if i%3 == 2 {
				label(n, "oci.oraclecloud.com/ip-family-ipv6", "")
			}
		})
	}
}

// living are the nodes whose instances were not terminated, in order.
func (h *hour) living() []string {
	var names []string
	for name := range h.ids {
		if !h.terminated[name] {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// terminate ends one instance for real; its kubelet falls silent.
func (h *hour) terminate() {
	living := h.living()
	name := living[h.random.IntN(len(living))]
	if !h.isInitialized(name) {
		return
	}
	if err := h.region.Foreign().TerminateInstance(h.ids[name]); err != nil {
		h.t.Fatal(err)
	}
	h.terminated[name] = true
	h.ready(name, v1.ConditionUnknown)
}

// flap lets some kubelets fall silent and others come back.
func (h *hour) flap() {
	for _, name := range h.living() {
		if h.node(name) == nil {
			continue
		}
		switch h.random.IntN(10) {
		case 0:
			h.ready(name, v1.ConditionUnknown)
		case 1, 2, 3:
			h.ready(name, v1.ConditionTrue)
		}
	}
}

// weather begins something bad, and returns what ends it.
func (h *hour) weather() (end func()) {
	fault := ocisim.Fault{Operation: "*", Chance: 0.7, Match: func(ocisim.Call) bool { h.strikes++; return true }}
	switch h.random.IntN(6) {
	case 0:
		fault.Status = http.StatusTooManyRequests
	case 1:
		fault.Status = http.StatusInternalServerError
	case 2:
		fault.Status = http.StatusServiceUnavailable
	case 3:
		fault.Drop = ocisim.AfterApply
	case 4:
		return h.region.Deny(ocisim.Policy{ResourceType: []string{"instances", "vnics", "private-ips"}[h.random.IntN(3)]})
	default:
		fault.Operation, fault.Delay, fault.Chance = "*", 20*time.Second, 0.3
	}
	return h.region.Fault(fault)
}

// check looks at the cluster after the hour: exactly the nodes of terminated instances are gone, and all others are
// initialised, with the addresses that they have in the cloud.
func (h *hour) check(t *testing.T) {
	t.Helper()
	for name, id := range h.ids {
		n := h.node(name)
		if (n == nil) != h.terminated[name] {
			t.Errorf("%s: there is a Node: %t; terminated: %t", name, n != nil, h.terminated[name])
			continue
		}
		if n == nil {
			continue
		}
		if !h.isInitialized(name) {
			t.Errorf("%s is not initialised: %v", name, n.Spec.Taints)
		}
		vnic := h.region.InstanceVNICs(id)[0]
		want := []v1.NodeAddress{{Type: v1.NodeInternalIP, Address: *vnic.PrivateIp}}
		if vnic.PublicIp != nil {
			want = append(want, v1.NodeAddress{Type: v1.NodeExternalIP, Address: *vnic.PublicIp})
		}
		for _, address := range vnic.Ipv6Addresses {
			want = append(want, v1.NodeAddress{Type: v1.NodeExternalIP, Address: address})
		}
		want = append(want, v1.NodeAddress{Type: v1.NodeHostName, Address: name})
		if !slices.Equal(want, n.Status.Addresses) {
			t.Errorf("%s has %v; want %v", name, n.Status.Addresses, want)
		}
	}
	if len(h.terminated) < 10 {
		t.Errorf("only %d instances were terminated", len(h.terminated))
	}
}
