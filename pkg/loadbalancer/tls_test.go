// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package loadbalancer_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/oracle/oci-go-sdk/v65/common"
	lbsdk "github.com/oracle/oci-go-sdk/v65/loadbalancer"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/oracle/oci-cloud-controller-manager/pkg/loadbalancer"
	"github.com/oracle/oci-cloud-controller-manager/pkg/oci"
	"github.com/oracle/oci-cloud-controller-manager/test/ocisim"
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
