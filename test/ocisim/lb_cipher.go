// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package ocisim

import (
	"slices"
	"strings"

	"github.com/oracle/oci-go-sdk/v65/common"
	"github.com/oracle/oci-go-sdk/v65/loadbalancer"
)

// tlsProtocols are the protocols that TLS settings may name.
var tlsProtocols = []string{"TLSv1", "TLSv1.1", "TLSv1.2", "TLSv1.3"}

// The cipher suites that settings get when they name none.
const (
	defaultSuite     = "oci-default-ssl-cipher-suite-v1"
	defaultHTTPSuite = "oci-default-http2-ssl-cipher-suite-v1"
	// customizedSuite is reserved: the service shows it, and takes it from nobody.
	customizedSuite = "oci-customized-ssl-cipher-suite"
)

// predefinedSuites are Oracle's cipher suites with the protocols that they have ciphers for, from the SDK's
// documentation of SslCipherSuite.
var predefinedSuites = map[string][]string{
	defaultSuite:                                      {"TLSv1.2"},
	"oci-modern-ssl-cipher-suite-v1":                  {"TLSv1.2"},
	"oci-compatible-ssl-cipher-suite-v1":              {"TLSv1", "TLSv1.1", "TLSv1.2"},
	"oci-wider-compatible-ssl-cipher-suite-v1":        {"TLSv1", "TLSv1.1", "TLSv1.2"},
	defaultHTTPSuite:                                  {"TLSv1.2"},
	"oci-default-http2-tls-13-ssl-cipher-suite-v1":    {"TLSv1.3"},
	"oci-default-http2-tls-12-13-ssl-cipher-suite-v1": {"TLSv1.2", "TLSv1.3"},
	"oci-tls-13-recommended-ssl-cipher-suite-v1":      {"TLSv1.3"},
	"oci-tls-12-13-wider-ssl-cipher-suite-v1":         {"TLSv1.2", "TLSv1.3"},
	"oci-tls-11-12-13-wider-ssl-cipher-suite-v1":      {"TLSv1.1", "TLSv1.2", "TLSv1.3"},
}

// The ciphers that a suite may have, by the oldest protocol that knows them.
const (
	ciphersOf13 = "TLS_AES_128_GCM_SHA256 TLS_AES_256_GCM_SHA384 TLS_CHACHA20_POLY1305_SHA256 TLS_AES_128_CCM_SHA256 " +
		"TLS_AES_128_CCM_8_SHA256"
	ciphersOf12 = "AES128-GCM-SHA256 AES128-SHA256 AES256-GCM-SHA384 AES256-SHA256 DH-DSS-AES128-GCM-SHA256 " +
		"DH-DSS-AES128-SHA256 DH-DSS-AES256-GCM-SHA384 DH-DSS-AES256-SHA256 DH-RSA-AES128-GCM-SHA256 " +
		"DH-RSA-AES128-SHA256 DH-RSA-AES256-GCM-SHA384 DH-RSA-AES256-SHA256 DHE-DSS-AES128-GCM-SHA256 " +
		"DHE-DSS-AES128-SHA256 DHE-DSS-AES256-GCM-SHA384 DHE-DSS-AES256-SHA256 DHE-RSA-AES128-GCM-SHA256 " +
		"DHE-RSA-AES128-SHA256 DHE-RSA-AES256-GCM-SHA384 DHE-RSA-AES256-SHA256 ECDH-ECDSA-AES128-GCM-SHA256 " +
		"ECDH-ECDSA-AES128-SHA256 ECDH-ECDSA-AES256-GCM-SHA384 ECDH-ECDSA-AES256-SHA384 ECDH-RSA-AES128-GCM-SHA256 " +
		"ECDH-RSA-AES128-SHA256 ECDH-RSA-AES256-GCM-SHA384 ECDH-RSA-AES256-SHA384 ECDHE-ECDSA-AES128-GCM-SHA256 " +
		"ECDHE-ECDSA-AES128-SHA256 ECDHE-ECDSA-AES256-GCM-SHA384 ECDHE-ECDSA-AES256-SHA384 " +
		"ECDHE-RSA-AES128-GCM-SHA256 ECDHE-RSA-AES128-SHA256 ECDHE-RSA-AES256-GCM-SHA384 ECDHE-RSA-AES256-SHA384"
	ciphersOf10 = "AES128-SHA AES256-SHA CAMELLIA128-SHA CAMELLIA256-SHA DES-CBC3-SHA DH-DSS-AES128-SHA DH-DSS-AES256-SHA " +
		"DH-DSS-CAMELLIA128-SHA DH-DSS-CAMELLIA256-SHA DH-DSS-DES-CBC3-SHAv DH-DSS-SEED-SHA DH-RSA-AES128-SHA " +
		"DH-RSA-AES256-SHA DH-RSA-CAMELLIA128-SHA DH-RSA-CAMELLIA256-SHA DH-RSA-DES-CBC3-SHA DH-RSA-SEED-SHA " +
		"DHE-DSS-AES128-SHA DHE-DSS-AES256-SHA DHE-DSS-CAMELLIA128-SHA DHE-DSS-CAMELLIA256-SHA DHE-DSS-DES-CBC3-SHA " +
		"DHE-DSS-SEED-SHA DHE-RSA-AES128-SHA DHE-RSA-AES256-SHA DHE-RSA-CAMELLIA128-SHA DHE-RSA-CAMELLIA256-SHA " +
		"DHE-RSA-DES-CBC3-SHA DHE-RSA-SEED-SHA ECDH-ECDSA-AES128-SHA ECDH-ECDSA-AES256-SHA ECDH-ECDSA-DES-CBC3-SHA " +
		"ECDH-ECDSA-RC4-SHA ECDH-RSA-AES128-SHA ECDH-RSA-AES256-SHA ECDH-RSA-DES-CBC3-SHA ECDH-RSA-RC4-SHA " +
		"ECDHE-ECDSA-AES128-SHA ECDHE-ECDSA-AES256-SHA ECDHE-ECDSA-DES-CBC3-SHA ECDHE-ECDSA-RC4-SHA " +
		"ECDHE-RSA-AES128-SHA ECDHE-RSA-AES256-SHA ECDHE-RSA-DES-CBC3-SHA ECDHE-RSA-RC4-SHA IDEA-CBC-SHA " +
		"KRB5-DES-CBC3-MD5 KRB5-DES-CBC3-SHA KRB5-IDEA-CBC-MD5 KRB5-IDEA-CBC-SHA KRB5-RC4-MD5 KRB5-RC4-SHA " +
		"PSK-3DES-EDE-CBC-SHA PSK-AES128-CBC-SHA PSK-AES256-CBC-SHA PSK-RC4-SHA RC4-MD5 RC4-SHA SEED-SHA"
)

