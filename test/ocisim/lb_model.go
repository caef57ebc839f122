// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package ocisim

import (
	"net"
	"slices"
	"strconv"
	"strings"

	"github.com/oracle/oci-go-sdk/v65/common"
	"github.com/oracle/oci-go-sdk/v65/loadbalancer"
)

// Capacity of a load balancer and bounds of its settings: sources are in the API notes of the project.
const (
	maxLBBackendSets  = 16
	maxLBListeners    = 16
	maxLBListenerName = 255
	maxSetName        = 32
	maxIdleTimeout    = 7200 // s
	minMaxConnections = 256
)

var (
	lbPolicies  = []string{"ROUND_ROBIN", "LEAST_CONNECTIONS", "IP_HASH"}
	lbProtocols = []string{"HTTP", "HTTP2", "TCP", "GRPC"}
)

// checkBackendSet checks a backend set and fills the defaults in.
func (cl *cloud) checkBackendSet(v *loadbalancer.LoadBalancer, name string, set *loadbalancer.BackendSet) error {
	if err := checkSize("defaultBackendSetName", name, 1, maxSetName); err != nil {
		return err
	}
	if err := checkPattern("backend set name", name, partName); err != nil {
		return err
	}
	if !slices.Contains(lbPolicies, value(set.Policy)) {
		return errInvalid("policy must be one of %s, not '%s'", strings.Join(lbPolicies, ", "), value(set.Policy))
	}
	set.Name = common.String(name)
	if err := completeChecker(set.HealthChecker); err != nil {
		return err
	}
	if err := completeBackends(set); err != nil {
		return err
	}
	if err := checkPersistence(v, set); err != nil {
		return err
	}
	if err := cl.completeSSL(v, set.SslConfiguration, defaultSuite); err != nil {
		return err
	}
	if _, exists := v.BackendSets[name]; !exists && len(v.BackendSets) >= maxLBBackendSets {
		return errLimit("A load balancer has at most %d backend sets.", maxLBBackendSets)
	}
	counts := map[string]int{}
	for n, s := range v.BackendSets {
		counts[n] = len(s.Backends)
	}
	counts[name] = len(set.Backends)
	return checkBackendCount(counts)
}

// checkPersistence checks the session persistence of a backend set.
func checkPersistence(v *loadbalancer.LoadBalancer, set *loadbalancer.BackendSet) error {
	cookie := set.LbCookieSessionPersistenceConfiguration
	if cookie == nil {
		return nil
	}
	if set.SessionPersistenceConfiguration != nil {
		return errInvalid("sessionPersistenceConfiguration and lbCookieSessionPersistenceConfiguration are mutually exclusive")
	}
	if cookie.MaxAgeInSeconds != nil && *cookie.MaxAgeInSeconds < 1 {
		return errInvalid("maxAgeInSeconds must be at least 1")
	}
	for _, name := range sortedKeys(v.Listeners) {
		l := v.Listeners[name]
		if value(l.DefaultBackendSetName) == value(set.Name) && value(cookie.IsSecure) && plainHTTP(&l) {
			return errSecureCookie(value(set.Name), name)
		}
	}
	return nil
}

func plainHTTP(l *loadbalancer.Listener) bool {
	return value(l.Protocol) == "HTTP" && l.SslConfiguration == nil
}

// errSecureCookie is for the documented rule that a secure cookie does not go with an HTTP listener.
func errSecureCookie(set, listener string) error {
	return errInvalid("Backend set '%s' has a secure cookie and cannot be used by the HTTP listener '%s'.", set, listener)
}

// checkMaxConnections refuses what is neither without limit, 0, nor at least 256.
func checkMaxConnections(field string, n *int) error {
	if n == nil || *n == 0 || *n >= minMaxConnections {
		return nil
	}
	return errInvalid("%s must be 0 or at least %d", field, minMaxConnections)
}

