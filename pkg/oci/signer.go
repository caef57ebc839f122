// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package oci

import (
	"crypto/rsa"
	"net/http"
	"time"

	"github.com/oracle/oci-go-sdk/v65/common"
)

// principalRefresher is a provider that can get a new token before the old one expires.
type principalRefresher interface {
	// refresh replaces the token, unless that was done since the given time.
	refresh(since time.Time) error
}

// credentialer is a provider whose key and key id are read together, so that they belong to each other.
type credentialer interface {
	credentials() (credentials, error)
}

// credentials sign one request.
type credentials struct {
	keyID string
	key   *rsa.PrivateKey
}

func (c credentials) KeyID() (string, error)                  { return c.keyID, nil }
func (c credentials) PrivateRSAKey() (*rsa.PrivateKey, error) { return c.key, nil }

// requestSigner signs requests for a principal. Its being a type of ours also keeps the SDK from repeating a request that
// was answered with 401 by itself, with pauses that no context ends.
type requestSigner struct {
	provider common.ConfigurationProvider
}

// Sign implements common.HTTPRequestSigner.
func (s requestSigner) Sign(request *http.Request) error {
	if p, ok := s.provider.(credentialer); ok {
		c, err := p.credentials()
		if err != nil {
			return err
		}
		return common.DefaultRequestSigner(c).Sign(request)
	}
	return common.DefaultRequestSigner(s.provider).Sign(request)
}
