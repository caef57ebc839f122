// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package cloudprovider_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	restclient "k8s.io/client-go/rest"
	clienttesting "k8s.io/client-go/testing"

	"github.com/google/go-cmp/cmp"

	"github.com/oracle/oci-cloud-controller-manager/pkg/cloudprovider"
)

// The clients, and the ServiceAccounts of older manifests.
const (
	nodeAccount, lifecycleAccount, serviceAccount = "oci-cloud-node-controller", "oci-cloud-node-lifecycle-controller", "oci-service-lb-controller"
	formerNode, formerService                     = "node-controller", "service-controller"
	itself                                        = "cloud-controller-manager" // as whom the process acts
)

// authority is an API server that knows who may do what.
type authority struct {
	accounts []string // that exist
	made     []string // of them, by the process
	denied   []string // "user: rule", a rule being "verb resource/subresource name"
	failing  int      // how many questions are not answered
	refuse   bool     // nobody may ask what is allowed

	strangers []string // whom the framework's builder was asked for although they do not exist: it tries what is forbidden then
}

// as returns a client of the API server that acts as somebody.
func (a *authority) as(user string) kubernetes.Interface {
	c := fake.NewClientset()
	for _, name := range a.accounts {
		_ = c.Tracker().Add(&v1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: name}})
	}
	c.PrependReactor("create", "serviceaccounts", func(action clienttesting.Action) (bool, runtime.Object, error) {
		if action.GetSubresource() == "" {
			name := action.(clienttesting.CreateAction).GetObject().(*v1.ServiceAccount).Name
			a.accounts, a.made = append(a.accounts, name), append(a.made, name)
		}
		return false, nil, nil
	})
	c.PrependReactor("create", "selfsubjectaccessreviews", func(action clienttesting.Action) (bool, runtime.Object, error) {
		if a.refuse {
			return true, nil, apierrors.NewForbidden(schema.GroupResource{Resource: "selfsubjectaccessreviews"}, "", nil)
		}
		if a.failing > 0 {
			a.failing--
			return true, nil, errors.New("no answer")
		}
		review := action.(clienttesting.CreateAction).GetObject().(*authorizationv1.SelfSubjectAccessReview)
		r := review.Spec.ResourceAttributes
		rule := user + ": " + strings.TrimSpace(r.Verb+" "+strings.Trim(r.Resource+"/"+r.Subresource, "/")+" "+r.Name)
		review.Status.Allowed = !slices.Contains(a.denied, rule)
		return true, review, nil
	})
	return c
}

// identities is the framework's builder of clients. Each acts as the ServiceAccount of its name, or all as the process.
type identities struct {
	*authority

	itself bool
}

func (i identities) user(name string) string {
	if i.itself {
		return itself
	}
	if !slices.Contains(i.accounts, name) {
		i.strangers = append(i.strangers, name)
	}
	return name
}

func (i identities) Config(name string) (*restclient.Config, error) {
	return restclient.AddUserAgent(&restclient.Config{Username: i.user(name)}, name), nil
}
func (i identities) ConfigOrDie(name string) *restclient.Config { c, _ := i.Config(name); return c }
func (i identities) Client(name string) (kubernetes.Interface, error) {
	return i.as(i.user(name)), nil
}
func (i identities) ClientOrDie(name string) kubernetes.Interface { return i.as(i.user(name)) }

