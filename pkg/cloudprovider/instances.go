// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package cloudprovider

import (
	"context"
	"errors"
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	corelisters "k8s.io/client-go/listers/core/v1"
	cloudprovider "k8s.io/cloud-provider"
	cloudproviderapi "k8s.io/cloud-provider/api"
	"k8s.io/klog/v2"

	"github.com/oracle/oci-cloud-controller-manager/pkg/inventory"
	"github.com/oracle/oci-cloud-controller-manager/pkg/oci"
)

// Inventory is what the provider asks about instances; *inventory.Inventory is one.
type Inventory interface {
	Instance(ctx context.Context, id string, need inventory.Need) (*oci.Instance, error)
	PrimaryVNIC(ctx context.Context, instance *oci.Instance, need inventory.Need) (*oci.VNIC, error)
	VNICs(ctx context.Context, instance *oci.Instance, need inventory.Need) ([]*oci.VNIC, error)
	VNIC(ctx context.Context, id string, need inventory.Need) (*oci.VNIC, error)
	Find(ctx context.Context, q inventory.Query) (*oci.Instance, error)
	Presence(ctx context.Context, id string, need inventory.Need) (*oci.Instance, oci.Presence, oci.Proof, error)
	SubnetOf(ctx context.Context, instanceID string, addresses []string, need inventory.Need) (string, error)
	Forget(id string)
}

const (
	// existenceAge spares the second of the two reads that the framework causes for a node that is not ready (exists? shut
	// down?), and every other one of its rounds, which begin every 5 s.
	existenceAge = 8 * time.Second

	// addressAge spares the repeated reads of a node that is being initialised.
	addressAge = 30 * time.Second

	// passAge is the staleness accepted in the framework's pass over all nodes, at most: half of the time between two
	// passes, so that each pass sees new lists, and long enough for a pass that takes its time.
	passAge = DefaultStatusPeriod / 2

	// shapeAge is the staleness accepted for what rarely changes in the life of an instance: compartment, tags, domains.
	// Of passes that are so close together, every second one reads it.
	shapeAge = 10 * time.Minute

	// nodeDeadline bounds one question about a node, waits for the client's budget included.
	nodeDeadline = 5 * time.Minute
)

// States of an instance, https://docs.oracle.com/iaas/api/#/en/iaas/latest/Instance/.
const (
	stateStopping    = "STOPPING"
	stateStopped     = "STOPPED"
	stateTerminating = "TERMINATING"
	stateTerminated  = "TERMINATED"
	stateRunning     = "RUNNING"
)

// instances implements cloudprovider.InstancesV2.
type instances struct{ provider *Provider }

var _ cloudprovider.InstancesV2 = (*instances)(nil)

// InstanceExists implements cloudprovider.InstancesV2. false deletes the Node, so it takes a proof; what cannot be proven is
// an error, and what is not ours exists.
func (i *instances) InstanceExists(ctx context.Context, node *v1.Node) (bool, error) {
	ctx, leave, err := i.provider.gate.enter(ctx, nodeDeadline)
	if err != nil {
		return false, err
	}
	defer leave()
	exists, err := i.exists(ctx, node)
	i.provider.reportNode(node, err)
	return exists, err
}

func (i *instances) exists(ctx context.Context, node *v1.Node) (bool, error) {
	p := i.provider
	id, err := oci.ParseProviderID(node.Spec.ProviderID)
	switch {
	case errors.Is(err, oci.ErrForeignProvider):
		return true, nil
	case errors.Is(err, oci.ErrEmptyProviderID):
		// That nothing has its name is no proof that its instance is gone.
		_, err := p.options.Inventory.Find(ctx, queryFor(node))
		return err == nil, err
	case err != nil:
		return false, err
	}
	instance, presence, proof, err := p.options.Inventory.Presence(ctx, id, p.existenceNeed(node))
	if err != nil {
		return false, err
	}
	switch {
	case presence == oci.Unknown:
		return false, fmt.Errorf("neither presence nor absence of instance %s is proven", id)
	case presence == oci.Gone && instance == nil:
		return i.absent(ctx, node, id, proof)
	case presence == oci.Gone, instance.State == stateTerminating && !isReady(node):
		klog.FromContext(ctx).Info("Instance is gone", "node", klog.KObj(node), "instanceID", id, "proof", proof)
		return false, nil
	}
	p.breaker.present(node.UID, p.uids)
	return true, nil
}

