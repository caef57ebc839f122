// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package loadbalancer_test

import (
	"fmt"
	"net/netip"
	"slices"
	"testing"

	"github.com/oracle/oci-go-sdk/v65/core"
	v1 "k8s.io/api/core/v1"

	"github.com/oracle/oci-cloud-controller-manager/pkg/oci"
	"github.com/oracle/oci-cloud-controller-manager/test/ocisim"
)

// connection is one that security rules have to let through.
type connection struct {
	egress     bool
	protocol   v1.Protocol
	peer       netip.Addr
	peerGroups []string // network security groups that the peer is in
	port       int
}

func (c connection) fits(protocol *string, tcp *core.TcpOptions, udp *core.UdpOptions, peer *string) bool {
	var ports *core.PortRange
	switch {
	case *protocol == oci.ProtocolTCP && c.protocol == v1.ProtocolTCP && tcp != nil:
		ports = tcp.DestinationPortRange
	case *protocol == oci.ProtocolUDP && c.protocol == v1.ProtocolUDP && udp != nil:
		ports = udp.DestinationPortRange
	default:
		return false
	}
	if ports != nil && (c.port < *ports.Min || c.port > *ports.Max) {
		return false
	}
	block, err := netip.ParsePrefix(*peer)
	if err != nil {
		return slices.Contains(c.peerGroups, *peer)
	}
	return block.Contains(c.peer)
}

// side is what guards one end of a connection: the lists of its subnet, and its groups. What one of them allows is allowed.
type side struct{ lists, groups []string }

func (r *rig) admits(s side, c connection) bool {
	for _, id := range s.lists {
		list, _ := r.region.SecurityList(id)
		if c.egress && slices.ContainsFunc(list.EgressSecurityRules, func(x core.EgressSecurityRule) bool {
			return c.fits(x.Protocol, x.TcpOptions, x.UdpOptions, x.Destination)
		}) || !c.egress && slices.ContainsFunc(list.IngressSecurityRules, func(x core.IngressSecurityRule) bool {
			return c.fits(x.Protocol, x.TcpOptions, x.UdpOptions, x.Source)
		}) {
			return true
		}
	}
	return slices.ContainsFunc(s.groups, func(id string) bool {
		return slices.ContainsFunc(r.region.GroupRules(id), func(x core.SecurityRule) bool {
			if x.Direction == core.SecurityRuleDirectionEgress {
				return c.egress && c.fits(x.Protocol, x.TcpOptions, x.UdpOptions, x.Destination)
			}
			return !c.egress && c.fits(x.Protocol, x.TcpOptions, x.UdpOptions, x.Source)
		})
	})
}

// sideIn is the side of something in subnets and groups.
func (r *rig) sideIn(subnets, groups []string) side {
	s := side{groups: groups}
	for _, id := range subnets {
		subnet, _ := r.region.Subnet(id)
		s.lists = append(s.lists, subnet.SecurityListIds...)
	}
	return s
}

// balancerSide is that of a balancer as it is now.
func (r *rig) balancerSide(id string) side {
	if r.kindOf(id) == oci.KindLB {
		b, _ := r.region.LoadBalancer(id)
		return r.sideIn(b.SubnetIds, b.NetworkSecurityGroupIds)
	}
	b, _ := r.region.NetworkLoadBalancer(id)
	return r.sideIn([]string{*b.SubnetId}, b.NetworkSecurityGroupIds)
}

// nodeSides are those of nodes by their addresses.
func (r *rig) nodeSides(nodes []*v1.Node) map[string]side {
	out := map[string]side{}
	for _, n := range nodes {
		vnic := r.region.InstanceVNICs(n.Spec.ProviderID[len("oci://"):])[0]
		for _, a := range n.Status.Addresses {
			out[a.Address] = r.sideIn([]string{*vnic.SubnetId}, vnic.NsgIds)
		}
	}
	return out
}

