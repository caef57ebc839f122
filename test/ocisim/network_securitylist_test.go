// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package ocisim_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/oracle/oci-cloud-controller-manager/test/ocisim"
)

func TestSecurityListUpdate(t *testing.T) {
	f := newFixture(t, ocisim.Options{})
	id := f.region.AddSecurityList(ocisim.SecurityList{
		Name: "rules", Ingress: []ocisim.SecurityRule{{Protocol: "tcp", Ports: "22"}}, Egress: []ocisim.SecurityRule{{}},
	})
	uri := api + "/securityLists/" + id
	o := f.get(uri).want(http.StatusOK).object()
	ingress := o["ingressSecurityRules"].([]any)[0].(object)
	if ingress["protocol"] != "6" || ingress["source"] != "0.0.0.0/0" || ingress["isStateless"] != false || ingress["sourceType"] != "CIDR_BLOCK" {
		t.Errorf("rule %v", ingress)
	}

	// A list that the request carries is replaced as a whole, the other one stays.
	f.put(uri, object{"ingressSecurityRules": []object{{"protocol": "17", "source": "10.0.0.0/8", "udpOptions": ports(53, 53)}}}).want(http.StatusOK)
	list, _ := f.region.SecurityList(id)
	if len(list.IngressSecurityRules) != 1 || *list.IngressSecurityRules[0].Protocol != "17" || len(list.EgressSecurityRules) != 1 {
		t.Errorf("list %v", list)
	}
	r := f.put(uri, object{"egressSecurityRules": []object{}}).want(http.StatusOK).object()
	if rules, ok := r["egressSecurityRules"].([]any); !ok || len(rules) != 0 {
		t.Errorf("emptied rules are %v", r["egressSecurityRules"])
	}
	if rules := r["ingressSecurityRules"].([]any); len(rules) != 1 {
		t.Errorf("ingress %v", rules)
	}
}

func TestSecurityListValidation(t *testing.T) {
	f := newFixture(t, ocisim.Options{})
	id := f.region.AddSecurityList(ocisim.SecurityList{Name: "rules"})
	group := f.region.AddSecurityGroup(ocisim.SecurityGroup{Name: "g"})
	rules := func(n int) []object {
		list := make([]object, 0, n)
		for i := range n {
			list = append(list, object{"protocol": "6", "source": "10.0.0.0/8", "tcpOptions": ports(i+1, i+1)})
		}
		return list
	}
	tests := map[string]struct {
		body object
		code string
	}{
		"no source":        {object{"ingressSecurityRules": []object{{"protocol": "6"}}}, "MissingParameter"},
		"no destination":   {object{"egressSecurityRules": []object{{"protocol": "6"}}}, "MissingParameter"},
		"address, no CIDR": {object{"ingressSecurityRules": []object{{"protocol": "6", "source": "10.0.0.1"}}}, "InvalidParameter"},
		"group as source": {object{"ingressSecurityRules": []object{
			{"protocol": "6", "source": group, "sourceType": "NETWORK_SECURITY_GROUP"},
		}}, "InvalidParameter"},
		"long description": {object{"ingressSecurityRules": []object{
			{"protocol": "6", "source": "10.0.0.0/8", "description": strings.Repeat("ü", 256)},
		}}, "InvalidParameter"},
		"longest description": {object{"egressSecurityRules": []object{
			{"protocol": "6", "destination": "10.0.0.0/8", "description": strings.Repeat("ü", 255)},
		}}, ""},
		"201 rules": {object{"ingressSecurityRules": rules(201)}, "LimitExceeded"},
		"200 rules": {object{"ingressSecurityRules": rules(200)}, ""},
	}
	for name, test := range tests {
		r := f.put(api+"/securityLists/"+id, test.body)
		if test.code == "" {
			r.want(http.StatusOK)
			continue
		}
		if r.status != http.StatusBadRequest || str(r.object(), "code") != test.code {
			t.Errorf("%s: %d %s", name, r.status, r.body)
		}
	}
}

// TestRulings changes an answer that is not established.
func TestRulings(t *testing.T) {
	behaviour := ocisim.DefaultBehaviour()
	for situation, ruling := range behaviour.Rulings {
		if ruling.Reason == "" || ruling.Status == 0 || ruling.Code == "" || ruling.Message == "" {
			t.Errorf("the entry for %q is incomplete: %+v", situation, ruling)
		}
	}
	behaviour.MaxSecurityListRules = 1
	two := object{"ingressSecurityRules": []object{{"protocol": "6", "source": "10.0.0.0/8"}, {"protocol": "17", "source": "10.0.0.0/8"}}}
	f := newFixture(t, ocisim.Options{Behaviour: behaviour})
	uri := api + "/securityLists/" + f.region.AddSecurityList(ocisim.SecurityList{Name: "rules"})
	f.put(uri, two).wantError(http.StatusBadRequest, "LimitExceeded")
	f.region.SetBehaviour(func(b *ocisim.Behaviour) {
		b.Rulings[ocisim.TooManySecurityListRules] = ocisim.Ruling{Status: 409, Code: "Conflict", Message: "%s %s %d"}
	})
	f.put(uri, two).wantError(http.StatusConflict, "Conflict")
	f.region.SetBehaviour(func(b *ocisim.Behaviour) {
		b.Rulings[ocisim.TooManySecurityListRules] = ocisim.Ruling{Allow: true}
	})
	f.put(uri, two).want(http.StatusOK)
}
