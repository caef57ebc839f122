// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package ocisim_test

import (
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/oracle/oci-go-sdk/v65/common"
	"github.com/oracle/oci-go-sdk/v65/lustrefilestorage"

	"github.com/oracle/oci-cloud-controller-manager/test/ocisim"
	"github.com/oracle/oci-cloud-controller-manager/test/pki"
)

// lustre is a fixture with an SDK client of File Storage with Lustre, which does not retry.
type lustre struct {
	*fixture
	lustrefilestorage.LustreFileStorageClient
}

func onLustre(t *testing.T, options ocisim.Options, test func(*testing.T, *lustre)) {
	t.Helper()
	pki.SigningKey()
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, options)
		c := try(lustrefilestorage.NewLustreFileStorageClientWithConfigurationProvider(sdkProvider(f.region))).must(t)
		never := common.NoRetryPolicy()
		c.HTTPClient, c.Configuration.CircuitBreaker = &http.Client{Transport: f.region.Transport()}, nil
		c.Configuration.RetryPolicy = &never
		test(t, &lustre{f, c})
	})
}

func (f *lustre) details() lustrefilestorage.CreateLustreFileSystemDetails {
	return lustrefilestorage.CreateLustreFileSystemDetails{
		CompartmentId: &f.compartment, AvailabilityDomain: common.String(firstDomain), FileSystemName: common.String("scratch"),
		CapacityInGBs: common.Int(31200), SubnetId: &f.subnet, DisplayName: common.String("pvc-1"),
		PerformanceTier:         lustrefilestorage.CreateLustreFileSystemDetailsPerformanceTier250,
		RootSquashConfiguration: &lustrefilestorage.RootSquashConfiguration{},
	}
}

func (f *lustre) create(d lustrefilestorage.CreateLustreFileSystemDetails) (lustrefilestorage.CreateLustreFileSystemResponse, error) {
	return f.CreateLustreFileSystem(f.t.Context(), lustrefilestorage.CreateLustreFileSystemRequest{CreateLustreFileSystemDetails: d})
}

func (f *lustre) want(id string, state lustrefilestorage.LustreFileSystemLifecycleStateEnum) lustrefilestorage.GetLustreFileSystemResponse {
	f.t.Helper()
	r, err := f.GetLustreFileSystem(f.t.Context(), lustrefilestorage.GetLustreFileSystemRequest{LustreFileSystemId: &id})
	if err != nil || r.LifecycleState != state {
		f.t.Fatalf("Lustre file system is %s (%v), want %s", r.LifecycleState, err, state)
	}
	return r
}

func (f *lustre) work(id *string, status lustrefilestorage.OperationStatusEnum) lustrefilestorage.GetWorkRequestResponse {
	f.t.Helper()
	r, err := f.GetWorkRequest(f.t.Context(), lustrefilestorage.GetWorkRequestRequest{WorkRequestId: id})
	if err != nil || r.Status != status {
		f.t.Fatalf("work request is %s (%v), want %s", r.Status, err, status)
	}
	if r.RetryAfter == nil || *r.RetryAfter < 1 || r.Etag == nil {
		f.t.Errorf("headers of the work request: %v, %v", r.RetryAfter, r.Etag)
	}
	return r
}

func (f *lustre) remove(id string) (lustrefilestorage.DeleteLustreFileSystemResponse, error) {
	return f.DeleteLustreFileSystem(f.t.Context(), lustrefilestorage.DeleteLustreFileSystemRequest{LustreFileSystemId: &id})
}

