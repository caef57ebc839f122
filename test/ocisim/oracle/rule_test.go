// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package oracle_test

import (
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/oracle/oci-go-sdk/v65/common"
	"github.com/oracle/oci-go-sdk/v65/core"

	"github.com/oracle/oci-cloud-controller-manager/test/ocisim"
	"github.com/oracle/oci-cloud-controller-manager/test/ocisim/oracle"
)

// Descriptions of rules in lists: ours, and another cluster's.
const (
	ourMark   = oracle.ListRuleMark + " " + cluster
	otherMark = oracle.ListRuleMark + " cluster-2"
)

// wall is a security list of somebody else, with the subnets behind it.
type wall struct {
	*lab

	list   string
	subnet string
}

// newWall puts a list with three rules of others in front of a subnet.
func newWall(t *testing.T) *wall {
	t.Helper()
	w := &wall{lab: newLab(t)}
	w.list = w.region.AddSecurityList(ocisim.SecurityList{
		Name: "theirs",
		Ingress: []ocisim.SecurityRule{
			{Protocol: "tcp", Ports: "22", Description: "ssh"},
			{Protocol: "icmp", ICMPType: common.Int(3), Description: "path MTU"},
			{Protocol: "tcp", Ports: "443", Peer: "10.0.0.0/8", Description: otherMark},
		},
		Egress: []ocisim.SecurityRule{{}},
	})
	w.subnet = w.region.AddSubnet(ocisim.Subnet{Name: "guarded", CIDR: "10.0.1.0/24", SecurityLists: []string{"theirs"}})
	w.before = w.region.Snapshot()
	return w
}

// edit replaces the rules of the list as somebody.
func (w *wall) edit(who string, change func(*core.SecurityList)) {
	w.t.Helper()
	list, ok := w.region.SecurityList(w.list)
	if !ok {
		w.t.Fatal("no such list")
	}
	change(&list)
	w.call(who, http.MethodPut, "/20160918/securityLists/"+w.list, object{
		"ingressSecurityRules": list.IngressSecurityRules, "egressSecurityRules": list.EgressSecurityRules,
	})
}

// ingress is a rule for TCP; an empty description is none.
func ingress(port int, description string) core.IngressSecurityRule {
	rule := core.IngressSecurityRule{
		Protocol: common.String("6"), Source: common.String("0.0.0.0/0"),
		TcpOptions: &core.TcpOptions{DestinationPortRange: &core.PortRange{Min: common.Int(port), Max: common.Int(port)}},
	}
	if description != "" {
		rule.Description = &description
	}
	return rule
}

// open adds ingress rules.
func (w *wall) open(who string, rules ...core.IngressSecurityRule) {
	w.t.Helper()
	w.edit(who, func(l *core.SecurityList) { l.IngressSecurityRules = append(l.IngressSecurityRules, rules...) })
}

