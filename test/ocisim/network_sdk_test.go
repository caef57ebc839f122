// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package ocisim_test

import (
	"net/http"
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	"github.com/oracle/oci-go-sdk/v65/common"
	"github.com/oracle/oci-go-sdk/v65/core"

	"github.com/oracle/oci-cloud-controller-manager/test/ocisim"
	"github.com/oracle/oci-cloud-controller-manager/test/pki"
)

// netLab is the fixture with the SDK's clients of the network and of compute, on virtual time.
type netLab struct {
	*fixture

	network core.VirtualNetworkClient
	compute core.ComputeClient
}

func onVirtualNetwork(t *testing.T, options ocisim.Options, run func(t *testing.T, l *netLab)) {
	t.Helper()
	pki.SigningKey()
	synctest.Test(t, func(t *testing.T) {
		options.Signatures = true
		f := newFixture(t, options)
		l := &netLab{fixture: f}
		provider := sdkProvider(f.region)
		var err error
		if l.network, err = core.NewVirtualNetworkClientWithConfigurationProvider(provider); err != nil {
			t.Fatal(err)
		}
		if l.compute, err = core.NewComputeClientWithConfigurationProvider(provider); err != nil {
			t.Fatal(err)
		}
		// Some of these operations are retried by default, which would only make refusals slow.
		once := common.NoRetryPolicy()
		l.network.SetCustomClientConfiguration(common.CustomClientConfiguration{RetryPolicy: &once})
		l.compute.SetCustomClientConfiguration(common.CustomClientConfiguration{RetryPolicy: &once})
		http := &http.Client{Transport: f.region.Transport()}
		l.network.HTTPClient, l.compute.HTTPClient = http, http
		run(t, l)
	})
}

// refusedFor asserts a refusal of one of several cases.
func refusedFor(t *testing.T, name string, err error, status int, code string) {
	t.Helper()
	failure, ok := common.IsServiceError(err)
	if !ok || failure.GetHTTPStatusCode() != status || failure.GetCode() != code {
		t.Errorf("%s: got %v, want %d %s", name, err, status, code)
	}
}

