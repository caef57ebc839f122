// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package ocisim_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/oracle/oci-cloud-controller-manager/test/ocisim"
)

func TestAvailabilityAndFaultDomains(t *testing.T) {
	f := newFixture(t, ocisim.Options{Region: "eu-frankfurt-1"})
	tenancy := f.region.Options().Tenancy
	var names []string
	for _, o := range f.get(api + "/availabilityDomains?compartmentId=" + tenancy).want(http.StatusOK).array() {
		names = append(names, str(o, "name"))
		if str(o, "compartmentId") != tenancy {
			t.Errorf("domain %v", o)
		}
	}
	if diff := cmp.Diff([]string{"Uocm:EU-FRANKFURT-AD-1", "Uocm:EU-FRANKFURT-AD-2", "Uocm:EU-FRANKFURT-AD-3"}, names); diff != "" {
		t.Error(diff)
	}
	f.get(api+"/availabilityDomains").wantError(http.StatusBadRequest, "MissingParameter")
	domains := f.get(api + "/faultDomains?compartmentId=" + tenancy + "&availabilityDomain=" + names[1]).want(http.StatusOK).array()
	if len(domains) != 3 || str(domains[2], "name") != "FAULT-DOMAIN-3" || str(domains[0], "availabilityDomain") != names[1] {
		t.Errorf("fault domains %v", domains)
	}
	f.get(api+"/faultDomains?compartmentId="+tenancy+"&availabilityDomain=nowhere").wantError(http.StatusNotFound, "NotAuthorizedOrNotFound")
}

func TestCompartments(t *testing.T) {
	f := newFixture(t, ocisim.Options{})
	child := f.region.AddCompartment(ocisim.Compartment{Name: "child", Parent: "cluster"})
	o := f.get(api + "/compartments/" + child).want(http.StatusOK).object()
	if str(o, "compartmentId") != f.compartment || str(o, "name") != "child" || str(o, "lifecycleState") != "ACTIVE" {
		t.Errorf("compartment %v", o)
	}
	if !strings.HasPrefix(child, "ocid1.compartment.oc1..") {
		t.Errorf("a compartment's OCID has no region: %s", child)
	}
	if got := ids(f.all(api + "/compartments?compartmentId=" + f.compartment)); len(got) != 1 || got[0] != child {
		t.Errorf("children %v", got)
	}
}
