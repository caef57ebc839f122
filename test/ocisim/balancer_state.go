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

// balancerState is what the region knows of balancers beside what the API shows, by balancer.
type balancerState map[string]*balancerNotes

type balancerNotes struct {
	since  map[backendKey]time.Time // when checks of a backend began; without an entry, when its balancer was made
	forced map[backendKey]HealthStatus
	keys   map[string]loadbalancer.CertificateDetails // by name, with the private keys, which no answer shows
}

// of returns the notes of a balancer, to be written to.
func (s balancerState) of(balancer string) *balancerNotes {
	if s[balancer] == nil {
		s[balancer] = &balancerNotes{
			since: map[backendKey]time.Time{}, forced: map[backendKey]HealthStatus{}, keys: map[string]loadbalancer.CertificateDetails{},
		}
	}
	return s[balancer]
}

// read returns the notes of a balancer, to be read.
func (s balancerState) read(balancer string) balancerNotes {
	if s[balancer] == nil {
		return balancerNotes{}
	}
	return *s[balancer]
}

func (s balancerState) keepKey(balancer string, d loadbalancer.CertificateDetails) {
	s.of(balancer).keys[value(d.CertificateName)] = d
}

func (s balancerState) dropKey(balancer, name string) { delete(s.of(balancer).keys, name) }

// forget drops all about a balancer that is gone.
func (s balancerState) forget(balancer string) { delete(s, balancer) }

// track starts the checks of the backends that a balancer got, and forgets those that it lost.
func (s balancerState) track(balancer string, before, after map[string][]string, now time.Time) {
	notes := s.of(balancer)
	for set, names := range after {
		for _, name := range names {
			if !contains(before[set], name) {
				notes.since[backendKey{balancer, set, name}] = now
			}
		}
	}
	for set, names := range before {
		for _, name := range names {
			if !contains(after[set], name) {
				k := backendKey{balancer, set, name}
				delete(notes.since, k)
				delete(notes.forced, k)
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
