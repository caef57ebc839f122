// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package oci

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// balancers is what both kinds have in common, and what package loadbalancer relies on.
type balancers interface {
	Kind() BalancerKind
	Get(ctx context.Context, id string) (*Balancer, error)
	List(ctx context.Context, compartmentID, displayName string) ([]*Balancer, error)
	Create(ctx context.Context, b *Balancer, retryToken string) (workRequestID, id string, err error)
	Delete(ctx context.Context, id string) (string, error)
	CreateBackendSet(ctx context.Context, id string, bs BackendSet, retryToken string) (string, error)
	UpdateBackendSet(ctx context.Context, id string, bs BackendSet, etag string) (string, error)
	DeleteBackendSet(ctx context.Context, id, name string) (string, error)
	CreateListener(ctx context.Context, id string, l Listener, retryToken string) (string, error)
	UpdateListener(ctx context.Context, id string, l Listener, etag string) (string, error)
	DeleteListener(ctx context.Context, id, name string) (string, error)
	UpdateTags(ctx context.Context, id string, tags Tags, etag string) (string, error)
	UpdateNSGs(ctx context.Context, id string, nsgIDs []string, etag string) (string, error)
	GetWorkRequest(ctx context.Context, id string) (WorkRequest, error)
	ListWorkRequests(ctx context.Context, balancerID, compartmentID string) ([]WorkRequest, error)
	Wait(ctx context.Context, workRequestID string) (WorkRequest, error)
}

func both(c *Client) []balancers { return []balancers{c.LoadBalancers(), c.NetworkLoadBalancers()} }

const (
	testBalancer    = "ocid1.balancer.oc1.iad.b"
	testWorkRequest = "ocid1.workrequest.oc1.iad.w"
)

// basePath is where the API of a kind keeps its balancers.
func basePath(kind BalancerKind) string {
	if kind == KindLB {
		return "/20170115/loadBalancers"
	}
	return "/20200501/networkLoadBalancers"
}

// change is one change of a balancer: how to ask for it and what the service has to see.
type change struct {
	name   string
	do     func(ctx context.Context, s balancers) (string, error)
	method string
	path   string // after the collection of balancers
	token  string // opc-retry-token; "any" for one that is only the same in each repeat, "" for none
	etag   string // if-match
	body   map[string]any
}

func changes() []change {
	set := BackendSet{Name: "TCP-80", Policy: "FIVE_TUPLE", Checker: HealthChecker{Protocol: "TCP"}}
	listener := Listener{Name: "TCP-80", BackendSetName: "TCP-80", Port: 80, Protocol: "TCP"}
	one := "/" + testBalancer
	return []change{
		{"Create", func(ctx context.Context, s balancers) (string, error) {
			b := &Balancer{CompartmentID: "c", DisplayName: "n", SubnetIDs: []string{"s"}, Shape: &Shape{Name: "100Mbps"}}
			w, _, err := s.Create(ctx, b, "token")
			return w, err
		}, "POST", "", "token", "", nil},
		{"Delete", func(ctx context.Context, s balancers) (string, error) { return s.Delete(ctx, testBalancer) }, "DELETE", one, "", "", nil},
		{"CreateBackendSet", func(ctx context.Context, s balancers) (string, error) {
			return s.CreateBackendSet(ctx, testBalancer, set, "token")
		}, "POST", one + "/backendSets", "token", "", map[string]any{
			"name": "TCP-80", "policy": "FIVE_TUPLE", "healthChecker": map[string]any{"protocol": "TCP"}, "backends": []any{},
		}},
		{"UpdateBackendSet", func(ctx context.Context, s balancers) (string, error) {
			return s.UpdateBackendSet(ctx, testBalancer, set, "etag")
		}, "PUT", one + "/backendSets/TCP-80", "any", "etag", map[string]any{
			"policy": "FIVE_TUPLE", "healthChecker": map[string]any{"protocol": "TCP"}, "backends": []any{},
		}},
		{"DeleteBackendSet", func(ctx context.Context, s balancers) (string, error) {
			return s.DeleteBackendSet(ctx, testBalancer, "TCP-80")
		}, "DELETE", one + "/backendSets/TCP-80", "", "", nil},
		{"CreateListener", func(ctx context.Context, s balancers) (string, error) {
			return s.CreateListener(ctx, testBalancer, listener, "token")
		}, "POST", one + "/listeners", "token", "", map[string]any{
			"name": "TCP-80", "defaultBackendSetName": "TCP-80", "port": 80.0, "protocol": "TCP",
		}},
		{"UpdateListener", func(ctx context.Context, s balancers) (string, error) {
			return s.UpdateListener(ctx, testBalancer, listener, "etag")
		}, "PUT", one + "/listeners/TCP-80", "any", "etag", map[string]any{
			"defaultBackendSetName": "TCP-80", "port": 80.0, "protocol": "TCP",
		}},
		{"DeleteListener", func(ctx context.Context, s balancers) (string, error) {
			return s.DeleteListener(ctx, testBalancer, "TCP-80")
		}, "DELETE", one + "/listeners/TCP-80", "", "", nil},
		{"UpdateTags", func(ctx context.Context, s balancers) (string, error) {
			return s.UpdateTags(ctx, testBalancer, Tags{Freeform: map[string]string{"k": "v"}}, "etag")
		}, "PUT", one, "any", "etag", map[string]any{"freeformTags": map[string]any{"k": "v"}}},
		{"UpdateNSGs", func(ctx context.Context, s balancers) (string, error) {
			return s.UpdateNSGs(ctx, testBalancer, nil, "etag")
		}, "PUT", one + "/networkSecurityGroups", "any", "etag", map[string]any{"networkSecurityGroupIds": []any{}}},
	}
}

