// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package ocisim

import (
	"net/netip"

	"github.com/oracle/oci-go-sdk/v65/common"
	"github.com/oracle/oci-go-sdk/v65/core"
	"github.com/oracle/oci-go-sdk/v65/filestorage"
)

// mountTargetAddresses is the number of addresses that a mount target takes in its subnet: its own, and those that
// the service needs for the change to a new host. Oracle's documentation says three.
const mountTargetAddresses = 3

// mountTargetPlace is what the network gave a new mount target; it shows some time after the create.
type mountTargetPlace struct {
	vcn         string
	private, v6 []string
}

// mountTargetAddresses takes a VNIC and addresses in the subnet.
func (c *call) mountTargetAddresses(v *filestorage.MountTarget, wanted, hostname string) (mountTargetPlace, error) {
	subnet, err := subnets.related(c, value(v.SubnetId))
	if err != nil {
		return mountTargetPlace{}, err
	}
	if pool := c.subnetPool(subnet, false); pool != nil && pool.free < mountTargetAddresses {
		if err := c.rule(MountTargetSubnetTooSmall, *subnet.Id, mountTargetAddresses); err != nil {
			return mountTargetPlace{}, err
		}
	}
	return c.placeMountTarget(v, subnet, wanted, hostname)
}

func (cl *cloud) placeMountTarget(v *filestorage.MountTarget, subnet *core.Subnet, wanted, hostname string) (mountTargetPlace, error) {
	place := mountTargetPlace{vcn: value(subnet.VcnId)}
	id := value(v.Id)
	spec := vnicSpec{
		subnet: *subnet.Id, compartment: value(v.CompartmentId), domain: value(v.AvailabilityDomain), owner: id,
		groups: v.NsgIds, primary: true, hostname: hostname, name: "VNIC of " + id, privateIP: wanted,
	}
	if a, err := netip.ParseAddr(wanted); err == nil && a.Is6() {
		spec.privateIP, spec.ipv6 = "", []string{wanted}
	}
	vnic, err := cl.addVNIC(spec)
	if err != nil {
		cl.dropServiceVNICs(id)
		return place, err
	}
	for range mountTargetAddresses - 1 {
		address, err := cl.takeAddress(subnet, "", false)
		if err != nil {
			cl.dropServiceVNICs(id)
			return place, err
		}
		cl.addPrivateIP(vnic, address, false, "")
	}
	if len(spec.ipv6) == 0 {
		place.private = []string{value(cl.primaryPrivateIP(*vnic.Id).Id)}
	}
	for six := range ipv6s.under(cl, *vnic.Id) {
		place.v6 = append(place.v6, value(six.Id))
	}
	return place, nil
}

// dropServiceVNICs undoes what a refused create took: nothing lingers.
func (cl *cloud) dropServiceVNICs(owner string) {
	for _, id := range append([]string(nil), cl.ownedVNICs[owner]...) {
		cl.removeVNIC(id)
	}
}

// assignMountTarget shows a mount target's addresses and makes its export set.
func (cl *cloud) assignMountTarget(id string, place mountTargetPlace) {
	v := mountTargets.find(cl, id)
	if v == nil || v.LifecycleState != filestorage.MountTargetLifecycleStateCreating {
		return
	}
	set := cl.addExportSet("", v, place.vcn, filestorage.ExportSetLifecycleStateCreating)
	mountTargets.update(cl, id, func(v *filestorage.MountTarget) {
		v.ExportSetId, v.MountTargetIpv6Ids = common.String(set), place.v6
		v.PrivateIpIds = append([]string{}, place.private...)
	})
}
