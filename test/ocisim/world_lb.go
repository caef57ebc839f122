// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package ocisim

import (
	"fmt"
	"maps"

	"github.com/oracle/oci-go-sdk/v65/common"
	"github.com/oracle/oci-go-sdk/v65/loadbalancer"
	"github.com/oracle/oci-go-sdk/v65/networkloadbalancer"
)

// loadBalancers adds a load balancer or, with Count, several, and returns the last one's identifier. Their parts are
// checked once, as those of a create are.
func (s seeder) loadBalancers(b LoadBalancer) (string, error) {
	template, err := s.loadBalancerTemplate(b)
	if err != nil {
		return "", err
	}
	reserved, err := s.reservedIP(b.ReservedIP, b.Private)
	if err != nil {
		return "", err
	}
	return repeat(b.Count, b.Name, []string{b.ID, b.ReservedIP}, func(n int) (string, error) {
		id, err := s.newID(b.ID, loadBalancers.ocidType)
		if err != nil {
			return "", err
		}
		v := *template
		v.Id, v.DisplayName = common.String(id), common.String(orElse(numbered(b.Name, n), "loadbalancer"+s.cl.nameSuffix()))
		v.FreeformTags, v.DefinedTags = b.numberedTags(n), maps.Clone(b.defined())
		var own []loadbalancer.ReservedIp
		if reserved != "" {
			own = []loadbalancer.ReservedIp{{Id: common.String(reserved)}}
		}
		if v.IpAddresses, err = s.cl.loadBalancerAddresses(&v, own); err != nil {
			return "", err
		}
		loadBalancers.insert(s.cl, &v)
		return id, nil
	})
}

// loadBalancerTemplate is the load balancer without what each one has of its own.
func (s seeder) loadBalancerTemplate(b LoadBalancer) (*loadbalancer.LoadBalancer, error) {
	compartment, err := s.compartmentOf(b.Compartment, "")
	if err != nil {
		return nil, err
	}
	details := &loadbalancer.ShapeDetails{
		MinimumBandwidthInMbps: common.Int(10), MaximumBandwidthInMbps: common.Int(max(100, b.MinMbps)),
	}
	replaceNumber(&details.MinimumBandwidthInMbps, b.MinMbps)
	replaceNumber(&details.MaximumBandwidthInMbps, b.MaxMbps)
	shape, err := shapeOf(orElse(b.Shape, flexibleShape), details)
	if err != nil {
		return nil, fmt.Errorf("seed: load balancer %s: %w", b.Name, err)
	}
	v := &loadbalancer.LoadBalancer{
		CompartmentId: common.String(compartment), TimeCreated: s.cl.sdkTime(),
		LifecycleState: loadbalancer.LoadBalancerLifecycleStateEnum(orElse(b.State, string(loadbalancer.LoadBalancerLifecycleStateActive))),
		ShapeName:      common.String(shape.name), ShapeDetails: shape.details, IsPrivate: common.Bool(b.Private),
		IsDeleteProtectionEnabled: common.Bool(false), IpMode: loadbalancer.LoadBalancerIpModeIpv4,
		Listeners: map[string]loadbalancer.Listener{}, BackendSets: map[string]loadbalancer.BackendSet{},
		Certificates: map[string]loadbalancer.Certificate{}, RuleSets: map[string]loadbalancer.RuleSet{},
	}
	if v.NetworkSecurityGroupIds, err = s.groupIDs(b.SecurityGroups); err != nil {
		return nil, err
	}
	if len(b.Subnets) == 0 {
		b.Subnets = []string{""}
	}
	for _, reference := range b.Subnets {
		id, err := s.balancerSubnet(reference, b.Private)
		if err != nil {
			return nil, err
		}
		v.SubnetIds = append(v.SubnetIds, id)
	}
	if err := s.fillLoadBalancer(v, b); err != nil {
		return nil, fmt.Errorf("seed: load balancer %s: %w", b.Name, err)
	}
	return v, nil
}

func replaceNumber(field **int, n int) {
	if n != 0 {
		*field = common.Int(n)
	}
}