// TestRulesOnForeignList: rules of ours on somebody else's list come and go, and the rest of the list must be as it was.
func TestRulesOnForeignList(t *testing.T) {
	w := newWall(t)
	w.open(me, ingress(443, ourMark))
	w.clean(nil)
	w.edit(me, func(l *core.SecurityList) {
		l.IngressSecurityRules = slices.Insert(l.IngressSecurityRules, 0, ingress(80, ourMark))
	})
	w.clean(nil) // where ours are does not matter
	w.before = w.region.Snapshot()
	w.edit(me, func(l *core.SecurityList) { l.IngressSecurityRules = l.IngressSecurityRules[1:] })
	w.clean(nil) // one that was there before has gone

	for name, tc := range map[string]struct {
		change func(*core.SecurityList)
		words  string
	}{
		"changed": {
			func(l *core.SecurityList) { l.IngressSecurityRules[0].Source = common.String("10.0.0.0/8") },
			`ingressSecurityRules: (none) -> ingress TCP 22 from 10.0.0.0/8 "ssh"`,
		},
		"described anew": {
			func(l *core.SecurityList) { l.IngressSecurityRules[0].Description = common.String(ourMark) },
			`ingressSecurityRules: ingress TCP 22 from 0.0.0.0/0 "ssh" -> (none)`,
		},
		"vanished": {
			func(l *core.SecurityList) { l.IngressSecurityRules = slices.Delete(l.IngressSecurityRules, 1, 2) },
			`"description":"path MTU"`,
		},
		"another cluster's vanished": {
			func(l *core.SecurityList) { l.IngressSecurityRules = slices.Delete(l.IngressSecurityRules, 2, 3) },
			`ingress TCP 443 from 10.0.0.0/8 "` + otherMark + `" -> (none)`,
		},
		"moved": {
			func(l *core.SecurityList) {
				l.IngressSecurityRules[0], l.IngressSecurityRules[2] = l.IngressSecurityRules[2], l.IngressSecurityRules[0]
			},
			`ingressSecurityRules.order: ingress TCP 22 from 0.0.0.0/0 "ssh" -> ingress TCP 443`,
		},
		"added without a mark": {
			func(l *core.SecurityList) { l.IngressSecurityRules = append(l.IngressSecurityRules, ingress(80, "")) },
			"ingressSecurityRules: (none) -> ingress TCP 80 from 0.0.0.0/0",
		},
		"of another form": {
			func(l *core.SecurityList) {
				rule := ingress(80, ourMark)
				rule.TcpOptions.DestinationPortRange.Max = common.Int(90)
				l.IngressSecurityRules = append(l.IngressSecurityRules, rule)
			},
			`"max":90`,
		},
		"egress": {
			func(l *core.SecurityList) { l.EgressSecurityRules = []core.EgressSecurityRule{} },
			"egressSecurityRules:",
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWall(t)
			w.open(me, ingress(8080, ourMark))
			w.edit(me, tc.change)
			f := w.finds(nil, oracle.Foreign, w.list, tc.words, w.lastCall().RequestID)
			madeBy(t, f, "UpdateSecurityList", "UpdateSecurityList")
		})
	}
}

// TestListOfOthers: what others do to their list through the API is their business, and what happens past it a finding.
func TestListOfOthers(t *testing.T) {
	w := newWall(t)
	w.open(terraform, ingress(8080, ""))
	w.clean(nil)

	w = newWall(t)
	err := w.region.Foreign().SecurityList(w.list, func(l *core.SecurityList) { l.IngressSecurityRules = l.IngressSecurityRules[1:] })
	if err != nil {
		t.Fatal(err)
	}
	w.finds(nil, oracle.Foreign, w.list, "by no call in the log")
	w.clean(func(q *oracle.Question) { q.OthersAct = true })
	w.clean(func(q *oracle.Question) {
		q.Expected = []oracle.Expectation{{Resource: w.list, Fields: []string{"ingressSecurityRules"}}}
	})

	w.before = w.region.Snapshot()
	for _, name := range []string{"renamed", "theirs"} { // changed back, it is still not left alone
		if err := w.region.Foreign().SecurityList(w.list, func(l *core.SecurityList) { l.DisplayName = &name }); err != nil {
			t.Fatal(err)
		}
	}
	w.finds(nil, oracle.Foreign, w.list, "(etag)")
}

// TestWhoseMark: without the identity of the cluster rules of every cluster are ours.
func TestWhoseMark(t *testing.T) {
	w := newWall(t)
	w.open(me, ingress(80, oracle.ListRuleMark))
	w.finds(nil, oracle.Foreign, w.list, `from 0.0.0.0/0 "k8s"`)
	unknown := func(q *oracle.Question) { q.Us.Cluster = "" }
	w.clean(unknown)
	w.edit(me, func(l *core.SecurityList) { l.IngressSecurityRules = l.IngressSecurityRules[:2] })
	w.finds(nil, oracle.Foreign, w.list, otherMark)
	w.clean(unknown)
	w.open(me, ingress(80, "k8sx"))
	w.finds(unknown, oracle.Foreign, w.list, "k8sx")
}

