// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

// Package cloudprovider adapts the domain packages to k8s.io/cloud-provider: InstancesV2 over pkg/inventory, LoadBalancer
// over pkg/loadbalancer, and what the framework lacks: a controller that keeps labels and annotations of nodes right, a
// periodic pass over all balancers, and a way to queue a Service again.
package cloudprovider

import (
	"context"
	"slices"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	cloudprovider "k8s.io/cloud-provider"
	"k8s.io/klog/v2"

	"github.com/oracle/oci-cloud-controller-manager/pkg/oci"
	"github.com/oracle/oci-cloud-controller-manager/pkg/taglabel"
)

// Name is the provider's name, as in --cloud-provider.
const Name = oci.ProviderName

// Defaults of Options.
const (
	DefaultNewNodeGrace  = 2 * time.Minute
	DefaultServiceResync = 10 * time.Minute
	DefaultStatusPeriod  = 5 * time.Minute
	DefaultSecretPoll    = time.Minute
)

// Options say what a Provider works with.
type Options struct {
	// Inventory answers for instances.
	Inventory Inventory

	// NewBalancers returns what answers for load balancers. It is called once, when this process becomes the leader. If
	// it is nil, load balancers are not offered.
	NewBalancers func(*ServiceSupport) Balancers

	// CompartmentID is the cluster's compartment, named in hints about policies.
	CompartmentID string

	// IPv6SingleStack adds the label that storage needs in clusters without IPv4.
	IPv6SingleStack bool

	// TagLabels are the tags of instances that become labels of their nodes. The Inventory has to keep them: see TrimInstance.
	TagLabels []taglabel.Tag

	// PodCIDRs gives nodes the pod CIDRs that their instances ask for; nil leaves that to others.
	PodCIDRs PodCIDRs

	// InstanceTagging tags the instances of OpenShift's nodes; nil leaves them alone.
	InstanceTagging *InstanceTagging

	// NewNodeGrace is for how long after the creation of a Node a missing instance is taken for one that the API does
	// not show yet; 0 means DefaultNewNodeGrace.
	NewNodeGrace time.Duration

	// ServiceResync is the period of the pass over all balancers; 0 means DefaultServiceResync.
	ServiceResync time.Duration

	// StatusPeriod is the time between two of the framework's passes over all nodes; 0 means DefaultStatusPeriod.
	StatusPeriod time.Duration

	// SecretPoll is the period in which Secrets with certificates are looked at that cannot be watched; 0 means
	// DefaultSecretPoll.
	SecretPoll time.Duration

	// Process is the object that events about the process as a whole are about.
	Process *v1.ObjectReference

	// Notices become events on Process when this process becomes the leader.
	Notices []Notice

	// Leading, if it is set, is called when this process has become the leader, before it does anything else.
	Leading func(context.Context)
}

// Notice is something about the process that its operator should know.
type Notice struct {
	Reason  string // CamelCase, of an event
	Message string
}

// Provider implements cloudprovider.Interface and cloudprovider.InformerUser.
type Provider struct {
	options   Options
	instances *instances
	balancers *loadBalancers // nil until Initialize, or for ever if load balancers are not offered
	breaker   *breaker
	gate      *gate
	events    *reporter

	initialize sync.Once
	context    context.Context // set by Initialize; ends with its stop channel

	nodeClient kubernetes.Interface
	nodes      corelisters.NodeLister // nil until SetInformers

	census census
}

var (
	_ cloudprovider.Interface    = (*Provider)(nil)
	_ cloudprovider.InformerUser = (*Provider)(nil)
)

// New returns a Provider. It makes no call; Initialize does.
func New(options Options) *Provider {
	if options.NewNodeGrace == 0 {
		options.NewNodeGrace = DefaultNewNodeGrace
	}
	if options.ServiceResync == 0 {
		options.ServiceResync = DefaultServiceResync
	}
	if options.StatusPeriod == 0 {
		options.StatusPeriod = DefaultStatusPeriod
	}
	if options.SecretPoll == 0 {
		options.SecretPoll = DefaultSecretPoll
	}
	registerMetrics()
	p := &Provider{options: options, breaker: newBreaker(), gate: newGate(), events: newReporter()}
	p.instances = &instances{provider: p}
	return p
}

