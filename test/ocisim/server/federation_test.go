// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"net/http"
	"strings"
	"testing"
	"time"
)

// federationHeaders are what a federation call signs: unlike everywhere else no host.
func federationHeaders() []string {
	return []string{"date", "(request-target)", "content-length", "content-type", "x-content-sha256"}
}

// identityFiles is what an instance finds at its metadata service.
type identityFiles struct {
	cert, intermediate string // bare base64
	leaf               *x509.Certificate
	key                *rsa.PrivateKey
}

func fetchIdentity(t *testing.T, base string) identityFiles {
	t.Helper()
	get := func(name string) []byte {
		response, body := do(t, http.DefaultClient, metadataRequest(t, base+"/identity/"+name))
		want(t, response, body, http.StatusOK, "-----BEGIN")
		block, _ := pem.Decode([]byte(body))
		if block == nil {
			t.Fatalf("%s is not PEM", name)
		}
		return block.Bytes
	}
	der := get("cert.pem")
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	key, err := x509.ParsePKCS1PrivateKey(get("key.pem"))
	if err != nil {
		t.Fatal(err)
	}
	return identityFiles{
		cert:         base64.StdEncoding.EncodeToString(der),
		intermediate: base64.StdEncoding.EncodeToString(get("intermediate.pem")),
		leaf:         leaf, key: key,
	}
}

func newSessionKey(t *testing.T) (*rsa.PrivateKey, string) {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		t.Fatal(err)
	}
	return key, base64.StdEncoding.EncodeToString(der)
}

// exchangeIdentity asks for a token with a body and a signature that change may spoil.
func exchangeIdentity(t *testing.T, s *Server, files identityFiles, session string, change func(body map[string]any, keyID *string)) (*http.Response, string) {
	t.Helper()
	body := map[string]any{
		"certificate":              files.cert,
		"publicKey":                session,
		"intermediateCertificates": []string{files.intermediate},
		"fingerprintAlgorithm":     "SHA256",
	}
	keyID := s.Region().Options().Tenancy + "/fed-x509-sha256/" + certificateFingerprint(files.leaf)
	if change != nil {
		change(body, &keyID)
	}
	text, err := json.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}
	req := request(t, http.MethodPost, "https://auth.us-ashburn-1.oraclecloud.com/v1/x509", text)
	sign(t, req, text, keyID, files.key, federationHeaders()...)
	return do(t, client(t, s, true), req)
}

// listDomains calls the region with a session key.
func listDomains(t *testing.T, s *Server, token string, key *rsa.PrivateKey) (*http.Response, string) {
	t.Helper()
	req := request(t, http.MethodGet, domainsURL(s, s.URL()), nil)
	sign(t, req, nil, sessionKeyPrefix+token, key, "date", "(request-target)", "host")
	return do(t, client(t, s, false), req)
}

func TestInstanceCertificateNamesTenancy(t *testing.T) {
	s := start(t, Options{})
	files := fetchIdentity(t, s.MetadataURL())
	first := s.Region().Instances()[0]
	units := strings.Join(files.leaf.Subject.OrganizationalUnit, " ")
	for _, unit := range []string{
		"opc-certtype:instance", "opc-instance:" + *first.Id, "opc-compartment:" + *first.CompartmentId,
		"opc-tenant:" + s.Region().Options().Tenancy,
	} {
		if !strings.Contains(units, unit) {
			t.Errorf("the subject %q lacks %q", units, unit)
		}
	}
	var subject pkix.RDNSequence
	if _, err := asn1.Unmarshal(files.leaf.RawSubject, &subject); err != nil {
		t.Fatal(err)
	}
	for _, name := range subject {
		if len(name) != 1 {
			t.Errorf("a relative name of the subject has %d values %v: some SDKs read the first only", len(name), name)
		}
	}
	if !files.key.PublicKey.Equal(files.leaf.PublicKey) {
		t.Error("key.pem does not belong to cert.pem")
	}
}

func TestFederationIssuesAToken(t *testing.T) {
	s := start(t, Options{})
	files := fetchIdentity(t, s.MetadataURL())
	key, session := newSessionKey(t)
	response, body := exchangeIdentity(t, s, files, session, nil)
	want(t, response, body, http.StatusOK, "token")
	token := unmarshal[map[string]string](t, body)["token"]
	claims, err := parseToken(token)
	if err != nil {
		t.Fatal(err)
	}
	first := s.Region().Instances()[0]
	exp, _ := claims["exp"].(float64)
	if left := time.Until(time.Unix(int64(exp), 0)); claims["sub"] != *first.Id || left < 50*time.Minute || left > time.Hour {
		t.Errorf("claims %v: want the instance as subject and an hour of life", claims)
	}
	response, body = listDomains(t, s, token, key)
	want(t, response, body, http.StatusOK, "AD-1")
	calls := s.Region().Calls()
	if len(calls) != 1 || calls[0].Principal != *first.Id {
		t.Errorf("call log: got %+v, want one call by %s", calls, *first.Id)
	}
	// Another key must not ride on the token.
	stranger, _ := newSessionKey(t)
	response, body = listDomains(t, s, token, stranger)
	want(t, response, body, http.StatusUnauthorized, "NotAuthenticated")
}

