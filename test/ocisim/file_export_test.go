// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package ocisim_test

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/oracle/oci-go-sdk/v65/common"
	"github.com/oracle/oci-go-sdk/v65/filestorage"

	"github.com/oracle/oci-cloud-controller-manager/test/ocisim"
)

func (f *files) createExport(set, fs, path string, options ...filestorage.ClientOptions) (filestorage.CreateExportResponse, error) {
	return f.CreateExport(f.t.Context(), filestorage.CreateExportRequest{CreateExportDetails: filestorage.CreateExportDetails{
		ExportSetId: &set, FileSystemId: &fs, Path: &path, ExportOptions: options,
	}})
}

// exportFixture has a file system in each of two domains, a second one in the first, and a mount target there.
func exportFixture(f *files) (set, fs, second, elsewhere string) {
	fs = f.region.AddFileSystem(ocisim.FileSystem{Name: "data"})
	second = f.region.AddFileSystem(ocisim.FileSystem{Name: "second"})
	elsewhere = f.region.AddFileSystem(ocisim.FileSystem{Name: "elsewhere", AvailabilityDomain: secondDomain})
	v, _ := f.region.MountTarget(f.region.AddMountTarget(ocisim.MountTarget{Name: "nfs"}))
	return *v.ExportSetId, fs, second, elsewhere
}

func TestExportLifecycle(t *testing.T) {
	onFiles(t, ocisim.Options{}, func(t *testing.T, f *files) {
		ctx := t.Context()
		set, fs, second, _ := exportFixture(f)
		created := try(f.createExport(set, fs, "/data")).must(t)
		id := *created.Id
		want := []filestorage.ClientOptions{{
			Source: common.String("0.0.0.0/0"), RequirePrivilegedSourcePort: common.Bool(false),
			Access: filestorage.ClientOptionsAccessWrite, IdentitySquash: filestorage.ClientOptionsIdentitySquashNone,
			AnonymousUid: common.Int64(65534), AnonymousGid: common.Int64(65534), IsAnonymousAccessAllowed: common.Bool(false),
			AllowedAuth: []filestorage.ClientOptionsAllowedAuthEnum{filestorage.ClientOptionsAllowedAuthSys},
		}}
		if created.LifecycleState != filestorage.ExportLifecycleStateCreating || !reflect.DeepEqual(created.ExportOptions, want) {
			t.Errorf("created %v", created.Export)
		}
		_, err := f.DeleteExport(ctx, filestorage.DeleteExportRequest{ExportId: &id})
		refused(t, err, 409, "IncorrectState")
		refused(t, f.deleteFileSystem(fs), 409, "Conflict")
		time.Sleep(6 * time.Second)

		update := filestorage.UpdateExportRequest{ExportId: &id}
		update.ExportOptions = []filestorage.ClientOptions{{Source: common.String("10.0.0.0/16"), Access: filestorage.ClientOptionsAccessOnly}}
		updated, err := f.UpdateExport(ctx, update)
		if err != nil || updated.LifecycleState != filestorage.ExportLifecycleStateActive || len(updated.ExportOptions) != 1 {
			t.Fatalf("update: %v, %v", updated.Export, err)
		}
		if o := updated.ExportOptions[0]; !*o.RequirePrivilegedSourcePort || o.IdentitySquash != filestorage.ClientOptionsIdentitySquashRoot ||
			o.Access != filestorage.ClientOptionsAccessOnly || *o.AnonymousGid != 65534 {
			t.Errorf("options %v", o)
		}
		try(f.createExport(set, second, "/a/second")).must(t)
		f.listExports(t, filestorage.ListExportsRequest{ExportSetId: &set, SortBy: filestorage.ListExportsSortByPath}, "/a/second", "/data")
		f.listExports(t, filestorage.ListExportsRequest{FileSystemId: &fs}, "/data")
		f.listExports(t, filestorage.ListExportsRequest{CompartmentId: &f.compartment, Id: &id}, "/data")
		_, err = f.ListExports(ctx, filestorage.ListExportsRequest{})
		refused(t, err, 400, "InvalidParameter")

		for _, target := range f.region.MountTargets() {
			_, err = f.DeleteMountTarget(ctx, filestorage.DeleteMountTargetRequest{MountTargetId: target.Id})
			refused(t, err, 409, "Conflict")
		}
		if _, err := f.DeleteExport(ctx, filestorage.DeleteExportRequest{ExportId: &id}); err != nil {
			t.Fatal(err)
		}
		refused(t, f.deleteFileSystem(fs), 409, "Conflict")
		time.Sleep(6 * time.Second)
		gone := try(f.GetExport(ctx, filestorage.GetExportRequest{ExportId: &id})).must(t)
		if gone.LifecycleState != filestorage.ExportLifecycleStateDeleted {
			t.Errorf("state %s", gone.LifecycleState)
		}
		// A deleted export holds neither its path nor its file system.
		try(f.createExport(set, fs, "/data")).must(t)
		time.Sleep(2 * time.Hour)
		_, err = f.GetExport(ctx, filestorage.GetExportRequest{ExportId: &id})
		refused(t, err, 404, "NotAuthorizedOrNotFound")
	})
}

