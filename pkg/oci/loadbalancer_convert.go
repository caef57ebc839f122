// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package oci

import (
	"net/netip"
	"strings"

	lb "github.com/oracle/oci-go-sdk/v65/loadbalancer"
)

// The load balancer's PUT bodies replace the whole sub-resource. They are built from the object as it was read (origin),
// so that what the domain types do not model stays, with the modelled fields laid over it.

const (
	// lbIPModeDual is how the load balancer API names a balancer with an address of either family; it has no third value.
	lbIPModeDual = string(lb.LoadBalancerIpModeIpv6)

	// Idle timeouts that the service uses when none is given (OCI documentation, "Connection Management").
	lbIdleTimeoutTCPSeconds  = 300
	lbIdleTimeoutHTTPSeconds = 60
)

func lbFromSDK(l lb.LoadBalancer) *Balancer {
	b := &Balancer{
		Kind:             KindLB,
		ID:               value(l.Id),
		CompartmentID:    value(l.CompartmentId),
		DisplayName:      value(l.DisplayName),
		State:            string(l.LifecycleState),
		TimeCreated:      timeValue(l.TimeCreated),
		SubnetIDs:        l.SubnetIds,
		Private:          value(l.IsPrivate),
		NSGIDs:           l.NetworkSecurityGroupIds,
		IPMode:           string(l.IpMode),
		Shape:            lbShapeFromSDK(l.ShapeName, l.ShapeDetails),
		BackendSets:      make(map[string]BackendSet, len(l.BackendSets)),
		Listeners:        make(map[string]Listener, len(l.Listeners)),
		RuleSets:         make(map[string]RuleSet, len(l.RuleSets)),
		Certificates:     make(map[string]Certificate, len(l.Certificates)),
		DeleteProtection: value(l.IsDeleteProtectionEnabled),
		Tags:             Tags{Freeform: l.FreeformTags, Defined: l.DefinedTags},
	}
	for _, ip := range l.IpAddresses {
		a := BalancerAddress{IP: value(ip.IpAddress), Public: value(ip.IsPublic)}
		if ip.ReservedIp != nil {
			a.ReservedID = value(ip.ReservedIp.Id)
		}
		b.Addresses = append(b.Addresses, a)
	}
	if b.IPMode == lbIPModeDual && bothFamilies(b.Addresses) {
		b.IPMode = IPModeDual
	}
	for name, bs := range l.BackendSets {
		b.BackendSets[name] = lbBackendSetFromSDK(name, bs)
	}
	for name, listener := range l.Listeners {
		b.Listeners[name] = lbListenerFromSDK(name, listener)
	}
	for name, set := range l.RuleSets {
		b.RuleSets[name] = lbRuleSetFromSDK(name, set)
	}
	for name, c := range l.Certificates {
		b.Certificates[name] = lbCertificateFromSDK(name, c)
	}
	return b
}

func bothFamilies(addresses []BalancerAddress) bool {
	var v4, v6 bool
	for _, a := range addresses {
		ip, err := netip.ParseAddr(a.IP)
		v4 = v4 || err == nil && ip.Is4()
		v6 = v6 || err == nil && ip.Is6()
	}
	return v4 && v6
}

func lbShapeFromSDK(name *string, d *lb.ShapeDetails) *Shape {
	if name == nil {
		return nil
	}
	s := &Shape{Name: *name}
	if d != nil {
		s.MinMbps, s.MaxMbps = value(d.MinimumBandwidthInMbps), value(d.MaximumBandwidthInMbps)
	}
	return s
}

func lbBackendSetFromSDK(name string, bs lb.BackendSet) BackendSet {
	out := BackendSet{Name: name, Policy: value(bs.Policy), SSL: lbSSLFromSDK(bs.SslConfiguration), origin: &bs}
	if h := bs.HealthChecker; h != nil {
		out.Checker = HealthChecker{
			Protocol:          value(h.Protocol),
			Port:              value(h.Port),
			URLPath:           value(h.UrlPath),
			ReturnCode:        value(h.ReturnCode),
			Retries:           value(h.Retries),
			TimeoutMillis:     value(h.TimeoutInMillis),
			IntervalMillis:    value(h.IntervalInMillis),
			ResponseBodyRegex: value(h.ResponseBodyRegex),
			ForcePlainText:    h.IsForcePlainText,
		}
	}
	for i := range bs.Backends {
		out.Backends = append(out.Backends, lbBackendFromSDK(bs.Backends[i]))
	}
	return out
}

