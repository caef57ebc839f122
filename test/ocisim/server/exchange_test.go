// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"net/http"
	"net/url"
	"testing"
	"time"
)

// exchangeForm is a correct request of a token exchange.
func exchangeForm(t *testing.T, key string) url.Values {
	t.Helper()
	return url.Values{
		"grant_type":           {grantTokenExchange},
		"requested_token_type": {typeRPST},
		"subject_token_type":   {"jwt"},
		"subject_token":        {serviceAccountToken(t, testAccount, time.Hour)},
		"res_type":             {"k8sworkload"},
		"public_key":           {key},
	}
}

// domainHost is a host of an identity domain, as the proxy sees it.
const domainHost = "https://idcs-0123456789.identity.oraclecloud.com"

func exchangeRequest(t *testing.T, form url.Values) *http.Request {
	t.Helper()
	req := request(t, http.MethodPost, domainHost+"/oauth2/v1/token", []byte(form.Encode()))
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	req.SetBasicAuth("client", "secret")
	return req
}

func TestTokenExchange(t *testing.T) {
	s := start(t, Options{Clients: map[string]string{"client": "secret"}})
	key, public := newSessionKey(t)
	form := exchangeForm(t, public)
	form.Set("rpst_exp", "600")
	response, body := do(t, client(t, s, true), exchangeRequest(t, form))
	want(t, response, body, http.StatusOK, "token")
	if response.Proto != "HTTP/1.1" {
		t.Errorf("an identity domain answered over %s, want HTTP/1.1", response.Proto)
	}
	token := unmarshal[map[string]string](t, body)["token"]
	claims, err := parseToken(token)
	if err != nil {
		t.Fatal(err)
	}
	exp, _ := claims["exp"].(float64)
	left := time.Until(time.Unix(int64(exp), 0))
	if claims["tenant"] != s.Region().Options().Tenancy || claims["sub"] != testAccount || left > 10*time.Minute {
		t.Errorf("claims %v: want tenant, sub and 10 minutes of life", claims)
	}
	response, body = listDomains(t, s, token, key)
	want(t, response, body, http.StatusOK, "AD-1")
}

func TestTokenExchangeRefuses(t *testing.T) {
	s := start(t, Options{Clients: map[string]string{"client": "secret"}})
	c := client(t, s, true)
	_, public := newSessionKey(t)
	for name, test := range map[string]struct {
		change func(*http.Request, url.Values)
		status int
		code   string
	}{
		"a wrong secret": {
			func(r *http.Request, _ url.Values) { r.SetBasicAuth("client", "guess") }, http.StatusUnauthorized, "invalid_client",
		},
		"an unknown client": {
			func(r *http.Request, _ url.Values) { r.SetBasicAuth("stranger", "secret") }, http.StatusUnauthorized, "invalid_client",
		},
		"no client": {
			func(r *http.Request, _ url.Values) { r.Header.Del("Authorization") }, http.StatusUnauthorized, "invalid_client",
		},
		"another grant": {
			func(_ *http.Request, f url.Values) { f.Set("grant_type", "client_credentials") }, http.StatusBadRequest, "unsupported_grant_type",
		},
		"another token type": {
			func(_ *http.Request, f url.Values) { f.Set("requested_token_type", "x") }, http.StatusBadRequest, "invalid_request",
		},
		"no resource type": {
			func(_ *http.Request, f url.Values) { f.Del("res_type") }, http.StatusBadRequest, "invalid_request",
		},
		"a token that is over": {
			func(_ *http.Request, f url.Values) {
				f.Set("subject_token", serviceAccountToken(t, testAccount, -time.Hour))
			},
			http.StatusBadRequest, "invalid_grant",
		},
		"no key": {
			func(_ *http.Request, f url.Values) { f.Del("public_key") }, http.StatusBadRequest, "invalid_request",
		},
		"a life that is no number": {
			func(_ *http.Request, f url.Values) { f.Set("rpst_exp", "soon") }, http.StatusBadRequest, "invalid_request",
		},
	} {
		t.Run(name, func(t *testing.T) {
			form := exchangeForm(t, public)
			probe := request(t, http.MethodPost, domainHost, nil)
			probe.SetBasicAuth("client", "secret")
			test.change(probe, form)
			req := exchangeRequest(t, form)
			req.Header.Del("Authorization")
			if value := probe.Header.Get("Authorization"); value != "" {
				req.Header.Set("Authorization", value)
			}
			response, body := do(t, c, req)
			want(t, response, body, test.status, test.code)
		})
	}
}

func TestTokenExchangeSignedByAnInstance(t *testing.T) {
	s := start(t, Options{})
	files := fetchIdentity(t, s.MetadataURL())
	key, session := newSessionKey(t)
	_, body := exchangeIdentity(t, s, files, session, nil)
	keyID := sessionKeyPrefix + unmarshal[map[string]string](t, body)["token"]

	text := []byte(exchangeForm(t, session).Encode())
	req := request(t, http.MethodPost, domainHost+"/oauth2/v1/token", text)
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	sign(t, req, text, keyID, key, append([]string{"host"}, federationHeaders()...)...)
	response, body := do(t, client(t, s, true), req)
	want(t, response, body, http.StatusOK, "token")

	s.ExpireTokens()
	req = request(t, http.MethodPost, domainHost+"/oauth2/v1/token", text)
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	sign(t, req, text, keyID, key, append([]string{"host"}, federationHeaders()...)...)
	response, body = do(t, client(t, s, true), req)
	want(t, response, body, http.StatusUnauthorized, "invalid_client")
}
