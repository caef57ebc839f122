// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package cloudprovider_test

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/oracle/oci-cloud-controller-manager/test/ocisim"
)

// Single reads of instances are throttled for a quarter of an hour while a few nodes are not ready. That keeps nobody else
// waiting: a new node is initialised, the node of a terminated instance goes, and one that was stopped gets its taint. A node
// of which nothing can be found out stays.
func TestThrottledReadsHoldNobodyUp(t *testing.T) {
	inBubble(t, ocisim.Options{}, func(t *testing.T, b *bed) {
		secret := b.region.AddCompartment(ocisim.Compartment{Name: "secret"})
		ids := b.addInstances(12, ocisim.VNIC{Subnet: "nodes"})
		hidden := b.region.AddInstance(ocisim.Instance{Name: "hidden", Compartment: secret, VNIC: ocisim.VNIC{Subnet: "nodes"}})
		b.startNodes()
		for i, id := range ids {
			b.addNode(fmt.Sprint("w-", i), id, aged)
		}
		b.addNode("hidden", hidden, aged)
		b.hold(time.Minute)

		b.region.Deny(ocisim.Policy{ResourceType: "instances", Operation: "ListInstances", Compartment: secret})
		throttled := b.region.Fault(ocisim.Fault{Operation: "GetInstance", Status: http.StatusTooManyRequests})
		b.ready("w-0", v1.ConditionUnknown)
		b.ready("hidden", v1.ConditionUnknown)
		b.hold(30 * time.Second)

		b.addNode("new", b.region.AddInstance(ocisim.Instance{Name: "new", VNIC: ocisim.VNIC{Subnet: "nodes"}}))
		if err := b.region.Foreign().TerminateInstance(ids[5]); err != nil {
			t.Fatal(err)
		}
		b.ready("w-5", v1.ConditionUnknown)
		b.hold(time.Minute)
		if !b.isInitialized("new") {
			t.Error("a new node is not initialised within a minute")
		}
		if b.node("w-5") != nil {
			t.Error("the node of a terminated instance is still there after a minute")
		}
		if err := b.region.Foreign().StopInstance(ids[6]); err != nil {
			t.Fatal(err)
		}
		b.ready("w-6", v1.ConditionUnknown)
		b.hold(time.Minute)
		if n := b.node("w-6"); n == nil || !isTainted(n, "node.cloudprovider.kubernetes.io/shutdown") {
			t.Error("a stopped node has no taint after a minute")
		}

		b.hold(15 * time.Minute)
		for i := range ids {
			if name := fmt.Sprint("w-", i); i != 5 && b.node(name) == nil {
				t.Errorf("%s was deleted", name)
			}
		}
		if b.node("hidden") == nil {
			t.Error("a node of which nothing is known was deleted")
		}

		// When it is over, that one is asked about again.
		throttled()
		if err := b.region.Foreign().TerminateInstance(hidden); err != nil {
			t.Fatal(err)
		}
		b.hold(3 * time.Minute)
		if b.node("hidden") != nil {
			t.Error("the node of a terminated instance is still there when reads are possible again")
		}
	})
}
