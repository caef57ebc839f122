// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package ocisim

import (
	"encoding/json"
	"net/http"
	"reflect"
	"slices"
	"strings"

	"github.com/oracle/oci-go-sdk/v65/common"
	"github.com/oracle/oci-go-sdk/v65/core"
)

// The situations of UpdateInstance.
const (
	InstanceNotChangeable  Situation = "change of an instance that is neither running nor stopped"
	InstanceUpdateRunning  Situation = "change of an instance while another change runs"
	InstanceUpdateDowntime Situation = "change that needs a reboot, with AVOID_DOWNTIME"
	InstanceShapeVolumes   Situation = "change to a shape that cannot have all the attached volumes"
	InstanceShapeFixed     Situation = "change of the shape configuration of a fixed shape"
	InstanceLoginMetadata  Situation = "change of user_data or ssh_authorized_keys"
)

func instanceRulings() map[Situation]Ruling {
	return map[Situation]Ruling{
		InstanceNotChangeable: {
			Status: http.StatusConflict, Code: "IncorrectState", Message: "Instance %s is %s and cannot be changed.",
			Reason: "the state passes by itself, which is what IncorrectState is for",
		},
		InstanceUpdateRunning: {
			Status: http.StatusConflict, Code: "IncorrectState", Message: "Instance %s has a change in progress.",
			Reason: "as for an instance in a transient state",
		},
		InstanceUpdateDowntime: {
			Status: http.StatusConflict, Code: "Conflict", Message: "Instance %s needs a reboot to be changed.",
			Reason: "documented as an error, code not",
		},
		InstanceShapeVolumes: {
			Status: http.StatusBadRequest, Code: "LimitExceeded", Message: "Instance %s has %d attached volumes, more than shape %s allows.",
			Reason: "the code is that of too many volumes in AttachVolume",
		},
		InstanceShapeFixed: {
			Status: http.StatusBadRequest, Code: "InvalidParameter", Message: "Shape %s has no shapeConfig.",
			Reason: "validation of a parameter",
		},
		InstanceLoginMetadata: {
			Status: http.StatusBadRequest, Code: "InvalidParameter", Message: "The metadata field %s cannot be changed.",
			Reason: "documented as rejected, code not",
		},
	}
}

// maxMetadataBytes bounds metadata and extendedMetadata together, by the documentation.
const maxMetadataBytes = 32_000

func updateInstanceOperation() Operation {
	return Operation{
		Service: ServiceCompute, Name: "UpdateInstance", Method: http.MethodPut, Path: "/20160918/instances/{instanceId}",
		Verb: Use, Target: instances.kindInfo, RetryToken: true, IfMatch: true, handle: updateInstance,
		Partial: "names, tags, metadata, shape, shapeConfig, faultDomain and capacityReservationId; the rest is ignored",
	}
}

// updateInstance changes names, tags and metadata at once. What needs a reboot comes with the work request.
func updateInstance(c *call) (*answer, error) {
	d, err := decode[core.UpdateInstanceDetails](c)
	if err != nil {
		return nil, err
	}
	id, v := c.target.id, instances.of(c.target)
	if err := c.instanceChangeable(id, v); err != nil {
		return nil, err
	}
	if err := c.checkInstanceUpdate(d, v); err != nil {
		return nil, err
	}
	reboot := needsReboot(d, v)
	if reboot && v.LifecycleState == core.InstanceLifecycleStateRunning &&
		d.UpdateOperationConstraint == core.UpdateInstanceDetailsUpdateOperationConstraintAvoidDowntime {
		if err := c.rule(InstanceUpdateDowntime, id); err != nil {
			return nil, err
		}
	}
	instances.update(c.cloud, id, func(v *core.Instance) { applyInstanceNames(v, d) })
	work := c.startInstanceUpdate(id, v, d, reboot)
	a := c.show(c.target)
	a.workRequest = work.id
	return a, nil
}

func (c *call) instanceChangeable(id string, v *core.Instance) error {
	switch v.LifecycleState {
	case core.InstanceLifecycleStateRunning, core.InstanceLifecycleStateStopped:
	case core.InstanceLifecycleStateTerminated:
		return errNotFound()
	default:
		if err := c.rule(InstanceNotChangeable, id, v.LifecycleState); err != nil {
			return err
		}
	}
	if c.busy(id) {
		return c.rule(InstanceUpdateRunning, id)
	}
	return nil
}

// checkInstanceUpdate validates an update against the instance that it is for.
func (c *call) checkInstanceUpdate(d *core.UpdateInstanceDetails, v *core.Instance) error {
	if d.DisplayName != nil {
		if err := checkSize("displayName", *d.DisplayName, 1, maxBlockName); err != nil {
			return err
		}
	}
	if d.FaultDomain != nil && !slices.Contains(faultDomains[:], *d.FaultDomain) {
		return errInvalid("Fault domain %s does not exist.", *d.FaultDomain)
	}
	if err := c.checkMetadata(d, v); err != nil {
		return err
	}
	shape := orElse(value(d.Shape), value(v.Shape))
	if d.ShapeConfig != nil {
		if !flexible(shape) {
			if err := c.rule(InstanceShapeFixed, shape); err != nil {
				return err
			}
		}
		if o, m := d.ShapeConfig.Ocpus, d.ShapeConfig.MemoryInGBs; (o != nil && *o <= 0) || (m != nil && *m <= 0) {
			return errInvalid("ocpus and memoryInGBs must be positive.")
		}
	}
	if shape == value(v.Shape) {
		return nil
	}
	return c.checkShapeVolumes(value(v.Id), shape)
}

