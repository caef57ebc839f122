// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package csi

import (
	"context"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// identity is the identity service.
type identity struct {
	csi.UnimplementedIdentityServer

	options Options
}

// GetPluginInfo implements csi.IdentityServer.
func (i *identity) GetPluginInfo(context.Context, *csi.GetPluginInfoRequest) (*csi.GetPluginInfoResponse, error) {
	return &csi.GetPluginInfoResponse{Name: i.options.Driver, VendorVersion: i.options.Version}, nil
}

// GetPluginCapabilities implements csi.IdentityServer.
func (i *identity) GetPluginCapabilities(context.Context, *csi.GetPluginCapabilitiesRequest) (*csi.GetPluginCapabilitiesResponse, error) {
	return &csi.GetPluginCapabilitiesResponse{Capabilities: i.options.Plugin}, nil
}

// Probe implements csi.IdentityServer. It never asks the cloud: a restart would not mend that.
func (i *identity) Probe(context.Context, *csi.ProbeRequest) (*csi.ProbeResponse, error) {
	ready := i.options.Ready == nil || i.options.Ready()
	return &csi.ProbeResponse{Ready: wrapperspb.Bool(ready)}, nil
}

// PluginCapabilities makes the capabilities of a driver.
func PluginCapabilities(services ...csi.PluginCapability_Service_Type) []*csi.PluginCapability {
	out := make([]*csi.PluginCapability, 0, len(services))
	for _, s := range services {
		out = append(out, &csi.PluginCapability{Type: &csi.PluginCapability_Service_{Service: &csi.PluginCapability_Service{Type: s}}})
	}
	return out
}
