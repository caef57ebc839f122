// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package node_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// The traces of a run on the machine that do not go with its namespaces: the directory of the nodes and the volumes, control
// groups, and empty directories over which the nodes mount theirs.

// cgroupRoot has a directory for each hierarchy.
const cgroupRoot = "/sys/fs/cgroup"

// errCgroups says that control groups are not those that this package can use.
var errCgroups = errors.New("these tests need the hierarchies of cgroup v1 at " + cgroupRoot)

// mountPoints are directories that the kubelet insists on. Each node has its own there.
func mountPoints() []string {
	return []string{"/var/lib/kubelet", "/var/log/pods", "/var/log/containers"}
}

// madeFile lists the mount points that a run has made.
func madeFile() string { return filepath.Join(workDir(), "made") }

// hierarchies are those of cgroup v1 that the kubelet and runc use, and the one of v2 that they make groups in if it is there, too.
func hierarchies() ([]string, error) {
	var dirs []string
	for _, name := range []string{"cpu", "cpuacct", "cpuset", "memory", "devices", "freezer", "blkio", "pids", "systemd", "hugetlb", "net_cls", "perf_event", "unified"} {
		dir := filepath.Join(cgroupRoot, name)
		var st unix.Statfs_t
		if err := unix.Statfs(dir, &st); err == nil && (st.Type == unix.CGROUP_SUPER_MAGIC || name == "unified") {
			dirs = append(dirs, dir)
		}
	}
	if len(dirs) < 2 {
		return nil, errCgroups
	}
	return dirs, nil
}

// prepare makes what the tests inside cannot make, or not so that it can be found again.
func prepare() error {
	if err := os.MkdirAll(workDir(), 0o755); err != nil {
		return err
	}
	var made []string
	for _, dir := range mountPoints() {
		if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
			made = append(made, dir)
		}
	}
	if err := os.WriteFile(madeFile(), []byte(strings.Join(made, "\n")), 0o600); err != nil {
		return err
	}
	for _, dir := range mountPoints() {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
	}
	return makeCgroup(suite)
}

// makeCgroup makes a control group in every hierarchy.
func makeCgroup(name string) error {
	dirs, err := hierarchies()
	if err != nil {
		return err
	}
	for _, dir := range dirs {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(path, 0o755); err != nil {
			return err
		}
		if filepath.Base(dir) != "cpuset" {
			continue
		}
		for _, file := range []string{"cpuset.cpus", "cpuset.mems"} { // a new one has none
			value, err := os.ReadFile(filepath.Join(filepath.Dir(path), file))
			if err != nil {
				return err
			}
			if err := os.WriteFile(filepath.Join(path, file), value, 0o644); err != nil {
				return err
			}
		}
	}
	return nil
}

// sweep removes all traces of this or an earlier run, whose processes have ended.
func sweep() error {
	var errs []error
	made, err := os.ReadFile(madeFile())
	if err == nil {
		for dir := range strings.Lines(string(made)) {
			dir = strings.TrimSpace(dir)
			if dir == "" {
				continue
			}
			if err := syscall.Rmdir(dir); err != nil && !errors.Is(err, syscall.ENOENT) {
				errs = append(errs, fmt.Errorf("rmdir %s: %w", dir, err))
			}
		}
	}
	dirs, err := hierarchies()
	if err != nil {
		return err
	}
	for _, dir := range dirs {
		errs = append(errs, removeCgroup(filepath.Join(dir, suite)))
	}
	return errors.Join(append(errs, os.RemoveAll(workDir()))...)
}

// removeCgroup removes a control group and those below it. The kernel may need a moment to see that they are empty.
func removeCgroup(root string) error {
	var last error
	for range 50 {
		var groups []string
		err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			if err == nil && d.IsDir() {
				groups = append(groups, path)
			}
			return nil // files of control groups come and go
		})
		if err != nil {
			return err
		}
		slices.Reverse(groups)
		last = nil
		for _, g := range groups {
			if err := syscall.Rmdir(g); err != nil && !errors.Is(err, syscall.ENOENT) {
				last = fmt.Errorf("rmdir %s: %w", g, err)
			}
		}
		if last == nil {
			return nil
		}
		time.Sleep(100 * time.Millisecond)
	}
	return last
}
