// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package cloudprovider_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	framework "k8s.io/cloud-provider"
	servicehelper "k8s.io/cloud-provider/service/helpers"

	"github.com/oracle/oci-cloud-controller-manager/pkg/cloudprovider"
	"github.com/oracle/oci-cloud-controller-manager/pkg/loadbalancer"
	"github.com/oracle/oci-cloud-controller-manager/test/ocisim"
)

// The traps of k8s.io/cloud-provider v0.37, as docs/architecture.md numbers them. Others are where they belong: 1 (workers
// default to 1) in cmd/oci-cloud-controller-manager, 7 (RetryError warns each time) and 8 (annotations queue the Service
// again) in TestServiceGetsItsBalancer, 4 also in TestMissingPolicyKeepsTheFinalizer.

// Trap 2: in the periodic pass a nil metadata is dereferenced; for a node with the taint, nil means to leave it alone.
func TestTrap2MetadataOfForeignNodes(t *testing.T) {
	inBubble(t, ocisim.Options{}, func(t *testing.T, b *bed) {
		b.startNodes()
		b.addNode("tainted", "kwok://x")
		b.addNode("virtual", "azure:///x", initialized, func(n *v1.Node) {
			n.Status.Addresses = append(n.Status.Addresses, v1.NodeAddress{Type: v1.NodeInternalIP, Address: "192.0.2.1"})
		})
		b.addNode("nameless", "", initialized)
		before := b.node("virtual").Status.Addresses
		b.hold(20 * time.Minute) // four passes
		if b.isInitialized("tainted") {
			t.Error("a foreign node was initialised")
		}
		if diff := cmp.Diff(before, b.node("virtual").Status.Addresses); diff != "" {
			t.Errorf("addresses of a foreign node (-before +after):\n%s", diff)
		}
		instances, _ := b.provider.InstancesV2()
		for name, isNil := range map[string]bool{"tainted": true, "virtual": false, "nameless": false} {
			metadata, err := instances.InstanceMetadata(b.ctx, b.node(name))
			if err != nil || (metadata == nil) != isNil {
				t.Errorf("%s: metadata %+v, error %v", name, metadata, err)
			}
		}
		for _, name := range []string{"tainted", "virtual"} {
			if down, err := instances.InstanceShutdown(b.ctx, b.node(name)); down || err != nil {
				t.Errorf("%s: shut down %v, error %v", name, down, err)
			}
		}
	})
}

// answer is an error that a test changes while others read it.
type answer struct {
	mu  sync.Mutex
	err error
}

func (a *answer) set(err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.err = err
}

func (a *answer) get() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.err
}

// stub stands for the load balancer domain where a test is about the adapter alone.
type stub struct {
	ensure func(ctx context.Context, s *v1.Service, nodes []*v1.Node) (*v1.LoadBalancerStatus, error)
	update func(ctx context.Context, s *v1.Service, nodes []*v1.Node) error
	remove func(ctx context.Context, s *v1.Service) error
	exists bool
}

func (f *stub) Ensure(ctx context.Context, s *v1.Service, nodes []*v1.Node) (*v1.LoadBalancerStatus, error) {
	return f.ensure(ctx, s, nodes)
}
func (f *stub) UpdateBackends(ctx context.Context, s *v1.Service, nodes []*v1.Node) error {
	return f.update(ctx, s, nodes)
}
func (f *stub) Exists(context.Context, *v1.Service) (*v1.LoadBalancerStatus, bool, error) {
	return &v1.LoadBalancerStatus{}, f.exists, nil
}
func (f *stub) Delete(ctx context.Context, s *v1.Service) error { return f.remove(ctx, s) }
func (f *stub) Audit(context.Context, []*v1.Service, []*v1.Node) ([]types.NamespacedName, error) {
	return nil, nil
}
func (f *stub) Name(s *v1.Service) string { return "name-of-" + s.Name }

func (b *bed) withStub(s *stub) framework.LoadBalancer {
	b.t.Helper()
	b.options.NewBalancers = func(*cloudprovider.ServiceSupport) cloudprovider.Balancers { return s }
	b.initialize()
	lb, offered := b.provider.LoadBalancer()
	if !offered {
		b.t.Fatal("load balancers are not offered")
	}
	return lb
}

// Trap 3: UpdateLoadBalancer comes without a deadline, and a failure of it must not be lost: it is Ensure's to repair and to
// report.
func TestTrap3UpdateWithoutDeadline(t *testing.T) {
	inBubble(t, ocisim.Options{}, func(t *testing.T, b *bed) {
		var ensured atomic.Int64
		s := &stub{
			ensure: func(context.Context, *v1.Service, []*v1.Node) (*v1.LoadBalancerStatus, error) {
				ensured.Add(1)
				return &v1.LoadBalancerStatus{Ingress: []v1.LoadBalancerIngress{{IP: "192.0.2.1"}}}, nil
			},
			update: func(ctx context.Context, _ *v1.Service, _ []*v1.Node) error {
				<-ctx.Done()
				return ctx.Err()
			},
		}
		lb := b.withStub(s)
		b.addWorker("w-1", "10.0.1.1")
		b.startServices()
		b.addService("web")
		b.hold(time.Second)
		began := time.Now()
		err := lb.UpdateLoadBalancer(context.Background(), "kubernetes", b.service("web"), nil)
		if took := time.Since(began); took > time.Hour {
			t.Errorf("took %s", took)
		}
		if err != framework.ImplementedElsewhere { //nolint:errorlint // as the framework compares it
			t.Errorf("error %v", err)
		}
		before := ensured.Load()
		b.hold(time.Second)
		if n := ensured.Load() - before; n != 1 {
			t.Errorf("%d syncs after a failed update; want 1", n)
		}
		if w := b.warnings(); len(w) != 0 {
			t.Errorf("warnings: %q", w)
		}
	})
}

