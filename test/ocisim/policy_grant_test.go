// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package ocisim_test

import (
	"errors"
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/oracle/oci-cloud-controller-manager/test/ocisim"
)

// TestGrants: what each of the usual statements allows alice, and nobody else is limited.
func TestGrants(t *testing.T) {
	f := newFixture(t, ocisim.Options{})
	other := f.region.AddCompartment(ocisim.Compartment{Name: "other"})
	group := f.region.AddSecurityGroup(ocisim.SecurityGroup{Name: "g"})
	vnic := f.vnicOf(f.instance)
	alice, bob := f.as(f.region, "alice"), f.as(f.region, "bob")
	rule := object{"securityRules": []object{{"direction": "EGRESS", "protocol": "all", "destination": "0.0.0.0/0"}}}
	calls := map[string]func(c *client) response{
		"get instance":     func(c *client) response { return c.get(api + "/instances/" + f.instance) },
		"list instances":   func(c *client) response { return c.get(api + "/instances?compartmentId=" + f.compartment) },
		"list attachments": func(c *client) response { return c.get(api + "/vnicAttachments?compartmentId=" + f.compartment) },
		"get VNIC":         func(c *client) response { return c.get(api + "/vnics/" + vnic) },
		"name VNIC":        func(c *client) response { return c.put(api+"/vnics/"+vnic, object{"displayName": "x"}) },
		"get subnet":       func(c *client) response { return c.get(api + "/subnets/" + f.subnet) },
		"list addresses":   func(c *client) response { return c.get(api + "/privateIps?subnetId=" + f.subnet) },
		"list public addresses": func(c *client) response {
			return c.get(api + "/publicIps?scope=REGION&compartmentId=" + f.compartment)
		},
		"list domains": func(c *client) response { return c.get(api + "/availabilityDomains?compartmentId=" + f.compartment) },
		"get group":    func(c *client) response { return c.get(api + "/networkSecurityGroups/" + group) },
		"list rules":   func(c *client) response { return c.get(api + "/networkSecurityGroups/" + group + "/securityRules") },
		"add rule": func(c *client) response {
			return c.post(api+"/networkSecurityGroups/"+group+"/actions/addSecurityRules", rule)
		},
		"list LBs": func(c *client) response { return c.get("/20170115/loadBalancers?compartmentId=" + f.compartment) },
		"list NLBs": func(c *client) response {
			return c.get("/20200501/networkLoadBalancers?compartmentId=" + f.compartment)
		},
		"list elsewhere":  func(c *client) response { return c.get(api + "/instances?compartmentId=" + other) },
		"stop":            func(c *client) response { return c.post(api+"/instances/"+f.instance+"?action=STOP", nil) },
		"list security":   func(c *client) response { return c.get(api + "/securityLists?compartmentId=" + f.compartment) },
		"make a new list": func(c *client) response { return c.post(api+"/securityLists", newList(f)) },
	}
	in := " in compartment " + f.compartment
	tests := []struct {
		name       string
		statements []string
		allowed    []string
	}{
		{"nothing", nil, nil},
		{"read instance-family", []string{"Allow group g to read instance-family" + in}, []string{"get instance", "list instances", "list attachments", "get VNIC"}},
		{"inspect instance-family", []string{"Allow group g to inspect instance-family" + in}, []string{"list attachments", "get VNIC"}},
		{"in the tenancy", []string{"allow any-user to read instances in tenancy"}, []string{"get instance", "list instances", "list elsewhere"}},
		{
			"inspect virtual-network-family", []string{"Allow group g to inspect virtual-network-family" + in},
			[]string{"get VNIC", "list addresses", "list security"},
		},
		{
			"read virtual-network-family", []string{"Allow group g to read virtual-network-family" + in},
			[]string{"get VNIC", "list addresses", "list security", "get subnet", "list public addresses", "get group"},
		},
		{
			"use virtual-network-family", []string{"Allow group g to use virtual-network-family" + in},
			[]string{"get VNIC", "list addresses", "list security", "get subnet", "list public addresses", "get group", "name VNIC", "list rules"},
		},
		{"manage security-lists", []string{"Allow group g to manage security-lists" + in}, []string{"list security"}},
		{
			"manage security-lists and vcns", []string{"Allow group g to manage security-lists" + in, "Allow group g to manage vcns" + in},
			[]string{"list security", "make a new list"},
		},
		{"manage load-balancers", []string{"Allow group g to manage load-balancers" + in}, []string{"list LBs"}},
		{"manage network-load-balancers", []string{"Allow group g to manage network-load-balancers" + in}, []string{"list NLBs"}},
		{"elsewhere", []string{"Allow group g to manage all-resources in compartment " + other}, []string{"list elsewhere"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			revoke, err := f.region.Grant(ocisim.Grant{Principal: "alice", Statements: test.statements})
			if err != nil {
				t.Fatal(err)
			}
			defer revoke()
			want, got := map[string]bool{}, map[string]bool{}
			for _, name := range test.allowed {
				want[name] = true
			}
			for name, call := range calls {
				if status := call(alice).status; status < 300 {
					got[name] = true
				} else if status != http.StatusNotFound && status != http.StatusBadRequest {
					t.Errorf("%s: status %d", name, status)
				}
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("allowed calls (-want +got):\n%s", diff)
			}
			calls["get instance"](bob).want(http.StatusOK)
		})
	}
	calls["get instance"](alice).want(http.StatusOK) // all grants are revoked
}

