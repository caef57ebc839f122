// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package oci

import (
	"context"
	"net/http"
	"sync"

	lb "github.com/oracle/oci-go-sdk/v65/loadbalancer"
)

// LoadBalancers manages load balancers. Every change answers with the OCID of a work request, and the service queues
// changes that arrive while another one runs.
//
// What the domain types do not model stays as it is: an update starts from the object as it was read (see BackendSet and
// Listener). An ETag is that of the whole load balancer; a change under an outdated one is ErrPrecondition.
type LoadBalancers struct {
	client *Client
	work   *waiter

	mu sync.Mutex
	// creating holds the work requests of this process's creates whose load balancer is not known yet.
	creating map[string]struct{}
}

// LoadBalancers returns the load balancer service.
func (c *Client) LoadBalancers() *LoadBalancers { return c.loadBalancers }

func newLoadBalancers(c *Client) *LoadBalancers {
	s := &LoadBalancers{client: c, creating: map[string]struct{}{}}
	s.work = newWaiter(ServiceLoadBalancer, s.GetWorkRequest)
	return s
}

// Kind returns KindLB.
func (s *LoadBalancers) Kind() BalancerKind { return KindLB }

// Get reads a load balancer with its ETag, backend sets and listeners.
func (s *LoadBalancers) Get(ctx context.Context, id string) (*Balancer, error) {
	o := readOp(ServiceLoadBalancer, "GetLoadBalancer", "load_balancer", "get")
	o.target = id
	r, err := invoke(ctx, s.client, o, func(ctx context.Context) (lb.GetLoadBalancerResponse, *http.Response, error) {
		r, err := s.client.loadBalancer.GetLoadBalancer(ctx, lb.GetLoadBalancerRequest{LoadBalancerId: &id})
		return r, r.RawResponse, err
	})
	if err != nil {
		return nil, err
	}
	b := lbFromSDK(r.LoadBalancer)
	b.ETag = value(r.ETag)
	if b.ID == "" {
		b.ID = id
	}
	return b, nil
}

// List lists the load balancers of a compartment in every state, without ETags. An empty displayName means no filter;
// otherwise it has to match exactly.
func (s *LoadBalancers) List(ctx context.Context, compartmentID, displayName string) ([]*Balancer, error) {
	limit := int64(s.client.pageSize)
	return listAll(ctx, s.client, readOp(ServiceLoadBalancer, "ListLoadBalancers", "load_balancer", "list"), lbFromSDK,
		func(ctx context.Context, token *string) (page[lb.LoadBalancer], *http.Response, error) {
			r, err := s.client.loadBalancer.ListLoadBalancers(ctx, lb.ListLoadBalancersRequest{
				CompartmentId: &compartmentID,
				DisplayName:   present(displayName),
				Limit:         &limit,
				Page:          token,
			})
			return page[lb.LoadBalancer]{r.Items, r.OpcNextPage}, r.RawResponse, err
		})
}

// Create asks for a load balancer. The answer has no body: the OCID is known from the work request once the service has
// taken it up, so id is empty here.
func (s *LoadBalancers) Create(ctx context.Context, b *Balancer, token string) (workRequestID, id string, err error) {
	request := lb.CreateLoadBalancerRequest{CreateLoadBalancerDetails: lbCreateDetails(b), OpcRetryToken: retryToken(token)}
	workRequestID, err = s.change(ctx, "CreateLoadBalancer", "load_balancer", "create", func(ctx context.Context) (*string, *http.Response, error) {
		r, err := s.client.loadBalancer.CreateLoadBalancer(ctx, request)
		return r.OpcWorkRequestId, r.RawResponse, err
	})
	if err == nil && workRequestID != "" {
		s.mu.Lock()
		s.creating[workRequestID] = struct{}{}
		s.mu.Unlock()
	}
	return workRequestID, "", err
}

// Delete asks for the deletion of a load balancer. One that is gone already is ErrNotFound.
func (s *LoadBalancers) Delete(ctx context.Context, id string) (string, error) {
	workRequestID, err := s.change(ctx, "DeleteLoadBalancer", "load_balancer", "delete", func(ctx context.Context) (*string, *http.Response, error) {
		r, err := s.client.loadBalancer.DeleteLoadBalancer(ctx, lb.DeleteLoadBalancerRequest{LoadBalancerId: &id})
		return r.OpcWorkRequestId, r.RawResponse, err
	})
	if err == nil {
		s.client.forget(id)
	}
	return workRequestID, err
}

