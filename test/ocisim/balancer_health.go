// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package ocisim

import (
	"fmt"
	"slices"
	"time"

	"github.com/oracle/oci-go-sdk/v65/core"
	"github.com/oracle/oci-go-sdk/v65/loadbalancer"
	"github.com/oracle/oci-go-sdk/v65/networkloadbalancer"
)

// HealthStatus is the health of a backend, a backend set or a balancer.
type HealthStatus string

// The statuses that the services know.
const (
	HealthOK       HealthStatus = "OK"
	HealthWarning  HealthStatus = "WARNING"
	HealthCritical HealthStatus = "CRITICAL"
	HealthUnknown  HealthStatus = "UNKNOWN"
)

// SetBackendHealth makes the health of a backend what a test wants, whatever its checks would say. The name of the backend
// is the API's, "10.0.0.3:8080"; the status "" gives the backend back to its checks. It ends with the backend.
func (r *Region) SetBackendHealth(balancerID, backendSet, backend string, status HealthStatus) error {
	cl := r.lock()
	defer r.mu.Unlock()
	var names map[string][]string
	if v := loadBalancers.find(cl, balancerID); v != nil {
		names = lbBackendNames(v)
	} else if v := networkLoadBalancers.find(cl, balancerID); v != nil {
		names = nlbBackendNames(v)
	}
	if !contains(names[backendSet], backend) {
		return fmt.Errorf("backend %s of set %s of balancer %s: %w", backend, backendSet, balancerID, ErrUnknownResource)
	}
	key := backendKey{balancerID, backendSet, backend}
	switch status {
	case "":
		delete(cl.balancers.of(balancerID).forced, key)
	case HealthOK, HealthWarning, HealthCritical, HealthUnknown:
		cl.balancers.of(balancerID).forced[key] = status
	default:
		return fmt.Errorf("health %q of backend %s: %w", status, backend, errUnknownHealth)
	}
	return nil
}

// probed is what the health of a backend depends on.
type probed struct {
	key      backendKey
	address  string // "" for a target without one
	target   string // OCID of a network load balancer's target
	offline  bool
	retries  int
	interval time.Duration
	made     time.Time // of its balancer
}

// healthOf is the health of a backend: what a test has set; else what a body found; else CRITICAL on an instance that does
// not run; else OK once enough checks had time to pass, and UNKNOWN before. Nothing checks an offline backend.
func (cl *cloud) healthOf(p probed) HealthStatus {
	notes := cl.balancers.read(p.key.balancer)
	if status, ok := notes.forced[p.key]; ok {
		return status
	}
	if p.offline {
		return HealthUnknown
	}
	if body := cl.options.Balancers; body != nil {
		return body.BackendHealth(p.key.balancer, p.key.set, p.key.backend)
	}
	if cl.instanceDown(p.target, p.address) {
		return HealthCritical
	}
	since, known := notes.since[p.key]
	if !known {
		since = p.made
	}
	if cl.now.Before(since.Add(time.Duration(p.retries) * p.interval)) {
		return HealthUnknown
	}
	return HealthOK
}

// instanceDown says whether a backend is on an instance that does not run. An address that no instance has is none.
func (cl *cloud) instanceDown(target, address string) bool {
	if ip := privateIPs.find(cl, target); ip != nil {
		return cl.vnicDown(value(ip.VnicId))
	}
	if target != "" {
		return !running(cl.instanceState(target))
	}
	for ip := range privateIPs.under(cl, addressKey(address)) {
		if cl.vnicDown(value(ip.VnicId)) {
			return true
		}
	}
	for ip := range ipv6s.under(cl, addressKey(address)) {
		if cl.vnicDown(value(ip.VnicId)) {
			return true
		}
	}
	return false
}

func (cl *cloud) vnicDown(vnic string) bool {
	for a := range vnicAttachments.under(cl, vnic) {
		if !running(cl.instanceState(value(a.InstanceId))) {
			return true
		}
	}
	return false
}

func running(state core.InstanceLifecycleStateEnum) bool {
	return state == core.InstanceLifecycleStateRunning || state == core.InstanceLifecycleStateCreatingImage ||
		state == core.InstanceLifecycleStateStopping
}

// setHealth is the health of a backend set and of its backends that are not OK.
type setHealth struct {
	status                     HealthStatus
	warning, critical, unknown []string
	total                      int
}

func (h *setHealth) add(name string, status HealthStatus) {
	h.total++
	switch status {
	case HealthWarning:
		h.warning = append(h.warning, name)
	case HealthCritical:
		h.critical = append(h.critical, name)
	case HealthUnknown:
		h.unknown = append(h.unknown, name)
	}
}

