// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package oci

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/oracle/oci-go-sdk/v65/common"

	"github.com/oracle/oci-cloud-controller-manager/test/pki"
)

// C154: each principal signs as it should, and says who it is without a secret.
func TestUserPrincipal(t *testing.T) {
	//nolint:staticcheck // the old encryption is what users of the existing implementation have in their configuration
	encrypted, err := x509.EncryptPEMBlock(counting{}, "RSA PRIVATE KEY", x509.MarshalPKCS1PrivateKey(pki.SigningKey()), []byte("open sesame"), x509.PEMCipherAES256)
	if err != nil {
		t.Fatal(err)
	}
	pkcs8, err := x509.MarshalPKCS8PrivateKey(pki.SigningKey())
	if err != nil {
		t.Fatal(err)
	}
	locked := string(pem.EncodeToMemory(encrypted))
	tests := []struct {
		name            string
		key, passphrase string
		spoil           func(*UserCredentials)
		ok              bool
	}{
		{name: "PKCS#1", key: pki.SigningKeyPEM(), ok: true},
		{name: "PKCS#8", key: string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: pkcs8})), ok: true},
		{name: "needless passphrase", key: pki.SigningKeyPEM(), passphrase: "open sesame", ok: true},
		{name: "encrypted", key: locked, passphrase: "open sesame", ok: true},
		{name: "encrypted, wrong passphrase", key: locked, passphrase: "open barley"},
		{name: "encrypted, no passphrase", key: locked},
		{name: "not a key", key: "MARKED nonsense"},
		{name: "no key"},
		{name: "no user", key: pki.SigningKeyPEM(), spoil: func(c *UserCredentials) { c.User = "" }},
		{name: "no tenancy", key: pki.SigningKeyPEM(), spoil: func(c *UserCredentials) { c.Tenancy = "" }},
		{name: "no fingerprint", key: pki.SigningKeyPEM(), spoil: func(c *UserCredentials) { c.Fingerprint = "" }},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			credentials := UserCredentials{
				Tenancy: testTenancy, User: testUser, Region: testRegion, Fingerprint: testFingerprint,
				PrivateKey: tt.key, Passphrase: tt.passphrase,
			}
			if tt.spoil != nil {
				tt.spoil(&credentials)
			}
			p, err := UserPrincipal(credentials)
			for _, text := range []string{fmt.Sprint(err), fmt.Sprintf("%v %+v %#v %s", credentials, credentials, credentials, credentials)} {
				for _, secret := range []string{"sesame", "barley", "PRIVATE", "MARKED"} {
					if strings.Contains(text, secret) {
						t.Errorf("%q in %s", secret, text)
					}
				}
			}
			var auth *AuthError
			if !tt.ok {
				if !errors.As(err, &auth) {
					t.Errorf("error %v, want an AuthError", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			key, err := p.PrivateRSAKey()
			if err != nil || !key.Equal(pki.SigningKey()) {
				t.Errorf("another key was read: %v", err)
			}
			if id, _ := p.KeyID(); id != testTenancy+"/"+testUser+"/"+testFingerprint {
				t.Errorf("key id %s", id)
			}
			if got := DescribePrincipal(p); got != "user principal "+testUser+" (key "+testFingerprint+")" {
				t.Errorf("described as %q", got)
			}
		})
	}
	raw := common.NewRawConfigurationProvider(testTenancy, testUser, testRegion, testFingerprint, "MARKED", nil)
	if got := DescribePrincipal(raw); strings.Contains(got, "MARKED") {
		t.Errorf("a provider of the SDK is described with its key: %s", got)
	}
}

// counting gives the encryption its salt.
type counting struct{}

func (counting) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = byte(i)
	}
	return len(p), nil
}

func (s *authServer) instancePrincipal() common.ConfigurationProvider {
	s.t.Helper()
	p, err := InstancePrincipal(InstancePrincipalOptions{MetadataURL: s.URL + "/opc/v2", AuthEndpoint: s.URL})
	if err != nil {
		s.t.Fatal(err)
	}
	return p
}

func (s *authServer) client(p common.ConfigurationProvider) *Client {
	s.t.Helper()
	c, err := New(Options{Provider: p, Region: testRegion, Endpoints: map[Service]string{ServiceCompute: s.URL}, Limits: RateLimits{Disabled: true}})
	if err != nil {
		s.t.Fatal(err)
	}
	return c
}

