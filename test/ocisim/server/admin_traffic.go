// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"errors"
	"fmt"
	"net/http"
	"net/netip"

	"github.com/oracle/oci-cloud-controller-manager/test/ocisim"
	"github.com/oracle/oci-cloud-controller-manager/test/ocisim/traffic"
)

// Traffic is the answer to GET /traffic.
type Traffic struct {
	Listeners []traffic.Listener `json:"listeners"`
	Backends  map[string]string  `json:"backends"` // addresses of backends and the sockets that they lead to
}

var (
	errNoTraffic = errors.New("the balancers of this region have no body: start it with --traffic")
	errEmpty     = errors.New("must not be empty")
)

// handleTraffic adds the requests about what balancers do.
func (a *admin) handleTraffic(mux *http.ServeMux) {
	mux.HandleFunc("POST /backend-health", a.backendHealth)
	with := func(handle func(http.ResponseWriter, *http.Request, *traffic.Body)) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			body, ok := a.server.region.Options().Balancers.(*traffic.Body)
			if !ok {
				adminError(w, http.StatusConflict, errNoTraffic)
				return
			}
			handle(w, r, body)
		}
	}
	mux.HandleFunc("GET /traffic", with(showTraffic))
	mux.HandleFunc("POST /traffic/backends", with(mapBackend))
	mux.HandleFunc("POST /traffic/addresses", with(chooseLoopback))
}

func showTraffic(w http.ResponseWriter, _ *http.Request, body *traffic.Body) {
	writeJSON(w, http.StatusOK, Traffic{Listeners: body.Listeners(), Backends: body.Backends()})
}

func mapBackend(w http.ResponseWriter, r *http.Request, body *traffic.Body) {
	var request struct {
		Backend string `json:"backend"`
		To      string `json:"to"`
	}
	if !decode(w, r, &request) {
		return
	}
	if request.Backend == "" {
		adminError(w, http.StatusBadRequest, fmt.Errorf("backend: %w", errEmpty))
		return
	}
	body.MapBackend(request.Backend, request.To)
	showTraffic(w, r, body)
}

func chooseLoopback(w http.ResponseWriter, r *http.Request, body *traffic.Body) {
	var request struct {
		Address  string     `json:"address"`
		Loopback netip.Addr `json:"loopback"`
	}
	if !decode(w, r, &request) {
		return
	}
	if request.Address == "" {
		adminError(w, http.StatusBadRequest, fmt.Errorf("address: %w", errEmpty))
		return
	}
	if err := body.SetLoopback(request.Address, request.Loopback); err != nil {
		adminError(w, http.StatusBadRequest, err)
		return
	}
	showTraffic(w, r, body)
}

// backendHealth makes the health of a backend what a test wants; without a status its checks decide again.
func (a *admin) backendHealth(w http.ResponseWriter, r *http.Request) {
	var request struct {
		Balancer   string              `json:"balancer"`
		BackendSet string              `json:"backendSet"`
		Backend    string              `json:"backend"`
		Status     ocisim.HealthStatus `json:"status"`
	}
	if !decode(w, r, &request) {
		return
	}
	err := a.server.region.SetBackendHealth(request.Balancer, request.BackendSet, request.Backend, request.Status)
	switch {
	case errors.Is(err, ocisim.ErrUnknownResource):
		adminError(w, http.StatusNotFound, err)
	case err != nil:
		adminError(w, http.StatusBadRequest, err)
	default:
		w.WriteHeader(http.StatusNoContent)
	}
}
