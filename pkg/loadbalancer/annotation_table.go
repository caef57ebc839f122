// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package loadbalancer

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	v1 "k8s.io/api/core/v1"

	"github.com/oracle/oci-cloud-controller-manager/pkg/oci"
)

// Versions in which keys appeared, for the documentation.
const (
	sinceV1   = "v1.35"
	sinceV137 = "v1.37"
)

// maxNSGs is how many network security groups a balancer can be in (OCI documentation, "Network Security Groups").
const maxNSGs = 5

// Annotations returns the table of all annotations, sorted by key.
func Annotations() []Annotation {
	table := slices.Concat(
		commonAnnotations(),
		lbAnnotations(),
		nlbAnnotations(),
		twinAnnotations(prefixCommon, onLB()),
		twinAnnotations(prefixNLB, onNLB()),
		checkAnnotations(prefixLB+"load-balancer-", onLB(), 1000),
		checkAnnotations(prefixNLB, onNLB(), 10000),
		ruleAnnotations(),
		tlsAnnotations(),
		ownAnnotations(),
	)
	slices.SortFunc(table, func(a, b Annotation) int { return strings.Compare(a.Key, b.Key) })
	return table
}

func onLB() []oci.BalancerKind   { return []oci.BalancerKind{oci.KindLB} }
func onNLB() []oci.BalancerKind  { return []oci.BalancerKind{oci.KindNLB} }
func onBoth() []oci.BalancerKind { return []oci.BalancerKind{oci.KindLB, oci.KindNLB} }

func commonAnnotations() []Annotation {
	return []Annotation{
		{
			Key: annotationType, Kinds: onBoth(), Type: TypeEnum, Values: []string{"lb", "nlb"}, Default: "lb", Change: Immutable, Since: sinceV1,
			Text: "Kind of the balancer: load balancer or network load balancer.",
			set:  choice([]string{"lb", "nlb"}, func(s *Settings, v string) { s.Kind = oci.BalancerKind(v) }),
		},
		{
			Key: annotationCompartment, Kinds: onBoth(), Type: TypeOCID, Default: "the cluster's compartment", Change: Immutable, Since: sinceV1,
			Text: "Compartment of the balancer.",
			set:  ocid("compartment", "tenancy")(func(s *Settings) *string { return &s.CompartmentID }),
		},
		{
			Key: annotationReplace, Kinds: onBoth(), Type: TypeBool, Default: "false", Change: MutableLive, Since: sinceV137,
			Text: "When load-balancer-type or compartment-id change, make another balancer, with other addresses, and delete this one once the Service's status shows the new addresses.",
			set:  boolean(func(s *Settings) **bool { return &s.Replace }),
		},
		{
			Key: annotationServiceAccount, Kinds: onBoth(), Type: TypeServiceAccount, Default: "the cloud controller manager's identity", Change: MutableLive, Since: sinceV1,
			Text: "ServiceAccount in the Service's namespace whose workload identity manages the balancer, in enhanced clusters of OKE.",
			set:  serviceAccount,
		},
		{
			Key: prefixCommon + "ingress-ip-mode", Kinds: onBoth(), Type: TypeEnum, Values: []string{"proxy", "vip"}, Default: "not set", Change: MutableLive, Since: sinceV1,
			Text: "Value of ipMode in the Service's status.",
			set: choice([]string{"proxy", "vip"}, func(s *Settings, v string) {
				mode := v1.LoadBalancerIPModeVIP
				if v == "proxy" {
					mode = v1.LoadBalancerIPModeProxy
				}
				s.IngressIPMode = &mode
			}),
		},
		{
			Key: prefixCommon + "loadbalancer-policy", Kinds: onLB(), Type: TypeEnum, Values: []string{"ROUND_ROBIN", "LEAST_CONNECTIONS", "IP_HASH"}, Default: defaultPolicyLB, Change: MutableLive, Since: sinceV1,
			Text: "How requests are spread over the backends.",
			set:  choice([]string{"ROUND_ROBIN", "LEAST_CONNECTIONS", "IP_HASH"}, func(s *Settings, v string) { s.Policy = &v }),
		},
	}
}

