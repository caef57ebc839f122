// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package ocisim

import (
	"net/http"

	"github.com/oracle/oci-go-sdk/v65/common"
	"github.com/oracle/oci-go-sdk/v65/core"
	"github.com/oracle/oci-go-sdk/v65/loadbalancer"
)

// loadBalancerHealthOperations are the reads of health.
func loadBalancerHealthOperations() []Operation {
	const set = "/{loadBalancerId}/backendSets/{backendSetName}"
	return []Operation{
		lbOperation("GetLoadBalancerHealth", http.MethodGet, "/{loadBalancerId}/health", Read, loadBalancerHealth),
		lbOperation("GetBackendSetHealth", http.MethodGet, set+"/health", Read, backendSetHealth),
		lbOperation("GetBackendHealth", http.MethodGet, set+"/backends/{backendName}/health", Read, backendHealth),
		{
			Service: ServiceLoadBalancer, Name: "ListLoadBalancerHealths", Method: http.MethodGet, Path: "/20170115/loadBalancerHealths",
			Query: "compartmentId*,limit,page", Verb: Inspect, Resource: loadBalancers.policy,
			handle: func(c *call) (*answer, error) {
				return c.list(listing{kind: loadBalancers.kindInfo, key: c.query.Get("compartmentId"), render: func(res *resource) any {
					return loadbalancer.LoadBalancerHealthSummary{
						LoadBalancerId: common.String(res.id),
						Status:         loadbalancer.LoadBalancerHealthSummaryStatusEnum(c.lbHealth(loadBalancers.of(res)).status),
					}
				}})
			},
		},
	}
}

func loadBalancerHealth(c *call) (*answer, error) {
	h := c.lbHealth(loadBalancers.of(c.target))
	return c.sendOfTarget(loadbalancer.LoadBalancerHealth{
		Status:                      loadbalancer.LoadBalancerHealthStatusEnum(h.status),
		WarningStateBackendSetNames: h.warning, CriticalStateBackendSetNames: h.critical, UnknownStateBackendSetNames: h.unknown,
		TotalBackendSetCount: common.Int(h.total),
	}), nil
}

func backendSetHealth(c *call) (*answer, error) {
	if _, err := c.lbBackendSet(); err != nil {
		return nil, err
	}
	h := c.lbSetHealth(loadBalancers.of(c.target), c.param("backendSetName"))
	return c.sendOfTarget(loadbalancer.BackendSetHealth{
		Status:                   loadbalancer.BackendSetHealthStatusEnum(h.status),
		WarningStateBackendNames: h.warning, CriticalStateBackendNames: h.critical, UnknownStateBackendNames: h.unknown,
		TotalBackendCount: common.Int(h.total),
	}), nil
}

// backendHealth tells the result of a check by the primary and one by the standby of the load balancer. They differ where
// the backend's health is WARNING.
func backendHealth(c *call) (*answer, error) {
	s, b, err := c.lbBackend()
	if err != nil {
		return nil, err
	}
	v := loadBalancers.of(c.target)
	status := c.healthOf(lbProbed(v, s, b))
	results := []loadbalancer.HealthCheckResult{}
	for i, vnic := range c.reporters(v) {
		result := loadbalancer.HealthCheckResultHealthCheckStatusOk
		switch {
		case status == HealthUnknown:
			result = loadbalancer.HealthCheckResultHealthCheckStatusUnknown
		case status == HealthCritical, status == HealthWarning && i == 1:
			result = loadbalancer.HealthCheckResultHealthCheckStatusConnectFailed
		}
		results = append(results, loadbalancer.HealthCheckResult{
			SubnetId: vnic.SubnetId, SourceIpAddress: vnic.PrivateIp, Timestamp: c.sdkTime(), HealthCheckStatus: result,
		})
	}
	return c.sendOfTarget(loadbalancer.BackendHealth{
		Status: loadbalancer.BackendHealthStatusEnum(status), HealthCheckResults: results,
	}), nil
}

// reporters are the VNICs of the two machines of a load balancer. Where it has one VNIC, both show that one.
func (cl *cloud) reporters(v *loadbalancer.LoadBalancer) []*core.Vnic {
	var list []*core.Vnic
	for _, id := range cl.ownedVNICs[value(v.Id)] {
		if vnic := vnics.find(cl, id); vnic != nil {
			list = append(list, vnic)
		}
	}
	if len(list) == 1 {
		list = append(list, list[0])
	}
	return list
}
