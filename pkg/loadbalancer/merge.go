// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package loadbalancer

import (
	"slices"
	"strings"

	"github.com/oracle/oci-cloud-controller-manager/pkg/oci"
)

// newBackendSet is a backend set as it is created.
func (m *Model) newBackendSet(want BackendSet) oci.BackendSet {
	return oci.BackendSet{
		Name:   want.Name,
		Policy: m.Policy.Value,
		Checker: oci.HealthChecker{
			Protocol:       "HTTP",
			Port:           m.Checker.Port,
			URLPath:        m.Checker.Path,
			ReturnCode:     m.Checker.ReturnCode,
			Retries:        m.Retries.Value,
			IntervalMillis: m.IntervalMillis.Value,
			TimeoutMillis:  m.TimeoutMillis.Value,
			ForcePlainText: m.mergePlainCheck(nil, nil),
		},
		Backends:       want.Backends,
		PreserveSource: want.PreserveSource,
		IPVersion:      want.IPVersion,
		SSL:            newSSL(want.TLS, m.BackendSetTLS, ""),
	}
}

// mergeBackendSet lays what the Service controls over a backend set as the cloud has it.
func (m *Model) mergeBackendSet(have oci.BackendSet, want BackendSet, last Applied) oci.BackendSet {
	out := m.mergeBackends(have, want)
	out.Policy = m.Policy.over(have.Policy, last.Policy)
	c := &out.Checker
	if !strings.EqualFold(c.Protocol, "HTTP") {
		c.Protocol = "HTTP"
	}
	c.Port, c.URLPath = m.Checker.Port, m.Checker.Path
	if c.ReturnCode != 0 { // it is optional, and the API's default is ours
		c.ReturnCode = m.Checker.ReturnCode
	}
	c.Retries = m.Retries.over(have.Checker.Retries, last.Retries)
	c.IntervalMillis = m.IntervalMillis.over(have.Checker.IntervalMillis, last.IntervalMillis)
	c.TimeoutMillis = m.TimeoutMillis.over(have.Checker.TimeoutMillis, last.TimeoutMillis)
	tls := orDefault(last.TLS, AppliedTLS{})
	c.ForcePlainText = m.mergePlainCheck(have.Checker.ForcePlainText, tls.PlainCheck)
	out.SSL = mergeSSL(have.SSL, want.TLS, m.BackendSetTLS, tls.BackendSetCiphers, "", "")
	if want.PreserveSource != nil && orDefault(have.PreserveSource, true) != *want.PreserveSource {
		out.PreserveSource = want.PreserveSource
	}
	return out
}

// mergeBackends replaces the backends of a set. Those that stay keep weight and flags; a node whose port changes keeps
// them too, since draining is about the node.
func (m *Model) mergeBackends(have oci.BackendSet, want BackendSet) oci.BackendSet {
	if m.KeepBackends || sameBackends(have.Backends, want.Backends) {
		return have
	}
	byIP := make(map[string]oci.Backend, len(have.Backends))
	for _, b := range have.Backends {
		byIP[canonical(b.IP)] = b
	}
	wanted := make([]oci.Backend, len(want.Backends))
	for i, b := range want.Backends {
		if old, known := byIP[canonical(b.IP)]; known {
			b.Weight = max(old.Weight, 1)
			b.Drain, b.Backup, b.Offline = old.Drain, old.Backup, old.Offline
		}
		wanted[i] = b
	}
	out := have.WithBackends(wanted)
	for i := range out.Backends {
		// A new machine may have the address of an old one.
		if target := wanted[i].TargetID; target != "" && out.Backends[i].TargetID != "" {
			out.Backends[i].TargetID = target
		}
	}
	return out
}

func sameBackendSet(a, b oci.BackendSet) bool {
	return a.Policy == b.Policy &&
		sameChecker(a.Checker, b.Checker) &&
		orDefault(a.PreserveSource, true) == orDefault(b.PreserveSource, true) &&
		sameSSL(a.SSL, b.SSL) &&
		sameBackends(a.Backends, b.Backends)
}

func sameChecker(a, b oci.HealthChecker) bool {
	return a.Protocol == b.Protocol && a.Port == b.Port && a.URLPath == b.URLPath && a.ReturnCode == b.ReturnCode &&
		a.Retries == b.Retries && a.IntervalMillis == b.IntervalMillis && a.TimeoutMillis == b.TimeoutMillis &&
		orDefault(a.ForcePlainText, false) == orDefault(b.ForcePlainText, false)
}

// backendKey is what tells the backends of a set apart.
type backendKey struct {
	ip   string
	port int
}

func keyOfBackend(b oci.Backend) backendKey { return backendKey{canonical(b.IP), b.Port} }

