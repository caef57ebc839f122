// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package oci_test

import (
	"context"
	"errors"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/oracle/oci-go-sdk/v65/common"
	"github.com/oracle/oci-go-sdk/v65/loadbalancer"
	"github.com/oracle/oci-go-sdk/v65/networkloadbalancer"

	"github.com/oracle/oci-cloud-controller-manager/pkg/oci"
	"github.com/oracle/oci-cloud-controller-manager/test/ocisim"
)

// cloud is what both kinds of balancer have in common.
type cloud interface {
	Kind() oci.BalancerKind
	Get(ctx context.Context, id string) (*oci.Balancer, error)
	List(ctx context.Context, compartmentID, displayName string) ([]*oci.Balancer, error)
	Create(ctx context.Context, b *oci.Balancer, retryToken string) (workRequestID, id string, err error)
	Delete(ctx context.Context, id string) (string, error)
	CreateBackendSet(ctx context.Context, id string, bs oci.BackendSet, retryToken string) (string, error)
	UpdateBackendSet(ctx context.Context, id string, bs oci.BackendSet, etag string) (string, error)
	DeleteBackendSet(ctx context.Context, id, name string) (string, error)
	CreateListener(ctx context.Context, id string, l oci.Listener, retryToken string) (string, error)
	UpdateListener(ctx context.Context, id string, l oci.Listener, etag string) (string, error)
	DeleteListener(ctx context.Context, id, name string) (string, error)
	UpdateTags(ctx context.Context, id string, tags oci.Tags, etag string) (string, error)
	UpdateNSGs(ctx context.Context, id string, nsgIDs []string, etag string) (string, error)
	ListWorkRequests(ctx context.Context, balancerID, compartmentID string) ([]oci.WorkRequest, error)
	Wait(ctx context.Context, workRequestID string) (oci.WorkRequest, error)
}

// bench is one kind of balancer against a region of its own.
type bench struct {
	*testing.T
	cloud

	region *ocisim.Region
	place
}

// onBothKinds runs a test for load balancers and for network load balancers.
func onBothKinds(t *testing.T, o ocisim.Options, test func(b bench)) {
	for _, kind := range []oci.BalancerKind{oci.KindLB, oci.KindNLB} {
		t.Run(string(kind), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				region := ocisim.New(o)
				b := bench{T: t, region: region, place: build(region)}
				c := connect(t, region)
				b.cloud = c.LoadBalancers()
				if kind == oci.KindNLB {
					b.cloud = c.NetworkLoadBalancers()
				}
				test(b)
			})
		})
	}
}

// policy is the policy of backend sets, and another one.
func (b bench) policy() (string, string) {
	if b.Kind() == oci.KindLB {
		return "ROUND_ROBIN", "IP_HASH"
	}
	return "FIVE_TUPLE", "TWO_TUPLE"
}

func (b bench) backendSet(name string, backends ...oci.Backend) oci.BackendSet {
	policy, _ := b.policy()
	return oci.BackendSet{
		Name: name, Policy: policy, Backends: backends,
		Checker: oci.HealthChecker{Protocol: "HTTP", Port: 10256, URLPath: "/healthz", ReturnCode: 200, Retries: 3, TimeoutMillis: 3000, IntervalMillis: 10000},
	}
}

func (b bench) wanted() *oci.Balancer {
	w := &oci.Balancer{
		CompartmentID: b.compartment, DisplayName: "service", SubnetIDs: []string{b.public}, NSGIDs: []string{b.group},
		BackendSets: map[string]oci.BackendSet{
			"TCP-80":  b.backendSet("TCP-80", oci.Backend{IP: "10.0.8.1", Port: 30080, Weight: 1}),
			"TCP-443": b.backendSet("TCP-443"),
		},
		Listeners: map[string]oci.Listener{
			"TCP-80":  {Name: "TCP-80", BackendSetName: "TCP-80", Port: 80, Protocol: "TCP"},
			"TCP-443": {Name: "TCP-443", BackendSetName: "TCP-443", Port: 443, Protocol: "TCP"},
		},
		Tags: oci.Tags{Freeform: map[string]string{"oci-k8s-cluster": "c"}},
	}
	if b.Kind() == oci.KindLB {
		w.Shape = &oci.Shape{Name: oci.ShapeFlexible, MinMbps: 10, MaxMbps: 100}
	}
	return w
}

