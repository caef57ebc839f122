// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package loadbalancer_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/klog/v2"

	"github.com/oracle/oci-cloud-controller-manager/pkg/config"
	"github.com/oracle/oci-cloud-controller-manager/pkg/loadbalancer"
	"github.com/oracle/oci-cloud-controller-manager/pkg/oci"
	"github.com/oracle/oci-cloud-controller-manager/test/ocisim"
	"github.com/oracle/oci-cloud-controller-manager/test/pki"
)

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
