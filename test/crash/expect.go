// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/oracle/oci-go-sdk/v65/core"
	"github.com/oracle/oci-go-sdk/v65/loadbalancer"
	"github.com/oracle/oci-go-sdk/v65/networkloadbalancer"
	v1 "k8s.io/api/core/v1"
)

// row is what is wanted of a port, or seen of a listener: with its backends' port, or ports where they differ.
func row(kind string, listener int, backendPorts []string, interval int, certificate string) string {
	n := len(backendPorts)
	slices.Sort(backendPorts)
	text := fmt.Sprintf("%s %d->%sx%d, checks every %d ms", kind, listener, strings.Join(slices.Compact(backendPorts), "+"), n, interval)
	if certificate != "" {
		text += ", certificate " + certificate
	}
	return text
}

// wanted lists what a Service shall have, in the form of seen.
func (m *matrix) wanted(svc *v1.Service, w *wish) []string {
	var list []string
	for _, p := range svc.Spec.Ports {
		certificate := ""
		if w.secret != "" && p.Port == securePort {
			certificate = w.holds
			list = append(list, w.kind+" bundle of certificate "+certificate)
		}
		list = append(list, row(w.kind, int(p.Port), slices.Repeat([]string{fmt.Sprint(p.NodePort)}, w.backends), w.interval, certificate))
	}
	switch w.mode {
	case lists:
		list = append(list, m.wantedInLists(svc, w)...)
	case groups:
		list = append(list, w.kind+" in group of "+string(svc.UID))
		list = append(list, wantedInGroups(svc, w)...)
	}
	slices.Sort(list)
	return list
}

// nodePorts are where the nodes are reached: for traffic and for health checks.
func nodePorts(svc *v1.Service) []int32 {
	ports := []int32{healthPort}
	for _, p := range svc.Spec.Ports {
		ports = append(ports, p.NodePort)
	}
	return ports
}

// wantedInLists are the rules of mode SL-All: clients to listeners, and balancer to nodes on both sides.
func (m *matrix) wantedInLists(svc *v1.Service, w *wish) []string {
	var list []string
	add := func(where string, in bool, port int32, peer string) {
		list = append(list, where+": "+ruleText(in, "6", peer, exactly(port), listMark+m.clusterID))
	}
	for _, client := range w.clients {
		for _, p := range svc.Spec.Ports {
			add("list load-balancers", true, p.Port, client)
		}
	}
	for _, port := range nodePorts(svc) {
		add("list load-balancers", false, port, nodeCIDR)
		add("list nodes", true, port, frontCIDR)
	}
	return list
}

// wantedInGroups are the rules of mode NSG: clients to listeners, and balancer to nodes between the two groups.
func wantedInGroups(svc *v1.Service, w *wish) []string {
	own := "group of " + string(svc.UID)
	list := []string{own}
	add := func(where string, in bool, port int32, peer string) {
		list = append(list, where+": "+ruleText(in, "6", peer, exactly(port), groupMark+string(svc.UID)))
	}
	for _, client := range w.clients {
		for _, p := range svc.Spec.Ports {
			add(own, true, p.Port, client)
		}
	}
	for _, port := range nodePorts(svc) {
		add(own, false, port, "group nodes")
		add("group nodes", true, port, own)
	}
	return list
}

func exactly(port int32) *core.TcpOptions {
	n := int(port)
	return &core.TcpOptions{DestinationPortRange: &core.PortRange{Min: &n, Max: &n}}
}

// seen lists what there is of ours: balancers with listeners and bundles, our rules, groups of Services.
func (m *matrix) seen() []string {
	var list []string
	for _, b := range m.bed.Region.LoadBalancers() {
		if b.LifecycleState != loadbalancer.LoadBalancerLifecycleStateDeleted {
			list = append(list, m.seenLB(&b)...)
		}
	}
	for _, b := range m.bed.Region.NetworkLoadBalancers() {
		if b.LifecycleState != networkloadbalancer.LifecycleStateDeleted {
			list = append(list, m.seenNLB(&b)...)
		}
	}
	list = append(list, m.seenInLists()...)
	list = append(list, m.seenInGroups()...)
	slices.Sort(list)
	return list
}

