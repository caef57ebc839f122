// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package ocisim

import "testing"

// A misspelt operation or type in the tables of grants would never be asked for.
func TestGrantTablesNameWhatExists(t *testing.T) {
	for name, needs := range grantedNeeds() {
		if !knownOperation(name) {
			t.Errorf("unknown operation %s", name)
		}
		for _, n := range needs {
			if verbStrength[n.verb] == 0 || !contains(resourceTypes(), n.resource) {
				t.Errorf("%s needs %q of %q", name, n.verb, n.resource)
			}
		}
	}
	for family, members := range families() {
		for _, m := range members {
			if !contains(resourceTypes(), m) {
				t.Errorf("unknown member %s of %s", m, family)
			}
		}
	}
	for family, more := range extras() {
		for resource := range more {
			if families()[family] == nil || !contains(resourceTypes(), resource) {
				t.Errorf("unknown extra %s of %s", resource, family)
			}
		}
	}
}
