// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package oracle

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/oracle/oci-cloud-controller-manager/test/ocisim"
)

// Kind is what a finding is about.
type Kind string

// The kinds of findings, in the order of a report.
const (
	Blind     Kind = "blind"     // something could not be judged
	Orphan    Kind = "orphan"    // an object of ours without a living owner, left behind, half made or failed
	Duplicate Kind = "duplicate" // two objects with one mark
	Foreign   Kind = "foreign"   // a change of something that is not ours
	Forbidden Kind = "forbidden" // a write where we may not write
	Restless  Kind = "restless"  // a write where none was due
	Budgeted  Kind = "budget"    // more calls than allowed
	Exposed   Kind = "exposed"   // a secret in a log
)

// headings introduce the kinds in a report.
var headings = []struct {
	kind Kind
	text string
}{
	{Blind, "NOT JUDGED: the evidence is missing"},
	{Orphan, "ORPHANS: objects of ours without a living owner, or unfinished"},
	{Duplicate, "DUPLICATES: objects of ours with one owner"},
	{Foreign, "FOREIGN CHANGES: what is not ours differs from the snapshot"},
	{Forbidden, "FORBIDDEN WRITES: calls to what we may not write to"},
	{Restless, "RESTLESS: writes where nothing was left to do"},
	{Budgeted, "OVER BUDGET: more calls than allowed"},
	{Exposed, "SECRETS IN LOGS"},
}

// Change is one field of an object that is no longer what it was. A field that is not there is empty.
type Change struct {
	Field  string `json:"field"` // path, "backendSets.TCP-80.policy"
	Before string `json:"before,omitempty"`
	After  string `json:"after,omitempty"`
}

// Finding is one thing that is wrong.
type Finding struct {
	Kind     Kind   `json:"kind"`
	Type     string `json:"type,omitempty"`     // of the resource: "load balancer"
	Resource string `json:"resource,omitempty"` // OCID
	Name     string `json:"name,omitempty"`
	State    string `json:"state,omitempty"`
	What     string `json:"what"`

	Changes []Change `json:"changes,omitempty"`
	// Calls are those that made it so, as far as the log knows: the first ones, oldest first.
	Calls []ocisim.Call `json:"calls,omitempty"`
}

// Report is the answer of the oracle.
type Report struct {
	Findings []Finding `json:"findings"`
	Objects  int       `json:"objects"` // that were looked at
	Ours     int       `json:"ours"`    // of them
	Calls    int       `json:"calls"`   // in the log
	OurCalls int       `json:"ourCalls"`
}

// maxCalls is the number of calls that a finding carries.
const maxCalls = 3

func (r *Report) add(f Finding) {
	if len(f.Calls) > maxCalls {
		f.Calls = f.Calls[:maxCalls]
	}
	r.Findings = append(r.Findings, f)
}

// Of returns the findings of a kind.
func (r *Report) Of(kind Kind) []Finding {
	var list []Finding
	for _, f := range r.Findings {
		if f.Kind == kind {
			list = append(list, f)
		}
	}
	return list
}

// FindingsError is the error of a report that has findings.
type FindingsError struct {
	Report *Report
}

// Error is the whole report: tests print it as it is.
func (e *FindingsError) Error() string { return e.Report.String() }

// Err returns nil when nothing was found, and a *FindingsError otherwise.
func (r *Report) Err() error {
	if len(r.Findings) == 0 {
		return nil
	}
	return &FindingsError{r}
}

// JSON is the report for programs.
func (r *Report) JSON() ([]byte, error) {
	out := *r
	if out.Findings == nil {
		out.Findings = []Finding{}
	}
	text, err := json.MarshalIndent(out, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("encode the report: %w", err)
	}
	return text, nil
}

// String is the report for people.
func (r *Report) String() string {
	var b strings.Builder
	verdict := "nothing to report"
	if n := len(r.Findings); n == 1 {
		verdict = "1 finding"
	} else if n > 1 {
		verdict = fmt.Sprintf("%d findings", n)
	}
	fmt.Fprintf(&b, "oracle: %s (%d objects, %d of them ours; %d calls in the log, %d of them ours)\n",
		verdict, r.Objects, r.Ours, r.Calls, r.OurCalls)
	for _, h := range headings {
		list := r.Of(h.kind)
		if len(list) == 0 {
			continue
		}
		fmt.Fprintf(&b, "\n%s (%d)\n", h.text, len(list))
		for i := range list {
			list[i].write(&b)
		}
	}
	return b.String()
}

// write adds a finding to a report: what it is, where, what is wrong, and since which call.
func (f *Finding) write(b *strings.Builder) {
	title := slices.DeleteFunc([]string{f.Type, f.Name}, func(s string) bool { return s == "" })
	if f.State != "" {
		title = append(title, "["+f.State+"]")
	}
	indent := "  "
	if len(title) > 0 || f.Resource != "" {
		fmt.Fprintf(b, "\n  %s\n", strings.Join(title, " "))
		indent = "    "
	}
	if f.Resource != "" {
		fmt.Fprintf(b, "    %s\n", f.Resource)
	}
	fmt.Fprintf(b, "%s%s\n", indent, f.What)
	for _, c := range f.Changes {
		fmt.Fprintf(b, "%s- %s: %s -> %s\n", indent, c.Field, orNothing(c.Before), orNothing(c.After))
	}
	for i := range f.Calls {
		fmt.Fprintf(b, "%s%s\n", indent, describeCall(&f.Calls[i]))
	}
}

func orNothing(s string) string {
	if s == "" {
		return "(none)"
	}
	return s
}

// describeCall is a call on one line, with what is needed to find it in logs.
func describeCall(c *ocisim.Call) string {
	s := fmt.Sprintf("call %d, %s: %s by %s -> %d", c.Seq, c.Time.UTC().Format(time.RFC3339), c.Name(), c.Principal, c.Status)
	if c.Code != "" {
		s += " " + c.Code
	}
	if c.Fault != "" {
		s += " (fault: " + c.Fault + ")"
	}
	if c.RequestID != "" {
		s += ", opc-request-id " + c.RequestID
	}
	return s
}