// Addresses in both families of a client that all source ranges of the tests let in, of one that only "everybody" lets in, and of
// the balancer in the subnet front.
func clientAddress(v6 bool) netip.Addr   { return pickAddress(v6, "198.51.100.7", "2001:db8::7") }
func strangerAddress(v6 bool) netip.Addr { return pickAddress(v6, "192.0.2.66", "2001:db9::66") }
func frontAddress(v6 bool) netip.Addr    { return pickAddress(v6, "10.0.20.250", "fd00:10:0:20::250") }

func pickAddress(v6 bool, four, six string) netip.Addr {
	return netip.MustParseAddr(pick(v6, four, six))
}

// guarded are the parts of the way for which the mode of security rules of a Service has rules.
type guarded struct{ clients, nodes bool }

func guardedIn(s *v1.Service, kind oci.BalancerKind) guarded {
	switch mode := s.Annotations[ruleMode]; {
	case mode == "SL-All", mode == "NSG", mode == "" && kind == oci.KindLB:
		return guarded{clients: true, nodes: true}
	case mode == "SL-Frontend":
		return guarded{clients: true}
	default:
		return guarded{}
	}
}

// obstacle names what stops traffic from a client on its way to a node; it is empty if nothing does.
func (r *rig) obstacle(parts guarded, balancer, node side, f flow, x route) string {
	client, from := clientAddress(f.v6), frontAddress(f.v6)
	source, sourceGroups := from, balancer.groups
	if x.preserved {
		source, sourceGroups = client, nil
	}
	nodeAddress := netip.MustParseAddr(x.node)
	for _, hop := range []struct {
		name    string
		demand  bool
		at      side
		through connection
	}{
		{"client to balancer", parts.clients, balancer, connection{false, f.protocol, client, nil, f.port}},
		{"out of the balancer", parts.nodes, balancer, connection{true, f.protocol, nodeAddress, node.groups, x.port}},
		{"into the node", parts.nodes, node, connection{false, f.protocol, source, sourceGroups, x.port}},
		{"health check out of the balancer", parts.nodes, balancer, connection{true, v1.ProtocolTCP, nodeAddress, node.groups, x.checkPort}},
		{"health check into the node", parts.nodes, node, connection{false, v1.ProtocolTCP, from, balancer.groups, x.checkPort}},
	} {
		if hop.demand && !r.admits(hop.at, hop.through) {
			return hop.name
		}
	}
	return ""
}

// blocked are the ports that both Services have and that traffic does not get through to, with the reason. What one of them has no
// rules for is left out of account: somebody else looks after it.
func (r *rig) blocked(id string, before, after *v1.Service, nodes map[string]side) []string {
	kind := r.kindOf(id)
	a, b := guardedIn(before, kind), guardedIn(after, kind)
	parts := guarded{a.clients && b.clients, a.nodes && b.nodes}
	routes, balancer := r.routes(id), r.balancerSide(id)
	second := flows(after)
	var out []string
	for f, nodePort := range flows(before) {
		other, both := second[f]
		if !both || f.v6 && kind == oci.KindLB {
			continue
		}
		reasons := []string{"no backend"}
		if !slices.ContainsFunc(routes[f], func(x route) bool {
			node, known := nodes[x.node]
			if !known || x.port != nodePort && x.port != other {
				return false
			}
			reason := r.obstacle(parts, balancer, node, f, x)
			reasons = append(reasons, reason)
			return reason == ""
		}) {
			out = append(out, fmt.Sprintf("%v: %v", f, reasons))
		}
	}
	return out
}

// watchWay looks at the whole way, from clients to nodes, after each call to the region.
func (r *rig) watchWay(id string, before, after *v1.Service, nodes map[string]side) (stop func()) {
	lost := map[string]bool{}
	return r.region.OnCall(func(c ocisim.Call) {
		for _, message := range r.blocked(id, before, after, nodes) {
			if !lost[message] {
				r.Errorf("after %s: %s", c.Operation, message)
			}
			lost[message] = true
		}
	})
}

