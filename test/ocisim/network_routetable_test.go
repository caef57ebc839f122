// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package ocisim_test

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/oracle/oci-go-sdk/v65/common"
	"github.com/oracle/oci-go-sdk/v65/core"
	"sigs.k8s.io/yaml"

	"github.com/oracle/oci-cloud-controller-manager/test/ocisim"
)

// primaryIP is the primary private IP of the fixture's instance, whose VNIC forwards or not.
func (l *netLab) primaryIP(t *testing.T, forwards bool) *string {
	t.Helper()
	vnic := l.region.InstanceVNICs(l.instance)[0].Id
	need(l.network.UpdateVnic(t.Context(), core.UpdateVnicRequest{VnicId: vnic, UpdateVnicDetails: core.UpdateVnicDetails{SkipSourceDestCheck: &forwards}}))(t)
	list := need(l.network.ListPrivateIps(t.Context(), core.ListPrivateIpsRequest{VnicId: vnic}))(t)
	return list.Items[0].Id
}

func (l *netLab) setRoutes(t *testing.T, table *string, rules ...core.RouteRule) error {
	t.Helper()
	_, err := l.network.UpdateRouteTable(t.Context(), core.UpdateRouteTableRequest{
		RtId: table, UpdateRouteTableDetails: core.UpdateRouteTableDetails{RouteRules: append([]core.RouteRule{}, rules...)},
	})
	return err
}

// TestRoutesToPods is what a routes controller does: a table whose rules lead to the private IPs of nodes, replaced as a
// whole under if-match.
func TestRoutesToPods(t *testing.T) {
	onVirtualNetwork(t, ocisim.Options{}, func(t *testing.T, l *netLab) {
		ctx, c := t.Context(), l.network
		node, table := l.primaryIP(t, true), l.region.VCNs()[0].DefaultRouteTableId
		before := need(c.GetRouteTable(ctx, core.GetRouteTableRequest{RtId: table}))(t)
		rules := []core.RouteRule{route("10.244.1.0/24", node)}
		rules[0].Description = common.String("pods of node-1")
		got := need(c.UpdateRouteTable(ctx, core.UpdateRouteTableRequest{
			RtId: table, IfMatch: before.Etag, UpdateRouteTableDetails: core.UpdateRouteTableDetails{RouteRules: rules},
		}))(t)
		if len(got.RouteRules) != 1 || got.RouteRules[0].RouteType != core.RouteRuleRouteTypeStatic || *got.Etag == *before.Etag {
			t.Errorf("updated table %v", got.RouteTable)
		}
		_, err := c.UpdateRouteTable(ctx, core.UpdateRouteTableRequest{
			RtId: table, IfMatch: before.Etag, UpdateRouteTableDetails: core.UpdateRouteTableDetails{RouteRules: []core.RouteRule{}},
		})
		refused(t, err, http.StatusPreconditionFailed, "NoEtagMatch")
		// An update without rules keeps them; the same rules again change nothing, the etag included.
		same := need(c.UpdateRouteTable(ctx, core.UpdateRouteTableRequest{RtId: table, UpdateRouteTableDetails: core.UpdateRouteTableDetails{
			RouteRules: rules,
		}}))(t)
		if *same.Etag != *got.Etag {
			t.Error("the same rules changed the etag")
		}
		renamed := need(c.UpdateRouteTable(ctx, core.UpdateRouteTableRequest{RtId: table, UpdateRouteTableDetails: core.UpdateRouteTableDetails{
			DisplayName: common.String("routes"),
		}}))(t)
		if len(renamed.RouteRules) != 1 || *renamed.DisplayName != "routes" {
			t.Errorf("renamed table %v", renamed.RouteTable)
		}
		if err := l.setRoutes(t, table); err != nil {
			t.Fatal(err)
		}
		// The old form of a destination shows as the new one too.
		old := core.RouteRule{CidrBlock: common.String("10.244.2.0/24"), NetworkEntityId: node}
		if err := l.setRoutes(t, table, old); err != nil {
			t.Fatal(err)
		}
		rule := need(c.GetRouteTable(ctx, core.GetRouteTableRequest{RtId: table}))(t).RouteRules[0]
		if *rule.Destination != "10.244.2.0/24" || *rule.CidrBlock != "10.244.2.0/24" || rule.DestinationType != core.RouteRuleDestinationTypeCidrBlock {
			t.Errorf("a rule in the old form %v", rule)
		}
	})
}

