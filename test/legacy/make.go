// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package legacy

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/oracle/oci-go-sdk/v65/common"
	lbsdk "github.com/oracle/oci-go-sdk/v65/loadbalancer"
	nlbsdk "github.com/oracle/oci-go-sdk/v65/networkloadbalancer"
	v1 "k8s.io/api/core/v1"
)

// Make makes what that release makes of a new Service: network security group, balancer, rules. It returns the OCID of the
// balancer.
func (r *Release) Make(ctx context.Context, svc *v1.Service) (string, error) {
	s := r.spec(svc)
	groups := groupsOf(svc, prefixCommon+"oci-network-security-groups")
	if s.nlb {
		groups = groupsOf(svc, prefixNLB+"oci-network-security-groups")
	}
	if modeOf(svc) == modeNSG {
		group, err := r.makeGroup(ctx, svc, s)
		if err != nil {
			return "", err
		}
		groups = append(groups, group)
	}
	var err error
	if s.nlb {
		err = r.makeNLB(ctx, svc, s, groups)
	} else {
		err = r.makeLB(ctx, svc, s, groups)
	}
	if err != nil {
		return "", err
	}
	var b *Balancer
	err = until(ctx, "the balancer of "+svc.Name, func() bool {
		b, err = r.Find(svc)
		return err == nil && b.Active
	})
	if err != nil {
		return "", err
	}
	return b.ID, r.openLists(ctx, svc, s)
}

func (r *Release) makeLB(ctx context.Context, svc *v1.Service, s spec, groups []string) error {
	client, err := r.loadBalancers()
	if err != nil {
		return err
	}
	details := lbsdk.CreateLoadBalancerDetails{
		CompartmentId: &s.compartment, DisplayName: common.String(r.DisplayName(svc)), SubnetIds: s.subnets, IsPrivate: &s.private,
		IpMode: lbsdk.CreateLoadBalancerDetailsIpModeIpv4, NetworkSecurityGroupIds: groups, ShapeName: text(svc, prefixLB+"shape", "100Mbps"),
		BackendSets: map[string]lbsdk.BackendSetDetails{}, Listeners: map[string]lbsdk.ListenerDetails{}, Certificates: map[string]lbsdk.CertificateDetails{},
	}
	if strings.EqualFold(*details.ShapeName, "flexible") {
		details.ShapeName = common.String("flexible")
		details.ShapeDetails = &lbsdk.ShapeDetails{
			MinimumBandwidthInMbps: number(svc, prefixLB+"shape-flex-min", 10), MaximumBandwidthInMbps: number(svc, prefixLB+"shape-flex-max", 100),
		}
	}
	sets := map[string]lbsdk.RuleSetDetails{}
	if err := object(svc, prefixCommon+"oci-load-balancer-rule-sets", &sets); err != nil {
		return err
	}
	if len(sets) > 0 {
		details.RuleSets = sets
	}
	listenerSSL, setSSL, err := s.ssl(svc)
	if err != nil {
		return err
	}
	for _, secret := range []string{s.secret, s.setSecret} {
		if secret == "" {
			continue
		}
		content, ok := r.Secrets[secret]
		if !ok {
			return fmt.Errorf("secret %s: %w", secret, ErrNotFound)
		}
		c := lbsdk.CertificateDetails{CertificateName: common.String(bundle(secret)), PublicCertificate: &content.Certificate, PrivateKey: &content.Key}
		if content.CA != "" {
			c.CaCertificate = &content.CA
		}
		details.Certificates[bundle(secret)] = c
	}
	for _, p := range s.ports {
		l := lbsdk.ListenerDetails{
			DefaultBackendSetName: &p.set, Port: &p.number, Protocol: &p.protocol, ConnectionConfiguration: connection(svc, p.protocol),
		}
		for name := range sets {
			l.RuleSetNames = append(l.RuleSetNames, name)
		}
		bs := lbsdk.BackendSetDetails{Policy: text(svc, prefixCommon+"loadbalancer-policy", "ROUND_ROBIN"), HealthChecker: s.lbChecker(svc), Backends: s.lbBackends(p)}
		if slices.Contains(s.tlsPorts, p.number) {
			l.SslConfiguration, bs.SslConfiguration = listenerSSL, setSSL
			if listenerSSL != nil && p.protocol == "GRPC" && listenerSSL.CipherSuiteName == nil {
				grpc := *listenerSSL
				grpc.CipherSuiteName = common.String("oci-default-http2-ssl-cipher-suite-v1")
				l.SslConfiguration = &grpc
			}
		}
		details.Listeners[p.listener], details.BackendSets[p.set] = l, bs
	}
	_, err = client.CreateLoadBalancer(ctx, lbsdk.CreateLoadBalancerRequest{CreateLoadBalancerDetails: details, OpcRetryToken: common.String(string(svc.UID))})
	return err
}

// ssl is the TLS of listeners and backend sets.
func (s spec) ssl(svc *v1.Service) (listeners, sets *lbsdk.SslConfigurationDetails, err error) {
	one := func(secret, key string) (*lbsdk.SslConfigurationDetails, error) {
		if secret == "" {
			return nil, nil
		}
		var wanted struct {
			CipherSuiteName *string
			Protocols       []string
		}
		err := object(svc, key, &wanted)
		return &lbsdk.SslConfigurationDetails{
			CertificateName: common.String(bundle(secret)), VerifyDepth: common.Int(0), VerifyPeerCertificate: common.Bool(false),
			CipherSuiteName: wanted.CipherSuiteName, Protocols: wanted.Protocols,
		}, err
	}
	if listeners, err = one(s.secret, prefixCommon+"oci-load-balancer-listener-ssl-config"); err != nil {
		return nil, nil, err
	}
	sets, err = one(s.setSecret, prefixCommon+"oci-load-balancer-backendset-ssl-config")
	return listeners, sets, err
}