// CreateBackendSet adds a backend set.
func (s *LoadBalancers) CreateBackendSet(ctx context.Context, id string, bs BackendSet, token string) (string, error) {
	request := lb.CreateBackendSetRequest{
		LoadBalancerId:          &id,
		OpcRetryToken:           retryToken(token),
		CreateBackendSetDetails: lbCreateBackendSetDetails(bs),
	}
	return s.change(ctx, "CreateBackendSet", "load_balancer_backend_set", "create", func(ctx context.Context) (*string, *http.Response, error) {
		r, err := s.client.loadBalancer.CreateBackendSet(ctx, request)
		return r.OpcWorkRequestId, r.RawResponse, err
	})
}

// UpdateBackendSet makes a backend set what bs says, backends included.
func (s *LoadBalancers) UpdateBackendSet(ctx context.Context, id string, bs BackendSet, etag string) (string, error) {
	request := lb.UpdateBackendSetRequest{
		LoadBalancerId:          &id,
		BackendSetName:          &bs.Name,
		IfMatch:                 present(etag),
		OpcRetryToken:           retryToken(""),
		UpdateBackendSetDetails: lbUpdateBackendSetDetails(bs),
	}
	return s.change(ctx, "UpdateBackendSet", "load_balancer_backend_set", "update", func(ctx context.Context) (*string, *http.Response, error) {
		r, err := s.client.loadBalancer.UpdateBackendSet(ctx, request)
		return r.OpcWorkRequestId, r.RawResponse, err
	})
}

// DeleteBackendSet removes a backend set, which no listener may use any more.
func (s *LoadBalancers) DeleteBackendSet(ctx context.Context, id, name string) (string, error) {
	return s.change(ctx, "DeleteBackendSet", "load_balancer_backend_set", "delete", func(ctx context.Context) (*string, *http.Response, error) {
		r, err := s.client.loadBalancer.DeleteBackendSet(ctx, lb.DeleteBackendSetRequest{LoadBalancerId: &id, BackendSetName: &name})
		return r.OpcWorkRequestId, r.RawResponse, err
	})
}

// CreateListener adds a listener.
func (s *LoadBalancers) CreateListener(ctx context.Context, id string, l Listener, token string) (string, error) {
	request := lb.CreateListenerRequest{
		LoadBalancerId:        &id,
		OpcRetryToken:         retryToken(token),
		CreateListenerDetails: lbCreateListenerDetails(l),
	}
	return s.change(ctx, "CreateListener", "load_balancer_listener", "create", func(ctx context.Context) (*string, *http.Response, error) {
		r, err := s.client.loadBalancer.CreateListener(ctx, request)
		return r.OpcWorkRequestId, r.RawResponse, err
	})
}

// UpdateListener makes a listener what l says.
func (s *LoadBalancers) UpdateListener(ctx context.Context, id string, l Listener, etag string) (string, error) {
	request := lb.UpdateListenerRequest{
		LoadBalancerId:        &id,
		ListenerName:          &l.Name,
		IfMatch:               present(etag),
		OpcRetryToken:         retryToken(""),
		UpdateListenerDetails: lbUpdateListenerDetails(l),
	}
	return s.change(ctx, "UpdateListener", "load_balancer_listener", "update", func(ctx context.Context) (*string, *http.Response, error) {
		r, err := s.client.loadBalancer.UpdateListener(ctx, request)
		return r.OpcWorkRequestId, r.RawResponse, err
	})
}

// DeleteListener removes a listener.
func (s *LoadBalancers) DeleteListener(ctx context.Context, id, name string) (string, error) {
	return s.change(ctx, "DeleteListener", "load_balancer_listener", "delete", func(ctx context.Context) (*string, *http.Response, error) {
		r, err := s.client.loadBalancer.DeleteListener(ctx, lb.DeleteListenerRequest{LoadBalancerId: &id, ListenerName: &name})
		return r.OpcWorkRequestId, r.RawResponse, err
	})
}

// UpdateTags replaces the tags of a load balancer. A nil map leaves the tags of that sort as they are; an empty one
// removes them all.
func (s *LoadBalancers) UpdateTags(ctx context.Context, id string, tags Tags, etag string) (string, error) {
	request := lb.UpdateLoadBalancerRequest{
		LoadBalancerId:            &id,
		IfMatch:                   present(etag),
		OpcRetryToken:             retryToken(""),
		UpdateLoadBalancerDetails: lb.UpdateLoadBalancerDetails{FreeformTags: tags.Freeform, DefinedTags: tags.Defined},
	}
	return s.change(ctx, "UpdateLoadBalancer", "load_balancer", "update", func(ctx context.Context) (*string, *http.Response, error) {
		r, err := s.client.loadBalancer.UpdateLoadBalancer(ctx, request)
		return r.OpcWorkRequestId, r.RawResponse, err
	})
}

