// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package ocisim

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/oracle/oci-go-sdk/v65/common"
	"github.com/oracle/oci-go-sdk/v65/core"
)

// attachRequest is the body of AttachVolume. The types of attachments differ only in optional fields, and the iSCSI
// details have the most.
type attachRequest struct {
	core.AttachIScsiVolumeDetails

	how          string
	encryptionPV *bool
}

func decodeAttach(c *call) (*attachRequest, error) {
	var kind struct {
		Type *string `json:"type"`
	}
	if err := json.Unmarshal(c.body, &kind); err != nil {
		return nil, &APIError{Status: http.StatusBadRequest, Code: "CannotParseRequest", Message: messageParse}
	}
	r := &attachRequest{how: value(kind.Type)}
	switch r.how {
	case "":
		return nil, errMissing("type")
	case attachISCSI:
		d, err := decode[core.AttachIScsiVolumeDetails](c)
		if err != nil {
			return nil, err
		}
		r.AttachIScsiVolumeDetails = *d
	case attachPV:
		d, err := decode[core.AttachParavirtualizedVolumeDetails](c)
		if err != nil {
			return nil, err
		}
		r.take(d.InstanceId, d.VolumeId, d.Device, d.DisplayName, d.IsReadOnly, d.IsShareable)
		r.encryptionPV = d.IsPvEncryptionInTransitEnabled
	case attachEmulated:
		d, err := decode[core.AttachEmulatedVolumeDetails](c)
		if err != nil {
			return nil, err
		}
		r.take(d.InstanceId, d.VolumeId, d.Device, d.DisplayName, d.IsReadOnly, d.IsShareable)
	case attachByService:
		d, err := decode[core.AttachServiceDeterminedVolumeDetails](c)
		if err != nil {
			return nil, err
		}
		r.take(d.InstanceId, d.VolumeId, d.Device, d.DisplayName, d.IsReadOnly, d.IsShareable)
	default:
		return nil, errInvalid("The attachment type %s is not supported.", r.how)
	}
	return r, nil
}

func (r *attachRequest) take(instance, volume, device, name *string, readOnly, shareable *bool) {
	r.InstanceId, r.VolumeId, r.Device, r.DisplayName = instance, volume, device, name
	r.IsReadOnly, r.IsShareable = readOnly, shareable
}

func attachVolume(c *call) (*answer, error) {
	r, err := decodeAttach(c)
	if err != nil {
		return nil, err
	}
	instance, err := instances.related(c, value(r.InstanceId))
	if err != nil {
		return nil, err
	}
	if c.denied(instances.policy, Use, value(instance.CompartmentId)) {
		return nil, errRelated(value(r.InstanceId))
	}
	volume, err := c.attachable(value(r.VolumeId))
	if err != nil {
		return nil, err
	}
	// The record lives in the compartment of the instance.
	if err := c.createIn(value(instance.CompartmentId)); err != nil {
		return nil, err
	}
	if r.DisplayName != nil {
		if err := checkSize("displayName", *r.DisplayName, 1, maxBlockName); err != nil {
			return nil, err
		}
	}
	if r.how == attachByService {
		r.how = determined(instance)
	}
	if err := c.checkAttach(r, instance, volume); err != nil {
		return nil, err
	}
	a := c.newAttachment(r, instance, volume)
	volumeAttachments.insert(c.cloud, a)
	work := c.startAttach(a)
	answer := c.created(volumeAttachments.lookup(c.cloud, a.id()))
	answer.workRequest = work.id
	return answer, nil
}

// attachable finds the volume of an attach. The service looks for an available one: any other is as good as none.
func (c *call) attachable(id string) (*core.Volume, error) {
	v := volumes.find(c.cloud, id)
	if v == nil || c.denied(volumes.policy, Use, value(v.CompartmentId)) {
		return nil, errNotFound()
	}
	if v.LifecycleState != core.VolumeLifecycleStateAvailable {
		if err := c.rule(AttachOfUnavailable); err != nil {
			return nil, err
		}
	}
	return v, nil
}

// determined is the type that the service chooses: the one that the instance was launched with.
func determined(instance *core.Instance) string {
	if instance.LaunchOptions == nil {
		return attachISCSI
	}
	switch instance.LaunchOptions.RemoteDataVolumeType {
	case core.LaunchOptionsRemoteDataVolumeTypeParavirtualized:
		return attachPV
	case core.LaunchOptionsRemoteDataVolumeTypeIscsi, "":
		return attachISCSI
	default:
		return attachEmulated
	}
}

