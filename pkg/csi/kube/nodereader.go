// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"strings"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// ErrForbidden says that the ClusterRole does not allow to read something.
var ErrForbidden = errors.New("the ClusterRole does not allow it")

// NodeReader reads what a node plugin needs of the API: single objects by their names, and nothing that grows with the cluster.
type NodeReader struct {
	client       kubernetes.Interface
	driver, node string
}

// NewNodeReader makes a reader for a driver on a Node.
func NewNodeReader(client kubernetes.Interface, driver, node string) *NodeReader {
	return &NodeReader{client: client, driver: driver, node: node}
}

// Labels reads the labels of the Node. The error wraps ErrForbidden if that is not allowed.
func (r *NodeReader) Labels(ctx context.Context) (map[string]string, error) {
	node, err := r.get(ctx)
	if err != nil {
		return nil, err
	}
	if node.Labels == nil {
		return map[string]string{}, nil
	}
	return node.Labels, nil
}

// Attachments reads the publish contexts of the driver's VolumeAttachments on the Node, with an empty one for each that is not
// attached. Which ones there are is in the status of the Node: attached ones by the attach-detach controller, and those that are
// on their way by the kubelet.
func (r *NodeReader) Attachments(ctx context.Context) ([]map[string]string, error) {
	node, err := r.get(ctx)
	if err != nil {
		return nil, err
	}
	handles := map[string]bool{}
	add := func(name v1.UniqueVolumeName) {
		if handle, is := strings.CutPrefix(string(name), "kubernetes.io/csi/"+r.driver+"^"); is {
			handles[handle] = true
		}
	}
	for _, v := range node.Status.VolumesAttached {
		add(v.Name)
	}
	for _, name := range node.Status.VolumesInUse {
		add(name)
	}
	out := make([]map[string]string, 0, len(handles))
	for handle := range maps.Keys(handles) {
		name := attachmentName(handle, r.driver, r.node)
		a, err := r.client.StorageV1().VolumeAttachments().Get(ctx, name, metav1.GetOptions{})
		switch {
		case apierrors.IsNotFound(err): // it has just gone
		case err != nil:
			return nil, r.explain(err, "get volumeattachments.storage.k8s.io")
		case !a.Status.Attached:
			out = append(out, nil)
		default:
			out = append(out, a.Status.AttachmentMetadata)
		}
	}
	return out, nil
}

// attachmentName is the name that the attach-detach controller gives a VolumeAttachment (k8s.io/kubernetes,
// pkg/volume/csi/csi_attacher.go).
func attachmentName(handle, driver, node string) string {
	return fmt.Sprintf("csi-%x", sha256.Sum256([]byte(handle+driver+node)))
}

func (r *NodeReader) get(ctx context.Context) (*v1.Node, error) {
	// From the API server's cache: every node asks every few minutes.
	node, err := r.client.CoreV1().Nodes().Get(ctx, r.node, metav1.GetOptions{ResourceVersion: "0"})
	if err != nil {
		return nil, r.explain(err, "get nodes")
	}
	return node, nil
}

// explain says which rule is missing.
func (r *NodeReader) explain(err error, rule string) error {
	if apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err) {
		return fmt.Errorf("%w; it has to allow: %s: %w", ErrForbidden, rule, err)
	}
	return err
}
