// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package oci

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	lb "github.com/oracle/oci-go-sdk/v65/loadbalancer"
	nlb "github.com/oracle/oci-go-sdk/v65/networkloadbalancer"
)

func ptr[T any](v T) *T { return &v }

// drained is a backend set with one backend that somebody has drained and given a weight and a connection limit.
func drained() BackendSet {
	return lbBackendSetFromSDK("TCP-80", lb.BackendSet{
		Policy:        ptr("ROUND_ROBIN"),
		HealthChecker: &lb.HealthChecker{Protocol: ptr("HTTP"), Port: ptr(10256)},
		Backends: []lb.Backend{
			{IpAddress: ptr("10.0.0.1"), Port: ptr(30080), Weight: ptr(5), Drain: ptr(true), Backup: ptr(false), Offline: ptr(false), MaxConnections: ptr(256)},
			{IpAddress: ptr("10.0.0.2"), Port: ptr(30080), Weight: ptr(1)},
		},
	})
}

func TestWithBackendsKeepsWhatIsThere(t *testing.T) {
	set := drained()
	got := set.WithBackends([]Backend{{IP: "10.0.0.3", Port: 30080, Weight: 1}, {IP: "10.0.0.1", Port: 30080, Weight: 1}})
	want := []Backend{
		{IP: "10.0.0.3", Port: 30080, Weight: 1},
		{IP: "10.0.0.1", Port: 30080, Weight: 5, Drain: true},
	}
	if diff := cmp.Diff(want, got.Backends, modelled); diff != "" {
		t.Errorf("backends (-want +got):\n%s", diff)
	}
	sentBackends := lbUpdateBackendSetDetails(got).Backends
	wantSent := []any{
		map[string]any{"ipAddress": "10.0.0.3", "port": 30080.0, "weight": 1.0},
		map[string]any{
			"ipAddress": "10.0.0.1", "port": 30080.0, "weight": 5.0, "drain": true, "backup": false, "offline": false,
			"maxConnections": 256.0,
		},
	}
	if diff := cmp.Diff(wantSent, wire(t, sentBackends)); diff != "" {
		t.Errorf("sent (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(drained().Backends, set.Backends, modelled); diff != "" {
		t.Errorf("the set itself changed (-want +got):\n%s", diff)
	}
}

// A backend that the caller made anew for a target of the set changes only what it says.
func TestNewBackendForAKnownTarget(t *testing.T) {
	tests := []struct {
		name string
		give Backend
		want map[string]any
	}{
		{
			name: "says nothing",
			give: Backend{IP: "10.0.0.1", Port: 30080},
			want: map[string]any{"weight": 5.0, "drain": true, "backup": false, "offline": false, "maxConnections": 256.0},
		},
		{
			name: "says a weight",
			give: Backend{IP: "10.0.0.1", Port: 30080, Weight: 2},
			want: map[string]any{"weight": 2.0, "drain": true, "backup": false, "offline": false, "maxConnections": 256.0},
		},
		{
			name: "another port is another target",
			give: Backend{IP: "10.0.0.1", Port: 30081, Weight: 1},
			want: map[string]any{"weight": 1.0},
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			set := drained()
			set.Backends = []Backend{test.give}
			test.want["ipAddress"], test.want["port"] = test.give.IP, float64(test.give.Port)
			if diff := cmp.Diff([]any{test.want}, wire(t, lbUpdateBackendSetDetails(set).Backends)); diff != "" {
				t.Errorf("sent (-want +got):\n%s", diff)
			}
		})
	}
}

// What a caller changes in a backend that was read holds, down to taking a flag away.
func TestChangedBackendHolds(t *testing.T) {
	set := drained()
	set.Backends = set.Backends[:1]
	set.Backends[0].Drain = false
	set.Backends[0].Offline = true
	set.Backends[0].Weight = 0 // the API's default
	want := []any{map[string]any{
		"ipAddress": "10.0.0.1", "port": 30080.0, "drain": false, "backup": false, "offline": true, "maxConnections": 256.0,
	}}
	if diff := cmp.Diff(want, wire(t, lbUpdateBackendSetDetails(set).Backends)); diff != "" {
		t.Errorf("sent (-want +got):\n%s", diff)
	}
}

