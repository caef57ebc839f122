// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package ocisim

import (
	"fmt"
	"net/http"
	"regexp"
	"time"

	"github.com/oracle/oci-go-sdk/v65/common"
	"github.com/oracle/oci-go-sdk/v65/lustrefilestorage"
)

var (
	// lustreName is documented: 8 letters, digits and underscores.
	lustreName = regexp.MustCompile(`^[A-Za-z0-9_]{1,8}$`)
	// lustreStart is when a maintenance window starts, in UTC.
	lustreStart = regexp.MustCompile(`^([01][0-9]|2[0-3]):[0-5][0-9]$`)
)

const (
	// maxSquashExceptions is a documented limit.
	maxSquashExceptions = 10
	// billingCycle is documented.
	billingCycle = 30 * 24 * time.Hour
)

func createLustre(c *call) (*answer, error) {
	d, err := decode[lustrefilestorage.CreateLustreFileSystemDetails](c)
	if err != nil {
		return nil, err
	}
	if err := c.createIn(value(d.CompartmentId)); err != nil {
		return nil, err
	}
	if err := c.checkLustre(d); err != nil {
		return nil, err
	}
	if err := c.fileLimit(lustreFileSystems.kindInfo, LustreLimit, value(d.AvailabilityDomain)); err != nil {
		return nil, err
	}
	v := c.newLustre(d)
	res := lustreFileSystems.insert(c.cloud, v)
	id, cl := value(v.Id), c.cloud
	work := c.submit(task{
		ocidType: lustreWorkType, operation: string(lustrefilestorage.OperationTypeCreateLustreFileSystem),
		compartment: value(d.CompartmentId), target: id, entity: lustreEntity, duration: "lustre.create",
		finish: func() []workProblem {
			v := lustreFileSystems.find(cl, id)
			if v == nil {
				return badInput("The Lustre file system is gone.")
			}
			vnic, err := cl.newServiceVNIC(value(v.SubnetId), id, value(v.CompartmentId), v.NsgIds)
			if err != nil {
				return problemsOf(err)
			}
			lustreFileSystems.update(cl, id, func(v *lustrefilestorage.LustreFileSystem) {
				v.ManagementServiceAddress = vnic.PrivateIp
			})
			cl.setLustreState(id, lustrefilestorage.LustreFileSystemLifecycleStateActive, "")
			return nil
		},
		failed: func(problems []workProblem) {
			cl.setLustreState(id, lustrefilestorage.LustreFileSystemLifecycleStateFailed, problems[0].message)
		},
	})
	a := c.created(res)
	a.status, a.workRequest, a.location = http.StatusAccepted, work.id, lustreRoot+"/lustreFileSystems/"+id
	return a, nil
}

// checkLustre refuses what cannot be created.
func (c *call) checkLustre(d *lustrefilestorage.CreateLustreFileSystemDetails) error {
	if err := c.fileDomain(value(d.AvailabilityDomain)); err != nil {
		return err
	}
	if err := checkPattern("fileSystemName", value(d.FileSystemName), lustreName); err != nil {
		return err
	}
	if d.DisplayName != nil {
		if err := checkSize("displayName", *d.DisplayName, 1, 255); err != nil {
			return err
		}
	}
	if least := c.behaviour.LustreMinCapacity; *d.CapacityInGBs < least {
		if err := c.rule(LustreCapacity, *d.CapacityInGBs, fmt.Sprintf("it must be at least %d", least)); err != nil {
			return err
		}
	}
	if err := checkSquash(d.RootSquashConfiguration); err != nil {
		return err
	}
	if err := checkWindow(d.MaintenanceWindow); err != nil {
		return err
	}
	subnet, err := subnets.related(c, value(d.SubnetId))
	if err != nil {
		return err
	}
	if fixed := value(subnet.AvailabilityDomain); fixed != "" && fixed != *d.AvailabilityDomain {
		if err := c.rule(MountTargetDomain, *subnet.Id, *d.AvailabilityDomain); err != nil {
			return err
		}
	}
	return c.fileGroups(d.NsgIds, value(subnet.VcnId))
}

func checkSquash(s *lustrefilestorage.RootSquashConfiguration) error {
	if s == nil {
		return nil
	}
	if len(s.ClientExceptions) > maxSquashExceptions {
		return errInvalid("At most %d clientExceptions are allowed, not %d.", maxSquashExceptions, len(s.ClientExceptions))
	}
	if value(s.SquashUid) < 0 || value(s.SquashGid) < 0 {
		return errInvalid("squashUid and squashGid must not be negative.")
	}
	return nil
}

func checkWindow(w *lustrefilestorage.MaintenanceWindow) error {
	if w == nil || w.TimeStart == nil {
		return nil
	}
	return checkPattern("timeStart", *w.TimeStart, lustreStart)
}

