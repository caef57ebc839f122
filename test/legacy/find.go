// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package legacy

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/oracle/oci-go-sdk/v65/core"
	lbsdk "github.com/oracle/oci-go-sdk/v65/loadbalancer"
	nlbsdk "github.com/oracle/oci-go-sdk/v65/networkloadbalancer"
	v1 "k8s.io/api/core/v1"
)

// Balancer is what that release looks at, of a balancer.
type Balancer struct {
	ID          string
	Active      bool
	Subnets     []string
	Groups      []string
	Listeners   map[string]string // name to backend set
	BackendSets []string
	Ports       map[string]int      // backend set to the port of its first backend
	IPs         map[string][]string // backend set to the addresses of its backends
	HealthPorts map[string]int      // by backend set
}

// Find finds the balancer of a Service, as that release does: by kind, compartment and display name, whatever its tags are.
func (r *Release) Find(svc *v1.Service) (*Balancer, error) {
	s, name := r.spec(svc), r.DisplayName(svc)
	if s.nlb {
		for _, b := range r.Region.NetworkLoadBalancers() {
			if *b.DisplayName == name && *b.CompartmentId == s.compartment && b.LifecycleState != nlbsdk.LifecycleStateDeleted {
				return readNLB(b), nil
			}
		}
	} else {
		for _, b := range r.Region.LoadBalancers() {
			if *b.DisplayName == name && *b.CompartmentId == s.compartment && b.LifecycleState != lbsdk.LoadBalancerLifecycleStateDeleted {
				return readLB(b), nil
			}
		}
	}
	return nil, fmt.Errorf("balancer %q: %w", name, ErrNotFound)
}

func readLB(b lbsdk.LoadBalancer) *Balancer {
	out := newBalancer(*b.Id, b.LifecycleState == lbsdk.LoadBalancerLifecycleStateActive && len(b.IpAddresses) > 0, b.SubnetIds, b.NetworkSecurityGroupIds)
	for name, l := range b.Listeners {
		out.Listeners[name] = *l.DefaultBackendSetName
	}
	for name, set := range b.BackendSets {
		out.BackendSets = append(out.BackendSets, name)
		out.HealthPorts[name] = *set.HealthChecker.Port
		for _, x := range set.Backends {
			out.Ports[name] = *x.Port
			out.IPs[name] = append(out.IPs[name], *x.IpAddress)
		}
	}
	slices.Sort(out.BackendSets)
	return out
}

func readNLB(b nlbsdk.NetworkLoadBalancer) *Balancer {
	out := newBalancer(*b.Id, b.LifecycleState == nlbsdk.LifecycleStateActive && len(b.IpAddresses) > 0, []string{*b.SubnetId}, b.NetworkSecurityGroupIds)
	for name, l := range b.Listeners {
		out.Listeners[name] = *l.DefaultBackendSetName
	}
	for name, set := range b.BackendSets {
		out.BackendSets = append(out.BackendSets, name)
		out.HealthPorts[name] = *set.HealthChecker.Port
		for _, x := range set.Backends {
			out.Ports[name] = *x.Port
			out.IPs[name] = append(out.IPs[name], *x.IpAddress)
		}
	}
	slices.Sort(out.BackendSets)
	return out
}

func newBalancer(id string, active bool, subnets, groups []string) *Balancer {
	return &Balancer{
		ID: id, Active: active, Subnets: subnets, Groups: groups,
		Listeners: map[string]string{}, Ports: map[string]int{}, IPs: map[string][]string{}, HealthPorts: map[string]int{},
	}
}

// sanitised is the name by which that release matches listeners: HTTP counts as TCP, and what is behind the port, which once
// was the name of a Secret, does not count.
func sanitised(name string) string {
	parts := strings.Split(name, "-")
	if strings.EqualFold(parts[0], "HTTP") {
		parts[0] = "TCP"
	}
	keep := min(2, len(parts))
	if len(parts) > 2 && parts[2] == "IPv6" {
		keep = 3
	}
	return strings.Join(parts[:keep], "-")
}

// Unfound says what that release would not recognise of what a Service has: objects that it would make, or delete, at its
// first pass although the Service is as it was. It is empty if all is found.
func (r *Release) Unfound(svc *v1.Service) []string {
	b, err := r.Find(svc)
	if err != nil {
		return []string{err.Error()}
	}
	s := r.spec(svc)
	var out []string
	compare := func(what string, want, have []string) {
		for _, name := range want {
			if !slices.Contains(have, name) {
				out = append(out, "create "+what+" "+name)
			}
		}
		for _, name := range have {
			if !slices.Contains(want, name) {
				out = append(out, "delete "+what+" "+name)
			}
		}
	}
	var listeners, sets, have []string
	for _, p := range s.ports {
		listeners, sets = append(listeners, sanitised(p.listener)), append(sets, p.set)
	}
	for _, name := range slices.Sorted(maps.Keys(b.Listeners)) {
		have = append(have, sanitised(name))
	}
	compare("listener", listeners, have)
	compare("backend set", sets, b.BackendSets)
	for list, rules := range r.missing(svc, s, b.Subnets) {
		for _, rule := range rules {
			out = append(out, fmt.Sprintf("add %s to %s", rule, list))
		}
	}
	if modeOf(svc) == modeNSG {
		out = append(out, r.unfoundGroup(svc, s, b)...)
	}
	slices.Sort(out)
	return out
}

// unfoundGroup says what that release would make anew in the network security groups of a Service.
func (r *Release) unfoundGroup(svc *v1.Service, s spec, b *Balancer) []string {
	group, err := r.findGroup(svc, b.Groups)
	if err != nil {
		return []string{err.Error()}
	}
	var out []string
	for id, want := range s.groupRules(svc, *group.Id) {
		have := r.ownRules(svc, id)
		for _, rule := range want {
			if !slices.ContainsFunc(have, func(x core.SecurityRule) bool { return sameGroupRule(x, rule) }) {
				out = append(out, fmt.Sprintf("add %s to %s", groupRuleText(rule), id))
			}
		}
	}
	return out
}

// oldest is the security list that was made first.
func oldest(lists []core.SecurityList) core.SecurityList {
	return slices.MinFunc(lists, func(a, b core.SecurityList) int {
		return cmp.Or(a.TimeCreated.Compare(b.TimeCreated.Time), cmp.Compare(*a.Id, *b.Id))
	})
}
