// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"slices"
	"strings"
	"time"

	"github.com/oracle/oci-go-sdk/v65/loadbalancer"
	"github.com/oracle/oci-go-sdk/v65/networkloadbalancer"

	"github.com/oracle/oci-cloud-controller-manager/test/ocisim"
)

// balancer is what a body needs to know of a balancer of either kind.
type balancer struct {
	id, name  string
	network   bool
	addresses []string // as the API shows them
	origin    string   // the one from which it connects to backends: the private one, where it shows
	listeners []listener
	sets      map[string]backendSet
	bundles   map[string]ocisim.BalancerCertificate
}

type listener struct {
	name, protocol string
	port           int
	set            string
	idle           time.Duration
	proxy          int  // version of the PROXY protocol; 0 for none
	authority      bool // version 2 tells the server name that the client asked for
	hostnames      []string
	tls            *tlsSettings
	problem        string // why it cannot listen
}

// http says whether the listener may answer on its own.
func (l listener) http() bool {
	return l.protocol == "HTTP" || l.protocol == "HTTP2" || l.protocol == "GRPC"
}

type tlsSettings struct {
	bundle      string   // name, or OCID of a certificate
	authorities []string // OCIDs of CA bundles
	protocols   []string
	ciphers     []string // of the balancer's own suite; empty for a predefined one
	verify      bool
	depth       int
	preferences []string // ALPN
}

type backendSet struct {
	name, policy      string
	backends          []backend
	check             check
	tls               *tlsSettings
	failOpen          bool
	instant, reset    bool // connections of a backend that fails end, by RST
	retryOtherBackend bool // a backend that does not answer is passed over
	preserve          bool // backends see the client's address
}

type backend struct {
	name, address, target  string // one of address and target is set
	port, weight           int    // port 0: that of the listener
	limit                  int    // of connections; 0 for none
	drain, backup, offline bool
}

// check says how a backend set is checked.
type check struct {
	protocol          string // TCP, HTTP, HTTPS; others are not checked
	port              int    // 0: the backend's
	path, body        string // body is a regular expression
	code, retries     int
	interval, timeout time.Duration
	plain             bool // not encrypted although the backend set is
	request, response []byte
}

// Defaults of idle timeouts. That of network load balancers is from its documentation, the others are those of the load
// balancer's console.
const (
	idleTCP     = 300 * time.Second
	idleHTTP    = 60 * time.Second
	idleNetwork = 360 * time.Second
)

func value[T any](p *T) T {
	if p == nil {
		var zero T
		return zero
	}
	return *p
}

func fromLoadBalancer(v *loadbalancer.LoadBalancer) balancer {
	b := balancer{id: value(v.Id), name: value(v.DisplayName), sets: map[string]backendSet{}}
	for _, a := range v.IpAddresses {
		b.address(value(a.IpAddress), value(a.IsPublic))
	}
	for name, s := range v.BackendSets {
		set := backendSet{name: name, policy: value(s.Policy), tls: tlsOf(v, s.SslConfiguration), retryOtherBackend: true}
		if h := s.HealthChecker; h != nil {
			set.check = check{
				protocol: value(h.Protocol), port: value(h.Port), path: value(h.UrlPath), body: value(h.ResponseBodyRegex),
				code: value(h.ReturnCode), retries: value(h.Retries), interval: millis(h.IntervalInMillis), timeout: millis(h.TimeoutInMillis),
				plain: value(h.IsForcePlainText),
			}
		}
		for _, one := range s.Backends {
			limit := value(one.MaxConnections)
			if limit == 0 {
				limit = value(s.BackendMaxConnections)
			}
			set.backends = append(set.backends, backend{
				name: value(one.Name), address: value(one.IpAddress), port: value(one.Port), weight: value(one.Weight), limit: limit,
				drain: value(one.Drain), backup: value(one.Backup), offline: value(one.Offline),
			})
		}
		b.sets[name] = set
	}
	for name, l := range v.Listeners {
		one := listener{
			name: name, protocol: value(l.Protocol), port: value(l.Port), set: value(l.DefaultBackendSetName), idle: idleTCP,
			tls: tlsOf(v, l.SslConfiguration),
		}
		if one.http() {
			one.idle = idleHTTP
		}
		if c := l.ConnectionConfiguration; c != nil {
			one.idle = time.Duration(value(c.IdleTimeout)) * time.Second
			one.proxy = value(c.BackendTcpProxyProtocolVersion)
			one.authority = slices.Contains(c.BackendTcpProxyProtocolOptions,
				loadbalancer.ConnectionConfigurationBackendTcpProxyProtocolOptionsPp2TypeAuthority)
		}
		for _, host := range l.HostnameNames {
			one.hostnames = append(one.hostnames, strings.ToLower(value(v.Hostnames[host].Hostname)))
		}
		if one.tls != nil {
			one.tls.preferences = preferencesOf(one.protocol)
		}
		b.listeners = append(b.listeners, one)
	}
	b.sort()
	return b
}