func (s seeder) fillLoadBalancer(v *loadbalancer.LoadBalancer, b LoadBalancer) error {
	for _, set := range b.BackendSets {
		list, err := s.backends(set.Backends)
		if err != nil {
			return err
		}
		model := loadbalancer.BackendSet{
			Policy: common.String(orElse(set.Policy, "ROUND_ROBIN")),
			HealthChecker: &loadbalancer.HealthChecker{
				Protocol: common.String(orElse(set.Protocol, "TCP")), Port: common.Int(set.Port),
			},
		}
		if set.URLPath != "" {
			model.HealthChecker.UrlPath = common.String(set.URLPath)
		}
		for _, backend := range list {
			model.Backends = append(model.Backends, loadbalancer.Backend{
				IpAddress: common.String(backend.Address), Port: common.Int(backend.Port), Weight: backend.weight(),
				Backup: common.Bool(backend.Backup), Drain: common.Bool(backend.Drain), Offline: common.Bool(backend.Offline),
			})
		}
		if err := s.cl.putBackendSet(v, set.Name, model); err != nil {
			return err
		}
	}
	for _, l := range b.Listeners {
		name, set := l.names(b.BackendSets)
		err := s.cl.putListener(v, name, loadbalancer.Listener{
			DefaultBackendSetName: common.String(set), Port: common.Int(l.Port), Protocol: common.String(orElse(l.Protocol, "TCP")),
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// networkLoadBalancers is loadBalancers for network load balancers.
func (s seeder) networkLoadBalancers(b NetworkLoadBalancer) (string, error) {
	template, err := s.nlbTemplate(b)
	if err != nil {
		return "", err
	}
	reserved, err := s.reservedIP(b.ReservedIP, b.Private)
	if err != nil {
		return "", err
	}
	wanted := &networkloadbalancer.CreateNetworkLoadBalancerDetails{}
	if reserved != "" {
		wanted.ReservedIps = []networkloadbalancer.ReservedIp{{Id: common.String(reserved)}}
	}
	if b.PrivateIP != "" {
		wanted.AssignedPrivateIpv4 = common.String(b.PrivateIP)
	}
	return repeat(b.Count, b.Name, []string{b.ID, b.ReservedIP, b.PrivateIP}, func(n int) (string, error) {
		id, err := s.newID(b.ID, networkLoadBalancers.ocidType)
		if err != nil {
			return "", err
		}
		v := *template
		v.Id, v.DisplayName = common.String(id), common.String(orElse(numbered(b.Name, n), "networkloadbalancer"+s.cl.nameSuffix()))
		v.FreeformTags, v.DefinedTags = b.numberedTags(n), maps.Clone(b.defined())
		if v.IpAddresses, err = s.cl.nlbAddresses(&v, wanted); err != nil {
			return "", err
		}
		networkLoadBalancers.insert(s.cl, &v)
		return id, nil
	})
}

func (s seeder) nlbTemplate(b NetworkLoadBalancer) (*networkloadbalancer.NetworkLoadBalancer, error) {
	compartment, err := s.compartmentOf(b.Compartment, "")
	if err != nil {
		return nil, err
	}
	subnet, err := s.balancerSubnet(b.Subnet, b.Private)
	if err != nil {
		return nil, err
	}
	v := &networkloadbalancer.NetworkLoadBalancer{
		CompartmentId: common.String(compartment), TimeCreated: s.cl.sdkTime(), TimeUpdated: s.cl.sdkTime(),
		LifecycleState: networkloadbalancer.LifecycleStateEnum(orElse(b.State, string(networkloadbalancer.LifecycleStateActive))),
		SubnetId:       common.String(subnet), IsPrivate: common.Bool(b.Private),
		NlbIpVersion:                networkloadbalancer.NlbIpVersionEnum(orElse(b.IPVersion, string(networkloadbalancer.NlbIpVersionIpv4))),
		IsPreserveSourceDestination: common.Bool(b.PreserveSource), IsSymmetricHashEnabled: common.Bool(false),
		Listeners: map[string]networkloadbalancer.Listener{}, BackendSets: map[string]networkloadbalancer.BackendSet{},
	}
	if v.NetworkSecurityGroupIds, err = s.groupIDs(b.SecurityGroups); err != nil {
		return nil, err
	}
	if _, known := networkloadbalancer.GetMappingNlbIpVersionEnum(string(v.NlbIpVersion)); !known {
		return nil, fmt.Errorf("seed: network load balancer %s: unknown IP version %q", b.Name, b.IPVersion)
	}
	if err := checkFamilies(subnets.find(s.cl, subnet), v.NlbIpVersion); err != nil {
		return nil, fmt.Errorf("seed: network load balancer %s: %w", b.Name, err)
	}
	if err := s.fillNLB(v, b); err != nil {
		return nil, fmt.Errorf("seed: network load balancer %s: %w", b.Name, err)
	}
	return v, nil
}

func (s seeder) fillNLB(v *networkloadbalancer.NetworkLoadBalancer, b NetworkLoadBalancer) error {
	for _, set := range b.BackendSets {
		list, err := s.backends(set.Backends)
		if err != nil {
			return err
		}
		model := networkloadbalancer.BackendSet{
			Policy: networkloadbalancer.NetworkLoadBalancingPolicyEnum(set.Policy), IpVersion: networkloadbalancer.IpVersionEnum(set.IPVersion),
			HealthChecker: &networkloadbalancer.HealthChecker{
				Protocol: networkloadbalancer.HealthCheckProtocolsEnum(orElse(set.Protocol, "TCP")), Port: common.Int(set.Port),
			},
		}
		if set.URLPath != "" {
			model.HealthChecker.UrlPath = common.String(set.URLPath)
		}
		for _, backend := range list {
			one := networkloadbalancer.Backend{
				Port: common.Int(backend.Port), Weight: backend.weight(), IsBackup: common.Bool(backend.Backup),
				IsDrain: common.Bool(backend.Drain), IsOffline: common.Bool(backend.Offline),
			}
			if backend.instance != "" {
				one.TargetId = common.String(backend.instance)
			} else {
				one.IpAddress = common.String(backend.Address)
			}
			model.Backends = append(model.Backends, one)
		}
		if err := s.cl.putNLBBackendSet(v, set.Name, model); err != nil {
			return err
		}
	}
	for _, l := range b.Listeners {
		name, set := l.names(b.BackendSets)
		err := s.cl.putNLBListener(v, name, networkloadbalancer.Listener{
			DefaultBackendSetName: common.String(set), Port: common.Int(l.Port),
			Protocol:  networkloadbalancer.ListenerProtocolsEnum(orElse(l.Protocol, "TCP")),
			IpVersion: networkloadbalancer.IpVersionEnum(l.IPVersion),
		})
		if err != nil {
			return err
		}
	}
	return nil
}
