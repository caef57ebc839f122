// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package loadbalancer

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/oracle/oci-cloud-controller-manager/pkg/firewall"
	"github.com/oracle/oci-cloud-controller-manager/pkg/oci"
)

// groupPause is the time between two tries to delete a network security group that VNICs are still in: those of a deleted
// balancer stay for 1 to 5 minutes (oci-api.md §4).
const groupPause = 10 * time.Second

// serviceGroup describes the network security group of the Service.
func (op *operation) serviceGroup(compartment, vcn string) firewall.ServiceGroup {
	return firewall.ServiceGroup{
		Owner: string(op.svc.UID), Namespace: op.svc.Namespace, Name: op.svc.Name, CompartmentID: compartment, VCNID: vcn,
	}
}

// managedGroup finds the network security group of the Service, or makes it. It is empty, and the work blocked, if there is
// none and none may be made.
func (op *operation) managedGroup(ctx context.Context, w *ruleWork, in ruleInputs) (string, error) {
	vcn, err := op.vcnOf(ctx, in.model.SubnetIDs)
	if err != nil {
		return "", err
	}
	var attached []string
	if in.live != nil {
		attached = in.live.NSGIDs
	}
	rules := op.m.deps.Firewall.Rules
	group := op.serviceGroup(in.model.CompartmentID, vcn)
	id, err := rules.FindGroup(ctx, group, attached)
	if id != "" || err != nil {
		return id, err
	}
	merged := in.model.mergeNSGs(attached, lastApplied(op.svc))
	if len(merged) >= maxNSGs {
		w.problems.warn(ReasonInvalidAnnotation, fmt.Sprintf("the balancer is in %d network security groups already, or would be, and at most %d are possible; "+
			"in the mode of security rules %s it needs one more: remove one", len(merged), maxNSGs, RulesNSG))
		w.blocked = true
		return "", nil
	}
	if !in.mayWrite {
		w.blocked, w.lacksGroup = true, true
		return "", nil
	}
	return rules.CreateGroup(ctx, group)
}

// vcnOf is the VCN of the balancer's subnets.
func (op *operation) vcnOf(ctx context.Context, subnetIDs []string) (string, error) {
	if len(subnetIDs) == 0 {
		return "", nil
	}
	subnet, _, err := op.m.subnets.get(ctx, subnetIDs[0], op.m.cfg.RuleSubnetMaxAge)
	if err != nil {
		return "", fmt.Errorf("read subnet %s: %w", subnetIDs[0], err)
	}
	return subnet.VCNID, nil
}

// dropFormerGroup deletes the network security group of a mode that the Service is not in any more.
func (op *operation) dropFormerGroup(ctx context.Context, live *oci.Balancer, model *Model) error {
	w := op.rules
	if w == nil || w.applied.Group == "" || slices.Contains(live.NSGIDs, w.applied.Group) {
		return nil
	}
	vcn, err := op.vcnOf(ctx, live.SubnetIDs)
	if err == nil {
		err = op.m.deps.Firewall.Rules.DeleteGroup(ctx, op.serviceGroup(live.CompartmentID, vcn), w.applied.Group)
	}
	switch {
	case errors.Is(err, oci.ErrGroupInUse):
		return pendingUntil("network security group "+w.applied.Group+" to be left by the balancer's VNICs", time.Now().Add(groupPause))
	case errors.Is(err, firewall.ErrNotOurs): // the record is wrong
	case err != nil:
		return op.refuse("delete the network security group of the Service", live.Kind, err)
	}
	w.applied.Group = ""
	applied := w.applied
	op.mem.rules = &applied
	op.save(ctx, live.ID, op.applied(model))
	return nil
}

// leftGroup is a network security group that goes with the Service.
type leftGroup struct {
	firewall.ServiceGroup
	id string
}

// findGroups finds the network security groups of a Service that is to go. Where nothing says that there is one, a list that
// cannot be read does not matter.
func (op *operation) findGroups(ctx context.Context, b *oci.Balancer) ([]leftGroup, error) {
	before := op.rulesBefore()
	expected := before.group() != "" || op.groupsWanted()
	if !expected && before != nil {
		return nil, nil
	}
	var attached []string
	if b != nil {
		attached = b.NSGIDs
	}
	var found []leftGroup
	required, optional := op.places()
	var seen []string
	for _, p := range slices.Concat(required, optional) {
		if p.compartment == "" || slices.Contains(seen, p.compartment) {
			continue
		}
		seen = append(seen, p.compartment)
		group := op.serviceGroup(p.compartment, "")
		id, err := op.m.deps.Firewall.Rules.FindGroup(ctx, group, attached)
		switch {
		case err != nil && expected && len(seen) == 1:
			return nil, op.refuse("look up the network security group of the Service", p.kind, err)
		case err != nil:
			op.log.V(2).Info("Passed over network security groups that cannot be listed", "compartment", p.compartment, "reason", err)
		case id != "" && !slices.ContainsFunc(found, func(g leftGroup) bool { return g.id == id }):
			found = append(found, leftGroup{group, id})
		}
	}
	return found, nil
}

// groupsWanted says whether the annotations ask for a network security group.
func (op *operation) groupsWanted() bool {
	settings, _ := ParseAnnotations(op.svc.Annotations, WantedKind(op.svc.Annotations))
	return settings.RuleMode == RulesNSG
}

// deleteGroups deletes network security groups, and waits until VNICs that were in them are gone.
func (op *operation) deleteGroups(ctx context.Context, groups []leftGroup) error {
	for _, g := range groups {
		for {
			err := op.m.deps.Firewall.Rules.DeleteGroup(ctx, g.ServiceGroup, g.id)
			if err == nil || errors.Is(err, firewall.ErrNotOurs) {
				break
			}
			kind := WantedKind(op.svc.Annotations)
			if !errors.Is(err, oci.ErrGroupInUse) {
				return op.refuse("delete the network security group of the Service", kind, err)
			}
			if op.pause(ctx, groupPause) != nil {
				return op.refuse("delete the network security group of the Service", kind, err)
			}
		}
	}
	return nil
}
