// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package legacy

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// Prefixes of annotations.
const (
	prefixLB     = "service.beta.kubernetes.io/oci-load-balancer-"
	prefixCommon = "oci.oraclecloud.com/"
	prefixNLB    = "oci-network-load-balancer.oraclecloud.com/"
)

// The modes of security rules.
const (
	modeAll      = "All"
	modeFrontend = "Frontend"
	modeNSG      = "NSG"
	modeNone     = "None"
)

// isNLB says whether a Service gets a network load balancer. Any other value than nlb means a load balancer.
func isNLB(svc *v1.Service) bool {
	return strings.EqualFold(svc.Annotations[prefixCommon+"load-balancer-type"], "nlb")
}

// modeOf is the mode of a Service. The configuration has no influence on it.
func modeOf(svc *v1.Service) string {
	if text, set := svc.Annotations[prefixCommon+"security-rule-management-mode"]; set {
		for mode, value := range map[string]string{modeAll: "SL-All", modeFrontend: "SL-Frontend", modeNSG: "NSG"} {
			if strings.EqualFold(text, value) {
				return mode
			}
		}
		return modeNone
	}
	key, mode := prefixLB+"security-list-management-mode", modeAll
	if isNLB(svc) {
		key, mode = prefixNLB+"security-list-management-mode", modeNone
	}
	if text := svc.Annotations[key]; slices.Contains([]string{modeAll, modeFrontend, modeNone}, text) {
		mode = text
	}
	return mode
}

// DisplayName is the name of the balancer of a Service.
func (r *Release) DisplayName(svc *v1.Service) string {
	name := string(svc.UID)
	switch {
	case isNLB(svc):
		name = svc.Namespace + "/" + svc.Name + "/" + name
	case r.Prefix != "":
		name = strings.TrimSuffix(r.Prefix, "-") + "-" + name
	}
	return name[:min(len(name), 1024)]
}

// spec is what a Service asks for.
type spec struct {
	nlb         bool
	compartment string
	subnets     []string
	private     bool
	v4, v6      bool
	preserve    bool
	ports       []port
	sources     []string
	healthPort  int
	tlsPorts    []int
	secret      string // "namespace/name", of listeners
	setSecret   string // of backend sets
	nodes       []*v1.Node
}

// port is a listener with its backend set.
type port struct {
	listener, set string
	protocol      string // of the listener
	number        int
	nodePort      int
	v6            bool
}

func (r *Release) spec(svc *v1.Service) spec {
	s := spec{nlb: isNLB(svc), compartment: r.Compartment, subnets: r.Subnets}
	get := func(key string) string { return svc.Annotations[key] }
	if id := get(prefixCommon + "compartment-id"); id != "" {
		s.compartment = id
	}
	prefix := prefixLB
	if s.nlb {
		prefix = prefixNLB
	}
	s.private, _ = strconv.ParseBool(get(prefix + "internal"))
	if id := get(prefixNLB + "subnet"); s.nlb && id != "" {
		s.subnets = []string{id}
	}
	if id := get(prefixLB + "subnet1"); !s.nlb && id != "" {
		s.subnets = []string{id}
	}
	if s.nlb || s.private {
		s.subnets = s.subnets[:1]
	}
	s.families(r, svc)
	local := svc.Spec.ExternalTrafficPolicy == v1.ServiceExternalTrafficPolicyLocal
	s.preserve = local && get(prefixCommon+"load-balancer-type") == "nlb" && get(prefixNLB+"is-preserve-source") != "false" // the case counts
	s.healthPort = 10256
	if local && svc.Spec.HealthCheckNodePort > 0 {
		s.healthPort = int(svc.Spec.HealthCheckNodePort)
	}
	s.listen(svc)
	s.secrets(svc)
	s.clients(svc)
	s.nodes = selected(svc, r.Nodes)
	return s
}

// selected are the nodes that the Service selects.
func selected(svc *v1.Service, nodes []*v1.Node) []*v1.Node {
	key := prefixCommon + "node-label-selector"
	if isNLB(svc) {
		key = prefixNLB + "node-label-selector"
	}
	selector, err := labels.Parse(svc.Annotations[key])
	if err != nil {
		return nil
	}
	var out []*v1.Node
	for _, n := range nodes {
		if selector.Matches(labels.Set(n.Labels)) {
			out = append(out, n)
		}
	}
	return out
}

// families decides about the address families: of two, those that the subnet has.
func (s *spec) families(r *Release, svc *v1.Service) {
	s.v6 = slices.Contains(svc.Spec.IPFamilies, v1.IPv6Protocol)
	s.v4 = slices.Contains(svc.Spec.IPFamilies, v1.IPv4Protocol) || !s.v6
	if !s.nlb {
		s.v4, s.v6 = true, false
		return
	}
	for _, id := range s.subnets {
		if subnet, ok := r.Region.Subnet(id); ok && s.v4 {
			s.v6 = s.v6 && len(subnet.Ipv6CidrBlocks) > 0
		}
	}
}

