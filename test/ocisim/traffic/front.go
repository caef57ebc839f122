// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync/atomic"
	"time"
)

// helloTimeout bounds what a client says before the backend is known: its TLS handshake, the head of its request.
const helloTimeout = 10 * time.Second

// connectTimeout bounds the connection to one backend.
const connectTimeout = 10 * time.Second

// maxHead is the size of the head of a request, in bytes, in which the host name is searched.
const maxHead = 16 << 10

// front is a port of a balancer that listens.
type front struct {
	body   *Body
	socket net.Listener
	routes atomic.Pointer[[]route]
}

// route is a listener of the port. There are several where host names tell them apart.
type route struct {
	listener

	pool   *pool
	config *tls.Config    // nil: no TLS
	to     netip.AddrPort // the balancer's address and port as the API shows them
}

// listen opens the port. It accepts until it is closed; connections outlive it.
func (b *Body) listen(address string, routes []route) (*front, error) {
	var lc net.ListenConfig
	socket, err := lc.Listen(b.ctx, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("listen: %w", err)
	}
	f := &front{body: b, socket: socket}
	f.routes.Store(&routes)
	b.jobs.Go(f.accept)
	return f, nil
}

func (f *front) accept() {
	for {
		conn, err := f.socket.Accept()
		if err != nil {
			if errors.Is(err, net.ErrClosed) {
				return
			}
			time.Sleep(10 * time.Millisecond) // out of descriptors, for example
			continue
		}
		s := &session{}
		if !f.body.join(s) {
			conn.Close()
			return
		}
		s.own(conn)
		f.body.jobs.Go(func() {
			defer f.body.part(s)
			defer s.end(false)
			f.serve(s, conn)
		})
	}
}

// serve handles a connection from its first byte to its last.
func (f *front) serve(s *session, conn net.Conn) {
	client := addrPort(conn.RemoteAddr())
	r, front, name, err := f.greet(conn)
	if err != nil {
		f.body.log.V(1).Info("A client was not understood", "client", client, "err", err)
		return
	}
	var tried []*member
	for {
		m := r.pool.pick(s, client, r.to, tried)
		if m == nil {
			f.body.log.V(1).Info("No backend", "listener", r.name, "client", client, "tried", len(tried))
			r.excuse(front)
			return
		}
		again := func() bool {
			defer r.pool.leave(m, s)
			return f.forward(s, r, m, front, client, name)
		}()
		if !again {
			return
		}
		tried = append(tried, m)
	}
}

// forward connects a client to a backend until one of them ends. It is true if another backend is to be tried.
func (f *front) forward(s *session, r *route, m *member, front net.Conn, client netip.AddrPort, serverName string) bool {
	to, encrypt, from, retry := r.pool.settings(m, client)
	var header []byte
	if r.proxy > 0 {
		if !r.authority {
			serverName = ""
		}
		header = proxyHeader(r.proxy, client, r.to, serverName)
	}
	ctx, cancel := context.WithTimeout(f.body.ctx, connectTimeout)
	back, err := f.body.connect(ctx, from, to, r.port, header, encrypt)
	cancel()
	if err != nil {
		f.body.log.V(1).Info("A backend does not answer", "listener", r.name, "backend", m.name, "err", err)
		return retry
	}
	if !s.own(back) {
		return false
	}
	relay(front, back, r.idle)
	return false
}

// greet finds out which listener a client wants and does the TLS handshake. name is the server name that the client asked for.
func (f *front) greet(conn net.Conn) (r *route, front net.Conn, name string, err error) {
	routes := *f.routes.Load()
	if err := conn.SetDeadline(time.Now().Add(helloTimeout)); err != nil {
		return nil, nil, "", fmt.Errorf("deadline: %w", err)
	}
	r, front = &routes[0], conn
	if r.config != nil {
		server := tls.Server(conn, &tls.Config{ //nolint:gosec // the listener's settings take its place
			GetConfigForClient: func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
				name = hello.ServerName
				r = routeFor(routes, name)
				return r.config, nil
			},
		})
		if err := server.HandshakeContext(f.body.ctx); err != nil {
			return nil, nil, "", fmt.Errorf("TLS handshake: %w", err)
		}
		front = server
	}
	if len(routes) > 1 {
		head, host := readHead(front)
		if host == "" {
			host = name
		}
		r, front = routeFor(routes, host), &prefixed{Conn: front, head: head}
	}
	if err := conn.SetDeadline(time.Time{}); err != nil {
		return nil, nil, "", fmt.Errorf("deadline: %w", err)
	}
	return r, front, name, nil
}

// readHead reads the head of a request and the host that it names.
func readHead(conn net.Conn) (head []byte, host string) {
	buf := make([]byte, 4<<10)
	for len(head) < maxHead && !bytes.Contains(head, []byte("\r\n\r\n")) {
		n, err := conn.Read(buf)
		head = append(head, buf[:n]...)
		if err != nil {
			break
		}
	}
	for line := range strings.SplitSeq(string(head), "\r\n") {
		if name, v, ok := strings.Cut(line, ":"); ok && strings.EqualFold(name, "Host") {
			host = strings.TrimSpace(v)
			if bare, _, err := net.SplitHostPort(host); err == nil {
				host = bare
			}
			return head, strings.ToLower(host)
		}
	}
	return head, ""
}

// routeFor finds the listener for a host: by its exact name, by the longest name behind an asterisk, by the longest one before
// an asterisk, the one without host names, or the first.
func routeFor(routes []route, host string) *route {
	best, bestRank := &routes[0], 0
	for i := range routes {
		r := &routes[i]
		rank := 0
		if len(r.hostnames) == 0 {
			rank = 1
		}
		for _, pattern := range r.hostnames {
			rank = max(rank, hostRank(pattern, strings.ToLower(host)))
		}
		if rank > bestRank {
			best, bestRank = r, rank
		}
	}
	return best
}

// hostRank is how well a host name fits a host; 0 if it does not.
func hostRank(pattern, host string) int {
	const exact, leading, trailing = 3 << 16, 2 << 16, 1 << 16
	switch {
	case pattern == host:
		return exact
	case strings.HasPrefix(pattern, "*.") && strings.HasSuffix(host, pattern[1:]):
		return leading + len(pattern)
	case strings.HasSuffix(pattern, ".*") && strings.HasPrefix(host, pattern[:len(pattern)-1]):
		return trailing + len(pattern)
	}
	return 0
}

// excuse answers an HTTP request for which there is no backend.
func (r *route) excuse(front net.Conn) {
	if !r.http() || r.protocol == "GRPC" {
		return
	}
	deadline := time.Now().Add(helloTimeout)
	if front.SetDeadline(deadline) != nil {
		return
	}
	if _, seen := front.(*prefixed); !seen {
		readHead(front)
	}
	text := http.StatusText(http.StatusBadGateway)
	_, _ = fmt.Fprintf(front, "HTTP/1.1 %d %s\r\nContent-Type: text/plain\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s\n",
		http.StatusBadGateway, text, len(text)+1, text)
	if half, ok := front.(interface{ CloseWrite() error }); ok {
		_ = half.CloseWrite()
	}
}

// close stops listening.
func (f *front) close() { f.socket.Close() }

func addrPort(a net.Addr) netip.AddrPort {
	if tcp, ok := a.(*net.TCPAddr); ok {
		p := tcp.AddrPort()
		return netip.AddrPortFrom(p.Addr().Unmap(), p.Port())
	}
	return netip.AddrPort{}
}
