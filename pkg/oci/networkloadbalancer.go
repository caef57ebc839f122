// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package oci

import (
	"context"
	"fmt"
	"net/http"

	nlb "github.com/oracle/oci-go-sdk/v65/networkloadbalancer"
)

// NetworkLoadBalancers manages network load balancers. Every change answers with the OCID of a work request and turns the
// balancer's state to UPDATING; until that ends, the service refuses further changes with ErrIncorrectState.
//
// What the domain types do not model stays as it is: an update starts from the object as it was read (see BackendSet and
// Listener). An ETag is that of the whole balancer; a change under an outdated one is ErrPrecondition.
type NetworkLoadBalancers struct {
	client *Client
	work   *waiter
}

// NetworkLoadBalancers returns the network load balancer service.
func (c *Client) NetworkLoadBalancers() *NetworkLoadBalancers { return c.networkLoadBalancers }

func newNetworkLoadBalancers(c *Client) *NetworkLoadBalancers {
	s := &NetworkLoadBalancers{client: c}
	s.work = newWaiter(ServiceNetworkLoadBalancer, s.GetWorkRequest)
	return s
}

// Kind returns KindNLB.
func (s *NetworkLoadBalancers) Kind() BalancerKind { return KindNLB }

// Get reads a network load balancer with its ETag, backend sets and listeners.
func (s *NetworkLoadBalancers) Get(ctx context.Context, id string) (*Balancer, error) {
	o := readOp(ServiceNetworkLoadBalancer, "GetNetworkLoadBalancer", "network_load_balancer", "get")
	o.target = id
	r, err := invoke(ctx, s.client, o, func(ctx context.Context) (nlb.GetNetworkLoadBalancerResponse, *http.Response, error) {
		r, err := s.client.networkLoadBalancer.GetNetworkLoadBalancer(ctx, nlb.GetNetworkLoadBalancerRequest{NetworkLoadBalancerId: &id})
		return r, r.RawResponse, err
	})
	if err != nil {
		return nil, err
	}
	b := nlbFromSDK(r.NetworkLoadBalancer)
	b.ETag = value(r.Etag)
	if b.ID == "" {
		b.ID = id
	}
	return b, nil
}

// List lists the network load balancers of a compartment in every state, without ETags. An empty displayName means no
// filter; otherwise it has to match exactly.
func (s *NetworkLoadBalancers) List(ctx context.Context, compartmentID, displayName string) ([]*Balancer, error) {
	return listAll(ctx, s.client, readOp(ServiceNetworkLoadBalancer, "ListNetworkLoadBalancers", "network_load_balancer", "list"), nlbSummaryFromSDK,
		func(ctx context.Context, token *string) (page[nlb.NetworkLoadBalancerSummary], *http.Response, error) {
			r, err := s.client.networkLoadBalancer.ListNetworkLoadBalancers(ctx, nlb.ListNetworkLoadBalancersRequest{
				CompartmentId: &compartmentID,
				DisplayName:   present(displayName),
				Limit:         &s.client.pageSize,
				Page:          token,
			})
			return page[nlb.NetworkLoadBalancerSummary]{r.Items, r.OpcNextPage}, r.RawResponse, err
		})
}

// Create asks for a network load balancer and returns its OCID along with the work request's.
func (s *NetworkLoadBalancers) Create(ctx context.Context, b *Balancer, token string) (workRequestID, id string, err error) {
	request := nlb.CreateNetworkLoadBalancerRequest{CreateNetworkLoadBalancerDetails: nlbCreateDetails(b), OpcRetryToken: retryToken(token)}
	o := writeOp(ServiceNetworkLoadBalancer, "CreateNetworkLoadBalancer", "network_load_balancer", "create")
	r, err := invoke(ctx, s.client, o, func(ctx context.Context) (nlb.CreateNetworkLoadBalancerResponse, *http.Response, error) {
		r, err := s.client.networkLoadBalancer.CreateNetworkLoadBalancer(ctx, request)
		return r, r.RawResponse, err
	})
	if err != nil {
		return "", "", err
	}
	workRequestID, id = value(r.OpcWorkRequestId), value(r.Id)
	s.client.remember(workRequestID)
	s.client.remember(id)
	return workRequestID, id, nil
}

