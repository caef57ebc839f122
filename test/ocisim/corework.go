// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package ocisim

import (
	"net/http"

	"github.com/oracle/oci-go-sdk/v65/common"
	"github.com/oracle/oci-go-sdk/v65/workrequests"
)

// ServiceWorkRequests is the name of the service that shows the work requests of the core services.
const ServiceWorkRequests = "workrequests"

// coreWorkOCIDType is the type of the core services' work requests in OCIDs.
const coreWorkOCIDType = "coreservicesworkrequest"

// coreWorkService shows the work requests of compute. The words in operationType and entityType are not documented;
// they are those of the API's operations and models.
func coreWorkService() service {
	op := func(name, path, query string, handle func(*call) (*answer, error)) Operation {
		return Operation{
			Service: ServiceWorkRequests, Name: name, Method: http.MethodGet, Path: "/20160918/workRequests" + path,
			Query: query, Verb: Read, Resource: instances.policy, handle: handle,
		}
	}
	list := op("ListWorkRequests", "", "compartmentId*,resourceId,limit,page", listCoreWork)
	list.Verb = Inspect
	return service{operations: []Operation{
		op("GetWorkRequest", "/{workRequestId}", "", func(c *call) (*answer, error) {
			if w := workRequests.find(c.cloud, c.param("workRequestId")); w != nil && w.service == ServiceIdentity {
				return c.identityWork(w)
			}
			w, err := c.coreWork()
			if err != nil {
				return nil, err
			}
			return c.send(http.StatusOK, coreWorkRequest(w)), nil
		}),
		list,
		op("ListWorkRequestErrors", "/{workRequestId}/errors", "limit,page,sortOrder", func(c *call) (*answer, error) {
			return c.workEntries(func(w *workRequest) []any {
				var entries []any
				for _, p := range w.problems {
					entries = append(entries, workrequests.WorkRequestError{
						Code: common.String(p.code), Message: common.String(p.message), Timestamp: sdkTimeOf(p.at),
					})
				}
				return entries
			})
		}),
		op("ListWorkRequestLogs", "/{workRequestId}/logs", "limit,page,sortOrder", func(c *call) (*answer, error) {
			return c.workEntries(coreWorkLog)
		}),
	}}
}

// workEntries are errors and log lines of a work request. They are made for lists.
var workEntries = newKind(kindInfo{label: "work request entry"}, func(*any) facets { return facets{} })

// workEntries lists what belongs to the work request of the path, in order of time.
func (c *call) workEntries(of func(*workRequest) []any) (*answer, error) {
	w, err := c.coreWork()
	if err != nil {
		return nil, err
	}
	var list []*resource
	for i, entry := range of(w) {
		list = append(list, &resource{kind: workEntries.kindInfo, value: entry, seq: uint64(i) + 1})
	}
	return c.page(list, listing{kind: workEntries.kindInfo})
}

func listCoreWork(c *call) (*answer, error) {
	id := c.query.Get("resourceId")
	key := narrowest(id, workKey(ServiceCompute, c.query.Get("compartmentId")))
	return c.list(listing{
		kind: workRequests.kindInfo, key: key,
		match:  func(res *resource) bool { return workRequests.of(res).service == ServiceCompute },
		render: func(res *resource) any { return coreWorkSummary(workRequests.of(res)) },
	})
}

// coreWork finds the work request that the path names.
func (c *call) coreWork() (*workRequest, error) {
	w := workRequests.find(c.cloud, c.param("workRequestId"))
	if w == nil || w.service != ServiceCompute || c.denied(instances.policy, Read, w.compartment) {
		return nil, errNotFound()
	}
	return w, nil
}

func coreWorkSummary(w *workRequest) workrequests.WorkRequestSummary {
	full := coreWorkRequest(w)
	return workrequests.WorkRequestSummary{
		OperationType: full.OperationType, Status: workrequests.WorkRequestSummaryStatusEnum(full.Status), Id: full.Id,
		CompartmentId: full.CompartmentId, PercentComplete: full.PercentComplete,
		TimeAccepted: full.TimeAccepted, TimeStarted: full.TimeStarted, TimeFinished: full.TimeFinished,
	}
}

func coreWorkRequest(w *workRequest) workrequests.WorkRequest {
	out := workrequests.WorkRequest{
		Id: common.String(w.id), CompartmentId: common.String(w.compartment), OperationType: common.String(w.operation),
		Status: workrequests.WorkRequestStatusEnum(w.state), PercentComplete: common.Float32(w.percent),
		TimeAccepted: sdkTimeOf(w.accepted), Resources: []workrequests.WorkRequestResource{{
			ActionType: coreWorkAction(w), EntityType: common.String(w.entity), Identifier: common.String(w.target),
		}},
	}
	for _, r := range w.related {
		out.Resources = append(out.Resources, workrequests.WorkRequestResource{
			ActionType: workrequests.WorkRequestResourceActionTypeRelated,
			EntityType: common.String(r.entity), Identifier: common.String(r.id),
		})
	}
	if !w.started.IsZero() {
		out.TimeStarted = sdkTimeOf(w.started)
	}
	if !w.finished.IsZero() {
		out.TimeFinished = sdkTimeOf(w.finished)
	}
	return out
}

func coreWorkAction(w *workRequest) workrequests.WorkRequestResourceActionTypeEnum {
	switch {
	case w.state == workFailed:
		return workrequests.WorkRequestResourceActionTypeRelated
	case w.state != workSucceeded:
		return workrequests.WorkRequestResourceActionTypeInProgress
	case w.operation == "AttachVolume":
		return workrequests.WorkRequestResourceActionTypeCreated
	case w.operation == "DetachVolume":
		return workrequests.WorkRequestResourceActionTypeDeleted
	}
	return workrequests.WorkRequestResourceActionTypeUpdated
}

func coreWorkLog(w *workRequest) []any {
	entries := []any{workrequests.WorkRequestLogEntry{
		Message: common.String("Accepted " + w.operation + "."), Timestamp: sdkTimeOf(w.accepted),
	}}
	if !w.started.IsZero() {
		entries = append(entries, workrequests.WorkRequestLogEntry{
			Message: common.String("Started " + w.operation + "."), Timestamp: sdkTimeOf(w.started),
		})
	}
	if !w.finished.IsZero() {
		entries = append(entries, workrequests.WorkRequestLogEntry{
			Message: common.String(w.operation + " " + w.state + "."), Timestamp: sdkTimeOf(w.finished),
		})
	}
	return entries
}
