// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"

	"github.com/oracle/oci-go-sdk/v65/core"

	"github.com/oracle/oci-cloud-controller-manager/test/ocisim"
)

// source finds what the metadata service tells an instance about itself.
type source struct {
	region      *ocisim.Region
	fallback    string // OCID or display name of the instance that is meant when none is named; empty: the first
	realmDomain string
}

// instanceView is one instance of the region.
type instanceView struct {
	core.Instance

	id, compartment, tenancy string
}

// ErrNoInstance says that the world has no such instance, or that it is terminated.
var ErrNoInstance = errors.New("no such instance")

// instance finds an instance by OCID or display name, or the default one for "". Terminated instances have no metadata.
func (s *source) instance(ref string) (instanceView, error) {
	if ref == "" {
		ref = s.fallback
	}
	for _, candidate := range s.candidates(ref) {
		id, name := value(candidate.Id), value(candidate.DisplayName)
		if candidate.LifecycleState == core.InstanceLifecycleStateTerminated || (ref != "" && ref != id && ref != name) {
			continue
		}
		return instanceView{
			Instance: candidate, id: id, compartment: value(candidate.CompartmentId), tenancy: s.region.Options().Tenancy,
		}, nil
	}
	if ref == "" {
		return instanceView{}, fmt.Errorf("%w: the world has none", ErrNoInstance)
	}
	return instanceView{}, fmt.Errorf("%w: %s", ErrNoInstance, ref)
}

// candidates spares a copy of all instances where the OCID is known.
func (s *source) candidates(ref string) []core.Instance {
	if strings.HasPrefix(ref, "ocid1.") {
		if instance, ok := s.region.Instance(ref); ok {
			return []core.Instance{instance}
		}
		return nil
	}
	return s.region.Instances()
}

// instanceDocument is the tree under /opc/v2/instance, with the names of the real service.
func (s *source) instanceDocument(v instanceView) map[string]any {
	o := s.region.Options()
	key := strings.ToLower(o.RegionKey)
	document := map[string]any{
		"availabilityDomain":  value(v.AvailabilityDomain),
		"faultDomain":         value(v.FaultDomain),
		"compartmentId":       v.compartment,
		"tenantId":            v.tenancy,
		"displayName":         value(v.DisplayName),
		"hostname":            s.hostname(v),
		"id":                  v.id,
		"image":               imageOf(v.SourceDetails),
		"metadata":            v.Metadata,
		"region":              key,
		"canonicalRegionName": o.Region,
		"ociAdName":           adName(key, value(v.AvailabilityDomain)),
		"regionInfo": map[string]any{
			"realmKey":             o.Realm,
			"realmDomainComponent": s.realmDomain,
			"regionKey":            strings.ToUpper(o.RegionKey),
			"regionIdentifier":     o.Region,
		},
		"shape":        value(v.Shape),
		"state":        titleCase(string(v.LifecycleState)),
		"freeformTags": v.FreeformTags,
		"definedTags":  v.DefinedTags,
	}
	if v.TimeCreated != nil {
		document["timeCreated"] = v.TimeCreated.UnixMilli()
	}
	if c := v.ShapeConfig; c != nil {
		document["shapeConfig"] = map[string]any{"ocpus": c.Ocpus, "memoryInGBs": c.MemoryInGBs}
	}
	return document
}

// hostname is the host name label of the primary VNIC, else the display name.
func (s *source) hostname(v instanceView) string {
	for _, vnic := range s.vnics(v) {
		if value(vnic.IsPrimary) && value(vnic.HostnameLabel) != "" {
			return *vnic.HostnameLabel
		}
	}
	return value(v.DisplayName)
}

// vnics are the attached VNICs, the primary one first.
func (s *source) vnics(v instanceView) []core.Vnic {
	vnics := s.region.InstanceVNICs(v.id)
	for i, vnic := range vnics {
		if value(vnic.IsPrimary) {
			vnics[0], vnics[i] = vnics[i], vnics[0]
		}
	}
	return vnics
}

// vnicDocument is the list under /opc/v2/vnics.
func (s *source) vnicDocument(v instanceView) []map[string]any {
	list := []map[string]any{}
	for i, vnic := range s.vnics(v) {
		entry := map[string]any{
			"vnicId":    value(vnic.Id),
			"privateIp": value(vnic.PrivateIp),
			"macAddr":   value(vnic.MacAddress),
			"vlanTag":   i,
			"nicIndex":  0,
		}
		if subnet, ok := s.region.Subnet(value(vnic.SubnetId)); ok {
			entry["subnetCidrBlock"] = value(subnet.CidrBlock)
			entry["virtualRouterIp"] = firstHost(value(subnet.CidrBlock))
		}
		if len(vnic.Ipv6Addresses) > 0 {
			entry["ipv6Addresses"] = vnic.Ipv6Addresses
		}
		list = append(list, entry)
	}
	return list
}

// firstHost is the address of a subnet's router, the first behind the network address.
func firstHost(cidr string) string {
	prefix, err := netip.ParsePrefix(cidr)
	if err != nil {
		return ""
	}
	return prefix.Masked().Addr().Next().String()
}

func imageOf(details core.InstanceSourceDetails) string {
	switch d := details.(type) {
	case core.InstanceSourceViaImageDetails:
		return value(d.ImageId)
	case *core.InstanceSourceViaImageDetails:
		return value(d.ImageId)
	default:
		return ""
	}
}

// adName writes the tenancy-independent name of an availability domain: "Uocm:PHX-AD-2" is "phx-ad-2".
func adName(key, domain string) string {
	_, number, ok := strings.Cut(domain, "-AD-")
	if !ok {
		return ""
	}
	return key + "-ad-" + number
}

// titleCase writes a state as the metadata service does: "RUNNING" is "Running".
func titleCase(state string) string {
	if state == "" {
		return ""
	}
	return state[:1] + strings.ToLower(state[1:])
}

// value is what a pointer of an SDK model points to, or the zero value.
func value[T any](p *T) T {
	if p == nil {
		var zero T
		return zero
	}
	return *p
}
