// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package ocisim_test

import (
	"testing"
	"time"

	"github.com/oracle/oci-go-sdk/v65/common"
	"github.com/oracle/oci-go-sdk/v65/filestorage"

	"github.com/oracle/oci-cloud-controller-manager/test/ocisim"
)

func (f *files) createSnapshot(fs, name string) (filestorage.CreateSnapshotResponse, error) {
	return f.CreateSnapshot(f.t.Context(), filestorage.CreateSnapshotRequest{
		CreateSnapshotDetails: filestorage.CreateSnapshotDetails{FileSystemId: &fs, Name: &name},
	})
}

func (f *files) snapshot(id string) filestorage.Snapshot {
	f.t.Helper()
	return try(f.GetSnapshot(f.t.Context(), filestorage.GetSnapshotRequest{SnapshotId: &id})).must(f.t).Snapshot
}

func (f *files) clone(snapshot string, attach filestorage.CreateFileSystemDetailsCloneAttachStatusEnum) string {
	f.t.Helper()
	r := try(f.CreateFileSystem(f.t.Context(), filestorage.CreateFileSystemRequest{
		CreateFileSystemDetails: filestorage.CreateFileSystemDetails{
			AvailabilityDomain: common.String(firstDomain), CompartmentId: &f.compartment, SourceSnapshotId: &snapshot, CloneAttachStatus: attach,
		},
	})).must(f.t)
	if *r.IsHydrated || *r.SourceDetails.SourceSnapshotId != snapshot {
		f.t.Errorf("clone %v", r.FileSystem)
	}
	time.Sleep(10 * time.Second)
	return *r.Id
}

func TestFileSnapshots(t *testing.T) {
	onFiles(t, ocisim.Options{}, func(t *testing.T, f *files) {
		ctx := t.Context()
		fs := f.region.AddFileSystem(ocisim.FileSystem{Name: "data"})
		created := try(f.createSnapshot(fs, "sunday")).must(t)
		id := *created.Id
		if created.LifecycleState != filestorage.SnapshotLifecycleStateCreating || *created.ProvenanceId != id || *created.IsCloneSource {
			t.Errorf("created %v", created.Snapshot)
		}
		_, err := f.createSnapshot(fs, "sunday")
		refused(t, err, 409, "Conflict")
		_, err = f.DeleteSnapshot(ctx, filestorage.DeleteSnapshotRequest{SnapshotId: &id})
		refused(t, err, 409, "IncorrectState")
		time.Sleep(5 * time.Second)
		update := filestorage.UpdateSnapshotRequest{SnapshotId: &id}
		update.ExpirationTime = &common.SDKTime{Time: f.region.Now().Add(-time.Second)}
		_, err = f.UpdateSnapshot(ctx, update)
		refused(t, err, 400, "InvalidParameter")
		update.ExpirationTime = &common.SDKTime{Time: f.region.Now().Add(time.Hour)}
		update.FreeformTags = map[string]string{"a": "b"}
		if r, err := f.UpdateSnapshot(ctx, update); err != nil || r.FreeformTags["a"] != "b" {
			t.Errorf("update: %v, %v", r.Snapshot, err)
		}
		try(f.createSnapshot(fs, "monday")).must(t)
		list := try(f.ListSnapshots(ctx, filestorage.ListSnapshotsRequest{FileSystemId: &fs})).must(t)
		if len(list.Items) != 2 || *list.Items[0].Name != "sunday" {
			t.Errorf("list %v", list.Items)
		}
		_, err = f.ListSnapshots(ctx, filestorage.ListSnapshotsRequest{})
		refused(t, err, 400, "MissingParameter")
		time.Sleep(time.Hour + time.Second)
		if s := f.snapshot(id); s.LifecycleState != filestorage.SnapshotLifecycleStateDeleting && s.LifecycleState != filestorage.SnapshotLifecycleStateDeleted {
			t.Errorf("the snapshot is %s after its time", s.LifecycleState)
		}
		try(f.createSnapshot(fs, "tuesday")).must(t)
		if err := f.deleteFileSystem(fs); err != nil {
			t.Fatal(err)
		}
		_, err = f.createSnapshot(fs, "wednesday")
		refused(t, err, 400, "RelatedResourceNotAuthorizedOrNotFound")
		time.Sleep(time.Minute)
		for _, s := range f.region.FileSnapshots() {
			if s.LifecycleState != filestorage.SnapshotLifecycleStateDeleted {
				t.Errorf("snapshot %s is %s without its file system", *s.Name, s.LifecycleState)
			}
		}
		time.Sleep(time.Hour)
		if n := len(f.region.FileSnapshots()); n != 0 {
			t.Errorf("%d snapshots left", n)
		}
	})
}

