// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

// module is a nested module that names programs and their versions.
type module struct {
	dir        string
	kubernetes string // version, for example v1.37.2; empty for one that has nothing to do with it
}

// The nested modules.
const (
	toolsModule   = "tools"   // Kubernetes, etcd and the CSI sidecars
	runtimeModule = "runtime" // what a node runs below its kubelet
)

// clusterPath is where the modules are, seen from the root of the repository.
const clusterPath = "test/cluster"

// findModule looks beside this source file, if it is still where it was compiled,
// and otherwise (-trimpath) in the directories above the working directory, which
// for a test is that of its package.
func findModule(name string) (module, error) {
	if _, file, _, ok := runtime.Caller(0); ok && filepath.IsAbs(file) {
		if m, err := readModule(filepath.Join(filepath.Dir(file), name)); err == nil {
			return m, nil
		}
	}
	dir, err := os.Getwd()
	if err != nil {
		return module{}, err
	}
	for {
		m, err := readModule(filepath.Join(dir, clusterPath, name))
		if !errors.Is(err, os.ErrNotExist) {
			return m, err
		}
		if dir == filepath.Dir(dir) {
			return module{}, fmt.Errorf("find %s/%s above the working directory: %w", clusterPath, name, os.ErrNotExist)
		}
		dir = filepath.Dir(dir)
	}
}

func readModule(dir string) (module, error) {
	path := filepath.Join(dir, "go.mod")
	text, err := os.ReadFile(path)
	if err != nil {
		return module{}, err
	}
	if filepath.Base(dir) != toolsModule {
		return module{dir: dir}, nil
	}
	required := regexp.MustCompile(`(?m)^(?:require)?\s*k8s\.io/kubernetes (v1\.\d+\.\d+)`).FindSubmatch(text)
	if required == nil {
		return module{}, fmt.Errorf("%s requires no release of k8s.io/kubernetes", path)
	}
	return module{dir: dir, kubernetes: string(required[1])}, nil
}

// describe adds the version to the title of a bundle.
func (m module) describe(title string) string {
	if m.kubernetes == "" {
		return title
	}
	return title + " for Kubernetes " + m.kubernetes
}

// flags of go build: small, the same bytes for everyone, and with the version that
// the components shall report.
func (m module) flags() []string {
	linker := []string{"-s", "-w"}
	if m.kubernetes != "" {
		linker = append(linker, m.versionFlags()...)
	}
	return []string{
		"-mod=readonly",
		"-buildvcs=false",
		"-trimpath",
		"-gcflags=all=-dwarf=false",
		"-ldflags=" + strings.Join(linker, " "),
	}
}

// versionFlags are the linker's flags for the version of Kubernetes.
func (m module) versionFlags() []string {
	const pkg = "k8s.io/component-base/version."
	minor := strings.Split(m.kubernetes, ".")[1]
	var flags []string
	for _, variable := range []string{
		"gitVersion=" + m.kubernetes,
		"gitMajor=1",
		"gitMinor=" + minor,
		"gitTreeState=clean",
		"gitCommit=" + strings.Repeat("0", 40),
		"buildDate=1970-01-01T00:00:00Z",
	} {
		flags = append(flags, "-X", pkg+variable)
	}
	return flags
}

// key names the content of a bundle: all that decides what the build makes.
func (b bundle) key(m module) (string, error) {
	files := []string{filepath.Join(m.dir, "go.mod"), filepath.Join(m.dir, "go.sum")}
	for _, pkg := range b.packages { // the others are what go.mod says
		if !strings.HasPrefix(pkg, "./") {
			continue
		}
		sources, err := filepath.Glob(filepath.Join(m.dir, pkg, "*.go"))
		if err != nil {
			return "", err
		}
		files = append(files, sources...)
	}
	slices.Sort(files)

	hash := sha256.New()
	decisive := [][]string{
		{runtime.Version(), runtime.GOOS, runtime.GOARCH}, m.flags(), b.packages, b.programs, b.links,
	}
	if b.tags != "" || len(b.withC) > 0 {
		decisive = append(decisive, b.withC, []string{b.tags})
	}
	fmt.Fprintf(hash, "%q\n", decisive)
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return "", err
		}
		fmt.Fprintf(hash, "%s %d\n%s", filepath.Base(file), len(text), text)
	}
	return fmt.Sprintf("%x", hash.Sum(nil)[:8]), nil
}

// goBuild compiles the packages of a bundle into the directory out, those with C or the
// others. Progress hears of it every half minute.
func (m module) goBuild(ctx context.Context, b bundle, withC bool, out, tmp string, progress io.Writer) error {
	packages, cgo := b.packages, "CGO_ENABLED=0"
	if withC {
		packages, cgo = b.withC, "CGO_ENABLED=1"
	}
	args := append([]string{"build", "-v", "-o", out + string(filepath.Separator)}, m.flags()...)
	if b.tags != "" {
		args = append(args, "-tags="+b.tags)
	}
	cmd := exec.CommandContext(ctx, "go", append(args, packages...)...)
	cmd.Dir = m.dir
	cmd.Env = append(cmd.Environ(), cgo, "GOWORK=off", "GOTMPDIR="+tmp,
		"GOOS="+runtime.GOOS, "GOARCH="+runtime.GOARCH)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	output := &buildOutput{}
	cmd.Stderr = output

	// The parent-death signal is sent when the thread ends that started the process.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	done := make(chan struct{})
	var reporter sync.WaitGroup
	reporter.Go(func() { output.report(progress, done) })
	err := cmd.Run()
	close(done)
	reporter.Wait()
	if err != nil {
		return fmt.Errorf("go build: %w\n%s", errors.Join(context.Cause(ctx), err), output.tail(30))
	}
	return nil
}

// buildOutput collects what go build -v prints: a line for each module it
// downloads, each package it compiles, and each error.
type buildOutput struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (o *buildOutput) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(p)
}

func (o *buildOutput) lines() []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return strings.Split(strings.TrimRight(o.text.String(), "\n"), "\n")
}

func (o *buildOutput) tail(n int) string {
	lines := o.lines()
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}

// report prints how far the build is until done is closed.
func (o *buildOutput) report(progress io.Writer, done <-chan struct{}) {
	start := time.Now()
	ticker := time.NewTicker(30 * time.Second)
	defer ticker.Stop()
	for {
		select {
		case <-done:
			return
		case <-ticker.C:
		}
		downloads, packages := 0, 0
		for _, line := range o.lines() {
			if strings.HasPrefix(line, "go: downloading ") {
				downloads++
			} else if line != "" {
				packages++
			}
		}
		fmt.Fprintf(progress, "  still building after %s: %d modules downloaded, %d packages compiled\n",
			time.Since(start).Round(time.Second), downloads, packages)
	}
}

// lockFile takes an exclusive lock that ends with this process at the latest. It
// calls waiting once if somebody else holds the lock.
func lockFile(ctx context.Context, path string, waiting func()) (unlock func(), err error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, err
	}
	ticker := time.NewTicker(200 * time.Millisecond)
	defer ticker.Stop()
	for {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			return func() { _ = f.Close() }, nil
		}
		if !errors.Is(err, syscall.EWOULDBLOCK) && !errors.Is(err, syscall.EINTR) {
			_ = f.Close()
			return nil, fmt.Errorf("lock %s: %w", path, err)
		}
		if waiting != nil {
			waiting()
			waiting = nil
		}
		select {
		case <-ctx.Done():
			_ = f.Close()
			return nil, fmt.Errorf("lock %s: %w", path, context.Cause(ctx))
		case <-ticker.C:
		}
	}
}