func (f *files) listExports(t *testing.T, request filestorage.ListExportsRequest, paths ...string) {
	t.Helper()
	r := try(f.ListExports(t.Context(), request)).must(t)
	var got []string
	for _, e := range r.Items {
		got = append(got, *e.Path)
	}
	if !reflect.DeepEqual(got, paths) {
		t.Errorf("paths %v, want %v", got, paths)
	}
}

func TestExportPaths(t *testing.T) {
	onFiles(t, ocisim.Options{}, func(t *testing.T, f *files) {
		set, fs, second, elsewhere := exportFixture(f)
		for _, path := range []string{
			"", "data", "/data/", "//", "/a//b", "/.", "/a/../b", "/" + strings.Repeat("x", 256), "/" + strings.Repeat("xxxxxxx/", 128) + "x",
		} {
			t.Log(path)
			_, err := f.createExport(set, fs, path)
			refused(t, err, 400, "InvalidParameter")
		}
		try(f.createExport(set, fs, "/a/b")).must(t)
		for _, path := range []string{"/", "/a", "/a/b", "/a/b/c"} {
			t.Log(path)
			_, err := f.createExport(set, second, path)
			refused(t, err, 409, "Conflict")
		}
		_, err := f.createExport(set, fs, "/other")
		refused(t, err, 409, "Conflict")
		_, err = f.createExport(set, elsewhere, "/other")
		refused(t, err, 400, "InvalidParameter")
		_, err = f.createExport("none", second, "/other")
		refused(t, err, 400, "RelatedResourceNotAuthorizedOrNotFound")
		_, err = f.createExport(set, "none", "/other")
		refused(t, err, 400, "RelatedResourceNotAuthorizedOrNotFound")
		_, err = f.createExport(set, second, "/other", filestorage.ClientOptions{Source: common.String("anywhere")})
		refused(t, err, 400, "InvalidParameter")
		try(f.createExport(set, second, "/a/bc")).must(t)
		if n := len(f.region.Exports()); n != 2 {
			t.Errorf("%d exports", n)
		}
		if err := f.region.Foreign().Export(*f.region.Exports()[0].Id, func(e *filestorage.Export) { e.ExportOptions = nil }); err != nil {
			t.Error(err)
		}
	})
}

// TestExportNeedsActiveParts lets an export come too early.
func TestExportNeedsActiveParts(t *testing.T) {
	onFiles(t, ocisim.Options{}, func(t *testing.T, f *files) {
		set, _, _, _ := exportFixture(f)
		young := *try(f.createFileSystem("young")).must(t).Id
		_, err := f.createExport(set, young, "/young")
		refused(t, err, 409, "IncorrectState")
		time.Sleep(10 * time.Second)
		target := *try(f.createMountTarget(nil)).must(t).Id
		time.Sleep(11 * time.Second)
		v := f.wantMountTarget(target, filestorage.MountTargetLifecycleStateCreating)
		_, err = f.createExport(*v.ExportSetId, young, "/young")
		refused(t, err, 409, "IncorrectState")
		time.Sleep(30 * time.Second)
		try(f.createExport(*v.ExportSetId, young, "/young")).must(t)
		update := filestorage.UpdateExportSetRequest{ExportSetId: v.ExportSetId}
		update.MaxFsStatBytes = common.Int64(1 << 40)
		r := try(f.UpdateExportSet(t.Context(), update)).must(t)
		if *r.MaxFsStatBytes != 1<<40 || *r.Etag == "" {
			t.Errorf("export set %v", r.ExportSet)
		}
		list := try(f.ListExportSets(t.Context(), filestorage.ListExportSetsRequest{
			CompartmentId: &f.compartment, AvailabilityDomain: common.String(firstDomain), Id: v.ExportSetId,
		})).must(t)
		if len(list.Items) != 1 {
			t.Errorf("list %v", list.Items)
		}
	})
}

