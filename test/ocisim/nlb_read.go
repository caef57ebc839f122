// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package ocisim

import (
	"net/http"

	"github.com/oracle/oci-go-sdk/v65/common"
	"github.com/oracle/oci-go-sdk/v65/networkloadbalancer"
)

// sortedByName says what the lists of parts do with sortBy.
const sortedByName = "parts have no times: sortBy=timeCreated sorts by name"

// nlbReadOperations are the reads of parts of a network load balancer and of its health.
func nlbReadOperations() []Operation {
	list := func(name, path string, handle func(*call) (*answer, error)) Operation {
		o := nlbOperation(name, http.MethodGet, path, Read, handle)
		o.Query, o.Partial = "limit,page,sortOrder,sortBy", sortedByName
		return o
	}
	operational := nlbOperation("GetBackendOperationalStatus", http.MethodGet, nlbBackend+"/operationalStatus", Read, nlbOperationalStatus)
	operational.Partial = "a backup is ACTIVE while no other backend is healthy, and never stays so"
	return []Operation{
		nlbOperation("GetBackendSet", http.MethodGet, nlbSet, Read, func(c *call) (*answer, error) {
			return shownOfNLB(c, (*call).nlbBackendSet)
		}),
		list("ListBackendSets", nlbOne+"/backendSets", func(c *call) (*answer, error) {
			sets := networkLoadBalancers.of(c.target).BackendSets
			return c.listParts(sortedKeys(sets), func(name string) any { return recast[networkloadbalancer.BackendSetSummary](sets[name]) }, true)
		}),
		nlbOperation("GetBackend", http.MethodGet, nlbBackend, Read, func(c *call) (*answer, error) {
			return shownOfNLB(c, func(c *call) (*networkloadbalancer.Backend, error) {
				_, b, err := c.nlbBackend()
				return b, err
			})
		}),
		list("ListBackends", nlbBackends, func(c *call) (*answer, error) {
			s, err := c.nlbBackendSet()
			if err != nil {
				return nil, err
			}
			byName := map[string]networkloadbalancer.Backend{}
			for _, b := range s.Backends {
				byName[value(b.Name)] = b
			}
			return c.listParts(sortedKeys(byName), func(name string) any { return recast[networkloadbalancer.BackendSummary](byName[name]) }, true)
		}),
		nlbOperation("GetHealthChecker", http.MethodGet, nlbChecker, Read, func(c *call) (*answer, error) {
			return shownOfNLB(c, func(c *call) (*networkloadbalancer.HealthChecker, error) {
				s, err := c.nlbBackendSet()
				if err != nil {
					return nil, err
				}
				return s.HealthChecker, nil
			})
		}),
		nlbOperation("GetListener", http.MethodGet, nlbOne+"/listeners/{listenerName}", Read, func(c *call) (*answer, error) {
			return shownOfNLB(c, func(c *call) (*networkloadbalancer.Listener, error) {
				l, ok := networkLoadBalancers.of(c.target).Listeners[c.param("listenerName")]
				if !ok {
					return nil, errNotFound()
				}
				return &l, nil
			})
		}),
		list("ListListeners", nlbOne+"/listeners", func(c *call) (*answer, error) {
			listeners := networkLoadBalancers.of(c.target).Listeners
			return c.listParts(sortedKeys(listeners), func(name string) any { return recast[networkloadbalancer.ListenerSummary](listeners[name]) }, true)
		}),
		nlbOperation("GetNetworkLoadBalancerHealth", http.MethodGet, nlbOne+"/health", Read, nlbHealth),
		nlbOperation("GetBackendSetHealth", http.MethodGet, nlbSet+"/health", Read, nlbBackendSetHealth),
		nlbOperation("GetBackendHealth", http.MethodGet, nlbBackend+"/health", Read, nlbBackendHealth),
		operational,
	}
}

