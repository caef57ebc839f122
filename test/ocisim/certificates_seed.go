// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package ocisim

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"strings"
	"time"

	"github.com/oracle/oci-go-sdk/v65/certificatesmanagement"
	"github.com/oracle/oci-go-sdk/v65/common"
)

// Certificate of the Certificates service, imported. Without a PEM one is made, self-signed, for the name.
type Certificate struct {
	ID          string `json:"id,omitempty"`
	Compartment string `json:"compartment,omitempty"`
	Name        string `json:"name"`                  // without a PEM, the DNS name of the certificate too
	PEM         string `json:"certificate,omitempty"` // with the key
	PrivateKey  string `json:"privateKey,omitempty"`
	Chain       string `json:"chain,omitempty"`

	Tags `json:",inline"`
}

// CABundle of the Certificates service. Without a PEM one is made, of one CA.
type CABundle struct {
	ID          string `json:"id,omitempty"`
	Compartment string `json:"compartment,omitempty"`
	Name        string `json:"name"`
	PEM         string `json:"pem,omitempty"`

	Tags `json:",inline"`
}

// AddCertificate adds a certificate and returns its OCID.
func (r *Region) AddCertificate(c Certificate) string { return add(r, c, seeder.certificate) }

// AddCABundle adds a CA bundle and returns its OCID.
func (r *Region) AddCABundle(b CABundle) string { return add(r, b, seeder.caBundle) }

// Certificates returns all certificates of the Certificates service.
func (r *Region) Certificates() []certificatesmanagement.Certificate {
	var list []certificatesmanagement.Certificate
	for _, c := range inspect(r, leafCertificates, "") {
		list = append(list, c.Certificate)
	}
	return list
}

// CABundles returns all CA bundles.
func (r *Region) CABundles() []certificatesmanagement.CaBundle {
	var list []certificatesmanagement.CaBundle
	for _, b := range inspect(r, caBundles, "") {
		list = append(list, b.CaBundle)
	}
	return list
}

// Certificate changes a certificate.
func (f *Foreign) Certificate(id string, change func(*certificatesmanagement.Certificate)) error {
	return mutate(f, leafCertificates, id, func(c *certificate) { change(&c.Certificate) })
}

// madeValidity is how long a certificate that the simulator makes is valid.
const madeValidity = 90 * 24 * time.Hour

func (s seeder) certificate(c Certificate) (string, error) {
	id, err := s.newID(c.ID, leafCertificates.ocidType)
	if err != nil {
		return "", err
	}
	compartment, err := s.compartmentOf(c.Compartment, "")
	if err != nil {
		return "", err
	}
	if c.PEM == "" {
		if c.PEM, c.PrivateKey, err = s.makeCertificate(c.Name, false); err != nil {
			return "", err
		}
	}
	pair, err := tls.X509KeyPair([]byte(c.PEM), []byte(c.PrivateKey))
	if err != nil {
		return "", fmt.Errorf("seed: certificate %s: %w", c.Name, err)
	}
	leaf := pair.Leaf
	serial := fmt.Sprintf("%X", leaf.SerialNumber)
	leafCertificates.insert(s.cl, &certificate{
		pem: c.PEM, chain: c.Chain, key: c.PrivateKey,
		Certificate: certificatesmanagement.Certificate{
			Id: common.String(id), CompartmentId: common.String(compartment), Name: common.String(orElse(c.Name, leaf.Subject.CommonName)),
			TimeCreated: s.cl.sdkTime(), LifecycleState: certificatesmanagement.CertificateLifecycleStateActive,
			ConfigType:   certificatesmanagement.CertificateConfigTypeImported,
			KeyAlgorithm: keyAlgorithm(leaf.PublicKey), SignatureAlgorithm: signatureAlgorithm(leaf.SignatureAlgorithm),
			Subject:      &certificatesmanagement.CertificateSubject{CommonName: common.String(leaf.Subject.CommonName)},
			FreeformTags: c.freeform(), DefinedTags: c.defined(),
			CurrentVersion: &certificatesmanagement.CertificateVersionSummary{
				CertificateId: common.String(id), TimeCreated: s.cl.sdkTime(), VersionNumber: common.Int64(1), SerialNumber: common.String(serial),
				Stages: []certificatesmanagement.VersionStageEnum{
					certificatesmanagement.VersionStageCurrent, certificatesmanagement.VersionStageLatest,
				},
				SubjectAlternativeNames: alternativeNames(leaf),
				Validity: &certificatesmanagement.Validity{
					TimeOfValidityNotBefore: sdkTimeOf(leaf.NotBefore), TimeOfValidityNotAfter: sdkTimeOf(leaf.NotAfter),
				},
			},
		},
	})
	return id, nil
}

