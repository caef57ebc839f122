// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package ocisim

import (
	"bytes"
	"cmp"
	"encoding/json"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// KindSummary counts the resources of one kind.
type KindSummary struct {
	Kind     string         `json:"kind"` // "load balancer"
	Count    int            `json:"count"`
	States   map[string]int `json:"states,omitempty"` // by lifecycle state, where the kind has one
	Revision string         `json:"revision"`         // another one whenever a resource came, went or changed
}

// Kinds sums up what the region holds, by kind in alphabetical order. Kinds without any resource are missing.
func (r *Region) Kinds() []KindSummary {
	cl := r.lock()
	defer r.mu.Unlock()
	list := []KindSummary{}
	for key, resources := range cl.store.lists {
		if key.key == "" {
			list = append(list, summarise(key.kind.label, resources.items))
		}
	}
	slices.SortFunc(list, func(a, b KindSummary) int { return cmp.Compare(a.Kind, b.Kind) })
	return list
}

// summarise counts and hashes (FNV-1a over the etags, which change with the values). 50,000 resources take about 2 ms.
func summarise(kind string, items []*resource) KindSummary {
	const offset, prime = 14695981039346656037, 1099511628211
	s := KindSummary{Kind: kind, Count: len(items)}
	hash := uint64(offset)
	for _, res := range items {
		for i := range len(res.etag) {
			hash = (hash ^ uint64(res.etag[i])) * prime
		}
		if res.state != "" {
			if s.States == nil {
				s.States = map[string]int{}
			}
			s.States[res.state]++
		}
	}
	s.Revision = strconv.FormatUint(hash, 36)
	return s
}

// Object is one resource of any kind.
type Object struct {
	Kind  string          `json:"kind"`
	ID    string          `json:"id"` // that of a security rule is "GROUP/RULE"
	Name  string          `json:"name,omitempty"`
	State string          `json:"state,omitempty"`
	ETag  string          `json:"etag"`
	Value json.RawMessage `json:"value"`
}

// ObjectQuery says which resources a reader wants. Empty conditions match everything.
type ObjectQuery struct {
	Kinds []string // labels of kinds, as in KindSummary
	Under string   // compartment, parent or whatever else the kind is listed under
	IDs   []string
	State string
	Text  string // stands anywhere in the resource; case does not matter
	Skip  int
	Limit int // 0 means all
}

// ObjectPage is a part of the resources that match.
type ObjectPage struct {
	Objects []Object `json:"objects"`
	Matched int      `json:"matched"` // on all pages
	// Mentioned names the resources whose OCIDs stand in the values of this page.
	Mentioned map[string]Mention `json:"mentioned"`
}

// Mention is what a person needs to know of a resource that another one refers to.
type Mention struct {
	Kind string `json:"kind"`
	Name string `json:"name,omitempty"`
}

// Objects returns resources of any kinds in order of creation. The region stands still only while they are collected,
// not while their text is searched and written.
func (r *Region) Objects(q ObjectQuery) ObjectPage {
	page := ObjectPage{Objects: []Object{}}
	encoder, text := newEncoder(), bytes.ToLower([]byte(q.Text))
	for _, found := range r.collect(q) {
		var raw []byte
		if len(text) > 0 {
			raw = encoder.readable(found.value)
			whole := strings.ToLower(found.ID + " " + found.Name)
			if !strings.Contains(whole, string(text)) && !bytes.Contains(bytes.ToLower(raw), text) {
				continue
			}
		}
		page.Matched++
		if page.Matched <= q.Skip || q.Limit > 0 && len(page.Objects) >= q.Limit {
			continue
		}
		if raw == nil {
			raw = encoder.readable(found.value)
		}
		found.Value = raw
		page.Objects = append(page.Objects, found.Object)
	}
	var ids []string
	for _, o := range page.Objects {
		ids = append(ids, Mentioned(o.Value)...)
	}
	page.Mentioned = r.Mentions(ids)
	return page
}

// collected is an Object that is not written yet. Stored values never change, so this needs no lock.
type collected struct {
	Object

	value any
}

func (r *Region) collect(q ObjectQuery) []collected {
	cl := r.lock()
	defer r.mu.Unlock()
	var list []collected
	take := func(res *resource) {
		if q.State != "" && res.state != q.State {
			return
		}
		list = append(list, collected{
			Object: Object{Kind: res.kind.label, ID: res.id, Name: res.name, State: res.state, ETag: res.etag},
			value:  res.rendered(),
		})
	}
	if len(q.IDs) > 0 {
		for _, id := range q.IDs {
			if res := cl.store.byID[id]; res != nil && (len(q.Kinds) == 0 || slices.Contains(q.Kinds, res.kind.label)) {
				take(res)
			}
		}
		return list
	}
	var resources []*resource
	for key, found := range cl.store.lists {
		if key.key == q.Under && (len(q.Kinds) == 0 || slices.Contains(q.Kinds, key.kind.label)) {
			resources = append(resources, found.items...)
		}
	}
	slices.SortFunc(resources, func(a, b *resource) int { return cmp.Compare(a.seq, b.seq) })
	for _, res := range resources {
		take(res)
	}
	return list
}

// readable writes a value for people: work requests have no form that all services share.
func (e *encoder) readable(v any) []byte {
	work, ok := v.(*workRequest)
	if !ok {
		return e.encode(v)
	}
	shown := WorkRequest{
		ID: work.id, Service: work.service, Operation: work.operation, Resource: work.target, Status: work.state,
		PercentComplete: work.percent, TimeAccepted: work.accepted, TimeStarted: work.started, TimeFinished: work.finished,
	}
	for _, p := range work.problems {
		shown.Errors = append(shown.Errors, p.code+": "+p.message)
	}
	raw, err := json.Marshal(shown)
	if err != nil {
		panic("ocisim: " + err.Error()) // it consists of texts, numbers and times
	}
	return raw
}

// WorkRequest is a work request of any service.
type WorkRequest struct {
	ID              string    `json:"id"`
	Service         string    `json:"service"`
	Operation       string    `json:"operation"`
	Resource        string    `json:"resource"` // OCID of what it works on
	Status          string    `json:"status"`
	PercentComplete float32   `json:"percentComplete"`
	TimeAccepted    time.Time `json:"timeAccepted,omitzero"`
	TimeStarted     time.Time `json:"timeStarted,omitzero"`
	TimeFinished    time.Time `json:"timeFinished,omitzero"`
	Errors          []string  `json:"errors,omitempty"`
}

var ocidPattern = regexp.MustCompile(`ocid1\.[a-z0-9]+\.[A-Za-z0-9._-]+`)

// Mentioned returns the OCIDs that stand in a text.
func Mentioned(text []byte) []string { return ocidPattern.FindAllString(string(text), -1) }

// Mentions looks identifiers up; unknown ones are missing.
func (r *Region) Mentions(ids []string) map[string]Mention {
	cl := r.lock()
	defer r.mu.Unlock()
	found := map[string]Mention{}
	for _, id := range ids {
		if res := cl.store.byID[id]; res != nil {
			found[id] = Mention{Kind: res.kind.label, Name: res.name}
		}
	}
	return found
}

// ResourceType is the resource type by which policies know what the operation is about.
func (o *Operation) ResourceType() string {
	if o.Resource == "" && o.Target != nil {
		return o.Target.policy
	}
	return o.Resource
}

// ArmedFault is a fault in force with what it did so far.
type ArmedFault struct {
	Fault

	Seen   int  // calls that it matched
	Struck int  // calls that it struck
	Act    bool // somebody else acts at these calls: see Foreign.Before and Foreign.After
}

// ArmedFaults lists the faults in force in the order in which they were armed.
func (r *Region) ArmedFaults() []ArmedFault {
	cl := r.lock()
	defer r.mu.Unlock()
	list := make([]ArmedFault, 0, len(cl.faults))
	for _, f := range cl.faults {
		list = append(list, ArmedFault{Fault: f.Fault, Seen: f.seen, Struck: f.struck, Act: f.act != nil})
	}
	return list
}

// CallsBefore returns at most limit calls of the log, the newest first, from the one before number seq; 0 means from
// the newest one. Unlike Calls it does not copy the whole log.
func (r *Region) CallsBefore(seq uint64, limit int) []Call {
	cl := r.lock()
	defer r.mu.Unlock()
	l := &cl.log
	oldest := l.seq - uint64(len(l.ring)) + 1
	if seq == 0 || seq > l.seq+1 {
		seq = l.seq + 1
	}
	var list []Call
	for s := seq - 1; s >= oldest && s > 0 && len(list) < limit; s-- {
		list = append(list, l.ring[(uint64(l.next)+s-oldest)%uint64(len(l.ring))])
	}
	return list
}
