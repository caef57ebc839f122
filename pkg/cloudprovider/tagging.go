// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package cloudprovider

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"time"

	"golang.org/x/time/rate"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	coreinformers "k8s.io/client-go/informers/core/v1"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/klog/v2"

	"github.com/oracle/oci-cloud-controller-manager/pkg/oci"
)

// InstanceTagging gives the instances of OpenShift's nodes the tags that OpenShift's accounting needs.
type InstanceTagging struct {
	Cloud InstanceTagger
	// Nodes tells which nodes are OpenShift's.
	Nodes labels.Selector
	// Tags are the defined tags that each instance shall have, by namespace and key. Others are not touched.
	Tags map[string]map[string]any
}

// InstanceTagger reads and tags instances; *oci.Compute is one.
type InstanceTagger interface {
	GetInstance(ctx context.Context, id string) (*oci.Instance, error)
	UpdateInstanceTags(ctx context.Context, id string, tags oci.Tags, etag string) error
}

// OpenShiftTags are the tags that the instances of OpenShift's nodes shall have: those that are configured, and the one
// that says what they are for.
func OpenShiftTags(configured map[string]map[string]any) map[string]map[string]any {
	return mergeDefined(configured, map[string]map[string]any{"openshift-tags": {"openshift-resource": "openshift-resource-infra"}})
}

const (
	taggingWorkers = 2

	// taggingPeriod is when the tags of an instance are looked at again.
	taggingPeriod = 4 * time.Hour

	// taggingRate is how many instances are looked at in a second, so that a restart leaves the client's budget to others.
	taggingRate = 2

	// maxDefinedTags is the API's limit for a resource.
	maxDefinedTags = 64
)

type tagging struct {
	provider *Provider
	options  *InstanceTagging
	nodes    corelisters.NodeLister
	queue    *nodeQueue
	limiter  *rate.Limiter
}

func newTagging(p *Provider, informer coreinformers.NodeInformer) (*tagging, error) {
	c := &tagging{
		provider: p, options: p.options.InstanceTagging, nodes: informer.Lister(),
		limiter: rate.NewLimiter(taggingRate, taggingRate),
	}
	c.queue = newNodeQueue("oci-instance-tagging", informer.Informer().HasSynced, c.sync)
	return c, c.queue.watch(informer.Informer(), func(before, after *v1.Node) bool {
		return c.concerns(before) != c.concerns(after) || before.Spec.ProviderID != after.Spec.ProviderID
	})
}

func (c *tagging) concerns(node *v1.Node) bool {
	return c.options.Nodes.Matches(labels.Set(node.Labels))
}

func (c *tagging) sync(ctx context.Context, name string) (again time.Duration, err error) {
	ctx, leave, err := c.provider.gate.enter(ctx, nodeDeadline)
	if err != nil {
		return 0, err
	}
	defer leave()
	node, err := c.nodes.Get(name)
	if err != nil || !c.concerns(node) {
		return 0, nil
	}
	id, err := oci.ParseProviderID(node.Spec.ProviderID)
	if err != nil {
		return 0, nil // not found yet, foreign, or reported by the other controllers
	}
	if err := c.limiter.Wait(ctx); err != nil {
		return 0, err
	}
	if err := c.tag(ctx, node, id); err != nil {
		if !c.provider.gate.isClosed() {
			c.report(node, err)
		}
		return 0, err
	}
	return taggingPeriod, nil
}

func (c *tagging) tag(ctx context.Context, node *v1.Node, id string) error {
	instance, err := c.options.Cloud.GetInstance(ctx, id)
	if err != nil {
		return err
	}
	tags := oci.Tags{Freeform: instance.Freeform, Defined: mergeDefined(instance.Defined, c.options.Tags)}
	if gone(instance) || sameDefined(tags.Defined, instance.Defined) {
		return nil
	}
	if n := countDefined(tags.Defined); n > maxDefinedTags {
		c.provider.events.post(node, v1.EventTypeWarning, "InstanceTagLimit", "", fmt.Sprintf(
			"Instance %s would have %d defined tags, and %d are allowed: it is not tagged for OpenShift. Remove tags from it", id, n, maxDefinedTags))
		return nil
	}
	if err := c.options.Cloud.UpdateInstanceTags(ctx, id, tags, instance.ETag); err != nil {
		return err
	}
	klog.FromContext(ctx).Info("Tagged the instance", "node", klog.KObj(node), "instanceID", id)
	return nil
}

func (c *tagging) report(node *v1.Node, err error) {
	var failure *oci.Error
	advice := "It is tried again"
	switch {
	case errors.As(err, &failure) && hidden(failure):
		advice = fmt.Sprintf("A policy is missing: allow this principal to use instances and tag-namespaces in compartment %s", c.provider.options.CompartmentID)
	case failure != nil && failure.Status == http.StatusBadRequest:
		advice = "Make the tag namespaces and keys, or set DISABLE_INSTANCE_TAGGING_CONTROLLER=true"
	}
	c.provider.events.post(node, v1.EventTypeWarning, "InstanceTagFailed", causeOf(err), err.Error()+". "+advice)
}

func gone(instance *oci.Instance) bool {
	return instance.State == stateTerminating || instance.State == stateTerminated
}

// mergeDefined lays defined tags over others, key by key. It changes neither.
func mergeDefined(below, above map[string]map[string]any) map[string]map[string]any {
	merged := map[string]map[string]any{}
	for _, layer := range []map[string]map[string]any{below, above} {
		for namespace, keys := range layer {
			if merged[namespace] == nil {
				merged[namespace] = map[string]any{}
			}
			maps.Copy(merged[namespace], keys)
		}
	}
	return merged
}

func sameDefined(a, b map[string]map[string]any) bool {
	if countDefined(a) != countDefined(b) {
		return false
	}
	for namespace, keys := range a {
		for key, value := range keys {
			if fmt.Sprint(b[namespace][key]) != fmt.Sprint(value) {
				return false
			}
		}
	}
	return true
}

func countDefined(tags map[string]map[string]any) int {
	n := 0
	for _, keys := range tags {
		n += len(keys)
	}
	return n
}
