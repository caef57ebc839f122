// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package loadbalancer

import (
	"cmp"
	"net/netip"
	"slices"

	"github.com/oracle/oci-cloud-controller-manager/pkg/firewall"
)

// ruleSubnet is what rules follow from, of a subnet.
type ruleSubnet struct {
	// List is the security list to edit; empty if there is none, or none that is known.
	List   string
	V4, V6 []string // CIDR blocks
}

// blocks are the CIDR blocks of the given families.
func (s ruleSubnet) blocks(v4, v6 bool) []string {
	var out []string
	if v4 {
		out = append(out, s.V4...)
	}
	if v6 {
		out = append(out, s.V6...)
	}
	return out
}

// ruleSet collects the rules of targets. Rules are comparable; each is in it once.
type ruleSet map[firewall.Target][]firewall.Rule

func (r ruleSet) add(target firewall.Target, rules ...firewall.Rule) {
	for _, rule := range rules {
		if target.ID != "" && !slices.Contains(r[target], rule) {
			r[target] = append(r[target], rule)
		}
	}
}

// addAll joins two sets.
func (r ruleSet) addAll(other ruleSet) {
	for target, rules := range other {
		r.add(target, rules...)
	}
}

// rulesOf says which rules, and where, a need comes to (contract ccm.md §4.9, §4.10). It is pure. Subnets that are not known
// have no rules.
func rulesOf(n Need, subnets map[string]ruleSubnet) ruleSet {
	r := ruleSet{}
	if n.Frontend {
		n.frontendRules(r, subnets)
	}
	if n.Nodes {
		n.nodeRules(r, subnets)
	}
	if n.Groups {
		n.groupRules(r)
	}
	for _, rules := range r {
		slices.SortFunc(rules, compareRules)
	}
	return r
}

// frontendRules let clients reach the listeners.
func (n Need) frontendRules(r ruleSet, subnets map[string]ruleSubnet) {
	for _, id := range n.Subnets {
		for _, source := range n.Sources {
			for _, p := range n.Ports {
				r.add(listTarget(subnets[id]), rulesFor(p.Protocol, firewall.Ingress, firewall.PeerCIDR, source, p.Port)...)
			}
		}
	}
}

// nodeRules let the balancer reach the nodes, and where the source is preserved, the clients too.
func (n Need) nodeRules(r ruleSet, subnets map[string]ruleSubnet) {
	for _, lb := range n.Subnets {
		for _, node := range n.NodeSubnets {
			from, to := subnets[lb], subnets[node]
			for _, cidr := range to.blocks(n.V4, n.V6) {
				r.add(listTarget(from), n.backendRules(firewall.Egress, firewall.PeerCIDR, canonicalBlock(cidr))...)
			}
			for _, cidr := range from.blocks(n.V4, n.V6) {
				r.add(listTarget(to), n.backendRules(firewall.Ingress, firewall.PeerCIDR, canonicalBlock(cidr))...)
			}
		}
	}
	for _, node := range n.NodeSubnets {
		r.add(listTarget(subnets[node]), n.preservedRules()...)
	}
}

// groupRules are those of the Service's network security group, and of the nodes'.
func (n Need) groupRules(r ruleSet) {
	managed := firewall.Target{Kind: firewall.NSG, ID: n.Group}
	for _, source := range n.Sources {
		for _, p := range n.Ports {
			r.add(managed, rulesFor(p.Protocol, firewall.Ingress, firewall.PeerCIDR, source, p.Port)...)
		}
	}
	for _, id := range n.BackendGroups {
		backend := firewall.Target{Kind: firewall.NSG, ID: id}
		r.add(managed, n.backendRules(firewall.Egress, firewall.PeerNSG, id)...)
		if n.Group != "" {
			r.add(backend, n.backendRules(firewall.Ingress, firewall.PeerNSG, n.Group)...)
		}
		r.add(backend, n.preservedRules()...)
	}
}

// backendRules are those between balancer and nodes: for each node port, and for the health check.
func (n Need) backendRules(direction firewall.Direction, kind firewall.PeerKind, peer string) []firewall.Rule {
	rules := rulesFor("TCP", direction, kind, peer, n.HealthPort)
	for _, p := range n.Ports {
		rules = append(rules, rulesFor(p.Protocol, direction, kind, peer, p.NodePort)...)
	}
	return rules
}

// preservedRules let clients reach the node ports, which see their addresses.
func (n Need) preservedRules() []firewall.Rule {
	if !n.Preserve {
		return nil
	}
	var rules []firewall.Rule
	for _, source := range n.Sources {
		for _, p := range n.Ports {
			rules = append(rules, rulesFor(p.Protocol, firewall.Ingress, firewall.PeerCIDR, source, p.NodePort)...)
		}
	}
	return rules
}

// rulesFor is a rule for each protocol of a port.
func rulesFor(protocol string, direction firewall.Direction, kind firewall.PeerKind, peer string, port int) []firewall.Rule {
	protocols := []firewall.Protocol{firewall.TCP}
	switch protocol {
	case "UDP":
		protocols = []firewall.Protocol{firewall.UDP}
	case protocolBoth:
		protocols = append(protocols, firewall.UDP)
	}
	rules := make([]firewall.Rule, len(protocols))
	for i, p := range protocols {
		rules[i] = firewall.Rule{Direction: direction, Protocol: p, PeerKind: kind, Peer: peer, Port: port}
	}
	return rules
}

func listTarget(s ruleSubnet) firewall.Target {
	return firewall.Target{Kind: firewall.SecurityList, ID: s.List}
}

// compareRules gives rules a fixed order.
func compareRules(a, b firewall.Rule) int {
	return cmp.Or(cmp.Compare(b.Direction, a.Direction), cmp.Compare(a.Port, b.Port), cmp.Compare(a.Protocol, b.Protocol), cmp.Compare(a.Peer, b.Peer))
}

// canonicalBlock is the one spelling of a CIDR block; text that is none stays as it is.
func canonicalBlock(text string) string {
	p, err := netip.ParsePrefix(text)
	if err != nil {
		return text
	}
	return p.Masked().String()
}
