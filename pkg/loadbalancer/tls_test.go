// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package loadbalancer_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/oracle/oci-go-sdk/v65/common"
	lbsdk "github.com/oracle/oci-go-sdk/v65/loadbalancer"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"

	"github.com/oracle/oci-cloud-controller-manager/pkg/config"
	"github.com/oracle/oci-cloud-controller-manager/pkg/loadbalancer"
	"github.com/oracle/oci-cloud-controller-manager/pkg/oci"
	"github.com/oracle/oci-cloud-controller-manager/test/ocisim"
	"github.com/oracle/oci-cloud-controller-manager/test/pki"
)

// A Service with TLS, from the first sync on: listeners and backend sets of its ssl-ports, and no others (contract §2.1,
// §4.12, §4.13).
func TestTLS(t *testing.T) {
	simulate(t, ocisim.Options{Seed: 70}, func(r *rig) {
		nodes := r.nodes(2)
		svc := r.service("web", oci.KindLB, 80, 443)
		r.withTLS(svc, " 443,", "web.example.com", "one")
		r.secrets.put("infra", "backends", r.secrets.pair(r.T, "two"))
		r.edit(svc, annotate(prefixLB+"tls-backendset-secret", "infra/backends"))
		r.mustSync(svc, nodes)
		r.equal("writes", written(r.region.Calls()), []string{"CreateLoadBalancer"})
		b := r.only()
		r.equal("certificate of the listener", r.certificateOf("TCP-443"), r.secrets.pair(r.T, "one").Certificate)
		r.equal("certificate of the other listener", r.certificateOf("TCP-80"), "")
		r.equal("certificate of the backend set", publicOf(b, b.BackendSets["TCP-443"].SSL), r.secrets.pair(r.T, "two").Certificate)
		r.equal("TLS of the other backend set", b.BackendSets["TCP-80"].SSL == nil, true)
		for name, bs := range b.BackendSets {
			r.equal("health checks without TLS of "+name, *bs.Checker.ForcePlainText, true)
		}
		for _, ssl := range []*oci.SSL{b.Listeners["TCP-443"].SSL, b.BackendSets["TCP-443"].SSL} {
			r.equal("TLS", fmt.Sprintf("%d %t %s %s", ssl.VerifyDepth, ssl.VerifyPeerCertificate, ssl.CipherSuiteName, ssl.Protocols), "0 false oci-default-ssl-cipher-suite-v1 [TLSv1.2]")
		}
		for _, name := range bundles(b) {
			if !strings.HasPrefix(name, "web-example-com-") && !strings.HasPrefix(name, "backends-") {
				r.Errorf("a bundle has the name %s", name)
			}
		}
		r.noEvents()
		r.unchanged(svc, nodes)

		// A change of nodes needs no Secret.
		r.secrets.fail = errors.New("the API server is away")
		reads := r.secrets.reads
		r.mustUpdateBackends(svc, append(nodes, r.node("node-3")))
		r.equal("backends", len(r.backends("TCP-443")), 3)
		r.equal("reads of Secrets", r.secrets.reads-reads, 0)
		r.equal("TLS towards the backends stays", r.only().BackendSets["TCP-443"].SSL != nil, true)

		// That the Secret cannot be read says nothing about it.
		if _, err := r.m.Ensure(r.Context(), r.cluster.get(svc.UID), nodes); err == nil || !errors.Is(err, r.secrets.fail) {
			r.Errorf("with an API server that is away: %v", err)
		}
		r.noEvents()
	})
}

