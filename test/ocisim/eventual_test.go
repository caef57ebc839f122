// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package ocisim_test

import (
	"net/http"
	"testing"

	"github.com/oracle/oci-cloud-controller-manager/test/ocisim"
)

// TestEventualConsistency: every principal's first reads miss a new resource, gets and lists alike.
func TestEventualConsistency(t *testing.T) {
	f := newFixture(t, ocisim.Options{EventualReads: 2})
	f.get(api + "/instances/" + f.instance).want(http.StatusOK) // what was seeded is visible at once
	id := str(f.createGroup().want(http.StatusOK).object(), "id")
	uri := api + "/networkSecurityGroups/" + id
	list := api + "/networkSecurityGroups?compartmentId=" + f.compartment

	for _, reader := range []*client{f.as(f.region, "alice"), f.as(f.region, "bob")} {
		if message := reader.get(uri).wantError(http.StatusNotFound, "NotAuthorizedOrNotFound"); message != "Authorization failed or requested resource not found." {
			t.Errorf("message %q", message)
		}
		if n := len(reader.get(list).want(http.StatusOK).array()); n != 0 {
			t.Errorf("the list shows %d groups at the second read", n)
		}
		reader.get(uri).want(http.StatusOK)
		if n := len(reader.get(list).want(http.StatusOK).array()); n != 1 {
			t.Errorf("the list shows %d groups at last", n)
		}
	}

	hidden := str(f.createGroup().want(http.StatusOK).object(), "id")
	f.delete(api + "/networkSecurityGroups/" + hidden).want(http.StatusNoContent) // writes find it
}

// TestListsLagByThemselves: what a get has shown may still be missing from lists.
func TestListsLagByThemselves(t *testing.T) {
	behaviour := ocisim.DefaultBehaviour()
	behaviour.ListsLagByThemselves = true
	f := newFixture(t, ocisim.Options{EventualReads: 1, Behaviour: behaviour})
	id := str(f.createGroup().want(http.StatusOK).object(), "id")
	list := api + "/networkSecurityGroups?compartmentId=" + f.compartment
	f.get(api+"/networkSecurityGroups/"+id).wantError(http.StatusNotFound, "NotAuthorizedOrNotFound")
	f.get(api + "/networkSecurityGroups/" + id).want(http.StatusOK)
	for want := range 2 {
		if n := len(f.get(list).want(http.StatusOK).array()); n != want {
			t.Errorf("list %d shows %d groups", want+1, n)
		}
	}
}

// TestDroppedFields counts how often optional fields are left out, and that mandatory ones never are.
func TestDroppedFields(t *testing.T) {
	f := newFixture(t, ocisim.Options{Seed: 3, DropOptional: 0.5})
	vnic := f.vnicOf(f.instance)
	const reads = 400
	seen := map[string]int{}
	for range reads {
		for name := range f.get(api + "/vnics/" + vnic).want(http.StatusOK).object() {
			seen[name]++
		}
	}
	for _, name := range []string{"id", "compartmentId", "availabilityDomain", "lifecycleState", "timeCreated"} {
		if seen[name] != reads {
			t.Errorf("mandatory %s was left out %d times", name, reads-seen[name])
		}
	}
	for _, name := range []string{"subnetId", "isPrimary", "privateIp"} { // the services always fill these
		if seen[name] != reads {
			t.Errorf("%s was left out %d times", name, reads-seen[name])
		}
	}
	for _, name := range []string{"hostnameLabel", "displayName", "freeformTags", "macAddress"} {
		if seen[name] < reads/4 || seen[name] > reads*3/4 {
			t.Errorf("optional %s is there %d times of %d", name, seen[name], reads)
		}
	}
}
