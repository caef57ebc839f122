// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package oci

import (
	"crypto/rsa"
	"errors"
	"fmt"
	"regexp"
	"sync"
	"time"

	"github.com/oracle/oci-go-sdk/v65/common"
)

// AuthError says that a principal could not get what it needs to sign requests. It never holds a key or a token.
type AuthError struct {
	Principal string // as DescribePrincipal gives it
	Reason    string
}

func (e *AuthError) Error() string { return e.Principal + ": " + e.Reason }

// DescribePrincipal says who calls, without secrets, for logs and error messages.
func DescribePrincipal(p common.ConfigurationProvider) string {
	switch p := p.(type) {
	case *userPrincipal:
		return p.String()
	case *sessionPrincipal:
		return p.String()
	}
	// Not %v: a provider of the SDK prints its private key.
	return fmt.Sprintf("principal of type %T", p)
}

// UserCredentials identify a user by an API key.
type UserCredentials struct {
	Tenancy     string // OCID
	User        string // OCID
	Region      string
	Fingerprint string // of the public key: MD5, colon-separated
	PrivateKey  string // PEM, PKCS#1 or PKCS#8, possibly encrypted
	Passphrase  string // of an encrypted key
}

// Format keeps the key and its passphrase out of whatever the credentials are printed into.
func (c UserCredentials) Format(f fmt.State, _ rune) {
	fmt.Fprintf(f, "{%s %s %s %s [redacted]}", c.Tenancy, c.User, c.Region, c.Fingerprint)
}

// UserPrincipal returns the principal of a user. The key is read here, once: the SDK would decrypt it for every request.
func UserPrincipal(c UserCredentials) (common.ConfigurationProvider, error) {
	p := &userPrincipal{tenancy: c.Tenancy, user: c.User, region: c.Region, fingerprint: c.Fingerprint}
	for _, field := range []struct{ name, value string }{
		{"tenancy", c.Tenancy}, {"user", c.User}, {"fingerprint", c.Fingerprint}, {"private key", c.PrivateKey},
	} {
		if field.value == "" {
			return nil, &AuthError{p.String(), "no " + field.name + " given"}
		}
	}
	var passphrase []byte
	if c.Passphrase != "" {
		passphrase = []byte(c.Passphrase)
	}
	key, err := common.PrivateKeyFromBytesWithPassword([]byte(c.PrivateKey), passphrase)
	if err != nil {
		return nil, &AuthError{p.String(), "the private key cannot be read, or the passphrase is not its own: " + err.Error()}
	}
	p.key = key
	return p, nil
}

type userPrincipal struct {
	tenancy, user, region, fingerprint string
	key                                *rsa.PrivateKey
}

func (p *userPrincipal) String() string {
	return fmt.Sprintf("user principal %s (key %s)", p.user, p.fingerprint)
}

func (p *userPrincipal) PrivateRSAKey() (*rsa.PrivateKey, error) { return p.key, nil }
func (p *userPrincipal) KeyID() (string, error) {
	return p.tenancy + "/" + p.user + "/" + p.fingerprint, nil
}
func (p *userPrincipal) TenancyOCID() (string, error)    { return p.tenancy, nil }
func (p *userPrincipal) UserOCID() (string, error)       { return p.user, nil }
func (p *userPrincipal) KeyFingerprint() (string, error) { return p.fingerprint, nil }
func (p *userPrincipal) Region() (string, error)         { return p.region, nil }
func (p *userPrincipal) AuthType() (common.AuthConfig, error) {
	return common.AuthConfig{AuthType: common.UserPrincipal}, nil
}

