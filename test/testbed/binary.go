// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package testbed

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
)

// repositoryRoot is the directory of the main module's go.mod.
func repositoryRoot() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for ; ; dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir, nil
		}
		if dir == filepath.Dir(dir) {
			return "", errors.New("no go.mod above the working directory: run this inside the repository")
		}
	}
}

// built builds our binaries once for a process whose caller has not built them.
var built = sync.OnceValues(func() (string, error) {
	root, err := repositoryRoot()
	if err != nil {
		return "", err
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	dir := filepath.Join(cache, "oci-ccm-test-bin", fmt.Sprint(os.Getpid()))
	cmd := exec.Command("go", "build", "-trimpath", "-gcflags=all=-dwarf=false", "-o", dir+"/", "./cmd/...")
	cmd.Dir, cmd.Env = root, append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build our binaries: %w\n%s", err, out)
	}
	return dir, nil
})

// binary finds one of our binaries: in dir, in $OCI_CCM_BIN, or built now.
func binary(_ context.Context, dir, name string) (string, error) {
	if dir == "" {
		dir = os.Getenv("OCI_CCM_BIN")
	}
	if dir == "" {
		var err error
		if dir, err = built(); err != nil {
			return "", err
		}
	}
	path, err := filepath.Abs(filepath.Join(dir, name))
	if err != nil {
		return "", err
	}
	if _, err := os.Stat(path); err != nil {
		return "", fmt.Errorf("%w: run make build first", err)
	}
	return path, nil
}

// Binary is the path of one of our binaries.
func Binary(ctx context.Context, name string) (string, error) { return binary(ctx, "", name) }