func TestLustreLifecycle(t *testing.T) {
	onLustre(t, ocisim.Options{}, func(t *testing.T, f *lustre) {
		group := f.region.AddSecurityGroup(ocisim.SecurityGroup{Name: "lnet"})
		d := f.details()
		d.NsgIds = []string{group}
		created := try(f.create(d)).must(t)
		id := *created.Id
		if created.LifecycleState != lustrefilestorage.LustreFileSystemLifecycleStateCreating || *created.ManagementServiceAddress != "" ||
			*created.Lnet != "tcp" || *created.Location != "/20250228/lustreFileSystems/"+id || *created.ContentLocation != *created.Location ||
			*created.RootSquashConfiguration.SquashUid != 65534 {
			t.Errorf("created %v", created.LustreFileSystem)
		}
		if again := try(f.create(f.details())).must(t); *again.Id == id {
			t.Error("two creates gave one file system")
		}
		f.work(created.OpcWorkRequestId, lustrefilestorage.OperationStatusAccepted)
		_, err := f.remove(id)
		refused(t, err, 409, "IncorrectState")
		time.Sleep(2 * time.Second)
		f.work(created.OpcWorkRequestId, lustrefilestorage.OperationStatusInProgress)
		time.Sleep(10 * time.Minute)
		work := f.work(created.OpcWorkRequestId, lustrefilestorage.OperationStatusSucceeded)
		if r := work.Resources[0]; *r.Identifier != id || r.ActionType != lustrefilestorage.ActionTypeCreated || *work.PercentComplete != 100 {
			t.Errorf("work request %v", work.WorkRequest)
		}
		v := f.want(id, lustrefilestorage.LustreFileSystemLifecycleStateActive)
		if !strings.HasPrefix(*v.ManagementServiceAddress, "10.0.10.") {
			t.Errorf("address %q", *v.ManagementServiceAddress)
		}
		if members := f.get(api + "/networkSecurityGroups/" + group + "/vnics").want(http.StatusOK).array(); len(members) != 1 || str(members[0], "resourceId") != id {
			t.Errorf("members %v", members)
		}
		f.listAndUpdate(t, id)
		f.deleteTwice(t, id, group)
	})
}

// listAndUpdate finds a file system and lets it grow.
func (f *lustre) listAndUpdate(t *testing.T, id string) {
	t.Helper()
	ctx := t.Context()
	list := try(f.ListLustreFileSystems(ctx, lustrefilestorage.ListLustreFileSystemsRequest{
		CompartmentId: &f.compartment, AvailabilityDomain: common.String(firstDomain), DisplayName: common.String("pvc-1"),
		SortBy: lustrefilestorage.ListLustreFileSystemsSortByTimecreated, SortOrder: lustrefilestorage.ListLustreFileSystemsSortOrderAsc,
	})).must(t)
	if len(list.Items) != 2 || *list.Items[0].Id != id {
		t.Errorf("list %v", list.Items)
	}
	if one := try(f.ListLustreFileSystems(ctx, lustrefilestorage.ListLustreFileSystemsRequest{Id: &id})).must(t); len(one.Items) != 1 {
		t.Errorf("list %v", one.Items)
	}
	_, err := f.ListLustreFileSystems(ctx, lustrefilestorage.ListLustreFileSystemsRequest{})
	refused(t, err, 400, "MissingParameter")

	update := lustrefilestorage.UpdateLustreFileSystemRequest{LustreFileSystemId: &id, IfMatch: common.String("stale")}
	for _, size := range []int{31199, 26200, 31201} {
		update.CapacityInGBs, update.IfMatch = common.Int(size), nil
		_, err = f.UpdateLustreFileSystem(ctx, update)
		refused(t, err, 400, "InvalidParameter")
	}
	update.CapacityInGBs, update.DisplayName, update.NsgIds = common.Int(41200), common.String("grown"), []string{}
	updated := try(f.UpdateLustreFileSystem(ctx, update)).must(t)
	if v := f.want(id, lustrefilestorage.LustreFileSystemLifecycleStateUpdating); *v.CapacityInGBs != 31200 {
		t.Errorf("capacity %d before the change is applied", *v.CapacityInGBs)
	}
	_, err = f.UpdateLustreFileSystem(ctx, update)
	refused(t, err, 409, "IncorrectState")
	time.Sleep(4 * time.Minute)
	f.work(updated.OpcWorkRequestId, lustrefilestorage.OperationStatusSucceeded)
	if v := f.want(id, lustrefilestorage.LustreFileSystemLifecycleStateActive); *v.CapacityInGBs != 41200 || *v.DisplayName != "grown" || len(v.NsgIds) != 0 {
		t.Errorf("updated %v", v.LustreFileSystem)
	}

	other := f.region.AddCompartment(ocisim.Compartment{Name: "other"})
	move := lustrefilestorage.ChangeLustreFileSystemCompartmentRequest{LustreFileSystemId: &id}
	move.CompartmentId = &other
	try(f.ChangeLustreFileSystemCompartment(ctx, move)).must(t)
	time.Sleep(10 * time.Second)
	if v := f.want(id, lustrefilestorage.LustreFileSystemLifecycleStateActive); *v.CompartmentId != other {
		t.Errorf("moved %v", v.LustreFileSystem)
	}
}

