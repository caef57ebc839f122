// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package ocisim

import (
	"net/http"
	"slices"

	"github.com/oracle/oci-go-sdk/v65/loadbalancer"
)

// loadBalancerBackendOperations are the operations on single backends and on the health checker of a set.
func loadBalancerBackendOperations() []Operation {
	const (
		set      = "/{loadBalancerId}/backendSets/{backendSetName}"
		backends = set + "/backends"
		one      = backends + "/{backendName}"
		checker  = set + "/healthChecker"
	)
	return []Operation{
		lbOperation("CreateBackend", http.MethodPost, backends, Use, createBackend),
		lbOperation("UpdateBackend", http.MethodPut, one, Use, updateBackend),
		lbOperation("DeleteBackend", http.MethodDelete, one, Use, deleteBackend),
		lbOperation("GetBackend", http.MethodGet, one, Read, func(c *call) (*answer, error) {
			_, b, err := c.lbBackend()
			if err != nil {
				return nil, err
			}
			return c.sendOfTarget(b), nil
		}),
		lbOperation("ListBackends", http.MethodGet, backends, Read, func(c *call) (*answer, error) {
			s, err := c.lbBackendSet()
			if err != nil {
				return nil, err
			}
			return c.wholeList(s.Backends)
		}),
		lbOperation("GetHealthChecker", http.MethodGet, checker, Read, func(c *call) (*answer, error) {
			s, err := c.lbBackendSet()
			if err != nil {
				return nil, err
			}
			return c.sendOfTarget(s.HealthChecker), nil
		}),
		lbOperation("UpdateHealthChecker", http.MethodPut, checker, Use, updateHealthChecker),
	}
}

// lbBackendSet is the backend set that the path names.
func (c *call) lbBackendSet() (*loadbalancer.BackendSet, error) {
	s, ok := loadBalancers.of(c.target).BackendSets[c.param("backendSetName")]
	if !ok {
		return nil, errNotFound()
	}
	return &s, nil
}

// lbBackend is the backend that the path names, with its set.
func (c *call) lbBackend() (*loadbalancer.BackendSet, *loadbalancer.Backend, error) {
	s, err := c.lbBackendSet()
	if err != nil {
		return nil, nil, err
	}
	i := lbBackendIndex(s, c.param("backendName"))
	if i < 0 {
		return nil, nil, errNotFound()
	}
	return s, &s.Backends[i], nil
}

func lbBackendIndex(s *loadbalancer.BackendSet, name string) int {
	return slices.IndexFunc(s.Backends, func(b loadbalancer.Backend) bool { return value(b.Name) == name })
}

// changeBackendSet accepts a change inside the backend set that the path names.
func (c *call) changeBackendSet(operation string, change func(*cloud, *loadbalancer.BackendSet) error) (*answer, error) {
	name := c.param("backendSetName")
	return c.changeLoadBalancer(operation, func(cl *cloud, v *loadbalancer.LoadBalancer) error {
		s, exists := v.BackendSets[name]
		if !exists {
			return errNotFound()
		}
		if err := change(cl, &s); err != nil {
			return err
		}
		return backendSetPart().put(cl, v, name, s)
	})
}

func createBackend(c *call) (*answer, error) {
	d, err := decode[loadbalancer.CreateBackendDetails](c)
	if err != nil {
		return nil, err
	}
	return c.changeBackendSet("CreateBackend", func(cl *cloud, s *loadbalancer.BackendSet) error {
		name := backendName(value(d.IpAddress), value(d.Port))
		if lbBackendIndex(s, name) >= 0 {
			return cl.rule(PartExists, "Backend", name)
		}
		s.Backends = append(s.Backends, recast[loadbalancer.Backend](d))
		return nil
	})
}

// updateBackend replaces the settings of a backend; its address stays.
func updateBackend(c *call) (*answer, error) {
	d, err := decode[loadbalancer.UpdateBackendDetails](c)
	if err != nil {
		return nil, err
	}
	name := c.param("backendName")
	return c.changeBackendSet("UpdateBackend", func(_ *cloud, s *loadbalancer.BackendSet) error {
		i := lbBackendIndex(s, name)
		if i < 0 {
			return errNotFound()
		}
		b := &s.Backends[i]
		b.Weight, b.Backup, b.Drain, b.Offline = d.Weight, d.Backup, d.Drain, d.Offline
		b.MaxConnections = d.MaxConnections
		return nil
	})
}

func deleteBackend(c *call) (*answer, error) {
	name := c.param("backendName")
	return c.changeBackendSet("DeleteBackend", func(_ *cloud, s *loadbalancer.BackendSet) error {
		i := lbBackendIndex(s, name)
		if i < 0 {
			return errNotFound()
		}
		s.Backends = slices.Delete(s.Backends, i, i+1)
		return nil
	})
}

func updateHealthChecker(c *call) (*answer, error) {
	d, err := decode[loadbalancer.UpdateHealthCheckerDetails](c)
	if err != nil {
		return nil, err
	}
	return c.changeBackendSet("UpdateHealthChecker", func(_ *cloud, s *loadbalancer.BackendSet) error {
		h := recast[loadbalancer.HealthChecker](d)
		s.HealthChecker = &h
		return nil
	})
}
