// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package oci

import (
	"context"
	"encoding/pem"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// countingProxy is a forward proxy that leads every connection to one server and counts by target.
type countingProxy struct {
	to string // host:port

	mu   sync.Mutex
	seen map[string]int
}

func (p *countingProxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	p.seen[r.Host]++
	p.mu.Unlock()
	if r.Method != http.MethodConnect {
		fmt.Fprint(w, "answered by the proxy")
		return
	}
	out, err := net.Dial("tcp", p.to)
	if err != nil {
		w.WriteHeader(http.StatusBadGateway)
		return
	}
	defer out.Close()
	in, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return
	}
	defer in.Close()
	fmt.Fprint(in, "HTTP/1.1 200 OK\r\n\r\n")
	go func() { _, _ = io.Copy(out, buffered) }()
	_, _ = io.Copy(in, out)
}

const proxyChild = "OCI_TEST_CALLS_THROUGH_PROXY"

// C155: calls to OCI and to the federation service go through the proxy of the environment, instance metadata does not.
// Go reads the proxy variables once per process, hence the child.
func TestProxyIsForOCIAndNeverForMetadata(t *testing.T) {
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte(runningInstance))
	}))
	defer server.Close()
	counting := &countingProxy{to: server.Listener.Addr().String(), seen: map[string]int{}}
	proxy := httptest.NewServer(counting)
	defer proxy.Close()

	ca := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	child := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestCallsThroughProxy$", "-test.v")
	child.Env = append(os.Environ(), proxyChild+"="+ca, "HTTPS_PROXY="+proxy.URL, "HTTP_PROXY="+proxy.URL, "NO_PROXY=", "no_proxy=", "https_proxy=", "http_proxy=")
	output, err := child.CombinedOutput()
	if err != nil || !strings.Contains(string(output), "--- PASS: TestCallsThroughProxy") {
		t.Errorf("child: %v\n%s", err, output)
	}
	want := map[string]int{"example.com:443": 2, "169.254.169.254": 1}
	if fmt.Sprint(counting.seen) != fmt.Sprint(want) {
		t.Errorf("the proxy saw %v, want %v", counting.seen, want)
	}
}

// TestCallsThroughProxy makes one call to OCI, one to the federation service, one to instance metadata, and one to the
// same address with Go's default transport, which shows that the environment would send it to the proxy.
func TestCallsThroughProxy(t *testing.T) {
	caFile := os.Getenv(proxyChild)
	if caFile == "" {
		t.Skip("runs as the child of TestProxyIsForOCIAndNeverForMetadata")
	}
	ca, err := os.ReadFile(caFile)
	if err != nil {
		t.Fatal(err)
	}
	// The server's certificate is for example.com.
	c, err := New(Options{Provider: testPrincipal(t), Region: testRegion, CABundle: ca, Endpoints: map[Service]string{ServiceCompute: "https://example.com"}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Compute().GetInstance(t.Context(), testInstance); err != nil {
		t.Error(err)
	}
	d, err := newInstanceDispatcher(InstancePrincipalOptions{AuthEndpoint: "https://example.com", CABundle: ca})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := ask(t.Context(), d, "https://auth.us-ashburn-1.oraclecloud.com/v1/x509", ""); err != nil {
		t.Error(err)
	}
	// Nobody has to be there; what counts is that it is not the proxy who answers.
	impatient, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	if body, err := ask(impatient, d, DefaultMetadataURL+"/instance/region", metadataAuthorization); strings.Contains(body, "proxy") {
		t.Errorf("instance metadata came from the proxy: %v", err)
	}
	if body, err := ask(t.Context(), http.DefaultClient, DefaultMetadataURL+"/instance/region", metadataAuthorization); !strings.Contains(body, "proxy") {
		t.Errorf("the default transport did not go to the proxy: %q, %v", body, err)
	}
}

func ask(ctx context.Context, d interface {
	Do(*http.Request) (*http.Response, error)
}, target, authorization string) (string, error) {
	u, err := url.Parse(target)
	if err != nil {
		return "", err
	}
	request := (&http.Request{Method: http.MethodGet, URL: u, Header: http.Header{"Authorization": {authorization}}}).WithContext(ctx)
	return readText(d.Do(request))
}
