// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package cloudprovider_test

import (
	"strings"
	"testing"
	"time"

	sdk "github.com/oracle/oci-go-sdk/v65/loadbalancer"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/oracle/oci-cloud-controller-manager/pkg/loadbalancer"
	"github.com/oracle/oci-cloud-controller-manager/test/ocisim"
	"github.com/oracle/oci-cloud-controller-manager/test/pki"
)

// putSecret writes a Secret with a certificate.
func (b *bed) putSecret(namespace, name string, p pki.Pair) {
	b.t.Helper()
	s := &v1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Type: v1.SecretTypeTLS,
		Data: map[string][]byte{v1.TLSCertKey: []byte(p.Certificate), v1.TLSPrivateKeyKey: []byte(p.Key)},
	}
	secrets := b.client.CoreV1().Secrets(namespace)
	_, err := secrets.Get(b.ctx, name, metav1.GetOptions{})
	if err == nil {
		_, err = secrets.Update(b.ctx, s, metav1.UpdateOptions{})
	} else {
		_, err = secrets.Create(b.ctx, s, metav1.CreateOptions{})
	}
	if err != nil {
		b.t.Fatal(err)
	}
}

func (b *bed) removeSecret(namespace, name string) {
	b.t.Helper()
	if err := b.client.CoreV1().Secrets(namespace).Delete(b.ctx, name, metav1.DeleteOptions{}); err != nil {
		b.t.Fatal(err)
	}
}

// withTLS asks for TLS with a Secret.
func withTLS(secret string) func(*v1.Service) {
	return func(s *v1.Service) {
		s.Annotations = with(s.Annotations, "service.beta.kubernetes.io/oci-load-balancer-ssl-ports", "80")
		s.Annotations = with(s.Annotations, "service.beta.kubernetes.io/oci-load-balancer-tls-secret", secret)
	}
}

// certificates are those that the listeners of all balancers show, by the Service's UID.
func (b *bed) certificates() map[string]string {
	shown := map[string]string{}
	for _, lb := range b.region.LoadBalancers() {
		for _, l := range lb.Listeners {
			if l.SslConfiguration != nil && lb.LifecycleState == sdk.LoadBalancerLifecycleStateActive {
				shown[*lb.DisplayName] = *lb.Certificates[*l.SslConfiguration.CertificateName].PublicCertificate
			}
		}
	}
	return shown
}

// reads counts the reads of Secrets from the API server.
func (b *bed) reads() int {
	n := 0
	for _, a := range b.client.Actions() {
		if a.GetResource().Resource == "secrets" && (a.GetVerb() == "get" || a.GetVerb() == "list") {
			n++
		}
	}
	return n
}

