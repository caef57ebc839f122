// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package cloudprovider

import (
	"maps"
	"slices"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	coreinformers "k8s.io/client-go/informers/core/v1"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
)

// nodeEvents is the informer of Nodes for the framework's service controller. It mends two things of that (v0.37):
//
// The controller queues every event under the name of its Node, and for each name in the queue compares all nodes with what
// each Service had last: N nodes and S Services cost N·N·S comparisons after a start, hours of CPU time for 5,000 and 500.
// Which name it is does not matter to it, so all events here bear the same one, and the queue keeps it once.
//
// For each Service it keeps the nodes that the Service had last. With the informer's own objects, which every heartbeat
// replaces, Services that were synced at different times would each keep thousands of outdated Nodes alive. So a Node here
// stays the same object until something changes that matters to balancers.
type nodeEvents struct {
	nodes  coreinformers.NodeInformer
	lister *steadyNodes
}

var _ coreinformers.NodeInformer = (*nodeEvents)(nil)

func newNodeEvents(nodes coreinformers.NodeInformer) *nodeEvents {
	return &nodeEvents{nodes, &steadyNodes{NodeLister: nodes.Lister(), known: map[types.UID]steadyNode{}}}
}

// Informer implements coreinformers.NodeInformer.
func (n *nodeEvents) Informer() cache.SharedIndexInformer {
	return mergingInformer{n.nodes.Informer()}
}

// Lister implements coreinformers.NodeInformer.
func (n *nodeEvents) Lister() corelisters.NodeLister { return n.lister }

// mergingInformer is the shared informer, except that its listeners see one name only.
type mergingInformer struct{ cache.SharedIndexInformer }

// AddEventHandlerWithResyncPeriod implements cache.SharedInformer. It is the only way by which the framework's controller
// registers its handler.
func (i mergingInformer) AddEventHandlerWithResyncPeriod(h cache.ResourceEventHandler, resync time.Duration) (cache.ResourceEventHandlerRegistration, error) {
	return i.SharedIndexInformer.AddEventHandlerWithResyncPeriod(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(obj any) { h.OnAdd(renamed(obj), false) },
		UpdateFunc: func(old, current any) { h.OnUpdate(renamed(old), renamed(current)) },
		DeleteFunc: func(obj any) { h.OnDelete(renamed(obj)) },
	}, resync)
}

// anyNode is the name of all Nodes in the events.
const anyNode = "any"

// renamed returns a Node with the common name and whatever else it has. What is not a Node becomes an empty one.
func renamed(obj any) *v1.Node {
	node, ok := obj.(*v1.Node)
	if !ok {
		return &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: anyNode}}
	}
	copied := *node
	copied.Name = anyNode
	return &copied
}

// steadyNodes lists Nodes as the same objects as long as nothing changes that matters to balancers.
type steadyNodes struct {
	corelisters.NodeLister

	mu    sync.Mutex
	known map[types.UID]steadyNode
}

type steadyNode struct {
	shown *v1.Node
	last  *v1.Node // of the informer; equal to shown in what matters
}

// List implements corelisters.NodeLister.
func (s *steadyNodes) List(selector labels.Selector) ([]*v1.Node, error) {
	nodes, err := s.NodeLister.List(selector)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, node := range nodes {
		k, known := s.known[node.UID]
		switch {
		case known && k.last == node:
		case known && alikeForBalancers(k.shown, node):
			k.last = node
			s.known[node.UID] = k
		default:
			k = steadyNode{node, node}
			s.known[node.UID] = k
		}
		nodes[i] = k.shown
	}
	if len(s.known) > 2*len(nodes)+100 && selector.Empty() { // Nodes that are gone
		clear(s.known)
	}
	return nodes, nil
}

// alikeForBalancers says whether two versions of a Node differ in nothing but what its kubelet reports all the time: what
// is run there, how much there is of what, and when it was last heard of.
func alikeForBalancers(a, b *v1.Node) bool {
	return a.Name == b.Name &&
		a.DeletionTimestamp.Equal(b.DeletionTimestamp) &&
		maps.Equal(a.Labels, b.Labels) && maps.Equal(a.Annotations, b.Annotations) &&
		slices.Equal(a.Status.Addresses, b.Status.Addresses) &&
		isReady(a) == isReady(b) &&
		equality.Semantic.DeepEqual(a.Spec, b.Spec)
}