// sameBackends compares backends as a set, by address and port, and by instance where both sides name one.
func sameBackends(a, b []oci.Backend) bool {
	if len(a) != len(b) {
		return false
	}
	targets := make(map[backendKey]string, len(a))
	for _, x := range a {
		targets[keyOfBackend(x)] = x.TargetID
	}
	seen := make(map[backendKey]bool, len(b))
	for _, y := range b {
		key := keyOfBackend(y)
		target, known := targets[key]
		if !known || seen[key] || target != "" && y.TargetID != "" && target != y.TargetID {
			return false
		}
		seen[key] = true
	}
	return true
}

// newListener is a listener as it is created.
func (m *Model) newListener(want Listener) oci.Listener {
	l := oci.Listener{
		Name:           want.Name,
		BackendSetName: want.BackendSet,
		Port:           want.Port,
		Protocol:       want.Protocol,
		IPVersion:      want.IPVersion,
	}
	if m.Kind == oci.KindNLB {
		if m.PPv2.Controlled {
			l.PPv2 = &m.PPv2.Value
		}
		return l
	}
	l.IdleTimeoutSeconds = idleTimeout(m.IdleSeconds.Value)
	l.ProxyProtocolVersion = proxyVersion(m.ProxyProtocol.Value)
	l.RuleSetNames = m.RuleSets.merge(nil, Applied{})
	l.SSL = newSSL(want.TLS, m.ListenerTLS, want.Protocol)
	return l
}

// mergeListener lays what the Service controls over a listener as the cloud has it. The name stays: it may be a legacy
// one.
func (m *Model) mergeListener(have oci.Listener, want Listener, last Applied) oci.Listener {
	out := have
	out.BackendSetName, out.Port = want.BackendSet, want.Port
	if !strings.EqualFold(have.Protocol, want.Protocol) {
		out.Protocol = want.Protocol
	}
	if m.Kind == oci.KindNLB {
		if ppv2 := m.PPv2.over(orDefault(have.PPv2, false), last.PPv2); ppv2 != orDefault(have.PPv2, false) {
			out.PPv2 = &ppv2
		}
		return out
	}
	out.IdleTimeoutSeconds = idleTimeout(m.idle(have, want, last))
	out.ProxyProtocolVersion = proxyVersion(m.ProxyProtocol.over(orDefault(have.ProxyProtocolVersion, 0), last.ProxyProtocol))
	if names := m.RuleSets.merge(have.RuleSetNames, last); !sameSet(names, have.RuleSetNames) {
		out.RuleSetNames = names
	}
	out.SSL = mergeSSL(have.SSL, want.TLS, m.ListenerTLS, orDefault(last.TLS, AppliedTLS{}).ListenerCiphers, have.Protocol, want.Protocol)
	return out
}

// Idle timeouts of the service, which have to be named along with the PROXY protocol (OCI documentation, "Connection
// Management").
const (
	idleTCPSeconds  = 300
	idleHTTPSeconds = 60
)

// idle is the idle timeout that a listener should have in seconds; 0 for the service's. One that is there only because the
// PROXY protocol needs one follows the protocol of the listener, and goes with it.
func (m *Model) idle(have oci.Listener, want Listener, last Applied) int {
	now := int(orDefault(have.IdleTimeoutSeconds, 0))
	companion := last.ProxyProtocol != nil && last.IdleSeconds == nil && (now == idleTCPSeconds || now == idleHTTPSeconds)
	switch {
	case m.IdleSeconds.Controlled || !companion:
		return m.IdleSeconds.over(now, last.IdleSeconds)
	case !m.ProxyProtocol.Controlled:
		return 0
	case want.Protocol == "TCP":
		return idleTCPSeconds
	default:
		return idleHTTPSeconds
	}
}

func idleTimeout(seconds int) *int64 {
	if seconds == 0 {
		return nil
	}
	s := int64(seconds)
	return &s
}

func proxyVersion(version int) *int {
	if version == 0 {
		return nil
	}
	return &version
}

func sameListener(a, b oci.Listener) bool {
	return a.BackendSetName == b.BackendSetName && a.Port == b.Port && a.Protocol == b.Protocol &&
		orDefault(a.PPv2, false) == orDefault(b.PPv2, false) &&
		orDefault(a.IdleTimeoutSeconds, 0) == orDefault(b.IdleTimeoutSeconds, 0) &&
		orDefault(a.ProxyProtocolVersion, 0) == orDefault(b.ProxyProtocolVersion, 0) &&
		sameSet(a.RuleSetNames, b.RuleSetNames) &&
		sameSSL(a.SSL, b.SSL)
}

// mergeNSGs returns the network security groups that the balancer should be in: those that the Service names, and those
// that others have added.
func (m *Model) mergeNSGs(have []string, last Applied) []string {
	out := slices.Clone(m.NSGIDs)
	for _, id := range have {
		if !slices.Contains(out, id) && !slices.Contains(last.NSGIDs, id) {
			out = append(out, id)
		}
	}
	slices.Sort(out)
	return out
}

func sameSet(a, b []string) bool {
	a, b = slices.Sorted(slices.Values(a)), slices.Sorted(slices.Values(b))
	return slices.Equal(slices.Compact(a), slices.Compact(b))
}
