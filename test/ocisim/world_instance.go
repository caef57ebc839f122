// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package ocisim

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/oracle/oci-go-sdk/v65/common"
	"github.com/oracle/oci-go-sdk/v65/core"
)

// hostnameLabel is what a VNIC's host name label may be (RFC 952 and 1123).
var hostnameLabel = regexp.MustCompile(`^[a-zA-Z0-9]([a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?$`)

// instances adds an instance or, with Count, several, and returns the last one's identifier.
func (s seeder) instances(i Instance) (string, error) {
	if i.Count <= 1 {
		return s.instance(i)
	}
	if i.ID != "" || i.VNICID != "" || i.PrivateIP != "" {
		return "", fmt.Errorf("seed: %d instances %q cannot share an identifier or an address", i.Count, i.Name)
	}
	var id string
	for n := 1; n <= i.Count; n++ {
		one := i
		one.Name = strings.ReplaceAll(i.Name, "%d", strconv.Itoa(n))
		one.Hostname = strings.ReplaceAll(i.Hostname, "%d", strconv.Itoa(n))
		var err error
		if id, err = s.instance(one); err != nil {
			return "", err
		}
	}
	return id, nil
}

func (s seeder) instance(i Instance) (string, error) {
	id, err := s.newID(i.ID, instances.ocidType)
	if err != nil {
		return "", err
	}
	compartment, err := s.compartmentOf(i.Compartment, "")
	if err != nil {
		return "", err
	}
	domain, err := s.domain(i)
	if err != nil {
		return "", err
	}
	n := len(s.cl.store.under(instances.kindInfo, ""))
	model := &core.Instance{
		Id: common.String(id), CompartmentId: common.String(compartment),
		DisplayName:        common.String(orElse(i.Name, "instance"+s.cl.nameSuffix())),
		AvailabilityDomain: common.String(domain),
		FaultDomain:        common.String(orElse(i.FaultDomain, faultDomains[n%len(faultDomains)])),
		Region:             common.String(s.cl.options.RegionKey),
		Shape:              common.String(orElse(i.Shape, "VM.Standard.E5.Flex")),
		LifecycleState:     core.InstanceLifecycleStateEnum(orElse(i.State, string(core.InstanceLifecycleStateRunning))),
		TimeCreated:        s.cl.sdkTime(),
		Metadata:           i.Metadata, FreeformTags: i.freeform(), DefinedTags: i.defined(),
		LaunchMode: core.InstanceLaunchModeParavirtualized,
		LaunchOptions: &core.LaunchOptions{
			BootVolumeType: core.LaunchOptionsBootVolumeTypeParavirtualized,
			NetworkType:    core.LaunchOptionsNetworkTypeParavirtualized, RemoteDataVolumeType: core.LaunchOptionsRemoteDataVolumeTypeParavirtualized,
			IsPvEncryptionInTransitEnabled: common.Bool(false), IsConsistentVolumeNamingEnabled: common.Bool(true),
		},
		ShapeConfig:   &core.InstanceShapeConfig{Ocpus: common.Float32(2), MemoryInGBs: common.Float32(16)},
		SourceDetails: core.InstanceSourceViaImageDetails{ImageId: common.String(orElse(i.Image, s.imageID()))},
	}
	if model.Metadata == nil {
		model.Metadata = map[string]string{}
	}
	instances.insert(s.cl, model)
	if i.BootVolumeGBs >= 0 {
		s.bootVolume(model, i.BootVolumeGBs)
	}
	for index, nic := range append([]VNIC{i.VNIC}, i.VNICs...) {
		if index == 0 && nic.Subnet == "" {
			continue
		}
		if err := s.vnic(model, nic, index == 0); err != nil {
			return "", fmt.Errorf("seed: instance %s: %w", i.Name, err)
		}
	}
	return id, nil
}

// imageID is the image of all instances that do not name one.
func (s seeder) imageID() string {
	return "ocid1.image." + s.cl.options.Realm + "." + s.cl.options.RegionKey + ".aaaaaaaasimulatedimage"
}

