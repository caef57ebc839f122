// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package loadbalancer

import (
	"slices"

	"github.com/oracle/oci-cloud-controller-manager/pkg/oci"
)

// Prefixes under which annotations of Services are ours. Under "service.beta.kubernetes.io/", which every cloud uses, only
// the keys that begin with "oci-" are.
const (
	prefixLB     = "service.beta.kubernetes.io/oci-"
	prefixCommon = "oci.oraclecloud.com/"
	prefixNLB    = "oci-network-load-balancer.oraclecloud.com/"
)

// Annotations that this package writes.
const (
	// AnnotationOCID holds the OCID of the Service's balancer. It is a hint for the lookup, never a proof.
	AnnotationOCID = prefixCommon + "load-balancer-ocid"
	// AnnotationLastApplied holds what annotations controlled when the Service was last applied, see Applied.
	AnnotationLastApplied = prefixCommon + "last-applied"
)

// annotationType is lb or nlb, and decides which other keys apply.
const annotationType = prefixCommon + "load-balancer-type"

// annotationCompartment is read by the deletion too, which must not depend on the other annotations.
const annotationCompartment = prefixCommon + "compartment-id"

// annotationReplace lets a balancer be replaced where it cannot change.
const annotationReplace = prefixCommon + "load-balancer-replace"

// annotationServiceAccount is read before the Service's balancer is looked up.
const annotationServiceAccount = prefixCommon + "workload-service-account"

// annotationSourceRanges is defined by Kubernetes; it stands for spec.loadBalancerSourceRanges.
const annotationSourceRanges = "service.beta.kubernetes.io/load-balancer-source-ranges"

// Annotations about security rules.
const (
	annotationRuleMode    = prefixCommon + "security-rule-management-mode"
	annotationListMode    = prefixLB + "load-balancer-security-list-management-mode"
	annotationListModeNLB = prefixNLB + "security-list-management-mode"
	annotationBackendNSG  = prefixCommon + "oci-backend-network-security-group"
)

// ValueType is the type of an annotation's value.
type ValueType string

// Types of values. They read in the documentation as they are.
const (
	TypeBool           ValueType = "true or false"
	TypeInt            ValueType = "integer"
	TypeMillis         ValueType = "milliseconds"
	TypeSeconds        ValueType = "seconds"
	TypeMbps           ValueType = "Mbps"
	TypeEnum           ValueType = "one of"
	TypeShape          ValueType = "shape name"
	TypeOCID           ValueType = "OCID"
	TypeOCIDList       ValueType = "comma-separated OCIDs"
	TypeCIDRList       ValueType = "comma-separated CIDR blocks"
	TypeSelector       ValueType = "label selector"
	TypeIPv4           ValueType = "IPv4 address"
	TypeIPv6           ValueType = "IPv6 address"
	TypeFreeformTags   ValueType = "JSON object of strings"
	TypeDefinedTags    ValueType = "JSON object of objects"
	TypeServiceAccount ValueType = "name"
	TypeRuleSets       ValueType = "JSON object of rule sets"
	TypePorts          ValueType = "comma-separated ports"
	TypeSecret         ValueType = "`name` or `namespace/name`"
	TypeTLSOptions     ValueType = "JSON object with `cipherSuiteName`, `protocols`"
	TypeText           ValueType = "text"
)

// Mutability says what a change of an annotation does to a live balancer.
type Mutability string

const (
	// MutableLive changes are applied in place.
	MutableLive Mutability = "in place"
	// MutableAtCreate values are used at creation and not looked at again.
	MutableAtCreate Mutability = "at creation only"
	// Immutable values cannot change on a live balancer; the change is refused with an event.
	Immutable Mutability = "immutable"
)

// Annotation describes one key. The table of them is the only place that knows a key.
type Annotation struct {
	Key     string
	Kinds   []oci.BalancerKind // kinds of balancers that it applies to
	Type    ValueType
	Values  []string // of TypeEnum
	Default string   // as text, for the documentation
	Range   string   // as text, for the documentation
	Change  Mutability
	Since   string // first version that knows it
	Text    string // what it does, one sentence

	// EmptyCounts means that an empty value is one; else it counts as no annotation.
	EmptyCounts bool
	// Deprecated names the key that replaces this one.
	Deprecated string
	// Internal keys are written by this program.
	Internal bool

	set func(s *Settings, value string) error
}

// AppliesTo says whether the key means something for a kind of balancer.
func (a Annotation) AppliesTo(kind oci.BalancerKind) bool { return slices.Contains(a.Kinds, kind) }
