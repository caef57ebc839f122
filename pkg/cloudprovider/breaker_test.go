// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package cloudprovider_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"k8s.io/component-base/metrics/legacyregistry"

	"github.com/oracle/oci-cloud-controller-manager/test/ocisim"
)

// Deletions that rest on absence alone stop when they would take more than half of the nodes, and at least three.
func TestBreaker(t *testing.T) {
	for _, test := range []struct {
		absent, present int
		deleted         bool
	}{
		{absent: 1, present: 0, deleted: true},
		{absent: 2, present: 0, deleted: true},
		{absent: 3, present: 0},
		{absent: 3, present: 2},
		{absent: 3, present: 3, deleted: true},
		{absent: 5, present: 5, deleted: true},
		{absent: 6, present: 5},
	} {
		t.Run(fmt.Sprintf("%d of %d", test.absent, test.absent+test.present), func(t *testing.T) {
			inBubble(t, ocisim.Options{}, func(t *testing.T, b *bed) {
				b.startNodes()
				for i := range test.present {
					name := fmt.Sprintf("present-%d", i)
					b.addNode(name, b.region.AddInstance(ocisim.Instance{Name: name, VNIC: ocisim.VNIC{Subnet: "nodes"}}), aged)
				}
				for i := range test.absent {
					b.addNode(fmt.Sprintf("absent-%d", i), fmt.Sprintf("ocid1.instance.oc1.iad.absent%d", i), aged, notReady)
				}
				b.addNode("foreign", "aws:///x", aged, notReady) // does not count
				b.hold(12 * time.Minute)
				for i := range test.absent {
					if gone := b.node(fmt.Sprintf("absent-%d", i)) == nil; gone != test.deleted {
						t.Errorf("absent-%d deleted: %v; want %v", i, gone, test.deleted)
					}
				}
				for i := range test.present {
					if b.node(fmt.Sprintf("present-%d", i)) == nil {
						t.Errorf("present-%d was deleted", i)
					}
				}
				paused := 1.0
				if test.deleted {
					paused = 0
				}
				if got := gauge(t, "oci_ccm_node_deletions_paused"); got != paused {
					t.Errorf("metric %v; want %v", got, paused)
				}
				for _, kind := range []string{"Node", "Lease"} {
					if e := b.event(kind, "NodeDeletionPaused"); (e == nil) != test.deleted {
						t.Errorf("event on %s: %+v", kind, e)
					} else if e != nil && (e.Type != v1.EventTypeWarning || !strings.Contains(e.Message, "delete the Nodes yourself")) {
						t.Errorf("event on %s does not say what to do: %q", kind, e.Message)
					}
				}
			})
		})
	}
}

// The breaker looks again: when there are enough other nodes, or the instances show up, it closes.
func TestBreakerCloses(t *testing.T) {
	inBubble(t, ocisim.Options{}, func(t *testing.T, b *bed) {
		b.startNodes()
		for i := range 4 {
			b.addNode(fmt.Sprintf("absent-%d", i), fmt.Sprintf("ocid1.instance.oc1.iad.absent%d", i), aged, notReady)
		}
		b.hold(12 * time.Minute)
		for i := range 4 {
			name := fmt.Sprintf("new-%d", i)
			b.addNode(name, b.region.AddInstance(ocisim.Instance{Name: name, VNIC: ocisim.VNIC{Subnet: "nodes"}}))
		}
		b.hold(time.Minute)
		nodes, err := b.client.CoreV1().Nodes().List(b.ctx, metav1.ListOptions{})
		if err != nil || len(nodes.Items) != 4 {
			t.Errorf("%d nodes, error %v; want the new ones", len(nodes.Items), err)
		}
	})
}

// What the API returns as terminated is gone, however many there are.
func TestBreakerLeavesTerminatedAlone(t *testing.T) {
	inBubble(t, ocisim.Options{}, func(t *testing.T, b *bed) {
		b.startNodes()
		for i := range 5 {
			name := fmt.Sprintf("w-%d", i)
			b.addNode(name, b.region.AddInstance(ocisim.Instance{Name: name, State: "TERMINATED"}), notReady)
		}
		b.hold(time.Minute)
		if nodes, err := b.client.CoreV1().Nodes().List(b.ctx, metav1.ListOptions{}); err != nil || len(nodes.Items) != 0 {
			t.Errorf("%d nodes, error %v", len(nodes.Items), err)
		}
	})
}

func gauge(t *testing.T, name string) float64 {
	t.Helper()
	families, err := legacyregistry.DefaultGatherer.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() == name {
			return f.GetMetric()[0].GetGauge().GetValue()
		}
	}
	t.Fatalf("no metric %s", name)
	return 0
}
