// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package cloudprovider

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/klog/v2"

	"github.com/oracle/oci-cloud-controller-manager/pkg/loadbalancer"
)

const (
	// accountTokenLife is how long a token of a ServiceAccount is to last, as with the existing implementation (contract
	// ccm.md §2.2). The API server may give a shorter one.
	accountTokenLife = 6 * time.Hour

	// accountTokenMargin is what a token must still last: the SDK refuses one that ends within five minutes (oci-api.md §1.6).
	accountTokenMargin = 10 * time.Minute

	// accountCheckAge is how old the knowledge that a ServiceAccount exists may be. It is checked by asking for a token, so
	// that no permission to read ServiceAccounts is needed.
	accountCheckAge = time.Minute

	// tokenDeadline bounds a request for a token.
	tokenDeadline = 30 * time.Second
)

// ConnectAs connects to OCI as a ServiceAccount, "namespace/name". It makes no call; token is asked whenever one is needed.
type ConnectAs func(account string, token func() (string, error)) (*loadbalancer.Identity, error)

// identities implements loadbalancer.Identities with tokens of ServiceAccounts. Each account has one connection for as long as
// the process lives: it renews its session by itself, and has budgets of calls of its own, since OCI counts calls per principal.
type identities struct {
	client  kubernetes.Interface
	connect ConnectAs

	mu       sync.Mutex
	accounts map[types.NamespacedName]*account
}

var _ loadbalancer.Identities = (*identities)(nil)

// Identities returns what lets Services act as a ServiceAccount of their namespace.
func (s *ServiceSupport) Identities(connect ConnectAs) loadbalancer.Identities {
	return &identities{client: s.client, connect: connect, accounts: map[types.NamespacedName]*account{}}
}

// Identity implements loadbalancer.Identities.
func (i *identities) Identity(ctx context.Context, namespace, name string) (*loadbalancer.Identity, error) {
	key := types.NamespacedName{Namespace: namespace, Name: name}
	i.mu.Lock()
	a := i.accounts[key]
	if a == nil {
		a = &account{client: i.client, name: key}
		i.accounts[key] = a
	}
	i.mu.Unlock()
	err := a.check(ctx)
	var failed *loadbalancer.IdentityError
	if errors.As(err, &failed) && failed.Lasting {
		i.mu.Lock()
		if i.accounts[key] == a {
			delete(i.accounts, key) // names that lead nowhere must not pile up
		}
		i.mu.Unlock()
	}
	if err != nil {
		return nil, err
	}
	return a.connected(i.connect)
}

// account is a ServiceAccount.
type account struct {
	client kubernetes.Interface
	name   types.NamespacedName

	mu       sync.Mutex
	identity *loadbalancer.Identity
	token    string
	asked    time.Time
	expires  time.Time
}

// check makes sure that the account exists and gives tokens.
func (a *account) check(ctx context.Context) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if time.Since(a.asked) < accountCheckAge && a.serves() {
		return nil
	}
	err := a.ask(ctx)
	var failed *loadbalancer.IdentityError
	if errors.As(err, &failed) && !failed.Lasting && a.serves() {
		return nil // what is known is good enough
	}
	return err
}

// current returns a token that lasts. It is called where a session is begun or renewed, without a context.
func (a *account) current() (string, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.serves() {
		if err := a.ask(context.Background()); err != nil {
			return "", err
		}
	}
	return a.token, nil
}

// serves says whether the token lasts. The caller holds the lock.
func (a *account) serves() bool {
	return a.token != "" && time.Until(a.expires) > accountTokenMargin
}

// ask asks for a new token. The caller holds the lock.
func (a *account) ask(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, tokenDeadline)
	defer cancel()
	life := int64(accountTokenLife.Seconds())
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: &life}}
	answer, err := a.client.CoreV1().ServiceAccounts(a.name.Namespace).CreateToken(ctx, a.name.Name, request, metav1.CreateOptions{})
	switch {
	case apierrors.IsNotFound(err):
		a.token = ""
		return &loadbalancer.IdentityError{Lasting: true, Text: fmt.Sprintf("there is no ServiceAccount %s", a.name)}
	case apierrors.IsForbidden(err):
		a.token = ""
		rule := Permission{Verb: "create", Resource: "serviceaccounts", Subresource: "token", Name: a.name.Name}
		return &loadbalancer.IdentityError{Lasting: true, Text: fmt.Sprintf(
			"tokens of ServiceAccount %s cannot be requested: a Role in namespace %s, bound to the cloud controller manager, has to have the rule %s", a.name, a.name.Namespace, rule)}
	case err != nil:
		return &loadbalancer.IdentityError{Text: fmt.Sprintf("a token of ServiceAccount %s could not be requested: %v", a.name, err)}
	}
	a.token, a.asked, a.expires = answer.Status.Token, time.Now(), answer.Status.ExpirationTimestamp.Time
	return nil
}

// connected returns the connection of the account.
func (a *account) connected(connect ConnectAs) (*loadbalancer.Identity, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.identity == nil {
		identity, err := connect(a.name.String(), a.current)
		if err != nil {
			return nil, &loadbalancer.IdentityError{Text: fmt.Sprintf("the workload identity of ServiceAccount %s cannot be used: %v", a.name, err)}
		}
		klog.Background().Info("Load balancers are managed as a ServiceAccount", "serviceAccount", a.name.String())
		a.identity = identity
	}
	return a.identity, nil
}
