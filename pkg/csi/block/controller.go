// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package block

import (
	"context"
	"errors"
	"time"

	spec "github.com/container-storage-interface/spec/lib/go/csi"

	"github.com/oracle/oci-cloud-controller-manager/pkg/blockvolume"
	"github.com/oracle/oci-cloud-controller-manager/pkg/oci"
)

// Volumes is what the controller has done in the cloud. *blockvolume.Service implements it.
type Volumes interface {
	Create(ctx context.Context, r blockvolume.CreateRequest) (*blockvolume.Provisioned, error)
	Get(ctx context.Context, id string) (*oci.Volume, error)
	Size(ctx context.Context, id string) (int64, error)
	List(ctx context.Context) ([]*oci.Volume, error)
	Delete(ctx context.Context, id string) error
	Discard(ctx context.Context, name string) error
	Expand(ctx context.Context, id string, requiredBytes, limitBytes int64) (*oci.Volume, error)
	Modify(ctx context.Context, id string, m blockvolume.Modification) (*oci.Volume, error)

	Attach(ctx context.Context, r blockvolume.AttachRequest) (*oci.VolumeAttachment, error)
	Detach(ctx context.Context, r blockvolume.DetachRequest) error
	Attachments(ctx context.Context, compartments ...string) (map[string][]*oci.VolumeAttachment, error)

	CreateSnapshot(ctx context.Context, r blockvolume.SnapshotRequest) (*blockvolume.Snapshot, error)
	GetSnapshot(ctx context.Context, id string) (*blockvolume.Snapshot, error)
	ListSnapshots(ctx context.Context, volumeID string) ([]*blockvolume.Snapshot, error)
	DeleteSnapshot(ctx context.Context, id string) error

	CreateGroupSnapshot(ctx context.Context, r blockvolume.GroupSnapshotRequest) (*blockvolume.GroupSnapshot, error)
	GetGroupSnapshot(ctx context.Context, id string) (*blockvolume.GroupSnapshot, error)
	DeleteGroupSnapshot(ctx context.Context, id string) error
}

// Cluster is what the controller asks of Kubernetes.
type Cluster interface {
	// Node reads a Node; ErrNoNode if there is none of that name.
	Node(ctx context.Context, name string) (*Node, error)
	// Nodes are all Nodes.
	Nodes(ctx context.Context) ([]*Node, error)
	// Claim finds the PersistentVolumeClaim that a volume is made for: by its namespace and name, or by the UID at the end of
	// the volume's name. It is nil where none is known.
	Claim(ctx context.Context, volume, namespace, name string) *Claim
	// VolumeHandles are those of all PersistentVolumes of this driver.
	VolumeHandles(ctx context.Context) ([]string, error)
	// Warn puts a Warning event on a claim. The same one again is counted, not repeated.
	Warn(ctx context.Context, c *Claim, reason, message string)
}

// ErrNoNode says that there is no Node of a name.
var ErrNoNode = errors.New("there is no such Node")

// Node is a Node of Kubernetes.
type Node struct {
	Name          string
	InstanceID    string // OCID of its instance; empty until somebody has set the Node's providerID
	CompartmentID string // where the instance is, by the Node's annotation; may be empty
}

// Claim is a PersistentVolumeClaim.
type Claim struct {
	Namespace, Name, UID string

	Created time.Time
}

// ControllerOptions are what the controller services are made of.
type ControllerOptions struct {
	Volumes Volumes
	Cluster Cluster
	// Drafts remembers which volumes are being made; nil if nobody does. See Controller.CollectDrafts.
	Drafts Drafts
	// Tags are those of new volumes, unless the StorageClass has some; CommonTags are laid over either.
	Tags, CommonTags oci.Tags
	// IPv6SingleStack says that nodes have full names of availability domains in a label of their own.
	IPv6SingleStack bool
	// StrictParameters makes unknown parameters of classes an error.
	StrictParameters bool
	// PublishedNodes makes ListVolumes tell where volumes are attached.
	PublishedNodes bool
}

// Controller is the controller service and the group controller service.
type Controller struct {
	spec.UnimplementedControllerServer
	spec.UnimplementedGroupControllerServer

	options  ControllerOptions
	requests *requests
}

var (
	_ spec.ControllerServer      = (*Controller)(nil)
	_ spec.GroupControllerServer = (*Controller)(nil)
)

// NewController makes the controller services. It asks nobody.
func NewController(o ControllerOptions) *Controller {
	registerMetrics()
	return &Controller{options: o, requests: newRequests()}
}
