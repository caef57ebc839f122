// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package ocisim

import (
	"net/http"
	"time"

	"github.com/oracle/oci-go-sdk/v65/networkloadbalancer"
)

var networkLoadBalancers = newKind(kindInfo{
	ocidType: "networkloadbalancer", label: "network load balancer", policy: "network-load-balancers", eventual: true,
	keep: balancerContent,
}, func(v *networkloadbalancer.NetworkLoadBalancer) facets {
	return facets{
		id: value(v.Id), compartment: value(v.CompartmentId), name: value(v.DisplayName),
		state: string(v.LifecycleState), keys: []string{value(v.SubnetId)},
	}
})

const nlbRoot = "/20200501/networkLoadBalancers"

func networkLoadBalancerService() service {
	const (
		one       = nlbOne
		sets      = one + "/backendSets"
		listeners = one + "/listeners"
	)
	list := nlbOperation("ListNetworkLoadBalancers", http.MethodGet, "", Inspect, func(c *call) (*answer, error) {
		return c.list(listing{kind: networkLoadBalancers.kindInfo, key: c.query.Get("compartmentId"), items: true})
	})
	list.Query = "compartmentId*,lifecycleState,displayName,limit,page,sortOrder,sortBy"
	operations := []Operation{
		nlbOperation("CreateNetworkLoadBalancer", http.MethodPost, "", Manage, createNetworkLoadBalancer),
		nlbOperation("GetNetworkLoadBalancer", http.MethodGet, one, Read, showNLB),
		list,
		nlbOperation("UpdateNetworkLoadBalancer", http.MethodPut, one, Use, updateNetworkLoadBalancer),
		nlbOperation("DeleteNetworkLoadBalancer", http.MethodDelete, one, Manage, deleteNetworkLoadBalancer),
		nlbOperation("UpdateNetworkSecurityGroups", http.MethodPut, one+"/networkSecurityGroups", Use, updateNLBGroups),
		nlbOperation("ChangeNetworkLoadBalancerCompartment", http.MethodPost, one+"/actions/changeCompartment", Manage, moveNLB),
		nlbOperation("CreateBackendSet", http.MethodPost, sets, Use, createNLBBackendSet),
		nlbOperation("UpdateBackendSet", http.MethodPut, sets+"/{backendSetName}", Use, updateNLBBackendSet),
		nlbOperation("DeleteBackendSet", http.MethodDelete, sets+"/{backendSetName}", Use, deleteNLBBackendSet),
		nlbOperation("CreateListener", http.MethodPost, listeners, Use, createNLBListener),
		nlbOperation("UpdateListener", http.MethodPut, listeners+"/{listenerName}", Use, updateNLBListener),
		nlbOperation("DeleteListener", http.MethodDelete, listeners+"/{listenerName}", Use, deleteNLBListener),
	}
	for _, more := range [][]Operation{nlbBackendOperations(), nlbReadOperations(), nlbCatalogue(), nlbWorkOperations()} {
		operations = append(operations, more...)
	}
	return service{
		operations: operations,
		durations: map[string]Range{
			"networkloadbalancer.create": {Min: 15 * time.Second, Max: 30 * time.Second},
			"networkloadbalancer.update": {Min: 10 * time.Second, Max: 30 * time.Second},
			"networkloadbalancer.delete": {Min: 10 * time.Second, Max: 30 * time.Second},
		},
		removers: map[*kindInfo]func(*cloud, string){
			networkLoadBalancers.kindInfo: func(cl *cloud, id string) {
				cl.releaseBalancer(id, nlbOwnAddresses(networkLoadBalancers.find(cl, id)))
				networkLoadBalancers.remove(cl, id)
			},
		},
	}
}

func nlbOperation(name, method, path string, verb Verb, handle func(*call) (*answer, error)) Operation {
	o := Operation{
		Service: ServiceNetworkLoadBalancer, Name: name, Method: method, Path: nlbRoot + path, Verb: verb,
		Resource: networkLoadBalancers.policy, handle: handle,
	}
	if path != "" {
		o.Target, o.IfMatch = networkLoadBalancers.kindInfo, method != http.MethodGet
	}
	o.RetryToken = method == http.MethodPost || method == http.MethodPut
	return o
}

