// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package loadbalancer

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/oracle/oci-cloud-controller-manager/pkg/oci"
)

// Defaults of the service (oci-go-sdk, loadbalancer.SslConfigurationDetails); the cipher suite for HTTP2 is the one that
// the existing implementation sets for GRPC.
const (
	defaultSuite        = "oci-default-ssl-cipher-suite-v1"
	defaultSuiteHTTP2   = "oci-default-http2-ssl-cipher-suite-v1"
	defaultTLSProtocols = "TLSv1.2"
)

// TLS is what the Service says about TLS on a listener or towards a backend set.
type TLS struct {
	// Bundle is the name of the certificate bundle to use. It is empty if the Secret cannot be used: what is there stays.
	Bundle string
	// Off takes off the TLS that uses Bundle: the Service asked for it once, and does not any more.
	Off bool

	recorded string // what is recorded while Bundle is empty
}

func (t *TLS) unknown() bool { return t != nil && t.Bundle == "" }

func (t *TLS) String() string {
	switch {
	case t == nil:
		return ""
	case t.Off:
		return ", TLS off"
	case t.Bundle == "":
		return ", TLS as it is"
	}
	return ", TLS with " + t.Bundle
}

// Ciphers is how TLS is spoken. An empty value is the service's default.
type Ciphers struct {
	Suite     Setting[string]
	Protocols Setting[string] // see TLSOptions
}

func (o TLSOptions) ciphers() Ciphers {
	return Ciphers{Suite: setting(o.CipherSuite, ""), Protocols: setting(o.Protocols, "")}
}

// needsTLS says whether the API takes a protocol only with TLS.
func needsTLS(protocol string) bool { return protocol == "GRPC" || protocol == "HTTP2" }

func suiteFor(protocol string) string {
	if needsTLS(strings.ToUpper(protocol)) {
		return defaultSuiteHTTP2
	}
	return defaultSuite
}

// tlsWish works out which bundles listeners and backend sets use.
type tlsWish struct {
	model     *Model
	namespace string
	settings  TLSSettings
	facts     Facts
	live      *oci.Balancer
	last      AppliedTLS

	problems Problems
	told     []types.NamespacedName
}

// secure puts TLS into the model.
func (m *Model) secure(svc *v1.Service, s Settings, facts Facts) Problems {
	if m.Kind != oci.KindLB {
		return nil
	}
	m.ListenerTLS, m.BackendSetTLS = s.TLS.Listener.ciphers(), s.TLS.BackendSet.ciphers()
	plain := !s.TLS.BackendSetSecret.none()
	m.PlainCheck = Setting[bool]{Value: plain, Controlled: plain}
	w := tlsWish{
		model: m, namespace: svc.Namespace, settings: s.TLS, facts: facts,
		live: facts.Live, last: orDefault(facts.Last.TLS, AppliedTLS{}),
	}
	if w.live == nil {
		w.live = &oci.Balancer{Kind: m.Kind}
	}
	m.Adopted = slices.Clone(w.last.Adopted)
	w.checkPorts()
	d := differ{have: w.live, want: m}
	taken, _ := d.match()
	for i := range m.Listeners {
		w.port(&m.Listeners[i], taken[i])
	}
	slices.Sort(m.Adopted)
	m.Adopted = slices.Compact(m.Adopted)
	w.problems = append(w.problems, w.needTLS(taken)...)
	w.problems = append(w.problems, m.keepTLSAsFound(w.live)...)
	return w.problems
}

// checkPorts tells of ssl-ports that the Service does not have.
func (w *tlsWish) checkPorts() {
	var strange []string
	for _, port := range w.settings.Ports {
		if !slices.ContainsFunc(w.model.Listeners, func(l Listener) bool { return l.Port == port }) {
			strange = append(strange, strconv.Itoa(port))
		}
	}
	if len(strange) > 0 {
		w.problems.warn(ReasonAnnotationIgnored, fmt.Sprintf("annotation %s names ports that the Service does not have: %s", annotationTLSPorts, strings.Join(strange, ", ")))
	}
}

