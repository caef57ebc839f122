// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package ocisim

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
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
)

var (
	lbPolicies  = []string{"ROUND_ROBIN", "LEAST_CONNECTIONS", "IP_HASH"}
	lbProtocols = []string{"HTTP", "HTTP2", "TCP", "GRPC"}
)

// putBackendSet checks a backend set, fills the defaults in, and stores it in the load balancer.
func (cl *cloud) putBackendSet(v *loadbalancer.LoadBalancer, name string, set loadbalancer.BackendSet) error {
	if err := checkSize("defaultBackendSetName", name, 1, maxSetName); err != nil {
		return err
	}
	if err := checkPattern("backend set name", name, partName); err != nil {
		return err
	}
	if !slices.Contains(lbPolicies, value(set.Policy)) {
		return errInvalid("policy must be one of %s, not '%s'", strings.Join(lbPolicies, ", "), value(set.Policy))
	}
	if set.SessionPersistenceConfiguration != nil && set.LbCookieSessionPersistenceConfiguration != nil {
		return errInvalid("sessionPersistenceConfiguration and lbCookieSessionPersistenceConfiguration are mutually exclusive")
	}
	set.Name = common.String(name)
	if err := completeChecker(set.HealthChecker); err != nil {
		return err
	}
	if err := completeBackends(&set); err != nil {
		return err
	}
	if err := completeSSL(v, set.SslConfiguration); err != nil {
		return err
	}
	v.BackendSets[name] = set
	if len(v.BackendSets) > maxLBBackendSets {
		return errLimit("A load balancer has at most %d backend sets.", maxLBBackendSets)
	}
	counts := map[string]int{}
	for n, s := range v.BackendSets {
		counts[n] = len(s.Backends)
	}
	return checkBackendCount(counts)
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
	}
	return nil
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

// completeSSL checks a TLS setting against the certificates of the load balancer and fills in the documented defaults.
func completeSSL(v *loadbalancer.LoadBalancer, ssl *loadbalancer.SslConfiguration) error {
	if ssl == nil {
		return nil
	}
	if name := value(ssl.CertificateName); name != "" {
		if _, ok := v.Certificates[name]; !ok {
			return errInvalid("Certificate '%s' does not exist on the load balancer.", name)
		}
	}
	if len(ssl.CertificateIds) > 1 {
		return errInvalid("At most one certificate id is allowed.")
	}
	ssl.VerifyDepth, ssl.VerifyPeerCertificate = orDefault(ssl.VerifyDepth, 5), orDefault(ssl.VerifyPeerCertificate, false)
	ssl.CipherSuiteName = orDefault(ssl.CipherSuiteName, "oci-default-ssl-cipher-suite-v1")
	if len(ssl.Protocols) == 0 {
		ssl.Protocols = []string{"TLSv1.2"}
	}
	return nil
}

// putListener checks a listener and stores it in the load balancer.
func (cl *cloud) putListener(v *loadbalancer.LoadBalancer, name string, l loadbalancer.Listener) error {
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
	if _, ok := v.BackendSets[value(l.DefaultBackendSetName)]; !ok {
		return errInvalid("Backend set '%s' of listener '%s' does not exist.", value(l.DefaultBackendSetName), name)
	}
	if err := cl.checkListenerReferences(v, name, &l); err != nil {
		return err
	}
	if (protocol == "HTTP2" || protocol == "GRPC") && l.SslConfiguration == nil {
		if err := cl.rule(ListenerNeedsTLS, name, protocol); err != nil {
			return err
		}
	}
	if err := checkConnection(l.ConnectionConfiguration); err != nil {
		return err
	}
	for _, other := range sortedKeys(v.Listeners) {
		if other != name && value(v.Listeners[other].Port) == value(l.Port) {
			if err := cl.rule(ListenersShareAPort, other, name, value(l.Port)); err != nil {
				return err
			}
		}
	}
	v.Listeners[name] = l
	if len(v.Listeners) > maxLBListeners {
		return errLimit("A load balancer has at most %d listeners.", maxLBListeners)
	}
	return nil
}

func (cl *cloud) checkListenerReferences(v *loadbalancer.LoadBalancer, name string, l *loadbalancer.Listener) error {
	if err := completeSSL(v, l.SslConfiguration); err != nil {
		return err
	}
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
	if policy := value(l.RoutingPolicyName); policy != "" {
		if _, ok := v.RoutingPolicies[policy]; !ok {
			return errInvalid("Routing policy '%s' of listener '%s' does not exist.", policy, name)
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

// putCertificate checks a certificate bundle and stores its public part.
func (cl *cloud) putCertificate(v *loadbalancer.LoadBalancer, d loadbalancer.CertificateDetails) error {
	name := value(d.CertificateName)
	if err := checkPattern("certificateName", name, partName); err != nil {
		return err
	}
	if problem := certificateProblem(d); problem != "" {
		if err := cl.rule(BadCertificate, name, problem); err != nil {
			return err
		}
	}
	v.Certificates[name] = loadbalancer.Certificate{
		CertificateName:   common.String(name),
		PublicCertificate: orDefault(d.PublicCertificate, ""),
		CaCertificate:     orDefault(d.CaCertificate, ""),
	}
	return nil
}

func certificateProblem(d loadbalancer.CertificateDetails) string {
	if ca := value(d.CaCertificate); ca != "" && !x509.NewCertPool().AppendCertsFromPEM([]byte(ca)) {
		return "the CA certificate does not parse"
	}
	public, key := value(d.PublicCertificate), value(d.PrivateKey)
	switch {
	case public == "" && key == "":
		return ""
	case public == "" || key == "":
		return "certificate and private key belong together"
	case value(d.Passphrase) != "":
		if block, _ := pem.Decode([]byte(public)); block == nil {
			return "the certificate does not parse"
		}
		return ""
	}
	if _, err := tls.X509KeyPair([]byte(public), []byte(key)); err != nil {
		return err.Error()
	}
	return ""
}

// putRuleSet stores a rule set.
func (cl *cloud) putRuleSet(v *loadbalancer.LoadBalancer, name string, items []loadbalancer.Rule) error {
	if err := checkSize("rule set name", name, 1, maxSetName); err != nil {
		return err
	}
	if len(items) == 0 {
		return errMissing("items")
	}
	v.RuleSets[name] = loadbalancer.RuleSet{Name: common.String(name), Items: items}
	return nil
}
