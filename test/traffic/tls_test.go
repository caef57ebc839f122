// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package traffic_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"slices"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// webHost is the name in the certificates.
const webHost = "web.example.com"

// issuer signs certificates for webHost.
type issuer struct {
	t    testing.TB
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	next int64 // serial number
}

func newIssuer(t testing.TB) *issuer {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "issuer"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return &issuer{t: t, cert: cert, key: key, next: 1000}
}

// issue returns the data of a Secret with a new certificate, and its serial number.
func (i *issuer) issue() (data map[string][]byte, serial string) {
	i.t.Helper()
	i.next++
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		i.t.Fatal(err)
	}
	der, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{
		SerialNumber: big.NewInt(i.next), Subject: pkix.Name{CommonName: webHost}, DNSNames: []string{webHost},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}, i.cert, key.Public(), i.key)
	if err != nil {
		i.t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		i.t.Fatal(err)
	}
	return map[string][]byte{
		v1.TLSCertKey:       pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		v1.TLSPrivateKeyKey: pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}),
	}, fmt.Sprint(i.next)
}

// trust is how clients check the certificates.
func (i *issuer) trust() *tls.Config {
	roots := x509.NewCertPool()
	roots.AddCert(i.cert)
	return &tls.Config{RootCAs: roots, ServerName: webHost, MinVersion: tls.VersionTLS12}
}

// tlsSecret is the Secret with the certificate of the balancers that terminate TLS.
const tlsSecret = "web-certificate"

// readSecrets lets the cloud-controller-manager read Secrets, as docs/services.md says.
func (l *lab) readSecrets() {
	l.t.Helper()
	_, err := l.Cluster.Kubectl(l.ctx, "--namespace=default", "create", "rolebinding", "oci-cloud-controller-manager:tls-secrets",
		"--clusterrole=oci-cloud-controller-manager:tls-secrets", "--serviceaccount=kube-system:cloud-controller-manager")
	if err != nil {
		l.t.Fatal(err)
	}
}

// secret creates the Secret, or replaces its content.
func (l *lab) secret(data map[string][]byte) {
	l.t.Helper()
	secrets := l.Cluster.Client().CoreV1().Secrets(v1.NamespaceDefault)
	object := &v1.Secret{ObjectMeta: metav1.ObjectMeta{Name: tlsSecret}, Type: v1.SecretTypeTLS, Data: data}
	if _, err := secrets.Create(l.ctx, object, metav1.CreateOptions{}); err == nil {
		return
	}
	if _, err := secrets.Update(l.ctx, object, metav1.UpdateOptions{}); err != nil {
		l.t.Fatal(err)
	}
}

// certificateRotates replaces the certificate, and waits until no client gets the old one.
func (d *drive) certificateRotates() {
	d.t.Helper()
	data, serial := d.issuer.issue()
	d.crowd.during("a certificate rotates")
	d.secret(data)
	d.until("the new certificate alone is shown", func() (bool, string) {
		d.crowd.rounds(1)
		var shown []string
		d.crowd.each(func(s *stream) {
			for number := range s.serials {
				if !slices.Contains(shown, number) {
					shown = append(shown, number)
				}
			}
			clear(s.serials)
		})
		return slices.Equal(shown, []string{serial}), fmt.Sprintf("shown: %v; want %s", shown, serial)
	})
	d.settle()
}