func TestRouteRuleErrors(t *testing.T) {
	onVirtualNetwork(t, ocisim.Options{}, func(t *testing.T, l *netLab) {
		node, table := l.primaryIP(t, true), l.region.VCNs()[0].DefaultRouteTableId
		internet := l.internetGateway(t, &l.vcn)
		elsewhere := l.internetGateway(t, l.vcnWith(t, "10.9.0.0/16").Id)
		aMinute()
		if err := l.setRoutes(t, table, route("0.0.0.0/0", internet), route("::/0", internet), route("10.244.0.0/24", node)); err != nil {
			t.Fatal(err)
		}
		both, service := route("10.244.1.0/24", node), route("oci-iad-objectstorage", node)
		both.CidrBlock = both.Destination
		service.DestinationType = core.RouteRuleDestinationTypeServiceCidrBlock
		unknown := route("all-mars-services", internet)
		unknown.DestinationType = core.RouteRuleDestinationTypeServiceCidrBlock
		many := make([]core.RouteRule, 201)
		for i := range many {
			many[i] = route(fmt.Sprintf("10.%d.%d.0/24", 100+i/100, i%100), node)
		}
		for name, test := range map[string]struct {
			code  string
			rules []core.RouteRule
		}{
			"both forms":               {"InvalidParameter", []core.RouteRule{both}},
			"not a block":              {"InvalidParameter", []core.RouteRule{route("10.244.1.1/24", node)}},
			"IPv6 to a private IP":     {"InvalidParameter", []core.RouteRule{route("2001:db8:9::/64", node)}},
			"destination twice":        {"InvalidParameter", []core.RouteRule{route("10.244.1.0/24", node), route("10.244.1.0/24", internet)}},
			"target in another VCN":    {"InvalidParameter", []core.RouteRule{route("0.0.0.0/0", elsewhere)}},
			"target of another kind":   {"InvalidParameter", []core.RouteRule{route("0.0.0.0/0", &l.subnet)}},
			"service to a private IP":  {"InvalidParameter", []core.RouteRule{service}},
			"unknown service":          {"InvalidParameter", []core.RouteRule{unknown}},
			"unknown target":           {"RelatedResourceNotAuthorizedOrNotFound", []core.RouteRule{route("0.0.0.0/0", common.String("ocid1.internetgateway.oc1.iad.x"))}},
			"without destination type": {"MissingParameter", []core.RouteRule{{Destination: common.String("10.244.1.0/24"), NetworkEntityId: node}}},
			"too many":                 {"LimitExceeded", many},
		} {
			refusedFor(t, name, l.setRoutes(t, table, test.rules...), http.StatusBadRequest, test.code)
		}
		if got, _ := l.region.RouteTable(*table); len(got.RouteRules) != 3 {
			t.Errorf("a refused update changed the table: %v", got.RouteRules)
		}
		l.primaryIP(t, false)
		refused(t, l.setRoutes(t, table, route("10.244.1.0/24", node)), http.StatusBadRequest, "InvalidParameter")
		l.region.SetBehaviour(func(b *ocisim.Behaviour) { b.Rulings[ocisim.RouteTargetChecksSource] = ocisim.Ruling{Allow: true} })
		if err := l.setRoutes(t, table, route("10.244.1.0/24", node)); err != nil {
			t.Error(err)
		}
	})
}

// TestGateways knows the three kinds, one of each in a VCN, and that a rule holds its target.
func TestGateways(t *testing.T) {
	onVirtualNetwork(t, ocisim.Options{}, func(t *testing.T, l *netLab) {
		ctx, c := t.Context(), l.network
		internet := l.internetGateway(t, &l.vcn)
		_, err := c.CreateInternetGateway(ctx, core.CreateInternetGatewayRequest{CreateInternetGatewayDetails: core.CreateInternetGatewayDetails{
			CompartmentId: &l.compartment, VcnId: &l.vcn, IsEnabled: common.Bool(true),
		}})
		refused(t, err, http.StatusBadRequest, "LimitExceeded")
		nat := need(c.CreateNatGateway(ctx, core.CreateNatGatewayRequest{CreateNatGatewayDetails: core.CreateNatGatewayDetails{
			CompartmentId: &l.compartment, VcnId: &l.vcn,
		}}))(t)
		services := need(c.ListServices(ctx, core.ListServicesRequest{}))(t)
		private := need(c.CreateServiceGateway(ctx, core.CreateServiceGatewayRequest{CreateServiceGatewayDetails: core.CreateServiceGatewayDetails{
			CompartmentId: &l.compartment, VcnId: &l.vcn, Services: []core.ServiceIdRequestDetails{{ServiceId: services.Items[1].Id}},
		}}))(t)
		aMinute()
		table := l.region.VCNs()[0].DefaultRouteTableId
		rule := core.RouteRule{
			Destination: services.Items[1].CidrBlock, DestinationType: core.RouteRuleDestinationTypeServiceCidrBlock, NetworkEntityId: private.Id,
		}
		if err := l.setRoutes(t, table, route("0.0.0.0/0", nat.Id), rule); err != nil {
			t.Fatal(err)
		}
		refused(t, l.setRoutes(t, table, route("0.0.0.0/0", private.Id)), http.StatusBadRequest, "InvalidParameter")
		_, err = c.DeleteNatGateway(ctx, core.DeleteNatGatewayRequest{NatGatewayId: nat.Id})
		refused(t, err, http.StatusConflict, "Conflict")
		_, err = c.DeleteServiceGateway(ctx, core.DeleteServiceGatewayRequest{ServiceGatewayId: private.Id})
		refused(t, err, http.StatusConflict, "Conflict")
		public := need(c.GetPublicIp(ctx, core.GetPublicIpRequest{PublicIpId: nat.PublicIpId}))(t)
		if *public.IpAddress != *nat.NatIp || *public.AssignedEntityId != *nat.Id || public.AssignedEntityType != core.PublicIpAssignedEntityTypeNatGateway {
			t.Errorf("address of the NAT gateway %v", public.PublicIp)
		}
		if err := l.setRoutes(t, table); err != nil {
			t.Fatal(err)
		}
		blocked := need(c.UpdateNatGateway(ctx, core.UpdateNatGatewayRequest{NatGatewayId: nat.Id, UpdateNatGatewayDetails: core.UpdateNatGatewayDetails{BlockTraffic: common.Bool(true)}}))(t)
		if !*blocked.BlockTraffic {
			t.Error("the NAT gateway does not block")
		}
		need(c.DeleteNatGateway(ctx, core.DeleteNatGatewayRequest{NatGatewayId: nat.Id}))(t)
		need(c.DeleteServiceGateway(ctx, core.DeleteServiceGatewayRequest{ServiceGatewayId: private.Id}))(t)
		need(c.DeleteInternetGateway(ctx, core.DeleteInternetGatewayRequest{IgId: internet}))(t)
		aMinute()
		if n := len(l.region.InternetGateways()) + len(l.region.NATGateways()) + len(l.region.ServiceGateways()) + len(l.region.PublicIPs()); n != 0 {
			t.Errorf("%d gateways and addresses are left", n)
		}
	})
}

