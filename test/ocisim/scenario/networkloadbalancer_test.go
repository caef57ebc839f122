// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package scenario_test

import (
	"context"
	"maps"
	"slices"

	"github.com/oracle/oci-go-sdk/v65/common"
	nlb "github.com/oracle/oci-go-sdk/v65/networkloadbalancer"
)

// nlbAPI is balancerAPI for network load balancers.
type nlbAPI struct {
	client              nlb.NetworkLoadBalancerClient
	compartment, subnet string
}

func nlbState(id, state string, tags map[string]string, sets map[string]nlb.BackendSet, listeners map[string]nlb.Listener, etag *string) balancerState {
	s := balancerState{id: id, state: state, tags: tags, sets: map[string][]string{}, listeners: map[string]int{}}
	if etag != nil {
		s.etag = *etag
	}
	for name, set := range sets {
		list := []string{}
		for _, b := range set.Backends {
			list = append(list, *b.IpAddress)
		}
		slices.Sort(list)
		s.sets[name] = list
	}
	for name, l := range listeners {
		s.listeners[name] = *l.Port
	}
	return s
}

func (a nlbAPI) list(ctx context.Context, name string) ([]balancerState, error) {
	request := nlb.ListNetworkLoadBalancersRequest{CompartmentId: &a.compartment}
	if name != "" {
		request.DisplayName = &name
	}
	return pages(ctx, func(ctx context.Context, page *string) ([]balancerState, *string, error) {
		request.Page = page
		r, err := a.client.ListNetworkLoadBalancers(ctx, request)
		states := make([]balancerState, 0, len(r.Items))
		for i := range r.Items {
			v := &r.Items[i]
			states = append(states, nlbState(*v.Id, string(v.LifecycleState), v.FreeformTags, v.BackendSets, v.Listeners, nil))
		}
		return states, r.OpcNextPage, err
	})
}

func (a nlbAPI) get(ctx context.Context, id string) (balancerState, error) {
	r, err := a.client.GetNetworkLoadBalancer(ctx, nlb.GetNetworkLoadBalancerRequest{NetworkLoadBalancerId: &id})
	if err != nil {
		return balancerState{}, err
	}
	return nlbState(*r.Id, string(r.LifecycleState), r.FreeformTags, r.BackendSets, r.Listeners, r.Etag), nil
}

func nlbBackends(port int, addresses []string) []nlb.BackendDetails {
	list := []nlb.BackendDetails{}
	for _, address := range addresses {
		list = append(list, nlb.BackendDetails{IpAddress: &address, Port: common.Int(nodePort(port))})
	}
	return list
}

func nlbHealth() *nlb.HealthCheckerDetails {
	return &nlb.HealthCheckerDetails{
		Protocol: nlb.HealthCheckProtocolsHttp, UrlPath: common.String("/healthz"), Port: common.Int(10256), ReturnCode: common.Int(200),
	}
}

func (a nlbAPI) create(ctx context.Context, token string, spec balancerSpec) (id, work string, err error) {
	details := nlb.CreateNetworkLoadBalancerDetails{
		CompartmentId: &a.compartment, DisplayName: &spec.name, SubnetId: &a.subnet, FreeformTags: spec.tags,
		BackendSets: map[string]nlb.BackendSetDetails{}, Listeners: map[string]nlb.ListenerDetails{},
	}
	for _, port := range spec.ports {
		name := partName(port)
		backends := []nlb.Backend{}
		for _, b := range nlbBackends(port, spec.addresses) {
			backends = append(backends, nlb.Backend{IpAddress: b.IpAddress, Port: b.Port})
		}
		health := nlbHealth()
		details.BackendSets[name] = nlb.BackendSetDetails{
			Policy: nlb.NetworkLoadBalancingPolicyFiveTuple, Backends: backends,
			HealthChecker: &nlb.HealthChecker{Protocol: health.Protocol, UrlPath: health.UrlPath, Port: health.Port, ReturnCode: health.ReturnCode},
		}
		details.Listeners[name] = nlb.ListenerDetails{
			Name: &name, DefaultBackendSetName: &name, Port: common.Int(port), Protocol: nlb.ListenerProtocolsTcp,
		}
	}
	r, err := a.client.CreateNetworkLoadBalancer(ctx, nlb.CreateNetworkLoadBalancerRequest{
		CreateNetworkLoadBalancerDetails: details, OpcRetryToken: &token,
	})
	if err != nil {
		return "", "", err
	}
	return *r.Id, *r.OpcWorkRequestId, nil
}

