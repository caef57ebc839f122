// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package block

import (
	"context"
	"errors"
	"sync"
	"time"

	spec "github.com/container-storage-interface/spec/lib/go/csi"

	"github.com/oracle/oci-cloud-controller-manager/pkg/host"
)

// Host is what the node service asks of the machine. *host.Host implements it.
type Host interface {
	Stage(ctx context.Context, r host.StageRequest) error
	Unstage(ctx context.Context, volume, staging string) error
	Publish(ctx context.Context, r host.PublishRequest) error
	Unpublish(ctx context.Context, volume, target string) error
	Grow(ctx context.Context, volume, path string, size int64) (int64, error)
	Stats(ctx context.Context, path string) (host.Usage, error)
	Fits(volume, path string) error
	Attached() ([]host.Attached, error)
}

// NodeOptions are what the node service is made of.
type NodeOptions struct {
	// NodeName is the name of the Node, which is its ID in CSI, too (contract storage.md §4.2).
	NodeName string
	Host     Host
	// Labels reads the labels of the Node from the API. An error that wraps ErrLabelsForbidden says that it is no use to ask again.
	Labels func(ctx context.Context) (map[string]string, error)
	// Metadata asks the instance metadata service once.
	Metadata func(ctx context.Context) (Instance, error)
	// OwnAttachments reads the publish contexts of this driver's VolumeAttachments on this Node from the API; one that is not
	// attached yet has an empty one.
	OwnAttachments func(ctx context.Context) ([]map[string]string, error)
	// MaxVolumes is the number of volumes of this driver that the node can have; 0 lets it be found out by the shape.
	MaxVolumes int
	// ParavirtualizedLimit takes the limit of paravirtualized attachments from the table of shapes, which is lower than that of
	// iSCSI: for clusters whose volumes are paravirtualized.
	ParavirtualizedLimit bool
}

// Instance is what instance metadata tells.
type Instance struct {
	AvailabilityDomain string // full name, "zkJl:PHX-AD-1"
	Shape              string // "VM.Standard.E5.Flex"
}

// ErrLabelsForbidden says that the labels of the Node may not be read.
var ErrLabelsForbidden = errors.New("the labels of the Node may not be read")

// NodeServer is the node service.
type NodeServer struct {
	spec.UnimplementedNodeServer

	options NodeOptions

	mu       sync.Mutex
	labels   map[string]string // as last read; nil before
	labelsAt time.Time
	instance *Instance           // nil before metadata has answered
	own      []map[string]string // publish contexts of our attachments, as last read
	ownAt    time.Time
}

var _ spec.NodeServer = (*NodeServer)(nil)

// NewNode makes the node service. It asks nobody.
func NewNode(o NodeOptions) *NodeServer { return &NodeServer{options: o} }

// NodeGetCapabilities implements csi.NodeServer.
func (n *NodeServer) NodeGetCapabilities(context.Context, *spec.NodeGetCapabilitiesRequest) (*spec.NodeGetCapabilitiesResponse, error) {
	var out []*spec.NodeServiceCapability
	for _, t := range []spec.NodeServiceCapability_RPC_Type{
		spec.NodeServiceCapability_RPC_STAGE_UNSTAGE_VOLUME,
		spec.NodeServiceCapability_RPC_GET_VOLUME_STATS,
		spec.NodeServiceCapability_RPC_EXPAND_VOLUME,
		spec.NodeServiceCapability_RPC_SINGLE_NODE_MULTI_WRITER,
	} {
		out = append(out, &spec.NodeServiceCapability{
			Type: &spec.NodeServiceCapability_Rpc{Rpc: &spec.NodeServiceCapability_RPC{Type: t}},
		})
	}
	return &spec.NodeGetCapabilitiesResponse{Capabilities: out}, nil
}
