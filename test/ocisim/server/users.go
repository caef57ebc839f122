// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"crypto/md5" // OCI defines the fingerprint of an API key as its MD5
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base32"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// User is a user principal of the simulated tenancy together with one API key.
type User struct {
	Name        string `json:"name"`
	OCID        string `json:"ocid"`
	Tenancy     string `json:"tenancy"`
	Region      string `json:"region"`
	Fingerprint string `json:"fingerprint"` // MD5 of the public key, colon-separated
	ConfigFile  string `json:"configFile"`  // OCI config file with profile DEFAULT, for OCI_CONFIG_FILE
	KeyFile     string `json:"keyFile"`     // the private key, PEM

	key *rsa.PrivateKey
}

// KeyID is the name under which the user's requests are signed.
func (u *User) KeyID() string { return u.Tenancy + "/" + u.OCID + "/" + u.Fingerprint }

// PrivateKey is the API key.
func (u *User) PrivateKey() *rsa.PrivateKey { return u.key }

// PrivateKeyPEM is the API key as it goes inline into a cloud-provider.yaml.
func (u *User) PrivateKeyPEM() string {
	return string(pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(u.key)}))
}

// Env is the environment that makes an SDK program act as this user, in addition to Server.Env. The SDK prefers
// ~/.oci/config of the account's passwd entry (not of $HOME) where that file exists.
func (u *User) Env() []string { return []string{"OCI_CONFIG_FILE=" + u.ConfigFile} }

var (
	userName = regexp.MustCompile(`^[a-zA-Z0-9][a-zA-Z0-9._-]{0,63}$`)

	// ErrUserName refuses a name that cannot be part of a file name and an OCID.
	ErrUserName = errors.New("user names consist of 1 to 64 letters, digits, '.', '_' and '-'")
)

// userOCID makes the identifier of a user. It follows from the name, so that it is the same after a restart.
func userOCID(realm, name string) string {
	sum := sha256.Sum256([]byte("user " + name))
	unique := strings.ToLower(base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(sum[:]))
	return "ocid1.user." + realm + "..aaaaaaaa" + unique
}

// writeUser reads the user's key from dir/users/NAME or generates it there, and writes the config file beside it.
func writeUser(dir, name, ocid, tenancy, region string) (*User, error) {
	if !userName.MatchString(name) {
		return nil, fmt.Errorf("user %q: %w", name, ErrUserName)
	}
	home := filepath.Join(dir, "users", name)
	if err := os.MkdirAll(home, 0o700); err != nil {
		return nil, fmt.Errorf("user %s: %w", name, err)
	}
	u := &User{
		Name: name, OCID: ocid, Tenancy: tenancy, Region: region,
		ConfigFile: filepath.Join(home, "config"),
		KeyFile:    filepath.Join(home, "key.pem"),
	}
	var err error
	if u.key, err = loadUserKey(u.KeyFile); err != nil {
		return nil, fmt.Errorf("user %s: %w", name, err)
	}
	der, err := x509.MarshalPKIXPublicKey(u.key.Public())
	if err != nil {
		return nil, fmt.Errorf("user %s: encode the public key: %w", name, err)
	}
	sum := md5.Sum(der)
	u.Fingerprint = colonHex(sum[:])
	if err := os.WriteFile(u.ConfigFile, []byte(u.config()), 0o600); err != nil {
		return nil, fmt.Errorf("user %s: %w", name, err)
	}
	return u, nil
}

func (u *User) config() string {
	return strings.Join([]string{
		"[DEFAULT]",
		"user=" + u.OCID,
		"fingerprint=" + u.Fingerprint,
		"tenancy=" + u.Tenancy,
		"region=" + u.Region,
		"key_file=" + u.KeyFile,
		"",
	}, "\n")
}

func loadUserKey(path string) (*rsa.PrivateKey, error) {
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return createUserKey(path)
	}
	if err != nil {
		return nil, fmt.Errorf("read the API key: %w", err)
	}
	block, _ := pem.Decode(text)
	if block == nil {
		return nil, fmt.Errorf("read the API key %s: no PEM block", path)
	}
	key, err := x509.ParsePKCS1PrivateKey(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("read the API key %s: %w", path, err)
	}
	return key, nil
}

func createUserKey(path string) (*rsa.PrivateKey, error) {
	key, err := rsa.GenerateKey(rand.Reader, identityKeyBits)
	if err != nil {
		return nil, fmt.Errorf("generate the API key: %w", err)
	}
	text := pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)})
	if err := os.WriteFile(path, text, 0o600); err != nil {
		return nil, fmt.Errorf("keep the API key: %w", err)
	}
	return key, nil
}