func lbBackendFromSDK(b lb.Backend) Backend {
	return Backend{
		IP:      value(b.IpAddress),
		Port:    value(b.Port),
		Weight:  value(b.Weight),
		Backup:  value(b.Backup),
		Drain:   value(b.Drain),
		Offline: value(b.Offline),
		origin:  &b,
	}
}

func lbListenerFromSDK(name string, l lb.Listener) Listener {
	out := Listener{
		Name:           name,
		BackendSetName: value(l.DefaultBackendSetName),
		Port:           value(l.Port),
		Protocol:       value(l.Protocol),
		SSL:            lbSSLFromSDK(l.SslConfiguration),
		RuleSetNames:   l.RuleSetNames,
		origin:         &l,
	}
	if c := l.ConnectionConfiguration; c != nil {
		out.IdleTimeoutSeconds = c.IdleTimeout
		out.ProxyProtocolVersion = c.BackendTcpProxyProtocolVersion
	}
	return out
}

func lbSSLFromSDK(s *lb.SslConfiguration) *SSL {
	if s == nil {
		return nil
	}
	return &SSL{
		CertificateName:       value(s.CertificateName),
		CipherSuiteName:       value(s.CipherSuiteName),
		Protocols:             s.Protocols,
		VerifyDepth:           value(s.VerifyDepth),
		VerifyPeerCertificate: value(s.VerifyPeerCertificate),
	}
}

// lbCreateDetails is the body of a create. The private flag is always sent: the two kinds of balancer have different
// defaults.
func lbCreateDetails(b *Balancer) lb.CreateLoadBalancerDetails {
	d := lb.CreateLoadBalancerDetails{
		CompartmentId:             &b.CompartmentID,
		DisplayName:               &b.DisplayName,
		SubnetIds:                 orEmpty(b.SubnetIDs),
		IsPrivate:                 &b.Private,
		IsDeleteProtectionEnabled: present(b.DeleteProtection),
		IpMode:                    lb.CreateLoadBalancerDetailsIpModeEnum(lbIPMode(b.IPMode)),
		NetworkSecurityGroupIds:   b.NSGIDs,
		FreeformTags:              b.Freeform,
		DefinedTags:               b.Defined,
		BackendSets:               make(map[string]lb.BackendSetDetails, len(b.BackendSets)),
		Listeners:                 make(map[string]lb.ListenerDetails, len(b.Listeners)),
	}
	shape := value(b.Shape)
	d.ShapeName, d.ShapeDetails = &shape.Name, lbShapeDetails(shape)
	for _, id := range b.ReservedIPIDs {
		d.ReservedIps = append(d.ReservedIps, lb.ReservedIp{Id: &id})
	}
	for name, bs := range b.BackendSets {
		d.BackendSets[name] = lbBackendSetDetails(bs)
	}
	for name, l := range b.Listeners {
		d.Listeners[name] = lbListenerDetails(l)
	}
	for name, set := range b.RuleSets {
		if d.RuleSets == nil {
			d.RuleSets = make(map[string]lb.RuleSetDetails, len(b.RuleSets))
		}
		d.RuleSets[name] = lb.RuleSetDetails{Items: lbRules(set)}
	}
	d.Certificates = lbCertificates(b.Certificates)
	return d
}

func lbIPMode(mode string) string {
	if mode == IPModeDual {
		return lbIPModeDual
	}
	return mode
}

// lbShapeDetails are the bounds of a flexible shape; the fixed shapes have none.
func lbShapeDetails(s Shape) *lb.ShapeDetails {
	if !strings.EqualFold(s.Name, ShapeFlexible) {
		return nil
	}
	return &lb.ShapeDetails{MinimumBandwidthInMbps: &s.MinMbps, MaximumBandwidthInMbps: &s.MaxMbps}
}