func completeBackends(set *loadbalancer.BackendSet) error {
	seen := map[string]bool{}
	if set.Backends == nil {
		set.Backends = []loadbalancer.Backend{}
	}
	for i := range set.Backends {
		b := &set.Backends[i]
		if err := checkBackendAddress(value(b.IpAddress), value(b.Port)); err != nil {
			return err
		}
		key := net.JoinHostPort(value(b.IpAddress), strconv.Itoa(value(b.Port)))
		if seen[key] {
			return errInvalid("Duplicate backend %s in backend set '%s'.", key, value(set.Name))
		}
		seen[key] = true
		if value(b.Backup) && value(set.Policy) == "IP_HASH" {
			return errInvalid("A backup backend cannot be used with the policy IP_HASH.")
		}
		b.Name = common.String(value(b.IpAddress) + ":" + strconv.Itoa(value(b.Port)))
		b.Backup, b.Drain, b.Offline = orDefault(b.Backup, false), orDefault(b.Drain, false), orDefault(b.Offline, false)
		b.Weight = orDefault(b.Weight, 1)
		if err := checkNumber("backend weight", *b.Weight, 0, 100); err != nil {
			return err
		}
		if err := checkMaxConnections("maxConnections", b.MaxConnections); err != nil {
			return err
		}
	}
	return checkMaxConnections("backendMaxConnections", set.BackendMaxConnections)
}

// completeChecker fills in the service's defaults: the backend's port, 3 tries, 3 s, every 10 s.
func completeChecker(h *loadbalancer.HealthChecker) error {
	switch strings.ToUpper(value(h.Protocol)) {
	case "HTTP":
		if value(h.UrlPath) == "" {
			return errInvalid("URL path must be provided for HTTP health checks")
		}
		h.ReturnCode = orDefault(h.ReturnCode, 200)
	case "TCP":
		h.ReturnCode = orDefault(h.ReturnCode, 200)
	default:
		return errInvalid("health check protocol must be HTTP or TCP, not '%s'", value(h.Protocol))
	}
	h.Protocol = common.String(strings.ToUpper(*h.Protocol))
	h.Port, h.ResponseBodyRegex = orDefault(h.Port, 0), orDefault(h.ResponseBodyRegex, "")
	h.Retries, h.TimeoutInMillis = orDefault(h.Retries, 3), orDefault(h.TimeoutInMillis, 3000)
	h.IntervalInMillis = orDefault(h.IntervalInMillis, 10000)
	h.IsForcePlainText = orDefault(h.IsForcePlainText, false)
	if err := checkNumber("health check port", *h.Port, 0, 65535); err != nil {
		return err
	}
	if err := checkNumber("health check timeoutInMillis", *h.TimeoutInMillis, 1, 600000); err != nil {
		return err
	}
	return checkNumber("health check intervalInMillis", *h.IntervalInMillis, 1000, 1800000)
}

func orDefault[T any](p *T, fallback T) *T {
	if p == nil {
		return &fallback
	}
	return p
}

// checkListener checks a listener and fills the defaults in.
func (cl *cloud) checkListener(v *loadbalancer.LoadBalancer, name string, l *loadbalancer.Listener) error {
	if err := checkSize("listener name", name, 1, maxLBListenerName); err != nil {
		return err
	}
	if err := checkNumber("listener port", value(l.Port), 1, 65535); err != nil {
		return err
	}
	protocol := strings.ToUpper(value(l.Protocol))
	if !slices.Contains(lbProtocols, protocol) {
		return errInvalid("listener protocol must be one of %s, not '%s'", strings.Join(lbProtocols, ", "), value(l.Protocol))
	}
	l.Name, l.Protocol = common.String(name), common.String(protocol)
	set, ok := v.BackendSets[value(l.DefaultBackendSetName)]
	if !ok {
		return errInvalid("Backend set '%s' of listener '%s' does not exist.", value(l.DefaultBackendSetName), name)
	}
	if cookie := set.LbCookieSessionPersistenceConfiguration; cookie != nil && value(cookie.IsSecure) && plainHTTP(l) {
		return errSecureCookie(value(set.Name), name)
	}
	if err := cl.checkListenerReferences(v, name, l); err != nil {
		return err
	}
	if err := cl.checkListenerTLS(v, name, l); err != nil {
		return err
	}
	if err := checkConnection(l.ConnectionConfiguration); err != nil {
		return err
	}
	for _, other := range sortedKeys(v.Listeners) {
		if other != name && value(v.Listeners[other].Port) == value(l.Port) {
			o := v.Listeners[other]
			if err := cl.sharePort(&o, l); err != nil {
				return err
			}
		}
	}
	if _, exists := v.Listeners[name]; !exists && len(v.Listeners) >= maxLBListeners {
		return errLimit("A load balancer has at most %d listeners.", maxLBListeners)
	}
	return nil
}

