// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package legacy

import (
	"errors"
	"os"
	"regexp"
	"slices"
	"strings"
)

// operation is the name of an operation of the API in a document.
var operation = regexp.MustCompile("`([A-Z][A-Za-z]+)`")

// FirstPassWrites are the operations that a document, docs/upgrade.md, says the first pass after an upgrade may write with,
// sorted: those in the first column of the table of that section.
func FirstPassWrites(path string) ([]string, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	_, section, found := strings.Cut(string(text), "\n### What the first pass writes\n")
	section, _, ended := strings.Cut(section, "\n## ")
	if !found || !ended {
		return nil, errors.New(path + " has no section about what the first pass writes")
	}
	var out []string
	for line := range strings.SplitSeq(section, "\n") {
		cells := strings.Split(line, "|")
		if len(cells) < 3 {
			continue
		}
		for _, m := range operation.FindAllStringSubmatch(cells[1], -1) {
			out = append(out, m[1])
		}
	}
	slices.Sort(out)
	return slices.Compact(out), nil
}
