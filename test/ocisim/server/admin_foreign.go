// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"encoding/json"
	"errors"
	"net/http"
	"sync"

	"github.com/oracle/oci-cloud-controller-manager/test/ocisim"
)

// ForeignWrite is something that somebody else does to a resource: at once, or just before or after a call of a client.
type ForeignWrite struct {
	// ID of the resource. With Before or After it may be empty: the resource that the call created, else the one in its
	// path.
	ID     string          `json:"id,omitempty"`
	Set    json.RawMessage `json:"set,omitempty"`    // RFC 7386 merge patch of the resource's JSON
	Delete bool            `json:"delete,omitempty"` // take it away at once

	Before *ocisim.Trigger `json:"before,omitempty"`
	After  *ocisim.Trigger `json:"after,omitempty"`
}

var (
	errForeign     = errors.New("want id, and either set or delete")
	errForeignWhen = errors.New("want before or after, not both")
)

// validate refuses what cannot be done whatever the region has.
func (f ForeignWrite) validate() error {
	if (len(f.Set) > 0) == f.Delete {
		return errForeign
	}
	switch {
	case f.Before != nil && f.After != nil:
		return errForeignWhen
	case f.Before != nil:
		return f.Before.Validate()
	case f.After != nil:
		return f.After.Validate()
	case f.ID == "":
		return errForeign
	}
	return nil
}

// do carries the write out. c is the call that it is tied to.
func (f ForeignWrite) do(foreign *ocisim.Foreign, c ocisim.Call) error {
	id := f.ID
	if id == "" {
		if id = c.Created; id == "" {
			id = c.Resource
		}
	}
	if f.Delete {
		return foreign.Delete(id)
	}
	return foreign.Patch(id, f.Set)
}

// ForeignState is a write that waits for its call.
type ForeignState struct {
	ForeignWrite

	Done  int    `json:"done"`            // how often it was carried out
	Error string `json:"error,omitempty"` // why the last time failed
}

// act is a ForeignState that changes.
type act struct {
	mu    sync.Mutex
	state ForeignState
}

// MarshalJSON implements json.Marshaler.
func (a *act) MarshalJSON() ([]byte, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return json.Marshal(a.state)
}

func (a *act) do(foreign *ocisim.Foreign, c ocisim.Call) {
	err := a.state.do(foreign, c)
	a.mu.Lock()
	defer a.mu.Unlock()
	a.state.Error = ""
	if err != nil {
		a.state.Error = err.Error()
		return
	}
	a.state.Done++
}

func (a *admin) foreign(w http.ResponseWriter, r *http.Request) {
	var write ForeignWrite
	if !decode(w, r, &write) {
		return
	}
	if err := write.validate(); err != nil {
		adminError(w, http.StatusBadRequest, err)
		return
	}
	foreign := a.server.region.Foreign()
	waiting := &act{state: ForeignState{ForeignWrite: write}}
	switch {
	case write.Before != nil:
		writeJSON(w, http.StatusCreated, a.acts.add(waiting, foreign.Before(*write.Before, waiting.do)))
	case write.After != nil:
		writeJSON(w, http.StatusCreated, a.acts.add(waiting, foreign.After(*write.After, waiting.do)))
	default:
		if err := write.do(foreign, ocisim.Call{}); err != nil {
			adminError(w, http.StatusUnprocessableEntity, err)
			return
		}
		w.WriteHeader(http.StatusNoContent)
	}
}
