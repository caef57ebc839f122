// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package pki

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"sync"
)

// SigningKey is one RSA key with which tests sign requests to a simulated region. It is shorter than OCI asks for (2,048
// bits, which took four fifths of the time of the component tests): 1,024 bits, or 512 where the test binary says
// //go:debug rsa1024min=0.
var SigningKey = sync.OnceValue(func() *rsa.PrivateKey {
	key, err := rsa.GenerateKey(rand.Reader, 512)
	if err != nil {
		key, err = rsa.GenerateKey(rand.Reader, 1024)
	}
	if err != nil {
		panic(err)
	}
	return key
})

// SigningKeyPEM is SigningKey as a configuration file carries it. The first call must be outside of a synctest bubble.
func SigningKeyPEM() string {
	return string(pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(SigningKey())}))
}
