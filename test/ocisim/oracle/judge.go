// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package oracle

import (
	"github.com/oracle/oci-cloud-controller-manager/test/ocisim"
)

// judge holds what the questions share.
type judge struct {
	Question

	before, now world // before is nil where it was not given
	calls       []ocisim.Call
	writes      map[string][]*ocisim.Call // writing calls that may have been applied, by what they were about or created
	createdBy   map[string]*ocisim.Call
	owners      map[string]bool
	holders     map[string][]string  // parts to what has or had them, where only the latter or a third says so
	known       map[string]ownership // of objects that were looked at
	report      *Report
}

// Judge answers a question on evidence that was gathered before. The error is about evidence that cannot be read.
func Judge(e Evidence, q Question) (*Report, error) {
	now, err := decodeWorld(e.State)
	if err != nil {
		return nil, err
	}
	j := &judge{
		Question: q, now: now, calls: e.Calls, writes: map[string][]*ocisim.Call{}, createdBy: map[string]*ocisim.Call{},
		owners: map[string]bool{}, holders: map[string][]string{}, known: map[string]ownership{},
		report: &Report{Objects: len(now), Calls: len(e.Calls)},
	}
	if q.Before != nil {
		if j.before, err = decodeWorld(q.Before); err != nil {
			return nil, err
		}
	}
	for _, owner := range q.Us.Owners {
		j.owners[owner] = true
	}
	j.indexHolders()
	j.indexCalls()
	j.checkEvidence(e.Counters)
	j.orphans()
	j.duplicates()
	j.rules()
	j.foreignChanges()
	j.forbiddenWrites()
	j.quiet()
	j.budgets()
	j.secrets()
	return j.report, nil
}

// holdingFields name, by kind, the fields with a part and with what has it. A mount target has its export set itself.
var holdingFields = map[string]struct{ part, whole string }{
	"VNIC attachment":        {"vnicId", "instanceId"},
	"boot volume attachment": {"bootVolumeId", "instanceId"},
	"mount target":           {"exportSetId", "id"},
}

// indexHolders notes what has parts that do not say so themselves.
func (j *judge) indexHolders() {
	for _, w := range []world{j.before, j.now} {
		for _, o := range w.sorted() {
			fields, ok := holdingFields[o.kind]
			if part, whole := o.text(fields.part), o.text(fields.whole); ok && part != "" && whole != "" {
				j.holders[part] = append(j.holders[part], whole)
			}
		}
	}
}

// parents returns the identifiers of what an object is a part of.
func (j *judge) parents(o *object) []string { return append(o.parents(), j.holders[o.id]...) }

// indexCalls sorts the writes by the objects that they were about.
func (j *judge) indexCalls() {
	for i := range j.calls {
		c := &j.calls[i]
		if j.Us.made(c) {
			j.report.OurCalls++
		}
		if !mayHaveBeenApplied(c) {
			continue
		}
		if c.Resource != "" {
			j.writes[c.Resource] = append(j.writes[c.Resource], c)
		}
		if c.Created != "" && c.Created != c.Resource {
			j.writes[c.Created] = append(j.writes[c.Created], c)
		}
		if c.Created != "" && j.createdBy[c.Created] == nil {
			j.createdBy[c.Created] = c
		}
	}
}

// mayHaveBeenApplied says whether a call can have changed something: a write that was not refused, or whose refusal was
// a fault, which may have come behind the effect.
func mayHaveBeenApplied(c *ocisim.Call) bool {
	switch {
	case !c.Write, c.Status == 0:
		return false
	case c.Created != "", c.Status < 400:
		return true
	default:
		return c.Fault != ""
	}
}

// checkEvidence reports that the log has lost calls, where a question needs them.
func (j *judge) checkEvidence(counters map[string]int) {
	counted := 0
	for _, n := range counters {
		counted += n
	}
	lost := counted - len(j.calls)
	if lost <= 0 {
		return
	}
	j.report.add(Finding{
		Kind: Blind,
		What: plural(lost, "call has", "calls have") + " left the log, which keeps the last " + plural(len(j.calls), "call", "calls") +
			": raise ocisim.Options.LogSize, or ask earlier",
	})
}
