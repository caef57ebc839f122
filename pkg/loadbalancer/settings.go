// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package loadbalancer

import (
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/oracle/oci-cloud-controller-manager/pkg/oci"
)

// Settings are the annotations of one Service as typed values. A nil or empty field means that the annotation is absent:
// the Service does not control that field.
type Settings struct {
	Kind          oci.BalancerKind
	CompartmentID string

	Internal *bool
	Subnet1  string
	Subnet2  string // LB

	Shape   string // LB; oci.ShapeFlexible or a fixed shape
	FlexMin *int   // Mbps
	FlexMax *int   // Mbps

	AssignedPrivateIPv4 string // NLB
	AssignedIPv6        string // NLB

	NSGIDs []string // sorted, without duplicates

	RuleMode      RuleMode // of the annotation that has all modes
	ListMode      RuleMode // of the annotation about security lists
	BackendNSGIDs []string // sorted, without duplicates
	SourceRanges  []string // canonical, sorted; of the annotation

	Policy          *string
	Retries         *int
	IntervalMillis  *int
	TimeoutMillis   *int
	PreserveSource  *bool    // NLB
	PPv2            *bool    // NLB
	BackendProtocol string   // LB
	IdleSeconds     *int     // LB
	ProxyProtocol   *int     // LB
	RuleSets        RuleSets // LB
	DeprecatedTags  tagPair  // NLB; used if Tags is empty
	Tags            tagPair

	Replace        *bool       // only read by operation.mayReplace
	ServiceAccount string      // whose identity manages the balancer
	TLS            TLSSettings // LB

	Selector       labels.Selector // nil selects every node
	ExternalIPOnly *bool           // NLB
	IngressIPMode  *v1.LoadBalancerIPMode
}

// tagPair are tags given by annotations.
type tagPair struct {
	Freeform map[string]string
	Defined  map[string]map[string]any
}

func (t tagPair) empty() bool { return len(t.Freeform) == 0 && len(t.Defined) == 0 }
