// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package loadbalancer

import (
	"encoding/json"

	v1 "k8s.io/api/core/v1"

	"github.com/oracle/oci-cloud-controller-manager/pkg/oci"
)

// Applied is what the Service's annotations controlled when it was last applied, together with where the balancer is. It
// is kept in the annotation last-applied. A nil field was not controlled.
//
// Listeners and backend sets are not in it: they are ours by name, so that a process that ends between a write and the
// record of it leaves nothing behind that the next one does not know.
type Applied struct {
	Kind           oci.BalancerKind `json:"kind,omitempty"`
	CompartmentID  string           `json:"compartment,omitempty"`
	Policy         *string          `json:"policy,omitempty"`
	Retries        *int             `json:"retries,omitempty"`
	IntervalMillis *int             `json:"intervalMillis,omitempty"`
	TimeoutMillis  *int             `json:"timeoutMillis,omitempty"`
	IdleSeconds    *int             `json:"idleSeconds,omitempty"`
	ProxyProtocol  *int             `json:"proxyProtocol,omitempty"`
	PPv2           *bool            `json:"ppv2,omitempty"`
	NSGIDs         []string         `json:"nsgs,omitempty"`
	Rules          *RulesApplied    `json:"rules,omitempty"`
	// Successor is where the balancer that replaces this one is being made, and Former is the one that was replaced: see
	// operation.replace.
	Successor *Spot `json:"successor,omitempty"`
	Former    *Spot `json:"former,omitempty"`
	// Families are the address families that the Service asks for; empty for IPv4.
	Families string `json:"families,omitempty"`
	// RuleSets maps the names of rule sets of ours to digests of their rules; empty for one that may not be made yet.
	RuleSets map[string]string `json:"ruleSets,omitempty"`
	TLS      *AppliedTLS       `json:"tls,omitempty"`
	// AsFound is a digest of the Service's settings while its balancer stays as release v1.35 has left it: see asFound.
	AsFound string `json:"asFound,omitempty"`
}

// applied is the record of a model that was applied.
func (m *Model) applied() Applied {
	return Applied{
		Kind:           m.Kind,
		CompartmentID:  m.CompartmentID,
		Policy:         m.Policy.controlled(),
		Retries:        m.Retries.controlled(),
		IntervalMillis: m.IntervalMillis.controlled(),
		TimeoutMillis:  m.TimeoutMillis.controlled(),
		IdleSeconds:    m.IdleSeconds.controlled(),
		ProxyProtocol:  m.ProxyProtocol.controlled(),
		PPv2:           m.PPv2.controlled(),
		NSGIDs:         m.NSGIDs,
		Families:       m.Families,
		RuleSets:       m.RuleSets.digests(),
		TLS:            m.appliedTLS(),
		AsFound:        m.AsFound,
	}
}

// encode is the text of the annotation; equal records have equal texts.
func (a Applied) encode() string {
	text, err := json.Marshal(a)
	if err != nil {
		panic("loadbalancer: the record has no JSON form: " + err.Error()) // strings and numbers always have one
	}
	return string(text)
}

// lastApplied reads the record of a Service. One that cannot be read counts as none: then nothing is reverted.
func lastApplied(svc *v1.Service) Applied {
	var a Applied
	if json.Unmarshal([]byte(svc.Annotations[AnnotationLastApplied]), &a) != nil {
		return Applied{}
	}
	return a
}
