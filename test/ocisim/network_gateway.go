// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package ocisim

import (
	"net/http"
	"strings"

	"github.com/oracle/oci-go-sdk/v65/common"
	"github.com/oracle/oci-go-sdk/v65/core"
)

// Gateways are listed by VCN, and by the route table that they use for what comes in.
var (
	internetGateways = newKind(kindInfo{
		ocidType: "internetgateway", label: "internet gateway", policy: "internet-gateways", eventual: true,
	}, func(v *core.InternetGateway) facets {
		return facets{
			id: value(v.Id), compartment: value(v.CompartmentId), name: value(v.DisplayName),
			state: string(v.LifecycleState), keys: []string{value(v.VcnId), usesRoutes(v.RouteTableId)},
		}
	})
	natGateways = newKind(kindInfo{
		ocidType: "natgateway", label: "NAT gateway", policy: "nat-gateways", eventual: true,
	}, func(v *core.NatGateway) facets {
		return facets{
			id: value(v.Id), compartment: value(v.CompartmentId), name: value(v.DisplayName),
			state: string(v.LifecycleState), keys: []string{value(v.VcnId), usesRoutes(v.RouteTableId)},
		}
	})
	serviceGateways = newKind(kindInfo{
		ocidType: "servicegateway", label: "service gateway", policy: "service-gateways", eventual: true,
	}, func(v *core.ServiceGateway) facets {
		return facets{
			id: value(v.Id), compartment: value(v.CompartmentId), name: value(v.DisplayName),
			state: string(v.LifecycleState), keys: []string{value(v.VcnId), usesRoutes(v.RouteTableId)},
		}
	})
)

func gatewayOperations() []Operation {
	const query = "compartmentId*,vcnId,limit,page,displayName,sortBy,sortOrder,lifecycleState"
	services := networkOperation("ListServices", http.MethodGet, "/services", "limit,page", Inspect, func(c *call) (*answer, error) {
		return c.send(http.StatusOK, c.oracleServices()), nil
	})
	one := networkOperation("GetService", http.MethodGet, "/services/{serviceId}", "", Read, func(c *call) (*answer, error) {
		for _, s := range c.oracleServices() {
			if *s.Id == c.param("serviceId") {
				return c.send(http.StatusOK, s), nil
			}
		}
		return nil, errNotFound()
	})
	services.Resource, one.Resource = serviceGateways.policy, serviceGateways.policy
	var list []Operation
	list = append(list, gatewayTable("InternetGateway", "/internetGateways", "igId", query, internetGateways.kindInfo, createInternetGateway, updateInternetGateway,
		func(c *call) (*answer, error) { return deleteGateway(c, internetGateways, nil) })...)
	list = append(list, gatewayTable("NatGateway", "/natGateways", "natGatewayId", query, natGateways.kindInfo, createNATGateway, updateNATGateway, deleteNATGateway)...)
	list = append(list, gatewayTable("ServiceGateway", "/serviceGateways", "serviceGatewayId", strings.Replace(query, "displayName,", "", 1), serviceGateways.kindInfo,
		createServiceGateway, updateServiceGateway, func(c *call) (*answer, error) { return deleteGateway(c, serviceGateways, nil) })...)
	return append(list, services, one)
}

// gatewayTable are the five operations of a kind of gateway.
func gatewayTable(name, path, id, query string, kind *kindInfo, create, update, remove func(*call) (*answer, error)) []Operation {
	one := path + "/{" + id + "}"
	made := networkOperation("Create"+name, http.MethodPost, path, "", Manage, create)
	made.Resource, made.RetryToken = kind.policy, true
	changed := networkOperation("Update"+name, http.MethodPut, one, "", Manage, update)
	removed := networkOperation("Delete"+name, http.MethodDelete, one, "", Manage, remove)
	for _, o := range []*Operation{&changed, &removed} {
		o.Target, o.IfMatch = kind, true
	}
	return []Operation{made, networkGet("Get"+name, one, kind), networkList("List"+name+"s", path, query, kind), changed, removed}
}

