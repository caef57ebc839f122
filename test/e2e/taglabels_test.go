// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"fmt"
	"maps"
	"testing"

	"github.com/oracle/oci-go-sdk/v65/core"

	"github.com/oracle/oci-cloud-controller-manager/test/ocisim"
	"github.com/oracle/oci-cloud-controller-manager/test/testbed"
)

// TestInstanceTagsAreLabels: the tags that the config names are labels of the nodes, follow the instance, and go with the tag.
// The pass of a new process sees changes at once; that a running one does within 15 minutes is tested on virtual time.
func TestInstanceTagsAreLabels(t *testing.T) {
	world := testbed.DemoWorld()
	world.TagNamespaces = []string{"Operations"}
	world.Instances[0].Tags = ocisim.Tags{
		Freeform: map[string]string{"pool": "blue & green", "secret": "not asked for"},
		Defined:  map[string]map[string]any{"Operations": {"CostCenter": "42"}},
	}
	l := newLab(t, testbed.Options{World: world, ConfigChange: "nodeLabels:\n  definedTags: [Operations.CostCenter]\n  freeformTags: [pool]\n"}).ready()
	const pool, center = "oci.oraclecloud.com/pool", "oci.oraclecloud.com/Operations.CostCenter"
	want := func(labels map[string]string) {
		t.Helper()
		l.until("labels of node-1", func() (bool, string) {
			got := map[string]string{}
			for _, key := range []string{pool, center, "oci.oraclecloud.com/secret"} {
				if value, there := l.node(0).Labels[key]; there {
					got[key] = value
				}
			}
			return maps.Equal(got, labels), fmt.Sprintf("node-1 has %v, want %v", got, labels)
		})
	}
	want(map[string]string{pool: "blue___green", center: "42"})
	if _, there := l.node(1).Labels[pool]; there {
		t.Error("node-2, whose instance has no tags, has the label too")
	}
	l.stop()

	err := l.Region.Foreign().Instance(testbed.InstanceID(0), func(i *core.Instance) {
		i.FreeformTags["pool"] = "red"
		i.DefinedTags = map[string]map[string]any{} // an answer without the field would prove nothing
	})
	if err != nil {
		t.Fatal(err)
	}
	l.before = l.Region.Snapshot()
	l.run()
	want(map[string]string{pool: "red"})
}