// A set without backends says so: an absent list would mean no change.
func TestNoBackendsAreSent(t *testing.T) {
	for _, body := range []any{
		lbUpdateBackendSetDetails(BackendSet{Name: "TCP-80"}), lbCreateBackendSetDetails(BackendSet{Name: "TCP-80"}),
		nlbUpdateBackendSetDetails(BackendSet{Name: "TCP-80"}), nlbCreateBackendSetDetails(BackendSet{Name: "TCP-80"}),
	} {
		if diff := cmp.Diff([]any{}, wire(t, body).(map[string]any)["backends"]); diff != "" {
			t.Errorf("backends of %T (-want +got):\n%s", body, diff)
		}
	}
}

func TestSameBackend(t *testing.T) {
	tests := []struct {
		name string
		a, b Backend
		want bool
	}{
		{"same address and port", Backend{IP: "10.0.0.1", Port: 1}, Backend{IP: "10.0.0.1", Port: 1, Weight: 3}, true},
		{"other port", Backend{IP: "10.0.0.1", Port: 1}, Backend{IP: "10.0.0.1", Port: 2}, false},
		{"other address", Backend{IP: "10.0.0.1", Port: 1}, Backend{IP: "10.0.0.2", Port: 1}, false},
		{"spelling of IPv6", Backend{IP: "fd00:0::1", Port: 1}, Backend{IP: "FD00::1", Port: 1}, true},
		{"by target where one has no address", Backend{TargetID: "i", Port: 1}, Backend{TargetID: "i", IP: "10.0.0.1", Port: 1}, true},
		{"two addresses of one target", Backend{TargetID: "i", IP: "10.0.0.2", Port: 1}, Backend{TargetID: "i", IP: "10.0.0.1", Port: 1}, false},
		{"nothing known", Backend{Port: 1}, Backend{Port: 1}, false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if got := test.a.Same(test.b); got != test.want {
				t.Errorf("Same is %v, want %v", got, test.want)
			}
			if got := test.b.Same(test.a); got != test.want {
				t.Errorf("Same, the other way round, is %v, want %v", got, test.want)
			}
		})
	}
}

// What belongs to a protocol and is not modelled leaves with the protocol.
func TestProtocolChangeDropsWhatBelongsToTheOldOne(t *testing.T) {
	set := nlbBackendSetFromSDK("UDP-53", nlb.BackendSet{HealthChecker: &nlb.HealthChecker{
		Protocol: nlb.HealthCheckProtocolsUdp, Port: ptr(53), RequestData: []byte("ping"), ResponseData: []byte("pong"),
	}})
	if h := nlbUpdateBackendSetDetails(set).HealthChecker; string(h.RequestData) != "ping" || string(h.ResponseData) != "pong" {
		t.Errorf("unchanged protocol: probe is %q, %q", h.RequestData, h.ResponseData)
	}
	set.Checker.Protocol = "HTTP"
	if h := nlbUpdateBackendSetDetails(set).HealthChecker; h.RequestData != nil || h.ResponseData != nil {
		t.Errorf("HTTP check has a UDP probe: %q, %q", h.RequestData, h.ResponseData)
	}

	listener := nlbListenerFromSDK("TCP-53", nlb.Listener{
		Protocol: nlb.ListenerProtocolsTcpAndUdp, TcpIdleTimeout: ptr(400), UdpIdleTimeout: ptr(130),
	})
	listener.Protocol = "UDP"
	if d := nlbUpdateListenerDetails(listener); d.TcpIdleTimeout != nil || d.UdpIdleTimeout == nil || *d.UdpIdleTimeout != 130 {
		t.Errorf("UDP listener has idle timeouts %v (TCP), %v (UDP)", d.TcpIdleTimeout, d.UdpIdleTimeout)
	}

	lbListener := lbListenerFromSDK("TCP-443", lb.Listener{Protocol: ptr("TCP"), ConnectionConfiguration: &lb.ConnectionConfiguration{
		IdleTimeout: ptr(int64(900)), BackendTcpProxyProtocolVersion: ptr(2),
		BackendTcpProxyProtocolOptions: []lb.ConnectionConfigurationBackendTcpProxyProtocolOptionsEnum{"PP2_TYPE_AUTHORITY"},
	}})
	lbListener.ProxyProtocolVersion = nil
	want := map[string]any{"idleTimeout": 900.0}
	if diff := cmp.Diff(want, wire(t, lbUpdateListenerDetails(lbListener).ConnectionConfiguration)); diff != "" {
		t.Errorf("connection (-want +got):\n%s", diff)
	}
}

