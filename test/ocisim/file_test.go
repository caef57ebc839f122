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
	"github.com/oracle/oci-go-sdk/v65/filestorage"

	"github.com/oracle/oci-cloud-controller-manager/test/ocisim"
	"github.com/oracle/oci-cloud-controller-manager/test/pki"
)

const (
	firstDomain  = "Uocm:US-ASHBURN-AD-1"
	secondDomain = "Uocm:US-ASHBURN-AD-2"
)

// files is a fixture with an SDK client of File Storage.
type files struct {
	*fixture
	filestorage.FileStorageClient
}

// onFiles runs a test of File Storage on virtual time. The client has no circuit breaker: these tests provoke errors.
func onFiles(t *testing.T, options ocisim.Options, test func(*testing.T, *files)) {
	t.Helper()
	pki.SigningKey()
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, options)
		c, err := filestorage.NewFileStorageClientWithConfigurationProvider(sdkProvider(f.region))
		if err != nil {
			t.Fatal(err)
		}
		c.HTTPClient, c.Configuration.CircuitBreaker = &http.Client{Transport: f.region.Transport()}, nil
		test(t, &files{f, c})
	})
}

// refused asserts a refusal by the service and returns its message.
func refused(t *testing.T, err error, status int, code string) string {
	t.Helper()
	failure, ok := common.IsServiceError(err)
	if !ok || failure.GetHTTPStatusCode() != status || failure.GetCode() != code {
		t.Fatalf("got %v, want %d %s", err, status, code)
	}
	return failure.GetMessage()
}

// result is what a call returned.
type result[T any] struct {
	value T
	err   error
}

// try takes the result of a call, so that must can assert that it succeeded.
func try[T any](v T, err error) result[T] { return result[T]{v, err} }

func (r result[T]) must(t *testing.T) T {
	t.Helper()
	noError(t, r.err)
	return r.value
}