// checkAttach refuses what the state of the instance, of the volume and of their other attachments does not allow.
func (c *call) checkAttach(r *attachRequest, instance *core.Instance, volume *core.Volume) error {
	instanceID := value(instance.Id)
	switch instance.LifecycleState {
	case core.InstanceLifecycleStateRunning:
	case core.InstanceLifecycleStateStopped:
		if r.how == attachISCSI {
			return errIncorrectState("Instance %s is STOPPED.", instanceID)
		}
		if err := c.rule(AttachToStopped, instanceID); err != nil {
			return err
		}
	default:
		return errIncorrectState("Instance %s is %s.", instanceID, instance.LifecycleState)
	}
	if from, to := value(volume.AvailabilityDomain), value(instance.AvailabilityDomain); from != to {
		if err := c.rule(AttachAcrossDomains, value(volume.Id), from, instanceID, to); err != nil {
			return err
		}
	}
	if err := c.checkEncryption(r, instance); err != nil {
		return err
	}
	if err := c.checkSharing(r, value(volume.Id)); err != nil {
		return err
	}
	if err := c.checkRoom(r, instance); err != nil {
		return err
	}
	return c.checkDevice(value(r.Device), instance)
}

// checkEncryption refuses encryption of iSCSI traffic but on bare metal, the only shapes that know it.
func (c *call) checkEncryption(r *attachRequest, instance *core.Instance) error {
	if r.EncryptionInTransitType != core.EncryptionInTransitTypeBmEncryptionInTransit || strings.HasPrefix(value(instance.Shape), "BM.") {
		return nil
	}
	return c.rule(AttachEncryptionShape, value(instance.Shape))
}

// checkSharing compares a new attachment with those that the volume has.
func (c *call) checkSharing(r *attachRequest, volumeID string) error {
	shareable, readOnly := value(r.IsShareable), value(r.IsReadOnly)
	count := 0
	for other := range c.openAttachments(volumeID) {
		count++
		theirs := value(other.Model.IsShareable)
		switch {
		case other.instance() == value(r.InstanceId), !theirs && !shareable:
			return errConflict("Volume %s currently attached.", volumeID)
		case theirs != shareable:
			return errConflict("Volume %s cannot be attached, because one of the volume attachments is not configured as shareable. "+
				"To attach a volume to more than one instance, all volume attachments must be configured as shareable.", volumeID)
		case value(other.Model.IsReadOnly) != readOnly:
			if err := c.rule(AttachAccessMix, volumeID); err != nil {
				return err
			}
		}
	}
	if count >= c.behaviour.MaxInstancesPerVolume {
		return c.rule(AttachTooManyInstances, volumeID, count)
	}
	return nil
}

// checkRoom refuses more volumes than the instance can have.
func (c *call) checkRoom(r *attachRequest, instance *core.Instance) error {
	all, paravirtualized := 0, 0
	for a := range c.openAttachments(value(instance.Id)) {
		all++
		if a.How == attachPV {
			paravirtualized++
		}
	}
	shape := value(instance.Shape)
	if most, bounded := limitOf(c.behaviour.MaxPVVolumes, shape); r.how == attachPV && bounded && paravirtualized >= most {
		return tooManyVolumes(r, most, "attached PV volumes", shape)
	}
	if most, bounded := limitOf(c.behaviour.MaxVolumesPerInstance, shape); bounded && all >= most {
		return tooManyVolumes(r, most, "attached volumes", shape)
	}
	return nil
}

func limitOf(limits map[string]int, shape string) (int, bool) {
	most, bounded := limits[shape]
	if !bounded {
		most, bounded = limits[""]
	}
	return most, bounded
}

func tooManyVolumes(r *attachRequest, most int, what, shape string) error {
	return errLimit("Cannot attach volume %s to instance %s because the instance already has the maximum number %d of %s for the shape %s.",
		value(r.VolumeId), value(r.InstanceId), most, what, shape)
}

// checkDevice refuses a device path that there is not, or that is taken.
func (c *call) checkDevice(path string, instance *core.Instance) error {
	if path == "" {
		return nil
	}
	list := c.devicesOf(instance)
	i := slices.IndexFunc(list, func(d core.Device) bool { return value(d.Name) == path })
	switch {
	case i < 0:
		return errInvalid("The device %s is not one of instance %s.", path, value(instance.Id))
	case !value(list[i].IsAvailable):
		return c.rule(AttachDeviceTaken, path, value(instance.Id))
	}
	return nil
}