func (s seeder) caBundle(b CABundle) (string, error) {
	id, err := s.newID(b.ID, caBundles.ocidType)
	if err != nil {
		return "", err
	}
	compartment, err := s.compartmentOf(b.Compartment, "")
	if err != nil {
		return "", err
	}
	if b.PEM == "" {
		if b.PEM, _, err = s.makeCertificate(b.Name, true); err != nil {
			return "", err
		}
	}
	if !x509.NewCertPool().AppendCertsFromPEM([]byte(b.PEM)) {
		return "", fmt.Errorf("seed: CA bundle %s: no certificate in it", b.Name)
	}
	caBundles.insert(s.cl, &caBundle{pem: b.PEM, CaBundle: certificatesmanagement.CaBundle{
		Id: common.String(id), CompartmentId: common.String(compartment), Name: common.String(b.Name), TimeCreated: s.cl.sdkTime(),
		LifecycleState: certificatesmanagement.CaBundleLifecycleStateActive, FreeformTags: b.freeform(), DefinedTags: b.defined(),
	}})
	return id, nil
}

// makeCertificate makes a self-signed certificate. Its key comes from the region's seed, so that equal seeds give
// equal certificates; it protects nothing.
func (s seeder) makeCertificate(name string, ca bool) (certificatePEM, keyPEM string, err error) {
	scalar := make([]byte, 32)
	for i := range scalar {
		scalar[i] = byte(s.cl.random.Uint32())
	}
	scalar[0] &= 0x7f // below the order of the curve
	key, err := ecdsa.ParseRawPrivateKey(elliptic.P256(), scalar)
	if err != nil {
		return "", "", fmt.Errorf("seed: key of %s: %w", name, err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(s.cl.random.Int64()), Subject: pkix.Name{CommonName: name},
		NotBefore: s.cl.now.Add(-time.Hour).UTC(), NotAfter: s.cl.now.Add(madeValidity).UTC(),
		BasicConstraintsValid: true, IsCA: ca, KeyUsage: x509.KeyUsageDigitalSignature,
	}
	if ca {
		template.KeyUsage |= x509.KeyUsageCertSign
	} else {
		template.DNSNames, template.ExtKeyUsage = []string{name}, []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	}
	// Without a source of randomness, ECDSA signatures are deterministic (RFC 6979).
	der, err := x509.CreateCertificate(nil, template, template, &key.PublicKey, key)
	if err != nil {
		return "", "", fmt.Errorf("seed: certificate %s: %w", name, err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return "", "", errors.Join(errors.New("seed: key of "+name), err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})),
		string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private})), nil
}

func alternativeNames(leaf *x509.Certificate) []certificatesmanagement.CertificateSubjectAlternativeName {
	var list []certificatesmanagement.CertificateSubjectAlternativeName
	for _, name := range leaf.DNSNames {
		list = append(list, certificatesmanagement.CertificateSubjectAlternativeName{
			Type: certificatesmanagement.CertificateSubjectAlternativeNameTypeDns, Value: common.String(name),
		})
	}
	for _, address := range leaf.IPAddresses {
		list = append(list, certificatesmanagement.CertificateSubjectAlternativeName{
			Type: certificatesmanagement.CertificateSubjectAlternativeNameTypeIp, Value: common.String(address.String()),
		})
	}
	return list
}

// keyAlgorithm names the algorithm of a key as the service does; "" for one that it does not name.
func keyAlgorithm(key any) certificatesmanagement.KeyAlgorithmEnum {
	name := ""
	switch k := key.(type) {
	case *rsa.PublicKey:
		name = fmt.Sprintf("RSA%d", k.N.BitLen())
	case *ecdsa.PublicKey:
		name = fmt.Sprintf("ECDSA_P%d", k.Params().BitSize)
	}
	algorithm, _ := certificatesmanagement.GetMappingKeyAlgorithmEnum(name)
	return algorithm
}

// signatureAlgorithm names an algorithm as the service does: SHA256-RSA is SHA256_WITH_RSA.
func signatureAlgorithm(a x509.SignatureAlgorithm) certificatesmanagement.SignatureAlgorithmEnum {
	family, hash, found := strings.Cut(a.String(), "-")
	if found && !strings.HasPrefix(family, "SHA") {
		family, hash = hash, family
	}
	algorithm, _ := certificatesmanagement.GetMappingSignatureAlgorithmEnum(family + "_WITH_" + hash)
	return algorithm
}