// C031: a renewed certificate is put in place without a gap, a bad one is not, and the old bundle goes.
func TestCertificateRotation(t *testing.T) {
	simulate(t, ocisim.Options{Seed: 71}, func(r *rig) {
		nodes := r.nodes(1)
		svc := r.service("web", oci.KindLB, 443)
		r.withTLS(svc, "443", "web", "one")
		r.edit(svc, annotate(prefixLB+"tls-backendset-secret", "web"))
		r.mustSync(svc, nodes)
		r.equal("bundles", len(r.only().Certificates), 1)
		r.alwaysWithTLS("TCP-443")

		r.secrets.put("shop", "web", r.secrets.pair(r.T, "two"))
		r.region.ResetCalls()
		r.mustSync(svc, nodes)
		writes := written(r.region.Calls())
		slices.Sort(writes[1:3])
		r.equal("writes", writes, []string{"CreateCertificate", "UpdateBackendSet", "UpdateListener", "DeleteCertificate"})
		r.equal("certificate", r.certificateOf("TCP-443"), r.secrets.pair(r.T, "two").Certificate)
		r.equal("bundles", len(r.only().Certificates), 1)
		r.unchanged(svc, nodes)

		r.region.ResetCalls()
		r.secrets.remove("shop", "web")
		r.refused(svc, nodes, loadbalancer.ReasonTLSSecret)
		mixed := r.secrets.pair(r.T, "two")
		mixed.Key = r.secrets.pair(r.T, "three").Key
		r.secrets.put("shop", "web", mixed)
		r.refused(svc, nodes, loadbalancer.ReasonTLSSecret)
		r.equal("writes with bad Secrets", written(r.region.Calls()), []string{})
		r.equal("certificate", r.certificateOf("TCP-443"), r.secrets.pair(r.T, "two").Certificate)
		r.equal("events", len(r.cluster.series(loadbalancer.ReasonTLSSecret)), 2)

		chain := r.secrets.pair(r.T, "three")
		chain.Certificate += r.secrets.pair(r.T, "ca").Certificate
		r.secrets.put("shop", "web", chain)
		r.mustSync(svc, nodes)
		r.equal("certificate", r.certificateOf("TCP-443"), chain.Certificate)
		r.equal("bundles", len(r.only().Certificates), 1)
		r.equal("condition", r.cluster.condition(svc.UID), "True Synced")
		r.unchanged(svc, nodes)

		// Line ends and blanks are no new certificate.
		chain.Certificate = strings.ReplaceAll(chain.Certificate, "\n", "\r\n") + "\n"
		r.secrets.put("shop", "web", chain)
		r.unchanged(svc, nodes)
	})
}

// alwaysWithTLS fails when a listener is ever without TLS, or names a bundle that is not there.
func (r *rig) alwaysWithTLS(listener string) {
	r.region.Foreign().After(ocisim.Trigger{}, func(_ *ocisim.Foreign, c ocisim.Call) {
		for _, lb := range r.region.LoadBalancers() {
			l, ok := lb.Listeners[listener]
			if !ok || l.SslConfiguration == nil {
				r.Errorf("after %s the listener is without TLS", c.Operation)
			} else if _, ok := lb.Certificates[*l.SslConfiguration.CertificateName]; !ok {
				r.Errorf("after %s the listener names a bundle that is not there", c.Operation)
			}
		}
	})
}

// refused syncs once and expects a refusal.
func (r *rig) refused(svc *v1.Service, nodes []*v1.Node, reason string) {
	r.Helper()
	for {
		_, err := r.m.Ensure(r.Context(), r.cluster.get(svc.UID), nodes)
		var pending *loadbalancer.Pending
		if errors.As(err, &pending) {
			if err := pending.Wait(r.Context()); err != nil {
				r.Fatal(err)
			}
			continue
		}
		var refusal *loadbalancer.Refusal
		if !errors.As(err, &refusal) || refusal.Reason != reason {
			r.Fatalf("got %v, want a refusal for %s", err, reason)
		}
		r.equal("condition", r.cluster.condition(svc.UID), "False "+reason)
		return
	}
}

// C030: the name of the Secret changes, four times.
func TestSecretNameChanges(t *testing.T) {
	simulate(t, ocisim.Options{Seed: 72}, func(r *rig) {
		nodes := r.nodes(1)
		svc := r.service("web", oci.KindLB, 443)
		r.withTLS(svc, "443", "s0", "host-s0")
		r.mustSync(svc, nodes)
		r.alwaysWithTLS("TCP-443")
		for _, secret := range []string{"s1", "s2", "s1", "s3"} {
			r.withTLS(svc, "443", secret, "host-"+secret)
			r.mustSync(svc, nodes)
			r.equal("certificate", r.certificateOf("TCP-443"), r.secrets.pair(r.T, "host-"+secret).Certificate)
			r.equal("listeners", len(r.only().Listeners), 1)
			r.equal("bundles", len(r.only().Certificates), 1)
		}
		r.equal("new or deleted listeners", r.count("CreateListener")+r.count("DeleteListener"), 0)
		r.noEvents()
	})
}

