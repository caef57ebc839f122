// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package loadbalancer

import (
	"fmt"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/oracle/oci-cloud-controller-manager/pkg/oci"
)

// Defaults of the contract (ccm.md §2.1, §2.3, §4.12); the shape is ours, since fixed shapes have no quota in new
// tenancies.
const (
	defaultPolicyLB       = "ROUND_ROBIN"
	defaultPolicyNLB      = "FIVE_TUPLE"
	defaultRetries        = 3
	defaultIntervalMillis = 10000
	defaultTimeoutMillis  = 3000
	defaultFlexMinMbps    = 10
	defaultFlexMaxMbps    = 100

	// kubeProxyHealthPort is where kube-proxy says whether the node takes traffic.
	kubeProxyHealthPort = 10256
	healthPath          = "/healthz"
	healthReturnCode    = 200
)

// Facts are what was read from the cloud for a Service.
type Facts struct {
	// Live is the Service's balancer; nil if it has none.
	Live *oci.Balancer
	// Subnets are those of SubnetCandidates, in that order; of a live balancer its own, read only if it lacks an address
	// family that the Service asks for.
	Subnets []*oci.Subnet
	// ReservedIP is the public IP object of spec.loadBalancerIP; nil if there is none. Not read for a live balancer.
	ReservedIP *oci.PublicIP
	// Certificates are those of the Secrets that the Service names, as far as they were read.
	Certificates map[types.NamespacedName]SecretFact
	// Last is what was last applied to Live.
	Last Applied
	// Gone says whether an instance is proven to be terminated; nil if nothing is known.
	Gone func(instanceID string) bool
}

// Desired says what the balancer of a Service should be. It is pure: equal arguments give equal results. The model is
// meaningless if one of the problems is fatal.
func Desired(svc *v1.Service, nodes []*v1.Node, s Settings, cfg Config, facts Facts) (*Model, Problems) {
	m := &Model{
		Kind:                s.Kind,
		CompartmentID:       s.CompartmentID,
		DisplayName:         DisplayName(svc, s.Kind, cfg.DisplayNamePrefix),
		Private:             orDefault(s.Internal, false),
		AssignedPrivateIPv4: s.AssignedPrivateIPv4,
		AssignedIPv6:        s.AssignedIPv6,
		Tags:                cfg.Tags,
		NSGIDs:              s.NSGIDs,
		Policy:              setting(s.Policy, defaultPolicyLB),
		Retries:             setting(s.Retries, defaultRetries),
		IntervalMillis:      setting(s.IntervalMillis, defaultIntervalMillis),
		TimeoutMillis:       setting(s.TimeoutMillis, defaultTimeoutMillis),
		Checker:             checker(svc),
		IdleSeconds:         setting(s.IdleSeconds, 0),
		ProxyProtocol:       setting(s.ProxyProtocol, 0),
		PPv2:                setting(s.PPv2, false),
		RuleSets:            s.RuleSets,
		Families:            familiesOf(svc),
		AsFound:             asFound(svc, facts),
	}
	if m.CompartmentID == "" {
		m.CompartmentID = cfg.CompartmentID
	}
	if s.Kind == oci.KindNLB {
		m.Policy = setting(s.Policy, defaultPolicyNLB)
	}
	if !s.Tags.empty() {
		m.Tags = oci.Tags{Freeform: s.Tags.Freeform, Defined: s.Tags.Defined}
	}
	problems := checkSpec(svc, s)
	problems = append(problems, checkRules(svc, s, cfg)...)
	var fam families
	var familyProblems Problems
	if facts.Live == nil {
		problems = append(problems, m.place(svc, s, cfg, facts)...)
		fam, familyProblems = resolveFamilies(svc, s.Kind, subnetFamilies(facts.Subnets))
	} else {
		fam, familyProblems = resolveLiveFamilies(svc, facts.Live, facts.Subnets)
		problems = append(problems, m.keepPlace(svc, s, facts.Live, fam)...)
	}
	problems = append(problems, m.size(s, facts.Live)...)
	m.IPMode = fam.mode
	problems = append(problems, familyProblems...)
	if len(familyProblems.Fatal()) > 0 {
		return m, problems
	}
	t := selectTargets(nodes, s.Selector, facts.Gone)
	narrow := fam.narrow(svc, t)
	serving, found := m.serving(narrow, fam, facts.Live)
	problems = append(problems, found...)
	problems = append(problems, m.ports(svc, s, serving, t)...)
	problems = append(problems, m.keepSourceAsFound(svc)...)
	problems = append(problems, m.checkTargets(t, narrow)...)
	problems = append(problems, m.secure(svc, s, facts)...)
	problems = append(problems, m.checkRulesAsFound(svc, chooseRules(s, cfg))...)
	return m, problems
}

