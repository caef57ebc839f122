// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package ocisim

import (
	"crypto/rsa"
	"fmt"
	"sync"
	"time"
)

// Principal is who calls. Rates, retry tokens, faults and policies are per principal.
type Principal struct {
	ID      string // OCID of the user or the instance, or any name that a test chooses
	Tenancy string // OCID; that of the region when empty
}

// keyring maps key identifiers to keys. It has its own lock, so that signatures are verified outside the region's.
type keyring struct {
	mu   sync.RWMutex
	keys map[string]registeredKey
}

type registeredKey struct {
	public    *rsa.PublicKey
	principal Principal
	expires   time.Time // zero: never
}

// RegisterKey lets requests with this key identifier in as the principal. Forms are "tenancy/user/fingerprint" of an
// API key and "ST$<token>" of a session.
func (r *Region) RegisterKey(keyID string, public *rsa.PublicKey, principal Principal) {
	r.RegisterSession(keyID, public, principal, time.Time{})
}

// RegisterSession is RegisterKey for a token that ends, on the time package's clock: afterwards the key is unknown.
func (r *Region) RegisterSession(keyID string, public *rsa.PublicKey, principal Principal, expires time.Time) {
	if principal.Tenancy == "" {
		principal.Tenancy = r.options.Tenancy
	}
	r.keys.mu.Lock()
	defer r.keys.mu.Unlock()
	if r.keys.keys == nil {
		r.keys.keys = map[string]registeredKey{}
	}
	r.keys.keys[keyID] = registeredKey{public: public, principal: principal, expires: expires}
}

// UnregisterKey makes a key unknown.
func (r *Region) UnregisterKey(keyID string) {
	r.keys.mu.Lock()
	defer r.keys.mu.Unlock()
	delete(r.keys.keys, keyID)
}

func (k *keyring) get(keyID string, now time.Time) (registeredKey, bool) {
	k.mu.RLock()
	defer k.mu.RUnlock()
	key, ok := k.keys[keyID]
	if !ok || (!key.expires.IsZero() && !now.Before(key.expires)) {
		return registeredKey{}, false
	}
	return key, true
}

// Authenticate verifies a request's signature against the registered keys. The error is for logs; the answer to the
// caller is always 401 NotAuthenticated.
func (r *Region) Authenticate(req SignedRequest) (Principal, error) {
	s, err := ParseSignature(req.Header.Get("Authorization"))
	if err != nil {
		return Principal{}, err
	}
	// Clients keep the time package's clock even when Advance has moved the region's.
	now := time.Now()
	key, ok := r.keys.get(s.KeyID, now)
	if !ok {
		return Principal{}, fmt.Errorf("%w: unknown key %.100s", ErrSignature, s.KeyID)
	}
	if err := s.Verify(req, key.public, now, requiredHeaders(req.Method)); err != nil {
		return Principal{}, err
	}
	return key.principal, nil
}

// identify names the caller. Without signature checks the key identifier is believed, and a request without one
// comes from "anonymous".
func (r *Region) identify(req SignedRequest) (Principal, error) {
	if r.options.Signatures {
		return r.Authenticate(req)
	}
	anonymous := Principal{ID: "anonymous", Tenancy: r.options.Tenancy}
	s, err := ParseSignature(req.Header.Get("Authorization"))
	if err != nil {
		return anonymous, nil //nolint:nilerr // an unsigned request is fine here
	}
	if key, ok := r.keys.get(s.KeyID, time.Now()); ok {
		return key.principal, nil
	}
	return anonymous, nil
}
