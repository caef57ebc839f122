// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package loadbalancer

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
)

// Annotations about TLS.
const (
	annotationTLSPorts         = prefixLB + "load-balancer-ssl-ports"
	annotationTLSSecret        = prefixLB + "load-balancer-tls-secret"
	annotationBackendSetSecret = prefixLB + "load-balancer-tls-backendset-secret"
	annotationListenerTLS      = prefixCommon + "oci-load-balancer-listener-ssl-config"
	annotationBackendSetTLS    = prefixCommon + "oci-load-balancer-backendset-ssl-config"
)

// tlsProtocols are the versions of TLS in the spelling of the API (oci-go-sdk, loadbalancer.SslConfigurationDetails).
var tlsProtocols = []string{"TLSv1", "TLSv1.1", "TLSv1.2", "TLSv1.3"}

// TLSSettings are the annotations about TLS as typed values.
type TLSSettings struct {
	Ports            []int     // sorted, without duplicates
	Secret           SecretRef // of the listeners
	BackendSetSecret SecretRef
	Listener         TLSOptions
	BackendSet       TLSOptions

	ignored []string // what the JSON annotations hold beyond that, for people
}

// TLSOptions are how TLS is spoken.
type TLSOptions struct {
	CipherSuite *string
	Protocols   *string // joined by commas, sorted: "TLSv1.2,TLSv1.3"
}

func (o TLSOptions) empty() bool { return o.CipherSuite == nil && o.Protocols == nil }

// SecretRef names a Secret; without a namespace it is in that of the Service. The zero value names none.
type SecretRef struct {
	Namespace string
	Name      string
}

func (r SecretRef) none() bool { return r == SecretRef{} }

// in completes the name with the namespace of a Service.
func (r SecretRef) in(namespace string) types.NamespacedName {
	if r.Namespace != "" {
		namespace = r.Namespace
	}
	return types.NamespacedName{Namespace: namespace, Name: r.Name}
}

// secrets are the Secrets that have an effect.
func (t TLSSettings) secrets(namespace string) []types.NamespacedName {
	if len(t.Ports) == 0 {
		return nil
	}
	var out []types.NamespacedName
	for _, ref := range []SecretRef{t.Secret, t.BackendSetSecret} {
		if name := ref.in(namespace); !ref.none() && !slices.Contains(out, name) {
			out = append(out, name)
		}
	}
	return out
}

func tlsAnnotations() []Annotation {
	return []Annotation{
		{
			Key: annotationTLSPorts, Kinds: onLB(), Type: TypePorts, Default: "none", Change: MutableLive, Since: sinceV1,
			Text: "Ports of the Service with TLS; `tls-secret` and `tls-backendset-secret` say on which side of the balancer.",
			set:  tlsPorts,
		},
		{
			Key: annotationTLSSecret, Kinds: onLB(), Type: TypeSecret, Default: "none", Change: MutableLive, Since: sinceV1,
			Text: "Secret with the certificate of the listeners of the `ssl-ports`: `tls.crt`, `tls.key`, optionally `ca.crt` and `passphrase`.",
			set:  secretRef(func(s *Settings) *SecretRef { return &s.TLS.Secret }),
		},
		{
			Key: annotationBackendSetSecret, Kinds: onLB(), Type: TypeSecret, Default: "none", Change: MutableLive, Since: sinceV1,
			Text: "TLS towards the backends of the `ssl-ports`, with the certificate of this Secret. Health checks stay without TLS.",
			set:  secretRef(func(s *Settings) *SecretRef { return &s.TLS.BackendSetSecret }),
		},
		{
			Key: annotationListenerTLS, Kinds: onLB(), Type: TypeTLSOptions, Default: "the service's", Change: MutableLive, Since: sinceV1,
			Text: "Cipher suite and TLS versions of listeners with TLS.",
			set:  tlsOptions("listener", func(s *Settings) *TLSOptions { return &s.TLS.Listener }),
		},
		{
			Key: annotationBackendSetTLS, Kinds: onLB(), Type: TypeTLSOptions, Default: "the service's", Change: MutableLive, Since: sinceV1,
			Text: "Cipher suite and TLS versions of backend sets with TLS.",
			set:  tlsOptions("backendset", func(s *Settings) *TLSOptions { return &s.TLS.BackendSet }),
		},
	}
}

// tlsPorts reads a list of ports. Empty elements, as after a trailing comma, are passed over.
func tlsPorts(s *Settings, value string) error {
	var ports []int
	for text := range strings.SplitSeq(value, ",") {
		text = strings.TrimSpace(text)
		if text == "" {
			continue
		}
		port, err := strconv.Atoi(text)
		if err != nil || port < 1 || port > 65535 {
			return fmt.Errorf("%q is no port; it must be port numbers like 443,8443", shortened(text, maxShownValue))
		}
		ports = append(ports, port)
	}
	slices.Sort(ports)
	s.TLS.Ports = slices.Compact(ports)
	return nil
}

