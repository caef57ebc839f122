// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"

	"github.com/oracle/oci-cloud-controller-manager/test/ocisim"
)

// maxAdminBody bounds the body of an admin request, in bytes; a seed of 5,000 instances has about 1 MB.
const maxAdminBody = 64 << 20

// adminIndex is the answer to GET /.
const adminIndex = `ocisim admin API

GET    /                         this list; for a browser a page that shows and does all this
GET    /state                    everything in the region, as JSON
GET    /kinds                    how many resources there are, by kind and state
GET    /objects                  resources, with a limit: kind= under=OCID id= state= text= skip= limit=
GET    /operations               operations and the permissions that they need
POST   /seed                     add a world (YAML or JSON)
POST   /reset                    empty the region: resources, faults, denials, grants, call log
POST   /foreign                  act as Terraform: {"id": OCID, "set": {merge patch}} or {"id": OCID, "delete": true}; now, or
                                 at a call of a client: "after" or "before": {"operation": ..., "nth": 2, "principal": OCID}
GET    /foreign                  acts that wait for their call, and what became of them
DELETE /foreign, /foreign/ID
GET    /calls                    call log; since=SEQ wait=10s operation= principal= service= status= writes=true limit=
                                 follow=true streams one JSON object a line
GET    /calls/recent             newest first, for people; operation= principal= text= status=429|4xx|errors|dropped writes=true
                                 faults=true before=SEQ since=SEQ limit=
GET    /updates                  what a page must know to be up to date; since=TAG wait=25s
GET    /counters                 calls by service.Operation
GET    /metrics                  what programs posted to Monitoring
POST   /reset-counters           empty the call log and its counters
GET    /edge, /edge/recent       calls that never reach the region: metadata, tokens, proxy; the newest first with limit=
GET    /faults                   faults made here
POST   /faults                   {"operation": "GetInstance", "status": 500, "nth": 2, ...}; durations as "5s"
DELETE /faults, /faults/ID
GET    /denials                  permissions taken away here
POST   /denials                  {"principal": OCID, "verb": "read", "resourceType": "instances", ...}
DELETE /denials, /denials/ID
GET    /grants                   principals that are limited to policy statements
POST   /grants                   {"principal": OCID, "statements": ["Allow group g to read instance-family in compartment OCID"]}
DELETE /grants, /grants/ID
GET    /options                  pages, eventual consistency, dropped fields, and what never changes
PATCH  /options                  {"pageSize": 20, "shortPages": 0.2, "eventualReads": 2, "dropOptional": 0.25}; YAML too
GET    /durations                how long each state change takes
PATCH  /durations                {"loadbalancer.create": "1s-2s", "volume.*": "0s"}; null is the default again
GET    /latency                  delays of answers
PATCH  /latency                  {"compute.GetInstance": "100ms-300ms", "identity.*": "1s", "*": "10ms"}; null ends one
GET    /rates                    budgets of each principal
PATCH  /rates                    {"read": {"perSecond": 20, "burst": 40}, "services": {"compute.write": {"perSecond": 1}}, "retryAfter": "2s"}
GET    /behaviour                what Oracle does not document: values and rulings, each with its reason
PATCH  /behaviour                {"values": {"vnicLinger": "1s-5s"}, "rulings": {SITUATION: {"allow": true}}}; YAML too
POST   /backend-health           {"balancer": OCID, "backendSet": "TCP-80", "backend": "10.0.0.3:30080", "status": "CRITICAL"}; "" ends it
GET    /traffic                  where balancers listen, with serve --traffic
POST   /traffic/backends         {"backend": "10.0.10.0/24", "to": "127.0.0.1"}: what backends lead to; an address, with or without port, too
POST   /traffic/addresses        {"address": "198.18.0.2", "loopback": "127.70.0.1"}: where a balancer listens
GET    /clock                    the region's time
POST   /clock/advance            {"by": "10m"}
POST   /hooks/stop-after         {"n": 3, "operations": ["CreateListener"], "writes": true, "freeze": true}: hold the answer of
                                 the n-th matching call after it was applied
GET    /hooks, /hooks/ID         state of holds; wait=30s waits until the call is held
DELETE /hooks/ID                 let the call be answered; discard=true drops calls that had to wait behind it
GET    /env                      environment for a program; user= instance= noProxy=
GET    /users                    users with their keys and config files
POST   /users                    {"name": "alice"}
POST   /metadata/fault           {"status": 404, "calls": 5, "for": "20s", "delay": "1s"}; {} ends it
POST   /tokens/expire            end every security token now
`

