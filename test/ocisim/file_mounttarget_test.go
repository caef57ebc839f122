// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package ocisim_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/oracle/oci-go-sdk/v65/common"
	"github.com/oracle/oci-go-sdk/v65/core"
	"github.com/oracle/oci-go-sdk/v65/filestorage"

	"github.com/oracle/oci-cloud-controller-manager/test/ocisim"
)

func (f *files) createMountTarget(change func(*filestorage.CreateMountTargetDetails)) (filestorage.CreateMountTargetResponse, error) {
	d := filestorage.CreateMountTargetDetails{
		AvailabilityDomain: common.String(firstDomain), CompartmentId: &f.compartment, SubnetId: &f.subnet,
	}
	if change != nil {
		change(&d)
	}
	return f.CreateMountTarget(f.t.Context(), filestorage.CreateMountTargetRequest{CreateMountTargetDetails: d})
}

// activeMountTarget creates a mount target and waits for it.
func (f *files) activeMountTarget(change func(*filestorage.CreateMountTargetDetails)) filestorage.MountTarget {
	f.t.Helper()
	id := *try(f.createMountTarget(change)).must(f.t).Id
	time.Sleep(40 * time.Second)
	return f.wantMountTarget(id, filestorage.MountTargetLifecycleStateActive)
}

func (f *files) wantMountTarget(id string, state filestorage.MountTargetLifecycleStateEnum) filestorage.MountTarget {
	f.t.Helper()
	r, err := f.GetMountTarget(f.t.Context(), filestorage.GetMountTargetRequest{MountTargetId: &id})
	if err != nil || r.LifecycleState != state {
		f.t.Fatalf("mount target is %s (%v), want %s", r.LifecycleState, err, state)
	}
	return r.MountTarget
}

func (f *files) exportSet(id string) filestorage.ExportSet {
	f.t.Helper()
	return try(f.GetExportSet(f.t.Context(), filestorage.GetExportSetRequest{ExportSetId: &id})).must(f.t).ExportSet
}

func (f *files) network() core.VirtualNetworkClient {
	f.t.Helper()
	c := try(core.NewVirtualNetworkClientWithConfigurationProvider(sdkProvider(f.region))).must(f.t)
	c.HTTPClient = &http.Client{Transport: f.region.Transport()}
	return c
}

func TestMountTargetLifecycle(t *testing.T) {
	options := ocisim.Options{Durations: map[string]ocisim.Range{"mounttarget.assign": {Min: 5 * time.Second, Max: 5 * time.Second}}}
	onFiles(t, options, func(t *testing.T, f *files) {
		ctx, network := t.Context(), f.network()
		group := f.region.AddSecurityGroup(ocisim.SecurityGroup{Name: "nfs"})
		created := try(f.createMountTarget(func(d *filestorage.CreateMountTargetDetails) {
			d.NsgIds, d.HostnameLabel, d.IpAddress = []string{group}, common.String("files-1"), common.String("10.0.10.50")
		})).must(t)
		id := *created.Id
		if created.LifecycleState != filestorage.MountTargetLifecycleStateCreating || created.ExportSetId != nil || len(created.PrivateIpIds) != 0 {
			t.Errorf("created %v", created.MountTarget)
		}
		_, err := f.createMountTarget(nil)
		if m := refused(t, err, 409, "Conflict"); m != "Another mounttarget is currently being provisioned, try again later" {
			t.Errorf("message %q", m)
		}
		try(f.createFileSystem("in the meantime")).must(t)
		time.Sleep(6 * time.Second)
		v := f.wantMountTarget(id, filestorage.MountTargetLifecycleStateCreating)
		if set := f.exportSet(*v.ExportSetId); set.LifecycleState != filestorage.ExportSetLifecycleStateCreating || *set.VcnId != f.vcn {
			t.Errorf("export set %v", set)
		}
		time.Sleep(34 * time.Second)
		v = f.wantMountTarget(id, filestorage.MountTargetLifecycleStateActive)
		set := f.exportSet(*v.ExportSetId)
		if set.LifecycleState != filestorage.ExportSetLifecycleStateActive || *set.AvailabilityDomain != firstDomain {
			t.Errorf("export set %v", set)
		}
		ip := try(network.GetPrivateIp(ctx, core.GetPrivateIpRequest{PrivateIpId: &v.PrivateIpIds[0]})).must(t)
		if *ip.IpAddress != "10.0.10.50" || *ip.HostnameLabel != "files-1" || len(v.PrivateIpIds) != 1 {
			t.Errorf("address %v", ip.PrivateIp)
		}
		members := try(network.ListNetworkSecurityGroupVnics(ctx, core.ListNetworkSecurityGroupVnicsRequest{
			NetworkSecurityGroupId: &group,
		})).must(t)
		if len(members.Items) != 1 || *members.Items[0].ResourceId != id || *members.Items[0].VnicId != *ip.VnicId {
			t.Errorf("members %v", members.Items)
		}
		f.updateMountTarget(t, id, group)
		f.deleteMountTargetSlowly(t, v, group)
	})
}

