// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"net/http"
	"strings"
	"testing"
	"time"
)

const testAccount = "system:serviceaccount:kube-system:cloud-controller-manager"

// podKey is a request of the workload identity service.
func podKey(t *testing.T, s *Server, bearer, key string) *http.Request {
	t.Helper()
	body, err := json.Marshal(map[string]string{"podKey": key})
	if err != nil {
		t.Fatal(err)
	}
	req := request(t, http.MethodPost, "https://"+s.ProxymuxAddr()+"/resourcePrincipalSessionTokens", body)
	req.Header.Set("Authorization", "Bearer "+bearer)
	return req
}

func TestProxymuxAnswersQuotedBase64(t *testing.T) {
	s := start(t, Options{Proxymux: anyPort})
	key, _ := newSessionKey(t)
	der, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		t.Fatal(err)
	}
	text := string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}))
	response, body := do(t, client(t, s, false), podKey(t, s, serviceAccountToken(t, testAccount, time.Hour), text))
	want(t, response, body, http.StatusOK, `"`)
	if !strings.HasPrefix(body, `"`) || !strings.HasSuffix(body, `"`) {
		t.Errorf("answer %q: clients cut the first and the last byte off, which must be the quotes", body)
	}
	inner, err := base64.StdEncoding.DecodeString(unmarshal[string](t, body))
	if err != nil {
		t.Fatal(err)
	}
	token := unmarshal[map[string]string](t, string(inner))["token"]
	if token[:3] != sessionKeyPrefix {
		t.Fatalf("token %q does not begin with %s", token, sessionKeyPrefix)
	}
	claims, err := parseToken(token[3:])
	if err != nil {
		t.Fatal(err)
	}
	if claims["res_tenant"] != s.Region().Options().Tenancy || claims["service_account"] != "cloud-controller-manager" {
		t.Errorf("claims: %v", claims)
	}
	response, body = listDomains(t, s, token[3:], key)
	want(t, response, body, http.StatusOK, "AD-1")
	if got := s.Region().Calls()[0].Principal; got != testAccount {
		t.Errorf("principal in the call log is %q, want %q", got, testAccount)
	}
}

func TestProxymuxRefuses(t *testing.T) {
	s := start(t, Options{Proxymux: anyPort})
	c := client(t, s, false)
	_, key := newSessionKey(t)
	good := serviceAccountToken(t, testAccount, time.Hour)
	for name, test := range map[string]struct {
		bearer, key string
		status      int
	}{
		"an opaque token":   {"opaque", key, http.StatusUnauthorized},
		"no token":          {"", key, http.StatusUnauthorized},
		"a token of before": {serviceAccountToken(t, testAccount, -time.Minute), key, http.StatusUnauthorized},
		"no key":            {good, "", http.StatusBadRequest},
	} {
		t.Run(name, func(t *testing.T) {
			response, body := do(t, c, podKey(t, s, test.bearer, test.key))
			want(t, response, body, test.status, "code")
		})
	}
	basic := start(t, Options{Proxymux: anyPort, BasicCluster: true})
	response, body := do(t, client(t, basic, false), podKey(t, basic, good, key))
	want(t, response, body, http.StatusForbidden, "enhanced")
}
