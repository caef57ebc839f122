// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package oracle

import (
	"fmt"
	"slices"
	"strings"

	"github.com/oracle/oci-cloud-controller-manager/test/ocisim"
)

// orphans finds what is ours and should not be there, or not like this.
func (j *judge) orphans() {
	for _, o := range j.now.sorted() {
		w := j.own(o)
		if !w.ours {
			continue
		}
		j.report.Ours++
		if what := j.unwanted(o, w); what != "" {
			j.report.add(Finding{
				Kind: Orphan, Type: o.kind, Resource: o.id, Name: o.name(), State: o.state(), What: what, Calls: j.history(o),
			})
		}
	}
}

// unwanted says what is wrong with an object of ours, if anything is.
func (j *judge) unwanted(o *object, w ownership) string {
	_, part := j.asPart(o)
	switch stage := o.stage(); {
	case stage == gone:
		return ""
	case stage == going:
		if j.Settled && !part {
			return "it has not come to rest"
		}
		return ""
	case stage == failed:
		return "it failed, and nobody has removed it" + also(w.why)
	case w.why != "" && stage == changing:
		return "half made: " + w.why
	case w.why != "":
		return w.why
	case stage == changing && j.Settled:
		return "it has not come to rest"
	}
	return ""
}

func also(why string) string {
	if why == "" {
		return ""
	}
	return "; besides, " + why
}

// history returns the call that made an object and the last one that was about it. What had no call of its own has the
// history of what it is a part of.
func (j *judge) history(o *object) []ocisim.Call {
	calls := j.writes[o.id]
	if len(calls) == 0 {
		for _, id := range j.parents(o) {
			if calls = j.writes[id]; len(calls) > 0 {
				break
			}
		}
	}
	switch len(calls) {
	case 0:
		return nil
	case 1:
		return []ocisim.Call{*calls[0]}
	default:
		return []ocisim.Call{*calls[0], *calls[len(calls)-1]}
	}
}

// mark is what only one object may carry.
type mark struct {
	class, cluster, owner string
}

// classes join kinds of which an owner has only one.
var classes = map[string]string{"load balancer": "balancer", "network load balancer": "balancer"}

// duplicates finds objects with one owner. Parts have none of their own, so they do not count; nor do the backups that a
// volume group backup consists of, which carry its marks.
func (j *judge) duplicates() {
	found := map[mark][]*object{}
	var order []mark
	for _, o := range j.now.sorted() {
		w := j.own(o)
		if !w.ours || w.owner == "" || o.leaving() || o.kind == groupRuleKind || o.text("volumeGroupBackupId") != "" {
			continue
		}
		m := mark{class: o.kind, cluster: o.tag(TagCluster), owner: w.owner}
		if class := classes[o.kind]; class != "" {
			m.class = class
		}
		if m.cluster == "" {
			m.cluster = j.Us.Cluster // known by its name
		}
		if found[m] == nil {
			order = append(order, m)
		}
		found[m] = append(found[m], o)
	}
	for _, m := range order {
		if len(found[m]) > 1 {
			j.report.add(j.duplicate(m, found[m]))
		}
	}
}

func (j *judge) duplicate(m mark, list []*object) Finding {
	f := Finding{Kind: Duplicate, Type: m.class, Name: m.owner}
	slices.SortStableFunc(list, func(a, b *object) int { return strings.Compare(a.text("timeCreated"), b.text("timeCreated")) })
	var lines []string
	for _, o := range list {
		lines = append(lines, strings.TrimRight(fmt.Sprintf("%s %s %s", o.id, o.name(), o.state()), " "))
		if c := j.createdBy[o.id]; c != nil {
			f.Calls = append(f.Calls, *c)
		}
	}
	slices.SortFunc(f.Calls, func(a, b ocisim.Call) int { return int(a.Seq) - int(b.Seq) })
	f.Resource = list[len(list)-1].id // the youngest
	f.What = fmt.Sprintf("owner %s has %d: %s", m.owner, len(list), strings.Join(lines, "; "))
	return f
}