// Initialize implements cloudprovider.Interface. The framework calls it when this process has become the leader.
func (p *Provider) Initialize(clientBuilder cloudprovider.ControllerClientBuilder, stop <-chan struct{}) {
	p.initialize.Do(func() {
		p.context = wait.ContextForChannel(stop)
		if p.options.Leading != nil {
			p.options.Leading(p.context)
		}
		notices := p.options.Notices
		if accounts, ok := clientBuilder.(*Accounts); ok {
			notices = slices.Concat(notices, accounts.Choose(p.context))
		}
		p.nodeClient = clientBuilder.ClientOrDie(nodeClientName)
		p.events.start(p.context, p.nodeClient)
		for _, n := range notices {
			p.notice(n)
		}
		if p.options.NewBalancers == nil {
			return
		}
		client := clientBuilder.ClientOrDie(serviceClientName)
		p.events.startServices(p.context, client)
		support := newServiceSupport(client, p)
		for _, n := range support.probe(p.context) {
			p.notice(n)
		}
		p.balancers = newLoadBalancers(p, support, p.options.NewBalancers(support))
	})
}

// notice logs and posts something about the process as a whole.
func (p *Provider) notice(n Notice) {
	klog.FromContext(p.context).Info("Attention", "reason", n.Reason, "message", n.Message)
	p.postNotice(n)
}

func (p *Provider) postNotice(n Notice) {
	if p.options.Process != nil {
		p.events.post(p.options.Process, v1.EventTypeWarning, n.Reason, n.Message, n.Message)
	}
}

// SetInformers implements cloudprovider.InformerUser.
func (p *Provider) SetInformers(factory informers.SharedInformerFactory) {
	informer := factory.Core().V1().Nodes()
	slim(informer.Informer(), slimNode)
	p.nodes = informer.Lister()
	_, _ = informer.Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{DeleteFunc: p.forgetNode})
}

// forgetNode drops what is remembered about a Node that was deleted.
func (p *Provider) forgetNode(obj any) {
	if tombstone, ok := obj.(cache.DeletedFinalStateUnknown); ok {
		obj = tombstone.Obj
	}
	node, ok := obj.(*v1.Node)
	if !ok {
		return
	}
	p.events.forget(node.UID)
	if id, err := oci.ParseProviderID(node.Spec.ProviderID); err == nil {
		p.options.Inventory.Forget(id)
	}
}

// Shutdown stops taking work, lets the work under way come to an end, and cuts it off when ctx ends. It leaves the cloud
// in a state that the next process carries on from.
func (p *Provider) Shutdown(ctx context.Context) { p.gate.close(ctx) }

// LoadBalancer implements cloudprovider.Interface.
func (p *Provider) LoadBalancer() (cloudprovider.LoadBalancer, bool) {
	if p.balancers == nil {
		return nil, false
	}
	return p.balancers, true
}

// InstancesV2 implements cloudprovider.Interface.
func (p *Provider) InstancesV2() (cloudprovider.InstancesV2, bool) { return p.instances, true }

// Instances implements cloudprovider.Interface: superseded by InstancesV2, so not offered.
func (p *Provider) Instances() (cloudprovider.Instances, bool) { return nil, false }

// Zones implements cloudprovider.Interface: superseded by InstancesV2, so not offered.
func (p *Provider) Zones() (cloudprovider.Zones, bool) { return nil, false }

// Clusters implements cloudprovider.Interface: not offered.
func (p *Provider) Clusters() (cloudprovider.Clusters, bool) { return nil, false }

// Routes implements cloudprovider.Interface: not offered. Pods are reached by an overlay or by VNICs of their own.
func (p *Provider) Routes() (cloudprovider.Routes, bool) { return nil, false }

// ProviderName implements cloudprovider.Interface.
func (p *Provider) ProviderName() string { return Name }

// HasClusterID implements cloudprovider.Interface. Balancers are told apart by marks and by the UIDs of their Services, so
// no id on the instances is needed.
func (p *Provider) HasClusterID() bool { return true }

// counts says how many Nodes there are, as of at most censusAge ago.
func (p *Provider) counts() counts {
	return p.census.counts(func() []*v1.Node { return listNodes(p.nodes) })
}

// uids returns the identities of all Nodes that may be the cluster's own. The set must not be changed.
func (p *Provider) uids() map[types.UID]bool { return p.counts().uids }
