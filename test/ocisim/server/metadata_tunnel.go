// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"net"
	"net/http"
)

// metadataTunnel is a connection to the metadata service that a program opened with CONNECT through the proxy, as
// Node.js does for plain HTTP too.
type metadataTunnel struct {
	net.Conn
	instance string // by the user of the proxy's URL; the requests inside do not tell
}

// tunnelInstance is the key of a tunnel's instance in the context of its requests.
type tunnelInstance struct{}

// serveMetadataTunnels answers what comes through the tunnels that the proxy hands over.
func (s *Server) serveMetadataTunnels(addr net.Addr) *handoff {
	server := s.newServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		instance, _ := r.Context().Value(tunnelInstance{}).(string)
		s.metadata.serve(w, r, instance)
	}))
	server.ConnContext = func(ctx context.Context, conn net.Conn) context.Context {
		if tunnel, ok := conn.(*metadataTunnel); ok {
			return context.WithValue(ctx, tunnelInstance{}, tunnel.instance)
		}
		return ctx
	}
	s.servers = append(s.servers, server)
	tunnels := newHandoff(addr)
	s.wg.Go(func() { s.ended(server.Serve(tunnels)) })
	return tunnels
}
