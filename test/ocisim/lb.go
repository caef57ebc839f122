// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package ocisim

import (
	"maps"
	"net/http"
	"strings"
	"time"

	"github.com/oracle/oci-go-sdk/v65/common"
	"github.com/oracle/oci-go-sdk/v65/loadbalancer"
)

var loadBalancers = newKind(kindInfo{
	ocidType: "loadbalancer", label: "load balancer", policy: "load-balancers", eventual: true,
	keep: append([]string{"shapeDetails", "subnetIds", "certificates", "ruleSets", "ipAddresses"}, balancerContent...),
}, func(v *loadbalancer.LoadBalancer) facets {
	return facets{
		id: value(v.Id), compartment: value(v.CompartmentId), name: value(v.DisplayName),
		state: string(v.LifecycleState), keys: v.SubnetIds,
	}
})

const lbRoot = "/20170115/loadBalancers"

func loadBalancerService() service {
	operations := []Operation{
		lbOperation("CreateLoadBalancer", http.MethodPost, "", Manage, createLoadBalancer),
		lbOperation("GetLoadBalancer", http.MethodGet, "/{loadBalancerId}", Read, (*call).showTarget),
		lbOperation("ListLoadBalancers", http.MethodGet, "", Inspect, func(c *call) (*answer, error) {
			return c.list(listing{kind: loadBalancers.kindInfo, key: c.query.Get("compartmentId")})
		}),
		lbOperation("UpdateLoadBalancer", http.MethodPut, "/{loadBalancerId}", Use, updateLoadBalancer),
		lbOperation("DeleteLoadBalancer", http.MethodDelete, "/{loadBalancerId}", Manage, deleteLoadBalancer),
		lbOperation("UpdateLoadBalancerShape", http.MethodPut, "/{loadBalancerId}/updateShape", Use, updateLoadBalancerShape),
		lbOperation("UpdateNetworkSecurityGroups", http.MethodPut, "/{loadBalancerId}/networkSecurityGroups", Use, updateLoadBalancerGroups),
		lbOperation("ChangeLoadBalancerCompartment", http.MethodPost, "/{loadBalancerId}/changeCompartment", Manage, moveLoadBalancer),
		lbOperation("ListWorkRequests", http.MethodGet, "/{loadBalancerId}/workRequests", Read, listLoadBalancerWork),
	}
	operations[0].Partial = "no reserved IPv6 addresses"
	operations[3].Partial = "addresses change only where a test allows it (LoadBalancerAddressChange)"
	operations[2].Query = "compartmentId*,limit,page,detail,sortBy,sortOrder,displayName,lifecycleState"
	operations[8].Query = "limit,page"
	operations = append(operations, loadBalancerHealthOperations()...)
	operations = append(operations, loadBalancerPartOperations()...)
	operations = append(operations, loadBalancerCatalogue()...)
	return service{
		operations: operations,
		durations: map[string]Range{
			"loadbalancer.create": {Min: 20 * time.Second, Max: 60 * time.Second},
			"loadbalancer.update": {Min: 10 * time.Second, Max: 30 * time.Second},
			"loadbalancer.delete": {Min: 10 * time.Second, Max: 30 * time.Second},
		},
		removers: map[*kindInfo]func(*cloud, string){
			loadBalancers.kindInfo: func(cl *cloud, id string) {
				cl.releaseBalancer(id, lbAddresses(loadBalancers.find(cl, id)))
				loadBalancers.remove(cl, id)
			},
		},
	}
}

// lbOperation is one line of the service's table. Every operation on a load balancer or a part of it honours
// if-match against the etag of the whole load balancer; all but reads and deletes take a retry token.
func lbOperation(name, method, path string, verb Verb, handle func(*call) (*answer, error)) Operation {
	o := Operation{
		Service: ServiceLoadBalancer, Name: name, Method: method, Path: lbRoot + path, Verb: verb,
		Resource: loadBalancers.policy, handle: handle,
	}
	if path != "" {
		o.Target, o.IfMatch = loadBalancers.kindInfo, true
	}
	o.RetryToken = method == http.MethodPost || method == http.MethodPut
	return o
}

// changeLoadBalancer accepts a change of a load balancer or of one of its parts. The change is checked against the
// state now, and applied, checked again, when its turn in the queue has come: the load balancer stays ACTIVE
// meanwhile, and its etag changes only then.
func (c *call) changeLoadBalancer(operation string, change func(*cloud, *loadbalancer.LoadBalancer) error) (*answer, error) {
	return c.changeLoadBalancerThen(operation, change, nil)
}

