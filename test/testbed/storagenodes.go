// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package testbed

import (
	"context"
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/oracle/oci-cloud-controller-manager/test/cluster/nodes"
	"github.com/oracle/oci-cloud-controller-manager/test/ocisim"
)

// attachLimit is what our node driver reports for iSCSI.
const attachLimit = 32

// Zone is the availability domain of the i-th instance of the demo world, as labels have it.
func Zone(i int) string { return fmt.Sprintf("US-ASHBURN-AD-%d", i%3+1) }

// StorageNodes are nodes of a demo world as the cloud-controller-manager leaves them, but for an annotation: see DriverOnNodes.
func StorageNodes(w ocisim.World) nodes.Options {
	o := DemoNodes(w, true)
	o.Initialized = true
	o.Labels = func(i int) map[string]string {
		return map[string]string{v1.LabelTopologyZone: Zone(i), v1.LabelFailureDomainBetaZone: Zone(i)}
	}
	return o
}

// DriverOnNodes does what the cloud-controller-manager, the kubelet and the registrar of a node driver do: it annotates each
// node of the fleet with its compartment, and makes its CSINode object.
func (b *Bed) DriverOnNodes(ctx context.Context, driver string) error {
	for _, name := range b.Nodes.Names() {
		if err := b.driverOnNode(ctx, driver, name); err != nil {
			return fmt.Errorf("driver %s on node %s: %w", driver, name, err)
		}
	}
	return nil
}

func (b *Bed) driverOnNode(ctx context.Context, driver, name string) error {
	client := b.Cluster.Client()
	patch := fmt.Sprintf(`{"metadata":{"annotations":{"oci.oraclecloud.com/compartment-id":%q}}}`, Compartment)
	node, err := client.CoreV1().Nodes().Patch(ctx, name, types.StrategicMergePatchType, []byte(patch), metav1.PatchOptions{})
	if err != nil {
		return err
	}
	_, err = client.StorageV1().CSINodes().Create(ctx, &storagev1.CSINode{
		ObjectMeta: metav1.ObjectMeta{
			Name:            name,
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: name, UID: node.UID}},
		},
		Spec: storagev1.CSINodeSpec{Drivers: []storagev1.CSINodeDriver{{
			Name: driver, NodeID: name, TopologyKeys: []string{v1.LabelFailureDomainBetaZone, v1.LabelTopologyZone},
			Allocatable: &storagev1.VolumeNodeResources{Count: ptr.To[int32](attachLimit)},
		}}},
	}, metav1.CreateOptions{})
	return err
}

// StorageDurations let the state changes of block volumes take moments instead of minutes.
func StorageDurations() map[string]ocisim.Range {
	quick := QuickDurations()
	for name, most := range map[string]int{
		"volume.create": 400, "volume.restore": 400, "volume.hydrate": 600, "volume.update": 400, "volume.delete": 300,
		"volumebackup.image": 200, "volumebackup.upload": 600, "volumebackup.delete": 300, "volumegroup.*": 300,
		"volumeattachment.attach": 400, "volumeattachment.detach": 400, "volumeattachment.login": 400,
	} {
		quick[name] = ocisim.Range{Min: time.Duration(most) * time.Millisecond / 4, Max: time.Duration(most) * time.Millisecond}
	}
	return quick
}

// StorageOwners are the names under which the CSI controller was asked for what the objects of the API justify: volumes,
// snapshots and group snapshots. The OCIDs of volumes and snapshots that exist without our doing are among them.
func (b *Bed) StorageOwners(ctx context.Context) ([]string, error) {
	var names []string
	client := b.Cluster.Client()
	volumes, err := client.CoreV1().PersistentVolumes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	for i := range volumes.Items {
		v := &volumes.Items[i]
		names = append(names, v.Name)
		if v.Spec.CSI != nil {
			names = append(names, v.Spec.CSI.VolumeHandle)
		}
	}
	claims, err := client.CoreV1().PersistentVolumeClaims("").List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	for i := range claims.Items {
		names = append(names, VolumeName(&claims.Items[i]))
	}
	snapshots, err := b.snapshotOwners(ctx)
	if err != nil {
		return nil, err
	}
	return append(names, snapshots...), nil
}

// VolumeName is the name that the provisioner gives to the volume of a claim: the prefix of the manifests and the UID.
func VolumeName(claim *v1.PersistentVolumeClaim) string { return "csi-" + string(claim.UID) }