func lbAnnotations() []Annotation {
	return []Annotation{
		{
			Key: prefixLB + "load-balancer-internal", Kinds: onLB(), Type: TypeBool, Default: "false", Change: Immutable, Since: sinceV1,
			Text: "A private address only.",
			set:  boolean(func(s *Settings) **bool { return &s.Internal }),
		},
		{
			Key: prefixLB + "load-balancer-subnet1", Kinds: onLB(), Type: TypeOCID, Default: "loadBalancer.subnet1 of the configuration", Change: Immutable, Since: sinceV1,
			Text: "First subnet; a regional subnet is used alone.",
			set:  ocid("subnet")(func(s *Settings) *string { return &s.Subnet1 }),
		},
		{
			Key: prefixLB + "load-balancer-subnet2", Kinds: onLB(), Type: TypeOCID, Default: "loadBalancer.subnet2 of the configuration", Change: Immutable, Since: sinceV1,
			Text: "Second subnet, where subnets belong to availability domains; a regional subnet is used alone.",
			set:  ocid("subnet")(func(s *Settings) *string { return &s.Subnet2 }),
		},
		{
			Key: prefixLB + "load-balancer-shape", Kinds: onLB(), Type: TypeShape, Default: "flexible; a live balancer keeps its shape", Change: MutableLive, Since: sinceV1,
			Text: "Size of the balancer; flexible needs the next two keys to be other than 10 and 100 Mbps. A flexible balancer cannot become a fixed one.",
			set:  shape,
		},
		{
			Key: prefixLB + "load-balancer-shape-flex-min", Kinds: onLB(), Type: TypeMbps, Default: "10", Range: "10 to 8000", Change: MutableLive, Since: sinceV1,
			Text: "Bandwidth that is always there; together with shape-flex-max.",
			set:  number(func(s *Settings) **int { return &s.FlexMin }, minFlexMbps, maxFlexMbps, "mbps"),
		},
		{
			Key: prefixLB + "load-balancer-shape-flex-max", Kinds: onLB(), Type: TypeMbps, Default: "100", Range: "10 to 8000", Change: MutableLive, Since: sinceV1,
			Text: "Bandwidth that is never exceeded; together with shape-flex-min.",
			set:  number(func(s *Settings) **int { return &s.FlexMax }, minFlexMbps, maxFlexMbps, "mbps"),
		},
		{
			Key: prefixLB + "load-balancer-backend-protocol", Kinds: onLB(), Type: TypeEnum, Values: []string{"TCP", "HTTP", "HTTP2", "GRPC"}, Default: "TCP", Change: MutableLive, Since: sinceV1,
			Text: "Protocol of every listener; HTTP2 and GRPC need TLS on the listener.",
			set:  choice([]string{"TCP", "HTTP", "HTTP2", "GRPC"}, func(s *Settings, v string) { s.BackendProtocol = v }),
		},
		{
			Key: prefixLB + "load-balancer-connection-idle-timeout", Kinds: onLB(), Type: TypeSeconds, Default: "the service's: 300 for TCP, 60 for HTTP", Range: "1 to 7200", Change: MutableLive, Since: sinceV1,
			Text: "Time after which an idle connection is closed.",
			set:  number(func(s *Settings) **int { return &s.IdleSeconds }, 1, 7200, "s"),
		},
		{
			Key: prefixLB + "load-balancer-connection-proxy-protocol-version", Kinds: onLB(), Type: TypeInt, Default: "off", Range: "1 or 2", Change: MutableLive, Since: sinceV1,
			Text: "PROXY protocol towards the backends, on all listeners.",
			set:  number(func(s *Settings) **int { return &s.ProxyProtocol }, 1, 2),
		},
		{
			Key: prefixCommon + "oci-load-balancer-rule-sets", Kinds: onLB(), Type: TypeRuleSets, Default: "not managed", Change: MutableLive, Since: sinceV1,
			Text: "Rule sets, as the API takes them: `{\"name\":{\"items\":[…]}}`. They are on every listener of the Service. Empty, or `{}`, deletes those that this " +
				"annotation made before; without the annotation, rule sets stay as they are.",
			EmptyCounts: true,
			set:         ruleSets,
		},
	}
}

