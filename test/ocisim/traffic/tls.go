// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/oracle/oci-cloud-controller-manager/test/ocisim"
)

// Why a listener or a backend set cannot do TLS.
var (
	errNoKey       = errors.New("the certificate has no private key here, or an encrypted one")
	errNoAuthority = errors.New("peers are to be verified, and no CA certificate is known")
	errUnverified  = errors.New("the peer's certificate is not valid")
	errProtocols   = errors.New("none of the TLS protocols is known")
	errCiphers     = errors.New("none of the ciphers is known to Go")
)

// tlsVersions are the protocols by their names in the API.
var tlsVersions = map[string]uint16{
	"TLSv1": tls.VersionTLS10, "TLSv1.1": tls.VersionTLS11, "TLSv1.2": tls.VersionTLS12, "TLSv1.3": tls.VersionTLS13,
}

// versions are the oldest and the newest protocol of a setting.
func versions(names []string) (oldest, newest uint16, err error) {
	for _, name := range names {
		v := tlsVersions[name]
		if v == 0 {
			continue
		}
		if oldest == 0 || v < oldest {
			oldest = v
		}
		newest = max(newest, v)
	}
	if oldest == 0 {
		return 0, 0, errProtocols
	}
	return oldest, newest, nil
}

// ciphersOf are the cipher suites of a balancer's own suite that Go has, for protocols before TLS 1.3, whose suites Go does
// not let choose.
func ciphersOf(names []string) ([]uint16, error) {
	if len(names) == 0 {
		return nil, nil
	}
	known := map[string]uint16{}
	for _, s := range append(tls.CipherSuites(), tls.InsecureCipherSuites()...) {
		known[openSSLName(s.Name)] = s.ID
	}
	var ids []uint16
	for _, name := range names {
		if id, ok := known[name]; ok {
			ids = append(ids, id)
		}
	}
	if len(ids) == 0 && !slices.ContainsFunc(names, func(n string) bool { return strings.HasPrefix(n, "TLS_") }) {
		return nil, errCiphers
	}
	return ids, nil
}

// openSSLName writes a name of IANA as the API does: TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256 is ECDHE-RSA-AES128-GCM-SHA256.
func openSSLName(iana string) string {
	exchange, cipher, ok := strings.Cut(strings.TrimPrefix(iana, "TLS_"), "_WITH_")
	if !ok {
		return iana
	}
	for _, r := range [][2]string{{"AES_128", "AES128"}, {"AES_256", "AES256"}, {"3DES_EDE_CBC", "DES-CBC3"}, {"RC4_128", "RC4"}, {"_CBC", ""}, {"_", "-"}} {
		cipher = strings.ReplaceAll(cipher, r[0], r[1])
	}
	if exchange == "RSA" {
		return cipher
	}
	return strings.ReplaceAll(exchange, "_", "-") + "-" + cipher
}

// base is what servers and clients have in common.
func (s *tlsSettings) base() (*tls.Config, error) {
	oldest, newest, err := versions(s.protocols)
	if err != nil {
		return nil, err
	}
	ciphers, err := ciphersOf(s.ciphers)
	if err != nil {
		return nil, err
	}
	return &tls.Config{MinVersion: oldest, MaxVersion: newest, CipherSuites: ciphers, NextProtos: s.preferences}, nil //nolint:gosec // the balancer's own choice
}

// serverTLS is the TLS of a listener.
func serverTLS(s *tlsSettings, bundles map[string]ocisim.BalancerCertificate) (*tls.Config, error) {
	config, err := s.base()
	if err != nil {
		return nil, err
	}
	bundle := bundles[s.bundle]
	if bundle.Key == "" {
		return nil, errNoKey
	}
	certificate, err := tls.X509KeyPair([]byte(bundle.Public+"\n"+bundle.CA), []byte(bundle.Key))
	if err != nil {
		return nil, fmt.Errorf("certificate %s: %w", s.bundle, err)
	}
	config.Certificates = []tls.Certificate{certificate}
	if s.verify {
		authorities, err := s.trusted(bundles)
		if err != nil {
			return nil, err
		}
		config.ClientAuth = tls.RequireAnyClientCert
		config.VerifyConnection = verifier(authorities, s.depth, x509.ExtKeyUsageClientAuth)
	}
	return config, nil
}

// backendTLS is how connections to the backends of a set are encrypted.
type backendTLS struct {
	config *tls.Config
	err    error // why they cannot be
}

func clientTLS(s *tlsSettings, bundles map[string]ocisim.BalancerCertificate) *backendTLS {
	if s == nil {
		return nil
	}
	config, err := s.base()
	if err != nil {
		return &backendTLS{err: err}
	}
	bundle := bundles[s.bundle]
	if bundle.Key != "" {
		certificate, err := tls.X509KeyPair([]byte(bundle.Public), []byte(bundle.Key))
		if err != nil {
			return &backendTLS{err: fmt.Errorf("certificate %s: %w", s.bundle, err)}
		}
		config.Certificates = []tls.Certificate{certificate}
	}
	// Backends are reached by address; the service checks who signed their certificates, not their names.
	config.InsecureSkipVerify = true
	if s.verify {
		authorities, err := s.trusted(bundles)
		if err != nil {
			return &backendTLS{err: err}
		}
		config.VerifyConnection = verifier(authorities, s.depth, x509.ExtKeyUsageServerAuth)
	}
	return &backendTLS{config: config}
}

// trusted are the CAs of the settings: those of their bundle, and those that they name.
func (s *tlsSettings) trusted(bundles map[string]ocisim.BalancerCertificate) (*x509.CertPool, error) {
	pool, found := x509.NewCertPool(), false
	for _, name := range append([]string{s.bundle}, s.authorities...) {
		if pool.AppendCertsFromPEM([]byte(bundles[name].CA)) {
			found = true
		}
	}
	if !found {
		return nil, errNoAuthority
	}
	return pool, nil
}

// verifier checks that a CA signed the peer's certificate, by at most so many certificates between as depth says.
func verifier(authorities *x509.CertPool, depth int, usage x509.ExtKeyUsage) func(tls.ConnectionState) error {
	return func(state tls.ConnectionState) error {
		if len(state.PeerCertificates) == 0 {
			return errUnverified
		}
		between := x509.NewCertPool()
		for _, c := range state.PeerCertificates[1:] {
			between.AddCert(c)
		}
		chains, err := state.PeerCertificates[0].Verify(x509.VerifyOptions{
			Roots: authorities, Intermediates: between, KeyUsages: []x509.ExtKeyUsage{usage},
		})
		if err != nil {
			return fmt.Errorf("%w: %w", errUnverified, err)
		}
		if !slices.ContainsFunc(chains, func(chain []*x509.Certificate) bool { return len(chain)-1 <= depth }) {
			return fmt.Errorf("%w: its chain is longer than %d", errUnverified, depth)
		}
		return nil
	}
}
