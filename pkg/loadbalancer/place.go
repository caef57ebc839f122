// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package loadbalancer

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"

	"github.com/oracle/oci-cloud-controller-manager/pkg/oci"
)

// SubnetCandidates are the subnets that a new balancer may be put into, in order.
func SubnetCandidates(s Settings, cfg Config) []string {
	first, second := s.Subnet1, s.Subnet2
	if first == "" {
		first = cfg.Subnet1
	}
	if second == "" {
		second = cfg.Subnet2
	}
	if s.Kind == oci.KindNLB {
		second = ""
	}
	ids := slices.DeleteFunc([]string{first, second}, func(id string) bool { return id == "" })
	return slices.Compact(ids)
}

// place decides where a new balancer goes: subnets and addresses.
func (m *Model) place(svc *v1.Service, s Settings, cfg Config, facts Facts) Problems {
	var problems Problems
	chosen := chooseSubnets(s, cfg, facts.Subnets)
	if len(chosen) == 0 {
		key := prefixLB + "load-balancer-subnet1"
		if s.Kind == oci.KindNLB {
			key = prefixNLB + "subnet"
		}
		problems.fatal(ReasonNoSubnet, fmt.Sprintf("no subnet is configured: set loadBalancer.subnet1 in the cloud configuration or the annotation %s of the Service", key))
	}
	for _, subnet := range chosen {
		m.SubnetIDs = append(m.SubnetIDs, subnet.ID)
		if subnet.ProhibitPublicIP && !m.Private {
			problems.fatal(ReasonPrivateSubnet, fmt.Sprintf("subnet %s is private and the balancer public: set the annotation %s: \"true\", or choose a public subnet", subnet.ID, internalKey(s.Kind)))
		}
	}
	problems = append(problems, m.reserve(svc, s, facts.ReservedIP)...)
	return problems
}

func internalKey(kind oci.BalancerKind) string {
	if kind == oci.KindNLB {
		return prefixNLB + "internal"
	}
	return prefixLB + "load-balancer-internal"
}

// chooseSubnets picks from the candidates: a regional subnet is used alone, and one named by an annotation comes before
// configured ones; a private balancer has one subnet.
func chooseSubnets(s Settings, cfg Config, candidates []*oci.Subnet) []*oci.Subnet {
	if len(candidates) == 0 {
		return nil
	}
	if s.Kind == oci.KindNLB || orDefault(s.Internal, false) {
		return candidates[:1]
	}
	regional := func(id string) *oci.Subnet {
		i := slices.IndexFunc(candidates, func(x *oci.Subnet) bool { return x.ID == id && x.AvailabilityDomain == "" })
		if id == "" || i < 0 {
			return nil
		}
		return candidates[i]
	}
	for _, id := range []string{s.Subnet1, s.Subnet2, cfg.Subnet1, cfg.Subnet2} {
		if only := regional(id); only != nil {
			return []*oci.Subnet{only}
		}
	}
	return candidates
}

// reserve decides about spec.loadBalancerIP.
func (m *Model) reserve(svc *v1.Service, s Settings, found *oci.PublicIP) Problems {
	var problems Problems
	wanted := svc.Spec.LoadBalancerIP
	if wanted == "" {
		return nil
	}
	invalid := func(format string, args ...any) {
		problems.fatal(ReasonInvalidAddress, fmt.Sprintf("spec.loadBalancerIP %s: ", wanted)+fmt.Sprintf(format, args...))
	}
	ip, err := netip.ParseAddr(wanted)
	switch {
	case err != nil:
		invalid("it is no IP address")
	case ip.Is6():
		invalid("only a reserved public IPv4 address can be asked for here")
	case m.Private:
		invalid("the balancer is internal and has no public address; remove spec.loadBalancerIP%s", hintAssigned(s.Kind))
	case found == nil:
		invalid("there is no public IP with this address in the region, or the policy does not allow to read it (read public-ips)")
	case found.Lifetime != "RESERVED":
		invalid("it is not a reserved public IP (its lifetime is %s)", found.Lifetime)
	case found.State != "AVAILABLE" && found.State != "UNASSIGNED":
		invalid("it is in use (state %s%s)", found.State, before(", assigned to ", found.AssignedEntityID))
	default:
		m.ReservedIPID = found.ID
	}
	return problems
}

