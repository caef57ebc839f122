// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/oracle/oci-cloud-controller-manager/test/ocisim"
)

// ParseOptions reads a file of options over those given, YAML or JSON. A key that Options does not have is an error.
func ParseOptions(text []byte, over ocisim.Options) (ocisim.Options, error) {
	if err := yaml.UnmarshalStrict(text, &over); err != nil {
		return ocisim.Options{}, fmt.Errorf("parse the options: %w", err)
	}
	return over, nil
}

// ParseBehaviour reads a file of the behaviour table over a table, YAML or JSON.
func ParseBehaviour(text []byte, over *ocisim.Behaviour) error {
	if err := yaml.UnmarshalStrict(text, over); err != nil {
		return fmt.Errorf("parse the behaviour table: %w", err)
	}
	return nil
}

// Rates are the budgets as the admin API shows them.
type Rates struct {
	Read     ocisim.Rate             `json:"read"`
	Write    ocisim.Rate             `json:"write"`
	Services map[string]*ocisim.Rate `json:"services,omitempty"` // by "compute.read"; in a change, null takes one out
	// RetryAfter is sent with a 429 when it is not zero.
	RetryAfter ocisim.Duration `json:"retryAfter"`
}

// handleOptions adds the requests that change how the region behaves.
func (a *admin) handleOptions(mux *http.ServeMux) {
	region := a.server.region
	mux.HandleFunc("GET /options", a.options)
	mux.HandleFunc("PATCH /options", func(w http.ResponseWriter, r *http.Request) {
		a.configure(w, r, a.options, func(text []byte) (func(*ocisim.Options) error, error) {
			return func(o *ocisim.Options) error { return yaml.UnmarshalStrict(text, o) }, nil
		})
	})
	mux.HandleFunc("GET /durations", a.durations)
	mux.HandleFunc("PATCH /durations", func(w http.ResponseWriter, r *http.Request) {
		a.configure(w, r, a.durations, patchSpans(func(o *ocisim.Options) *map[string]ocisim.Range { return &o.Durations }))
	})
	mux.HandleFunc("GET /latency", a.latency)
	mux.HandleFunc("PATCH /latency", func(w http.ResponseWriter, r *http.Request) {
		a.configure(w, r, a.latency, patchSpans(func(o *ocisim.Options) *map[string]ocisim.Range { return &o.Latency }))
	})
	mux.HandleFunc("GET /rates", a.rates)
	mux.HandleFunc("PATCH /rates", func(w http.ResponseWriter, r *http.Request) { a.configure(w, r, a.rates, patchRates) })
	mux.HandleFunc("GET /behaviour", func(w http.ResponseWriter, _ *http.Request) {
		writeJSON(w, http.StatusOK, region.Behaviour())
	})
	mux.HandleFunc("PATCH /behaviour", a.patchBehaviour)
}

// options answers without the tables that have requests of their own.
func (a *admin) options(w http.ResponseWriter, _ *http.Request) {
	o := a.server.region.Options()
	o.Behaviour, o.Durations, o.Latency, o.Rates = nil, nil, nil, nil
	writeJSON(w, http.StatusOK, o)
}

func (a *admin) durations(w http.ResponseWriter, _ *http.Request) {
	writeJSON(w, http.StatusOK, a.server.region.Durations())
}

func (a *admin) latency(w http.ResponseWriter, _ *http.Request) {
	latency := a.server.region.Options().Latency
	if latency == nil {
		latency = map[string]ocisim.Range{}
	}
	writeJSON(w, http.StatusOK, latency)
}

func (a *admin) rates(w http.ResponseWriter, _ *http.Request) {
	o := a.server.region.Options()
	shown := Rates{Read: o.Read, Write: o.Write, RetryAfter: ocisim.Duration(o.RetryAfter), Services: map[string]*ocisim.Rate{}}
	for name, rate := range o.Rates {
		shown.Services[name] = &rate
	}
	writeJSON(w, http.StatusOK, shown)
}

// configure changes options by the body of a request and answers with what is in effect then.
func (a *admin) configure(
	w http.ResponseWriter, r *http.Request, show http.HandlerFunc, parse func([]byte) (func(*ocisim.Options) error, error),
) {
	text, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxAdminBody))
	if err != nil {
		adminError(w, http.StatusBadRequest, fmt.Errorf("read the request: %w", err))
		return
	}
	change, err := parse(text)
	if err == nil {
		err = a.server.region.Configure(change)
	}
	if err != nil {
		adminError(w, http.StatusBadRequest, err)
		return
	}
	show(w, r)
}

// patchSpans changes one of the maps of ranges; null takes an entry out.
func patchSpans(field func(*ocisim.Options) *map[string]ocisim.Range) func([]byte) (func(*ocisim.Options) error, error) {
	return func(text []byte) (func(*ocisim.Options) error, error) {
		var entries map[string]*ocisim.Range
		if err := yaml.UnmarshalStrict(text, &entries); err != nil {
			return nil, fmt.Errorf("read the request: %w", err)
		}
		return func(o *ocisim.Options) error { putAll(field(o), entries); return nil }, nil
	}
}

func patchRates(text []byte) (func(*ocisim.Options) error, error) {
	return func(o *ocisim.Options) error {
		rates := Rates{Read: o.Read, Write: o.Write, RetryAfter: ocisim.Duration(o.RetryAfter)}
		decoder := json.NewDecoder(bytes.NewReader(text))
		decoder.DisallowUnknownFields()
		if err := decoder.Decode(&rates); err != nil {
			return fmt.Errorf("read the request: %w", err)
		}
		o.Read, o.Write, o.RetryAfter = rates.Read, rates.Write, time.Duration(rates.RetryAfter)
		putAll(&o.Rates, rates.Services)
		return nil
	}, nil
}

// putAll changes the entries that are named; nil takes one out.
func putAll[T any](into *map[string]T, entries map[string]*T) {
	if *into == nil {
		*into = map[string]T{}
	}
	for name, v := range entries {
		if v == nil {
			delete(*into, name)
		} else {
			(*into)[name] = *v
		}
	}
}

func (a *admin) patchBehaviour(w http.ResponseWriter, r *http.Request) {
	text, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxAdminBody))
	if err == nil {
		text, err = yaml.YAMLToJSONStrict(text)
	}
	if err != nil {
		adminError(w, http.StatusBadRequest, fmt.Errorf("read the request: %w", err))
		return
	}
	if err := a.server.region.PatchBehaviour(text); err != nil {
		adminError(w, http.StatusBadRequest, err)
		return
	}
	writeJSON(w, http.StatusOK, a.server.region.Behaviour())
}