// updateMountTarget takes a mount target out of its group and back.
func (f *files) updateMountTarget(t *testing.T, id, group string) {
	t.Helper()
	for _, groups := range [][]string{{}, {group}} {
		request := filestorage.UpdateMountTargetRequest{MountTargetId: &id}
		request.NsgIds, request.DisplayName = groups, common.String("nfs")
		r, err := f.UpdateMountTarget(t.Context(), request)
		if err != nil || *r.DisplayName != "nfs" || len(r.NsgIds) != len(groups) {
			t.Fatalf("update: %v, %v", r.MountTarget, err)
		}
		members := f.get(api + "/networkSecurityGroups/" + group + "/vnics").want(http.StatusOK).array()
		if len(members) != len(groups) {
			t.Errorf("members %v after groups %v", members, groups)
		}
		time.Sleep(6 * time.Second)
	}
}

// deleteMountTargetSlowly deletes a mount target and waits for its VNIC to go.
func (f *files) deleteMountTargetSlowly(t *testing.T, v filestorage.MountTarget, group string) {
	t.Helper()
	remove := filestorage.DeleteMountTargetRequest{MountTargetId: v.Id}
	if _, err := f.DeleteMountTarget(t.Context(), remove); err != nil {
		t.Fatal(err)
	}
	f.wantMountTarget(*v.Id, filestorage.MountTargetLifecycleStateDeleting)
	if set := f.exportSet(*v.ExportSetId); set.LifecycleState != filestorage.ExportSetLifecycleStateDeleting {
		t.Errorf("export set %v", set)
	}
	time.Sleep(40 * time.Second)
	f.wantMountTarget(*v.Id, filestorage.MountTargetLifecycleStateDeleted)
	if set := f.exportSet(*v.ExportSetId); set.LifecycleState != filestorage.ExportSetLifecycleStateDeleted {
		t.Errorf("export set %v", set)
	}
	_, err := f.DeleteMountTarget(t.Context(), remove)
	refused(t, err, 404, "NotAuthorizedOrNotFound")
	f.delete(api+"/networkSecurityGroups/"+group).wantError(412, "PreconditionFailed")
	time.Sleep(5 * time.Minute)
	f.delete(api + "/networkSecurityGroups/" + group).want(http.StatusNoContent)
	for _, ip := range f.region.PrivateIPs() {
		if strings.HasPrefix(*ip.IpAddress, "10.0.10.50") || !*ip.IsPrimary {
			t.Errorf("address %s is still taken", *ip.IpAddress)
		}
	}
	time.Sleep(time.Hour)
	_, err = f.GetMountTarget(t.Context(), filestorage.GetMountTargetRequest{MountTargetId: v.Id})
	refused(t, err, 404, "NotAuthorizedOrNotFound")
	if len(f.region.ExportSets()) != 0 {
		t.Errorf("export sets %v", f.region.ExportSets())
	}
}

func TestMountTargetRefusals(t *testing.T) {
	type details = filestorage.CreateMountTargetDetails
	onFiles(t, ocisim.Options{}, func(t *testing.T, f *files) {
		small := f.region.AddSubnet(ocisim.Subnet{Name: "small", CIDR: "10.0.99.0/30"})
		elsewhere := f.region.AddSubnet(ocisim.Subnet{Name: "elsewhere", CIDR: "10.0.98.0/24", AvailabilityDomain: secondDomain})
		f.region.AddVCN(ocisim.VCN{Name: "foreign", CIDRs: []string{"10.1.0.0/16"}})
		foreign := f.region.AddSecurityGroup(ocisim.SecurityGroup{Name: "foreign", VCN: "foreign"})
		var many []string
		for range 6 {
			many = append(many, f.region.AddSecurityGroup(ocisim.SecurityGroup{VCN: "net"}))
		}
		for name, c := range map[string]struct {
			change func(*details)
			status int
			code   string
		}{
			"subnet without three addresses": {func(d *details) { d.SubnetId = &small }, 400, "LimitExceeded"},
			"subnet of another domain":       {func(d *details) { d.SubnetId = &elsewhere }, 400, "InvalidParameter"},
			"unknown subnet":                 {func(d *details) { d.SubnetId = common.String("none") }, 400, "RelatedResourceNotAuthorizedOrNotFound"},
			"unknown domain":                 {func(d *details) { d.AvailabilityDomain = common.String("AD-9") }, 400, "InvalidParameter"},
			"six groups":                     {func(d *details) { d.NsgIds = many }, 400, "InvalidParameter"},
			"unknown group":                  {func(d *details) { d.NsgIds = []string{"none"} }, 400, "RelatedResourceNotAuthorizedOrNotFound"},
			"group of another VCN":           {func(d *details) { d.NsgIds = []string{foreign} }, 400, "InvalidParameter"},
			"bad host name":                  {func(d *details) { d.HostnameLabel = common.String("-x") }, 400, "InvalidParameter"},
			"taken host name":                {func(d *details) { d.HostnameLabel = common.String("node-1") }, 409, "Conflict"},
			"taken address":                  {func(d *details) { d.IpAddress = common.String("10.0.10.2") }, 409, "Conflict"},
			"address outside":                {func(d *details) { d.IpAddress = common.String("192.0.2.1") }, 400, "InvalidParameter"},
			"throughput":                     {func(d *details) { d.RequestedThroughput = common.Int64(20) }, 400, "InvalidParameter"},
			"unknown connector": {func(d *details) {
				d.LdapIdmap = &filestorage.CreateLdapIdmapDetails{OutboundConnector1Id: common.String("none")}
			}, 400, "RelatedResourceNotAuthorizedOrNotFound"},
		} {
			t.Log(name)
			before := len(f.region.PrivateIPs())
			_, err := f.createMountTarget(c.change)
			refused(t, err, c.status, c.code)
			if n := len(f.region.PrivateIPs()); n != before {
				t.Errorf("%s: %d addresses, had %d", name, n, before)
			}
		}
		if n := len(f.region.MountTargets()); n != 0 {
			t.Errorf("%d mount targets", n)
		}
	})
}