// checkChange compares what the service saw with what it had to see.
func checkChange(t *testing.T, kind BalancerKind, want change, got sent) {
	t.Helper()
	if path := basePath(kind) + want.path; got.Method != want.method || got.Path != path {
		t.Errorf("sent %s %s, want %s %s", got.Method, got.Path, want.method, path)
	}
	if etag := got.Header.Get("if-match"); etag != want.etag {
		t.Errorf("if-match is %q, want %q", etag, want.etag)
	}
	token := got.Header.Get("opc-retry-token")
	if kind == KindNLB && want.name == "UpdateTags" {
		want.token = "" // the API has none here
	}
	if want.token != "any" && token != want.token || want.token == "any" && token == "" {
		t.Errorf("opc-retry-token is %q, want %q", token, want.token)
	}
	if want.body != nil {
		if diff := cmp.Diff(want.body, got.Body); diff != "" {
			t.Errorf("body (-want +got):\n%s", diff)
		}
	}
}

// Each change is one request with the right precondition and retry token, and returns the work request. A repeat, after
// an answer that does not tell whether the change was made, is the same request under the same token.
func TestChanges(t *testing.T) {
	for _, kind := range []BalancerKind{KindLB, KindNLB} {
		for _, ch := range slices.Concat(changes(), changesOfOneKind()[kind]) {
			t.Run(string(kind)+"/"+ch.name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					status := 503
					c, s := serve(t, func(sent) reply {
						if status == 503 {
							status = 202
							return reply{status: 503, body: map[string]any{"code": "ServiceUnavailable", "message": "later"}}
						}
						return reply{status: status, body: map[string]any{"id": testBalancer}, headers: []string{"opc-work-request-id", testWorkRequest}}
					})
					balancers := both(c)[0]
					if kind == KindNLB {
						balancers = both(c)[1]
					}
					got, err := ch.do(t.Context(), balancers)
					if err != nil || got != testWorkRequest {
						t.Errorf("got work request %q, error %v", got, err)
					}
					requests := s.received()
					if len(requests) != 2 {
						t.Fatalf("%d requests, want 2", len(requests))
					}
					for _, r := range requests {
						checkChange(t, kind, ch, r)
					}
					if a, b := requests[0].Header.Get("opc-retry-token"), requests[1].Header.Get("opc-retry-token"); a != b {
						t.Errorf("the repeat has another retry token: %q, then %q", a, b)
					}
					if diff := cmp.Diff(requests[0].Body, requests[1].Body); diff != "" {
						t.Errorf("the repeat has another body:\n%s", diff)
					}
				})
			})
		}
	}
}

// A change that the service refuses is a typed error, and no work request.
func TestRefusedChanges(t *testing.T) {
	refusals := []struct {
		status int
		code   string
		is     error
	}{
		{404, "NotAuthorizedOrNotFound", ErrNotFound},
		{412, "NoEtagMatch", ErrPrecondition},
		{400, "LimitExceeded", ErrLimitExceeded},
		{409, "InvalidatedRetryToken", ErrInvalidRetryToken},
	}
	for _, ch := range changes() {
		for _, r := range refusals {
			t.Run(ch.name+"/"+r.code, func(t *testing.T) {
				c, s := serve(t, func(sent) reply {
					return reply{status: r.status, body: map[string]any{"code": r.code, "message": "no"}, headers: []string{"opc-work-request-id", "nothing"}}
				})
				for _, b := range both(c) {
					if got, err := ch.do(t.Context(), b); !errors.Is(err, r.is) || got != "" {
						t.Errorf("%s: got work request %q, error %v; want %v", b.Kind(), got, err, r.is)
					}
				}
				if n := len(s.received()); n != 2 {
					t.Errorf("%d requests, want one of each kind", n)
				}
			})
		}
	}
}

