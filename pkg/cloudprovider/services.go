// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package cloudprovider

import (
	"context"
	"slices"
	"strconv"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/wait"
	coreinformers "k8s.io/client-go/informers/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
)

const (
	// taintToBeDeleted is set by the cluster autoscaler before it removes a node; so the framework's controller knows it.
	taintToBeDeleted = "ToBeDeletedByClusterAutoscaler"

	// nodeChangeDelay gathers the changes that a rollout makes to many nodes.
	nodeChangeDelay = time.Second

	// auditJitter spreads the passes of the clusters of a tenancy.
	auditJitter = 0.1
)

// Annotations that choose nodes by their labels.
var nodeSelectors = []string{
	"oci.oraclecloud.com/node-label-selector",
	"oci-network-load-balancer.oraclecloud.com/node-label-selector",
}

// watchServices does what the framework's controller does not: it queues Services whose balancers the periodic pass finds
// missing or different, and those whose nodes changed in a way that the framework does not look at.
type watchServices struct {
	balancers *loadBalancers
	queue     *serviceQueue
	period    time.Duration
	synced    []cache.InformerSynced
	selectors selectors
}

func newWatchServices(b *loadBalancers, q *serviceQueue, nodes coreinformers.NodeInformer, period time.Duration) (*watchServices, error) {
	w := &watchServices{balancers: b, queue: q, period: period, selectors: selectors{}, synced: []cache.InformerSynced{
		q.informer.Informer().HasSynced, nodes.Informer().HasSynced,
	}}
	_, err := nodes.Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{UpdateFunc: func(old, current any) {
		before, ok1 := old.(*v1.Node)
		after, ok2 := current.(*v1.Node)
		if ok1 && ok2 {
			w.nodeChanged(before, after)
		}
	}})
	return w, err
}

// run works until ctx ends. The first pass is one period after the start, when the framework has synced every Service.
func (w *watchServices) run(ctx context.Context) {
	context.AfterFunc(ctx, w.queue.delayed.ShutDown)
	if !cache.WaitForCacheSync(ctx.Done(), w.synced...) {
		return
	}
	go w.queue.run(ctx)
	for {
		select {
		case <-time.After(wait.Jitter(w.period, auditJitter)):
			w.audit(ctx)
		case <-ctx.Done():
			return
		}
	}
}

// audit looks at all balancers once.
func (w *watchServices) audit(ctx context.Context) {
	ctx, leave, err := w.balancers.provider.gate.enter(ctx, max(w.period, syncDeadline))
	if err != nil {
		return
	}
	defer leave()
	services := w.wanting() // without any, there may still be security rules of the last ones to remove
	drifted, err := w.balancers.manager.Audit(ctx, services, eligible(listNodes(w.balancers.provider.nodes)))
	if err != nil {
		servicePasses.WithLabelValues("error").Inc()
		klog.FromContext(ctx).Error(err, "The pass over all load balancers failed")
	} else {
		servicePasses.WithLabelValues("ok").Inc()
	}
	for _, name := range drifted {
		klog.FromContext(ctx).Info("The load balancer is missing or differs from what its Service wants", "service", name)
		w.queue.add(name.String(), queuedByAudit, 0)
	}
}

// wanting returns the Services that want a balancer of ours.
func (w *watchServices) wanting() []*v1.Service {
	services, _ := w.queue.services.List(labels.Everything()) // a lister reads memory; it has no error to return
	return slices.DeleteFunc(services, func(s *v1.Service) bool {
		return !wantsBalancer(s)
	})
}

// nodeChanged queues the Services that an update of a node concerns, except for what the framework itself reacts to:
// providerID, creation and deletion. It notices an exclusion label, but not the taint of a node to be deleted.
func (w *watchServices) nodeChanged(before, after *v1.Node) {
	readdressed := !slices.Equal(backendAddresses(before), backendAddresses(after))
	relabelled := !labels.Equals(before.Labels, after.Labels)
	wasEligible, nowEligible := isEligible(before), isEligible(after)
	if !readdressed && !relabelled && wasEligible == nowEligible || !wasEligible && !nowEligible {
		return
	}
	for _, service := range w.wanting() {
		matchedBefore, ok1 := w.selectors.selects(service, before)
		matches, ok2 := w.selectors.selects(service, after)
		if !ok1 || !ok2 {
			continue // its selector is wrong, which is reported at each sync, whatever the nodes are
		}
		matchedBefore, matches = matchedBefore && wasEligible, matches && nowEligible
		if matchedBefore != matches || readdressed && matches {
			w.queue.add(keyOf(service), queuedByNode, nodeChangeDelay)
		}
	}
}

// backendAddresses are the addresses of a node that balancers send traffic to.
func backendAddresses(node *v1.Node) []string {
	var list []string
	for _, a := range node.Status.Addresses {
		if a.Type == v1.NodeInternalIP || a.Type == v1.NodeExternalIP {
			list = append(list, string(a.Type)+"/"+a.Address)
		}
	}
	slices.Sort(list)
	return list
}

// selectors remembers the selectors of Services by their text: when thousands of nodes join, each is compared with hundreds
// of Services several times. Only the informer's handler uses it, which is called by one goroutine. A selector that cannot
// be read is nil.
type selectors map[string]labels.Selector

// maxSelectors is how many are remembered: more than a cluster has at a time.
const maxSelectors = 4096

func (s selectors) parse(text string) labels.Selector {
	selector, known := s[text]
	if known {
		return selector
	}
	if len(s) >= maxSelectors {
		clear(s)
	}
	selector, err := labels.Parse(text)
	if err != nil {
		selector = nil
	}
	s[text] = selector
	return selector
}

// selects says whether a Service sends traffic to nodes with such labels. ok is false if its selector cannot be read.
func (s selectors) selects(service *v1.Service, node *v1.Node) (selected, ok bool) {
	for _, key := range nodeSelectors {
		text, set := service.Annotations[key]
		if !set {
			continue
		}
		selector := s.parse(text)
		if selector == nil {
			return false, false
		}
		if !selector.Matches(labels.Set(node.Labels)) {
			return false, true
		}
	}
	return true, true
}

// wantsBalancer says whether a Service wants a balancer of ours, as the framework decides it.
func wantsBalancer(service *v1.Service) bool {
	return service.Spec.Type == v1.ServiceTypeLoadBalancer && service.Spec.LoadBalancerClass == nil &&
		service.DeletionTimestamp == nil
}

// eligible returns the nodes that balancers send traffic to, in whatever condition they are: that is left to health checks.
// These are the rules of the framework's controller, which it does not export.
func eligible(nodes []*v1.Node) []*v1.Node {
	return slices.DeleteFunc(slices.Clone(nodes), func(n *v1.Node) bool { return !isEligible(n) })
}

func isEligible(node *v1.Node) bool {
	if node.DeletionTimestamp != nil {
		return false
	}
	if value, set := node.Labels[v1.LabelNodeExcludeBalancers]; set {
		if excluded, err := strconv.ParseBool(value); err != nil || excluded {
			return false
		}
	}
	return !slices.ContainsFunc(node.Spec.Taints, func(t v1.Taint) bool { return t.Key == taintToBeDeleted })
}