func nlbAnnotations() []Annotation {
	return []Annotation{
		{
			Key: prefixNLB + "internal", Kinds: onNLB(), Type: TypeBool, Default: "false", Change: Immutable, Since: sinceV1,
			Text: "A private address only.",
			set:  boolean(func(s *Settings) **bool { return &s.Internal }),
		},
		{
			Key: prefixNLB + "subnet", Kinds: onNLB(), Type: TypeOCID, Default: "loadBalancer.subnet1 of the configuration", Change: Immutable, Since: sinceV1,
			Text: "Subnet of the balancer.",
			set:  ocid("subnet")(func(s *Settings) *string { return &s.Subnet1 }),
		},
		{
			Key: prefixNLB + "backend-policy", Kinds: onNLB(), Type: TypeEnum, Values: []string{"TWO_TUPLE", "THREE_TUPLE", "FIVE_TUPLE"}, Default: defaultPolicyNLB, Change: MutableLive, Since: sinceV1,
			Text: "What makes packets go to the same backend.",
			set:  choice([]string{"TWO_TUPLE", "THREE_TUPLE", "FIVE_TUPLE"}, func(s *Settings, v string) { s.Policy = &v }),
		},
		{
			Key: prefixNLB + "freeform-tags", Kinds: onNLB(), Type: TypeFreeformTags, Default: "none", Change: MutableAtCreate, Since: sinceV1,
			Deprecated: prefixNLB + "initial-freeform-tags-override", Text: "Old name, used where the new one is absent.",
			set: freeformTags(func(s *Settings) *tagPair { return &s.DeprecatedTags }),
		},
		{
			Key: prefixNLB + "defined-tags", Kinds: onNLB(), Type: TypeDefinedTags, Default: "none", Change: MutableAtCreate, Since: sinceV1,
			Deprecated: prefixNLB + "initial-defined-tags-override", Text: "Old name, used where the new one is absent.",
			set: definedTags(func(s *Settings) *tagPair { return &s.DeprecatedTags }),
		},
		{
			Key: prefixNLB + "is-preserve-source", Kinds: onNLB(), Type: TypeBool, Default: "true with externalTrafficPolicy Local", Change: MutableLive, Since: sinceV1,
			Text: "Backends see the client's address; needs externalTrafficPolicy Local.",
			set:  boolean(func(s *Settings) **bool { return &s.PreserveSource }),
		},
		{
			Key: prefixNLB + "is-ppv2-enabled", Kinds: onNLB(), Type: TypeBool, Default: "false", Change: MutableLive, Since: sinceV1,
			Text: "PROXY protocol version 2 towards the backends.",
			set:  boolean(func(s *Settings) **bool { return &s.PPv2 }),
		},
		{
			Key: prefixNLB + "external-ip-only", Kinds: onNLB(), Type: TypeBool, Default: "true", Change: MutableLive, Since: sinceV1,
			Text: "The status of a public balancer shows public addresses only; false adds the private one.",
			set:  boolean(func(s *Settings) **bool { return &s.ExternalIPOnly }),
		},
		{
			Key: prefixNLB + "assigned-private-ipv4", Kinds: onNLB(), Type: TypeIPv4, Default: "any free one", Change: Immutable, Since: sinceV1,
			Text: "Private address of the balancer, from its subnet.",
			set:  address(func(s *Settings) *string { return &s.AssignedPrivateIPv4 }, false),
		},
		{
			Key: prefixNLB + "assigned-ipv6", Kinds: onNLB(), Type: TypeIPv6, Default: "any free one", Change: Immutable, Since: sinceV1,
			Text: "IPv6 address of the balancer, from its subnet.",
			set:  address(func(s *Settings) *string { return &s.AssignedIPv6 }, true),
		},
	}
}

// twinAnnotations are those that both kinds of balancers have, each under a prefix of its own.
func twinAnnotations(prefix string, kinds []oci.BalancerKind) []Annotation {
	return []Annotation{
		{
			Key: prefix + "node-label-selector", Kinds: kinds, Type: TypeSelector, Default: "every node", Change: MutableLive, Since: sinceV1,
			Text: "Only nodes with these labels become backends.",
			set:  selector,
		},
		{
			Key: prefix + "oci-network-security-groups", Kinds: kinds, Type: TypeOCIDList, Default: "none", Range: "at most 5", Change: MutableLive, Since: sinceV1,
			Text: "Network security groups of the balancer.",
			set:  nsgs(maxNSGs, func(s *Settings) *[]string { return &s.NSGIDs }),
		},
		{
			Key: prefix + "initial-freeform-tags-override", Kinds: kinds, Type: TypeFreeformTags, Default: "tags.loadBalancer of the configuration", Change: MutableAtCreate, Since: sinceV1,
			Text: "Free-form tags of a new balancer, in place of all configured tags.",
			set:  freeformTags(func(s *Settings) *tagPair { return &s.Tags }),
		},
		{
			Key: prefix + "initial-defined-tags-override", Kinds: kinds, Type: TypeDefinedTags, Default: "tags.loadBalancer of the configuration", Change: MutableAtCreate, Since: sinceV1,
			Text: "Defined tags of a new balancer, in place of all configured tags.",
			set:  definedTags(func(s *Settings) *tagPair { return &s.Tags }),
		},
	}
}

