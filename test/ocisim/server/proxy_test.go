// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
)

func TestProxyTakesOverOCINames(t *testing.T) {
	s := start(t, Options{})
	u := user(t, s, "alice")
	c := client(t, s, true)
	target := domainsURL(s, "https://identity.us-ashburn-1.oci.oraclecloud.com")
	response, body := do(t, c, signed(t, u, http.MethodGet, target, nil))
	want(t, response, body, http.StatusOK, "AD-1")
	if response.ProtoMajor != 2 {
		t.Errorf("through the tunnel the protocol is %s, want HTTP/2", response.Proto)
	}
	calls := s.Region().Calls()
	if len(calls) != 1 || calls[0].Principal != u.OCID || calls[0].Operation != "ListAvailabilityDomains" {
		t.Errorf("call log: got %+v, want one ListAvailabilityDomains by %s", calls, u.OCID)
	}
}

func TestProxyServesHTTP1WhereAsked(t *testing.T) {
	s := start(t, Options{})
	c := client(t, s, true)
	transport := c.Transport.(*http.Transport)
	transport.ForceAttemptHTTP2 = false
	transport.TLSClientConfig.NextProtos = []string{"http/1.1"}
	target := domainsURL(s, "https://identity.us-ashburn-1.oci.oraclecloud.com")
	response, body := do(t, c, signed(t, user(t, s, "alice"), http.MethodGet, target, nil))
	want(t, response, body, http.StatusOK, "AD-1")
	if response.Proto != "HTTP/1.1" {
		t.Errorf("protocol is %s, want HTTP/1.1", response.Proto)
	}
}

func TestListenerWithoutProxy(t *testing.T) {
	s := start(t, Options{})
	u := user(t, s, "alice")
	response, body := do(t, client(t, s, false), signed(t, u, http.MethodGet, domainsURL(s, s.URL()), nil))
	want(t, response, body, http.StatusOK, "AD-1")
	response, body = do(t, client(t, s, false), request(t, http.MethodGet, domainsURL(s, s.URL()), nil))
	want(t, response, body, http.StatusUnauthorized, "NotAuthenticated")
}

// connect sends a CONNECT by hand and returns the answer.
func connect(t *testing.T, s *Server, target string) (int, string) {
	t.Helper()
	conn, err := net.Dial("tcp", s.proxyAddr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := fmt.Fprintf(conn, "CONNECT %s HTTP/1.1\r\nHost: %s\r\n\r\n", target, target); err != nil {
		t.Fatal(err)
	}
	req := &http.Request{Method: http.MethodConnect}
	response, err := http.ReadResponse(bufio.NewReader(conn), req)
	if err != nil {
		t.Fatal(err)
	}
	if response.StatusCode == http.StatusOK {
		return response.StatusCode, ""
	}
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(body)
}

func TestProxyRefusesTheRestOfTheWorld(t *testing.T) {
	s := start(t, Options{Domains: []string{"ocisim.test"}})
	for target, status := range map[string]int{
		"iaas.us-ashburn-1.oraclecloud.com:443":  http.StatusOK,
		"IAAS.US-ASHBURN-1.ORACLECLOUD.COM.:443": http.StatusOK,
		"identity.ocisim.test:443":               http.StatusOK,
		"example.com:443":                        http.StatusForbidden,
		"oraclecloud.com.example.com:443":        http.StatusForbidden,
		"notoraclecloud.com:443":                 http.StatusForbidden,
		"127.0.0.1:6443":                         http.StatusForbidden,
		"169.254.169.254:80":                     http.StatusOK,
		"[fd00:c1::a9fe:a9fe]:80":                http.StatusOK,
		"169.254.169.254:443":                    http.StatusForbidden,
		"nonsense":                               http.StatusBadRequest,
	} {
		got, body := connect(t, s, target)
		if got != status {
			t.Errorf("CONNECT %s: got %d %s, want %d", target, got, body, status)
		}
		if got == http.StatusForbidden && (!strings.Contains(body, target) || !strings.Contains(body, "NO_PROXY")) {
			t.Errorf("CONNECT %s: the refusal %q does not say what to do", target, body)
		}
	}
}

func TestProxyPassesLoopbackWhereAllowed(t *testing.T) {
	s := start(t, Options{PassLoopback: true})
	other := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "through") }))
	defer other.Close()
	proxy, err := url.Parse(s.ProxyURL())
	if err != nil {
		t.Fatal(err)
	}
	transport := other.Client().Transport.(*http.Transport).Clone()
	transport.Proxy = http.ProxyURL(proxy)
	defer transport.CloseIdleConnections()
	response, body := do(t, &http.Client{Transport: transport}, request(t, http.MethodGet, other.URL, nil))
	want(t, response, body, http.StatusOK, "through")
	if status, _ := connect(t, s, "example.com:443"); status != http.StatusForbidden {
		t.Errorf("CONNECT example.com: got %d; passing loopback must not open the way to the world", status)
	}
}

func TestProxyRefusesPlainRequests(t *testing.T) {
	s := start(t, Options{})
	c := client(t, s, true)
	for target, text := range map[string]string{
		"http://example.com/": "NO_PROXY",
		"http://iaas.us-ashburn-1.oraclecloud.com/20160918/volumes/": "https only",
	} {
		response, body := do(t, c, request(t, http.MethodGet, target, nil))
		want(t, response, body, http.StatusForbidden, text)
	}
	response, body := do(t, http.DefaultClient, request(t, http.MethodGet, s.ProxyURL()+"/", nil))
	want(t, response, body, http.StatusBadRequest, "HTTPS_PROXY")
}

func TestEnvIsTheRecipe(t *testing.T) {
	s := start(t, Options{})
	got := strings.Join(s.InstanceEnv("node-2", "10.96.0.0/12", ".svc"), "\n")
	proxied := "http://node-2@" + s.proxyAddr
	wanted := strings.Join([]string{
		"HTTPS_PROXY=" + proxied,
		"HTTP_PROXY=" + proxied,
		"NO_PROXY=localhost,127.0.0.1,10.96.0.0/12,.svc",
		"SSL_CERT_FILE=" + s.CAFile(),
		"OCI_DEFAULT_CERTS_PATH=" + s.CAFile(),
		"NODE_EXTRA_CA_CERTS=" + s.CAFile(),
		"NODE_USE_ENV_PROXY=1",
	}, "\n")
	if got != wanted {
		t.Errorf("environment:\n%s\nwant:\n%s", got, wanted)
	}
	if !strings.Contains(s.Env()[0], "http://"+s.proxyAddr) {
		t.Errorf("Env without instance: %v", s.Env())
	}
}
