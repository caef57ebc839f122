// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package ocisim_test

import (
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/oracle/oci-go-sdk/v65/common"
	"github.com/oracle/oci-go-sdk/v65/loadbalancer"
	"github.com/oracle/oci-go-sdk/v65/networkloadbalancer"

	"github.com/oracle/oci-cloud-controller-manager/test/ocisim"
	"github.com/oracle/oci-cloud-controller-manager/test/pki"
)

// pier is a shore with the SDK's clients of both services.
type pier struct {
	*shore

	lb  loadbalancer.LoadBalancerClient
	nlb networkloadbalancer.NetworkLoadBalancerClient
}

// onPier runs a test with the SDK's clients on virtual time.
func onPier(t *testing.T, options ocisim.Options, run func(t *testing.T, p *pier)) {
	t.Helper()
	pki.SigningKey()
	synctest.Test(t, func(t *testing.T) {
		p := &pier{shore: newShore(t, options)}
		provider := sdkProvider(p.region)
		var err error
		if p.lb, err = loadbalancer.NewLoadBalancerClientWithConfigurationProvider(provider); err != nil {
			t.Fatal(err)
		}
		if p.nlb, err = networkloadbalancer.NewNetworkLoadBalancerClientWithConfigurationProvider(provider); err != nil {
			t.Fatal(err)
		}
		p.lb.HTTPClient = &http.Client{Transport: p.region.Transport()}
		p.nlb.HTTPClient = &http.Client{Transport: p.region.Transport()}
		run(t, p)
	})
}