// checkSpec refuses what no balancer can do, and names what this version does not do.
func checkSpec(svc *v1.Service, s Settings) Problems {
	var problems Problems
	unsupported := func(format string, args ...any) {
		problems.fatal(ReasonUnsupportedService, fmt.Sprintf(format, args...))
	}
	if a := svc.Spec.SessionAffinity; a != "" && a != v1.ServiceAffinityNone {
		unsupported("sessionAffinity %s is not supported; it must be None", a)
	}
	if s.PreserveSource != nil && *s.PreserveSource && !local(svc) {
		unsupported("annotation %sis-preserve-source needs externalTrafficPolicy Local", prefixNLB)
	}
	for _, p := range svc.Spec.Ports {
		switch {
		case p.Protocol == v1.ProtocolUDP && s.Kind == oci.KindLB:
			unsupported("port %d is UDP, which a load balancer cannot serve; set the annotation %s to nlb", p.Port, annotationType)
		case p.Protocol == v1.ProtocolSCTP:
			unsupported("port %d is SCTP, which no balancer of OCI can serve", p.Port)
		case p.NodePort == 0:
			unsupported("port %d has no node port, which the balancer needs; remove allocateLoadBalancerNodePorts: false", p.Port)
			problems[len(problems)-1].Nodes = true
		}
	}
	return problems
}

func local(svc *v1.Service) bool {
	return svc.Spec.ExternalTrafficPolicy == v1.ServiceExternalTrafficPolicyLocal
}

// checker is where the health check goes: with the policy Local each node answers for its own pods.
func checker(svc *v1.Service) Checker {
	c := Checker{Port: kubeProxyHealthPort, Path: healthPath, ReturnCode: healthReturnCode}
	if local(svc) && svc.Spec.HealthCheckNodePort != 0 {
		c.Port = int(svc.Spec.HealthCheckNodePort)
	}
	return c
}

// size decides about the shape of an LB.
func (m *Model) size(s Settings, live *oci.Balancer) Problems {
	if s.Kind != oci.KindLB {
		return nil
	}
	var problems Problems
	flexible := oci.Shape{Name: oci.ShapeFlexible, MinMbps: defaultFlexMinMbps, MaxMbps: defaultFlexMaxMbps}
	isFlexible := live != nil && live.Shape != nil && strings.EqualFold(live.Shape.Name, oci.ShapeFlexible)
	if isFlexible {
		flexible = *live.Shape
	}
	bounds := s.FlexMin != nil && s.FlexMax != nil
	if bounds {
		flexible.MinMbps, flexible.MaxMbps = *s.FlexMin, *s.FlexMax
	}
	m.Shape = Setting[oci.Shape]{Value: flexible}
	switch {
	case s.Shape == "" && bounds && live != nil && !isFlexible:
		problems.warn(ReasonAnnotationIgnored, "the annotations shape-flex-min and shape-flex-max have no effect: the balancer has a fixed shape; add "+prefixLB+"load-balancer-shape: flexible to change it")
	case s.Shape == oci.ShapeFlexible, s.Shape == "" && bounds:
		m.Shape.Controlled = true
	case s.Shape == "":
	case isFlexible:
		problems.warn(ReasonImmutable, fmt.Sprintf("annotation %sload-balancer-shape asks for %s, but a flexible balancer cannot become a fixed one; it keeps its shape", prefixLB, s.Shape))
	default:
		m.Shape = Setting[oci.Shape]{Value: oci.Shape{Name: s.Shape}, Controlled: true}
	}
	return problems
}

