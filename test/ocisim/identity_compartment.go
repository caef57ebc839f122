// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package ocisim

import (
	"net/http"
	"regexp"
	"time"

	"github.com/oracle/oci-go-sdk/v65/common"
	"github.com/oracle/oci-go-sdk/v65/identity"
)

// What is not established about compartments.
const (
	CompartmentTooDeep     Situation = "compartment below six levels of others"
	CompartmentNotActive   Situation = "change of a compartment that is not ACTIVE"
	RootCompartmentChanged Situation = "rename or delete of the root compartment"
)

const (
	// deletedCompartmentVisible is documented: a deleted compartment is listed for 90 days.
	deletedCompartmentVisible = 90 * 24 * time.Hour
	// compartmentLevels is documented: subcompartments go down six levels below the tenancy.
	compartmentLevels = 6
)

func identityRulings() map[Situation]Ruling {
	return map[Situation]Ruling{
		CompartmentTooDeep: {
			Status: http.StatusBadRequest, Code: "InvalidParameter",
			Message: "The compartment %s is %d levels below the tenancy and can have no others in it.",
			Reason:  "the limit is documented, its error is not",
		},
		CompartmentNotActive: {
			Status: http.StatusConflict, Code: "IncorrectState", Message: "The compartment %s is %s.",
			Reason: "the general code for a state that does not allow the call",
		},
		RootCompartmentChanged: {
			Status: http.StatusBadRequest, Code: "InvalidParameter", Message: "The root compartment %s cannot be renamed or deleted.",
			Reason: "documented as impossible without its code",
		},
	}
}

// compartmentName is the documented form: at most 100 letters, digits, dots, hyphens and underscores.
var compartmentName = regexp.MustCompile(`^[A-Za-z0-9._-]{1,100}$`)

func compartmentOperations() []Operation {
	const one = "/20160918/compartments/{compartmentId}"
	op := func(name, method, path string, verb Verb, handle func(*call) (*answer, error)) Operation {
		return Operation{
			Service: ServiceIdentity, Name: name, Method: method, Path: path, Verb: verb, Resource: compartments.policy, handle: handle,
		}
	}
	create := op("CreateCompartment", http.MethodPost, "/20160918/compartments", Manage, createCompartment)
	create.RetryToken = true
	update := op("UpdateCompartment", http.MethodPut, one, Use, updateCompartment)
	remove := op("DeleteCompartment", http.MethodDelete, one, Manage, deleteCompartment)
	for _, o := range []*Operation{&update, &remove} {
		o.Target, o.IfMatch = compartments.kindInfo, true
	}
	return []Operation{create, update, remove}
}

func createCompartment(c *call) (*answer, error) {
	d, err := decode[identity.CreateCompartmentDetails](c)
	if err != nil {
		return nil, err
	}
	parent := value(d.CompartmentId)
	if err := c.createIn(parent); err != nil {
		return nil, err
	}
	if err := checkPattern("name", value(d.Name), compartmentName); err != nil {
		return nil, err
	}
	if err := checkSize("description", value(d.Description), 1, 400); err != nil {
		return nil, err
	}
	if depth := c.depth(parent); depth >= compartmentLevels {
		if err := c.rule(CompartmentTooDeep, parent, depth); err != nil {
			return nil, err
		}
	}
	if err := c.compartmentNameFree(parent, value(d.Name), ""); err != nil {
		return nil, err
	}
	v := &identity.Compartment{
		Id: common.String(c.newOCID(compartments.ocidType)), CompartmentId: d.CompartmentId, Name: d.Name, Description: d.Description,
		TimeCreated: c.sdkTime(), LifecycleState: identity.CompartmentLifecycleStateCreating,
		FreeformTags: map[string]string{}, DefinedTags: map[string]map[string]interface{}{},
	}
	setTags(&v.FreeformTags, &v.DefinedTags, d.FreeformTags, d.DefinedTags)
	res := compartments.insert(c.cloud, v)
	cl, id := c.cloud, res.id
	cl.after(cl.duration("compartment.create"), func() {
		compartments.update(cl, id, func(v *identity.Compartment) {
			if v.LifecycleState == identity.CompartmentLifecycleStateCreating {
				v.LifecycleState = identity.CompartmentLifecycleStateActive
			}
		})
	})
	return c.created(res), nil
}

// depth is the number of compartments between this one and the tenancy, itself included.
func (cl *cloud) depth(id string) int {
	depth := 0
	for v := compartments.find(cl, id); v != nil && value(v.Id) != value(v.CompartmentId); v = compartments.find(cl, value(v.CompartmentId)) {
		depth++
	}
	return depth
}

// compartmentNameFree refuses a name that another living child of the parent has.
func (c *call) compartmentNameFree(parent, name, except string) error {
	for v := range compartments.under(c.cloud, parent) {
		id := value(v.Id)
		if value(v.Name) == name && id != except && id != parent && v.LifecycleState != identity.CompartmentLifecycleStateDeleted {
			return &APIError{
				Status: http.StatusConflict, Code: "CompartmentAlreadyExists",
				Message: "Compartment '" + name + "' already exists in compartment " + parent + ".",
			}
		}
	}
	return nil
}

