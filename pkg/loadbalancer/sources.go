// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package loadbalancer

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"

	"github.com/oracle/oci-cloud-controller-manager/pkg/oci"
)

// Everybody, in each family.
const (
	anyV4 = "0.0.0.0/0"
	anyV6 = "::/0"
)

// parseRange reads a CIDR block. Bits behind the prefix are dropped, as Kubernetes does with source ranges.
func parseRange(text string) (string, error) {
	p, err := netip.ParsePrefix(strings.TrimSpace(text))
	switch {
	case err != nil || p.Addr().Zone() != "":
		return "", fmt.Errorf("%q is no CIDR block, such as 198.51.100.0/24", text)
	case p.Addr().Is4In6():
		return "", fmt.Errorf("%q is an IPv4 address in IPv6 notation; write it as IPv4", text)
	}
	return p.Masked().String(), nil
}

// parseRanges reads CIDR blocks as a set.
func parseRanges(texts []string) ([]string, error) {
	var ranges []string
	var errs []error
	for _, text := range texts {
		r, err := parseRange(text)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		ranges = append(ranges, r)
	}
	slices.Sort(ranges)
	return slices.Compact(ranges), errors.Join(errs...)
}

// sourceRanges reads the annotation that stands for spec.loadBalancerSourceRanges. Empty elements are passed over.
func sourceRanges(s *Settings, value string) error {
	var texts []string
	for text := range strings.SplitSeq(value, ",") {
		if strings.TrimSpace(text) != "" {
			texts = append(texts, text)
		}
	}
	ranges, err := parseRanges(texts)
	if err != nil {
		return err
	}
	s.SourceRanges = ranges
	return nil
}

// sources are the client addresses that may connect. Those of the spec outweigh the annotation; without either it is
// everybody, in the families in which the balancer has addresses.
func sources(svc *v1.Service, s Settings, ipMode string) []string {
	// What is no CIDR block, checkRules refuses.
	if ranges, _ := parseRanges(svc.Spec.LoadBalancerSourceRanges); len(ranges) > 0 {
		return ranges
	}
	if len(s.SourceRanges) > 0 {
		return s.SourceRanges
	}
	switch ipMode {
	case oci.IPModeV6:
		return []string{anyV6}
	case oci.IPModeDual:
		return []string{anyV4, anyV6}
	default:
		return []string{anyV4}
	}
}
