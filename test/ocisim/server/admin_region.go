// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/oracle/oci-cloud-controller-manager/test/ocisim"
)

func (a *admin) state(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(a.server.region.Snapshot())
}

func (a *admin) seed(w http.ResponseWriter, r *http.Request) {
	text, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxAdminBody))
	if err != nil {
		adminError(w, http.StatusBadRequest, fmt.Errorf("read the seed: %w", err))
		return
	}
	world, err := ParseWorld(text)
	if err != nil {
		adminError(w, http.StatusBadRequest, err)
		return
	}
	if err := a.server.region.Seed(world); err != nil {
		adminError(w, http.StatusBadRequest, err)
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

// reset empties the region. Registered keys stay, so that running clients only find everything gone.
func (a *admin) reset(w http.ResponseWriter, _ *http.Request) {
	a.faults.empty()
	a.denials.empty()
	a.grants.empty()
	a.acts.empty()
	a.server.region.Reset()
	a.server.edge.reset()
	w.WriteHeader(http.StatusNoContent)
}

func (a *admin) addFault(w http.ResponseWriter, r *http.Request) {
	var fault ocisim.Fault
	if !decode(w, r, &fault) {
		return
	}
	if err := fault.Validate(); err != nil {
		adminError(w, http.StatusBadRequest, err)
		return
	}
	writeJSON(w, http.StatusCreated, a.faults.add(fault, a.server.region.Fault(fault)))
}

func (a *admin) addDenial(w http.ResponseWriter, r *http.Request) {
	var policy ocisim.Policy
	if !decode(w, r, &policy) {
		return
	}
	if err := policy.Validate(); err != nil {
		adminError(w, http.StatusBadRequest, err)
		return
	}
	writeJSON(w, http.StatusCreated, a.denials.add(policy, a.server.region.Deny(policy)))
}

func (a *admin) addGrant(w http.ResponseWriter, r *http.Request) {
	var grant ocisim.Grant
	if !decode(w, r, &grant) {
		return
	}
	revoke, err := a.server.region.Grant(grant)
	if err != nil {
		adminError(w, http.StatusBadRequest, err)
		return
	}
	writeJSON(w, http.StatusCreated, a.grants.add(grant, revoke))
}

func (a *admin) clock(w http.ResponseWriter, _ *http.Request) {
	writeJSON(w, http.StatusOK, map[string]time.Time{"now": a.server.region.Now()})
}

var errAdvance = errors.New("by: want a positive duration")

func (a *admin) advance(w http.ResponseWriter, r *http.Request) {
	var request struct {
		By ocisim.Duration `json:"by"`
	}
	if !decode(w, r, &request) {
		return
	}
	if request.By <= 0 {
		adminError(w, http.StatusBadRequest, errAdvance)
		return
	}
	a.server.region.Advance(time.Duration(request.By))
	a.clock(w, r)
}

// env answers with the lines of Server.Env, InstanceEnv and User.Env.
func (a *admin) env(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	lines := a.server.env(q.Get("instance"), q["noProxy"])
	if name := q.Get("user"); name != "" {
		user, err := a.server.User(name)
		if err != nil {
			adminError(w, http.StatusBadRequest, err)
			return
		}
		lines = append(lines, user.Env()...)
	}
	writeJSON(w, http.StatusOK, lines)
}

func (a *admin) addUser(w http.ResponseWriter, r *http.Request) {
	var request struct {
		Name string `json:"name"`
	}
	if !decode(w, r, &request) {
		return
	}
	user, err := a.server.User(request.Name)
	if err != nil {
		adminError(w, http.StatusBadRequest, err)
		return
	}
	writeJSON(w, http.StatusOK, user)
}

func (a *admin) metadataFault(w http.ResponseWriter, r *http.Request) {
	var request struct {
		Status int             `json:"status"`
		Calls  int             `json:"calls"`
		For    ocisim.Duration `json:"for"`
		Delay  ocisim.Duration `json:"delay"`
	}
	if !decode(w, r, &request) {
		return
	}
	a.server.SetMetadataFault(MetadataFault{
		Status: request.Status, Calls: request.Calls, For: time.Duration(request.For), Delay: time.Duration(request.Delay),
	})
	w.WriteHeader(http.StatusNoContent)
}
