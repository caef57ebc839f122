// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package cloudprovider_test

import (
	"fmt"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/oracle/oci-cloud-controller-manager/test/ocisim"
)

// What nobody asks for is not remembered of a Node and a Service. That it stays in the API is a system test's affair.
func TestInformersRememberLittle(t *testing.T) {
	inBubble(t, ocisim.Options{}, func(t *testing.T, b *bed) {
		managed := []metav1.ManagedFieldsEntry{{Manager: "kubelet", Operation: metav1.ManagedFieldsOperationUpdate}}
		b.withBalancers(b.oci)
		b.startServices()
		b.addNode("w-1", "kind://foreign", func(n *v1.Node) {
			n.ManagedFields = managed
			n.Status.Images = []v1.ContainerImage{{Names: []string{"registry.example/pause:3.10"}}}
			n.Status.VolumesInUse = []v1.UniqueVolumeName{"csi/volume"}
			n.Status.VolumesAttached = []v1.AttachedVolume{{Name: "csi/volume"}}
			label(n, "theirs", "stays")
		})
		service := &v1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web", ManagedFields: managed, Labels: map[string]string{"theirs": "stays"}}}
		if _, err := b.client.CoreV1().Services("default").Create(b.ctx, service, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		b.hold(time.Second)
		node, err := b.factory.Core().V1().Nodes().Lister().Get("w-1")
		if err != nil {
			t.Fatal(err)
		}
		s := node.Status
		if len(node.ManagedFields)+len(s.Images)+len(s.VolumesInUse)+len(s.VolumesAttached) > 0 {
			t.Errorf("remembered: managed fields %v, images %v, volumes %v %v", node.ManagedFields, s.Images, s.VolumesInUse, s.VolumesAttached)
		}
		remembered, err := b.factory.Core().V1().Services().Lister().Services("default").Get("web")
		if err != nil {
			t.Fatal(err)
		}
		if len(remembered.ManagedFields) > 0 {
			t.Errorf("remembered: managed fields %v", remembered.ManagedFields)
		}
		if node.Labels["theirs"] != "stays" || len(s.Conditions) == 0 || remembered.Labels["theirs"] != "stays" {
			t.Errorf("something else is missing: %+v, %+v", node, remembered)
		}
		if stored := b.node("w-1"); len(stored.Status.Images) != 1 || len(stored.ManagedFields) != 1 {
			t.Errorf("the API server's own Node has lost something: %+v", stored)
		}
	})
}

// Each pass sees addresses that were read for it, and every second one reads the instances, whatever the period is.
func TestPassesSeeNewLists(t *testing.T) {
	for _, period := range []time.Duration{20 * time.Second, 5 * time.Minute, time.Hour} {
		t.Run(period.String(), func(t *testing.T) {
			inBubble(t, ocisim.Options{PageSize: 1000}, func(t *testing.T, b *bed) {
				b.options.StatusPeriod = period
				ids := b.addInstances(10, ocisim.VNIC{})
				for i, id := range ids {
					b.addNode(fmt.Sprint("w-", i), id, initialized)
				}
				b.startNodesOnly()
				b.hold(period / 2)
				b.region.ResetCalls()
				b.hold(4 * period)
				got := b.region.Counts()
				instances := 2
				if period > 10*time.Minute { // what rarely changes is at most so old
					instances = 4
				}
				if got["virtualnetwork.ListPrivateIps"] != 4 || got["compute.ListVnicAttachments"] != 4 || got["compute.ListInstances"] != instances {
					t.Errorf("calls of four passes: %v; want %d lists of instances", got, instances)
				}
			})
		})
	}
}