// admin is the admin API. Faults, denials and grants that were made in process do not show here.
type admin struct {
	server  *Server
	faults  *ledger[ocisim.Fault]
	denials *ledger[ocisim.Policy]
	grants  *ledger[ocisim.Grant]
	acts    *ledger[*act]
	changes *broadcast
	assets  string // version of the page
}

func (s *Server) adminHandler() http.Handler {
	a := &admin{
		server: s, faults: newLedger[ocisim.Fault](), denials: newLedger[ocisim.Policy](), grants: newLedger[ocisim.Grant](),
		acts: newLedger[*act](), changes: s.changes, assets: assetsVersion(),
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", index)
	mux.HandleFunc("GET /ui/{name...}", asset)
	a.registerWeb(mux)
	mux.HandleFunc("GET /state", a.state)
	mux.HandleFunc("POST /seed", a.seed)
	mux.HandleFunc("POST /reset", a.reset)
	mux.HandleFunc("POST /foreign", a.foreign)
	mux.HandleFunc("GET /foreign", func(w http.ResponseWriter, _ *http.Request) { writeJSON(w, http.StatusOK, a.acts.list()) })
	mux.HandleFunc("DELETE /foreign", a.acts.clear)
	mux.HandleFunc("DELETE /foreign/{id}", a.acts.remove)
	mux.HandleFunc("GET /calls", a.calls)
	mux.HandleFunc("GET /counters", a.counters)
	mux.HandleFunc("GET /metrics", func(w http.ResponseWriter, _ *http.Request) { writeJSON(w, http.StatusOK, s.Region().Metrics()) })
	mux.HandleFunc("POST /reset-counters", a.resetCounters)
	mux.HandleFunc("GET /edge", func(w http.ResponseWriter, _ *http.Request) { writeJSON(w, http.StatusOK, s.EdgeCalls()) })
	mux.HandleFunc("GET /faults", func(w http.ResponseWriter, _ *http.Request) { writeJSON(w, http.StatusOK, a.faults.list()) })
	mux.HandleFunc("POST /faults", a.addFault)
	mux.HandleFunc("DELETE /faults", a.faults.clear)
	mux.HandleFunc("DELETE /faults/{id}", a.faults.remove)
	mux.HandleFunc("GET /denials", func(w http.ResponseWriter, _ *http.Request) { writeJSON(w, http.StatusOK, a.denials.list()) })
	mux.HandleFunc("POST /denials", a.addDenial)
	mux.HandleFunc("DELETE /denials", a.denials.clear)
	mux.HandleFunc("DELETE /denials/{id}", a.denials.remove)
	mux.HandleFunc("GET /grants", func(w http.ResponseWriter, _ *http.Request) { writeJSON(w, http.StatusOK, a.grants.list()) })
	mux.HandleFunc("POST /grants", a.addGrant)
	mux.HandleFunc("DELETE /grants", a.grants.clear)
	mux.HandleFunc("DELETE /grants/{id}", a.grants.remove)
	a.handleOptions(mux)
	a.handleTraffic(mux)
	mux.HandleFunc("GET /clock", a.clock)
	mux.HandleFunc("POST /clock/advance", a.advance)
	mux.HandleFunc("POST /hooks/stop-after", a.stopAfter)
	mux.HandleFunc("GET /hooks", a.listStops)
	mux.HandleFunc("GET /hooks/{id}", a.getStop)
	mux.HandleFunc("DELETE /hooks/{id}", a.endStop)
	mux.HandleFunc("GET /env", a.env)
	mux.HandleFunc("GET /users", func(w http.ResponseWriter, _ *http.Request) { writeJSON(w, http.StatusOK, s.Users()) })
	mux.HandleFunc("POST /users", a.addUser)
	mux.HandleFunc("POST /metadata/fault", a.metadataFault)
	mux.HandleFunc("POST /tokens/expire", func(w http.ResponseWriter, _ *http.Request) {
		writeJSON(w, http.StatusOK, map[string]int{"expired": s.ExpireTokens()})
	})
	return localOnly(sameSite(mux))
}

// localOnly refuses requests that a web page made by rebinding a name of its own to this address, and requests that a
// page of another origin sends.
func localOnly(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		host, _, err := net.SplitHostPort(r.Host)
		if err != nil {
			host = r.Host
		}
		origin := r.Header.Get("Origin")
		if !isLoopback(strings.Trim(host, "[]")) || (origin != "" && origin != "http://"+r.Host) {
			adminError(w, http.StatusForbidden, errors.New("the admin API only answers to its loopback address"))
			return
		}
		next.ServeHTTP(w, r)
	})
}

