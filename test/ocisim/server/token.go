// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync"
	"time"

	"github.com/oracle/oci-cloud-controller-manager/test/ocisim"
)

// sessionKeyPrefix stands before a security token in the key id of a signed request.
const sessionKeyPrefix = "ST$"

// tokenIssuer is who real tokens name as their issuer.
const tokenIssuer = "authService.oracle.com"

// tokens issues security tokens: JWTs that bind a session key to a principal for a limited time. The region knows the
// key from then on, under "ST$" + token, until the time is over. Time is that of the real clock, not of the region's:
// clients decide by their own clock when to renew.
type tokens struct {
	region *ocisim.Region
	key    *ecdsa.PrivateKey
	life   time.Duration

	mu     sync.Mutex
	timers map[string]*time.Timer // by key id; end of life of every token in force
}

func newTokens(region *ocisim.Region, life time.Duration) (*tokens, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("generate the token key: %w", err)
	}
	return &tokens{region: region, key: key, life: life, timers: map[string]*time.Timer{}}, nil
}

// issue makes a token with the given statements (iat, exp, jti and jwk are added) for life, 0 meaning the default, and
// registers the session key for the principal.
func (t *tokens) issue(statements map[string]any, session *rsa.PublicKey, principal ocisim.Principal, life time.Duration) (string, error) {
	if life <= 0 {
		life = t.life
	}
	id := make([]byte, 16)
	_, _ = rand.Read(id) // never fails
	now := time.Now()
	payload := maps.Clone(statements)
	payload["iat"] = now.Unix()
	payload["exp"] = now.Add(life).Unix()
	payload["jti"] = hex.EncodeToString(id)
	payload["jwk"] = jwk(session)
	token, err := t.sign(payload)
	if err != nil {
		return "", err
	}
	keyID := sessionKeyPrefix + token
	t.region.RegisterKey(keyID, session, principal)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.timers[keyID] = time.AfterFunc(life, func() { t.end(keyID) })
	return token, nil
}

func (t *tokens) end(keyID string) {
	t.region.UnregisterKey(keyID)
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.timers, keyID)
}

// expire ends every token in force and returns how many that were.
func (t *tokens) expire() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := len(t.timers)
	for keyID, timer := range t.timers {
		timer.Stop()
		t.region.UnregisterKey(keyID)
	}
	clear(t.timers)
	return n
}

func (t *tokens) sign(payload map[string]any) (string, error) {
	head, err := json.Marshal(map[string]string{"alg": "ES256", "typ": "JWT", "kid": "asw"})
	if err != nil {
		return "", fmt.Errorf("encode a token header: %w", err)
	}
	body, err := json.Marshal(payload)
	if err != nil {
		return "", fmt.Errorf("encode a token: %w", err)
	}
	unsigned := base64.RawURLEncoding.EncodeToString(head) + "." + base64.RawURLEncoding.EncodeToString(body)
	digest := sha256.Sum256([]byte(unsigned))
	r, s, err := ecdsa.Sign(rand.Reader, t.key, digest[:])
	if err != nil {
		return "", fmt.Errorf("sign a token: %w", err)
	}
	// RFC 7518 section 3.4: r and s as 32 octets each, big-endian.
	signature := make([]byte, 64)
	r.FillBytes(signature[:32])
	s.FillBytes(signature[32:])
	return unsigned + "." + base64.RawURLEncoding.EncodeToString(signature), nil
}

// jwk writes a public key the way the real token carries it: a JSON object inside a string claim.
func jwk(key *rsa.PublicKey) string {
	exponent := binary.BigEndian.AppendUint32(nil, uint32(key.E))
	for len(exponent) > 1 && exponent[0] == 0 {
		exponent = exponent[1:]
	}
	return fmt.Sprintf(`{"kid":"ignored","n":%q,"e":%q,"kty":"RSA","alg":"RS256","use":"sig"}`,
		base64.RawURLEncoding.EncodeToString(key.N.Bytes()), base64.RawURLEncoding.EncodeToString(exponent))
}

// ErrToken refuses what is not a JWT, or one whose time is over.
var ErrToken = errors.New("not a usable JWT")

// parseToken reads the claims of a JWT and checks its time. Signatures of foreign issuers are not checked: the
// simulator has no keys of theirs.
func parseToken(token string) (map[string]any, error) {
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return nil, fmt.Errorf("%w: number of parts is %d, not 3", ErrToken, len(parts))
	}
	body, err := base64.RawURLEncoding.DecodeString(strings.TrimRight(parts[1], "="))
	if err != nil {
		return nil, fmt.Errorf("%w: payload: %w", ErrToken, err)
	}
	var payload map[string]any
	if err := json.Unmarshal(body, &payload); err != nil {
		return nil, fmt.Errorf("%w: payload: %w", ErrToken, err)
	}
	exp, ok := payload["exp"].(float64)
	if !ok {
		return nil, fmt.Errorf("%w: no numeric exp", ErrToken)
	}
	if end := time.Unix(int64(exp), 0); !time.Now().Before(end) {
		return nil, fmt.Errorf("%w: over since %s", ErrToken, end.UTC().Format(time.RFC3339))
	}
	return payload, nil
}