// checkAnnotations are those about the health check. The shortest interval is one of the service.
func checkAnnotations(prefix string, kinds []oci.BalancerKind, minInterval int) []Annotation {
	const maxInterval = 1800000
	return []Annotation{
		{
			Key: prefix + "health-check-retries", Kinds: kinds, Type: TypeInt, Default: strconv.Itoa(defaultRetries), Range: "at least 1", Change: MutableLive, Since: sinceV1,
			Text: "Failed checks after which a backend is taken out.",
			set:  number(func(s *Settings) **int { return &s.Retries }, 1, maxNumber),
		},
		{
			Key: prefix + "health-check-interval", Kinds: kinds, Type: TypeMillis, Default: strconv.Itoa(defaultIntervalMillis), Change: MutableLive, Since: sinceV1,
			Range: fmt.Sprintf("%d to %d", minInterval, maxInterval),
			Text:  "Time between two checks of a backend.",
			set:   number(func(s *Settings) **int { return &s.IntervalMillis }, minInterval, maxInterval, "ms"),
		},
		{
			Key: prefix + "health-check-timeout", Kinds: kinds, Type: TypeMillis, Default: strconv.Itoa(defaultTimeoutMillis), Range: "at least 1, at most the interval", Change: MutableLive, Since: sinceV1,
			Text: "Time in which a backend has to answer a check.",
			set:  number(func(s *Settings) **int { return &s.TimeoutMillis }, 1, maxNumber, "ms"),
		},
	}
}

// ruleAnnotations are those about security rules.
func ruleAnnotations() []Annotation {
	listModeOf := func(key string, kind oci.BalancerKind) Annotation {
		return Annotation{
			Key: key, Kinds: []oci.BalancerKind{kind}, Type: TypeEnum, Values: listModes(),
			Default: "`" + configModeKey(kind) + "` of the configuration, else `" + strings.TrimPrefix(string(builtInMode(kind)), prefixListMode) + "`",
			Change:  MutableLive, Since: sinceV1,
			Text: "Which security lists are kept in step with the Service. The annotation `" + annotationRuleMode + "` outweighs it.",
			set:  choice(listModes(), func(s *Settings, v string) { s.ListMode = listMode(v) }),
		}
	}
	return []Annotation{
		{
			Key: annotationRuleMode, Kinds: onBoth(), Type: TypeEnum, Values: ruleModes(), Default: "what the annotation about security lists says", Change: MutableLive, Since: sinceV1,
			Text: "Which security rules are kept in step with the Service: those of security lists, or of network security groups.",
			set:  choice(ruleModes(), func(s *Settings, v string) { s.RuleMode = RuleMode(v) }),
		},
		listModeOf(annotationListMode, oci.KindLB),
		listModeOf(annotationListModeNLB, oci.KindNLB),
		{
			Key: annotationBackendNSG, Kinds: onBoth(), Type: TypeOCIDList, Default: "none", Change: MutableLive, Since: sinceV1,
			Text: "Network security groups of the nodes, in mode `NSG`. The VNICs of the nodes have to be in them already.",
			set:  nsgs(0, func(s *Settings) *[]string { return &s.BackendNSGIDs }),
		},
		{
			Key: annotationSourceRanges, Kinds: onBoth(), Type: TypeCIDRList, Default: "everybody", Change: MutableLive, Since: sinceV1,
			Text: "Client addresses that may connect, where `spec.loadBalancerSourceRanges` is empty. Needs a mode other than `None`.",
			set:  sourceRanges,
		},
	}
}

func ownAnnotations() []Annotation {
	return []Annotation{
		{
			Key: AnnotationOCID, Kinds: onBoth(), Type: TypeOCID, Change: MutableLive, Since: sinceV137, Internal: true,
			Text: "Written by the controller: the Service's balancer.",
		},
		{
			Key: AnnotationLastApplied, Kinds: onBoth(), Type: TypeText, Change: MutableLive, Since: sinceV137, Internal: true,
			Text: "Written by the controller: what annotations controlled when they were last applied.",
		},
	}
}
