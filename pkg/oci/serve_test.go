// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package oci

import (
	"encoding/json"
	"io"
	"net/http"
	"sync"
	"testing"
)

// sent is a request as a service sees it.
type sent struct {
	Method, Path, Query string
	Header              http.Header
	Body                map[string]any // nil if there was none
}

// reply is what a service answers with; body is encoded as JSON.
type reply struct {
	status  int
	body    any
	headers []string // key, value, …
}

// service plays an OCI service: it answers with a function and notes what it was sent.
type service struct {
	handle func(sent) reply

	mu       sync.Mutex
	requests []sent
}

// RoundTrip implements http.RoundTripper.
func (s *service) RoundTrip(r *http.Request) (*http.Response, error) {
	got := sent{Method: r.Method, Path: r.URL.Path, Query: r.URL.RawQuery, Header: r.Header.Clone()}
	if r.Body != nil {
		defer r.Body.Close()
		text, err := io.ReadAll(r.Body)
		if err != nil {
			return nil, err
		}
		if len(text) > 0 {
			if err := json.Unmarshal(text, &got.Body); err != nil {
				return nil, err
			}
		}
	}
	s.mu.Lock()
	s.requests = append(s.requests, got)
	s.mu.Unlock()

	out := s.handle(got)
	var body []byte
	if out.body != nil {
		var err error
		if body, err = json.Marshal(out.body); err != nil {
			return nil, err
		}
	}
	response := answer(out.status, string(body), out.headers...)
	response.Request = r
	return response, nil
}

// received returns the requests so far.
func (s *service) received() []sent {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]sent(nil), s.requests...)
}

// serve returns a client whose every request is answered by handle.
func serve(t *testing.T, handle func(sent) reply) (*Client, *service) {
	t.Helper()
	s := &service{handle: handle}
	c, _ := newTestClient(t, nil, func(o *Options) { o.Transport = s })
	return c, s
}