// nlbCatalogue are the operations that do not name a network load balancer.
func nlbCatalogue() []Operation {
	catalogue := func(name, path string, items []string) Operation {
		return Operation{
			Service: ServiceNetworkLoadBalancer, Name: name, Method: http.MethodGet, Path: "/20200501/" + path,
			Query: "limit,page,sortOrder,sortBy", Verb: Inspect, Resource: networkLoadBalancers.policy,
			handle: func(c *call) (*answer, error) { return c.listParts(items, func(name string) any { return name }, true) },
		}
	}
	return []Operation{
		catalogue("ListNetworkLoadBalancersPolicies", "networkLoadBalancersPolicies", []string{"FIVE_TUPLE", "THREE_TUPLE", "TWO_TUPLE"}),
		catalogue("ListNetworkLoadBalancersProtocols", "networkLoadBalancersProtocols", []string{"ANY", "L3IP", "TCP", "TCP_AND_UDP", "UDP"}),
		{
			Service: ServiceNetworkLoadBalancer, Name: "ListNetworkLoadBalancerHealths", Method: http.MethodGet, Path: nlbRoot + "/health",
			Query: "compartmentId*,sortOrder,sortBy,limit,page", Verb: Inspect, Resource: networkLoadBalancers.policy,
			handle: func(c *call) (*answer, error) {
				return c.list(listing{
					kind: networkLoadBalancers.kindInfo, key: c.query.Get("compartmentId"), items: true,
					render: func(res *resource) any {
						return networkloadbalancer.NetworkLoadBalancerHealthSummary{
							NetworkLoadBalancerId: common.String(res.id),
							Status: networkloadbalancer.NetworkLoadBalancerHealthSummaryStatusEnum(
								c.nlbHealthOf(networkLoadBalancers.of(res)).status),
						}
					},
				})
			},
		},
	}
}

// shownOfNLB answers with a part of a network load balancer, or that it is what the caller has.
func shownOfNLB[T any](c *call, part func(*call) (*T, error)) (*answer, error) {
	v, err := part(c)
	if err != nil {
		return nil, err
	}
	if c.header.Get("If-None-Match") == c.target.etag {
		return &answer{status: http.StatusNotModified, etag: c.target.etag}, nil
	}
	return c.sendOfTarget(v), nil
}

func showNLB(c *call) (*answer, error) {
	if c.header.Get("If-None-Match") == c.target.etag {
		return &answer{status: http.StatusNotModified, etag: c.target.etag}, nil
	}
	return c.showTarget()
}

func nlbHealth(c *call) (*answer, error) {
	h := c.nlbHealthOf(networkLoadBalancers.of(c.target))
	return c.send(http.StatusOK, networkloadbalancer.NetworkLoadBalancerHealth{
		Status:                      networkloadbalancer.NetworkLoadBalancerHealthStatusEnum(h.status),
		WarningStateBackendSetNames: h.warning, CriticalStateBackendSetNames: h.critical, UnknownStateBackendSetNames: h.unknown,
		TotalBackendSetCount: common.Int(h.total),
	}), nil
}

func nlbBackendSetHealth(c *call) (*answer, error) {
	if _, err := c.nlbBackendSet(); err != nil {
		return nil, err
	}
	h := c.nlbSetHealth(networkLoadBalancers.of(c.target), c.param("backendSetName"))
	return c.send(http.StatusOK, networkloadbalancer.BackendSetHealth{
		Status:                   networkloadbalancer.BackendSetHealthStatusEnum(h.status),
		WarningStateBackendNames: h.warning, CriticalStateBackendNames: h.critical, UnknownStateBackendNames: h.unknown,
		TotalBackendCount: common.Int(h.total),
	}), nil
}

func nlbBackendHealth(c *call) (*answer, error) {
	s, b, err := c.nlbBackend()
	if err != nil {
		return nil, err
	}
	status := c.healthOf(nlbProbed(networkLoadBalancers.of(c.target), s, b))
	result := networkloadbalancer.HealthCheckResultHealthCheckStatusOk
	switch status {
	case HealthUnknown:
		result = networkloadbalancer.HealthCheckResultHealthCheckStatusUnknown
	case HealthCritical, HealthWarning:
		result = networkloadbalancer.HealthCheckResultHealthCheckStatusConnectFailed
	}
	return c.send(http.StatusOK, networkloadbalancer.BackendHealth{
		Status: networkloadbalancer.BackendHealthStatusEnum(status),
		HealthCheckResults: []networkloadbalancer.HealthCheckResult{{
			Timestamp: c.sdkTime(), HealthCheckStatus: result,
		}},
	}), nil
}

// nlbOperationalStatus tells whether a backend gets traffic.
func nlbOperationalStatus(c *call) (*answer, error) {
	s, b, err := c.nlbBackend()
	if err != nil {
		return nil, err
	}
	v := networkLoadBalancers.of(c.target)
	status := networkloadbalancer.BackendOperationalStatusStatusActive
	if c.healthOf(nlbProbed(v, s, b)) != HealthOK {
		status = networkloadbalancer.BackendOperationalStatusStatusUnknown
	} else if value(b.IsBackup) {
		for i := range s.Backends {
			if other := &s.Backends[i]; !value(other.IsBackup) && c.healthOf(nlbProbed(v, s, other)) == HealthOK {
				status = networkloadbalancer.BackendOperationalStatusStatusStandby
			}
		}
	}
	return c.send(http.StatusOK, networkloadbalancer.BackendOperationalStatus{Status: status}), nil
}
