// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

// Package block is the CSI driver for block volumes: it validates requests, translates them for pkg/blockvolume and pkg/host, and
// translates answers and errors back. What it knows of clouds and disks is their names.
package block

import (
	spec "github.com/container-storage-interface/spec/lib/go/csi"

	"github.com/oracle/oci-cloud-controller-manager/pkg/csi"
)

const (
	// DefaultName is the driver's name, which PVs and StorageClasses refer to.
	DefaultName = "blockvolume.csi.oraclecloud.com"
	// Version is the vendor's version of the driver, which clients of the existing implementation see, too.
	Version = "0.1.0"
)

// PluginCapabilities are those of the controller process.
func PluginCapabilities() []*spec.PluginCapability {
	return append(csi.PluginCapabilities(
		spec.PluginCapability_Service_CONTROLLER_SERVICE,
		spec.PluginCapability_Service_VOLUME_ACCESSIBILITY_CONSTRAINTS,
		spec.PluginCapability_Service_GROUP_CONTROLLER_SERVICE,
	), expansion())
}

// NodePluginCapabilities are those of the process on each node.
func NodePluginCapabilities() []*spec.PluginCapability {
	return append(csi.PluginCapabilities(
		spec.PluginCapability_Service_CONTROLLER_SERVICE,
		spec.PluginCapability_Service_VOLUME_ACCESSIBILITY_CONSTRAINTS,
	), expansion())
}

// expansion says that volumes grow while they are in use.
func expansion() *spec.PluginCapability {
	return &spec.PluginCapability{Type: &spec.PluginCapability_VolumeExpansion_{
		VolumeExpansion: &spec.PluginCapability_VolumeExpansion{Type: spec.PluginCapability_VolumeExpansion_ONLINE},
	}}
}