// legacyTLS makes a balancer as the existing implementation left it: bundles with the bare names of the Secrets, listener
// names with and without the name of the Secret (contract §3.1, §3.2).
func (r *rig) legacyTLS(svc *v1.Service, listener, secret, backendSecret string) string {
	r.Helper()
	id := r.legacyBalancer(svc, oci.KindLB)
	client := r.connect(r.region.Transport()).LoadBalancers()
	wait := func(work string, err error) {
		r.Helper()
		if err == nil {
			_, err = client.Wait(r.Context(), work)
		}
		if err != nil {
			r.Fatal(err)
		}
	}
	for _, name := range []string{secret, backendSecret} {
		s := r.secrets.all[types.NamespacedName{Namespace: "shop", Name: name}]
		wait(client.CreateCertificate(r.Context(), id, oci.Certificate{Name: name, Public: s.Certificate, CA: s.CA, Key: s.Key}, ""))
	}
	set := r.only().BackendSets["TCP-443"]
	set.SSL, set.Checker.ForcePlainText = &oci.SSL{CertificateName: backendSecret}, common.Bool(true)
	wait(client.UpdateBackendSet(r.Context(), id, set, ""))
	wait(client.DeleteListener(r.Context(), id, "TCP-443"))
	wait(client.CreateListener(r.Context(), id, oci.Listener{
		Name: listener, Port: 443, Protocol: "TCP", BackendSetName: "TCP-443", SSL: &oci.SSL{CertificateName: secret},
	}, ""))
	return id
}

// C030, C031, acceptance 5: balancers of the existing implementation are used as they are; the next certificate takes the
// place of theirs.
func TestLegacyCertificates(t *testing.T) {
	for _, listener := range []string{"TCP-443", "TCP-443-web-tls", "HTTP-443-old.secret"} {
		t.Run(listener, func(t *testing.T) {
			simulate(t, ocisim.Options{Seed: 73}, func(r *rig) {
				svc := r.service("web", oci.KindLB, 443)
				r.withTLS(svc, "443", "web-tls", "one")
				withCA := r.secrets.pair(r.T, "two")
				withCA.CA = r.secrets.pair(r.T, "ca").Certificate
				r.secrets.put("shop", "backends", withCA)
				r.edit(svc, annotate(prefixLB+"tls-backendset-secret", "backends"))
				id := r.legacyTLS(svc, listener, "web-tls", "backends")
				r.addBundle(id, "hand-made")
				r.restart()
				r.unchangedBut(svc, nil, "ListLoadBalancers", "ListNetworkLoadBalancers", "GetLoadBalancer")
				r.equal("bundles", len(r.only().Certificates), 3)

				r.secrets.put("shop", "web-tls", r.secrets.pair(r.T, "three"))
				r.alwaysWithTLS(listener)
				r.mustSync(svc, nil)
				b := r.only()
				r.equal("certificate", publicOf(b, b.Listeners[listener].SSL), r.secrets.pair(r.T, "three").Certificate)
				r.equal("bundle of the existing implementation", b.Certificates["web-tls"].Name, "")
				r.equal("the other one, which is in use", b.Certificates["backends"].Name, "backends")
				r.equal("bundle of somebody else", b.Certificates["hand-made"].Name, "hand-made")
				r.equal("bundles", len(b.Certificates), 3)
				r.equal("listeners", len(b.Listeners), 1)
				r.unchanged(svc, nil)
			})
		})
	}
}

// unchangedBut syncs once and fails on any write, and on any call that is not one of these.
func (r *rig) unchangedBut(svc *v1.Service, nodes []*v1.Node, reads ...string) {
	r.Helper()
	r.region.ResetCalls()
	r.mustSync(svc, nodes)
	for _, c := range r.region.Calls() {
		if c.Write || !slices.Contains(reads, c.Operation) {
			r.Errorf("unexpected call: %s", c.Operation)
		}
	}
}

// addBundle adds a certificate bundle by hand.
func (r *rig) addBundle(id, name string) {
	r.Helper()
	pair := r.secrets.pair(r.T, name)
	err := r.region.Foreign().LoadBalancer(id, func(v *lbsdk.LoadBalancer) {
		if v.Certificates == nil {
			v.Certificates = map[string]lbsdk.Certificate{}
		}
		v.Certificates[name] = lbsdk.Certificate{CertificateName: &name, PublicCertificate: &pair.Certificate, CaCertificate: common.String("")}
	})
	if err != nil {
		r.Fatal(err)
	}
}