// UpdateNSGs replaces the network security groups of a load balancer; none removes them all.
func (s *LoadBalancers) UpdateNSGs(ctx context.Context, id string, nsgIDs []string, etag string) (string, error) {
	request := lb.UpdateNetworkSecurityGroupsRequest{
		LoadBalancerId: &id,
		IfMatch:        present(etag),
		OpcRetryToken:  retryToken(""),
		UpdateNetworkSecurityGroupsDetails: lb.UpdateNetworkSecurityGroupsDetails{
			NetworkSecurityGroupIds: orEmpty(nsgIDs),
		},
	}
	return s.change(ctx, "UpdateNetworkSecurityGroups", "network_security_groups", "update", func(ctx context.Context) (*string, *http.Response, error) {
		r, err := s.client.loadBalancer.UpdateNetworkSecurityGroups(ctx, request)
		return r.OpcWorkRequestId, r.RawResponse, err
	})
}

// UpdateShape changes the size of a load balancer.
func (s *LoadBalancers) UpdateShape(ctx context.Context, id string, shape Shape, etag string) (string, error) {
	request := lb.UpdateLoadBalancerShapeRequest{
		LoadBalancerId: &id,
		IfMatch:        present(etag),
		OpcRetryToken:  retryToken(""),
		UpdateLoadBalancerShapeDetails: lb.UpdateLoadBalancerShapeDetails{
			ShapeName:    &shape.Name,
			ShapeDetails: lbShapeDetails(shape),
		},
	}
	return s.change(ctx, "UpdateLoadBalancerShape", "load_balancer_shape", "update", func(ctx context.Context) (*string, *http.Response, error) {
		r, err := s.client.loadBalancer.UpdateLoadBalancerShape(ctx, request)
		return r.OpcWorkRequestId, r.RawResponse, err
	})
}

// GetWorkRequest reads a work request, with the error list of a FAILED one.
func (s *LoadBalancers) GetWorkRequest(ctx context.Context, id string) (WorkRequest, error) {
	if id == "" {
		return WorkRequest{}, ErrNoWorkRequest
	}
	o := readOp(ServiceLoadBalancer, "GetWorkRequest", "load_balancer_work_request", "get")
	o.target = id
	r, err := invoke(ctx, s.client, o, func(ctx context.Context) (lb.GetWorkRequestResponse, *http.Response, error) {
		r, err := s.client.loadBalancer.GetWorkRequest(ctx, lb.GetWorkRequestRequest{WorkRequestId: &id})
		return r, r.RawResponse, err
	})
	if err != nil {
		return WorkRequest{}, err
	}
	w := lbWorkRequestFromSDK(r.WorkRequest)
	if w.ID == "" {
		w.ID = id
	}
	w.RequestID = value(r.OpcRequestId)
	s.rememberCreated(w)
	return w, nil
}

// ListWorkRequests lists all work requests of a load balancer, those that ended long ago too. The compartment is not
// needed here.
func (s *LoadBalancers) ListWorkRequests(ctx context.Context, balancerID, _ string) ([]WorkRequest, error) {
	limit := int64(s.client.pageSize)
	return listAll(ctx, s.client, readOp(ServiceLoadBalancer, "ListWorkRequests", "load_balancer_work_request", "list"), lbWorkRequestFromSDK,
		func(ctx context.Context, token *string) (page[lb.WorkRequest], *http.Response, error) {
			r, err := s.client.loadBalancer.ListWorkRequests(ctx, lb.ListWorkRequestsRequest{
				LoadBalancerId: &balancerID,
				Limit:          &limit,
				Page:           token,
			})
			return page[lb.WorkRequest]{r.Items, r.OpcNextPage}, r.RawResponse, err
		})
}

// Wait returns when a work request has ended: nil error for SUCCEEDED, a *WorkRequestError for FAILED.
func (s *LoadBalancers) Wait(ctx context.Context, workRequestID string) (WorkRequest, error) {
	return s.work.Wait(ctx, workRequestID)
}

func (s *LoadBalancers) change(ctx context.Context, name, resource, verb string, fn func(context.Context) (*string, *http.Response, error)) (string, error) {
	return s.client.change(ctx, writeOp(ServiceLoadBalancer, name, resource, verb), fn)
}

// rememberCreated remembers a load balancer of this process's making as soon as its work request names it.
func (s *LoadBalancers) rememberCreated(w WorkRequest) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ours := s.creating[w.ID]; !ours {
		return
	}
	if w.ResourceID != "" {
		s.client.remember(w.ResourceID)
	}
	if w.ResourceID != "" || w.State.Done() {
		delete(s.creating, w.ID)
	}
}
