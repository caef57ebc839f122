// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package ocisim_test

import (
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/oracle/oci-cloud-controller-manager/test/ocisim"
)

func TestRetryToken(t *testing.T) {
	f := newFixture(t, ocisim.Options{})
	const uri = api + "/networkSecurityGroups"
	body := object{"compartmentId": f.compartment, "vcnId": f.vcn, "displayName": "a"}

	first := f.post(uri, body, "opc-retry-token", "token-1").want(http.StatusOK)
	again := f.post(uri, body, "opc-retry-token", "token-1").want(http.StatusOK)
	if string(first.body) != string(again.body) || first.header.Get("etag") != again.header.Get("etag") {
		t.Errorf("the repeated call answered\n%s\ninstead of\n%s", again.body, first.body)
	}
	// The order of the JSON fields does not make another request.
	reordered := `{"vcnId":"` + f.vcn + `", "displayName":"a","compartmentId":"` + f.compartment + `"}`
	f.post(uri, reordered, "opc-retry-token", "token-1").want(http.StatusOK)
	if n := len(f.region.SecurityGroups()); n != 1 {
		t.Fatalf("%d groups after three calls with one token", n)
	}
	calls := f.region.Calls()
	if calls[0].Replayed || !calls[1].Replayed || !calls[2].Replayed {
		t.Error("the log does not tell which calls were repetitions")
	}

	other := object{"compartmentId": f.compartment, "vcnId": f.vcn, "displayName": "b"}
	f.post(uri, other, "opc-retry-token", "token-1").wantError(http.StatusConflict, "InvalidatedRetryToken")
	f.post(uri, body, "opc-retry-token", "token-2").want(http.StatusOK)
	f.post(uri, body).want(http.StatusOK)
	if n := len(f.region.SecurityGroups()); n != 3 {
		t.Errorf("%d groups, want one per token and one without: names are not unique", n)
	}
	f.post(uri, body, "opc-retry-token", strings.Repeat("x", 65)).wantError(http.StatusBadRequest, "InvalidParameter")
}

func TestRetryTokenOfDeletedResource(t *testing.T) {
	f := newFixture(t, ocisim.Options{})
	const uri = api + "/networkSecurityGroups"
	body := object{"compartmentId": f.compartment, "vcnId": f.vcn}
	id := str(f.post(uri, body, "opc-retry-token", "t").want(http.StatusOK).object(), "id")
	f.delete(uri + "/" + id).want(http.StatusNoContent)
	f.post(uri, body, "opc-retry-token", "t").wantError(http.StatusConflict, "InvalidatedRetryToken")
	if n := len(f.region.SecurityGroups()); n != 0 {
		t.Errorf("%d groups", n)
	}
}

// TestRetryTokenScope uses one token for two operations, as existing clients do, and as two principals.
func TestRetryTokenScope(t *testing.T) {
	f := newFixture(t, ocisim.Options{})
	group := object{"compartmentId": f.compartment, "vcnId": f.vcn}
	public := object{"compartmentId": f.compartment, "lifetime": "RESERVED"}
	alice, bob := f.as(f.region, "alice"), f.as(f.region, "bob")
	alice.post(api+"/networkSecurityGroups", group, "opc-retry-token", "t").want(http.StatusOK)
	alice.post(api+"/publicIps", public, "opc-retry-token", "t").want(http.StatusOK)
	bob.post(api+"/networkSecurityGroups", group, "opc-retry-token", "t").want(http.StatusOK)
	if groups, ips := len(f.region.SecurityGroups()), len(f.region.PublicIPs()); groups != 2 || ips != 1 {
		t.Errorf("%d groups and %d public addresses", groups, ips)
	}
}

func TestRetryTokenAfterFailureAndAfterADay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, ocisim.Options{})
		const uri = api + "/networkSecurityGroups"
		body := object{"compartmentId": f.compartment, "vcnId": f.vcn}
		bad := object{"compartmentId": f.compartment, "vcnId": "ocid1.vcn.oc1.iad.unknown"}
		f.post(uri, bad, "opc-retry-token", "t").wantError(http.StatusBadRequest, "RelatedResourceNotAuthorizedOrNotFound")
		first := f.post(uri, body, "opc-retry-token", "t").want(http.StatusOK)

		time.Sleep(24*time.Hour - time.Second)
		if again := f.post(uri, body, "opc-retry-token", "t").want(http.StatusOK); string(again.body) != string(first.body) {
			t.Error("the token did not live for a day")
		}
		time.Sleep(time.Second)
		f.post(uri, body, "opc-retry-token", "t").want(http.StatusOK)
		if n := len(f.region.SecurityGroups()); n != 2 {
			t.Errorf("%d groups, want a second one after 24 hours", n)
		}
	})
}

// TestRetryTokenSavesADroppedCreate loses the answer of a create and repeats it.
func TestRetryTokenSavesADroppedCreate(t *testing.T) {
	f := newFixture(t, ocisim.Options{})
	f.region.Fault(ocisim.Fault{Operation: "CreateNetworkSecurityGroup", Times: 1, Drop: ocisim.AfterApply})
	const uri = api + "/networkSecurityGroups"
	body := object{"compartmentId": f.compartment, "vcnId": f.vcn}
	if r := f.post(uri, body, "opc-retry-token", "t"); r.err == nil {
		t.Fatalf("status %d instead of a broken connection", r.status)
	}
	id := str(f.post(uri, body, "opc-retry-token", "t").want(http.StatusOK).object(), "id")
	groups := f.region.SecurityGroups()
	if len(groups) != 1 || *groups[0].Id != id {
		t.Errorf("groups %v, want just %s", groups, id)
	}
}