// listen makes listeners of ports. TCP and UDP on one port are one listener, with the first node port.
func (s *spec) listen(svc *v1.Service) {
	backend := svc.Annotations[prefixLB+"backend-protocol"]
	if strings.EqualFold(backend, "GRPC") {
		backend = "GRPC"
	}
	for _, v6 := range []bool{false, true} {
		if v6 && !s.v6 || !v6 && !s.v4 {
			continue
		}
		suffix := ""
		if v6 {
			suffix = "-IPv6"
		}
		first := len(s.ports)
		for _, p := range svc.Spec.Ports {
			protocol := string(p.Protocol)
			if protocol == "" {
				protocol = "TCP"
			}
			i := slices.IndexFunc(s.ports[first:], func(x port) bool { return x.number == int(p.Port) })
			if i >= 0 {
				x := &s.ports[first+i]
				x.protocol = "TCP_AND_UDP"
				x.listener = fmt.Sprintf("TCP_AND_UDP-%d%s", p.Port, suffix)
				x.set = x.listener
				continue
			}
			x := port{set: fmt.Sprintf("%s-%d%s", protocol, p.Port, suffix), protocol: protocol, number: int(p.Port), nodePort: int(p.NodePort), v6: v6}
			if backend != "" && !s.nlb {
				x.protocol = backend
			}
			x.listener = fmt.Sprintf("%s-%d%s", x.protocol, p.Port, suffix)
			s.ports = append(s.ports, x)
		}
	}
}

func (s *spec) secrets(svc *v1.Service) {
	text, set := svc.Annotations[prefixLB+"ssl-ports"]
	if !set || s.nlb {
		return
	}
	for part := range strings.SplitSeq(text, ",") {
		if n, err := strconv.Atoi(strings.TrimSpace(part)); err == nil {
			s.tlsPorts = append(s.tlsPorts, n)
		}
	}
	in := func(name string) string {
		if name == "" || strings.Contains(name, "/") {
			return name
		}
		return svc.Namespace + "/" + name
	}
	s.secret, s.setSecret = in(svc.Annotations[prefixLB+"tls-secret"]), in(svc.Annotations[prefixLB+"tls-backendset-secret"])
}

// clients decides who may connect.
func (s *spec) clients(svc *v1.Service) {
	s.sources = svc.Spec.LoadBalancerSourceRanges
	if text := svc.Annotations["service.beta.kubernetes.io/load-balancer-source-ranges"]; len(s.sources) == 0 && text != "" {
		for part := range strings.SplitSeq(text, ",") {
			s.sources = append(s.sources, strings.TrimSpace(part))
		}
	}
	if len(s.sources) > 0 {
		return
	}
	if s.v4 {
		s.sources = append(s.sources, "0.0.0.0/0")
	}
	if s.v6 {
		s.sources = append(s.sources, "::/0")
	}
}

// bundle is the name of the certificate of a Secret: the namespace is not in it.
func bundle(secret string) string {
	return secret[strings.Index(secret, "/")+1:]
}

// addresses are the last address of each family that a node has.
func addresses(n *v1.Node) (v4, v6 string) {
	for _, a := range n.Status.Addresses {
		ip, err := netip.ParseAddr(a.Address)
		switch {
		case err != nil || a.Type != v1.NodeInternalIP:
		case ip.Is4():
			v4 = ip.String()
		default:
			v6 = ip.String()
		}
	}
	return v4, v6
}

func instanceOf(n *v1.Node) string { return strings.TrimPrefix(n.Spec.ProviderID, "oci://") }

// number reads a number of an annotation.
func number(svc *v1.Service, key string, byDefault int) *int {
	n, err := strconv.Atoi(svc.Annotations[key])
	if err != nil {
		n = byDefault
	}
	return &n
}

func text(svc *v1.Service, key, byDefault string) *string {
	value := svc.Annotations[key]
	if value == "" {
		value = byDefault
	}
	return &value
}

// groupsOf are the groups that an annotation names, sorted and without duplicates.
func groupsOf(svc *v1.Service, key string) []string {
	var ids []string
	for part := range strings.SplitSeq(svc.Annotations[key], ",") {
		if part = strings.TrimSpace(part); part != "" {
			ids = append(ids, part)
		}
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}

// object reads an annotation that holds JSON, if there is one.
func object(svc *v1.Service, key string, into any) error {
	value, set := svc.Annotations[key]
	if !set {
		return nil
	}
	if err := json.Unmarshal([]byte(value), into); err != nil {
		return fmt.Errorf("annotation %s: %w", key, err)
	}
	return nil
}
