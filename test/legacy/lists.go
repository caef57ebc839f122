// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package legacy

import (
	"context"
	"fmt"
	"slices"

	"github.com/oracle/oci-go-sdk/v65/common"
	"github.com/oracle/oci-go-sdk/v65/core"
	v1 "k8s.io/api/core/v1"
)

// listRule is a rule of a security list: TCP, stateful, to one port, without a description.
type listRule struct {
	egress bool
	cidr   string
	port   int
}

func (x listRule) String() string {
	if x.egress {
		return fmt.Sprintf("egress TCP %d to %s", x.port, x.cidr)
	}
	return fmt.Sprintf("ingress TCP %d from %s", x.port, x.cidr)
}

// listRules are the rules of a Service by security list, with a balancer in some subnets.
func (r *Release) listRules(svc *v1.Service, s spec, subnets []string) map[string][]listRule {
	mode := modeOf(svc)
	out := map[string][]listRule{}
	if mode != modeAll && mode != modeFrontend {
		return out
	}
	add := func(list string, rule listRule) {
		if !slices.Contains(out[list], rule) {
			out[list] = append(out[list], rule)
		}
	}
	for _, p := range s.ports {
		for _, id := range subnets {
			front := r.listOf(id)
			for _, source := range s.sources {
				add(front, listRule{cidr: source, port: p.number})
			}
			if mode == modeFrontend {
				continue
			}
			for _, nodes := range r.nodeSubnets(s.nodes) {
				back := r.listOf(nodes)
				for _, to := range []int{p.nodePort, s.healthPort} {
					for _, cidr := range r.blocks(nodes, s) {
						add(front, listRule{egress: true, cidr: cidr, port: to})
					}
					for _, cidr := range r.blocks(id, s) {
						add(back, listRule{cidr: cidr, port: to})
					}
				}
				for _, source := range s.sources {
					if s.preserve {
						add(back, listRule{cidr: source, port: p.nodePort})
					}
				}
			}
		}
	}
	return out
}

// nodeSubnets are the subnets of the nodes.
func (r *Release) nodeSubnets(nodes []*v1.Node) []string {
	var ids []string
	for _, n := range nodes {
		for _, vnic := range r.Region.InstanceVNICs(instanceOf(n)) {
			if !slices.Contains(ids, *vnic.SubnetId) {
				ids = append(ids, *vnic.SubnetId)
			}
		}
	}
	return ids
}

// backends are the nodes with the given addresses.
func (r *Release) backends(ips []string) []*v1.Node {
	return slices.DeleteFunc(slices.Clone(r.Nodes), func(n *v1.Node) bool {
		v4, v6 := addresses(n)
		return !slices.Contains(ips, v4) && !slices.Contains(ips, v6)
	})
}

func (r *Release) blocks(subnet string, s spec) []string {
	found, _ := r.Region.Subnet(subnet)
	var out []string
	if s.v4 && found.CidrBlock != nil {
		out = append(out, *found.CidrBlock)
	}
	if s.v6 {
		out = append(out, found.Ipv6CidrBlocks...)
	}
	return out
}

// listOf is the security list of a subnet that is edited: the configured one if the subnet has it, else the oldest.
func (r *Release) listOf(subnet string) string {
	found, _ := r.Region.Subnet(subnet)
	if id := r.Lists[subnet]; slices.Contains(found.SecurityListIds, id) {
		return id
	}
	var lists []core.SecurityList
	for _, id := range found.SecurityListIds {
		if list, ok := r.Region.SecurityList(id); ok {
			lists = append(lists, list)
		}
	}
	if len(lists) == 0 {
		return ""
	}
	return *oldest(lists).Id
}

// missing are the rules of a Service that its lists lack. Ports and CIDR blocks are compared, descriptions are not.
func (r *Release) missing(svc *v1.Service, s spec, subnets []string) map[string][]listRule {
	out := map[string][]listRule{}
	for id, rules := range r.listRules(svc, s, subnets) {
		list, _ := r.Region.SecurityList(id)
		have := tcpRules(list)
		for _, rule := range rules {
			if !slices.Contains(have, rule) {
				out[id] = append(out[id], rule)
			}
		}
	}
	return out
}

// tcpRules are the rules of a list that have the form of that release's.
func tcpRules(list core.SecurityList) []listRule {
	var out []listRule
	for _, x := range list.IngressSecurityRules {
		if port, ok := tcpPort(x.TcpOptions); ok {
			out = append(out, listRule{cidr: *x.Source, port: port})
		}
	}
	for _, x := range list.EgressSecurityRules {
		if port, ok := tcpPort(x.TcpOptions); ok {
			out = append(out, listRule{egress: true, cidr: *x.Destination, port: port})
		}
	}
	return out
}

// tcpPort is the port of a rule about one TCP port and all source ports.
func tcpPort(o *core.TcpOptions) (int, bool) {
	if o == nil || o.SourcePortRange != nil || o.DestinationPortRange == nil || *o.DestinationPortRange.Min != *o.DestinationPortRange.Max {
		return 0, false
	}
	return *o.DestinationPortRange.Min, true
}