// need returns the value of a call that has to succeed.
func need[T any](v T, err error) func(t *testing.T) T {
	return func(t *testing.T) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

// aMinute lets everything that takes seconds happen.
func aMinute() { time.Sleep(time.Minute) }

func (l *netLab) vcnWith(t *testing.T, block string) core.Vcn {
	t.Helper()
	made := need(l.network.CreateVcn(t.Context(), core.CreateVcnRequest{CreateVcnDetails: core.CreateVcnDetails{
		CompartmentId: &l.compartment, CidrBlocks: []string{block}, IsIpv6Enabled: common.Bool(true), DnsLabel: common.String("lab"),
	}}))(t)
	return made.Vcn
}

func (l *netLab) internetGateway(t *testing.T, vcn *string) *string {
	t.Helper()
	made := need(l.network.CreateInternetGateway(t.Context(), core.CreateInternetGatewayRequest{
		CreateInternetGatewayDetails: core.CreateInternetGatewayDetails{CompartmentId: &l.compartment, VcnId: vcn, IsEnabled: common.Bool(true)},
	}))(t)
	return made.Id
}

func route(destination string, target *string) core.RouteRule {
	return core.RouteRule{
		Destination: &destination, DestinationType: core.RouteRuleDestinationTypeCidrBlock, NetworkEntityId: target,
	}
}

// TestVCNLife makes a network with everything in it and takes it away again, in the only order that works.
func TestVCNLife(t *testing.T) {
	onVirtualNetwork(t, ocisim.Options{}, func(t *testing.T, l *netLab) {
		ctx, c := t.Context(), l.network
		vcn := l.vcnWith(t, "10.8.0.0/16")
		if vcn.LifecycleState != core.VcnLifecycleStateProvisioning || len(vcn.Ipv6CidrBlocks) != 1 || *vcn.VcnDomainName != "lab.oraclevcn.com" {
			t.Errorf("new VCN %v", vcn)
		}
		_, err := c.UpdateVcn(ctx, core.UpdateVcnRequest{VcnId: vcn.Id, UpdateVcnDetails: core.UpdateVcnDetails{DisplayName: common.String("x")}})
		refused(t, err, http.StatusConflict, "IncorrectState")
		aMinute()
		table := need(c.GetRouteTable(ctx, core.GetRouteTableRequest{RtId: vcn.DefaultRouteTableId}))(t)
		if *table.VcnId != *vcn.Id || len(table.RouteRules) != 0 || table.LifecycleState != core.RouteTableLifecycleStateAvailable {
			t.Errorf("default route table %v", table.RouteTable)
		}
		dhcp := need(c.GetDhcpOptions(ctx, core.GetDhcpOptionsRequest{DhcpId: vcn.DefaultDhcpOptionsId}))(t)
		if _, ok := dhcp.Options[0].(core.DhcpDnsOption); !ok || len(dhcp.Options) != 2 {
			t.Errorf("default DHCP options %v", dhcp.Options)
		}
		lists := need(c.ListSecurityLists(ctx, core.ListSecurityListsRequest{CompartmentId: &l.compartment, VcnId: vcn.Id}))(t)
		if len(lists.Items) != 1 || *lists.Items[0].Id != *vcn.DefaultSecurityListId || len(lists.Items[0].IngressSecurityRules) != 3 {
			t.Errorf("security lists %v", lists.Items)
		}
		gateway := l.internetGateway(t, vcn.Id)
		subnet := need(c.CreateSubnet(ctx, core.CreateSubnetRequest{CreateSubnetDetails: core.CreateSubnetDetails{
			CompartmentId: &l.compartment, VcnId: vcn.Id, CidrBlock: common.String("10.8.1.0/24"), DnsLabel: common.String("nodes"),
			Ipv6CidrBlock: common.String("2001:db8:0:100::/64"),
		}}))(t)
		aMinute()
		if *subnet.SubnetDomainName != "nodes.lab.oraclevcn.com" || *subnet.VirtualRouterIp != "10.8.1.1" || *subnet.RouteTableId != *vcn.DefaultRouteTableId {
			t.Errorf("new subnet %v", subnet.Subnet)
		}
		_, err = c.DeleteVcn(ctx, core.DeleteVcnRequest{VcnId: vcn.Id})
		refused(t, err, http.StatusConflict, "Conflict")
		need(c.DeleteSubnet(ctx, core.DeleteSubnetRequest{SubnetId: subnet.Id}))(t)
		need(c.DeleteInternetGateway(ctx, core.DeleteInternetGatewayRequest{IgId: gateway}))(t)
		if got := need(c.GetSubnet(ctx, core.GetSubnetRequest{SubnetId: subnet.Id}))(t); got.LifecycleState != core.SubnetLifecycleStateTerminating {
			t.Errorf("a subnet that is deleted is %s", got.LifecycleState)
		}
		aMinute()
		need(c.DeleteVcn(ctx, core.DeleteVcnRequest{VcnId: vcn.Id}))(t)
		aMinute()
		_, err = c.GetVcn(ctx, core.GetVcnRequest{VcnId: vcn.Id})
		refused(t, err, http.StatusNotFound, "NotAuthorizedOrNotFound")
		_, err = c.GetRouteTable(ctx, core.GetRouteTableRequest{RtId: vcn.DefaultRouteTableId})
		refused(t, err, http.StatusNotFound, "NotAuthorizedOrNotFound")
	})
}

func TestSubnetConflicts(t *testing.T) {
	onVirtualNetwork(t, ocisim.Options{}, func(t *testing.T, l *netLab) {
		ctx, c := t.Context(), l.network
		create := func(change func(*core.CreateSubnetDetails)) error {
			d := core.CreateSubnetDetails{CompartmentId: &l.compartment, VcnId: &l.vcn, CidrBlock: common.String("10.0.99.0/24")}
			change(&d)
			_, err := c.CreateSubnet(ctx, core.CreateSubnetRequest{CreateSubnetDetails: d})
			return err
		}
		other := l.vcnWith(t, "10.9.0.0/16")
		for name, change := range map[string]func(*core.CreateSubnetDetails){
			"overlap":             func(d *core.CreateSubnetDetails) { d.CidrBlock = common.String("10.0.10.128/25") },
			"outside the VCN":     func(d *core.CreateSubnetDetails) { d.CidrBlock = common.String("10.1.0.0/24") },
			"too small":           func(d *core.CreateSubnetDetails) { d.CidrBlock = common.String("10.0.99.0/31") },
			"host bits":           func(d *core.CreateSubnetDetails) { d.CidrBlock = common.String("10.0.99.7/24") },
			"unknown domain":      func(d *core.CreateSubnetDetails) { d.AvailabilityDomain = common.String("AD-9") },
			"IPv6 without prefix": func(d *core.CreateSubnetDetails) { d.Ipv6CidrBlock = common.String("2001:db8::/64") },
			"IPv6 of a /60":       func(d *core.CreateSubnetDetails) { d.Ipv6CidrBlock = common.String("2001:db8::/60") },
			"table elsewhere":     func(d *core.CreateSubnetDetails) { d.RouteTableId = other.DefaultRouteTableId },
			"list elsewhere":      func(d *core.CreateSubnetDetails) { d.SecurityListIds = []string{*other.DefaultSecurityListId} },
			"DHCP elsewhere":      func(d *core.CreateSubnetDetails) { d.DhcpOptionsId = other.DefaultDhcpOptionsId },
			"long DNS label":      func(d *core.CreateSubnetDetails) { d.DnsLabel = common.String("abcdefghijklmnop") },
			"six lists":           func(d *core.CreateSubnetDetails) { d.SecurityListIds = make([]string, 6) },
		} {
			refusedFor(t, name, create(change), http.StatusBadRequest, "InvalidParameter")
		}
		err := create(func(d *core.CreateSubnetDetails) { d.RouteTableId = common.String("ocid1.routetable.oc1.iad.unknown") })
		refused(t, err, http.StatusBadRequest, "RelatedResourceNotAuthorizedOrNotFound")
		// The VNIC of the fixture's instance keeps the subnet; that of a terminated one does too, for minutes.
		_, err = c.DeleteSubnet(ctx, core.DeleteSubnetRequest{SubnetId: &l.subnet})
		refused(t, err, http.StatusConflict, "Conflict")
		if err := l.region.Foreign().TerminateInstance(l.instance); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Minute)
		_, err = c.DeleteSubnet(ctx, core.DeleteSubnetRequest{SubnetId: &l.subnet})
		refused(t, err, http.StatusConflict, "Conflict")
		time.Sleep(10 * time.Minute)
		need(c.DeleteSubnet(ctx, core.DeleteSubnetRequest{SubnetId: &l.subnet}))(t)
	})
}

