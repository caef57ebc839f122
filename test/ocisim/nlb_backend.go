// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package ocisim

import (
	"net/http"
	"slices"

	"github.com/oracle/oci-go-sdk/v65/networkloadbalancer"
)

const (
	nlbOne      = "/{networkLoadBalancerId}"
	nlbSet      = nlbOne + "/backendSets/{backendSetName}"
	nlbBackends = nlbSet + "/backends"
	nlbBackend  = nlbBackends + "/{backendName}"
	nlbChecker  = nlbSet + "/healthChecker"
)

// nlbBackendOperations are the operations that change single backends and the health checker of a set.
func nlbBackendOperations() []Operation {
	return []Operation{
		nlbOperation("CreateBackend", http.MethodPost, nlbBackends, Use, createNLBBackend),
		nlbOperation("UpdateBackend", http.MethodPut, nlbBackend, Use, updateNLBBackend),
		nlbOperation("DeleteBackend", http.MethodDelete, nlbBackend, Use, deleteNLBBackend),
		nlbOperation("UpdateHealthChecker", http.MethodPut, nlbChecker, Use, updateNLBHealthChecker),
	}
}

// nlbBackendSet is the backend set that the path names.
func (c *call) nlbBackendSet() (*networkloadbalancer.BackendSet, error) {
	s, ok := networkLoadBalancers.of(c.target).BackendSets[c.param("backendSetName")]
	if !ok {
		return nil, errNotFound()
	}
	return &s, nil
}

// nlbBackend is the backend that the path names, with its set.
func (c *call) nlbBackend() (*networkloadbalancer.BackendSet, *networkloadbalancer.Backend, error) {
	s, err := c.nlbBackendSet()
	if err != nil {
		return nil, nil, err
	}
	i := nlbBackendIndex(s, c.param("backendName"))
	if i < 0 {
		return nil, nil, errNotFound()
	}
	return s, &s.Backends[i], nil
}

func nlbBackendIndex(s *networkloadbalancer.BackendSet, name string) int {
	return slices.IndexFunc(s.Backends, func(b networkloadbalancer.Backend) bool { return value(b.Name) == name })
}

// changeNLBBackendSet accepts a change inside the backend set that the path names.
func (c *call) changeNLBBackendSet(
	operation networkloadbalancer.OperationTypeEnum, change func(*networkloadbalancer.BackendSet) error,
) (*answer, error) {
	name := c.param("backendSetName")
	return c.changeNLB(nlbChange{
		operation: operation,
		apply: func(cl *cloud, v *networkloadbalancer.NetworkLoadBalancer) error {
			set, exists := v.BackendSets[name]
			if !exists {
				return errNotFound()
			}
			set = *cloneOf(&set)
			if err := change(&set); err != nil {
				return err
			}
			return cl.putNLBBackendSet(v, name, set)
		},
	})
}

func createNLBBackend(c *call) (*answer, error) {
	d, err := decode[networkloadbalancer.CreateBackendDetails](c)
	if err != nil {
		return nil, err
	}
	return c.changeNLBBackendSet(networkloadbalancer.OperationTypeCreateBackend, func(s *networkloadbalancer.BackendSet) error {
		s.Backends = append(s.Backends, recast[networkloadbalancer.Backend](d))
		return nil
	})
}

// updateNLBBackend replaces what the request names and keeps the rest.
func updateNLBBackend(c *call) (*answer, error) {
	d, err := decode[networkloadbalancer.UpdateBackendDetails](c)
	if err != nil {
		return nil, err
	}
	name := c.param("backendName")
	return c.changeNLBBackendSet(networkloadbalancer.OperationTypeUpdateBackend, func(s *networkloadbalancer.BackendSet) error {
		i := nlbBackendIndex(s, name)
		if i < 0 {
			return errNotFound()
		}
		b := &s.Backends[i]
		replace(&b.Weight, d.Weight)
		replace(&b.IsBackup, d.IsBackup)
		replace(&b.IsDrain, d.IsDrain)
		replace(&b.IsOffline, d.IsOffline)
		return nil
	})
}

func deleteNLBBackend(c *call) (*answer, error) {
	name := c.param("backendName")
	return c.changeNLBBackendSet(networkloadbalancer.OperationTypeDeleteBackend, func(s *networkloadbalancer.BackendSet) error {
		i := nlbBackendIndex(s, name)
		if i < 0 {
			return errNotFound()
		}
		s.Backends = slices.Delete(s.Backends, i, i+1)
		return nil
	})
}

// updateNLBHealthChecker replaces what the request names and keeps the rest.
func updateNLBHealthChecker(c *call) (*answer, error) {
	d, err := decode[networkloadbalancer.UpdateHealthCheckerDetails](c)
	if err != nil {
		return nil, err
	}
	return c.changeNLBBackendSet(networkloadbalancer.OperationTypeUpdateHealthChecker, func(s *networkloadbalancer.BackendSet) error {
		h := s.HealthChecker
		if d.Protocol != "" {
			h.Protocol = d.Protocol
		}
		replace(&h.Port, d.Port)
		replace(&h.Retries, d.Retries)
		replace(&h.TimeoutInMillis, d.TimeoutInMillis)
		replace(&h.IntervalInMillis, d.IntervalInMillis)
		replace(&h.UrlPath, d.UrlPath)
		replace(&h.ResponseBodyRegex, d.ResponseBodyRegex)
		replace(&h.ReturnCode, d.ReturnCode)
		if d.RequestData != nil {
			h.RequestData = d.RequestData
		}
		if d.ResponseData != nil {
			h.ResponseData = d.ResponseData
		}
		replace(&h.Dns, d.Dns)
		return nil
	})
}
