// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package ocisim

import (
	"fmt"

	"github.com/oracle/oci-go-sdk/v65/common"
	"github.com/oracle/oci-go-sdk/v65/lustrefilestorage"
)

// LustreFileSystem of the service File Storage with Lustre.
type LustreFileSystem struct {
	ID                 string   `json:"id,omitempty"`
	Compartment        string   `json:"compartment,omitempty"`
	Name               string   `json:"name,omitempty"`
	FileSystemName     string   `json:"fileSystemName,omitempty"`     // in mount commands; default "lustre"
	AvailabilityDomain string   `json:"availabilityDomain,omitempty"` // default: that of the subnet, else the first
	Subnet             string   `json:"subnet,omitempty"`             // default: the first
	CapacityInGBs      int      `json:"capacityInGBs,omitempty"`      // default: the smallest
	PerformanceTier    string   `json:"performanceTier,omitempty"`    // default MBPS_PER_TB_125
	SecurityGroups     []string `json:"securityGroups,omitempty"`

	Tags `json:",inline"`
}

// AddLustreFileSystem adds a Lustre file system and returns its OCID.
func (r *Region) AddLustreFileSystem(l LustreFileSystem) string {
	return add(r, l, seeder.lustreFileSystem)
}

func (s seeder) lustreFileSystem(l LustreFileSystem) (string, error) {
	id, err := s.newID(l.ID, lustreFileSystems.ocidType)
	if err != nil {
		return "", err
	}
	compartment, err := s.compartmentOf(l.Compartment, "")
	if err != nil {
		return "", err
	}
	subnet, err := resolve(s.cl, subnets, l.Subnet)
	if err != nil {
		return "", err
	}
	domain, err := s.fileDomain(orElse(l.AvailabilityDomain, value(subnet.AvailabilityDomain)))
	if err != nil {
		return "", err
	}
	tier, known := lustrefilestorage.GetMappingLustreFileSystemPerformanceTierEnum(orElse(l.PerformanceTier, "MBPS_PER_TB_125"))
	if !known {
		return "", fmt.Errorf("seed: no performance tier %q", l.PerformanceTier)
	}
	if l.CapacityInGBs == 0 {
		l.CapacityInGBs = s.cl.behaviour.LustreMinCapacity
	}
	v := &lustrefilestorage.LustreFileSystem{
		Id: common.String(id), CompartmentId: common.String(compartment), AvailabilityDomain: common.String(domain),
		DisplayName:           common.String(orElse(l.Name, "lustrefilesystem"+s.cl.nameSuffix())),
		FileSystemDescription: common.String(""), FileSystemName: common.String(orElse(l.FileSystemName, "lustre")),
		CapacityInGBs: common.Int(l.CapacityInGBs), PerformanceTier: tier, SubnetId: subnet.Id,
		RootSquashConfiguration: completeSquash(&lustrefilestorage.RootSquashConfiguration{}),
		FreeformTags:            l.freeform(), DefinedTags: l.defined(),
	}
	for _, reference := range l.SecurityGroups {
		group, err := resolve(s.cl, securityGroups, reference)
		if err != nil {
			return "", err
		}
		v.NsgIds = append(v.NsgIds, value(group.Id))
	}
	s.cl.bearLustre(v, lustrefilestorage.LustreFileSystemLifecycleStateActive)
	vnic, err := s.cl.newServiceVNIC(*subnet.Id, id, compartment, v.NsgIds)
	if err != nil {
		return "", fmt.Errorf("seed: Lustre file system %s: %w", l.Name, err)
	}
	v.ManagementServiceAddress = vnic.PrivateIp
	lustreFileSystems.insert(s.cl, v)
	return id, nil
}
