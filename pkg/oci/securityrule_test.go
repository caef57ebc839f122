// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package oci

import (
	"errors"
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/oracle/oci-go-sdk/v65/core"
	"pgregory.net/rapid"
)

// Rules that were read go back exactly as they came, all that the SDK knows of them.
func TestRulesOfOthersSurvive(t *testing.T) {
	check := func(t *rapid.T, read, sent any) {
		if diff := cmp.Diff(restrict(wire(t, read), reflect.TypeOf(sent)), wire(t, sent)); diff != "" {
			t.Fatalf("the rule differs from what was read (-read +sent):\n%s", diff)
		}
	}
	t.Run("ingress", rapid.MakeCheck(func(t *rapid.T) {
		read := drawValue[core.IngressSecurityRule](t)
		check(t, read, ingressToSDK(ingressFromSDK(read)))
	}))
	t.Run("egress", rapid.MakeCheck(func(t *rapid.T) {
		read := drawValue[core.EgressSecurityRule](t)
		check(t, read, egressToSDK(egressFromSDK(read)))
	}))
}

// A rule that is made here is read as what it was made of.
func TestNewRulesRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ports := func(label string) PortRange {
			if !rapid.Bool().Draw(t, label) {
				return PortRange{}
			}
			low := rapid.IntRange(1, 65535).Draw(t, label)
			return PortRange{low, rapid.IntRange(low, 65535).Draw(t, label)}
		}
		want := SecurityRule{
			Direction: rapid.SampledFrom([]string{DirectionIngress, DirectionEgress}).Draw(t, "direction"),
			Protocol:  rapid.SampledFrom([]string{ProtocolTCP, ProtocolUDP}).Draw(t, "protocol"),
			Peer:      "10.0.0.0/8", PeerType: PeerCIDR, Stateless: rapid.Bool().Draw(t, "stateless"),
			Ports: ports("destination"), SourcePorts: ports("source"), Description: rapid.SampledFrom([]string{"", "web"}).Draw(t, "description"),
		}
		got := map[string]SecurityRule{}
		if want.Direction == DirectionIngress {
			got["list"] = ingressFromSDK(reread[core.IngressSecurityRule](t, ingressToSDK(want)))
		} else {
			got["list"] = egressFromSDK(reread[core.EgressSecurityRule](t, egressToSDK(want)))
		}
		got["group"] = groupRuleFromSDK(reread[core.SecurityRule](t, addRuleToSDK(want)))
		changed := want
		changed.ID = "0A1B2C"
		got["changed rule of a group"] = groupRuleFromSDK(reread[core.SecurityRule](t, updateRuleToSDK(changed)))
		got["changed rule of a group"] = func(r SecurityRule) SecurityRule { r.ID = ""; return r }(got["changed rule of a group"])
		for where, rule := range got {
			if !rule.FromCloud() {
				t.Errorf("%s: the rule is not known to be read", where)
			}
			rule.origin = nil
			if rule != want {
				t.Errorf("%s: %+v is read as %+v", where, want, rule)
			}
		}
	})
}

// An update sends both sets of rules always: one that is left out would stay, one that is empty has to be emptied.
func TestUpdateSecurityListSendsBothSets(t *testing.T) {
	c, service := serve(t, func(sent) reply {
		return reply{status: 200, body: map[string]any{"id": "l", "ingressSecurityRules": []any{}, "egressSecurityRules": []any{}}, headers: []string{"etag", "new"}}
	})
	list, err := c.Network().UpdateSecurityList(t.Context(), "l", nil, nil, "old")
	if err != nil || list.ETag != "new" {
		t.Fatalf("got %+v, error %v", list, err)
	}
	got := service.received()[0]
	want := map[string]any{"ingressSecurityRules": []any{}, "egressSecurityRules": []any{}}
	if diff := cmp.Diff(want, got.Body); diff != "" || got.Header.Get("If-Match") != "old" {
		t.Errorf("if-match %q, body (-want +got):\n%s", got.Header.Get("If-Match"), diff)
	}
}

// C012: an answer without rules is not a list without rules.
func TestSecurityListWithoutRulesIsNoAnswer(t *testing.T) {
	for _, missing := range []string{"ingressSecurityRules", "egressSecurityRules"} {
		for _, null := range []bool{false, true} {
			body := map[string]any{"id": "l", "ingressSecurityRules": []any{}, "egressSecurityRules": []any{}}
			delete(body, missing)
			if null {
				body[missing] = nil
			}
			c, _ := serve(t, func(sent) reply { return reply{status: 200, body: body} })
			if list, err := c.Network().GetSecurityList(t.Context(), "l"); !errors.Is(err, ErrIncompleteList) {
				t.Errorf("without %s: %+v, error %v", missing, list, err)
			}
		}
	}
}

func TestOperationLabelsOfSecurityRules(t *testing.T) {
	c, _ := serve(t, func(sent) reply { return reply{status: 404, body: map[string]any{"code": "NotAuthorizedOrNotFound"}} })
	n := c.Network()
	ctx := t.Context()
	got := map[string]string{
		"GetSecurityList":          counted(t, func() { _, _ = n.GetSecurityList(ctx, "l") }),
		"ListSecurityLists":        counted(t, func() { _, _ = n.ListSecurityLists(ctx, "c", "v") }),
		"UpdateSecurityList":       counted(t, func() { _, _ = n.UpdateSecurityList(ctx, "l", nil, nil, "e") }),
		"GetSecurityGroup":         counted(t, func() { _, _ = n.GetSecurityGroup(ctx, "g") }),
		"ListSecurityGroups":       counted(t, func() { _, _ = n.ListSecurityGroups(ctx, "c", "v") }),
		"CreateSecurityGroup":      counted(t, func() { _, _ = n.CreateSecurityGroup(ctx, SecurityGroup{}, "t") }),
		"DeleteSecurityGroup":      counted(t, func() { _ = n.DeleteSecurityGroup(ctx, "g", "e") }),
		"UpdateSecurityGroupTags":  counted(t, func() { _, _ = n.UpdateSecurityGroupTags(ctx, "g", Tags{}, "e") }),
		"ListSecurityGroupRules":   counted(t, func() { _, _ = n.ListSecurityGroupRules(ctx, "g") }),
		"AddSecurityGroupRules":    counted(t, func() { _, _ = n.AddSecurityGroupRules(ctx, "g", make([]SecurityRule, 1)) }),
		"UpdateSecurityGroupRules": counted(t, func() { _ = n.UpdateSecurityGroupRules(ctx, "g", make([]SecurityRule, 1)) }),
		"RemoveSecurityGroupRules": counted(t, func() { _ = n.RemoveSecurityGroupRules(ctx, "g", []string{"r"}) }),
	}
	want := map[string]string{
		"GetSecurityList": "security_list get", "ListSecurityLists": "security_list list", "UpdateSecurityList": "security_list update",
		"GetSecurityGroup": "network_security_groups get", "ListSecurityGroups": "network_security_groups list",
		"CreateSecurityGroup": "network_security_groups create", "DeleteSecurityGroup": "network_security_groups delete",
		"UpdateSecurityGroupTags": "network_security_groups update",
		"ListSecurityGroupRules":  "network_security_group_rules list", "AddSecurityGroupRules": "network_security_group_rules create",
		"UpdateSecurityGroupRules": "network_security_group_rules update", "RemoveSecurityGroupRules": "network_security_group_rules delete",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("labels (-want +got):\n%s", diff)
	}
}
