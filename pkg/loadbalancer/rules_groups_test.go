// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package loadbalancer_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/oracle/oci-go-sdk/v65/core"
	v1 "k8s.io/api/core/v1"

	"github.com/oracle/oci-cloud-controller-manager/pkg/oci"
	"github.com/oracle/oci-cloud-controller-manager/test/ocisim"
)

// managed returns the network security group that was made for a Service; nil if there is none. More than one is a failure.
func (r *rig) managed(svc *v1.Service) *core.NetworkSecurityGroup {
	r.Helper()
	var found []core.NetworkSecurityGroup
	for _, g := range r.region.SecurityGroups() {
		if g.FreeformTags["ServiceUid"] == string(svc.UID) && g.LifecycleState == core.NetworkSecurityGroupLifecycleStateAvailable {
			found = append(found, g)
		}
	}
	switch len(found) {
	case 0:
		return nil
	case 1:
		return &found[0]
	}
	r.Fatalf("%d groups of %s", len(found), svc.Name)
	return nil
}

// inNSGMode asks for rules of groups.
func (r *rig) inNSGMode(svc *v1.Service) {
	r.edit(svc, func(s *v1.Service) {
		s.Annotations[ruleMode], s.Annotations[backendNSG] = "NSG", r.ruled.backends
	})
}

// owned puts the description of a Service's rules behind rules.
func owned(svc *v1.Service, rules ...string) []string {
	out := make([]string, len(rules))
	for i, rule := range rules {
		out[i] = rule + " (service-uid-" + string(svc.UID) + ")"
	}
	slices.Sort(out)
	return out
}

// The life of a Service in mode NSG.
func TestRulesOfGroups(t *testing.T) {
	withRulesOnBoth(t, ocisim.Options{Seed: 91}, func(r *rig, kind oci.BalancerKind) {
		nodes := []*v1.Node{r.worker("a", r.ruled.workers)}
		svc := r.service("web", kind, 80)
		r.inNSGMode(svc)
		key := prefixCommon + "oci-network-security-groups"
		if kind == oci.KindNLB {
			key = prefixNLB + "oci-network-security-groups"
		}
		r.edit(svc, annotate(key, r.groups[0]))
		r.region.ResetCalls()
		svc = r.mustSync(svc, nodes)
		r.equal("writes", written(r.region.Calls()), []string{
			"CreateNetworkSecurityGroup", "UpdateNetworkSecurityGroup", "AddNetworkSecurityGroupSecurityRules", "AddNetworkSecurityGroupSecurityRules", creation(kind),
		})
		g := r.managed(svc)
		if g == nil {
			r.Fatal("no group")
		}
		r.equal("name", *g.DisplayName, "shop/web/uid-web/nsg")
		r.equal("tags", g.FreeformTags, map[string]string{"CreatedBy": "CCM", "ServiceUid": "uid-web"})
		in := func() []string { return slices.Sorted(slices.Values(r.only().NSGIDs)) }
		r.equal("groups of the balancer", in(), slices.Sorted(slices.Values([]string{*g.Id, r.groups[0]})))
		r.equal("rules of the group", r.groupRules(*g.Id), owned(svc, "in tcp 80 from 0.0.0.0/0", "out tcp 30080 to "+r.ruled.backends, "out tcp 10256 to "+r.ruled.backends))
		backend := append(owned(svc, "in tcp 30080 from "+*g.Id, "in tcp 10256 from "+*g.Id), r.ruled.start[r.ruled.backends])
		slices.Sort(backend)
		r.equal("rules of the nodes' group", r.groupRules(r.ruled.backends), backend)
		marked, _ := r.region.SecurityGroup(r.ruled.backends)
		r.equal("tag of the nodes' group", marked.FreeformTags, map[string]string{"ManagedBy": "CCM"})
		r.unchanged(svc, nodes)
		r.restart()
		svc = r.mustSync(svc, nodes)
		r.unchanged(svc, nodes)

		r.edit(svc, func(s *v1.Service) { s.Spec.Ports[0].NodePort = 31080 })
		svc = r.mustSync(svc, nodes)
		r.equal("rules of the group", r.groupRules(*g.Id), owned(svc, "in tcp 80 from 0.0.0.0/0", "out tcp 31080 to "+r.ruled.backends, "out tcp 10256 to "+r.ruled.backends))
		r.noEvents()
		r.remove(svc)
		r.asAtStart()
		r.equal("balancers", len(r.live()), 0)
	})
}

// The group goes after the balancer, however long its VNICs take; and a process that starts in between finds it.
func TestGroupGoesWithTheService(t *testing.T) {
	withRulesOnBoth(t, ocisim.Options{Seed: 92}, func(r *rig, kind oci.BalancerKind) {
		nodes := []*v1.Node{r.worker("a", r.ruled.workers)}
		for _, recorded := range []bool{true, false} {
			svc := r.serviceUID("web", "uid-web", kind, 80)
			r.inNSGMode(svc)
			svc = r.mustSync(svc, nodes)
			r.equal("group", r.managed(svc) != nil, true)
			if !recorded {
				r.edit(svc, func(s *v1.Service) {
					delete(s.Annotations, "oci.oraclecloud.com/last-applied")
					delete(s.Annotations, "oci.oraclecloud.com/load-balancer-ocid")
				})
			}
			restore := r.region.Deny(ocisim.Policy{ResourceType: "network-security-groups", Verb: ocisim.Manage})
			r.condemn(svc)
			if r.drop(r.Context(), r.cluster.get(svc.UID)) {
				r.Error("the finalizer went before the group")
			}
			r.equal("balancers", len(r.live()), 0)
			restore()
			r.restart()
			if _, exists, err := r.m.Exists(r.Context(), r.cluster.get(svc.UID)); err != nil || !exists {
				r.Errorf("exists: %t, %v; want that there is more to do", exists, err)
			}
			if !r.drop(r.Context(), r.cluster.get(svc.UID)) {
				r.Error("the finalizer stays")
			}
			r.equal("group", r.managed(svc) == nil, true)
			r.cluster.remove(svc.UID)
			r.asAtStart()
		}
	})
}

