// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package loadbalancer

import (
	"fmt"
	"net/netip"
	"slices"

	v1 "k8s.io/api/core/v1"

	"github.com/oracle/oci-cloud-controller-manager/pkg/oci"
)

// Values of ipVersion in the NLB API.
const (
	ipV4 = "IPV4"
	ipV6 = "IPV6"
)

// families are the address families of a balancer's addresses (mode) and of its listeners and backends.
type families struct {
	mode   string // oci.IPMode...
	v4, v6 bool
}

// wantedFamilies are those that the Service has; the API server gives it one or two, by its policy.
func wantedFamilies(svc *v1.Service) (v4, v6 bool) {
	v6 = slices.Contains(svc.Spec.IPFamilies, v1.IPv6Protocol)
	v4 = slices.Contains(svc.Spec.IPFamilies, v1.IPv4Protocol) || !v6
	return v4, v6
}

// required says whether a Service with two families must not do with one.
func required(svc *v1.Service) bool {
	p := svc.Spec.IPFamilyPolicy
	return p != nil && *p == v1.IPFamilyPolicyRequireDualStack
}

// resolveFamilies decides about the families of a new balancer, of which every subnet must have them.
func resolveFamilies(svc *v1.Service, kind oci.BalancerKind, available families) (families, Problems) {
	v4, v6 := wantedFamilies(svc)
	got, problems := commonFamilies(svc, kind, available, "the subnet of the balancer")
	if missing := missingFamily(v4, v6, got); missing != "" && required(svc) && len(problems) == 0 {
		problems.fatal(ReasonUnsupportedService, fmt.Sprintf("ipFamilyPolicy RequireDualStack needs %s, which the subnet of the balancer does not have", missing))
	}
	got.mode = modeOf(got.v4, got.v6)
	return got.ofBackends(kind), problems
}

// resolveLiveFamilies decides about the families of a live balancer. That of an NLB can change between IPv4 and both; anything
// else stays as it is. subnets are those of the balancer, if they were read.
func resolveLiveFamilies(svc *v1.Service, live *oci.Balancer, subnets []*oci.Subnet) (families, Problems) {
	v4, v6 := wantedFamilies(svc)
	have := balancerFamilies(live)
	mode := modeOf(have.v4, have.v6)
	possible := have
	switch {
	case live.Kind != oci.KindNLB:
	case mode == oci.IPModeV4 && v6 && len(subnets) > 0 && subnetFamilies(subnets).v6:
		possible.v6 = true
		mode = oci.IPModeDual
	case mode == oci.IPModeDual && !v6:
		mode = oci.IPModeV4
	}
	got, problems := commonFamilies(svc, live.Kind, possible, "the live balancer")
	if len(problems) > 0 {
		return got, problems
	}
	got.mode = mode
	immutable := func(format string, args ...any) {
		problems.warn(ReasonImmutable, fmt.Sprintf(format, args...)+"; this cannot change on a live balancer: recreate the Service to apply it")
	}
	missing := missingFamily(v4, v6, got)
	inSubnet := len(subnets) > 0 && (missing == "IPv6" && subnetFamilies(subnets).v6 || missing == "IPv4" && subnetFamilies(subnets).v4)
	switch {
	case missing != "" && live.Kind == oci.KindNLB && !inSubnet && required(svc):
		problems.warn(ReasonImmutable, fmt.Sprintf("the Service asks for %s, which the subnet of the live balancer does not have; it stays as it is", missing))
	case missing != "" && (required(svc) || inSubnet):
		immutable("the Service asks for %s, which the live balancer does not have", missing)
	case live.Kind == oci.KindLB && have.v6 && !v6:
		immutable("the Service asks for IPv4 alone, and the live balancer has IPv6 too")
	}
	return got.ofBackends(live.Kind), problems
}

// commonFamilies are those that the Service asks for and that are there.
func commonFamilies(svc *v1.Service, kind oci.BalancerKind, available families, where string) (families, Problems) {
	var problems Problems
	v4, v6 := wantedFamilies(svc)
	if kind == oci.KindLB && !v4 {
		problems.fatal(ReasonUnsupportedService, "a load balancer cannot serve IPv6 alone; set the annotation "+annotationType+" to nlb, or give the Service the family IPv4")
		return families{}, problems
	}
	got := families{v4: v4 && available.v4, v6: v6 && available.v6}
	if !got.v4 && !got.v6 {
		problems.fatal(ReasonUnsupportedService, fmt.Sprintf("the Service asks for %s, which %s does not have", missingFamily(v4, v6, got), where))
	}
	return got, problems
}

// missingFamily names a family that the Service asks for and does not get.
func missingFamily(v4, v6 bool, got families) string {
	switch {
	case v4 && !got.v4:
		return "IPv4"
	case v6 && !got.v6:
		return "IPv6"
	}
	return ""
}

func modeOf(v4, v6 bool) string {
	switch {
	case v4 && v6:
		return oci.IPModeDual
	case v6:
		return oci.IPModeV6
	}
	return oci.IPModeV4
}

// ofBackends are the families of listeners and backends, where the balancer has these.
func (f families) ofBackends(kind oci.BalancerKind) families {
	if kind == oci.KindLB {
		f.v4, f.v6 = true, false // the backends of a load balancer have IPv4 addresses only
	}
	return f
}

// subnetFamilies are the families that every one of the subnets has.
func subnetFamilies(subnets []*oci.Subnet) families {
	f := families{v4: true, v6: true}
	for _, s := range subnets {
		f.v4 = f.v4 && len(s.CIDRs) > 0
		f.v6 = f.v6 && len(s.IPv6CIDRs) > 0
	}
	return f
}

// balancerFamilies are the families that a live balancer has.
func balancerFamilies(b *oci.Balancer) families {
	switch b.IPMode {
	case oci.IPModeDual:
		return families{v4: true, v6: true}
	case oci.IPModeV6:
		// What a load balancer calls IPV6 is both.
		return families{v4: b.Kind == oci.KindLB, v6: true}
	case oci.IPModeV4:
		return families{v4: true}
	}
	// The field is optional in the API; addresses and listeners tell as well.
	f := families{}
	for _, a := range b.Addresses {
		if ip, err := netip.ParseAddr(a.IP); err == nil {
			f.v4, f.v6 = f.v4 || ip.Is4(), f.v6 || ip.Is6()
		}
	}
	for _, l := range b.Listeners {
		p, own := ownListener(b.Kind, l)
		f.v6 = f.v6 || own && p.v6
	}
	f.v4 = f.v4 || !f.v6
	return f
}

// narrow leaves out a family that no node has an address of, where the Service can do without it.
func (f families) narrow(svc *v1.Service, t targets) families {
	if len(t.usable) == 0 || required(svc) || !f.v4 || !f.v6 {
		return f
	}
	switch {
	case !t.has(true):
		f.v6 = false
	case !t.has(false):
		f.v4 = false
	}
	return f
}