// TestRulesLeftOver: rules of ours that nothing needs are a finding: once no owner is left at any time, and of living
// owners once everything has come to rest, by the ports of their balancers.
func TestRulesLeftOver(t *testing.T) {
	w := newWall(t)
	w.open(me, ingress(443, ourMark), ingress(80, ourMark))
	w.clean(nil)
	f := w.finds(func(q *oracle.Question) { q.Settled = true }, oracle.Orphan, w.list, "2 rules of ours left over", "ingress TCP 443 from 0.0.0.0/0", "listener")
	madeBy(t, f, "UpdateSecurityList")
	// An owner that has nothing, or nothing yet, may need anything.
	w.clean(func(q *oracle.Question) { q.Settled, q.Us.Owners = true, append(q.Us.Owners, "another-living-owner") })

	w.call(me, http.MethodDelete, balancers+"/"+w.balancer, nil)
	w.region.Advance(time.Hour)
	w.finds(func(q *oracle.Question) { q.Us.Owners = nil }, oracle.Orphan, w.list, "no owner is left")
	w.edit(me, func(l *core.SecurityList) { l.IngressSecurityRules = l.IngressSecurityRules[:3] })
	w.clean(func(q *oracle.Question) { q.Us.Owners = nil })
}

// egress is a rule of ours that lets a balancer connect to a port.
func egress(port int, protocol string) core.EgressSecurityRule {
	ports := &core.PortRange{Min: common.Int(port), Max: common.Int(port)}
	r := core.EgressSecurityRule{Protocol: common.String(protocol), Destination: common.String("10.0.10.0/24"), Description: common.String(ourMark)}
	if protocol == "17" {
		r.UdpOptions = &core.UdpOptions{DestinationPortRange: ports}
	} else {
		r.TcpOptions = &core.TcpOptions{DestinationPortRange: ports}
	}
	return r
}

// TestRulesByPorts: what living balancers need is known from their listeners, backends and health checks.
func TestRulesByPorts(t *testing.T) {
	settled := func(q *oracle.Question) { q.Settled = true }
	serve := func(w *wall, lists string) {
		w.call(me, http.MethodDelete, balancers+"/"+w.balancer, nil)
		w.region.Advance(time.Hour)
		subnet := w.subnet
		if lists == "other" {
			subnet = w.lab.subnet
		}
		w.newLB(owner, object{
			"subnetIds": []string{subnet},
			"backendSets": object{"TCP-443": object{
				"policy":        "ROUND_ROBIN",
				"healthChecker": object{"protocol": "HTTP", "urlPath": "/healthz", "port": 10256},
				"backends":      []object{{"ipAddress": "10.0.10.11", "port": 30443}},
			}},
			"listeners": object{"TCP-443": object{"defaultBackendSetName": "TCP-443", "port": 443, "protocol": "TCP"}},
		})
	}
	w := newWall(t)
	serve(w, "own")
	w.open(me, ingress(443, ourMark), ingress(30443, ourMark), ingress(10256, ourMark))
	w.edit(me, func(l *core.SecurityList) {
		l.EgressSecurityRules = append(l.EgressSecurityRules, egress(30443, "6"), egress(10256, "6"))
	})
	w.clean(settled)
	w.edit(me, func(l *core.SecurityList) { l.EgressSecurityRules = append(l.EgressSecurityRules, egress(30444, "6")) })
	w.clean(nil)
	w.finds(settled, oracle.Orphan, w.list, "egress TCP 30444 to 10.0.10.0/24")
	w.edit(me, func(l *core.SecurityList) { l.EgressSecurityRules[3] = egress(443, "6") })
	w.finds(settled, oracle.Orphan, w.list, "egress TCP 443") // a listener needs nothing that leaves
	w.edit(me, func(l *core.SecurityList) { l.EgressSecurityRules[3] = egress(30443, "17") })
	w.finds(settled, oracle.Orphan, w.list, "egress UDP 30443")

	w = newWall(t)
	serve(w, "other")
	w.open(me, ingress(443, ourMark), ingress(30443, ourMark))
	w.finds(settled, oracle.Orphan, w.list, "1 rule of ours left over", "ingress TCP 443") // not before this balancer
}

// TestRulesTwice: a rule of ours is there once.
func TestRulesTwice(t *testing.T) {
	w := newWall(t)
	w.open(me, ingress(443, ourMark), ingress(443, ourMark), ingress(80, ourMark))
	w.finds(nil, oracle.Duplicate, w.list, "more than once: ingress TCP 443")
	w.edit(me, func(l *core.SecurityList) { l.IngressSecurityRules = slices.Delete(l.IngressSecurityRules, 3, 4) })
	w.clean(nil)

	l := newLab(t)
	l.addRule(me, oracle.GroupRuleMark+owner, 30080)
	l.addRule(me, oracle.GroupRuleMark+owner, 30443)
	l.clean(nil)
	l.addRule(me, oracle.GroupRuleMark+owner, 30080)
	l.finds(nil, oracle.Duplicate, l.group, "more than once: ingress TCP 30080")
}

