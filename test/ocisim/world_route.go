// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package ocisim

import (
	"fmt"
	"net/netip"

	"github.com/oracle/oci-go-sdk/v65/common"
	"github.com/oracle/oci-go-sdk/v65/core"
)

// Kinds of gateways.
const (
	GatewayInternet = "internet"
	GatewayNAT      = "nat"
	GatewayService  = "service" // to all services of Oracle
)

// Gateway of a VCN.
type Gateway struct {
	ID          string `json:"id,omitempty"`
	Compartment string `json:"compartment,omitempty"` // default: that of the VCN
	VCN         string `json:"vcn,omitempty"`         // default: the first
	Name        string `json:"name,omitempty"`
	Kind        string `json:"kind"` // internet, nat or service

	Tags `json:",inline"`
}

// RouteTable of a VCN.
type RouteTable struct {
	ID          string  `json:"id,omitempty"`
	Compartment string  `json:"compartment,omitempty"` // default: that of the VCN
	VCN         string  `json:"vcn,omitempty"`         // default: the first
	Name        string  `json:"name,omitempty"`
	Routes      []Route `json:"routes,omitempty"`

	Tags `json:",inline"`
}

// Route is a rule of a route table.
type Route struct {
	Destination string `json:"destination"` // CIDR block, or the CIDR label of a service
	// Target is a gateway (OCID, name, or kind: the one of the VCN), an instance (its primary private IP), or a private
	// IP (OCID).
	Target      string `json:"target"`
	Description string `json:"description,omitempty"`
}

func (s seeder) gateway(g Gateway) (string, error) {
	vcn, err := resolve(s.cl, vcns, g.VCN)
	if err != nil {
		return "", err
	}
	compartment, err := s.compartmentOf(g.Compartment, value(vcn.CompartmentId))
	if err != nil {
		return "", err
	}
	kinds := map[string]string{
		GatewayInternet: internetGateways.ocidType, GatewayNAT: natGateways.ocidType, GatewayService: serviceGateways.ocidType,
	}
	ocidType, known := kinds[g.Kind]
	if !known {
		return "", fmt.Errorf("seed: gateway %s: the kind %q is not internet, nat or service", g.Name, g.Kind)
	}
	id, err := s.newID(g.ID, ocidType)
	if err != nil {
		return "", err
	}
	name := common.String(orElse(g.Name, ocidType+s.cl.nameSuffix()))
	switch g.Kind {
	case GatewayInternet:
		internetGateways.insert(s.cl, &core.InternetGateway{
			Id: common.String(id), CompartmentId: common.String(compartment), VcnId: vcn.Id, DisplayName: name,
			LifecycleState: core.InternetGatewayLifecycleStateAvailable, TimeCreated: s.cl.sdkTime(), IsEnabled: common.Bool(true),
			FreeformTags: g.freeform(), DefinedTags: g.defined(),
		})
	case GatewayNAT:
		v, err := s.cl.newNATGateway(id, compartment, value(vcn.Id), "")
		if err != nil {
			return "", fmt.Errorf("seed: gateway %s: %w", g.Name, err)
		}
		v.DisplayName, v.FreeformTags, v.DefinedTags = name, g.freeform(), g.defined()
		natGateways.insert(s.cl, v)
	case GatewayService:
		all := s.cl.oracleServices()[1]
		serviceGateways.insert(s.cl, &core.ServiceGateway{
			Id: common.String(id), CompartmentId: common.String(compartment), VcnId: vcn.Id, DisplayName: name,
			LifecycleState: core.ServiceGatewayLifecycleStateAvailable, TimeCreated: s.cl.sdkTime(), BlockTraffic: common.Bool(false),
			Services:     []core.ServiceIdResponseDetails{{ServiceId: all.Id, ServiceName: all.Name}},
			FreeformTags: g.freeform(), DefinedTags: g.defined(),
		})
	}
	return id, nil
}

// routeTable adds a table without rules: their targets may come later in the world.
func (s seeder) routeTable(t RouteTable) (string, error) {
	id, err := s.newID(t.ID, routeTables.ocidType)
	if err != nil {
		return "", err
	}
	vcn, err := resolve(s.cl, vcns, t.VCN)
	if err != nil {
		return "", err
	}
	compartment, err := s.compartmentOf(t.Compartment, value(vcn.CompartmentId))
	if err != nil {
		return "", err
	}
	v := s.cl.newRouteTable(id, compartment, value(vcn.Id), orElse(t.Name, "routetable"+s.cl.nameSuffix()))
	v.FreeformTags, v.DefinedTags = t.freeform(), t.defined()
	routeTables.insert(s.cl, v)
	*s.later = append(*s.later, func() error { return s.fillRouteTable(id, t.Routes) })
	return id, nil
}

// fillRouteTable gives a table its rules, once all targets are there.
func (s seeder) fillRouteTable(id string, routes []Route) error {
	if len(routes) == 0 {
		return nil
	}
	table := routeTables.find(s.cl, id)
	rules := []core.RouteRule{}
	for _, route := range routes {
		target, err := s.routeTarget(value(table.VcnId), route.Target)
		if err != nil {
			return err
		}
		rule := core.RouteRule{
			NetworkEntityId: common.String(target), Destination: common.String(route.Destination),
			DestinationType: core.RouteRuleDestinationTypeCidrBlock, RouteType: core.RouteRuleRouteTypeStatic,
		}
		if route.Description != "" {
			rule.Description = common.String(route.Description)
		}
		if s.cl.serviceOf(route.Destination) != nil {
			rule.DestinationType = core.RouteRuleDestinationTypeServiceCidrBlock
		} else if _, err := netip.ParsePrefix(route.Destination); err != nil {
			return fmt.Errorf("seed: route table %s: destination %q is neither a CIDR block nor the label of a service", value(table.DisplayName), route.Destination)
		}
		rules = append(rules, rule)
	}
	routeTables.update(s.cl, id, func(v *core.RouteTable) { v.RouteRules = rules })
	return nil
}

// routeTarget resolves what a route leads to.
func (s seeder) routeTarget(vcn, reference string) (string, error) {
	kinds := map[string]*kindInfo{
		GatewayInternet: internetGateways.kindInfo, GatewayNAT: natGateways.kindInfo, GatewayService: serviceGateways.kindInfo,
	}
	if kind, ok := kinds[reference]; ok {
		if found := s.cl.store.under(kind, vcn); len(found) > 0 {
			return found[0].id, nil
		}
		return "", fmt.Errorf("seed: the VCN %s has no %s", vcn, kind.label)
	}
	for _, kind := range kinds {
		for _, res := range s.cl.store.under(kind, vcn) {
			if res.id == reference || res.name == reference {
				return res.id, nil
			}
		}
	}
	if privateIPs.lookup(s.cl, reference) != nil {
		return reference, nil
	}
	if reference == "" {
		return "", fmt.Errorf("seed: a route without a target")
	}
	instance, err := resolve(s.cl, instances, reference)
	if err != nil {
		return "", fmt.Errorf("seed: no gateway, instance or private IP %q for a route", reference)
	}
	for a := range vnicAttachments.under(s.cl, value(instance.Id)) {
		if ip := s.cl.primaryPrivateIP(value(a.VnicId)); ip != nil {
			return value(ip.Id), nil
		}
	}
	return "", fmt.Errorf("seed: the instance %q has no private IP for a route", reference)
}