func TestUpdateShape(t *testing.T) {
	tests := []struct {
		shape Shape
		body  map[string]any
	}{
		{Shape{Name: "flexible", MinMbps: 10, MaxMbps: 100}, map[string]any{
			"shapeName": "flexible", "shapeDetails": map[string]any{"minimumBandwidthInMbps": 10.0, "maximumBandwidthInMbps": 100.0},
		}},
		{Shape{Name: "400Mbps"}, map[string]any{"shapeName": "400Mbps"}},
	}
	for _, test := range tests {
		t.Run(test.shape.Name, func(t *testing.T) {
			c, s := serve(t, func(sent) reply { return reply{status: 204, headers: []string{"opc-work-request-id", testWorkRequest}} })
			got, err := c.LoadBalancers().UpdateShape(t.Context(), testBalancer, test.shape, "etag")
			if err != nil || got != testWorkRequest {
				t.Fatalf("got work request %q, error %v", got, err)
			}
			checkChange(t, KindLB, change{method: "PUT", path: "/" + testBalancer + "/updateShape", token: "any", etag: "etag", body: test.body}, s.received()[0])
		})
	}
}

// The two kinds differ in their defaults, names of modes, and in how many subnets there are.
func TestCreateBodies(t *testing.T) {
	want := &Balancer{
		CompartmentID: "c", DisplayName: "n", SubnetIDs: []string{"s1"}, IPMode: IPModeDual, NSGIDs: []string{"g"},
		ReservedIPIDs: []string{"r"}, AssignedPrivateIPv4: "10.0.0.9", AssignedIPv6: "fd00::9", Shape: &Shape{Name: "flexible", MinMbps: 10, MaxMbps: 20},
		Tags: Tags{Freeform: map[string]string{"k": "v"}, Defined: map[string]map[string]any{"ns": {"k": "v"}}},
	}
	common := map[string]any{
		"compartmentId": "c", "displayName": "n", "isPrivate": false, "networkSecurityGroupIds": []any{"g"},
		"reservedIps": []any{map[string]any{"id": "r"}}, "freeformTags": map[string]any{"k": "v"},
		"definedTags": map[string]any{"ns": map[string]any{"k": "v"}}, "backendSets": map[string]any{}, "listeners": map[string]any{},
	}
	own := map[BalancerKind]map[string]any{
		KindLB: {
			"subnetIds": []any{"s1"}, "ipMode": "IPV6", "shapeName": "flexible",
			"shapeDetails": map[string]any{"minimumBandwidthInMbps": 10.0, "maximumBandwidthInMbps": 20.0},
		},
		KindNLB: {"subnetId": "s1", "nlbIpVersion": "IPV4_AND_IPV6", "assignedPrivateIpv4": "10.0.0.9", "assignedIpv6": "fd00::9"},
	}
	c, s := serve(t, func(sent) reply {
		return reply{status: 202, body: map[string]any{"id": testBalancer}, headers: []string{"opc-work-request-id", testWorkRequest}}
	})
	for i, b := range both(c) {
		work, id, err := b.Create(t.Context(), want, "token")
		if err != nil || work != testWorkRequest {
			t.Fatalf("%s: got work request %q, error %v", b.Kind(), work, err)
		}
		if wantID := map[BalancerKind]string{KindNLB: testBalancer}[b.Kind()]; id != wantID {
			t.Errorf("%s: got id %q, want %q", b.Kind(), id, wantID)
		}
		body := map[string]any{}
		for _, m := range []map[string]any{common, own[b.Kind()]} {
			for k, v := range m {
				body[k] = v
			}
		}
		if diff := cmp.Diff(body, s.received()[i].Body); diff != "" {
			t.Errorf("%s: body (-want +got):\n%s", b.Kind(), diff)
		}
	}
}

