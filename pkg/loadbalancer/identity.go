// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package loadbalancer

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/oracle/oci-cloud-controller-manager/pkg/oci"
)

// Identity is the cloud as one principal sees it.
type Identity struct {
	LB, NLB   Cloud
	PublicIPs PublicIPs
}

// Identities gives Services the identity of a ServiceAccount of their namespace.
type Identities interface {
	// Identity returns the same value for as long as it serves. Errors: *IdentityError if the ServiceAccount cannot be used.
	Identity(ctx context.Context, namespace, serviceAccount string) (*Identity, error)
}

// IdentityError says why a ServiceAccount cannot be used, and what to do about it.
type IdentityError struct {
	Text string
	// Lasting means that it will stay so until somebody does something.
	Lasting bool
}

func (e *IdentityError) Error() string { return e.Text }

// principal is who calls for a Service.
type principal struct {
	name      string // "namespace/name" of a ServiceAccount; empty for the process itself
	clouds    map[oci.BalancerKind]Cloud
	publicIPs PublicIPs
	identity  *Identity
}

func newPrincipal(name string, identity *Identity) *principal {
	p := &principal{name: name, clouds: map[oci.BalancerKind]Cloud{}, publicIPs: identity.PublicIPs, identity: identity}
	for _, cloud := range []Cloud{identity.LB, identity.NLB} {
		if cloud != nil {
			p.clouds[cloud.Kind()] = cloud
		}
	}
	return p
}

// principals are those that lists are read for. What one of them may see says nothing about the others.
type principals struct {
	mu     sync.Mutex
	byName map[string]*principal
}

// put returns the principal of an identity.
func (p *principals) put(name string, identity *Identity) *principal {
	p.mu.Lock()
	defer p.mu.Unlock()
	if known := p.byName[name]; known != nil && known.identity == identity {
		return known
	}
	p.byName[name] = newPrincipal(name, identity)
	return p.byName[name]
}

func (p *principals) get(name string) *principal {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.byName[name]
}

// serviceAccount reads the annotation.
func serviceAccount(s *Settings, value string) error {
	if problems := validation.IsDNS1123Subdomain(value); len(problems) > 0 {
		return fmt.Errorf("it must be the name of a ServiceAccount in the namespace of the Service: %s", strings.Join(problems, "; "))
	}
	s.ServiceAccount = value
	return nil
}

// serviceAccountOf is the ServiceAccount that a Service names; empty if it names none that could exist.
func serviceAccountOf(svc *v1.Service) string {
	var s Settings
	value := strings.TrimSpace(svc.Annotations[annotationServiceAccount])
	if value == "" || serviceAccount(&s, value) != nil {
		return ""
	}
	return s.ServiceAccount
}

// identify finds out as whom the Service's balancers are managed. A deletion is not held up by a ServiceAccount that cannot
// be used any more: the process itself goes on then, and it too deletes only what it can prove.
func (op *operation) identify(ctx context.Context) error {
	name := serviceAccountOf(op.svc)
	if name == "" {
		return nil // an illegal name is reported by ParseAnnotations
	}
	key := op.svc.Namespace + "/" + name
	identity, err := op.m.identity(ctx, op.svc.Namespace, name)
	var failed *IdentityError
	switch {
	case err == nil:
		op.as = op.m.principals.put(key, identity)
		return nil
	case !errors.As(err, &failed):
		return fmt.Errorf("identity of ServiceAccount %s: %w", key, err)
	}
	if op.deletion && failed.Lasting {
		op.warn(ReasonIdentityUnusable, fmt.Sprintf("annotation %s: %s; the balancer is deleted with the identity of the cloud controller manager", annotationServiceAccount, failed.Text))
		return nil
	}
	told := op.tell(explanation{
		reason: ReasonIdentityUnusable,
		text:   fmt.Sprintf("annotation %s: %s", annotationServiceAccount, failed.Text),
		key:    key + failed.Text,
	})
	return &Refusal{Reason: ReasonIdentityUnusable, RetryAfter: op.mem.backoff(), text: told, cause: err}
}

func (m *Manager) identity(ctx context.Context, namespace, name string) (*Identity, error) {
	if m.deps.Identities == nil {
		return nil, &IdentityError{Text: "this process has no way to act as a ServiceAccount", Lasting: true}
	}
	return m.deps.Identities.Identity(ctx, namespace, name)
}

// cloud is the service of a kind of balancers as the Service's principal sees it; nil if there is none.
func (op *operation) cloud(kind oci.BalancerKind) Cloud { return op.as.clouds[kind] }

// cloudOf returns the service that a balancer of this OCID belongs to; nil if it is none.
func (op *operation) cloudOf(id string) Cloud { return op.cloud(kindOf(id)) }

// place is where balancers of a kind are listed for the Service's principal.
func (op *operation) place(kind oci.BalancerKind, compartment string) place {
	return place{kind, compartment, op.as.name}
}
