// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"maps"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"

	"github.com/oracle/oci-cloud-controller-manager/test/cluster"
	"github.com/oracle/oci-cloud-controller-manager/test/ocisim"
	"github.com/oracle/oci-cloud-controller-manager/test/testbed"
)

// Clients of the controllers, as the audit log shows them.
const (
	nodeClient      = "oci-cloud-node-controller"
	lifecycleClient = "oci-cloud-node-lifecycle-controller"
	serviceClient   = "oci-service-lb-controller"

	accounts = "system:serviceaccount:kube-system:"
)

// tokensRule is what an administrator must have added to v1.35's role, to use --use-service-account-credentials with it.
const tokensRule = `apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: tokens}
rules:
  - {apiGroups: [""], resources: ["serviceaccounts/token"], verbs: ["create"]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: tokens}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: tokens}
subjects:
  - {kind: ServiceAccount, name: cloud-controller-manager, namespace: kube-system}
`

// TestAccountsOfTheControllers: the audit log tells which controller did what, by the user with
// --use-service-account-credentials, by the user agent always. Under the manifests of v1.35, with and without what the
// flag needed there, all duties are done as other accounts, which is told once; nothing that is forbidden is tried.
func TestAccountsOfTheControllers(t *testing.T) {
	options := sparse(8)
	options.RBAC = testbed.OldRBAC
	options.Nodes.NodeIP = nil // so that addresses have to be written
	l := newLab(t, options)
	const flag = "--use-service-account-credentials"
	process := map[string]string{nodeClient: account, lifecycleClient: account, serviceClient: account}
	for i, phase := range []struct {
		name     string
		manifest string // applied before
		flags    []string
		users    map[string]string // by client
		records  bool              // whether Services can be annotated
		told     []string
	}{
		{name: "no flag", users: process, records: true},
		{
			name: "manifests of v1.35", flags: []string{flag}, users: process, records: true,
			told: []string{nodeClient + " acts as the process itself", serviceClient + " acts as the process itself", "serviceaccounts/token"},
		},
		{
			name: "manifests of v1.35 and tokens", manifest: l.write("tokens.yaml", tokensRule), flags: []string{flag},
			users: map[string]string{
				nodeClient: accounts + "node-controller", lifecycleClient: accounts + "node-controller", serviceClient: accounts + "service-controller",
			},
			told: []string{nodeClient + " acts as node-controller", "there is no ServiceAccount kube-system/" + serviceClient},
		},
		{
			name: "manifests of this version", manifest: filepath.Join("../..", testbed.ShippedRBAC), flags: []string{flag},
			users:   map[string]string{nodeClient: accounts + nodeClient, lifecycleClient: accounts + lifecycleClient, serviceClient: accounts + serviceClient},
			records: true,
		},
	} {
		passed := t.Run(phase.name, func(t *testing.T) {
			l := l.in(t)
			if phase.manifest != "" {
				l.noAccount(nodeClient)
				if err := l.Cluster.Apply(l.ctx, phase.manifest); err != nil {
					t.Fatal(err)
				}
			}
			begun := time.Now()
			l.runWith(nil, append(phase.flags, askOften)...)
			l.someOfEverything("s" + itoa(i))
			if len(phase.told) > 0 {
				l.event("kube-system", "cloud-controller-manager", "ServiceAccountFallback", phase.told...)
			}
			l.stop()
			if n, want := strings.Count(l.log(l.ccm), `reason="ServiceAccountFallback"`), min(len(phase.told), 1); n != want {
				t.Errorf("the log tells of other accounts %d times, want %d", n, want)
			}
			l.wantClients(begun, phase.users, phase.records)
		})
		if !passed {
			break
		}
	}
	l.nothingForbidden()
}

