// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package loadbalancer_test

import (
	"context"
	"sync"
	"testing"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/oracle/oci-cloud-controller-manager/pkg/config"
	"github.com/oracle/oci-cloud-controller-manager/pkg/loadbalancer"
	"github.com/oracle/oci-cloud-controller-manager/pkg/oci"
	"github.com/oracle/oci-cloud-controller-manager/test/pki"
)

// secrets stands for the Secrets of the cluster.
type secrets struct {
	mu    sync.Mutex
	all   map[types.NamespacedName]loadbalancer.TLSSecret
	fail  error // of every read
	reads int
	made  map[string]loadbalancer.TLSSecret
}

func newSecrets() *secrets {
	return &secrets{all: map[types.NamespacedName]loadbalancer.TLSSecret{}, made: map[string]loadbalancer.TLSSecret{}}
}

func (s *secrets) read(_ context.Context, name types.NamespacedName) (loadbalancer.TLSSecret, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reads++
	if s.fail != nil {
		return loadbalancer.TLSSecret{}, s.fail
	}
	secret, ok := s.all[name]
	if !ok {
		return secret, apierrors.NewNotFound(schema.GroupResource{Resource: "secrets"}, name.Name)
	}
	return secret, nil
}

// put writes a Secret, "name" being in the namespace of the Services.
func (s *secrets) put(namespace, name string, secret loadbalancer.TLSSecret) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all[types.NamespacedName{Namespace: namespace, Name: name}] = secret
}

func (s *secrets) remove(namespace, name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.all, types.NamespacedName{Namespace: namespace, Name: name})
}

// pair returns a certificate with its key, the same for the same host.
func (s *secrets) pair(t *testing.T, host string) loadbalancer.TLSSecret {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	made, ok := s.made[host]
	if !ok {
		made = newPair(t, host)
		s.made[host] = made
	}
	return made
}

func newPair(t *testing.T, host string) loadbalancer.TLSSecret {
	t.Helper()
	return secretOf(pki.New(t, host))
}

func secretOf(p pki.Pair) loadbalancer.TLSSecret {
	return loadbalancer.TLSSecret{Certificate: p.Certificate, Key: config.Secret(p.Key)}
}

// withTLS asks for TLS on ports with a Secret, which holds a certificate for the host.
func (r *rig) withTLS(svc *v1.Service, ports, secret, host string) {
	r.Helper()
	r.secrets.put("shop", secret, r.secrets.pair(r.T, host))
	r.edit(svc, func(s *v1.Service) {
		s.Annotations[prefixLB+"ssl-ports"] = ports
		s.Annotations[prefixLB+"tls-secret"] = secret
	})
}

// certificateOf is the certificate that a listener of the one balancer shows; empty without TLS.
func (r *rig) certificateOf(listener string) string {
	r.Helper()
	b := r.only()
	l, ok := b.Listeners[listener]
	if !ok {
		r.Fatalf("no listener %s", listener)
	}
	return publicOf(b, l.SSL)
}

func publicOf(b *oci.Balancer, s *oci.SSL) string {
	if s == nil {
		return ""
	}
	return b.Certificates[s.CertificateName].Public
}

func bundles(b *oci.Balancer) []string {
	var out []string
	for name := range b.Certificates {
		out = append(out, name)
	}
	return out
}
