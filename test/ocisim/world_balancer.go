// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package ocisim

import (
	"fmt"
	"path"
	"strconv"
	"strings"

	"github.com/oracle/oci-go-sdk/v65/common"
)

// LoadBalancer is a load balancer that exists from the start, with its addresses. Count makes that many equal ones; a
// %d in Name and in the values of free-form tags becomes their number, from 1.
type LoadBalancer struct {
	ID             string   `json:"id,omitempty"`
	Compartment    string   `json:"compartment,omitempty"`
	Name           string   `json:"name,omitempty"`
	Count          int      `json:"count,omitempty"`
	State          string   `json:"state,omitempty"`   // default ACTIVE
	Shape          string   `json:"shape,omitempty"`   // default flexible
	MinMbps        int      `json:"minMbps,omitempty"` // of the flexible shape; default 10
	MaxMbps        int      `json:"maxMbps,omitempty"` // default 100
	Subnets        []string `json:"subnets,omitempty"` // default: the first
	Private        bool     `json:"private,omitempty"`
	ReservedIP     string   `json:"reservedIp,omitempty"` // OCID or name of a seeded public IP
	SecurityGroups []string `json:"securityGroups,omitempty"`

	BackendSets []BackendSet `json:"backendSets,omitempty"`
	Listeners   []Listener   `json:"listeners,omitempty"`

	Tags `json:",inline"`
}

// NetworkLoadBalancer is the same for a network load balancer.
type NetworkLoadBalancer struct {
	ID             string   `json:"id,omitempty"`
	Compartment    string   `json:"compartment,omitempty"`
	Name           string   `json:"name,omitempty"`
	Count          int      `json:"count,omitempty"`
	State          string   `json:"state,omitempty"`  // default ACTIVE
	Subnet         string   `json:"subnet,omitempty"` // default: the first
	Private        bool     `json:"private,omitempty"`
	IPVersion      string   `json:"ipVersion,omitempty"` // IPV4 (default), IPV6 or IPV4_AND_IPV6
	PreserveSource bool     `json:"preserveSourceDestination,omitempty"`
	PrivateIP      string   `json:"privateIp,omitempty"`  // default: the next free one
	ReservedIP     string   `json:"reservedIp,omitempty"` // OCID or name of a seeded public IP
	SecurityGroups []string `json:"securityGroups,omitempty"`

	BackendSets []BackendSet `json:"backendSets,omitempty"`
	Listeners   []Listener   `json:"listeners,omitempty"`

	Tags `json:",inline"`
}

// BackendSet of a seeded balancer.
type BackendSet struct {
	Name     string `json:"name"`
	Policy   string `json:"policy,omitempty"`   // default ROUND_ROBIN, of a network load balancer FIVE_TUPLE
	Protocol string `json:"protocol,omitempty"` // of the health check; default TCP
	Port     int    `json:"port,omitempty"`     // of the health check; default: that of each backend
	URLPath  string `json:"urlPath,omitempty"`  // of the health check over HTTP
	// IPVersion is that of the backends of a network load balancer: IPV4 (default) or IPV6.
	IPVersion string    `json:"ipVersion,omitempty"`
	Backends  []Backend `json:"backends,omitempty"`
}

// Backend of a seeded backend set: an address, or instances. An instance's primary private address is the backend of
// a load balancer; a network load balancer refers to the instance itself.
type Backend struct {
	Address  string `json:"address,omitempty"`
	Instance string `json:"instance,omitempty"` // OCID, name, or a pattern such as "node-*"
	Port     int    `json:"port"`
	Weight   int    `json:"weight,omitempty"` // default 1
	Backup   bool   `json:"backup,omitempty"`
	Drain    bool   `json:"drain,omitempty"`
	Offline  bool   `json:"offline,omitempty"`
}

// Listener of a seeded balancer.
type Listener struct {
	Name       string `json:"name,omitempty"`     // default: protocol and port, "TCP-443"
	Protocol   string `json:"protocol,omitempty"` // default TCP
	Port       int    `json:"port"`
	BackendSet string `json:"backendSet,omitempty"` // default: the first of the balancer
	IPVersion  string `json:"ipVersion,omitempty"`  // of a network load balancer's listener; default IPV4
}

// AddLoadBalancer adds a load balancer, or Count of them, and returns the OCID of the last.
func (r *Region) AddLoadBalancer(b LoadBalancer) string { return add(r, b, seeder.loadBalancers) }

// AddNetworkLoadBalancer adds a network load balancer, or Count of them, and returns the OCID of the last.
func (r *Region) AddNetworkLoadBalancer(b NetworkLoadBalancer) string {
	return add(r, b, seeder.networkLoadBalancers)
}

