// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package repo_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// caseRow is a row of docs/cases.md: number, words, tests.
var caseRow = regexp.MustCompile(`(?m)^\| (C\d{3}) \| [^|]+ \| ([^|]+) \|$`)

// TestCasesHaveTheirTests: the tests that docs/cases.md names exist, each case is in it once, and each case of its subject that a
// comment of a test names is in it.
func TestCasesHaveTheirTests(t *testing.T) {
	tests := map[string]bool{}
	mentioned := map[string]string{}
	number := regexp.MustCompile(`\bC0[2-9]\d\b|\bC10\d\b|\bC11[0-4]\b`)
	for _, f := range tracked(t) {
		if !strings.HasSuffix(f, "_test.go") {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), filepath.Join(root(t), f), nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range parsed.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && strings.HasPrefix(fn.Name.Name, "Test") {
				tests[fn.Name.Name] = true
				for _, n := range number.FindAllString(fn.Doc.Text(), -1) {
					mentioned[n] = f
				}
			}
		}
	}
	rows := map[string]bool{}
	for _, row := range caseRow.FindAllStringSubmatch(document(t, "docs/cases.md"), -1) {
		if rows[row[1]] {
			t.Errorf("%s is there twice", row[1])
		}
		rows[row[1]] = true
		for name := range strings.SplitSeq(row[2], ",") {
			if name = strings.TrimSpace(name); !tests[name] {
				t.Errorf("%s: there is no test %q", row[1], name)
			}
		}
	}
	if len(rows) < 70 {
		t.Errorf("found %d cases only", len(rows))
	}
	for n, f := range mentioned {
		if !rows[n] {
			t.Errorf("docs/cases.md lacks %s, which %s names", n, f)
		}
	}
}