// deleteTwice deletes a file system, whose VNIC goes some time later.
func (f *lustre) deleteTwice(t *testing.T, id, group string) {
	t.Helper()
	gone := try(f.remove(id)).must(t)
	_, err := f.remove(id)
	refused(t, err, 409, "IncorrectState")
	f.want(id, lustrefilestorage.LustreFileSystemLifecycleStateDeleting)
	time.Sleep(6 * time.Minute)
	f.want(id, lustrefilestorage.LustreFileSystemLifecycleStateDeleted)
	work := f.work(gone.OpcWorkRequestId, lustrefilestorage.OperationStatusSucceeded)
	if work.Resources[0].ActionType != lustrefilestorage.ActionTypeDeleted {
		t.Errorf("work request %v", work.WorkRequest)
	}
	_, err = f.remove(id)
	refused(t, err, 404, "NotAuthorizedOrNotFound")
	time.Sleep(2 * time.Hour)
	if _, ok := f.region.LustreFileSystem(id); ok || len(f.region.LustreFileSystems()) != 1 {
		t.Errorf("left: %v", f.region.LustreFileSystems())
	}
	f.delete(api + "/networkSecurityGroups/" + group).want(http.StatusNoContent)
}

func TestLustreFails(t *testing.T) {
	onLustre(t, ocisim.Options{}, func(t *testing.T, f *lustre) {
		ctx := t.Context()
		disarm := f.region.Fault(ocisim.Fault{Operation: "CreateLustreFileSystem", FailWork: true, Code: "SeOutOfCapacity", Message: "no capacity"})
		created := try(f.create(f.details())).must(t)
		disarm()
		time.Sleep(11 * time.Minute)
		if v := f.want(*created.Id, lustrefilestorage.LustreFileSystemLifecycleStateFailed); *v.LifecycleDetails != "no capacity" {
			t.Errorf("details %v", v.LifecycleDetails)
		}
		list := try(f.ListWorkRequests(ctx, lustrefilestorage.ListWorkRequestsRequest{
			CompartmentId: &f.compartment, ResourceId: created.Id, Status: lustrefilestorage.ListWorkRequestsStatusFailed,
			SortBy: lustrefilestorage.ListWorkRequestsSortByTimeaccepted,
		})).must(t)
		if len(list.Items) != 1 || *list.Items[0].Id != *created.OpcWorkRequestId ||
			list.Items[0].OperationType != lustrefilestorage.OperationTypeCreateLustreFileSystem {
			t.Fatalf("work requests %v", list.Items)
		}
		errors := try(f.ListWorkRequestErrors(ctx, lustrefilestorage.ListWorkRequestErrorsRequest{WorkRequestId: list.Items[0].Id})).must(t)
		if len(errors.Items) != 1 || *errors.Items[0].Code != "SeOutOfCapacity" || *errors.Items[0].Message != "no capacity" {
			t.Errorf("errors %v", errors.Items)
		}
		logs := try(f.ListWorkRequestLogs(ctx, lustrefilestorage.ListWorkRequestLogsRequest{WorkRequestId: list.Items[0].Id})).must(t)
		if len(logs.Items) != 3 || !strings.HasPrefix(*logs.Items[0].Message, "Accepted ") || logs.OpcNextPage != nil {
			t.Errorf("logs %v", logs.Items)
		}
		last := lustrefilestorage.ListWorkRequestLogsRequest{
			WorkRequestId: list.Items[0].Id, SortBy: lustrefilestorage.ListWorkRequestLogsSortByTimestamp,
			SortOrder: lustrefilestorage.ListWorkRequestLogsSortOrderDesc, Limit: common.Int(2),
		}
		logs = try(f.ListWorkRequestLogs(ctx, last)).must(t)
		if len(logs.Items) != 2 || !strings.HasPrefix(*logs.Items[0].Message, "Finished ") || logs.OpcNextPage == nil {
			t.Fatalf("the last logs %v", logs.Items)
		}
		last.Page = logs.OpcNextPage
		if logs = try(f.ListWorkRequestLogs(ctx, last)).must(t); len(logs.Items) != 1 || logs.OpcNextPage != nil {
			t.Errorf("the rest %v", logs.Items)
		}
		_, err := f.UpdateLustreFileSystem(ctx, lustrefilestorage.UpdateLustreFileSystemRequest{LustreFileSystemId: created.Id})
		refused(t, err, 409, "IncorrectState")
		try(f.remove(*created.Id)).must(t)
		_, err = f.ListWorkRequests(ctx, lustrefilestorage.ListWorkRequestsRequest{})
		refused(t, err, 400, "MissingParameter")
		_, err = f.GetWorkRequest(ctx, lustrefilestorage.GetWorkRequestRequest{WorkRequestId: common.String("none")})
		refused(t, err, 404, "NotAuthorizedOrNotFound")

		// A failed update and a failed delete leave what was there.
		id := f.region.AddLustreFileSystem(ocisim.LustreFileSystem{Name: "seeded", SecurityGroups: nil})
		f.region.Fault(ocisim.Fault{Operation: "lustrefilestorage.UpdateLustreFileSystem", FailWork: true})
		f.region.Fault(ocisim.Fault{Operation: "lustrefilestorage.DeleteLustreFileSystem", FailWork: true})
		update := lustrefilestorage.UpdateLustreFileSystemRequest{LustreFileSystemId: &id}
		update.CapacityInGBs = common.Int(36200)
		try(f.UpdateLustreFileSystem(ctx, update)).must(t)
		time.Sleep(10 * time.Minute)
		try(f.remove(id)).must(t)
		time.Sleep(10 * time.Minute)
		if v := f.want(id, lustrefilestorage.LustreFileSystemLifecycleStateActive); *v.CapacityInGBs != 31200 {
			t.Errorf("capacity %d", *v.CapacityInGBs)
		}
	})
}

