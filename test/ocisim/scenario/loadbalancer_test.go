// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package scenario_test

import (
	"context"
	"maps"
	"slices"

	"github.com/oracle/oci-go-sdk/v65/common"
	"github.com/oracle/oci-go-sdk/v65/loadbalancer"
)

// lbAPI is balancerAPI for load balancers.
type lbAPI struct {
	client              loadbalancer.LoadBalancerClient
	compartment, subnet string
}

func lbState(v *loadbalancer.LoadBalancer, etag *string) balancerState {
	s := balancerState{
		id: *v.Id, state: string(v.LifecycleState), tags: v.FreeformTags,
		sets: map[string][]string{}, listeners: map[string]int{},
	}
	if etag != nil {
		s.etag = *etag
	}
	for name, set := range v.BackendSets {
		list := []string{}
		for _, b := range set.Backends {
			list = append(list, *b.IpAddress)
		}
		slices.Sort(list)
		s.sets[name] = list
	}
	for name, l := range v.Listeners {
		s.listeners[name] = *l.Port
	}
	return s
}

func (a lbAPI) list(ctx context.Context, name string) ([]balancerState, error) {
	request := loadbalancer.ListLoadBalancersRequest{CompartmentId: &a.compartment}
	if name != "" {
		request.DisplayName = &name
	}
	return pages(ctx, func(ctx context.Context, page *string) ([]balancerState, *string, error) {
		request.Page = page
		r, err := a.client.ListLoadBalancers(ctx, request)
		states := make([]balancerState, 0, len(r.Items))
		for i := range r.Items {
			states = append(states, lbState(&r.Items[i], nil))
		}
		return states, r.OpcNextPage, err
	})
}

func (a lbAPI) get(ctx context.Context, id string) (balancerState, error) {
	r, err := a.client.GetLoadBalancer(ctx, loadbalancer.GetLoadBalancerRequest{LoadBalancerId: &id})
	if err != nil {
		return balancerState{}, err
	}
	return lbState(&r.LoadBalancer, r.ETag), nil
}

func lbBackends(port int, addresses []string) []loadbalancer.BackendDetails {
	list := []loadbalancer.BackendDetails{}
	for _, address := range addresses {
		list = append(list, loadbalancer.BackendDetails{IpAddress: &address, Port: common.Int(nodePort(port))})
	}
	return list
}

func lbHealth() *loadbalancer.HealthCheckerDetails {
	return &loadbalancer.HealthCheckerDetails{Protocol: common.String("HTTP"), UrlPath: common.String("/healthz"), Port: common.Int(10256)}
}

func (a lbAPI) create(ctx context.Context, token string, spec balancerSpec) (id, work string, err error) {
	details := loadbalancer.CreateLoadBalancerDetails{
		CompartmentId: &a.compartment, DisplayName: &spec.name, ShapeName: common.String("flexible"), SubnetIds: []string{a.subnet},
		ShapeDetails: &loadbalancer.ShapeDetails{MinimumBandwidthInMbps: common.Int(10), MaximumBandwidthInMbps: common.Int(100)},
		FreeformTags: spec.tags,
		BackendSets:  map[string]loadbalancer.BackendSetDetails{}, Listeners: map[string]loadbalancer.ListenerDetails{},
	}
	for _, port := range spec.ports {
		name := partName(port)
		details.BackendSets[name] = loadbalancer.BackendSetDetails{
			Policy: common.String("ROUND_ROBIN"), HealthChecker: lbHealth(), Backends: lbBackends(port, spec.addresses),
		}
		details.Listeners[name] = loadbalancer.ListenerDetails{
			DefaultBackendSetName: &name, Port: common.Int(port), Protocol: common.String("TCP"),
		}
	}
	r, err := a.client.CreateLoadBalancer(ctx, loadbalancer.CreateLoadBalancerRequest{CreateLoadBalancerDetails: details, OpcRetryToken: &token})
	if err != nil {
		return "", "", err
	}
	return "", *r.OpcWorkRequestId, nil
}

