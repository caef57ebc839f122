// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package ocisim

import (
	"github.com/oracle/oci-go-sdk/v65/core"
)

// setInstanceState moves an instance, whatever its state.
func (cl *cloud) setInstanceState(id string, state core.InstanceLifecycleStateEnum) {
	instances.update(cl, id, func(v *core.Instance) { v.LifecycleState = state })
}

func (cl *cloud) instanceState(id string) core.InstanceLifecycleStateEnum {
	if v := instances.find(cl, id); v != nil {
		return v.LifecycleState
	}
	return ""
}

// changeInstance moves an instance through a transient state to a lasting one. The second step happens only if
// nothing else moved the instance meanwhile.
func (cl *cloud) changeInstance(id string, through, to core.InstanceLifecycleStateEnum, duration string) {
	cl.setInstanceState(id, through)
	cl.after(cl.duration(duration), func() {
		if cl.instanceState(id) != through {
			return
		}
		cl.setInstanceState(id, to)
		if to == core.InstanceLifecycleStateRunning {
			cl.logInAll(id)
		}
	})
}

// stopInstance takes a running instance to STOPPED.
func (cl *cloud) stopInstance(id string) error {
	switch state := cl.instanceState(id); state {
	case core.InstanceLifecycleStateRunning:
		cl.changeInstance(id, core.InstanceLifecycleStateStopping, core.InstanceLifecycleStateStopped, "instance.stop")
		cl.logOutAll(id)
		return nil
	case core.InstanceLifecycleStateStopping, core.InstanceLifecycleStateStopped:
		return nil
	case "":
		return errNotFound()
	default:
		return errIncorrectState("The instance %s is %s and cannot be stopped.", id, state)
	}
}

// startInstance takes a stopped instance to RUNNING.
func (cl *cloud) startInstance(id string) error {
	switch state := cl.instanceState(id); state {
	case core.InstanceLifecycleStateStopped:
		cl.changeInstance(id, core.InstanceLifecycleStateStarting, core.InstanceLifecycleStateRunning, "instance.start")
		return nil
	case core.InstanceLifecycleStateStarting, core.InstanceLifecycleStateRunning:
		return nil
	case "":
		return errNotFound()
	default:
		return errIncorrectState("The instance %s is %s and cannot be started.", id, state)
	}
}

// terminateInstance is endInstance as a person does it who does not ask for the boot volume to stay.
func (cl *cloud) terminateInstance(id string) error { return cl.endInstance(id, false) }

// endInstance takes an instance to TERMINATED. Its VNICs and volumes are detached on the way, and its boot volume is
// deleted unless it is to be preserved; the record stays visible for Behaviour.TerminatedVisible.
func (cl *cloud) endInstance(id string, preserveBoot bool) error {
	switch state := cl.instanceState(id); state {
	case core.InstanceLifecycleStateTerminating, core.InstanceLifecycleStateTerminated:
		return nil
	case "":
		return errNotFound()
	}
	cl.setInstanceState(id, core.InstanceLifecycleStateTerminating)
	cl.setAttachmentStates(id, core.VnicAttachmentLifecycleStateDetaching)
	cl.detachAll(id)
	cl.after(cl.duration("instance.terminate"), func() {
		cl.setInstanceState(id, core.InstanceLifecycleStateTerminated)
		cl.setAttachmentStates(id, core.VnicAttachmentLifecycleStateDetached)
		cl.releaseInstanceVNICs(id)
		cl.endAll(id, preserveBoot)
		cl.after(cl.behaviour.TerminatedVisible, func() { cl.forgetInstance(id) })
	})
	return nil
}

func (cl *cloud) setAttachmentStates(instanceID string, state core.VnicAttachmentLifecycleStateEnum) {
	for v := range vnicAttachments.under(cl, instanceID) {
		vnicAttachments.update(cl, value(v.Id), func(v *core.VnicAttachment) { v.LifecycleState = state })
	}
}

// forgetInstance removes an instance as if it had never been, with its attachments and whatever VNICs are left.
func (cl *cloud) forgetInstance(id string) {
	cl.releaseServiceVNICs(id)
	for v := range vnicAttachments.under(cl, id) {
		vnicAttachments.remove(cl, value(v.Id))
	}
	for a := range cl.openAttachments(id) {
		cl.removeAttachment(a.id())
	}
	for a := range bootVolumeAttachments.under(cl, id) {
		if a.LifecycleState != core.BootVolumeAttachmentLifecycleStateDetached {
			cl.removeBootVolume(value(a.BootVolumeId))
		}
	}
	instances.remove(cl, id)
}

// releaseInstanceVNICs lets the VNICs of a terminated instance go after they have lingered, those included whose
// attachment has not come to an end.
func (cl *cloud) releaseInstanceVNICs(id string) {
	cl.releaseServiceVNICs(id)
}