// changeLoadBalancerThen is changeLoadBalancer with an effect beside the load balancer, when the change is applied. The
// effect may change the load balancer too; if it fails, nothing of the change is kept.
func (c *call) changeLoadBalancerThen(
	operation string, change, effect func(*cloud, *loadbalancer.LoadBalancer) error,
) (*answer, error) {
	id := c.target.id
	now := loadBalancers.of(c.target)
	if err := c.loadBalancerWritable(now); err != nil {
		return nil, err
	}
	if err := change(c.cloud, cloneOf(now)); err != nil {
		return nil, err
	}
	cl := c.cloud
	work := c.submit(task{
		ocidType: "loadbalancerworkrequest", operation: operation, compartment: value(now.CompartmentId), target: id,
		entity: "LoadBalancer", duration: "loadbalancer.update",
		finish: func() []workProblem { return problemsOf(cl.applyToLoadBalancer(id, change, effect)) },
	})
	return accepted(http.StatusNoContent, work), nil
}

func (cl *cloud) applyToLoadBalancer(id string, change, effect func(*cloud, *loadbalancer.LoadBalancer) error) error {
	before := loadBalancers.find(cl, id)
	if before == nil {
		return nil // somebody took it away meanwhile
	}
	trial := cloneOf(before)
	if err := change(cl, trial); err != nil {
		return err
	}
	if effect != nil {
		if err := effect(cl, trial); err != nil {
			return err
		}
	}
	loadBalancers.update(cl, id, func(v *loadbalancer.LoadBalancer) { *v = *trial })
	cl.balancers.track(id, lbBackendNames(before), lbBackendNames(trial), cl.now)
	return nil
}

// problemsOf makes the error list of a work request whose change was refused when its turn had come.
func problemsOf(err error) []workProblem {
	if err == nil {
		return nil
	}
	return badInput(asRefusal(err).Message)
}

func (c *call) loadBalancerWritable(v *loadbalancer.LoadBalancer) error {
	if v.LifecycleState != loadbalancer.LoadBalancerLifecycleStateActive {
		return errIncorrectState("Load balancer %s has the lifecycle state %s; it must be ACTIVE.", value(v.Id), v.LifecycleState)
	}
	if c.busy(value(v.Id)) {
		return c.rule(LoadBalancerBusy, value(v.Id))
	}
	return nil
}

func updateLoadBalancer(c *call) (*answer, error) {
	d, err := decode[loadbalancer.UpdateLoadBalancerDetails](c)
	if err != nil {
		return nil, err
	}
	if d.DisplayName != nil {
		if err := checkSize("displayName", *d.DisplayName, 1, maxBalancerName); err != nil {
			return nil, err
		}
	}
	header, err := requestIDHeader(d.RequestIdHeader)
	if err != nil {
		return nil, err
	}
	move, err := c.addressChange(d)
	if err != nil {
		return nil, err
	}
	return c.changeLoadBalancerThen("UpdateLoadBalancer", func(_ *cloud, v *loadbalancer.LoadBalancer) error {
		replace(&v.DisplayName, d.DisplayName)
		replace(&v.IsDeleteProtectionEnabled, d.IsDeleteProtectionEnabled)
		replace(&v.IsRequestIdEnabled, d.IsRequestIdEnabled)
		replace(&v.RequestIdHeader, header)
		replaceTags(&v.FreeformTags, &v.DefinedTags, d.FreeformTags, d.DefinedTags)
		if d.SecurityAttributes != nil {
			v.SecurityAttributes = d.SecurityAttributes
		}
		return nil
	}, move)
}

// requestIDHeader checks the name of the header for request ids; empty, it is the default.
func requestIDHeader(name *string) (*string, error) {
	switch {
	case name == nil:
		return nil, nil
	case *name == "":
		return common.String("X-Request-Id"), nil
	case !strings.HasPrefix(strings.ToUpper(*name), "X-"):
		return nil, errInvalid("requestIdHeader '%s' must start with 'X-'", *name)
	}
	return name, nil
}

// moveLoadBalancer takes a load balancer to another compartment.
func moveLoadBalancer(c *call) (*answer, error) {
	d, err := decode[loadbalancer.ChangeLoadBalancerCompartmentDetails](c)
	if err != nil {
		return nil, err
	}
	if err := c.checkMove(value(d.CompartmentId)); err != nil {
		return nil, err
	}
	return c.changeLoadBalancer("ChangeLoadBalancerCompartment", func(_ *cloud, v *loadbalancer.LoadBalancer) error {
		v.CompartmentId = d.CompartmentId
		return nil
	})
}

// checkMove checks the compartment that the target is to move to.
func (c *call) checkMove(compartment string) error {
	if err := c.createIn(compartment); err != nil {
		return err
	}
	if compartment == c.target.compartment {
		return c.rule(SameCompartment, c.target.id, compartment)
	}
	return nil
}

