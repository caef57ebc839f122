// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

// validity of every certificate. A cluster that a developer leaves running does not
// live longer.
const validity = 365 * 24 * time.Hour

// pki is the cluster's certificate authority and the directory of the files that
// the components read.
type pki struct {
	dir string
	ca  *authority
}

// newPKI makes the authorities, the API server's certificate and the service
// account keys. ECDSA keys take no time; the service account key alone is RSA, as
// in most clusters, so that its tokens are signed with RS256.
func newPKI(dir string) (*pki, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	p := &pki{dir: dir}
	var err error
	if p.ca, err = p.newAuthority("ca"); err != nil {
		return nil, err
	}
	if _, err := p.newAuthority("front-proxy-ca"); err != nil {
		return nil, err
	}
	server, err := p.ca.issue(&x509.Certificate{
		Subject:     pkix.Name{CommonName: "kube-apiserver"},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		DNSNames: []string{"localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc",
			"kubernetes.default.svc.cluster.local"},
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1), net.IPv4(10, 96, 0, 1)},
	})
	if err != nil {
		return nil, err
	}
	if err := p.write("apiserver", server); err != nil {
		return nil, err
	}
	return p, p.writeServiceAccountKey()
}

// file is the path of one of the files.
func (p *pki) file(name string) string { return filepath.Join(p.dir, name) }

func (p *pki) write(name string, k keyPair) error {
	if err := os.WriteFile(p.file(name+".crt"), k.certificate, 0o644); err != nil {
		return err
	}
	return os.WriteFile(p.file(name+".key"), k.key, 0o600)
}

func (p *pki) writeServiceAccountKey() error {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		return err
	}
	private, err := encodeKey(key)
	if err != nil {
		return err
	}
	public, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		return err
	}
	if err := os.WriteFile(p.file("service-account.key"), private, 0o600); err != nil {
		return err
	}
	return os.WriteFile(p.file("service-account.pub"), encodePEM("PUBLIC KEY", public), 0o644)
}

// client issues a certificate that authenticates as user, a member of groups.
func (p *pki) client(user string, groups ...string) (keyPair, error) {
	return p.ca.issue(&x509.Certificate{
		Subject:     pkix.Name{CommonName: user, Organization: groups},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	})
}

// keyPair is a certificate and its private key, both PEM.
type keyPair struct {
	certificate, key []byte
}

// authority is a self-signed certificate authority.
type authority struct {
	keyPair
	parsed *x509.Certificate
	signer crypto.Signer
}

// newAuthority makes an authority and writes NAME.crt and NAME.key.
func (p *pki) newAuthority(name string) (*authority, error) {
	template := &x509.Certificate{
		Subject:               pkix.Name{CommonName: name},
		KeyUsage:              x509.KeyUsageCertSign | x509.KeyUsageCRLSign | x509.KeyUsageDigitalSignature,
		BasicConstraintsValid: true,
		IsCA:                  true,
	}
	signer, err := newKey()
	if err != nil {
		return nil, err
	}
	a := &authority{parsed: template, signer: signer}
	if a.keyPair, err = a.sign(template, signer); err != nil {
		return nil, err
	}
	block, _ := pem.Decode(a.certificate)
	if a.parsed, err = x509.ParseCertificate(block.Bytes); err != nil {
		return nil, err
	}
	return a, p.write(name, a.keyPair)
}

// issue signs a certificate for a new key.
func (a *authority) issue(template *x509.Certificate) (keyPair, error) {
	key, err := newKey()
	if err != nil {
		return keyPair{}, err
	}
	template.KeyUsage = x509.KeyUsageDigitalSignature
	return a.sign(template, key)
}

func (a *authority) sign(template *x509.Certificate, key crypto.Signer) (keyPair, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return keyPair{}, err
	}
	now := time.Now()
	template.SerialNumber = serial
	template.NotBefore, template.NotAfter = now.Add(-time.Hour), now.Add(validity)
	der, err := x509.CreateCertificate(rand.Reader, template, a.parsed, key.Public(), a.signer)
	if err != nil {
		return keyPair{}, fmt.Errorf("sign the certificate of %q: %w", template.Subject.CommonName, err)
	}
	encoded, err := encodeKey(key)
	if err != nil {
		return keyPair{}, err
	}
	return keyPair{certificate: encodePEM("CERTIFICATE", der), key: encoded}, nil
}

func newKey() (crypto.Signer, error) {
	return ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
}

func encodeKey(key crypto.Signer) ([]byte, error) {
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, err
	}
	return encodePEM("PRIVATE KEY", der), nil
}

func encodePEM(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}
