// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package loadbalancer

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/oracle/oci-cloud-controller-manager/pkg/config"
)

// C066: an encrypted key is held against its certificate before anything is uploaded, with the passphrase of the Secret. What is
// encrypted in a way that is not known here is left to the service. The keys were made by openssl 3.0 with the passphrase
// "passphrase"; that of scrypt.pem and pbes2-des3-sha1.pem as well.
func TestEncryptedKeys(t *testing.T) {
	read := func(name string) string {
		t.Helper()
		text, err := os.ReadFile(filepath.Join("testdata", "keys", name))
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	const right, wrong = "passphrase", "passphrase\n"
	const mismatch, bad, none = "does not belong to the first certificate", "cannot be decrypted with what the Secret has as passphrase", "is encrypted"
	pbes2 := read("pbes2-aes256.pem")
	lines := strings.SplitAfter(pbes2, "\n")
	for _, test := range []struct {
		name       string
		key        string
		passphrase config.Secret
		want       string
	}{
		{"AES-256", pbes2, right, ""},
		{"AES-256, wrong passphrase", pbes2, wrong, bad},
		{"AES-256, no passphrase", pbes2, "", none},
		{"AES-128, SHA-512", read("pbes2-aes128-sha512.pem"), right, ""},
		{"AES-128, SHA-512, wrong passphrase", read("pbes2-aes128-sha512.pem"), wrong, bad},
		{"the old form", read("legacy-aes256.pem"), right, ""},
		{"the old form, wrong passphrase", read("legacy-aes256.pem"), wrong, bad},
		{"the old form, no passphrase", read("legacy-aes256.pem"), "", none},
		{"key of another certificate", read("of-another.pem"), right, mismatch},
		{"scrypt", read("scrypt.pem"), right, ""},
		{"scrypt, which is not looked into", read("scrypt.pem"), wrong, ""},
		{"triple DES, which is not looked into", read("pbes2-des3-sha1.pem"), wrong, ""},
		{"no ASN.1", "-----BEGIN ENCRYPTED PRIVATE KEY-----\nMAA=\n-----END ENCRYPTED PRIVATE KEY-----\n", right, "has a private key that cannot be read"},
		{"cut off", lines[0] + lines[1] + lines[len(lines)-2], right, "has a private key that cannot be read"},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, err := TLSSecret{Certificate: read("certificate.pem"), Key: config.Secret(test.key), Passphrase: test.passphrase}.check()
			switch {
			case test.want == "" && err != nil:
				t.Errorf("refused: %v", err)
			case test.want != "" && (err == nil || !strings.Contains(err.Error(), "tls.key "+test.want)):
				t.Errorf("got %v, want %q", err, test.want)
			}
		})
	}
}
