// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"errors"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/oracle/oci-cloud-controller-manager/test/ocisim"
)

// exchange answers POST /oauth2/v1/token, the token exchange of an identity domain: a JWT of a trusted issuer becomes a
// security token. The caller proves itself with a client id and secret, or signs as an instance.
type exchange struct {
	tokens  *tokens
	tenancy string
	clients map[string]string // client id -> secret; empty accepts every pair that is not empty
}

const (
	grantTokenExchange = "urn:ietf:params:oauth:grant-type:token-exchange"
	typeRPST           = "urn:oci:token-type:oci-rpst"
	typeUPST           = "urn:oci:token-type:oci-upst"
)

// oauthError is an error of RFC 6749 section 5.2.
type oauthError struct {
	status            int
	code, description string
}

func (e *oauthError) Error() string { return e.code + ": " + e.description }

func (e *oauthError) write(w http.ResponseWriter) {
	writeJSON(w, e.status, map[string]string{"error": e.code, "error_description": e.description})
}

func (h *exchange) answer(w http.ResponseWriter, r *http.Request, body []byte) (who string) {
	token, who, err := h.trade(r, body)
	if err != nil {
		var refused *oauthError
		if !errors.As(err, &refused) {
			refused = &oauthError{http.StatusInternalServerError, "server_error", err.Error()}
		}
		refused.write(w)
		return who
	}
	writeJSON(w, http.StatusOK, map[string]string{"token": token})
	return who
}

func (h *exchange) trade(r *http.Request, body []byte) (token, who string, err error) {
	who, err = h.client(r, body)
	if err != nil {
		return "", who, err
	}
	form, err := parseForm(r, body)
	if err != nil {
		return "", who, err
	}
	requested := form.Get("requested_token_type")
	switch {
	case form.Get("grant_type") != grantTokenExchange:
		return "", who, &oauthError{http.StatusBadRequest, "unsupported_grant_type", "grant_type must be " + grantTokenExchange}
	case requested != typeRPST && requested != typeUPST:
		return "", who, &oauthError{http.StatusBadRequest, "invalid_request", "requested_token_type " + requested + " is not supported"}
	case requested == typeRPST && form.Get("res_type") == "":
		return "", who, &oauthError{http.StatusBadRequest, "invalid_request", "res_type is missing"}
	}
	subject, err := parseToken(form.Get("subject_token"))
	if err != nil {
		return "", who, &oauthError{http.StatusBadRequest, "invalid_grant", "subject_token: " + err.Error()}
	}
	session, err := parsePublicKey(form.Get("public_key"))
	if err != nil {
		return "", who, &oauthError{http.StatusBadRequest, "invalid_request", "public_key: " + err.Error()}
	}
	life, err := parseSeconds(form.Get("rpst_exp"))
	if err != nil {
		return "", who, &oauthError{http.StatusBadRequest, "invalid_request", "rpst_exp: " + err.Error()}
	}
	who, _ = subject["sub"].(string)
	token, err = h.tokens.issue(map[string]any{
		"iss":      tokenIssuer,
		"sub":      who,
		"aud":      "oci",
		"ttype":    "res",
		"res_type": form.Get("res_type"),
		"tenant":   h.tenancy,
	}, session, ocisim.Principal{ID: who, Tenancy: h.tenancy}, life)
	return token, who, err
}

// client identifies who asks for an exchange.
func (h *exchange) client(r *http.Request, body []byte) (string, error) {
	if id, secret, ok := r.BasicAuth(); ok {
		want, known := h.clients[id]
		if id == "" || secret == "" || (len(h.clients) > 0 && (!known || want != secret)) {
			return id, &oauthError{http.StatusUnauthorized, "invalid_client", "client authentication failed"}
		}
		return id, nil
	}
	principal, err := h.tokens.region.Authenticate(signedRequest(r, body))
	if err != nil {
		return "", &oauthError{http.StatusUnauthorized, "invalid_client", err.Error()}
	}
	return principal.ID, nil
}

// parseSeconds reads the wanted life of a token. Its unit is not documented; seconds are what OAuth counts in.
func parseSeconds(text string) (time.Duration, error) {
	if text == "" {
		return 0, nil
	}
	return time.ParseDuration(text + "s")
}

// parseForm reads a form from a body that was read already.
func parseForm(r *http.Request, body []byte) (url.Values, error) {
	if kind := r.Header.Get("Content-Type"); !strings.HasPrefix(kind, "application/x-www-form-urlencoded") {
		return nil, &oauthError{http.StatusBadRequest, "invalid_request", "Content-Type must be application/x-www-form-urlencoded"}
	}
	form, err := url.ParseQuery(string(body))
	if err != nil {
		return nil, &oauthError{http.StatusBadRequest, "invalid_request", err.Error()}
	}
	return form, nil
}