func lbBackendSetDetails(bs BackendSet) lb.BackendSetDetails {
	have := originOf[lb.BackendSet](bs.origin)
	existing := lbBackendSetFromSDK(bs.Name, *have).Backends
	backends := make([]lb.BackendDetails, 0, len(bs.Backends))
	for _, b := range bs.Backends {
		backends = append(backends, lbBackendDetails(b, existing))
	}
	return lb.BackendSetDetails{
		Policy:                                  &bs.Policy,
		HealthChecker:                           lbHealthCheckerDetails(value(have.HealthChecker), bs.Checker),
		Backends:                                backends,
		BackendMaxConnections:                   have.BackendMaxConnections,
		SslConfiguration:                        lbSSLDetails(have.SslConfiguration, bs.SSL),
		SessionPersistenceConfiguration:         have.SessionPersistenceConfiguration,
		LbCookieSessionPersistenceConfiguration: have.LbCookieSessionPersistenceConfiguration,
	}
}

func lbCreateBackendSetDetails(bs BackendSet) lb.CreateBackendSetDetails {
	d := lbBackendSetDetails(bs)
	return lb.CreateBackendSetDetails{
		Name:                                    &bs.Name,
		Policy:                                  d.Policy,
		HealthChecker:                           d.HealthChecker,
		Backends:                                d.Backends,
		BackendMaxConnections:                   d.BackendMaxConnections,
		SslConfiguration:                        d.SslConfiguration,
		SessionPersistenceConfiguration:         d.SessionPersistenceConfiguration,
		LbCookieSessionPersistenceConfiguration: d.LbCookieSessionPersistenceConfiguration,
	}
}

func lbUpdateBackendSetDetails(bs BackendSet) lb.UpdateBackendSetDetails {
	d := lbBackendSetDetails(bs)
	return lb.UpdateBackendSetDetails{
		Policy:                                  d.Policy,
		Backends:                                d.Backends,
		HealthChecker:                           d.HealthChecker,
		BackendMaxConnections:                   d.BackendMaxConnections,
		SslConfiguration:                        d.SslConfiguration,
		SessionPersistenceConfiguration:         d.SessionPersistenceConfiguration,
		LbCookieSessionPersistenceConfiguration: d.LbCookieSessionPersistenceConfiguration,
	}
}

func lbHealthCheckerDetails(have lb.HealthChecker, h HealthChecker) *lb.HealthCheckerDetails {
	return &lb.HealthCheckerDetails{
		Protocol:          &h.Protocol,
		Port:              overlayZero(have.Port, h.Port),
		UrlPath:           overlay(have.UrlPath, h.URLPath),
		ReturnCode:        overlay(have.ReturnCode, h.ReturnCode),
		Retries:           overlay(have.Retries, h.Retries),
		TimeoutInMillis:   overlay(have.TimeoutInMillis, h.TimeoutMillis),
		IntervalInMillis:  overlay(have.IntervalInMillis, h.IntervalMillis),
		ResponseBodyRegex: overlay(have.ResponseBodyRegex, h.ResponseBodyRegex),
		IsForcePlainText:  h.ForcePlainText,
	}
}

func lbBackendDetails(b Backend, existing []Backend) lb.BackendDetails {
	b, origin := resolveBackend(b, existing)
	have := originOf[lb.Backend](origin)
	return lb.BackendDetails{
		IpAddress:      &b.IP,
		Port:           &b.Port,
		Weight:         overlay(have.Weight, b.Weight),
		MaxConnections: have.MaxConnections,
		Backup:         overlayZero(have.Backup, b.Backup),
		Drain:          overlayZero(have.Drain, b.Drain),
		Offline:        overlayZero(have.Offline, b.Offline),
	}
}

func lbListenerDetails(l Listener) lb.ListenerDetails {
	have := originOf[lb.Listener](l.origin)
	return lb.ListenerDetails{
		DefaultBackendSetName:   &l.BackendSetName,
		Port:                    &l.Port,
		Protocol:                &l.Protocol,
		HostnameNames:           have.HostnameNames,
		PathRouteSetName:        have.PathRouteSetName,
		SslConfiguration:        lbSSLDetails(have.SslConfiguration, l.SSL),
		ConnectionConfiguration: lbConnectionConfiguration(have.ConnectionConfiguration, l),
		RoutingPolicyName:       have.RoutingPolicyName,
		RuleSetNames:            overlayList(have.RuleSetNames, l.RuleSetNames),
	}
}

