// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package ocisim

import (
	"net/http"

	"github.com/oracle/oci-go-sdk/v65/common"
	"github.com/oracle/oci-go-sdk/v65/networkloadbalancer"
)

// maxNLBParts is the number of listeners, and of backend sets, of a network load balancer.
const maxNLBParts = 50

func createNLBBackendSet(c *call) (*answer, error) {
	d, err := decode[networkloadbalancer.CreateBackendSetDetails](c)
	if err != nil {
		return nil, err
	}
	return c.changeNLB(nlbChange{
		operation: networkloadbalancer.OperationTypeCreateBackendset,
		apply: func(cl *cloud, v *networkloadbalancer.NetworkLoadBalancer) error {
			if _, exists := v.BackendSets[value(d.Name)]; exists {
				return cl.rule(PartExists, "Backend set", value(d.Name))
			}
			return cl.putNLBBackendSet(v, value(d.Name), recast[networkloadbalancer.BackendSet](d))
		},
	})
}

// updateNLBBackendSet replaces what the request names and keeps the rest: all fields of the request are optional.
func updateNLBBackendSet(c *call) (*answer, error) {
	d, err := decode[networkloadbalancer.UpdateBackendSetDetails](c)
	if err != nil {
		return nil, err
	}
	name := c.param("backendSetName")
	return c.changeNLB(nlbChange{
		operation: networkloadbalancer.OperationTypeUpdateBackendset,
		apply: func(cl *cloud, v *networkloadbalancer.NetworkLoadBalancer) error {
			set, exists := v.BackendSets[name]
			if !exists {
				return errNotFound()
			}
			set = *cloneOf(&set)
			if d.Policy != nil {
				set.Policy = networkloadbalancer.NetworkLoadBalancingPolicyEnum(*d.Policy)
			}
			replace(&set.IsPreserveSource, d.IsPreserveSource)
			replace(&set.IsFailOpen, d.IsFailOpen)
			replace(&set.IsInstantFailoverEnabled, d.IsInstantFailoverEnabled)
			replace(&set.IsInstantFailoverTcpResetEnabled, d.IsInstantFailoverTcpResetEnabled)
			replace(&set.AreOperationallyActiveBackendsPreferred, d.AreOperationallyActiveBackendsPreferred)
			if d.IpVersion != "" {
				set.IpVersion = d.IpVersion
			}
			if d.HealthChecker != nil {
				set.HealthChecker = recast[*networkloadbalancer.HealthChecker](d.HealthChecker)
			}
			if d.Backends != nil {
				set.Backends = recast[[]networkloadbalancer.Backend](d.Backends)
			}
			return cl.putNLBBackendSet(v, name, set)
		},
	})
}

func deleteNLBBackendSet(c *call) (*answer, error) {
	name := c.param("backendSetName")
	return c.changeNLB(nlbChange{
		operation: networkloadbalancer.OperationTypeDeleteBackendset,
		apply: func(cl *cloud, v *networkloadbalancer.NetworkLoadBalancer) error {
			if _, exists := v.BackendSets[name]; !exists {
				return errNotFound()
			}
			for _, l := range sortedKeys(v.Listeners) {
				if value(v.Listeners[l].DefaultBackendSetName) == name {
					if err := cl.rule(BackendSetInUse, name, "listener", l); err != nil {
						return err
					}
				}
			}
			delete(v.BackendSets, name)
			return nil
		},
	})
}

func createNLBListener(c *call) (*answer, error) {
	d, err := decode[networkloadbalancer.CreateListenerDetails](c)
	if err != nil {
		return nil, err
	}
	return c.changeNLB(nlbChange{
		operation: networkloadbalancer.OperationTypeCreateListener,
		apply: func(cl *cloud, v *networkloadbalancer.NetworkLoadBalancer) error {
			if _, exists := v.Listeners[value(d.Name)]; exists {
				return cl.rule(PartExists, "Listener", value(d.Name))
			}
			return cl.putNLBListener(v, value(d.Name), recast[networkloadbalancer.Listener](d))
		},
	})
}

