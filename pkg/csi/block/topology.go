// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package block

import (
	"slices"
	"strings"

	spec "github.com/container-storage-interface/spec/lib/go/csi"

	"github.com/oracle/oci-cloud-controller-manager/pkg/blockvolume"
)

// Keys of topology, which are labels of Nodes (contract storage.md §2.5, §4.1).
const (
	TopologyZone       = "topology.kubernetes.io/zone"
	TopologyLegacyZone = "failure-domain.beta.kubernetes.io/zone"
	// TopologyFullDomain has the full name of an availability domain, with a dot for the colon, on nodes without IPv4.
	TopologyFullDomain = "csi-ipv6-full-ad-name"
)

// domainsOf are the availability domains of a request, best first, with full names where the request has them. Preferred ones come
// first; those that are only requisite are left for a volume that nothing is preferred for: another domain than the preferred ones
// would be one that the pod cannot run in.
func domainsOf(r *spec.TopologyRequirement, full bool) []string {
	terms := r.GetPreferred()
	if len(terms) == 0 {
		terms = r.GetRequisite()
	}
	var out []string
	for _, t := range terms {
		if domain := domainOf(t.GetSegments(), full); domain != "" && !slices.Contains(out, domain) {
			out = append(out, domain)
		}
	}
	return out
}

func domainOf(segments map[string]string, full bool) string {
	if name := segments[TopologyFullDomain]; name != "" && full {
		return strings.Replace(name, ".", ":", 1)
	}
	if zone := segments[TopologyZone]; zone != "" {
		return zone
	}
	return segments[TopologyLegacyZone]
}

// accessibleFrom is the topology of a volume: Nodes with either label can use it.
func accessibleFrom(domain string) []*spec.Topology {
	short := blockvolume.ShortDomain(domain)
	return []*spec.Topology{
		{Segments: map[string]string{TopologyZone: short}},
		{Segments: map[string]string{TopologyLegacyZone: short}},
	}
}
