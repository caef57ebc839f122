// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package oci

import (
	"slices"
	"strings"

	nlb "github.com/oracle/oci-go-sdk/v65/networkloadbalancer"
)

// The network load balancer's PUT bodies have no mandatory fields, so one left out may well mean "no change". What a
// caller takes away is therefore sent as the API's default (SDK documentation of the fields), never left out.

// nlbEntityType is the entity type of the balancer among the resources of a work request (contract of the existing
// implementation, which finds the new balancer by it).
const nlbEntityType = "NetworkLoadBalancer"

func nlbFromSDK(n nlb.NetworkLoadBalancer) *Balancer {
	b := &Balancer{
		Kind:          KindNLB,
		ID:            value(n.Id),
		CompartmentID: value(n.CompartmentId),
		DisplayName:   value(n.DisplayName),
		State:         string(n.LifecycleState),
		TimeCreated:   timeValue(n.TimeCreated),
		Private:       value(n.IsPrivate),
		NSGIDs:        n.NetworkSecurityGroupIds,
		IPMode:        string(n.NlbIpVersion),
		BackendSets:   make(map[string]BackendSet, len(n.BackendSets)),
		Listeners:     make(map[string]Listener, len(n.Listeners)),
		Tags:          Tags{Freeform: n.FreeformTags, Defined: n.DefinedTags},
	}
	if n.SubnetId != nil {
		b.SubnetIDs = []string{*n.SubnetId}
	}
	for _, ip := range n.IpAddresses {
		a := BalancerAddress{IP: value(ip.IpAddress), Public: value(ip.IsPublic)}
		if ip.ReservedIp != nil {
			a.ReservedID = value(ip.ReservedIp.Id)
		}
		b.Addresses = append(b.Addresses, a)
	}
	for name, bs := range n.BackendSets {
		b.BackendSets[name] = nlbBackendSetFromSDK(name, bs)
	}
	for name, l := range n.Listeners {
		b.Listeners[name] = nlbListenerFromSDK(name, l)
	}
	return b
}

// nlbSummaryFromSDK converts an entry of a list, which has the fields of the object itself.
func nlbSummaryFromSDK(s nlb.NetworkLoadBalancerSummary) *Balancer {
	return nlbFromSDK(nlb.NetworkLoadBalancer(s))
}

func nlbBackendSetFromSDK(name string, bs nlb.BackendSet) BackendSet {
	out := BackendSet{
		Name:           name,
		Policy:         string(bs.Policy),
		PreserveSource: bs.IsPreserveSource,
		IPVersion:      string(bs.IpVersion),
		origin:         &bs,
	}
	if h := bs.HealthChecker; h != nil {
		out.Checker = HealthChecker{
			Protocol:          string(h.Protocol),
			Port:              value(h.Port),
			URLPath:           value(h.UrlPath),
			ReturnCode:        value(h.ReturnCode),
			Retries:           value(h.Retries),
			TimeoutMillis:     value(h.TimeoutInMillis),
			IntervalMillis:    value(h.IntervalInMillis),
			ResponseBodyRegex: value(h.ResponseBodyRegex),
		}
	}
	for i := range bs.Backends {
		out.Backends = append(out.Backends, nlbBackendFromSDK(bs.Backends[i]))
	}
	return out
}

func nlbBackendFromSDK(b nlb.Backend) Backend {
	return Backend{
		IP:       value(b.IpAddress),
		Port:     value(b.Port),
		TargetID: value(b.TargetId),
		Weight:   value(b.Weight),
		Backup:   value(b.IsBackup),
		Drain:    value(b.IsDrain),
		Offline:  value(b.IsOffline),
		origin:   &b,
	}
}

func nlbListenerFromSDK(name string, l nlb.Listener) Listener {
	return Listener{
		Name:           name,
		BackendSetName: value(l.DefaultBackendSetName),
		Port:           value(l.Port),
		Protocol:       string(l.Protocol),
		IPVersion:      string(l.IpVersion),
		PPv2:           l.IsPpv2Enabled,
		origin:         &l,
	}
}

// nlbCreateDetails is the body of a create. The private flag is always sent: the API's default is true.
func nlbCreateDetails(b *Balancer) nlb.CreateNetworkLoadBalancerDetails {
	d := nlb.CreateNetworkLoadBalancerDetails{
		CompartmentId:           &b.CompartmentID,
		DisplayName:             &b.DisplayName,
		SubnetId:                new(string),
		IsPrivate:               &b.Private,
		NetworkSecurityGroupIds: b.NSGIDs,
		NlbIpVersion:            nlb.NlbIpVersionEnum(b.IPMode),
		AssignedPrivateIpv4:     present(b.AssignedPrivateIPv4),
		AssignedIpv6:            present(b.AssignedIPv6),
		FreeformTags:            b.Freeform,
		DefinedTags:             b.Defined,
		BackendSets:             make(map[string]nlb.BackendSetDetails, len(b.BackendSets)),
		Listeners:               make(map[string]nlb.ListenerDetails, len(b.Listeners)),
	}
	if len(b.SubnetIDs) > 0 {
		d.SubnetId = &b.SubnetIDs[0]
	}
	for _, id := range b.ReservedIPIDs {
		d.ReservedIps = append(d.ReservedIps, nlb.ReservedIp{Id: &id})
	}
	for name, bs := range b.BackendSets {
		d.BackendSets[name] = nlbBackendSetDetails(bs)
	}
	for name, l := range b.Listeners {
		d.Listeners[name] = nlbListenerDetails(name, l)
	}
	return d
}