func (m *matrix) seenLB(b *loadbalancer.LoadBalancer) []string {
	list := m.seenMembership(lb, b.NetworkSecurityGroupIds)
	if b.LifecycleState != loadbalancer.LoadBalancerLifecycleStateActive {
		list = append(list, "lb is "+string(b.LifecycleState))
	}
	certificates := map[string]string{}
	for name, bundle := range b.Certificates {
		certificates[name] = m.certificateName(bundle.PublicCertificate)
		list = append(list, "lb bundle of certificate "+certificates[name])
	}
	for _, l := range b.Listeners {
		set := b.BackendSets[*l.DefaultBackendSetName]
		ports := make([]string, 0, len(set.Backends))
		for _, backend := range set.Backends {
			ports = append(ports, fmt.Sprint(*backend.Port))
		}
		certificate := ""
		if l.SslConfiguration != nil {
			certificate = certificates[*l.SslConfiguration.CertificateName]
		}
		list = append(list, row(lb, *l.Port, ports, *set.HealthChecker.IntervalInMillis, certificate))
	}
	if n := len(b.BackendSets) - len(b.Listeners); n != 0 {
		list = append(list, fmt.Sprintf("lb has %d more backend sets than listeners", n))
	}
	return list
}

func (m *matrix) seenNLB(b *networkloadbalancer.NetworkLoadBalancer) []string {
	list := m.seenMembership(nlb, b.NetworkSecurityGroupIds)
	if b.LifecycleState != networkloadbalancer.LifecycleStateActive {
		list = append(list, "nlb is "+string(b.LifecycleState))
	}
	for _, l := range b.Listeners {
		set := b.BackendSets[*l.DefaultBackendSetName]
		ports := make([]string, 0, len(set.Backends))
		for _, backend := range set.Backends {
			ports = append(ports, fmt.Sprint(*backend.Port))
		}
		list = append(list, row(nlb, *l.Port, ports, *set.HealthChecker.IntervalInMillis, ""))
	}
	if n := len(b.BackendSets) - len(b.Listeners); n != 0 {
		list = append(list, fmt.Sprintf("nlb has %d more backend sets than listeners", n))
	}
	return list
}

func (m *matrix) seenMembership(kind string, ids []string) []string {
	var list []string
	for _, id := range ids {
		list = append(list, kind+" in "+m.groupName(id))
	}
	return list
}

// certificateName finds out which of the certificates this is.
func (m *matrix) certificateName(pem *string) string {
	for name, pair := range m.certificates {
		if pem != nil && *pem == pair.Certificate {
			return name
		}
	}
	return "unknown"
}

// groupName is a group in the words of wanted; anything that is no group as it is.
func (m *matrix) groupName(id string) string {
	if id == nodeGroup {
		return "group nodes"
	}
	if g, ok := m.bed.Region.SecurityGroup(id); ok {
		return "group of " + g.FreeformTags["ServiceUid"]
	}
	return id
}

func (m *matrix) seenInLists() []string {
	var list []string
	for _, l := range m.bed.Region.SecurityLists() {
		add := func(in bool, protocol, peer *string, tcp *core.TcpOptions, description *string) {
			if marked(description, listMark) {
				list = append(list, "list "+*l.DisplayName+": "+ruleText(in, *protocol, *peer, tcp, *description))
			}
		}
		for _, r := range l.IngressSecurityRules {
			add(true, r.Protocol, r.Source, r.TcpOptions, r.Description)
		}
		for _, r := range l.EgressSecurityRules {
			add(false, r.Protocol, r.Destination, r.TcpOptions, r.Description)
		}
	}
	return list
}

func (m *matrix) seenInGroups() []string {
	var list []string
	for _, g := range m.bed.Region.SecurityGroups() {
		where := m.groupName(*g.Id)
		if *g.Id != nodeGroup {
			list = append(list, where)
		}
		for _, r := range m.bed.Region.GroupRules(*g.Id) {
			if !marked(r.Description, groupMark) {
				continue
			}
			in, peer := true, r.Source
			if r.Direction == core.SecurityRuleDirectionEgress {
				in, peer = false, r.Destination
			}
			list = append(list, where+": "+ruleText(in, *r.Protocol, m.groupName(*peer), r.TcpOptions, *r.Description))
		}
	}
	return list
}

// difference names what is in only one of two sorted lists.
func difference(got, want []string) string {
	var out []string
	for _, x := range subtract(want, got) {
		out = append(out, "missing: "+x)
	}
	for _, x := range subtract(got, want) {
		out = append(out, "not wanted: "+x)
	}
	return strings.Join(out, "; ")
}

// subtract returns what is in a and not in b, as often as it is.
func subtract(a, b []string) []string {
	rest := slices.Clone(b)
	var out []string
	for _, x := range a {
		if i := slices.Index(rest, x); i >= 0 {
			rest = slices.Delete(rest, i, i+1)
			continue
		}
		out = append(out, x)
	}
	return out
}