// granted returns the answer of a call that has to succeed.
func granted[T any](t *testing.T) func(T, error) T {
	t.Helper()
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

// refusedAs asserts the status and the code of a refusal.
func refusedAs(t *testing.T, err error, status int, code string) {
	t.Helper()
	failure, ok := common.IsServiceError(err)
	if !ok || failure.GetHTTPStatusCode() != status || failure.GetCode() != code {
		t.Fatalf("error %v, want %d %s", err, status, code)
	}
}

// settle lets changes that were accepted come to their end.
func settle() { time.Sleep(2 * time.Minute) }

func TestSingleBackendsOfALoadBalancer(t *testing.T) {
	onPier(t, ocisim.Options{Seed: 30}, func(t *testing.T, p *pier) {
		id, ctx, set, name := p.newLB(nil), t.Context(), "TCP-80", "10.0.2.9:30080"
		before := granted[loadbalancer.GetBackendSetResponse](t)(p.lb.GetBackendSet(ctx, loadbalancer.GetBackendSetRequest{LoadBalancerId: &id, BackendSetName: &set}))
		created := granted[loadbalancer.CreateBackendResponse](t)(p.lb.CreateBackend(ctx, loadbalancer.CreateBackendRequest{
			LoadBalancerId: &id, BackendSetName: &set, IfMatch: before.ETag,
			CreateBackendDetails: loadbalancer.CreateBackendDetails{IpAddress: common.String("10.0.2.9"), Port: common.Int(30080)},
		}))
		get := loadbalancer.GetBackendRequest{LoadBalancerId: &id, BackendSetName: &set, BackendName: &name}
		_, err := p.lb.GetBackend(ctx, get)
		refusedAs(t, err, 404, "NotAuthorizedOrNotFound")
		settle()
		work := granted[loadbalancer.GetWorkRequestResponse](t)(p.lb.GetWorkRequest(ctx, loadbalancer.GetWorkRequestRequest{WorkRequestId: created.OpcWorkRequestId}))
		if *work.Type != "CreateBackend" || work.LifecycleState != loadbalancer.WorkRequestLifecycleStateSucceeded {
			t.Errorf("work request %v", work.WorkRequest)
		}
		backend := granted[loadbalancer.GetBackendResponse](t)(p.lb.GetBackend(ctx, get))
		if *backend.Name != name || *backend.Weight != 1 || *backend.Drain || *backend.Backup || *backend.Offline {
			t.Errorf("backend %v", backend.Backend)
		}
		if *backend.ETag != p.region.ETag(id) || *backend.ETag == *before.ETag {
			t.Errorf("etag %s, of the balancer %s, before %s", *backend.ETag, p.region.ETag(id), *before.ETag)
		}
		_, err = p.lb.CreateBackend(ctx, loadbalancer.CreateBackendRequest{
			LoadBalancerId: &id, BackendSetName: &set,
			CreateBackendDetails: loadbalancer.CreateBackendDetails{IpAddress: common.String("10.0.2.9"), Port: common.Int(30080)},
		})
		refusedAs(t, err, 409, "NotAuthorizedOrResourceAlreadyExists")
		_, err = p.lb.CreateBackend(ctx, loadbalancer.CreateBackendRequest{
			LoadBalancerId: &id, BackendSetName: &set, IfMatch: before.ETag,
			CreateBackendDetails: loadbalancer.CreateBackendDetails{IpAddress: common.String("10.0.2.10"), Port: common.Int(1)},
		})
		refusedAs(t, err, 412, "NoEtagMatch")

		update := loadbalancer.UpdateBackendRequest{
			LoadBalancerId: &id, BackendSetName: &set, BackendName: &name,
			UpdateBackendDetails: loadbalancer.UpdateBackendDetails{
				Weight: common.Int(3), Backup: common.Bool(false), Drain: common.Bool(true), Offline: common.Bool(false), MaxConnections: common.Int(255),
			},
		}
		_, err = p.lb.UpdateBackend(ctx, update)
		refusedAs(t, err, 400, "InvalidParameter")
		update.MaxConnections = common.Int(256)
		granted[loadbalancer.UpdateBackendResponse](t)(p.lb.UpdateBackend(ctx, update))
		settle()
		list := granted[loadbalancer.ListBackendsResponse](t)(p.lb.ListBackends(ctx, loadbalancer.ListBackendsRequest{LoadBalancerId: &id, BackendSetName: &set}))
		if len(list.Items) != 2 || *list.Items[1].Weight != 3 || !*list.Items[1].Drain || *list.Items[1].MaxConnections != 256 {
			t.Errorf("backends %v", list.Items)
		}
		remove := loadbalancer.DeleteBackendRequest{LoadBalancerId: &id, BackendSetName: &set, BackendName: &name}
		granted[loadbalancer.DeleteBackendResponse](t)(p.lb.DeleteBackend(ctx, remove))
		// It is there until its turn has come; the second deletion is accepted too, and fails when it runs.
		second := granted[loadbalancer.DeleteBackendResponse](t)(p.lb.DeleteBackend(ctx, remove))
		settle()
		work = granted[loadbalancer.GetWorkRequestResponse](t)(p.lb.GetWorkRequest(ctx, loadbalancer.GetWorkRequestRequest{WorkRequestId: second.OpcWorkRequestId}))
		if work.LifecycleState != loadbalancer.WorkRequestLifecycleStateFailed {
			t.Errorf("second deletion is %s", work.LifecycleState)
		}
		_, err = p.lb.DeleteBackend(ctx, remove)
		refusedAs(t, err, 404, "NotAuthorizedOrNotFound")
		sets := granted[loadbalancer.ListBackendSetsResponse](t)(p.lb.ListBackendSets(ctx, loadbalancer.ListBackendSetsRequest{LoadBalancerId: &id}))
		if len(sets.Items) != 1 || len(sets.Items[0].Backends) != 1 {
			t.Errorf("sets %v", sets.Items)
		}
	})
}

func TestHealthCheckerOfALoadBalancer(t *testing.T) {
	onPier(t, ocisim.Options{Seed: 31}, func(t *testing.T, p *pier) {
		id, ctx, set := p.newLB(nil), t.Context(), "TCP-80"
		update := loadbalancer.UpdateHealthCheckerRequest{
			LoadBalancerId: &id, BackendSetName: &set,
			UpdateHealthCheckerDetails: loadbalancer.UpdateHealthCheckerDetails{
				Protocol: common.String("HTTP"), Port: common.Int(9), ReturnCode: common.Int(204), Retries: common.Int(2),
				TimeoutInMillis: common.Int(1000), IntervalInMillis: common.Int(5000), ResponseBodyRegex: common.String(""),
			},
		}
		_, err := p.lb.UpdateHealthChecker(ctx, update)
		refusedAs(t, err, 400, "InvalidParameter") // HTTP without a path
		update.UrlPath = common.String("/ready")
		granted[loadbalancer.UpdateHealthCheckerResponse](t)(p.lb.UpdateHealthChecker(ctx, update))
		settle()
		got := granted[loadbalancer.GetHealthCheckerResponse](t)(p.lb.GetHealthChecker(ctx, loadbalancer.GetHealthCheckerRequest{LoadBalancerId: &id, BackendSetName: &set}))
		if *got.UrlPath != "/ready" || *got.Retries != 2 || *got.ReturnCode != 204 || *got.IntervalInMillis != 5000 {
			t.Errorf("health checker %v", got.HealthChecker)
		}
		none := "none"
		_, err = p.lb.GetHealthChecker(ctx, loadbalancer.GetHealthCheckerRequest{LoadBalancerId: &id, BackendSetName: &none})
		refusedAs(t, err, 404, "NotAuthorizedOrNotFound")
	})
}

func TestSingleBackendsOfANetworkLoadBalancer(t *testing.T) {
	onPier(t, ocisim.Options{Seed: 32, PageSize: 2}, func(t *testing.T, p *pier) {
		id, ctx, set := p.newNLB(nil), t.Context(), "TCP-80"
		create := func(d networkloadbalancer.CreateBackendDetails) error {
			_, err := p.nlb.CreateBackend(ctx, networkloadbalancer.CreateBackendRequest{NetworkLoadBalancerId: &id, BackendSetName: &set, CreateBackendDetails: d})
			return err
		}
		if err := create(networkloadbalancer.CreateBackendDetails{TargetId: &p.instance, Port: common.Int(30080), Name: common.String("w-0")}); err != nil {
			t.Fatal(err)
		}
		refusedAs(t, create(networkloadbalancer.CreateBackendDetails{IpAddress: common.String("10.0.2.7"), Port: common.Int(1)}), 409, "Conflict")
		settle()
		refusedAs(t, create(networkloadbalancer.CreateBackendDetails{IpAddress: common.String("10.0.2.2"), Port: common.Int(30080)}), 409, "NotAuthorizedOrResourceAlreadyExists")
		refusedAs(t, create(networkloadbalancer.CreateBackendDetails{IpAddress: common.String("10.0.2.8"), Port: common.Int(1), Name: common.String("w-0")}),
			409, "NotAuthorizedOrResourceAlreadyExists")
		refusedAs(t, create(networkloadbalancer.CreateBackendDetails{TargetId: common.String("ocid1.privateip.oc1.iad.none"), Port: common.Int(1)}),
			400, "RelatedResourceNotAuthorizedOrNotFound")
		if err := create(networkloadbalancer.CreateBackendDetails{IpAddress: common.String("10.0.2.8"), Port: common.Int(1)}); err != nil {
			t.Fatal(err)
		}
		settle()
		name := "w-0"
		got := granted[networkloadbalancer.GetBackendResponse](t)(p.nlb.GetBackend(ctx, networkloadbalancer.GetBackendRequest{
			NetworkLoadBalancerId: &id, BackendSetName: &set, BackendName: &name}))
		if *got.TargetId != p.instance || *got.Weight != 1 || *got.Etag != p.region.ETag(id) {
			t.Errorf("backend %v", got.Backend)
		}
		granted[networkloadbalancer.UpdateBackendResponse](t)(p.nlb.UpdateBackend(ctx, networkloadbalancer.UpdateBackendRequest{
			NetworkLoadBalancerId: &id, BackendSetName: &set, BackendName: &name,
			UpdateBackendDetails: networkloadbalancer.UpdateBackendDetails{IsDrain: common.Bool(true)},
		}))
		settle()
		var names []string
		var page *string
		for {
			list := granted[networkloadbalancer.ListBackendsResponse](t)(p.nlb.ListBackends(ctx, networkloadbalancer.ListBackendsRequest{
				NetworkLoadBalancerId: &id, BackendSetName: &set, Page: page, SortOrder: networkloadbalancer.ListBackendsSortOrderDesc,
				SortBy: networkloadbalancer.ListBackendsSortByDisplayname,
			}))
			for _, b := range list.Items {
				names = append(names, *b.Name)
				if *b.Name == name && (!*b.IsDrain || *b.Weight != 1) {
					t.Errorf("an update of one setting gave %v", b)
				}
			}
			if page = list.OpcNextPage; page == nil {
				break
			}
		}
		if len(names) != 3 || names[0] != "w-0" || names[2] != "10.0.2.2:30080" {
			t.Errorf("backends %v, want three in descending order", names)
		}
		granted[networkloadbalancer.DeleteBackendResponse](t)(p.nlb.DeleteBackend(ctx, networkloadbalancer.DeleteBackendRequest{
			NetworkLoadBalancerId: &id, BackendSetName: &set, BackendName: &name}))
		settle()
		sets := granted[networkloadbalancer.ListBackendSetsResponse](t)(p.nlb.ListBackendSets(ctx, networkloadbalancer.ListBackendSetsRequest{NetworkLoadBalancerId: &id}))
		if len(sets.Items) != 1 || len(sets.Items[0].Backends) != 2 {
			t.Errorf("sets %v", sets.Items)
		}
	})
}

func TestReadsOfANetworkLoadBalancer(t *testing.T) {
	onPier(t, ocisim.Options{Seed: 33}, func(t *testing.T, p *pier) {
		id, ctx, name := p.newNLB(nil), t.Context(), "TCP-80"
		set := granted[networkloadbalancer.GetBackendSetResponse](t)(p.nlb.GetBackendSet(ctx, networkloadbalancer.GetBackendSetRequest{NetworkLoadBalancerId: &id, BackendSetName: &name}))
		again := p.get(nlbPath+"/"+id+"/backendSets/"+name, "If-None-Match", *set.Etag).want(http.StatusNotModified)
		if *set.Name != name || len(again.body) != 0 {
			t.Errorf("set %v, then the body %q", set.BackendSet, again.body)
		}
		listener := granted[networkloadbalancer.GetListenerResponse](t)(p.nlb.GetListener(ctx, networkloadbalancer.GetListenerRequest{NetworkLoadBalancerId: &id, ListenerName: &name}))
		if *listener.Port != 80 || listener.IpVersion != networkloadbalancer.IpVersionIpv4 {
			t.Errorf("listener %v", listener.Listener)
		}
		listeners := granted[networkloadbalancer.ListListenersResponse](t)(p.nlb.ListListeners(ctx, networkloadbalancer.ListListenersRequest{NetworkLoadBalancerId: &id}))
		if len(listeners.Items) != 1 || *listeners.Items[0].Name != name {
			t.Errorf("listeners %v", listeners.Items)
		}
		granted[networkloadbalancer.UpdateHealthCheckerResponse](t)(p.nlb.UpdateHealthChecker(ctx, networkloadbalancer.UpdateHealthCheckerRequest{
			NetworkLoadBalancerId: &id, BackendSetName: &name,
			UpdateHealthCheckerDetails: networkloadbalancer.UpdateHealthCheckerDetails{Retries: common.Int(5)},
		}))
		settle()
		checker := granted[networkloadbalancer.GetHealthCheckerResponse](t)(p.nlb.GetHealthChecker(ctx, networkloadbalancer.GetHealthCheckerRequest{NetworkLoadBalancerId: &id, BackendSetName: &name}))
		if *checker.Retries != 5 || *checker.UrlPath != "/healthz" || *checker.Port != 10256 {
			t.Errorf("an update of one field of the health checker gave %v", checker.HealthChecker)
		}
		policies := granted[networkloadbalancer.ListNetworkLoadBalancersPoliciesResponse](t)(p.nlb.ListNetworkLoadBalancersPolicies(ctx, networkloadbalancer.ListNetworkLoadBalancersPoliciesRequest{}))
		protocols := granted[networkloadbalancer.ListNetworkLoadBalancersProtocolsResponse](t)(p.nlb.ListNetworkLoadBalancersProtocols(ctx, networkloadbalancer.ListNetworkLoadBalancersProtocolsRequest{}))
		if len(policies.Items) != 3 || len(protocols.Items) != 5 {
			t.Errorf("policies %v, protocols %v", policies.Items, protocols.Items)
		}
	})
}

func TestBalancersMoveToAnotherCompartment(t *testing.T) {
	onPier(t, ocisim.Options{Seed: 34}, func(t *testing.T, p *pier) {
		ctx, other := t.Context(), p.region.AddCompartment(ocisim.Compartment{Name: "other"})
		lb, nlb := p.newLB(nil), p.newNLB(nil)
		move := func(compartment string) (error, error) {
			_, errLB := p.lb.ChangeLoadBalancerCompartment(ctx, loadbalancer.ChangeLoadBalancerCompartmentRequest{
				LoadBalancerId: &lb, ChangeLoadBalancerCompartmentDetails: loadbalancer.ChangeLoadBalancerCompartmentDetails{CompartmentId: &compartment},
			})
			_, errNLB := p.nlb.ChangeNetworkLoadBalancerCompartment(ctx, networkloadbalancer.ChangeNetworkLoadBalancerCompartmentRequest{
				NetworkLoadBalancerId:                       &nlb,
				ChangeNetworkLoadBalancerCompartmentDetails: networkloadbalancer.ChangeNetworkLoadBalancerCompartmentDetails{CompartmentId: &compartment},
			})
			return errLB, errNLB
		}
		errLB, errNLB := move("ocid1.compartment.oc1..none")
		refusedAs(t, errLB, 404, "NotAuthorizedOrNotFound")
		refusedAs(t, errNLB, 404, "NotAuthorizedOrNotFound")
		errLB, errNLB = move(p.compartment)
		refusedAs(t, errLB, 409, "Conflict")
		refusedAs(t, errNLB, 409, "Conflict")
		if errLB, errNLB = move(other); errLB != nil || errNLB != nil {
			t.Fatal(errLB, errNLB)
		}
		settle()
		for _, c := range []struct {
			compartment string
			want        int
		}{{p.compartment, 0}, {other, 1}} {
			lbs := granted[loadbalancer.ListLoadBalancerHealthsResponse](t)(p.lb.ListLoadBalancerHealths(ctx, loadbalancer.ListLoadBalancerHealthsRequest{CompartmentId: &c.compartment}))
			nlbs := granted[networkloadbalancer.ListNetworkLoadBalancerHealthsResponse](t)(p.nlb.ListNetworkLoadBalancerHealths(ctx, networkloadbalancer.ListNetworkLoadBalancerHealthsRequest{CompartmentId: &c.compartment}))
			if len(lbs.Items) != c.want || len(nlbs.Items) != c.want {
				t.Errorf("healths of %s: %v and %v, want %d each", c.compartment, lbs.Items, nlbs.Items, c.want)
			}
		}
	})
}