// C066, C031: what is wrong with a Secret is told; of a new Service nothing is made, on a live one the certificate stays, and
// all else goes on.
func TestBadSecrets(t *testing.T) {
	if testing.Short() {
		t.Skip("long, and nothing runs at the same time in it: in make test-long")
	}
	pair := newPair(t, "host")
	other := newPair(t, "other")
	with := func(change func(s *loadbalancer.TLSSecret)) *loadbalancer.TLSSecret {
		s := pair
		change(&s)
		return &s
	}
	encrypted := config.Secret("-----BEGIN ENCRYPTED PRIVATE KEY-----\nMAA=\n-----END ENCRYPTED PRIVATE KEY-----\n")
	for name, test := range map[string]struct {
		secret *loadbalancer.TLSSecret
		fail   error
		text   string
	}{
		"missing":        {nil, nil, "does not exist"},
		"forbidden":      {nil, apierrors.NewForbidden(schema.GroupResource{Resource: "secrets"}, "web", errors.New("no rule")), "bind the ClusterRole oci-cloud-controller-manager:tls-secrets in namespace shop"},
		"no certificate": {with(func(s *loadbalancer.TLSSecret) { s.Certificate = "" }), nil, "no key tls.crt"},
		"only a CA":      {&loadbalancer.TLSSecret{CA: pair.Certificate}, nil, "no key tls.crt"},
		"no key":         {with(func(s *loadbalancer.TLSSecret) { s.Key = "" }), nil, "no key tls.key"},
		"no PEM":         {with(func(s *loadbalancer.TLSSecret) { s.Certificate = "certificate" }), nil, "tls.crt is no certificate"},
		"broken PEM": {with(func(s *loadbalancer.TLSSecret) {
			s.Certificate = "-----BEGIN CERTIFICATE-----\nMAA=\n-----END CERTIFICATE-----\n"
		}), nil, "tls.crt has a certificate that cannot be read"},
		"bad CA":      {with(func(s *loadbalancer.TLSSecret) { s.CA = "ca" }), nil, "ca.crt is no certificate"},
		"key is none": {with(func(s *loadbalancer.TLSSecret) { s.Key = config.Secret(s.Certificate) }), nil, "tls.key is no private key"},
		"broken key": {with(func(s *loadbalancer.TLSSecret) {
			s.Key = "-----BEGIN PRIVATE KEY-----\nMAA=\n-----END PRIVATE KEY-----\n"
		}), nil, "tls.key has a private key that cannot be read"},
		"key of another": {with(func(s *loadbalancer.TLSSecret) { s.Key = other.Key }), nil, "tls.key does not belong to the first certificate"},
		"encrypted key":  {with(func(s *loadbalancer.TLSSecret) { s.Key = encrypted }), nil, "tls.key is encrypted"},
		"wrong order":    {with(func(s *loadbalancer.TLSSecret) { s.Certificate = other.Certificate + s.Certificate }), nil, "does not belong to the first certificate"},
	} {
		t.Run(name, func(t *testing.T) {
			simulate(t, ocisim.Options{Seed: 74}, func(r *rig) {
				bad := func() {
					r.secrets.fail = test.fail
					r.secrets.remove("shop", "web")
					if test.secret != nil {
						r.secrets.put("shop", "web", *test.secret)
					}
				}
				good := func() {
					r.secrets.fail = nil
					r.secrets.put("shop", "web", pair)
				}
				nodes := r.nodes(2)
				svc := r.service("web", oci.KindLB, 80, 443)
				r.withTLS(svc, "443,8443", "web", "host")
				bad()
				r.refused(svc, nodes, loadbalancer.ReasonTLSSecret)
				r.equal("balancers", len(r.live()), 0)
				message := r.cluster.series(loadbalancer.ReasonTLSSecret)[0].Message
				for _, part := range []string{"Secret shop/web", "tls-secret", test.text, "no balancer is made"} {
					if !strings.Contains(message, part) {
						r.Errorf("event %q lacks %q", message, part)
					}
				}
				good()
				r.mustSync(svc, nodes)
				certificate := r.certificateOf("TCP-443")

				// On a live balancer: one port goes, a plain one and one with TLS come.
				bad()
				r.cluster.events = nil
				r.edit(svc, func(s *v1.Service) { s.Spec.Ports = newService("x", oci.KindLB, 81, 443, 8443).Spec.Ports })
				r.refused(svc, nodes, loadbalancer.ReasonTLSSecret)
				b := r.only()
				r.equal("certificate", r.certificateOf("TCP-443"), certificate)
				r.equal("bundles", len(b.Certificates), 1)
				_, added := b.Listeners["TCP-81"]
				_, without := b.Listeners["TCP-8443"]
				_, gone := b.Listeners["TCP-80"]
				r.equal("listeners", fmt.Sprint(added, without, gone), "true false false")
				r.equal("uploads", r.count("CreateCertificate"), 0)
				r.region.ResetCalls()
				r.refused(svc, nodes, loadbalancer.ReasonTLSSecret)
				r.equal("writes of the next sync", written(r.region.Calls()), []string{})
				r.equal("event series", len(r.cluster.series(loadbalancer.ReasonTLSSecret)), 1)

				good()
				r.mustSync(svc, nodes)
				r.equal("certificate of the new port", r.certificateOf("TCP-8443"), pair.Certificate)
				r.equal("condition", r.cluster.condition(svc.UID), "True Synced")
				r.unchanged(svc, nodes)

				// Deletion asks for no Secret.
				bad()
				if err := r.m.Delete(r.Context(), svc); err != nil {
					r.Error(err)
				}
			})
		})
	}
}

