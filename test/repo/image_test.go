// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package repo_test

import (
	"regexp"
	"slices"
	"strings"
	"testing"
)

var copied = regexp.MustCompile(`(?m)^COPY (\w+) \w+$`)

// TestImageHasAllSources: the image is built from the directories that the Dockerfile copies, and nothing here builds it.
func TestImageHasAllSources(t *testing.T) {
	var trees []string
	for _, m := range copied.FindAllStringSubmatch(document(t, "Dockerfile"), -1) {
		trees = append(trees, m[1])
	}
	packages := map[string]goPackage{}
	var todo []string
	for _, p := range listPackages(t) {
		packages[p.ImportPath] = p
		if strings.HasPrefix(p.ImportPath, module+"/cmd/") {
			todo = append(todo, p.ImportPath)
		}
	}
	seen := map[string]bool{}
	for len(todo) > 0 {
		path := todo[0]
		todo = todo[1:]
		if seen[path] {
			continue
		}
		seen[path] = true
		tree, _, _ := strings.Cut(strings.TrimPrefix(path, module+"/"), "/")
		if !slices.Contains(trees, tree) {
			t.Errorf("%s is part of a program, and the Dockerfile does not copy %s", path, tree)
		}
		for _, imp := range packages[path].Imports {
			if strings.HasPrefix(imp, module+"/") {
				todo = append(todo, imp)
			}
		}
	}
	if len(seen) < 10 {
		t.Errorf("found only %d packages of programs", len(seen))
	}
}
