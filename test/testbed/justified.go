// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package testbed

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/oracle/oci-go-sdk/v65/core"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/oracle/oci-cloud-controller-manager/test/ocisim/oracle"
)

// Unjustified names what differs between the block storage of the region and that which the objects of the API justify, and
// nothing else: a volume of the PersistentVolume's size for each, an attachment for each VolumeAttachment, a backup for each
// snapshot, and no volume group. "" means that there is no difference.
func (b *Bed) Unjustified(ctx context.Context) (string, error) {
	want, err := b.justified(ctx)
	if err != nil {
		return "", err
	}
	got := b.stored()
	var out []string
	for _, x := range want {
		if i := slices.Index(got, x); i >= 0 {
			got = slices.Delete(got, i, i+1)
			continue
		}
		out = append(out, "missing: "+x)
	}
	for _, x := range got {
		out = append(out, "not justified: "+x)
	}
	return strings.Join(out, "; "), nil
}

const gibibyte = 1 << 30

// justified lists what the objects of the API justify, in the words of stored.
func (b *Bed) justified(ctx context.Context) ([]string, error) {
	client := b.Cluster.Client()
	volumes, err := client.CoreV1().PersistentVolumes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	var list []string
	handles := map[string]string{}
	for i := range volumes.Items {
		v := &volumes.Items[i]
		if v.Spec.CSI == nil || v.Spec.CSI.Driver != BlockDriver {
			continue
		}
		size := v.Spec.Capacity[v1.ResourceStorage]
		handles[v.Name] = v.Spec.CSI.VolumeHandle
		list = append(list, volumeRow(v.Spec.CSI.VolumeHandle, size.Value()/gibibyte))
	}
	attachments, err := client.StorageV1().VolumeAttachments().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	for i := range attachments.Items {
		a := &attachments.Items[i]
		if a.Spec.Attacher != BlockDriver || a.Spec.Source.PersistentVolumeName == nil {
			continue
		}
		name := *a.Spec.Source.PersistentVolumeName
		row := fmt.Sprintf("attachment of %s to %s", handles[name], a.Spec.NodeName)
		if !a.Status.Attached || a.DeletionTimestamp != nil {
			row += ", which has not come to rest in the API"
		}
		list = append(list, row)
	}
	snapshots, err := b.justifiedBackups(ctx)
	return append(list, snapshots...), err
}

func (b *Bed) justifiedBackups(ctx context.Context) ([]string, error) {
	client, err := b.Dynamic()
	if err != nil {
		return nil, err
	}
	contents, err := client.Resource(VolumeSnapshotContents).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	var list []string
	for i := range contents.Items {
		c := &contents.Items[i]
		row := "backup " + field(c, "status", "snapshotHandle")
		ready, _, _ := unstructured.NestedBool(c.Object, "status", "readyToUse")
		if !ready || c.GetDeletionTimestamp() != nil {
			row += ", which is not ready in the API"
		}
		list = append(list, row)
	}
	groups, err := client.Resource(VolumeGroupSnapshotContents).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	for i := range groups.Items {
		// Several parts have a handle of their own, which names none of them.
		list = append(list, "group backup "+field(&groups.Items[i], "status", "volumeGroupSnapshotHandle"))
	}
	return list, nil
}

func volumeRow(id string, sizeGB int64) string { return fmt.Sprintf("volume %s of %d GiB", id, sizeGB) }

// stored lists what there is of block storage, but for boot volumes.
func (b *Bed) stored() []string {
	var list []string
	for _, v := range b.Region.Volumes() {
		if v.LifecycleState != core.VolumeLifecycleStateTerminating && v.LifecycleState != core.VolumeLifecycleStateTerminated {
			list = append(list, unrest(volumeRow(*v.Id, *v.SizeInGBs), string(v.LifecycleState), string(core.VolumeLifecycleStateAvailable)))
		}
	}
	for _, a := range b.Region.VolumeAttachments() {
		if s := a.GetLifecycleState(); s != core.VolumeAttachmentLifecycleStateDetached && s != core.VolumeAttachmentLifecycleStateDetaching {
			row := fmt.Sprintf("attachment of %s to %s", *a.GetVolumeId(), b.nodeOf(*a.GetInstanceId()))
			list = append(list, unrest(row, string(s), string(core.VolumeAttachmentLifecycleStateAttached)))
		}
	}
	for _, v := range b.Region.VolumeBackups() {
		if v.LifecycleState != core.VolumeBackupLifecycleStateTerminating && v.LifecycleState != core.VolumeBackupLifecycleStateTerminated {
			list = append(list, unrest("backup "+*v.Id, string(v.LifecycleState), string(core.VolumeBackupLifecycleStateAvailable)))
		}
	}
	for _, g := range b.Region.VolumeGroupBackups() {
		if g.LifecycleState != core.VolumeGroupBackupLifecycleStateTerminating && g.LifecycleState != core.VolumeGroupBackupLifecycleStateTerminated {
			list = append(list, unrest("group backup "+*g.Id, string(g.LifecycleState), string(core.VolumeGroupBackupLifecycleStateAvailable)))
		}
	}
	for _, g := range b.Region.VolumeGroups() {
		if g.LifecycleState != core.VolumeGroupLifecycleStateTerminating && g.LifecycleState != core.VolumeGroupLifecycleStateTerminated {
			list = append(list, fmt.Sprintf("volume group %s, %s", *g.DisplayName, g.LifecycleState))
		}
	}
	return list
}

// unrest adds a state to a row that is not the one of rest.
func unrest(row, state, rest string) string {
	if state == rest {
		return row
	}
	return row + ", " + state
}

func (b *Bed) nodeOf(instance string) string {
	for i := range b.World.Instances {
		if b.World.Instances[i].ID == instance {
			return b.World.Instances[i].Name
		}
	}
	return instance
}

// AskStorage asks the oracle about block storage: nothing without an object of the API that asks for it, nothing twice, nothing
// failed; nothing written or changed that is not ours; no secret in the logs.
func (b *Bed) AskStorage(ctx context.Context, q oracle.Question) (*oracle.Report, error) {
	owners, err := b.StorageOwners(ctx)
	if err != nil {
		return nil, err
	}
	q.Us = oracle.Us{
		Owners: owners,
		Types:  []string{"volume attachment", "volume backup", "volume group", "volume group backup"},
		Writes: StorageWrites(),
	}
	q.Secrets = append(q.Secrets, oracle.Secret{Name: "the private key", Value: b.User.PrivateKeyPEM()})
	return oracle.Check(ctx, oracle.InProcess(b.Region), q)
}

// StorageWrites are the operations that change something and are the CSI controller's to call.
func StorageWrites() []string {
	return []string{
		"CreateVolume", "UpdateVolume", "DeleteVolume", "AttachVolume", "DetachVolume", "CreateVolumeBackup", "DeleteVolumeBackup",
		"CreateVolumeGroup", "UpdateVolumeGroup", "DeleteVolumeGroup", "CreateVolumeGroupBackup", "DeleteVolumeGroupBackup",
	}
}
