// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package ocisim

import (
	"net/http"
	"regexp"

	"github.com/oracle/oci-go-sdk/v65/common"
	"github.com/oracle/oci-go-sdk/v65/core"
)

// Situations of a launch.
const (
	OutOfCapacity    Situation = "launch without capacity"
	UnknownShape     Situation = "launch of an unknown shape"
	FlexibleShapeOpt Situation = "launch of a flexible shape without its size"
)

func launchRulings() map[Situation]Ruling {
	return map[Situation]Ruling{
		OutOfCapacity: {
			Allow: true, Status: http.StatusInternalServerError, Code: "InternalError", Message: "Out of host capacity.",
			Reason: "the text is known from users; a test that wants it sets allow to false",
		},
		UnknownShape: {
			Status: http.StatusBadRequest, Code: "InvalidParameter", Message: "Shape %s is not valid for compartment %s.",
			Reason: "validation of a parameter; the simulator goes by the form of the name",
		},
		FlexibleShapeOpt: {
			Status: http.StatusBadRequest, Code: "InvalidParameter", Message: "shapeConfig.ocpus is needed for shape %s.",
			Reason: "documented as required for flexible shapes, without the code",
		},
	}
}

// shapeName is the form of the names of shapes.
var shapeName = regexp.MustCompile(`^(VM|BM)\.[A-Za-z0-9.]+$`)

// flexShape is the form of the names of flexible shapes.
var flexShape = regexp.MustCompile(`\.Flex$`)

// launchInstance makes an instance with its primary VNIC. It is PROVISIONING for a while, and then RUNNING.
func launchInstance(c *call) (*answer, error) {
	d, err := decode[core.LaunchInstanceDetails](c)
	if err != nil {
		return nil, err
	}
	if err := c.createIn(value(d.CompartmentId)); err != nil {
		return nil, err
	}
	if err := c.checkLaunch(d); err != nil {
		return nil, err
	}
	boot, err := c.bootSource(d)
	if err != nil {
		return nil, err
	}
	nic := d.CreateVnicDetails
	if nic == nil {
		nic = &core.CreateVnicDetails{SubnetId: d.SubnetId, HostnameLabel: d.HostnameLabel}
	}
	v := c.newInstance(d, boot)
	vnic, err := c.newInstanceVNIC(v, nic, true)
	if err != nil {
		return nil, err
	}
	res := instances.insert(c.cloud, v)
	a := c.newVNICAttachment(v, vnic, nil, 0)
	c.completeVNIC(value(a.Id), value(vnic.Id), "vnic.attach")
	volume := c.attachBoot(v, boot)
	cl, id := c.cloud, res.id
	cl.after(cl.duration("instance.launch"), func() {
		if cl.instanceState(id) != core.InstanceLifecycleStateProvisioning {
			return
		}
		cl.setInstanceState(id, core.InstanceLifecycleStateRunning)
		cl.setBootVolumeState(volume, core.BootVolumeLifecycleStateProvisioning, core.BootVolumeLifecycleStateAvailable)
		cl.setBootAttachmentStates(id, core.BootVolumeAttachmentLifecycleStateAttached)
	})
	return c.created(res), nil
}

// bootFrom is what an instance boots from: a new volume made of an image, or a boot volume.
type bootFrom struct {
	image  string
	volume *core.BootVolume
	size   int64 // of a new volume, in GB
	vpus   *int64
}

func (c *call) checkLaunch(d *core.LaunchInstanceDetails) error {
	shape := value(d.Shape)
	switch {
	case !contains(c.options.AvailabilityDomains, value(d.AvailabilityDomain)):
		return errInvalid("availabilityDomain %s does not exist", value(d.AvailabilityDomain))
	case shape == "":
		return errMissing("shape")
	case d.FaultDomain != nil && !contains(faultDomains[:], *d.FaultDomain):
		return errInvalid("faultDomain %s does not exist", *d.FaultDomain)
	}
	if !shapeName.MatchString(shape) {
		if err := c.rule(UnknownShape, shape, value(d.CompartmentId)); err != nil {
			return err
		}
	}
	if flexShape.MatchString(shape) && (d.ShapeConfig == nil || value(d.ShapeConfig.Ocpus) <= 0) {
		if err := c.rule(FlexibleShapeOpt, shape); err != nil {
			return err
		}
	}
	return firstOf(checkName(d.DisplayName), c.rule(OutOfCapacity))
}

// bootSource checks the source of a launch. There are no images as resources: any OCID of one will do.
func (c *call) bootSource(d *core.LaunchInstanceDetails) (bootFrom, error) {
	boot := bootFrom{image: value(d.ImageId), size: minBootVolumeGBs}
	switch source := d.SourceDetails.(type) {
	case nil:
	case core.InstanceSourceViaImageDetails:
		boot.image, boot.vpus = value(source.ImageId), source.BootVolumeVpusPerGB
		if source.BootVolumeSizeInGBs != nil {
			boot.size = *source.BootVolumeSizeInGBs
			if err := checkNumber("bootVolumeSizeInGBs", int(boot.size), minBootVolumeSet, maxVolumeGBs); err != nil {
				return boot, err
			}
		}
		if _, err := newPerformance(boot.vpus, nil, nil, nil); err != nil {
			return boot, err
		}
	case core.InstanceSourceViaBootVolumeDetails:
		return c.bootVolumeSource(value(source.BootVolumeId), value(d.AvailabilityDomain))
	default:
		return boot, errInvalid("The sourceType of sourceDetails is not supported.")
	}
	if boot.image == "" {
		return boot, errMissing("sourceDetails.imageId")
	}
	return boot, nil
}

// minBootVolumeSet is the least size that a request may set, in GB.
const minBootVolumeSet = 50