// sessionPrincipal is a principal that holds a key pair and a token which it got for the public part and which expires.
// One of the SDK's providers does that; sessionPrincipal
//   - makes it at first use, so that a process starts while its identity provider is away,
//   - makes a new one when the service refuses the token,
//   - hands out key and token as a pair: the SDK's providers may renew both between the two questions,
//   - and keeps tokens out of error messages.
type sessionPrincipal struct {
	name   string
	region string // empty: the SDK's provider knows
	build  func() (common.ConfigurationProvider, error)

	mu      sync.Mutex
	inner   common.ConfigurationProvider
	builtAt time.Time
}

func (p *sessionPrincipal) String() string { return p.name }

// with runs f on the SDK's provider, one caller at a time: these providers are not all safe for concurrent use.
func (p *sessionPrincipal) with(f func(common.ConfigurationProvider) error) (err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	// A token that lacks a claim makes the SDK panic (auth/jwt.go).
	defer func() {
		if r := recover(); r != nil {
			err = &AuthError{p.name, redactTokens(fmt.Sprintf("the token cannot be used: %v", r))}
		}
	}()
	if p.inner == nil {
		inner, err := p.build()
		if err != nil {
			return p.failure(err)
		}
		p.inner, p.builtAt = inner, time.Now()
	}
	if err := f(p.inner); err != nil {
		return p.failure(err)
	}
	return nil
}

func (p *sessionPrincipal) failure(err error) error {
	var auth *AuthError
	if errors.As(err, &auth) {
		return auth
	}
	return &AuthError{p.name, redactTokens(err.Error())}
}

// refresh implements principalRefresher.
func (p *sessionPrincipal) refresh(since time.Time) error {
	p.mu.Lock()
	if p.builtAt.Before(since) {
		p.inner = nil
	}
	p.mu.Unlock()
	return p.with(func(inner common.ConfigurationProvider) error {
		_, err := inner.KeyID()
		return err
	})
}

// credentials implements credentialer.
func (p *sessionPrincipal) credentials() (credentials, error) {
	var c credentials
	err := p.with(func(inner common.ConfigurationProvider) error {
		// A renewal happens at most once per token lifetime, so the second round is the last one.
		for {
			before, err := inner.PrivateRSAKey()
			if err != nil {
				return err
			}
			if c.keyID, err = inner.KeyID(); err != nil {
				return err
			}
			if c.key, err = inner.PrivateRSAKey(); err != nil {
				return err
			}
			if c.key.Equal(before) {
				return nil
			}
		}
	})
	return c, err
}

func (p *sessionPrincipal) ask(question func(common.ConfigurationProvider) (string, error)) (string, error) {
	var answer string
	err := p.with(func(inner common.ConfigurationProvider) (err error) {
		answer, err = question(inner)
		return err
	})
	return answer, err
}

func (p *sessionPrincipal) PrivateRSAKey() (*rsa.PrivateKey, error) {
	c, err := p.credentials()
	return c.key, err
}
func (p *sessionPrincipal) KeyID() (string, error) {
	return p.ask(common.ConfigurationProvider.KeyID)
}
func (p *sessionPrincipal) TenancyOCID() (string, error) {
	return p.ask(common.ConfigurationProvider.TenancyOCID)
}
func (p *sessionPrincipal) UserOCID() (string, error) {
	return p.ask(common.ConfigurationProvider.UserOCID)
}
func (p *sessionPrincipal) KeyFingerprint() (string, error) {
	return p.ask(common.ConfigurationProvider.KeyFingerprint)
}
func (p *sessionPrincipal) Region() (string, error) {
	if p.region != "" {
		return p.region, nil
	}
	return p.ask(common.ConfigurationProvider.Region)
}
func (p *sessionPrincipal) AuthType() (common.AuthConfig, error) {
	return common.AuthConfig{AuthType: common.UnknownAuthenticationType}, nil
}

// jwt matches tokens: the SDK quotes one that it cannot parse.
var jwt = regexp.MustCompile(`[A-Za-z0-9_-]{16,}(\.[A-Za-z0-9_-]*){1,2}`)

func redactTokens(text string) string { return jwt.ReplaceAllString(text, "[redacted]") }