// create makes a balancer and waits for it.
func (b bench) create() *oci.Balancer {
	b.Helper()
	work, _, err := b.Create(b.Context(), b.wanted(), "token")
	if err != nil {
		b.Fatalf("create: %v", err)
	}
	done, err := b.Wait(b.Context(), work)
	if err != nil {
		b.Fatalf("wait for the creation: %v", err)
	}
	return b.read(done.ResourceID)
}

func (b bench) read(id string) *oci.Balancer {
	b.Helper()
	got, err := b.Get(b.Context(), id)
	if err != nil {
		b.Fatalf("read: %v", err)
	}
	return got
}

// done waits for the work request of a change.
func (b bench) done(work string, err error) {
	b.Helper()
	if err != nil {
		b.Fatalf("change: %v", err)
	}
	if _, err := b.Wait(b.Context(), work); err != nil {
		b.Fatalf("wait: %v", err)
	}
}

var values = cmp.Options{cmpopts.IgnoreUnexported(oci.BackendSet{}, oci.Backend{}, oci.Listener{}), cmpopts.EquateEmpty()}

// A balancer from its creation to its end, with reads that miss new things at first.
func TestBalancerLife(t *testing.T) {
	onBothKinds(t, ocisim.Options{Seed: 1, EventualReads: 2}, func(b bench) {
		ctx := b.Context()
		got := b.create()
		if got.State != "ACTIVE" || got.ETag == "" || got.Private || !slices.ContainsFunc(got.Addresses, publicAddress) {
			b.Fatalf("balancer is %+v", got)
		}
		want := b.wanted()
		if diff := cmp.Diff(want.Listeners, got.Listeners, values, cmpopts.IgnoreFields(oci.Listener{}, "IPVersion", "PPv2", "IdleTimeoutSeconds")); diff != "" {
			b.Errorf("listeners (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff(want.BackendSets, got.BackendSets, values, cmpopts.IgnoreFields(oci.BackendSet{}, "IPVersion", "PreserveSource"),
			cmpopts.IgnoreFields(oci.HealthChecker{}, "ResponseBodyRegex", "ForcePlainText")); diff != "" {
			b.Errorf("backend sets (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff([]any{want.Shape, want.NSGIDs, want.SubnetIDs, want.Freeform}, []any{got.Shape, got.NSGIDs, got.SubnetIDs, got.Freeform}); diff != "" {
			b.Errorf("balancer (-want +got):\n%s", diff)
		}

		id := got.ID
		b.done(b.CreateBackendSet(ctx, id, b.backendSet("TCP-8080"), "token-a"))
		b.done(b.CreateListener(ctx, id, oci.Listener{Name: "TCP-8080", BackendSetName: "TCP-8080", Port: 8080, Protocol: "TCP"}, "token-b"))
		listener := b.read(id).Listeners["TCP-8080"]
		listener.Port = 8081
		b.done(b.UpdateListener(ctx, id, listener, b.read(id).ETag))
		b.done(b.DeleteListener(ctx, id, "TCP-443"))
		b.done(b.DeleteBackendSet(ctx, id, "TCP-443"))
		b.done(b.UpdateTags(ctx, id, oci.Tags{Freeform: map[string]string{"a": "b"}}, b.read(id).ETag))
		b.done(b.UpdateNSGs(ctx, id, nil, b.read(id).ETag))
		if s, ok := b.cloud.(interface {
			UpdateShape(ctx context.Context, id string, s oci.Shape, etag string) (string, error)
		}); ok {
			b.done(s.UpdateShape(ctx, id, oci.Shape{Name: oci.ShapeFlexible, MinMbps: 20, MaxMbps: 200}, b.read(id).ETag))
			want.Shape = &oci.Shape{Name: oci.ShapeFlexible, MinMbps: 20, MaxMbps: 200}
		}
		got = b.read(id)
		var names []string
		for name, l := range got.Listeners {
			names = append(names, name+"/"+got.BackendSets[l.BackendSetName].Name)
		}
		slices.Sort(names)
		if diff := cmp.Diff([]string{"TCP-80/TCP-80", "TCP-8080/TCP-8080"}, names); diff != "" || len(got.BackendSets) != 2 || got.Listeners["TCP-8080"].Port != 8081 {
			b.Errorf("after the changes: listeners with their sets (-want +got):\n%s%+v", diff, got)
		}
		if got.Freeform["a"] != "b" || len(got.NSGIDs) != 0 || !cmp.Equal(want.Shape, got.Shape) {
			b.Errorf("after the changes: tags %v, groups %v, shape %+v", got.Freeform, got.NSGIDs, got.Shape)
		}

		requests, err := b.ListWorkRequests(ctx, id, b.compartment)
		if err != nil || len(requests) < 8 {
			b.Errorf("%d work requests, error %v", len(requests), err)
		}
		for _, w := range requests {
			if w.State != oci.WorkRequestSucceeded || w.ResourceID != id || w.Operation == "" || w.Accepted.IsZero() {
				b.Errorf("work request %+v", w)
			}
		}

		b.done(b.Delete(ctx, id))
		if left, err := b.List(ctx, b.compartment, "service"); err != nil || slices.ContainsFunc(left, func(x *oci.Balancer) bool { return x.State != "DELETED" }) {
			b.Errorf("left after the deletion: %v, error %v", left, err)
		}
		if _, err := b.Delete(ctx, id); !errors.Is(err, oci.ErrNotFound) {
			b.Errorf("second deletion: error %v", err)
		}
	})
}

// publicAddress says whether an address is a public one. A public network load balancer has a private address besides.
func publicAddress(a oci.BalancerAddress) bool {
	_, err := netip.ParseAddr(a.IP)
	return err == nil && a.Public
}

// What others have set survives an update of ours, and an outdated ETag is refused.
func TestForeignFieldsSurvive(t *testing.T) {
	onBothKinds(t, ocisim.Options{Seed: 2}, func(b bench) {
		ctx := b.Context()
		before := b.create()
		b.foreign(before.ID)
		got := b.read(before.ID)

		set := got.BackendSets["TCP-80"].WithBackends([]oci.Backend{{IP: "10.0.8.1", Port: 30080, Weight: 1}, {IP: "10.0.8.2", Port: 30080, Weight: 1}})
		_, set.Policy = b.policy()
		if _, err := b.UpdateBackendSet(ctx, got.ID, set, before.ETag); !errors.Is(err, oci.ErrPrecondition) {
			b.Fatalf("update under the ETag of before: error %v, want ErrPrecondition", err)
		}
		b.done(b.UpdateBackendSet(ctx, got.ID, set, got.ETag))
		listener := got.Listeners["TCP-80"]
		listener.Port = 81
		b.done(b.UpdateListener(ctx, got.ID, listener, b.read(got.ID).ETag))

		after := b.read(got.ID)
		wantBackends := []oci.Backend{{IP: "10.0.8.1", Port: 30080, Weight: 5, Drain: true}, {IP: "10.0.8.2", Port: 30080, Weight: 1}}
		if diff := cmp.Diff(wantBackends, after.BackendSets["TCP-80"].Backends, values); diff != "" {
			b.Errorf("backends (-want +got):\n%s", diff)
		}
		if after.BackendSets["TCP-80"].Policy != set.Policy || after.Listeners["TCP-80"].Port != 81 {
			b.Errorf("policy is %s, port %d: our update is missing", after.BackendSets["TCP-80"].Policy, after.Listeners["TCP-80"].Port)
		}
		b.checkForeign(got.ID)
	})
}

// foreign sets by a foreign hand what the domain types do not model, and drains a backend.
func (b bench) foreign(id string) {
	b.Helper()
	var err error
	if b.Kind() == oci.KindLB {
		err = b.region.Foreign().LoadBalancer(id, func(v *loadbalancer.LoadBalancer) {
			set := v.BackendSets["TCP-80"]
			set.SessionPersistenceConfiguration = &loadbalancer.SessionPersistenceConfigurationDetails{CookieName: common.String("*"), DisableFallback: common.Bool(true)}
			set.Backends[0].Weight, set.Backends[0].Drain, set.Backends[0].MaxConnections = common.Int(5), common.Bool(true), common.Int(256)
			v.BackendSets["TCP-80"] = set
			v.Hostnames = map[string]loadbalancer.Hostname{"shop": {Name: common.String("shop"), Hostname: common.String("shop.example.com")}}
			listener := v.Listeners["TCP-80"]
			listener.HostnameNames = []string{"shop"}
			v.Listeners["TCP-80"] = listener
		})
	} else {
		err = b.region.Foreign().NetworkLoadBalancer(id, func(v *networkloadbalancer.NetworkLoadBalancer) {
			set := v.BackendSets["TCP-80"]
			set.IsFailOpen, set.IsInstantFailoverEnabled = common.Bool(true), common.Bool(true)
			set.Backends[0].Weight, set.Backends[0].IsDrain = common.Int(5), common.Bool(true)
			v.BackendSets["TCP-80"] = set
			listener := v.Listeners["TCP-80"]
			listener.TcpIdleTimeout = common.Int(1234)
			v.Listeners["TCP-80"] = listener
		})
	}
	if err != nil {
		b.Fatal(err)
	}
}

// checkForeign looks for what foreign has set.
func (b bench) checkForeign(id string) {
	b.Helper()
	if b.Kind() == oci.KindLB {
		v := find(b.T, b.region.LoadBalancers(), func(v loadbalancer.LoadBalancer) bool { return *v.Id == id })
		set, listener := v.BackendSets["TCP-80"], v.Listeners["TCP-80"]
		if p := set.SessionPersistenceConfiguration; p == nil || *p.CookieName != "*" || !*p.DisableFallback {
			b.Errorf("session persistence is %v", p)
		}
		if m := set.Backends[0].MaxConnections; m == nil || *m != 256 {
			b.Errorf("connection limit of the backend is %v", m)
		}
		if !slices.Equal(listener.HostnameNames, []string{"shop"}) {
			b.Errorf("host names are %v", listener.HostnameNames)
		}
		return
	}
	v := find(b.T, b.region.NetworkLoadBalancers(), func(v networkloadbalancer.NetworkLoadBalancer) bool { return *v.Id == id })
	set, listener := v.BackendSets["TCP-80"], v.Listeners["TCP-80"]
	if set.IsFailOpen == nil || !*set.IsFailOpen || set.IsInstantFailoverEnabled == nil || !*set.IsInstantFailoverEnabled {
		b.Errorf("fail open is %v, instant failover %v", set.IsFailOpen, set.IsInstantFailoverEnabled)
	}
	if listener.TcpIdleTimeout == nil || *listener.TcpIdleTimeout != 1234 {
		b.Errorf("idle timeout is %v", listener.TcpIdleTimeout)
	}
}

func find[T any](t *testing.T, in []T, is func(T) bool) T {
	t.Helper()
	i := slices.IndexFunc(in, is)
	if i < 0 {
		t.Fatalf("not among %d %T", len(in), in)
	}
	return in[i]
}

// A create whose answer is lost is sent again under the same token and makes one balancer.
func TestLostAnswerOfACreate(t *testing.T) {
	onBothKinds(t, ocisim.Options{Seed: 3}, func(b bench) {
		b.region.Fault(ocisim.Fault{Operation: "Create" + map[oci.BalancerKind]string{oci.KindLB: "LoadBalancer", oci.KindNLB: "NetworkLoadBalancer"}[b.Kind()], Nth: 1, Drop: ocisim.AfterApply})
		b.create()
		all, err := b.List(b.Context(), b.compartment, "")
		if err != nil || len(all) != 1 {
			b.Errorf("%d balancers, error %v", len(all), err)
		}
		// Another process with the same wish gets the same balancer.
		if work, _, err := b.Create(b.Context(), b.wanted(), "token"); err != nil || work == "" {
			b.Errorf("again: work request %q, error %v", work, err)
		}
		if all, err := b.List(b.Context(), b.compartment, ""); err != nil || len(all) != 1 {
			b.Errorf("%d balancers after another create under the same token, error %v", len(all), err)
		}
	})
}

// An update whose answer is lost has taken effect; it is not refused as outdated when it is sent again.
func TestLostAnswerOfAnUpdate(t *testing.T) {
	onBothKinds(t, ocisim.Options{Seed: 4}, func(b bench) {
		got := b.create()
		b.region.Fault(ocisim.Fault{Operation: "UpdateBackendSet", Nth: 1, Drop: ocisim.AfterApply})
		set := got.BackendSets["TCP-80"].WithBackends([]oci.Backend{{IP: "10.0.8.9", Port: 30080, Weight: 1}})
		b.done(b.UpdateBackendSet(b.Context(), got.ID, set, got.ETag))
		if after := b.read(got.ID).BackendSets["TCP-80"].Backends; len(after) != 1 || after[0].IP != "10.0.8.9" {
			b.Errorf("backends are %+v", after)
		}
	})
}

// A work request that fails says why.
func TestWorkRequestFails(t *testing.T) {
	onBothKinds(t, ocisim.Options{Seed: 5}, func(b bench) {
		got := b.create()
		b.region.Fault(ocisim.Fault{Operation: "CreateBackendSet", FailWork: true, Code: "BAD_INPUT", Message: "All five non-reserved addresses are in use"})
		work, err := b.CreateBackendSet(b.Context(), got.ID, b.backendSet("TCP-1"), "token-c")
		if err != nil {
			b.Fatal(err)
		}
		_, err = b.Wait(b.Context(), work)
		var failed *oci.WorkRequestError
		if !errors.As(err, &failed) || len(failed.WorkRequest.Errors) != 1 || failed.WorkRequest.Errors[0].Message != "All five non-reserved addresses are in use" {
			b.Fatalf("error %v", err)
		}
		if !strings.Contains(err.Error(), "All five") {
			b.Errorf("%q does not say why", err)
		}
	})
}

// Callers who wait for one work request cost no more reads than one caller, and each may give up on its own.
func TestWaitersShareTheReads(t *testing.T) {
	onBothKinds(t, ocisim.Options{Seed: 6}, func(b bench) {
		work, _, err := b.Create(b.Context(), b.wanted(), "token")
		if err != nil {
			b.Fatal(err)
		}
		hasty, cancel := context.WithTimeout(b.Context(), 2*time.Second)
		defer cancel()
		results := make(chan error, 10)
		for range 10 {
			go func() { _, err := b.Wait(b.Context(), work); results <- err }()
		}
		if _, err := b.Wait(hasty, work); !errors.Is(err, context.DeadlineExceeded) {
			b.Errorf("hasty caller: error %v", err)
		}
		for range 10 {
			if err := <-results; err != nil {
				b.Errorf("patient caller: error %v", err)
			}
		}
		service := map[oci.BalancerKind]string{oci.KindLB: "loadbalancer", oci.KindNLB: "networkloadbalancer"}[b.Kind()]
		// A creation takes 60 s at most; looks are half a second apart.
		if n := b.region.Counts()[service+".GetWorkRequest"]; n == 0 || n > 122 {
			b.Errorf("%d reads of the work request for 11 callers", n)
		}
	})
}
