// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package config

// Validate reports what a completed configuration still lacks for a start. What one file can tell by itself is in the
// report of Parse already.
func Validate(c *Config) Report {
	var report Report
	lacking := func(key, message string) {
		report.Problems = append(report.Problems, Problem{Severity: Error, File: c.file, Key: key, Message: message})
	}
	if c.Auth.Region == "" {
		lacking("auth.region", "required: it is neither set nor known from instance metadata, and there is no default region")
	}
	if c.Compartment == "" {
		lacking("compartment", "required: it is neither set nor known from instance metadata")
	}
	if c.Principal() == WorkloadIdentity {
		report.Problems = append(report.Problems, c.Environment.WorkloadIdentity.problems()...)
	}
	return report
}
