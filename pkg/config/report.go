// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/klog/v2"
)

// Severity says whether a problem stops the start.
type Severity int

// The severities.
const (
	Warning Severity = iota
	Error
)

// String returns "warning" or "error".
func (s Severity) String() string {
	if s == Error {
		return "error"
	}
	return "warning"
}

// Problem is one thing that is wrong with the configuration. It is an error value too.
type Problem struct { //nolint:errname // a problem may be a warning; it is an error value for errors.As
	Severity Severity
	// File, Line and Column say where; Line and Column start at 1 and are 0 where there is no place in a file.
	File         string
	Line, Column int
	// Key is the path of the key concerned, "auth.region", or the name of an environment variable. It may be empty.
	Key     string
	Message string
	// Strict marks a warning that becomes an error under --strict-config and in validate-config.
	Strict bool
	// Suggestion is the path of the known key that was probably meant, if there is one.
	Suggestion string
	// Err is the cause, for example of a file that cannot be read. It is part of Message already.
	Err error
}

// Error gives the problem in one line: "file:line:column: severity: key: message".
func (p Problem) Error() string {
	var b strings.Builder
	if p.File != "" {
		b.WriteString(p.File)
		if p.Line > 0 {
			fmt.Fprintf(&b, ":%d", p.Line)
			if p.Column > 0 {
				fmt.Fprintf(&b, ":%d", p.Column)
			}
		}
		b.WriteString(": ")
	}
	b.WriteString(p.Severity.String())
	b.WriteString(": ")
	if p.Key != "" {
		b.WriteString(p.Key)
		b.WriteString(": ")
	}
	b.WriteString(p.Message)
	return b.String()
}

// Unwrap returns the cause.
func (p Problem) Unwrap() error { return p.Err }

// Report holds everything that was found, in the order of the file.
type Report struct {
	Problems []Problem
}

// Strict returns a report in which the warnings that strict mode does not accept are errors.
func (r Report) Strict() Report {
	out := Report{Problems: slices.Clone(r.Problems)}
	for i := range out.Problems {
		if out.Problems[i].Strict {
			out.Problems[i].Severity = Error
		}
	}
	return out
}

// Merge returns the problems of both reports.
func (r Report) Merge(other Report) Report {
	return Report{Problems: append(slices.Clone(r.Problems), other.Problems...)}
}

// Errors returns the problems that stop a start.
func (r Report) Errors() []Problem { return r.only(Error) }

// Warnings returns the problems that do not.
func (r Report) Warnings() []Problem { return r.only(Warning) }

func (r Report) only(s Severity) []Problem {
	var out []Problem
	for _, p := range r.Problems {
		if p.Severity == s {
			out = append(out, p)
		}
	}
	return out
}

// Err joins the errors of the report into one, one per line. It is nil if there are none. errors.As finds a Problem.
func (r Report) Err() error {
	var all []error
	for _, p := range r.Errors() {
		all = append(all, p)
	}
	return errors.Join(all...)
}

// Log writes one line per problem.
func (r Report) Log(ctx context.Context) {
	logger := klog.FromContext(ctx)
	for _, p := range r.Problems {
		if p.Severity == Error {
			logger.Error(nil, "Cloud config is wrong", "problem", p.Error())
		} else {
			logger.Info("Cloud config needs attention", "problem", p.Error())
		}
	}
}

// sort orders the problems by their place.
func (r *Report) sort() {
	slices.SortStableFunc(r.Problems, func(a, b Problem) int {
		if a.Line != b.Line {
			return a.Line - b.Line
		}
		return a.Column - b.Column
	})
}

// concerning returns the first mistake that is about one of keys, or about a misspelling of one or of its block.
func (r *Report) concerning(keys ...string) *Problem {
	for i := range r.Problems {
		p := &r.Problems[i]
		if p.Severity == Warning && !p.Strict {
			continue // deprecated, but right
		}
		for _, key := range keys {
			if p.Key == key || p.Suggestion != "" && (p.Suggestion == key || p.Suggestion == parent(key)) {
				return p
			}
		}
	}
	return nil
}

// touches says whether any problem is about a block, about a key in it, or about a misspelling of either.
func (r *Report) touches(block string) bool {
	for _, p := range r.Problems {
		if within(p.Key, block) || within(p.Suggestion, block) {
			return true
		}
	}
	return false
}
