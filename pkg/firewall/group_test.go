// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package firewall_test

import (
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/oracle/oci-go-sdk/v65/core"

	"github.com/oracle/oci-cloud-controller-manager/pkg/firewall"
	"github.com/oracle/oci-cloud-controller-manager/pkg/oci"
	"github.com/oracle/oci-cloud-controller-manager/test/ocisim"
)

// Rules of an NSG are one owner's each; those of others stay.
func TestRulesOfAGroup(t *testing.T) {
	simulate(t, func(r *rig) {
		front := r.region.AddSecurityGroup(ocisim.SecurityGroup{VCN: r.vcn, Name: "front"})
		before := r.contents(r.group)
		shared := "ingress TCP 10256 from " + front
		a := claim("a", r.group, shared, "ingress TCP 30080 from "+front, "ingress UDP 30053 from 198.51.100.0/24", "ingress TCP 22 from 0.0.0.0/0")
		b := claim("b", r.group, shared)
		r.born("a")
		r.born("b")
		r.sync(a)
		r.sync(b)
		// The rule to port 22 is somebody else's, and does.
		r.hasOurs("both", r.group, shared+" of a", shared+" of b", "ingress TCP 30080 from "+front+" of a", "ingress UDP 30053 from 198.51.100.0/24 of a")

		r.region.ResetCalls()
		r.sync(a)
		r.sync(b)
		if n := r.calls(""); n != 0 {
			t.Errorf("calls for unchanged claims: %v", r.region.Counts())
		}
		r.sync(claim("a", r.group, "ingress TCP 30081 from "+front))
		r.hasOurs("changed", r.group, "ingress TCP 30081 from "+front+" of a", shared+" of b")
		r.restart()
		r.release(claim("a", r.group))
		r.hasOurs("a is gone", r.group, shared+" of b")
		r.release(claim("b", r.group))
		r.same("all are gone", r.group, before)
	})
}

// More rules than one call takes, and a limit that leaves no room for the old and the new ones at the same time.
func TestLimitOfAGroup(t *testing.T) {
	simulate(t, func(r *rig) {
		r.born("a")
		many := func(first, n int) firewall.Claim {
			c := firewall.Claim{Owner: "a", Rules: map[firewall.Target][]firewall.Rule{}}
			for i := range n {
				c.Rules[r.group] = append(c.Rules[r.group], firewall.Rule{
					Direction: firewall.Ingress, Protocol: firewall.TCP, Peer: "10.0.0.0/8", Port: first + i,
				})
			}
			return c
		}
		r.sync(many(1000, 100))
		var limit *firewall.LimitError
		if _, err := r.m.Check(r.ctx, many(2000, 100)); !errors.As(err, &limit) || limit.Limit != 120 || limit.Have != 101 || limit.Need != 201 || limit.Target != r.group {
			t.Errorf("error %v", err)
		}
		if _, err := r.m.Settle(r.ctx, many(2000, 100)); err != nil {
			t.Errorf("settled at once: error %v", err)
		}
		if got := r.ours(r.group); len(got) != 100 || !strings.Contains(got[0], "2000") {
			t.Errorf("%d rules %v", len(got), got)
		}
		r.release(many(2000, 1))
		r.hasOurs("released", r.group)
	})
}

