// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package oracle

import (
	"fmt"
	"slices"
	"strings"

	"github.com/oracle/oci-cloud-controller-manager/test/ocisim"
)

// ownership is whose an object is.
type ownership struct {
	ours  bool
	owner string // by mark or name; empty where it has none of its own
	alive bool   // the owner lives, or that of what it is a part of
	why   string // what is wrong where it is ours and not alive
}

// look finds an object where it is or was.
func (j *judge) look(id string) *object {
	if o := j.now[id]; o != nil {
		return o
	}
	return j.before[id]
}

// own decides whose an object is. Parts follow what they are a part of.
func (j *judge) own(o *object) ownership {
	if known, ok := j.known[o.id]; ok {
		return known
	}
	j.known[o.id] = ownership{} // nothing is a part of itself
	w := j.decide(o)
	j.known[o.id] = w
	return w
}

func (j *judge) decide(o *object) ownership {
	if j.owners[o.id] {
		return ownership{ours: j.marked(o) || j.createdByUs(o.id) != nil, alive: true}
	}
	if o.tag(TagCluster) != "" || o.owner() != "" {
		return j.byMark(o)
	}
	if w, ok := j.byName(o); ok {
		return w
	}
	if w, ok := j.asPart(o); ok {
		return w
	}
	if c := j.createdByUs(o.id); c != nil {
		return ownership{ours: true, why: "we made it, and it carries no mark of an owner"}
	}
	if slices.Contains(j.Us.Types, o.kind) {
		return ownership{ours: true, why: "it carries no mark of an owner"}
	}
	return ownership{}
}

// marked says whether the object carries our mark.
func (j *judge) marked(o *object) bool {
	cluster := o.tag(TagCluster)
	if cluster == "" {
		return o.owner() != ""
	}
	return j.Us.Cluster == "" || cluster == j.Us.Cluster
}

func (j *judge) byMark(o *object) ownership {
	if !j.marked(o) {
		return ownership{} // another cluster's
	}
	owner := o.owner()
	switch {
	case owner == "":
		return ownership{ours: true, why: "it carries the mark of our cluster, and none of an owner"}
	case j.owners[owner]:
		return ownership{ours: true, owner: owner, alive: true}
	default:
		return ownership{ours: true, owner: owner, why: fmt.Sprintf("its owner %s does not exist any more", owner)}
	}
}

// byName knows objects from before there were marks.
func (j *judge) byName(o *object) (ownership, bool) {
	name := o.text("displayName")
	if o.kind == groupRuleKind {
		name = o.text("description")
	}
	if name == "" || strings.HasPrefix(name, serviceVNIC) {
		return ownership{}, false
	}
	for owner := range j.owners {
		if hasOwner(name, owner) {
			return ownership{ours: true, owner: owner, alive: true}, true
		}
	}
	if w, ok := j.byFormer(o, name); ok {
		return w, true
	}
	for _, expression := range j.Us.Names {
		found := expression.FindStringSubmatch(name)
		switch {
		case found == nil:
		case len(found) > 1:
			return ownership{
				ours: true, owner: found[1], why: fmt.Sprintf("its owner %s, by its name, does not exist any more", found[1]),
			}, true
		default:
			return ownership{ours: true, why: "it has a name of ours, which names no living owner"}, true
		}
	}
	return ownership{}, false
}

// byFormer knows objects that have an owner in their name that does not live any more, and rules of ours whose description
// names one. A rule that was there before, and whose owner is not known, is another cluster's.
func (j *judge) byFormer(o *object, name string) (ownership, bool) {
	owner := ""
	for _, former := range j.Us.Former {
		if hasOwner(name, former) {
			owner = former
		}
	}
	if o.kind == groupRuleKind {
		id, _, _ := strings.Cut(o.id, "/")
		if group := j.look(id); group != nil && j.own(group).ours {
			return ownership{}, false // it goes with the group, which is ours as a whole
		}
		if named, ok := strings.CutPrefix(name, GroupRuleMark); ok && j.addedByUs(o) {
			owner = named
		}
	}
	if owner == "" {
		return ownership{}, false
	}
	return ownership{ours: true, owner: owner, why: fmt.Sprintf("its owner %s does not exist any more", owner)}, true
}

// hasOwner says whether a name is that of an owner, or has it in it.
func hasOwner(name, owner string) bool {
	return name == owner || len(owner) >= minNamedOwner && strings.Contains(name, owner)
}

// minNamedOwner is the length from which an owner is recognised inside a longer name; a UID has 36 characters.
const minNamedOwner = 16

// asPart decides by what the object is a part of: it is ours when one of those is ours or when we made it, and needs
// all of them.
func (j *judge) asPart(o *object) (ownership, bool) {
	ids := j.parents(o)
	if len(ids) == 0 {
		return ownership{}, false
	}
	made := j.createdByUs(o.id) != nil || j.addedByUs(o)
	w := ownership{ours: made}
	orphaned := ""
	for _, id := range ids {
		parent := j.look(id)
		if parent == nil {
			// It is neither here nor was it before; whether it was ours, the log knows.
			w.ours = w.ours || j.createdByUs(id) != nil
			w.why = "it was left behind: " + id + " does not exist"
			continue
		}
		of := j.own(parent)
		w.ours = w.ours || of.ours
		w.alive = w.alive || of.alive
		if of.ours && !of.alive {
			orphaned = fmt.Sprintf("it is a part of the %s %s, which is an orphan", parent.kind, parent.id)
		}
		if why := j.without(parent); why != "" {
			w.why = why
		}
	}
	switch {
	case w.why != "":
		w.alive = false
	case made && orphaned != "":
		w.alive, w.why = false, orphaned
	case made && !w.alive:
		w.why = "we made it on something that is not ours, and it names no owner"
	}
	// What a service made for an orphan goes with it and needs no finding of its own.
	return w, w.ours
}

// without says why there is no reason for a part any more, because of what it is a part of.
func (j *judge) without(parent *object) string {
	switch {
	case j.now[parent.id] == nil:
		return fmt.Sprintf("it was left behind: the %s %s does not exist any more", parent.kind, parent.id)
	case parent.stage() == gone:
		return fmt.Sprintf("it was left behind: the %s %s is %s", parent.kind, parent.id, parent.state())
	}
	return ""
}

// createdByUs returns the call of ours that created an object, or nil.
func (j *judge) createdByUs(id string) *ocisim.Call {
	if c := j.createdBy[id]; c != nil && j.Us.made(c) {
		return c
	}
	return nil
}

// addedByUs says whether a security rule that was not there before is from a call of ours. The log does not name rules.
func (j *judge) addedByUs(o *object) bool {
	group, _, isRule := strings.Cut(o.id, "/")
	if !isRule || j.before == nil || j.before[o.id] != nil {
		return false
	}
	for _, c := range j.writes[group] {
		if j.Us.made(c) && c.Operation == addGroupRules {
			return true
		}
	}
	return false
}

func plural(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}