func TestFileSystemClones(t *testing.T) {
	onFiles(t, ocisim.Options{}, func(t *testing.T, f *files) {
		ctx := t.Context()
		parent := f.region.AddFileSystem(ocisim.FileSystem{Name: "parent"})
		snapshot := *try(f.createSnapshot(parent, "source")).must(t).Id
		early := filestorage.CreateFileSystemDetails{
			AvailabilityDomain: common.String(firstDomain), CompartmentId: &f.compartment, SourceSnapshotId: &snapshot,
		}
		_, err := f.CreateFileSystem(ctx, filestorage.CreateFileSystemRequest{CreateFileSystemDetails: early})
		refused(t, err, 409, "IncorrectState")
		time.Sleep(5 * time.Second)
		early.AvailabilityDomain = common.String(secondDomain)
		_, err = f.CreateFileSystem(ctx, filestorage.CreateFileSystemRequest{CreateFileSystemDetails: early})
		refused(t, err, 400, "InvalidParameter")

		attached := f.clone(snapshot, "")
		detached := f.clone(snapshot, filestorage.CreateFileSystemDetailsCloneAttachStatusDetach)
		if r := f.wantFileSystem(parent, filestorage.FileSystemLifecycleStateActive); !*r.IsCloneParent || *r.CloneCount != 2 {
			t.Errorf("parent %v", r.FileSystem)
		}
		if !*f.snapshot(snapshot).IsCloneSource {
			t.Error("the snapshot is no clone source")
		}
		list := try(f.ListFileSystems(ctx, filestorage.ListFileSystemsRequest{
			CompartmentId: &f.compartment, AvailabilityDomain: common.String(firstDomain), ParentFileSystemId: &parent,
		})).must(t)
		if len(list.Items) != 2 || *list.Items[0].SourceDetails.ParentFileSystemId != parent {
			t.Errorf("clones %v", list.Items)
		}
		if r := f.wantFileSystem(attached, filestorage.FileSystemLifecycleStateActive); *r.IsHydrated {
			t.Error("the clone is hydrated at once")
		}
		refused(t, f.deleteFileSystem(parent), 409, "Conflict")
		_, err = f.DeleteSnapshot(ctx, filestorage.DeleteSnapshotRequest{SnapshotId: &snapshot})
		refused(t, err, 409, "Conflict")
		time.Sleep(10 * time.Minute)

		if r := f.wantFileSystem(attached, filestorage.FileSystemLifecycleStateActive); !*r.IsHydrated ||
			r.CloneAttachStatus != filestorage.FileSystemCloneAttachStatusAttached {
			t.Errorf("clone %v", r.FileSystem)
		}
		if r := f.wantFileSystem(detached, filestorage.FileSystemLifecycleStateActive); r.CloneAttachStatus != filestorage.FileSystemCloneAttachStatusDetached {
			t.Errorf("detached clone %v", r.FileSystem)
		}
		f.detach(t, parent, snapshot, attached)
	})
}

// detach makes one clone independent by itself, another one by the delete of its parent.
func (f *files) detach(t *testing.T, parent, snapshot, attached string) {
	t.Helper()
	ctx := t.Context()
	if _, err := f.DetachClone(ctx, filestorage.DetachCloneRequest{FileSystemId: &attached}); err != nil {
		t.Fatal(err)
	}
	_, err := f.DetachClone(ctx, filestorage.DetachCloneRequest{FileSystemId: &attached})
	refused(t, err, 400, "InvalidParameter")
	if r := f.wantFileSystem(attached, filestorage.FileSystemLifecycleStateActive); r.CloneAttachStatus != filestorage.FileSystemCloneAttachStatusDetaching {
		t.Errorf("status %s", r.CloneAttachStatus)
	}
	time.Sleep(10 * time.Minute)
	if r := f.wantFileSystem(parent, filestorage.FileSystemLifecycleStateActive); *r.IsCloneParent || *r.CloneCount != 0 {
		t.Errorf("parent %v", r.FileSystem)
	}
	last := f.clone(snapshot, filestorage.CreateFileSystemDetailsCloneAttachStatusAttach)
	_, err = f.DeleteFileSystem(ctx, filestorage.DeleteFileSystemRequest{FileSystemId: &parent, CanDetachChildFileSystem: common.Bool(true)})
	if err != nil {
		t.Fatal(err)
	}
	time.Sleep(10 * time.Second)
	f.wantFileSystem(parent, filestorage.FileSystemLifecycleStateDeleted)
	if r := f.wantFileSystem(last, filestorage.FileSystemLifecycleStateActive); r.CloneAttachStatus != filestorage.FileSystemCloneAttachStatusDetached {
		t.Errorf("status %s", r.CloneAttachStatus)
	}
}