// ports makes listeners and backend sets. They come from the spec; which backends there are plays no part.
func (m *Model) ports(svc *v1.Service, s Settings, fam families, t targets) Problems {
	merged, problems := mergePorts(svc)
	for _, v6 := range []bool{false, true} {
		if v6 && !fam.v6 || !v6 && !fam.v4 {
			continue
		}
		version := ""
		var preserve *bool
		if s.Kind == oci.KindNLB {
			version = ipV4
			if v6 {
				version = ipV6
			}
			p := local(svc) && orDefault(s.PreserveSource, true)
			preserve = &p
		}
		for _, p := range merged {
			protocol := p.protocol
			if s.Kind == oci.KindLB && s.BackendProtocol != "" {
				protocol = s.BackendProtocol
			}
			set := objectName(p.protocol, p.port, v6)
			m.BackendSets = append(m.BackendSets, BackendSet{
				Name: set, IPVersion: version, PreserveSource: preserve, Backends: t.backends(s.Kind, v6, p.nodePort),
			})
			m.Listeners = append(m.Listeners, Listener{
				Name: objectName(protocol, p.port, v6), BackendSet: set, Port: int(p.port), Protocol: protocol, IPVersion: version,
			})
		}
	}
	return problems
}

// mergedPort is a port of a Service, or two of them with the same number.
type mergedPort struct {
	protocol string
	port     int32
	nodePort int32
}

// mergePorts joins TCP and UDP on the same port, which is possible only if they have the same node port: a backend has
// one port.
func mergePorts(svc *v1.Service) ([]mergedPort, Problems) {
	var merged []mergedPort
	var problems Problems
	for _, p := range svc.Spec.Ports {
		protocol := string(p.Protocol)
		if protocol == "" {
			protocol = string(v1.ProtocolTCP)
		}
		i := slices.IndexFunc(merged, func(m mergedPort) bool { return m.port == p.Port })
		switch {
		case i < 0:
			merged = append(merged, mergedPort{protocol: protocol, port: p.Port, nodePort: p.NodePort})
		case merged[i].nodePort != p.NodePort:
			problems.fatal(ReasonUnsupportedService, fmt.Sprintf(
				"port %d is TCP and UDP with the node ports %d and %d; a listener for both needs equal ones: set nodePort of both entries to the same value",
				p.Port, min(merged[i].nodePort, p.NodePort), max(merged[i].nodePort, p.NodePort)))
			problems[len(problems)-1].Nodes = true
		case merged[i].protocol != protocol:
			merged[i].protocol = protocolBoth
		}
	}
	slices.SortFunc(merged, func(a, b mergedPort) int { return int(a.port) - int(b.port) })
	return merged, problems
}

// checkTargets says what is to be said about the nodes. No node at all, as in a cluster that is being built, is no error;
// nodes of which none can be used are one, so that a live balancer is never emptied by a fault.
func (m *Model) checkTargets(t targets, fam families) Problems {
	var problems Problems
	fatal := func(reason, message string) {
		problems = append(problems, Problem{Reason: reason, Message: message, Fatal: true, Nodes: true})
	}
	switch {
	case t.given == 0:
		problems.warn(ReasonNoEligibleNodes, "no node is eligible; the backend sets are empty")
	case t.selected == 0:
		m.KeepBackends = true
		problems.warn(ReasonNoNodeSelected, fmt.Sprintf("the node-label-selector matches none of %d nodes; existing backends stay", t.given))
	case len(t.usable) == 0:
		fatal(ReasonNoUsableNodes, fmt.Sprintf("none of %d nodes can be a backend: %s", t.selected, named(t.skipped)))
	default:
		skipped := t.skipped
		for _, v6 := range []bool{false, true} {
			if v6 && !fam.v6 || !v6 && !fam.v4 {
				continue
			}
			lacking := t.lacking(v6)
			if len(lacking) == len(t.usable) {
				fatal(ReasonNoUsableNodes, fmt.Sprintf("none of %d nodes can be a backend: %s", t.selected, named(append(lacking, t.skipped...))))
				return problems
			}
			skipped = append(slices.Clone(lacking), skipped...)
		}
		if len(skipped) > 0 {
			problems.warn(ReasonNodesSkipped, fmt.Sprintf("%d of %d nodes are left out: %s", len(skipped), t.selected, named(skipped)))
		}
	}
	return problems
}