func updateNLBListener(c *call) (*answer, error) {
	d, err := decode[networkloadbalancer.UpdateListenerDetails](c)
	if err != nil {
		return nil, err
	}
	name := c.param("listenerName")
	return c.changeNLB(nlbChange{
		operation: networkloadbalancer.OperationTypeUpdateListener,
		apply: func(cl *cloud, v *networkloadbalancer.NetworkLoadBalancer) error {
			l, exists := v.Listeners[name]
			if !exists {
				return errNotFound()
			}
			replace(&l.DefaultBackendSetName, d.DefaultBackendSetName)
			replace(&l.Port, d.Port)
			replace(&l.IsPpv2Enabled, d.IsPpv2Enabled)
			replace(&l.TcpIdleTimeout, d.TcpIdleTimeout)
			replace(&l.UdpIdleTimeout, d.UdpIdleTimeout)
			replace(&l.L3IpIdleTimeout, d.L3IpIdleTimeout)
			if d.Protocol != "" {
				l.Protocol = d.Protocol
			}
			if d.IpVersion != "" {
				l.IpVersion = d.IpVersion
			}
			return cl.putNLBListener(v, name, l)
		},
	})
}

func deleteNLBListener(c *call) (*answer, error) {
	name := c.param("listenerName")
	return c.changeNLB(nlbChange{
		operation: networkloadbalancer.OperationTypeDeleteListener,
		apply: func(_ *cloud, v *networkloadbalancer.NetworkLoadBalancer) error {
			if _, exists := v.Listeners[name]; !exists {
				return errNotFound()
			}
			delete(v.Listeners, name)
			return nil
		},
	})
}

// putNLBBackendSet checks a backend set, fills the defaults in, and stores it.
func (cl *cloud) putNLBBackendSet(v *networkloadbalancer.NetworkLoadBalancer, name string, set networkloadbalancer.BackendSet) error {
	if err := checkSize("backendSetName", name, 1, maxSetName); err != nil {
		return err
	}
	if err := checkPattern("backend set name", name, partName); err != nil {
		return err
	}
	set.Name = common.String(name)
	if set.Policy == "" {
		set.Policy = networkloadbalancer.NetworkLoadBalancingPolicyFiveTuple
	}
	if _, known := networkloadbalancer.GetMappingNetworkLoadBalancingPolicyEnum(string(set.Policy)); !known {
		return errInvalid("policy '%s' is not known", set.Policy)
	}
	set.IsPreserveSource = orDefault(set.IsPreserveSource, true)
	if value(v.IsPreserveSourceDestination) && !*set.IsPreserveSource {
		return errInvalid("isPreserveSource cannot be false while isPreserveSourceDestination is on")
	}
	set.IsFailOpen = orDefault(set.IsFailOpen, false)
	if set.IpVersion == "" {
		set.IpVersion = networkloadbalancer.IpVersionIpv4
	}
	if err := cl.completeNLBBackends(v, &set); err != nil {
		return err
	}
	if err := completeNLBChecker(&set); err != nil {
		return err
	}
	v.BackendSets[name] = set
	if len(v.BackendSets) > maxNLBParts {
		return errLimit("A network load balancer has at most %d backend sets.", maxNLBParts)
	}
	counts := map[string]int{}
	for n, s := range v.BackendSets {
		counts[n] = len(s.Backends)
	}
	return checkBackendCount(counts)
}

func (cl *cloud) completeNLBBackends(v *networkloadbalancer.NetworkLoadBalancer, set *networkloadbalancer.BackendSet) error {
	seen, named := map[string]bool{}, map[string]bool{}
	if set.Backends == nil {
		set.Backends = []networkloadbalancer.Backend{}
	}
	for i := range set.Backends {
		b := &set.Backends[i]
		target := value(b.TargetId)
		switch {
		case b.IpAddress == nil && target == "":
			return errInvalid("A backend needs an ipAddress or a targetId.")
		case b.IpAddress != nil:
			if err := checkBackendAddress(*b.IpAddress, value(b.Port)); err != nil {
				return err
			}
		default:
			if err := checkNumber("backend port", value(b.Port), 0, 65535); err != nil {
				return err
			}
		}
		if target != "" && instances.find(cl, target) == nil && privateIPs.find(cl, target) == nil && ipv6s.find(cl, target) == nil {
			return errRelated(target)
		}
		if value(b.Name) == "" {
			b.Name = common.String(backendName(orElse(target, value(b.IpAddress)), value(b.Port)))
		}
		if err := checkSize("backend name", *b.Name, 1, maxLBListenerName); err != nil {
			return err
		}
		key := backendName(orElse(value(b.IpAddress), target), value(b.Port))
		if seen[key] {
			return &APIError{
				Status: http.StatusConflict, Code: "NotAuthorizedOrResourceAlreadyExists",
				Message: "Conflict. For nlb-id " + value(v.Id) + " Duplicate backend IP/id + port combinations not allowed: " + key,
			}
		}
		seen[key] = true
		if named[*b.Name] {
			return cl.rule(PartExists, "Backend", *b.Name)
		}
		named[*b.Name] = true
		b.Weight = orDefault(b.Weight, 1)
		b.IsBackup, b.IsDrain, b.IsOffline = orDefault(b.IsBackup, false), orDefault(b.IsDrain, false), orDefault(b.IsOffline, false)
	}
	return nil
}