// preferencesOf are the application protocols that a TLS listener offers. The bytes go to the backend as they are, so an HTTP2
// listener, which speaks HTTP/1.1 to its backends, cannot offer more than that.
func preferencesOf(protocol string) []string {
	switch protocol {
	case "GRPC":
		return []string{"h2"}
	case "HTTP", "HTTP2":
		return []string{"http/1.1"}
	}
	return nil
}

func tlsOf(v *loadbalancer.LoadBalancer, s *loadbalancer.SslConfiguration) *tlsSettings {
	if s == nil {
		return nil
	}
	t := &tlsSettings{
		bundle: value(s.CertificateName), authorities: s.TrustedCertificateAuthorityIds,
		protocols: s.Protocols, ciphers: v.SslCipherSuites[value(s.CipherSuiteName)].Ciphers,
		verify: value(s.VerifyPeerCertificate), depth: value(s.VerifyDepth),
	}
	if t.bundle == "" && len(s.CertificateIds) > 0 {
		t.bundle = s.CertificateIds[0]
	}
	return t
}

func fromNetworkLoadBalancer(v *networkloadbalancer.NetworkLoadBalancer) balancer {
	b := balancer{id: value(v.Id), name: value(v.DisplayName), network: true, sets: map[string]backendSet{}}
	for _, a := range v.IpAddresses {
		b.address(value(a.IpAddress), value(a.IsPublic))
	}
	for name, s := range v.BackendSets {
		set := backendSet{
			name: name, policy: string(s.Policy), failOpen: value(s.IsFailOpen), instant: value(s.IsInstantFailoverEnabled),
			reset:    s.IsInstantFailoverTcpResetEnabled == nil || *s.IsInstantFailoverTcpResetEnabled,
			preserve: s.IsPreserveSource == nil || *s.IsPreserveSource,
		}
		if h := s.HealthChecker; h != nil {
			set.check = check{
				protocol: string(h.Protocol), port: value(h.Port), path: value(h.UrlPath), body: value(h.ResponseBodyRegex),
				code: value(h.ReturnCode), retries: value(h.Retries), interval: millis(h.IntervalInMillis), timeout: millis(h.TimeoutInMillis),
				request: h.RequestData, response: h.ResponseData,
			}
		}
		for _, one := range s.Backends {
			set.backends = append(set.backends, backend{
				name: value(one.Name), address: value(one.IpAddress), target: value(one.TargetId), port: value(one.Port), weight: value(one.Weight),
				drain: value(one.IsDrain), backup: value(one.IsBackup), offline: value(one.IsOffline),
			})
		}
		b.sets[name] = set
	}
	for name, l := range v.Listeners {
		one := listener{name: name, protocol: string(l.Protocol), port: value(l.Port), set: value(l.DefaultBackendSetName), idle: idleNetwork}
		if seconds := value(l.TcpIdleTimeout); seconds > 0 {
			one.idle = time.Duration(seconds) * time.Second
		}
		if value(l.IsPpv2Enabled) {
			one.proxy = 2
		}
		switch {
		case one.port == 0:
			one.problem = "listeners on all ports do not listen"
		case l.Protocol == networkloadbalancer.ListenerProtocolsUdp:
			one.problem = "UDP is not forwarded"
		}
		b.listeners = append(b.listeners, one)
	}
	b.sort()
	return b
}

// address adds an address that the API shows.
func (b *balancer) address(a string, public bool) {
	b.addresses = append(b.addresses, a)
	if b.origin == "" || !public {
		b.origin = a
	}
}

func (b *balancer) sort() {
	slices.SortFunc(b.listeners, func(x, y listener) int { return strings.Compare(x.name, y.name) })
}

func millis(n *int) time.Duration { return time.Duration(value(n)) * time.Millisecond }
