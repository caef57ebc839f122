// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"encoding/json"
	"errors"
	"net/http"
	"sync"
	"time"

	"github.com/oracle/oci-cloud-controller-manager/test/ocisim"
)

// EdgeCall is a request that the server answered itself, before the region: instance metadata, tokens, proxying. The
// region's own call log does not have it.
type EdgeCall struct {
	Time      time.Time `json:"time"`
	Kind      string    `json:"kind"`                // "metadata", "federation", "exchange", "proxymux", "connect", "pass", "forward"
	Target    string    `json:"target"`              // path, or host and port for the proxy
	Status    int       `json:"status"`              // HTTP status of the answer
	Principal string    `json:"principal,omitempty"` // instance, service account or client, as far as known
}

// maxEdgeCalls bounds the memory of the log; older entries are dropped by halves.
const maxEdgeCalls = 20000

type edgeLog struct {
	mu    sync.Mutex
	calls []EdgeCall
}

func (l *edgeLog) record(c EdgeCall) {
	c.Time = time.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.calls) >= maxEdgeCalls {
		l.calls = append(l.calls[:0], l.calls[maxEdgeCalls/2:]...)
	}
	l.calls = append(l.calls, c)
}

func (l *edgeLog) list() []EdgeCall {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]EdgeCall{}, l.calls...)
}

func (l *edgeLog) count() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.calls)
}

func (l *edgeLog) reset() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.calls = nil
}

// writeJSON answers with a JSON body.
func writeJSON(w http.ResponseWriter, status int, value any) {
	body, err := json.Marshal(value)
	if err != nil {
		http.Error(w, "ocisim: encode the answer: "+err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(append(body, '\n'))
}

// refuse is an error that a token service answers with, in the form of OCI's services.
func refuse(status int, code, message string) error {
	return &ocisim.APIError{Status: status, Code: code, Message: message}
}

// writeRefusal answers with an error. One that is not a refusal is a defect of the simulator.
func writeRefusal(w http.ResponseWriter, err error) {
	var refusal *ocisim.APIError
	if !errors.As(err, &refusal) {
		refusal = &ocisim.APIError{Status: http.StatusInternalServerError, Code: "InternalServerError", Message: err.Error()}
	}
	ocisim.WriteError(w, refusal)
}
