// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package oracle

import (
	"maps"
	"slices"
	"strings"

	"github.com/oracle/oci-cloud-controller-manager/test/ocisim"
)

// foreignChanges compares what is not ours with the snapshot from before. A change is a finding when a call of ours may
// have made it, or, unless others act past the API, when no call explains it. What others changed through the API is
// their business.
func (j *judge) foreignChanges() {
	if j.before == nil {
		return
	}
	all := maps.Clone(j.before)
	maps.Copy(all, j.now)
	for _, o := range all.sorted() {
		if j.own(o).ours {
			continue
		}
		f := Finding{Kind: Foreign, Type: o.kind, Resource: o.id, Name: o.name(), State: o.state()}
		var happened string
		switch before, now := j.before[o.id], j.now[o.id]; {
		case before == nil:
			happened = "it was not there before"
		case now == nil:
			happened = "it is not there any more"
		default:
			happened = "it was changed"
			f.Changes = j.changes(before, now)
		}
		came := j.before[o.id] == nil || j.now[o.id] == nil
		if (!came && len(f.Changes) == 0) || (came && j.withItsWhole(o)) || j.expected(o, f.Changes) {
			continue
		}
		ours, others := j.causes(o)
		switch {
		case len(ours) > 0:
			f.What, f.Calls = happened+"; calls of ours that may have done it:", ours
		case len(others) > 0 || j.OthersAct:
			continue
		default:
			f.What = happened + ", by no call in the log: past the API, or by something that was done before the log begins"
		}
		j.report.add(f)
	}
}

// withItsWhole says whether an object came or went together with what it is a part of, which is reported.
func (j *judge) withItsWhole(o *object) bool {
	return slices.ContainsFunc(j.parents(o), func(id string) bool {
		parent := j.look(id)
		return parent != nil && !j.own(parent).ours &&
			(j.before[id] == nil) == (j.before[o.id] == nil) && (j.now[id] == nil) == (j.now[o.id] == nil)
	})
}

// changes lists the fields of a foreign object that are not what they were.
func (j *judge) changes(before, now *object) []Change {
	switch now.kind {
	case securityListKind:
		return j.listChanges(before, now)
	case securityGroupKind:
		return j.groupChanges(before, now)
	}
	changes := differences("", before.value, now.value)
	if len(changes) == 0 && before.etag != now.etag {
		// Somebody changed it and changed it back.
		return []Change{{Field: etagField, Before: before.etag, After: now.etag}}
	}
	if now.kind == "public IP" && j.ourAssignment(before) && j.ourAssignment(now) {
		changes = slices.DeleteFunc(changes, func(c Change) bool { return slices.Contains(assignmentFields, c.Field) })
	}
	return changes
}

// etagField stands in changes for the etag of an object whose fields are what they were.
const etagField = "(etag)"

// assignmentFields of a reserved public address say what it is assigned to.
var assignmentFields = []string{"assignedEntityId", "assignedEntityType", "privateIpId", "lifecycleState"}

// ourAssignment says whether a public address is free or assigned to something of ours: whoever gave it to us lets us
// assign it.
func (j *judge) ourAssignment(o *object) bool {
	id := o.text("assignedEntityId")
	if id == "" {
		return true
	}
	holder := j.look(id)
	return holder == nil || j.own(holder).ours
}

// expected says whether a difference was announced. No changes means that the object came or went. What is expected of
// a whole is expected of its parts.
func (j *judge) expected(o *object, changes []Change) bool {
	return slices.ContainsFunc(j.Expected, func(e Expectation) bool {
		switch {
		case e.Resource != "" && !j.partOf(o, e.Resource), e.Type != "" && e.Type != o.kind:
			return false
		case len(e.Fields) == 0:
			return true
		case len(changes) == 0:
			return false
		}
		return !slices.ContainsFunc(changes, func(c Change) bool { return !c.within(e.Fields) })
	})
}

// partOf says whether an object is the one with this identifier, or a part of it.
func (j *judge) partOf(o *object, id string) bool {
	if o.id == id {
		return true
	}
	return slices.ContainsFunc(j.parents(o), func(parent string) bool {
		whole := j.look(parent)
		return parent == id || whole != nil && j.partOf(whole, id)
	})
}

// within says whether the changed field is one of those or below it.
func (c *Change) within(fields []string) bool {
	return slices.ContainsFunc(fields, func(f string) bool { return c.Field == f || strings.HasPrefix(c.Field, f+".") })
}

// causes returns the calls that may have changed an object: those about it and about what it is a part of.
func (j *judge) causes(o *object) (ours, others []ocisim.Call) {
	seen := map[string]bool{}
	var visit func(id string)
	visit = func(id string) {
		if seen[id] {
			return
		}
		seen[id] = true
		for _, c := range j.writes[id] {
			if j.Us.made(c) {
				ours = append(ours, *c)
			} else {
				others = append(others, *c)
			}
		}
		for _, version := range []*object{j.before[id], j.now[id]} {
			if version == nil {
				continue
			}
			for _, parent := range j.parents(version) {
				visit(parent)
			}
		}
	}
	visit(o.id)
	bySeq := func(a, b ocisim.Call) int { return int(a.Seq) - int(b.Seq) }
	slices.SortFunc(ours, bySeq)
	slices.SortFunc(others, bySeq)
	return ours, others
}
