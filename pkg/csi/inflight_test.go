// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package csi

import (
	"testing"

	"github.com/container-storage-interface/spec/lib/go/csi"
)

func TestKeys(t *testing.T) {
	publish := func(volume, node string) string {
		return keyOf("ControllerPublishVolume", &csi.ControllerPublishVolumeRequest{VolumeId: volume, NodeId: node})
	}
	mount := func(path string) string {
		return keyOf("NodePublishVolume", &csi.NodePublishVolumeRequest{VolumeId: "v", TargetPath: path})
	}
	for name, equal := range map[string]bool{
		"publish and unpublish of one node": publish("v", "n") == keyOf("ControllerUnpublishVolume", &csi.ControllerUnpublishVolumeRequest{VolumeId: "v", NodeId: "n"}),
		"stage and unstage":                 keyOf("NodeStageVolume", &csi.NodeStageVolumeRequest{VolumeId: "v"}) == keyOf("NodeUnstageVolume", &csi.NodeUnstageVolumeRequest{VolumeId: "v"}),
	} {
		if !equal {
			t.Errorf("%s: the keys differ, and should not", name)
		}
	}
	for name, equal := range map[string]bool{
		"two nodes":   publish("v", "n1") == publish("v", "n2"),
		"two volumes": publish("v1", "n") == publish("v2", "n"),
		"two paths":   mount("/a") == mount("/b"),
		"volume and snapshot of one ID": keyOf("DeleteVolume", &csi.DeleteVolumeRequest{VolumeId: "x"}) ==
			keyOf("DeleteSnapshot", &csi.DeleteSnapshotRequest{SnapshotId: "x"}),
	} {
		if equal {
			t.Errorf("%s: the keys are equal, and should not be", name)
		}
	}
	for method, request := range map[string]any{
		"NodeGetVolumeStats":         &csi.NodeGetVolumeStatsRequest{VolumeId: "v"},
		"ValidateVolumeCapabilities": &csi.ValidateVolumeCapabilitiesRequest{VolumeId: "v"},
		"ListVolumes":                &csi.ListVolumesRequest{},
		"DeleteVolume":               &csi.DeleteVolumeRequest{},
	} {
		if key := keyOf(method, request); key != "" {
			t.Errorf("%s: key %q, and should have none", method, key)
		}
	}
}
