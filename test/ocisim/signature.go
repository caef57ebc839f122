// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package ocisim

import (
	"crypto"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// maxSkew is how far a request's date may be from the clock of the time package.
const maxSkew = 5 * time.Minute

// Signature is the parsed Authorization header of a signed request (draft-cavage-http-signatures-08).
type Signature struct {
	KeyID   string
	Headers []string // names in the order of the signing string
	value   []byte
}

// ErrSignature is the reason why a request is not authenticated. Callers of the API never see it; the answer is
// always the same 401.
var ErrSignature = errors.New("signature")

// ParseSignature reads an Authorization header.
func ParseSignature(header string) (Signature, error) {
	rest, ok := strings.CutPrefix(header, "Signature ")
	if !ok {
		return Signature{}, fmt.Errorf("%w: the Authorization header is not of the Signature scheme", ErrSignature)
	}
	fields, err := signatureFields(rest)
	if err != nil {
		return Signature{}, err
	}
	if v := fields["version"]; v != "1" {
		return Signature{}, fmt.Errorf("%w: version %q", ErrSignature, v)
	}
	if a := fields["algorithm"]; a != "rsa-sha256" {
		return Signature{}, fmt.Errorf("%w: algorithm %q", ErrSignature, a)
	}
	value, err := base64.StdEncoding.DecodeString(fields["signature"])
	if err != nil || len(value) == 0 {
		return Signature{}, fmt.Errorf("%w: no base64 signature", ErrSignature)
	}
	s := Signature{KeyID: fields["keyId"], Headers: strings.Fields(strings.ToLower(fields["headers"])), value: value}
	if s.KeyID == "" || len(s.Headers) == 0 {
		return Signature{}, fmt.Errorf("%w: no key or no headers", ErrSignature)
	}
	return s, nil
}

// signatureFields splits name="value" pairs. Values hold no quotes in this scheme.
func signatureFields(s string) (map[string]string, error) {
	fields := make(map[string]string, 6)
	for s = strings.TrimLeft(s, " ,"); s != ""; s = strings.TrimLeft(s, " ,") {
		name, rest, ok := strings.Cut(s, `="`)
		if !ok {
			return nil, fmt.Errorf("%w: malformed header", ErrSignature)
		}
		value, after, ok := strings.Cut(rest, `"`)
		if !ok {
			return nil, fmt.Errorf("%w: malformed header", ErrSignature)
		}
		fields[strings.TrimSpace(name)] = value
		s = after
	}
	return fields, nil
}

// SignedRequest is the part of a request that signatures cover.
type SignedRequest struct {
	Method string
	URI    string // path and query exactly as received
	Host   string // authority with a port that is not the scheme's default
	Header http.Header
	Body   []byte
}

// Verify checks the signature with a public key: that the required headers are signed, that the signature is right,
// that the date is within five minutes of now, and that the signed hash and length are those of the body.
func (s Signature) Verify(req SignedRequest, key *rsa.PublicKey, now time.Time, required []string) error {
	signed := make(map[string]bool, len(s.Headers))
	for _, name := range s.Headers {
		signed[name] = true
	}
	for _, name := range required {
		if signed[name] || (name == "date" && signed["x-date"]) {
			continue
		}
		return fmt.Errorf("%w: header %s is not signed", ErrSignature, name)
	}
	if err := checkDate(req.Header, signed["x-date"], now); err != nil {
		return err
	}
	if signed["x-content-sha256"] {
		sum := sha256.Sum256(req.Body)
		if req.Header.Get("X-Content-Sha256") != base64.StdEncoding.EncodeToString(sum[:]) {
			return fmt.Errorf("%w: x-content-sha256 is not the hash of the body", ErrSignature)
		}
	}
	text, err := s.signingString(req)
	if err != nil {
		return err
	}
	digest := sha256.Sum256(text)
	if err := rsa.VerifyPKCS1v15(key, crypto.SHA256, digest[:], s.value); err != nil {
		return fmt.Errorf("%w: %w", ErrSignature, err)
	}
	return nil
}

func checkDate(header http.Header, xdate bool, now time.Time) error {
	name := "Date"
	if xdate {
		name = "X-Date"
	}
	date, err := http.ParseTime(header.Get(name))
	if err != nil {
		return fmt.Errorf("%w: no valid date: %w", ErrSignature, err)
	}
	if skew := now.Sub(date); skew > maxSkew || skew < -maxSkew {
		return fmt.Errorf("%w: date is %s off", ErrSignature, skew)
	}
	return nil
}

// signingString builds what was signed, in the order that the client states.
func (s Signature) signingString(req SignedRequest) ([]byte, error) {
	text := make([]byte, 0, 512)
	for i, name := range s.Headers {
		if i > 0 {
			text = append(text, '\n')
		}
		text = append(text, name...)
		text = append(text, ": "...)
		switch name {
		case "(request-target)":
			text = append(text, strings.ToLower(req.Method)...)
			text = append(text, ' ')
			text = append(text, req.URI...)
		case "host":
			text = append(text, req.Host...)
		case "content-length":
			// Go's server takes this header out of the map; the body says the same.
			text = strconv.AppendInt(text, int64(len(req.Body)), 10)
		default:
			values := req.Header.Values(name)
			if len(values) == 0 {
				return nil, fmt.Errorf("%w: signed header %s is absent", ErrSignature, name)
			}
			text = append(text, strings.Join(values, ", ")...)
		}
	}
	return text, nil
}

// requiredHeaders are the headers that a request must sign.
func requiredHeaders(method string) []string {
	switch method {
	case http.MethodPost, http.MethodPut, http.MethodPatch:
		return []string{"date", "(request-target)", "host", "content-length", "content-type", "x-content-sha256"}
	default:
		return []string{"date", "(request-target)", "host"}
	}
}