// C084's kind of trouble: answers are lost, rules are removed by others at the same time, the service fails now and then.
// No rule is there twice, none is missing.
func TestTroubleWithAGroup(t *testing.T) {
	for name, fault := range map[string]ocisim.Fault{
		"answer of add lost":     {Operation: "AddNetworkSecurityGroupSecurityRules", Drop: ocisim.AfterApply, Nth: 1},
		"request of add lost":    {Operation: "AddNetworkSecurityGroupSecurityRules", Drop: ocisim.BeforeApply, Nth: 1},
		"add fails":              {Operation: "AddNetworkSecurityGroupSecurityRules", Status: 500, Nth: 1, Times: 2},
		"add fails, but applied": {Operation: "AddNetworkSecurityGroupSecurityRules", Status: 503, Applied: true, Nth: 1},
		"answer of removal lost": {Operation: "RemoveNetworkSecurityGroupSecurityRules", Drop: ocisim.AfterApply, Nth: 1},
		"removal fails":          {Operation: "RemoveNetworkSecurityGroupSecurityRules", Status: 500, Nth: 1, Times: 2},
	} {
		t.Run(name, func(t *testing.T) {
			simulate(t, func(r *rig) {
				before := r.contents(r.group)
				r.region.Fault(fault)
				r.born("a")
				r.sync(claim("a", r.group, "ingress TCP 80 from 0.0.0.0/0", "ingress TCP 81 from 0.0.0.0/0"))
				r.hasOurs("added", r.group, "ingress TCP 80 from 0.0.0.0/0 of a", "ingress TCP 81 from 0.0.0.0/0 of a")
				r.sync(claim("a", r.group, "ingress TCP 80 from 0.0.0.0/0", "ingress TCP 82 from 0.0.0.0/0"))
				r.hasOurs("changed", r.group, "ingress TCP 80 from 0.0.0.0/0 of a", "ingress TCP 82 from 0.0.0.0/0 of a")
				r.release(claim("a", r.group))
				r.same("released", r.group, before)
			})
		})
	}
}

// One owner with a rule that the cloud refuses does not hold up the others that come at the same time.
func TestRefusedRuleOfOneOwner(t *testing.T) {
	simulate(t, func(r *rig) {
		r.region.Fault(ocisim.Fault{Operation: "ListNetworkSecurityGroupSecurityRules", Delay: time.Second})
		r.born("good")
		r.born("bad")
		r.born("better")
		nowhere := "ocid1.networksecuritygroup.oc1.iad.nowhere"
		claims := []firewall.Claim{
			claim("good", r.group, "ingress TCP 80 from 0.0.0.0/0"), claim("bad", r.group, "ingress TCP 81 from "+nowhere), claim("better", r.group, "ingress TCP 82 from 0.0.0.0/0"),
		}
		errs := make([]error, len(claims))
		var wg sync.WaitGroup
		for i, c := range claims {
			wg.Go(func() { errs[i] = r.m.Open(r.ctx, c) })
		}
		wg.Wait()
		var access *firewall.AccessError
		if errs[0] != nil || errs[2] != nil || !errors.As(errs[1], &access) {
			t.Errorf("errors %v", errs)
		}
		r.hasOurs("the others", r.group, "ingress TCP 80 from 0.0.0.0/0 of good", "ingress TCP 82 from 0.0.0.0/0 of better")
	})
}

// W8: an NSG that an owner does not use any more is found by its mark after a restart. Rules of owners that are not known
// stay: they may be another cluster's.
func TestSweepOfGroups(t *testing.T) {
	simulate(t, func(r *rig) {
		before := r.contents(r.group)
		r.born("a")
		for range 2 {
			if err := r.m.MarkBackendGroup(r.ctx, r.group.ID); err != nil {
				t.Fatal(err)
			}
		}
		if n := r.calls(""); n != 2 {
			t.Errorf("%d calls to mark a group twice", n)
		}
		r.sync(claim("a", r.group, "ingress TCP 80 from 0.0.0.0/0"))
		if _, err := r.region.Foreign().AddRules(r.group.ID, core.SecurityRule{
			Direction: core.SecurityRuleDirectionIngress, Protocol: pointer("6"), Source: pointer("0.0.0.0/0"), SourceType: core.SecurityRuleSourceTypeCidrBlock,
			IsStateless: pointer(false), TcpOptions: &core.TcpOptions{DestinationPortRange: &core.PortRange{Min: pointer(90), Max: pointer(90)}}, Description: pointer("service-uid-elsewhere"),
		}); err != nil {
			t.Fatal(err)
		}
		r.restart()
		r.sweep(firewall.NSG)
		r.hasOurs("a has not settled", r.group, "ingress TCP 80 from 0.0.0.0/0 of a", "ingress TCP 90 from 0.0.0.0/0 of elsewhere")
		r.sync(claim("a", r.front))
		r.sweep(firewall.NSG)
		r.hasOurs("a has left", r.group, "ingress TCP 90 from 0.0.0.0/0 of elsewhere")
		if !strings.HasPrefix(before, "[") {
			t.Error(before)
		}
	})
}

