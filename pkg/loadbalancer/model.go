// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package loadbalancer

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/oracle/oci-cloud-controller-manager/pkg/oci"
)

// Setting is a field that an annotation may control. Uncontrolled, its Value is the default for what is made anew; on what
// exists, the cloud's value stays.
type Setting[T comparable] struct {
	Value      T
	Controlled bool
}

func setting[T comparable](wanted *T, byDefault T) Setting[T] {
	if wanted == nil {
		return Setting[T]{Value: byDefault}
	}
	return Setting[T]{Value: *wanted, Controlled: true}
}

// over returns the value that the field should have in the cloud, where it is now cloud and last was applied (nil: it was
// not controlled then). A value that the user no longer asks for goes back to the default, unless somebody else has
// changed it meanwhile.
func (s Setting[T]) over(cloud T, last *T) T {
	switch {
	case s.Controlled:
		return s.Value
	case last != nil && *last == cloud:
		return s.Value
	default:
		return cloud
	}
}

func (s Setting[T]) controlled() *T {
	if !s.Controlled {
		return nil
	}
	return &s.Value
}

func (s Setting[T]) String() string {
	if s.Controlled {
		return fmt.Sprint(s.Value)
	}
	return fmt.Sprintf("%v (default)", s.Value)
}

// Model is what a Service's balancer should be. It is a pure value, made by Desired.
type Model struct {
	Kind          oci.BalancerKind
	CompartmentID string
	DisplayName   string

	// For creation only.
	SubnetIDs           []string
	Private             bool
	IPMode              string // of a live NLB too
	ReservedIPID        string
	AssignedPrivateIPv4 string
	AssignedIPv6        string
	Tags                oci.Tags // without marks

	// Shape of an LB. Uncontrolled, a live balancer keeps its shape: the API has no default for it.
	Shape Setting[oci.Shape]
	// NSGIDs are those that the annotation names, and Group; others on the balancer stay.
	NSGIDs []string
	// Group is the network security group that was made for the Service, if there is one.
	Group string

	Policy         Setting[string]
	Retries        Setting[int]
	IntervalMillis Setting[int]
	TimeoutMillis  Setting[int]
	// Checker are the parts of the health check that the Service's spec decides.
	Checker Checker

	IdleSeconds   Setting[int]  // LB; 0 is the service's default
	ProxyProtocol Setting[int]  // LB; 0 is off
	PPv2          Setting[bool] // NLB

	BackendSets []BackendSet
	Listeners   []Listener
	RuleSets    RuleSets // LB

	// Families are those that the Service asks for, for the record.
	Families string
	// Certificates are the bundles that listeners and backend sets use, by name (LB).
	Certificates map[string]oci.Certificate
	// Adopted are bundles of the balancer that bear the bare name of a Secret of the Service: so the existing implementation
	// named those that it made.
	Adopted []string
	// ListenerTLS and BackendSetTLS say how TLS is spoken where the Service asks for it.
	ListenerTLS, BackendSetTLS Ciphers
	// PlainCheck makes health checks go without TLS to backend sets with TLS.
	PlainCheck Setting[bool]

	// AsFound, if it is not empty, leaves what release v1.35 has made as it is: see asFound.
	AsFound string

	// KeepBackends leaves the backends of existing backend sets as they are.
	KeepBackends bool
}

// Checker is where a health check goes. It is always HTTP: kube-proxy answers it.
type Checker struct {
	Port       int
	Path       string
	ReturnCode int
}

// BackendSet is a desired backend set.
type BackendSet struct {
	Name           string
	IPVersion      string // NLB
	PreserveSource *bool  // NLB
	Backends       []oci.Backend
	TLS            *TLS // LB; nil leaves it to others
	Withheld       bool // not made anew: a Secret cannot be used
}

// Listener is a desired listener.
type Listener struct {
	Name       string
	BackendSet string
	Port       int
	Protocol   string
	IPVersion  string // NLB
	TLS        *TLS   // LB; nil leaves it to others
	Withheld   bool   // see frozen
}

func (l Listener) v6() bool { return l.IPVersion == ipV6 }

