// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package cloudprovider_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"

	"github.com/oracle/oci-cloud-controller-manager/pkg/cloudprovider"
	"github.com/oracle/oci-cloud-controller-manager/pkg/loadbalancer"
	"github.com/oracle/oci-cloud-controller-manager/test/ocisim"
)

// accountBed is a process whose Services may have identities of their own.
type accountBed struct {
	*testing.T
	ids loadbalancer.Identities

	life      time.Duration
	err       error // of requests for tokens
	requests  int
	wanted    int64 // seconds
	connected []string
	token     func() (string, error)
}

// withAccounts runs a test on virtual time in a cluster with the ServiceAccount shop/balancer.
func withAccounts(t *testing.T, test func(a *accountBed)) {
	t.Helper()
	inBubble(t, ocisim.Options{}, func(t *testing.T, b *bed) {
		a := &accountBed{T: t, life: 6 * time.Hour}
		b.client.PrependReactor("create", "serviceaccounts", a.issue)
		b.options.NewBalancers = func(s *cloudprovider.ServiceSupport) cloudprovider.Balancers {
			a.ids = s.Identities(func(account string, token func() (string, error)) (*loadbalancer.Identity, error) {
				a.connected = append(a.connected, account)
				a.token = token
				return &loadbalancer.Identity{}, nil
			})
			return nil
		}
		b.initialize()
		test(a)
		synctest.Wait()
	})
}

func (a *accountBed) issue(action clienttesting.Action) (bool, runtime.Object, error) {
	create, ok := action.(clienttesting.CreateActionImpl)
	if !ok || action.GetSubresource() != "token" {
		return false, nil, nil
	}
	a.requests++
	switch {
	case a.err != nil:
		return true, nil, a.err
	case create.Name != "balancer" || create.GetNamespace() != "shop":
		return true, nil, apierrors.NewNotFound(v1.Resource("serviceaccounts"), create.Name)
	}
	request, ok := create.GetObject().(*authenticationv1.TokenRequest)
	if !ok {
		a.Errorf("request is a %T", create.GetObject())
		return true, nil, errors.New("no request")
	}
	a.wanted = *request.Spec.ExpirationSeconds
	return true, &authenticationv1.TokenRequest{Status: authenticationv1.TokenRequestStatus{
		Token: fmt.Sprintf("token-%d", a.requests), ExpirationTimestamp: metav1.NewTime(time.Now().Add(a.life)),
	}}, nil
}

// refused expects an error for an account.
func (a *accountBed) refused(namespace, name string, lasting bool, parts ...string) {
	a.Helper()
	_, err := a.ids.Identity(context.Background(), namespace, name)
	var failed *loadbalancer.IdentityError
	if !errors.As(err, &failed) || failed.Lasting != lasting {
		a.Fatalf("got %v, want an IdentityError that lasts: %t", err, lasting)
	}
	for _, part := range parts {
		if !strings.Contains(failed.Text, part) {
			a.Errorf("%q lacks %q", failed.Text, part)
		}
	}
}

// One connection serves all Services of an account, for ever; its token is renewed before it ends.
func TestIdentityIsKept(t *testing.T) {
	withAccounts(t, func(a *accountBed) {
		first, err := a.ids.Identity(a.Context(), "shop", "balancer")
		if err != nil {
			a.Fatal(err)
		}
		for range 100 {
			if again, err := a.ids.Identity(a.Context(), "shop", "balancer"); again != first || err != nil {
				a.Fatalf("another identity, or %v", err)
			}
		}
		if a.requests != 1 || len(a.connected) != 1 || a.connected[0] != "shop/balancer" || a.wanted != 6*3600 {
			a.Errorf("%d requests of %d s, connected as %v", a.requests, a.wanted, a.connected)
		}
		for range 5 {
			token, err := a.token()
			if want := fmt.Sprintf("token-%d", a.requests); token != want || err != nil {
				a.Errorf("token %q, %v; want %q", token, err, want)
			}
			time.Sleep(6*time.Hour - 9*time.Minute) // within the margin of the SDK
		}
		if a.requests != 5 {
			a.Errorf("%d requests, want one for each token", a.requests)
		}
		if again, _ := a.ids.Identity(a.Context(), "shop", "balancer"); again != first {
			a.Error("the connection was made again")
		}
	})
}

// An account that does not exist, or whose tokens may not be requested, is told with what to do; it is noticed within a minute
// that one is gone, and that one is there.
func TestIdentityIsRefused(t *testing.T) {
	withAccounts(t, func(a *accountBed) {
		a.refused("shop", "nobody", true, "there is no ServiceAccount shop/nobody")
		a.refused("other", "balancer", true, "other/balancer")
		a.err = apierrors.NewForbidden(v1.Resource("serviceaccounts/token"), "balancer", errors.New("no"))
		a.refused("shop", "balancer", true, "Role in namespace shop", `resources: ["serviceaccounts/token"]`, `verbs: ["create"]`, `resourceNames: ["balancer"]`)
		a.err = apierrors.NewServiceUnavailable("later")
		a.refused("shop", "balancer", false, "later")
		a.err = nil
		if _, err := a.ids.Identity(a.Context(), "shop", "balancer"); err != nil {
			a.Fatal(err)
		}
		a.err = apierrors.NewServiceUnavailable("later")
		time.Sleep(time.Hour)
		if _, err := a.ids.Identity(a.Context(), "shop", "balancer"); err != nil {
			a.Errorf("a token that still lasts was given up: %v", err)
		}
		a.err = apierrors.NewNotFound(v1.Resource("serviceaccounts"), "balancer")
		time.Sleep(2 * time.Minute)
		a.refused("shop", "balancer", true, "there is no ServiceAccount")
		if _, err := a.token(); err == nil {
			a.Error("the session is renewed with the token of an account that is gone")
		}
		a.err = nil
		if _, err := a.ids.Identity(a.Context(), "shop", "balancer"); err != nil {
			a.Error(err)
		}
	})
}
