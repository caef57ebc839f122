// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package ocisim

import (
	"sort"
	"time"
)

// facets are what the engine needs to know of a resource: how to find, list, filter and show it.
type facets struct {
	id          string
	compartment string
	name        string // display name
	state       string // lifecycle state
	domain      string // availability domain
	keys        []string
}

// resource is one object of the region. Its value is never changed in place: an update stores a changed copy, so a
// value that was handed out stays what it was.
type resource struct {
	facets

	kind  *kindInfo
	value any // pointer to the model
	etag  string
	seq   uint64 // order of creation, and the cursor of pages
	veil  *veil  // what still hides a new resource from some readers; nil for none
	gone  bool   // removed from the store
	json  []byte // rendered value, nil when stale
}

// veil hides a new resource from the first reads of every principal: that one caller has seen a resource says nothing
// about what the next one sees.
type veil struct {
	until  time.Time      // after that everybody sees it
	reads  int            // that miss the resource
	missed map[reader]int // so far
}

// reader is who reads. Gets and lists are told apart only where Behaviour.ListsLagByThemselves is set.
type reader struct {
	principal string
	list      bool
}

// reader is the caller as it reads by get or by list.
func (c *call) reader(list bool) reader {
	return reader{principal: c.principal.ID, list: list && c.behaviour.ListsLagByThemselves}
}

// hide lets the first reads miss a new resource (Options.EventualReads).
func (cl *cloud) hide(res *resource) {
	if n := cl.options.EventualReads; n > 0 {
		res.veil = &veil{until: cl.now.Add(cl.behaviour.EventualFor), reads: n, missed: map[reader]int{}}
	}
}

// miss counts a read of a resource that is new, and says whether this read still misses it.
func (c *call) miss(res *resource, list bool) bool {
	r := c.reader(list)
	if !c.veiled(res, r) {
		return false
	}
	res.veil.missed[r]++
	return true
}

func (cl *cloud) veiled(res *resource, r reader) bool {
	return res.veil != nil && cl.now.Before(res.veil.until) && res.veil.missed[r] < res.veil.reads
}

// store holds the resources by identifier, and by kind and key for lists. Keys are the compartment and whatever else
// a kind is looked up by: a parent's OCID, an address. The key "" holds all of a kind.
type store struct {
	byID  map[string]*resource
	lists map[listKey]*resourceList
	seq   uint64
}

type listKey struct {
	kind *kindInfo
	key  string
}

// resourceList is ordered by creation.
type resourceList struct {
	items []*resource
}

func newStore() store {
	return store{byID: map[string]*resource{}, lists: map[listKey]*resourceList{}}
}

func (s *store) add(res *resource) {
	s.seq++
	res.seq = s.seq
	s.byID[res.id] = res
	s.index(res)
}

func (s *store) remove(res *resource) {
	res.gone = true
	s.unindex(res)
	delete(s.byID, res.id)
}

func (s *store) index(res *resource) {
	for key := range res.allKeys {
		k := listKey{res.kind, key}
		list := s.lists[k]
		if list == nil {
			list = &resourceList{}
			s.lists[k] = list
		}
		list.insert(res)
	}
}

func (s *store) unindex(res *resource) {
	for key := range res.allKeys {
		k := listKey{res.kind, key}
		list := s.lists[k]
		if list == nil {
			continue
		}
		list.delete(res)
		if len(list.items) == 0 {
			delete(s.lists, k)
		}
	}
}

// under returns the resources of a kind that are listed under a key, in order of creation. The slice must not be
// kept over a change of the store.
func (s *store) under(kind *kindInfo, key string) []*resource {
	list := s.lists[listKey{kind, key}]
	if list == nil {
		return nil
	}
	return list.items
}

// allKeys yields every key once: all of the kind, its compartment, its own keys.
func (res *resource) allKeys(yield func(string) bool) {
	if !yield("") {
		return
	}
	if res.compartment != "" && !yield(res.compartment) {
		return
	}
	for i, key := range res.keys {
		if key == "" || key == res.compartment || contains(res.keys[:i], key) {
			continue
		}
		if !yield(key) {
			return
		}
	}
}

func contains(list []string, s string) bool {
	for _, e := range list {
		if e == s {
			return true
		}
	}
	return false
}

func (l *resourceList) search(seq uint64) int {
	return sort.Search(len(l.items), func(i int) bool { return l.items[i].seq >= seq })
}

func (l *resourceList) insert(res *resource) {
	i := len(l.items)
	if i > 0 && l.items[i-1].seq > res.seq {
		i = l.search(res.seq)
	}
	l.items = append(l.items, nil)
	copy(l.items[i+1:], l.items[i:])
	l.items[i] = res
}

func (l *resourceList) delete(res *resource) {
	i := l.search(res.seq)
	if i == len(l.items) || l.items[i] != res {
		return
	}
	copy(l.items[i:], l.items[i+1:])
	l.items[len(l.items)-1] = nil
	l.items = l.items[:len(l.items)-1]
}
