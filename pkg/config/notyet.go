// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package config

// WithoutEffect warns about settings that are understood but do nothing in this release, once for each block of the file.
// They are no mistakes, so strict accepts them; but who relies on them has to know.
func WithoutEffect(c *Config) Report {
	var report Report
	told := map[string]bool{}
	for _, k := range Keys() {
		origin := c.Origin(k.Path)
		block := parent(k.Path)
		if block == "tags.common" && c.Environment.ResourceAttribution {
			continue // volumes get them
		}
		if !k.NotYet || origin.source != fromFile || told[block] {
			continue
		}
		told[block] = true
		report.Problems = append(report.Problems, Problem{File: origin.file, Line: origin.line, Key: k.Path, Message: withoutEffect})
	}
	return report
}

const withoutEffect = "has no effect in this release yet, see docs/upgrade.md"
