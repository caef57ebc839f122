// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package oci

import (
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/oracle/oci-cloud-controller-manager/test/pki"
)

// authServer is a region's metadata, federation and token services and one resource, in one server. It accepts a request
// for the resource only if it is signed with the key that belongs to its token.
type authServer struct {
	*httptest.Server
	t *testing.T

	mu       sync.Mutex
	asked    map[string]int            // by path
	sessions map[string]*rsa.PublicKey // by token
	claims   map[string]any            // of the next tokens
	raw      string                    // instead of a token
	revoked  map[string]bool
	down     bool
}

func newAuthServer(t *testing.T) *authServer {
	t.Helper()
	s := &authServer{
		t: t, asked: map[string]int{}, sessions: map[string]*rsa.PublicKey{}, revoked: map[string]bool{},
		claims: map[string]any{"exp": time.Now().Add(time.Hour).Unix(), "iat": time.Now().Unix(), "res_tenant": testTenancy, "tenant": testTenancy, "sub": "workload"},
	}
	s.Server = httptest.NewServer(s)
	t.Cleanup(s.Close)
	return s
}

func (s *authServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked[r.URL.Path]++
	if s.down {
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	switch {
	case strings.HasPrefix(r.URL.Path, "/opc/v2/"):
		s.metadata(w, r)
	case r.URL.Path == "/v1/x509":
		s.federate(w, r)
	case r.URL.Path == "/oauth2/v1/token":
		s.exchange(w, r)
	case strings.HasPrefix(r.URL.Path, "/20160918/instances/"):
		s.resource(w, r)
	default:
		w.WriteHeader(http.StatusNotFound)
	}
}

func (s *authServer) metadata(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get("Authorization") != "Bearer Oracle" {
		w.WriteHeader(http.StatusForbidden)
		return
	}
	leaf := testCertificate(s.t, &x509.Certificate{Subject: pkix.Name{
		CommonName:         testInstance,
		OrganizationalUnit: []string{"opc-certtype:instance", "opc-tenant:" + testTenancy},
	}})
	switch strings.TrimPrefix(r.URL.Path, "/opc/v2") {
	case "/instance/region":
		fmt.Fprintln(w, testRegion)
	case "/identity/cert.pem", "/identity/intermediate.pem":
		_, _ = w.Write(leaf)
	case "/identity/key.pem":
		_, _ = w.Write([]byte(pki.SigningKeyPEM()))
	}
}

func (s *authServer) federate(w http.ResponseWriter, r *http.Request) {
	var body struct{ PublicKey, Certificate string }
	keyID := signatureParts(r)["keyId"]
	if err := json.NewDecoder(r.Body).Decode(&body); err != nil || !strings.HasPrefix(keyID, testTenancy+"/fed-x509-sha256/") {
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	_ = json.NewEncoder(w).Encode(map[string]string{"token": s.issue(body.PublicKey)})
}

func (s *authServer) exchange(w http.ResponseWriter, r *http.Request) {
	id, secret, basic := r.BasicAuth()
	trusted := id == "client" && secret == "hush"
	if !basic { // signed by an instance then
		parts := signatureParts(r)
		session := s.sessions[strings.TrimPrefix(parts["keyId"], "ST$")]
		trusted = session != nil && signedBy(r, parts, session)
	}
	if r.ParseForm() != nil || !trusted || r.PostForm.Get("subject_token") != "sa-token" || r.PostForm.Get("res_type") != "k8s" {
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	_ = json.NewEncoder(w).Encode(map[string]string{"token": s.issue(r.PostForm.Get("public_key"))})
}

// issue makes a token for a public key in base64 of its DER form.
func (s *authServer) issue(publicKey string) string {
	if s.raw != "" {
		return s.raw
	}
	der, err := base64.StdEncoding.DecodeString(publicKey)
	if err != nil {
		s.t.Error(err)
	}
	key, err := x509.ParsePKIXPublicKey(der)
	if err != nil {
		s.t.Error(err)
	}
	s.claims["jti"] = len(s.sessions)
	claims, err := json.Marshal(s.claims)
	if err != nil {
		s.t.Error(err)
	}
	part := base64.RawURLEncoding.EncodeToString
	token := part([]byte(`{"alg":"none"}`)) + "." + part(claims) + "." + part([]byte("signature"))
	s.sessions[token], _ = key.(*rsa.PublicKey)
	return token
}

func (s *authServer) resource(w http.ResponseWriter, r *http.Request) {
	parts := signatureParts(r)
	token, ok := strings.CutPrefix(parts["keyId"], "ST$")
	if !ok || s.revoked[token] || s.sessions[token] == nil || !signedBy(r, parts, s.sessions[token]) {
		w.WriteHeader(http.StatusUnauthorized)
		fmt.Fprint(w, `{"code":"NotAuthenticated","message":"no"}`)
		return
	}
	fmt.Fprint(w, runningInstance)
}

func (s *authServer) count(path string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.asked[path]
}

func (s *authServer) change(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f()
}

var signaturePart = regexp.MustCompile(`(\w+)="([^"]*)"`)

func signatureParts(r *http.Request) map[string]string {
	parts := map[string]string{}
	for _, m := range signaturePart.FindAllStringSubmatch(r.Header.Get("Authorization"), -1) {
		parts[m[1]] = m[2]
	}
	return parts
}

func signedBy(r *http.Request, parts map[string]string, key *rsa.PublicKey) bool {
	var lines []string
	for name := range strings.FieldsSeq(parts["headers"]) {
		value := r.Header.Get(name)
		switch name {
		case "content-length":
			value = strconv.FormatInt(r.ContentLength, 10)
		case "(request-target)":
			value = strings.ToLower(r.Method) + " " + r.URL.RequestURI()
		case "host":
			value = r.Host
		}
		lines = append(lines, name+": "+value)
	}
	hash := sha256.Sum256([]byte(strings.Join(lines, "\n")))
	signature, err := base64.StdEncoding.DecodeString(parts["signature"])
	return err == nil && rsa.VerifyPKCS1v15(key, crypto.SHA256, hash[:], signature) == nil
}

// testCertificate signs a certificate for the test key with itself and returns it as PEM.
func testCertificate(t *testing.T, template *x509.Certificate) []byte {
	t.Helper()
	template.SerialNumber = big.NewInt(1)
	template.NotBefore, template.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
	template.IsCA, template.BasicConstraintsValid = true, true
	if template.IPAddresses == nil {
		template.IPAddresses = []net.IP{net.IPv4(127, 0, 0, 1)}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, pki.SigningKey().Public(), pki.SigningKey())
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}