func (c *call) checkShapeVolumes(id, shape string) error {
	all, paravirtualized := 0, 0
	for a := range c.openAttachments(id) {
		all++
		if a.How == attachPV {
			paravirtualized++
		}
	}
	if most, bounded := limitOf(c.behaviour.MaxVolumesPerInstance, shape); bounded && all > most {
		return c.rule(InstanceShapeVolumes, id, all, shape)
	}
	if most, bounded := limitOf(c.behaviour.MaxPVVolumes, shape); bounded && paravirtualized > most {
		return c.rule(InstanceShapeVolumes, id, paravirtualized, shape)
	}
	return nil
}

// flexible says whether a shape has a choice of processors and memory; such names end in .Flex.
func flexible(shape string) bool { return strings.HasSuffix(shape, ".Flex") }

// checkMetadata bounds the metadata and keeps what cannot be changed after launch.
func (c *call) checkMetadata(d *core.UpdateInstanceDetails, v *core.Instance) error {
	if d.Metadata == nil && d.ExtendedMetadata == nil {
		return nil
	}
	plain, extended := d.Metadata, d.ExtendedMetadata
	if plain == nil {
		plain = v.Metadata
	}
	if extended == nil {
		extended = v.ExtendedMetadata
	}
	for _, name := range [...]string{"user_data", "ssh_authorized_keys"} {
		if plain[name] != v.Metadata[name] || !reflect.DeepEqual(extended[name], v.ExtendedMetadata[name]) {
			if err := c.rule(InstanceLoginMetadata, name); err != nil {
				return err
			}
		}
	}
	raw, err := json.Marshal([]any{plain, extended})
	if err != nil || len(raw) > maxMetadataBytes {
		return errInvalid("metadata and extendedMetadata are larger than %d bytes.", maxMetadataBytes)
	}
	return nil
}

// needsReboot says whether an update changes what a running instance cannot change.
func needsReboot(d *core.UpdateInstanceDetails, v *core.Instance) bool {
	next := cloneOf(v)
	applyInstanceHardware(next, d)
	return !reflect.DeepEqual(next, v)
}

// applyInstanceNames applies what is only written down.
func applyInstanceNames(v *core.Instance, d *core.UpdateInstanceDetails) {
	if d.DisplayName != nil {
		v.DisplayName = d.DisplayName
	}
	if d.Metadata != nil {
		v.Metadata = d.Metadata
	}
	if d.ExtendedMetadata != nil {
		v.ExtendedMetadata = d.ExtendedMetadata
	}
	if d.CapacityReservationId != nil {
		v.CapacityReservationId = d.CapacityReservationId
		if *d.CapacityReservationId == "" {
			v.CapacityReservationId = nil // the documented way out of a reservation
		}
	}
	setTags(&v.FreeformTags, &v.DefinedTags, d.FreeformTags, d.DefinedTags)
}

// applyInstanceHardware applies what takes a reboot.
func applyInstanceHardware(v *core.Instance, d *core.UpdateInstanceDetails) {
	if d.FaultDomain != nil {
		v.FaultDomain = d.FaultDomain
	}
	if d.Shape != nil {
		v.Shape = d.Shape
		if !flexible(*d.Shape) {
			v.ShapeConfig = nil
		}
	}
	if c := d.ShapeConfig; c != nil {
		config := core.InstanceShapeConfig{}
		if v.ShapeConfig != nil {
			config = *v.ShapeConfig
		}
		if c.Ocpus != nil {
			config.Ocpus, config.Vcpus = c.Ocpus, common.Int(int(*c.Ocpus*2))
		}
		if c.MemoryInGBs != nil {
			config.MemoryInGBs = c.MemoryInGBs
		}
		if c.BaselineOcpuUtilization != "" {
			config.BaselineOcpuUtilization = core.InstanceShapeConfigBaselineOcpuUtilizationEnum(c.BaselineOcpuUtilization)
		}
		v.ShapeConfig = &config
	}
}

// startInstanceUpdate accepts an update. A running instance that needs a reboot stops and starts on the way.
func (c *call) startInstanceUpdate(id string, v *core.Instance, d *core.UpdateInstanceDetails, reboot bool) *workRequest {
	cl, restart := c.cloud, reboot && v.LifecycleState == core.InstanceLifecycleStateRunning
	return c.submit(task{
		ocidType: coreWorkOCIDType, operation: "UpdateInstance", compartment: value(v.CompartmentId),
		target: id, entity: "instance", duration: "instance.update",
		run: func(done func([]workProblem)) {
			if cl.instanceState(id) != v.LifecycleState {
				done(badInput("The state of the instance has changed."))
				return
			}
			apply := func(state core.InstanceLifecycleStateEnum) {
				instances.update(cl, id, func(v *core.Instance) {
					applyInstanceHardware(v, d)
					v.LifecycleState = state
				})
			}
			if !restart {
				apply(v.LifecycleState)
				done(nil)
				return
			}
			cl.setInstanceState(id, core.InstanceLifecycleStateStopping)
			cl.logOutAll(id)
			cl.after(cl.duration("instance.stop"), func() {
				if cl.instanceState(id) != core.InstanceLifecycleStateStopping {
					done(badInput("The state of the instance has changed."))
					return
				}
				apply(core.InstanceLifecycleStateStopped)
				cl.changeInstance(id, core.InstanceLifecycleStateStarting, core.InstanceLifecycleStateRunning, "instance.start")
				done(nil)
			})
		},
	})
}