// sum is the documented health of a set: OK if all backends are, WARNING if half of them are, CRITICAL if fewer are, and
// UNKNOWN if there are none, or more than half of them are unknown.
func (h *setHealth) sum() {
	bad := len(h.warning) + len(h.critical) + len(h.unknown)
	switch {
	case h.total == 0 || 2*len(h.unknown) > h.total:
		h.status = HealthUnknown
	case bad == 0:
		h.status = HealthOK
	case 2*(h.total-bad) >= h.total:
		h.status = HealthWarning
	default:
		h.status = HealthCritical
	}
}

// wholeHealth is the health of a balancer of either kind: the worst of its sets. It is UNKNOWN unless the balancer is
// ACTIVE and has sets, and also while a set is UNKNOWN and no other one is worse. What the services say when fewer than
// half of the sets are UNKNOWN is not documented.
func wholeHealth(active bool, sets map[string]setHealth) setHealth {
	h := setHealth{status: HealthOK, warning: []string{}, critical: []string{}, unknown: []string{}}
	for _, name := range sortedKeys(sets) {
		h.add(name, sets[name].status)
	}
	switch {
	case !active || len(sets) == 0:
		h.status = HealthUnknown
	case len(h.critical) > 0:
		h.status = HealthCritical
	case len(h.warning) > 0:
		h.status = HealthWarning
	case len(h.unknown) > 0:
		h.status = HealthUnknown
	}
	return h
}

// lbSetHealth is the health of a backend set of a load balancer. A set that no listener uses is not checked.
func (cl *cloud) lbSetHealth(v *loadbalancer.LoadBalancer, set string) setHealth {
	s := v.BackendSets[set]
	h := setHealth{warning: []string{}, critical: []string{}, unknown: []string{}}
	for i := range s.Backends {
		h.add(value(s.Backends[i].Name), cl.healthOf(lbProbed(v, &s, &s.Backends[i])))
	}
	h.sum()
	if !lbSetUsed(v, set) {
		h.status = HealthUnknown
	}
	return h
}

func lbProbed(v *loadbalancer.LoadBalancer, s *loadbalancer.BackendSet, b *loadbalancer.Backend) probed {
	p := probed{
		key: backendKey{value(v.Id), value(s.Name), value(b.Name)}, address: value(b.IpAddress), offline: value(b.Offline),
	}
	if v.TimeCreated != nil {
		p.made = v.TimeCreated.Time
	}
	if h := s.HealthChecker; h != nil {
		p.retries, p.interval = value(h.Retries), time.Duration(value(h.IntervalInMillis))*time.Millisecond
	}
	return p
}

// lbSetUsed says whether a listener sends traffic to a backend set, directly or by its routes.
func lbSetUsed(v *loadbalancer.LoadBalancer, set string) bool {
	for _, l := range v.Listeners {
		if value(l.DefaultBackendSetName) == set {
			return true
		}
		for _, route := range v.PathRouteSets[value(l.PathRouteSetName)].PathRoutes {
			if value(route.BackendSetName) == set {
				return true
			}
		}
		for _, rule := range v.RoutingPolicies[value(l.RoutingPolicyName)].Rules {
			if slices.Contains(routingTargets(rule), set) {
				return true
			}
		}
	}
	return false
}

func (cl *cloud) lbHealth(v *loadbalancer.LoadBalancer) setHealth {
	sets := map[string]setHealth{}
	for name := range v.BackendSets {
		sets[name] = cl.lbSetHealth(v, name)
	}
	return wholeHealth(v.LifecycleState == loadbalancer.LoadBalancerLifecycleStateActive, sets)
}

func (cl *cloud) nlbSetHealth(v *networkloadbalancer.NetworkLoadBalancer, set string) setHealth {
	s := v.BackendSets[set]
	h := setHealth{warning: []string{}, critical: []string{}, unknown: []string{}}
	for i := range s.Backends {
		h.add(value(s.Backends[i].Name), cl.healthOf(nlbProbed(v, &s, &s.Backends[i])))
	}
	h.sum()
	return h
}

func nlbProbed(v *networkloadbalancer.NetworkLoadBalancer, s *networkloadbalancer.BackendSet, b *networkloadbalancer.Backend) probed {
	p := probed{
		key: backendKey{value(v.Id), value(s.Name), value(b.Name)}, address: value(b.IpAddress), target: value(b.TargetId),
		offline: value(b.IsOffline),
	}
	if v.TimeCreated != nil {
		p.made = v.TimeCreated.Time
	}
	if h := s.HealthChecker; h != nil {
		p.retries, p.interval = value(h.Retries), time.Duration(value(h.IntervalInMillis))*time.Millisecond
	}
	return p
}

func (cl *cloud) nlbHealthOf(v *networkloadbalancer.NetworkLoadBalancer) setHealth {
	sets := map[string]setHealth{}
	for name := range v.BackendSets {
		sets[name] = cl.nlbSetHealth(v, name)
	}
	return wholeHealth(v.LifecycleState == networkloadbalancer.LifecycleStateActive, sets)
}
