// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

// Package pki makes certificates for tests.
package pki

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"testing"
	"time"
)

// Pair is a certificate and its private key, PEM.
type Pair struct {
	Certificate string
	Key         string
}

// New makes a certificate for a host that it signs itself. It is valid through the year 2000, in which tests on virtual
// time take place, and long after it.
func New(t testing.TB, host string) Pair {
	t.Helper()
	return Valid(t, host, time.Date(1999, time.January, 1, 0, 0, 0, 0, time.UTC), time.Date(2099, time.January, 1, 0, 0, 0, 0, time.UTC))
}

// Valid is New with the time in which the certificate is valid.
func Valid(t testing.TB, host string, from, until time.Time) Pair {
	t.Helper()
	pair, err := Make(host, from, until)
	if err != nil {
		t.Fatal(err)
	}
	return pair
}

// Make is Valid for programs that are no tests.
func Make(host string, from, until time.Time) (Pair, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return Pair{}, fmt.Errorf("make a key for %s: %w", host, err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: host}, DNSNames: []string{host}, NotBefore: from, NotAfter: until,
		IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return Pair{}, fmt.Errorf("make a certificate for %s: %w", host, err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return Pair{}, fmt.Errorf("encode the key for %s: %w", host, err)
	}
	return Pair{
		Certificate: string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})),
		Key:         string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private})),
	}, nil
}