// oracleServices are what a service gateway can lead to: object storage alone, or all services.
func (cl *cloud) oracleServices() []core.Service {
	key := cl.options.RegionKey
	id := func(n string) *string {
		return common.String("ocid1.service." + cl.options.Realm + "." + key + ".aaaaaaaasimulatedservice" + n)
	}
	return []core.Service{
		{
			Id: id("1"), Name: common.String("OCI " + strings.ToUpper(key) + " Object Storage"), CidrBlock: common.String("oci-" + key + "-objectstorage"),
			Description: common.String("OCI " + strings.ToUpper(key) + " Object Storage"),
		},
		{
			Id: id("2"), Name: common.String("All " + strings.ToUpper(key) + " Services In Oracle Services Network"),
			CidrBlock:   common.String("all-" + key + "-services-in-oracle-services-network"),
			Description: common.String("All " + strings.ToUpper(key) + " Services In Oracle Services Network"),
		},
	}
}

// serviceOf finds a service by its identifier or its CIDR label.
func (cl *cloud) serviceOf(reference string) *core.Service {
	for _, s := range cl.oracleServices() {
		if *s.Id == reference || *s.CidrBlock == reference {
			return &s
		}
	}
	return nil
}

// gatewayIn checks what the creates of all gateways have in common: compartment, VCN, name, route table, and that the
// VCN has none of the kind yet.
func (c *call) gatewayIn(kind *kindInfo, compartment, vcnID, name, table *string) (*core.Vcn, error) {
	if err := c.createIn(value(compartment)); err != nil {
		return nil, err
	}
	vcn, err := vcns.related(c, value(vcnID))
	if err != nil {
		return nil, err
	}
	if err := checkName(name); err != nil {
		return nil, err
	}
	if _, err := c.routeTable(table, vcn, nil); err != nil {
		return nil, err
	}
	for _, other := range c.store.under(kind, value(vcnID)) {
		if err := c.rule(SecondGateway, value(vcnID), kind.label, other.id); err != nil {
			return nil, err
		}
	}
	return vcn, nil
}

func createInternetGateway(c *call) (*answer, error) {
	d, err := decode[core.CreateInternetGatewayDetails](c)
	if err != nil {
		return nil, err
	}
	if _, err := c.gatewayIn(internetGateways.kindInfo, d.CompartmentId, d.VcnId, d.DisplayName, d.RouteTableId); err != nil {
		return nil, err
	}
	v := &core.InternetGateway{
		Id: common.String(c.newOCID(internetGateways.ocidType)), CompartmentId: d.CompartmentId, VcnId: d.VcnId,
		DisplayName:    common.String(orElse(value(d.DisplayName), "internetgateway"+c.nameSuffix())),
		LifecycleState: core.InternetGatewayLifecycleStateProvisioning, TimeCreated: c.sdkTime(),
		IsEnabled: d.IsEnabled, RouteTableId: d.RouteTableId,
		FreeformTags: map[string]string{}, DefinedTags: map[string]map[string]interface{}{},
	}
	setTags(&v.FreeformTags, &v.DefinedTags, d.FreeformTags, d.DefinedTags)
	res := internetGateways.insert(c.cloud, v)
	provision(c, internetGateways, res.id, "gateway.create")
	return c.created(res), nil
}

func createNATGateway(c *call) (*answer, error) {
	d, err := decode[core.CreateNatGatewayDetails](c)
	if err != nil {
		return nil, err
	}
	if _, err := c.gatewayIn(natGateways.kindInfo, d.CompartmentId, d.VcnId, d.DisplayName, d.RouteTableId); err != nil {
		return nil, err
	}
	if id := value(d.PublicIpId); id != "" {
		if err := c.reservedAddresses([]string{id}, false); err != nil {
			return nil, err
		}
	}
	v, err := c.newNATGateway(c.newOCID(natGateways.ocidType), value(d.CompartmentId), value(d.VcnId), value(d.PublicIpId))
	if err != nil {
		return nil, err
	}
	replace(&v.DisplayName, d.DisplayName)
	v.LifecycleState, v.BlockTraffic, v.RouteTableId = core.NatGatewayLifecycleStateProvisioning, common.Bool(value(d.BlockTraffic)), d.RouteTableId
	setTags(&v.FreeformTags, &v.DefinedTags, d.FreeformTags, d.DefinedTags)
	res := natGateways.insert(c.cloud, v)
	provision(c, natGateways, res.id, "gateway.create")
	return c.created(res), nil
}

