// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package cloudprovider

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	restclient "k8s.io/client-go/rest"
	cloudprovider "k8s.io/cloud-provider"
	"k8s.io/klog/v2"
)

// accountTimeout bounds how long one ServiceAccount is tried if the API server does not say whether it can be used.
const accountTimeout = 20 * time.Second

// Accounts gives each controller a client that acts as a ServiceAccount of its own, for --use-service-account-credentials.
// Manifests of older versions have neither these ServiceAccounts nor their roles. There a client acts as the ServiceAccount
// of the framework's controller, as it did before, and where that cannot be used either, as the process itself.
//
// It implements the framework's ControllerClientBuilder.
type Accounts struct {
	accounts, own cloudprovider.ControllerClientBuilder
	clients       []Client

	mu     sync.Mutex
	chosen map[string]*restclient.Config // by the name of the client
}

var _ cloudprovider.ControllerClientBuilder = (*Accounts)(nil)

// NewAccounts returns the builder of clients. accounts makes clients that act as a ServiceAccount in kube-system, own such
// that act as the process. podCIDRs says that the pod CIDR controller runs.
func NewAccounts(accounts, own cloudprovider.ControllerClientBuilder, podCIDRs bool) *Accounts {
	a := &Accounts{accounts: accounts, own: own, clients: Clients(), chosen: map[string]*restclient.Config{}}
	if podCIDRs {
		node := &a.clients[slices.IndexFunc(a.clients, func(c Client) bool { return c.Name == nodeClientName })]
		node.Needs = append(node.Needs, readFamilies())
	}
	return a
}

// Choose finds out as whom each client can act, and remembers it. It returns a notice if that is not the client's own
// ServiceAccount. Until it is called, every client acts as that.
func (a *Accounts) Choose(ctx context.Context) []Notice {
	var told []string
	for _, c := range a.clients {
		config, instead, why := a.choose(ctx, c)
		a.mu.Lock()
		a.chosen[c.Name] = config
		a.mu.Unlock()
		if instead != "" {
			told = append(told, fmt.Sprintf("%s acts as %s (%s)", c.Name, instead, why))
		}
	}
	if len(told) == 0 {
		return nil
	}
	return []Notice{{"ServiceAccountFallback", "--use-service-account-credentials: " + strings.Join(told, "; ") +
		". Apply the ServiceAccounts and roles of this version's RBAC manifest, and restart"}}
}

// choose returns the configuration of a client and, if it does not act as its own ServiceAccount, as whom it does and what
// is missing.
func (a *Accounts) choose(ctx context.Context, c Client) (config *restclient.Config, instead, why string) {
	config, why = a.try(ctx, c, c.Name, false)
	if why == "" {
		return config, "", ""
	}
	config, formerWhy := a.try(ctx, c, c.Former, true)
	if formerWhy == "" {
		return restclient.AddUserAgent(config, c.Name), c.Former, why
	}
	klog.FromContext(ctx).Info("The former ServiceAccount cannot be used either", "client", c.Name, "serviceAccount", c.Former, "reason", formerWhy)
	return a.own.ConfigOrDie(c.Name), "the process itself", why
}

// try asks whether a client can act as an account: the process must be allowed to ask for its tokens, and it must have the
// permissions that the client needs. It says what is missing.
func (a *Accounts) try(ctx context.Context, c Client, account string, create bool) (config *restclient.Config, missing string) {
	var last error
	err := wait.PollUntilContextTimeout(ctx, time.Second, accountTimeout, true, func(ctx context.Context) (bool, error) {
		config, missing, last = a.tryOnce(ctx, c, account, create)
		return last == nil, nil
	})
	if err != nil {
		klog.FromContext(ctx).Error(last, "Could not find out whether a ServiceAccount can be used", "client", c.Name, "serviceAccount", account)
		return nil, fmt.Sprintf("the ServiceAccount %s cannot be used: %v", account, last)
	}
	return config, missing
}

func (a *Accounts) tryOnce(ctx context.Context, c Client, account string, create bool) (config *restclient.Config, missing string, err error) {
	process, err := a.own.Client(c.Name)
	if err != nil {
		return nil, "", err
	}
	lacking, err := firstMissing(ctx, process, []Permission{
		{Verb: "get", Resource: "serviceaccounts", Namespace: metav1.NamespaceSystem, Name: account},
		{Verb: "create", Resource: "serviceaccounts", Subresource: "token", Namespace: metav1.NamespaceSystem, Name: account},
	})
	if err != nil || lacking != "" {
		return nil, lacking, err
	}
	accounts := process.CoreV1().ServiceAccounts(metav1.NamespaceSystem)
	_, err = accounts.Get(ctx, account, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err) && create:
		lacking, err = firstMissing(ctx, process, []Permission{{Verb: "create", Resource: "serviceaccounts", Namespace: metav1.NamespaceSystem}})
		if err == nil && lacking == "" {
			_, err = accounts.Create(ctx, &v1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: account}}, metav1.CreateOptions{})
		}
	case apierrors.IsNotFound(err), apierrors.IsForbidden(err):
		return nil, fmt.Sprintf("there is no ServiceAccount %s/%s", metav1.NamespaceSystem, account), nil
	}
	if err != nil && !apierrors.IsAlreadyExists(err) || lacking != "" {
		return nil, lacking, err
	}
	if config, err = a.accounts.Config(account); err != nil {
		return nil, "", err
	}
	client, err := a.accounts.Client(account)
	if err != nil {
		return nil, "", err
	}
	lacking, err = firstMissing(ctx, client, c.Needs)
	if lacking != "" {
		lacking += " for it"
	}
	return config, lacking, err
}

// firstMissing returns the first permission that a client lacks, in the words of a role. Where nobody may ask, they are
// taken to be there.
func firstMissing(ctx context.Context, client kubernetes.Interface, permissions []Permission) (string, error) {
	for _, p := range permissions {
		allowed, err := p.Allowed(ctx, client)
		switch {
		case apierrors.IsForbidden(err):
			return "", nil
		case err != nil:
			return "", err
		case !allowed:
			return "the rule " + p.String() + " is missing", nil
		}
	}
	return "", nil
}

// Config implements the framework's ControllerClientBuilder.
func (a *Accounts) Config(name string) (*restclient.Config, error) {
	a.mu.Lock()
	config := a.chosen[name]
	a.mu.Unlock()
	if config == nil {
		return a.accounts.Config(name)
	}
	return restclient.CopyConfig(config), nil
}

// ConfigOrDie implements the framework's ControllerClientBuilder.
func (a *Accounts) ConfigOrDie(name string) *restclient.Config { return orDie(a.Config(name)) }

// Client implements the framework's ControllerClientBuilder.
func (a *Accounts) Client(name string) (kubernetes.Interface, error) {
	config, err := a.Config(name)
	if err != nil {
		return nil, err
	}
	return kubernetes.NewForConfig(config)
}

// ClientOrDie implements the framework's ControllerClientBuilder.
func (a *Accounts) ClientOrDie(name string) kubernetes.Interface { return orDie(a.Client(name)) }

// orDie ends the process on an error, as the framework's builders do. After Choose there is none.
func orDie[T any](v T, err error) T {
	if err != nil {
		klog.ErrorS(err, "Could not make a client of the API server")
		klog.FlushAndExit(klog.ExitFlushTimeout, 1)
	}
	return v
}