// Trap 3: what the framework gives to UpdateLoadBalancer may be old. The Service and the nodes are read anew, so that a slow
// sync does not undo a newer one (case C022).
func TestTrap3UpdateWithOldArguments(t *testing.T) {
	inBubble(t, ocisim.Options{}, func(t *testing.T, b *bed) {
		b.withBalancers(b.oci)
		b.addWorker("w-1", "10.0.1.1")
		b.startServices()
		b.addService("web")
		b.hold(5 * time.Minute)
		oldService, oldNodes := b.service("web"), []*v1.Node{b.node("w-1")}
		b.addWorker("w-2", "10.0.1.2")
		b.hold(time.Minute) // apart from the next change, for the data race that startServices tells of
		b.updateService("web", func(s *v1.Service) { s.Spec.Ports[0].NodePort = 30081 })
		b.hold(5 * time.Minute)
		b.region.ResetCalls()
		lb, _ := b.provider.LoadBalancer()
		if err := lb.UpdateLoadBalancer(context.Background(), "kubernetes", oldService, oldNodes); err != nil {
			t.Error(err)
		}
		if w := b.cloudWrites(); len(w) != 0 {
			t.Errorf("an old set of nodes was written: %v", w)
		}
		for name, addresses := range b.backends() {
			if !slices.Equal(addresses, []string{"10.0.1.1", "10.0.1.2"}) {
				t.Errorf("backend set %s: %v", name, addresses)
			}
		}
	})
}

// Traps 4 and 5: for the framework, ImplementedElsewhere is the success of a deletion.
func TestTrap5DeletionIsNeverElsewhere(t *testing.T) {
	inBubble(t, ocisim.Options{}, func(t *testing.T, b *bed) {
		var failure answer
		failure.set(framework.ImplementedElsewhere)
		s := &stub{exists: true, remove: func(context.Context, *v1.Service) error { return failure.get() },
			ensure: func(context.Context, *v1.Service, []*v1.Node) (*v1.LoadBalancerStatus, error) {
				return &v1.LoadBalancerStatus{}, nil
			}}
		b.withStub(s)
		b.startServices()
		b.addService("web")
		b.hold(time.Second)
		b.updateService("web", func(s *v1.Service) { s.DeletionTimestamp = &metav1.Time{Time: time.Now()} })
		b.hold(time.Minute)
		if !servicehelper.HasLBFinalizer(b.service("web")) {
			t.Error("the finalizer was dropped")
		}
		failure.set(nil)
		b.hold(10 * time.Minute)
		if servicehelper.HasLBFinalizer(b.service("web")) {
			t.Error("the finalizer stays after the deletion")
		}
	})
}

// Traps 5 and 7: what is pending, and what the user has been told, is exactly ImplementedElsewhere; other errors pass.
func TestTrap5AnswersOfEnsure(t *testing.T) {
	inBubble(t, ocisim.Options{}, func(t *testing.T, b *bed) {
		var given answer
		s := &stub{ensure: func(context.Context, *v1.Service, []*v1.Node) (*v1.LoadBalancerStatus, error) {
			return nil, given.get()
		}}
		lb := b.withStub(s)
		other := errors.New("other")
		b.addService("web")
		ensure := func() error {
			_, err := lb.EnsureLoadBalancer(b.ctx, "kubernetes", b.service("web"), nil)
			return err
		}
		refusal := &loadbalancer.Refusal{Reason: "Test", RetryAfter: time.Minute}
		given.set(refusal)
		if err := ensure(); !errors.Is(err, refusal) {
			t.Errorf("without a way to queue the Service again, a refusal is an error: %v", err)
		}
		b.startServices()
		for name, test := range map[string]struct{ given, want error }{
			"other":   {other, other},
			"refusal": {refusal, framework.ImplementedElsewhere},
			"gone":    {loadbalancer.ErrServiceGone, framework.ImplementedElsewhere},
		} {
			given.set(test.given)
			if err := ensure(); err != test.want { //nolint:errorlint // as the framework compares it
				t.Errorf("%s: got %v; want %v", name, err, test.want)
			}
		}
		if name := lb.GetLoadBalancerName(b.ctx, "kubernetes", b.service("web")); name != "name-of-web" {
			t.Errorf("name %s", name)
		}
	})
}

// Trap 6: additional labels are applied once, if the key is absent. A controller of ours keeps them right.
func TestTrap6LabelsAreKeptRight(t *testing.T) {
	inBubble(t, ocisim.Options{}, func(t *testing.T, b *bed) {
		id := b.region.AddInstance(ocisim.Instance{Name: "w-1", FaultDomain: "FAULT-DOMAIN-2", VNIC: ocisim.VNIC{Subnet: "nodes"}})
		b.startNodes()
		b.addNode("w-1", id, func(n *v1.Node) { label(n, "oci.oraclecloud.com/fault-domain", "FAULT-DOMAIN-9") })
		b.hold(5 * time.Second)
		if got := b.node("w-1").Labels["oci.oraclecloud.com/fault-domain"]; got != "FAULT-DOMAIN-2" {
			t.Errorf("present before initialisation: %s", got)
		}
		b.update("w-1", func(n *v1.Node) { delete(n.Labels, "oci.oraclecloud.com/fault-domain") })
		b.hold(5 * time.Second)
		if got := b.node("w-1").Labels["oci.oraclecloud.com/fault-domain"]; got != "FAULT-DOMAIN-2" {
			t.Errorf("removed: %q", got)
		}
	})
}
