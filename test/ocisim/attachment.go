// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package ocisim

import (
	"net/http"

	"github.com/oracle/oci-go-sdk/v65/core"
)

// Types of attachments, as the API names them.
const (
	attachISCSI          = "iscsi"
	attachPV             = "paravirtualized"
	attachEmulated       = "emulated"
	attachByService      = "service_determined"
	attachmentOCIDType   = "volumeattachment"
	iscsiPort            = 3260
	iscsiLUN             = 1
	attachmentsPolicy    = "volume-attachments"
	attachmentsPath      = "/20160918/volumeAttachments"
	attachmentPath       = attachmentsPath + "/{volumeAttachmentId}"
	bootAttachmentsPath  = "/20160918/bootVolumeAttachments"
	bootAttachmentPath   = bootAttachmentsPath + "/{bootVolumeAttachmentId}"
	instanceDevicesPath  = "/20160918/instances/{instanceId}/devices"
	consistentDeviceRoot = "/dev/oracleoci/oraclevd"
)

// volumeAttachment is an attachment of any type. The iSCSI model has all the fields that any of them has.
type volumeAttachment struct {
	How   string // its type
	Model core.IScsiVolumeAttachment
}

func (a *volumeAttachment) id() string       { return value(a.Model.Id) }
func (a *volumeAttachment) volume() string   { return value(a.Model.VolumeId) }
func (a *volumeAttachment) instance() string { return value(a.Model.InstanceId) }
func (a *volumeAttachment) device() string   { return value(a.Model.Device) }

// open says whether the attachment still ties its volume and its instance together.
func (a *volumeAttachment) open() bool {
	return a.Model.LifecycleState != core.VolumeAttachmentLifecycleStateDetached
}

// sdk is the attachment in the form of the API.
func (a *volumeAttachment) sdk() core.VolumeAttachment {
	m := &a.Model
	switch a.How {
	case attachPV:
		return core.ParavirtualizedVolumeAttachment{
			AvailabilityDomain: m.AvailabilityDomain, CompartmentId: m.CompartmentId, Id: m.Id, InstanceId: m.InstanceId,
			TimeCreated: m.TimeCreated, VolumeId: m.VolumeId, Device: m.Device, DisplayName: m.DisplayName,
			IsReadOnly: m.IsReadOnly, IsShareable: m.IsShareable, IsMultipath: m.IsMultipath,
			IsPvEncryptionInTransitEnabled: m.IsPvEncryptionInTransitEnabled,
			IsEncryptionInTransitEnabled:   m.IsEncryptionInTransitEnabled,
			IsVolumeCreatedDuringLaunch:    m.IsVolumeCreatedDuringLaunch, LifecycleState: m.LifecycleState,
		}
	case attachEmulated:
		return core.EmulatedVolumeAttachment{
			AvailabilityDomain: m.AvailabilityDomain, CompartmentId: m.CompartmentId, Id: m.Id, InstanceId: m.InstanceId,
			TimeCreated: m.TimeCreated, VolumeId: m.VolumeId, Device: m.Device, DisplayName: m.DisplayName,
			IsReadOnly: m.IsReadOnly, IsShareable: m.IsShareable, IsMultipath: m.IsMultipath,
			IsVolumeCreatedDuringLaunch: m.IsVolumeCreatedDuringLaunch, LifecycleState: m.LifecycleState,
		}
	default:
		return *m
	}
}

// volumeAttachments are listed by instance and by volume.
var volumeAttachments = newKind(kindInfo{
	ocidType: attachmentOCIDType, label: "volume attachment", policy: attachmentsPolicy, eventual: true,
	keep: []string{"isShareable"},
	render: func(v any) any {
		if a, ok := v.(*volumeAttachment); ok {
			return a.sdk()
		}
		return v
	},
}, func(a *volumeAttachment) facets {
	m := &a.Model
	return facets{
		id: value(m.Id), compartment: value(m.CompartmentId), name: value(m.DisplayName),
		state: string(m.LifecycleState), domain: value(m.AvailabilityDomain),
		keys: []string{value(m.InstanceId), value(m.VolumeId)},
	}
})