func TestFederationRefuses(t *testing.T) {
	s := start(t, Options{})
	files := fetchIdentity(t, s.MetadataURL())
	_, session := newSessionKey(t)
	forger, err := newIdentity()
	if err != nil {
		t.Fatal(err)
	}
	view, err := s.metadata.source.instance("")
	if err != nil {
		t.Fatal(err)
	}
	forged, err := forger.credentials(view)
	if err != nil {
		t.Fatal(err)
	}
	foreign := identityFiles{
		cert: base64.StdEncoding.EncodeToString(forged.leaf.Raw), leaf: forged.leaf, key: forged.key,
		intermediate: base64.StdEncoding.EncodeToString(forger.intermediate.Raw),
	}
	otherKey := files
	otherKey.key = foreign.key
	for name, test := range map[string]struct {
		files  identityFiles
		change func(map[string]any, *string)
		status int
	}{
		"a certificate of another authority": {files: foreign, status: http.StatusUnauthorized},
		"a signature by another key":         {files: otherKey, status: http.StatusUnauthorized},
		"a key id with another fingerprint": {files: files, status: http.StatusUnauthorized, change: func(_ map[string]any, keyID *string) {
			*keyID = (*keyID)[:len(*keyID)-2] + "zz"
		}},
		"a key id of another tenancy": {files: files, status: http.StatusUnauthorized, change: func(_ map[string]any, keyID *string) {
			*keyID = "ocid1.tenancy.oc1..other" + (*keyID)[strings.Index(*keyID, "/"):]
		}},
		"no intermediate certificate": {files: files, status: http.StatusUnauthorized, change: func(body map[string]any, _ *string) {
			delete(body, "intermediateCertificates")
		}},
		"SHA-1": {files: files, status: http.StatusBadRequest, change: func(body map[string]any, _ *string) {
			body["fingerprintAlgorithm"] = "SHA1"
		}},
		"a session key that is none": {files: files, status: http.StatusBadRequest, change: func(body map[string]any, _ *string) {
			body["publicKey"] = "AAAA"
		}},
	} {
		t.Run(name, func(t *testing.T) {
			response, body := exchangeIdentity(t, s, test.files, session, test.change)
			want(t, response, body, test.status, `"code"`)
		})
	}
	if n := len(s.tokens.timers); n != 0 {
		t.Errorf("%d tokens in force after nothing but refusals", n)
	}
}

// TestFederationBySHA1 is what the TypeScript SDK does: no algorithm, and a key id of the older form.
func TestFederationBySHA1(t *testing.T) {
	s := start(t, Options{})
	files := fetchIdentity(t, s.MetadataURL())
	_, session := newSessionKey(t)
	old := func(body map[string]any, keyID *string) {
		delete(body, "fingerprintAlgorithm")
		*keyID = s.Region().Options().Tenancy + "/fed-x509/" + oldCertificateFingerprint(files.leaf)
	}
	response, body := exchangeIdentity(t, s, files, session, old)
	want(t, response, body, http.StatusOK, "token")
	for name, change := range map[string]func(map[string]any, *string){
		"an algorithm that is not that of the key id": func(body map[string]any, keyID *string) {
			old(body, keyID)
			body["fingerprintAlgorithm"] = sha256Fingerprint
		},
		"a SHA-256 key id without the algorithm": func(body map[string]any, _ *string) { delete(body, "fingerprintAlgorithm") },
	} {
		response, body := exchangeIdentity(t, s, files, session, change)
		if response.StatusCode != http.StatusUnauthorized {
			t.Errorf("%s: got %d %s, want 401", name, response.StatusCode, body)
		}
	}
}

func TestTokensEnd(t *testing.T) {
	s := start(t, Options{TokenLife: time.Hour})
	files := fetchIdentity(t, s.MetadataURL())
	key, session := newSessionKey(t)
	_, body := exchangeIdentity(t, s, files, session, nil)
	token := unmarshal[map[string]string](t, body)["token"]
	if n := s.ExpireTokens(); n != 1 {
		t.Errorf("ExpireTokens ended %d tokens, want 1", n)
	}
	response, body := listDomains(t, s, token, key)
	want(t, response, body, http.StatusUnauthorized, "NotAuthenticated")

	// A token whose life is over is as unknown as one that was ended.
	short, err := s.tokens.issue(map[string]any{"sub": "x"}, &key.PublicKey, principalOf("x"), time.Nanosecond)
	if err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(time.Millisecond) {
		if response, body = listDomains(t, s, short, key); response.StatusCode == http.StatusUnauthorized {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("a token is still good long after its end: %d %s", response.StatusCode, body)
		}
	}
}
