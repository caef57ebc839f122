// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package cloudprovider

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	coreinformers "k8s.io/client-go/informers/core/v1"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/klog/v2"

	"github.com/oracle/oci-cloud-controller-manager/pkg/inventory"
	"github.com/oracle/oci-cloud-controller-manager/pkg/oci"
	"github.com/oracle/oci-cloud-controller-manager/pkg/podcidr"
)

// PodCIDRs gives instances their pod CIDRs; *podcidr.Allocator does.
type PodCIDRs interface {
	Allocate(ctx context.Context, instanceID, vnicID string, r podcidr.Request, families []podcidr.Family) ([]netip.Prefix, error)
}

const (
	podCIDRWorkers = 8

	// notRunningRetry is when an instance is looked at again that cannot have addresses yet.
	notRunningRetry = time.Minute

	// familiesAge is how long the cluster's IP families are believed. They change once in the life of a cluster.
	familiesAge = 10 * time.Minute
)

// podCIDRController sets spec.podCIDRs of nodes whose instances ask for it in their metadata.
type podCIDRController struct {
	provider *Provider
	client   kubernetes.Interface
	nodes    corelisters.NodeLister
	queue    *nodeQueue

	mu         sync.Mutex
	families   []podcidr.Family
	familiesAt time.Time
}

func newPodCIDRController(p *Provider, client kubernetes.Interface, informer coreinformers.NodeInformer) (*podCIDRController, error) {
	c := &podCIDRController{provider: p, client: client, nodes: informer.Lister()}
	c.queue = newNodeQueue("oci-pod-cidr", informer.Informer().HasSynced, c.sync)
	return c, c.queue.watch(informer.Informer(), func(before, after *v1.Node) bool {
		return before.ResourceVersion == after.ResourceVersion || // a resync
			before.UID != after.UID ||
			before.Spec.ProviderID != after.Spec.ProviderID ||
			len(before.Spec.PodCIDRs) != len(after.Spec.PodCIDRs)
	})
}

func (c *podCIDRController) sync(ctx context.Context, name string) (again time.Duration, err error) {
	p := c.provider
	ctx, leave, err := p.gate.enter(ctx, nodeDeadline)
	if err != nil {
		return 0, err
	}
	defer leave()
	node, err := c.nodes.Get(name)
	if err != nil || len(node.Spec.PodCIDRs) > 0 || node.Spec.ProviderID == "" {
		return 0, nil // deleted, done (pod CIDRs cannot change), or still to be found
	}
	id, err := oci.ParseProviderID(node.Spec.ProviderID)
	if err != nil {
		return 0, nil // foreign, or reported by the other controllers
	}
	need := inventory.Need{MaxAge: addressAge, Crowd: p.counts().noPodCIDR, Compartments: hints(node)}
	instance, err := p.options.Inventory.Instance(ctx, id, need)
	if err != nil {
		p.reportNode(node, err)
		return 0, err
	}
	text := instance.Metadata[podcidr.MetadataKey]
	if text == "" {
		return 0, nil
	}
	if instance.State != stateRunning {
		return notRunningRetry, nil
	}
	request, err := podcidr.ParseRequest(text)
	if err != nil {
		c.report(node, err)
		return 0, nil
	}
	return 0, c.allocate(ctx, node, instance, request, need)
}

func (c *podCIDRController) allocate(ctx context.Context, node *v1.Node, instance *oci.Instance, r podcidr.Request, need inventory.Need) error {
	families, err := c.clusterFamilies(ctx)
	if err != nil {
		return err
	}
	vnic, err := c.provider.options.Inventory.PrimaryVNIC(ctx, instance, need)
	if err != nil {
		return err
	}
	prefixes, err := c.provider.options.PodCIDRs.Allocate(ctx, instance.ID, vnic.ID, r, families)
	if err != nil {
		c.report(node, err)
		if errors.Is(err, podcidr.ErrRequest) {
			return nil // and never will be right: metadata changes come with a new look at the instance
		}
		return err
	}
	return c.patch(ctx, node, prefixes)
}

// clusterFamilies are those of the Service "kubernetes", which every cluster has.
func (c *podCIDRController) clusterFamilies(ctx context.Context) ([]podcidr.Family, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.families != nil && time.Since(c.familiesAt) < familiesAge {
		return c.families, nil
	}
	service, err := c.client.CoreV1().Services(metav1.NamespaceDefault).Get(ctx, "kubernetes", metav1.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("find the cluster's IP families: %w", err)
	}
	var families []podcidr.Family
	for _, f := range service.Spec.IPFamilies {
		families = append(families, podcidr.Family(f))
	}
	if len(families) == 0 {
		families = []podcidr.Family{podcidr.IPv4}
	}
	c.families, c.familiesAt = families, time.Now()
	return families, nil
}

func (c *podCIDRController) report(node *v1.Node, err error) {
	if c.provider.gate.isClosed() {
		return
	}
	reason, advice := "PodCIDRFailed", "It is tried again"
	var failure *oci.Error
	switch {
	case errors.Is(err, podcidr.ErrRequest):
		reason, advice = "PodCIDRRequestInvalid", "Correct the metadata of the instance; until then the node has no pod CIDR"
	case errors.Is(err, oci.ErrLimitExceeded):
		advice = "Add a CIDR to the subnet, or take a smaller ip-count. It is tried again"
	case errors.As(err, &failure) && hidden(failure):
		advice = c.provider.policyFor(failure)
	}
	c.provider.events.post(node, v1.EventTypeWarning, reason, causeOf(err), err.Error()+". "+advice)
}

func (c *podCIDRController) patch(ctx context.Context, node *v1.Node, prefixes []netip.Prefix) error {
	var cidrs []string
	for _, p := range prefixes {
		cidrs = append(cidrs, p.String())
	}
	err := patchNode(ctx, c.client, node, map[string]any{}, map[string]any{"podCIDR": cidrs[0], "podCIDRs": cidrs})
	if err != nil {
		return err
	}
	klog.FromContext(ctx).Info("Set the node's pod CIDRs", "node", klog.KObj(node), "podCIDRs", cidrs)
	return nil
}