// A port that has no TLS yet stays as it is until its Secret can be used: a listener is never in between.
func TestTLSOnALivePort(t *testing.T) {
	simulate(t, ocisim.Options{Seed: 75}, func(r *rig) {
		nodes := r.nodes(1)
		svc := r.service("web", oci.KindLB, 443)
		r.mustSync(svc, nodes)
		r.withTLS(svc, "443", "web", "one")
		r.secrets.remove("shop", "web")
		r.edit(svc, annotate(prefixLB+"backend-protocol", "HTTP2"))
		r.region.ResetCalls()
		r.refused(svc, nodes, loadbalancer.ReasonTLSSecret)
		r.equal("writes", written(r.region.Calls()), []string{})
		r.secrets.put("shop", "web", r.secrets.pair(r.T, "one"))
		r.mustSync(svc, nodes)
		l := r.only().Listeners["TCP-443"]
		r.equal("protocol", l.Protocol, "HTTP2")
		r.equal("cipher suite", l.SSL.CipherSuiteName, "oci-default-http2-ssl-cipher-suite-v1")
		r.equal("new or deleted listeners", r.count("CreateListener")+r.count("DeleteListener"), 0)
		r.unchanged(svc, nodes)

		r.edit(svc, annotate(prefixLB+"backend-protocol", "HTTP"))
		r.mustSync(svc, nodes)
		r.equal("cipher suite", r.only().Listeners["TCP-443"].SSL.CipherSuiteName, "oci-default-ssl-cipher-suite-v1")
		r.unchanged(svc, nodes)

		// The Secret of the backends is bad: the listener with its good one does not get ahead of them on a new port.
		r.edit(svc, func(s *v1.Service) {
			s.Spec.Ports = newService("x", oci.KindLB, 443, 8443).Spec.Ports
			s.Annotations[prefixLB+"ssl-ports"] = "443,8443"
			s.Annotations[prefixLB+"tls-backendset-secret"] = "backends"
		})
		r.secrets.put("shop", "web", r.secrets.pair(r.T, "two"))
		r.refused(svc, nodes, loadbalancer.ReasonTLSSecret)
		b := r.only()
		r.equal("listeners and backend sets", fmt.Sprint(len(b.Listeners), len(b.BackendSets)), "1 1")
		r.equal("certificate of the other port", r.certificateOf("TCP-443"), r.secrets.pair(r.T, "two").Certificate)
		r.equal("bundles", len(b.Certificates), 1)
	})
}

// W21: Secrets of one name in two namespaces are two certificates, and equal ones are one.
func TestSecretsOfOneName(t *testing.T) {
	simulate(t, ocisim.Options{Seed: 76}, func(r *rig) {
		nodes := r.nodes(1)
		svc := r.service("web", oci.KindLB, 443)
		r.withTLS(svc, "443", "tls", "one")
		r.secrets.put("infra", "tls", r.secrets.pair(r.T, "two"))
		r.edit(svc, annotate(prefixLB+"tls-backendset-secret", "infra/tls"))
		r.mustSync(svc, nodes)
		b := r.only()
		r.equal("bundles", len(b.Certificates), 2)
		r.equal("listener", r.certificateOf("TCP-443"), r.secrets.pair(r.T, "one").Certificate)
		r.equal("backend set", publicOf(b, b.BackendSets["TCP-443"].SSL), r.secrets.pair(r.T, "two").Certificate)
		r.secrets.put("infra", "tls", r.secrets.pair(r.T, "one"))
		r.mustSync(svc, nodes)
		r.equal("bundles", len(r.only().Certificates), 1)
		r.unchanged(svc, nodes)
	})
}