// newNATGateway is a NAT gateway with its public address: a reserved one, or an ephemeral one of its own.
func (cl *cloud) newNATGateway(id, compartment, vcn, reserved string) (*core.NatGateway, error) {
	public := publicIPs.find(cl, reserved)
	if public == nil {
		var err error
		if public, err = cl.addPublicIP(publicIPSpec{compartment: compartment, state: core.PublicIpLifecycleStateAvailable}); err != nil {
			return nil, err
		}
	}
	publicIPs.update(cl, value(public.Id), func(p *core.PublicIp) {
		p.LifecycleState = core.PublicIpLifecycleStateAssigned
		p.AssignedEntityType, p.AssignedEntityId = core.PublicIpAssignedEntityTypeNatGateway, common.String(id)
	})
	return &core.NatGateway{
		Id: common.String(id), CompartmentId: common.String(compartment), VcnId: common.String(vcn),
		DisplayName: common.String("natgateway" + cl.nameSuffix()), LifecycleState: core.NatGatewayLifecycleStateAvailable,
		TimeCreated: cl.sdkTime(), BlockTraffic: common.Bool(false), NatIp: public.IpAddress, PublicIpId: public.Id,
		FreeformTags: map[string]string{}, DefinedTags: map[string]map[string]interface{}{},
	}, nil
}

func createServiceGateway(c *call) (*answer, error) {
	d, err := decode[core.CreateServiceGatewayDetails](c)
	if err != nil {
		return nil, err
	}
	if _, err := c.gatewayIn(serviceGateways.kindInfo, d.CompartmentId, d.VcnId, d.DisplayName, d.RouteTableId); err != nil {
		return nil, err
	}
	services, err := c.gatewayServices(d.Services)
	if err != nil {
		return nil, err
	}
	v := &core.ServiceGateway{
		Id: common.String(c.newOCID(serviceGateways.ocidType)), CompartmentId: d.CompartmentId, VcnId: d.VcnId,
		DisplayName:    common.String(orElse(value(d.DisplayName), "servicegateway"+c.nameSuffix())),
		LifecycleState: core.ServiceGatewayLifecycleStateProvisioning, TimeCreated: c.sdkTime(),
		BlockTraffic: common.Bool(false), RouteTableId: d.RouteTableId, Services: services,
		FreeformTags: map[string]string{}, DefinedTags: map[string]map[string]interface{}{},
	}
	setTags(&v.FreeformTags, &v.DefinedTags, d.FreeformTags, d.DefinedTags)
	res := serviceGateways.insert(c.cloud, v)
	provision(c, serviceGateways, res.id, "gateway.create")
	return c.created(res), nil
}

// gatewayServices checks the services of a gateway. It has at most one: they include each other.
func (c *call) gatewayServices(list []core.ServiceIdRequestDetails) ([]core.ServiceIdResponseDetails, error) {
	if len(list) > 1 {
		return nil, errInvalid("A service gateway takes one service: one of those listed includes the other.")
	}
	services := []core.ServiceIdResponseDetails{}
	for _, one := range list {
		s := c.serviceOf(value(one.ServiceId))
		if s == nil {
			return nil, errRelated(value(one.ServiceId))
		}
		services = append(services, core.ServiceIdResponseDetails{ServiceId: s.Id, ServiceName: s.Name})
	}
	return services, nil
}

// changeGateway checks what the updates of all gateways have in common.
func (c *call) changeGateway(vcn, name, table *string) error {
	if err := firstOf(c.available(), checkName(name)); err != nil {
		return err
	}
	_, err := c.routeTable(table, vcns.find(c.cloud, value(vcn)), nil)
	return err
}

