// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"bytes"
	"io"
	"net/http"

	"github.com/oracle/oci-cloud-controller-manager/test/ocisim"
)

// api is what stands behind the TLS listener and the intercepted tunnels: the token services, and the region for
// everything else. Host names play no part; paths differ between all services.
type api struct {
	federation *federation
	exchange   *exchange
	tokens     *tokens
	hooks      *hooks
	region     http.Handler
	record     func(EdgeCall)
}

func (s *Server) apiServer(identity *identity) *http.Server {
	tenancy := s.region.Options().Tenancy
	server := s.newServer(&api{
		federation: &federation{identity: identity, tokens: s.tokens, source: s.metadata.source},
		exchange:   &exchange{tokens: s.tokens, tenancy: tenancy, clients: s.options.Clients},
		tokens:     s.tokens,
		hooks:      s.hooks,
		region:     s.region,
		record:     s.edge.record,
	})
	server.TLSConfig = s.ca.tlsConfig("h2", "http/1.1")
	server.ConnContext = s.hooks.connections.context
	server.ConnState = s.hooks.connections.state
	return server
}

func (a *api) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch r.URL.Path {
	case "/v1/x509":
		a.token(w, r, "federation", a.federation.answer)
	case "/oauth2/v1/token":
		a.token(w, r, "exchange", a.exchange.answer)
	default:
		a.call(w, r)
	}
}

// token runs one of the token services on a bounded body.
func (a *api) token(w http.ResponseWriter, r *http.Request, kind string, answer func(http.ResponseWriter, *http.Request, []byte) string) {
	recorder := &statusRecorder{ResponseWriter: w, status: http.StatusOK}
	who := ""
	defer func() { a.record(EdgeCall{Kind: kind, Target: r.URL.Path, Status: recorder.status, Principal: who}) }()
	recorder.Header().Set("opc-request-id", r.Header.Get("opc-request-id"))
	if r.Method != http.MethodPost {
		writeRefusal(recorder, refuse(http.StatusMethodNotAllowed, "MethodNotAllowed", r.Method+" not allowed"))
		return
	}
	body, err := io.ReadAll(http.MaxBytesReader(recorder, r.Body, maxAuthBody))
	if err != nil {
		writeRefusal(recorder, refuse(http.StatusRequestEntityTooLarge, "RequestEntityTooLarge", err.Error()))
		return
	}
	who = answer(recorder, r, body)
}

// call passes a request to the region, in its turn where a Stop wants turns.
func (a *api) call(w http.ResponseWriter, r *http.Request) {
	if a.hooks.freezing() {
		// The end of a client is only noticed once its request has been read.
		body, err := io.ReadAll(r.Body)
		if err != nil {
			panic(http.ErrAbortHandler)
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
	}
	leave, ok := a.hooks.enter(r.Context())
	if !ok {
		panic(http.ErrAbortHandler) // net/http's way to drop a connection without an answer
	}
	defer leave()
	a.region.ServeHTTP(w, r)
}

// signedRequest is what a signature covers of a request whose body was read already.
func signedRequest(r *http.Request, body []byte) ocisim.SignedRequest {
	return ocisim.SignedRequest{Method: r.Method, URI: r.RequestURI, Host: r.Host, Header: r.Header, Body: body}
}
