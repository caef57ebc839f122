// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package cloudprovider_test

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/oracle/oci-go-sdk/v65/core"
	v1 "k8s.io/api/core/v1"

	"github.com/oracle/oci-cloud-controller-manager/pkg/cloudprovider"
	"github.com/oracle/oci-cloud-controller-manager/pkg/inventory"
	"github.com/oracle/oci-cloud-controller-manager/pkg/oci"
	"github.com/oracle/oci-cloud-controller-manager/pkg/taglabel"
	"github.com/oracle/oci-cloud-controller-manager/test/ocisim"
)

const (
	costLabel = "oci.oraclecloud.com/Operations.CostCenter"
	poolLabel = "oci.oraclecloud.com/pool"
	tagRecord = "oci.oraclecloud.com/tag-labels"

	// maxTagDelay is how late a label may be, as docs/nodes.md says.
	maxTagDelay = 15 * time.Minute
)

var costAndPool = []taglabel.Tag{{Namespace: "Operations", Key: "CostCenter"}, {Key: "pool"}}

// withTagLabels makes labels of tags, with an inventory that keeps only those, as the command does.
func (b *bed) withTagLabels(tags []taglabel.Tag) {
	b.t.Helper()
	b.options.TagLabels = tags
	b.options.Inventory = inventory.New(inventory.Config{
		CompartmentID: b.compartment, VCNID: b.vcn, Trim: cloudprovider.TrimInstance(tags),
	}, b.oci.Compute(), b.oci.Network())
}

// tagged are the tags of an instance of these tests.
func tagged(cost any, pool string) ocisim.Tags {
	return ocisim.Tags{
		Freeform: map[string]string{"pool": pool, "secret": "stays in the cloud"},
		Defined:  map[string]map[string]any{"Operations": {"CostCenter": cost, "Other": "stays in the cloud"}},
	}
}

// retag changes an instance as a person does.
func (b *bed) retag(id string, change func(*core.Instance)) {
	b.t.Helper()
	if err := b.region.Foreign().Instance(id, change); err != nil {
		b.t.Fatal(err)
	}
}

// cloudLabels are the labels of a node under our prefix.
func (b *bed) cloudLabels(name string) map[string]string {
	b.t.Helper()
	labels := maps.Clone(b.node(name).Labels)
	maps.DeleteFunc(labels, func(key, _ string) bool { return !strings.HasPrefix(key, taglabel.Prefix) || key == faultDomain })
	return labels
}

func (b *bed) wantLabels(name, when string, want map[string]string) {
	b.t.Helper()
	if diff := cmp.Diff(want, b.cloudLabels(name)); diff != "" {
		b.t.Errorf("%s, %s (-want +got):\n%s", name, when, diff)
	}
}

// metadataWrites are the writes to nodes that are not of addresses, since the last call.
func (b *bed) metadataWrites() []string {
	writes := slices.DeleteFunc(b.writes(), isStatus)
	b.client.ClearActions()
	return writes
}