// completeSquash fills in the documented defaults.
func completeSquash(s *lustrefilestorage.RootSquashConfiguration) *lustrefilestorage.RootSquashConfiguration {
	out := *s
	out.SquashUid, out.SquashGid = orDefault(out.SquashUid, anonymousID), orDefault(out.SquashGid, anonymousID)
	if out.IdentitySquash == "" {
		out.IdentitySquash = lustrefilestorage.RootSquashConfigurationIdentitySquashNone
	}
	return &out
}

func (c *call) newLustre(d *lustrefilestorage.CreateLustreFileSystemDetails) *lustrefilestorage.LustreFileSystem {
	tags := Tags{d.FreeformTags, d.DefinedTags}
	v := &lustrefilestorage.LustreFileSystem{
		Id: common.String(c.newOCID(lustreFileSystems.ocidType)), CompartmentId: d.CompartmentId, AvailabilityDomain: d.AvailabilityDomain,
		DisplayName:           orDefault(d.DisplayName, "lustrefilesystem"+c.nameSuffix()),
		FileSystemDescription: orDefault(d.FileSystemDescription, ""), FileSystemName: d.FileSystemName,
		CapacityInGBs: d.CapacityInGBs, SubnetId: d.SubnetId, NsgIds: d.NsgIds, KmsKeyId: d.KmsKeyId,
		PerformanceTier:         lustrefilestorage.LustreFileSystemPerformanceTierEnum(d.PerformanceTier),
		RootSquashConfiguration: completeSquash(d.RootSquashConfiguration), MaintenanceWindow: d.MaintenanceWindow,
		ClusterPlacementGroupId: d.ClusterPlacementGroupId,
		FreeformTags:            tags.freeform(), DefinedTags: tags.defined(),
	}
	c.bearLustre(v, lustrefilestorage.LustreFileSystemLifecycleStateCreating)
	return v
}

// bearLustre fills in what the service decides. There is no address before the file system is ACTIVE.
func (cl *cloud) bearLustre(v *lustrefilestorage.LustreFileSystem, state lustrefilestorage.LustreFileSystemLifecycleStateEnum) {
	v.LifecycleState, v.TimeCreated, v.TimeUpdated = state, cl.sdkTime(), cl.sdkTime()
	v.TimeBillingCycleEnd = sdkTimeOf(cl.now.Add(billingCycle))
	v.ManagementServiceAddress, v.Lnet, v.MajorVersion = common.String(""), common.String("tcp"), common.String("2.15")
	v.SystemTags = map[string]map[string]interface{}{}
	if v.MaintenanceWindow == nil {
		v.MaintenanceWindow = &lustrefilestorage.MaintenanceWindow{
			DayOfWeek: lustrefilestorage.MaintenanceWindowDayOfWeekSunday, TimeStart: common.String("02:00"),
		}
	}
}

func (cl *cloud) setLustreState(id string, state lustrefilestorage.LustreFileSystemLifecycleStateEnum, details string) {
	lustreFileSystems.update(cl, id, func(v *lustrefilestorage.LustreFileSystem) {
		v.LifecycleState, v.TimeUpdated, v.LifecycleDetails = state, cl.sdkTime(), nil
		if details != "" {
			v.LifecycleDetails = common.String(details)
		}
	})
}

// changeLustre accepts a change of the target: it is UPDATING until the change is applied. A change that fails leaves
// everything as it was.
func (c *call) changeLustre(operation lustrefilestorage.OperationTypeEnum, duration string, apply func(*lustrefilestorage.LustreFileSystem)) (*answer, error) {
	v := lustreFileSystems.of(c.target)
	id, cl := c.target.id, c.cloud
	work := c.submit(task{
		ocidType: lustreWorkType, operation: string(operation), compartment: value(v.CompartmentId), target: id, entity: lustreEntity,
		duration: duration,
		finish: func() []workProblem {
			lustreFileSystems.update(cl, id, apply)
			cl.setLustreState(id, lustrefilestorage.LustreFileSystemLifecycleStateActive, "")
			return nil
		},
		failed: func([]workProblem) {
			cl.setLustreState(id, lustrefilestorage.LustreFileSystemLifecycleStateActive, "")
		},
	})
	cl.setLustreState(id, lustrefilestorage.LustreFileSystemLifecycleStateUpdating, "")
	return accepted(http.StatusAccepted, work), nil
}

// lustreIn refuses a change in any state but those named. What is DELETED cannot be found any more by those who write.
func (c *call) lustreIn(states ...lustrefilestorage.LustreFileSystemLifecycleStateEnum) error {
	now := lustreFileSystems.of(c.target).LifecycleState
	for _, s := range states {
		if s == now {
			return nil
		}
	}
	if now == lustrefilestorage.LustreFileSystemLifecycleStateDeleted {
		return errNotFound()
	}
	return c.rule(LustreBusy, c.target.id, now)
}

