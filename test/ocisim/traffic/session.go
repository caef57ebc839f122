// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

// session is a connection of a client with its continuation to a backend.
type session struct {
	mu    sync.Mutex
	conns []net.Conn // plain ones, below TLS
	ended bool
}

// own makes the end of the session the end of a connection. It closes the connection and is false if the session has ended.
func (s *session) own(conn net.Conn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended {
		conn.Close()
		return false
	}
	s.conns = append(s.conns, conn)
	return true
}

// end closes all connections, by a reset if the peers are to notice at once.
func (s *session) end(reset bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended = true
	for _, conn := range s.conns {
		if tcp, ok := conn.(*net.TCPConn); ok && reset {
			_ = tcp.SetLinger(0)
		}
		conn.Close()
	}
	s.conns = nil
}

func endAll(sessions []*session, reset bool) {
	for _, s := range sessions {
		s.end(reset)
	}
}

// relay copies in both directions until both have ended, one has failed, or nothing has come for so long as idle says.
func relay(client, server net.Conn, idle time.Duration) {
	var last atomic.Int64
	last.Store(time.Now().UnixNano())
	clean := make(chan bool, 2)
	for _, way := range [2]struct{ from, to net.Conn }{{client, server}, {server, client}} {
		go func() { clean <- carry(way.from, way.to, idle, &last) == nil }()
	}
	if !<-clean {
		client.Close()
		server.Close()
	}
	<-clean
	client.Close()
	server.Close()
}

// carry copies one direction. Its end is passed on as the end of that direction only.
func carry(from, to net.Conn, idle time.Duration, last *atomic.Int64) error {
	buf := make([]byte, 32<<10)
	for {
		wait := idle - time.Since(time.Unix(0, last.Load()))
		if wait <= 0 {
			return os.ErrDeadlineExceeded
		}
		if err := from.SetReadDeadline(time.Now().Add(wait)); err != nil {
			return err
		}
		n, err := from.Read(buf)
		if n > 0 {
			last.Store(time.Now().UnixNano())
			if _, writeErr := to.Write(buf[:n]); writeErr != nil {
				return writeErr
			}
		}
		switch {
		case err == nil, errors.Is(err, os.ErrDeadlineExceeded): // perhaps the other direction is alive
		case errors.Is(err, io.EOF):
			if half, ok := to.(interface{ CloseWrite() error }); ok {
				return half.CloseWrite()
			}
			return err
		default:
			return err
		}
	}
}

// prefixed is a connection whose first bytes have been read.
type prefixed struct {
	net.Conn

	head []byte
}

// Read implements io.Reader.
func (p *prefixed) Read(b []byte) (int, error) {
	if len(p.head) == 0 {
		return p.Conn.Read(b)
	}
	n := copy(b, p.head)
	p.head = p.head[n:]
	return n, nil
}

// CloseWrite ends the sending half, where the connection has one.
func (p *prefixed) CloseWrite() error {
	if half, ok := p.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return nil
}