// TLS goes with the annotations that asked for it; TLS that others have set up stays.
func TestTLSTakenOff(t *testing.T) {
	simulate(t, ocisim.Options{Seed: 77}, func(r *rig) {
		nodes := r.nodes(1)
		svc := r.service("web", oci.KindLB, 443, 8443)
		r.withTLS(svc, "443,8443", "web", "one")
		r.edit(svc, annotate(prefixLB+"tls-backendset-secret", "web"))
		svc = r.mustSync(svc, nodes)
		if text := svc.Annotations[loadbalancer.AnnotationLastApplied]; strings.Contains(text, "BEGIN") || !strings.Contains(text, "tls") {
			r.Errorf("the record is %s", text)
		}
		b := r.only()
		r.addBundle(b.ID, "hand-made")
		err := r.region.Foreign().LoadBalancer(b.ID, func(v *lbsdk.LoadBalancer) {
			v.Listeners["TCP-8443"].SslConfiguration.CertificateName = common.String("hand-made")
		})
		if err != nil {
			r.Fatal(err)
		}
		r.edit(svc, func(s *v1.Service) {
			for _, key := range []string{"ssl-ports", "tls-secret", "tls-backendset-secret"} {
				delete(s.Annotations, prefixLB+key)
			}
		})
		r.mustSync(svc, nodes)
		b = r.only()
		r.equal("TLS", fmt.Sprint(b.Listeners["TCP-443"].SSL == nil, b.BackendSets["TCP-443"].SSL == nil, b.BackendSets["TCP-8443"].SSL == nil), "true true true")
		r.equal("TLS of somebody else", b.Listeners["TCP-8443"].SSL.CertificateName, "hand-made")
		r.equal("health checks", *b.BackendSets["TCP-443"].Checker.ForcePlainText, false)
		r.equal("bundles", bundles(b), []string{"hand-made"})
		r.unchanged(svc, nodes)
		r.noEvents()
	})
}

// Cipher suite and protocols: set, changed, taken back, and left to others. Fields that no annotation controls stay (C055).
func TestCiphers(t *testing.T) {
	simulate(t, ocisim.Options{Seed: 78}, func(r *rig) {
		nodes := r.nodes(1)
		const listenerTLS, setTLS = prefixCommon + "oci-load-balancer-listener-ssl-config", prefixCommon + "oci-load-balancer-backendset-ssl-config"
		svc := r.service("web", oci.KindLB, 443)
		r.withTLS(svc, "443", "web", "one")
		r.edit(svc, annotate(prefixLB+"tls-backendset-secret", "web"))
		r.edit(svc, annotate(listenerTLS, `{"CIPHERSUITENAME":"oci-tls-12-13-wider-ssl-cipher-suite-v1","Protocols":["tlsv1.3","TLSv1.2"]}`))
		r.edit(svc, annotate(setTLS, `{"cipherSuiteName":"oci-modern-ssl-cipher-suite-v1"}`))
		r.mustSync(svc, nodes)
		of := func(s *oci.SSL) string {
			slices.Sort(s.Protocols)
			return fmt.Sprintf("%s%s%d", s.CipherSuiteName, s.Protocols, s.VerifyDepth)
		}
		listener := func() string { return of(r.only().Listeners["TCP-443"].SSL) }
		set := func() string { return of(r.only().BackendSets["TCP-443"].SSL) }
		r.equal("listener", listener(), "oci-tls-12-13-wider-ssl-cipher-suite-v1[TLSv1.2 TLSv1.3]0")
		r.equal("backend set", set(), "oci-modern-ssl-cipher-suite-v1[TLSv1.2]0")
		r.unchanged(svc, nodes)

		err := r.region.Foreign().LoadBalancer(r.only().ID, func(v *lbsdk.LoadBalancer) {
			v.Listeners["TCP-443"].SslConfiguration.VerifyDepth = common.Int(3)
			v.Listeners["TCP-443"].SslConfiguration.HasSessionResumption = common.Bool(true)
			v.BackendSets["TCP-443"].SslConfiguration.CipherSuiteName = common.String("oci-compatible-ssl-cipher-suite-v1")
		})
		if err != nil {
			r.Fatal(err)
		}
		r.edit(svc, func(s *v1.Service) { delete(s.Annotations, setTLS) })
		r.edit(svc, annotate(listenerTLS, `{"cipherSuiteName":"oci-tls-13-recommended-ssl-cipher-suite-v1","protocols":["TLSv1.3"]}`))
		r.mustSync(svc, nodes)
		r.equal("listener", listener(), "oci-tls-13-recommended-ssl-cipher-suite-v1[TLSv1.3]3")
		r.equal("backend set, which somebody else changed", set(), "oci-compatible-ssl-cipher-suite-v1[TLSv1.2]0")
		r.equal("session resumption", *r.region.LoadBalancers()[0].Listeners["TCP-443"].SslConfiguration.HasSessionResumption, true)
		r.unchanged(svc, nodes)

		r.edit(svc, func(s *v1.Service) { delete(s.Annotations, listenerTLS) })
		r.mustSync(svc, nodes)
		r.equal("listener", listener(), "oci-default-ssl-cipher-suite-v1[TLSv1.2]3")
		r.unchanged(svc, nodes)
		r.noEvents()
	})
}

