// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package ocisim

// BalancerHealth is the health of a load balancer or network load balancer with that of its parts.
type BalancerHealth struct {
	Status HealthStatus         `json:"status"`
	Sets   map[string]SetHealth `json:"sets"` // by name of the backend set
}

// SetHealth is the health of a backend set and of its backends.
type SetHealth struct {
	Status   HealthStatus            `json:"status"`
	Backends map[string]HealthStatus `json:"backends"` // by name: "10.0.0.3:8080"
}

// BalancerHealth returns the health of a balancer of either kind; false for an unknown one.
func (r *Region) BalancerHealth(id string) (BalancerHealth, bool) {
	cl := r.lock()
	defer r.mu.Unlock()
	if v := loadBalancers.find(cl, id); v != nil {
		return healthWithParts(cl.lbHealth(v).status, lbBackendNames(v), func(set string) setHealth { return cl.lbSetHealth(v, set) }), true
	}
	if v := networkLoadBalancers.find(cl, id); v != nil {
		return healthWithParts(cl.nlbHealthOf(v).status, nlbBackendNames(v), func(set string) setHealth { return cl.nlbSetHealth(v, set) }), true
	}
	return BalancerHealth{}, false
}

func healthWithParts(status HealthStatus, backends map[string][]string, ofSet func(string) setHealth) BalancerHealth {
	h := BalancerHealth{Status: status, Sets: map[string]SetHealth{}}
	for set, names := range backends {
		found := ofSet(set)
		s := SetHealth{Status: found.status, Backends: map[string]HealthStatus{}}
		for _, name := range names {
			s.Backends[name] = HealthOK
		}
		for status, list := range map[HealthStatus][]string{
			HealthWarning: found.warning, HealthCritical: found.critical, HealthUnknown: found.unknown,
		} {
			for _, name := range list {
				s.Backends[name] = status
			}
		}
		h.Sets[set] = s
	}
	return h
}