func TestAccounts(t *testing.T) {
	all := []string{nodeAccount, lifecycleAccount, serviceAccount, formerNode, formerService}
	former := []string{formerNode, formerService}
	tests := []struct {
		name      string
		authority authority
		podCIDRs  bool
		want      [3]string // as whom the clients act
		told      []string  // in the notice
		made      []string
	}{
		{name: "manifests of this version", authority: authority{accounts: all}, want: [3]string{nodeAccount, lifecycleAccount, serviceAccount}},
		{
			name: "pod CIDRs", authority: authority{accounts: all, denied: []string{formerNode + ": get services kubernetes"}}, podCIDRs: true,
			want: [3]string{nodeAccount, lifecycleAccount, serviceAccount},
		},
		{
			name: "older manifests", authority: authority{accounts: former}, want: [3]string{formerNode, formerNode, formerService},
			told: []string{
				nodeAccount + " acts as " + formerNode + " (there is no ServiceAccount kube-system/" + nodeAccount + ")",
				lifecycleAccount + " acts as " + formerNode, serviceAccount + " acts as " + formerService, "RBAC manifest",
			},
		},
		{
			name: "older manifests, pod CIDRs", authority: authority{accounts: former, denied: []string{formerNode + ": get services kubernetes"}}, podCIDRs: true,
			want: [3]string{itself, formerNode, formerService}, told: []string{nodeAccount + " acts as the process itself"},
		},
		{
			name: "older manifests, no account yet", want: [3]string{formerNode, formerNode, formerService}, told: []string{"acts as"},
			made: former,
		},
		{
			name:      "no account, and none may be made",
			authority: authority{denied: []string{itself + ": create serviceaccounts"}},
			want:      [3]string{itself, itself, itself}, told: []string{"acts as the process itself"},
		},
		{
			name: "v1.35, no tokens",
			authority: authority{accounts: former, denied: []string{
				itself + ": create serviceaccounts/token " + nodeAccount, itself + ": create serviceaccounts/token " + lifecycleAccount,
				itself + ": create serviceaccounts/token " + serviceAccount,
				itself + ": create serviceaccounts/token " + formerNode, itself + ": create serviceaccounts/token " + formerService,
			}},
			want: [3]string{itself, itself, itself},
			told: []string{
				nodeAccount + ` acts as the process itself (the rule {apiGroups: [""], resources: ["serviceaccounts/token"], verbs: ["create"], resourceNames: ["` +
					nodeAccount + `"]} in namespace kube-system is missing)`,
				serviceAccount + " acts as the process itself",
			},
		},
		{
			name: "a role lacks a rule", authority: authority{accounts: all, denied: []string{lifecycleAccount + ": delete nodes"}},
			want: [3]string{nodeAccount, formerNode, serviceAccount},
			told: []string{lifecycleAccount + " acts as " + formerNode, `{apiGroups: [""], resources: ["nodes"], verbs: ["delete"]} is missing for it`},
		},
		{
			// What is off without its rule is no reason.
			name: "a role lacks a feature", authority: authority{accounts: all, denied: []string{serviceAccount + ": patch services"}},
			want: [3]string{nodeAccount, lifecycleAccount, serviceAccount},
		},
		{name: "an answer fails", authority: authority{accounts: all, failing: 3}, want: [3]string{nodeAccount, lifecycleAccount, serviceAccount}},
		{
			name: "no answer at all", authority: authority{accounts: all, failing: 1 << 20}, want: [3]string{itself, itself, itself},
			told: []string{"no answer"},
		},
		{name: "nobody may ask", authority: authority{accounts: all, refuse: true}, want: [3]string{nodeAccount, lifecycleAccount, serviceAccount}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				begun := time.Now()
				accounts := cloudprovider.NewAccounts(identities{&test.authority, false}, identities{&test.authority, true}, test.podCIDRs)
				notices := accounts.Choose(t.Context())
				if took := time.Since(begun); took > 3*time.Minute {
					t.Errorf("it took %s", took)
				}
				var got [3]string
				for i, name := range []string{nodeAccount, lifecycleAccount, serviceAccount} {
					config := accounts.ConfigOrDie(name)
					got[i] = config.Username
					if !strings.HasSuffix(config.UserAgent, "/"+name) {
						t.Errorf("the user agent of %s is %s", name, config.UserAgent)
					}
				}
				if got != test.want {
					t.Errorf("the clients act as %q, want %q", got, test.want)
				}
				if len(test.authority.strangers) > 0 {
					t.Errorf("clients were made for %q, which are not there", test.authority.strangers)
				}
				if diff := cmp.Diff(test.made, test.authority.made); diff != "" {
					t.Errorf("ServiceAccounts that were made (-want +got):\n%s", diff)
				}
				if len(test.told) == 0 {
					if len(notices) != 0 {
						t.Errorf("notices: %v", notices)
					}
					return
				}
				if len(notices) != 1 || notices[0].Reason != "ServiceAccountFallback" {
					t.Fatalf("notices: %v, want one", notices)
				}
				for _, text := range test.told {
					if !strings.Contains(notices[0].Message, text) {
						t.Errorf("the notice lacks %q: %s", text, notices[0].Message)
					}
				}
			})
		})
	}
}

// The controllers' clients are those that have roles.
func TestClientsOfControllers(t *testing.T) {
	var named []string
	for controller, c := range cloudprovider.Controllers() {
		if controller != "node-route-controller" { // never started
			named = append(named, c.InitContext.ClientName)
		}
	}
	var known []string
	for _, c := range cloudprovider.Clients() {
		known = append(known, c.Name)
	}
	slices.Sort(named)
	slices.Sort(known)
	if diff := cmp.Diff(known, named); diff != "" {
		t.Errorf("clients (-with a role +of a controller):\n%s", diff)
	}
}
