// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package repo_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestLongTestsRunSomewhere: what leaves itself out of the run with the race detector must be in the Makefile's list of
// long tests, or it would run nowhere.
func TestLongTestsRunSomewhere(t *testing.T) {
	list := regexp.MustCompile(`(?m)^LONG := (\S+)$`).FindStringSubmatch(document(t, "Makefile"))
	if list == nil {
		t.Fatal("the Makefile has no list LONG")
	}
	recipe := regexp.MustCompile(`(?m)^\t@go test .*\$\(LONG\).*$`).FindString(document(t, "Makefile"))
	want := strings.Split(list[1], "|")
	slices.Sort(want)
	var got []string
	for _, f := range tracked(t) {
		dir := filepath.Dir(f)
		if !strings.HasSuffix(f, "_test.go") || dir == "test/repo" { // which make lint runs
			continue
		}
		names := longTests(t, f)
		if len(names) > 0 && !strings.Contains(recipe+" ", " ./"+dir+" ") {
			t.Errorf("test-long does not run %s, which has %v", dir, names)
		}
		got = append(got, names...)
	}
	slices.Sort(got)
	if got = slices.Compact(got); !slices.Equal(got, want) {
		t.Errorf("left out with -short: %v\nin the Makefile: %v", got, want)
	}
}

// longTests are the tests of a file that ask testing.Short.
func longTests(t *testing.T, file string) []string {
	t.Helper()
	if !strings.Contains(document(t, file), "testing.Short()") {
		return nil
	}
	parsed, err := parser.ParseFile(token.NewFileSet(), filepath.Join(root(t), file), nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, d := range parsed.Decls {
		f, ok := d.(*ast.FuncDecl)
		if !ok {
			continue
		}
		ast.Inspect(f, func(n ast.Node) bool {
			if s, ok := n.(*ast.SelectorExpr); ok && s.Sel.Name == "Short" {
				names = append(names, f.Name.Name)
			}
			return true
		})
	}
	return names
}