// From groups to lists and back by an annotation: the group leaves the balancer, and is deleted.
func TestFromGroupsToListsAndBack(t *testing.T) {
	withRulesOnBoth(t, ocisim.Options{Seed: 93}, func(r *rig, kind oci.BalancerKind) {
		nodes := []*v1.Node{r.worker("a", r.ruled.workers)}
		svc := r.service("web", kind, 80)
		front, work := allRules()
		for _, restarted := range []bool{false, true, false} {
			if restarted {
				r.restart()
			}
			r.inNSGMode(svc)
			svc = r.mustSync(svc, nodes)
			r.equal("group", slices.Contains(r.only().NSGIDs, *r.managed(svc).Id), true)
			r.hasRules(r.ruled.frontList)
			r.unchanged(svc, nodes)
			if restarted {
				r.restart()
			}
			r.edit(svc, func(s *v1.Service) { s.Annotations[ruleMode] = "SL-All"; delete(s.Annotations, backendNSG) })
			svc = r.mustSync(svc, nodes)
			r.equal("groups", len(r.only().NSGIDs), 0)
			r.equal("group", r.managed(svc) == nil, true)
			r.hasRules(r.ruled.frontList, ours(front...)...)
			r.hasRules(r.ruled.workList, ours(work...)...)
			r.unchanged(svc, nodes)
		}
		r.noEvents()
		r.remove(svc)
		r.asAtStart()
	})
}

// C051: each verb that the policy lacks is told with the statement; afterwards there is one group.
func TestPolicyForGroupsMissing(t *testing.T) {
	withRules(t, ocisim.Options{Seed: 94}, func(r *rig) {
		nodes := []*v1.Node{r.worker("a", r.ruled.workers)}
		for i, verb := range []ocisim.Verb{ocisim.Manage, ocisim.Use, ocisim.Read, ocisim.Inspect} {
			svc := r.service(fmt.Sprintf("web-%d", i), oci.KindLB, 80)
			r.inNSGMode(svc)
			restore := r.region.Deny(ocisim.Policy{ResourceType: "network-security-groups", Verb: verb})
			if err := r.sync(svc, nodes, time.Minute); err == nil && verb == ocisim.Manage {
				r.Errorf("%s: no error", verb)
			}
			var text string
			for _, e := range r.cluster.events {
				text += e.Reason + ": " + e.Message + "\n"
			}
			if !strings.Contains(text, "manage network-security-groups in compartment") {
				r.Errorf("%s: events %s", verb, text)
			}
			restore()
			time.Sleep(2 * time.Minute)
			svc = r.mustSync(svc, nodes)
			r.equal("group", r.managed(svc) != nil, true)
			r.cluster.events = nil
			r.remove(svc)
		}
		r.asAtStart()
	})
}

// Five groups of the user leave no room for the Service's own: an event, and nothing is written.
func TestNoRoomForTheGroup(t *testing.T) {
	withRules(t, ocisim.Options{Seed: 95}, func(r *rig) {
		nodes := []*v1.Node{r.worker("a", r.ruled.workers)}
		svc := r.service("web", oci.KindLB, 80)
		r.inNSGMode(svc)
		r.edit(svc, annotate(prefixCommon+"oci-network-security-groups", strings.Join(r.groups[:5], ",")))
		r.region.ResetCalls()
		if err := r.sync(svc, nodes, time.Minute); err == nil {
			r.Error("no error")
		}
		r.oneSeries("InvalidAnnotation", "at most 4")
		r.equal("writes", written(r.region.Calls()), []string{})
	})
}

// Upgrade: the group that the existing implementation has made is used, with tags that others have added, and nothing is
// written; it goes with the Service (W43).
func TestUpgradeOfGroups(t *testing.T) {
	withRules(t, ocisim.Options{Seed: 96}, func(r *rig) {
		nodes := []*v1.Node{r.worker("a", r.ruled.workers)}
		svc := r.service("web", oci.KindLB, 80)
		r.inNSGMode(svc)
		svc = r.mustSync(svc, nodes)
		id := *r.managed(svc).Id
		err := r.region.Foreign().SecurityGroup(id, func(g *core.NetworkSecurityGroup) { g.FreeformTags["team"] = "shop" })
		if err != nil {
			r.Fatal(err)
		}
		b := r.only()
		r.unmark(b.ID)
		r.edit(svc, func(s *v1.Service) {
			delete(s.Annotations, "oci.oraclecloud.com/last-applied")
			delete(s.Annotations, "oci.oraclecloud.com/load-balancer-ocid")
		})
		r.restart()
		r.region.ResetCalls()
		svc = r.mustSync(svc, nodes)
		r.equal("writes", written(r.region.Calls()), []string{})
		r.equal("group", *r.managed(svc).Id, id)
		r.noEvents()
		r.remove(svc)
		r.asAtStart()
	})
}
