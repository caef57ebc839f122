// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package ocisim

import (
	"net/http"
	"strconv"

	"github.com/oracle/oci-go-sdk/v65/common"
	"github.com/oracle/oci-go-sdk/v65/core"
)

// devicePaths are the consistent device paths of an instance: 32, from oraclevdb to oraclevdag.
func devicePaths() []string {
	paths := make([]string, 0, 32)
	for _, prefix := range []string{"", "a"} {
		for letter := 'a'; letter <= 'z' && len(paths) < cap(paths); letter++ {
			if prefix == "" && letter == 'a' {
				continue // that of the boot volume
			}
			paths = append(paths, consistentDeviceRoot+prefix+string(letter))
		}
	}
	return paths
}

// devices are not stored: they follow from the attachments of an instance.
var devices = newKind(kindInfo{label: "device", policy: "instances"}, func(d *core.Device) facets {
	return facets{id: value(d.Name), name: value(d.Name)}
})

func listInstanceDevices(c *call) (*answer, error) {
	name, wanted := c.query.Get("name"), c.query.Get("isAvailable")
	available, err := strconv.ParseBool(wanted)
	if wanted != "" && err != nil {
		return nil, errInvalid("isAvailable must be true or false")
	}
	if terminal(c.target.state) {
		return nil, errNotFound()
	}
	var list []*resource
	for i, d := range c.devicesOf(instances.of(c.target)) {
		if (name == "" || value(d.Name) == name) && (wanted == "" || value(d.IsAvailable) == available) {
			list = append(list, &resource{kind: devices.kindInfo, value: &d, facets: devices.describe(&d), seq: uint64(i) + 1})
		}
	}
	return c.page(list, listing{kind: devices.kindInfo})
}

// devicesOf lists the device paths of an instance and whether they are free. An instance without consistent naming
// has none.
func (cl *cloud) devicesOf(instance *core.Instance) []core.Device {
	if options := instance.LaunchOptions; options != nil && !value(options.IsConsistentVolumeNamingEnabled) {
		return nil
	}
	used := map[string]bool{}
	for a := range cl.openAttachments(value(instance.Id)) {
		used[a.device()] = true
	}
	paths := devicePaths()
	list := make([]core.Device, 0, len(paths))
	for _, path := range paths {
		list = append(list, core.Device{Name: common.String(path), IsAvailable: common.Bool(!used[path])})
	}
	return list
}

// updateVolumeAttachment is what the agent of an instance calls: it reports the state of its iSCSI sessions.
func updateVolumeAttachment(c *call) (*answer, error) {
	d, err := decode[core.UpdateVolumeAttachmentDetails](c)
	if err != nil {
		return nil, err
	}
	a := volumeAttachments.of(c.target)
	if a.How != attachISCSI && d.IscsiLoginState != "" {
		return nil, errInvalid("The attachment %s is %s, not iscsi.", a.id(), a.How)
	}
	if !a.open() {
		return nil, errIncorrectState("The attachment %s is %s.", a.id(), a.Model.LifecycleState)
	}
	if d.IscsiLoginState != "" {
		c.setLoginState(a.id(), core.VolumeAttachmentIscsiLoginStateEnum(d.IscsiLoginState))
	}
	return c.show(c.target), nil
}

func (cl *cloud) setLoginState(id string, state core.VolumeAttachmentIscsiLoginStateEnum) {
	volumeAttachments.update(cl, id, func(a *volumeAttachment) { a.Model.IscsiLoginState = state })
}

// setAttachmentState moves an attachment from one state to another, if it is still in the first.
func (cl *cloud) setAttachmentState(id string, from, to core.VolumeAttachmentLifecycleStateEnum) bool {
	a := volumeAttachments.find(cl, id)
	if a == nil || a.Model.LifecycleState != from {
		return false
	}
	return volumeAttachments.update(cl, id, func(a *volumeAttachment) { a.Model.LifecycleState = to })
}

func detachVolume(c *call) (*answer, error) {
	a := volumeAttachments.of(c.target)
	if !c.mayWriteEnds(a) {
		return nil, errNotFound()
	}
	switch a.Model.LifecycleState {
	case core.VolumeAttachmentLifecycleStateDetached:
		if err := c.rule(DetachOfDetached); err != nil {
			return nil, err
		}
		return none(http.StatusNoContent), nil
	case core.VolumeAttachmentLifecycleStateDetaching, core.VolumeAttachmentLifecycleStateAttaching:
		if err := c.rule(DetachInTransit, a.id(), a.Model.LifecycleState); err != nil {
			return nil, err
		}
		if a.Model.LifecycleState == core.VolumeAttachmentLifecycleStateDetaching {
			return none(http.StatusNoContent), nil
		}
	case core.VolumeAttachmentLifecycleStateAttached:
	}
	return accepted(http.StatusNoContent, c.startDetach(a)), nil
}

// mayWriteEnds says whether the caller may use the volume and the instance of an attachment, which a detach needs
// besides the right to the attachment.
func (c *call) mayWriteEnds(a *volumeAttachment) bool {
	if v := volumes.find(c.cloud, a.volume()); v != nil && c.denied(volumes.policy, Use, value(v.CompartmentId)) {
		return false
	}
	i := instances.find(c.cloud, a.instance())
	return i == nil || !c.denied(instances.policy, Use, value(i.CompartmentId))
}