// nlbBackendSetDetails is the backend set as the create of a balancer takes it; the other bodies are made from it.
func nlbBackendSetDetails(bs BackendSet) nlb.BackendSetDetails {
	have := originOf[nlb.BackendSet](bs.origin)
	existing := nlbBackendSetFromSDK(bs.Name, *have).Backends
	backends := make([]nlb.Backend, 0, len(bs.Backends))
	for _, b := range bs.Backends {
		backends = append(backends, nlbBackend(b, existing))
	}
	return nlb.BackendSetDetails{
		HealthChecker:                           nlbHealthChecker(value(have.HealthChecker), bs.Checker),
		Policy:                                  nlb.NetworkLoadBalancingPolicyEnum(bs.Policy),
		IpVersion:                               nlb.IpVersionEnum(bs.IPVersion),
		IsPreserveSource:                        orDefault(have.IsPreserveSource, bs.PreserveSource, true),
		IsFailOpen:                              have.IsFailOpen,
		IsInstantFailoverEnabled:                have.IsInstantFailoverEnabled,
		IsInstantFailoverTcpResetEnabled:        have.IsInstantFailoverTcpResetEnabled,
		AreOperationallyActiveBackendsPreferred: have.AreOperationallyActiveBackendsPreferred,
		Backends:                                backends,
	}
}

// nlbHealthChecker keeps what is not modelled (the payload of a TCP or UDP probe, the DNS query) only while the protocol
// stays: it belongs to the protocol.
func nlbHealthChecker(have nlb.HealthChecker, h HealthChecker) *nlb.HealthChecker {
	out := &nlb.HealthChecker{
		Protocol:          nlb.HealthCheckProtocolsEnum(h.Protocol),
		Port:              overlayZero(have.Port, h.Port),
		Retries:           overlay(have.Retries, h.Retries),
		TimeoutInMillis:   overlay(have.TimeoutInMillis, h.TimeoutMillis),
		IntervalInMillis:  overlay(have.IntervalInMillis, h.IntervalMillis),
		UrlPath:           overlay(have.UrlPath, h.URLPath),
		ResponseBodyRegex: overlay(have.ResponseBodyRegex, h.ResponseBodyRegex),
		ReturnCode:        overlay(have.ReturnCode, h.ReturnCode),
	}
	if strings.EqualFold(h.Protocol, string(have.Protocol)) {
		out.RequestData, out.ResponseData, out.Dns = have.RequestData, have.ResponseData, have.Dns
	}
	return out
}

func nlbBackend(b Backend, existing []Backend) nlb.Backend {
	b, origin := resolveBackend(b, existing)
	have := originOf[nlb.Backend](origin)
	// The service makes the name of the address or target and the port, so it goes with them.
	name := have.Name
	if b.Port != value(have.Port) || b.IP != value(have.IpAddress) || b.TargetID != value(have.TargetId) {
		name = nil
	}
	return nlb.Backend{
		Port:      &b.Port,
		Name:      name,
		IpAddress: overlay(have.IpAddress, b.IP),
		TargetId:  overlay(have.TargetId, b.TargetID),
		Weight:    overlay(have.Weight, b.Weight),
		IsDrain:   overlayZero(have.IsDrain, b.Drain),
		IsBackup:  overlayZero(have.IsBackup, b.Backup),
		IsOffline: overlayZero(have.IsOffline, b.Offline),
	}
}

func nlbBackendDetails(in []nlb.Backend) []nlb.BackendDetails {
	out := make([]nlb.BackendDetails, 0, len(in))
	for _, b := range in {
		out = append(out, nlb.BackendDetails{
			Port:      b.Port,
			Name:      b.Name,
			IpAddress: b.IpAddress,
			TargetId:  b.TargetId,
			Weight:    b.Weight,
			IsBackup:  b.IsBackup,
			IsDrain:   b.IsDrain,
			IsOffline: b.IsOffline,
		})
	}
	return out
}

