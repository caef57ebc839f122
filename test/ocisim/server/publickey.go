// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"strings"
)

// ErrPublicKey refuses a session key.
var ErrPublicKey = errors.New("not an RSA public key")

// parsePublicKey reads a PKIX RSA key, as PEM or as the bare base64 that is left when armour and newlines are removed.
func parsePublicKey(text string) (*rsa.PublicKey, error) {
	var der []byte
	if block, _ := pem.Decode([]byte(text)); block != nil {
		der = block.Bytes
	} else {
		var err error
		if der, err = base64.StdEncoding.DecodeString(strings.TrimSpace(text)); err != nil {
			return nil, fmt.Errorf("%w: %w", ErrPublicKey, err)
		}
	}
	parsed, err := x509.ParsePKIXPublicKey(der)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrPublicKey, err)
	}
	key, ok := parsed.(*rsa.PublicKey)
	if !ok {
		return nil, ErrPublicKey
	}
	return key, nil
}