// Delete asks for the deletion of a network load balancer. One that is gone already is ErrNotFound.
func (s *NetworkLoadBalancers) Delete(ctx context.Context, id string) (string, error) {
	workRequestID, err := s.change(ctx, "DeleteNetworkLoadBalancer", "network_load_balancer", "delete", func(ctx context.Context) (*string, *http.Response, error) {
		r, err := s.client.networkLoadBalancer.DeleteNetworkLoadBalancer(ctx, nlb.DeleteNetworkLoadBalancerRequest{NetworkLoadBalancerId: &id})
		return r.OpcWorkRequestId, r.RawResponse, err
	})
	if err == nil {
		s.client.forget(id)
	}
	return workRequestID, err
}

// CreateBackendSet adds a backend set.
func (s *NetworkLoadBalancers) CreateBackendSet(ctx context.Context, id string, bs BackendSet, token string) (string, error) {
	request := nlb.CreateBackendSetRequest{
		NetworkLoadBalancerId:   &id,
		OpcRetryToken:           retryToken(token),
		CreateBackendSetDetails: nlbCreateBackendSetDetails(bs),
	}
	return s.change(ctx, "CreateBackendSet", "load_balancer_backend_set", "create", func(ctx context.Context) (*string, *http.Response, error) {
		r, err := s.client.networkLoadBalancer.CreateBackendSet(ctx, request)
		return r.OpcWorkRequestId, r.RawResponse, err
	})
}

// UpdateBackendSet makes a backend set what bs says, backends included.
func (s *NetworkLoadBalancers) UpdateBackendSet(ctx context.Context, id string, bs BackendSet, etag string) (string, error) {
	request := nlb.UpdateBackendSetRequest{
		NetworkLoadBalancerId:   &id,
		BackendSetName:          &bs.Name,
		IfMatch:                 present(etag),
		OpcRetryToken:           retryToken(""),
		UpdateBackendSetDetails: nlbUpdateBackendSetDetails(bs),
	}
	return s.change(ctx, "UpdateBackendSet", "load_balancer_backend_set", "update", func(ctx context.Context) (*string, *http.Response, error) {
		r, err := s.client.networkLoadBalancer.UpdateBackendSet(ctx, request)
		return r.OpcWorkRequestId, r.RawResponse, err
	})
}

// DeleteBackendSet removes a backend set, which no listener may use any more.
func (s *NetworkLoadBalancers) DeleteBackendSet(ctx context.Context, id, name string) (string, error) {
	request := nlb.DeleteBackendSetRequest{NetworkLoadBalancerId: &id, BackendSetName: &name}
	return s.change(ctx, "DeleteBackendSet", "load_balancer_backend_set", "delete", func(ctx context.Context) (*string, *http.Response, error) {
		r, err := s.client.networkLoadBalancer.DeleteBackendSet(ctx, request)
		return r.OpcWorkRequestId, r.RawResponse, err
	})
}

// CreateListener adds a listener.
func (s *NetworkLoadBalancers) CreateListener(ctx context.Context, id string, l Listener, token string) (string, error) {
	request := nlb.CreateListenerRequest{
		NetworkLoadBalancerId: &id,
		OpcRetryToken:         retryToken(token),
		CreateListenerDetails: nlb.CreateListenerDetails(nlbListenerDetails(l.Name, l)),
	}
	return s.change(ctx, "CreateListener", "load_balancer_listener", "create", func(ctx context.Context) (*string, *http.Response, error) {
		r, err := s.client.networkLoadBalancer.CreateListener(ctx, request)
		return r.OpcWorkRequestId, r.RawResponse, err
	})
}