// completeNLBChecker fills in the documented defaults: 3 tries, 3 s, every 10 s. A check without a port needs
// backends with one.
func completeNLBChecker(set *networkloadbalancer.BackendSet) error {
	h := set.HealthChecker
	h.Retries, h.TimeoutInMillis = orDefault(h.Retries, 3), orDefault(h.TimeoutInMillis, 3000)
	h.IntervalInMillis, h.Port = orDefault(h.IntervalInMillis, 10000), orDefault(h.Port, 0)
	http := h.Protocol == networkloadbalancer.HealthCheckProtocolsHttp || h.Protocol == networkloadbalancer.HealthCheckProtocolsHttps
	if http && value(h.UrlPath) == "" {
		return errInvalid("URL path must be provided for HTTP health checks")
	}
	if http {
		h.ReturnCode = orDefault(h.ReturnCode, 200)
	}
	if err := checkNumber("health check intervalInMillis", *h.IntervalInMillis, 10000, 1800000); err != nil {
		return err
	}
	if *h.Port != 0 {
		return checkNumber("health check port", *h.Port, 1, 65535)
	}
	for _, b := range set.Backends {
		if value(b.Port) == 0 {
			return errInvalid("The health check of backend set '%s' needs a port, because its backends have none.", value(set.Name))
		}
	}
	return nil
}

// putNLBListener checks a listener and stores it.
func (cl *cloud) putNLBListener(v *networkloadbalancer.NetworkLoadBalancer, name string, l networkloadbalancer.Listener) error {
	if err := checkSize("listener name", name, 1, maxLBListenerName); err != nil {
		return err
	}
	low := 1
	if l.Protocol == networkloadbalancer.ListenerProtocolsAny || l.Protocol == networkloadbalancer.ListenerProtocolsL3Ip {
		low = 0
	}
	if err := checkNumber("listener port", value(l.Port), low, 65535); err != nil {
		return err
	}
	l.Name = common.String(name)
	if l.IpVersion == "" {
		l.IpVersion = networkloadbalancer.IpVersionIpv4
	}
	set, ok := v.BackendSets[value(l.DefaultBackendSetName)]
	if !ok {
		return errInvalid("Backend set '%s' of listener '%s' does not exist.", value(l.DefaultBackendSetName), name)
	}
	if set.IpVersion != l.IpVersion {
		return errInvalid("Listener '%s' is %s, its backend set '%s' is %s.", name, l.IpVersion, value(set.Name), set.IpVersion)
	}
	if string(l.IpVersion) != string(v.NlbIpVersion) && v.NlbIpVersion != networkloadbalancer.NlbIpVersionIpv4AndIpv6 {
		return errInvalid("Listener '%s' is %s, the network load balancer is %s.", name, l.IpVersion, v.NlbIpVersion)
	}
	for _, other := range sortedKeys(v.Listeners) {
		o := v.Listeners[other]
		if other == name || value(o.Port) != value(l.Port) || o.IpVersion != l.IpVersion {
			continue
		}
		if o.Protocol == l.Protocol {
			return errInvalid("Listeners '%s' and '%s' use the same port %d and protocol %s.", other, name, value(l.Port), l.Protocol)
		}
		if err := cl.rule(NLBListenersShareAPort, other, name, value(l.Port)); err != nil {
			return err
		}
	}
	v.Listeners[name] = l
	if len(v.Listeners) > maxNLBParts {
		return errLimit("A network load balancer has at most %d listeners.", maxNLBParts)
	}
	return nil
}