func updateLoadBalancerShape(c *call) (*answer, error) {
	d, err := decode[loadbalancer.UpdateLoadBalancerShapeDetails](c)
	if err != nil {
		return nil, err
	}
	shape, err := shapeOf(value(d.ShapeName), d.ShapeDetails)
	if err != nil {
		return nil, err
	}
	if err := c.loadBalancerLimit(shape, c.target.id); err != nil {
		return nil, err
	}
	return c.changeLoadBalancer("UpdateShape", func(_ *cloud, v *loadbalancer.LoadBalancer) error {
		v.ShapeName, v.ShapeDetails = d.ShapeName, shape.details
		return nil
	})
}

func updateLoadBalancerGroups(c *call) (*answer, error) {
	d, err := decode[loadbalancer.UpdateNetworkSecurityGroupsDetails](c)
	if err != nil {
		return nil, err
	}
	if err := c.balancerGroups(d.NetworkSecurityGroupIds); err != nil {
		return nil, err
	}
	id := c.target.id
	return c.changeLoadBalancerThen("UpdateNetworkSecurityGroups",
		func(_ *cloud, v *loadbalancer.LoadBalancer) error {
			v.NetworkSecurityGroupIds = d.NetworkSecurityGroupIds
			return nil
		},
		func(cl *cloud, _ *loadbalancer.LoadBalancer) error {
			cl.setServiceVNICGroups(id, d.NetworkSecurityGroupIds)
			return nil
		})
}

// deleteLoadBalancer accepts the deletion in every state but CREATING and DELETING. Changes that wait are carried out
// before it.
func deleteLoadBalancer(c *call) (*answer, error) {
	v := loadBalancers.of(c.target)
	id, cl := c.target.id, c.cloud
	switch v.LifecycleState {
	case loadbalancer.LoadBalancerLifecycleStateCreating, loadbalancer.LoadBalancerLifecycleStateDeleting:
		return nil, errIncorrectState("Load balancer %s has the lifecycle state %s.", id, v.LifecycleState)
	case loadbalancer.LoadBalancerLifecycleStateDeleted:
		return nil, errNotFound()
	}
	if value(v.IsDeleteProtectionEnabled) {
		if err := c.rule(DeleteProtected, id); err != nil {
			return nil, err
		}
	}
	if c.busy(id) {
		if err := c.rule(LoadBalancerBusy, id); err != nil {
			return nil, err
		}
	}
	previous := v.LifecycleState
	setState := func(s loadbalancer.LoadBalancerLifecycleStateEnum) {
		loadBalancers.update(cl, id, func(v *loadbalancer.LoadBalancer) { v.LifecycleState = s })
	}
	work := c.submit(task{
		ocidType: "loadbalancerworkrequest", operation: "DeleteLoadBalancer", compartment: value(v.CompartmentId), target: id,
		entity: "LoadBalancer", duration: "loadbalancer.delete",
		finish: func() []workProblem {
			cl.releaseBalancer(id, lbAddresses(loadBalancers.find(cl, id)))
			setState(loadbalancer.LoadBalancerLifecycleStateDeleted)
			cl.after(cl.behaviour.DeletedBalancerVisible, func() { loadBalancers.remove(cl, id) })
			return nil
		},
		failed: func([]workProblem) { setState(previous) },
	})
	setState(loadbalancer.LoadBalancerLifecycleStateDeleting)
	return accepted(http.StatusNoContent, work), nil
}

// lbAddresses are the addresses of a load balancer that are public IPv4 ones and not reserved: they go with it.
func lbAddresses(v *loadbalancer.LoadBalancer) []string {
	var own []string
	for _, a := range v.IpAddresses {
		if value(a.IsPublic) && a.ReservedIp == nil && !strings.Contains(value(a.IpAddress), ":") {
			own = append(own, value(a.IpAddress))
		}
	}
	return own
}

// replace overwrites a field if the request has it.
func replace[T any](field **T, with *T) {
	if with != nil {
		*field = with
	}
}

func replaceTags(freeform *map[string]string, defined *map[string]map[string]any, newFreeform map[string]string, newDefined map[string]map[string]any) {
	if newFreeform != nil {
		*freeform = maps.Clone(newFreeform)
	}
	if newDefined != nil {
		*defined = newDefined
	}
}

// LoadBalancers returns all load balancers, in order of creation.
func (r *Region) LoadBalancers() []loadbalancer.LoadBalancer { return inspect(r, loadBalancers, "") }

// LoadBalancer returns one load balancer.
func (r *Region) LoadBalancer(id string) (loadbalancer.LoadBalancer, bool) {
	return inspectOne(r, loadBalancers, id)
}

// LoadBalancer changes a load balancer.
func (f *Foreign) LoadBalancer(id string, change func(*loadbalancer.LoadBalancer)) error {
	return mutate(f, loadBalancers, id, change)
}