// A node gets labels of the tags that are configured, and of no others, together with the other labels; they follow the
// tags, and disappear with them. What does not change causes no write.
func TestTagsBecomeLabels(t *testing.T) {
	for name, neighbours := range map[string]int{"single reads": 0, "lists": 5} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, ocisim.Options{}, func(t *testing.T, b *bed) {
				b.withTagLabels(costAndPool)
				id := b.region.AddInstance(ocisim.Instance{Name: "w-1", VNIC: ocisim.VNIC{Subnet: "nodes"}, Tags: tagged(float64(4711), "blue & green")})
				for i := range neighbours {
					name := fmt.Sprint("n-", i)
					b.addNode(name, b.region.AddInstance(ocisim.Instance{Name: name, VNIC: ocisim.VNIC{Subnet: "nodes"}}), initialized)
				}
				b.startNodesOnly()
				b.hold(time.Minute)
				b.metadataWrites()
				b.addNode("w-1", id, initialized, func(n *v1.Node) { label(n, "oci.oraclecloud.com/theirs", "stays") })
				b.hold(time.Second)
				theirs := map[string]string{"oci.oraclecloud.com/theirs": "stays"}
				with := func(m map[string]string) map[string]string { maps.Copy(m, theirs); return m }
				b.wantLabels("w-1", "at first", with(map[string]string{costLabel: "4711", poolLabel: "blue___green"}))
				if diff := cmp.Diff([]string{"create nodes", "patch nodes"}, b.metadataWrites()); diff != "" {
					t.Errorf("writes (-want +got):\n%s", diff)
				}

				b.hold(2 * time.Hour)
				if w := b.metadataWrites(); len(w) > 0 {
					t.Errorf("writes without a change: %v", w)
				}

				b.retag(id, func(i *core.Instance) { i.FreeformTags["pool"] = "green" })
				b.hold(maxTagDelay)
				b.wantLabels("w-1", "after a change", with(map[string]string{costLabel: "4711", poolLabel: "green"}))

				b.retag(id, func(i *core.Instance) { i.FreeformTags = map[string]string{} })
				b.hold(maxTagDelay)
				b.wantLabels("w-1", "after the freeform tags are gone", with(map[string]string{costLabel: "4711"}))

				b.retag(id, func(i *core.Instance) { delete(i.DefinedTags, "Operations") })
				b.hold(maxTagDelay)
				b.wantLabels("w-1", "after all tags are gone", theirs)
				if _, there := b.node("w-1").Annotations[tagRecord]; there {
					t.Error("a record of nothing")
				}
				if diff := cmp.Diff([]string{"patch nodes", "patch nodes", "patch nodes"}, b.metadataWrites()); diff != "" {
					t.Errorf("writes (-want +got):\n%s", diff)
				}
				if b.node("w-1").Labels[faultDomain] == "" {
					t.Error("no fault domain")
				}
			})
		})
	}
}

// A node that the framework initialises has the labels a moment later.
func TestTagLabelsOfNewNode(t *testing.T) {
	inBubble(t, ocisim.Options{}, func(t *testing.T, b *bed) {
		b.withTagLabels(costAndPool)
		b.region.AddInstance(ocisim.Instance{Name: "w-1", VNIC: ocisim.VNIC{Subnet: "nodes"}, Tags: tagged("1", "blue")})
		b.startNodes()
		b.addNode("w-1", "")
		b.hold(3 * time.Second)
		if !b.isInitialized("w-1") {
			t.Fatal("not initialised")
		}
		b.wantLabels("w-1", "when it is initialised", map[string]string{costLabel: "1", poolLabel: "blue"})
	})
}

// Labels of tags cost one read of the instances in ten minutes, which the framework's passes need as well.
func TestTagLabelsCostLittle(t *testing.T) {
	for _, test := range []struct {
		nodes   int
		call    string
		allowed int // in two hours
	}{{2, "compute.GetInstance", 2 * 12}, {30, "compute.ListInstances", 12}} {
		inBubble(t, ocisim.Options{PageSize: 1000}, func(t *testing.T, b *bed) {
			b.withTagLabels(costAndPool)
			for i := range test.nodes {
				name := fmt.Sprint("w-", i)
				b.addNode(name, b.region.AddInstance(ocisim.Instance{Name: name, VNIC: ocisim.VNIC{Subnet: "nodes"}, Tags: tagged("1", "blue")}), initialized)
			}
			b.startNodesOnly()
			b.hold(7 * time.Minute)
			b.region.ResetCalls()
			b.hold(2 * time.Hour)
			counts := b.region.Counts()
			if n := counts["compute.GetInstance"] + counts["compute.ListInstances"]; n > test.allowed || n != counts[test.call] {
				t.Errorf("%d nodes: %v; want at most %d of %s", test.nodes, counts, test.allowed, test.call)
			}
		})
	}
}

