// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package ocisim

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/oracle/oci-go-sdk/v65/common"
	"github.com/oracle/oci-go-sdk/v65/core"
)

// Volume is a block volume. Count makes that many equal ones; a %d in Name becomes their number, from 1.
type Volume struct {
	ID                 string `json:"id,omitempty"`
	Compartment        string `json:"compartment,omitempty"` // default: as for a VCN
	Name               string `json:"name,omitempty"`
	Count              int    `json:"count,omitempty"`
	AvailabilityDomain string `json:"availabilityDomain,omitempty"` // default: the first
	SizeInGBs          int64  `json:"sizeInGBs,omitempty"`          // default 50
	VpusPerGB          *int64 `json:"vpusPerGB,omitempty"`          // default 10
	State              string `json:"state,omitempty"`              // default AVAILABLE

	Tags `json:",inline"`
}

// VolumeBackup of a volume.
type VolumeBackup struct {
	ID     string `json:"id,omitempty"`
	Volume string `json:"volume,omitempty"` // default: the first
	Name   string `json:"name,omitempty"`
	State  string `json:"state,omitempty"` // default AVAILABLE

	Tags `json:",inline"`
}

// VolumeAttachment ties a volume to an instance.
type VolumeAttachment struct {
	ID        string `json:"id,omitempty"`
	Volume    string `json:"volume,omitempty"`   // default: the first
	Instance  string `json:"instance,omitempty"` // default: the first
	Type      string `json:"type,omitempty"`     // default: paravirtualized
	Device    string `json:"device,omitempty"`   // "auto" is the first free one; default none
	Shareable bool   `json:"shareable,omitempty"`
	ReadOnly  bool   `json:"readOnly,omitempty"`
}

// minBootVolumeGBs is the size of the boot volumes of Oracle's images.
const minBootVolumeGBs = 47

// AddVolume adds a volume, or Count of them, and returns the OCID of the last.
func (r *Region) AddVolume(v Volume) string { return add(r, v, seeder.volumes) }

// AddVolumeBackup adds a volume backup and returns its OCID.
func (r *Region) AddVolumeBackup(b VolumeBackup) string { return add(r, b, seeder.volumeBackup) }

// AddVolumeAttachment attaches a volume and returns the OCID of the attachment.
func (r *Region) AddVolumeAttachment(a VolumeAttachment) string {
	return add(r, a, seeder.volumeAttachment)
}

func (s seeder) volumes(v Volume) (string, error) {
	if v.Count <= 1 {
		return s.volume(v)
	}
	if v.ID != "" {
		return "", fmt.Errorf("seed: %d volumes %q cannot share an identifier", v.Count, v.Name)
	}
	var id string
	for n := 1; n <= v.Count; n++ {
		one := v
		one.Name = strings.ReplaceAll(v.Name, "%d", strconv.Itoa(n))
		var err error
		if id, err = s.volume(one); err != nil {
			return "", err
		}
	}
	return id, nil
}

func (s seeder) volume(v Volume) (string, error) {
	id, err := s.newID(v.ID, volumes.ocidType)
	if err != nil {
		return "", err
	}
	compartment, err := s.compartmentOf(v.Compartment, "")
	if err != nil {
		return "", err
	}
	size := v.SizeInGBs
	if size == 0 {
		size = minVolumeGBs
	}
	p, err := newPerformance(v.VpusPerGB, nil, nil, nil)
	if err != nil {
		return "", fmt.Errorf("seed: volume %s: %w", v.Name, err)
	}
	model := &core.Volume{
		Id: common.String(id), CompartmentId: common.String(compartment),
		DisplayName:        common.String(orElse(v.Name, "volume"+s.cl.nameSuffix())),
		AvailabilityDomain: common.String(orElse(v.AvailabilityDomain, s.cl.options.AvailabilityDomains[0])),
		LifecycleState:     core.VolumeLifecycleStateEnum(orElse(v.State, string(core.VolumeLifecycleStateAvailable))),
		TimeCreated:        s.cl.sdkTime(), SizeInGBs: common.Int64(size), SizeInMBs: common.Int64(size * mbsPerGB),
		IsHydrated: common.Bool(true), IsReservationsEnabled: common.Bool(false),
		FreeformTags: v.freeform(), DefinedTags: v.defined(),
	}
	p.applyTo(model)
	volumes.insert(s.cl, model)
	return id, nil
}