// compartmentChangeable refuses changes of a compartment that is not ACTIVE.
func (c *call) compartmentChangeable() (*identity.Compartment, error) {
	v := compartments.of(c.target)
	if v.LifecycleState != identity.CompartmentLifecycleStateActive {
		return v, c.rule(CompartmentNotActive, c.target.id, v.LifecycleState)
	}
	return v, nil
}

func updateCompartment(c *call) (*answer, error) {
	d, err := decode[identity.UpdateCompartmentDetails](c)
	if err != nil {
		return nil, err
	}
	v, err := c.compartmentChangeable()
	if err != nil {
		return nil, err
	}
	if d.Name != nil && *d.Name != value(v.Name) {
		if err := c.compartmentRename(v, *d.Name); err != nil {
			return nil, err
		}
	}
	if d.Description != nil {
		if err := checkSize("description", *d.Description, 1, 400); err != nil {
			return nil, err
		}
	}
	compartments.update(c.cloud, c.target.id, func(v *identity.Compartment) {
		replace(&v.Name, d.Name)
		replace(&v.Description, d.Description)
		setTags(&v.FreeformTags, &v.DefinedTags, d.FreeformTags, d.DefinedTags)
	})
	return c.show(c.target), nil
}

func (c *call) compartmentRename(v *identity.Compartment, name string) error {
	parent, id := value(v.CompartmentId), value(v.Id)
	if id == parent {
		if err := c.rule(RootCompartmentChanged, id); err != nil {
			return err
		}
	}
	if err := checkPattern("name", name, compartmentName); err != nil {
		return err
	}
	return c.compartmentNameFree(parent, name, id)
}

// deleteCompartment accepts a deletion. Whether the compartment is empty is found out by the work request: if not, that
// fails and the compartment is ACTIVE again. A deleted one gets a suffix, so that its name is free.
func deleteCompartment(c *call) (*answer, error) {
	v, err := c.compartmentChangeable()
	if err != nil {
		return nil, err
	}
	cl, id := c.cloud, c.target.id
	if id == value(v.CompartmentId) {
		if err := c.rule(RootCompartmentChanged, id); err != nil {
			return nil, err
		}
	}
	setState := func(state identity.CompartmentLifecycleStateEnum) {
		compartments.update(cl, id, func(v *identity.Compartment) { v.LifecycleState = state })
	}
	work := c.submit(task{
		ocidType: "identityworkrequest", operation: string(identity.WorkRequestOperationTypeCompartment),
		compartment: value(v.CompartmentId), target: id, entity: "Compartment", duration: "compartment.delete",
		finish: func() []workProblem {
			if holds := cl.inCompartment(id); holds != "" {
				return badInput("The compartment " + id + " is not empty: it has " + holds + ".")
			}
			compartments.update(cl, id, func(v *identity.Compartment) {
				v.LifecycleState = identity.CompartmentLifecycleStateDeleted
				v.Name = common.String(value(v.Name) + "." + cl.nameSuffix())
			})
			cl.after(deletedCompartmentVisible, func() { compartments.remove(cl, id) })
			return nil
		},
		failed: func([]workProblem) { setState(identity.CompartmentLifecycleStateActive) },
	})
	setState(identity.CompartmentLifecycleStateDeleting)
	return accepted(http.StatusAccepted, work), nil
}

// inCompartment returns the oldest resource that keeps a compartment from being deleted, or "".
func (cl *cloud) inCompartment(id string) string {
	var oldest *resource
	for _, res := range cl.store.byID {
		held := res.compartment == id && res.id != id && res.kind != workRequests.kindInfo && !terminal(res.state)
		if held && (oldest == nil || res.seq < oldest.seq) {
			oldest = res
		}
	}
	if oldest == nil {
		return ""
	}
	return oldest.id
}

// identityWork answers GetWorkRequest of the identity service. It has the path of the core services' operation, whose
// handler leaves it to this one.
func (c *call) identityWork(w *workRequest) (*answer, error) {
	if c.denied(compartments.policy, Read, w.compartment) {
		return nil, errNotFound()
	}
	return c.send(http.StatusOK, identityWorkRequest(w)), nil
}

func identityWorkRequest(w *workRequest) identity.WorkRequest {
	out := identity.WorkRequest{
		Id: common.String(w.id), OperationType: identity.WorkRequestOperationTypeEnum(w.operation),
		Status: identity.WorkRequestStatusEnum(w.state), CompartmentId: common.String(w.compartment),
		TimeAccepted: sdkTimeOf(w.accepted), PercentComplete: common.Float32(w.percent),
		Resources: []identity.WorkRequestResource{{
			Identifier: common.String(w.target), EntityType: common.String(w.entity), ActionType: identity.WorkRequestResourceActionTypeDeleted,
		}},
		Errors: []identity.WorkRequestError{}, Logs: []identity.WorkRequestLogEntry{},
	}
	if w.state != workSucceeded {
		out.Resources[0].ActionType = identity.WorkRequestResourceActionTypeInProgress
	}
	if !w.started.IsZero() {
		out.TimeStarted = sdkTimeOf(w.started)
	}
	if !w.finished.IsZero() {
		out.TimeFinished = sdkTimeOf(w.finished)
	}
	for _, p := range w.problems {
		out.Errors = append(out.Errors, identity.WorkRequestError{
			Code: common.String(p.code), Message: common.String(p.message), Timestamp: sdkTimeOf(p.at),
		})
	}
	return out
}