// secretRef reads "name" or "namespace/name".
func secretRef(field func(*Settings) *SecretRef) setter {
	return func(s *Settings, value string) error {
		namespace, name, both := strings.Cut(value, "/")
		if !both {
			namespace, name = "", value
		}
		if both && len(validation.IsDNS1123Label(namespace)) > 0 || len(validation.IsDNS1123Subdomain(name)) > 0 {
			return errors.New("it must be the name of a Secret, or namespace/name")
		}
		*field(s) = SecretRef{Namespace: namespace, Name: name}
		return nil
	}
}

// suiteName is what the name of a cipher suite can be, Oracle's or one that somebody made on the balancer.
var suiteName = regexp.MustCompile(`^[A-Za-z0-9_-]{1,255}$`)

// tlsOptions reads a JSON object like the API's SslConfigurationDetails, with keys in any case. As with the existing
// implementation only two of its fields have an effect.
func tlsOptions(what string, field func(*Settings) *TLSOptions) setter {
	return func(s *Settings, value string) error {
		const like = `it must be JSON like {"cipherSuiteName":"oci-default-ssl-cipher-suite-v1","protocols":["TLSv1.2"]}`
		var object map[string]json.RawMessage
		if err := json.Unmarshal([]byte(value), &object); err != nil {
			return fmt.Errorf("%s: %w", like, err)
		}
		var o TLSOptions
		for _, key := range slices.Sorted(maps.Keys(object)) {
			var err error
			switch strings.ToLower(key) {
			case "ciphersuitename":
				o.CipherSuite, err = readSuite(object[key])
			case "protocols":
				o.Protocols, err = readProtocols(object[key])
			default:
				s.TLS.ignored = append(s.TLS.ignored, shortened(key, maxShownValue)+" in "+what+"-ssl-config")
			}
			if err != nil {
				return fmt.Errorf("%s: %w", like, err)
			}
		}
		*field(s) = o
		return nil
	}
}

func readSuite(text json.RawMessage) (*string, error) {
	var name string
	if err := json.Unmarshal(text, &name); err != nil {
		return nil, err
	}
	if name = strings.TrimSpace(name); name == "" {
		return nil, nil
	}
	if !suiteName.MatchString(name) {
		return nil, fmt.Errorf("%q is no name of a cipher suite", shortened(name, maxShownValue))
	}
	return &name, nil
}

func readProtocols(text json.RawMessage) (*string, error) {
	var given []string
	if err := json.Unmarshal(text, &given); err != nil {
		return nil, err
	}
	var known []string
	for _, p := range given {
		i := slices.IndexFunc(tlsProtocols, func(t string) bool { return strings.EqualFold(t, strings.TrimSpace(p)) })
		if i < 0 {
			return nil, fmt.Errorf("%q is none of %s", shortened(p, maxShownValue), strings.Join(tlsProtocols, ", "))
		}
		known = append(known, tlsProtocols[i])
	}
	if len(known) == 0 {
		return nil, nil
	}
	joined := joinProtocols(known)
	return &joined, nil
}

// joinProtocols makes one comparable value of a list in which order means nothing.
func joinProtocols(list []string) string {
	return strings.Join(slices.Compact(slices.Sorted(slices.Values(list))), ",")
}

// combinations tells of annotations about TLS that have no effect.
func (t TLSSettings) combinations() Problems {
	var problems Problems
	ignored := func(format string, args ...any) {
		problems.warn(ReasonAnnotationIgnored, fmt.Sprintf(format, args...))
	}
	switch {
	case len(t.Ports) > 0 && t.Secret.none() && t.BackendSetSecret.none():
		ignored("annotation %s has no effect, and its ports no TLS, without %s or %s", annotationTLSPorts, annotationTLSSecret, annotationBackendSetSecret)
	case len(t.Ports) == 0 && !t.Secret.none():
		ignored("annotation %s has no effect without %s: no port has TLS", annotationTLSSecret, annotationTLSPorts)
	case len(t.Ports) == 0 && !t.BackendSetSecret.none():
		ignored("annotation %s has no effect without %s: no port has TLS", annotationBackendSetSecret, annotationTLSPorts)
	}
	if !t.Listener.empty() && (len(t.Ports) == 0 || t.Secret.none()) {
		ignored("annotation %s has no effect without %s and %s", annotationListenerTLS, annotationTLSPorts, annotationTLSSecret)
	}
	if !t.BackendSet.empty() && (len(t.Ports) == 0 || t.BackendSetSecret.none()) {
		ignored("annotation %s has no effect without %s and %s", annotationBackendSetTLS, annotationTLSPorts, annotationBackendSetSecret)
	}
	if len(t.ignored) > 0 {
		ignored("%s: these have no effect; cipherSuiteName and protocols have", strings.Join(t.ignored, ", "))
	}
	return problems
}