// TestIPv6MountTarget has exports that nobody sees until they get options.
func TestIPv6MountTarget(t *testing.T) {
	onFiles(t, ocisim.Options{}, func(t *testing.T, f *files) {
		subnet := f.region.AddSubnet(ocisim.Subnet{Name: "six", CIDR: "10.0.60.0/24", IPv6CIDR: "2001:db8:0:60::/64"})
		fs := f.region.AddFileSystem(ocisim.FileSystem{Name: "data"})
		v := f.activeMountTarget(func(d *filestorage.CreateMountTargetDetails) {
			d.SubnetId, d.IpAddress = &subnet, common.String("2001:db8:0:60::5")
		})
		if len(v.PrivateIpIds) != 0 || len(v.MountTargetIpv6Ids) != 1 {
			t.Fatalf("mount target %v", v)
		}
		if six := f.region.IPv6s(); len(six) != 1 || *six[0].IpAddress != "2001:db8:0:60::5" || *six[0].Id != v.MountTargetIpv6Ids[0] {
			t.Errorf("IPv6 addresses %v", six)
		}
		e := try(f.createExport(*v.ExportSetId, fs, "/data")).must(t)
		if e.ExportOptions == nil || len(e.ExportOptions) != 0 {
			t.Errorf("options %v", e.ExportOptions)
		}
	})
}

func TestSeedFileStorage(t *testing.T) {
	region := ocisim.New(ocisim.Options{})
	err := region.Seed(ocisim.World{
		Compartments:   []ocisim.Compartment{{Name: "cluster"}},
		VCNs:           []ocisim.VCN{{Name: "net"}},
		SecurityGroups: []ocisim.SecurityGroup{{Name: "nfs"}},
		Subnets:        []ocisim.Subnet{{Name: "files", CIDR: "10.0.30.0/24"}},
		FileSystems:    []ocisim.FileSystem{{Name: "data", AvailabilityDomain: secondDomain}},
		MountTargets: []ocisim.MountTarget{{
			Name: "nfs", AvailabilityDomain: secondDomain, Address: "10.0.30.7", SecurityGroups: []string{"nfs"}, Hostname: "files",
		}},
		Exports: []ocisim.Export{{FileSystem: "data", MountTarget: "nfs", Path: "/data"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	target, fs, e := region.MountTargets()[0], region.FileSystems()[0], region.Exports()[0]
	if *e.FileSystemId != *fs.Id || *e.ExportSetId != *target.ExportSetId || *region.ExportSets()[0].Id != *e.ExportSetId || *e.Path != "/data" {
		t.Errorf("export %v of %v", e, target)
	}
	if ips := region.PrivateIPs(); len(ips) != 3 || *ips[0].IpAddress != "10.0.30.7" || *ips[0].Id != target.PrivateIpIds[0] {
		t.Errorf("addresses %v", ips)
	}
	for _, bad := range []ocisim.World{
		{Exports: []ocisim.Export{{Path: "data"}}},
		{FileSystems: []ocisim.FileSystem{{AvailabilityDomain: "AD-9"}}},
		{MountTargets: []ocisim.MountTarget{{Subnet: "none"}}},
		{MountTargets: []ocisim.MountTarget{{Address: "10.0.30.7"}}},
	} {
		if region.Seed(bad) == nil {
			t.Errorf("seeded %v", bad)
		}
	}
}