// bootVolumeSource checks a boot volume that an instance is to boot from: it is AVAILABLE, in the same availability
// domain, and no other instance has it.
func (c *call) bootVolumeSource(id, domain string) (bootFrom, error) {
	v, err := bootVolumes.related(c, id)
	switch {
	case err != nil:
		return bootFrom{}, err
	case v.LifecycleState != core.BootVolumeLifecycleStateAvailable:
		return bootFrom{}, errIncorrectState("The boot volume %s has the lifecycle state %s; it must be AVAILABLE.", id, v.LifecycleState)
	case value(v.AvailabilityDomain) != domain:
		return bootFrom{}, errInvalid("The boot volume %s is in the availability domain %s.", id, value(v.AvailabilityDomain))
	}
	for a := range bootVolumeAttachments.under(c.cloud, id) {
		if a.LifecycleState != core.BootVolumeAttachmentLifecycleStateDetached {
			return bootFrom{}, errConflict("Volume %s currently attached.", id)
		}
	}
	return bootFrom{image: value(v.ImageId), volume: v}, nil
}

// attachBoot gives a new instance its boot volume and returns its identifier.
func (c *call) attachBoot(instance *core.Instance, boot bootFrom) string {
	v := boot.volume
	if v == nil {
		v = bootVolumeModel(c.newOCID(bootVolumes.ocidType), value(instance.CompartmentId), value(instance.AvailabilityDomain),
			value(instance.DisplayName)+" (Boot Volume)", boot.size)
		v.TimeCreated, v.LifecycleState, v.ImageId = c.sdkTime(), core.BootVolumeLifecycleStateProvisioning, common.String(boot.image)
		replace(&v.VpusPerGB, boot.vpus)
		bootVolumes.insert(c.cloud, v)
	}
	bootVolumeAttachments.insert(c.cloud, &core.BootVolumeAttachment{
		Id: common.String(c.newOCID(bootVolumeAttachments.ocidType)), CompartmentId: instance.CompartmentId,
		AvailabilityDomain: instance.AvailabilityDomain, BootVolumeId: v.Id, InstanceId: instance.Id,
		DisplayName:    common.String("Remote boot attachment for " + value(instance.DisplayName)),
		LifecycleState: core.BootVolumeAttachmentLifecycleStateAttaching, TimeCreated: c.sdkTime(), TimeUpdated: c.sdkTime(),
		IsPvEncryptionInTransitEnabled: instance.LaunchOptions.IsPvEncryptionInTransitEnabled, IsEncryptionInTransitEnabled: common.Bool(false),
	})
	return value(v.Id)
}

func (c *call) newInstance(d *core.LaunchInstanceDetails, boot bootFrom) *core.Instance {
	n := len(c.store.under(instances.kindInfo, ""))
	v := &core.Instance{
		Id: common.String(c.newOCID(instances.ocidType)), CompartmentId: d.CompartmentId, AvailabilityDomain: d.AvailabilityDomain,
		DisplayName: common.String(orElse(value(d.DisplayName), "instance"+c.nameSuffix())),
		FaultDomain: common.String(orElse(value(d.FaultDomain), faultDomains[n%len(faultDomains)])),
		Region:      common.String(c.options.RegionKey), Shape: d.Shape, ImageId: common.String(boot.image),
		LifecycleState: core.InstanceLifecycleStateProvisioning, TimeCreated: c.sdkTime(),
		Metadata: map[string]string{}, ExtendedMetadata: d.ExtendedMetadata, IpxeScript: d.IpxeScript,
		FreeformTags: map[string]string{}, DefinedTags: map[string]map[string]interface{}{},
		LaunchMode: core.InstanceLaunchModeParavirtualized, LaunchOptions: launchOptions(d),
		InstanceOptions: d.InstanceOptions, SourceDetails: d.SourceDetails,
	}
	if v.SourceDetails == nil {
		v.SourceDetails = core.InstanceSourceViaImageDetails{ImageId: common.String(boot.image)}
	}
	if d.Metadata != nil {
		v.Metadata = d.Metadata
	}
	if s := d.ShapeConfig; s != nil {
		v.ShapeConfig = &core.InstanceShapeConfig{
			Ocpus: s.Ocpus, MemoryInGBs: s.MemoryInGBs, Vcpus: s.Vcpus,
			BaselineOcpuUtilization: core.InstanceShapeConfigBaselineOcpuUtilizationEnum(s.BaselineOcpuUtilization),
		}
		if s.MemoryInGBs == nil && s.Ocpus != nil {
			v.ShapeConfig.MemoryInGBs = common.Float32(*s.Ocpus * 16)
		}
	}
	setTags(&v.FreeformTags, &v.DefinedTags, d.FreeformTags, d.DefinedTags)
	return v
}

// launchOptions are those of the request, completed.
func launchOptions(d *core.LaunchInstanceDetails) *core.LaunchOptions {
	o := &core.LaunchOptions{}
	if d.LaunchOptions != nil {
		o = cloneOf(d.LaunchOptions)
	}
	if o.BootVolumeType == "" {
		o.BootVolumeType = core.LaunchOptionsBootVolumeTypeParavirtualized
	}
	if o.NetworkType == "" {
		o.NetworkType = core.LaunchOptionsNetworkTypeParavirtualized
	}
	if o.RemoteDataVolumeType == "" {
		o.RemoteDataVolumeType = core.LaunchOptionsRemoteDataVolumeTypeParavirtualized
	}
	if o.IsPvEncryptionInTransitEnabled == nil {
		o.IsPvEncryptionInTransitEnabled = common.Bool(value(d.IsPvEncryptionInTransitEnabled))
	}
	o.IsConsistentVolumeNamingEnabled = orDefault(o.IsConsistentVolumeNamingEnabled, true)
	return o
}
