// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package loadbalancer

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/oracle/oci-cloud-controller-manager/pkg/oci"
)

// drawTLS adds annotations about TLS that go together.
func drawTLS(t *rapid.T, svc *v1.Service) {
	var ports []string
	for _, p := range svc.Spec.Ports {
		if rapid.Bool().Draw(t, "port with TLS") || len(ports) == 0 {
			ports = append(ports, fmt.Sprint(p.Port))
		}
	}
	svc.Annotations[annotationTLSPorts] = strings.Join(ports, ",")
	secrets := []string{"one", "two", "infra/one"}
	options := []string{`{"cipherSuiteName":"a"}`, `{"cipherSuiteName":"b","protocols":["TLSv1.3"]}`, `{"protocols":["TLSv1.3","TLSv1.2"]}`}
	which := rapid.IntRange(0, 2).Draw(t, "listeners, backend sets, or both")
	if which != 1 {
		svc.Annotations[annotationTLSSecret] = rapid.SampledFrom(secrets).Draw(t, "Secret")
		if rapid.Bool().Draw(t, "options") {
			svc.Annotations[annotationListenerTLS] = rapid.SampledFrom(options).Draw(t, "listener TLS")
		}
	}
	if which != 0 {
		svc.Annotations[annotationBackendSetSecret] = rapid.SampledFrom(secrets).Draw(t, "Secret of the backends")
		if rapid.Bool().Draw(t, "options") {
			svc.Annotations[annotationBackendSetTLS] = rapid.SampledFrom(options).Draw(t, "backend set TLS")
		}
	}
}

// certificatesOf are the Secrets of a Service.
func certificatesOf(svc *v1.Service) map[types.NamespacedName]SecretFact {
	facts := map[types.NamespacedName]SecretFact{}
	for _, name := range SecretsOf(svc) {
		facts[name] = SecretFact{Certificate: oci.Certificate{Public: name.String(), Key: "key"}}
	}
	return facts
}

// tlsText is what a Service controls of a TLS setting.
func tlsText(b *oci.Balancer, s *oci.SSL) string {
	if s == nil {
		return "none"
	}
	return fmt.Sprint(b.Certificates[s.CertificateName].Public, " ", orElse(s.CipherSuiteName, defaultSuite), " ", orElse(joinProtocols(s.Protocols), defaultTLSProtocols))
}

// securePorts are the ports whose listeners have TLS before and after.
func securePorts(a, b *Model) map[int]bool {
	out := map[int]bool{}
	for _, x := range a.Listeners {
		for _, y := range b.Listeners {
			if x.Port == y.Port && x.TLS != nil && y.TLS != nil && !y.TLS.Off {
				out[x.Port] = true
			}
		}
	}
	return out
}

// checkTLS holds the balancer against the rules of the API about certificates, and sees that ports with TLS never lack it.
func (s stage) checkTLS(plan Plan, step Step) {
	exists := func(what string, ssl *oci.SSL) {
		if ssl == nil {
			return
		}
		if _, ok := s.Certificates[ssl.CertificateName]; !ok {
			s.t.Fatalf("after %q %s uses the bundle %s, which does not exist:\n%s", step, what, ssl.CertificateName, plan)
		}
	}
	for name, l := range s.Listeners {
		exists(name, l.SSL)
		if s.secure[l.Port] && l.SSL == nil {
			s.t.Fatalf("after %q listener %s is without TLS:\n%s", step, name, plan)
		}
	}
	for name, bs := range s.BackendSets {
		exists(name, bs.SSL)
	}
}

// Names of bundles are legal, say whose they are, and are the same for the same content only.
func TestBundleNames(t *testing.T) {
	legal := regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)
	rapid.Check(t, func(t *rapid.T) {
		secret := rapid.StringMatching(`[a-z0-9]([a-z0-9-]{0,60}[a-z0-9])?(\.[a-z0-9]([a-z0-9-]{0,60}[a-z0-9])?){0,3}`).Draw(t, "Secret")
		a := oci.Certificate{Public: rapid.String().Draw(t, "certificate"), CA: rapid.String().Draw(t, "CA")}
		a.Name = bundleName(secret, a)
		if !legal.MatchString(a.Name) || !madeByUs(a) {
			t.Fatalf("%q is illegal, or not known to be ours", a.Name)
		}
		b := oci.Certificate{Name: a.Name, Public: a.Public + "x", CA: a.CA}
		if madeByUs(b) || sameContent(a, b) {
			t.Fatalf("other content passes for that of %q", a.Name)
		}
		if moved := (oci.Certificate{Name: a.Name, Public: a.CA, CA: a.Public}); strings.TrimSpace(a.CA) != strings.TrimSpace(a.Public) && sameContent(a, moved) {
			t.Fatalf("certificate and CA are taken for each other: %q", a.Name)
		}
	})
	// The names are stable over releases: a change would upload all certificates anew.
	const want = "web-example-com-8e67840bd2fb7ab48a46"
	if got := bundleName("web.example.com", oci.Certificate{Public: "a", CA: "b"}); got != want {
		t.Errorf("the name is %s", got)
	}
}
