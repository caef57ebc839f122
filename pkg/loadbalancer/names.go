// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package loadbalancer

import (
	"strconv"
	"strings"

	v1 "k8s.io/api/core/v1"

	"github.com/oracle/oci-cloud-controller-manager/pkg/oci"
)

// maxDisplayName is where display names are cut, as the existing implementation does.
const maxDisplayName = 1024

// suffixV6 marks backend sets and listeners for IPv6.
const suffixV6 = "-IPv6"

// protocolBoth is how an NLB calls a listener for TCP and UDP.
const protocolBoth = "TCP_AND_UDP"

// DisplayName returns the display name of a Service's balancer: "[prefix-]UID" for an LB, "namespace/name/UID" for an NLB.
func DisplayName(svc *v1.Service, kind oci.BalancerKind, prefix string) string {
	name := string(svc.UID)
	switch {
	case kind == oci.KindNLB:
		name = svc.Namespace + "/" + svc.Name + "/" + name
	case prefix != "":
		name = strings.TrimSuffix(prefix, "-") + "-" + name
	}
	return name[:min(len(name), maxDisplayName)]
}

// hasDisplayName says whether a balancer has the display name that only this Service gives, whatever the prefix was then.
// The UID in it makes it unique in the world.
func hasDisplayName(b *oci.Balancer, svc *v1.Service) bool {
	uid := string(svc.UID)
	switch {
	case uid == "":
		return false
	case b.Kind == oci.KindNLB:
		return strings.HasSuffix(b.DisplayName, "/"+uid)
	default:
		return b.DisplayName == uid || strings.HasSuffix(b.DisplayName, "-"+uid)
	}
}

// objectName is the name of a listener or backend set: "<protocol>-<port>", for IPv6 with a suffix. The longest has 22
// characters; the API takes 32.
func objectName(protocol string, port int32, v6 bool) string {
	name := protocol + "-" + strconv.Itoa(int(port))
	if v6 {
		name += suffixV6
	}
	return name
}

// parsedName is what the name of a listener or backend set says.
type parsedName struct {
	protocol string // upper case
	port     int
	v6       bool
}

// parseName reads a name that this or the existing implementation gives. Listener names may be legacy ones: a lower-case
// protocol, and the name of a Secret behind the port.
func parseName(kind oci.BalancerKind, name string, listener bool) (parsedName, bool) {
	protocol, rest, _ := strings.Cut(name, "-")
	number, suffix, hasSuffix := strings.Cut(rest, "-")
	port, err := strconv.Atoi(number)
	if err != nil || port < 1 || port > 65535 || strconv.Itoa(port) != number {
		return parsedName{}, false
	}
	p := parsedName{protocol: strings.ToUpper(protocol), port: port}
	if !knownProtocol(kind, p.protocol, listener) || p.protocol != protocol && !listener {
		return parsedName{}, false
	}
	switch {
	case !hasSuffix:
	case kind == oci.KindNLB && suffix == suffixV6[1:]:
		p.v6 = true
	case kind == oci.KindLB && listener && isSecretName(suffix):
	default:
		return parsedName{}, false
	}
	return p, true
}

// knownProtocol says whether a name of ours can begin with the protocol.
func knownProtocol(kind oci.BalancerKind, protocol string, listener bool) bool {
	switch protocol {
	case "TCP":
		return true
	case "UDP", protocolBoth:
		return kind == oci.KindNLB
	case "HTTP", "HTTP2", "GRPC":
		return kind == oci.KindLB && listener
	}
	return false
}

// isSecretName says whether the text can be the name of a Secret.
func isSecretName(text string) bool {
	if text == "" || len(text) > 253 {
		return false
	}
	for _, r := range text {
		if (r < 'a' || r > 'z') && (r < '0' || r > '9') && r != '-' && r != '.' {
			return false
		}
	}
	return true
}

// ownListener says whether a listener of a balancer of ours is ours: by its name, and by the port that is in the name.
func ownListener(kind oci.BalancerKind, l oci.Listener) (parsedName, bool) {
	p, ok := parseName(kind, l.Name, true)
	return p, ok && p.port == l.Port
}

// ownBackendSet says the same of a backend set.
func ownBackendSet(kind oci.BalancerKind, name string) bool {
	_, ok := parseName(kind, name, false)
	return ok
}

// serviceKey is how a Service is called in logs and errors.
func serviceKey(svc *v1.Service) string { return svc.Namespace + "/" + svc.Name }
