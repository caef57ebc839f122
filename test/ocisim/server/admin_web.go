// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"maps"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/oracle/oci-cloud-controller-manager/test/ocisim"
	"github.com/oracle/oci-cloud-controller-manager/test/ocisim/traffic"
)

const (
	// lookEvery is how often a waiting reader of /updates looks for state changes, which nobody announces.
	lookEvery = time.Second
	// callPause is the least time from a call to the news of it: a busy region is not summed up for every call.
	callPause = 200 * time.Millisecond
	// maxObjects bounds a page of /objects.
	maxObjects = 1000
)

// Updates is the answer of GET /updates: all that a page needs to know to tell which of its parts are out of date.
type Updates struct {
	Tag     string                 `json:"tag"` // for since, to wait for the next change
	Assets  string                 `json:"assets"`
	Region  RegionInfo             `json:"region"`
	Now     time.Time              `json:"now"`     // of the region's clock
	Ahead   ocisim.Duration        `json:"ahead"`   // of the computer's clock
	Calls   int                    `json:"calls"`   // since the start or the last reset
	LastSeq uint64                 `json:"lastSeq"` // number of the newest call of the log, 0 when it is empty
	Edge    int                    `json:"edge"`    // calls that never reach the region
	Kinds   []ocisim.KindSummary   `json:"kinds"`
	Faults  []FaultInForce         `json:"faults"`
	Denials []entry[ocisim.Policy] `json:"denials"`
	Acts    []entry[*act]          `json:"acts"` // of somebody else, that wait for their call or had it
	Holds   []StopStatus           `json:"holds"`
}

// RegionInfo says which region it is.
type RegionInfo struct {
	Name    string `json:"name"`
	Realm   string `json:"realm"`
	Tenancy string `json:"tenancy"`
}

// FaultInForce is a fault with what it did so far.
type FaultInForce struct {
	ID     string       `json:"id,omitempty"` // empty when it was made in process: only its maker can remove it
	Value  ocisim.Fault `json:"value"`
	Seen   int          `json:"seen"`
	Struck int          `json:"struck"`
}

// registerWeb adds the requests that the page needs besides those that a person makes with curl.
func (a *admin) registerWeb(mux *http.ServeMux) {
	mux.HandleFunc("GET /updates", a.updates)
	mux.HandleFunc("GET /kinds", func(w http.ResponseWriter, _ *http.Request) { writeJSON(w, http.StatusOK, a.server.region.Kinds()) })
	mux.HandleFunc("GET /objects", a.objects)
	mux.HandleFunc("GET /operations", a.operations)
	mux.HandleFunc("GET /calls/recent", a.recentCalls)
	mux.HandleFunc("GET /edge/recent", a.recentEdge)
}

// updates answers GET /updates: at once, or as soon as something differs from what the tag in since stands for.
func (a *admin) updates(w http.ResponseWriter, r *http.Request) {
	wait, err := parseWait(r.URL.Query())
	if err != nil {
		adminError(w, http.StatusBadRequest, err)
		return
	}
	ctx, since := r.Context(), r.URL.Query().Get("since")
	deadline := time.NewTimer(wait)
	defer deadline.Stop()
	for {
		called := a.changes.wait()
		u := a.summary()
		if wait == 0 || u.Tag != since {
			writeJSON(w, http.StatusOK, u)
			return
		}
		select {
		case <-called:
			if !pause(ctx.Done(), callPause) {
				return
			}
		case <-time.After(lookEvery):
		case <-deadline.C:
			writeJSON(w, http.StatusOK, a.summary())
			return
		case <-ctx.Done():
			return
		}
	}
}

// pause waits; false says that done was closed before the time was over.
func pause(done <-chan struct{}, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-done:
		return false
	}
}

func (a *admin) summary() Updates {
	region := a.server.region
	o := region.Options()
	u := Updates{
		Assets:  a.assets,
		Region:  RegionInfo{Name: o.Region, Realm: o.Realm, Tenancy: o.Tenancy},
		Ahead:   ocisim.Duration(time.Until(region.Now()).Round(time.Second)),
		Edge:    a.server.edge.count(),
		Kinds:   region.Kinds(),
		Faults:  a.faultsInForce(),
		Denials: a.denials.list(),
		Acts:    a.acts.list(),
		Holds:   []StopStatus{},
	}
	for _, n := range region.Counts() {
		u.Calls += n
	}
	if last := region.CallsBefore(0, 1); len(last) == 1 {
		u.LastSeq = last[0].Seq
	}
	for _, s := range a.server.hooks.list() {
		u.Holds = append(u.Holds, s.Status())
	}
	hash := fnv.New64a()
	_ = json.NewEncoder(hash).Encode(u) // a hash takes everything
	u.Tag = strconv.FormatUint(hash.Sum64(), 36)
	u.Now = region.Now()
	return u
}

