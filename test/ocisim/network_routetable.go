// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package ocisim

import (
	"net/http"
	"net/netip"

	"github.com/oracle/oci-go-sdk/v65/common"
	"github.com/oracle/oci-go-sdk/v65/core"
)

// routeTables are listed by VCN and by the targets of their rules.
var routeTables = newKind(kindInfo{
	ocidType: "routetable", label: "route table", policy: "route-tables", eventual: true,
}, func(v *core.RouteTable) facets {
	f := facets{
		id: value(v.Id), compartment: value(v.CompartmentId), name: value(v.DisplayName),
		state: string(v.LifecycleState), keys: []string{value(v.VcnId)},
	}
	for _, rule := range v.RouteRules {
		f.keys = append(f.keys, routesTo(value(rule.NetworkEntityId)))
	}
	return f
})

func routeTableOperations() []Operation {
	const path = "/routeTables/{rtId}"
	const targets = "targets are internet, NAT and service gateways and private IPs"
	create := networkOperation("CreateRouteTable", http.MethodPost, "/routeTables", "", Manage, createRouteTable)
	create.Resource, create.RetryToken, create.Partial = routeTables.policy, true, targets
	update := networkOperation("UpdateRouteTable", http.MethodPut, path, "", Manage, updateRouteTable)
	update.Partial = targets
	remove := networkOperation("DeleteRouteTable", http.MethodDelete, path, "", Manage, deleteRouteTable)
	for _, o := range []*Operation{&update, &remove} {
		o.Target, o.IfMatch = routeTables.kindInfo, true
	}
	return []Operation{
		create,
		networkGet("GetRouteTable", path, routeTables.kindInfo),
		networkList("ListRouteTables", "/routeTables",
			"compartmentId*,limit,page,vcnId,displayName,sortBy,sortOrder,lifecycleState", routeTables.kindInfo),
		update, remove,
	}
}

func createRouteTable(c *call) (*answer, error) {
	d, err := decode[core.CreateRouteTableDetails](c)
	if err != nil {
		return nil, err
	}
	if err := c.createIn(value(d.CompartmentId)); err != nil {
		return nil, err
	}
	vcn, err := vcns.related(c, value(d.VcnId))
	if err != nil {
		return nil, err
	}
	if err := checkName(d.DisplayName); err != nil {
		return nil, err
	}
	id := c.newOCID(routeTables.ocidType)
	rules, err := c.routeRules(id, vcn, d.RouteRules)
	if err != nil {
		return nil, err
	}
	v := c.newRouteTable(id, value(d.CompartmentId), value(vcn.Id), orElse(value(d.DisplayName), "routetable"+c.nameSuffix()))
	v.RouteRules, v.LifecycleState = rules, core.RouteTableLifecycleStateProvisioning
	setTags(&v.FreeformTags, &v.DefinedTags, d.FreeformTags, d.DefinedTags)
	res := routeTables.insert(c.cloud, v)
	provision(c, routeTables, id, "routetable.create")
	return c.created(res), nil
}

// newRouteTable is an empty route table.
func (cl *cloud) newRouteTable(id, compartment, vcn, name string) *core.RouteTable {
	return &core.RouteTable{
		Id: common.String(id), CompartmentId: common.String(compartment), VcnId: common.String(vcn), DisplayName: common.String(name),
		LifecycleState: core.RouteTableLifecycleStateAvailable, RouteRules: []core.RouteRule{}, TimeCreated: cl.sdkTime(),
		FreeformTags: map[string]string{}, DefinedTags: map[string]map[string]interface{}{},
	}
}

// checkName refuses a display name that is empty or too long; none is fine.
func checkName(name *string) error {
	if name == nil {
		return nil
	}
	return checkSize("displayName", *name, 1, 255)
}

// updateRouteTable replaces all rules if the request has any list of them.
func updateRouteTable(c *call) (*answer, error) {
	d, err := decode[core.UpdateRouteTableDetails](c)
	if err != nil {
		return nil, err
	}
	if err := c.available(); err != nil {
		return nil, err
	}
	if err := checkName(d.DisplayName); err != nil {
		return nil, err
	}
	v := routeTables.of(c.target)
	rules := v.RouteRules
	if d.RouteRules != nil {
		if rules, err = c.routeRules(c.target.id, vcns.find(c.cloud, value(v.VcnId)), d.RouteRules); err != nil {
			return nil, err
		}
	}
	routeTables.update(c.cloud, c.target.id, func(v *core.RouteTable) {
		replace(&v.DisplayName, d.DisplayName)
		v.RouteRules = rules
		setTags(&v.FreeformTags, &v.DefinedTags, d.FreeformTags, d.DefinedTags)
	})
	return c.show(c.target), nil
}

// deleteRouteTable refuses to delete the default of a VCN, and what a subnet, a VNIC or a gateway uses.
func deleteRouteTable(c *call) (*answer, error) {
	id := c.target.id
	vcn := vcns.find(c.cloud, value(routeTables.of(c.target).VcnId))
	if vcn != nil && value(vcn.DefaultRouteTableId) == id {
		if err := c.rule(DefaultResourceDelete, "route table", id, value(vcn.Id)); err != nil {
			return nil, err
		}
	}
	for _, kind := range []*kindInfo{
		subnets.kindInfo, vnics.kindInfo, privateIPs.kindInfo, ipv6s.kindInfo, internetGateways.kindInfo, natGateways.kindInfo, serviceGateways.kindInfo,
	} {
		if err := c.unused(kind, usesRoutes(&id)); err != nil {
			return nil, err
		}
	}
	return terminate(c, routeTables, "routetable.delete", nil)
}

