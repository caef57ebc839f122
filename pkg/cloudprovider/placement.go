// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package cloudprovider

import (
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/oracle/oci-cloud-controller-manager/pkg/oci"
)

const (
	labelFaultDomain = "oci.oraclecloud.com/fault-domain"

	// labelFullADName is read by storage in clusters without IPv4, whose nodes cannot ask the metadata service.
	labelFullADName = "csi-ipv6-full-ad-name"

	// annotationCompartment is read by storage.
	annotationCompartment = "oci.oraclecloud.com/compartment-id"
)

// zoneOf is the availability domain without the prefix of the tenancy: labels cannot hold its colon.
func zoneOf(instance *oci.Instance) string {
	if _, short, found := strings.Cut(instance.AvailabilityDomain, ":"); found {
		return short
	}
	return instance.AvailabilityDomain
}

// regionOf is the region as the API says it, a key ("iad") in old regions and a name in newer ones. OCIDs carry the same.
func regionOf(instance *oci.Instance) string {
	if instance.Region != "" {
		return instance.Region
	}
	id, err := oci.ParseOCID(instance.ID)
	if err != nil {
		return ""
	}
	return id.Region
}

// wantedLabels are the labels of a node besides those of Kubernetes. What the API does not say is not in them.
func (p *Provider) wantedLabels(instance *oci.Instance) map[string]string {
	wanted := map[string]string{labelFaultDomain: instance.FaultDomain}
	if p.options.IPv6SingleStack {
		wanted[labelFullADName] = strings.ReplaceAll(instance.AvailabilityDomain, ":", ".")
	}
	for key, value := range wanted {
		if value == "" || len(validation.IsValidLabelValue(value)) > 0 {
			delete(wanted, key)
		}
	}
	return wanted
}

// wantedAnnotations are the annotations of a node.
func wantedAnnotations(instance *oci.Instance) map[string]string {
	if instance.CompartmentID == "" {
		return nil
	}
	return map[string]string{annotationCompartment: instance.CompartmentID}
}