// errAbsence says that an instance seems to be absent, but that nothing follows from it yet.
var errAbsence = errors.New("instance seems to be absent")

// absent decides about a node whose instance is neither readable nor in the list of its compartment.
func (i *instances) absent(ctx context.Context, node *v1.Node, id string, proof oci.Proof) (bool, error) {
	p := i.provider
	if age := time.Since(node.CreationTimestamp.Time); age < p.options.NewNodeGrace {
		return false, fmt.Errorf("instance %s: %w (%s), but the Node is new and the API may not show the instance yet", id, errAbsence, proof)
	}
	switch p.breaker.judge(node.UID, p.uids()) {
	case confirmed:
		klog.FromContext(ctx).Info("Instance is gone", "node", klog.KObj(node), "instanceID", id, "proof", proof)
		return false, nil
	case paused:
		err := fmt.Errorf("instance %s: %w (%s); but so do those of more than half of the nodes, so no Node is deleted: "+
			"check the policies and the compartment, or delete the Nodes yourself", id, errAbsence, proof)
		p.events.post(node, v1.EventTypeWarning, "NodeDeletionPaused", "", err.Error())
		p.postNotice(Notice{"NodeDeletionPaused", "The instances of more than half of the nodes seem to be absent. " +
			"No Node is deleted for that: check the policies and the compartment, or delete the Nodes yourself"})
		return false, err
	default:
		return false, fmt.Errorf("instance %s: %w (%s), which has to be confirmed", id, errAbsence, proof)
	}
}

// InstanceShutdown implements cloudprovider.InstancesV2.
func (i *instances) InstanceShutdown(ctx context.Context, node *v1.Node) (bool, error) {
	ctx, leave, err := i.provider.gate.enter(ctx, nodeDeadline)
	if err != nil {
		return false, err
	}
	defer leave()
	instance, err := i.provider.instanceOf(ctx, node, i.provider.existenceNeed(node))
	if errors.Is(err, oci.ErrForeignProvider) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return instance.State == stateStopped || instance.State == stateStopping, nil
}

// InstanceMetadata implements cloudprovider.InstancesV2. The framework asks for a node that it initialises, which has its
// taint, and periodically for the addresses of all others. It takes nil for "leave it alone", but only in the first case;
// in the second it would crash.
func (i *instances) InstanceMetadata(ctx context.Context, node *v1.Node) (*cloudprovider.InstanceMetadata, error) {
	ctx, leave, err := i.provider.gate.enter(ctx, nodeDeadline)
	if err != nil {
		return nil, err
	}
	defer leave()
	metadata, err := i.metadata(ctx, node)
	var notFound *inventory.NotFoundError
	switch {
	case err == nil:
		return metadata, nil
	case errors.Is(err, oci.ErrForeignProvider):
		i.provider.reportForeign(node)
		if isUninitialized(node) {
			return nil, nil
		}
		return &cloudprovider.InstanceMetadata{}, nil
	case errors.As(err, &notFound) && !isUninitialized(node):
		// Another controller initialised it. Nothing says that it is ours.
		i.provider.reportNode(node, err)
		return &cloudprovider.InstanceMetadata{}, nil
	}
	i.provider.reportNode(node, err)
	return nil, err
}