// The name of a network load balancer's backend is made of its address and port.
func TestBackendNameGoesWithTheAddress(t *testing.T) {
	set := nlbBackendSetFromSDK("TCP-80", nlb.BackendSet{Backends: []nlb.Backend{
		{Name: ptr("10.0.0.1:30080"), IpAddress: ptr("10.0.0.1"), Port: ptr(30080), IsDrain: ptr(true)},
		{Name: ptr("10.0.0.2:30080"), IpAddress: ptr("10.0.0.2"), Port: ptr(30080)},
	}})
	set.Backends[0].Port = 30081
	want := []any{
		map[string]any{"ipAddress": "10.0.0.1", "port": 30081.0, "isDrain": true},
		map[string]any{"name": "10.0.0.2:30080", "ipAddress": "10.0.0.2", "port": 30080.0},
	}
	if diff := cmp.Diff(want, wire(t, nlbUpdateBackendSetDetails(set).Backends)); diff != "" {
		t.Errorf("sent (-want +got):\n%s", diff)
	}
}

func TestConnectionConfiguration(t *testing.T) {
	tests := []struct {
		name string
		l    Listener
		want any
	}{
		{"nothing asked", Listener{Protocol: "TCP"}, nil},
		{"idle timeout", Listener{Protocol: "TCP", IdleTimeoutSeconds: ptr(int64(7))}, map[string]any{"idleTimeout": 7.0}},
		{"proxy protocol alone, TCP", Listener{Protocol: "TCP", ProxyProtocolVersion: ptr(2)}, map[string]any{"idleTimeout": 300.0, "backendTcpProxyProtocolVersion": 2.0}},
		{"proxy protocol alone, GRPC", Listener{Protocol: "GRPC", ProxyProtocolVersion: ptr(1)}, map[string]any{"idleTimeout": 60.0, "backendTcpProxyProtocolVersion": 1.0}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got := wire(t, lbCreateListenerDetails(test.l)).(map[string]any)["connectionConfiguration"]
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("connection (-want +got):\n%s", diff)
			}
		})
	}
}

// Certificates by OCID stay until the caller names a certificate of its own.
func TestCertificateOfTheCertificatesService(t *testing.T) {
	read := func() Listener {
		return lbListenerFromSDK("HTTPS-443", lb.Listener{SslConfiguration: &lb.SslConfiguration{
			CertificateIds: []string{"ocid1.certificate.oc1.iad.a"}, HasSessionResumption: ptr(true), VerifyDepth: ptr(3),
		}})
	}
	l := read()
	if d := lbUpdateListenerDetails(l).SslConfiguration; len(d.CertificateIds) != 1 || d.CertificateName != nil {
		t.Errorf("unchanged: certificates %v, name %v", d.CertificateIds, d.CertificateName)
	}
	l.SSL.CertificateName = "from-a-secret"
	d := lbUpdateListenerDetails(l).SslConfiguration
	if len(d.CertificateIds) != 0 || value(d.CertificateName) != "from-a-secret" || !value(d.HasSessionResumption) {
		t.Errorf("with a name: certificates %v, name %v, session resumption %v", d.CertificateIds, d.CertificateName, d.HasSessionResumption)
	}
	l = read()
	l.SSL = nil
	if d := lbUpdateListenerDetails(l).SslConfiguration; d != nil {
		t.Errorf("TLS switched off: still %v", d)
	}
}
