// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package ocisim_test

import (
	"net/http"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/oracle/oci-go-sdk/v65/common"
	"github.com/oracle/oci-go-sdk/v65/core"

	"github.com/oracle/oci-cloud-controller-manager/test/ocisim"
)

const groups = api + "/networkSecurityGroups"

func TestSecurityGroupLifecycle(t *testing.T) {
	f := newFixture(t, ocisim.Options{PageSize: 2})
	created := f.post(groups, object{
		"compartmentId": f.compartment, "vcnId": f.vcn, "displayName": "lb", "freeformTags": object{"CreatedBy": "CCM"},
	}).want(http.StatusOK)
	o := created.object()
	id := str(o, "id")
	if !regexp.MustCompile(`^ocid1\.networksecuritygroup\.oc1\.iad\.[a-z2-7]{60}$`).MatchString(id) {
		t.Errorf("id %q", id)
	}
	if str(o, "lifecycleState") != "AVAILABLE" || str(o, "displayName") != "lb" || str(o, "vcnId") != f.vcn {
		t.Errorf("group %v", o)
	}
	unnamed := str(f.createGroup().want(http.StatusOK).object(), "displayName")
	if !strings.HasPrefix(unnamed, "networksecuritygroup20") {
		t.Errorf("the service names a group %q", unnamed)
	}
	f.createGroup().want(http.StatusOK)
	if n := len(f.all(groups + "?vcnId=" + f.vcn)); n != 3 {
		t.Errorf("%d groups in the VCN", n)
	}
	if got := ids(f.all(groups + "?compartmentId=" + f.compartment + "&displayName=lb")); len(got) != 1 || got[0] != id {
		t.Errorf("groups named lb: %v", got)
	}
	f.get(groups).wantError(http.StatusBadRequest, "InvalidParameter")

	updated := f.put(groups+"/"+id, object{"freeformTags": object{"a": "b"}}, "if-match", created.header.Get("etag")).want(http.StatusOK)
	if got := updated.object(); str(got, "displayName") != "lb" || got["freeformTags"].(object)["a"] != "b" {
		t.Errorf("after the update %v", got)
	}
	f.delete(groups+"/"+id, "if-match", created.header.Get("etag")).wantError(http.StatusPreconditionFailed, "NoEtagMatch")
	if r := f.delete(groups+"/"+id, "if-match", updated.header.Get("etag")).want(http.StatusNoContent); len(r.body) != 0 {
		t.Errorf("a delete answers %q", r.body)
	}
	f.get(groups+"/"+id).wantError(http.StatusNotFound, "NotAuthorizedOrNotFound")
	f.delete(groups+"/"+id).wantError(http.StatusNotFound, "NotAuthorizedOrNotFound")
}