func (a lbAPI) remove(ctx context.Context, id string) (string, error) {
	r, err := a.client.DeleteLoadBalancer(ctx, loadbalancer.DeleteLoadBalancerRequest{LoadBalancerId: &id})
	return workOf(r.OpcWorkRequestId, err)
}

// workOf returns the work request of an answer.
func workOf(work *string, err error) (string, error) {
	if err != nil {
		return "", err
	}
	return *work, nil
}

// ifMatch is the etag for a conditional write; states from lists have none.
func (s *balancerState) ifMatch() *string {
	if s.etag == "" {
		return nil
	}
	return &s.etag
}

func (a lbAPI) setTags(ctx context.Context, b balancerState, tags map[string]string) (string, error) {
	merged := map[string]string{}
	maps.Copy(merged, b.tags)
	maps.Copy(merged, tags)
	r, err := a.client.UpdateLoadBalancer(ctx, loadbalancer.UpdateLoadBalancerRequest{
		LoadBalancerId: &b.id, IfMatch: b.ifMatch(), UpdateLoadBalancerDetails: loadbalancer.UpdateLoadBalancerDetails{FreeformTags: merged},
	})
	return workOf(r.OpcWorkRequestId, err)
}

func (a lbAPI) putSet(ctx context.Context, b balancerState, name string, port int, addresses []string) (string, error) {
	if _, exists := b.sets[name]; !exists {
		r, err := a.client.CreateBackendSet(ctx, loadbalancer.CreateBackendSetRequest{
			LoadBalancerId: &b.id, CreateBackendSetDetails: loadbalancer.CreateBackendSetDetails{
				Name: &name, Policy: common.String("ROUND_ROBIN"), HealthChecker: lbHealth(), Backends: lbBackends(port, addresses),
			},
		})
		return workOf(r.OpcWorkRequestId, err)
	}
	r, err := a.client.UpdateBackendSet(ctx, loadbalancer.UpdateBackendSetRequest{
		LoadBalancerId: &b.id, BackendSetName: &name, IfMatch: b.ifMatch(),
		UpdateBackendSetDetails: loadbalancer.UpdateBackendSetDetails{
			Policy: common.String("ROUND_ROBIN"), HealthChecker: lbHealth(), Backends: lbBackends(port, addresses),
		},
	})
	return workOf(r.OpcWorkRequestId, err)
}

func (a lbAPI) removeSet(ctx context.Context, b balancerState, name string) (string, error) {
	r, err := a.client.DeleteBackendSet(ctx, loadbalancer.DeleteBackendSetRequest{LoadBalancerId: &b.id, BackendSetName: &name})
	return workOf(r.OpcWorkRequestId, err)
}

func (a lbAPI) addListener(ctx context.Context, b balancerState, name string, port int) (string, error) {
	r, err := a.client.CreateListener(ctx, loadbalancer.CreateListenerRequest{
		LoadBalancerId: &b.id, CreateListenerDetails: loadbalancer.CreateListenerDetails{
			Name: &name, DefaultBackendSetName: &name, Port: &port, Protocol: common.String("TCP"),
		},
	})
	return workOf(r.OpcWorkRequestId, err)
}

func (a lbAPI) removeListener(ctx context.Context, b balancerState, name string) (string, error) {
	r, err := a.client.DeleteListener(ctx, loadbalancer.DeleteListenerRequest{LoadBalancerId: &b.id, ListenerName: &name})
	return workOf(r.OpcWorkRequestId, err)
}

func (a lbAPI) progress(ctx context.Context, work string) (state, id string, err error) {
	r, err := a.client.GetWorkRequest(ctx, loadbalancer.GetWorkRequestRequest{WorkRequestId: &work})
	if err != nil {
		return "", "", err
	}
	return string(r.LifecycleState), *r.LoadBalancerId, nil
}
