// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package loadbalancer

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/oracle/oci-cloud-controller-manager/pkg/oci"
)

// A certificate is replaced without a gap: the new bundle is made, listeners and backend sets switch to it, the old one goes
// when nothing uses it. Who ends in between leaves a bundle whose name says that it is ours, and that nothing uses: the next
// plan uses or deletes it.

// AppliedTLS is the part of the record about TLS. It names certificate bundles, and holds nothing of them.
type AppliedTLS struct {
	Listeners         map[string]string `json:"listeners,omitempty"`   // port to bundle
	BackendSets       map[string]string `json:"backendSets,omitempty"` // name to bundle
	Adopted           []string          `json:"adopted,omitempty"`     // see Model
	ListenerCiphers   appliedCiphers    `json:"listenerCiphers,omitzero"`
	BackendSetCiphers appliedCiphers    `json:"backendSetCiphers,omitzero"`
	PlainCheck        *bool             `json:"plainCheck,omitempty"`
}

type appliedCiphers struct {
	Suite     *string `json:"suite,omitempty"`
	Protocols *string `json:"protocols,omitempty"`
}

func (c Ciphers) applied() appliedCiphers {
	return appliedCiphers{Suite: c.Suite.controlled(), Protocols: c.Protocols.controlled()}
}

// appliedTLS is the record of the TLS of a model; nil if it has none.
func (m *Model) appliedTLS() *AppliedTLS {
	out := AppliedTLS{
		Listeners: map[string]string{}, BackendSets: map[string]string{}, Adopted: m.Adopted,
		ListenerCiphers: m.ListenerTLS.applied(), BackendSetCiphers: m.BackendSetTLS.applied(), PlainCheck: m.PlainCheck.controlled(),
	}
	for _, l := range m.Listeners {
		l.TLS.record(out.Listeners, strconv.Itoa(l.Port))
	}
	for _, bs := range m.BackendSets {
		bs.TLS.record(out.BackendSets, bs.Name)
	}
	if len(out.Listeners)+len(out.BackendSets)+len(out.Adopted) == 0 && out.PlainCheck == nil &&
		out.ListenerCiphers == (appliedCiphers{}) && out.BackendSetCiphers == (appliedCiphers{}) {
		return nil
	}
	return &out
}

func (t *TLS) record(bundles map[string]string, key string) {
	if t == nil || t.Off {
		return
	}
	if bundle := orElse(t.Bundle, t.recorded); bundle != "" {
		bundles[key] = bundle
	}
}

// withoutLost leaves adopted bundles out that the balancer does not have any more.
func (a Applied) withoutLost(live *oci.Balancer) Applied {
	if a.TLS == nil {
		return a
	}
	tls := *a.TLS
	tls.Adopted = slices.DeleteFunc(slices.Clone(tls.Adopted), func(name string) bool {
		_, exists := live.Certificates[name]
		return !exists
	})
	a.TLS = &tls
	if len(tls.Listeners)+len(tls.BackendSets)+len(tls.Adopted) == 0 && tls.PlainCheck == nil &&
		tls.ListenerCiphers == (appliedCiphers{}) && tls.BackendSetCiphers == (appliedCiphers{}) {
		a.TLS = nil
	}
	return a
}

// newCertificates makes the bundles that the balancer lacks.
func (d *differ) newCertificates() {
	d.uploaded = map[string]int{}
	for _, name := range sortedKeys(d.want.Certificates) {
		if _, exists := d.have.Certificates[name]; !exists {
			d.uploaded[name] = d.plan.add(Step{Action: CreateCertificate, Name: name, Want: -1})
		}
	}
}

// uploadOf is the step after which a listener or backend set can use its bundle, if there is one.
func (d *differ) uploadOf(t *TLS) []int {
	if t == nil {
		return nil
	}
	if step, ok := d.uploaded[t.Bundle]; ok {
		return []int{step}
	}
	return nil
}

// obsoleteCertificates deletes bundles of ours, and those that were adopted, that nothing uses when the plan is done.
// Bundles of others stay.
func (d *differ) obsoleteCertificates() {
	for _, name := range sortedKeys(d.have.Certificates) {
		_, wanted := d.want.Certificates[name]
		if wanted || !madeByUs(d.have.Certificates[name]) && !slices.Contains(d.want.Adopted, name) {
			continue
		}
		if after, released := d.lastUse(name); released {
			d.plan.add(Step{Action: DeleteCertificate, Name: name, Want: -1, After: after})
		}
	}
}

// lastUse returns the steps after which nothing uses a bundle any more; false if something still does then.
func (d *differ) lastUse(bundle string) (after []int, released bool) {
	uses := func(s *oci.SSL) bool { return s != nil && s.CertificateName == bundle }
	for _, name := range sortedKeys(d.have.Listeners) {
		if !uses(d.have.Listeners[name].SSL) {
			continue
		}
		i := slices.IndexFunc(d.plan, func(s Step) bool {
			return s.Name == name && (s.Action == DeleteListener ||
				s.Action == UpdateListener && !uses(d.want.mergeListener(d.have.Listeners[name], d.want.Listeners[s.Want], d.last).SSL))
		})
		if i < 0 {
			return nil, false
		}
		after = append(after, i)
	}
	for _, name := range sortedKeys(d.have.BackendSets) {
		if !uses(d.have.BackendSets[name].SSL) {
			continue
		}
		i := slices.IndexFunc(d.plan, func(s Step) bool {
			return s.Name == name && (s.Action == DeleteBackendSet ||
				s.Action == UpdateBackendSet && !uses(d.want.mergeBackendSet(d.have.BackendSets[name], d.want.BackendSets[s.Want], d.last).SSL))
		})
		if i < 0 {
			return nil, false
		}
		after = append(after, i)
	}
	slices.Sort(after)
	return after, true
}

// tlsChange describes a change of a TLS setting; empty if there is none.
func tlsChange(separator string, old, merged *oci.SSL) string {
	if sameSSL(old, merged) {
		return ""
	}
	return fmt.Sprintf("%sTLS %s, was %s", separator, sslText(merged), sslText(old))
}

// certificateRequest works out the change of a step about a certificate.
func (a *applier) certificateRequest(step Step) (request, error) {
	store, ok := a.cloud.(CertificateStore)
	if !ok {
		return nil, errors.New("loadbalancer: no certificates on balancers of type " + string(a.cloud.Kind()))
	}
	id := a.current.ID
	_, exists := a.current.Certificates[step.Name]
	if exists == (step.Action == CreateCertificate) {
		return nil, nil
	}
	if step.Action == DeleteCertificate {
		return func(ctx context.Context) (string, error) { return store.DeleteCertificate(ctx, id, step.Name) }, nil
	}
	certificate := a.want.Certificates[step.Name]
	return func(ctx context.Context) (string, error) { return store.CreateCertificate(ctx, id, certificate, "") }, nil
}