func TestSecurityGroupValidation(t *testing.T) {
	f := newFixture(t, ocisim.Options{})
	f.region.AddTagNamespace("team")
	valid := func(change object) object {
		o := object{"compartmentId": f.compartment, "vcnId": f.vcn}
		for k, v := range change {
			o[k] = v
		}
		return o
	}
	tests := []struct {
		name   string
		body   any
		status int
		code   string
	}{
		{"no compartment", object{"vcnId": f.vcn}, 400, "MissingParameter"},
		{"no VCN", object{"compartmentId": f.compartment}, 400, "MissingParameter"},
		{"empty body", nil, 400, "MissingParameter"},
		{"no JSON", "{", 400, "CannotParseRequest"},
		{"wrong type", `{"compartmentId":7}`, 400, "CannotParseRequest"},
		{"unknown VCN", valid(object{"vcnId": "ocid1.vcn.oc1.iad.x"}), 400, "RelatedResourceNotAuthorizedOrNotFound"},
		{"subnet as VCN", valid(object{"vcnId": f.subnet}), 400, "RelatedResourceNotAuthorizedOrNotFound"},
		{"long name", valid(object{"displayName": strings.Repeat("x", 256)}), 400, "InvalidParameter"},
		{"eleven tags", valid(object{"freeformTags": tags(11)}), 400, "InvalidParameter"},
		{"long tag key", valid(object{"freeformTags": object{strings.Repeat("k", 101): "v"}}), 400, "InvalidParameter"},
		{"dot in a tag key", valid(object{"freeformTags": object{"kubernetes.io": "v"}}), 400, "InvalidParameter"},
		{"blank in a tag key", valid(object{"freeformTags": object{"a b": "v"}}), 400, "InvalidParameter"},
		{"long tag value", valid(object{"freeformTags": object{"k": strings.Repeat("v", 257)}}), 400, "InvalidParameter"},
		{"unknown tag namespace", valid(object{"definedTags": object{"orcl-containerengine": object{"a": "b"}}}), 400,
			"RelatedResourceNotAuthorizedOrNotFound"},
		{"known tag namespace", valid(object{"definedTags": object{"team": object{"a": "b"}}}), 200, ""},
		{"ten tags", valid(object{"freeformTags": tags(10)}), 200, ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			r := f.post(groups, test.body)
			if test.code == "" {
				r.want(test.status)
				return
			}
			message := r.wantError(test.status, test.code)
			if strings.Contains(test.name, "unknown tag") &&
				message != "The following tag namespaces / keys are not authorized or not found: 'orcl-containerengine'" {
				t.Errorf("message %q", message)
			}
		})
	}
}

// TestDeleteGroupInUse is the answer that users report: 412, not 409, and the VNIC of a terminated instance counts
// until it has lingered.
func TestDeleteGroupInUse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, ocisim.Options{})
		group := f.region.AddSecurityGroup(ocisim.SecurityGroup{Name: "g"})
		instance := f.region.AddInstance(ocisim.Instance{Name: "n", VNIC: ocisim.VNIC{Subnet: "nodes", SecurityGroups: []string{"g"}}})
		members := f.get(groups + "/" + group + "/vnics").want(http.StatusOK).array()
		if len(members) != 1 || str(members[0], "vnicId") != f.vnicOf(instance) || str(members[0], "resourceId") != instance {
			t.Errorf("members %v", members)
		}
		refused := func() {
			t.Helper()
			message := f.delete(groups+"/"+group).wantError(http.StatusPreconditionFailed, "PreconditionFailed")
			if want := "NetworkSecurityGroup " + group + " cannot be deleted since it still has vnics attached to it"; message != want {
				t.Errorf("message %q\nwant    %q", message, want)
			}
		}
		refused()
		if err := f.region.Foreign().TerminateInstance(instance); err != nil {
			t.Fatal(err)
		}
		refused()
		time.Sleep(90 * time.Second) // terminated at the latest, and the VNIC lingers for a minute at least
		refused()
		time.Sleep(5 * time.Minute)
		f.delete(groups + "/" + group).want(http.StatusNoContent)
	})
}

func rule(change object) object {
	o := object{"direction": "INGRESS", "protocol": "6", "source": "10.0.0.0/16"}
	for k, v := range change {
		if v == nil {
			delete(o, k)
		} else {
			o[k] = v
		}
	}
	return o
}

func ports(least, most int) object {
	return object{"destinationPortRange": object{"min": least, "max": most}}
}