// someOfEverything gives each controller work: a node comes, is shut down, and goes; a Service gets a balancer.
func (l *lab) someOfEverything(service string) {
	l.t.Helper()
	before := l.nodeNames()
	name := l.newNode()
	l.eventually("nodes initialised", l.NodesInitialized)
	l.service(service, "lb", nil)
	l.served(service)
	machine := slices.IndexFunc(l.World.Instances, func(i ocisim.Instance) bool { return i.Name == name })
	l.setState(machine, "STOPPED")
	l.setReady(false, name)
	l.untilShutdown(name, true)
	l.setState(machine, "TERMINATED")
	l.wantNodes(before...)
}

// wantClients checks in the audit log since a moment as whom each client acted, and that all controllers did their work
// as their client.
func (l *lab) wantClients(since time.Time, users map[string]string, records bool) {
	l.t.Helper()
	want := map[string][]string{
		nodeClient:      {"create events", "patch nodes", "patch nodes/status", "update nodes"},
		lifecycleClient: {"create events", "delete nodes", "patch nodes"},
		serviceClient:   {"create events", "get services", "patch services/status"},
	}
	if records {
		want[serviceClient] = append(want[serviceClient], "patch services")
	}
	did := map[string]map[string]bool{}
	for _, e := range l.requests() {
		if e.RequestReceivedTimestamp.Time.Before(since) || e.ObjectRef == nil || isQuestion(e) {
			continue
		}
		client := strings.TrimPrefix(path.Base(e.UserAgent), accounts)
		what := strings.TrimSuffix(e.Verb+" "+e.ObjectRef.Resource+"/"+e.ObjectRef.Subresource, "/")
		user, known := users[client]
		switch {
		case known && e.User.Username != user:
			l.t.Errorf("%s made the request %s as %s, want %s", client, what, e.User.Username, user)
		case !known && e.Verb != "list" && e.Verb != "watch" && e.Verb != "get":
			l.t.Errorf("the request %s is that of no controller's client: %s", what, e.UserAgent)
		case known:
			if did[client] == nil {
				did[client] = map[string]bool{}
			}
			did[client][what] = true
		}
	}
	for client, requests := range want {
		for _, r := range requests {
			if !did[client][r] {
				l.t.Errorf("%s made no request %s; it made %q", client, r, slices.Sorted(maps.Keys(did[client])))
			}
		}
	}
}

// isQuestion says whether a request finds out what can be done, or gets the means for it.
func isQuestion(e auditv1.Event) bool {
	return e.ObjectRef.Resource == "selfsubjectaccessreviews" || e.ObjectRef.Resource == "serviceaccounts"
}

// requests are those of the cloud-controller-manager in the audit log, whoever it acted as.
func (l *lab) requests() []auditv1.Event {
	l.t.Helper()
	events, err := l.Cluster.AuditLog().Select(cluster.AuditFilter{})
	if err != nil {
		l.t.Fatal(err)
	}
	events = slices.DeleteFunc(events, func(e auditv1.Event) bool { return !strings.HasPrefix(e.UserAgent, program+"/") })
	if len(events) == 0 {
		l.t.Fatal("no request of the cloud-controller-manager in the audit log")
	}
	return events
}

// nothingForbidden checks that whatever the cloud-controller-manager asked for was allowed.
func (l *lab) nothingForbidden() {
	l.t.Helper()
	for _, e := range l.requests() {
		if e.ResponseStatus != nil && (e.ResponseStatus.Code == 403 || e.ResponseStatus.Code == 401) {
			l.t.Errorf("refused with %d: %s %s by %s (%s)", e.ResponseStatus.Code, e.Verb, e.RequestURI, e.User.Username, e.UserAgent)
		}
	}
}

// noAccount checks that a ServiceAccount does not exist.
func (l *lab) noAccount(name string) {
	l.t.Helper()
	_, err := l.Cluster.Client().CoreV1().ServiceAccounts("kube-system").Get(l.ctx, name, metav1.GetOptions{})
	if !apierrors.IsNotFound(err) {
		l.t.Errorf("ServiceAccount %s is there, or cannot be looked for: %v", name, err)
	}
}