// sharePort decides about two listeners on one port. Host names tell HTTP listeners apart, one of which may be without.
func (cl *cloud) sharePort(a, b *loadbalancer.Listener) error {
	situation := ListenersShareAPortByHostname
	if !isHTTP(a) || !isHTTP(b) || len(a.HostnameNames)+len(b.HostnameNames) == 0 {
		situation = ListenersShareAPort
	}
	for _, host := range a.HostnameNames {
		if contains(b.HostnameNames, host) {
			situation = ListenersShareAPort
		}
	}
	if (a.SslConfiguration == nil) != (b.SslConfiguration == nil) {
		situation = ListenersShareAPort
	}
	if err := cl.rule(situation, value(a.Name), value(b.Name), value(b.Port)); err != nil {
		return err
	}
	if a.SslConfiguration == nil || b.SslConfiguration == nil {
		return nil
	}
	one, other := slices.Sorted(slices.Values(a.SslConfiguration.Protocols)), slices.Sorted(slices.Values(b.SslConfiguration.Protocols))
	if !slices.Equal(one, other) {
		return cl.rule(ProtocolsOfAPortDiffer, value(a.Name), value(b.Name), value(b.Port))
	}
	return nil
}

// isHTTP says whether a listener understands the requests that it passes on.
func isHTTP(l *loadbalancer.Listener) bool { return value(l.Protocol) != "TCP" }

// checkListenerReferences refuses a listener that names what its load balancer does not have, or what it cannot use.
func (cl *cloud) checkListenerReferences(v *loadbalancer.LoadBalancer, name string, l *loadbalancer.Listener) error {
	for _, set := range l.RuleSetNames {
		if _, ok := v.RuleSets[set]; !ok {
			return errInvalid("Rule set '%s' of listener '%s' does not exist.", set, name)
		}
	}
	for _, host := range l.HostnameNames {
		if _, ok := v.Hostnames[host]; !ok {
			return errInvalid("Hostname '%s' of listener '%s' does not exist.", host, name)
		}
	}
	policy, routes := value(l.RoutingPolicyName), value(l.PathRouteSetName)
	if _, ok := v.RoutingPolicies[policy]; policy != "" && !ok {
		return errInvalid("Routing policy '%s' of listener '%s' does not exist.", policy, name)
	}
	if _, ok := v.PathRouteSets[routes]; routes != "" && !ok {
		return errInvalid("Path route set '%s' of listener '%s' does not exist.", routes, name)
	}
	if policy != "" && routes != "" {
		if err := cl.rule(TwoRoutings, name); err != nil {
			return err
		}
	}
	if isHTTP(l) {
		return nil
	}
	for _, needs := range [...]struct {
		what string
		has  bool
	}{{"host names", len(l.HostnameNames) > 0}, {"a routing policy", policy != ""}, {"a path route set", routes != ""}} {
		if needs.has {
			if err := cl.rule(HostnameNeedsHTTP, name, value(l.Protocol), needs.what); err != nil {
				return err
			}
		}
	}
	return nil
}

func checkConnection(c *loadbalancer.ConnectionConfiguration) error {
	if c == nil {
		return nil
	}
	if err := checkNumber("idleTimeout", int(value(c.IdleTimeout)), 1, maxIdleTimeout); err != nil {
		return err
	}
	if c.BackendTcpProxyProtocolVersion != nil {
		return checkNumber("backendTcpProxyProtocolVersion", *c.BackendTcpProxyProtocolVersion, 1, 2)
	}
	return nil
}
