// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"bufio"
	"net"
	"sync"
)

// handoff is a listener whose connections come from another server: the proxy hands over what a client sends after
// CONNECT, and the TLS server accepts it as if the client had dialled it.
type handoff struct {
	addr  net.Addr
	conns chan net.Conn
	done  chan struct{}
	once  sync.Once
}

func newHandoff(addr net.Addr) *handoff {
	return &handoff{addr: addr, conns: make(chan net.Conn), done: make(chan struct{})}
}

// give passes conn to the accepting server. It reports false, and closes conn, when that server has stopped.
func (h *handoff) give(conn net.Conn) bool {
	select {
	case h.conns <- conn:
		return true
	case <-h.done:
		_ = conn.Close()
		return false
	}
}

// Accept waits for the next connection.
func (h *handoff) Accept() (net.Conn, error) {
	select {
	case conn := <-h.conns:
		return conn, nil
	case <-h.done:
		return nil, net.ErrClosed
	}
}

// Close ends Accept and give.
func (h *handoff) Close() error {
	h.once.Do(func() { close(h.done) })
	return nil
}

// Addr is the address of the server that hands over.
func (h *handoff) Addr() net.Addr { return h.addr }

// bufferedConn is a hijacked connection of which the HTTP server may have read some bytes already.
type bufferedConn struct {
	net.Conn
	reader *bufio.Reader
}

func (c *bufferedConn) Read(p []byte) (int, error) { return c.reader.Read(p) }

// CloseWrite ends the outgoing half where the transport can.
func (c *bufferedConn) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return c.Close()
}