// connection is the idle timeout and the PROXY protocol of a listener. The latter needs the former.
func connection(svc *v1.Service, protocol string) *lbsdk.ConnectionConfiguration {
	idle, proxy := number(svc, prefixLB+"connection-idle-timeout", 0), number(svc, prefixLB+"connection-proxy-protocol-version", 0)
	if *idle == 0 && *proxy == 0 {
		return nil
	}
	c := &lbsdk.ConnectionConfiguration{}
	if *proxy != 0 {
		c.BackendTcpProxyProtocolVersion = proxy
	}
	switch {
	case *idle != 0:
	case strings.EqualFold(protocol, "HTTP"):
		*idle = 60
	default:
		*idle = 300
	}
	c.IdleTimeout = common.Int64(int64(*idle))
	return c
}

func (s spec) lbChecker(svc *v1.Service) *lbsdk.HealthCheckerDetails {
	_, plain := svc.Annotations[prefixLB+"tls-backendset-secret"]
	return &lbsdk.HealthCheckerDetails{
		Protocol: common.String("HTTP"), Port: &s.healthPort, UrlPath: common.String("/healthz"), ReturnCode: common.Int(200),
		Retries: number(svc, prefixLB+"health-check-retries", 3), TimeoutInMillis: number(svc, prefixLB+"health-check-timeout", 3000),
		IntervalInMillis: number(svc, prefixLB+"health-check-interval", 10000), IsForcePlainText: &plain,
	}
}

func (s spec) lbBackends(p port) []lbsdk.BackendDetails {
	backends := []lbsdk.BackendDetails{}
	for _, n := range s.nodes {
		if v4, _ := addresses(n); v4 != "" {
			backends = append(backends, lbsdk.BackendDetails{IpAddress: &v4, Port: &p.nodePort, Weight: common.Int(1)})
		}
	}
	return backends
}

func (r *Release) makeNLB(ctx context.Context, svc *v1.Service, s spec, groups []string) error {
	client, err := r.networkLoadBalancers()
	if err != nil {
		return err
	}
	version := map[[2]bool]nlbsdk.NlbIpVersionEnum{
		{true, false}: nlbsdk.NlbIpVersionIpv4, {false, true}: nlbsdk.NlbIpVersionIpv6, {true, true}: nlbsdk.NlbIpVersionIpv4AndIpv6,
	}[[2]bool{s.v4, s.v6}]
	details := nlbsdk.CreateNetworkLoadBalancerDetails{
		CompartmentId: &s.compartment, DisplayName: common.String(r.DisplayName(svc)), SubnetId: &s.subnets[0], IsPrivate: &s.private,
		NlbIpVersion: version, NetworkSecurityGroupIds: groups,
		BackendSets: map[string]nlbsdk.BackendSetDetails{}, Listeners: map[string]nlbsdk.ListenerDetails{},
	}
	for _, p := range s.ports {
		family := nlbsdk.IpVersionIpv4
		if p.v6 {
			family = nlbsdk.IpVersionIpv6
		}
		l := nlbsdk.ListenerDetails{
			Name: &p.listener, DefaultBackendSetName: &p.set, Port: &p.number, Protocol: nlbsdk.ListenerProtocolsEnum(p.protocol), IpVersion: family,
		}
		if strings.EqualFold(svc.Annotations[prefixNLB+"is-ppv2-enabled"], "true") {
			l.IsPpv2Enabled = common.Bool(true)
		}
		details.Listeners[p.listener] = l
		details.BackendSets[p.set] = nlbsdk.BackendSetDetails{
			Policy:           nlbsdk.NetworkLoadBalancingPolicyEnum(*text(svc, prefixNLB+"backend-policy", "FIVE_TUPLE")),
			IsPreserveSource: &s.preserve, IpVersion: family, Backends: s.nlbBackends(p),
			HealthChecker: &nlbsdk.HealthChecker{
				Protocol: nlbsdk.HealthCheckProtocolsHttp, Port: &s.healthPort, UrlPath: common.String("/healthz"), ReturnCode: common.Int(200),
				Retries: number(svc, prefixNLB+"health-check-retries", 3), TimeoutInMillis: number(svc, prefixNLB+"health-check-timeout", 3000),
				IntervalInMillis: number(svc, prefixNLB+"health-check-interval", 10000),
			},
		}
	}
	_, err = client.CreateNetworkLoadBalancer(ctx, nlbsdk.CreateNetworkLoadBalancerRequest{
		CreateNetworkLoadBalancerDetails: details, OpcRetryToken: common.String(string(svc.UID)),
	})
	return err
}

// nlbBackends are nodes: by instance and address for IPv4, by address for IPv6.
func (s spec) nlbBackends(p port) []nlbsdk.Backend {
	backends := []nlbsdk.Backend{}
	for _, n := range s.nodes {
		v4, v6 := addresses(n)
		b := nlbsdk.Backend{IpAddress: &v4, TargetId: common.String(instanceOf(n)), Port: &p.nodePort, Weight: common.Int(1)}
		if p.v6 {
			b.IpAddress, b.TargetId = &v6, nil
		}
		if *b.IpAddress != "" {
			backends = append(backends, b)
		}
	}
	return backends
}
