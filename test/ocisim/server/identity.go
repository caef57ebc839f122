// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha1" // names a certificate, no more
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"
)

const (
	// identityKeyBits is the size of an instance's key, as the real service uses it.
	identityKeyBits = 2048

	// instanceCertLifetime is the life of an instance certificate. Real ones live for hours; the metadata service hands
	// out a new one before the old one ends.
	instanceCertLifetime = 4 * time.Hour
)

// identity issues the certificates by which instances prove what they are. It has its own chain: a root that is never
// handed out and an intermediate that signs the leaves.
type identity struct {
	root            *x509.Certificate
	intermediate    *x509.Certificate
	intermediatePEM []byte
	key             crypto.Signer // of the intermediate

	mu    sync.Mutex
	creds map[string]instanceCredentials
}

// instanceCredentials is what one instance finds under /opc/v2/identity.
type instanceCredentials struct {
	leaf    *x509.Certificate
	certPEM []byte
	keyPEM  []byte
	key     *rsa.PrivateKey
}

func newIdentity() (*identity, error) {
	rootKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("generate the identity root key: %w", err)
	}
	root, err := signCertificate(identityCA("ocisim identity root"), nil, rootKey.Public(), rootKey)
	if err != nil {
		return nil, fmt.Errorf("sign the identity root: %w", err)
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("generate the identity intermediate key: %w", err)
	}
	intermediate, err := signCertificate(identityCA("PKISVC Identity Intermediate ocisim"), root, key.Public(), rootKey)
	if err != nil {
		return nil, fmt.Errorf("sign the identity intermediate: %w", err)
	}
	return &identity{
		root:            root,
		intermediate:    intermediate,
		intermediatePEM: certificatePEM(intermediate),
		key:             key,
		creds:           map[string]instanceCredentials{},
	}, nil
}

func identityCA(name string) *x509.Certificate {
	return &x509.Certificate{
		Subject:               pkix.Name{CommonName: name},
		NotBefore:             time.Now().Add(-time.Hour),
		NotAfter:              time.Now().Add(caLifetime),
		IsCA:                  true,
		BasicConstraintsValid: true,
		KeyUsage:              x509.KeyUsageCertSign,
	}
}

// credentials returns the certificate and key of an instance. Key and certificate are made when first asked for; the
// certificate is renewed over the same key in the last half of its life.
func (id *identity) credentials(instance instanceView) (instanceCredentials, error) {
	id.mu.Lock()
	defer id.mu.Unlock()
	have, ok := id.creds[instance.id]
	if ok && time.Until(have.leaf.NotAfter) > instanceCertLifetime/2 {
		return have, nil
	}
	key := have.key
	if !ok {
		var err error
		if key, err = rsa.GenerateKey(rand.Reader, identityKeyBits); err != nil {
			return instanceCredentials{}, fmt.Errorf("generate the key of %s: %w", instance.id, err)
		}
	}
	leaf, err := signCertificate(&x509.Certificate{
		Subject:     instanceSubject(instance),
		NotBefore:   time.Now().Add(-5 * time.Minute),
		NotAfter:    time.Now().Add(instanceCertLifetime),
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}, id.intermediate, key.Public(), id.key)
	if err != nil {
		return instanceCredentials{}, fmt.Errorf("sign the certificate of %s: %w", instance.id, err)
	}
	have = instanceCredentials{
		leaf:    leaf,
		certPEM: certificatePEM(leaf),
		keyPEM:  pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)}),
		key:     key,
	}
	id.creds[instance.id] = have
	return have, nil
}

// organizationalUnit is the attribute type OU of X.520.
var organizationalUnit = asn1.ObjectIdentifier{2, 5, 4, 11}

// instanceSubject makes each statement a relative name of its own, as the real certificates have it: pkix.Name would put
// its organizational units together in one, of which other SDKs than Go's read the first alone.
func instanceSubject(instance instanceView) pkix.Name {
	name := pkix.Name{CommonName: instance.id}
	for _, unit := range []string{
		"opc-certtype:instance",
		"opc-compartment:" + instance.compartment,
		"opc-instance:" + instance.id,
		"opc-tenant:" + instance.tenancy,
	} {
		name.ExtraNames = append(name.ExtraNames, pkix.AttributeTypeAndValue{Type: organizationalUnit, Value: unit})
	}
	return name
}

var errIdentityCertificate = errors.New("certificate not accepted")

// claims are the statements of an instance certificate.
type claims struct {
	instance, compartment, tenancy string
	key                            *rsa.PublicKey
}

// verify checks a leaf against the chain it came with and reads its statements.
func (id *identity) verify(leaf *x509.Certificate, intermediates []*x509.Certificate) (claims, error) {
	roots, pool := x509.NewCertPool(), x509.NewCertPool()
	roots.AddCert(id.root)
	for _, cert := range intermediates {
		pool.AddCert(cert)
	}
	opts := x509.VerifyOptions{Roots: roots, Intermediates: pool, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}
	if _, err := leaf.Verify(opts); err != nil {
		return claims{}, fmt.Errorf("%w: %w", errIdentityCertificate, err)
	}
	key, ok := leaf.PublicKey.(*rsa.PublicKey)
	if !ok {
		return claims{}, fmt.Errorf("%w: not an RSA key", errIdentityCertificate)
	}
	c := claims{key: key}
	for _, unit := range leaf.Subject.OrganizationalUnit {
		switch name, value, _ := strings.Cut(unit, ":"); name {
		case "opc-instance":
			c.instance = value
		case "opc-compartment":
			c.compartment = value
		case "opc-tenant":
			c.tenancy = value
		}
	}
	if c.instance == "" || c.tenancy == "" {
		return claims{}, fmt.Errorf("%w: opc-instance or opc-tenant missing", errIdentityCertificate)
	}
	return c, nil
}

// certificateFingerprint is the colon-separated SHA-256 of a certificate, as it stands in the key id of a federation call.
func certificateFingerprint(cert *x509.Certificate) string {
	sum := sha256.Sum256(cert.Raw)
	return colonHex(sum[:])
}

// oldCertificateFingerprint is its SHA-1, for SDKs that do not name an algorithm.
func oldCertificateFingerprint(cert *x509.Certificate) string {
	sum := sha1.Sum(cert.Raw)
	return colonHex(sum[:])
}

// colonHex writes bytes as "ab:cd:…".
func colonHex(sum []byte) string {
	digits := hex.EncodeToString(sum)
	var b strings.Builder
	for i := 0; i < len(digits); i += 2 {
		if i > 0 {
			b.WriteByte(':')
		}
		b.WriteString(digits[i : i+2])
	}
	return b.String()
}
