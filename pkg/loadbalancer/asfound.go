// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package loadbalancer

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"

	"github.com/oracle/oci-cloud-controller-manager/pkg/oci"
)

// An upgrade changes nothing in the cloud. Where release v1.35 took the settings of a Service in another way than this
// program does, the Service's balancer stays as that release has left it, until somebody edits the Service. That somebody
// has, is seen by a digest of its settings in the record.

// intentOf is a digest of all that a user can set on a Service and that matters here.
func intentOf(svc *v1.Service) string {
	type port struct {
		Protocol       v1.Protocol
		Port, NodePort int32
	}
	s := svc.Spec
	intent := struct {
		Annotations    map[string]string
		Ports          []port
		Ranges         []string
		LoadBalancerIP string
		TrafficPolicy  v1.ServiceExternalTrafficPolicy
		HealthPort     int32
		Families       []v1.IPFamily
		FamilyPolicy   *v1.IPFamilyPolicy
		Affinity       v1.ServiceAffinity
	}{
		map[string]string{}, nil, s.LoadBalancerSourceRanges, s.LoadBalancerIP, s.ExternalTrafficPolicy, s.HealthCheckNodePort,
		s.IPFamilies, s.IPFamilyPolicy, s.SessionAffinity,
	}
	for key, value := range svc.Annotations {
		if (ours(key) || key == annotationSourceRanges) && key != AnnotationOCID && key != AnnotationLastApplied {
			intent.Annotations[key] = value
		}
	}
	for _, p := range s.Ports {
		intent.Ports = append(intent.Ports, port{p.Protocol, p.Port, p.NodePort})
	}
	text, err := json.Marshal(intent)
	if err != nil {
		panic("loadbalancer: the settings of a Service have no JSON form: " + err.Error()) // strings and numbers always have one
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:8])
}

// asFound is the digest of the Service's settings if its balancer is to stay as release v1.35 has left it; else empty.
func asFound(svc *v1.Service, facts Facts) string {
	if facts.Live == nil {
		return ""
	}
	intent := intentOf(svc)
	untouched := facts.Last.Kind == "" && isLegacy(facts.Live)
	if facts.Last.AsFound == intent || facts.Last.AsFound == "" && untouched {
		return intent
	}
	return ""
}

// found notes what is as release v1.35 has left it, for the user.
func (m *Model) found(problems *Problems, format string, args ...any) {
	problems.warn(ReasonAsFound, fmt.Sprintf(format, args...)+"; release v1.35 has made it so, and it stays until the ports or annotations of the Service are edited")
}

// keepSourceAsFound leaves NLBs alone for which that release did not preserve the address of the client, since it compared
// the type with "nlb" as it stands (contract ccm.md §2).
func (m *Model) keepSourceAsFound(svc *v1.Service) Problems {
	kind := svc.Annotations[annotationType]
	if m.AsFound == "" || kind == string(oci.KindNLB) || WantedKind(svc.Annotations) != oci.KindNLB {
		return nil
	}
	var problems Problems
	hidden := false
	for i, bs := range m.BackendSets {
		if orDefault(bs.PreserveSource, false) {
			m.BackendSets[i].PreserveSource, hidden = new(bool), true
		}
	}
	if hidden {
		m.found(&problems, "the balancer hides the addresses of the clients, since the annotation %s is written %q and not %q", annotationType, kind, oci.KindNLB)
	}
	return problems
}

// serving are the families of listeners and backend sets: those that some node has, and those that are served already
// although no node has them.
func (m *Model) serving(narrow, possible families, live *oci.Balancer) (families, Problems) {
	if m.AsFound == "" || narrow == possible {
		return narrow, nil
	}
	serves := func(v6 bool) bool {
		for _, l := range live.Listeners {
			if p, own := ownListener(live.Kind, l); own && p.v6 == v6 {
				return true
			}
		}
		return false
	}
	var problems Problems
	out := narrow
	out.v4 = narrow.v4 || possible.v4 && serves(false)
	out.v6 = narrow.v6 || possible.v6 && serves(true)
	if out != narrow {
		m.found(&problems, "the balancer has listeners of an address family that no node has")
	}
	return out, problems
}

// keepTLSAsFound leaves the TLS versions alone that that release has sent only along with a creation: it looked at them only
// if a cipher suite was named (contract ccm.md §4.6).
func (m *Model) keepTLSAsFound(live *oci.Balancer) Problems {
	if m.AsFound == "" {
		return nil
	}
	var problems Problems
	keep := func(what string, c *Ciphers, changed bool) {
		if c.Suite.Controlled || !c.Protocols.Controlled {
			return
		}
		c.Protocols.Controlled = false
		if changed {
			m.found(&problems, "the TLS versions of the %s are not %s, as the annotation says that names no cipher suite", what, c.Protocols.Value)
		}
	}
	differs := func(t *TLS, have *oci.SSL, c Ciphers) bool {
		return t != nil && !t.Off && have != nil && joinProtocols(have.Protocols) != c.Protocols.Value
	}
	d := differ{have: live, want: m}
	taken, _ := d.match()
	listeners := false
	for i, l := range m.Listeners {
		listeners = listeners || differs(l.TLS, taken[i].SSL, m.ListenerTLS)
	}
	sets := slices.ContainsFunc(m.BackendSets, func(bs BackendSet) bool { return differs(bs.TLS, live.BackendSets[bs.Name].SSL, m.BackendSetTLS) })
	keep("listeners", &m.ListenerTLS, listeners)
	keep("backend sets", &m.BackendSetTLS, sets)
	return problems
}

// keepPortsAsFound makes rules of network security groups for TCP, as that release did for every protocol (contract ccm.md
// §4.10).
func (n *Need) keepPortsAsFound() {
	for i, p := range n.Ports {
		if p.Protocol != string(v1.ProtocolTCP) {
			n.Ports[i].Protocol = string(v1.ProtocolTCP)
		}
	}
}

// checkRulesAsFound tells about rules for TCP where the Service has UDP.
func (m *Model) checkRulesAsFound(svc *v1.Service, choice RuleChoice) Problems {
	if m.AsFound == "" || choice.Mode != RulesNSG {
		return nil
	}
	var problems Problems
	var ports []string
	for _, p := range svc.Spec.Ports {
		if p.Protocol == v1.ProtocolUDP {
			ports = append(ports, fmt.Sprint(p.Port))
		}
	}
	if len(ports) > 0 {
		m.found(&problems, "the security rules of the Service's network security group let TCP in where the Service has UDP, on the ports %s", strings.Join(ports, ", "))
	}
	return problems
}

// saveTakeover records, before the first change of a balancer that release v1.35 has made, what rules that has written, and
// that the Service is as it was then: afterwards the balancer does not show any more whose it was.
func (op *operation) saveTakeover(ctx context.Context, live *oci.Balancer, model *Model) {
	record := lastApplied(op.svc)
	rules := op.rules != nil && op.rules.takeover != nil
	found := model.AsFound != "" && record.Kind == "" && op.mem.asFound == ""
	if !rules && !found {
		return
	}
	if rules {
		op.mem.rules, op.rules.takeover = op.rules.takeover, nil
		record.Rules = op.mem.rules
	}
	op.mem.asFound = model.AsFound
	record.Kind, record.CompartmentID, record.AsFound = live.Kind, live.CompartmentID, model.AsFound
	op.save(ctx, live.ID, record)
}