// Balancer is the body of a create.
func (m *Model) Balancer() *oci.Balancer {
	b := &oci.Balancer{
		Kind:                m.Kind,
		CompartmentID:       m.CompartmentID,
		DisplayName:         m.DisplayName,
		SubnetIDs:           m.SubnetIDs,
		Private:             m.Private,
		NSGIDs:              m.NSGIDs,
		IPMode:              m.IPMode,
		AssignedPrivateIPv4: m.AssignedPrivateIPv4,
		AssignedIPv6:        m.AssignedIPv6,
		BackendSets:         make(map[string]oci.BackendSet, len(m.BackendSets)),
		Certificates:        m.Certificates,
		Listeners:           make(map[string]oci.Listener, len(m.Listeners)),
		Tags:                m.Tags,
	}
	if m.ReservedIPID != "" {
		b.ReservedIPIDs = []string{m.ReservedIPID}
	}
	if m.Kind == oci.KindLB {
		shape := m.Shape.Value
		b.Shape = &shape
	}
	for _, bs := range m.BackendSets {
		b.BackendSets[bs.Name] = m.newBackendSet(bs)
	}
	for _, l := range m.Listeners {
		b.Listeners[l.Name] = m.newListener(l)
	}
	if len(m.RuleSets.Sets) > 0 {
		b.RuleSets = m.RuleSets.Sets
	}
	return b
}

// String prints the model, one field per line, always in the same order.
func (m *Model) String() string {
	var p printer
	p.line(0, "%s %s in %s", m.Kind, m.DisplayName, m.CompartmentID)
	p.line(1, "subnets: %s", strings.Join(m.SubnetIDs, ", "))
	p.line(1, "private: %t", m.Private)
	p.line(1, "ip mode: %s", m.IPMode)
	p.text("reserved ip", m.ReservedIPID)
	p.text("private address", m.AssignedPrivateIPv4)
	p.text("ipv6 address", m.AssignedIPv6)
	if m.Kind == oci.KindLB {
		p.line(1, "shape: %s", m.Shape)
	}
	p.text("nsgs", strings.Join(m.NSGIDs, ", "))
	p.line(1, "policy: %s", m.Policy)
	p.line(1, "health check: HTTP :%d%s expects %d, retries %s, interval ms %s, timeout ms %s",
		m.Checker.Port, m.Checker.Path, m.Checker.ReturnCode, m.Retries, m.IntervalMillis, m.TimeoutMillis)
	if m.Kind == oci.KindLB {
		p.line(1, "idle timeout s: %s", m.IdleSeconds)
		p.line(1, "proxy protocol: %s", m.ProxyProtocol)
	} else {
		p.line(1, "proxy protocol v2: %s", m.PPv2)
	}
	p.tags(m.Tags)
	p.ruleSets(m.RuleSets)
	m.printTLS(&p)
	for _, l := range m.Listeners {
		p.line(1, "listener %s: %s :%d%s -> %s%s", l.Name, l.Protocol, l.Port, before(" ", l.IPVersion), l.BackendSet, l.TLS)
	}
	for _, bs := range m.BackendSets {
		preserve := ""
		if bs.PreserveSource != nil {
			preserve = ", preserve source " + strconv.FormatBool(*bs.PreserveSource)
		}
		p.line(1, "backend set %s:%s%s%s", bs.Name, before(" ", bs.IPVersion), preserve, bs.TLS)
		for _, b := range bs.Backends {
			p.line(2, "%s port %d weight %d%s", b.IP, b.Port, b.Weight, before(" target ", b.TargetID))
		}
	}
	if m.KeepBackends {
		p.line(1, "existing backends stay")
	}
	return p.String()
}

type printer struct{ strings.Builder }

func (p *printer) line(depth int, format string, args ...any) {
	fmt.Fprintf(p, strings.Repeat("  ", depth)+format+"\n", args...)
}

func (p *printer) text(name, value string) {
	if value != "" {
		p.line(1, "%s: %s", name, value)
	}
}

func (p *printer) tags(t oci.Tags) {
	for _, key := range sortedKeys(t.Freeform) {
		p.line(1, "tag %s=%s", key, t.Freeform[key])
	}
	for _, namespace := range sortedKeys(t.Defined) {
		for _, key := range sortedKeys(t.Defined[namespace]) {
			p.line(1, "tag %s.%s=%v", namespace, key, t.Defined[namespace][key])
		}
	}
}

func before(prefix, text string) string {
	if text == "" {
		return ""
	}
	return prefix + text
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for key := range m {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}