// TestLustreSubnetIsFull learns from the work request that there is no address left.
func TestLustreSubnetIsFull(t *testing.T) {
	onLustre(t, ocisim.Options{}, func(t *testing.T, f *lustre) {
		d := f.details()
		d.SubnetId = common.String(f.region.AddSubnet(ocisim.Subnet{Name: "full", CIDR: "10.0.99.0/30"}))
		f.region.AddInstance(ocisim.Instance{Name: "last", VNIC: ocisim.VNIC{Subnet: "full"}})
		created := try(f.create(d)).must(t)
		time.Sleep(11 * time.Minute)
		f.want(*created.Id, lustrefilestorage.LustreFileSystemLifecycleStateFailed)
		f.work(created.OpcWorkRequestId, lustrefilestorage.OperationStatusFailed)
	})
}

func TestLustreRefusals(t *testing.T) {
	type details = lustrefilestorage.CreateLustreFileSystemDetails
	behaviour := ocisim.DefaultBehaviour()
	behaviour.ServiceLimits[ocisim.LustreLimit] = 1
	onLustre(t, ocisim.Options{Behaviour: behaviour}, func(t *testing.T, f *lustre) {
		elsewhere := f.region.AddSubnet(ocisim.Subnet{Name: "elsewhere", CIDR: "10.0.98.0/24", AvailabilityDomain: secondDomain})
		for name, c := range map[string]struct {
			change func(*details)
			status int
			code   string
		}{
			"long name":      {func(d *details) { d.FileSystemName = common.String("ninechars") }, 400, "InvalidParameter"},
			"bad name":       {func(d *details) { d.FileSystemName = common.String("a-b") }, 400, "InvalidParameter"},
			"small":          {func(d *details) { d.CapacityInGBs = common.Int(31199) }, 400, "InvalidParameter"},
			"unknown subnet": {func(d *details) { d.SubnetId = common.String("none") }, 400, "RelatedResourceNotAuthorizedOrNotFound"},
			"subnet domain":  {func(d *details) { d.SubnetId = &elsewhere }, 400, "InvalidParameter"},
			"unknown domain": {func(d *details) { d.AvailabilityDomain = common.String("AD-9") }, 400, "InvalidParameter"},
			"unknown group":  {func(d *details) { d.NsgIds = []string{"none"} }, 400, "RelatedResourceNotAuthorizedOrNotFound"},
			"compartment":    {func(d *details) { d.CompartmentId = common.String("none") }, 404, "NotAuthorizedOrNotFound"},
			"exceptions":     {func(d *details) { d.RootSquashConfiguration.ClientExceptions = make([]string, 11) }, 400, "InvalidParameter"},
			"window": {func(d *details) {
				d.MaintenanceWindow = &lustrefilestorage.MaintenanceWindow{TimeStart: common.String("24:00")}
			}, 400, "InvalidParameter"},
		} {
			t.Log(name)
			d := f.details()
			c.change(&d)
			_, err := f.create(d)
			refused(t, err, c.status, c.code)
		}
		body := object{
			"compartmentId": f.compartment, "availabilityDomain": firstDomain, "fileSystemName": "a", "capacityInGBs": 31200,
			"subnetId": f.subnet, "performanceTier": "MBPS_PER_TB_999", "rootSquashConfiguration": object{},
		}
		f.post("/20250228/lustreFileSystems", body).wantError(400, "InvalidParameter")
		delete(body, "performanceTier")
		f.post("/20250228/lustreFileSystems", body).wantError(400, "MissingParameter")
		try(f.create(f.details())).must(t)
		_, err := f.create(f.details())
		refused(t, err, 400, "LimitExceeded")
	})
}
