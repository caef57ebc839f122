// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"context"
	"fmt"
	"io"
)

// ValidateOptions say what ValidateCommand looks at.
type ValidateOptions struct {
	// Path of the cloud config.
	Path string
	// Lookup reads environment variables, like os.LookupEnv. Nil means that there are none.
	Lookup func(name string) (string, bool)
	// Metadata is asked for what the file leaves out. Nil leaves it open, so that a file can be checked anywhere.
	Metadata Metadata
}

// ValidateCommand checks a cloud config strictly and without side effects. It writes the effective configuration to
// out, or else every problem to errOut, one per line. It returns the exit code: 0 if a start would accept the file
// even with --strict-config, 1 if not.
//
// The environment of a check is not that of the pod, so variables that the pod will need are not asked for.
func ValidateCommand(ctx context.Context, out, errOut io.Writer, o ValidateOptions) int {
	c, report := ReadFile(o.Path, true)
	if o.Lookup != nil {
		environment, found := FromEnviron(o.Lookup)
		c.Environment, report = environment, report.Merge(found)
	}
	if report.Err() == nil && o.Metadata != nil {
		if err := Complete(ctx, c, o.Metadata); err != nil {
			report = report.Merge(Report{Problems: []Problem{{Severity: Error, File: o.Path, Message: err.Error(), Err: err}}})
		} else {
			report = report.Merge(Validate(c))
		}
	}
	if report.Err() == nil {
		report = report.Merge(WithoutEffect(c))
	}
	for _, p := range report.Problems {
		if _, err := fmt.Fprintln(errOut, p.Error()); err != nil {
			return 1
		}
	}
	if report.Err() != nil {
		return 1
	}
	if err := Describe(out, c); err != nil {
		_, _ = fmt.Fprintln(errOut, err)
		return 1
	}
	return 0
}