func hintAssigned(kind oci.BalancerKind) string {
	if kind == oci.KindNLB {
		return ", or use the annotation " + prefixNLB + "assigned-private-ipv4"
	}
	return ""
}

// keepPlace takes over what cannot change on a live balancer, and names every difference from what is asked for.
func (m *Model) keepPlace(svc *v1.Service, s Settings, live *oci.Balancer, fam families) Problems {
	var problems Problems
	immutable := func(format string, args ...any) {
		problems.warn(ReasonImmutable, fmt.Sprintf(format, args...)+"; this cannot change on a live balancer: recreate the Service to apply it")
	}
	problems = append(problems, m.keepKind(svc, s, live)...)
	if m.Private != live.Private {
		immutable("annotation %s asks for a %s balancer, this one is %s", internalKey(s.Kind), visibility(m.Private), visibility(live.Private))
	}
	m.Private = live.Private
	named := slices.DeleteFunc([]string{s.Subnet1, s.Subnet2}, func(id string) bool { return id == "" })
	missing := slices.DeleteFunc(slices.Clone(named), func(id string) bool { return slices.Contains(live.SubnetIDs, id) })
	// Of two subnets the balancer may use one only, see chooseSubnets.
	if len(live.SubnetIDs) > 0 && len(missing) > 0 && (len(missing) == len(named) || len(live.SubnetIDs) > 1) {
		immutable("the annotations ask for subnet %s, the balancer is in %s", missing[0], strings.Join(live.SubnetIDs, ", "))
	}
	m.SubnetIDs = live.SubnetIDs
	has := func(ip string) bool {
		return slices.ContainsFunc(live.Addresses, func(a oci.BalancerAddress) bool { return sameAddress(a.IP, ip) })
	}
	for _, wanted := range []struct{ what, ip string }{
		{"spec.loadBalancerIP", svc.Spec.LoadBalancerIP},
		{"annotation " + prefixNLB + "assigned-private-ipv4", s.AssignedPrivateIPv4},
		{"annotation " + prefixNLB + "assigned-ipv6", s.AssignedIPv6},
	} {
		if fam.mode == oci.IPModeDual && live.IPMode == oci.IPModeV4 && wanted.ip == s.AssignedIPv6 {
			continue // the balancer gets its IPv6 address now
		}
		if wanted.ip != "" && len(live.Addresses) > 0 && !has(wanted.ip) {
			immutable("%s asks for %s, which the balancer does not have", wanted.what, wanted.ip)
		}
	}
	reserved := slices.IndexFunc(live.Addresses, func(a oci.BalancerAddress) bool { return a.ReservedID != "" })
	if svc.Spec.LoadBalancerIP == "" && reserved >= 0 {
		immutable("spec.loadBalancerIP asks for no reserved address any more, the balancer has %s", live.Addresses[reserved].IP)
	}
	return problems
}

// keepKind takes over the kind and the compartment of a live balancer, and tells, in one event, if others are asked for.
func (m *Model) keepKind(svc *v1.Service, s Settings, live *oci.Balancer) Problems {
	var differences []string
	if wanted := WantedKind(svc.Annotations); wanted != live.Kind && legalKind(svc.Annotations) {
		differences = append(differences, fmt.Sprintf("annotation %s asks for %s, the balancer is of type %s", annotationType, wanted, live.Kind))
	}
	if m.CompartmentID != live.CompartmentID && live.CompartmentID != "" {
		if s.CompartmentID != "" {
			differences = append(differences, fmt.Sprintf("annotation %s asks for %s, the balancer is in %s", annotationCompartment, s.CompartmentID, live.CompartmentID))
		}
		m.CompartmentID = live.CompartmentID
	}
	if len(differences) == 0 {
		return nil
	}
	return Problems{{Reason: ReasonImmutable, Message: fmt.Sprintf(
		"%s; this cannot change on a live balancer: to have it replaced by another one, with other addresses, set the annotation %s: \"true\"",
		strings.Join(differences, ", and "), annotationReplace)}}
}

func visibility(private bool) string {
	if private {
		return "private"
	}
	return "public"
}
