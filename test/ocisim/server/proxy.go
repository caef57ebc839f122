// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"encoding/base64"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"k8s.io/klog/v2"
)

const (
	metadataIPv4 = "169.254.169.254"
	metadataIPv6 = "fd00:c1::a9fe:a9fe"

	dialTimeout = 10 * time.Second
)

// proxy is the forward proxy of recipe R2: an unmodified program is given its address in HTTPS_PROXY and HTTP_PROXY.
// It keeps CONNECT tunnels to OCI's names for itself, answers requests for the metadata address, plain or in a tunnel,
// and refuses the rest, because a simulator that lets calls through to the real cloud would be worse than none.
type proxy struct {
	domains      []string // second-level domains of simulated hosts, "oraclecloud.com"
	passLoopback bool
	tls          *handoff
	plain        *handoff // tunnels to the metadata service
	metadata     *metadata
	log          klog.Logger
	record       func(EdgeCall)

	mu      sync.Mutex
	tunnels map[net.Conn]struct{}
}

// ServeHTTP handles CONNECT and absolute-form requests.
func (p *proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch {
	case r.Method == http.MethodConnect:
		p.connect(w, r)
	case r.URL.IsAbs():
		p.forward(w, r)
	default:
		http.Error(w, "ocisim: this port is a forward proxy; set HTTPS_PROXY and HTTP_PROXY to it (ocisim env prints the lines)",
			http.StatusBadRequest)
	}
}

// simulates tells whether host belongs to the simulated cloud.
func (p *proxy) simulates(host string) bool {
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	for _, domain := range p.domains {
		if host == domain || strings.HasSuffix(host, "."+domain) {
			return true
		}
	}
	return false
}

func (p *proxy) connect(w http.ResponseWriter, r *http.Request) {
	host, port, err := net.SplitHostPort(r.Host)
	if err != nil {
		http.Error(w, "ocisim: CONNECT needs host:port: "+err.Error(), http.StatusBadRequest)
		return
	}
	switch {
	case p.simulates(host):
		p.record(EdgeCall{Kind: "connect", Target: r.Host, Status: http.StatusOK})
		if conn := p.hijack(w); conn != nil {
			p.tls.give(conn)
		}
	case isMetadata(host) && port == "80":
		p.record(EdgeCall{Kind: "connect", Target: r.Host, Status: http.StatusOK})
		if conn := p.hijack(w); conn != nil {
			p.plain.give(&metadataTunnel{Conn: conn, instance: proxyUser(r)})
		}
	case p.passLoopback && isLoopback(host):
		p.record(EdgeCall{Kind: "pass", Target: r.Host, Status: http.StatusOK})
		p.pass(w, r, net.JoinHostPort(host, port))
	default:
		p.record(EdgeCall{Kind: "connect", Target: r.Host, Status: http.StatusForbidden})
		p.refuse(w, r.Host)
	}
}

// refuse says what the proxy is and what to do about the refusal.
func (p *proxy) refuse(w http.ResponseWriter, target string) {
	p.log.V(1).Info("Proxy request refused", "target", target)
	msg := fmt.Sprintf("ocisim: %s is not part of the simulated region (only names under %s are, and http://%s); "+
		"nothing is forwarded to the real network: list the host in NO_PROXY if the program must reach it",
		target, strings.Join(p.domains, ", "), metadataIPv4)
	http.Error(w, msg, http.StatusForbidden)
}

// hijack answers the CONNECT and returns the raw connection, or nil when the client is gone.
func (p *proxy) hijack(w http.ResponseWriter) net.Conn {
	hijacker, ok := w.(http.Hijacker)
	if !ok {
		http.Error(w, "ocisim: CONNECT needs HTTP/1.1", http.StatusHTTPVersionNotSupported)
		return nil
	}
	conn, buffered, err := hijacker.Hijack()
	if err != nil {
		p.log.V(1).Info("Client left before the tunnel was up", "err", err.Error())
		return nil
	}
	if _, err := io.WriteString(conn, "HTTP/1.1 200 Connection established\r\n\r\n"); err != nil {
		_ = conn.Close()
		return nil
	}
	return &bufferedConn{Conn: conn, reader: buffered.Reader}
}

// pass tunnels to a loopback server, for programs whose API server runs on this machine and that ignore NO_PROXY.
func (p *proxy) pass(w http.ResponseWriter, r *http.Request, target string) {
	dialer := net.Dialer{Timeout: dialTimeout}
	upstream, err := dialer.DialContext(r.Context(), "tcp", target)
	if err != nil {
		http.Error(w, "ocisim: pass through to "+target+": "+err.Error(), http.StatusBadGateway)
		return
	}
	client := p.hijack(w)
	if client == nil {
		_ = upstream.Close()
		return
	}
	p.track(client, upstream)
	defer p.untrack(client, upstream)
	var wg sync.WaitGroup
	wg.Go(func() { copyHalf(upstream, client) })
	wg.Go(func() { copyHalf(client, upstream) })
	wg.Wait()
}

// copyHalf copies one direction of a tunnel and passes the end of the stream on.
func copyHalf(dst, src net.Conn) {
	_, _ = io.Copy(dst, src)
	if half, ok := dst.(interface{ CloseWrite() error }); ok {
		_ = half.CloseWrite()
		return
	}
	_ = dst.Close()
}

func (p *proxy) track(conns ...net.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.tunnels == nil {
		p.tunnels = map[net.Conn]struct{}{}
	}
	for _, c := range conns {
		p.tunnels[c] = struct{}{}
	}
}

func (p *proxy) untrack(conns ...net.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range conns {
		_ = c.Close()
		delete(p.tunnels, c)
	}
}

// close ends the tunnels that pass through; net/http no longer knows them.
func (p *proxy) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.tunnels {
		_ = c.Close()
	}
}

// forward handles "GET http://host/path". Only the metadata service is plain HTTP on OCI.
func (p *proxy) forward(w http.ResponseWriter, r *http.Request) {
	host := r.URL.Hostname()
	if !isMetadata(host) {
		p.record(EdgeCall{Kind: "forward", Target: r.URL.Host, Status: http.StatusForbidden})
		if p.simulates(host) {
			http.Error(w, "ocisim: "+host+" speaks https only", http.StatusForbidden)
			return
		}
		p.refuse(w, r.URL.Host)
		return
	}
	p.metadata.serve(w, r, proxyUser(r))
}

// proxyUser returns the user name in the proxy's URL, by which a program says which instance it runs on:
// HTTP_PROXY=http://worker-2@127.0.0.1:3128.
func proxyUser(r *http.Request) string {
	encoded, ok := strings.CutPrefix(r.Header.Get("Proxy-Authorization"), "Basic ")
	if !ok {
		return ""
	}
	decoded, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil {
		return ""
	}
	user, _, _ := strings.Cut(string(decoded), ":")
	return user
}

func isMetadata(host string) bool { return host == metadataIPv4 || host == metadataIPv6 }

func isLoopback(host string) bool {
	if strings.EqualFold(host, "localhost") {
		return true
	}
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback()
}
