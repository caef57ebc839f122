// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package oracle

import (
	"fmt"
	"slices"
	"strings"

	"github.com/oracle/oci-cloud-controller-manager/test/ocisim"
)

// forbiddenWrites finds writes of ours to what we may not write to. Refused ones count: the attempt is the mistake.
func (j *judge) forbiddenWrites() {
	j.byOperation(Forbidden, func(c *ocisim.Call) bool { return c.Write && !j.Us.mayWrite(c) },
		func(name string, n int) string {
			return fmt.Sprintf("%s of %s, which is none of our operations", plural(n, "call", "calls"), name)
		})
}

// quiet finds writes of ours in windows in which nothing was left to do.
func (j *judge) quiet() {
	for _, w := range j.Quiet {
		if !j.covers(w, "writes") {
			continue
		}
		j.byOperation(Restless, func(c *ocisim.Call) bool { return c.Write && w.has(c) },
			func(name string, n int) string {
				return fmt.Sprintf("%s of %s %s", plural(n, "call", "calls"), name, w)
			})
	}
}

// String is the window in words.
func (w Window) String() string {
	if w.To == 0 {
		return fmt.Sprintf("after call %d", w.From)
	}
	return fmt.Sprintf("after call %d, up to call %d", w.From, w.To)
}

// covers says whether the log still has the window, and reports it when not.
func (j *judge) covers(w Window, what string) bool {
	if w.From == 0 {
		return true
	}
	problem := ""
	switch n := len(j.calls); {
	case w.To != 0 && w.To < w.From:
		problem = "the window ends before it begins"
	case n == 0:
		problem = "the log is empty"
	case j.calls[0].Seq > w.From+1:
		problem = fmt.Sprintf("the log begins at call %d", j.calls[0].Seq)
	case j.calls[n-1].Seq < w.From:
		problem = fmt.Sprintf("the log ends at call %d", j.calls[n-1].Seq)
	}
	if problem == "" {
		return true
	}
	j.report.add(Finding{Kind: Blind, What: fmt.Sprintf("%s %s cannot be judged: %s", what, w, problem)})
	return false
}

// byOperation reports calls of ours that match, one finding for each operation.
func (j *judge) byOperation(kind Kind, match func(*ocisim.Call) bool, what func(name string, n int) string) {
	found := map[string][]ocisim.Call{}
	for i := range j.calls {
		if c := &j.calls[i]; j.Us.made(c) && match(c) {
			found[c.Name()] = append(found[c.Name()], *c)
		}
	}
	for _, name := range sortedKeys(found) {
		j.report.add(Finding{Kind: kind, Name: name, What: what(name, len(found[name])), Calls: found[name]})
	}
}

// budgets counts calls of ours.
func (j *judge) budgets() {
	for i := range j.Budgets {
		b := &j.Budgets[i]
		if !j.covers(b.Within, "calls of "+b.Operation) {
			continue
		}
		var calls []ocisim.Call
		results := map[string]int{}
		for k := range j.calls {
			if c := &j.calls[k]; j.Us.made(c) && b.has(c) {
				calls = append(calls, *c)
				results[result(c)]++
			}
		}
		if len(calls) <= b.Most {
			continue
		}
		var parts []string
		for _, r := range sortedKeys(results) {
			parts = append(parts, fmt.Sprintf("%d x %s", results[r], r))
		}
		j.report.add(Finding{
			Kind: Budgeted, Name: b.Operation,
			What: fmt.Sprintf("%s, %d allowed (%s); the first one too many:",
				plural(len(calls), "call", "calls"), b.Most, strings.Join(parts, ", ")),
			Calls: calls[b.Most : b.Most+1],
		})
	}
}

// result is the outcome of a call in words.
func result(c *ocisim.Call) string {
	switch {
	case c.Status == 0:
		return "dropped"
	case c.Code != "":
		return fmt.Sprintf("%d %s", c.Status, c.Code)
	default:
		return fmt.Sprint(c.Status)
	}
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