// Somebody changes or removes one of our labels: it is set right at once, unless the tag says otherwise.
func TestTagLabelsAreSetBack(t *testing.T) {
	inBubble(t, ocisim.Options{}, func(t *testing.T, b *bed) {
		b.withTagLabels(costAndPool)
		id := b.region.AddInstance(ocisim.Instance{Name: "w-1", VNIC: ocisim.VNIC{Subnet: "nodes"}, Tags: tagged("1", "blue")})
		b.startNodesOnly()
		b.addNode("w-1", id)
		b.hold(time.Second)
		want := map[string]string{costLabel: "1", poolLabel: "blue"}
		b.update("w-1", func(n *v1.Node) { n.Labels[costLabel] = "2" })
		b.hold(time.Second)
		b.wantLabels("w-1", "after a change by somebody", want)
		b.update("w-1", func(n *v1.Node) { delete(n.Labels, poolLabel) })
		b.hold(time.Second)
		b.wantLabels("w-1", "after a removal by somebody", want)
		if e := b.eventsOf("Node", "NodeLabelTaken"); len(e) > 0 {
			t.Errorf("event %s", e[0].Message)
		}
	})
}

// A label that somebody else has set is left alone, with one event, until it is taken away; and so is one that says the same.
func TestTagLabelTaken(t *testing.T) {
	inBubble(t, ocisim.Options{}, func(t *testing.T, b *bed) {
		b.withTagLabels(costAndPool)
		id := b.region.AddInstance(ocisim.Instance{Name: "w-1", VNIC: ocisim.VNIC{Subnet: "nodes"}, Tags: tagged("1", "blue")})
		b.startNodesOnly()
		b.addNode("w-1", id, func(n *v1.Node) { label(n, poolLabel, "red"); label(n, costLabel, "1") })
		b.hold(time.Hour)
		b.wantLabels("w-1", "while they are another's", map[string]string{costLabel: "1", poolLabel: "red"})
		events := b.eventsOf("Node", "NodeLabelTaken")
		if len(events) != 1 || !strings.Contains(events[0].Message, "kubectl label node w-1 "+poolLabel+"-") {
			t.Fatalf("events %+v", events)
		}

		// They stay when the tag goes, too.
		b.retag(id, func(i *core.Instance) { i.DefinedTags = map[string]map[string]any{} })
		b.hold(maxTagDelay)
		b.wantLabels("w-1", "after the tag is gone", map[string]string{costLabel: "1", poolLabel: "red"})

		b.update("w-1", func(n *v1.Node) { delete(n.Labels, poolLabel) })
		b.hold(time.Second)
		b.wantLabels("w-1", "when it is free", map[string]string{costLabel: "1", poolLabel: "blue"})
	})
}

// When keys leave the config, the labels that we have made go with the next start; those of others, and those that others
// have changed meanwhile, stay.
func TestTagLabelsLeaveTheConfig(t *testing.T) {
	for name, left := range map[string][]taglabel.Tag{"one stays": costAndPool[:1], "none stays": nil} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, ocisim.Options{}, func(t *testing.T, b *bed) {
				b.withTagLabels(left)
				const record = `{"oci.oraclecloud.com/Operations.CostCenter":"1","oci.oraclecloud.com/pool":"blue","oci.oraclecloud.com/zoo":"x"}`
				id := b.region.AddInstance(ocisim.Instance{Name: "w-1", VNIC: ocisim.VNIC{Subnet: "nodes"}, Tags: tagged("1", "blue")})
				b.addNode("w-1", id, initialized, func(n *v1.Node) {
					for key, value := range map[string]string{
						costLabel: "1", poolLabel: "blue", "oci.oraclecloud.com/zoo": "changed by somebody", "oci.oraclecloud.com/theirs": "stays",
					} {
						label(n, key, value)
					}
					annotate(n, tagRecord, record)
				})
				b.startNodesOnly()
				b.hold(time.Minute)
				want := map[string]string{"oci.oraclecloud.com/zoo": "changed by somebody", "oci.oraclecloud.com/theirs": "stays"}
				wantRecord := ""
				if left != nil {
					want[costLabel], wantRecord = "1", `{"oci.oraclecloud.com/Operations.CostCenter":"1"}`
				}
				b.wantLabels("w-1", "after the start", want)
				if got := b.node("w-1").Annotations[tagRecord]; got != wantRecord {
					t.Errorf("record %s; want %s", got, wantRecord)
				}
				b.metadataWrites()
				b.hold(time.Hour)
				if w := b.metadataWrites(); len(w) > 0 {
					t.Errorf("writes without a change: %v", w)
				}
			})
		})
	}
}

