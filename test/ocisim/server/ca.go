// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

const (
	caCertFile = "ca.pem"
	caKeyFile  = "ca-key.pem"

	caLifetime   = 10 * 365 * 24 * time.Hour
	leafLifetime = 90 * 24 * time.Hour

	// maxLeaves bounds the certificates kept in memory; a client that invents server names only makes the cache restart.
	maxLeaves = 512
)

// authority is the certificate authority behind every TLS server of the simulator. It signs one leaf per server name,
// when that name is first asked for.
type authority struct {
	cert    *x509.Certificate
	certPEM []byte
	key     crypto.Signer

	mu     sync.Mutex
	leaves map[string]*tls.Certificate
}

// loadAuthority reads the authority kept in dir, or makes one and keeps it there. A stored certificate with less than
// one leaf lifetime to go is replaced.
func loadAuthority(dir string) (*authority, error) {
	certPEM, err := os.ReadFile(filepath.Join(dir, caCertFile))
	if errors.Is(err, fs.ErrNotExist) {
		return createAuthority(dir)
	}
	if err != nil {
		return nil, fmt.Errorf("read the CA: %w", err)
	}
	pair, err := tls.LoadX509KeyPair(filepath.Join(dir, caCertFile), filepath.Join(dir, caKeyFile))
	if err != nil {
		return nil, fmt.Errorf("read the CA kept in %s: %w", dir, err)
	}
	cert, err := x509.ParseCertificate(pair.Certificate[0])
	if err != nil {
		return nil, fmt.Errorf("parse the CA kept in %s: %w", dir, err)
	}
	key, ok := pair.PrivateKey.(crypto.Signer)
	if !ok || !cert.IsCA {
		return nil, fmt.Errorf("the certificate kept in %s cannot sign others", dir)
	}
	if time.Until(cert.NotAfter) < leafLifetime {
		return createAuthority(dir)
	}
	return &authority{cert: cert, certPEM: certPEM, key: key, leaves: map[string]*tls.Certificate{}}, nil
}

// createAuthority makes a new self-signed authority and writes certificate and key into dir.
func createAuthority(dir string) (*authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("generate the CA key: %w", err)
	}
	template := &x509.Certificate{
		Subject:               pkix.Name{CommonName: "ocisim CA", Organization: []string{"simulated OCI region, not for production"}},
		NotBefore:             time.Now().Add(-time.Hour),
		NotAfter:              time.Now().Add(caLifetime),
		IsCA:                  true,
		BasicConstraintsValid: true,
		KeyUsage:              x509.KeyUsageCertSign | x509.KeyUsageCRLSign,
	}
	cert, err := signCertificate(template, nil, key.Public(), key)
	if err != nil {
		return nil, fmt.Errorf("sign the CA: %w", err)
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, fmt.Errorf("encode the CA key: %w", err)
	}
	a := &authority{cert: cert, certPEM: certificatePEM(cert), key: key, leaves: map[string]*tls.Certificate{}}
	keyPEM := pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER})
	if err := os.WriteFile(filepath.Join(dir, caKeyFile), keyPEM, 0o600); err != nil {
		return nil, fmt.Errorf("keep the CA key: %w", err)
	}
	if err := os.WriteFile(filepath.Join(dir, caCertFile), a.certPEM, 0o644); err != nil {
		return nil, fmt.Errorf("keep the CA: %w", err)
	}
	return a, nil
}

// tlsConfig serves a leaf for whatever name the client asks for; protocols are the ALPN names offered, in order.
//
// The hosts of identity domains speak HTTP/1.1 only, in records as large as they come: the Go SDK's token exchange
// cancels its request before it reads the answer's body, and loses what has not arrived with the headers by then.
func (a *authority) tlsConfig(protocols ...string) *tls.Config {
	config := &tls.Config{
		MinVersion:     tls.VersionTLS12,
		NextProtos:     protocols,
		GetCertificate: a.certificateFor,
	}
	domains := config.Clone()
	domains.NextProtos = []string{"http/1.1"}
	domains.DynamicRecordSizingDisabled = true
	config.GetConfigForClient = func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
		if isIdentityDomain(hello.ServerName) {
			return domains, nil
		}
		return nil, nil //nolint:nilnil // crypto/tls: go on with this configuration
	}
	return config
}

// isIdentityDomain tells the hosts of identity domains, idcs-….identity.oraclecloud.com, from those of the identity
// service, identity.….oraclecloud.com.
func isIdentityDomain(host string) bool { return strings.Contains(strings.ToLower(host), ".identity.") }

// certificateFor answers a ClientHello. A client that dials an address sends no name; the leaf then carries the
// address it dialled.
func (a *authority) certificateFor(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
	name := strings.ToLower(strings.TrimSuffix(hello.ServerName, "."))
	if name == "" {
		host, _, err := net.SplitHostPort(hello.Conn.LocalAddr().String())
		if err != nil {
			return nil, fmt.Errorf("no server name sent and no local address: %w", err)
		}
		name = host
	}
	return a.leaf(name)
}

// leaf returns the certificate for a DNS name or an IP address, signing it when it is asked for the first time.
func (a *authority) leaf(name string) (*tls.Certificate, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if cert, ok := a.leaves[name]; ok && time.Until(cert.Leaf.NotAfter) > time.Hour {
		return cert, nil
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("generate a key for %s: %w", name, err)
	}
	template := &x509.Certificate{
		Subject:     pkix.Name{CommonName: commonName(name)},
		NotBefore:   time.Now().Add(-time.Hour),
		NotAfter:    time.Now().Add(leafLifetime),
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	if ip := net.ParseIP(name); ip != nil {
		template.IPAddresses = []net.IP{ip}
		if ip.IsLoopback() {
			template.DNSNames = []string{"localhost"}
		}
	} else {
		template.DNSNames = []string{name}
	}
	leaf, err := signCertificate(template, a.cert, key.Public(), a.key)
	if err != nil {
		return nil, fmt.Errorf("sign a certificate for %s: %w", name, err)
	}
	cert := &tls.Certificate{Certificate: [][]byte{leaf.Raw, a.cert.Raw}, PrivateKey: key, Leaf: leaf}
	if len(a.leaves) >= maxLeaves {
		clear(a.leaves)
	}
	a.leaves[name] = cert
	return cert, nil
}

// commonName keeps the subject within the 64 characters that X.509 allows; clients only look at the alternative names.
func commonName(name string) string {
	if len(name) > 64 {
		return "ocisim"
	}
	return name
}

// signCertificate fills in a random serial number and signs; a nil parent means self-signed.
func signCertificate(template, parent *x509.Certificate, pub crypto.PublicKey, key crypto.Signer) (*x509.Certificate, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return nil, fmt.Errorf("choose a serial number: %w", err)
	}
	template.SerialNumber = serial
	if parent == nil {
		parent = template
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, pub, key)
	if err != nil {
		return nil, err
	}
	return x509.ParseCertificate(der)
}

func certificatePEM(cert *x509.Certificate) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert.Raw})
}
