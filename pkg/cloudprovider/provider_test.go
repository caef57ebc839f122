// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package cloudprovider_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"
	framework "k8s.io/cloud-provider"
	"k8s.io/cloud-provider/app"

	"github.com/oracle/oci-cloud-controller-manager/pkg/cloudprovider"
	"github.com/oracle/oci-cloud-controller-manager/test/ocisim"
)

func TestWhatIsOffered(t *testing.T) {
	p := cloudprovider.New(cloudprovider.Options{})
	if _, ok := p.InstancesV2(); !ok {
		t.Error("InstancesV2 is not offered")
	}
	_, instances := p.Instances()
	_, zones := p.Zones()
	_, clusters := p.Clusters()
	_, routes := p.Routes()
	if instances || zones || clusters || routes {
		t.Error("something is offered that should not be")
	}
	if p.ProviderName() != "oci" || !p.HasClusterID() {
		t.Errorf("name %s, cluster ID %v", p.ProviderName(), p.HasClusterID())
	}
}

// The names of controllers stay those of the framework, so that --controllers of old manifests is understood.
func TestControllerNames(t *testing.T) {
	ours := cloudprovider.Controllers()
	for name := range app.DefaultInitFuncConstructors {
		if _, ok := ours[name]; !ok {
			t.Errorf("%s is not there", name)
		}
	}
	if len(ours) != len(app.DefaultInitFuncConstructors) {
		t.Errorf("%d controllers; want %d", len(ours), len(app.DefaultInitFuncConstructors))
	}
}

// At a shutdown nothing new begins, what is under way may end, and what does not end is cut off.
func TestShutdown(t *testing.T) {
	for name, lasts := range map[string]time.Duration{"ends by itself": time.Second, "is cut off": time.Hour} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, ocisim.Options{}, func(t *testing.T, b *bed) {
				ended := make(chan error, 1)
				lb := b.withStub(&stub{
					ensure: func(ctx context.Context, _ *v1.Service, _ []*v1.Node) (*v1.LoadBalancerStatus, error) {
						select {
						case <-ctx.Done():
						case <-time.After(lasts):
						}
						ended <- ctx.Err()
						return nil, ctx.Err()
					},
					remove: func(context.Context, *v1.Service) error { return nil },
				})
				b.addService("web")
				service := b.service("web")
				go func() { _, _ = lb.EnsureLoadBalancer(b.ctx, "kubernetes", service, nil) }()
				b.hold(0)
				began := time.Now()
				ctx, cancel := context.WithTimeout(b.ctx, time.Minute)
				defer cancel()
				b.provider.Shutdown(ctx)
				if took := time.Since(began); took > 5*time.Second {
					t.Errorf("took %s", took)
				}
				if err := <-ended; (err != nil) != (lasts > time.Minute) {
					t.Errorf("the operation ended with %v", err)
				}
				if _, err := lb.EnsureLoadBalancer(b.ctx, "kubernetes", service, nil); err != framework.ImplementedElsewhere { //nolint:errorlint // as the framework compares it
					t.Errorf("a sync after the shutdown: %v", err)
				}
				if err := lb.EnsureLoadBalancerDeleted(b.ctx, "kubernetes", service); err == nil || errors.Is(err, framework.ImplementedElsewhere) {
					t.Errorf("a deletion after the shutdown: %v; want an error", err)
				}
				if _, _, err := lb.GetLoadBalancer(b.ctx, "kubernetes", service); err == nil {
					t.Error("a question after the shutdown has an answer")
				}
				instances, _ := b.provider.InstancesV2()
				b.addNode("w-1", "ocid1.instance.oc1.iad.x", aged, notReady)
				if exists, err := instances.InstanceExists(b.ctx, b.node("w-1")); err == nil {
					t.Errorf("exists %v without an error after the shutdown", exists)
				}
			})
		})
	}
}

func TestClusterIdentity(t *testing.T) {
	inBubble(t, ocisim.Options{}, func(t *testing.T, b *bed) {
		namespace := &v1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "kube-system", UID: "uid-1"}}
		if _, err := b.client.CoreV1().Namespaces().Create(b.ctx, namespace, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		ask := func(configured string) (string, []cloudprovider.Notice, error) {
			ctx, cancel := context.WithTimeout(b.ctx, time.Minute)
			defer cancel()
			return cloudprovider.ClusterIdentity(ctx, b.client, configured)
		}
		if id, notices, err := ask("mine"); id != "mine" || notices != nil || err != nil || len(b.client.Actions()) != 1 {
			t.Errorf("configured: %q, %v, %v", id, notices, err)
		}
		if id, notices, err := ask(""); id != "uid-1" || notices != nil || err != nil {
			t.Errorf("from the namespace: %q, %v, %v", id, notices, err)
		}

		b.server.missing = []string{"get namespaces"}
		b.client.ClearActions()
		id, notices, err := ask("")
		if id != "" || err != nil || len(notices) != 1 || !strings.Contains(notices[0].Message, `resources: ["namespaces"], verbs: ["get"], resourceNames: ["kube-system"]`) {
			t.Errorf("without permission: %q, %v, %v", id, notices, err)
		}
		for _, a := range b.client.Actions() {
			if a.GetResource().Resource == "namespaces" {
				t.Error("the namespace was read without permission")
			}
		}

		// While the API server does not answer, another identity must not be taken instead.
		b.server.missing = nil
		var down atomic.Bool
		down.Store(true)
		b.client.PrependReactor("get", "namespaces", func(clienttesting.Action) (bool, runtime.Object, error) {
			return down.Load(), nil, errors.New("no answer")
		})
		if id, _, err := ask(""); err == nil || id != "" {
			t.Errorf("API server down: %q, %v", id, err)
		}
		time.AfterFunc(10*time.Second, func() { down.Store(false) })
		if id, _, err := ask(""); err != nil || id != "uid-1" {
			t.Errorf("API server came back: %q, %v", id, err)
		}
	})
}

// Notices reach the operator as events on the lease, once this process leads; and it says when it does.
func TestNotices(t *testing.T) {
	inBubble(t, ocisim.Options{}, func(t *testing.T, b *bed) {
		led := 0
		b.options.Leading = func(context.Context) { led++ }
		b.options.Notices = []cloudprovider.Notice{
			{Reason: "ConfigWarning", Message: "one"}, {Reason: "ConfigWarning", Message: "two"},
		}
		b.initialize()
		b.provider.Initialize(clients{b.client}, b.ctx.Done()) // a second election, for leader migration
		events := b.eventsOf("Lease", "ConfigWarning")
		if len(events) != 2 || events[0].Namespace != "kube-system" || events[0].Count != 1 {
			t.Errorf("events %q", b.warnings())
		}
		if led != 1 {
			t.Errorf("told %d times", led)
		}
	})
}
