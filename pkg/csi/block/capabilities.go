// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package block

import (
	"context"

	spec "github.com/container-storage-interface/spec/lib/go/csi"
)

// ControllerGetCapabilities implements csi.ControllerServer.
func (c *Controller) ControllerGetCapabilities(context.Context, *spec.ControllerGetCapabilitiesRequest) (*spec.ControllerGetCapabilitiesResponse, error) {
	can := []spec.ControllerServiceCapability_RPC_Type{
		spec.ControllerServiceCapability_RPC_CREATE_DELETE_VOLUME,
		spec.ControllerServiceCapability_RPC_PUBLISH_UNPUBLISH_VOLUME,
		spec.ControllerServiceCapability_RPC_PUBLISH_READONLY,
		spec.ControllerServiceCapability_RPC_EXPAND_VOLUME,
		spec.ControllerServiceCapability_RPC_MODIFY_VOLUME,
		spec.ControllerServiceCapability_RPC_CLONE_VOLUME,
		spec.ControllerServiceCapability_RPC_CREATE_DELETE_SNAPSHOT,
		spec.ControllerServiceCapability_RPC_LIST_SNAPSHOTS,
		spec.ControllerServiceCapability_RPC_GET_SNAPSHOT,
		spec.ControllerServiceCapability_RPC_LIST_VOLUMES,
		spec.ControllerServiceCapability_RPC_GET_VOLUME,
		spec.ControllerServiceCapability_RPC_SINGLE_NODE_MULTI_WRITER,
	}
	if c.options.PublishedNodes {
		can = append(can, spec.ControllerServiceCapability_RPC_LIST_VOLUMES_PUBLISHED_NODES)
	}
	out := &spec.ControllerGetCapabilitiesResponse{}
	for _, t := range can {
		out.Capabilities = append(out.Capabilities, &spec.ControllerServiceCapability{
			Type: &spec.ControllerServiceCapability_Rpc{Rpc: &spec.ControllerServiceCapability_RPC{Type: t}},
		})
	}
	return out, nil
}

// GroupControllerGetCapabilities implements csi.GroupControllerServer.
func (c *Controller) GroupControllerGetCapabilities(context.Context, *spec.GroupControllerGetCapabilitiesRequest) (*spec.GroupControllerGetCapabilitiesResponse, error) {
	return &spec.GroupControllerGetCapabilitiesResponse{Capabilities: []*spec.GroupControllerServiceCapability{{
		Type: &spec.GroupControllerServiceCapability_Rpc{Rpc: &spec.GroupControllerServiceCapability_RPC{
			Type: spec.GroupControllerServiceCapability_RPC_CREATE_DELETE_GET_VOLUME_GROUP_SNAPSHOT,
		}},
	}}}, nil
}