func (a nlbAPI) remove(ctx context.Context, id string) (string, error) {
	r, err := a.client.DeleteNetworkLoadBalancer(ctx, nlb.DeleteNetworkLoadBalancerRequest{NetworkLoadBalancerId: &id})
	return workOf(r.OpcWorkRequestId, err)
}

func (a nlbAPI) setTags(ctx context.Context, b balancerState, tags map[string]string) (string, error) {
	merged := map[string]string{}
	maps.Copy(merged, b.tags)
	maps.Copy(merged, tags)
	r, err := a.client.UpdateNetworkLoadBalancer(ctx, nlb.UpdateNetworkLoadBalancerRequest{
		NetworkLoadBalancerId: &b.id, IfMatch: b.ifMatch(),
		UpdateNetworkLoadBalancerDetails: nlb.UpdateNetworkLoadBalancerDetails{FreeformTags: merged},
	})
	return workOf(r.OpcWorkRequestId, err)
}

func (a nlbAPI) putSet(ctx context.Context, b balancerState, name string, port int, addresses []string) (string, error) {
	if _, exists := b.sets[name]; !exists {
		r, err := a.client.CreateBackendSet(ctx, nlb.CreateBackendSetRequest{
			NetworkLoadBalancerId: &b.id, CreateBackendSetDetails: nlb.CreateBackendSetDetails{
				Name: &name, Policy: nlb.NetworkLoadBalancingPolicyFiveTuple, HealthChecker: nlbHealth(), Backends: nlbBackends(port, addresses),
			},
		})
		return workOf(r.OpcWorkRequestId, err)
	}
	r, err := a.client.UpdateBackendSet(ctx, nlb.UpdateBackendSetRequest{
		NetworkLoadBalancerId: &b.id, BackendSetName: &name, IfMatch: b.ifMatch(),
		UpdateBackendSetDetails: nlb.UpdateBackendSetDetails{Backends: nlbBackends(port, addresses)},
	})
	return workOf(r.OpcWorkRequestId, err)
}

func (a nlbAPI) removeSet(ctx context.Context, b balancerState, name string) (string, error) {
	r, err := a.client.DeleteBackendSet(ctx, nlb.DeleteBackendSetRequest{
		NetworkLoadBalancerId: &b.id, BackendSetName: &name, IfMatch: b.ifMatch(),
	})
	return workOf(r.OpcWorkRequestId, err)
}

func (a nlbAPI) addListener(ctx context.Context, b balancerState, name string, port int) (string, error) {
	r, err := a.client.CreateListener(ctx, nlb.CreateListenerRequest{
		NetworkLoadBalancerId: &b.id, CreateListenerDetails: nlb.CreateListenerDetails{
			Name: &name, DefaultBackendSetName: &name, Port: &port, Protocol: nlb.ListenerProtocolsTcp,
		},
	})
	return workOf(r.OpcWorkRequestId, err)
}

func (a nlbAPI) removeListener(ctx context.Context, b balancerState, name string) (string, error) {
	r, err := a.client.DeleteListener(ctx, nlb.DeleteListenerRequest{
		NetworkLoadBalancerId: &b.id, ListenerName: &name, IfMatch: b.ifMatch(),
	})
	return workOf(r.OpcWorkRequestId, err)
}

func (a nlbAPI) progress(ctx context.Context, work string) (state, id string, err error) {
	r, err := a.client.GetWorkRequest(ctx, nlb.GetWorkRequestRequest{WorkRequestId: &work})
	if err != nil {
		return "", "", err
	}
	return string(r.Status), "", nil
}
