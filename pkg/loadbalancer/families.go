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

// resolveFamilies decides about the families. available are those of the balancer's subnets, or those that a live
// balancer has addresses of.
func resolveFamilies(svc *v1.Service, kind oci.BalancerKind, available families, live bool) (families, Problems) {
	var problems Problems
	v4, v6 := wantedFamilies(svc)
	if kind == oci.KindLB && !v4 {
		problems.fatal(ReasonUnsupportedService, "a load balancer cannot serve IPv6 alone; set the annotation "+annotationType+" to nlb, or give the Service the family IPv4")
		return families{}, problems
	}
	got := families{v4: v4 && available.v4, v6: v6 && available.v6}
	missing := ""
	switch {
	case v4 && !got.v4:
		missing = "IPv4"
	case v6 && !got.v6:
		missing = "IPv6"
	}
	where := "the subnet of the balancer"
	if live {
		where = "the live balancer"
	}
	switch {
	case missing == "":
	case !got.v4 && !got.v6:
		problems.fatal(ReasonUnsupportedService, fmt.Sprintf("the Service asks for %s, which %s does not have", missing, where))
	case required(svc) && live:
		problems.warn(ReasonImmutable, fmt.Sprintf("the Service asks for %s, which %s does not have; address families of a live balancer are not changed by this version", missing, where))
	case required(svc):
		problems.fatal(ReasonUnsupportedService, fmt.Sprintf("ipFamilyPolicy RequireDualStack needs %s, which %s does not have", missing, where))
	}
	switch {
	case got.v4 && got.v6:
		got.mode = oci.IPModeDual
	case got.v6:
		got.mode = oci.IPModeV6
	default:
		got.mode = oci.IPModeV4
	}
	if kind == oci.KindLB {
		got.v4, got.v6 = true, false // the backends of a load balancer have IPv4 addresses only
	}
	return got, problems
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