// nlbChange is a change of a network load balancer: its name in work requests and its effect. The effect on other
// resources, if any, comes once it is applied.
type nlbChange struct {
	operation networkloadbalancer.OperationTypeEnum
	apply     func(*cloud, *networkloadbalancer.NetworkLoadBalancer) error
	then      func(*cloud)
}

// changeNLB accepts a change. A network load balancer takes one change at a time: while it is UPDATING, all others
// are refused.
func (c *call) changeNLB(change nlbChange) (*answer, error) {
	id, cl := c.target.id, c.cloud
	now := networkLoadBalancers.of(c.target)
	if err := nlbTransition(now, networkloadbalancer.LifecycleStateUpdating); err != nil {
		return nil, err
	}
	if err := change.apply(cl, cloneOf(now)); err != nil {
		return nil, err
	}
	work := c.submit(task{
		ocidType: "networkloadbalancerworkrequest", operation: string(change.operation),
		compartment: value(now.CompartmentId), target: id, entity: "NetworkLoadBalancer", duration: "networkloadbalancer.update",
		finish: func() []workProblem {
			var failure error
			networkLoadBalancers.update(cl, id, func(v *networkloadbalancer.NetworkLoadBalancer) {
				trial := cloneOf(v)
				if failure = change.apply(cl, trial); failure == nil {
					cl.balancers.track(id, nlbBackendNames(v), nlbBackendNames(trial), cl.now)
					*v = *trial
				}
				v.LifecycleState, v.TimeUpdated = networkloadbalancer.LifecycleStateActive, cl.sdkTime()
			})
			if failure == nil && change.then != nil {
				change.then(cl)
			}
			return problemsOf(failure)
		},
		failed: func([]workProblem) { cl.setNLBState(id, networkloadbalancer.LifecycleStateActive) },
	})
	cl.setNLBState(id, networkloadbalancer.LifecycleStateUpdating)
	return accepted(http.StatusAccepted, work), nil
}

// nlbTransition refuses a change in any state but ACTIVE, in the words of the service.
func nlbTransition(v *networkloadbalancer.NetworkLoadBalancer, to networkloadbalancer.LifecycleStateEnum) error {
	if v.LifecycleState == networkloadbalancer.LifecycleStateActive {
		return nil
	}
	return errConflict("Invalid State Transition of NLB lifeCycle state from %s to %s", titled(string(v.LifecycleState)), titled(string(to)))
}

// titled writes a state as the service's messages do: "Updating".
func titled(state string) string {
	lower := []byte(state)
	for i := 1; i < len(lower); i++ {
		if lower[i] >= 'A' && lower[i] <= 'Z' {
			lower[i] += 'a' - 'A'
		}
	}
	return string(lower)
}

func (cl *cloud) setNLBState(id string, s networkloadbalancer.LifecycleStateEnum) {
	networkLoadBalancers.update(cl, id, func(v *networkloadbalancer.NetworkLoadBalancer) { v.LifecycleState = s })
}

func updateNetworkLoadBalancer(c *call) (*answer, error) {
	d, err := decode[networkloadbalancer.UpdateNetworkLoadBalancerDetails](c)
	if err != nil {
		return nil, err
	}
	if d.DisplayName != nil {
		if err := checkSize("displayName", *d.DisplayName, 1, maxBalancerName); err != nil {
			return nil, err
		}
	}
	id := c.target.id
	return c.changeNLB(nlbChange{
		operation: networkloadbalancer.OperationTypeUpdateNetworkLoadBalancer,
		apply: func(cl *cloud, v *networkloadbalancer.NetworkLoadBalancer) error {
			replace(&v.DisplayName, d.DisplayName)
			replace(&v.IsPreserveSourceDestination, d.IsPreserveSourceDestination)
			replace(&v.IsSymmetricHashEnabled, d.IsSymmetricHashEnabled)
			replaceTags(&v.FreeformTags, &v.DefinedTags, d.FreeformTags, d.DefinedTags)
			if d.SecurityAttributes != nil {
				v.SecurityAttributes = d.SecurityAttributes
			}
			if d.NlbIpVersion == "" || d.NlbIpVersion == v.NlbIpVersion {
				return nil
			}
			return cl.changeNLBFamilies(v, d.NlbIpVersion)
		},
		then: func(cl *cloud) { cl.addSixth(id, value(d.AssignedIpv6)) },
	})
}