func TestGroupRules(t *testing.T) {
	f := newFixture(t, ocisim.Options{PageSize: 2})
	group := f.region.AddSecurityGroup(ocisim.SecurityGroup{Name: "g"})
	uri := groups + "/" + group
	etag := f.get(uri).header.Get("etag")
	added := f.post(uri+"/actions/addSecurityRules", object{"securityRules": []object{
		rule(object{"tcpOptions": ports(443, 443), "description": "https"}),
		rule(object{"source": group, "sourceType": "NETWORK_SECURITY_GROUP"}),
		rule(object{"direction": "EGRESS", "source": nil, "destination": "::/0", "protocol": "all"}),
	}}).want(http.StatusOK).object()["securityRules"].([]any)
	if len(added) != 3 {
		t.Fatalf("added %v", added)
	}
	var ruleIDs []string
	for _, a := range added {
		o := a.(object)
		ruleIDs = append(ruleIDs, str(o, "id"))
		if !regexp.MustCompile(`^[0-9A-F]{6}$`).MatchString(str(o, "id")) || o["isValid"] != true || o["isStateless"] != false || o["timeCreated"] == nil {
			t.Errorf("rule %v", o)
		}
	}
	if got := str(added[0].(object), "sourceType"); got != "CIDR_BLOCK" {
		t.Errorf("the service fills in sourceType, got %q", got)
	}
	if diff := cmp.Diff(ruleIDs, ids(f.all(uri+"/securityRules?"))); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(ruleIDs[2:], ids(f.all(uri+"/securityRules?direction=EGRESS"))); diff != "" {
		t.Error(diff)
	}
	if f.get(uri).header.Get("etag") != etag {
		t.Error("rules changed the etag of their group")
	}

	change := rule(object{"id": ruleIDs[0], "tcpOptions": ports(8443, 8443)})
	f.post(uri+"/actions/updateSecurityRules", object{"securityRules": []object{change}}).want(http.StatusOK)
	first := f.region.GroupRules(group)[0]
	if *first.TcpOptions.DestinationPortRange.Min != 8443 || first.Description != nil || *first.Id != ruleIDs[0] {
		t.Errorf("an update replaces the rule and keeps its id: %v", first)
	}
	unknown := rule(object{"id": "0A0A0A"})
	f.post(uri+"/actions/updateSecurityRules", object{"securityRules": []object{unknown}}).wantError(http.StatusBadRequest, "InvalidParameter")
	f.post(uri+"/actions/removeSecurityRules", object{"securityRuleIds": []string{ruleIDs[0], "0A0A0A"}}).
		wantError(http.StatusBadRequest, "InvalidParameter")
	if n := len(f.region.GroupRules(group)); n != 3 {
		t.Errorf("%d rules after a refused removal", n)
	}
	f.post(uri+"/actions/removeSecurityRules", object{"securityRuleIds": ruleIDs[:2]}).want(http.StatusNoContent)
	if diff := cmp.Diff(ruleIDs[2:], ids(f.all(uri+"/securityRules?"))); diff != "" {
		t.Error(diff)
	}
}

func TestGroupRuleValidation(t *testing.T) {
	f := newFixture(t, ocisim.Options{})
	group := f.region.AddSecurityGroup(ocisim.SecurityGroup{Name: "g"})
	f.region.AddVCN(ocisim.VCN{Name: "other"})
	foreign := f.region.AddSecurityGroup(ocisim.SecurityGroup{Name: "elsewhere", VCN: "other"})
	tests := map[string]struct {
		rule object
		code string
	}{
		"no direction":           {rule(object{"direction": nil}), "MissingParameter"},
		"unknown direction":      {rule(object{"direction": "SIDEWAYS"}), "InvalidParameter"},
		"no protocol":            {rule(object{"protocol": nil}), "MissingParameter"},
		"protocol by name":       {rule(object{"protocol": "tcp"}), "InvalidParameter"},
		"no source":              {rule(object{"source": nil}), "MissingParameter"},
		"destination of ingress": {rule(object{"destination": "10.0.0.0/8"}), "InvalidParameter"},
		"no CIDR":                {rule(object{"source": "10.0.0.1"}), "InvalidParameter"},
		"UDP options on TCP":     {rule(object{"udpOptions": ports(53, 53)}), "InvalidParameter"},
		"ports upside down":      {rule(object{"tcpOptions": ports(80, 70)}), "InvalidParameter"},
		"port zero":              {rule(object{"tcpOptions": ports(0, 70)}), "InvalidParameter"},
		"long description":       {rule(object{"description": strings.Repeat("ü", 256)}), "InvalidParameter"},
		"empty description":      {rule(object{"description": ""}), "InvalidParameter"},
		"port without maximum":   {rule(object{"tcpOptions": object{"destinationPortRange": object{"min": 1}}}), "MissingParameter"},
		"unknown group":          {rule(object{"source": "ocid1.networksecuritygroup.oc1.iad.x", "sourceType": "NETWORK_SECURITY_GROUP"}), "RelatedResourceNotAuthorizedOrNotFound"},
		"group of another VCN":   {rule(object{"source": foreign, "sourceType": "NETWORK_SECURITY_GROUP"}), "InvalidParameter"},
		"egress to nowhere":      {rule(object{"direction": "EGRESS", "source": nil}), "MissingParameter"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			// A good rule beside the bad one must not be added either.
			body := object{"securityRules": []object{rule(nil), test.rule}}
			f.post(groups+"/"+group+"/actions/addSecurityRules", body).wantError(http.StatusBadRequest, test.code)
			if n := len(f.region.GroupRules(group)); n != 0 {
				t.Errorf("%d rules were added", n)
			}
		})
	}
}

