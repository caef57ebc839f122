// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package ocisim

import (
	"time"

	"github.com/oracle/oci-go-sdk/v65/loadbalancer"
	"github.com/oracle/oci-go-sdk/v65/networkloadbalancer"
)

// backendKey names a backend of a balancer of either kind.
type backendKey struct {
	balancer, set, backend string
}

type certificateKey struct {
	balancer, name string
}

// balancerState is what the region knows of balancers beside what the API shows.
type balancerState struct {
	since  map[backendKey]time.Time // when checks of a backend began; without an entry, when its balancer was made
	forced map[backendKey]HealthStatus
	keys   map[certificateKey]loadbalancer.CertificateDetails // with the private keys, which no answer shows
}

func newBalancerState() balancerState {
	return balancerState{
		since:  map[backendKey]time.Time{},
		forced: map[backendKey]HealthStatus{},
		keys:   map[certificateKey]loadbalancer.CertificateDetails{},
	}
}

func (s *balancerState) keepKey(balancer string, d loadbalancer.CertificateDetails) {
	s.keys[certificateKey{balancer, value(d.CertificateName)}] = d
}

func (s *balancerState) dropKey(balancer, name string) {
	delete(s.keys, certificateKey{balancer, name})
}

// forget drops all about a balancer that is gone.
func (s *balancerState) forget(balancer string) {
	for k := range s.since {
		if k.balancer == balancer {
			delete(s.since, k)
		}
	}
	for k := range s.forced {
		if k.balancer == balancer {
			delete(s.forced, k)
		}
	}
	for k := range s.keys {
		if k.balancer == balancer {
			delete(s.keys, k)
		}
	}
}

// track starts the checks of the backends that a balancer got, and forgets those that it lost.
func (s *balancerState) track(balancer string, before, after map[string][]string, now time.Time) {
	for set, names := range after {
		for _, name := range names {
			if !contains(before[set], name) {
				s.since[backendKey{balancer, set, name}] = now
			}
		}
	}
	for set, names := range before {
		for _, name := range names {
			if !contains(after[set], name) {
				k := backendKey{balancer, set, name}
				delete(s.since, k)
				delete(s.forced, k)
			}
		}
	}
}

// lbBackendNames are the backends of a load balancer by set.
func lbBackendNames(v *loadbalancer.LoadBalancer) map[string][]string {
	names := map[string][]string{}
	for set, s := range v.BackendSets {
		for _, b := range s.Backends {
			names[set] = append(names[set], value(b.Name))
		}
	}
	return names
}

// nlbBackendNames are the backends of a network load balancer by set.
func nlbBackendNames(v *networkloadbalancer.NetworkLoadBalancer) map[string][]string {
	names := map[string][]string{}
	for set, s := range v.BackendSets {
		for _, b := range s.Backends {
			names[set] = append(names[set], value(b.Name))
		}
	}
	return names
}