// routeTable resolves the route table that a request names for something in a VCN; "" and nil are the fallback.
func (c *call) routeTable(id *string, vcn *core.Vcn, fallback *string) (*string, error) {
	if value(id) == "" {
		return fallback, nil
	}
	table, err := routeTables.related(c, *id)
	if err != nil {
		return nil, err
	}
	if value(table.VcnId) != value(vcn.Id) {
		return nil, errInvalid("The route table %s is not in the VCN %s.", *id, value(vcn.Id))
	}
	return table.Id, nil
}

// routeRules checks the rules of a table and completes them as the service does.
func (c *call) routeRules(table string, vcn *core.Vcn, rules []core.RouteRule) ([]core.RouteRule, error) {
	if most := c.behaviour.MaxRouteRules; len(rules) > most {
		if err := c.rule(TooManyRouteRules, table, most); err != nil {
			return nil, err
		}
	}
	complete := make([]core.RouteRule, 0, len(rules))
	seen := map[string]bool{}
	for _, rule := range rules {
		if err := completeRoute(&rule); err != nil {
			return nil, err
		}
		if seen[*rule.Destination] {
			if err := c.rule(RouteDestinationTwice, *rule.Destination); err != nil {
				return nil, err
			}
		}
		seen[*rule.Destination] = true
		if err := c.checkRouteTarget(&rule, vcn); err != nil {
			return nil, err
		}
		complete = append(complete, rule)
	}
	return complete, nil
}

// completeRoute turns the old form of a destination, cidrBlock, into the new one; it shows both then.
func completeRoute(rule *core.RouteRule) error {
	switch {
	case rule.CidrBlock != nil && rule.Destination != nil:
		return errInvalid("A route rule has either cidrBlock or destination, not both.")
	case rule.CidrBlock != nil:
		rule.Destination, rule.DestinationType = rule.CidrBlock, core.RouteRuleDestinationTypeCidrBlock
	case rule.Destination == nil:
		return errMissing("destination")
	case rule.DestinationType == "":
		return errMissing("destinationType")
	}
	rule.RouteType = core.RouteRuleRouteTypeStatic
	if rule.DestinationType != core.RouteRuleDestinationTypeCidrBlock {
		return nil
	}
	prefix, err := netip.ParsePrefix(*rule.Destination)
	if err != nil || prefix.Masked() != prefix {
		return errInvalid("destination %s is not a CIDR block", *rule.Destination)
	}
	if rule.CidrBlock != nil && prefix.Addr().Is6() {
		return errInvalid("cidrBlock %s cannot be an IPv6 prefix", *rule.CidrBlock)
	}
	return nil
}

// checkRouteTarget checks that a target exists, is in the VCN of the table, and can take what the rule sends it.
func (c *call) checkRouteTarget(rule *core.RouteRule, vcn *core.Vcn) error {
	target, service := value(rule.NetworkEntityId), rule.DestinationType == core.RouteRuleDestinationTypeServiceCidrBlock
	if service && c.serviceOf(*rule.Destination) == nil {
		return errInvalid("destination %s is not the CIDR label of a service", *rule.Destination)
	}
	var inVCN string
	var takesService, takesSixth bool
	res := c.store.byID[target]
	if res == nil || terminal(res.state) {
		return errRelated(target)
	}
	switch res.kind {
	case internetGateways.kindInfo:
		inVCN, takesSixth = value(internetGateways.of(res).VcnId), true
	case natGateways.kindInfo:
		inVCN = value(natGateways.of(res).VcnId)
	case serviceGateways.kindInfo:
		inVCN, takesService = value(serviceGateways.of(res).VcnId), true
	case privateIPs.kindInfo:
		var err error
		if inVCN, err = c.routedVNIC(privateIPs.of(res)); err != nil {
			return err
		}
	default:
		return errInvalid("networkEntityId %s cannot be the target of a route rule", target)
	}
	switch {
	case c.denied(res.kind.policy, Read, res.compartment):
		return errRelated(target)
	case inVCN != value(vcn.Id):
		return errInvalid("The target %s is not in the VCN %s of the route table.", target, value(vcn.Id))
	case service != takesService:
		return errInvalid("A rule for %s cannot have the target %s.", *rule.Destination, target)
	case !service && !takesSixth && netip.MustParsePrefix(*rule.Destination).Addr().Is6():
		return errInvalid("A rule for the IPv6 prefix %s cannot have the target %s.", *rule.Destination, target)
	}
	return nil
}

// routedVNIC checks the VNIC of a private IP that traffic is routed to and returns its VCN.
func (c *call) routedVNIC(ip *core.PrivateIp) (string, error) {
	subnet, vnic := subnets.find(c.cloud, value(ip.SubnetId)), vnics.find(c.cloud, value(ip.VnicId))
	if subnet == nil || vnic == nil {
		return "", errRelated(value(ip.Id))
	}
	if !value(vnic.SkipSourceDestCheck) {
		if err := c.rule(RouteTargetChecksSource, value(ip.Id)); err != nil {
			return "", err
		}
	}
	return value(subnet.VcnId), nil
}

// RouteTables returns all route tables.
func (r *Region) RouteTables() []core.RouteTable { return inspect(r, routeTables, "") }

// RouteTable returns one route table.
func (r *Region) RouteTable(id string) (core.RouteTable, bool) { return inspectOne(r, routeTables, id) }

// RouteTable changes a route table.
func (f *Foreign) RouteTable(id string, change func(*core.RouteTable)) error {
	return mutate(f, routeTables, id, change)
}