// The mark leaves all other tags alone, also those that somebody changes at the same time.
func TestMarkOfBackendGroups(t *testing.T) {
	simulate(t, func(r *rig) {
		if err := r.region.Foreign().SecurityGroup(r.group.ID, func(g *core.NetworkSecurityGroup) {
			g.FreeformTags = nil // W47
			g.DefinedTags = map[string]map[string]any{"cost": {"center": "42"}}
		}); err != nil {
			t.Fatal(err)
		}
		r.region.Foreign().Before(ocisim.Trigger{Operation: "UpdateNetworkSecurityGroup"}, func(f *ocisim.Foreign, _ ocisim.Call) {
			_ = f.SecurityGroup(r.group.ID, func(g *core.NetworkSecurityGroup) { g.FreeformTags = map[string]string{"team": "web"} })
		})
		if err := r.m.MarkBackendGroup(r.ctx, r.group.ID); err != nil {
			t.Fatal(err)
		}
		g, _ := r.region.SecurityGroup(r.group.ID)
		if diff := cmp.Diff(map[string]string{"team": "web", "ManagedBy": "CCM"}, g.FreeformTags); diff != "" || g.DefinedTags["cost"]["center"] != "42" {
			t.Errorf("tags %v (-want +got):\n%s", g.DefinedTags, diff)
		}
	})
}

func (r *rig) serviceGroup(owner string) firewall.ServiceGroup {
	return firewall.ServiceGroup{Owner: owner, Namespace: "shop", Name: "web", CompartmentID: r.compartment, VCNID: r.vcn}
}

// managed are the NSGs with the tags of a Service's own.
func (r *rig) managed(owner string) []core.NetworkSecurityGroup {
	var out []core.NetworkSecurityGroup
	for _, g := range r.region.SecurityGroups() {
		if g.FreeformTags["ServiceUid"] == owner {
			out = append(out, g)
		}
	}
	return out
}

// ensureGroup finds or makes the NSG of a Service.
func ensureGroup(r *rig, m *firewall.Manager, g firewall.ServiceGroup) (string, error) {
	id, err := m.FindGroup(r.ctx, g, nil)
	if err == nil && id == "" {
		id, err = m.CreateGroup(r.ctx, g)
	}
	return id, err
}