func TestGetBalancer(t *testing.T) {
	c, _ := serve(t, func(r sent) reply {
		body := map[string]any{
			"id": testBalancer, "lifecycleState": "ACTIVE", "displayName": "n", "compartmentId": "c", "isPrivate": true,
			"ipMode": "IPV6", "nlbIpVersion": "IPV4_AND_IPV6", "subnetIds": []any{"s"}, "subnetId": "s",
			"ipAddresses": []any{
				map[string]any{"ipAddress": "192.0.2.1", "isPublic": true, "reservedIp": map[string]any{"id": "r"}},
				map[string]any{"ipAddress": "fd00::1"},
			},
		}
		return reply{status: 200, body: body, headers: []string{"etag", "e1"}}
	})
	for _, b := range both(c) {
		got, err := b.Get(t.Context(), testBalancer)
		if err != nil {
			t.Fatal(err)
		}
		want := &Balancer{
			Kind: b.Kind(), ID: testBalancer, State: "ACTIVE", DisplayName: "n", CompartmentID: "c", Private: true, ETag: "e1",
			IPMode: IPModeDual, SubnetIDs: []string{"s"},
			Addresses: []BalancerAddress{{IP: "192.0.2.1", Public: true, ReservedID: "r"}, {IP: "fd00::1"}},
		}
		if diff := cmp.Diff(want, got, modelled); diff != "" {
			t.Errorf("%s (-want +got):\n%s", b.Kind(), diff)
		}
	}
}

// A create whose balancer does not show up in reads at once is not taken for gone; after a deletion the same 404 is an answer.
func TestReadsAfterCreateAndDelete(t *testing.T) {
	for i, kind := range []BalancerKind{KindLB, KindNLB} {
		t.Run(string(kind), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				unseen := map[string]int{"workRequest": 2, "balancer": 2}
				notFound := reply{status: 404, body: map[string]any{"code": "NotAuthorizedOrNotFound", "message": "no"}}
				c, _ := serve(t, func(r sent) reply {
					switch {
					case r.Method != http.MethodGet:
						return reply{status: 202, body: map[string]any{"id": testBalancer}, headers: []string{"opc-work-request-id", testWorkRequest}}
					case strings.HasSuffix(r.Path, testWorkRequest):
						if unseen["workRequest"]--; unseen["workRequest"] >= 0 {
							return notFound
						}
						return reply{status: 200, body: map[string]any{
							"id": testWorkRequest, "lifecycleState": "SUCCEEDED", "status": "SUCCEEDED", "loadBalancerId": testBalancer,
							"type": "CreateLoadBalancer", "operationType": "CREATE_NETWORK_LOAD_BALANCER",
							"resources": []any{
								map[string]any{"entityType": "Backend", "identifier": "other"},
								map[string]any{"entityType": "NetworkLoadBalancer", "identifier": testBalancer},
							},
						}}
					}
					if unseen["balancer"]--; unseen["balancer"] >= 0 {
						return notFound
					}
					return reply{status: 200, body: map[string]any{"id": testBalancer, "lifecycleState": "ACTIVE"}}
				})
				b := both(c)[i]
				work, _, err := b.Create(t.Context(), &Balancer{SubnetIDs: []string{"s"}, Shape: &Shape{Name: "100Mbps"}}, "token")
				if err != nil {
					t.Fatal(err)
				}
				done, err := b.Wait(t.Context(), work)
				if err != nil || done.ResourceID != testBalancer || done.State != WorkRequestSucceeded {
					t.Fatalf("work request is %+v, error %v", done, err)
				}
				if got, err := b.Get(t.Context(), done.ResourceID); err != nil || got.State != "ACTIVE" {
					t.Fatalf("got %+v, error %v", got, err)
				}

				if _, err := b.Delete(t.Context(), testBalancer); err != nil {
					t.Fatal(err)
				}
				unseen["balancer"] = 1000
				started := time.Now()
				if _, err := b.Get(t.Context(), testBalancer); !errors.Is(err, ErrNotFound) || time.Since(started) > 0 {
					t.Errorf("read after the deletion: error %v after %v", err, time.Since(started))
				}
			})
		})
	}
}

// workRequestService answers for one NLB work request and its error list.
func workRequestService(errorList reply) func(sent) reply {
	return func(r sent) reply {
		if strings.HasSuffix(r.Path, "/errors") {
			return errorList
		}
		return reply{status: 200, body: map[string]any{
			"id": testWorkRequest, "compartmentId": "c", "status": "FAILED", "operationType": "CREATE_BACKENDSET", "percentComplete": 40,
		}}
	}
}