// newAttachment is the record of an accepted attach.
func (c *call) newAttachment(r *attachRequest, instance *core.Instance, volume *core.Volume) *volumeAttachment {
	a := &volumeAttachment{How: r.how, Model: core.IScsiVolumeAttachment{
		Id: common.String(c.newOCID(attachmentOCIDType)), CompartmentId: instance.CompartmentId,
		AvailabilityDomain: instance.AvailabilityDomain, InstanceId: instance.Id, VolumeId: volume.Id,
		DisplayName: common.String(orElse(value(r.DisplayName), "volumeattachment"+c.nameSuffix())),
		Device:      r.Device, IsReadOnly: common.Bool(value(r.IsReadOnly)), IsShareable: common.Bool(value(r.IsShareable)),
		IsMultipath: common.Bool(false), IsVolumeCreatedDuringLaunch: common.Bool(false),
		LifecycleState: core.VolumeAttachmentLifecycleStateAttaching, TimeCreated: c.sdkTime(),
	}}
	switch r.how {
	case attachISCSI:
		c.addTarget(a, volume, value(r.UseChap))
		a.Model.IsAgentAutoIscsiLoginEnabled = common.Bool(value(r.IsAgentAutoIscsiLoginEnabled))
		a.Model.EncryptionInTransitType = core.EncryptionInTransitTypeEnum(
			orElse(string(r.EncryptionInTransitType), string(core.EncryptionInTransitTypeNone)))
		a.Model.IsEncryptionInTransitEnabled = common.Bool(a.Model.EncryptionInTransitType != core.EncryptionInTransitTypeNone)
	case attachPV:
		a.Model.IsPvEncryptionInTransitEnabled = common.Bool(value(r.encryptionPV))
		a.Model.IsEncryptionInTransitEnabled = common.Bool(value(r.encryptionPV))
	}
	return a
}

// addTarget gives an iSCSI attachment its target: an address of its own among those of the instance, and further
// paths for ultra high performance.
func (cl *cloud) addTarget(a *volumeAttachment, volume *core.Volume, chap bool) {
	m := &a.Model
	paths := 1
	if value(volume.VpusPerGB) >= ultraHighVPUs && cl.behaviour.MultipathDevices > 0 {
		paths += cl.behaviour.MultipathDevices
		m.IsMultipath = common.Bool(true)
	}
	portals := cl.freePortals(a.instance(), paths)
	m.Iqn = common.String("iqn.2015-12.com.oracleiaas:" + cl.uuid())
	m.Ipv4, m.Port = common.String(portals[0]), common.Int(iscsiPort)
	m.IscsiLoginState = core.VolumeAttachmentIscsiLoginStateUnknown
	for _, portal := range portals[1:] {
		m.MultipathDevices = append(m.MultipathDevices, core.MultipathDevice{
			Ipv4: common.String(portal), Iqn: m.Iqn, Port: common.Int(iscsiPort),
		})
	}
	if chap {
		m.ChapUsername, m.ChapSecret = volume.Id, common.String(cl.hex(32, lowerHex))
	}
}

// freePortals returns addresses that no other attachment of the instance has; 169.254.2.x, as OCI's are. Where the
// body has portals of its own, all targets are at those.
func (cl *cloud) freePortals(instanceID string, n int) []string {
	if own, ok := cl.options.Attachments.(PortalLister); ok {
		if portals := own.Portals(); len(portals) > 0 {
			return portals[:min(n, len(portals))]
		}
	}
	used := map[string]bool{}
	for a := range cl.openAttachments(instanceID) {
		used[value(a.Model.Ipv4)] = true
		for _, d := range a.Model.MultipathDevices {
			used[value(d.Ipv4)] = true
		}
	}
	portals := make([]string, 0, n)
	for i := 0; len(portals) < n; i++ {
		// 169.254.2.2 to .254, then 169.254.3.2 and so on.
		if address := fmt.Sprintf("169.254.%d.%d", 2+i/253, 2+i%253); !used[address] {
			portals = append(portals, address)
		}
	}
	return portals
}

// uuid is the unique part of an IQN.
func (cl *cloud) uuid() string {
	h := cl.hex(32, lowerHex)
	return strings.Join([]string{h[:8], h[8:12], h[12:16], h[16:20], h[20:]}, "-")
}

// startAttach accepts an attachment: ATTACHING until its body is there. One that fails ends DETACHED.
func (c *call) startAttach(a *volumeAttachment) *workRequest {
	cl, id, volume := c.cloud, a.id(), a.volume()
	cl.tuneUp(volume)
	return c.submit(task{
		ocidType: coreWorkOCIDType, operation: "AttachVolume", compartment: value(a.Model.CompartmentId),
		target: id, entity: attachmentOCIDType, duration: "volumeattachment.attach",
		related: []workRelation{{"instance", a.instance()}, {"volume", volume}},
		run: func(done func([]workProblem)) {
			if now := volumeAttachments.find(cl, id); now == nil || now.Model.LifecycleState != core.VolumeAttachmentLifecycleStateAttaching {
				done(badInput("The attachment " + id + " is gone."))
				return
			}
			cl.giveBody(id, func(err error) {
				if err != nil {
					done(internalError(err.Error()))
					return
				}
				if cl.setAttachmentState(id, core.VolumeAttachmentLifecycleStateAttaching, core.VolumeAttachmentLifecycleStateAttached) {
					cl.logIn(id)
				}
				done(nil)
			})
		},
		failed: func([]workProblem) { cl.endAttachment(id) },
	})
}

func internalError(message string) []workProblem {
	return []workProblem{{code: "INTERNAL_ERROR", message: message}}
}