// UpdateListener makes a listener what l says.
func (s *NetworkLoadBalancers) UpdateListener(ctx context.Context, id string, l Listener, etag string) (string, error) {
	request := nlb.UpdateListenerRequest{
		NetworkLoadBalancerId: &id,
		ListenerName:          &l.Name,
		IfMatch:               present(etag),
		OpcRetryToken:         retryToken(""),
		UpdateListenerDetails: nlbUpdateListenerDetails(l),
	}
	return s.change(ctx, "UpdateListener", "load_balancer_listener", "update", func(ctx context.Context) (*string, *http.Response, error) {
		r, err := s.client.networkLoadBalancer.UpdateListener(ctx, request)
		return r.OpcWorkRequestId, r.RawResponse, err
	})
}

// DeleteListener removes a listener.
func (s *NetworkLoadBalancers) DeleteListener(ctx context.Context, id, name string) (string, error) {
	request := nlb.DeleteListenerRequest{NetworkLoadBalancerId: &id, ListenerName: &name}
	return s.change(ctx, "DeleteListener", "load_balancer_listener", "delete", func(ctx context.Context) (*string, *http.Response, error) {
		r, err := s.client.networkLoadBalancer.DeleteListener(ctx, request)
		return r.OpcWorkRequestId, r.RawResponse, err
	})
}

// UpdateTags replaces the tags of a network load balancer. A nil map leaves the tags of that sort as they are; an empty
// one removes them all.
func (s *NetworkLoadBalancers) UpdateTags(ctx context.Context, id string, tags Tags, etag string) (string, error) {
	request := nlb.UpdateNetworkLoadBalancerRequest{
		NetworkLoadBalancerId:            &id,
		IfMatch:                          present(etag),
		UpdateNetworkLoadBalancerDetails: nlb.UpdateNetworkLoadBalancerDetails{FreeformTags: tags.Freeform, DefinedTags: tags.Defined},
	}
	return s.change(ctx, "UpdateNetworkLoadBalancer", "network_load_balancer", "update", func(ctx context.Context) (*string, *http.Response, error) {
		r, err := s.client.networkLoadBalancer.UpdateNetworkLoadBalancer(ctx, request)
		return r.OpcWorkRequestId, r.RawResponse, err
	})
}

// UpdateNSGs replaces the network security groups of a network load balancer; none removes them all.
func (s *NetworkLoadBalancers) UpdateNSGs(ctx context.Context, id string, nsgIDs []string, etag string) (string, error) {
	request := nlb.UpdateNetworkSecurityGroupsRequest{
		NetworkLoadBalancerId: &id,
		IfMatch:               present(etag),
		OpcRetryToken:         retryToken(""),
		UpdateNetworkSecurityGroupsDetails: nlb.UpdateNetworkSecurityGroupsDetails{
			NetworkSecurityGroupIds: orEmpty(nsgIDs),
		},
	}
	return s.change(ctx, "UpdateNetworkSecurityGroups", "network_security_groups", "update", func(ctx context.Context) (*string, *http.Response, error) {
		r, err := s.client.networkLoadBalancer.UpdateNetworkSecurityGroups(ctx, request)
		return r.OpcWorkRequestId, r.RawResponse, err
	})
}

// UpdateIPMode gives a network load balancer another set of address families: IPModeV4 or IPModeDual. A family can go only
// when no listener needs it. An empty assignedIPv6 lets the service choose the new address.
func (s *NetworkLoadBalancers) UpdateIPMode(ctx context.Context, id, mode, assignedIPv6, etag string) (string, error) {
	request := nlb.UpdateNetworkLoadBalancerRequest{
		NetworkLoadBalancerId: &id,
		IfMatch:               present(etag),
		UpdateNetworkLoadBalancerDetails: nlb.UpdateNetworkLoadBalancerDetails{
			NlbIpVersion: nlb.NlbIpVersionEnum(mode),
			AssignedIpv6: present(assignedIPv6),
		},
	}
	return s.change(ctx, "UpdateNetworkLoadBalancer", "network_load_balancer", "update", func(ctx context.Context) (*string, *http.Response, error) {
		r, err := s.client.networkLoadBalancer.UpdateNetworkLoadBalancer(ctx, request)
		return r.OpcWorkRequestId, r.RawResponse, err
	})
}

