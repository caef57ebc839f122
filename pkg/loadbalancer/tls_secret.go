// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package loadbalancer

import (
	"crypto"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/oracle/oci-cloud-controller-manager/pkg/config"
	"github.com/oracle/oci-cloud-controller-manager/pkg/oci"
)

// Keys of a Secret with a certificate (contract ccm.md §4.13; the first two are those of type kubernetes.io/tls).
const (
	SecretKeyCertificate = v1.TLSCertKey
	SecretKeyPrivateKey  = v1.TLSPrivateKeyKey
	SecretKeyCA          = "ca.crt"
	SecretKeyPassphrase  = "passphrase"
)

// TLSSecret is what a Secret with a certificate holds, PEM; an absent key is an empty field.
type TLSSecret struct {
	Certificate string        // the server's, and those that lead from it to its CA
	Key         config.Secret // may be encrypted with Passphrase
	CA          string
	Passphrase  config.Secret
}

// SecretFact is what became of reading a Secret.
type SecretFact struct {
	// Certificate is what the Secret holds, without a name.
	Certificate oci.Certificate
	// Problem says why the Secret cannot be used; empty if it can.
	Problem string
	// Warning is something to know about a Secret that can be used.
	Warning string
}

// SecretsOf returns the Secrets with certificates that a Service's balancer needs.
func SecretsOf(svc *v1.Service) []types.NamespacedName {
	kind := kindOf(svc.Annotations[AnnotationOCID])
	if kind == "" {
		kind = WantedKind(svc.Annotations)
	}
	if svc.Annotations[annotationTLSPorts] == "" || kind != oci.KindLB {
		return nil
	}
	settings, _ := ParseAnnotations(svc.Annotations, kind)
	return settings.TLS.secrets(svc.Namespace)
}

// inspect checks what a Secret holds, so that what the service would refuse never reaches it. No text that it returns has
// anything of the content but names and dates of the certificate.
func (s TLSSecret) inspect(now time.Time) SecretFact {
	fact := SecretFact{Certificate: oci.Certificate{Public: s.Certificate, CA: s.CA, Key: s.Key, Passphrase: s.Passphrase}}
	leaf, err := s.check()
	switch {
	case err != nil:
		return SecretFact{Problem: err.Error()}
	case now.After(leaf.NotAfter):
		fact.Warning = "the certificate has expired: it was valid until " + leaf.NotAfter.UTC().Format(time.RFC3339)
	case now.Before(leaf.NotBefore):
		fact.Warning = "the certificate is not valid before " + leaf.NotBefore.UTC().Format(time.RFC3339)
	}
	return fact
}

// check returns the server's certificate, or what is wrong with the Secret.
func (s TLSSecret) check() (*x509.Certificate, error) {
	if s.Certificate == "" {
		return nil, errors.New("it has no key " + SecretKeyCertificate)
	}
	if s.Key == "" {
		return nil, errors.New("it has no key " + SecretKeyPrivateKey)
	}
	chain, err := parseCertificates(s.Certificate)
	if err != nil {
		return nil, fmt.Errorf("%s %w", SecretKeyCertificate, err)
	}
	if s.CA != "" {
		if _, err := parseCertificates(s.CA); err != nil {
			return nil, fmt.Errorf("%s %w", SecretKeyCA, err)
		}
	}
	key, err := parseKey(string(s.Key), s.Passphrase)
	if err != nil {
		return nil, fmt.Errorf("%s %w", SecretKeyPrivateKey, err)
	}
	if key == nil { // the service is the first one to read it
		return chain[0], nil
	}
	public, ok := chain[0].PublicKey.(interface{ Equal(crypto.PublicKey) bool })
	if !ok || !public.Equal(key.Public()) {
		return nil, fmt.Errorf("%s does not belong to the first certificate of %s", SecretKeyPrivateKey, SecretKeyCertificate)
	}
	return chain[0], nil
}

var (
	errNoCertificate  = errors.New("is no certificate in PEM form")
	errBadCertificate = errors.New("has a certificate that cannot be read")
)

func parseCertificates(text string) ([]*x509.Certificate, error) {
	var out []*x509.Certificate
	for _, der := range certificatesIn(text) {
		c, err := x509.ParseCertificate(der)
		if err != nil {
			return nil, errBadCertificate
		}
		out = append(out, c)
	}
	if len(out) == 0 {
		return nil, errNoCertificate
	}
	return out, nil
}

// certificatesIn returns the certificates of a PEM text in their binary form.
func certificatesIn(text string) [][]byte {
	var out [][]byte
	for rest := []byte(text); ; {
		var block *pem.Block
		block, rest = pem.Decode(rest)
		switch {
		case block == nil:
			return out
		case block.Type == "CERTIFICATE":
			out = append(out, block.Bytes)
		}
	}
}

const (
	// maxBundlePrefix is how much of the Secret's name is in the name of a bundle. The API documents no longest name.
	maxBundlePrefix = 40
	// fingerprintLength is in hexadecimal digits.
	fingerprintLength = 20
)

// bundleName is the name of a certificate bundle of ours: "<name of the Secret>-<fingerprint>". It changes with the
// content, since the API cannot change a bundle, and Secrets of one name in two namespaces do not meet in it.
func bundleName(secret string, c oci.Certificate) string {
	prefix := strings.ReplaceAll(secret, ".", "-") // the API takes letters, digits, - and _
	return prefix[:min(len(prefix), maxBundlePrefix)] + "-" + fingerprint(c)
}

// madeByUs says whether a bundle was made by this program: its name has the fingerprint of its own content, which nobody
// else gives it.
func madeByUs(c oci.Certificate) bool {
	return strings.HasSuffix(c.Name, "-"+fingerprint(c))
}

// sameContent compares what can be seen of bundles; the private key follows from the certificate.
func sameContent(a, b oci.Certificate) bool { return fingerprint(a) == fingerprint(b) }

// fingerprint is made of the public certificate and the CA certificates only, in their binary form: blanks and line ends,
// which the service may change, play no part.
func fingerprint(c oci.Certificate) string {
	hash := sha256.New()
	hash.Write([]byte("certificate bundle of oci-cloud-controller-manager"))
	for _, text := range []string{c.Public, c.CA} {
		all := certificatesIn(text)
		if len(all) == 0 && text != "" {
			all = [][]byte{[]byte(strings.TrimSpace(text))}
		}
		fmt.Fprintf(hash, "%d certificates", len(all))
		for _, der := range all {
			fmt.Fprintf(hash, "%d:", len(der))
			hash.Write(der)
		}
	}
	return hex.EncodeToString(hash.Sum(nil))[:fingerprintLength]
}
