// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

// Package repo_test checks the tree itself: layers, licence headers, generated files, dependency versions.
package repo_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

func root(t *testing.T) string {
	t.Helper()
	dir, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(dir, "go.mod")); err != nil {
		t.Fatal(err)
	}
	return dir
}

// tracked lists the files that git knows, or the whole tree where there is no git (a source archive).
func tracked(t *testing.T) []string {
	t.Helper()
	cmd := exec.Command("git", "ls-files", "-z")
	cmd.Dir = root(t)
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("git ls-files: %v", err)
	}
	var files []string
	for _, f := range strings.Split(string(out), "\x00") {
		if f != "" {
			files = append(files, f)
		}
	}
	return files
}

var (
	headerExtensions = regexp.MustCompile(`(\.(go|sh|ya?ml|ts|mjs|js|css|html)|/Makefile|^Makefile|Dockerfile|\.ci/run)$`)
	headerExempt     = regexp.MustCompile(`(^|/)testdata/|package-lock\.json$`)
)

const licenceLine = "SPDX-License-Identifier: Apache-2.0"

func TestEverySourceFileHasTheLicenceHeader(t *testing.T) {
	n := 0
	for _, f := range tracked(t) {
		if !headerExtensions.MatchString(f) || headerExempt.MatchString(f) {
			continue
		}
		content, err := os.ReadFile(filepath.Join(root(t), f))
		if os.IsNotExist(err) {
			continue // deleted in the work tree, not yet in the index
		}
		if err != nil {
			t.Fatal(err)
		}
		n++
		head := content[:min(len(content), 400)]
		if !bytes.Contains(head, []byte(licenceLine)) || !bytes.Contains(head, []byte("Copyright The OCI Cloud Controller Manager Authors")) {
			t.Errorf("%s lacks the licence header (the two lines on top of every other file)", f)
		}
	}
	if n < 20 {
		t.Fatalf("looked at %d files only", n)
	}
}

func TestKubernetesLibrariesAreInLockstep(t *testing.T) {
	mod, err := os.ReadFile(filepath.Join(root(t), "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	staging := regexp.MustCompile(`(?m)^\s*(k8s\.io/[a-z-]+) (v0\.[1-9][0-9]*\.[0-9]+)\b`)
	versions := map[string][]string{}
	for _, m := range staging.FindAllStringSubmatch(string(mod), -1) {
		versions[m[2]] = append(versions[m[2]], m[1])
	}
	if len(versions) != 1 {
		t.Errorf("the Kubernetes libraries are not at one version: %v; run make update-kubernetes TO=1.x.y", versions)
	}
	if strings.Contains(string(mod), "k8s.io/kubernetes ") {
		t.Error("k8s.io/kubernetes is in the main module")
	}
	if regexp.MustCompile(`(?m)^replace|^\s*replace \(`).Match(mod) {
		t.Error("go.mod has replace lines: go install of the module would be refused")
	}
}

// TestGeneratedFilesAreFresh runs the generators on a copy of the tree and compares.
func TestGeneratedFilesAreFresh(t *testing.T) {
	if testing.Short() {
		t.Skip("copies the tree: left out with -short")
	}
	dir := t.TempDir()
	var generated []string
	for _, f := range tracked(t) {
		content, err := os.ReadFile(filepath.Join(root(t), f))
		if os.IsNotExist(err) {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		to := filepath.Join(dir, f)
		if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(to, content, 0o644); err != nil {
			t.Fatal(err)
		}
		if generatedMark.Match(content[:min(len(content), 600)]) && !strings.HasSuffix(f, "_test.go") {
			generated = append(generated, f)
		}
	}
	if len(generated) == 0 {
		t.Fatal("no generated file found: the mark has changed")
	}
	cmd := exec.Command("go", "generate", "./...")
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("go generate: %v\n%s", err, out)
	}
	for _, f := range generated {
		want, err := os.ReadFile(filepath.Join(dir, f))
		if err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(filepath.Join(root(t), f))
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, want) {
			t.Errorf("%s is stale: run make generate", f)
		}
	}
}

var generatedMark = regexp.MustCompile(`(?m)^(// |# |<!-- )?Code generated .* DO NOT EDIT`)