func TestLifeOfAManagedGroup(t *testing.T) {
	simulate(t, func(r *rig) {
		g := r.serviceGroup("uid-1")
		id, err := ensureGroup(r, r.m, g)
		if err != nil {
			t.Fatal(err)
		}
		made := r.managed("uid-1")
		if len(made) != 1 || *made[0].Id != id || *made[0].DisplayName != "shop/web/uid-1/nsg" || *made[0].VcnId != r.vcn || *made[0].CompartmentId != r.compartment {
			t.Fatalf("made %+v", made)
		}
		if diff := cmp.Diff(map[string]string{"CreatedBy": "CCM", "ServiceUid": "uid-1"}, made[0].FreeformTags); diff != "" {
			t.Errorf("the existing implementation would not recognise these tags (-want +got):\n%s", diff)
		}
		// W43: other tags, and another name, do not hide it; W44: it is found on the balancer, or in the list, or not at all.
		if err := r.region.Foreign().SecurityGroup(id, func(x *core.NetworkSecurityGroup) {
			x.FreeformTags["cost"], x.DisplayName = "42", pointer("renamed")
		}); err != nil {
			t.Fatal(err)
		}
		r.restart()
		if found, err := r.m.FindGroup(r.ctx, g, nil); found != id || err != nil {
			t.Errorf("found %q, error %v, want %s", found, err, id)
		}
		r.region.ResetCalls()
		if found, err := r.m.FindGroup(r.ctx, g, []string{r.group.ID, id}); found != id || err != nil || r.calls("") != 0 {
			t.Errorf("found %q, error %v, calls %v", found, err, r.region.Counts())
		}
		if found, err := r.m.FindGroup(r.ctx, r.serviceGroup("uid-2"), []string{r.group.ID, id}); found != "" || err != nil {
			t.Errorf("found %q for another Service, error %v", found, err)
		}
		if err := r.m.DeleteGroup(r.ctx, r.serviceGroup("uid-2"), id); !errors.Is(err, firewall.ErrNotOurs) {
			t.Errorf("deletion by another Service: error %v", err)
		}
		// With VNICs in it, it waits; when they are gone, it goes. Twice is as good as once.
		subnet := r.region.AddSubnet(ocisim.Subnet{VCN: r.vcn, Name: "nodes", CIDR: "10.0.8.0/21"})
		r.region.AddInstance(ocisim.Instance{Compartment: r.compartment, Name: "node", VNIC: ocisim.VNIC{Subnet: subnet, SecurityGroups: []string{id}}})
		if err := r.m.DeleteGroup(r.ctx, g, id); !errors.Is(err, oci.ErrGroupInUse) {
			t.Errorf("deletion with a VNIC: error %v", err)
		}
		if err := r.region.Foreign().TerminateInstance(*r.region.Instances()[0].Id); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Hour)
		for range 2 {
			if err := r.m.DeleteGroup(r.ctx, g, id); err != nil {
				t.Errorf("deletion: error %v", err)
			}
		}
		if left := r.managed("uid-1"); len(left) != 0 {
			t.Errorf("left %v", left)
		}
		// Made again, although the retry token of before is used up; and once more in a new process.
		for range 3 {
			r.restart()
			again, err := ensureGroup(r, r.m, g)
			if err != nil || len(r.managed("uid-1")) != 1 {
				t.Fatalf("made again: %q, error %v, %d groups", again, err, len(r.managed("uid-1")))
			}
			if err := r.m.DeleteGroup(r.ctx, g, again); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// Of two groups for one Service, as the existing implementation left them (W43), the attached one counts, else the newest.
func TestTwoManagedGroups(t *testing.T) {
	simulate(t, func(r *rig) {
		var made []string
		for _, extra := range []string{"", "x"} {
			tags := map[string]string{"CreatedBy": "CCM", "ServiceUid": "uid-1"}
			if extra != "" {
				tags[extra] = extra
			}
			made = append(made, r.region.AddSecurityGroup(ocisim.SecurityGroup{VCN: r.vcn, Name: "g" + extra, Tags: ocisim.Tags{Freeform: tags}}))
			time.Sleep(time.Minute)
		}
		if id, err := r.m.FindGroup(r.ctx, r.serviceGroup("uid-1"), nil); id != made[1] || err != nil {
			t.Errorf("found %s, error %v, want the newest, %s", id, err, made[1])
		}
		r.restart()
		if id, err := r.m.FindGroup(r.ctx, r.serviceGroup("uid-1"), []string{made[0]}); id != made[0] || err != nil {
			t.Errorf("found %s, error %v, want the attached one, %s", id, err, made[0])
		}
	})
}

// C051, W44: one permission after the other is missing; each time the error names the policy, no second group is made, and
// it works when the permission is there.
func TestManagedGroupWithoutPolicy(t *testing.T) {
	denials := map[string]struct {
		ocisim.Policy
		want string
	}{
		"list groups":  {ocisim.Policy{Verb: ocisim.Inspect, ResourceType: "network-security-groups"}, "manage network-security-groups"},
		"create group": {ocisim.Policy{Verb: ocisim.Manage, ResourceType: "network-security-groups"}, "manage network-security-groups"},
		"read VCN":     {ocisim.Policy{Verb: ocisim.Inspect, ResourceType: "vcns"}, "manage vcns"},
	}
	for name, d := range denials {
		for _, exists := range []bool{false, true} {
			t.Run(fmt.Sprint(name, ", exists: ", exists), func(t *testing.T) {
				simulate(t, func(r *rig) {
					if exists {
						if _, err := ensureGroup(r, r.m, r.serviceGroup("uid-1")); err != nil {
							t.Fatal(err)
						}
						r.restart()
					}
					allow := r.region.Deny(d.Policy)
					_, err := ensureGroup(r, r.m, r.serviceGroup("uid-1"))
					var access *firewall.AccessError
					if denied := !exists || name == "list groups"; denied != (err != nil) || denied && (!errors.As(err, &access) || !strings.Contains(access.Statement, d.want)) {
						t.Errorf("error %v", err)
					}
					if got := len(r.managed("uid-1")); got > 1 || got == 0 && exists {
						t.Errorf("%d groups", got)
					}
					allow()
					if _, err := ensureGroup(r, r.m, r.serviceGroup("uid-1")); err != nil || len(r.managed("uid-1")) != 1 {
						t.Errorf("%d groups, error %v", len(r.managed("uid-1")), err)
					}
				})
			})
		}
	}
}

// A group that is attached, but cannot be read, may be the Service's.
func TestUnreadableAttachedGroup(t *testing.T) {
	simulate(t, func(r *rig) {
		elsewhere := r.region.AddCompartment(ocisim.Compartment{Name: "elsewhere"})
		other := r.region.AddSecurityGroup(ocisim.SecurityGroup{Compartment: elsewhere, VCN: r.vcn, Name: "other"})
		r.region.Fault(ocisim.Fault{Operation: "GetNetworkSecurityGroup", Status: 404, Nth: 1})
		g := r.serviceGroup("uid-1")
		g.CompartmentID = r.compartment
		g.VCNID = r.region.AddVCN(ocisim.VCN{Compartment: r.compartment, Name: "second", CIDRs: []string{"10.9.0.0/16"}})
		if id, err := r.m.FindGroup(r.ctx, g, []string{other}); id != "" || !errors.Is(err, oci.ErrNotFound) {
			t.Errorf("found %q, error %v", id, err)
		}
		if id, err := r.m.FindGroup(r.ctx, g, []string{other}); id != "" || err != nil {
			t.Errorf("readable: found %q, error %v", id, err)
		}
	})
}

// Services that look for their groups at the same time share the list.
func TestGroupListsAreShared(t *testing.T) {
	simulate(t, func(r *rig) {
		want := map[string]string{}
		for i := range 30 {
			uid := fmt.Sprint("uid-", i)
			want[uid] = r.region.AddSecurityGroup(ocisim.SecurityGroup{VCN: r.vcn, Name: uid, Tags: ocisim.Tags{Freeform: map[string]string{"CreatedBy": "CCM", "ServiceUid": uid}}})
		}
		var mu sync.Mutex
		got := map[string]string{}
		var wg sync.WaitGroup
		for uid := range maps.Keys(want) {
			wg.Go(func() {
				id, err := r.m.FindGroup(r.ctx, r.serviceGroup(uid), nil)
				mu.Lock()
				defer mu.Unlock()
				if got[uid] = id; err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if diff := cmp.Diff(want, got); diff != "" || r.calls("") != 1 {
			t.Errorf("%d calls, groups (-want +got):\n%s", r.calls(""), diff)
		}
	})
}

// The name is cut where the existing implementation cuts it, and the group is found all the same.
func TestLongNameOfAManagedGroup(t *testing.T) {
	simulate(t, func(r *rig) {
		g := r.serviceGroup("uid-1")
		g.Name = strings.Repeat("x", 300)
		if n := len(g.DisplayName()); n != 255 {
			t.Errorf("%d characters", n)
		}
		if _, err := ensureGroup(r, r.m, g); err != nil {
			t.Fatal(err)
		}
		r.restart()
		if _, err := ensureGroup(r, r.m, g); err != nil || len(r.managed("uid-1")) != 1 {
			t.Errorf("%d groups, error %v", len(r.managed("uid-1")), err)
		}
	})
}