func newList(f *fixture) object {
	return object{"compartmentId": f.compartment, "vcnId": f.vcn, "egressSecurityRules": []object{}, "ingressSecurityRules": []object{}}
}

// A grant in a compartment holds in those below it.
func TestGrantIsInherited(t *testing.T) {
	f := newFixture(t, ocisim.Options{})
	above := f.region.Options().Tenancy
	alice := f.as(f.region, "alice")
	if _, err := f.region.Grant(ocisim.Grant{Principal: "alice", Statements: []string{"Allow group g to read instances in compartment " + above}}); err != nil {
		t.Fatal(err)
	}
	alice.get(api + "/instances/" + f.instance).want(http.StatusOK)
}

// Defined tags need a permission of the tenancy.
func TestGrantOfTagNamespaces(t *testing.T) {
	f := newFixture(t, ocisim.Options{})
	f.region.AddTagNamespace("team")
	alice := f.as(f.region, "alice")
	statements := []string{"Allow group g to manage virtual-network-family in compartment " + f.compartment}
	grant := func() func() {
		revoke, err := f.region.Grant(ocisim.Grant{Principal: "alice", Statements: statements})
		if err != nil {
			t.Fatal(err)
		}
		return revoke
	}
	body := object{"compartmentId": f.compartment, "vcnId": f.vcn, "definedTags": object{"team": object{"name": "red"}}}
	revoke := grant()
	alice.post(api+"/networkSecurityGroups", body).wantError(http.StatusBadRequest, "RelatedResourceNotAuthorizedOrNotFound")
	revoke()
	statements = append(statements, "Allow group g to use tag-namespaces in tenancy")
	grant()
	alice.post(api+"/networkSecurityGroups", body).want(http.StatusOK)
}

func TestGrantsThatCannotBe(t *testing.T) {
	region := ocisim.New(ocisim.Options{})
	for _, statement := range []string{
		"", "read instances", "Deny group g to read instances in tenancy", "Allow group g to look instances in tenancy",
		"Allow group g to read instance in tenancy", "Allow group g to read instances in compartment", "Allow group g to read instances",
		"Allow group g to read instances in tenancy where request.user.name = 'x'", "Allow to", "Allow group g to read instances at tenancy",
	} {
		if _, err := region.Grant(ocisim.Grant{Principal: "alice", Statements: []string{statement}}); !errors.Is(err, ocisim.ErrOption) {
			t.Errorf("%q: %v", statement, err)
		}
	}
	if _, err := region.Grant(ocisim.Grant{}); !errors.Is(err, ocisim.ErrOption) {
		t.Errorf("no principal: %v", err)
	}
}
