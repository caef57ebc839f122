// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package oci_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	"github.com/oracle/oci-go-sdk/v65/core"

	"github.com/oracle/oci-cloud-controller-manager/pkg/oci"
	"github.com/oracle/oci-cloud-controller-manager/test/ocisim"
)

func newRule(direction string, port int) oci.SecurityRule {
	return oci.SecurityRule{
		Direction: direction, Protocol: oci.ProtocolTCP, Peer: "10.0.0.0/8", PeerType: oci.PeerCIDR,
		Ports: oci.PortRange{Min: port, Max: port}, Description: "ours",
	}
}

func TestSecurityListsOfARegion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		region := ocisim.New(ocisim.Options{Seed: 3, PageSize: 2, ShortPages: 0.4})
		p := build(region)
		icmp := 3
		id := region.AddSecurityList(ocisim.SecurityList{VCN: p.vcn, Name: "rules", Ingress: []ocisim.SecurityRule{
			{Protocol: "tcp", Ports: "22", Description: "ssh"}, {Protocol: "icmp", ICMPType: &icmp, ICMPCode: &icmp}, {Stateless: true, Peer: "10.0.0.0/16"},
			{Protocol: "udp", Ports: "1000-2000", SourcePorts: "53"}, {Protocol: "47"},
		}, Egress: []ocisim.SecurityRule{{}, {Protocol: "tcp", Ports: "443", Peer: "all-iad-services-in-oracle-services-network"}}})
		for i := range 5 {
			region.AddSecurityList(ocisim.SecurityList{VCN: p.vcn, Name: fmt.Sprint("other-", i)})
		}
		n := connect(t, region).Network()
		ctx := t.Context()

		all, err := n.ListSecurityLists(ctx, p.compartment, p.vcn)
		sameIDs(t, "security lists", err, ids(region.SecurityLists(), func(l core.SecurityList) *string { return l.Id }), ids(all, func(l *oci.SecurityList) *string { return &l.ID }))
		before, _ := region.SecurityList(id)
		list, err := n.GetSecurityList(ctx, id)
		if err != nil || list.ETag != region.ETag(id) || list.CompartmentID != p.compartment || list.VCNID != p.vcn || len(list.Ingress) != 5 || len(list.Egress) != 2 {
			t.Fatalf("list %+v, error %v", list, err)
		}
		if r := list.Ingress[3]; r.Protocol != oci.ProtocolUDP || r.Ports != (oci.PortRange{Min: 1000, Max: 2000}) || r.SourcePorts != (oci.PortRange{Min: 53, Max: 53}) {
			t.Errorf("rule %+v", r)
		}

		// Adding one to each set and taking them out again leaves everything as it was, whatever the rules are.
		more, err := n.UpdateSecurityList(ctx, id, append(list.Ingress, newRule(oci.DirectionIngress, 80)), append(list.Egress, newRule(oci.DirectionEgress, 30080)), list.ETag)
		if err != nil || more.ETag != region.ETag(id) || more.ETag == list.ETag || len(more.Ingress) != 6 || len(more.Egress) != 3 {
			t.Fatalf("updated list %+v, error %v", more, err)
		}
		if _, err := n.UpdateSecurityList(ctx, id, list.Ingress, list.Egress, list.ETag); !errors.Is(err, oci.ErrPrecondition) || errors.Is(err, oci.ErrGroupInUse) {
			t.Errorf("update under the ETag of before: error %v", err)
		}
		if _, err := n.UpdateSecurityList(ctx, id, more.Ingress[:5], more.Egress[:2], more.ETag); err != nil {
			t.Fatal(err)
		}
		after, _ := region.SecurityList(id)
		if diff := cmp.Diff(before, after); diff != "" {
			t.Errorf("list (-before +after):\n%s", diff)
		}
	})
}