const routedWorld = `
compartments: [{name: cluster}]
vcns:
- {name: net, routes: [{destination: 0.0.0.0/0, target: internet}, {destination: 10.244.1.0/24, target: node-1, description: pods}]}
gateways: [{kind: internet, name: out}, {kind: nat}, {kind: service, freeformTags: {a: b}}]
routeTables:
- {name: private, routes: [{destination: 0.0.0.0/0, target: nat}, {destination: all-iad-services-in-oracle-services-network, target: service}]}
- {routes: [{destination: 0.0.0.0/0, target: out}]}
subnets: [{name: nodes, cidr: 10.0.1.0/24, routeTable: private}]
instances: [{name: node-1, subnet: nodes, skipSourceDestCheck: true}]
`

func TestSeedRoutes(t *testing.T) {
	var world ocisim.World
	if err := yaml.UnmarshalStrict([]byte(routedWorld), &world); err != nil {
		t.Fatal(err)
	}
	region := ocisim.New(ocisim.Options{Seed: 1})
	if err := region.Seed(world); err != nil {
		t.Fatal(err)
	}
	targets := map[string]string{
		*region.InternetGateways()[0].Id: "internet", *region.NATGateways()[0].Id: "nat", *region.ServiceGateways()[0].Id: "service",
		*region.PrivateIPs()[0].Id: "node-1",
	}
	var got []string
	for _, table := range region.RouteTables() {
		for _, rule := range table.RouteRules {
			got = append(got, fmt.Sprint(*rule.Destination, " ", rule.DestinationType, " ", targets[*rule.NetworkEntityId]))
		}
	}
	want := []string{
		"0.0.0.0/0 CIDR_BLOCK internet", "10.244.1.0/24 CIDR_BLOCK node-1", "0.0.0.0/0 CIDR_BLOCK nat",
		"all-iad-services-in-oracle-services-network SERVICE_CIDR_BLOCK service", "0.0.0.0/0 CIDR_BLOCK internet",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if subnet := region.Subnets()[0]; *subnet.RouteTableId != *region.RouteTables()[1].Id {
		t.Errorf("the subnet has the route table %s", *subnet.RouteTableId)
	}
	for name, world := range map[string]ocisim.World{
		"unknown target":      {RouteTables: []ocisim.RouteTable{{Routes: []ocisim.Route{{Destination: "0.0.0.0/0", Target: "nowhere"}}}}},
		"no such gateway":     {VCNs: []ocisim.VCN{{Name: "b", Routes: []ocisim.Route{{Destination: "0.0.0.0/0", Target: "nat"}}}}},
		"no destination":      {RouteTables: []ocisim.RouteTable{{Routes: []ocisim.Route{{Target: "nat"}}}}},
		"unknown kind":        {Gateways: []ocisim.Gateway{{Kind: "peering"}}},
		"unknown route table": {Subnets: []ocisim.Subnet{{CIDR: "10.0.9.0/24", RouteTable: "x"}}},
	} {
		if err := region.Seed(world); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
