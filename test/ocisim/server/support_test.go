// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"bytes"
	"context"
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"k8s.io/klog/v2/ktesting"

	"github.com/oracle/oci-cloud-controller-manager/test/ocisim"
)

// start serves a region with the demo world and verified signatures.
func start(t *testing.T, options Options) *Server {
	t.Helper()
	text, err := os.ReadFile("../seeds/demo.yaml")
	if err != nil {
		t.Fatal(err)
	}
	world, err := ParseWorld(text)
	if err != nil {
		t.Fatal(err)
	}
	region := ocisim.New(ocisim.Options{Seed: 1, Signatures: true})
	if err := region.Seed(world); err != nil {
		t.Fatal(err)
	}
	options.Region = region
	_, ctx := ktesting.NewTestContext(t)
	s, err := Start(ctx, options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

// client trusts the simulator's CA and goes through its proxy if asked to.
func client(t *testing.T, s *Server, proxied bool) *http.Client {
	t.Helper()
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(s.CAPEM()) {
		t.Fatal("the CA is no PEM certificate")
	}
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}, ForceAttemptHTTP2: true}
	if proxied {
		proxy, err := url.Parse(s.ProxyURL())
		if err != nil {
			t.Fatal(err)
		}
		transport.Proxy = http.ProxyURL(proxy)
	}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

// request is an HTTP request with a body that may be nil.
func request(t *testing.T, method, target string, body []byte) *http.Request {
	t.Helper()
	var reader io.Reader
	if body != nil {
		reader = bytes.NewReader(body)
	}
	req, err := http.NewRequestWithContext(t.Context(), method, target, reader)
	if err != nil {
		t.Fatal(err)
	}
	return req
}

// sign signs a request as an OCI client does, over the named headers.
func sign(t *testing.T, req *http.Request, body []byte, keyID string, key *rsa.PrivateKey, headers ...string) {
	t.Helper()
	req.Header.Set("Date", time.Now().UTC().Format(http.TimeFormat))
	if body != nil {
		sum := sha256.Sum256(body)
		req.Header.Set("X-Content-Sha256", base64.StdEncoding.EncodeToString(sum[:]))
		if req.Header.Get("Content-Type") == "" {
			req.Header.Set("Content-Type", "application/json")
		}
	}
	lines := make([]string, 0, len(headers))
	for _, name := range headers {
		value := req.Header.Get(name)
		switch name {
		case "(request-target)":
			value = strings.ToLower(req.Method) + " " + req.URL.RequestURI()
		case "host":
			value = req.URL.Host
		case "content-length":
			value = strconv.Itoa(len(body))
		}
		lines = append(lines, name+": "+value)
	}
	digest := sha256.Sum256([]byte(strings.Join(lines, "\n")))
	signature, err := rsa.SignPKCS1v15(rand.Reader, key, crypto.SHA256, digest[:])
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", fmt.Sprintf(`Signature version="1",headers="%s",keyId="%s",algorithm="rsa-sha256",signature="%s"`,
		strings.Join(headers, " "), keyID, base64.StdEncoding.EncodeToString(signature)))
}

// signed is a request of a user, complete.
func signed(t *testing.T, u *User, method, target string, body []byte) *http.Request {
	t.Helper()
	req := request(t, method, target, body)
	headers := []string{"date", "(request-target)", "host"}
	if body != nil {
		headers = append(headers, "content-length", "content-type", "x-content-sha256")
	}
	sign(t, req, body, u.KeyID(), u.PrivateKey(), headers...)
	return req
}

// do sends a request and returns the answer with its body read.
func do(t *testing.T, c *http.Client, req *http.Request) (*http.Response, string) {
	t.Helper()
	response, err := c.Do(req)
	if err != nil {
		t.Fatalf("%s %s: %v", req.Method, req.URL, err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatalf("%s %s: read the answer: %v", req.Method, req.URL, err)
	}
	return response, string(body)
}

// want fails unless the answer has the status, and the text in its body.
func want(t *testing.T, response *http.Response, body string, status int, text string) {
	t.Helper()
	if response.StatusCode != status || !strings.Contains(body, text) {
		t.Errorf("%s %s: got %d %s, want %d with %q", response.Request.Method, response.Request.URL, response.StatusCode, body, status, text)
	}
}

func unmarshal[T any](t *testing.T, text string) T {
	t.Helper()
	var v T
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		t.Fatalf("decode %q: %v", text, err)
	}
	return v
}

func user(t *testing.T, s *Server, name string) *User {
	t.Helper()
	u, err := s.User(name)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

func soon(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	t.Cleanup(cancel)
	return ctx
}

// domainsURL lists the availability domains: the cheapest call of the region.
func domainsURL(s *Server, base string) string {
	return base + "/20160918/availabilityDomains?compartmentId=" + s.Region().Options().Tenancy
}

func principalOf(id string) ocisim.Principal { return ocisim.Principal{ID: id} }

// serviceAccountToken is a JWT as kubelet projects it; nobody checks its signature.
func serviceAccountToken(t *testing.T, subject string, life time.Duration) string {
	t.Helper()
	payload, err := json.Marshal(map[string]any{
		"iss": "https://kubernetes.default.svc.cluster.local", "sub": subject,
		"iat": time.Now().Unix(), "exp": time.Now().Add(life).Unix(),
	})
	if err != nil {
		t.Fatal(err)
	}
	encode := base64.RawURLEncoding.EncodeToString
	return encode([]byte(`{"alg":"RS256"}`)) + "." + encode(payload) + "." + encode([]byte("signature"))
}
