// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package cloudprovider

import (
	"strings"

	v1 "k8s.io/api/core/v1"
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

// topology is a pair of labels that the framework sets when it initialises a node, and never again. It copies the value of
// the beta label over that of the other.
type topology struct {
	beta, stable string
	value        string // what the cloud says; empty if it does not
}

func topologyOf(instance *oci.Instance) []topology {
	return []topology{
		{v1.LabelInstanceType, v1.LabelInstanceTypeStable, instance.Shape},
		{v1.LabelFailureDomainBetaZone, v1.LabelTopologyZone, zoneOf(instance)},
		{v1.LabelFailureDomainBetaRegion, v1.LabelTopologyRegion, regionOf(instance)},
	}
}

// compare says which labels a node lacks that may be filled in, and which have a value that the cloud does not confirm.
// A wrong value is never corrected: volumes carry the zone that the node had, and kubelet may insist on its own labels.
func (t topology) compare(have map[string]string) (missing, wrong map[string]string) {
	if t.value == "" || len(validation.IsValidLabelValue(t.value)) > 0 {
		return nil, nil
	}
	missing, wrong = map[string]string{}, map[string]string{}
	for _, key := range []string{t.beta, t.stable} {
		switch value, ok := have[key]; {
		case !ok:
			missing[key] = t.value
		case value != t.value:
			wrong[key] = value
		}
	}
	if len(wrong) > 0 {
		return nil, wrong // the other label of the pair must not say something else
	}
	return missing, nil
}

// wantedAnnotations are the annotations of a node.
func wantedAnnotations(instance *oci.Instance) map[string]string {
	if instance.CompartmentID == "" {
		return nil
	}
	return map[string]string{annotationCompartment: instance.CompartmentID}
}
