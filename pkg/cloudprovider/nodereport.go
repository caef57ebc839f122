// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package cloudprovider

import (
	"errors"
	"fmt"
	"net/http"

	v1 "k8s.io/api/core/v1"

	"github.com/oracle/oci-cloud-controller-manager/pkg/inventory"
	"github.com/oracle/oci-cloud-controller-manager/pkg/oci"
)

// reportNode tells a node's owner why nothing can be done about the node, and what would help. It says nothing about
// troubles that pass by themselves, unless the node waits to be initialised.
func (p *Provider) reportNode(node *v1.Node, err error) {
	if err == nil || errors.Is(err, errAbsence) || p.gate.isClosed() {
		return
	}
	reason, advice := p.adviceFor(err)
	if reason == "" {
		if !isUninitialized(node) {
			return
		}
		reason = "CloudRequestFailed"
	}
	message := err.Error()
	if advice != "" {
		message += ". " + advice
	}
	p.events.post(node, v1.EventTypeWarning, reason, causeOf(err), message)
}

// reportForeign says once that a node is left alone.
func (p *Provider) reportForeign(node *v1.Node) {
	p.events.post(node, v1.EventTypeNormal, "ForeignNode", "",
		fmt.Sprintf("Provider ID %q is not one of OCI: this node is left alone", node.Spec.ProviderID))
}

// adviceFor gives the reason of an event and what to do. Both are empty for what passes by itself.
func (p *Provider) adviceFor(err error) (reason, advice string) {
	var notFound *inventory.NotFoundError
	var ambiguous *inventory.AmbiguousError
	var presence *oci.PresenceError
	var failure *oci.Error
	const setProviderID = "start its kubelet with --provider-id=<OCID of the instance>"
	switch {
	case errors.As(err, &notFound):
		return "InstanceNotFound", "If the instance is called otherwise, or is elsewhere, " + setProviderID
	case errors.As(err, &ambiguous):
		return "InstanceAmbiguous", "Set vcn in the cloud config, or " + setProviderID
	case errors.Is(err, oci.ErrWrongResourceType), errors.Is(err, oci.ErrInvalidOCID):
		return "InvalidProviderID", "The provider ID of a Node cannot be changed: delete the Node and " + setProviderID
	case errors.As(err, &presence):
		if errors.As(presence.Read, &failure) && hidden(failure) || errors.As(presence.List, &failure) && hidden(failure) {
			return "InstanceUnreadable", p.policyFor(failure)
		}
	case errors.As(err, &failure) && hidden(failure):
		return "InstanceUnreadable", p.policyFor(failure)
	}
	return "", ""
}

// hidden says whether an answer may come from a missing policy.
func hidden(e *oci.Error) bool {
	return e.Status == http.StatusNotFound || e.Status == http.StatusUnauthorized || e.Status == http.StatusForbidden
}

// policyFor names the policy statement that a call needs.
func (p *Provider) policyFor(e *oci.Error) string {
	family := "read instance-family"
	if e.Service == oci.ServiceVirtualNetwork {
		family = "use virtual-network-family"
	}
	return fmt.Sprintf("If the resource exists, a policy is missing: allow this principal to %s in compartment %s", family, p.options.CompartmentID)
}
