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
	"k8s.io/apimachinery/pkg/labels"

	"github.com/oracle/oci-cloud-controller-manager/pkg/cloudprovider"
	"github.com/oracle/oci-cloud-controller-manager/test/ocisim"
)

// startTagging starts the node controllers with the tagging of OpenShift's instances.
func (b *bed) startTagging(configured map[string]map[string]any) {
	b.t.Helper()
	for _, namespace := range []string{"openshift-tags", "Operations", "billing"} {
		b.region.AddTagNamespace(namespace)
	}
	b.options.InstanceTagging = &cloudprovider.InstanceTagging{
		Cloud: b.oci.Compute(), Nodes: labels.SelectorFromSet(labels.Set{"node.openshift.io/os_id": "rhel"}), Tags: cloudprovider.OpenShiftTags(configured),
	}
	b.startNodesOnly()
}

func rhel(n *v1.Node) { label(n, "node.openshift.io/os_id", "rhel") }

func (b *bed) definedTags(id string) map[string]map[string]any {
	b.t.Helper()
	i, ok := b.region.Instance(id)
	if !ok {
		b.t.Fatalf("no instance %s", id)
	}
	return i.DefinedTags
}

var resource = map[string]any{"openshift-resource": "openshift-resource-infra"}

// Tags are added key by key, soon after the start, once; others' tags stay, and so do instances that are not OpenShift's (W62, W63).
func TestInstancesAreTagged(t *testing.T) {
	inBubble(t, ocisim.Options{}, func(t *testing.T, b *bed) {
		id := b.region.AddInstance(ocisim.Instance{
			Name: "w-0", VNIC: ocisim.VNIC{Subnet: "nodes"}, Tags: ocisim.Tags{
				Freeform: map[string]string{"theirs": "stays"},
				Defined:  map[string]map[string]any{"Operations": {"CostCenter": "42"}, "billing": {"theirs": "stays"}},
			},
		})
		other := b.region.AddInstance(ocisim.Instance{Name: "w-1", VNIC: ocisim.VNIC{Subnet: "nodes"}})
		b.startTagging(map[string]map[string]any{"billing": {"ours": "x"}})
		b.addNode("w-0", id, rhel)
		b.addNode("w-1", other)
		b.hold(time.Minute)
		want := map[string]map[string]any{"Operations": {"CostCenter": "42"}, "billing": {"theirs": "stays", "ours": "x"}, "openshift-tags": resource}
		if diff := cmp.Diff(want, b.definedTags(id)); diff != "" {
			t.Errorf("tags (-want +got):\n%s", diff)
		}
		if i, _ := b.region.Instance(id); i.FreeformTags["theirs"] != "stays" {
			t.Errorf("freeform tags %v", i.FreeformTags)
		}
		if got := b.definedTags(other); len(got) != 0 {
			t.Errorf("an instance that is not OpenShift's has %v", got)
		}
		b.hold(25 * time.Hour)
		if n := b.region.Counts()["compute.UpdateInstance"]; n != 1 {
			t.Errorf("%d writes in a day", n)
		}
		if err := b.region.Foreign().Instance(id, func(i *core.Instance) { delete(i.DefinedTags, "openshift-tags") }); err != nil {
			t.Fatal(err)
		}
		b.hold(5 * time.Hour)
		if diff := cmp.Diff(want, b.definedTags(id)); diff != "" {
			t.Errorf("after somebody took a tag away (-want +got):\n%s", diff)
		}
	})
}

// No tags in the config, a write in between, a full instance, a missing policy: no crash, nothing lost, an event.
func TestTaggingTroubles(t *testing.T) {
	inBubble(t, ocisim.Options{}, func(t *testing.T, b *bed) {
		full := map[string]any{}
		for n := range 64 {
			full[fmt.Sprint("k", n)] = "v"
		}
		crowded := b.region.AddInstance(ocisim.Instance{
			Name: "w-0", VNIC: ocisim.VNIC{Subnet: "nodes"}, Tags: ocisim.Tags{Defined: map[string]map[string]any{"billing": full}},
		})
		raced := b.region.AddInstance(ocisim.Instance{Name: "w-1", VNIC: ocisim.VNIC{Subnet: "nodes"}})
		once := false
		b.region.OnCall(func(c ocisim.Call) {
			if c.Name() == "compute.GetInstance" && c.Resource == raced && !once {
				once = true
				err := b.region.Foreign().Instance(raced, func(i *core.Instance) {
					i.DefinedTags = map[string]map[string]any{"Operations": {"CostCenter": "written in between"}}
				})
				if err != nil {
					t.Error(err)
				}
			}
		})
		restore := b.region.Deny(ocisim.Policy{ResourceType: "instances", Verb: ocisim.Use})
		b.startTagging(nil)
		b.addNode("w-0", crowded, rhel)
		b.addNode("w-1", raced, rhel)
		b.hold(time.Minute)
		if e := b.event("Node", "InstanceTagLimit"); e == nil || e.InvolvedObject.Name != "w-0" {
			t.Errorf("event %v", e)
		}
		if e := b.event("Node", "InstanceTagFailed"); e == nil || !strings.Contains(e.Message, "policy is missing") {
			t.Errorf("event %v", e)
		}
		restore()
		b.hold(20 * time.Minute)
		want := map[string]map[string]any{"Operations": {"CostCenter": "written in between"}, "openshift-tags": resource}
		if diff := cmp.Diff(want, b.definedTags(raced)); diff != "" || !once {
			t.Errorf("tags (-want +got), written in between: %t\n%s", once, diff)
		}
	})
}
