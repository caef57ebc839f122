// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package ocisim

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"time"
)

// retryTokenLife is how long a token stands for its request.
const retryTokenLife = 24 * time.Hour

// maxRetryToken is the documented length limit of a token.
const maxRetryToken = 64

// tokenKey is the scope of a retry token. The same token may serve different operations: existing clients send one
// token for the load balancer and for the security group of a Service.
type tokenKey struct {
	principal, operation, token string
}

type tokenRecord struct {
	request [sha256.Size]byte
	answer  *answer
	live    func() bool
}

// replay returns the original answer when the call repeats a request under the same retry token. A token that was
// used with another request, or whose resource is gone, is refused.
func (c *call) replay() (*answer, error) {
	token := c.header.Get("Opc-Retry-Token")
	if !c.operation.RetryToken || token == "" {
		return nil, nil
	}
	if len(token) > maxRetryToken {
		return nil, errInvalid("opc-retry-token size must be between 1 and %d", maxRetryToken)
	}
	c.tokenKey = tokenKey{c.principal.ID, c.operation.FullName(), token}
	record := c.tokens[c.tokenKey]
	if record == nil {
		return nil, nil
	}
	if record.request != c.requestHash() || !record.live() {
		return nil, errRetryToken()
	}
	c.record.Replayed = true
	return record.answer, nil
}

// remember keeps the answer of a successful call under its retry token.
func (c *call) remember(a *answer) {
	if c.tokenKey.token == "" {
		return
	}
	live := c.tokenLive
	if live == nil {
		target := c.target
		live = func() bool { return target == nil || target.alive() }
	}
	key := c.tokenKey
	c.tokens[key] = &tokenRecord{request: c.requestHash(), answer: a, live: live}
	tokens := c.tokens
	c.after(retryTokenLife, func() { delete(tokens, key) })
}

// requestHash identifies the request: its path, its query and its body, whatever the order of the JSON fields.
func (c *call) requestHash() [sha256.Size]byte {
	var b bytes.Buffer
	for _, p := range c.params {
		b.WriteString(p)
		b.WriteByte('\n')
	}
	b.WriteString(c.query.Encode())
	b.WriteByte('\n')
	var body any
	if canonical, err := canonicalJSON(c.body, &body); err == nil {
		b.Write(canonical)
	} else {
		b.Write(c.body)
	}
	return sha256.Sum256(b.Bytes())
}

func canonicalJSON(raw []byte, into *any) ([]byte, error) {
	if err := unmarshalExact(raw, into); err != nil {
		return nil, err
	}
	return json.Marshal(*into)
}