func updateLustre(c *call) (*answer, error) {
	d, err := decode[lustrefilestorage.UpdateLustreFileSystemDetails](c)
	if err != nil {
		return nil, err
	}
	if err := c.lustreIn(lustrefilestorage.LustreFileSystemLifecycleStateActive); err != nil {
		return nil, err
	}
	if err := c.checkLustreUpdate(d); err != nil {
		return nil, err
	}
	cl, id := c.cloud, c.target.id
	return c.changeLustre(lustrefilestorage.OperationTypeUpdateLustreFileSystem, "lustre.update", func(v *lustrefilestorage.LustreFileSystem) {
		replace(&v.DisplayName, d.DisplayName)
		replace(&v.FileSystemDescription, d.FileSystemDescription)
		replace(&v.KmsKeyId, d.KmsKeyId)
		replace(&v.CapacityInGBs, d.CapacityInGBs)
		replace(&v.MaintenanceWindow, d.MaintenanceWindow)
		replaceTags(&v.FreeformTags, &v.DefinedTags, d.FreeformTags, d.DefinedTags)
		if d.RootSquashConfiguration != nil {
			v.RootSquashConfiguration = completeSquash(d.RootSquashConfiguration)
		}
		if d.NsgIds != nil {
			v.NsgIds = d.NsgIds
			cl.setServiceVNICGroups(id, d.NsgIds)
		}
	})
}

func (c *call) checkLustreUpdate(d *lustrefilestorage.UpdateLustreFileSystemDetails) error {
	v := lustreFileSystems.of(c.target)
	if d.DisplayName != nil {
		if err := checkSize("displayName", *d.DisplayName, 1, 255); err != nil {
			return err
		}
	}
	if d.CapacityInGBs != nil {
		if err := c.lustreGrows(value(v.CapacityInGBs), *d.CapacityInGBs); err != nil {
			return err
		}
	}
	if err := checkSquash(d.RootSquashConfiguration); err != nil {
		return err
	}
	if err := checkWindow(d.MaintenanceWindow); err != nil {
		return err
	}
	if subnet := subnets.find(c.cloud, value(v.SubnetId)); subnet != nil {
		return c.fileGroups(d.NsgIds, value(subnet.VcnId))
	}
	return nil
}

// lustreGrows refuses a decrease, and an increase that is not a multiple of the step.
func (c *call) lustreGrows(from, to int) error {
	step := c.behaviour.LustreCapacityStep
	switch {
	case to < from:
		return c.rule(LustreShrinks, from, to)
	case step > 0 && (to-from)%step != 0:
		return c.rule(LustreCapacity, to, fmt.Sprintf("an increase must be a multiple of %d", step))
	}
	return nil
}

func moveLustre(c *call) (*answer, error) {
	d, err := decode[lustrefilestorage.ChangeLustreFileSystemCompartmentDetails](c)
	if err != nil {
		return nil, err
	}
	if err := c.lustreIn(lustrefilestorage.LustreFileSystemLifecycleStateActive); err != nil {
		return nil, err
	}
	if err := c.createIn(value(d.CompartmentId)); err != nil {
		return nil, err
	}
	return c.changeLustre(lustrefilestorage.OperationTypeMoveLustreFileSystem, "lustre.move", func(v *lustrefilestorage.LustreFileSystem) {
		v.CompartmentId = d.CompartmentId
	})
}

func deleteLustre(c *call) (*answer, error) {
	if err := c.lustreIn(lustrefilestorage.LustreFileSystemLifecycleStateActive, lustrefilestorage.LustreFileSystemLifecycleStateInactive,
		lustrefilestorage.LustreFileSystemLifecycleStateFailed); err != nil {
		return nil, err
	}
	v := lustreFileSystems.of(c.target)
	id, cl, previous := c.target.id, c.cloud, v.LifecycleState
	work := c.submit(task{
		ocidType: lustreWorkType, operation: string(lustrefilestorage.OperationTypeDeleteLustreFileSystem),
		compartment: value(v.CompartmentId), target: id, entity: lustreEntity, duration: "lustre.delete",
		finish: func() []workProblem {
			cl.releaseServiceVNICs(id)
			cl.setLustreState(id, lustrefilestorage.LustreFileSystemLifecycleStateDeleted, "")
			cl.after(cl.behaviour.DeletedFileStorageVisible, func() { lustreFileSystems.remove(cl, id) })
			return nil
		},
		failed: func([]workProblem) { cl.setLustreState(id, previous, "") },
	})
	cl.setLustreState(id, lustrefilestorage.LustreFileSystemLifecycleStateDeleting, "")
	return accepted(http.StatusAccepted, work), nil
}
