// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package ocisim

import (
	"net/http"
	"strings"
	"time"

	"github.com/oracle/oci-go-sdk/v65/common"
	"github.com/oracle/oci-go-sdk/v65/networkloadbalancer"
)

// nlbRetryAfter is what the service asks the readers of a work request to wait.
const nlbRetryAfter = time.Second

// nlbWorkOperations are the work requests of the service. They are listed by compartment only.
func nlbWorkOperations() []Operation {
	op := func(name, path, query string, handle func(*call) (*answer, error)) Operation {
		return Operation{
			Service: ServiceNetworkLoadBalancer, Name: name, Method: http.MethodGet, Path: "/20200501/workRequests" + path,
			Query: query, Verb: Read, Resource: networkLoadBalancers.policy, handle: handle,
		}
	}
	return []Operation{
		op("GetWorkRequest", "/{workRequestId}", "", func(c *call) (*answer, error) {
			w, err := c.nlbWork()
			if err != nil {
				return nil, err
			}
			a := c.send(http.StatusOK, nlbWorkRequest(w))
			a.retryAfter = nlbRetryAfter
			return a, nil
		}),
		op("ListWorkRequests", "", "compartmentId*,limit,page", func(c *call) (*answer, error) {
			return c.list(listing{
				kind: workRequests.kindInfo, key: workKey(ServiceNetworkLoadBalancer, c.query.Get("compartmentId")), items: true,
				render: func(res *resource) any { return nlbWorkRequest(workRequests.of(res)) },
			})
		}),
		op("ListWorkRequestErrors", "/{workRequestId}/errors", "compartmentId*,page,limit", func(c *call) (*answer, error) {
			w, err := c.nlbWork()
			if err != nil {
				return nil, err
			}
			out := networkloadbalancer.WorkRequestErrorCollection{Items: []networkloadbalancer.WorkRequestError{}}
			for _, p := range w.problems {
				out.Items = append(out.Items, networkloadbalancer.WorkRequestError{
					Code: common.String(p.code), Message: common.String(p.message), Timestamp: sdkTimeOf(p.at),
				})
			}
			return c.send(http.StatusOK, out), nil
		}),
		op("ListWorkRequestLogs", "/{workRequestId}/logs", "compartmentId*,page,limit", func(c *call) (*answer, error) {
			w, err := c.nlbWork()
			if err != nil {
				return nil, err
			}
			out := networkloadbalancer.WorkRequestLogEntryCollection{Items: []networkloadbalancer.WorkRequestLogEntry{{
				Message: common.String("Accepted " + w.operation), Timestamp: sdkTimeOf(w.accepted),
			}}}
			return c.send(http.StatusOK, out), nil
		}),
	}
}

// nlbWork finds the work request that the path names.
func (c *call) nlbWork() (*workRequest, error) {
	w := workRequests.find(c.cloud, c.param("workRequestId"))
	if w == nil || w.service != ServiceNetworkLoadBalancer || c.denied(networkLoadBalancers.policy, Read, w.compartment) {
		return nil, errNotFound()
	}
	return w, nil
}

func nlbWorkRequest(w *workRequest) networkloadbalancer.WorkRequest {
	out := networkloadbalancer.WorkRequest{
		Id: common.String(w.id), CompartmentId: common.String(w.compartment),
		OperationType: networkloadbalancer.OperationTypeEnum(w.operation), Status: networkloadbalancer.OperationStatusEnum(w.state),
		PercentComplete: common.Float32(w.percent), TimeAccepted: sdkTimeOf(w.accepted),
		Resources: []networkloadbalancer.WorkRequestResource{{
			EntityType: common.String(w.entity), ActionType: nlbAction(w), Identifier: common.String(w.target),
			EntityUri: common.String(nlbRoot + "/" + w.target),
		}},
	}
	if !w.started.IsZero() {
		out.TimeStarted = sdkTimeOf(w.started)
	}
	if !w.finished.IsZero() {
		out.TimeFinished = sdkTimeOf(w.finished)
	}
	return out
}

func nlbAction(w *workRequest) networkloadbalancer.ActionTypeEnum {
	switch {
	case w.state == workFailed:
		return networkloadbalancer.ActionTypeRelated
	case w.state != workSucceeded:
		return networkloadbalancer.ActionTypeInProgress
	case strings.HasPrefix(w.operation, "CREATE_NETWORK"):
		return networkloadbalancer.ActionTypeCreated
	case strings.HasPrefix(w.operation, "DELETE_NETWORK"):
		return networkloadbalancer.ActionTypeDeleted
	}
	return networkloadbalancer.ActionTypeUpdated
}