func noError(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func (f *files) createFileSystem(name string) (filestorage.CreateFileSystemResponse, error) {
	return f.CreateFileSystem(f.t.Context(), filestorage.CreateFileSystemRequest{
		CreateFileSystemDetails: filestorage.CreateFileSystemDetails{
			AvailabilityDomain: common.String(firstDomain), CompartmentId: &f.compartment, DisplayName: &name,
			FreeformTags: map[string]string{"owner": "test"},
		},
	})
}

// activeFileSystem creates a file system and waits for it.
func (f *files) activeFileSystem(name string) string {
	f.t.Helper()
	r := try(f.createFileSystem(name)).must(f.t)
	time.Sleep(10 * time.Second)
	f.wantFileSystem(*r.Id, filestorage.FileSystemLifecycleStateActive)
	return *r.Id
}

func (f *files) fileSystem(id string) (filestorage.GetFileSystemResponse, error) {
	return f.GetFileSystem(f.t.Context(), filestorage.GetFileSystemRequest{FileSystemId: &id})
}

func (f *files) wantFileSystem(id string, state filestorage.FileSystemLifecycleStateEnum) filestorage.GetFileSystemResponse {
	f.t.Helper()
	r, err := f.fileSystem(id)
	if err != nil || r.LifecycleState != state {
		f.t.Fatalf("file system is %s (%v), want %s", r.LifecycleState, err, state)
	}
	return r
}

func (f *files) deleteFileSystem(id string) error {
	_, err := f.DeleteFileSystem(f.t.Context(), filestorage.DeleteFileSystemRequest{FileSystemId: &id})
	return err
}

func TestFileSystemLifecycle(t *testing.T) {
	onFiles(t, ocisim.Options{}, func(t *testing.T, f *files) {
		ctx := t.Context()
		created := try(f.createFileSystem("data")).must(t)
		id := *created.Id
		if created.LifecycleState != filestorage.FileSystemLifecycleStateCreating || *created.Etag == "" || !*created.IsHydrated ||
			*created.MeteredBytes != 0 || created.FreeformTags["owner"] != "test" || !strings.HasPrefix(id, "ocid1.filesystem.oc1.iad.") {
			t.Errorf("created %v", created.FileSystem)
		}
		refused(t, f.deleteFileSystem(id), 409, "IncorrectState")
		time.Sleep(2 * time.Second)
		f.wantFileSystem(id, filestorage.FileSystemLifecycleStateCreating)
		time.Sleep(7 * time.Second)
		etag := *f.wantFileSystem(id, filestorage.FileSystemLifecycleStateActive).Etag

		update := filestorage.UpdateFileSystemRequest{
			FileSystemId: &id, IfMatch: common.String("stale"),
			UpdateFileSystemDetails: filestorage.UpdateFileSystemDetails{DisplayName: common.String("renamed")},
		}
		_, err := f.UpdateFileSystem(ctx, update)
		refused(t, err, 412, "NoEtagMatch")
		update.IfMatch = &etag
		updated, err := f.UpdateFileSystem(ctx, update)
		if err != nil || *updated.DisplayName != "renamed" || *updated.Etag == etag || updated.FreeformTags["owner"] != "test" {
			t.Errorf("update: %v, %v", updated.FileSystem, err)
		}
		time.Sleep(3 * time.Second)
		list, err := f.ListFileSystems(ctx, filestorage.ListFileSystemsRequest{
			CompartmentId: &f.compartment, AvailabilityDomain: common.String(firstDomain), DisplayName: common.String("renamed"),
		})
		if err != nil || len(list.Items) != 1 || *list.Items[0].Id != id {
			t.Errorf("list: %v, %v", list.Items, err)
		}
		f.get("/20171215/fileSystems?compartmentId="+f.compartment).wantError(400, "MissingParameter")

		if err := f.deleteFileSystem(id); err != nil {
			t.Fatal(err)
		}
		f.wantFileSystem(id, filestorage.FileSystemLifecycleStateDeleting)
		refused(t, f.deleteFileSystem(id), 409, "IncorrectState")
		time.Sleep(10 * time.Second)
		f.wantFileSystem(id, filestorage.FileSystemLifecycleStateDeleted)
		refused(t, f.deleteFileSystem(id), 404, "NotAuthorizedOrNotFound")
		_, err = f.UpdateFileSystem(ctx, filestorage.UpdateFileSystemRequest{FileSystemId: &id})
		refused(t, err, 404, "NotAuthorizedOrNotFound")
		time.Sleep(time.Hour)
		_, err = f.fileSystem(id)
		refused(t, err, 404, "NotAuthorizedOrNotFound")
	})
}

// TestFileSystemUpdating looks at the state in between, and at what it forbids.
func TestFileSystemUpdating(t *testing.T) {
	second := ocisim.Range{Min: time.Second, Max: time.Second}
	onFiles(t, ocisim.Options{Durations: map[string]ocisim.Range{"filesystem.update": second}}, func(t *testing.T, f *files) {
		id := f.activeFileSystem("data")
		request := filestorage.UpdateFileSystemRequest{FileSystemId: &id}
		request.KmsKeyId = common.String("ocid1.key.oc1..k")
		if r := try(f.UpdateFileSystem(t.Context(), request)).must(t); r.LifecycleState != filestorage.FileSystemLifecycleStateUpdating {
			t.Errorf("state %s", r.LifecycleState)
		}
		_, err := f.UpdateFileSystem(t.Context(), request)
		refused(t, err, 409, "IncorrectState")
		time.Sleep(time.Second)
		if r := f.wantFileSystem(id, filestorage.FileSystemLifecycleStateActive); *r.KmsKeyId != "ocid1.key.oc1..k" {
			t.Errorf("key %v", r.KmsKeyId)
		}
	})
}

func TestOneFileSystemAtATime(t *testing.T) {
	onFiles(t, ocisim.Options{}, func(t *testing.T, f *files) {
		other := f.region.AddCompartment(ocisim.Compartment{Name: "other"})
		first := f.activeFileSystem("first")
		second := *try(f.createFileSystem("second")).must(t).Id
		_, err := f.createFileSystem("third")
		if m := refused(t, err, 409, "Conflict"); m != "Another filesystem is currently being provisioned, try again later" {
			t.Errorf("message %q", m)
		}
		move := filestorage.ChangeFileSystemCompartmentRequest{FileSystemId: &first}
		move.CompartmentId = &other
		_, err = f.ChangeFileSystemCompartment(t.Context(), move)
		refused(t, err, 409, "Conflict")
		// A mount target is another matter.
		target := *try(f.createMountTarget(nil)).must(t).Id
		time.Sleep(10 * time.Second)

		if _, err := f.ChangeFileSystemCompartment(t.Context(), move); err != nil {
			t.Fatal(err)
		}
		_, err = f.createFileSystem("third")
		refused(t, err, 409, "Conflict")
		f.wantFileSystem(first, filestorage.FileSystemLifecycleStateUpdating)
		time.Sleep(5 * time.Second)
		if r := f.wantFileSystem(first, filestorage.FileSystemLifecycleStateActive); *r.CompartmentId != other {
			t.Errorf("compartment %s", *r.CompartmentId)
		}
		time.Sleep(time.Minute)

		// What is gone in the middle of its creation blocks nobody.
		created := try(f.createFileSystem("third")).must(t)
		if err := f.region.Foreign().Delete(*created.Id); err != nil {
			t.Fatal(err)
		}
		try(f.createFileSystem("third")).must(t)
		f.region.SetBehaviour(func(b *ocisim.Behaviour) {
			b.Rulings[ocisim.FileSystemProvisioning] = ocisim.Ruling{Allow: true}
		})
		try(f.createFileSystem("fourth")).must(t)
		f.wantFileSystem(second, filestorage.FileSystemLifecycleStateActive)
		if r, ok := f.region.MountTarget(target); !ok || r.LifecycleState != filestorage.MountTargetLifecycleStateActive {
			t.Errorf("mount target %v", r)
		}
	})
}

func TestFileSystemRefusals(t *testing.T) {
	onFiles(t, ocisim.Options{}, func(t *testing.T, f *files) {
		for name, c := range map[string]struct {
			change func(*filestorage.CreateFileSystemDetails)
			status int
			code   string
		}{
			"domain":      {func(d *filestorage.CreateFileSystemDetails) { d.AvailabilityDomain = common.String("AD-9") }, 400, "InvalidParameter"},
			"compartment": {func(d *filestorage.CreateFileSystemDetails) { d.CompartmentId = common.String("nowhere") }, 404, "NotAuthorizedOrNotFound"},
			"name": {func(d *filestorage.CreateFileSystemDetails) {
				d.DisplayName = common.String(strings.Repeat("x", 256))
			}, 400, "InvalidParameter"},
			"snapshot": {func(d *filestorage.CreateFileSystemDetails) {
				d.SourceSnapshotId = common.String("ocid1.snapshot.oc1.iad.none")
			}, 400, "RelatedResourceNotAuthorizedOrNotFound"},
			"policy": {func(d *filestorage.CreateFileSystemDetails) {
				d.FilesystemSnapshotPolicyId = common.String("ocid1.policy")
			}, 400, "RelatedResourceNotAuthorizedOrNotFound"},
		} {
			d := filestorage.CreateFileSystemDetails{AvailabilityDomain: common.String(firstDomain), CompartmentId: &f.compartment}
			c.change(&d)
			t.Log(name)
			_, err := f.CreateFileSystem(t.Context(), filestorage.CreateFileSystemRequest{CreateFileSystemDetails: d})
			refused(t, err, c.status, c.code)
		}
		f.post("/20171215/fileSystems", object{"compartmentId": f.compartment}).wantError(400, "MissingParameter")
		if n := len(f.region.FileSystems()); n != 0 {
			t.Errorf("%d file systems", n)
		}
	})
}

func TestFileStorageLimits(t *testing.T) {
	behaviour := ocisim.DefaultBehaviour()
	if behaviour.ServiceLimits[ocisim.FileSystemLimit] != 100 || behaviour.ServiceLimits[ocisim.MountTargetLimit] != 2 {
		t.Errorf("limits %v", behaviour.ServiceLimits)
	}
	behaviour.ServiceLimits[ocisim.FileSystemLimit] = 1
	onFiles(t, ocisim.Options{Behaviour: behaviour}, func(t *testing.T, f *files) {
		f.region.AddFileSystem(ocisim.FileSystem{Name: "elsewhere", AvailabilityDomain: secondDomain})
		id := f.activeFileSystem("first")
		_, err := f.createFileSystem("second")
		if m := refused(t, err, 400, "LimitExceeded"); !strings.Contains(m, "file-system-count") {
			t.Errorf("message %q", m)
		}
		if err := f.deleteFileSystem(id); err != nil {
			t.Fatal(err)
		}
		_, err = f.createFileSystem("second")
		refused(t, err, 400, "LimitExceeded")
		time.Sleep(10 * time.Second)
		f.activeFileSystem("second")

		for range 2 {
			try(f.createMountTarget(nil)).must(t)
			time.Sleep(time.Minute)
		}
		_, err = f.createMountTarget(nil)
		if m := refused(t, err, 400, "LimitExceeded"); !strings.Contains(m, "mount-target-count") {
			t.Errorf("message %q", m)
		}
	})
}

func TestFileStorageRetryTokens(t *testing.T) {
	onFiles(t, ocisim.Options{}, func(t *testing.T, f *files) {
		request := filestorage.CreateFileSystemRequest{OpcRetryToken: common.String("once")}
		request.AvailabilityDomain, request.CompartmentId = common.String(firstDomain), &f.compartment
		first := try(f.CreateFileSystem(t.Context(), request)).must(t)
		// A lost answer is no other create, although one is running.
		if again := try(f.CreateFileSystem(t.Context(), request)).must(t); *again.Id != *first.Id {
			t.Errorf("the token gave %s, then %s", *first.Id, *again.Id)
		}
		other := request
		other.DisplayName = common.String("other")
		_, err := f.CreateFileSystem(t.Context(), other)
		refused(t, err, 409, "InvalidatedRetryToken")
		time.Sleep(10 * time.Second)
		noError(t, f.deleteFileSystem(*first.Id))
		_, err = f.CreateFileSystem(t.Context(), request)
		refused(t, err, 409, "InvalidatedRetryToken")
		if n := len(f.region.FileSystems()); n != 1 {
			t.Errorf("%d file systems", n)
		}
	})
}

// TestFileStoragePolicies takes permissions away: what cannot be seen is not there.
func TestFileStoragePolicies(t *testing.T) {
	onFiles(t, ocisim.Options{}, func(t *testing.T, f *files) {
		set, fs, _, _ := exportFixture(f)
		for resourceType, call := range map[string]func() error{
			"file-systems": func() error { _, err := f.fileSystem(fs); return err },
			"export-sets": func() error {
				_, err := f.GetExportSet(t.Context(), filestorage.GetExportSetRequest{ExportSetId: &set})
				return err
			},
			"mount-targets": func() error { _, err := f.createMountTarget(nil); return err },
		} {
			restore := f.region.Deny(ocisim.Policy{Verb: ocisim.Read, ResourceType: resourceType})
			refused(t, call(), 404, "NotAuthorizedOrNotFound")
			restore()
			noError(t, call())
		}
		restore := f.region.Deny(ocisim.Policy{Verb: ocisim.Read, ResourceType: "file-systems"})
		_, err := f.createExport(set, fs, "/data")
		refused(t, err, 400, "RelatedResourceNotAuthorizedOrNotFound")
		restore()
		restore = f.region.Deny(ocisim.Policy{Verb: ocisim.Inspect, ResourceType: "export-sets"})
		_, err = f.ListExports(t.Context(), filestorage.ListExportsRequest{ExportSetId: &set})
		refused(t, err, 404, "NotAuthorizedOrNotFound")
		restore()
	})
}

// TestFileStorageFails lets creations fail, which there are no work requests to tell.
func TestFileStorageFails(t *testing.T) {
	onFiles(t, ocisim.Options{}, func(t *testing.T, f *files) {
		f.region.Fault(ocisim.Fault{Operation: "CreateFileSystem", FailWork: true, Message: "no capacity"})
		f.region.Fault(ocisim.Fault{Operation: "CreateMountTarget", FailWork: true, Message: "no address"})
		id := *try(f.createFileSystem("data")).must(t).Id
		target := *try(f.createMountTarget(nil)).must(t).Id
		time.Sleep(time.Minute)
		if r := f.wantFileSystem(id, filestorage.FileSystemLifecycleStateFailed); *r.LifecycleDetails != "no capacity" {
			t.Errorf("details %v", r.LifecycleDetails)
		}
		if v, _ := f.region.MountTarget(target); v.LifecycleState != filestorage.MountTargetLifecycleStateFailed ||
			*v.LifecycleDetails != "no address" || v.ExportSetId != nil {
			t.Errorf("mount target %v", v)
		}
		_, err := f.UpdateFileSystem(t.Context(), filestorage.UpdateFileSystemRequest{FileSystemId: &id})
		refused(t, err, 409, "IncorrectState")
		if err := f.deleteFileSystem(id); err != nil {
			t.Error(err)
		}
		if _, err := f.DeleteMountTarget(t.Context(), filestorage.DeleteMountTargetRequest{MountTargetId: &target}); err != nil {
			t.Error(err)
		}
		time.Sleep(2 * time.Minute)
		f.wantFileSystem(id, filestorage.FileSystemLifecycleStateDeleted)
	})
}

func TestFileLocks(t *testing.T) {
	onFiles(t, ocisim.Options{}, func(t *testing.T, f *files) {
		create := func(kind filestorage.ResourceLockTypeEnum) string {
			d := filestorage.CreateFileSystemDetails{
				AvailabilityDomain: common.String(firstDomain), CompartmentId: &f.compartment,
				Locks: []filestorage.ResourceLock{{Type: kind}},
			}
			r := try(f.CreateFileSystem(t.Context(), filestorage.CreateFileSystemRequest{CreateFileSystemDetails: d})).must(t)
			time.Sleep(10 * time.Second)
			return *r.Id
		}
		full, onlyDelete := create(filestorage.ResourceLockTypeFull), create(filestorage.ResourceLockTypeDelete)
		for _, id := range []string{full, onlyDelete} {
			refused(t, f.deleteFileSystem(id), 409, "ResourceLocked")
			_, err := f.UpdateFileSystem(t.Context(), filestorage.UpdateFileSystemRequest{FileSystemId: &id})
			if id == onlyDelete {
				noError(t, err)
				time.Sleep(3 * time.Second)
			} else {
				refused(t, err, 409, "ResourceLocked")
			}
			_, err = f.DeleteFileSystem(t.Context(), filestorage.DeleteFileSystemRequest{FileSystemId: &id, IsLockOverride: common.Bool(true)})
			noError(t, err)
		}
	})
}

// TestFileStorageIsEventual counts the reads that miss what is new, in each kind.
func TestFileStorageIsEventual(t *testing.T) {
	onFiles(t, ocisim.Options{EventualReads: 2}, func(t *testing.T, f *files) {
		created := try(f.createFileSystem("data")).must(t)
		_, err := f.fileSystem(*created.Id)
		refused(t, err, 404, "NotAuthorizedOrNotFound")
		list := try(f.ListFileSystems(t.Context(), filestorage.ListFileSystemsRequest{
			CompartmentId: &f.compartment, AvailabilityDomain: common.String(firstDomain),
		})).must(t)
		if len(list.Items) != 0 {
			t.Errorf("list %v", list.Items)
		}
		try(f.fileSystem(*created.Id)).must(t)
	})
}