// C012 is not tested here: what may be left out of a rule is covered by TestRulesOfOthersSurvive.
func TestSecurityGroupsOfARegion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		region := ocisim.New(ocisim.Options{Seed: 4, PageSize: 7, ShortPages: 0.4})
		p := build(region)
		n := connect(t, region).Network()
		ctx := t.Context()
		token := oci.RetryToken("create", "cluster", "owner", "body")
		wanted := oci.SecurityGroup{CompartmentID: p.compartment, VCNID: p.vcn, DisplayName: "web", Tags: oci.Tags{Freeform: map[string]string{"a": "b"}}}
		made, err := n.CreateSecurityGroup(ctx, wanted, token)
		if err != nil || made.ID == "" || made.ETag != region.ETag(made.ID) || made.DisplayName != "web" || made.Freeform["a"] != "b" {
			t.Fatalf("made %+v, error %v", made, err)
		}
		if again, err := n.CreateSecurityGroup(ctx, wanted, token); err != nil || again.ID != made.ID {
			t.Errorf("made %+v under the same token, error %v", again, err)
		}
		all, err := n.ListSecurityGroups(ctx, p.compartment, p.vcn)
		sameIDs(t, "groups", err, []string{p.group, made.ID}, ids(all, func(g *oci.SecurityGroup) *string { return &g.ID }))
		tagged, err := n.UpdateSecurityGroupTags(ctx, made.ID, oci.Tags{Freeform: map[string]string{"a": "b", "c": "d"}}, made.ETag)
		if err != nil || tagged.Freeform["c"] != "d" || tagged.ETag == made.ETag || tagged.DisplayName != "web" {
			t.Errorf("tagged %+v, error %v", tagged, err)
		}
		if _, err := n.UpdateSecurityGroupTags(ctx, made.ID, oci.Tags{}, made.ETag); !errors.Is(err, oci.ErrPrecondition) {
			t.Errorf("update under the ETag of before: error %v", err)
		}
		read, err := n.GetSecurityGroup(ctx, made.ID)
		if err != nil || read.ETag != tagged.ETag || read.VCNID != p.vcn || read.CompartmentID != p.compartment {
			t.Errorf("read %+v, error %v", read, err)
		}

		// Rules, in more calls than one.
		var rules []oci.SecurityRule
		for port := range 60 {
			rules = append(rules, newRule(oci.DirectionIngress, 1+port))
		}
		rules[7].Peer, rules[7].PeerType = p.group, oci.PeerGroup
		rules[8].Direction = oci.DirectionEgress
		added, err := n.AddSecurityGroupRules(ctx, made.ID, rules)
		if err != nil || len(added) != 60 {
			t.Fatalf("%d rules, error %v", len(added), err)
		}
		if r := added[7]; r.ID == "" || r.Peer != p.group || r.PeerType != oci.PeerGroup || r.Description != "ours" || r.Ports != rules[7].Ports || r.Invalid {
			t.Errorf("rule %+v", r)
		}
		if got := region.Counts()["virtualnetwork.AddNetworkSecurityGroupSecurityRules"] + region.Counts()["core.AddNetworkSecurityGroupSecurityRules"]; got != 3 {
			t.Errorf("%d calls to add 60 rules in batches of 25: %v", got, region.Counts())
		}
		added[8].Ports = oci.PortRange{Min: 9000, Max: 9001}
		if err := n.UpdateSecurityGroupRules(ctx, made.ID, added[:30]); err != nil {
			t.Error(err)
		}
		listed, err := n.ListSecurityGroupRules(ctx, made.ID)
		if err != nil || len(listed) != 60 {
			t.Fatalf("%d rules, error %v", len(listed), err)
		}
		if i := slices.IndexFunc(listed, func(r oci.SecurityRule) bool { return r.ID == added[8].ID }); i < 0 || listed[i].Ports != added[8].Ports || listed[i].Direction != oci.DirectionEgress {
			t.Errorf("changed rule %d of %+v", i, listed)
		}
		var some []string
		for _, r := range listed[:40] {
			some = append(some, r.ID)
		}
		if err := n.RemoveSecurityGroupRules(ctx, made.ID, some); err != nil || len(region.GroupRules(made.ID)) != 20 {
			t.Errorf("%d rules left, error %v", len(region.GroupRules(made.ID)), err)
		}

		// A group that is the peer of a rule can go; the rule is not valid then.
		if err := n.DeleteSecurityGroup(ctx, p.group, "outdated"); !errors.Is(err, oci.ErrPrecondition) || errors.Is(err, oci.ErrGroupInUse) {
			t.Errorf("delete under another ETag: error %v", err)
		}
		if err := n.DeleteSecurityGroup(ctx, made.ID, read.ETag); err != nil {
			t.Error(err)
		}
		if _, err := n.GetSecurityGroup(ctx, made.ID); !errors.Is(err, oci.ErrNotFound) {
			t.Errorf("read of a deleted group: error %v", err)
		}
		if _, err := n.CreateSecurityGroup(ctx, wanted, token); !errors.Is(err, oci.ErrInvalidRetryToken) {
			t.Errorf("create under the token of a deleted group: error %v", err)
		}
		region.AddInstance(ocisim.Instance{Compartment: p.compartment, Name: "node", VNIC: ocisim.VNIC{Subnet: "public", SecurityGroups: []string{p.group}}})
		if err := n.DeleteSecurityGroup(ctx, p.group, ""); !errors.Is(err, oci.ErrGroupInUse) {
			t.Errorf("delete of a group with a VNIC: error %v", err)
		}
	})
}

// Adding rules is not repeated blindly: after a lost answer there would be each of them twice.
func TestLostAnswerOfAddedRules(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		region := ocisim.New(ocisim.Options{Seed: 5})
		p := build(region)
		region.Fault(ocisim.Fault{Operation: "AddNetworkSecurityGroupSecurityRules", Drop: ocisim.AfterApply, Nth: 1})
		_, err := connect(t, region).Network().AddSecurityGroupRules(t.Context(), p.group, []oci.SecurityRule{newRule(oci.DirectionIngress, 80)})
		if err == nil || len(region.GroupRules(p.group)) != 1 {
			t.Errorf("error %v, rules %v", err, region.GroupRules(p.group))
		}
	})
}