func nlbCreateBackendSetDetails(bs BackendSet) nlb.CreateBackendSetDetails {
	d := nlbBackendSetDetails(bs)
	h := nlb.HealthCheckerDetails(*d.HealthChecker)
	return nlb.CreateBackendSetDetails{
		Name:                                    &bs.Name,
		Policy:                                  d.Policy,
		HealthChecker:                           &h,
		IsPreserveSource:                        d.IsPreserveSource,
		IsFailOpen:                              d.IsFailOpen,
		IsInstantFailoverEnabled:                d.IsInstantFailoverEnabled,
		IsInstantFailoverTcpResetEnabled:        d.IsInstantFailoverTcpResetEnabled,
		AreOperationallyActiveBackendsPreferred: d.AreOperationallyActiveBackendsPreferred,
		IpVersion:                               d.IpVersion,
		Backends:                                nlbBackendDetails(d.Backends),
	}
}

func nlbUpdateBackendSetDetails(bs BackendSet) nlb.UpdateBackendSetDetails {
	d := nlbBackendSetDetails(bs)
	h := nlb.HealthCheckerDetails(*d.HealthChecker)
	return nlb.UpdateBackendSetDetails{
		Policy:                                  present(string(d.Policy)),
		IsPreserveSource:                        d.IsPreserveSource,
		IsFailOpen:                              d.IsFailOpen,
		IsInstantFailoverEnabled:                d.IsInstantFailoverEnabled,
		IsInstantFailoverTcpResetEnabled:        d.IsInstantFailoverTcpResetEnabled,
		AreOperationallyActiveBackendsPreferred: d.AreOperationallyActiveBackendsPreferred,
		IpVersion:                               d.IpVersion,
		Backends:                                nlbBackendDetails(d.Backends),
		HealthChecker:                           &h,
	}
}

// nlbListenerDetails is the listener as the create of a balancer takes it; the other bodies are made from it. The idle
// timeouts, which are not modelled, stay where the protocol still has them.
func nlbListenerDetails(name string, l Listener) nlb.ListenerDetails {
	have := originOf[nlb.Listener](l.origin)
	keeps := func(protocols ...nlb.ListenerProtocolsEnum) bool {
		return strings.EqualFold(l.Protocol, string(have.Protocol)) ||
			slices.Contains(protocols, nlb.ListenerProtocolsEnum(strings.ToUpper(l.Protocol)))
	}
	d := nlb.ListenerDetails{
		Name:                  &name,
		DefaultBackendSetName: &l.BackendSetName,
		Port:                  &l.Port,
		Protocol:              nlb.ListenerProtocolsEnum(l.Protocol),
		IpVersion:             nlb.IpVersionEnum(l.IPVersion),
		IsPpv2Enabled:         orDefault(have.IsPpv2Enabled, l.PPv2, false),
	}
	if keeps(nlb.ListenerProtocolsTcp, nlb.ListenerProtocolsTcpAndUdp, nlb.ListenerProtocolsAny) {
		d.TcpIdleTimeout = have.TcpIdleTimeout
	}
	if keeps(nlb.ListenerProtocolsUdp, nlb.ListenerProtocolsTcpAndUdp, nlb.ListenerProtocolsAny) {
		d.UdpIdleTimeout = have.UdpIdleTimeout
	}
	if keeps(nlb.ListenerProtocolsL3Ip) {
		d.L3IpIdleTimeout = have.L3IpIdleTimeout
	}
	return d
}

func nlbUpdateListenerDetails(l Listener) nlb.UpdateListenerDetails {
	d := nlbListenerDetails(l.Name, l)
	return nlb.UpdateListenerDetails{
		DefaultBackendSetName: d.DefaultBackendSetName,
		Port:                  d.Port,
		Protocol:              d.Protocol,
		IpVersion:             d.IpVersion,
		IsPpv2Enabled:         d.IsPpv2Enabled,
		TcpIdleTimeout:        d.TcpIdleTimeout,
		UdpIdleTimeout:        d.UdpIdleTimeout,
		L3IpIdleTimeout:       d.L3IpIdleTimeout,
	}
}

// orDefault is v; where the caller took away a value that the cloud has, it is the API's default.
func orDefault(cloud, v *bool, byDefault bool) *bool {
	if v == nil && cloud != nil {
		return &byDefault
	}
	return v
}

func nlbWorkRequestFromSDK(w nlb.WorkRequest) WorkRequest {
	out := WorkRequest{
		ID:        value(w.Id),
		Operation: string(w.OperationType),
		State:     WorkRequestState(w.Status),
		Percent:   value(w.PercentComplete),
		Accepted:  timeValue(w.TimeAccepted),
	}
	for _, r := range w.Resources {
		if strings.EqualFold(value(r.EntityType), nlbEntityType) && value(r.Identifier) != "" {
			out.ResourceID = *r.Identifier
			break
		}
	}
	return out
}

func nlbWorkRequestProblem(e nlb.WorkRequestError) WorkRequestProblem {
	return WorkRequestProblem{Code: value(e.Code), Message: value(e.Message)}
}

// nlbWorkRequestConcerns says whether a work request of a compartment's list is about the given balancer.
func nlbWorkRequestConcerns(w nlb.WorkRequestSummary, balancerID string) bool {
	return slices.ContainsFunc(w.Resources, func(r nlb.WorkRequestResource) bool {
		return value(r.Identifier) == balancerID
	})
}
