// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"
)

const metadataPrefix = "/opc/v2"

// MetadataFault makes the instance metadata service answer with an error for a while, as it does on a host that is
// still booting. The zero value is no fault.
type MetadataFault struct {
	Status int           `json:"status,omitempty"` // HTTP status; default 404
	Calls  int           `json:"calls,omitempty"`  // answer the next n calls so
	For    time.Duration `json:"for,omitempty"`    // or all calls for this long from now
	Delay  time.Duration `json:"delay,omitempty"`  // wait before every answer, also the good ones, until replaced
}

// metadata is the instance metadata service (IMDS), version 2 only: /opc/v1 and /openstack answer 404, as on instances
// where the legacy endpoints are disabled.
type metadata struct {
	source   *source
	identity *identity
	record   func(EdgeCall)

	mu    sync.Mutex
	fault MetadataFault
	until time.Time
}

// setFault replaces the fault in force.
func (m *metadata) setFault(f MetadataFault) {
	if f.Status == 0 {
		f.Status = http.StatusNotFound
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.fault = f
	m.until = time.Now().Add(f.For)
}

// failing takes one call's worth of the fault: the status to answer (0 for none) and the delay before any answer.
func (m *metadata) failing() (status int, delay time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delay = m.fault.Delay
	if m.fault.Calls > 0 {
		m.fault.Calls--
		return m.fault.Status, delay
	}
	if time.Now().Before(m.until) {
		return m.fault.Status, delay
	}
	return 0, delay
}

// handler serves the metadata of one instance on a listener of its own; an empty reference is the default instance.
func (m *metadata) handler(instance string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { m.serve(w, r, instance) })
}

// serve answers one request for the instance, given by OCID or display name.
func (m *metadata) serve(w http.ResponseWriter, r *http.Request, instance string) {
	recorder := &statusRecorder{ResponseWriter: w, status: http.StatusOK}
	m.answer(recorder, r, instance)
	m.record(EdgeCall{Kind: "metadata", Target: r.URL.Path, Status: recorder.status, Principal: instance})
}

func (m *metadata) answer(w http.ResponseWriter, r *http.Request, instance string) {
	status, delay := m.failing()
	if delay > 0 {
		select {
		case <-time.After(delay):
		case <-r.Context().Done():
			return
		}
	}
	path, isV2 := strings.CutPrefix(r.URL.Path, metadataPrefix)
	switch {
	case status != 0:
		http.Error(w, http.StatusText(status), status)
	case !isV2 || (path != "" && !strings.HasPrefix(path, "/")):
		http.Error(w, "Not Found", http.StatusNotFound)
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		http.Error(w, "Method Not Allowed", http.StatusMethodNotAllowed)
	case forwarded(r):
		http.Error(w, "requests with a Forwarded, X-Forwarded-For or X-Forwarded-Host header are rejected", http.StatusForbidden)
	case r.Header.Get("Authorization") != "Bearer Oracle":
		http.Error(w, "the header Authorization: Bearer Oracle is mandatory", http.StatusUnauthorized)
	default:
		m.document(w, r, instance, strings.Split(strings.Trim(path, "/"), "/"))
	}
}

// forwarded tells whether the request went through a proxy that says so; IMDS rejects these against request forgery.
func forwarded(r *http.Request) bool {
	for _, name := range []string{"Forwarded", "X-Forwarded-For", "X-Forwarded-Host"} {
		if len(r.Header.Values(name)) > 0 {
			return true
		}
	}
	return false
}

func (m *metadata) document(w http.ResponseWriter, r *http.Request, ref string, path []string) {
	instance, err := m.source.instance(ref)
	if err != nil {
		http.Error(w, "ocisim: "+err.Error(), http.StatusNotFound)
		return
	}
	switch path[0] {
	case "instance":
		writeTree(w, m.source.instanceDocument(instance), path[1:])
	case "vnics":
		writeTree(w, m.source.vnicDocument(instance), path[1:])
	case "identity":
		m.writeIdentity(w, instance, strings.Join(path[1:], "/"))
	default:
		http.NotFound(w, r)
	}
}

func (m *metadata) writeIdentity(w http.ResponseWriter, instance instanceView, name string) {
	creds, err := m.identity.credentials(instance)
	if err != nil {
		http.Error(w, "ocisim: "+err.Error(), http.StatusInternalServerError)
		return
	}
	var body []byte
	switch name {
	case "cert.pem":
		body = creds.certPEM
	case "key.pem":
		body = creds.keyPEM
	case "intermediate.pem":
		body = m.identity.intermediatePEM
	default:
		http.Error(w, "Not Found", http.StatusNotFound)
		return
	}
	w.Header().Set("Content-Type", "text/plain")
	_, _ = w.Write(body)
}

// writeTree answers with the part of a document that path leads to: an object or a list as JSON, a scalar as bare text.
func writeTree(w http.ResponseWriter, document any, path []string) {
	text, err := json.Marshal(document)
	if err != nil {
		http.Error(w, "ocisim: "+err.Error(), http.StatusInternalServerError)
		return
	}
	var tree any
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber() // timeCreated must not become a float
	if err := decoder.Decode(&tree); err != nil {
		http.Error(w, "ocisim: "+err.Error(), http.StatusInternalServerError)
		return
	}
	found, ok := descend(tree, path)
	if !ok {
		http.Error(w, "Not Found", http.StatusNotFound)
		return
	}
	switch found := found.(type) {
	case string, json.Number, bool:
		w.Header().Set("Content-Type", "text/plain")
		_, _ = fmt.Fprint(w, found)
	default:
		w.Header().Set("Content-Type", "application/json")
		body, _ := json.MarshalIndent(found, "", "  ") // came from JSON
		_, _ = w.Write(body)
	}
}

func descend(value any, path []string) (any, bool) {
	for _, step := range path {
		switch v := value.(type) {
		case map[string]any:
			next, ok := v[step]
			if !ok {
				return nil, false
			}
			value = next
		case []any:
			i, err := strconv.Atoi(step)
			if err != nil || i < 0 || i >= len(v) {
				return nil, false
			}
			value = v[i]
		default:
			return nil, false
		}
	}
	return value, true
}

// statusRecorder remembers the status that a handler wrote.
type statusRecorder struct {
	http.ResponseWriter
	status int
}

func (s *statusRecorder) WriteHeader(status int) {
	s.status = status
	s.ResponseWriter.WriteHeader(status)
}
