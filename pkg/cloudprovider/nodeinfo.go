// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package cloudprovider

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	coreinformers "k8s.io/client-go/informers/core/v1"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/klog/v2"

	"github.com/oracle/oci-cloud-controller-manager/pkg/inventory"
	"github.com/oracle/oci-cloud-controller-manager/pkg/oci"
	"github.com/oracle/oci-cloud-controller-manager/pkg/taglabel"
)

const nodeInfoWorkers = 4

// nodeInfo keeps the labels and annotations of nodes that the framework sets once or not at all. It looks at a node when
// it appears, when something that matters here changes, and with each resync of the informer; it writes only what is
// wrong or missing, in one patch, and touches no other key.
type nodeInfo struct {
	provider *Provider
	client   kubernetes.Interface
	nodes    corelisters.NodeLister
	queue    *nodeQueue
}

func newNodeInfo(p *Provider, client kubernetes.Interface, informer coreinformers.NodeInformer) (*nodeInfo, error) {
	c := &nodeInfo{provider: p, client: client, nodes: informer.Lister()}
	c.queue = newNodeQueue("oci-node-info", informer.Informer().HasSynced, c.sync)
	return c, c.queue.watch(informer.Informer(), infoMayDiffer)
}

// infoMayDiffer says whether an update of a node concerns this controller. Heartbeats do not.
func infoMayDiffer(before, after *v1.Node) bool {
	return before.ResourceVersion == after.ResourceVersion || // a resync
		before.UID != after.UID ||
		before.Spec.ProviderID != after.Spec.ProviderID ||
		isUninitialized(before) != isUninitialized(after) ||
		cloudLabelsDiffer(before.Labels, after.Labels) ||
		before.Labels[labelFullADName] != after.Labels[labelFullADName] ||
		topologyDiffers(before.Labels, after.Labels) ||
		before.Annotations[annotationCompartment] != after.Annotations[annotationCompartment] ||
		before.Annotations[annotationTagLabels] != after.Annotations[annotationTagLabels]
}

// cloudLabelsDiffer compares the labels among which ours are.
func cloudLabelsDiffer(before, after map[string]string) bool {
	n := 0
	for key, value := range before {
		if !strings.HasPrefix(key, taglabel.Prefix) {
			continue
		}
		if now, has := after[key]; !has || now != value {
			return true
		}
		n++
	}
	for key := range after {
		if strings.HasPrefix(key, taglabel.Prefix) {
			n--
		}
	}
	return n != 0
}

func topologyDiffers(before, after map[string]string) bool {
	for _, t := range topologyOf(&oci.Instance{}) {
		for _, key := range []string{t.beta, t.stable} {
			if was, had := before[key]; was != after[key] || had != hasKey(after, key) {
				return true
			}
		}
	}
	return false
}

func hasKey(m map[string]string, key string) bool {
	_, ok := m[key]
	return ok
}

func (c *nodeInfo) sync(ctx context.Context, name string) (time.Duration, error) {
	ctx, leave, err := c.provider.gate.enter(ctx, nodeDeadline)
	if err != nil {
		return 0, err
	}
	defer leave()
	node, err := c.nodes.Get(name)
	if err != nil {
		return 0, nil // deleted
	}
	if node.Spec.ProviderID == "" && isUninitialized(node) {
		return 0, nil // the framework looks for its instance; finding it is an update of the node
	}
	instance, err := c.provider.instanceOf(ctx, node, c.provider.infoNeed(node))
	switch {
	case errors.Is(err, oci.ErrForeignProvider):
		return 0, nil
	case errors.Is(err, oci.ErrWrongResourceType), errors.Is(err, oci.ErrInvalidOCID):
		c.provider.reportNode(node, err)
		return 0, nil // and never will be right: a provider ID cannot be changed
	case err != nil:
		c.provider.reportNode(node, err)
		return 0, err
	}
	change := nodeChange{labels: map[string]any{}, annotations: map[string]any{}}
	change.set(change.labels, missing(node.Labels, c.provider.wantedLabels(instance)))
	if !isUninitialized(node) { // the framework sets these when it initialises the node
		change.set(change.labels, c.provider.completeTopology(node, instance))
	}
	change.set(change.annotations, missing(node.Annotations, wantedAnnotations(instance)))
	c.provider.labelByTags(node, instance, &change)
	var again time.Duration
	if len(c.provider.options.TagLabels) > 0 {
		again = tagPeriod // a tag that changes in the cloud is no event here
	}
	return again, c.patch(ctx, node, change)
}

// nodeChange is what shall change on a Node. A value of nil removes the key.
type nodeChange struct {
	labels, annotations map[string]any
	// exact makes it fail if the Node has been changed since it was looked at.
	exact bool
}

func (*nodeChange) set(at map[string]any, entries map[string]string) {
	for key, value := range entries {
		at[key] = value
	}
}

// completeTopology returns the topology labels that a node lacks, and reports those that are wrong.
func (p *Provider) completeTopology(node *v1.Node, instance *oci.Instance) map[string]string {
	labels := map[string]string{}
	for _, t := range topologyOf(instance) {
		lacking, wrong := t.compare(node.Labels)
		maps.Copy(labels, lacking)
		if len(wrong) == 0 {
			continue
		}
		var differ []string
		for _, key := range slices.Sorted(maps.Keys(wrong)) {
			differ = append(differ, key+"="+wrong[key])
		}
		p.events.post(node, v1.EventTypeWarning, "NodeLabelDiffers", t.stable, fmt.Sprintf(
			"The label %s differs from the cloud, which says %s. It is left alone, because volumes and kubelet may rely on it. If nothing does: "+
				"kubectl label node %s --overwrite %s=%s %s=%s",
			strings.Join(differ, " and "), t.value, node.Name, t.beta, t.value, t.stable, t.value))
	}
	return labels
}

// infoNeed is what this controller needs. After a start it looks at all nodes at once.
func (p *Provider) infoNeed(node *v1.Node) inventory.Need {
	return inventory.Need{MaxAge: shapeAge, Crowd: len(p.counts().uids), Compartments: hints(node)}
}

// missing returns the entries of wanted that are not in the map.
func missing(have, wanted map[string]string) map[string]string {
	differ := maps.Clone(wanted)
	maps.DeleteFunc(differ, func(key, value string) bool {
		v, ok := have[key]
		return ok && v == value
	})
	return differ
}

func (c *nodeInfo) patch(ctx context.Context, node *v1.Node, change nodeChange) error {
	metadata := map[string]any{}
	if len(change.labels) > 0 {
		metadata["labels"] = change.labels
	}
	if len(change.annotations) > 0 {
		metadata["annotations"] = change.annotations
	}
	if len(metadata) == 0 {
		return nil
	}
	if change.exact {
		metadata["resourceVersion"] = node.ResourceVersion
	}
	if err := patchNode(ctx, c.client, node, metadata, nil); err != nil {
		return err
	}
	klog.FromContext(ctx).Info("Updated the node's labels and annotations",
		"node", klog.KObj(node), "labels", change.labels, "annotations", change.annotations)
	return nil
}