// GetWorkRequest reads a work request, with the error list of a FAILED one.
func (s *NetworkLoadBalancers) GetWorkRequest(ctx context.Context, id string) (WorkRequest, error) {
	if id == "" {
		return WorkRequest{}, ErrNoWorkRequest
	}
	o := readOp(ServiceNetworkLoadBalancer, "GetWorkRequest", "load_balancer_work_request", "get")
	o.target = id
	r, err := invoke(ctx, s.client, o, func(ctx context.Context) (nlb.GetWorkRequestResponse, *http.Response, error) {
		r, err := s.client.networkLoadBalancer.GetWorkRequest(ctx, nlb.GetWorkRequestRequest{WorkRequestId: &id})
		return r, r.RawResponse, err
	})
	if err != nil {
		return WorkRequest{}, err
	}
	w := nlbWorkRequestFromSDK(r.WorkRequest)
	if w.ID == "" {
		w.ID = id
	}
	w.RequestID = value(r.OpcRequestId)
	if w.State == WorkRequestFailed {
		w.Errors, err = s.workRequestErrors(ctx, id, value(r.CompartmentId))
		switch {
		case err == nil:
		case ctx.Err() != nil:
			return WorkRequest{}, err
		default:
			// That the work failed is known; the missing explanation must not hide it.
			w.Errors = []WorkRequestProblem{{Message: fmt.Sprintf("the error list could not be read: %v", err)}}
		}
	}
	return w, nil
}

func (s *NetworkLoadBalancers) workRequestErrors(ctx context.Context, id, compartmentID string) ([]WorkRequestProblem, error) {
	return listAll(ctx, s.client, readOp(ServiceNetworkLoadBalancer, "ListWorkRequestErrors", "load_balancer_work_request", "list"), nlbWorkRequestProblem,
		func(ctx context.Context, token *string) (page[nlb.WorkRequestError], *http.Response, error) {
			r, err := s.client.networkLoadBalancer.ListWorkRequestErrors(ctx, nlb.ListWorkRequestErrorsRequest{
				WorkRequestId: &id,
				CompartmentId: &compartmentID,
				Limit:         &s.client.pageSize,
				Page:          token,
			})
			return page[nlb.WorkRequestError]{r.Items, r.OpcNextPage}, r.RawResponse, err
		})
}

// ListWorkRequests lists the work requests of a network load balancer, those that ended long ago too and all without
// their error lists. The API lists by compartment only, so this reads those of every balancer in it.
func (s *NetworkLoadBalancers) ListWorkRequests(ctx context.Context, balancerID, compartmentID string) ([]WorkRequest, error) {
	all, err := listAll(ctx, s.client, readOp(ServiceNetworkLoadBalancer, "ListWorkRequests", "load_balancer_work_request", "list"), func(w nlb.WorkRequestSummary) nlb.WorkRequestSummary { return w },
		func(ctx context.Context, token *string) (page[nlb.WorkRequestSummary], *http.Response, error) {
			r, err := s.client.networkLoadBalancer.ListWorkRequests(ctx, nlb.ListWorkRequestsRequest{
				CompartmentId: &compartmentID,
				Limit:         &s.client.pageSize,
				Page:          token,
			})
			return page[nlb.WorkRequestSummary]{r.Items, r.OpcNextPage}, r.RawResponse, err
		})
	if err != nil {
		return nil, err
	}
	var ours []WorkRequest
	for _, w := range all {
		if nlbWorkRequestConcerns(w, balancerID) {
			ours = append(ours, nlbWorkRequestFromSDK(nlb.WorkRequest(w)))
		}
	}
	return ours, nil
}

// Wait returns when a work request has ended: nil error for SUCCEEDED, a *WorkRequestError for FAILED and CANCELED.
func (s *NetworkLoadBalancers) Wait(ctx context.Context, workRequestID string) (WorkRequest, error) {
	return s.work.Wait(ctx, workRequestID)
}

func (s *NetworkLoadBalancers) change(ctx context.Context, name, resource, verb string, fn func(context.Context) (*string, *http.Response, error)) (string, error) {
	return s.client.change(ctx, writeOp(ServiceNetworkLoadBalancer, name, resource, verb), fn)
}
