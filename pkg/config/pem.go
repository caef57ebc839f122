// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"strings"
)

// keyFault says what is wrong with a private key, or returns "". It never repeats a part of the key.
// passphraseMissing is set if nothing but the passphrase is missing.
func keyFault(key, passphrase Secret) (fault string, passphraseMissing bool) {
	block, _ := pem.Decode([]byte(key))
	if block == nil {
		return "want a private key in PEM form, beginning with a line -----BEGIN PRIVATE KEY----- or -----BEGIN RSA PRIVATE KEY-----", false
	}
	if !strings.HasSuffix(block.Type, "PRIVATE KEY") {
		return fmt.Sprintf("want a private key, got a PEM block of type %q", block.Type), false
	}
	// The header is that of RFC 1421, the block type that of PKCS #8 (RFC 5958).
	encrypted := block.Type == "ENCRYPTED PRIVATE KEY" || strings.Contains(block.Headers["Proc-Type"], "ENCRYPTED")
	if encrypted && passphrase == "" {
		return "the private key is encrypted, but there is no passphrase", true
	}
	return "", false
}

// parseBundle returns the certificates of a CA bundle, or what is wrong with it.
func parseBundle(bundle string) (certificates []*x509.Certificate, fault string) {
	rest := []byte(bundle)
	for {
		var block *pem.Block
		block, rest = pem.Decode(rest)
		if block == nil {
			break
		}
		if block.Type != "CERTIFICATE" {
			return nil, fmt.Sprintf("want certificates only, got a PEM block of type %q", block.Type)
		}
		certificate, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, fmt.Sprintf("certificate %d cannot be read: %v", len(certificates)+1, err)
		}
		certificates = append(certificates, certificate)
	}
	if len(certificates) == 0 {
		return nil, "want certificates in PEM form, found none"
	}
	return certificates, ""
}
