// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package oracle

import (
	"fmt"
	"slices"
)

// rules finds rules of ours that nothing needs, and those that are there twice. Rules of groups are objects, of which
// only the second question is open.
func (j *judge) rules() {
	needs := j.ruleNeeds()
	groups := map[string][]rule{}
	for _, o := range j.now.sorted() {
		switch o.kind {
		case securityListKind:
			for _, field := range []string{ingressField, egressField} {
				ours, _ := j.split(rulesOf(o, field))
				j.unneeded(o, ours, needs)
				j.repeated(o, ours)
			}
		case groupRuleKind:
			if w := j.own(o); w.ours && w.owner != "" {
				for _, group := range o.parents() {
					groups[group] = append(groups[group], newRule(o.text("direction") == "INGRESS", o.value))
				}
			}
		}
	}
	for _, id := range sortedKeys(groups) {
		if group := j.now[id]; group != nil {
			j.repeated(group, groups[id])
		}
	}
}

// unneeded reports rules of ours in a security list that are left over.
func (j *judge) unneeded(list *object, ours []rule, needs *ruleNeeds) {
	why := "no owner is left that could need them"
	left := ours
	if needs.somebody {
		if !j.Settled {
			return // what is being changed has both the old rules and the new ones
		}
		why = "no balancer of a living owner has such a listener, backend or health check"
		left = slices.DeleteFunc(slices.Clone(ours), func(r rule) bool { return needs.has(list.id, r) })
	}
	if len(left) > 0 {
		j.report.add(Finding{
			Kind: Orphan, Type: list.kind, Resource: list.id, Name: list.name(), State: list.state(),
			What: fmt.Sprintf("%s of ours left over, since %s: %s", plural(len(left), "rule", "rules"), why, describe(left)), Calls: j.history(list),
		})
	}
}

// repeated reports rules of ours that are there more than once.
func (j *judge) repeated(o *object, ours []rule) {
	seen, extra := map[string]bool{}, []rule(nil)
	for _, r := range ours {
		if seen[r.text] {
			extra = append(extra, r)
		}
		seen[r.text] = true
	}
	if len(extra) > 0 {
		j.report.add(Finding{
			Kind: Duplicate, Type: o.kind, Resource: o.id, Name: o.name(), State: o.state(),
			What: "it has rules of ours more than once: " + describe(extra), Calls: j.history(o),
		})
	}
}

// ruleNeeds is what the balancers of living owners need of security lists, as far as the region shows it: ports, not the
// addresses of clients.
type ruleNeeds struct {
	somebody bool // somebody may need rules
	anything bool // of somebody it is not known which
	fronts   map[front]bool
	nodes    map[portOf]bool
}

// portOf is a port of a protocol, by IANA's number.
type portOf struct {
	protocol string
	port     int64
}

// front is a listener behind a security list.
type front struct {
	list string
	portOf
}

// has says whether a rule on a list is needed.
func (n *ruleNeeds) has(list string, r rule) bool {
	port, _ := r.ports()
	to := portOf{r.field("protocol"), port}
	return n.anything || n.nodes[to] || r.ingress && n.fronts[front{list, to}]
}

// ruleNeeds looks at the balancers. A living owner that has nothing in the region, or has a balancer that is still being
// made, or one without backends, may need anything.
func (j *judge) ruleNeeds() *ruleNeeds {
	n := &ruleNeeds{fronts: map[front]bool{}, nodes: map[portOf]bool{}}
	owning := map[string]bool{}
	for _, o := range j.now.sorted() {
		w := j.own(o)
		if !w.ours || o.leaving() || o.kind == securityGroupKind || o.kind == groupRuleKind {
			continue
		}
		owning[w.owner], owning[o.id] = true, true
		if classes[o.kind] == "balancer" && w.alive {
			n.somebody = true
			n.anything = n.anything || o.stage() != present
			j.balancerNeeds(n, o)
		}
	}
	for owner := range j.owners {
		if !owning[owner] {
			n.somebody, n.anything = true, true
		}
	}
	return n
}

// balancerNeeds adds what one balancer needs.
func (j *judge) balancerNeeds(n *ruleNeeds, balancer *object) {
	lists := j.listsOf(balancer)
	protocols := map[string][]string{} // by backend set
	for _, l := range parts(balancer, "listeners") {
		set, _ := l["defaultBackendSetName"].(string)
		for _, protocol := range protocolsOf(balancer, l) {
			protocols[set] = append(protocols[set], protocol)
			for _, list := range lists {
				n.fronts[front{list, portOf{protocol, number(l["port"])}}] = true
			}
		}
	}
	for name, set := range parts(balancer, "backendSets") {
		checker, _ := set["healthChecker"].(map[string]any)
		n.nodes[portOf{protocolTCP, number(checker["port"])}] = true
		backends, _ := set["backends"].([]any)
		n.anything = n.anything || len(backends) == 0
		for _, b := range backends {
			backend, _ := b.(map[string]any)
			for _, protocol := range slices.Concat(protocols[name], []string{protocolTCP}) { // a check without a port of its own goes to the backend's
				n.nodes[portOf{protocol, number(backend["port"])}] = true
			}
		}
	}
}

// protocolsOf are the protocols of a listener; those of load balancers are all over TCP.
func protocolsOf(balancer *object, listener map[string]any) []string {
	protocol, _ := listener["protocol"].(string)
	switch {
	case balancer.kind == "load balancer", protocol == "TCP":
		return []string{protocolTCP}
	case protocol == "UDP":
		return []string{protocolUDP}
	default:
		return []string{protocolTCP, protocolUDP}
	}
}

// listsOf are the security lists of a balancer's subnets.
func (j *judge) listsOf(balancer *object) []string {
	subnets, _ := balancer.value["subnetIds"].([]any)
	subnets = append(slices.Clone(subnets), balancer.value["subnetId"])
	var lists []string
	for _, one := range subnets {
		id, _ := one.(string)
		subnet := j.now[id]
		if subnet == nil {
			continue
		}
		of, _ := subnet.value["securityListIds"].([]any)
		for _, list := range of {
			if id, ok := list.(string); ok {
				lists = append(lists, id)
			}
		}
	}
	return lists
}

// parts are the named parts of a balancer.
func parts(balancer *object, field string) map[string]map[string]any {
	all, _ := balancer.value[field].(map[string]any)
	named := make(map[string]map[string]any, len(all))
	for name, one := range all {
		if part, ok := one.(map[string]any); ok {
			named[name] = part
		}
	}
	return named
}