// cipherProtocols are the protocols that a cipher works with; none for one that the service does not know.
func cipherProtocols(cipher string) []string {
	switch {
	case slices.Contains(strings.Fields(ciphersOf13), cipher):
		return []string{"TLSv1.3"}
	case slices.Contains(strings.Fields(ciphersOf12), cipher):
		return []string{"TLSv1.2"}
	case slices.Contains(strings.Fields(ciphersOf10), cipher):
		return []string{"TLSv1", "TLSv1.1", "TLSv1.2"}
	}
	return nil
}

// suiteProtocols are the protocols that a suite has ciphers for; false for a suite that does not exist.
func suiteProtocols(v *loadbalancer.LoadBalancer, name string) ([]string, bool) {
	if own, ok := v.SslCipherSuites[name]; ok {
		var list []string
		for _, cipher := range own.Ciphers {
			list = append(list, cipherProtocols(cipher)...)
		}
		return list, true
	}
	list, ok := predefinedSuites[name]
	return list, ok
}

func cipherSuitePart() lbPart[loadbalancer.SslCipherSuite, loadbalancer.CreateSslCipherSuiteDetails, loadbalancer.UpdateSslCipherSuiteDetails] {
	return lbPart[loadbalancer.SslCipherSuite, loadbalancer.CreateSslCipherSuiteDetails, loadbalancer.UpdateSslCipherSuiteDetails]{
		one: "SSLCipherSuite", many: "SSLCipherSuites", path: "sslCipherSuites", param: "name", label: "SSL cipher suite",
		of:     func(v *loadbalancer.LoadBalancer) *map[string]loadbalancer.SslCipherSuite { return &v.SslCipherSuites },
		nameOf: func(d *loadbalancer.CreateSslCipherSuiteDetails) *string { return d.Name },
		check:  (*cloud).checkCipherSuite,
		used: func(cl *cloud, v *loadbalancer.LoadBalancer, name string) error {
			return tlsUsers(v, func(ssl *loadbalancer.SslConfiguration) error {
				if value(ssl.CipherSuiteName) == name {
					return cl.rule(PartInUse, "SSL cipher suite", name)
				}
				return nil
			})
		},
	}
}

func (cl *cloud) checkCipherSuite(v *loadbalancer.LoadBalancer, name string, suite *loadbalancer.SslCipherSuite) error {
	if err := checkPartName("cipher suite name", name, maxLBListenerName); err != nil {
		return err
	}
	if _, predefined := predefinedSuites[name]; predefined || name == customizedSuite {
		return errInvalid("The cipher suite name '%s' is reserved.", name)
	}
	if len(suite.Ciphers) == 0 {
		return errMissing("ciphers")
	}
	suite.Name = common.String(name)
	for i, cipher := range suite.Ciphers {
		if cipherProtocols(cipher) == nil {
			return errInvalid("The cipher '%s' is not supported.", cipher)
		}
		if slices.Contains(suite.Ciphers[:i], cipher) {
			return errInvalid("The cipher '%s' is there twice.", cipher)
		}
	}
	// Whoever uses the suite must be able to go on.
	trial := *v
	trial.SslCipherSuites = map[string]loadbalancer.SslCipherSuite{name: *suite}
	return tlsUsers(v, func(ssl *loadbalancer.SslConfiguration) error {
		if value(ssl.CipherSuiteName) != name {
			return nil
		}
		return cl.checkCiphers(&trial, ssl)
	})
}

// checkCiphers refuses TLS settings whose suite has no cipher for any of their protocols.
func (cl *cloud) checkCiphers(v *loadbalancer.LoadBalancer, ssl *loadbalancer.SslConfiguration) error {
	name := value(ssl.CipherSuiteName)
	known, exists := suiteProtocols(v, name)
	if !exists {
		return errInvalid("Cipher suite '%s' does not exist.", name)
	}
	for _, protocol := range ssl.Protocols {
		if slices.Contains(known, protocol) {
			return nil
		}
	}
	return cl.rule(CiphersUnfit, name, strings.Join(ssl.Protocols, ", "))
}