func TestGroupRuleLimits(t *testing.T) {
	f := newFixture(t, ocisim.Options{})
	group := f.region.AddSecurityGroup(ocisim.SecurityGroup{Name: "g"})
	add := func(n int) response {
		rules := make([]object, 0, n)
		for i := range n {
			rules = append(rules, rule(object{"tcpOptions": ports(1000+i, 1000+i)}))
		}
		return f.post(groups+"/"+group+"/actions/addSecurityRules", object{"securityRules": rules})
	}
	add(26).wantError(http.StatusBadRequest, "InvalidParameter")
	for range 4 {
		add(25).want(http.StatusOK)
	}
	add(21).wantError(http.StatusBadRequest, "LimitExceeded")
	add(20).want(http.StatusOK)
	add(1).wantError(http.StatusBadRequest, "LimitExceeded")
}

// TestRuleNamingADeletedGroup stays, but is not valid any more.
func TestRuleNamingADeletedGroup(t *testing.T) {
	f := newFixture(t, ocisim.Options{})
	source := f.region.AddSecurityGroup(ocisim.SecurityGroup{Name: "lb"})
	group := f.region.AddSecurityGroup(ocisim.SecurityGroup{Name: "nodes", Ingress: []ocisim.SecurityRule{{Peer: "lb"}, {}}})
	f.delete(groups + "/" + source).want(http.StatusNoContent)
	list := f.get(groups + "/" + group + "/securityRules").want(http.StatusOK).array()
	if len(list) != 2 || list[0]["isValid"] != false || list[1]["isValid"] != true {
		t.Errorf("rules %v", list)
	}
}

func TestForeignRules(t *testing.T) {
	f := newFixture(t, ocisim.Options{})
	group := f.region.AddSecurityGroup(ocisim.SecurityGroup{Name: "g"})
	added, err := f.region.Foreign().AddRules(group, core.SecurityRule{
		Direction: core.SecurityRuleDirectionIngress, Protocol: common.String("all"), Source: common.String("192.0.2.0/24"),
	})
	if err != nil || len(added) != 1 {
		t.Fatalf("%v %v", added, err)
	}
	if got := ids(f.get(groups + "/" + group + "/securityRules").want(http.StatusOK).array()); len(got) != 1 || got[0] != added[0] {
		t.Errorf("rules %v", got)
	}
	if err := f.region.Foreign().RemoveRule(group, added[0]); err != nil {
		t.Fatal(err)
	}
	if err := f.region.Foreign().RemoveRule(group, added[0]); err == nil {
		t.Error("the rule was there twice")
	}
}