// dualWorker is a worker with addresses of both families, in the group of the nodes.
func (r *rig) dualWorker(name, subnet string) *v1.Node {
	r.Helper()
	id := r.region.AddInstance(ocisim.Instance{Compartment: r.compartment, Name: name, VNIC: ocisim.VNIC{
		Subnet: subnet, IPv6: []string{ocisim.Auto}, SecurityGroups: []string{r.ruled.backends},
	}})
	vnic := r.region.InstanceVNICs(id)[0]
	n := &v1.Node{Spec: v1.NodeSpec{ProviderID: "oci://" + id}}
	n.Name = name
	for _, address := range append([]string{*vnic.PrivateIp}, vnic.Ipv6Addresses...) {
		n.Status.Addresses = append(n.Status.Addresses, v1.NodeAddress{Type: v1.NodeInternalIP, Address: address})
	}
	return n
}

// C078, C073, C050: with and without preservation of the source, the rules let clients and the health check through to the nodes,
// and nobody else. A change of the annotation is one update of the backend set, and changes the rules.
func TestSourcePreservation(t *testing.T) {
	for _, policy := range []v1.ServiceExternalTrafficPolicy{v1.ServiceExternalTrafficPolicyCluster, v1.ServiceExternalTrafficPolicyLocal} {
		for _, value := range []string{"", "true", "false"} {
			t.Run(fmt.Sprintf("%s %q", policy, value), func(t *testing.T) {
				withRules(t, ocisim.Options{Seed: 112}, func(r *rig) { r.preserves(policy, value) })
			})
		}
	}
}

func (r *rig) preserves(policy v1.ServiceExternalTrafficPolicy, value string) {
	const key = prefixNLB + "is-preserve-source"
	nodes := []*v1.Node{r.dualWorker("a", r.ruled.workers)}
	svc := r.service("web", oci.KindNLB, 80)
	local := policy == v1.ServiceExternalTrafficPolicyLocal
	r.edit(svc, func(s *v1.Service) {
		s.Annotations[ruleMode] = "SL-All"
		s.Spec.LoadBalancerSourceRanges = []string{"198.51.100.0/24"}
		s.Spec.ExternalTrafficPolicy = policy
		if local {
			s.Spec.HealthCheckNodePort = 32555
		}
		if value != "" {
			s.Annotations[key] = value
		}
	})
	if !local && value == "true" {
		r.refused(svc, nodes, "UnsupportedService")
		r.equal("balancers", len(r.live()), 0)
		r.oneSeries("UnsupportedService", "is-preserve-source", "externalTrafficPolicy Local")
		return
	}
	check := func(preserved bool) {
		r.Helper()
		svc = r.mustSync(svc, nodes)
		id := r.only().ID
		r.equal("preserved", *set80(r.only()).PreserveSource, preserved)
		sides := r.nodeSides(nodes)
		r.equal("blocked", r.blocked(id, svc, svc, sides), []string{})
		node := sides[nodes[0].Status.Addresses[0].Address]
		to := func(peer netip.Addr, port int) bool {
			return r.admits(node, connection{false, v1.ProtocolTCP, peer, nil, port})
		}
		r.equal("client to node port", to(clientAddress(false), 30080), preserved)
		r.equal("stranger to node port", to(strangerAddress(false), 30080), false)
		r.equal("client to the port of the health check", to(clientAddress(false), set80(r.only()).Checker.Port), false)
		r.equal("stranger to balancer", r.admits(r.balancerSide(id), connection{false, v1.ProtocolTCP, strangerAddress(false), nil, 80}), false)
	}
	preserved := local && value != "false"
	check(preserved)
	if local { // the other way round
		r.region.ResetCalls()
		r.edit(svc, annotate(key, fmt.Sprint(!preserved)))
		check(!preserved)
		r.equal("updates of the backend set", r.count("UpdateBackendSet"), 1)
		r.equal("updates of the list of the nodes", r.count("UpdateSecurityList"), 1)
	}
	r.noEvents()
	r.remove(svc)
	r.asAtStart()
}