func TestFailedWorkRequestCarriesItsErrors(t *testing.T) {
	t.Run("lb", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			c, _ := serve(t, func(sent) reply {
				return reply{status: 200, body: map[string]any{
					"id": testWorkRequest, "lifecycleState": "FAILED", "type": "CreateListener", "message": "failed",
					"errorDetails": []any{map[string]any{"errorCode": "BAD_INPUT", "message": "limit of 2 has been reached"}},
				}}
			})
			_, err := c.LoadBalancers().Wait(t.Context(), testWorkRequest)
			checkProblems(t, err, []WorkRequestProblem{{Code: "BAD_INPUT", Message: "limit of 2 has been reached"}})
		})
	})
	t.Run("lb with a message only", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			c, _ := serve(t, func(sent) reply {
				return reply{status: 200, body: map[string]any{"id": testWorkRequest, "lifecycleState": "FAILED", "message": "no address left"}}
			})
			_, err := c.LoadBalancers().Wait(t.Context(), testWorkRequest)
			checkProblems(t, err, []WorkRequestProblem{{Message: "no address left"}})
		})
	})
	t.Run("nlb", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			c, s := serve(t, workRequestService(reply{status: 200, body: map[string]any{"items": []any{
				map[string]any{"code": "InvalidParameter", "message": "no such thing"}, map[string]any{"code": "409"},
			}}}))
			_, err := c.NetworkLoadBalancers().Wait(t.Context(), testWorkRequest)
			checkProblems(t, err, []WorkRequestProblem{{Code: "InvalidParameter", Message: "no such thing"}, {Code: "409"}})
			query, _ := url.ParseQuery(s.received()[1].Query)
			if query.Get("compartmentId") != "c" {
				t.Errorf("error list asked for with %v", query)
			}
		})
	})
	t.Run("nlb without access to the error list", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			c, _ := serve(t, workRequestService(reply{status: 404, body: map[string]any{"code": "NotAuthorizedOrNotFound", "message": "no"}}))
			_, err := c.NetworkLoadBalancers().Wait(t.Context(), testWorkRequest)
			var failed *WorkRequestError
			if !errors.As(err, &failed) || len(failed.WorkRequest.Errors) != 1 || !strings.Contains(err.Error(), "ListWorkRequestErrors") {
				t.Errorf("error %v", err)
			}
		})
	})
}

func checkProblems(t *testing.T, err error, want []WorkRequestProblem) {
	t.Helper()
	var failed *WorkRequestError
	if !errors.As(err, &failed) {
		t.Fatalf("error %v, want a *WorkRequestError", err)
	}
	if diff := cmp.Diff(want, failed.WorkRequest.Errors); diff != "" {
		t.Errorf("problems (-want +got):\n%s", diff)
	}
	for _, p := range want {
		if !strings.Contains(err.Error(), p.Message) {
			t.Errorf("%q does not say %q", err, p.Message)
		}
	}
}

// The API lists the work requests of network load balancers by compartment.
func TestListWorkRequestsOfOneNLB(t *testing.T) {
	of := func(id, balancer string) any {
		return map[string]any{"id": id, "status": "IN_PROGRESS", "resources": []any{
			map[string]any{"entityType": "Compartment", "identifier": "c"},
			map[string]any{"entityType": "networkLoadBalancer", "identifier": balancer},
		}}
	}
	c, _ := serve(t, func(sent) reply {
		return reply{status: 200, body: map[string]any{"items": []any{of("w1", "other"), of("w2", testBalancer), map[string]any{"id": "w3"}}}}
	})
	got, err := c.NetworkLoadBalancers().ListWorkRequests(t.Context(), testBalancer, "c")
	want := []WorkRequest{{ID: "w2", State: WorkRequestInProgress, ResourceID: testBalancer}}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("error %v, work requests (-want +got):\n%s", err, diff)
	}
}

func TestNoWorkRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, s := serve(t, func(sent) reply { return reply{status: 204} })
		for _, b := range both(c) {
			work, err := b.Delete(t.Context(), testBalancer)
			if work != "" || err != nil {
				t.Errorf("%s: got work request %q, error %v", b.Kind(), work, err)
			}
			if _, err := b.Wait(t.Context(), work); !errors.Is(err, ErrNoWorkRequest) {
				t.Errorf("%s: waiting for no work request: error %v", b.Kind(), err)
			}
		}
		if n := len(s.received()); n != 2 {
			t.Errorf("%d requests, want the two deletions", n)
		}
	})
}
