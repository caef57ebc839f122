// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package block

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	spec "github.com/container-storage-interface/spec/lib/go/csi"
	"k8s.io/klog/v2"
)

// Labels of Nodes, beside those of topology, that say what they are and how they are reached (contract storage.md §4.1).
const (
	labelShape        = "node.kubernetes.io/instance-type"
	labelShapeLegacy  = "beta.kubernetes.io/instance-type"
	labelFamily       = "oci.oraclecloud.com/ip-family-preferred"
	labelFamilyHasV4  = "oci.oraclecloud.com/ip-family-ipv4"
	labelFamilyHasV6  = "oci.oraclecloud.com/ip-family-ipv6"
	ipv6FamilyMention = "IPv6"
)

const (
	// placeWait is how long NodeGetInfo waits for what is not known yet. The kubelet waits for 2 minutes, and the registrar
	// restarts when it gets an error.
	placeWait = 100 * time.Second
	// placePace is how often the API is asked meanwhile.
	placePace = 2 * time.Second
	// answerMargin is how long before its caller's deadline NodeGetInfo gives up, so that the caller hears why.
	answerMargin = 2 * time.Second
	// labelsAge is how old labels may be that say how targets are reached.
	labelsAge = time.Minute
)

// errPlaceUnknown says that it is not known yet in which availability domain the node is.
var errPlaceUnknown = errors.New("the availability domain of the node is not known yet")

// NodeGetInfo implements csi.NodeServer. Where the node is comes from its labels, and from instance metadata as long as it has none.
// An answer without that would keep the node out of scheduling until the next registration, so that it is waited for.
func (n *NodeServer) NodeGetInfo(ctx context.Context, _ *spec.NodeGetInfoRequest) (*spec.NodeGetInfoResponse, error) {
	p, err := n.awaitPlace(ctx)
	if err != nil {
		return nil, err
	}
	segments := map[string]string{TopologyZone: p.zone, TopologyLegacyZone: p.zone}
	if p.ipv6Only {
		segments[TopologyFullDomain] = p.fullDomain
	}
	return &spec.NodeGetInfoResponse{
		NodeId:             n.options.NodeName,
		MaxVolumesPerNode:  int64(n.maxVolumes(ctx, p.shape)),
		AccessibleTopology: &spec.Topology{Segments: segments},
	}, nil
}

// place is what is told about where the node is.
type place struct {
	zone       string // "PHX-AD-1"
	fullDomain string // "zkJl.PHX-AD-1": the full name of the availability domain in the form of a label
	ipv6Only   bool
	shape      string // empty if it is not known
}

func (p place) complete() bool { return p.zone != "" && (!p.ipv6Only || p.fullDomain != "") }

// missing names the label that would complete the place.
func (p place) missing() string {
	if p.zone == "" {
		return TopologyZone
	}
	return TopologyFullDomain
}

func placeOf(labels map[string]string) place {
	return place{
		zone:       first(labels[TopologyZone], labels[TopologyLegacyZone]),
		fullDomain: labels[TopologyFullDomain],
		ipv6Only:   isTrue(labels[labelFamilyHasV6]) && !isTrue(labels[labelFamilyHasV4]),
		shape:      first(labels[labelShape], labels[labelShapeLegacy]),
	}
}

// with fills in what the labels leave out.
func (p place) with(i Instance) place {
	p.zone = first(p.zone, i.AvailabilityDomain[strings.LastIndexByte(i.AvailabilityDomain, ':')+1:])
	p.fullDomain = first(p.fullDomain, strings.ReplaceAll(i.AvailabilityDomain, ":", "."))
	p.shape = first(p.shape, i.Shape)
	return p
}

// awaitPlace finds out where the node is.
func (n *NodeServer) awaitPlace(ctx context.Context) (place, error) {
	limit := placeWait
	if deadline, has := ctx.Deadline(); has {
		limit = min(limit, time.Until(deadline)-answerMargin)
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	ticker := time.NewTicker(placePace)
	defer ticker.Stop()
	var reason error
	for {
		p, err := n.findPlace(ctx)
		if err == nil {
			return p, nil
		}
		if reason == nil || ctx.Err() == nil { // not that the time is up, but what it was spent on
			if reason == nil || reason.Error() != err.Error() {
				klog.FromContext(ctx).Info("Waiting to know where the node is", "node", n.options.NodeName, "reason", err.Error())
			}
			reason = err
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return place{}, reason
		}
	}
}

// findPlace looks once.
func (n *NodeServer) findPlace(ctx context.Context) (place, error) {
	labels, err := n.readLabels(ctx)
	if err != nil && !errors.Is(err, ErrLabelsForbidden) {
		return place{}, fmt.Errorf("%w: the labels of node %s cannot be read: %w", errPlaceUnknown, n.options.NodeName, err)
	}
	p := placeOf(labels)
	if p.complete() && p.shape != "" {
		return p, nil
	}
	instance, errMetadata := n.metadata(ctx)
	if p = p.with(instance); p.complete() {
		return p, nil
	}
	return place{}, fmt.Errorf("%w: node %s has no label %s yet, which the cloud-controller-manager sets, and instance metadata does not tell: %w",
		errPlaceUnknown, n.options.NodeName, p.missing(), errors.Join(err, errMetadata))
}

// readLabels asks the API for the labels of the Node.
func (n *NodeServer) readLabels(ctx context.Context) (map[string]string, error) {
	labels, err := n.options.Labels(ctx)
	if err != nil {
		return nil, err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.labels, n.labelsAt = labels, time.Now()
	return labels, nil
}

// recentLabels are labels that are not old, or as old as need be if the API does not answer.
func (n *NodeServer) recentLabels(ctx context.Context) (map[string]string, error) {
	n.mu.Lock()
	labels, age := n.labels, time.Since(n.labelsAt)
	n.mu.Unlock()
	if labels != nil && age < labelsAge {
		return labels, nil
	}
	fresh, err := n.readLabels(ctx)
	switch {
	case err == nil:
		return fresh, nil
	case labels != nil || errors.Is(err, ErrLabelsForbidden):
		klog.FromContext(ctx).Info("The labels of the node cannot be read; those known are used", "node", n.options.NodeName, "err", err)
		return labels, nil
	}
	return nil, fmt.Errorf("%w: the labels of node %s cannot be read: %w", errPlaceUnknown, n.options.NodeName, err)
}

// overIPv6 says whether the iSCSI targets of an attachment are reached over IPv6: as the label says, or where there is nothing else.
func (n *NodeServer) overIPv6(ctx context.Context, publish map[string]string) (bool, error) {
	if strings.EqualFold(publish[ContextAttachmentType], AttachmentParavirtualized) {
		return false, nil
	}
	labels, err := n.recentLabels(ctx)
	if err != nil {
		return false, err
	}
	if family := labels[labelFamily]; family != "" {
		return strings.EqualFold(family, ipv6FamilyMention), nil
	}
	return placeOf(labels).ipv6Only, nil
}

// metadata is what instance metadata has told; it is asked until it has.
func (n *NodeServer) metadata(ctx context.Context) (Instance, error) {
	n.mu.Lock()
	known := n.instance
	n.mu.Unlock()
	if known != nil {
		return *known, nil
	}
	i, err := n.options.Metadata(ctx)
	if err != nil {
		return Instance{}, err
	}
	if i.AvailabilityDomain == "" {
		return Instance{}, errors.New("instance metadata names no availability domain")
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.instance = &i
	return i, nil
}

func first(values ...string) string {
	for _, v := range values {
		if v != "" {
			return v
		}
	}
	return ""
}

func isTrue(label string) bool { return strings.EqualFold(label, "true") }