// A read that fails, or that leaves the tags out, takes no label away.
func TestTagLabelsSurviveBadReads(t *testing.T) {
	for name, spoil := range map[string]func(b *bed, id string){
		"no answer": func(b *bed, _ string) { b.region.Fault(ocisim.Fault{Status: http.StatusServiceUnavailable}) },
		"no policy": func(b *bed, _ string) { b.region.Deny(ocisim.Policy{ResourceType: "instances"}) },
		"fields absent": func(b *bed, id string) {
			b.retag(id, func(i *core.Instance) { i.FreeformTags, i.DefinedTags = nil, nil })
		},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, ocisim.Options{}, func(t *testing.T, b *bed) {
				b.withTagLabels(costAndPool)
				id := b.region.AddInstance(ocisim.Instance{Name: "w-1", VNIC: ocisim.VNIC{Subnet: "nodes"}, Tags: tagged("1", "blue")})
				b.startNodesOnly()
				b.addNode("w-1", id)
				b.hold(time.Second)
				spoil(b, id)
				b.hold(time.Hour)
				b.wantLabels("w-1", name, map[string]string{costLabel: "1", poolLabel: "blue"})
			})
		})
	}
}

// A record that somebody has spoilt means that nothing is ours.
func TestTagRecordSpoilt(t *testing.T) {
	inBubble(t, ocisim.Options{}, func(t *testing.T, b *bed) {
		b.withTagLabels(costAndPool[1:])
		id := b.region.AddInstance(ocisim.Instance{Name: "w-1", VNIC: ocisim.VNIC{Subnet: "nodes"}, Tags: tagged("1", "blue")})
		b.addNode("w-1", id, initialized, func(n *v1.Node) { label(n, costLabel, "1"); annotate(n, tagRecord, "{") })
		b.startNodesOnly()
		b.hold(time.Second)
		b.wantLabels("w-1", "after the start", map[string]string{costLabel: "1", poolLabel: "blue"})
		if got := b.node("w-1").Annotations[tagRecord]; got != `{"oci.oraclecloud.com/pool":"blue"}` {
			t.Errorf("record %s", got)
		}
	})
}

// What is remembered of an instance are the tags that become labels, whichever way it was read.
func TestTrimKeepsTagsThatBecomeLabels(t *testing.T) {
	i := &oci.Instance{
		Metadata: map[string]string{"user_data": "…"},
		Tags: oci.Tags{
			Freeform: map[string]string{"pool": "blue", "x": "y"},
			Defined:  map[string]map[string]any{"operations": {"CostCenter": 42.0, "x": "y"}, "openshift-abc": {"boot-volume-type": "ISCSI"}},
		},
	}
	cloudprovider.TrimInstance(costAndPool)(i)
	want := &oci.Instance{Tags: oci.Tags{
		Freeform: map[string]string{"pool": "blue"},
		Defined:  map[string]map[string]any{"Operations": {"CostCenter": "42"}, "openshift-abc": {}},
	}}
	if diff := cmp.Diff(want, i); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
