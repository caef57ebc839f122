// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
)

// newModule is a module with one small program.
func newModule(t *testing.T, source string) (module, bundle) {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"go.mod":        "module example.test/tools\n\ngo 1.26\n",
		"go.sum":        "",
		"hello/main.go": source,
	} {
		path := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	return module{dir: dir, kubernetes: "v1.99.3"}, bundle{
		name: "greeting", title: "a greeting", packages: []string{"./hello"},
		programs: []string{"hello"}, links: []string{"hi"},
	}
}

const hello = `package main

func main() { println("hello") }
`

// lineCounter counts lines that contain a word.
type lineCounter struct {
	word  string
	count atomic.Int32
}

func (c *lineCounter) Write(p []byte) (int, error) {
	c.count.Add(int32(strings.Count(string(p), c.word)))
	return len(p), nil
}

func TestEnsureBuildsOnce(t *testing.T) {
	m, b := newModule(t, hello)
	cache := t.TempDir()
	building := &lineCounter{word: "building"}
	var dirs sync.Map
	var callers errgroup.Group
	for range 4 {
		callers.Go(func() error {
			dir, err := b.ensure(t.Context(), m, cache, building)
			dirs.Store(dir, true)
			return err
		})
	}
	if err := callers.Wait(); err != nil {
		t.Fatal(err)
	}
	dirs.Range(func(dir, _ any) bool {
		out, err := exec.Command(filepath.Join(dir.(string), "hi")).CombinedOutput()
		if err != nil || string(out) != "hello\n" {
			t.Errorf("the link in %s says %q, %v", dir, out, err)
		}
		return true
	})
	if n := building.count.Load(); n != 1 {
		t.Errorf("4 callers built %d times", n)
	}
	entries, err := filepath.Glob(filepath.Join(cache, "*.building"))
	if err != nil || len(entries) != 0 {
		t.Errorf("left behind: %v, %v", entries, err)
	}

	// A cache that lost a file is repaired.
	dir, err := b.ensure(t.Context(), m, cache, building)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(dir, "hello")); err != nil {
		t.Fatal(err)
	}
	if _, err := b.ensure(t.Context(), m, cache, building); err != nil {
		t.Fatal(err)
	}
	if n := building.count.Load(); n != 2 || !b.complete(dir) {
		t.Errorf("built %d times, complete = %t; want 2, true", n, b.complete(dir))
	}
}

func TestFailedBuild(t *testing.T) {
	m, b := newModule(t, "package main\n\nfunc main() { undefined() }\n")
	cache := t.TempDir()
	_, err := b.ensure(t.Context(), m, cache, io.Discard)
	if err == nil || !strings.Contains(err.Error(), "undefined: undefined") {
		t.Errorf("ensure = %v, want the compiler's message", err)
	}
	entries, err := os.ReadDir(cache)
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		if !strings.HasSuffix(entry.Name(), ".lock") {
			t.Errorf("a failed build left %s", entry.Name())
		}
	}
}

func TestCancelledBuild(t *testing.T) {
	m, b := newModule(t, hello)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := b.ensure(ctx, m, t.TempDir(), io.Discard); !errors.Is(err, context.Canceled) {
		t.Errorf("ensure = %v, want context.Canceled", err)
	}
}

func TestKeyFollowsContent(t *testing.T) {
	m, b := newModule(t, hello)
	key := func() string {
		t.Helper()
		k, err := b.key(m)
		if err != nil {
			t.Fatal(err)
		}
		return k
	}
	seen := map[string]string{key(): "original"}
	distinct := func(change string) {
		t.Helper()
		k := key()
		if old, ok := seen[k]; ok {
			t.Errorf("%s: same key as %s", change, old)
		}
		seen[k] = change
	}
	for _, file := range []string{"go.mod", "go.sum", "hello/main.go"} {
		f, err := os.OpenFile(filepath.Join(m.dir, file), os.O_APPEND|os.O_WRONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.WriteString("\n"); err != nil {
			t.Fatal(err)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
		distinct(file)
	}
	m.kubernetes = "v1.99.4"
	distinct("flags")
	b.packages = append(b.packages, "example.test/other")
	distinct("packages")

	before := key()
	b.estimate = "a while"
	if key() != before {
		t.Error("the text of a progress line changes the key")
	}
}

func TestFindModule(t *testing.T) {
	want, err := filepath.Abs("tools")
	if err != nil {
		t.Fatal(err)
	}
	m, err := findModule(toolsModule)
	if err != nil {
		t.Fatal(err)
	}
	if m.dir != want || !strings.HasPrefix(m.kubernetes, "v1.37.") {
		t.Errorf("findModule = %+v, want dir %s and Kubernetes 1.37", m, want)
	}
	if flags := strings.Join(m.flags(), " "); !strings.Contains(flags, "version.gitMinor=37") {
		t.Errorf("flags = %s", flags)
	}
}

func TestLockFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	unlock, err := lockFile(t.Context(), path, func() { t.Error("waited for a free lock") })
	if err != nil {
		t.Fatal(err)
	}

	ctx, cancel := context.WithCancel(t.Context())
	waits := 0
	_, err = lockFile(ctx, path, func() { waits++; cancel() })
	if !errors.Is(err, context.Canceled) || waits != 1 {
		t.Errorf("a held lock: %v after %d announcements; want context.Canceled after 1", err, waits)
	}

	time.AfterFunc(time.Millisecond, unlock)
	unlock, err = lockFile(t.Context(), path, nil)
	if err != nil {
		t.Fatalf("a lock that becomes free: %v", err)
	}
	unlock()
}
