// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package ocisim

import (
	"bytes"
	"iter"
	"reflect"
)

// kindInfo describes a kind of resource to the engine.
type kindInfo struct {
	ocidType string // second part of its OCIDs
	label    string // in messages: "security list"
	policy   string // resource type in policies: "security-lists"
	eventual bool   // new ones are missing from the first reads when Options.EventualReads is set
	keep     []string
	// render makes the answer of a stored value whose type is not the API's own; nil for SDK models.
	render func(value any) any
	// facetsOf is describe for a value whose type is not known to the caller.
	facetsOf func(value any) facets
}

// kind is a kindInfo with the type of its values: a model of the SDK, or a type of the simulator with a render
// function. Kinds are constants in all but name; nothing changes them.
type kind[T any] struct {
	*kindInfo

	describe func(*T) facets
}

// newKind describes a kind. keep in info names optional JSON fields that are never dropped from answers, because
// the services always fill them.
func newKind[T any](info kindInfo, describe func(*T) facets) kind[T] {
	k := kind[T]{kindInfo: &info, describe: describe}
	info.facetsOf = func(v any) facets {
		typed, ok := v.(*T)
		if !ok {
			panic("ocisim: not a " + info.label)
		}
		return describe(typed)
	}
	return k
}

// insert stores a new value. The value's identifier must be set and new.
func (k kind[T]) insert(cl *cloud, v *T) *resource {
	res := &resource{kind: k.kindInfo, value: v, facets: k.describe(v)}
	res.etag = cl.newETag("")
	cl.store.add(res)
	cl.watched(res, facets{})
	return res
}

// lookup returns the resource with this identifier, if it is of this kind.
func (k kind[T]) lookup(cl *cloud, id string) *resource {
	res := cl.store.byID[id]
	if res == nil || res.kind != k.kindInfo {
		return nil
	}
	return res
}

// find returns the value with this identifier, or nil. The value must not be changed.
func (k kind[T]) find(cl *cloud, id string) *T {
	if res := k.lookup(cl, id); res != nil {
		return k.of(res)
	}
	return nil
}

// of returns the value of a resource of this kind. The value must not be changed.
func (k kind[T]) of(res *resource) *T {
	v, ok := res.value.(*T)
	if !ok {
		panic("ocisim: resource " + res.id + " is not a " + k.label)
	}
	return v
}

// update changes a copy of the value and stores it. The etag changes exactly when the value does. It returns
// whether that happened; an unknown identifier changes nothing.
func (k kind[T]) update(cl *cloud, id string, change func(*T)) bool {
	res := k.lookup(cl, id)
	if res == nil {
		return false
	}
	old := k.of(res)
	changed := cloneOf(old)
	change(changed)
	return cl.replace(res, changed)
}

// replace stores another value for a resource; false if nobody can see a difference. The etag changes exactly when
// the representation does.
func (cl *cloud) replace(res *resource, v any) bool {
	if reflect.DeepEqual(res.value, v) {
		return false
	}
	shown := cl.representation(res)
	next, before := res.kind.facetsOf(v), res.facets
	if !sameKeys(res.facets, next) {
		cl.store.unindex(res)
		res.facets = next
		cl.store.index(res)
	}
	res.facets = next
	res.value = v
	res.json = nil
	changed := !bytes.Equal(shown, cl.representation(res))
	if changed {
		res.etag = cl.newETag(res.etag)
	}
	cl.watched(res, before)
	return changed
}

// remove takes the resource out of the region: from now on it was never there.
func (k kind[T]) remove(cl *cloud, id string) {
	if res := k.lookup(cl, id); res != nil {
		cl.discard(res)
	}
}

func (cl *cloud) discard(res *resource) {
	cl.store.remove(res)
	cl.watched(res, res.facets)
}

func (cl *cloud) watched(res *resource, before facets) {
	if cl.watch != nil {
		cl.watch(res, before)
	}
}

// under yields the values that are listed under a key, in order of creation; "" means all. The store may be changed
// while iterating.
func (k kind[T]) under(cl *cloud, key string) iter.Seq[*T] {
	items := append([]*resource(nil), cl.store.under(k.kindInfo, key)...)
	return func(yield func(*T) bool) {
		for _, res := range items {
			if !res.gone && !yield(k.of(res)) {
				return
			}
		}
	}
}

// all copies the values under a key, for inspection from outside.
func (k kind[T]) all(cl *cloud, key string) []T {
	items := cl.store.under(k.kindInfo, key)
	values := make([]T, 0, len(items))
	for _, res := range items {
		values = append(values, *cloneOf(k.of(res)))
	}
	return values
}

func sameKeys(a, b facets) bool {
	if a.compartment != b.compartment || len(a.keys) != len(b.keys) {
		return false
	}
	for i := range a.keys {
		if a.keys[i] != b.keys[i] {
			return false
		}
	}
	return true
}
