// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package ocisim

import (
	"net/http"
	"time"

	"github.com/oracle/oci-go-sdk/v65/common"
	"github.com/oracle/oci-go-sdk/v65/identity"
)

var compartments = newKind(kindInfo{
	ocidType: "compartment", label: "compartment", policy: "compartments",
}, func(v *identity.Compartment) facets {
	return facets{
		id: value(v.Id), compartment: value(v.CompartmentId), name: value(v.Name), state: string(v.LifecycleState),
	}
})

func identityService() service {
	op := func(name, path, query, resource string, verb Verb, handle func(*call) (*answer, error)) Operation {
		return Operation{
			Service: ServiceIdentity, Name: name, Method: http.MethodGet, Path: path,
			Query: query, Resource: resource, Verb: verb, handle: handle,
		}
	}
	get := op("GetCompartment", "/20160918/compartments/{compartmentId}", "", "compartments", Inspect, (*call).showTarget)
	get.Target = compartments.kindInfo
	return service{operations: append(compartmentOperations(), []Operation{
		op("ListAvailabilityDomains", "/20160918/availabilityDomains", "compartmentId*", "compartments", Inspect, listAvailabilityDomains),
		op("ListFaultDomains", "/20160918/faultDomains", "compartmentId*,availabilityDomain*", "compartments", Inspect, listFaultDomains),
		op("ListCompartments", "/20160918/compartments", "compartmentId*,limit,page,name,sortBy,sortOrder,lifecycleState",
			"compartments", Inspect, listCompartments),
		get,
	}...), durations: map[string]Range{
		"compartment.create": {Min: 500 * time.Millisecond, Max: 2 * time.Second},
		"compartment.delete": {Min: 10 * time.Second, Max: 60 * time.Second},
	}}
}

// showTarget is the handler of plain gets.
func (c *call) showTarget() (*answer, error) { return c.show(c.target), nil }

func listAvailabilityDomains(c *call) (*answer, error) {
	list := []identity.AvailabilityDomain{}
	for _, name := range c.options.AvailabilityDomains {
		list = append(list, identity.AvailabilityDomain{
			Name:          common.String(name),
			Id:            common.String("ocid1.availabilitydomain." + c.options.Realm + ".." + name),
			CompartmentId: common.String(c.query.Get("compartmentId")),
		})
	}
	return c.send(http.StatusOK, list), nil
}

// faultDomains are the same in every availability domain.
var faultDomains = [...]string{"FAULT-DOMAIN-1", "FAULT-DOMAIN-2", "FAULT-DOMAIN-3"}

func listFaultDomains(c *call) (*answer, error) {
	domain := c.query.Get("availabilityDomain")
	if !contains(c.options.AvailabilityDomains, domain) {
		return nil, errNotFound()
	}
	list := []identity.FaultDomain{}
	for _, name := range faultDomains {
		list = append(list, identity.FaultDomain{
			Name:               common.String(name),
			Id:                 common.String("ocid1.faultdomain." + c.options.Realm + ".." + domain + "." + name),
			CompartmentId:      common.String(c.query.Get("compartmentId")),
			AvailabilityDomain: common.String(domain),
		})
	}
	return c.send(http.StatusOK, list), nil
}

func listCompartments(c *call) (*answer, error) {
	parent := c.query.Get("compartmentId")
	name := c.query.Get("name")
	return c.list(listing{kind: compartments.kindInfo, key: parent, match: func(res *resource) bool {
		return (name == "" || res.name == name) && res.id != parent
	}})
}

// addRootCompartment puts the tenancy itself into an empty cloud.
func (cl *cloud) addRootCompartment() {
	compartments.insert(cl, &identity.Compartment{
		Id: common.String(cl.options.Tenancy), CompartmentId: common.String(cl.options.Tenancy),
		Name: common.String("tenancy"), Description: common.String("the root compartment"),
		TimeCreated: cl.sdkTime(), LifecycleState: identity.CompartmentLifecycleStateActive,
	})
}