// port decides about the listener and the backend set of a port. have is the live listener, if there is one.
func (w *tlsWish) port(l *Listener, have oci.Listener) {
	i := slices.IndexFunc(w.model.BackendSets, func(bs BackendSet) bool { return bs.Name == l.BackendSet })
	set := &w.model.BackendSets[i]
	haveSet, setLives := w.live.BackendSets[set.Name]
	l.TLS = w.wish(w.settings.Secret, annotationTLSSecret, l.Port, have.SSL, w.last.Listeners[strconv.Itoa(l.Port)])
	set.TLS = w.wish(w.settings.BackendSetSecret, annotationBackendSetSecret, l.Port, haveSet.SSL, w.last.BackendSets[set.Name])
	l.Withheld = l.TLS.unknown() || set.TLS.unknown()
	set.Withheld = l.Withheld
	if !l.frozen(have, setLives) {
		w.use(l.TLS, w.settings.Secret)
	}
	if setLives || !set.Withheld {
		w.use(set.TLS, w.settings.BackendSetSecret)
	}
}

// frozen says whether a listener has to be left as it is, or not made, until the Secrets of its port can be used. It would
// be without TLS, or its backend set would.
func (l Listener) frozen(have oci.Listener, setLives bool) bool {
	return l.Withheld && (have.SSL == nil || !setLives)
}

// wish is what becomes of one listener or backend set that has the TLS setting have.
func (w *tlsWish) wish(ref SecretRef, annotation string, port int, have *oci.SSL, recorded string) *TLS {
	if ref.none() || !slices.Contains(w.settings.Ports, port) {
		if have == nil || have.CertificateName == "" {
			return nil
		}
		if have.CertificateName == recorded || madeByUs(w.live.Certificates[have.CertificateName]) {
			return &TLS{Bundle: have.CertificateName, Off: true}
		}
		return nil // TLS that somebody else has set up
	}
	c, ok := w.certificate(ref, annotation)
	if !ok {
		return &TLS{recorded: recorded}
	}
	return &TLS{Bundle: w.bundle(ref.Name, c, have)}
}

// certificate is what the Secret holds. Where the Secret was not read, as for a change of nodes, nobody is told.
func (w *tlsWish) certificate(ref SecretRef, annotation string) (oci.Certificate, bool) {
	name := ref.in(w.namespace)
	fact, read := w.facts.Certificates[name]
	if !read {
		return oci.Certificate{}, false
	}
	if !slices.Contains(w.told, name) {
		w.told = append(w.told, name)
		w.tell(name, annotation, fact)
	}
	return fact.Certificate, fact.Problem == ""
}

func (w *tlsWish) tell(name types.NamespacedName, annotation string, fact SecretFact) {
	secret := fmt.Sprintf("Secret %s of annotation %s", name, annotation)
	switch {
	case fact.Problem != "" && w.facts.Live == nil:
		w.problems.fatal(ReasonTLSSecret, fmt.Sprintf("%s cannot be used: %s; no balancer is made until it can", secret, fact.Problem))
	case fact.Problem != "":
		w.problems = append(w.problems, Problem{Reason: ReasonTLSSecret, Late: true, Message: fmt.Sprintf(
			"%s cannot be used: %s; the balancer keeps the certificates that it has, and no port gets TLS or is added with TLS until it can", secret, fact.Problem)})
	case fact.Warning != "":
		w.problems.warn(ReasonCertificateTime, fmt.Sprintf("%s is used, but %s", secret, fact.Warning))
	}
}

// bundle is the name of the bundle for a certificate: one that the balancer has, if it has the same content, and is in use
// there, is ours, or has the bare name of the Secret, as the existing implementation gives it.
func (w *tlsWish) bundle(secret string, c oci.Certificate, have *oci.SSL) string {
	name := bundleName(secret, c)
	for _, candidate := range []string{orDefault(have, oci.SSL{}).CertificateName, name, secret} {
		if b, exists := w.live.Certificates[candidate]; exists && sameContent(b, c) {
			return candidate
		}
	}
	return name
}

// use puts the bundle of a wish into the model.
func (w *tlsWish) use(t *TLS, ref SecretRef) {
	if t == nil || t.Off || t.unknown() {
		return
	}
	c := w.facts.Certificates[ref.in(w.namespace)].Certificate
	c.Name = t.Bundle
	if w.model.Certificates == nil {
		w.model.Certificates = map[string]oci.Certificate{}
	}
	w.model.Certificates[c.Name] = c
	if _, exists := w.live.Certificates[ref.Name]; exists {
		w.model.Adopted = append(w.model.Adopted, ref.Name)
	}
}