// C065: protocols with and without TLS, in any case.
func TestProtocolsWithTLS(t *testing.T) {
	for _, protocol := range []string{"http", "HTTP", "tcp", "http2", "HTTP2", "Grpc", "GRPC"} {
		for _, secure := range []bool{false, true} {
			t.Run(fmt.Sprint(protocol, secure), func(t *testing.T) {
				simulate(t, ocisim.Options{Seed: 79}, func(r *rig) {
					nodes := r.nodes(1)
					svc := r.service("web", oci.KindLB, 443)
					r.edit(svc, annotate(prefixLB+"backend-protocol", protocol))
					if secure {
						r.withTLS(svc, "443", "web", "one")
					}
					name := strings.ToUpper(protocol)
					newer := name == "HTTP2" || name == "GRPC"
					if newer && !secure {
						r.refused(svc, nodes, loadbalancer.ReasonUnsupportedService)
						return
					}
					r.mustSync(svc, nodes)
					l := r.only().Listeners[name+"-443"]
					r.equal("protocol", l.Protocol, name)
					if secure && (l.SSL.CipherSuiteName == "oci-default-http2-ssl-cipher-suite-v1") != newer {
						r.Errorf("cipher suite %s", l.SSL.CipherSuiteName)
					}
					r.unchanged(svc, nodes)
				})
			})
		}
	}
}

