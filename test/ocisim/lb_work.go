// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package ocisim

import (
	"net/http"

	"github.com/oracle/oci-go-sdk/v65/common"
	"github.com/oracle/oci-go-sdk/v65/loadbalancer"
)

// loadBalancerCatalogue are the operations that do not name a load balancer.
func loadBalancerCatalogue() []Operation {
	catalogue := func(name, path string, items any) Operation {
		return Operation{
			Service: ServiceLoadBalancer, Name: name, Method: http.MethodGet, Path: "/20170115/" + path,
			Query: "compartmentId*,limit,page", Verb: Inspect, Resource: loadBalancers.policy,
			handle: func(c *call) (*answer, error) { return c.send(http.StatusOK, items), nil },
		}
	}
	type named struct {
		Name string `json:"name"`
	}
	names := func(list []string) []named {
		out := make([]named, 0, len(list))
		for _, n := range list {
			out = append(out, named{n})
		}
		return out
	}
	return []Operation{
		catalogue("ListShapes", "loadBalancerShapes", names(append([]string{flexibleShape}, sortedKeys(fixedShapes)...))),
		catalogue("ListPolicies", "loadBalancerPolicies", names(lbPolicies)),
		catalogue("ListProtocols", "loadBalancerProtocols", names(lbProtocols)),
		{
			Service: ServiceLoadBalancer, Name: "GetWorkRequest", Method: http.MethodGet,
			Path: "/20170115/loadBalancerWorkRequests/{workRequestId}", Verb: Read, Resource: loadBalancers.policy,
			handle: func(c *call) (*answer, error) {
				w := workRequests.find(c.cloud, c.param("workRequestId"))
				if w == nil || w.service != ServiceLoadBalancer || c.denied(loadBalancers.policy, Read, w.compartment) {
					return nil, errNotFound()
				}
				return c.send(http.StatusOK, lbWorkRequest(w)), nil
			},
		},
	}
}

func listLoadBalancerWork(c *call) (*answer, error) {
	return c.list(listing{kind: workRequests.kindInfo, key: c.target.id, render: func(res *resource) any {
		return lbWorkRequest(workRequests.of(res))
	}})
}

func lbWorkRequest(w *workRequest) loadbalancer.WorkRequest {
	out := loadbalancer.WorkRequest{
		Id: common.String(w.id), LoadBalancerId: common.String(w.target), Type: common.String(w.operation),
		LifecycleState: loadbalancer.WorkRequestLifecycleStateEnum(w.state), Message: common.String(""),
		TimeAccepted: sdkTimeOf(w.accepted), CompartmentId: common.String(w.compartment),
		ErrorDetails: []loadbalancer.WorkRequestError{},
	}
	switch w.state {
	case workSucceeded:
		out.Message = common.String("OK")
	case workFailed:
		out.Message = common.String("Failed")
	}
	if !w.finished.IsZero() {
		out.TimeFinished = sdkTimeOf(w.finished)
	}
	for _, p := range w.problems {
		code := loadbalancer.WorkRequestErrorErrorCodeBadInput
		if p.code == string(loadbalancer.WorkRequestErrorErrorCodeInternalError) {
			code = loadbalancer.WorkRequestErrorErrorCodeInternalError
		}
		out.ErrorDetails = append(out.ErrorDetails, loadbalancer.WorkRequestError{ErrorCode: code, Message: common.String(p.message)})
	}
	return out
}