func tcpTo(port int) *core.TcpOptions {
	return &core.TcpOptions{DestinationPortRange: &core.PortRange{Min: &port, Max: &port}}
}

// openLists opens what a Service needs in security lists.
func (r *Release) openLists(ctx context.Context, svc *v1.Service, s spec) error {
	b, err := r.Find(svc)
	if err != nil {
		return err
	}
	for id, rules := range r.missing(svc, s, b.Subnets) {
		err := r.editList(ctx, id, func(list *core.SecurityList) {
			for _, x := range rules {
				if x.egress {
					list.EgressSecurityRules = append(list.EgressSecurityRules, core.EgressSecurityRule{
						Protocol: common.String("6"), Destination: &x.cidr, DestinationType: core.EgressSecurityRuleDestinationTypeCidrBlock,
						IsStateless: common.Bool(false), TcpOptions: tcpTo(x.port),
					})
				} else {
					list.IngressSecurityRules = append(list.IngressSecurityRules, core.IngressSecurityRule{
						Protocol: common.String("6"), Source: &x.cidr, SourceType: core.IngressSecurityRuleSourceTypeCidrBlock,
						IsStateless: common.Bool(false), TcpOptions: tcpTo(x.port),
					})
				}
			}
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// editList writes a security list as a whole, if something changes.
func (r *Release) editList(ctx context.Context, id string, change func(*core.SecurityList)) error {
	client, err := r.network()
	if err != nil {
		return err
	}
	read, err := client.GetSecurityList(ctx, core.GetSecurityListRequest{SecurityListId: &id})
	if err != nil {
		return err
	}
	list := read.SecurityList
	change(&list)
	if len(list.IngressSecurityRules) == len(read.IngressSecurityRules) && len(list.EgressSecurityRules) == len(read.EgressSecurityRules) {
		return nil
	}
	_, err = client.UpdateSecurityList(ctx, core.UpdateSecurityListRequest{SecurityListId: &id, IfMatch: read.Etag, UpdateSecurityListDetails: core.UpdateSecurityListDetails{
		IngressSecurityRules: list.IngressSecurityRules, EgressSecurityRules: list.EgressSecurityRules,
	}})
	return err
}

// closeLists removes the rules of a Service that goes: all for its ports, unless another Service has a port with the same
// number, or needs the port of the health check.
func (r *Release) closeLists(ctx context.Context, svc *v1.Service, b *Balancer) error {
	if mode := modeOf(svc); mode != modeAll && mode != modeFrontend {
		return nil
	}
	all := modeOf(svc) == modeAll
	for _, p := range r.spec(svc).ports {
		set := b.Listeners[p.listener]
		if set == "" {
			set = p.set
		}
		nodePort, health := b.Ports[set], b.HealthPorts[set]
		for _, id := range b.Subnets {
			err := r.editList(ctx, r.listOf(id), func(list *core.SecurityList) {
				list.IngressSecurityRules = slices.DeleteFunc(list.IngressSecurityRules, func(x core.IngressSecurityRule) bool {
					port, ok := tcpPort(x.TcpOptions)
					return ok && port == p.number && !r.portUsed(svc, p.number)
				})
				list.EgressSecurityRules = slices.DeleteFunc(list.EgressSecurityRules, func(x core.EgressSecurityRule) bool {
					port, ok := tcpPort(x.TcpOptions)
					return all && ok && (port == nodePort || port == health && !r.healthUsed(svc, health))
				})
			})
			if err != nil {
				return err
			}
		}
		for _, id := range r.nodeSubnets(r.backends(b.IPs[set])) {
			if !all {
				break
			}
			err := r.editList(ctx, r.listOf(id), func(list *core.SecurityList) {
				list.IngressSecurityRules = slices.DeleteFunc(list.IngressSecurityRules, func(x core.IngressSecurityRule) bool {
					port, ok := tcpPort(x.TcpOptions)
					return ok && (port == nodePort || port == health && !r.healthUsed(svc, health))
				})
			})
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// portUsed says whether another Service has a port with this number.
func (r *Release) portUsed(svc *v1.Service, number int) bool {
	return slices.ContainsFunc(r.Services(), func(other *v1.Service) bool {
		return other.UID != svc.UID && other.DeletionTimestamp == nil && other.Spec.Type == v1.ServiceTypeLoadBalancer &&
			slices.ContainsFunc(other.Spec.Ports, func(p v1.ServicePort) bool { return int(p.Port) == number })
	})
}

// healthUsed says whether another Service has its health checks at a port.
func (r *Release) healthUsed(svc *v1.Service, number int) bool {
	return slices.ContainsFunc(r.Services(), func(other *v1.Service) bool {
		return other.UID != svc.UID && other.DeletionTimestamp == nil && other.Spec.Type == v1.ServiceTypeLoadBalancer && r.spec(other).healthPort == number
	})
}