// addRule adds a rule to the security group.
func (l *lab) addRule(who, description string, port int) (id string) {
	l.t.Helper()
	before := l.region.GroupRules(l.group)
	l.call(who, http.MethodPost, groups+l.group+"/actions/addSecurityRules", object{"securityRules": []object{{
		"direction": "INGRESS", "protocol": "6", "source": "10.0.20.0/24", "description": description,
		"tcpOptions": object{"destinationPortRange": object{"min": port, "max": port}},
	}}})
	for _, r := range l.region.GroupRules(l.group) {
		if !slices.ContainsFunc(before, func(b core.SecurityRule) bool { return *b.Id == *r.Id }) {
			id = *r.Id
		}
	}
	return id
}

func (l *lab) removeRule(who, id string) {
	l.t.Helper()
	l.call(who, http.MethodPost, groups+l.group+"/actions/removeSecurityRules", object{"securityRuleIds": []string{id}})
}

// TestRulesInForeignGroup: rules in a group of somebody else are ours by the owner in their description.
func TestRulesInForeignGroup(t *testing.T) {
	l := newLab(t)
	l.addRule(me, oracle.GroupRuleMark+owner, 30080)
	l.clean(nil)
	left := l.addRule(me, oracle.GroupRuleMark+deadOwner, 30443)
	l.finds(nil, oracle.Orphan, l.group+"/"+left, "its owner "+deadOwner+" does not exist any more")

	l.before = l.region.Snapshot()
	l.clean(nil) // it was there before: another cluster's, for all that is known
	l.removeRule(me, left)
	l.finds(nil, oracle.Foreign, l.group+"/"+left, "it is not there any more")
	l.clean(func(q *oracle.Question) { q.Us.Former = []string{deadOwner} })

	all := l.region.GroupRules(l.group)
	theirs := *all[slices.IndexFunc(all, func(r core.SecurityRule) bool { return *r.Description == "ssh" })].Id
	l.removeRule(me, theirs)
	l.finds(func(q *oracle.Question) { q.Us.Former = []string{deadOwner} }, oracle.Foreign, l.group+"/"+theirs, "it is not there any more")
}

// TestMarkOfForeignGroup: we may mark a group of nodes, and give it another etag by rules, and no more.
func TestMarkOfForeignGroup(t *testing.T) {
	l := newLab(t)
	mark := func(tags object) { l.call(me, http.MethodPut, groups+l.group, object{"freeformTags": tags}) }
	mark(object{"ManagedBy": "CCM"})
	l.clean(nil)
	mark(object{"ManagedBy": "CCM", "team": "red"})
	l.finds(nil, oracle.Foreign, l.group, `freeformTags.team: (none) -> "red"`)
	mark(object{"ManagedBy": "somebody"})
	l.finds(nil, oracle.Foreign, l.group, `"somebody"`)

	l = newLab(t)
	l.region.SetBehaviour(func(b *ocisim.Behaviour) { b.RulesChangeGroupETag = true })
	l.addRule(me, oracle.GroupRuleMark+owner, 30080)
	l.clean(nil)
	l.rename(me, "another")
	l.rename(me, "theirs")
	l.finds(nil, oracle.Foreign, l.group, "(etag)")
}

// TestRuleWrites: writes to rules are allowed where they are named.
func TestRuleWrites(t *testing.T) {
	w := newWall(t)
	w.open(me, ingress(443, ourMark))
	w.addRule(me, oracle.GroupRuleMark+owner, 30080)
	allowed := func(writes ...string) func(*oracle.Question) {
		return func(q *oracle.Question) { q.Us.Writes = append([]string{ocisim.ServiceLoadBalancer}, writes...) }
	}
	w.clean(allowed(oracle.RuleWrites()...))
	report := w.ask(allowed())
	if n := len(report.Of(oracle.Forbidden)); n != 2 {
		t.Errorf("want two findings:\n%s", report)
	}
}