func TestInstancePrincipal(t *testing.T) {
	s := newAuthServer(t)
	p := s.instancePrincipal()
	c := s.client(p)
	if n := s.count("/opc/v2/instance/region"); n != 0 {
		t.Errorf("making a client asked for metadata %d times", n)
	}
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			if _, err := c.Compute().GetInstance(t.Context(), testInstance); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if n := s.count("/v1/x509"); n != 1 {
		t.Errorf("%d tokens for 8 calls, want 1", n)
	}
	if got := c.Principal(); got != "instance principal" {
		t.Errorf("described as %q", got)
	}
	if tenancy, err := p.TenancyOCID(); err != nil || tenancy != testTenancy {
		t.Errorf("tenancy %s, %v", tenancy, err)
	}
	if region, err := p.Region(); err != nil || region != testRegion {
		t.Errorf("region %s, %v", region, err)
	}

	// The service stops accepting the token long before its end: one new token serves all.
	s.change(func() {
		for token := range s.sessions {
			s.revoked[token] = true
		}
	})
	for range 8 {
		wg.Go(func() {
			if _, err := c.Compute().GetInstance(t.Context(), testInstance); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if n := s.count("/v1/x509"); n != 2 {
		t.Errorf("%d tokens after one was revoked, want 2", n)
	}
}

func TestInstancePrincipalFailures(t *testing.T) {
	const secret = "MARKED-SECRET-TOKEN-abcdefghijkl"
	tests := []struct {
		name  string
		spoil func(*authServer)
		want  string
	}{
		{"no metadata", func(s *authServer) { s.down = true }, "instance metadata at"},
		{"token without expiry", func(s *authServer) { delete(s.claims, "exp") }, "token cannot be used"},
		{"malformed token", func(s *authServer) { s.raw = secret + "." + secret }, "[redacted]"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := newAuthServer(t)
			s.change(func() { tt.spoil(s) })
			_, err := s.client(s.instancePrincipal()).Compute().GetInstance(t.Context(), testInstance)
			var auth *AuthError
			if !errors.As(err, &auth) || !strings.Contains(err.Error(), "instance principal: ") || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want an AuthError that names the principal and says %q", err, tt.want)
			}
			if strings.Contains(fmt.Sprint(err), secret) {
				t.Errorf("the message holds the token: %v", err)
			}
			// It is not given up for good.
			if tt.name == "no metadata" {
				return // three tries with pauses were enough of real time
			}
			s.change(func() {
				s.raw = ""
				s.claims["exp"] = time.Now().Add(time.Hour).Unix()
			})
			if _, err := s.client(s.instancePrincipal()).Compute().GetInstance(t.Context(), testInstance); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestInstancePrincipalRefusesBadURLs(t *testing.T) {
	for _, o := range []InstancePrincipalOptions{
		{MetadataURL: "169.254.169.254"}, {AuthEndpoint: "auth.example"}, {AuthEndpoint: "ftp://x"}, {CABundle: []byte("x")},
	} {
		if p, err := InstancePrincipal(o); err == nil || p != nil {
			t.Errorf("%+v accepted", o)
		}
	}
}

func TestFederationInTheRealmOfTheRegion(t *testing.T) {
	for _, tt := range []struct{ realm, host, want string }{
		{"", "auth.xx-new-1.oraclecloud.com", "auth.xx-new-1.oraclecloud.com"},
		{"example.cloud", "auth.xx-new-1.oraclecloud.com", "auth.xx-new-1.example.cloud"},
		{"example.cloud", "auth.us-ashburn-1.oraclecloud.com", "auth.us-ashburn-1.oraclecloud.com"},
	} {
		var sent string
		d, err := newInstanceDispatcher(InstancePrincipalOptions{RealmDomain: tt.realm, Transport: &recorder{
			wire: func(_ int, r *http.Request) (*http.Response, error) { sent = r.URL.Host; return answer(200, ""), nil },
		}})
		if err != nil {
			t.Fatal(err)
		}
		request := httptest.NewRequest(http.MethodPost, "https://"+tt.host+"/v1/x509", nil)
		request.RequestURI = ""
		if _, err := d.Do(request); err != nil || sent != tt.want {
			t.Errorf("realm %q: sent to %s, want %s (%v)", tt.realm, sent, tt.want, err)
		}
	}
}

func TestTokenExchange(t *testing.T) {
	s := newAuthServer(t)
	settings := TokenExchangeSettings{
		DomainURL: s.URL + "/", ResourceType: "k8s", ClientID: "client", ClientSecret: "hush", Region: testRegion,
		Token: func() (string, error) { return "sa-token", nil },
	}
	p, err := TokenExchange(settings)
	if err != nil {
		t.Fatal(err)
	}
	c := s.client(p)
	for range 2 {
		if _, err := c.Compute().GetInstance(t.Context(), testInstance); err != nil {
			t.Error(err)
		}
	}
	if n := s.count("/oauth2/v1/token"); n != 1 {
		t.Errorf("%d exchanges for two calls, want 1", n)
	}
	if tenancy, err := p.TenancyOCID(); err != nil || tenancy != testTenancy {
		t.Errorf("tenancy %s, %v", tenancy, err)
	}
	if got, want := c.Principal(), "workload identity of resource type k8s at "+s.URL; got != want {
		t.Errorf("described as %q, want %q", got, want)
	}
	if text := fmt.Sprintf("%v %+v %#v", settings, settings, settings); strings.Contains(text, "hush") {
		t.Errorf("the client secret is printed: %s", text)
	}

	settings.Token = TokenFile(filepath.Join(t.TempDir(), "absent"))
	if p, err = TokenExchange(settings); err != nil {
		t.Fatal(err)
	}
	var auth *AuthError
	if _, err := s.client(p).Compute().GetInstance(t.Context(), testInstance); !errors.As(err, &auth) {
		t.Errorf("error %v without a token file, want an AuthError", err)
	}
}

func TestTokenExchangeSignedByTheInstance(t *testing.T) {
	s := newAuthServer(t)
	p, err := TokenExchange(TokenExchangeSettings{
		DomainURL: s.URL, ResourceType: "k8s", Instance: s.instancePrincipal(), Region: testRegion,
		Token: func() (string, error) { return "sa-token", nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.client(p).Compute().GetInstance(t.Context(), testInstance); err != nil {
		t.Error(err)
	}
	if x509, oauth := s.count("/v1/x509"), s.count("/oauth2/v1/token"); x509 != 1 || oauth != 1 {
		t.Errorf("%d tokens for the instance and %d exchanges, want one each", x509, oauth)
	}
}

// rotating is a provider of the SDK that gets a new key and a new token while it is asked.
type rotating struct {
	common.ConfigurationProvider
	keys []*rsa.PrivateKey
	asks int
}

// generation changes between the first and the second question.
func (p *rotating) generation() int {
	p.asks++
	return min(p.asks-1, 1)
}
func (p *rotating) PrivateRSAKey() (*rsa.PrivateKey, error) { return p.keys[p.generation()], nil }
func (p *rotating) KeyID() (string, error)                  { return fmt.Sprintf("ST$%d", p.generation()), nil }

func TestKeyAndTokenBelongTogether(t *testing.T) {
	other, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	p := &sessionPrincipal{name: "test", build: func() (common.ConfigurationProvider, error) {
		return &rotating{keys: []*rsa.PrivateKey{pki.SigningKey(), other}}, nil
	}}
	c, err := p.credentials()
	if err != nil || c.keyID != "ST$1" || !c.key.Equal(other) {
		t.Errorf("token %s with the old key: %t, %v", c.keyID, c.key.Equal(pki.SigningKey()), err)
	}
}

func TestTokenExchangeRefuses(t *testing.T) {
	_, err := TokenExchange(TokenExchangeSettings{DomainURL: "idcs"})
	for _, want := range []string{"domain URL", "resource type", "region", "client id"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v lacks %q", err, want)
		}
	}
}

func TestTokenFileIsReadEachTime(t *testing.T) {
	path := filepath.Join(t.TempDir(), "token")
	source := TokenFile(path)
	for _, want := range []string{"first", "second"} {
		if err := os.WriteFile(path, []byte(want+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		if got, err := source(); got != want || err != nil {
			t.Errorf("token %q, %v, want %q", got, err, want)
		}
	}
}

func TestOKEWorkloadIdentity(t *testing.T) {
	s := newAuthServer(t)
	// The port is fixed; an address of its own keeps it from meeting another process.
	ip := net.IPv4(127, 0, 12, 250)
	listener, err := net.Listen("tcp", net.JoinHostPort(ip.String(), "12250"))
	if err != nil {
		t.Fatal(err)
	}
	certificate := testCertificate(t, &x509.Certificate{IPAddresses: []net.IP{ip}})
	pair, err := tls.X509KeyPair(certificate, []byte(pki.SigningKeyPEM()))
	if err != nil {
		t.Fatal(err)
	}
	proxymux := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var body struct{ PodKey string }
		if r.Header.Get("Authorization") != "Bearer sa-token" || json.NewDecoder(r.Body).Decode(&body) != nil {
			w.WriteHeader(http.StatusForbidden)
			return
		}
		block, _ := pem.Decode([]byte(body.PodKey))
		var token string
		s.change(func() { token = s.issue(base64.StdEncoding.EncodeToString(block.Bytes)) })
		answer, _ := json.Marshal(map[string]string{"token": "ST$" + token})
		fmt.Fprintf(w, "%q", base64.StdEncoding.EncodeToString(answer))
	}))
	_ = proxymux.Listener.Close()
	proxymux.Listener = listener
	proxymux.TLS = &tls.Config{Certificates: []tls.Certificate{pair}}
	proxymux.StartTLS()
	defer proxymux.Close()

	ca := filepath.Join(t.TempDir(), "ca.crt")
	if err := os.WriteFile(ca, certificate, 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("OCI_RESOURCE_PRINCIPAL_VERSION", "2.2")
	t.Setenv("OCI_RESOURCE_PRINCIPAL_REGION", testRegion)
	t.Setenv("OCI_KUBERNETES_SERVICE_ACCOUNT_CERT_PATH", ca)
	t.Setenv("KUBERNETES_SERVICE_HOST", ip.String())
	p, err := OKEWorkloadIdentity("apps/web", "", func() (string, error) { return "sa-token", nil })
	if err != nil {
		t.Fatal(err)
	}
	c := s.client(p)
	if _, err := c.Compute().GetInstance(t.Context(), testInstance); err != nil {
		t.Error(err)
	}
	if got := c.Principal(); got != "OKE workload identity of service account apps/web" {
		t.Errorf("described as %q", got)
	}
	if region, err := p.Region(); err != nil || region != testRegion {
		t.Errorf("region %s, %v", region, err)
	}
}
