// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package loadbalancer

import (
	"net/netip"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"

	"github.com/oracle/oci-cloud-controller-manager/pkg/firewall"
	"github.com/oracle/oci-cloud-controller-manager/pkg/oci"
)

// The network of the property tests: the balancer is in one subnet, the nodes are in another one. Nothing is open in it but what
// the Service's rules open.
const (
	balancerSubnet = "ocid1.subnet.oc1.iad.s"
	nodeSubnet     = "ocid1.subnet.oc1.iad.nodes"
)

func propertyNetwork() map[string]ruleSubnet {
	return map[string]ruleSubnet{
		balancerSubnet: {List: "list of the balancer", V4: []string{"10.0.8.0/24"}, V6: []string{"fd00:8::/64"}},
		nodeSubnet:     {List: "list of the nodes", V4: []string{"10.0.0.0/24"}, V6: []string{"fd00::/64"}},
	}
}

// endpoints are the addresses of a family of the client, who is in all source ranges, and of the balancer.
func endpoints(v6 bool) (client, balancer string) {
	if v6 {
		return "2001:db8::7", "fd00:8::9"
	}
	return "198.51.100.7", "10.0.8.9"
}

// nodeGroups are the network security groups that the nodes are in.
func nodeGroups() []string { return []string{group("nodes"), group("more-nodes")} }

// drawRules adds a mode of security rules, the clients, and whether nodes see their addresses.
func drawRules(t *rapid.T, svc *v1.Service, kind oci.BalancerKind, label string) {
	mode := rapid.SampledFrom([]string{"", string(RulesAll), string(RulesFrontend), string(RulesNSG), string(RulesNone)}).Draw(t, label+" mode")
	if mode != "" {
		svc.Annotations[annotationRuleMode] = mode
	}
	if mode == string(RulesNSG) {
		svc.Annotations[annotationBackendNSG] = rapid.SampledFrom([]string{group("nodes"), group("more-nodes"), strings.Join(nodeGroups(), ",")}).Draw(t, "groups of the nodes")
	}
	if managed := mode != string(RulesNone) && (mode != "" || kind == oci.KindLB); managed {
		svc.Spec.LoadBalancerSourceRanges = rapid.SampledFrom([][]string{
			nil, {"0.0.0.0/0", "::/0"}, {"198.51.100.0/24", "2001:db8::/32"}, {"198.51.100.7/32", "203.0.113.0/24", "2001:db8::7/128"},
		}).Draw(t, label+" clients")
	}
	if kind == oci.KindNLB {
		values := []string{"", "false"}
		if local(svc) {
			values = append(values, "true")
		}
		if value := rapid.SampledFrom(values).Draw(t, label+" preservation"); value != "" {
			svc.Annotations[prefixNLB+"is-preserve-source"] = value
		}
	}
}

// need is what the rules of a wish follow from.
func (w wish) need(m *Model) Need {
	settings, _ := ParseAnnotations(w.svc.Annotations, m.Kind)
	n := needOf(w.svc, settings, chooseRules(settings, Config{}), m)
	if n.Nodes {
		n.NodeSubnets = []string{nodeSubnet}
	}
	if n.Groups {
		n.Group = group("managed")
	}
	return n
}

// gates are the security rules that are open, and what becomes of them.
type gates struct {
	open    ruleSet
	changes firewall.Changes
	// clients and nodes say whether both Services have the rules of that part of the way managed. Else those are not our business.
	clients, nodes bool
}

func gatesBetween(from, to Need) gates {
	g := gates{
		open: rulesOf(from, propertyNetwork()), changes: firewall.Changes{},
		clients: (from.Frontend || from.Groups) && (to.Frontend || to.Groups),
		nodes:   (from.Nodes || from.Groups) && (to.Nodes || to.Groups),
	}
	then := rulesOf(to, propertyNetwork())
	lacking := func(a, b ruleSet, t firewall.Target) []firewall.Rule {
		return slices.DeleteFunc(slices.Clone(b[t]), func(r firewall.Rule) bool { return slices.Contains(a[t], r) })
	}
	for _, set := range []ruleSet{g.open, then} {
		for t := range set {
			if c := (firewall.Change{Add: lacking(g.open, then, t), Remove: lacking(then, g.open, t)}); len(c.Add)+len(c.Remove) > 0 {
				g.changes[t] = c
			}
		}
	}
	return g
}

// ruleTexts are all rules of a set.
func ruleTexts(r ruleSet) []string { return r.describe(r) }

// perform opens or closes rules, which is one step for all targets here; in which order they are written is the firewall's affair.
func (g gates) perform(action Action) {
	for t, c := range g.changes {
		if action == OpenRules {
			g.open.add(t, c.Add...)
		} else {
			g.open[t] = slices.DeleteFunc(g.open[t], func(r firewall.Rule) bool { return slices.Contains(c.Remove, r) })
		}
	}
}

// admit says whether one of the targets has a rule for a connection. groups are those that the peer is in.
func (g gates) admit(targets []firewall.Target, connection firewall.Rule, groups []string) bool {
	peer := netip.MustParseAddr(connection.Peer)
	return slices.ContainsFunc(targets, func(t firewall.Target) bool {
		return slices.ContainsFunc(g.open[t], func(r firewall.Rule) bool {
			if r.Direction != connection.Direction || r.Protocol != connection.Protocol || r.Port != connection.Port {
				return false
			}
			if r.PeerKind == firewall.PeerNSG {
				return slices.Contains(groups, r.Peer)
			}
			return netip.MustParsePrefix(r.Peer).Contains(peer)
		})
	})
}

// letsThrough says whether the rules let traffic of a listener pass to a backend, and the health check of that, too.
func (s stage) letsThrough(l oci.Listener, bs oci.BackendSet, b oci.Backend, protocol v1.Protocol) bool {
	client, balancer := endpoints(l.IPVersion == ipV6)
	network := propertyNetwork()
	targets := func(subnet string, groups []string) []firewall.Target {
		out := []firewall.Target{listTarget(network[subnet])}
		for _, id := range groups {
			out = append(out, firewall.Target{Kind: firewall.NSG, ID: id})
		}
		return out
	}
	atBalancer, atNode := targets(balancerSubnet, s.NSGIDs), targets(nodeSubnet, nodeGroups())
	connection := func(direction firewall.Direction, p firewall.Protocol, peer string, port int) firewall.Rule {
		return firewall.Rule{Direction: direction, Protocol: p, Peer: peer, Port: port}
	}
	transport := firewall.TCP
	if protocol == v1.ProtocolUDP {
		transport = firewall.UDP
	}
	if s.clients && !s.admit(atBalancer, connection(firewall.Ingress, transport, client, l.Port), nil) {
		return false
	}
	if !s.nodes {
		return true
	}
	source, sourceGroups := balancer, s.NSGIDs
	if orDefault(bs.PreserveSource, false) {
		source, sourceGroups = client, nil
	}
	return s.admit(atBalancer, connection(firewall.Egress, transport, b.IP, b.Port), nodeGroups()) &&
		s.admit(atNode, connection(firewall.Ingress, transport, source, b.Port), sourceGroups) &&
		s.admit(atBalancer, connection(firewall.Egress, firewall.TCP, b.IP, bs.Checker.Port), nodeGroups()) &&
		s.admit(atNode, connection(firewall.Ingress, firewall.TCP, balancer, bs.Checker.Port), s.NSGIDs)
}
