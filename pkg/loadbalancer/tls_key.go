// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package loadbalancer

import (
	"crypto"
	"crypto/aes"
	"crypto/cipher"
	"crypto/pbkdf2"
	"crypto/sha1" //nolint:gosec // the default of PBKDF2 in RFC 8018
	"crypto/sha256"
	"crypto/sha512"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/pem"
	"errors"
	"hash"
	"strings"

	"github.com/oracle/oci-cloud-controller-manager/pkg/config"
)

var (
	errNoKey         = errors.New("is no private key in PEM form")
	errBadKey        = errors.New("has a private key that cannot be read")
	errEncryptedKey  = errors.New("is encrypted, and the Secret has no key " + SecretKeyPassphrase)
	errBadPassphrase = errors.New("cannot be decrypted with what the Secret has as " + SecretKeyPassphrase)

	// errUnknownEncryption is for keys that only the service can judge.
	errUnknownEncryption = errors.New("encryption that is not known here")
)

// parseKey reads a private key. Nil without an error is one whose encryption is not known here: then the service is the first
// one to read it. Its errors say nothing of the content.
func parseKey(text string, passphrase config.Secret) (crypto.Signer, error) {
	for rest := []byte(text); ; {
		var block *pem.Block
		block, rest = pem.Decode(rest)
		switch {
		case block == nil:
			return nil, errNoKey
		case !strings.HasSuffix(block.Type, "PRIVATE KEY"):
			continue // as EC PARAMETERS
		case block.Type != encryptedKeyType && block.Headers["DEK-Info"] == "":
			return parseSigner(block.Bytes, errBadKey)
		case passphrase == "":
			return nil, errEncryptedKey
		}
		der, err := decryptKey(block, []byte(passphrase))
		if errors.Is(err, errUnknownEncryption) {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		return parseSigner(der, errBadPassphrase) // a wrong one can give something that looks decrypted
	}
}

func parseSigner(der []byte, otherwise error) (crypto.Signer, error) {
	for _, parse := range []func([]byte) (any, error){
		x509.ParsePKCS8PrivateKey,
		func(der []byte) (any, error) { return x509.ParsePKCS1PrivateKey(der) },
		func(der []byte) (any, error) { return x509.ParseECPrivateKey(der) },
	} {
		if key, err := parse(der); err == nil {
			if signer, ok := key.(crypto.Signer); ok {
				return signer, nil
			}
		}
	}
	return nil, otherwise
}

// encryptedKeyType is the PEM type of encrypted keys in PKCS #8 (RFC 7468, section 11).
const encryptedKeyType = "ENCRYPTED PRIVATE KEY"

// maxIterations bounds the work for a key, which is done in each sync: some 20 ms. openssl takes 2048.
const maxIterations = 100_000

// Object identifiers of RFC 8018, appendix A, and of NIST for AES.
var (
	oidPBES2  = asn1.ObjectIdentifier{1, 2, 840, 113549, 1, 5, 13}
	oidPBKDF2 = asn1.ObjectIdentifier{1, 2, 840, 113549, 1, 5, 12}
)

// hashFor is the hash of a pseudo-random function of PBKDF2; nil if it is not known here.
func hashFor(oid asn1.ObjectIdentifier) func() hash.Hash {
	return map[string]func() hash.Hash{
		"":                    sha1.New,
		"1.2.840.113549.2.7":  sha1.New,
		"1.2.840.113549.2.9":  sha256.New,
		"1.2.840.113549.2.10": sha512.New384,
		"1.2.840.113549.2.11": sha512.New,
	}[oid.String()]
}

// keySizeFor is the size of the key of a cipher in CBC mode, in bytes; 0 if it is not known here.
func keySizeFor(oid asn1.ObjectIdentifier) int {
	return map[string]int{
		"2.16.840.1.101.3.4.1.2":  16,
		"2.16.840.1.101.3.4.1.22": 24,
		"2.16.840.1.101.3.4.1.42": 32,
	}[oid.String()]
}

// decryptKey decrypts a key of PKCS #8 with PBES2 (RFC 5958, RFC 8018), or one of the older form that openssl writes.
func decryptKey(block *pem.Block, passphrase []byte) ([]byte, error) {
	if block.Type != encryptedKeyType {
		der, err := x509.DecryptPEMBlock(block, passphrase) //nolint:staticcheck // users have such keys, and nothing is encrypted with it
		switch {
		case errors.Is(err, x509.IncorrectPasswordError):
			return nil, errBadPassphrase
		case err != nil:
			return nil, errUnknownEncryption
		}
		return der, nil
	}
	var outer struct {
		Algorithm pkix.AlgorithmIdentifier
		Data      []byte
	}
	if rest, err := asn1.Unmarshal(block.Bytes, &outer); err != nil || len(rest) > 0 {
		return nil, errBadKey
	}
	var scheme struct{ Derivation, Cipher pkix.AlgorithmIdentifier }
	var derivation struct {
		Salt       []byte
		Iterations int
		KeyLength  int                      `asn1:"optional"`
		Function   pkix.AlgorithmIdentifier `asn1:"optional"`
	}
	var iv []byte
	if !outer.Algorithm.Algorithm.Equal(oidPBES2) || !unmarshal(outer.Algorithm.Parameters, &scheme) ||
		!scheme.Derivation.Algorithm.Equal(oidPBKDF2) || !unmarshal(scheme.Derivation.Parameters, &derivation) ||
		!unmarshal(scheme.Cipher.Parameters, &iv) {
		return nil, errUnknownEncryption
	}
	newHash, size := hashFor(derivation.Function.Algorithm), keySizeFor(scheme.Cipher.Algorithm)
	if newHash == nil || size == 0 || derivation.Iterations < 1 || derivation.Iterations > maxIterations || len(iv) != aes.BlockSize {
		return nil, errUnknownEncryption
	}
	key, err := pbkdf2.Key(newHash, string(passphrase), derivation.Salt, derivation.Iterations, size)
	if err != nil {
		return nil, errUnknownEncryption
	}
	return decryptCBC(key, iv, outer.Data)
}

func unmarshal(value asn1.RawValue, into any) bool {
	rest, err := asn1.Unmarshal(value.FullBytes, into)
	return err == nil && len(rest) == 0
}

// decryptCBC also takes the padding off (RFC 8018, section 6.1.1).
func decryptCBC(key, iv, data []byte) ([]byte, error) {
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, errUnknownEncryption
	}
	if len(data) == 0 || len(data)%aes.BlockSize != 0 {
		return nil, errBadKey
	}
	plain := make([]byte, len(data))
	cipher.NewCBCDecrypter(block, iv).CryptBlocks(plain, data)
	padding := int(plain[len(plain)-1])
	if padding < 1 || padding > aes.BlockSize {
		return nil, errBadPassphrase
	}
	return plain[:len(plain)-padding], nil
}