// needTLS refuses protocols that the API takes only with TLS, on listeners that will not have it.
func (w *tlsWish) needTLS(taken map[int]oci.Listener) Problems {
	var problems Problems
	for i, l := range w.model.Listeners {
		if !needsTLS(l.Protocol) || l.TLS != nil && !l.TLS.Off || l.TLS == nil && taken[i].SSL != nil {
			continue
		}
		problems.fatal(ReasonUnsupportedService, fmt.Sprintf("annotation %sload-balancer-backend-protocol: %s on port %d needs TLS on the listener: name the port in %s, and a Secret in %s",
			prefixLB, l.Protocol, l.Port, annotationTLSPorts, annotationTLSSecret))
	}
	return problems
}

// newSSL is the TLS of a listener or backend set as it is created; nil for none. protocol is that of a listener.
func newSSL(want *TLS, c Ciphers, protocol string) *oci.SSL {
	if want == nil || want.Off || want.unknown() {
		return nil
	}
	s := &oci.SSL{CertificateName: want.Bundle, CipherSuiteName: c.Suite.Value}
	if s.CipherSuiteName == "" && needsTLS(protocol) {
		s.CipherSuiteName = defaultSuiteHTTP2
	}
	if c.Protocols.Value != "" {
		s.Protocols = strings.Split(c.Protocols.Value, ",")
	}
	return s
}

// mergeSSL lays what the Service controls over a TLS setting as the cloud has it. was and is are the protocols of a listener.
func mergeSSL(have *oci.SSL, want *TLS, c Ciphers, last appliedCiphers, was, is string) *oci.SSL {
	switch {
	case want == nil:
		return have
	case want.Off && have != nil && have.CertificateName == want.Bundle:
		return nil
	case want.Off:
		return have
	case have == nil:
		return newSSL(want, c, is)
	}
	out := *have
	if !want.unknown() {
		out.CertificateName = want.Bundle
	}
	suite := have.CipherSuiteName
	if suite == suiteFor(was) {
		suite = suiteFor(is) // the default of another protocol
	}
	c.Suite.Value = orElse(c.Suite.Value, suiteFor(is))
	out.CipherSuiteName = c.Suite.over(suite, last.Suite)
	protocols := joinProtocols(have.Protocols)
	c.Protocols.Value = orElse(c.Protocols.Value, defaultTLSProtocols)
	if wanted := c.Protocols.over(protocols, last.Protocols); wanted != protocols {
		out.Protocols = strings.Split(wanted, ",")
	}
	return &out
}

func orElse(text, otherwise string) string {
	if text == "" {
		return otherwise
	}
	return text
}

func sameSSL(a, b *oci.SSL) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.CertificateName == b.CertificateName && a.CipherSuiteName == b.CipherSuiteName && sameSet(a.Protocols, b.Protocols) &&
		a.VerifyDepth == b.VerifyDepth && a.VerifyPeerCertificate == b.VerifyPeerCertificate
}

// sslText is a TLS setting for people.
func sslText(s *oci.SSL) string {
	if s == nil {
		return "off"
	}
	return strings.TrimSpace(fmt.Sprintf("%s %s %s", s.CertificateName, s.CipherSuiteName, joinProtocols(s.Protocols)))
}

// mergePlainCheck lays over a health check whether it goes without TLS where the backend set has TLS (LB).
func (m *Model) mergePlainCheck(have *bool, last *bool) *bool {
	was := orDefault(have, false)
	if is := m.PlainCheck.over(was, last); is != was {
		return &is
	}
	return have
}

func (m *Model) printTLS(p *printer) {
	for _, name := range sortedKeys(m.Certificates) {
		p.line(1, "certificate %s", name)
	}
	ciphers := func(what string, c Ciphers) {
		if c.Suite.Controlled {
			p.line(1, "cipher suite of %s: %s", what, c.Suite)
		}
		if c.Protocols.Controlled {
			p.line(1, "tls versions of %s: %s", what, c.Protocols)
		}
	}
	ciphers("listeners", m.ListenerTLS)
	ciphers("backend sets", m.BackendSetTLS)
	if m.PlainCheck.Controlled {
		p.line(1, "health check without tls: %s", m.PlainCheck)
	}
}