// An expired certificate is used, with a warning.
func TestExpiredCertificate(t *testing.T) {
	old := secretOf(pki.Valid(t, "host", time.Date(1998, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(1999, 1, 1, 0, 0, 0, 0, time.UTC)))
	simulate(t, ocisim.Options{Seed: 80}, func(r *rig) {
		nodes := r.nodes(1)
		svc := r.service("web", oci.KindLB, 443)
		r.withTLS(svc, "443", "web", "one")
		r.secrets.put("shop", "web", old)
		r.mustSync(svc, nodes)
		r.equal("certificate", r.certificateOf("TCP-443"), old.Certificate)
		r.oneSeries(loadbalancer.ReasonCertificateTime, "Secret shop/web", "1999-01-01T00:00:00Z")
		r.unchanged(svc, nodes)
	})
}

// The pass over all balancers sees another certificate on a listener, from what it remembers, and reads no Secret.
func TestAuditSeesCertificates(t *testing.T) {
	simulate(t, ocisim.Options{Seed: 81}, func(r *rig) {
		nodes := r.nodes(1)
		svc := r.service("web", oci.KindLB, 443)
		r.withTLS(svc, "443", "web", "one")
		svc = r.mustSync(svc, nodes)
		drifted := func(m *loadbalancer.Manager) int {
			found, err := m.Audit(r.Context(), []*v1.Service{svc}, nodes)
			if err != nil {
				r.Fatal(err)
			}
			return len(found)
		}
		r.equal("drifted", drifted(r.m), 0)
		r.addBundle(r.only().ID, "hand-made")
		r.equal("drifted with a bundle of somebody else", drifted(r.m), 0)
		err := r.region.Foreign().LoadBalancer(r.only().ID, func(v *lbsdk.LoadBalancer) {
			v.Listeners["TCP-443"].SslConfiguration.CertificateName = common.String("hand-made")
		})
		if err != nil {
			r.Fatal(err)
		}
		reads := r.secrets.reads
		r.equal("drifted", drifted(r.m), 1)
		r.equal("reads of Secrets", r.secrets.reads-reads, 0)
		r.equal("events", len(r.cluster.events), 0)
		r.mustSync(svc, nodes)
		r.equal("certificate", r.certificateOf("TCP-443"), r.secrets.pair(r.T, "one").Certificate)
	})
}

// C157: nothing of a key or a passphrase is in a log at the highest verbosity, in an event, a condition, a record, or what
// stays in memory for the pass over all balancers.
func TestKeysStaySecret(t *testing.T) {
	var log bytes.Buffer
	flags := flag.NewFlagSet("klog", flag.ContinueOnError)
	klog.InitFlags(flags)
	for name, value := range map[string]string{"v": "10", "logtostderr": "false", "alsologtostderr": "false"} {
		if err := flags.Set(name, value); err != nil {
			t.Fatal(err)
		}
	}
	klog.SetOutput(&log)
	defer func() {
		_ = flags.Set("v", "0")
		_ = flags.Set("logtostderr", "true")
	}()
	const marked = "MARKED-passphrase"
	var texts []string
	var keys []string
	simulate(t, ocisim.Options{Seed: 82}, func(r *rig) {
		nodes := r.nodes(1)
		svc := r.service("web", oci.KindLB, 443)
		r.withTLS(svc, "443", "web", "one")
		r.mustSync(svc, nodes)
		secret := r.secrets.pair(r.T, "two")
		secret.Passphrase = marked
		r.secrets.put("shop", "web", secret)
		r.region.Fault(ocisim.Fault{Operation: "CreateCertificate", Status: 400, Times: 1})
		r.region.Fault(ocisim.Fault{Operation: "CreateCertificate", FailWork: true, Times: 1})
		r.region.Fault(ocisim.Fault{Operation: "CreateCertificate", Drop: ocisim.BeforeApply, Times: 1})
		r.mustSync(svc, nodes)
		secret.Key = config.Secret("-----BEGIN PRIVATE KEY-----\nTUFSS0VELWtleQ==\n-----END PRIVATE KEY-----\n")
		r.secrets.put("shop", "web", secret)
		r.refused(svc, nodes, loadbalancer.ReasonTLSSecret)
		service, err := json.Marshal(r.cluster.get(svc.UID))
		if err != nil {
			r.Fatal(err)
		}
		balancer := fmt.Sprintf("%+v %v", r.only(), *r.only())
		texts = append(texts, string(service), balancer, fmt.Sprint(r.cluster.events), fmt.Sprintf("%+v", secret))
		for _, host := range []string{"one", "two"} {
			keys = append(keys, string(r.secrets.pair(r.T, host).Key))
		}
		if len(r.cluster.events) < 2 {
			r.Errorf("events %v: the test did not meet its cases", r.cluster.events)
		}
	})
	klog.Flush()
	if !strings.Contains(log.String(), "CreateCertificate") && !strings.Contains(log.String(), "create certificate") {
		t.Errorf("the log says nothing of certificates: %s", log.String())
	}
	texts = append(texts, log.String())
	keys = append(keys, marked, "TUFSS0VELWtleQ")
	for _, text := range texts {
		for _, key := range keys {
			for _, line := range strings.Split(key, "\n") {
				if len(line) > 8 && !strings.Contains(line, "-----") && strings.Contains(text, line) {
					t.Errorf("found %q in %.200s", line, text)
				}
			}
		}
	}
}

// Killed after any of its calls, a rotation is finished by the next process, with the same outcome and no bundle left
// (C026, C031).
func TestKilledInARotation(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long: make test-long runs it, without the race detector")
	}
	second := ocisim.Range{Min: time.Second, Max: time.Second}
	durations := map[string]ocisim.Range{"loadbalancer.create": second, "loadbalancer.update": second, "loadbalancer.delete": second}
	secure := func(r *rig, svc *v1.Service, host string) {
		r.withTLS(svc, "443", "web", host)
		r.edit(svc, annotate(prefixLB+"tls-backendset-secret", "web"))
	}
	for _, s := range []scenario{
		{name: "create with TLS", do: ensure, before: func(r *rig, svc *v1.Service, _ []*v1.Node) { secure(r, svc, "one") }},
		{name: "rotate", do: ensure, before: func(r *rig, svc *v1.Service, nodes []*v1.Node) {
			secure(r, svc, "one")
			r.mustSync(svc, nodes)
			secure(r, svc, "two")
		}},
		{name: "TLS on and off", do: ensure, before: func(r *rig, svc *v1.Service, nodes []*v1.Node) {
			secure(r, svc, "one")
			r.mustSync(svc, nodes)
			r.edit(svc, func(s *v1.Service) {
				delete(s.Annotations, prefixLB+"tls-backendset-secret")
				s.Annotations[prefixLB+"ssl-ports"] = "80"
			})
		}},
	} {
		for _, applied := range []bool{false, true} {
			t.Run(fmt.Sprint(s.name, applied), func(t *testing.T) {
				simulate(t, ocisim.Options{Seed: 83, Durations: durations}, func(r *rig) {
					want := s.uninterrupted(r, oci.KindLB)
					points := 0
					for s.killedAt(r, oci.KindLB, points+1, applied, want) {
						points++
					}
					if points < 3 {
						r.Errorf("%d kill points", points)
					}
					time.Sleep(5 * time.Minute) // reads that the dead processes shared end with their own deadlines
				})
			})
		}
	}
}
