// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package ocisim_test

import (
	"maps"
	"net/http"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/oracle/oci-cloud-controller-manager/test/ocisim"
)

// visible is everything about an answer that a client could decide on.
type visible struct {
	Status  int
	Body    string
	Headers []string
}

func visibleOf(r response) visible {
	return visible{r.status, string(r.body), slices.Sorted(maps.Keys(r.header))}
}

// TestDeniedIsLikeGone compares the answer for a resource that a policy hides with that for one which never was.
func TestDeniedIsLikeGone(t *testing.T) {
	f := newFixture(t, ocisim.Options{})
	group := f.region.AddSecurityGroup(ocisim.SecurityGroup{Name: "g"})
	calls := map[string]func(id string) response{
		"get":    func(id string) response { return f.get(api + "/networkSecurityGroups/" + id) },
		"update": func(id string) response { return f.put(api+"/networkSecurityGroups/"+id, object{}) },
		"delete": func(id string) response { return f.delete(api + "/networkSecurityGroups/" + id) },
		"wrong etag": func(id string) response {
			return f.delete(api+"/networkSecurityGroups/"+id, "if-match", "00000000")
		},
		"rules": func(id string) response { return f.get(api + "/networkSecurityGroups/" + id + "/securityRules") },
		"add rules without any": func(id string) response {
			return f.post(api+"/networkSecurityGroups/"+id+"/actions/addSecurityRules", object{})
		},
	}
	gone := "ocid1.networksecuritygroup.oc1.iad.gone"
	restore := f.region.Deny(ocisim.Policy{ResourceType: "network-security-groups"})
	for name, call := range calls {
		denied, absent := visibleOf(call(group)), visibleOf(call(gone))
		if denied.Status != http.StatusNotFound {
			t.Errorf("%s of a denied group: status %d", name, denied.Status)
		}
		if diff := cmp.Diff(absent, denied); diff != "" {
			t.Errorf("%s tells a denied group from an absent one:\n%s", name, diff)
		}
	}
	// The same for lists: a compartment without permission and a compartment that is not there.
	list := func(compartment string) visible {
		return visibleOf(f.get(api + "/networkSecurityGroups?compartmentId=" + compartment))
	}
	if diff := cmp.Diff(list("ocid1.compartment.oc1..gone"), list(f.compartment)); diff != "" {
		t.Errorf("a denied list differs from that of an absent compartment:\n%s", diff)
	}
	restore()
	f.get(api + "/networkSecurityGroups/" + group).want(http.StatusOK)
}

func TestPolicies(t *testing.T) {
	get := func(f *fixture, c *client) response { return c.get(api + "/instances/" + f.instance) }
	list := func(f *fixture, c *client) response { return c.get(api + "/instances?compartmentId=" + f.compartment) }
	stop := func(f *fixture, c *client) response { return c.post(api+"/instances/"+f.instance+"?action=STOP", nil) }
	vcn := func(f *fixture, c *client) response { return c.get(api + "/vcns/" + f.vcn) }
	tests := []struct {
		name    string
		policy  ocisim.Policy
		refused map[string]bool // of list, get, stop, vcn, bob
	}{
		{"everything", ocisim.Policy{}, map[string]bool{"list": true, "get": true, "stop": true, "vcn": true, "bob": true}},
		{"one principal", ocisim.Policy{Principal: "alice"}, map[string]bool{"list": true, "get": true, "stop": true, "vcn": true}},
		{"one resource type", ocisim.Policy{ResourceType: "instances"}, map[string]bool{"list": true, "get": true, "stop": true, "bob": true}},
		{"read and up", ocisim.Policy{ResourceType: "instances", Verb: ocisim.Read}, map[string]bool{"get": true, "stop": true, "bob": true}},
		{"use and up", ocisim.Policy{ResourceType: "instances", Verb: ocisim.Use}, map[string]bool{"stop": true}},
		{"one operation", ocisim.Policy{Operation: "ListInstances"}, map[string]bool{"list": true}},
		{"another compartment", ocisim.Policy{Compartment: "ocid1.compartment.oc1..other"}, map[string]bool{}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			f := newFixture(t, ocisim.Options{})
			alice, bob := f.as(f.region, "alice"), f.as(f.region, "bob")
			f.region.Deny(test.policy)
			got := map[string]bool{}
			for name, r := range map[string]response{
				"list": list(f, alice), "get": get(f, alice), "stop": stop(f, alice), "vcn": vcn(f, alice), "bob": get(f, bob),
			} {
				if r.status == http.StatusNotFound {
					got[name] = true
				} else {
					r.want(http.StatusOK)
				}
			}
			if diff := cmp.Diff(test.refused, got); diff != "" {
				t.Errorf("refused calls (-want +got):\n%s", diff)
			}
		})
	}
}

func TestPolicyOnCreateAndReference(t *testing.T) {
	f := newFixture(t, ocisim.Options{})
	body := object{"compartmentId": f.compartment, "vcnId": f.vcn}
	restore := f.region.Deny(ocisim.Policy{Compartment: f.compartment, ResourceType: "network-security-groups"})
	f.post(api+"/networkSecurityGroups", body).wantError(http.StatusNotFound, "NotAuthorizedOrNotFound")
	restore()
	restore = f.region.Deny(ocisim.Policy{ResourceType: "vcns"})
	f.post(api+"/networkSecurityGroups", body).wantError(http.StatusBadRequest, "RelatedResourceNotAuthorizedOrNotFound")
	restore()
	f.post(api+"/networkSecurityGroups", object{"compartmentId": "ocid1.compartment.oc1..gone", "vcnId": f.vcn}).
		wantError(http.StatusNotFound, "NotAuthorizedOrNotFound")
	f.post(api+"/networkSecurityGroups", body).want(http.StatusOK)
}
