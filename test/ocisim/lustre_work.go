// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package ocisim

import (
	"net/http"
	"strings"
	"time"

	"github.com/oracle/oci-go-sdk/v65/common"
	"github.com/oracle/oci-go-sdk/v65/lustrefilestorage"
)

const (
	lustreWorkType = "lustrefilesystemworkrequest"
	lustreEntity   = "LustreFileSystem"
	// lustreRetryAfter is what the service asks the readers of a work request to wait, in whole seconds.
	lustreRetryAfter = 5 * time.Second
)

func lustreWorkOperations() []Operation {
	const path, one = "/workRequests", "/workRequests/{workRequestId}"
	return []Operation{
		lustreOperation("GetWorkRequest", http.MethodGet, one, "", Read, getLustreWork),
		lustreOperation("ListWorkRequests", http.MethodGet, path,
			"compartmentId,workRequestId,status,resourceId,page,limit,sortOrder,sortBy", Inspect, listLustreWork),
		lustreOperation("ListWorkRequestErrors", http.MethodGet, one+"/errors", "page,limit,sortBy,sortOrder", Read, listLustreErrors),
		lustreOperation("ListWorkRequestLogs", http.MethodGet, one+"/logs", "page,limit,sortBy,sortOrder", Read, listLustreLogs),
	}
}

// lustreWork finds the work request that the path names.
func (c *call) lustreWork() (*workRequest, error) {
	w := workRequests.find(c.cloud, c.param("workRequestId"))
	if w == nil || w.service != ServiceLustre || c.denied(lustreFileSystems.policy, Read, w.compartment) {
		return nil, errNotFound()
	}
	return w, nil
}

func getLustreWork(c *call) (*answer, error) {
	w, err := c.lustreWork()
	if err != nil {
		return nil, err
	}
	a := c.send(http.StatusOK, lustreWorkRequest(w))
	a.retryAfter, a.etag = lustreRetryAfter, workRequests.lookup(c.cloud, w.id).etag
	return a, nil
}

// listLustreWork lists the work requests of a compartment or of a resource, or one; something must be named.
func listLustreWork(c *call) (*answer, error) {
	compartment, id, resourceID := c.query.Get("compartmentId"), c.query.Get("workRequestId"), c.query.Get("resourceId")
	status := c.query.Get("status")
	if compartment == "" && id == "" && resourceID == "" {
		return nil, errMissing("compartmentId")
	}
	key := resourceID
	if key == "" && compartment != "" {
		key = workKey(ServiceLustre, compartment)
	}
	return c.list(listing{
		kind: workRequests.kindInfo, key: key, items: true,
		match: func(res *resource) bool {
			w := workRequests.of(res)
			return w.service == ServiceLustre && (id == "" || w.id == id) && (resourceID == "" || w.target == resourceID) &&
				(status == "" || w.state == status) && !c.denied(lustreFileSystems.policy, Inspect, w.compartment)
		},
		render: func(res *resource) any { return lustreWorkRequest(workRequests.of(res)) },
	})
}

func listLustreErrors(c *call) (*answer, error) {
	w, err := c.lustreWork()
	if err != nil {
		return nil, err
	}
	list := []lustrefilestorage.WorkRequestError{}
	for _, p := range w.problems {
		list = append(list, lustrefilestorage.WorkRequestError{
			Code: common.String(p.code), Message: common.String(p.message), Timestamp: sdkTimeOf(p.at),
		})
	}
	return pageOf(c, list, sortKeys[lustrefilestorage.WorkRequestError]{
		"": func(e lustrefilestorage.WorkRequestError) string { return e.Timestamp.Format(apiTime) },
	}, true)
}

func listLustreLogs(c *call) (*answer, error) {
	w, err := c.lustreWork()
	if err != nil {
		return nil, err
	}
	list := []lustrefilestorage.WorkRequestLogEntry{}
	for _, step := range []struct {
		text string
		at   time.Time
	}{{"Accepted", w.accepted}, {"Started", w.started}, {"Finished", w.finished}} {
		if !step.at.IsZero() {
			list = append(list, lustrefilestorage.WorkRequestLogEntry{
				Message: common.String(step.text + " " + w.operation), Timestamp: sdkTimeOf(step.at),
			})
		}
	}
	return pageOf(c, list, sortKeys[lustrefilestorage.WorkRequestLogEntry]{
		"": func(e lustrefilestorage.WorkRequestLogEntry) string { return e.Timestamp.Format(apiTime) },
	}, true)
}

func lustreWorkRequest(w *workRequest) lustrefilestorage.WorkRequest {
	out := lustrefilestorage.WorkRequest{
		Id: common.String(w.id), CompartmentId: common.String(w.compartment),
		OperationType: lustrefilestorage.OperationTypeEnum(w.operation), Status: lustrefilestorage.OperationStatusEnum(w.state),
		PercentComplete: common.Float32(w.percent), TimeAccepted: sdkTimeOf(w.accepted), TimeUpdated: sdkTimeOf(w.accepted),
		Resources: []lustrefilestorage.WorkRequestResource{{
			EntityType: common.String(w.entity), ActionType: lustreAction(w), Identifier: common.String(w.target),
			EntityUri: common.String(lustreRoot + "/lustreFileSystems/" + w.target),
		}},
	}
	if !w.started.IsZero() {
		out.TimeStarted, out.TimeUpdated = sdkTimeOf(w.started), sdkTimeOf(w.started)
	}
	if !w.finished.IsZero() {
		out.TimeFinished, out.TimeUpdated = sdkTimeOf(w.finished), sdkTimeOf(w.finished)
	}
	return out
}

func lustreAction(w *workRequest) lustrefilestorage.ActionTypeEnum {
	switch {
	case w.state == workFailed:
		return lustrefilestorage.ActionTypeFailed
	case w.state != workSucceeded:
		return lustrefilestorage.ActionTypeInProgress
	case strings.HasPrefix(w.operation, "CREATE"):
		return lustrefilestorage.ActionTypeCreated
	case strings.HasPrefix(w.operation, "DELETE"):
		return lustrefilestorage.ActionTypeDeleted
	}
	return lustrefilestorage.ActionTypeUpdated
}