// TestMountTargetTakesThreeAddresses fills a subnet of 29 bits: five free addresses, of which one mount target takes
// three.
func TestMountTargetTakesThreeAddresses(t *testing.T) {
	onFiles(t, ocisim.Options{}, func(t *testing.T, f *files) {
		subnet := f.region.AddSubnet(ocisim.Subnet{Name: "small", CIDR: "10.0.99.0/29"})
		in := func(d *filestorage.CreateMountTargetDetails) { d.SubnetId = &subnet }
		v := f.activeMountTarget(in)
		_, err := f.createMountTarget(in)
		refused(t, err, 400, "LimitExceeded")
		if _, err := f.DeleteMountTarget(t.Context(), filestorage.DeleteMountTargetRequest{MountTargetId: v.Id}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Hour)
		f.activeMountTarget(in)
	})
}

func TestMoveMountTarget(t *testing.T) {
	onFiles(t, ocisim.Options{}, func(t *testing.T, f *files) {
		other := f.region.AddCompartment(ocisim.Compartment{Name: "other"})
		v := f.activeMountTarget(nil)
		request := filestorage.ChangeMountTargetCompartmentRequest{MountTargetId: v.Id}
		request.CompartmentId = &other
		if _, err := f.ChangeMountTargetCompartment(t.Context(), request); err != nil {
			t.Fatal(err)
		}
		_, err := f.createMountTarget(nil)
		refused(t, err, 409, "Conflict")
		time.Sleep(5 * time.Second)
		if moved := f.wantMountTarget(*v.Id, filestorage.MountTargetLifecycleStateActive); *moved.CompartmentId != other ||
			*f.exportSet(*v.ExportSetId).CompartmentId != other {
			t.Errorf("moved %v", moved)
		}
		list := try(f.ListMountTargets(t.Context(), filestorage.ListMountTargetsRequest{
			CompartmentId: &other, AvailabilityDomain: common.String(firstDomain), ExportSetId: v.ExportSetId,
		})).must(t)
		if len(list.Items) != 1 || *list.Items[0].Id != *v.Id {
			t.Errorf("list %v", list.Items)
		}
	})
}

// TestMountTargetIdentities changes one field of a part, and keeps the others.
func TestMountTargetIdentities(t *testing.T) {
	onFiles(t, ocisim.Options{}, func(t *testing.T, f *files) {
		v := f.activeMountTarget(func(d *filestorage.CreateMountTargetDetails) {
			d.IdmapType = filestorage.MountTargetIdmapTypeLdap
			d.Kerberos = &filestorage.CreateKerberosDetails{KerberosRealm: common.String("EXAMPLE.COM")}
			d.LdapIdmap = &filestorage.CreateLdapIdmapDetails{CacheLifetimeSeconds: common.Int(60)}
		})
		request := filestorage.UpdateMountTargetRequest{MountTargetId: v.Id}
		request.Kerberos = &filestorage.UpdateKerberosDetails{IsKerberosEnabled: common.Bool(true)}
		request.LdapIdmap = &filestorage.UpdateLdapIdmapDetails{UserSearchBase: common.String("ou=people")}
		r := try(f.UpdateMountTarget(t.Context(), request)).must(t)
		if *r.Kerberos.KerberosRealm != "EXAMPLE.COM" || !*r.Kerberos.IsKerberosEnabled || *r.LdapIdmap.CacheLifetimeSeconds != 60 ||
			*r.LdapIdmap.UserSearchBase != "ou=people" || r.IdmapType != filestorage.MountTargetIdmapTypeLdap {
			t.Errorf("mount target %v", r.MountTarget)
		}
		request.LdapIdmap.OutboundConnector1Id = common.String("none")
		time.Sleep(10 * time.Second)
		_, err := f.UpdateMountTarget(t.Context(), request)
		refused(t, err, 400, "RelatedResourceNotAuthorizedOrNotFound")
	})
}