func TestUpdateSubnet(t *testing.T) {
	onVirtualNetwork(t, ocisim.Options{}, func(t *testing.T, l *netLab) {
		ctx, c := t.Context(), l.network
		table := need(c.CreateRouteTable(ctx, core.CreateRouteTableRequest{CreateRouteTableDetails: core.CreateRouteTableDetails{
			CompartmentId: &l.compartment, VcnId: &l.vcn, RouteRules: []core.RouteRule{},
		}}))(t)
		list := need(c.CreateSecurityList(ctx, core.CreateSecurityListRequest{CreateSecurityListDetails: core.CreateSecurityListDetails{
			CompartmentId: &l.compartment, VcnId: &l.vcn, IngressSecurityRules: []core.IngressSecurityRule{}, EgressSecurityRules: []core.EgressSecurityRule{},
		}}))(t)
		aMinute()
		got := need(c.UpdateSubnet(ctx, core.UpdateSubnetRequest{SubnetId: &l.subnet, UpdateSubnetDetails: core.UpdateSubnetDetails{
			DisplayName: common.String("renamed"), RouteTableId: table.Id, SecurityListIds: []string{*list.Id}, FreeformTags: map[string]string{"a": "b"},
		}}))(t)
		if *got.DisplayName != "renamed" || *got.RouteTableId != *table.Id || got.SecurityListIds[0] != *list.Id || got.FreeformTags["a"] != "b" {
			t.Errorf("updated subnet %v", got.Subnet)
		}
		// What the subnet uses cannot be deleted; nor can defaults.
		_, err := c.DeleteRouteTable(ctx, core.DeleteRouteTableRequest{RtId: table.Id})
		refused(t, err, http.StatusConflict, "Conflict")
		_, err = c.DeleteSecurityList(ctx, core.DeleteSecurityListRequest{SecurityListId: list.Id})
		refused(t, err, http.StatusConflict, "Conflict")
		vcn := l.region.VCNs()[0]
		_, err = c.DeleteRouteTable(ctx, core.DeleteRouteTableRequest{RtId: vcn.DefaultRouteTableId})
		refused(t, err, http.StatusConflict, "Conflict")
		_, err = c.DeleteSecurityList(ctx, core.DeleteSecurityListRequest{SecurityListId: vcn.DefaultSecurityListId})
		refused(t, err, http.StatusConflict, "Conflict")
		need(c.UpdateSubnet(ctx, core.UpdateSubnetRequest{SubnetId: &l.subnet, UpdateSubnetDetails: core.UpdateSubnetDetails{
			RouteTableId: vcn.DefaultRouteTableId, SecurityListIds: []string{*vcn.DefaultSecurityListId},
		}}))(t)
		need(c.DeleteRouteTable(ctx, core.DeleteRouteTableRequest{RtId: table.Id}))(t)
		need(c.DeleteSecurityList(ctx, core.DeleteSecurityListRequest{SecurityListId: list.Id}))(t)
		aMinute()
		tables := need(c.ListRouteTables(ctx, core.ListRouteTablesRequest{CompartmentId: &l.compartment, VcnId: &l.vcn}))(t)
		if len(tables.Items) != 1 {
			t.Errorf("%d route tables are left", len(tables.Items))
		}
	})
}

// inAny says whether an address is in one of the blocks.
func inAny(address string, blocks ...string) bool {
	a := netip.MustParseAddr(address)
	for _, block := range blocks {
		if netip.MustParsePrefix(block).Contains(a) {
			return true
		}
	}
	return false
}