// startDetach accepts a detachment. When it fails, the volume is attached as before.
func (c *call) startDetach(a *volumeAttachment) *workRequest {
	cl, id := c.cloud, a.id()
	before := a.Model.LifecycleState
	cl.setAttachmentState(id, before, core.VolumeAttachmentLifecycleStateDetaching)
	return c.submit(task{
		ocidType: coreWorkOCIDType, operation: "DetachVolume", compartment: value(a.Model.CompartmentId),
		target: id, entity: attachmentOCIDType, duration: "volumeattachment.detach",
		related: []workRelation{{"instance", a.instance()}, {"volume", a.volume()}},
		run: func(done func([]workProblem)) {
			cl.takeBody(id, func(err error) {
				if err != nil {
					done(internalError(err.Error()))
					return
				}
				cl.endAttachment(id)
				done(nil)
			})
		},
		failed: func([]workProblem) { cl.setAttachmentState(id, core.VolumeAttachmentLifecycleStateDetaching, before) },
	})
}

// endAttachment makes an attachment DETACHED. Its record stays listed for a while.
func (cl *cloud) endAttachment(id string) {
	a := volumeAttachments.find(cl, id)
	if a == nil || !a.open() {
		return
	}
	volumeAttachments.update(cl, id, func(a *volumeAttachment) {
		a.Model.LifecycleState = core.VolumeAttachmentLifecycleStateDetached
		if a.How == attachISCSI {
			a.Model.IscsiLoginState = core.VolumeAttachmentIscsiLoginStateUnknown
		}
	})
	cl.tuneLater(a.volume())
	cl.after(cl.behaviour.DetachedVisible, func() { volumeAttachments.remove(cl, id) })
}

// detachAll lets the attachments of an instance that terminates pass to DETACHING; endAll ends them with it.
func (cl *cloud) detachAll(instanceID string) {
	for a := range cl.openAttachments(instanceID) {
		volumeAttachments.update(cl, a.id(), func(a *volumeAttachment) {
			a.Model.LifecycleState = core.VolumeAttachmentLifecycleStateDetaching
		})
	}
	cl.setBootAttachmentStates(instanceID, core.BootVolumeAttachmentLifecycleStateDetaching)
}

func (cl *cloud) endAll(instanceID string, preserveBoot bool) {
	for a := range cl.openAttachments(instanceID) {
		id := a.id()
		cl.takeBody(id, func(error) { cl.endAttachment(id) })
	}
	cl.setBootAttachmentStates(instanceID, core.BootVolumeAttachmentLifecycleStateDetached)
	for a := range bootVolumeAttachments.under(cl, instanceID) {
		id, bootVolume := value(a.Id), value(a.BootVolumeId)
		if !preserveBoot {
			cl.terminateBootVolume(bootVolume)
		}
		cl.after(cl.behaviour.DetachedVisible, func() { bootVolumeAttachments.remove(cl, id) })
	}
}

func (cl *cloud) setBootAttachmentStates(instanceID string, state core.BootVolumeAttachmentLifecycleStateEnum) {
	for a := range bootVolumeAttachments.under(cl, instanceID) {
		bootVolumeAttachments.update(cl, value(a.Id), func(a *core.BootVolumeAttachment) {
			a.LifecycleState, a.TimeUpdated = state, cl.sdkTime()
		})
	}
}

// logOutAll ends the iSCSI sessions of an instance that stops.
func (cl *cloud) logOutAll(instanceID string) {
	for a := range cl.openAttachments(instanceID) {
		if a.How == attachISCSI {
			cl.setLoginState(a.id(), core.VolumeAttachmentIscsiLoginStateUnknown)
		}
	}
}

// logInAll lets the agent of an instance that starts log in again.
func (cl *cloud) logInAll(instanceID string) {
	for a := range cl.openAttachments(instanceID) {
		cl.logIn(a.id())
	}
}

// logIn lets the agent log in to an attachment that asks for it.
func (cl *cloud) logIn(id string) {
	a := volumeAttachments.find(cl, id)
	if a == nil || a.How != attachISCSI || !cl.behaviour.AgentLogsIn ||
		(!value(a.Model.IsAgentAutoIscsiLoginEnabled) && !value(a.Model.IsMultipath)) {
		return
	}
	cl.setLoginState(id, core.VolumeAttachmentIscsiLoginStateLoggingIn)
	cl.after(cl.duration("volumeattachment.login"), func() {
		a := volumeAttachments.find(cl, id)
		if a != nil && a.open() && a.Model.IscsiLoginState == core.VolumeAttachmentIscsiLoginStateLoggingIn {
			cl.setLoginState(id, core.VolumeAttachmentIscsiLoginStateLoginSucceeded)
		}
	})
}

// removeAttachment takes an attachment away as if it had never been.
func (cl *cloud) removeAttachment(id string) {
	cl.takeBody(id, func(error) {})
	volumeAttachments.remove(cl, id)
}