// domain is the availability domain of an instance: the one it names, that of its subnet, or the next in turn.
func (s seeder) domain(i Instance) (string, error) {
	if i.AvailabilityDomain != "" {
		return i.AvailabilityDomain, nil
	}
	if i.Subnet != "" {
		subnet, err := resolve(s.cl, subnets, i.Subnet)
		if err != nil {
			return "", err
		}
		if subnet.AvailabilityDomain != nil {
			return *subnet.AvailabilityDomain, nil
		}
	}
	all := s.cl.options.AvailabilityDomains
	return all[len(s.cl.store.under(instances.kindInfo, ""))%len(all)], nil
}

// vnic attaches a VNIC to an instance.
func (s seeder) vnic(instance *core.Instance, nic VNIC, primary bool) error {
	subnet, err := resolve(s.cl, subnets, nic.Subnet)
	if err != nil {
		return err
	}
	id, err := s.newID(nic.VNICID, vnics.ocidType)
	if err != nil {
		return err
	}
	spec := vnicSpec{
		id: id, compartment: value(instance.CompartmentId), subnet: value(subnet.Id), domain: value(instance.AvailabilityDomain),
		name: value(instance.DisplayName), hostname: s.hostname(nic.Hostname, value(instance.DisplayName)),
		privateIP: nic.PrivateIP, primary: primary, owner: value(instance.Id),
	}
	for _, address := range nic.IPv6 {
		if address == Auto {
			address = ""
		}
		spec.ipv6 = append(spec.ipv6, address)
	}
	for _, reference := range nic.SecurityGroups {
		group, err := resolve(s.cl, securityGroups, reference)
		if err != nil {
			return err
		}
		spec.groups = append(spec.groups, value(group.Id))
	}
	v, err := s.cl.addVNIC(spec)
	if err != nil {
		return err
	}
	if nic.SkipSourceCheck {
		vnics.update(s.cl, value(v.Id), func(v *core.Vnic) { v.SkipSourceDestCheck = common.Bool(true) })
	}
	s.attach(instance, v)
	if nic.PublicIP != "" {
		return s.ephemeralIP(v, nic.PublicIP)
	}
	return nil
}

// hostname is the label of a VNIC; "-" stands for none.
func (s seeder) hostname(wanted, name string) string {
	switch {
	case wanted == "-":
		return ""
	case wanted != "":
		return wanted
	case hostnameLabel.MatchString(name):
		return name
	default:
		return ""
	}
}

func (s seeder) attach(instance *core.Instance, v *core.Vnic) {
	vnicAttachments.insert(s.cl, &core.VnicAttachment{
		Id: common.String(s.cl.newOCID(vnicAttachments.ocidType)), CompartmentId: instance.CompartmentId,
		AvailabilityDomain: instance.AvailabilityDomain, InstanceId: instance.Id, VnicId: v.Id, SubnetId: v.SubnetId,
		LifecycleState: core.VnicAttachmentLifecycleStateAttached, TimeCreated: s.cl.sdkTime(), NicIndex: common.Int(0),
	})
}

// ephemeralIP gives a VNIC a public address of its own.
func (s seeder) ephemeralIP(v *core.Vnic, address string) error {
	if address == Auto {
		address = ""
	}
	public, err := s.cl.addPublicIP(publicIPSpec{
		compartment: value(v.CompartmentId), address: address, state: core.PublicIpLifecycleStateAssigned,
	})
	if err != nil {
		return err
	}
	private := s.cl.primaryPrivateIP(value(v.Id))
	publicIPs.update(s.cl, value(public.Id), func(p *core.PublicIp) {
		p.Scope, p.AvailabilityDomain = core.PublicIpScopeAvailabilityDomain, v.AvailabilityDomain
		p.AssignedEntityType, p.AssignedEntityId, p.PrivateIpId = core.PublicIpAssignedEntityTypePrivateIp, private.Id, private.Id
	})
	s.cl.publicAddressOf(value(private.Id), public.IpAddress)
	return nil
}
