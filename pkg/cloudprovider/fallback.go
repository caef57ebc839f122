// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package cloudprovider

import (
	"fmt"

	v1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"

	"github.com/oracle/oci-cloud-controller-manager/pkg/inventory"
)

// ReportFallback tells the operator that single reads stand in for a list, which costs more calls: one event for each policy
// that is missing, however many lists and nodes it concerns, and one for each subnet that is full of other addresses.
func (p *Provider) ReportFallback(f inventory.Fallback) {
	klog.FromContext(p.context).Info("A list does not serve; reading one by one", "list", f.List, "compartment", f.CompartmentID,
		"subnet", f.SubnetID, "nodes", f.Nodes, "rows", f.Rows, "err", f.Denied)
	if p.options.Process == nil {
		return
	}
	reason := "AddressListsUnusable"
	if f.List == inventory.ListOfInstances || f.List == inventory.ListOfAttachments {
		reason = "InstanceListsUnusable"
	}
	if f.Denied == nil {
		p.events.post(p.options.Process, v1.EventTypeWarning, reason, f.SubnetID, fmt.Sprintf(
			"The lists of addresses in subnet %s have %d rows for %d VNICs of nodes, so the VNICs are read one by one, "+
				"spread over the time between two passes. Nothing needs to be done", f.SubnetID, f.Rows, f.Nodes))
		return
	}
	where := "compartment " + f.CompartmentID
	if f.SubnetID != "" {
		where = "subnet " + f.SubnetID
	}
	p.events.post(p.options.Process, v1.EventTypeWarning, reason, string(f.List)+" in "+f.CompartmentID, fmt.Sprintf(
		"The %s in %s cannot be listed, so %d nodes are read one by one, which takes more calls: %v. If there are any, a policy is missing: %s",
		f.List, where, f.Nodes, f.Denied, p.statementFor(f)))
}

// statementFor is the policy that a list needs.
func (p *Provider) statementFor(f inventory.Fallback) string {
	right := "use virtual-network-family"
	if f.List == inventory.ListOfInstances || f.List == inventory.ListOfAttachments {
		right = "read instance-family"
	}
	compartment := f.CompartmentID
	if compartment == "" { // the subnet cannot be read either
		compartment = p.options.CompartmentID
	}
	return fmt.Sprintf("Allow dynamic-group <name> to %s in compartment id %s (for a user: group <name>)", right, compartment)
}
