// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"crypto/x509"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestAuthorityIsKept(t *testing.T) {
	dir := t.TempDir()
	first, err := loadAuthority(dir)
	if err != nil {
		t.Fatal(err)
	}
	second, err := loadAuthority(dir)
	if err != nil {
		t.Fatal(err)
	}
	if !first.cert.Equal(second.cert) {
		t.Error("a second start made another CA; programs that trust the first would fail")
	}
	leaf, err := second.leaf("iaas.us-ashburn-1.oraclecloud.com")
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AddCert(first.cert)
	if _, err := leaf.Leaf.Verify(x509.VerifyOptions{DNSName: "iaas.us-ashburn-1.oraclecloud.com", Roots: roots}); err != nil {
		t.Errorf("leaf of the reloaded CA against the first certificate: %v", err)
	}
	info, err := os.Stat(filepath.Join(dir, caKeyFile))
	if err != nil {
		t.Fatal(err)
	}
	if info.Mode().Perm() != 0o600 {
		t.Errorf("the CA key has mode %v, want 0600", info.Mode().Perm())
	}
}

func TestAuthorityRefusesADamagedDirectory(t *testing.T) {
	dir := t.TempDir()
	if _, err := loadAuthority(dir); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(dir, caKeyFile)); err != nil {
		t.Fatal(err)
	}
	if _, err := loadAuthority(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("certificate without key: got %v, want an error that names the missing file", err)
	}
}

func TestLeafCarriesTheNameAskedFor(t *testing.T) {
	ca, err := loadAuthority(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	long := strings.Repeat("a", 60) + ".oci.oraclecloud.com"
	for _, name := range []string{"identity.us-ashburn-1.oci.oraclecloud.com", "127.0.0.1", "::1", long} {
		cert, err := ca.leaf(name)
		if err != nil {
			t.Fatal(err)
		}
		if err := cert.Leaf.VerifyHostname(name); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		again, err := ca.leaf(name)
		if err != nil {
			t.Fatal(err)
		}
		if again != cert {
			t.Errorf("%s: a second handshake got another certificate", name)
		}
	}
	for i := range maxLeaves + 10 {
		if _, err := ca.leaf("h" + strings.Repeat("x", i%50) + string(rune('a'+i%26)) + ".example"); err != nil {
			t.Fatal(err)
		}
	}
	if len(ca.leaves) > maxLeaves {
		t.Errorf("%d certificates in memory, want at most %d", len(ca.leaves), maxLeaves)
	}
}