func lbCreateListenerDetails(l Listener) lb.CreateListenerDetails {
	d := lbListenerDetails(l)
	return lb.CreateListenerDetails{
		Name:                    &l.Name,
		DefaultBackendSetName:   d.DefaultBackendSetName,
		Port:                    d.Port,
		Protocol:                d.Protocol,
		HostnameNames:           d.HostnameNames,
		PathRouteSetName:        d.PathRouteSetName,
		SslConfiguration:        d.SslConfiguration,
		ConnectionConfiguration: d.ConnectionConfiguration,
		RoutingPolicyName:       d.RoutingPolicyName,
		RuleSetNames:            d.RuleSetNames,
	}
}

func lbUpdateListenerDetails(l Listener) lb.UpdateListenerDetails {
	d := lbListenerDetails(l)
	return lb.UpdateListenerDetails{
		DefaultBackendSetName:   d.DefaultBackendSetName,
		Port:                    d.Port,
		Protocol:                d.Protocol,
		HostnameNames:           d.HostnameNames,
		PathRouteSetName:        d.PathRouteSetName,
		RoutingPolicyName:       d.RoutingPolicyName,
		SslConfiguration:        d.SslConfiguration,
		ConnectionConfiguration: d.ConnectionConfiguration,
		RuleSetNames:            d.RuleSetNames,
	}
}

// lbConnectionConfiguration is nil, the service's defaults, unless the listener asks for something. The idle timeout is
// mandatory in it; 0 would be refused, so the service's own default stands in where the listener names none.
func lbConnectionConfiguration(have *lb.ConnectionConfiguration, l Listener) *lb.ConnectionConfiguration {
	if l.IdleTimeoutSeconds == nil && l.ProxyProtocolVersion == nil {
		return nil
	}
	c := value(have)
	c.IdleTimeout = l.IdleTimeoutSeconds
	if c.IdleTimeout == nil {
		idle := int64(lbIdleTimeoutHTTPSeconds)
		if strings.EqualFold(l.Protocol, "TCP") {
			idle = lbIdleTimeoutTCPSeconds
		}
		c.IdleTimeout = &idle
	}
	c.BackendTcpProxyProtocolVersion = l.ProxyProtocolVersion
	if c.BackendTcpProxyProtocolVersion == nil {
		c.BackendTcpProxyProtocolOptions = nil // options of the protocol that is off now
	}
	return &c
}

// lbSSLDetails sends both verification fields always: what the service makes of an absent one is not documented.
// Certificates by OCID, which are not modelled, make way when the caller names another certificate than the cloud has.
func lbSSLDetails(have *lb.SslConfiguration, s *SSL) *lb.SslConfigurationDetails {
	if s == nil {
		return nil
	}
	h := value(have)
	d := &lb.SslConfigurationDetails{
		VerifyDepth:                    &s.VerifyDepth,
		VerifyPeerCertificate:          &s.VerifyPeerCertificate,
		HasSessionResumption:           h.HasSessionResumption,
		TrustedCertificateAuthorityIds: h.TrustedCertificateAuthorityIds,
		CertificateIds:                 h.CertificateIds,
		CertificateName:                overlay(h.CertificateName, s.CertificateName),
		Protocols:                      s.Protocols,
		CipherSuiteName:                overlay(h.CipherSuiteName, s.CipherSuiteName),
		ServerOrderPreference:          lb.SslConfigurationDetailsServerOrderPreferenceEnum(h.ServerOrderPreference),
	}
	if s.CertificateName != "" && s.CertificateName != value(h.CertificateName) {
		d.CertificateIds = nil
	}
	return d
}

func lbWorkRequestFromSDK(w lb.WorkRequest) WorkRequest {
	out := WorkRequest{
		ID:         value(w.Id),
		Operation:  value(w.Type),
		ResourceID: value(w.LoadBalancerId),
		State:      WorkRequestState(w.LifecycleState),
		Accepted:   timeValue(w.TimeAccepted),
	}
	if out.State == WorkRequestSucceeded {
		out.Percent = 100 // this API knows no percentage
	}
	for _, e := range w.ErrorDetails {
		out.Errors = append(out.Errors, WorkRequestProblem{Code: string(e.ErrorCode), Message: value(e.Message)})
	}
	if out.State == WorkRequestFailed && len(out.Errors) == 0 && value(w.Message) != "" {
		out.Errors = []WorkRequestProblem{{Message: *w.Message}}
	}
	return out
}
