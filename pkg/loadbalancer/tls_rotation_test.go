// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package loadbalancer_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/oracle/oci-go-sdk/v65/common"
	lbsdk "github.com/oracle/oci-go-sdk/v65/loadbalancer"
	v1 "k8s.io/api/core/v1"

	"github.com/oracle/oci-cloud-controller-manager/pkg/loadbalancer"
	"github.com/oracle/oci-cloud-controller-manager/pkg/oci"
	"github.com/oracle/oci-cloud-controller-manager/test/ocisim"
)

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