func updateInternetGateway(c *call) (*answer, error) {
	d, err := decode[core.UpdateInternetGatewayDetails](c)
	if err != nil {
		return nil, err
	}
	if err := c.changeGateway(internetGateways.of(c.target).VcnId, d.DisplayName, d.RouteTableId); err != nil {
		return nil, err
	}
	internetGateways.update(c.cloud, c.target.id, func(v *core.InternetGateway) {
		replace(&v.DisplayName, d.DisplayName)
		replace(&v.IsEnabled, d.IsEnabled)
		replace(&v.RouteTableId, d.RouteTableId)
		setTags(&v.FreeformTags, &v.DefinedTags, d.FreeformTags, d.DefinedTags)
	})
	return c.show(c.target), nil
}

func updateNATGateway(c *call) (*answer, error) {
	d, err := decode[core.UpdateNatGatewayDetails](c)
	if err != nil {
		return nil, err
	}
	if err := c.changeGateway(natGateways.of(c.target).VcnId, d.DisplayName, d.RouteTableId); err != nil {
		return nil, err
	}
	natGateways.update(c.cloud, c.target.id, func(v *core.NatGateway) {
		replace(&v.DisplayName, d.DisplayName)
		replace(&v.BlockTraffic, d.BlockTraffic)
		replace(&v.RouteTableId, d.RouteTableId)
		setTags(&v.FreeformTags, &v.DefinedTags, d.FreeformTags, d.DefinedTags)
	})
	return c.show(c.target), nil
}

func updateServiceGateway(c *call) (*answer, error) {
	d, err := decode[core.UpdateServiceGatewayDetails](c)
	if err != nil {
		return nil, err
	}
	now := serviceGateways.of(c.target)
	if err := c.changeGateway(now.VcnId, d.DisplayName, d.RouteTableId); err != nil {
		return nil, err
	}
	services := now.Services
	if d.Services != nil {
		if services, err = c.gatewayServices(d.Services); err != nil {
			return nil, err
		}
	}
	serviceGateways.update(c.cloud, c.target.id, func(v *core.ServiceGateway) {
		replace(&v.DisplayName, d.DisplayName)
		replace(&v.BlockTraffic, d.BlockTraffic)
		replace(&v.RouteTableId, d.RouteTableId)
		v.Services = services
		setTags(&v.FreeformTags, &v.DefinedTags, d.FreeformTags, d.DefinedTags)
	})
	return c.show(c.target), nil
}

// deleteGateway refuses to delete what a route rule names.
func deleteGateway[T any](c *call, k kind[T], then func()) (*answer, error) {
	if err := c.unused(routeTables.kindInfo, routesTo(c.target.id)); err != nil {
		return nil, err
	}
	return terminate(c, k, "gateway.delete", then)
}

func deleteNATGateway(c *call) (*answer, error) {
	cl, address := c.cloud, value(natGateways.of(c.target).PublicIpId)
	return deleteGateway(c, natGateways, func() { cl.releaseNATAddress(address) })
}

// releaseNATAddress makes the reserved address of a deleted NAT gateway available again; an ephemeral one goes.
func (cl *cloud) releaseNATAddress(id string) {
	p := publicIPs.find(cl, id)
	switch {
	case p == nil:
	case p.Lifetime == core.PublicIpLifetimeReserved:
		publicIPs.update(cl, id, func(p *core.PublicIp) {
			p.LifecycleState, p.AssignedEntityId, p.AssignedEntityType = core.PublicIpLifecycleStateAvailable, nil, ""
		})
	default:
		cl.removePublicIP(id)
	}
}

// InternetGateways returns all internet gateways.
func (r *Region) InternetGateways() []core.InternetGateway { return inspect(r, internetGateways, "") }

// NATGateways returns all NAT gateways.
func (r *Region) NATGateways() []core.NatGateway { return inspect(r, natGateways, "") }

// ServiceGateways returns all service gateways.
func (r *Region) ServiceGateways() []core.ServiceGateway { return inspect(r, serviceGateways, "") }
