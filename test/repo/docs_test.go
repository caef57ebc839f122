// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package repo_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"unicode"

	"github.com/oracle/oci-cloud-controller-manager/test/ocisim"
)

// document reads a file of the tree.
func document(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root(t), path))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// documents lists the Markdown files for people.
func documents(t *testing.T) []string {
	t.Helper()
	var list []string
	for _, f := range tracked(t) {
		if strings.HasSuffix(f, ".md") && !strings.Contains(f, "testdata/") {
			list = append(list, f)
		}
	}
	if len(list) < 5 {
		t.Fatalf("only %d documents", len(list))
	}
	return list
}

var markdownLink = regexp.MustCompile(`\]\(([^)\s]+)\)`)

func TestLinksOfDocumentsLeadSomewhere(t *testing.T) {
	for _, from := range documents(t) {
		for _, m := range markdownLink.FindAllStringSubmatch(document(t, from), -1) {
			if strings.Contains(m[1], "://") || strings.HasPrefix(m[1], "mailto:") {
				continue
			}
			path, anchor, _ := strings.Cut(m[1], "#")
			to := from
			if path != "" {
				to = filepath.Join(filepath.Dir(from), path)
			}
			if _, err := os.Stat(filepath.Join(root(t), to)); err != nil {
				t.Errorf("%s links to %s, which does not exist", from, m[1])
			} else if anchor != "" && !hasHeading(document(t, to), anchor) {
				t.Errorf("%s links to %s: there is no such heading", from, m[1])
			}
		}
	}
}

// hasHeading says whether a Markdown file has a heading with this anchor, made as GitHub makes it.
func hasHeading(text, anchor string) bool {
	for line := range strings.SplitSeq(text, "\n") {
		title := strings.TrimLeft(line, "#")
		if title == line {
			continue
		}
		slug := strings.Map(func(r rune) rune {
			switch {
			case r == ' ':
				return '-'
			case unicode.IsLetter(r), unicode.IsDigit(r), r == '-', r == '_':
				return unicode.ToLower(r)
			}
			return -1
		}, strings.TrimSpace(title))
		if slug == anchor {
			return true
		}
	}
	return false
}

// camelCase is the form of the reason of an event.
var camelCase = regexp.MustCompile(`^([A-Z][a-z]+){2,}(ID)?$`)

// kindOfObject are names of the same form that are none.
var kindOfObject = regexp.MustCompile(`^(\w*Class|PersistentVolume\w*)$`)

// TestReasonsOfEventsAreDocumented looks for strings in the form of a reason where events are made.
func TestReasonsOfEventsAreDocumented(t *testing.T) {
	explained := map[string]string{
		"pkg/cloudprovider": "docs/services.md", "cmd/oci-cloud-controller-manager": "docs/services.md", "pkg/loadbalancer": "docs/services.md",
		"pkg/csi/block": "docs/volumes.md", "pkg/csi/kube": "docs/volumes.md",
	}
	n := 0
	for _, f := range tracked(t) {
		dir := filepath.Dir(f)
		if explained[dir] == "" || dir == "pkg/loadbalancer" && f != "pkg/loadbalancer/problem.go" || !strings.HasSuffix(f, ".go") || strings.HasSuffix(f, "_test.go") {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), filepath.Join(root(t), f), nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(parsed, func(node ast.Node) bool {
			literal, ok := node.(*ast.BasicLit)
			if !ok || literal.Kind != token.STRING {
				return true
			}
			text, err := strconv.Unquote(literal.Value)
			if err != nil || !camelCase.MatchString(text) && (f != "pkg/loadbalancer/problem.go" || !camelCase.MatchString(text+"Word")) {
				return true
			}
			if kindOfObject.MatchString(text) {
				return true
			}
			n++
			if doc := explained[dir]; !strings.Contains(document(t, doc), "`"+text+"`") {
				t.Errorf("%s does not explain the reason %s (%s)", doc, text, f)
			}
			return true
		})
	}
	if n < 30 {
		t.Errorf("found %d reasons only: they are made elsewhere now", n)
	}
}

// sdkRequest finds the operations that a source file calls, by the SDK's requests that it makes.
var sdkRequest = regexp.MustCompile(`\b[a-z]+\.([A-Z]\w+)Request\{`)

// TestSimulatorKnowsWhatIsCalled: an operation that pkg/oci uses and the simulator lacks would be tested by nothing.
func TestSimulatorKnowsWhatIsCalled(t *testing.T) {
	known := map[string]bool{}
	for _, o := range ocisim.New(ocisim.Options{}).Operations() {
		known[o.Name] = true
	}
	n := 0
	for _, f := range tracked(t) {
		if filepath.Dir(f) != "pkg/oci" || strings.HasSuffix(f, "_test.go") {
			continue
		}
		for _, m := range sdkRequest.FindAllStringSubmatch(document(t, f), -1) {
			n++
			if !known[m[1]] {
				t.Errorf("%s calls %s, which the simulator does not know", f, m[1])
			}
		}
	}
	if n < 30 {
		t.Errorf("found %d calls only: they are made in another form now", n)
	}
}

func TestMetricsInDocumentsExist(t *testing.T) {
	code := document(t, "pkg/oci/metrics.go") + document(t, "pkg/cloudprovider/metrics.go") + document(t, "pkg/inventory/metrics.go") +
		document(t, "pkg/csi/metrics.go") + document(t, "pkg/csi/block/metrics.go")
	n := 0
	for _, f := range documents(t) {
		for _, name := range regexp.MustCompile("`(oci_[a-z_]+)`").FindAllStringSubmatch(document(t, f), -1) {
			n++
			if !strings.Contains(code, `"`+name[1]+`"`) {
				t.Errorf("%s names the metric %s, which does not exist", f, name[1])
			}
		}
	}
	if n == 0 {
		t.Error("no document names a metric")
	}
}