// faultsInForce finds the faults of the ledger among all of the region's. Both are in order of creation, so equal ones
// may be taken for one another.
func (a *admin) faultsInForce() []FaultInForce {
	ids := map[string][]string{}
	for _, e := range a.faults.list() {
		key := faultKey(e.Value)
		ids[key] = append(ids[key], e.ID)
	}
	list := []FaultInForce{}
	for _, f := range a.server.region.ArmedFaults() {
		if f.Act {
			continue // Updates has them
		}
		shown := FaultInForce{Value: f.Fault, Seen: f.Seen, Struck: f.Struck}
		if key := faultKey(f.Fault); f.Match == nil && len(ids[key]) > 0 {
			shown.ID, ids[key] = ids[key][0], ids[key][1:]
		}
		list = append(list, shown)
	}
	return list
}

// faultKey is equal for faults with equal fields.
func faultKey(f ocisim.Fault) string {
	f.Match = nil
	return fmt.Sprintf("%#v", f)
}

// object is a resource with what the server knows of it besides its own fields.
type object struct {
	ocisim.Object

	Extra json.RawMessage `json:"extra"`
}

// objects answers GET /objects.
func (a *admin) objects(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	skip, limit, err := parseWindow(q)
	if err != nil {
		adminError(w, http.StatusBadRequest, err)
		return
	}
	page := a.server.region.Objects(ocisim.ObjectQuery{
		Kinds: q["kind"], Under: q.Get("under"), IDs: q["id"], State: q.Get("state"), Text: q.Get("text"),
		Skip: skip, Limit: limit,
	})
	answer := struct {
		ocisim.ObjectPage

		Objects []object `json:"objects"`
	}{ObjectPage: page, Objects: []object{}}
	var mentioned []string
	for _, o := range page.Objects {
		extra, err := json.Marshal(a.extra(o))
		if err != nil {
			adminError(w, http.StatusInternalServerError, fmt.Errorf("encode what belongs to %s: %w", o.ID, err))
			return
		}
		mentioned = append(mentioned, ocisim.Mentioned(extra)...)
		answer.Objects = append(answer.Objects, object{Object: o, Extra: extra})
	}
	maps.Copy(page.Mentioned, a.server.region.Mentions(mentioned))
	writeJSON(w, http.StatusOK, answer)
}

// extra is what belongs to a resource in the eyes of a person, but stands elsewhere.
func (a *admin) extra(o ocisim.Object) any {
	switch o.Kind {
	case "instance":
		return map[string]any{"vnics": a.server.region.InstanceVNICs(o.ID)}
	case "load balancer", "network load balancer":
		return a.balancerExtra(o.ID)
	case "network security group":
		return map[string]int{"rules": len(a.server.region.GroupRules(o.ID))}
	}
	return nil
}

// balancerExtra is the health of a balancer, and where its listeners really listen.
func (a *admin) balancerExtra(id string) any {
	var extra struct {
		Health  *ocisim.BalancerHealth `json:"health,omitempty"`
		Listens map[string]string      `json:"listens,omitempty"` // by listener: a socket, or why there is none
	}
	if health, ok := a.server.region.BalancerHealth(id); ok {
		extra.Health = &health
	}
	if body, ok := a.server.region.Options().Balancers.(*traffic.Body); ok {
		extra.Listens = map[string]string{}
		for _, l := range body.Listeners() {
			if l.Balancer == id {
				extra.Listens[l.Listener] = l.Listen + l.Problem
			}
		}
	}
	return extra
}

var errWindow = errors.New("want a number that is not negative")

func parseWindow(q url.Values) (skip, limit int, err error) {
	if skip, err = parseCount(q, "skip", 0); err != nil {
		return 0, 0, err
	}
	if limit, err = parseCount(q, "limit", 100); err != nil {
		return 0, 0, err
	}
	return skip, min(max(limit, 1), maxObjects), nil
}

// parseCount reads a number; a missing one is the fallback.
func parseCount(q url.Values, name string, fallback int) (int, error) {
	text := q.Get(name)
	if text == "" {
		return fallback, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 {
		return 0, fmt.Errorf("%s: %w, not %q", name, errWindow, text)
	}
	return n, nil
}

// operation is what a person has to know of an operation in order to let it fail.
type operation struct {
	Service  string      `json:"service"`
	Name     string      `json:"name"`
	Verb     ocisim.Verb `json:"verb"`
	Resource string      `json:"resource"` // resource type in policies
}

func (a *admin) operations(w http.ResponseWriter, _ *http.Request) {
	list := []operation{}
	for _, o := range a.server.region.Operations() {
		list = append(list, operation{Service: o.Service, Name: o.Name, Verb: o.Verb, Resource: o.ResourceType()})
	}
	writeJSON(w, http.StatusOK, list)
}