// seededBackend is a backend with what its reference stood for.
type seededBackend struct {
	Backend

	instance string // OCID, "" for an address that is nobody's
}

func (b seededBackend) weight() *int {
	if b.Weight == 0 {
		return common.Int(1)
	}
	return common.Int(b.Weight)
}

// backends replaces instances and patterns by the primary addresses of the instances.
func (s seeder) backends(list []Backend) ([]seededBackend, error) {
	var out []seededBackend
	for _, b := range list {
		if b.Instance == "" {
			out = append(out, seededBackend{Backend: b})
			continue
		}
		found := 0
		for v := range instances.under(s.cl, "") {
			matches, err := path.Match(b.Instance, value(v.DisplayName))
			if err != nil {
				return nil, fmt.Errorf("seed: backend %q: %w", b.Instance, err)
			}
			if !matches && value(v.Id) != b.Instance {
				continue
			}
			one := seededBackend{Backend: b, instance: value(v.Id)}
			if one.Address, err = s.primaryAddress(one.instance); err != nil {
				return nil, err
			}
			out = append(out, one)
			found++
		}
		if found == 0 {
			return nil, fmt.Errorf("seed: no instance %q for a backend", b.Instance)
		}
	}
	return out, nil
}

func (s seeder) primaryAddress(instance string) (string, error) {
	for a := range vnicAttachments.under(s.cl, instance) {
		if v := vnics.find(s.cl, value(a.VnicId)); v != nil && value(v.IsPrimary) {
			return value(v.PrivateIp), nil
		}
	}
	return "", fmt.Errorf("seed: instance %s has no address for a backend", instance)
}

// groupIDs resolves the security groups of a balancer.
func (s seeder) groupIDs(references []string) ([]string, error) {
	if len(references) > maxGroupsPerVNIC {
		return nil, fmt.Errorf("seed: a balancer is in at most %d security groups", maxGroupsPerVNIC)
	}
	ids := make([]string, 0, len(references))
	for _, reference := range references {
		group, err := resolve(s.cl, securityGroups, reference)
		if err != nil {
			return nil, err
		}
		ids = append(ids, value(group.Id))
	}
	return ids, nil
}

// balancerSubnet resolves a subnet that a balancer can be in.
func (s seeder) balancerSubnet(reference string, private bool) (string, error) {
	subnet, err := resolve(s.cl, subnets, reference)
	if err != nil {
		return "", err
	}
	if !private && value(subnet.ProhibitPublicIpOnVnic) {
		return "", fmt.Errorf("seed: a public balancer in the private subnet %s", value(subnet.DisplayName))
	}
	return value(subnet.Id), nil
}

// reservedIP resolves a reserved address; "" stays "".
func (s seeder) reservedIP(reference string, private bool) (string, error) {
	if reference == "" {
		return "", nil
	}
	if private {
		return "", fmt.Errorf("seed: a private balancer with the public address %s", reference)
	}
	ip, err := resolve(s.cl, publicIPs, reference)
	if err != nil {
		return "", err
	}
	return value(ip.Id), nil
}

// repeat calls one for the numbers 1 to count, at least once. What can exist only once must not be shared.
func repeat(count int, name string, unique []string, one func(n int) (string, error)) (string, error) {
	if count > 1 {
		for _, u := range unique {
			if u != "" {
				return "", fmt.Errorf("seed: %d balancers %q cannot share %s", count, name, u)
			}
		}
	}
	var id string
	for n := 1; n <= max(count, 1); n++ {
		var err error
		if id, err = one(n); err != nil {
			return "", fmt.Errorf("seed: balancer %s: %w", numbered(name, n), err)
		}
	}
	return id, nil
}

// numbered replaces %d.
func numbered(pattern string, n int) string {
	return strings.ReplaceAll(pattern, "%d", strconv.Itoa(n))
}

// numberedTags replaces %d in the values of free-form tags.
func (t Tags) numberedTags(n int) map[string]string {
	tags := make(map[string]string, len(t.Freeform))
	for key, v := range t.Freeform {
		tags[key] = numbered(v, n)
	}
	return tags
}

// names are the name of a listener, "TCP-443" if the world gives none, and that of its backend set.
func (l Listener) names(sets []BackendSet) (name, set string) {
	set = l.BackendSet
	if set == "" && len(sets) > 0 {
		set = sets[0].Name
	}
	return orElse(l.Name, orElse(l.Protocol, "TCP")+"-"+strconv.Itoa(l.Port)), set
}