func adminError(w http.ResponseWriter, status int, err error) {
	writeJSON(w, status, map[string]string{"error": err.Error()})
}

// decode reads a JSON body strictly. An empty body is an empty object. It answers the error itself.
func decode(w http.ResponseWriter, r *http.Request, into any) bool {
	decoder := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxAdminBody))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(into); err != nil && !errors.Is(err, io.EOF) {
		adminError(w, http.StatusBadRequest, fmt.Errorf("read the request: %w", err))
		return false
	}
	return true
}

// ledger numbers things that can be taken back.
type ledger[T any] struct {
	mu     sync.Mutex
	lastID int
	order  []string
	items  map[string]entry[T]
}

type entry[T any] struct {
	ID    string `json:"id"`
	Value T      `json:"value"`
	undo  func()
}

func newLedger[T any]() *ledger[T] { return &ledger[T]{items: map[string]entry[T]{}} }

func (l *ledger[T]) add(value T, undo func()) entry[T] {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lastID++
	e := entry[T]{ID: fmt.Sprint(l.lastID), Value: value, undo: undo}
	l.items[e.ID] = e
	l.order = append(l.order, e.ID)
	return e
}

func (l *ledger[T]) list() []entry[T] {
	l.mu.Lock()
	defer l.mu.Unlock()
	entries := make([]entry[T], 0, len(l.items))
	for _, id := range l.order {
		if e, ok := l.items[id]; ok {
			entries = append(entries, e)
		}
	}
	return entries
}

func (l *ledger[T]) take(id string) (entry[T], bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	e, ok := l.items[id]
	delete(l.items, id)
	return e, ok
}

// remove answers DELETE of one.
func (l *ledger[T]) remove(w http.ResponseWriter, r *http.Request) {
	e, ok := l.take(r.PathValue("id"))
	if !ok {
		adminError(w, http.StatusNotFound, errors.New("no such id"))
		return
	}
	e.undo()
	w.WriteHeader(http.StatusNoContent)
}

// clear answers DELETE of all.
func (l *ledger[T]) clear(w http.ResponseWriter, _ *http.Request) {
	l.empty()
	w.WriteHeader(http.StatusNoContent)
}

func (l *ledger[T]) empty() {
	for _, e := range l.list() {
		if taken, ok := l.take(e.ID); ok {
			taken.undo()
		}
	}
}

// broadcast wakes everybody who waits for the next call.
type broadcast struct {
	mu   sync.Mutex
	next chan struct{}
}

func newBroadcast() *broadcast { return &broadcast{next: make(chan struct{})} }

// wait returns a channel that is closed at the next send.
func (b *broadcast) wait() <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.next
}

func (b *broadcast) send() {
	b.mu.Lock()
	defer b.mu.Unlock()
	close(b.next)
	b.next = make(chan struct{})
}
