// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package loadbalancer

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
)

var errNoSecrets = errors.New("this process reads no Secrets")

// readSecrets reads the Secrets that the Service names for TLS. A Secret that is missing, or may not be read, is a fact; a
// failure to read one is an error, since it says nothing about the Secret.
func (op *operation) readSecrets(ctx context.Context, s Settings) (map[types.NamespacedName]SecretFact, error) {
	facts := map[types.NamespacedName]SecretFact{}
	for _, name := range s.TLS.secrets(op.svc.Namespace) {
		fact, err := op.m.readSecret(ctx, name)
		if err != nil {
			return nil, fmt.Errorf("read Secret %s for Service %s: %w", name, serviceKey(op.svc), err)
		}
		facts[name] = fact
		op.m.secrets.put(name, fact)
	}
	return facts, nil
}

func (m *Manager) readSecret(ctx context.Context, name types.NamespacedName) (SecretFact, error) {
	if m.deps.Secret == nil {
		return SecretFact{}, errNoSecrets
	}
	secret, err := m.deps.Secret(ctx, name)
	switch {
	case apierrors.IsNotFound(err):
		return SecretFact{Problem: "it does not exist"}, nil
	case apierrors.IsForbidden(err):
		return SecretFact{Problem: fmt.Sprintf("this program may not read it (%v); bind the ClusterRole oci-cloud-controller-manager:tls-secrets in namespace %s",
			err, name.Namespace)}, nil
	case err != nil:
		return SecretFact{}, err
	}
	return secret.inspect(time.Now()), nil
}

// secretCache remembers what Secrets held when they were read last, without their keys, so that a pass over all balancers
// needs none of them.
type secretCache struct {
	mu    sync.Mutex
	facts map[types.NamespacedName]SecretFact
}

func newSecretCache() *secretCache { return &secretCache{facts: map[types.NamespacedName]SecretFact{}} }

func (c *secretCache) put(name types.NamespacedName, fact SecretFact) {
	fact.Certificate.Key, fact.Certificate.Passphrase = "", ""
	c.mu.Lock()
	defer c.mu.Unlock()
	c.facts[name] = fact
}

// known returns what is remembered of some Secrets.
func (c *secretCache) known(names []types.NamespacedName) map[types.NamespacedName]SecretFact {
	out := map[types.NamespacedName]SecretFact{}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, name := range names {
		if fact, ok := c.facts[name]; ok {
			out[name] = fact
		}
	}
	return out
}

// keep forgets Secrets that no Service names any more.
func (c *secretCache) keep(svcs []*v1.Service) {
	named := map[types.NamespacedName]bool{}
	for _, svc := range svcs {
		for _, name := range SecretsOf(svc) {
			named[name] = true
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	maps.DeleteFunc(c.facts, func(name types.NamespacedName, _ SecretFact) bool { return !named[name] })
}