func updateNLBGroups(c *call) (*answer, error) {
	d, err := decode[networkloadbalancer.UpdateNetworkSecurityGroupsDetails](c)
	if err != nil {
		return nil, err
	}
	if err := c.balancerGroups(d.NetworkSecurityGroupIds); err != nil {
		return nil, err
	}
	id := c.target.id
	return c.changeNLB(nlbChange{
		operation: networkloadbalancer.OperationTypeUpdateNsgs,
		apply: func(_ *cloud, v *networkloadbalancer.NetworkLoadBalancer) error {
			v.NetworkSecurityGroupIds = d.NetworkSecurityGroupIds
			return nil
		},
		then: func(cl *cloud) { cl.setServiceVNICGroups(id, d.NetworkSecurityGroupIds) },
	})
}

// moveNLB takes a network load balancer to another compartment.
func moveNLB(c *call) (*answer, error) {
	d, err := decode[networkloadbalancer.ChangeNetworkLoadBalancerCompartmentDetails](c)
	if err != nil {
		return nil, err
	}
	if err := c.checkMove(value(d.CompartmentId)); err != nil {
		return nil, err
	}
	return c.changeNLB(nlbChange{
		operation: networkloadbalancer.OperationTypeChangeCompartment,
		apply: func(_ *cloud, v *networkloadbalancer.NetworkLoadBalancer) error {
			v.CompartmentId = d.CompartmentId
			return nil
		},
	})
}

func deleteNetworkLoadBalancer(c *call) (*answer, error) {
	v := networkLoadBalancers.of(c.target)
	id, cl := c.target.id, c.cloud
	switch v.LifecycleState {
	case networkloadbalancer.LifecycleStateDeleted:
		return nil, errNotFound()
	case networkloadbalancer.LifecycleStateFailed:
	default:
		if err := nlbTransition(v, networkloadbalancer.LifecycleStateDeleting); err != nil {
			return nil, err
		}
	}
	previous := v.LifecycleState
	work := c.submit(task{
		ocidType: "networkloadbalancerworkrequest", operation: string(networkloadbalancer.OperationTypeDeleteNetworkLoadBalancer),
		compartment: value(v.CompartmentId), target: id, entity: "NetworkLoadBalancer", duration: "networkloadbalancer.delete",
		finish: func() []workProblem {
			cl.releaseBalancer(id, nlbOwnAddresses(networkLoadBalancers.find(cl, id)))
			cl.setNLBState(id, networkloadbalancer.LifecycleStateDeleted)
			cl.after(cl.behaviour.DeletedBalancerVisible, func() { networkLoadBalancers.remove(cl, id) })
			return nil
		},
		failed: func([]workProblem) { cl.setNLBState(id, previous) },
	})
	cl.setNLBState(id, networkloadbalancer.LifecycleStateDeleting)
	return accepted(http.StatusAccepted, work), nil
}

// NetworkLoadBalancers returns all network load balancers, in order of creation.
func (r *Region) NetworkLoadBalancers() []networkloadbalancer.NetworkLoadBalancer {
	return inspect(r, networkLoadBalancers, "")
}

// NetworkLoadBalancer returns one network load balancer.
func (r *Region) NetworkLoadBalancer(id string) (networkloadbalancer.NetworkLoadBalancer, bool) {
	return inspectOne(r, networkLoadBalancers, id)
}

// NetworkLoadBalancer changes a network load balancer.
func (f *Foreign) NetworkLoadBalancer(id string, change func(*networkloadbalancer.NetworkLoadBalancer)) error {
	return mutate(f, networkLoadBalancers, id, change)
}