func (i *instances) metadata(ctx context.Context, node *v1.Node) (*cloudprovider.InstanceMetadata, error) {
	p := i.provider
	forInstance, forAddresses := p.metadataNeeds(node)
	instance, err := p.instanceOf(ctx, node, forInstance)
	if err != nil {
		return nil, err
	}
	addresses, err := p.addressesOf(ctx, node, instance, forAddresses)
	if err != nil {
		return nil, err
	}
	if !isUninitialized(node) && hasAddresses(node, addresses) {
		addresses = nil // "no change": the framework would patch every node that has two addresses of one type
	}
	metadata := &cloudprovider.InstanceMetadata{
		ProviderID:       node.Spec.ProviderID,
		InstanceType:     instance.Shape,
		Zone:             zoneOf(instance),
		Region:           regionOf(instance),
		NodeAddresses:    addresses,
		AdditionalLabels: p.wantedLabels(instance),
	}
	if metadata.ProviderID == "" {
		metadata.ProviderID = oci.ProviderID(instance.ID)
	}
	// The framework sets these labels once. A node that started without one would never get it.
	if isUninitialized(node) && (metadata.InstanceType == "" || metadata.Zone == "" || metadata.Region == "") {
		return nil, fmt.Errorf("instance %s: the API did not say its shape, availability domain or region", instance.ID)
	}
	return metadata, nil
}

// instanceOf finds the instance of a node. An OCID is enough; without one it is looked up by names and addresses.
func (p *Provider) instanceOf(ctx context.Context, node *v1.Node, need inventory.Need) (*oci.Instance, error) {
	id, err := oci.ParseProviderID(node.Spec.ProviderID)
	if errors.Is(err, oci.ErrEmptyProviderID) {
		return p.options.Inventory.Find(ctx, queryFor(node))
	}
	if err != nil {
		return nil, err
	}
	return p.options.Inventory.Instance(ctx, id, need)
}

// queryFor says by what the instance of a node without providerID may be found.
func queryFor(node *v1.Node) inventory.Query {
	q := inventory.Query{Names: []string{node.Name}, CompartmentID: node.Annotations[annotationCompartment]}
	if host := node.Labels[v1.LabelHostname]; host != "" && host != node.Name {
		q.Names = append(q.Names, host)
	}
	for _, address := range providedNodeIPs(node) {
		q.Addresses = append(q.Addresses, address.String())
	}
	if len(q.Addresses) > 0 {
		return q
	}
	for _, a := range node.Status.Addresses {
		if a.Type == v1.NodeInternalIP {
			q.Addresses = append(q.Addresses, a.Address)
		}
	}
	return q
}

// existenceNeed is what the lifecycle controller needs, which asks about the nodes that are not ready.
func (p *Provider) existenceNeed(node *v1.Node) inventory.Need {
	return inventory.Need{MaxAge: existenceAge, Crowd: p.counts().notReady, Compartments: hints(node)}
}

// metadataNeeds are what the node controller needs: of a node that it initialises, or in its pass over the others.
func (p *Provider) metadataNeeds(node *v1.Node) (instance, addresses inventory.Need) {
	counts := p.counts()
	if isUninitialized(node) {
		need := inventory.Need{MaxAge: addressAge, Crowd: counts.uninitialized, Compartments: hints(node)}
		return need, need
	}
	period := p.options.StatusPeriod
	addresses = inventory.Need{MaxAge: min(passAge, period/2), Crowd: len(counts.uids), Patient: true, Compartments: hints(node)}
	instance = addresses
	instance.MaxAge = min(shapeAge, period+period/2)
	return instance, addresses
}

// hints are the compartments that a node's instance may be in.
func hints(node *v1.Node) []string { return []string{node.Annotations[annotationCompartment]} }

func isUninitialized(node *v1.Node) bool {
	for _, taint := range node.Spec.Taints {
		if taint.Key == cloudproviderapi.TaintExternalCloudProvider {
			return true
		}
	}
	return false
}

func isReady(node *v1.Node) bool {
	for _, c := range node.Status.Conditions {
		if c.Type == v1.NodeReady {
			return c.Status == v1.ConditionTrue
		}
	}
	return false
}

func isForeign(node *v1.Node) bool {
	_, err := oci.ParseProviderID(node.Spec.ProviderID)
	return errors.Is(err, oci.ErrForeignProvider)
}

// listNodes returns all Nodes that are known; none before SetInformers.
func listNodes(lister corelisters.NodeLister) []*v1.Node {
	if lister == nil {
		return nil
	}
	nodes, _ := lister.List(labels.Everything()) // a lister reads memory; it has no error to return
	return nodes
}
