// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"fmt"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/pager"

	"github.com/oracle/oci-cloud-controller-manager/pkg/csi/block"
	"github.com/oracle/oci-cloud-controller-manager/pkg/oci"
)

// compartmentAnnotation of a Node names the compartment of its instance. The cloud-controller-manager writes it.
const compartmentAnnotation = "oci.oraclecloud.com/compartment-id"

// nodesAge is how old the list of all Nodes may be: it costs the more, the larger the cluster is.
const nodesAge = 10 * time.Second

// Cluster is what a controller asks of Kubernetes.
type Cluster struct {
	client kubernetes.Interface
	driver string
	claims *claims
	events *reporter

	mu    sync.Mutex
	nodes []*block.Node // nil before the first list
	asOf  time.Time
}

var _ block.Cluster = (*Cluster)(nil)

// NewCluster makes a Cluster for a driver. It makes no call before Start.
func NewCluster(client kubernetes.Interface, driver string) *Cluster {
	return &Cluster{client: client, driver: driver, claims: newClaims(client), events: newReporter()}
}

// Start fills the caches, and keeps them until ctx ends. What the ClusterRole does not allow is off, with one line of log and
// one event on the CSIDriver. It waits for the API server.
func (c *Cluster) Start(ctx context.Context) error {
	c.events.start(ctx, c.client)
	missing, err := c.claims.start(ctx)
	if err != nil {
		return err
	}
	if len(missing) > 0 {
		c.NoteMissing(ctx, missing, "events on PersistentVolumeClaims, and the time since when a volume is asked for, which serves its creation after a restart")
	}
	return nil
}

// Synced says whether the caches are filled.
func (c *Cluster) Synced() bool { return c.claims.synced() }

// Node implements block.Cluster. It reads the Node itself: an instance that came back under the name of another one must not
// be mistaken for it.
func (c *Cluster) Node(ctx context.Context, name string) (*block.Node, error) {
	node, err := c.client.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return nil, fmt.Errorf("node %s: %w", name, block.ErrNoNode)
	case err != nil:
		return nil, fmt.Errorf("node %s: %w", name, err)
	}
	return nodeOf(node), nil
}

// Nodes implements block.Cluster. The answer may be a few seconds old, and must not be changed.
func (c *Cluster) Nodes(ctx context.Context) ([]*block.Node, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.nodes != nil && time.Since(c.asOf) < nodesAge {
		return c.nodes, nil
	}
	now, nodes := time.Now(), []*block.Node{}
	err := c.each(ctx, func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
		return c.client.CoreV1().Nodes().List(ctx, o)
	}, func(o runtime.Object) {
		if node, ok := o.(*v1.Node); ok {
			nodes = append(nodes, nodeOf(node))
		}
	})
	if err != nil {
		return nil, fmt.Errorf("list nodes: %w", err)
	}
	c.nodes, c.asOf = nodes, now
	return nodes, nil
}

func nodeOf(node *v1.Node) *block.Node {
	return &block.Node{Name: node.Name, InstanceID: instanceOf(node), CompartmentID: node.Annotations[compartmentAnnotation]}
}

// Claim implements block.Cluster.
func (c *Cluster) Claim(ctx context.Context, volume, namespace, name string) *block.Claim {
	return c.claims.find(ctx, volume, namespace, name)
}

// VolumeHandles implements block.Cluster.
func (c *Cluster) VolumeHandles(ctx context.Context) ([]string, error) {
	var handles []string
	err := c.each(ctx, func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
		return c.client.CoreV1().PersistentVolumes().List(ctx, o)
	}, func(o runtime.Object) {
		if pv, ok := o.(*v1.PersistentVolume); ok && pv.Spec.CSI != nil && pv.Spec.CSI.Driver == c.driver {
			handles = append(handles, pv.Spec.CSI.VolumeHandle)
		}
	})
	if err != nil {
		return nil, fmt.Errorf("list persistentvolumes: %w", err)
	}
	return handles, nil
}

// each reads a list page by page. It is complete or an error.
func (c *Cluster) each(ctx context.Context, list pager.ListPageFunc, do func(runtime.Object)) error {
	return pager.New(list).EachListItem(ctx, metav1.ListOptions{}, func(o runtime.Object) error {
		do(o)
		return nil
	})
}

// instanceOf is the OCID of the instance of a Node; empty while nobody has found it, and for nodes of another provider.
func instanceOf(node *v1.Node) string {
	id, err := oci.ParseProviderID(node.Spec.ProviderID)
	if err != nil {
		return ""
	}
	return id
}
