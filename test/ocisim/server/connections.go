// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"sync"
)

// connections knows the open connections of the API, so that those of a killed client can be cut before the server has
// noticed its end: what such a client had sent may still wait in a buffer.
type connections struct {
	mu   sync.Mutex
	cuts uint64
	open map[net.Conn]struct{}
}

func newConnections() *connections { return &connections{open: map[net.Conn]struct{}{}} }

// connKey is the key of a connection's birth in the contexts of its requests.
type connKey struct{}

// context is the ConnContext of an http.Server: it marks the connection's requests with the number of cuts so far.
func (c *connections) context(ctx context.Context, conn net.Conn) context.Context {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.open[conn] = struct{}{}
	return context.WithValue(ctx, connKey{}, c.cuts)
}

// state is the ConnState of an http.Server.
func (c *connections) state(conn net.Conn, state http.ConnState) {
	if state != http.StateClosed {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.open, conn)
}

// cut closes all connections. Requests of theirs that were read already are not alive any more.
func (c *connections) cut() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.cuts++
	for conn := range c.open {
		if secured, ok := conn.(*tls.Conn); ok {
			conn = secured.NetConn() // without a farewell, for which the peer might not listen
		}
		_ = conn.Close()
	}
}

// alive tells whether a request may still be applied.
func (c *connections) alive(ctx context.Context) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	born, ok := ctx.Value(connKey{}).(uint64)
	return ctx.Err() == nil && (!ok || born == c.cuts)
}