// bootVolumeAttachments are listed by instance and by boot volume.
var bootVolumeAttachments = newKind(kindInfo{
	ocidType: "bootvolumeattachment", label: "boot volume attachment", policy: attachmentsPolicy, eventual: true,
}, func(v *core.BootVolumeAttachment) facets {
	return facets{
		id: value(v.Id), compartment: value(v.CompartmentId), name: value(v.DisplayName),
		state: string(v.LifecycleState), domain: value(v.AvailabilityDomain),
		keys: []string{value(v.InstanceId), value(v.BootVolumeId)},
	}
})

func attachmentOperations() []Operation {
	op := func(name, method, path, query string, verb Verb, handle func(*call) (*answer, error)) Operation {
		return Operation{
			Service: ServiceCompute, Name: name, Method: method, Path: path, Query: query, Verb: verb, handle: handle,
		}
	}
	get := op("GetVolumeAttachment", http.MethodGet, attachmentPath, "", Read, (*call).showTarget)
	update := op("UpdateVolumeAttachment", http.MethodPut, attachmentPath, "", Use, updateVolumeAttachment)
	detach := op("DetachVolume", http.MethodDelete, attachmentPath, "", Manage, detachVolume)
	for _, o := range []*Operation{&get, &update, &detach} {
		o.Target = volumeAttachments.kindInfo
	}
	update.IfMatch, detach.IfMatch = true, true
	list := op("ListVolumeAttachments", http.MethodGet, attachmentsPath,
		"compartmentId*,availabilityDomain,limit,page,instanceId,volumeId", Inspect, listVolumeAttachments)
	attach := op("AttachVolume", http.MethodPost, attachmentsPath, "", Manage, attachVolume)
	attach.RetryToken = true
	attach.Partial = "no NVMe attachments"
	getBoot := op("GetBootVolumeAttachment", http.MethodGet, bootAttachmentPath, "", Read, (*call).showTarget)
	getBoot.Target = bootVolumeAttachments.kindInfo
	listBoot := op("ListBootVolumeAttachments", http.MethodGet, bootAttachmentsPath,
		"availabilityDomain*,compartmentId*,limit,page,instanceId,bootVolumeId", Inspect, listBootVolumeAttachments)
	for _, o := range []*Operation{&list, &attach, &listBoot} {
		o.Resource = attachmentsPolicy
	}
	devices := op("ListInstanceDevices", http.MethodGet, instanceDevicesPath,
		"isAvailable,name,limit,page,sortBy,sortOrder", Read, listInstanceDevices)
	devices.Target = instances.kindInfo
	return []Operation{get, list, attach, detach, update, getBoot, listBoot, devices}
}

// listVolumeAttachments starts from the narrowest key that the query gives; the compartment stays a condition.
func listVolumeAttachments(c *call) (*answer, error) {
	instance, volume := c.query.Get("instanceId"), c.query.Get("volumeId")
	l := listing{kind: volumeAttachments.kindInfo, key: narrowest(volume, instance, c.query.Get("compartmentId"))}
	l.match = func(res *resource) bool {
		a := volumeAttachments.of(res)
		return (instance == "" || a.instance() == instance) && (volume == "" || a.volume() == volume)
	}
	return c.list(l)
}

func listBootVolumeAttachments(c *call) (*answer, error) {
	instance, volume := c.query.Get("instanceId"), c.query.Get("bootVolumeId")
	l := listing{kind: bootVolumeAttachments.kindInfo, key: narrowest(volume, instance, c.query.Get("compartmentId"))}
	l.match = func(res *resource) bool {
		a := bootVolumeAttachments.of(res)
		return (instance == "" || value(a.InstanceId) == instance) && (volume == "" || value(a.BootVolumeId) == volume)
	}
	return c.list(l)
}

// narrowest returns the first key that is not empty.
func narrowest(keys ...string) string {
	for _, key := range keys {
		if key != "" {
			return key
		}
	}
	return ""
}

// openAttachments yields the attachments under a volume or an instance that are not over.
func (cl *cloud) openAttachments(key string) func(func(*volumeAttachment) bool) {
	return func(yield func(*volumeAttachment) bool) {
		for a := range volumeAttachments.under(cl, key) {
			if a.open() && !yield(a) {
				return
			}
		}
	}
}

// attachedTo returns an attachment of a volume that is not over, or nil.
func (cl *cloud) attachedTo(volumeID string) *volumeAttachment {
	for a := range cl.openAttachments(volumeID) {
		return a
	}
	return nil
}