func (s seeder) volumeBackup(b VolumeBackup) (string, error) {
	id, err := s.newID(b.ID, volumeBackups.ocidType)
	if err != nil {
		return "", err
	}
	v, err := resolve(s.cl, volumes, b.Volume)
	if err != nil {
		return "", err
	}
	volumeBackups.insert(s.cl, &core.VolumeBackup{
		Id: common.String(id), CompartmentId: v.CompartmentId, VolumeId: v.Id, SizeInGBs: v.SizeInGBs, SizeInMBs: v.SizeInMBs,
		DisplayName:    common.String(orElse(b.Name, "volumebackup"+s.cl.nameSuffix())),
		LifecycleState: core.VolumeBackupLifecycleStateEnum(orElse(b.State, string(core.VolumeBackupLifecycleStateAvailable))),
		TimeCreated:    s.cl.sdkTime(), TimeRequestReceived: s.cl.sdkTime(), Type: core.VolumeBackupTypeFull,
		SourceType: core.VolumeBackupSourceTypeManual, UniqueSizeInGBs: v.SizeInGBs, UniqueSizeInMbs: v.SizeInMBs,
		FreeformTags: b.freeform(), DefinedTags: b.defined(),
	})
	s.cl.copyContent(value(v.Id), id, func(error) {})
	return id, nil
}

func (s seeder) volumeAttachment(a VolumeAttachment) (string, error) {
	id, err := s.newID(a.ID, attachmentOCIDType)
	if err != nil {
		return "", err
	}
	volume, err := resolve(s.cl, volumes, a.Volume)
	if err != nil {
		return "", err
	}
	instance, err := resolve(s.cl, instances, a.Instance)
	if err != nil {
		return "", err
	}
	if value(volume.AvailabilityDomain) != value(instance.AvailabilityDomain) {
		return "", fmt.Errorf("seed: volume %s and instance %s are in different availability domains", a.Volume, a.Instance)
	}
	device, err := s.device(a.Device, instance)
	if err != nil {
		return "", err
	}
	model := &volumeAttachment{How: orElse(a.Type, attachPV), Model: core.IScsiVolumeAttachment{
		Id: common.String(id), CompartmentId: instance.CompartmentId, AvailabilityDomain: instance.AvailabilityDomain,
		InstanceId: instance.Id, VolumeId: volume.Id, DisplayName: common.String("volumeattachment" + s.cl.nameSuffix()),
		Device: device, IsReadOnly: common.Bool(a.ReadOnly), IsShareable: common.Bool(a.Shareable),
		IsMultipath: common.Bool(false), IsVolumeCreatedDuringLaunch: common.Bool(false),
		LifecycleState: core.VolumeAttachmentLifecycleStateAttached, TimeCreated: s.cl.sdkTime(),
	}}
	switch model.How {
	case attachISCSI:
		s.cl.addTarget(model, volume, false)
		model.Model.IsAgentAutoIscsiLoginEnabled = common.Bool(false)
	case attachPV, attachEmulated:
	default:
		return "", fmt.Errorf("seed: no attachment type %q", a.Type)
	}
	volumeAttachments.insert(s.cl, model)
	s.cl.seedBody(id)
	return id, nil
}

// device is the device path of a seeded attachment.
func (s seeder) device(wanted string, instance *core.Instance) (*string, error) {
	if wanted == "" {
		return nil, nil
	}
	for _, d := range s.cl.devicesOf(instance) {
		if value(d.IsAvailable) && (wanted == Auto || wanted == value(d.Name)) {
			return d.Name, nil
		}
	}
	return nil, fmt.Errorf("seed: no free device %s on instance %s", wanted, value(instance.DisplayName))
}

// bootVolume gives an instance its boot volume.
func (s seeder) bootVolume(instance *core.Instance, gigabytes int64) {
	v := bootVolumeModel(s.cl.newOCID(bootVolumes.ocidType), value(instance.CompartmentId), value(instance.AvailabilityDomain),
		value(instance.DisplayName)+" (Boot Volume)", max(gigabytes, minBootVolumeGBs))
	v.TimeCreated = s.cl.sdkTime()
	if source, ok := instance.SourceDetails.(core.InstanceSourceViaImageDetails); ok {
		v.ImageId = source.ImageId
	}
	bootVolumes.insert(s.cl, v)
	bootVolumeAttachments.insert(s.cl, &core.BootVolumeAttachment{
		Id: common.String(s.cl.newOCID(bootVolumeAttachments.ocidType)), CompartmentId: instance.CompartmentId,
		AvailabilityDomain: instance.AvailabilityDomain, BootVolumeId: v.Id, InstanceId: instance.Id,
		DisplayName:    common.String("Remote boot attachment for " + value(instance.DisplayName)),
		LifecycleState: core.BootVolumeAttachmentLifecycleStateAttached, TimeCreated: s.cl.sdkTime(), TimeUpdated: s.cl.sdkTime(),
		IsPvEncryptionInTransitEnabled: common.Bool(false), IsEncryptionInTransitEnabled: common.Bool(false),
	})
}