// C031: a changed Secret reaches all balancers that use it: within seconds where it can be watched, else within a minute.
func TestRenewedCertificate(t *testing.T) {
	second := ocisim.Range{Min: time.Second, Max: time.Second}
	durations := map[string]ocisim.Range{"loadbalancer.create": second, "loadbalancer.update": second, "loadbalancer.delete": second}
	for name, test := range map[string]struct {
		missing []string
		within  time.Duration
		notices int
	}{
		"watched": {nil, 10 * time.Second, 0},
		"polled":  {[]string{"watch secrets"}, time.Minute + 10*time.Second, 1},
	} {
		t.Run(name, func(t *testing.T) {
			one, two := pki.New(t, "one"), pki.New(t, "two")
			inBubble(t, ocisim.Options{Durations: durations}, func(t *testing.T, b *bed) {
				b.server.missing = test.missing
				b.withBalancers(b.oci)
				b.addWorker("w-1", "10.0.1.1")
				b.startServices()
				b.putSecret("default", "web", one)
				b.putSecret("default", "other", one)
				b.addService("a", withTLS("web"))
				b.addService("b", withTLS("default/web"))
				b.addService("plain")
				b.hold(30 * time.Second)
				if got := b.certificates(); len(got) != 2 || got["uid-of-a"] != one.Certificate || got["uid-of-b"] != one.Certificate {
					t.Fatalf("certificates %v, events %v", got, b.warnings())
				}

				// One of the two reads the new Secret for a reason of its own: the other one has to be queued all the same.
				b.putSecret("default", "web", two)
				b.updateService("a", func(s *v1.Service) { s.Annotations = with(s.Annotations, "example.com/poke", "1") })
				b.hold(test.within)
				if got := b.certificates(); got["uid-of-a"] != two.Certificate || got["uid-of-b"] != two.Certificate {
					t.Errorf("the new certificate did not arrive: events %v", b.warnings())
				}
				for _, lb := range b.region.LoadBalancers() {
					if len(lb.Certificates) > 1 {
						t.Errorf("%d bundles are left on %s", len(lb.Certificates), *lb.DisplayName)
					}
				}

				b.removeSecret("default", "web")
				b.hold(test.within)
				for _, service := range []string{"a", "b"} {
					if s := b.service(service); synced(s) {
						t.Errorf("%s counts as synced without its Secret", service)
					}
				}
				if n := len(b.eventsOf("Service", loadbalancer.ReasonTLSSecret)); n != 2 {
					t.Errorf("%d events: %v", n, b.warnings())
				}
				b.putSecret("default", "web", one)
				b.hold(test.within)
				if got := b.certificates(); got["uid-of-a"] != one.Certificate || !synced(b.service("a")) {
					t.Errorf("the Secret that came back did not arrive: events %v", b.warnings())
				}

				// A Secret that nobody names is nobody's business; nothing goes on for one that nobody names any more.
				b.putSecret("default", "other", two)
				for _, service := range []string{"a", "b"} {
					b.updateService(service, func(s *v1.Service) {
						for key := range s.Annotations {
							if strings.Contains(key, "load-balancer-ssl-ports") || strings.Contains(key, "load-balancer-tls-secret") {
								delete(s.Annotations, key)
							}
						}
					})
				}
				b.hold(2 * time.Minute)
				b.client.ClearActions()
				b.region.ResetCalls()
				b.putSecret("default", "web", two)
				b.hold(time.Hour)
				if n := b.reads(); n > 1 { // putSecret's own
					t.Errorf("%d reads of Secrets that nobody names", n)
				}
				if w := b.cloudWrites(); len(w) > 0 {
					t.Errorf("writes: %v", w)
				}
				notices := b.eventsOf("Lease", "PermissionMissing")
				if len(notices) != test.notices || len(notices) > 0 && !strings.Contains(notices[0].Message, `resources: ["secrets"], verbs: ["watch"]`) {
					t.Errorf("notices %v", b.warnings())
				}
			})
		})
	}
}

// With nothing to do, a Service with TLS costs no write, and a look at its Secret in each period where that is polled.
func TestTLSAtRest(t *testing.T) {
	one := pki.New(t, "one")
	for name, missing := range map[string][]string{"watched": nil, "polled": {"watch secrets"}} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, ocisim.Options{}, func(t *testing.T, b *bed) {
				b.server.missing = missing
				b.withBalancers(b.oci)
				b.addWorker("w-1", "10.0.1.1")
				b.startServices()
				b.putSecret("default", "web", one)
				b.addService("a", withTLS("web"))
				b.hold(10 * time.Minute)
				b.client.ClearActions()
				b.region.ResetCalls()
				b.hold(time.Hour)
				if w := b.cloudWrites(); len(w) > 0 {
					t.Errorf("writes to the cloud: %v", w)
				}
				if w := b.writes(); len(w) > 0 {
					t.Errorf("writes to the API server: %v", w)
				}
				most := 1
				if missing != nil {
					most = 61
				}
				if n := b.reads(); n > most {
					t.Errorf("%d reads of the Secret in an hour", n)
				}
			})
		})
	}
}

// A Service that waits for its Secret gets its balancer when the Secret is there.
func TestSecretComesLater(t *testing.T) {
	one := pki.New(t, "one")
	inBubble(t, ocisim.Options{}, func(t *testing.T, b *bed) {
		b.withBalancers(b.oci)
		b.addWorker("w-1", "10.0.1.1")
		b.startServices()
		b.addService("a", withTLS("web"))
		b.hold(20 * time.Minute)
		if len(b.region.LoadBalancers()) > 0 || len(b.eventsOf("Service", loadbalancer.ReasonTLSSecret)) != 1 {
			t.Fatalf("events %v", b.warnings())
		}
		b.region.ResetCalls()
		b.putSecret("default", "web", one)
		b.hold(5 * time.Second)
		if n := b.cloudWrites()["loadbalancer.CreateLoadBalancer"]; n != 1 {
			t.Errorf("writes %v: want a creation right away", b.cloudWrites())
		}
	})
}
